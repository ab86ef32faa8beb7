"""Firefox without a window, driven over WebDriver BiDi: pages to open, evaluate and wait in."""

import json
import re
import subprocess
import tempfile
import threading

import websocket

from web.browsers import SLOW_FRAMES, end_browser, find_program, wait_until

NAMES = ("firefox-esr", "firefox")
START_S = 90.0
CALL_S = 240.0


def find_firefox() -> str | None:
    """The browser's path, or None where there is none."""
    return find_program(NAMES)


class Firefox:
    """One browser process with its own empty profile, and its one tab."""

    def __init__(self) -> None:
        program = find_firefox()
        assert program, "there is no Firefox; on Debian: apt-get install firefox-esr"
        self._profile = tempfile.mkdtemp(prefix="hotlap-firefox-")
        command = [program, "--headless", "--no-remote", "--profile", self._profile, "--remote-debugging-port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._socket = websocket.create_connection(self._wait_for_address(), timeout=CALL_S, suppress_origin=True)
        self._number = 0
        self.errors: list[str] = []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.call("script.addPreloadScript", functionDeclaration=f"() => {{ {SLOW_FRAMES} }}")
        self._tab = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def _wait_for_address(self) -> str:
        watchdog = threading.Timer(START_S, self._process.kill)
        watchdog.start()
        for line in self._process.stderr:
            match = re.search(r"WebDriver BiDi listening on (ws://\S+)", line)
            if match:
                watchdog.cancel()
                threading.Thread(target=self._process.stderr.read, daemon=True).start()
                return f"{match[1]}/session"
        raise AssertionError("Firefox did not start")

    def call(self, method: str, **parameters):
        """Call a method of the protocol; events that arrive in between are looked at for errors."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                assert message["type"] == "success", f"{method}: {message}"
                return message["result"]
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.errors.append(message["params"]["text"])

    def go(self, url: str) -> None:
        """Load `url`."""
        self.call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def evaluate(self, expression: str):
        """The value of an expression that JSON can hold, awaited if it is a promise."""
        wrapped = f"Promise.resolve({expression}).then((value) => JSON.stringify(value ?? null))"
        target = {"context": self._tab}
        answer = self.call("script.evaluate", expression=wrapped, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        return json.loads(answer["result"]["value"])

    def wait(self, expression: str, timeout_s: float = 60.0):
        """Wait until an expression is truthy; returns its value."""
        return wait_until(self.evaluate, expression, timeout_s, pause_s=0.1)

    def close(self) -> None:
        """End the browser and delete its profile."""
        self._socket.close()
        end_browser(self._process, self._profile)
