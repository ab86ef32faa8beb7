"""The training benchmark; how fast it must be is checked under `make bench`."""

import inspect
import json
import re
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from hotlap.bench import training as benchmark
from hotlap.bench.training import RolloutClock, measure_training, peak_memory_mb
from hotlap.errors import ConfigError
from hotlap.training.callbacks.run_metrics import MetricsCallback
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.hyperparameters import PPOSettings
from tiny_runs import folder_at, tiny_config

TINY = PPOSettings(n_steps=8, batch_size=16, n_epochs=1)


class FakeTime:
    """A clock that returns the given times."""

    def __init__(self, *times_s):
        self.times_s = iter(times_s)

    def perf_counter(self):
        return next(self.times_s)


def test_rollout_ends_when_the_next_starts_and_the_first_is_not_counted(monkeypatch):
    monkeypatch.setattr(benchmark, "time", FakeTime(0.0, 100.0, 101.0, 105.0, 107.0))
    clock = RolloutClock(3)
    is_continued = []
    for _ in range(5):
        clock._on_rollout_start()
        is_continued.append(clock._on_step())
    assert is_continued == [True, True, True, True, False]
    assert clock.rollout_s == 2.0  # the median of 1, 4 and 2


def test_rates_are_decisions_per_rollout_time(monkeypatch):
    monkeypatch.setattr(benchmark, "_batched_rollout_s", lambda config, rollouts: 0.5)
    monkeypatch.setattr(benchmark, "_single_rollout_s", lambda track, settings, rollouts: 4.0)
    found = measure_training(512, 2, 2, "track-01")
    assert found.decisions_per_sec == 512 * 64 / 0.5
    assert found.single_decisions_per_sec == 2048 / 4.0
    assert found.ratio == 128.0


def test_measurement_is_a_complete_run_and_reports_its_settings(monkeypatch):
    seen = []

    class Watching(benchmark.Trainer):
        def __init__(self, config, folder, callbacks):
            seen.append((config, folder.path))
            super().__init__(config, folder, callbacks=callbacks)

    monkeypatch.setattr(benchmark, "Trainer", Watching)
    found = asdict(measure_training(4, 2, 1, "track-02", TINY, TINY))
    assert set(found) == {
        "decisions_per_sec", "single_decisions_per_sec", "ratio", "peak_memory_mb", "num_envs", "rollouts",
        "single_rollouts", "track", "net_arch", "torch_threads", "ppo", "single_ppo",
    }  # fmt: skip
    assert (found["num_envs"], found["rollouts"], found["single_rollouts"], found["track"]) == (4, 2, 1, "track-02")
    assert (found["ppo"]["n_steps"], found["single_ppo"]["batch_size"]) == (8, 16)
    assert found["decisions_per_sec"] > 0.0
    [(config, path)] = seen
    assert config.is_racer
    assert (config.normalize.obs, config.normalize.reward, config.racer.action_repeat) == (True, True, 1)
    assert not path.exists()


def test_single_settings_are_the_defaults_of_stable_baselines3():
    defaults = {name: one.default for name, one in inspect.signature(PPO).parameters.items()}
    for name in ("n_steps", "batch_size", "n_epochs"):
        assert getattr(benchmark.SINGLE, name) == defaults[name]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="compares with Linux's /proc")
def test_peak_memory_is_in_megabytes():
    [largest_kb] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak_memory_mb() == pytest.approx(int(largest_kb) / 1024, rel=0.05)


@pytest.mark.parametrize("name", ["rollouts", "single_rollouts"])
@pytest.mark.parametrize("value", [0, -1, 10**9])
def test_number_of_rollouts_is_checked(name, value):
    arguments = {"rollouts": 1, "single_rollouts": 1, name: value}
    with pytest.raises(ConfigError, match=f"{name} must be from 1 to"):
        measure_training(4, track_id="track-01", **arguments)


# --- how fast it must be, on an idle machine ---


@pytest.mark.bench
@pytest.mark.timeout(600)
def test_training_is_fast_and_needs_little_memory():
    """In its own process, as a user runs it: torch fixes its threads' waiting policy when it is first loaded."""
    command = [sys.executable, "-m", "hotlap", "bench", "train", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout.splitlines()[-1])
    print(found)
    assert found["decisions_per_sec"] >= 35_000
    assert found["ratio"] >= 30
    assert found["peak_memory_mb"] is None or found["peak_memory_mb"] < 2000


@pytest.mark.bench
@pytest.mark.timeout(600)
def test_metrics_and_checkpoints_take_little_time(tmp_path, monkeypatch):
    spent_s, saves_s = [0.0], []

    def timing(owner, name, note):
        inner = getattr(owner, name)

        def timed(*arguments, **more):
            begin = time.perf_counter()
            try:
                return inner(*arguments, **more)
            finally:
                note(time.perf_counter() - begin)

        monkeypatch.setattr(owner, name, timed)

    for name in ("_on_step", "_on_rollout_start"):
        timing(MetricsCallback, name, lambda passed_s: spent_s.__setitem__(0, spent_s[0] + passed_s))
    timing(CheckpointManager, "save", saves_s.append)

    class Stopwatch(BaseCallback):
        """Measures from the end of the first rollout, which includes compilation."""

        def _on_rollout_end(self):
            if not hasattr(self, "begin_s"):
                self.begin_s, spent_s[0] = time.perf_counter(), 0.0

        def _on_step(self):
            self.now_s = time.perf_counter()
            return True

    stopwatch = Stopwatch()
    config = tiny_config(
        num_envs=512,
        steps=20 * 512 * 64,
        recording_interval=100,
        policy={"net_arch": [64, 64]},
        ppo={"n_steps": 64, "batch_size": 4096, "n_epochs": 4},
        racer={"config": {"episode": {"start": "random"}}},
        checkpoint={"interval": 100_000},
    )
    benchmark.Trainer(config, folder_at(tmp_path, config), callbacks=[stopwatch]).run()
    share = spent_s[0] / (stopwatch.now_s - stopwatch.begin_s)
    print(f"collector: {100 * share:.2f} % of the time; slowest checkpoint: {max(saves_s):.3f} s")
    assert share < 0.01
    assert max(saves_s) < 1.0
