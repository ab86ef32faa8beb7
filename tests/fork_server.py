"""The server behind `forked_python`: a process that has imported what our commands import, and forks one for each.

usage: python fork_server.py LISTENER (the descriptor of a listening socket)
A client sends one request over a connection: the command as JSON, with the descriptors that the new process gets. The
answer is its process id, or why it is refused, and later its exit status. The process stays a zombie until the client
has read that and closed the connection, so that its id stays its own. The server ends when its standard input ends.
"""

import array
import atexit
import gc
import io
import json
import os
import random
import runpy
import selectors
import signal
import socket
import sys
import threading
import types
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imported_modules import import_everything

MAX_REQUEST_BYTES, MAX_DESCRIPTORS = 1 << 20, 32

# These are read by our commands while they run. A request that differs from the server in any other variable is
# refused: libraries read theirs when they are imported or first used.
READ_WHEN_USED = {
    "BRIDGE_PORT", "HOTLAP_BRIDGE_TOKEN", "HOTLAP_HOME", "HOTLAP_PLAY_TOKEN",
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
    "PYTHONUNBUFFERED", "COLUMNS", "LINES", "MPLCONFIGDIR",
}  # fmt: skip
# Of the tests, of Ray, which the server does not import, and of torchrun for the processes it starts.
OTHERS = ("PYTEST_", "FORK_SERVER", "RAY_", "TORCHELASTIC_", "TORCH_NCCL_", "GROUP_", "ROLE_")


@dataclass(frozen=True)
class Request:
    """A process to be started; `descriptors` are its numbers there for those that came with the request."""

    arguments: list[str]
    folder: str
    environ: dict[str, str]
    descriptors: list[int]
    is_session_leader: bool
    process_group: int
    umask: int
    is_unbuffered: bool

    @classmethod
    def receive(cls, connection: socket.socket) -> "tuple[Request, list[int]] | None":
        """The request of a client and its descriptors; None if it went away."""
        content, own = b"", array.array("i")
        while not content.endswith(b"\n"):
            room = socket.CMSG_SPACE(MAX_DESCRIPTORS * own.itemsize)
            part, extra, _, _ = connection.recvmsg(MAX_REQUEST_BYTES, room)
            for _, _, data in extra:
                own.frombytes(data[: len(data) - len(data) % own.itemsize])
            if not part:
                for number in own:
                    os.close(number)
                return None
            content += part
        return cls(**json.loads(content)), own.tolist()


def thread_counts() -> dict[str, str]:
    """The variables that would give the libraries as many threads as they have now."""
    import numba
    import torch

    return {"NUMBA_NUM_THREADS": str(numba.config.NUMBA_NUM_THREADS), "MKL_NUM_THREADS": str(torch.get_num_threads())}


class ForkServer:
    """Accepts requests, forks, and tells each client how its process ended."""

    def __init__(self, listener: socket.socket) -> None:
        self._environ = dict(os.environ)
        self._from_imports: dict[str, str] = {}  # variables that our modules set when they are imported
        self._as_it_is: dict[str, str] = {}  # variables that change nothing if they are set to this
        self._is_ready = False
        self._pids: dict[socket.socket, int] = {}
        self._ended: set[socket.socket] = set()
        self._listener = listener
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C ends the tests, and then their server

    def serve(self) -> "tuple[Request, list[int]] | None":
        """Serve until standard input ends, which returns None; in a forked process, returns its request."""
        with selectors.DefaultSelector() as selector:
            for source in (sys.stdin, self._listener, self._woken):
                selector.register(source, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is sys.stdin:
                        return self._end()
                    if key.fileobj is self._woken:
                        self._drain()
                    elif key.fileobj is self._listener:
                        connection = self._listener.accept()[0]
                        request = Request.receive(connection)
                        if request is not None and self._start(connection, request):
                            return request
                        if connection in self._pids:
                            selector.register(connection, selectors.EVENT_READ)
                    else:
                        selector.unregister(key.fileobj)
                        self._forget(key.fileobj)
                self._report()

    def _start(self, connection: socket.socket, request: "tuple[Request, list[int]]") -> bool:
        """Fork, unless the request is refused. True in the new process."""
        wanted, descriptors = request
        self._get_ready()
        refusal = self._refusal(wanted.environ)
        if not refusal:
            pid = os.fork()
            if pid == 0:
                return True
            self._pids[connection] = pid
        for number in descriptors:
            os.close(number)
        with suppress(OSError):
            connection.sendall((refusal or str(pid)).encode() + b"\n")
        if refusal:
            connection.close()
        return False

    def _get_ready(self) -> None:
        if self._is_ready:
            return
        import_everything()
        self._from_imports = {key: value for key, value in os.environ.items() if key not in self._environ}
        self._as_it_is = {**self._from_imports, **thread_counts()}
        self._is_ready = True
        for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
            finalizer.atexit = False  # every forked process would take the libraries apart, which takes long
        gc.collect()
        gc.freeze()  # a collection in a forked process would copy all of its memory

    def _refusal(self, environ: dict[str, str]) -> str:
        """Why a forked process would differ from a new interpreter with these variables; empty if it would not."""
        different = {key for key, _ in self._environ.items() ^ environ.items()}
        read = [
            key
            for key in sorted(different)
            if key not in READ_WHEN_USED
            and not key.startswith(OTHERS)
            and environ.get(key, "") != self._as_it_is.get(key)
        ]
        if read:
            return f"other variables: {' '.join(read)}"
        # Other threads than the one that forks would be missing in the new process.
        return "" if len(list(Path("/proc/self/task").iterdir())) == 1 else "the server has threads"

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass

    def _report(self) -> None:
        """Send the exit status of each process that has ended, and leave it a zombie."""
        for connection, pid in self._pids.items():
            if connection in self._ended:
                continue
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                self._ended.add(connection)
                code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
                with suppress(OSError):
                    connection.sendall(b"%d\n" % code)

    def _forget(self, connection: socket.socket) -> None:
        """The client has closed its connection: nobody needs the process id any more."""
        if connection in self._ended:
            os.waitpid(self._pids.pop(connection), 0)
            self._ended.discard(connection)
            connection.close()
        # Else the process runs on without anybody who waits for it; it is left to `_end`.

    def _end(self) -> None:
        for pid in self._pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def become(self, request: Request, descriptors: list[int]) -> None:
        """Make a forked process what the request asks for, as far as a new interpreter would differ."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._take_descriptors(descriptors, request.descriptors)
        if request.is_session_leader:
            os.setsid()
        if request.process_group >= 0:
            os.setpgid(0, request.process_group)
        if request.umask >= 0:
            os.umask(request.umask)
        os.chdir(request.folder)
        os.environ.clear()
        os.environ.update({**self._from_imports, **request.environ})
        open_streams(request.is_unbuffered or bool(request.environ.get("PYTHONUNBUFFERED")))
        reseed()

    def _take_descriptors(self, descriptors: list[int], numbers: list[int]) -> None:
        """Close all descriptors but those that came with the request, and give these their numbers."""
        high = max((*descriptors, *numbers, 2)) + 1
        moved = [os.dup2(given, high + index, inheritable=False) for index, given in enumerate(descriptors)]
        for connection in (*self._pids, self._listener, self._wake, self._woken):
            connection.detach()
        os.closerange(0, high)
        for given, number in zip(moved, numbers, strict=True):
            os.dup2(given, number, inheritable=True)
        os.closerange(max((*numbers, 2)) + 1, os.sysconf("SC_OPEN_MAX"))


def open_streams(is_unbuffered: bool) -> None:
    """Open the standard streams as a new interpreter does: what was set up belongs to the server."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before: Any = getattr(sys, f"__{name}__")
        try:
            raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
        except OSError:  # it is closed
            opened = None
        else:
            binary = io.BufferedReader(raw) if number == 0 else raw if is_unbuffered else io.BufferedWriter(raw)
            raw.name = f"<{name}>"
            opened = io.TextIOWrapper(
                binary,  # type: ignore[arg-type]
                encoding=before.encoding,
                errors=before.errors,
                newline="\n" if number else None,
                line_buffering=not is_unbuffered and (number == 2 or raw.isatty()),
                write_through=is_unbuffered,
            )
            opened.mode = "w" if number else "r"  # type: ignore[misc]
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def reseed() -> None:
    """Seed the generators that a new interpreter would seed by chance."""
    import numpy as np

    random.seed()
    np.random.seed()  # noqa: NPY002 (that of the libraries)


def run(arguments: list[str]) -> int:
    """Run `-m MODULE …`, `-c CODE …` or `SCRIPT …` as the interpreter does; returns the exit code.

    All that is no plain exit code is raised, for the interpreter to end with it.
    """
    try:
        execute(arguments)
    except SystemExit as stop:
        if isinstance(stop.code, int):
            return stop.code
        if stop.code is not None:
            raise
    return 0


def leave(code: int) -> None:
    """End the process as the interpreter does, but without taking thousands of modules apart, which takes a second."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        sys.exit(code)  # the interpreter says what it could not write
    os._exit(code)


def execute(arguments: list[str]) -> None:
    """Run the code of a command line."""
    if arguments[0] == "-m":
        sys.argv = ["-m", *arguments[2:]]
        sys.path.insert(0, str(Path.cwd()))
        if arguments[1].partition(".")[0] == "hotlap":
            from hotlap.python_processes import leave_working_folder

            leave_working_folder()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path.insert(0, "")
        execute_main(compile(arguments[1], "<string>", "exec"))
    else:
        sys.argv = arguments
        path = Path(arguments[0]).absolute()
        sys.path.insert(0, str(path.resolve().parent))
        execute_main(compile(path.read_bytes(), path, "exec"), __file__=str(path))


def execute_main(code: types.CodeType, **variables: str) -> None:
    """Execute code as the module `__main__`."""
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__dict__.update(variables)
    exec(code, main.__dict__)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    server = ForkServer(socket.socket(fileno=int(sys.argv[1])))
    taken = server.serve()
    if taken is not None:
        server.become(*taken)
        leave(run(taken[0].arguments))
