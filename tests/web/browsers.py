"""What the tests of the page need of any browser: its program, waiting for the page, and its end."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import Any

# The page draws every third of the browser's frames, as on a slow device: frames are most of what a test costs.
SLOW_FRAMES = """(() => {
  const every = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => every(() => every(() => every(draw)));
})()"""


def find_program(names: Iterable[str]) -> str | None:
    """The path of the first of these programs that is installed, or None."""
    return next((path for path in map(shutil.which, names) if path), None)


def wait_until(evaluate: Callable[[str], Any], expression: str, timeout_s: float, pause_s: float = 0.05) -> Any:
    """Wait until an expression is truthy in the page; returns its value."""
    end = time.monotonic() + timeout_s
    # An element or the page's own object cannot be returned as a value.
    plain = "value && typeof value === 'object' ? true : value"
    guarded = f"(() => {{ try {{ const value = {expression}; return {plain}; }} catch {{ return null; }} }})()"
    while True:
        value = evaluate(guarded)
        if value:
            return value
        assert time.monotonic() < end, f"still not: {expression}; state {evaluate('window.hotlap?.state()')}"
        time.sleep(pause_s)


def end_browser(process: "subprocess.Popen[Any]", profile: str) -> None:
    """End a browser and delete its profile."""
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(profile, ignore_errors=True)
