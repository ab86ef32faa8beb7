"""`--workers N`: the tests run in N processes, forked after everything is imported and all tests are collected.

So each process starts at once, with the compiled simulator loaded. A process runs whole files, or the groups that a
conftest makes of them, in the order of the collection, as it has time for them. Ctrl-C, `-x` and `--maxfail` end all
processes, and each tears its fixtures down.
"""

import json
import mmap
import os
import selectors
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from shared_results import RUN

_SHORT_S = 0.005
_NUMBER = struct.Struct("<I")  # a file's place in the queue, and the size of a message


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--workers`."""
    parser.addoption("--workers", type=int, default=0, metavar="N", help="run the tests in N forked processes")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Take over the loop of a run in several processes."""
    if config.getoption("workers") > 0 and hasattr(os, "fork") and not config.option.collectonly:
        config.pluginmanager.register(Workers(config.getoption("workers")), "workers")


class Workers:
    """Forks the processes, hands files out and passes their reports on."""

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self._running: dict[int, str] = {}  # the test that runs, by process

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all files; replaces pytest's own loop."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest's own loop says so
        found: dict[Path | str, list[pytest.Item]] = {}
        for item in session.items:
            found.setdefault(session.config.hook.pytest_worker_group(item=item) or item.path, []).append(item)
        groups = [sorted(group, key=lambda item: str(item.path)) for group in found.values()]
        if len(groups) < 2:
            return None
        os.environ[RUN] = uuid4().hex
        queue, queue_end = os.pipe()
        os.write(queue_end, b"".join(_NUMBER.pack(place) for place in range(len(groups))))
        os.close(queue_end)
        stop = mmap.mmap(-1, 1)  # shared by all; 1: no further test begins
        session.config._tmp_path_factory.getbasetemp()  # made now, so that it is the same for all
        session.config.hook.pytest_before_workers(config=session.config)
        sys.stdout.flush()
        sys.stderr.flush()
        sources: dict[int, int] = {}
        for number in range(min(self._num_workers, len(groups))):
            source, sink = os.pipe()
            pid = os.fork()
            if pid == 0:
                for other in (source, *sources):
                    os.close(other)
                _Worker(session, number, groups, queue, sink, stop).run()
            os.close(sink)
            sources[source] = pid
        os.close(queue)
        try:
            self._pass_on(session, sources, stop)
        except BaseException:
            stop[0] = 1
            with suppress(KeyboardInterrupt):
                self._pass_on(session, sources, stop)
            raise
        finally:
            del os.environ[RUN]
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _pass_on(self, session: pytest.Session, sources: dict[int, int], stop: mmap.mmap) -> None:
        """Give the reports of all processes to pytest until the last has ended."""
        hook = session.config.hook
        with selectors.DefaultSelector() as selector:
            for source in sources:
                selector.register(source, selectors.EVENT_READ)
            while sources:
                for key, _ in selector.select():
                    source = key.fd
                    message = _receive(source)
                    if message is None:
                        selector.unregister(source)
                        self._end(session, source, sources.pop(source))
                    elif "report" in message:
                        report = hook.pytest_report_from_serializable(config=session.config, data=message["report"])
                        if isinstance(report.longrepr, list):  # why a test was skipped; JSON has no tuples
                            report.longrepr = tuple(report.longrepr)
                        hook.pytest_runtest_logreport(report=report)
                    elif "start" in message:
                        nodeid, location = message["start"], tuple(message["location"])
                        self._running[sources[source]] = nodeid
                        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
                    else:
                        self._running.pop(sources[source], None)
                        hook.pytest_runtest_logfinish(nodeid=message["end"], location=tuple(message["location"]))
                if session.shouldfail or session.shouldstop:
                    stop[0] = 1

    def _end(self, session: pytest.Session, source: int, pid: int) -> None:
        """Wait for a process; the test in which it died has failed."""
        os.close(source)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        nodeid = self._running.pop(pid, "a process of the tests")
        if code != 0:
            report = pytest.TestReport(
                nodeid, (nodeid, None, nodeid), {}, "failed", f"the process ended with code {code}", "call"
            )
            session.config.hook.pytest_runtest_logreport(report=report)


class _Worker:
    """One process: runs files from the queue and sends what happens."""

    def __init__(
        self,
        session: pytest.Session,
        number: int,
        groups: list[list[pytest.Item]],
        queue: int,
        sink: int,
        stop: mmap.mmap,
    ) -> None:
        self._session, self._number, self._groups = session, number, groups
        self._queue, self._sink, self._stop = queue, sink, stop

    def run(self) -> None:
        """Run the tests and leave without what the first process does at its end."""
        code = 1
        try:
            self._become()
            while not self._stop[0] and (place := os.read(self._queue, _NUMBER.size)):
                self._run_file(self._groups[_NUMBER.unpack(place)[0]])
            self._session._setupstate.teardown_exact(None)
            self._session.config.hook.pytest_end_worker(config=self._session.config)
            code = 0
        except KeyboardInterrupt:
            with suppress(BaseException):
                self._session._setupstate.teardown_exact(None)
            code = 0
        except BaseException:
            self._session.config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
            sys.excepthook(*sys.exc_info())
        finally:
            with suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _become(self) -> None:
        """Have captured output, temporary folders and reports of its own."""
        config = self._session.config
        capturing = config.pluginmanager.getplugin("capturemanager")
        capturing.stop_global_capturing()
        capturing.start_global_capturing()
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(self, "worker")
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.getbasetemp() / f"worker-{self._number}"
        factory._basetemp.mkdir()
        config.hook.pytest_begin_worker(config=config)

    def _run_file(self, items: list[pytest.Item]) -> None:
        """Run the tests of a file or group, and keep the fixtures of the session."""
        for item, following in zip(items, [*items[1:], _Session(self._session)], strict=True):
            if self._stop[0]:
                return
            self._send({"start": item.nodeid, "location": item.location})
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._send({"end": item.nodeid, "location": item.location})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report, unless it says only that a set-up or teardown took no time."""
        if report.when != "call" and report.passed and report.duration < _SHORT_S:
            return
        config = self._session.config
        self._send({"report": config.hook.pytest_report_to_serializable(config=config, report=report)})

    def _send(self, message: dict[str, Any]) -> None:
        content = json.dumps(message, default=str).encode()
        with open(self._sink, "wb", closefd=False, buffering=0) as sink:
            left = memoryview(_NUMBER.pack(len(content)) + content)
            while left:
                left = left[sink.write(left) :]


class _Session:
    """Stands for the next test where that is not known yet: it needs the session, and nothing of a file."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[Any]:
        """What must not be torn down before it."""
        return [self._session]


def _receive(source: int) -> dict[str, Any] | None:
    """The next message of a process; None if it has ended."""
    head = _read(source, _NUMBER.size)
    content = _read(source, _NUMBER.unpack(head)[0]) if head else b""
    return json.loads(content) if content else None


def _read(source: int, size: int) -> bytes:
    """So many bytes; none if the process ended before."""
    content = b""
    while len(content) < size:
        part = os.read(source, size - len(content))
        if not part:
            return b""
        content += part
    return content


class WorkerHooks:
    """What a conftest can do before the processes are forked, and in each at its begin and end."""

    @pytest.hookspec(firstresult=True)
    def pytest_worker_group(self, item: pytest.Item) -> str | None:
        """The name of the group whose tests one process runs; None: those of the item's file are such a group."""

    @pytest.hookspec
    def pytest_before_workers(self, config: pytest.Config) -> None:
        """Called once, in the process that forks."""

    @pytest.hookspec
    def pytest_begin_worker(self, config: pytest.Config) -> None:
        """Called in each forked process before its first test."""

    @pytest.hookspec
    def pytest_end_worker(self, config: pytest.Config) -> None:
        """Called in each forked process after its last test."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare them."""
    pluginmanager.add_hookspecs(WorkerHooks)
