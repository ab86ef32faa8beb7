"""The simulator's benchmark; how fast it must be is checked under `make bench`."""

import subprocess
import sys

import pytest

from hotlap.bench.peers import measure_peers
from hotlap.bench.simulator import measure_sim
from hotlap.errors import ConfigError, UnknownTrackError
from hotlap.sim.batch_cpu import MAX_THREADS, default_threads

# Other load slows a machine down, so the best of a few runs counts.
TRIES = 3


def test_rates_and_times_are_consistent():
    speed = measure_sim(8, 1, "cpu", "track-01", 0.1)
    assert speed.steps_per_sec > 0.0
    assert speed.single_env_steps_per_sec == pytest.approx(1e6 / speed.step_usec)
    assert speed.reset_usec > 0.0
    assert (speed.num_envs, speed.threads, speed.device, speed.track) == (8, 1, "cpu", "track-01")
    assert measure_sim(2, None, "cpu", "track-01", 0.1).threads == min(default_threads(), MAX_THREADS)


def test_the_default_number_of_threads_is_one_that_numba_allows(monkeypatch):
    monkeypatch.setattr("hotlap.bench.simulator.MAX_THREADS", 1)  # as with NUMBA_NUM_THREADS=1
    assert measure_sim(2, None, "cpu", "track-01", 0.1).threads == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((8, 1, "tpu", "track-01", 0.1), "device must be 'cpu' or 'cuda', got 'tpu'"),
        ((8, 1, "cpu", "track-01", 0.0), "seconds must be from"),
        ((8, 1, "cpu", "track-01", float("nan")), "seconds must be from"),
        ((8, 1, "cpu", "track-01", 1e9), "seconds must be from"),
        ((0, 1, "cpu", "track-01", 0.1), "num_envs must be"),
        ((8, 0, "cpu", "track-01", 0.1), "threads must be from 1"),
        ((8, MAX_THREADS + 1, "cpu", "track-01", 0.1), "threads must be from 1"),
        ((8, 1, "cpu", "nowhere", 0.1), "'nowhere' is not known"),
    ],
)
def test_bad_setting_is_an_error(arguments, words):
    with pytest.raises((ConfigError, UnknownTrackError), match=words):
        measure_sim(*arguments)


# --- how fast it must be ---


def best_rate(threads: int) -> float:
    return max(measure_sim(1024, threads, "cpu", "track-01", 2.0).steps_per_sec for _ in range(TRIES))


@pytest.mark.bench
def test_one_thread_does_600_000_steps_per_second():
    assert best_rate(1) >= 0.6e6


@pytest.mark.bench
@pytest.mark.timeout(120)
@pytest.mark.skipif(default_threads() < 2, reason="one core")
def test_two_threads_are_nearly_twice_as_fast():
    assert best_rate(2) >= 1.8 * best_rate(1)


@pytest.mark.bench
def test_single_environment_does_40_000_steps_per_second_and_resets_as_fast():
    speeds = [measure_sim(1, 1, "cpu", "track-01", 2.0) for _ in range(TRIES)]
    assert max(speed.single_env_steps_per_sec for speed in speeds) >= 40_000
    assert min(speed.reset_usec / speed.step_usec for speed in speeds) <= 1.0


@pytest.mark.bench
@pytest.mark.timeout(180)
def test_forty_times_as_fast_as_lunar_lander():
    result = measure_peers(1024, 2.0)
    [lander] = [peer for peer in result["peers"] if peer["name"] == "Gymnasium LunarLander-v3"]
    if lander["steps_per_sec"] is None:
        pytest.skip(f"LunarLander-v3 is not installed: {lander['absent']}")
    assert lander["hotlap_one_thread_times"] >= 40.0


MEMORY = """
import psutil
import hotlap
from hotlap.sim.batch_cpu import warm_up
from hotlap.tracks.registry import split_ids

def drive(num_envs, tracks):
    env = hotlap.RacerVectorEnv(num_envs, tracks)
    env.reset(seed=0)
    for _ in range(20):
        env.step(env.action_space.sample())
    return env

warm_up()
first = drive(2, "track-01")
before = psutil.Process().memory_info().rss
many = drive(1024, split_ids("train"))
print((psutil.Process().memory_info().rss - before) / 1e6)
"""


@pytest.mark.slow
def test_1024_cars_on_all_training_tracks_need_less_than_100_megabytes():
    pytest.importorskip("psutil")
    answer = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(answer.stdout) < 100.0
