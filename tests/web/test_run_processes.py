"""Runs started from the page, without HTTP: what is refused, and a process that outlives its parent."""

import json
import os
import socket
import sys
import time

import pytest

from hotlap.errors import ConfigError, MissingLibraryError, TrainingError, UnknownTrackError
from hotlap.runs.run_lock import RunLock
from hotlap.web import run_processes
from hotlap.web.answers import status_of
from hotlap.web.run_processes import RunProcesses, RunRequest, RunStateError, TooManyRunsError
from reports.written_runs import write_run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of another process")


@pytest.fixture
def experiments(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "experiments"


@pytest.fixture
def spawned(monkeypatch):
    """Commands instead of processes: each run is one that sleeps."""
    commands = []
    popen = run_processes.subprocess.Popen

    def start(command, **options):
        commands.append(command[command.index("hotlap") + 1 :])
        return popen([sys.executable, "-c", "import time; time.sleep(60)"], **options)

    monkeypatch.setattr(run_processes.subprocess, "Popen", start)
    return commands


@pytest.fixture
def runs():
    processes = RunProcesses()
    yield processes
    for process in processes._processes.values():
        process.kill()
        process.wait()


def test_without_torch_a_run_is_refused_with_what_to_install_and_leaves_no_folder(
    runs, experiments, spawned, monkeypatch
):
    monkeypatch.setattr(run_processes, "find_spec", lambda name: None if name == "torch" else name)
    with pytest.raises(MissingLibraryError, match=r'pip install "hotlap\[train\]"') as refusal:
        runs.start(RunRequest("track-01"))
    assert status_of(refusal.value) == 503
    assert spawned == []
    assert not experiments.exists()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (RunRequest("nowhere"), UnknownTrackError),
        (RunRequest("../track-01"), UnknownTrackError),
        (RunRequest("track-01", recipe="lunar-ppo"), ConfigError),
        (RunRequest("track-01", recipe="../evil.toml"), ConfigError),
        (RunRequest("track-01", steps=999), ConfigError),
        (RunRequest("track-01", steps=10**12), ConfigError),
        (RunRequest("track-01", seed=-1), ConfigError),
        (RunRequest("track-01", name="../x"), ConfigError),
        (RunRequest("track-01", name="-x"), ConfigError),
        (RunRequest("track-01", name=""), ConfigError),
        (RunRequest("track-01", name="a b; rm -rf"), ConfigError),
    ],
)
def test_a_wrong_request_starts_nothing(experiments, spawned, runs, request_, error):
    with pytest.raises(error):
        runs.start(request_)
    assert spawned == []
    assert runs.list() == []


def test_a_run_is_an_ordinary_train_command_with_many_checkpoints(experiments, spawned, runs):
    view = runs.start(RunRequest("track-02", "racer-ppo", steps=2_000_000, seed=7))
    assert view.run_id == "page-track-02-1"
    assert view.state == "starting"
    (command,) = spawned
    assert command[0] == "train"
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--recipe"] == "racer-ppo"
    assert options["--track"] == "track-02"
    assert options["--seed"] == "7"
    assert options["--steps"] == "2000000"
    assert options["--run-name"] == "page-track-02-1"
    assert options["--checkpoint-interval"] == "40000"
    assert options["--keep"] == "0"
    assert runs.start(RunRequest("track-02")).run_id == "page-track-02-2"
    assert [view.run_id for view in runs.list()] == ["page-track-02-1", "page-track-02-2"]


def test_not_more_runs_train_at_once_than_may(experiments, spawned, runs):
    for _ in range(run_processes.MAX_RUNNING):
        runs.start(RunRequest("track-01"))
    with pytest.raises(TooManyRunsError, match=r"2 runs are training .* Stop one first"):
        runs.start(RunRequest("track-01"))


def test_a_name_is_used_once(experiments, spawned, runs):
    runs.start(RunRequest("track-01", name="mine"))
    with pytest.raises(RunStateError, match="there is one of this name"):
        runs.start(RunRequest("track-01", name="mine"))


def test_the_process_has_its_own_session_and_log_and_no_input(experiments, spawned, runs):
    runs.start(RunRequest("track-01", name="mine"))
    process = runs._processes["mine"]
    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    assert (experiments / "mine" / "train.log").is_file()


def test_a_second_stop_sends_no_second_signal(experiments, spawned, runs, monkeypatch):
    runs.start(RunRequest("track-01", name="mine"))
    sent = []
    monkeypatch.setattr(run_processes, "_tell_to_stop", sent.append)
    for _ in range(3):
        runs.stop("mine")
    assert sent == [runs._processes["mine"].pid]


def test_only_a_process_that_holds_the_lock_is_stopped(experiments, spawned, runs, monkeypatch):
    """A lock file may be left by a dead process, whose id is another process's by now."""
    write_run(experiments / "old", is_finished=False)
    lock = experiments / "old" / ".run.lock"
    lock.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    sent = []
    monkeypatch.setattr(run_processes, "_tell_to_stop", sent.append)
    with pytest.raises(RunStateError, match="is not training"):
        runs.stop("old")
    assert sent == []
    lock.unlink()
    with RunLock(experiments / "old"):
        runs.stop("old")
    assert sent == [os.getpid()]


def test_what_is_not_stopped_is_not_resumed(experiments, spawned, runs):
    write_run(experiments / "done", steps=4000)
    write_run(experiments / "half", is_finished=False, steps=4000)
    with pytest.raises(RunStateError, match=r"it is finished \(4000 steps\)"):
        runs.resume("done")
    with pytest.raises(RunStateError, match="is finished"):
        runs.resume("done", 4000)
    with pytest.raises(TrainingError, match="is not known"):
        runs.resume("nothing")
    assert runs.resume("half").state == "starting"
    with pytest.raises(RunStateError, match="training already"):
        runs.resume("half")
    assert runs.resume("done", 5000).state == "starting"
    assert [command[0] for command in spawned] == ["resume", "resume"]
    assert spawned[1][2:] == ["--steps", "5000"]


def test_a_process_that_ends_with_an_error_is_a_failed_run_with_its_last_line(experiments, monkeypatch, runs):
    popen = run_processes.subprocess.Popen
    code = "import sys; print('hello'); print('hotlap: no \\x1b[2J space.'); sys.exit(2)"
    monkeypatch.setattr(run_processes.subprocess, "Popen", lambda _, **o: popen([sys.executable, "-c", code], **o))
    runs.start(RunRequest("track-01", name="bad"))
    runs._processes["bad"].wait()
    view = runs.view("bad")
    assert (view.state, view.error) == ("failed", "hotlap: no  [2J space.")


@pytest.mark.timeout(180)
def test_a_real_run_goes_on_under_another_server_and_is_stopped_by_it(compiled, experiments, runs):
    """A new `RunProcesses`, as after a restart of the server, knows nothing of the process but its lock."""
    runs.start(RunRequest("track-01", steps=50_000_000, name="long"))
    process = runs._processes["long"]
    other = RunProcesses()
    deadline_s = time.monotonic() + 150.0
    while not any(view.state == "running" and view.step > 0 for view in other.list()):
        assert process.poll() is None, (experiments / "long" / "train.log").read_text()
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
    other.stop("long")
    assert process.wait(60.0) == 130
    view = other.view("long")
    assert view.state == "stopped"
    assert len(view.checkpoints) == 1
