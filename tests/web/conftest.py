"""Fixtures: the page as a static site, the page's server as a process, and browsers."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forked_python import Popen
from play_process import BOARD
from web.chromium import Chromium, Page, find_chromium

SERVER_START_S = 120
OLD_S = 1e9  # browsers ask only once for files that have not changed for years
GENERATED = ("test-010",)  # offered by the static site beside the built-in tracks


class ServedPage:
    """A process that serves the page: `python -m http.server` over a static site, or `hotlap play`."""

    def __init__(
        self, command: list[str], folder: Path, says: str, popen: Callable[..., Any] = subprocess.Popen, **environ: str
    ) -> None:
        self._command, self._folder, self._says, self._popen = command, folder, says, popen
        self._environ = {**os.environ, **environ, "PYTHONUNBUFFERED": "1"}
        self.start()

    def start(self) -> None:
        """Start it; returns when it listens."""
        self._process = self._popen(
            self._command,
            cwd=self._folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        watchdog = threading.Timer(SERVER_START_S, self._process.kill)
        watchdog.start()
        heard = []
        for line in self._process.stdout:
            heard.append(line)
            match = re.search(self._says, line)
            if match:
                watchdog.cancel()
                self.port = int(match[1])
                self.url = f"http://127.0.0.1:{self.port}/"
                # Requests are logged; a full pipe would stop the server.
                threading.Thread(target=self._process.stdout.read, daemon=True).start()
                return
        watchdog.cancel()
        raise AssertionError(f"{self._command}: ended: {''.join(heard)}")

    def restart(self) -> None:
        """Start it again on the same port."""
        self._command = [str(self.port) if part == "0" else part for part in self._command]
        self.start()

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="session")
def static_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """The static site behind `python -m http.server`."""
    from hotlap.web.site import write_site

    folder = tmp_path_factory.mktemp("site")
    write_site(folder, GENERATED)
    for path in folder.rglob("*"):
        os.utime(path, (0, OLD_S))
    command = [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"]
    page = ServedPage(command, folder, r"port (\d+)")
    yield page
    page.stop()


@pytest.fixture(scope="session")
def web_server(entered_board: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """`hotlap play`, forked, with runs and a board of its own, which has the drivers that ship."""
    folder = tmp_path_factory.mktemp("play")
    (home := folder / "home").mkdir()
    (home / BOARD).write_bytes(entered_board)
    command = [sys.executable, "-m", "hotlap", "play", "--port", "0", "--no-open"]
    says = r"\[play\] listening on http://127\.0\.0\.1:(\d+)"
    page = ServedPage(command, folder, says, Popen, HOTLAP_HOME=str(home))
    yield page
    page.stop()


@pytest.fixture
def new_browser() -> Iterator[Callable[[], Chromium]]:
    """Starts browsers, each with an empty profile; they end with the test."""
    browsers: list[Chromium] = []

    def start() -> Chromium:
        if find_chromium() is None and os.environ.get("CI") != "true":
            pytest.skip("no Chromium; on Debian: apt-get install chromium")
        browsers.append(Chromium())
        return browsers[-1]

    yield start
    for browser in browsers:
        browser.close()


@pytest.fixture
def browser(new_browser: Callable[[], Chromium]) -> Chromium:
    """One browser."""
    return new_browser()


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[Chromium]:
    """One browser for many tests."""
    if find_chromium() is None and os.environ.get("CI") != "true":
        pytest.skip("no Chromium; on Debian: apt-get install chromium")
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture
def open_page(shared_browser: Chromium) -> Iterator[Callable[..., Page]]:
    """Opens pages in the shared browser as to a new visitor; they end with the test, and their tabs are used again."""
    yield lambda url, *size, **looks: shared_browser.open(url, *size, is_new=True, **looks)
    shared_browser.close_pages()


@pytest.fixture(scope="session")
def first_static_page(static_page: ServedPage, shared_browser: Chromium) -> Page:
    """The static page in a tab that stays open."""
    return shared_browser.open(static_page.url, is_new=True, is_kept=True)


@pytest.fixture(scope="session")
def first_server_page(web_server: ServedPage, shared_browser: Chromium) -> Page:
    """The page with its server in a tab that stays open."""
    return shared_browser.open(web_server.url, is_new=True, is_kept=True)


@pytest.fixture
def used_page(first_static_page: Page) -> Page:
    """The static page, opened once for all tests that need no load of their own; they change its address by `show`."""
    first_static_page.use_again()
    return first_static_page


@pytest.fixture
def used_server_page(first_server_page: Page) -> Page:
    """The page with its server, opened once like `used_page`."""
    first_server_page.use_again()
    first_server_page.wait("hotlap.state().connected")
    return first_server_page
