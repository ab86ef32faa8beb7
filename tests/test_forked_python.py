"""Processes that are forked instead of started: they must be as real as others."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import forked_python
from forked_python import Popen, run

pytestmark = [
    pytest.mark.skipif(not forked_python.CAN_FORK, reason="processes are forked on Linux only"),
    pytest.mark.timeout(120),  # the first one waits for the server's imports
]

HAS_TORCH = "import sys; print('torch' in sys.modules)"


@pytest.fixture(autouse=True)
def environment_of_the_server(monkeypatch):
    """Other tests of this process may have set what the server has not."""
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)


def python(*arguments):
    return [sys.executable, *map(str, arguments)]


def output(*arguments, **options):
    return run(python(*arguments), capture_output=True, text=True, check=True, **options).stdout


@pytest.mark.parametrize("options", [[], ["-u"]])
def test_everything_is_imported_but_nothing_else_differs_from_a_new_interpreter(tmp_path, options):
    code = """if True:
        import json, os, random, signal, sys, threading
        print(json.dumps({
            "argv": sys.argv, "name": __name__, "first": sys.path[0], "path": sorted(sys.path), "folder": os.getcwd(),
            "threads": len(os.listdir("/proc/self/task")), "is_main": sys.modules["__main__"].__dict__ is globals(),
            "descriptors": [number for number in range(100) if os.path.exists(f"/proc/self/fd/{number}")],
            "signals": [str(signal.getsignal(number)) for number in signal.valid_signals() if number < 32],
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "executable": sys.executable,
            "streams": [[s.encoding, s.errors, s.line_buffering, s.name, s.mode, s.fileno(), s.write_through]
                        for s in (sys.stdin, sys.stdout, sys.stderr)],
            "environ": dict(sorted(os.environ.items())), "group": os.getpgid(0), "session": os.getsid(0),
        }))
        assert os.read(0, 10) == b"input"
    """
    command = python(*options, "-c", code, "one", "two three")
    options = {"cwd": tmp_path, "capture_output": True, "check": True, "env": dict(os.environ), "input": b"input"}
    forked, new = (json.loads(way(command, **options).stdout) for way in (run, subprocess.run))
    assert [word in output("-c", HAS_TORCH) for word in ("True", "False")] == [True, False]
    from_imports = forked["environ"].keys() - new["environ"].keys()
    for name in from_imports:
        del forked["environ"][name]
    assert forked == new
    assert new["descriptors"] == [0, 1, 2]
    assert not any(name.startswith(("HOTLAP", "PYTHON", "NUMBA")) for name in from_imports)


@pytest.mark.parametrize("what", ["module", "script"])
def test_modules_and_scripts_run_as_main(tmp_path, what):
    (tmp_path / "said.py").write_text("import sys, other; print(__name__, __file__, sys.argv, other.WORD)")
    (tmp_path / "other.py").write_text("WORD = 'found'")
    arguments = ["-m", "said", "x"] if what == "module" else ["said.py", "x"]
    command = python(*arguments)
    printed = [way(command, cwd=tmp_path, capture_output=True, check=True).stdout for way in (run, subprocess.run)]
    assert printed[0] == printed[1] != b""


def test_our_command_does_not_import_from_the_current_folder(tmp_path):
    (tmp_path / "decoy.py").write_text("print('imported')")
    command = python("-m", "hotlap", "train", "--env", "Nowhere-v0", "--allow-import", "decoy")
    forked, new = (way(command, cwd=tmp_path, capture_output=True, text=True) for way in (run, subprocess.run))
    assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)
    assert "decoy" in forked.stderr
    assert forked.returncode == 2


@pytest.mark.parametrize(
    ("code", "exit_code", "words"),
    [
        ("pass", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('a word')", 1, "a word\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, "KeyboardInterrupt\n"),
        ("import atexit, os; atexit.register(os.write, 2, b'at exit'); print(1)", 0, "at exit"),
        ("import os, threading, time; threading.Timer(0.2, os.write, (2, b'thread')).start()", 0, "thread"),
    ],
)
def test_it_ends_as_others_do(code, exit_code, words):
    command = python("-c", code)
    forked, new = (way(command, capture_output=True, text=True) for way in (run, subprocess.run))
    assert (forked.returncode, forked.stdout) == (new.returncode, new.stdout) == (exit_code, new.stdout)
    assert forked.stderr.endswith(words)
    assert new.stderr.endswith(words)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
def test_output_that_cannot_be_written_at_the_end_is_an_error():
    codes = []
    for way in (run, subprocess.run):
        with open("/dev/full", "w") as full:  # noqa: PTH123
            codes.append(way(python("-c", "print('lost')"), stdout=full, stderr=subprocess.PIPE).returncode)
    assert codes[0] == codes[1] != 0  # 120, or 1 where streams are not buffered


def test_signals_polls_and_timeouts():
    with Popen(python("-c", "import time; print('here', flush=True); time.sleep(60)"), stdout=subprocess.PIPE) as one:
        assert one.stdout.readline() == b"here\n"
        assert one.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(0.05)
        with pytest.raises(subprocess.TimeoutExpired):
            one.communicate(timeout=0.05)
        os.kill(one.pid, 0)
        one.terminate()
        assert one.wait(30) == -signal.SIGTERM
        assert one.poll() == -signal.SIGTERM
    with pytest.raises(subprocess.TimeoutExpired):
        run(python("-c", "import time; time.sleep(60)"), timeout=0.2)
    with pytest.raises(subprocess.CalledProcessError):
        run(python("-c", "raise SystemExit(3)"), check=True)


def test_its_id_stays_its_own_until_its_end_was_read():
    process = Popen(python("-c", "pass"))
    stat = f"/proc/{process.pid}/stat"
    deadline_s = time.monotonic() + 30.0
    while open(stat).read().rpartition(")")[2].split()[0] != "Z":  # noqa: PTH123, SIM115
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert process.wait() == 0
    while os.path.exists(stat):  # noqa: PTH110
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_sessions_groups_and_further_descriptors():
    reader, writer = os.pipe()
    code = f"import os; os.write({writer}, f'{{os.getpid()}} {{os.getpgid(0)}} {{os.getsid(0)}}'.encode())"
    process = Popen(python("-c", code), pass_fds=[writer], start_new_session=True)
    os.close(writer)
    assert os.read(reader, 100).decode().split() == [str(process.pid)] * 3
    os.close(reader)
    assert process.wait() == 0


def test_generators_are_seeded_by_chance():
    code = "import random, numpy; print(random.random(), numpy.random.random())"
    one, other = (output("-c", code).split() for _ in range(2))
    assert one[0] != other[0]
    assert one[1] != other[1]


@pytest.mark.parametrize(
    "environ", [{"OMP_NUM_THREADS": "7"}, {"NUMBA_DISABLE_JIT": "1"}, {"HOTLAP_CACHE": "x"}, {"PYTHONPATH": "x"}]
)
def test_other_variables_of_libraries_get_a_new_interpreter(environ):
    process = Popen(python("-c", HAS_TORCH), stdout=subprocess.PIPE, text=True, env={**os.environ, **environ})
    assert process.communicate() == ("False\n", None)
    assert process.refusal == f"other variables: {' '.join(environ)}"


@pytest.mark.parametrize("environ", [{"HOTLAP_HOME": "x"}, {"RANK": "0", "WORLD_SIZE": "2"}, {"MKL_NUM_THREADS": "1"}])
def test_variables_that_are_read_later_are_passed_on(environ):
    code = f"{HAS_TORCH}; import os; print(*(os.environ[name] for name in {list(environ)}))"
    printed = output("-c", code, env={**os.environ, **environ})
    assert printed == f"True\n{' '.join(environ.values())}\n"


def test_other_programs_are_started_as_ever(monkeypatch):
    assert run(["echo", "word"], capture_output=True).stdout == b"word\n"
    assert output("-S", "-c", HAS_TORCH) == "False\n"
    assert run(python("-c", HAS_TORCH), capture_output=True, preexec_fn=lambda: None).stdout == b"False\n"
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert run([sys.executable, "-c", "pass"]).returncode == 1
