"""Chromium without a window, driven over its DevTools protocol: pages to open, evaluate, press keys in and picture."""

import base64
import json
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import websocket

from web.browsers import SLOW_FRAMES, end_browser, find_program, wait_until

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_S = 60.0
CALL_S = 60.0
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27}
CONTROL, SHIFT = 2, 8


def find_chromium() -> str | None:
    """The browser's path, or None where there is none."""
    return find_program(NAMES)


class Chromium:
    """One browser process with its own empty profile."""

    def __init__(self) -> None:
        program = find_chromium()
        assert program, "there is no Chromium; on Debian: apt-get install chromium"
        self._profile = tempfile.mkdtemp(prefix="hotlap-chromium-")
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio",
            "--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={self._profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._pages: list[Page] = []
        self._kept: list[Page] = []
        self._blank: list[Page] = []  # tabs to be used again: a new one is a new process, which loads everything anew
        self._port = self._wait_for_port()

    def _wait_for_port(self) -> int:
        path, end = Path(self._profile, "DevToolsActivePort"), time.monotonic() + START_S
        while time.monotonic() < end:
            assert self._process.poll() is None, "Chromium ended at once"
            lines = path.read_text().split() if path.exists() else []
            if lines:
                return int(lines[0])
            time.sleep(0.05)
        raise AssertionError("Chromium did not start")

    def open(
        self, url: str, width: int = 1280, height: int = 720, *, is_new: bool = False, is_kept: bool = False, **looks
    ) -> "Page":
        """A tab that shows `url`.

        `is_new`: as to a visitor of whom the browser remembers nothing. `is_kept`: until the browser ends.
        """
        page = self._blank.pop() if self._blank else self._open_blank()
        (self._kept if is_kept else self._pages).append(page)
        page.emulate(width, height, **looks)
        page.call("Page.bringToFront")
        if is_new:
            page.call("Storage.clearDataForOrigin", origin=url, storageTypes="local_storage")
        page.go(url)
        return page

    def _open_blank(self) -> "Page":
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=CALL_S) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"])

    def close_pages(self) -> None:
        """Leave all pages but those that are kept; their tabs are used again."""
        for page in self._pages:
            page.leave()
        self._blank += self._pages
        self._pages.clear()

    def close(self) -> None:
        """End the browser and delete its profile."""
        for page in (*self._pages, *self._kept, *self._blank):
            page.close()
        end_browser(self._process, self._profile)


class Page:
    """A tab. `errors` are the console's errors and uncaught exceptions."""

    def __init__(self, url: str) -> None:
        self._socket = websocket.create_connection(url, timeout=CALL_S, suppress_origin=True)
        self._number = 0
        self._is_delayed = False
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=SLOW_FRAMES)

    def emulate(
        self, width: int, height: int, *, is_dark: bool = True, is_phone: bool = False, is_still: bool = False
    ) -> None:
        """Be a device of this size and kind, whose user likes this theme, and perhaps no motion."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=2 if is_phone else 1, mobile=is_phone,
        )  # fmt: skip
        self.call("Emulation.setTouchEmulationEnabled", enabled=is_phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if is_still else "no-preference"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, motion])

    def leave(self) -> None:
        """Show an empty page, as a new tab would."""
        self.go("about:blank")
        if self._is_delayed:
            self.delay(0)
        self.call("Page.setInterceptFileChooserDialog", enabled=False)
        self.call("Page.resetNavigationHistory")
        self.errors = []
        self._is_delayed = False

    def call(self, method: str, **parameters):
        """Call a method of the protocol; events that arrive in between are looked at for errors."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._note(message)

    def _note(self, message) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(str([one.get("value", one.get("description")) for one in parameters["args"]]))

    def go(self, url: str) -> None:
        """Load `url`, or change the hash where only that differs."""
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def show(self, view: str, **address: str) -> None:
        """Change the address as a link of the page does: another view, `track` or `driver`, without a load."""
        self.evaluate(f"hotlap.app.go({json.dumps(view)}, {json.dumps(address)})")
        self.wait(f"hotlap.state().view === {json.dumps(view)} && hotlap.state().message")

    def use_again(self) -> None:
        """Show what a new visitor sees first, in a page that an earlier test used."""
        self.call("Page.bringToFront")
        self.wait("window.hotlap?.app.track")
        self.evaluate("window.hotlap.setPace(1)")
        self.show("watch", track="track-01", driver="champion")
        self.errors.clear()

    def delay(self, milliseconds: int) -> None:
        """Let every answer of a server come this much later."""
        self._is_delayed = True
        self.call("Network.enable")
        throughput = {"downloadThroughput": -1, "uploadThroughput": -1}
        self.call("Network.emulateNetworkConditions", offline=False, latency=milliseconds, **throughput)

    def reload(self) -> None:
        self.evaluate("void (window.isOld = true)")
        self.call("Page.reload")
        self.wait("!window.isOld && document.readyState === 'complete'")

    def evaluate(self, expression: str):
        """The value of an expression, awaited if it is a promise; an exception in it is an error here."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        details = result.get("exceptionDetails")
        assert details is None, details.get("exception", {}).get("description", details["text"])
        return result["result"].get("value")

    def wait(self, expression: str, timeout_s: float = 30.0):
        """Wait until an expression is truthy; returns its value."""
        return wait_until(self.evaluate, expression, timeout_s)

    def state(self):
        """`window.hotlap.state()`."""
        return self.evaluate("window.hotlap.state()")

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        middle = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, *middle)

    def mouse(self, kind: str, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, kind: str, *paths: Path) -> None:
        """Drag files from the desktop over the middle of the page: kind is dragEnter, dragOver, drop or dragCancel."""
        x, y = self.evaluate("[innerWidth / 2, innerHeight / 2]")
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def drop(self, *paths: Path) -> None:
        """Drop files on the page."""
        for kind in ("dragEnter", "dragOver", "drop"):
            self.drag(kind, *paths)

    def touch(self, selectors: list[str]) -> None:
        """Rest one finger on the middle of each element, and take all others away."""
        points = []
        for number, selector in enumerate(selectors):
            self.wait(f"document.querySelector({json.dumps(selector)})?.offsetWidth > 0")
            x, y = self.middle(selector)
            points.append({"x": x, "y": y, "id": number})
        self.call("Input.dispatchTouchEvent", type="touchStart" if points else "touchEnd", touchPoints=points)

    def middle(self, selector: str) -> list[float]:
        """Where the middle of an element is, scrolled into sight."""
        return self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect(); "
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )

    def key(self, code: str, is_down: bool, modifiers: int = 0) -> None:
        """Press or release a key of the keyboard; modifiers are a sum of CONTROL and SHIFT."""
        name = code.removeprefix("Key").lower() if code.startswith("Key") else code
        number = KEYS.get(code) or ord(code[-1])
        self.call(
            "Input.dispatchKeyEvent", type="keyDown" if is_down else "keyUp", code=code, key=name,
            windowsVirtualKeyCode=number, modifiers=modifiers,
        )  # fmt: skip

    def press(self, code: str, modifiers: int = 0) -> None:
        """Press a key and let go of it."""
        self.key(code, True, modifiers)
        self.key(code, False, modifiers)

    def picture(self, path: Path) -> None:
        """Write what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self._socket.close()
