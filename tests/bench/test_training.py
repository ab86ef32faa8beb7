"""The training benchmark; how fast it must be is checked under `make bench`."""

import json
import re
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from stable_baselines3 import PPO

from hotlap.bench import training as benchmark
from hotlap.bench.training import AlternatingClock, bench_config, measure_training, peak_memory_mb
from hotlap.errors import ConfigError
from hotlap.hyperparameters import PPOSettings
from hotlap.runs.recipe import resolve_config
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.metrics_collector import MetricsCollector
from hotlap.training.run_log import RunLog
from hotlap.training.trainer import Observer
from tiny_runs import folder_at, tiny_config

TINY = PPOSettings(n_steps=8, batch_size=16, n_epochs=3)


class FakeTime:
    """A clock that returns the given times."""

    def __init__(self, *times_s):
        self.times_s = iter(times_s)

    def perf_counter(self):
        return next(self.times_s)


def test_both_learners_take_turns_and_the_first_rollout_of_each_is_not_counted(monkeypatch):
    stock = SimpleNamespace(
        env=None,
        rollout_buffer=None,
        n_steps=8,
        _setup_learn=lambda _: (0, None),
        collect_rollouts=lambda *_: True,
        train=lambda: None,
    )
    # Ours: 100 and 2 s. Stock: 50 and 7 s. Per turn: end of ours, begin and end of stock, begin of ours.
    monkeypatch.setattr(benchmark, "time", FakeTime(0, 0, 100, 100, 150, 150, 152, 152, 159, 159))
    clock, is_continued = AlternatingClock(1, stock), []
    for _ in range(3):
        clock.on_rollout_start(None)
        is_continued.append(clock.on_step(None))
    assert (clock.our_s, clock.stock_s) == ([2], [7])
    assert is_continued == [True, True, False]


def test_measurement_is_a_complete_run_against_the_stock_learner_with_its_settings(monkeypatch):
    seen = []

    class Watching(benchmark.Trainer):
        def __init__(self, config, folder, observers):
            seen.append((config, folder.path, observers))
            super().__init__(config, folder, observers=observers)

    monkeypatch.setattr(benchmark, "Trainer", Watching)
    found = asdict(measure_training(4, 2, "track-02", ppo=TINY))
    assert set(found) == {
        "decisions_per_sec", "stock_decisions_per_sec", "ratio", "samples_per_sec", "device", "peak_memory_mb",
        "learner", "num_envs", "rollouts", "track", "net_arch", "torch_threads", "ppo",
    }  # fmt: skip
    assert (found["num_envs"], found["rollouts"], found["track"], found["device"]) == (4, 2, "track-02", "cpu")
    assert found["learner"] == "PPO"
    assert found["ratio"] == pytest.approx(found["decisions_per_sec"] / found["stock_decisions_per_sec"])
    assert found["samples_per_sec"] == pytest.approx(TINY.n_epochs * found["decisions_per_sec"])
    [(config, path, [clock])] = seen
    assert config.is_racer
    assert len(clock.our_s) == len(clock.stock_s) == 2
    stock = clock._stock
    assert type(stock) is PPO
    assert (stock.n_envs, stock.n_steps, stock.batch_size, stock.n_epochs) == (4, 8, 16, TINY.n_epochs)
    assert stock.observation_space == stock.get_vec_normalize_env().venv.observation_space
    assert not path.exists()


def test_settings_are_those_of_the_recipe():
    config, recipe = bench_config(512, "track-01", "cpu"), resolve_config("racer-ppo", {})
    assert (config.ppo, config.policy, config.normalize) == (recipe.ppo, recipe.policy, recipe.normalize)
    assert (config.racer, config.num_envs, config.torch_threads) == (recipe.racer, 512, recipe.torch_threads)


def test_an_unknown_device_is_refused():
    with pytest.raises(ConfigError, match="device"):
        measure_training(4, 1, "track-01", "abacus")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="compares with Linux's /proc")
def test_peak_memory_is_in_megabytes():
    [largest_kb] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak_memory_mb() == pytest.approx(int(largest_kb) / 1024, rel=0.05)


@pytest.mark.parametrize("value", [0, -1, 10**9])
def test_number_of_rollouts_is_checked(value):
    with pytest.raises(ConfigError, match="rollouts must be from 1 to"):
        measure_training(4, value, "track-01")


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
    assert found["ratio"] >= 2
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

    for owner, names in (
        (MetricsCollector, ("note_step", "note_episode", "note_loss")),
        (RunLog, ("add_step", "dump")),
    ):
        for name in names:
            timing(owner, name, lambda passed_s: spent_s.__setitem__(0, spent_s[0] + passed_s))
    timing(CheckpointManager, "save", saves_s.append)

    class Stopwatch(Observer):
        """Measures from the second rollout on; the first includes compilation."""

        def on_rollout_start(self, learner):
            if learner.num_timesteps and not hasattr(self, "begin_s"):
                self.begin_s, spent_s[0] = time.perf_counter(), 0.0

        def on_step(self, events):
            self.now_s = time.perf_counter()
            return True

    stopwatch = Stopwatch()
    config = tiny_config(
        num_envs=512,
        steps=20 * 512 * 64,
        recording_interval=100,
        policy={"net_arch": [64, 64]},
        ppo={"n_steps": 64, "batch_size": 4096, "n_epochs": 4},
        racer={"episode": {"start": "random"}},
        checkpoint={"interval": 100_000},
    )
    benchmark.Trainer(config, folder_at(tmp_path, config), observers=[stopwatch]).run()
    share = spent_s[0] / (stopwatch.now_s - stopwatch.begin_s)
    print(f"collector: {100 * share:.2f} % of the time; slowest checkpoint: {max(saves_s):.3f} s")
    assert share < 0.01
    assert max(saves_s) < 1.0
