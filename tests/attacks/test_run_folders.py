"""What was tried against run folders: links in them, a second process, NaN, full disks, power cuts, clocks.

Each attack ends in one line and an exit code; nothing outside the folder is touched, and what was saved can be resumed
to a run that is bit-identical to one left in peace.
"""

import errno
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from hotlap import atomic_files as hotlap_files
from hotlap import errors as hotlap_errors
from hotlap.cli.main import main
from hotlap.models import archive
from hotlap.tracks import digest
from hotlap.training.algorithms.registry import LEARNERS
from hotlap.training.callbacks.checkpointing import CheckpointingCallback
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.run_files import run_lock
from hotlap.training.run_files.journal import Journal
from hotlap.training.run_files.run_folder import RunFolder
from hotlap.training.run_files.run_lock import LOCK_NAME, RunLock
from tiny_runs import assert_same_run, skip_evaluation, tiny_config

RUN = Path("results") / "experiments" / "ppo_seed42"
SECRET = "precious\n"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX links, pipes or signals")


class PoisonEnv(gym.Env):
    """Counts to 20; the test decides what goes wrong at which step of a process."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    poison = None  # "reward", "observation" or "last observation"
    poison_at = 70
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._obs(), {}

    def step(self, action):
        type(self).steps += 1
        self.count += 1
        is_end = self.count == 20
        is_now = self.steps >= self.poison_at
        is_last = is_end and self.poison == "last observation"
        obs = self._obs() * (np.nan if is_now and (self.poison == "observation" or is_last) else 1.0)
        reward = np.nan if is_now and self.poison == "reward" else float(action[0])
        return obs.astype(np.float32), reward, False, is_end, {}

    def _obs(self):
        return np.float32([self.count / 20, self.np_random.random()])


gym.register("attacks/Poison-v0", entry_point=PoisonEnv, disable_env_checker=True)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Every command runs in an empty folder, with a harmless environment and without evaluations."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PoisonEnv, "poison", None)
    monkeypatch.setattr(PoisonEnv, "steps", 0)
    skip_evaluation(monkeypatch)
    monkeypatch.setattr("hotlap.cli.run_summary.print_laps", lambda *_: None)
    return tmp_path


@pytest.fixture
def hotlap(monkeypatch, capsys):
    """Runs a command in this process; returns its exit code and the lines on stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hotlap", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), capsys.readouterr().err.splitlines()

    return run


def write_recipe(algo="ppo", env="attacks/Poison-v0", **changes):
    Path("tiny.toml").write_text(tiny_config(algo, env, **changes).to_toml())
    return "tiny.toml"


def content(path):
    return {str(file): file.read_bytes() for file in sorted(Path(path).rglob("*")) if file.is_file()}


@pytest.fixture
def stopped(hotlap, monkeypatch):
    """A run stopped at step 60, with checkpoints at 40 and 60."""
    on_step = CheckpointingCallback._on_step

    def stopping(self):
        self.is_stop_requested |= self.num_timesteps == 60
        return on_step(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointingCallback, "_on_step", stopping)
        code, _ = hotlap("train", "--recipe", write_recipe())
    assert (code, CheckpointManager(RUN).steps()) == (130, [40, 60])
    return RUN


def assert_as_in_peace(hotlap, run=RUN, **changes):
    """Train the same run undisturbed and compare."""
    assert hotlap("train", "--recipe", write_recipe(**changes), "--run-name", "./peace")[0] == 0
    assert_same_run(run, Path("peace"), tiny_config(env="attacks/Poison-v0", **changes))


# --- links and other things that are not files of the run ---


@needs_posix
@pytest.mark.parametrize(
    "name",
    ["config.toml", "ppo_seed42_metrics.jsonl", "checkpoint_60.zip", "checkpoint_999.zip", "ppo_seed42_best.zip",
     "ppo_seed42_model.zip", "ppo_seed42_results.json", "ppo_seed42_metrics.json", LOCK_NAME,
     "tensorboard/events.out.tfevents.1.x", "report/report.html"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_what_is_not_a_regular_file_is_refused_and_its_target_unchanged(stopped, hotlap, here, name, kind):
    outside, path = here / "outside", stopped / name
    outside.write_bytes((stopped / name).read_bytes() if (stopped / name).exists() else SECRET.encode())
    before = outside.read_bytes()
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make = {
        "link": lambda: path.symlink_to(outside),
        "dangling": lambda: path.symlink_to(here / "nothing"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    code, [line] = hotlap("resume", stopped)
    assert code == 2
    assert path.name in line
    assert outside.read_bytes() == before
    assert not (here / "nothing").exists()


@needs_posix
@pytest.mark.parametrize("name", ["tensorboard", "report"])
@pytest.mark.parametrize("command", ["resume", "train"])
def test_a_linked_folder_is_refused_and_nothing_in_it_deleted(stopped, hotlap, here, name, command):
    outside = here / "outside"
    if (stopped / name).exists():
        (stopped / name).rename(outside)
    outside.mkdir(exist_ok=True)
    (outside / "report.html").write_text(SECRET)
    (stopped / name).symlink_to(outside)
    before = content(outside)
    arguments = ["resume", stopped] if command == "resume" else ["train", "--recipe", write_recipe(), "--overwrite"]
    code, [line] = hotlap(*arguments)
    assert (code, f"{stopped / name}: must be a folder of this run, but is a link" in line) == (2, True)
    assert content(outside) == before


@needs_posix
def test_a_link_put_there_after_the_check_is_not_followed(tmp_path):
    secret, link = tmp_path / "secret", tmp_path / "a.jsonl"
    secret.write_text(SECRET)
    link.symlink_to(secret)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hotlap_files, "refuse_not_plain", lambda *_, **__: None)
        with pytest.raises(hotlap_errors.OutputFileError, match="cannot be written"):
            Journal(link)
    assert secret.read_text() == SECRET


@needs_posix
@pytest.mark.parametrize(
    ("name", "command"),
    [("ppo_seed42_metrics.jsonl", "resume"), (LOCK_NAME, "resume"), (LOCK_NAME, "train")],
)
def test_a_hard_link_to_a_file_outside_is_not_written_through(stopped, hotlap, here, name, command):
    outside, path = here / "outside", stopped / name
    outside.write_bytes(path.read_bytes() + b"precious" if path.exists() else SECRET.encode())
    before = outside.read_bytes()
    path.unlink(missing_ok=True)
    path.hardlink_to(outside)
    arguments = ["resume", stopped] if command == "resume" else ["train", "--recipe", write_recipe(), "--overwrite"]
    code, lines = hotlap(*arguments)
    assert outside.read_bytes() == before
    [line] = [line for line in lines if line.startswith("hotlap: ")]
    assert code == 2
    assert line.startswith(f"hotlap: {path}: ")
    assert "it is a hard link to a file with another name; replace it by a copy" in line


@needs_posix
@pytest.mark.parametrize("command", ["resume", "train"])
def test_hard_links_to_files_that_are_replaced_leave_those_outside_unchanged(stopped, hotlap, here, command):
    outside = here / "outside"
    outside.mkdir()
    for path in stopped.iterdir():
        if path.is_file() and (command == "train" or path.suffix != ".jsonl"):
            (outside / path.name).hardlink_to(path)
    before = content(outside)
    arguments = ["resume", stopped] if command == "resume" else ["train", "--recipe", write_recipe(), "--overwrite"]
    assert hotlap(*arguments)[0] == 0
    assert content(outside) == before
    assert_as_in_peace(hotlap)


# --- two processes ---

HOLD = """if True:
    import sys
    from pathlib import Path
    from hotlap.training.run_files.run_lock import RunLock
    RunLock(Path(sys.argv[1])).acquire()
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(stopped):
    """Another process that holds the run's lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(stopped)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("command", ["resume", "checkpoint", "overwrite", "continue"])
def test_a_second_process_is_refused_with_pid_and_host(holder, hotlap, command):
    arguments = {
        "resume": ["resume", RUN],
        "checkpoint": ["resume", RUN / "checkpoint_40.zip"],
        "overwrite": ["train", "--recipe", write_recipe(), "--overwrite"],
        "continue": ["train", "--recipe", write_recipe(), "--continue"],
    }[command]
    before = content(RUN)
    code, lines = hotlap(*arguments)
    assert code == 2
    assert f"in use by another process (PID {holder.pid} on {socket.gethostname()})" in lines[-1]
    assert content(RUN) == before


def test_the_lock_of_a_killed_process_is_taken_over_with_a_word(holder, hotlap):
    holder.kill()
    holder.wait()
    assert (RUN / LOCK_NAME).exists()
    code, lines = hotlap("resume", RUN)
    assert code == 0
    assert any(f"left by a process that ended early (PID {holder.pid} on " in line for line in lines)
    assert not (RUN / LOCK_NAME).exists()
    assert_as_in_peace(hotlap)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"pid": "x"}', b"\xff" * 5000, b"\0" * 100])
def test_a_damaged_lock_of_nobody_is_taken_over(stopped, hotlap, text):
    (stopped / LOCK_NAME).write_bytes(text)
    assert hotlap("resume", stopped)[0] == 0


@needs_posix
def test_where_the_file_system_has_no_locks_the_text_decides(tmp_path, monkeypatch):
    def no_locks(descriptor):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(run_lock, "_lock_file", no_locks)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine = socket.gethostname()
    for pid, host, words in (
        (os.getppid(), mine, f"PID {os.getppid()} on {mine}.*--run-name"),
        (dead.pid, "elsewhere", f"PID {dead.pid} on elsewhere.*delete .*{LOCK_NAME}"),
    ):
        (tmp_path / LOCK_NAME).write_text(json.dumps({"pid": pid, "host": host}))
        with pytest.raises(hotlap_errors.TrainingError, match=words):
            RunLock(tmp_path).acquire()
    (tmp_path / LOCK_NAME).write_text(json.dumps({"pid": dead.pid, "host": mine}))
    with RunLock(tmp_path) as lock:
        assert lock.is_held


def test_of_many_processes_exactly_one_at_a_time_has_the_lock(tmp_path):
    code = """if True:
        import sys, time
        from pathlib import Path
        from hotlap.errors import TrainingError
        from hotlap.training.run_files.run_lock import RunLock
        folder, taken = Path(sys.argv[1]), 0
        end_s = time.monotonic() + 1.5
        while time.monotonic() < end_s:
            try:
                with RunLock(folder):
                    (folder / "inside").open("x").close()
                    taken += 1
                    (folder / "inside").unlink()
            except TrainingError:
                pass
        print(taken)
    """
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    taken = [process.communicate()[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert sum(map(int, taken)) > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_two_commands_on_one_folder_one_trains_and_the_other_is_refused(here):
    Path("tiny.toml").write_text(tiny_config(env="CartPole-v1", steps=20_000).to_toml())
    command = [sys.executable, "-m", "hotlap", "train", "--recipe", "tiny.toml", "--run-name", "./run"]
    for more in ([], ["--overwrite"], ["--continue"]):
        processes = [subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True) for _ in range(2)]
        errors = [process.communicate()[1] for process in processes]
        codes = [process.returncode for process in processes]
        assert sorted(codes) == [0, 2], errors
        assert errors[codes.index(2)].count("hotlap: ") == 1
        assert "Traceback" not in "".join(errors)
    subprocess.run([*command[:-1], "./whole", "-q"], check=True)
    assert_same_run(Path("run"), Path("whole"), tiny_config(env="CartPole-v1", steps=20_000))


# --- NaN ---


@pytest.mark.parametrize("algo", ["ppo", "a2c", "sac"])
@pytest.mark.parametrize(
    ("poison", "words", "step"),
    [
        ("reward", "the reward of environment 0 is nan at step 70", 70),
        ("observation", "the observation of environment 0 is nan at index [0] at step 70", 70),
        ("last observation", "the last observation of an episode of environment 0 is not finite at step 80", 80),
    ],
)
def test_a_nan_from_the_environment_stops_the_run_and_the_last_good_checkpoint_resumes(
    hotlap, monkeypatch, algo, poison, words, step
):
    monkeypatch.setattr(PoisonEnv, "poison", poison)
    run = RUN.with_name(f"{algo}_seed42")
    options = {"algo": algo, "checkpoint": {"interval": 20, "keep": 1}}
    code, lines = hotlap("train", "--recipe", write_recipe(**options))
    assert code == 1
    assert words in lines[-1]
    assert "checkpoint_60.zip is intact" in lines[-1]
    assert f"hotlap resume {run}" in lines[-1]
    assert CheckpointManager(run).steps() == [60]
    monkeypatch.setattr(PoisonEnv, "poison", None)
    assert hotlap("resume", run)[0] == 0
    assert_as_in_peace(hotlap, run, **options)


@pytest.mark.parametrize("algo", ["ppo", "a2c", "sac"])
@pytest.mark.parametrize("where", ["loss", "weights"])
def test_a_nan_from_an_update_is_never_saved(hotlap, monkeypatch, algo, where):
    learner = LEARNERS[algo].learner
    update = learner.train

    def poisoned(self, *arguments, **options):
        update(self, *arguments, **options)
        if self.num_timesteps >= 70:
            if where == "weights":
                with torch.no_grad():
                    next(iter(self.policy.parameters())).fill_(torch.nan)
            else:
                names = {"ppo": "loss", "a2c": "value_loss", "sac": "critic_loss"}
                self.logger.record(f"train/{names[algo]}", float("nan"))

    options = {"algo": algo, "checkpoint": {"interval": 20, "keep": 1}}
    run = RUN.with_name(f"{algo}_seed42")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "train", poisoned)
        code, lines = hotlap("train", "--recipe", write_recipe(**options))
    assert code == 1
    assert ("the loss of the last update is nan" if where == "loss" else "holds NaN or infinity") in lines[-1]
    [step] = CheckpointManager(run).steps()
    assert f"checkpoint_{step}.zip is intact" in lines[-1]
    assert not (run / f"{algo}_seed42_model.zip").exists()
    assert hotlap("resume", run)[0] == 0
    assert_as_in_peace(hotlap, run, **options)


def test_an_error_of_the_environment_that_is_no_nan_keeps_its_own_traceback(hotlap, monkeypatch):
    monkeypatch.setattr(PoisonEnv, "_obs", lambda self: [][1])
    monkeypatch.setattr(sys, "argv", ["hotlap", "train", "--recipe", write_recipe()])
    with pytest.raises(IndexError):
        main()


# --- states too large, disks too full ---


def test_a_state_beyond_the_limits_is_said_at_the_start_and_never_ends_the_run(hotlap, monkeypatch):
    monkeypatch.setattr(archive, "MAX_DOCUMENTS_BYTES", 100)
    code, lines = hotlap("train", "--recipe", write_recipe())
    warnings = [line for line in lines if line.startswith("hotlap: ")]
    assert code == 1
    assert "checkpoints cannot be written, so this run cannot be resumed" in warnings[0]
    assert "bytes of documents" in warnings[1]
    assert "Training continues without this checkpoint" in warnings[1]
    assert "finished, but 2 checkpoints or best models could not be written" in warnings[2]
    assert len(warnings) == 3
    assert RunFolder(RUN, "ppo_seed42").is_finished


def test_a_state_that_grows_beyond_the_limits_keeps_the_older_checkpoints_and_resumes(stopped, hotlap, monkeypatch):
    write = archive.write_archive

    def growing(path, content):
        if path.name == "checkpoint_80.zip":
            raise archive.ArchiveError(f"{path}: not written: bytes of documents: 9, more than the limit of 8.")
        write(path, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hotlap.training.checkpoint.write_archive", growing)
        assert hotlap("resume", stopped)[0] == 1
    assert CheckpointManager(stopped).steps() == [40, 60]
    assert hotlap("resume", stopped / "checkpoint_60.zip")[0] == 0
    assert_as_in_peace(hotlap)


def test_a_disk_too_small_for_one_checkpoint_is_said_at_the_start(hotlap, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("hotlap.training.run_files.run_writer.shutil.disk_usage", lambda _: usage)
    code, lines = hotlap("train", "--recipe", write_recipe())
    assert code == 0
    assert any("a checkpoint takes up to 0 MB, and 0 MB are free on this disk" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("config.toml", 2),
        (LOCK_NAME, 2),
        ("events.out.tfevents", 2),
        ("ppo_seed42_metrics.jsonl", 2),
        ("checkpoint_40.zip", 1),
        ("ppo_seed42_best.zip", 1),
        ("ppo_seed42_model.zip", 2),
        ("ppo_seed42_metrics.json.", 2),
        ("ppo_seed42_results.json", 2),
    ],
)
def test_a_full_disk_at_each_kind_of_write_gives_one_line_and_loses_nothing(hotlap, monkeypatch, name, code):
    changes = {"evaluation": {"interval": 50, "episodes": 1}}
    opened, open_file = hotlap_files._opened, os.open

    def refuse(path):
        if name in f"{Path(path).name}.":
            raise OSError(errno.ENOSPC, "No space left on device")

    def full_draft(path):
        refuse(path)
        return opened(path)

    def full_open(path, *arguments, **options):
        refuse(path)
        return open_file(path, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hotlap_files, "_opened", full_draft)
        patch.setattr(os, "open", full_open)
        found, lines = hotlap("train", "--recipe", write_recipe(**changes))
    told = [line for line in lines if line.startswith("hotlap: ")]
    assert found == code
    assert "No space left on device" in told[0]
    assert len(told) == (2 if code == 1 else 1)  # where it went on, the last line says what is missing
    if code == 2:
        started = (RUN / "config.toml").exists()
        again = ["resume", RUN] if started else ["train", "--recipe", write_recipe(**changes)]
        assert hotlap(*again)[0] == 0
        assert_as_in_peace(hotlap, **changes)
    assert [file.name for file in RUN.rglob("*.partial")] == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_run_is_refused_in_one_line_and_a_finished_one_can_be_asked(stopped, hotlap):
    stopped.chmod(0o500)
    try:
        code, [line] = hotlap("resume", stopped)
        assert (code, "Permission denied" in line) == (2, True)
    finally:
        stopped.chmod(0o700)


def test_a_file_system_mounted_read_only_is_refused_in_one_line(stopped, hotlap, monkeypatch):
    def read_only(path, *arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    before = content(stopped)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_lock, "open_plain", read_only)
        code, [line] = hotlap("resume", stopped)
    assert (code, "this run cannot be locked (Read-only file system)" in line) == (2, True)
    assert content(stopped) == before


# --- power cuts and clocks ---


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b"\0" * 100 + b"\n", b"\0\0\n\0\0\n", b'{"timestep"\n\0', b"\xff\n" * 3]
)
def test_what_a_power_cut_left_in_the_journal_does_not_block_resume(stopped, hotlap, tail):
    journal = stopped / "ppo_seed42_metrics.jsonl"
    kept = journal.read_bytes().splitlines(keepends=True)
    # The checkpoint of step 60 resumes from 32, before which there are three points.
    journal.write_bytes(b"".join(kept[:3]) + tail)
    assert hotlap("resume", stopped)[0] == 0
    assert_as_in_peace(hotlap)
    assert not journal.exists()


def test_a_clock_that_jumps_back_changes_nothing_but_times(stopped, hotlap, monkeypatch):
    now_s = time.time
    monkeypatch.setattr(time, "time", lambda: now_s() - 10 * 86_400)
    assert hotlap("resume", stopped)[0] == 0
    assert_as_in_peace(hotlap)
    found = json.loads((RUN / "ppo_seed42_results.json").read_text())["experiment_results"]
    assert found["metrics"]["training_time_seconds"] >= 0.0


# --- another road under the old id ---


def test_a_run_whose_track_got_another_road_is_refused(hotlap, monkeypatch):
    config = tiny_config()
    Path("tiny.toml").write_text(config.to_toml())
    assert hotlap("train", "--recipe", "tiny.toml")[0] == 0
    before = content(RUN)
    monkeypatch.setattr("hotlap.training.state.run_state.track_digest", lambda nodes: "0123")
    code, [line] = hotlap("resume", RUN, "--steps", 200)
    assert (code, "was trained on another road of the name 'track-01'" in line) == (2, True)
    assert content(RUN) == before
    assert digest.track_digest is not None


# --- settings of somebody else's run folder ---


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('env = "attacks/Poison-v0"', 'env = "evil:Env-v0"', "would import a module"),
        ('env = "attacks/Poison-v0"', 'env = "hotlap/RemoteRacer-v0"', "--bridge-url"),
        ("[policy]", '[env_args]\nurl = "http://example.org"\n\n[policy]', "not known to take the argument 'url'"),
    ],
)
def test_a_run_folder_cannot_import_or_connect(stopped, hotlap, here, monkeypatch, old, new, words):
    (here / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(here)
    config = stopped / "config.toml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    code, lines = hotlap("resume", stopped)
    assert code == 2
    assert words in lines[-1]
    assert "evil" not in sys.modules
