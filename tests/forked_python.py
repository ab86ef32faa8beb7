"""`Popen` and `run` for commands of this interpreter, which start in milliseconds instead of seconds.

A server that has imported torch and all else forks a process for each command. That is a real process: it has its own
memory, pipes, process group, exit code and signals. What is missing is the start of an interpreter, so tests that are
about imports, start-up, environment variables of libraries or the hash seed start one, with `subprocess`.
"""

import atexit
import inspect
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("fork_server.py")
ADDRESS = "FORK_SERVER"  # the variable that tells every process of a test run where the server is
CAN_FORK = sys.platform == "linux"
# A test may replace these.
PYTHON, REAL_POPEN = sys.executable, subprocess.Popen

PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_PARAMETERS = inspect.signature(REAL_POPEN._execute_child)  # type: ignore[attr-defined]


def start_server() -> None:
    """Start the server of this process and of those it starts, unless there is one. It imports at its first request."""
    if not CAN_FORK or ADDRESS in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="fork-server-")
    path = str(Path(folder) / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(128)
        number = listener.fileno()
        command = [PYTHON, str(SERVER), str(number)]
        # With `env`, the server has what this process sees: libraries such as readline set more behind Python's back.
        server = REAL_POPEN(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[number], env=dict(os.environ)
        )
    os.environ[ADDRESS] = path
    owner = os.getpid()

    def stop() -> None:
        if os.getpid() == owner:
            os.environ.pop(ADDRESS, None)
            server.communicate()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)


def forkable(command: Any, given: "dict[str, Any]") -> "list[str] | None":
    """The arguments of this interpreter, if a forked process can take its place for this call of `Popen`; else None."""
    if not CAN_FORK or not isinstance(command, list | tuple) or not command or str(command[0]) != PYTHON:
        return None
    others = ("preexec_fn", "shell", "executable", "gid", "gids", "uid")
    if not all(given.get(name) is None or given[name] is False for name in others):
        return None
    arguments = [os.fsdecode(part) for part in command[1:]]
    code = arguments[1:] if arguments[:1] == ["-u"] else arguments
    is_module_or_code = len(code) > 1 and code[0] in ("-m", "-c")
    is_script = bool(code) and not code[0].startswith("-")
    return arguments if is_module_or_code or is_script else None


class Popen(REAL_POPEN):  # type: ignore[type-arg]
    """`subprocess.Popen`, forked where the command is one of this interpreter; else the real one."""

    refusal = ""  # why the server did not fork
    _connection: socket.socket | None = None

    def _execute_child(self, *positional: Any) -> None:
        given = _PARAMETERS.bind(self, *positional).arguments
        arguments = forkable(given["args"], given)
        if arguments is None or not self._fork(arguments, given):
            super()._execute_child(*positional)  # type: ignore[misc]

    def _fork(self, arguments: "list[str]", given: "dict[str, Any]") -> bool:
        """Let the server fork the process; False if it refuses."""
        start_server()
        streams = {0: given["p2cread"], 1: given["c2pwrite"], 2: given["errwrite"]}
        descriptors = {number: number if own == -1 else own for number, own in streams.items()}
        descriptors.update({number: number for number in given["pass_fds"]})
        environ = os.environ if given["env"] is None else given["env"]
        request = {
            "arguments": arguments[1:] if arguments[0] == "-u" else arguments,
            "is_unbuffered": arguments[0] == "-u",
            "folder": str(Path(os.fsdecode(given["cwd"] or ".")).absolute()),
            "environ": {os.fsdecode(key): os.fsdecode(value) for key, value in environ.items()},
            "descriptors": list(descriptors),
            "is_session_leader": bool(given["start_new_session"]),
            "process_group": given.get("process_group", -1),
            "umask": given["umask"],
        }
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(os.environ[ADDRESS])
        socket.send_fds(connection, [b" "], list(descriptors.values()))
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = self._receive(connection)
        if not answer.isdigit():
            connection.close()
            self.refusal = answer
            return False
        self.pid, self._connection, self._child_created = int(answer), connection, True
        self._reading = threading.Lock()
        # The process has its own ends of the pipes now.
        self._close_pipe_fds(*(given[name] for name in PIPES))  # type: ignore[attr-defined]
        return True

    @staticmethod
    def _receive(connection: socket.socket) -> str:
        line = b""
        while not line.endswith(b"\n"):
            part = connection.recv(1)
            if not part:
                raise RuntimeError("the fork server has ended")
            line += part
        return line.decode().strip()

    def _end(self, timeout_s: "float | None") -> "int | None":
        """The exit code; None if the process still runs after this time."""
        with self._reading:
            if self.returncode is None and self._connection is not None:
                if not select.select([self._connection], [], [], timeout_s)[0]:
                    return None
                self.returncode = int(self._receive(self._connection))
                self._connection.close()
            return self.returncode

    def _internal_poll(self, *given: Any, **more: Any) -> "int | None":
        if self._connection is None:
            return super()._internal_poll(*given, **more)  # type: ignore[misc]
        # Called without arguments by `poll`, and with some while the interpreter ends, when all is over anyway.
        return self._end(0.0)

    def _wait(self, timeout: "float | None") -> "int | None":
        if self._connection is None:
            return super()._wait(timeout)  # type: ignore[misc]
        if self._end(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode


def run(
    command: Any, *, input: Any = None, capture_output: bool = False, timeout: "float | None" = None,  # noqa: A002
    check: bool = False, **options: Any,
) -> "subprocess.CompletedProcess[Any]":  # fmt: skip
    """`subprocess.run` with this module's `Popen`."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options["stdout"] = options["stderr"] = subprocess.PIPE
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
