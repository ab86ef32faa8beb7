"""Laps, episodes and reward terms as they are logged, from infos with known answers."""

from collections import defaultdict
from itertools import chain
from types import MappingProxyType, SimpleNamespace
from unittest.mock import MagicMock

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hotlap.errors import ConfigError
from hotlap.training.callbacks import REWARD_KEYS, TICKS_PER_SECOND, RacerMetricsCallback

LAP_KEYS = {"racer/mean_lap_time_sec", "racer/best_lap_time_sec"}
EPISODE_KEYS = {"racer/completion_rate", "racer/episodes_this_rollout"}


class RecordingLogger:
    """Keeps recorded values, and values recorded as means; has no dumps."""

    def __init__(self):
        self.records = {}
        self.means = defaultdict(list)

    def record(self, key, value):
        assert key not in self.records, "recorded twice in one rollout"
        self.records[key] = value

    def record_mean(self, key, value):
        self.means[key].append(value)


class Dumps(KVWriter):
    """An output of stable-baselines3's logger that keeps each dump."""

    def __init__(self):
        self.dumps = []

    def write(self, key_values, key_excluded, step=0):
        self.dumps.append({key: value for key, value in key_values.items() if key.startswith(("racer/", "reward/"))})


class TinyRacer(gym.Env):
    """Every second step ends a lap of 2 s, every fourth an episode; the reward is always 1."""

    observation_space = action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tick = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.tick += 1
        info = {"lap": 1 + self.tick // 2, "stepCount": 60 * self.tick, "progress": 0.5}
        return np.zeros(1, np.float32), 1.0, self.tick == 4, False, info


class Ride:
    """A callback under test with a logger that records."""

    def __init__(self, **options):
        self.callback = RacerMetricsCallback(**options)
        self.logger = RecordingLogger()
        self.callback.model = SimpleNamespace(logger=self.logger, num_timesteps=0)

    def step(self, *infos, ends=(), env=None):
        """One vector step; `ends` are the cars whose episode ends with it."""
        dones = np.array([car in ends for car in range(len(infos))])
        self.callback.locals = {"infos": list(infos), "dones": dones, "env": env}
        assert self.callback.on_step() is True

    def end_rollout(self):
        """The figures recorded at the end of the rollout."""
        self.logger.records = {}
        self.callback.on_rollout_end()
        return self.logger.records


@pytest.fixture
def ride():
    return Ride()


def at(lap, tick, **more):
    """An info without a lap time."""
    return {"lap": lap, "stepCount": tick, **more}


def lap_done(lap, seconds, *, clean=True, tick=0):
    """The info that ends a lap, after which the car is on lap `lap`."""
    return {"lap": lap, "stepCount": tick, "lapTime": seconds, "lapClean": clean}


# --- reward terms ---


def test_reward_terms_are_averaged_over_steps_and_cars_and_other_infos_ignored(ride):
    ride.step({"progress": 0.1, "wall": -1.0}, {"progress": 0.3})
    ride.step({"progress": 0.8}, {"TimeLimit.truncated": False, "other": 1})
    ride.callback.locals = {}
    assert ride.callback.on_step() is True
    assert np.mean(ride.logger.means["reward/progress"]) == pytest.approx(0.4)
    assert ride.logger.means["reward/wall"] == [-1.0]
    assert set(ride.logger.means) == {"reward/progress", "reward/wall"}
    assert ride.end_rollout() == {}


def test_the_environments_means_over_all_cars_take_precedence_over_infos(ride):
    assert (ride.callback.REWARD_KEYS, ride.callback.TICKS_PER_SECOND) == (REWARD_KEYS, TICKS_PER_SECOND)
    means = dict.fromkeys(REWARD_KEYS, 0.5)
    ride.step({"progress": 9.0}, {}, env=SimpleNamespace(reward_term_means=MappingProxyType(means)))
    assert ride.logger.means == {f"reward/{key}": [0.5] for key in REWARD_KEYS}
    cars = DummyVecEnv([TinyRacer])
    cars.reward_term_means = {"progress": 0.25}
    ride.step({}, env=VecNormalize(cars))
    assert ride.logger.means["reward/progress"] == [0.5, 0.25]


@pytest.mark.parametrize("env", [None, MagicMock(), SimpleNamespace(), SimpleNamespace(reward_term_means=None)])
def test_without_the_environments_means_infos_are_used(ride, env):
    ride.step({"progress": 0.1}, env=env)
    assert ride.logger.means == {"reward/progress": [0.1]}


def test_any_model_logger_and_sequence_will_do():
    callback = RacerMetricsCallback()
    callback.model = MagicMock()
    callback.on_training_start({"env": MagicMock()}, {})
    callback.update_locals({"infos": (lap_done(2, 30.0), {}), "dones": (1, 0)})
    callback.on_step()
    callback.on_rollout_end()
    logged = dict(call.args for call in callback.model.logger.record.call_args_list)
    assert logged == dict.fromkeys(LAP_KEYS, 30.0) | dict.fromkeys(EPISODE_KEYS, 1)


def test_verbose_prints_the_laps_and_debug_logs_the_figures(caplog, capsys):
    for verbose, printed in ((0, ""), (1, "step 128: 2 laps, mean 31.000 s, best 30.000 s\n")):
        callback = RacerMetricsCallback(verbose=verbose)
        callback.model = SimpleNamespace(logger=MagicMock(), num_timesteps=128)  # nothing else of the user's model
        callback.on_training_start({}, {})
        callback.update_locals({"infos": [lap_done(2, 30.0), lap_done(2, 32.0)], "dones": [False, False]})
        with caplog.at_level("DEBUG", "hotlap"):
            callback.on_step()
            callback.on_rollout_end()
            callback.on_rollout_end()  # nothing new
        assert capsys.readouterr().out == printed
    assert caplog.messages[0] == "step 128: racer/mean_lap_time_sec 31, racer/best_lap_time_sec 30"
    assert caplog.records[0].levelname == "DEBUG"


# --- laps ---


@pytest.mark.parametrize(
    ("steps", "mean_s", "best_s"),
    [
        # The environment's lap times are used as they are.
        ([(lap_done(2, 31.25, tick=1876), {}), ({}, lap_done(2, 40.0)), (lap_done(3, 30.0), {})], 33.75, 30.0),
        # Without them laps are timed by ticks.
        ([(at(1, 1),), (at(2, 1800),), (at(2, 1801),), (at(3, 3300),)], 27.5, 25.0),
        # A lap timed by ticks may follow one with a lap time.
        ([(lap_done(2, 30.0, tick=1800),), (at(3, 3000),)], 25.0, 20.0),
        # Several laps between two infos share their time.
        ([(at(3, 3600),), (at(4, 4200),)], 70 / 3, 10.0),
        # A new episode starts from zero, even without `done` before it.
        ([(at(3, 1200),), (at(1, 1),), (at(2, 300),)], 25 / 3, 5.0),
    ],
)
def test_laps_are_timed(ride, steps, mean_s, best_s):
    for infos in steps:
        ride.step(*infos)
    expected = {"racer/mean_lap_time_sec": pytest.approx(mean_s), "racer/best_lap_time_sec": best_s}
    assert ride.end_rollout() == expected


# --- the gap to the optimum ---


def test_the_gap_is_of_the_median_clean_flying_lap():
    ride = Ride(optimal_lap_s=20.0)
    ride.step(lap_done(2, 10.0), lap_done(3, 90.0, clean=False))  # standing; not clean
    ride.step(lap_done(3, 25.0), lap_done(4, 22.0))
    ride.step(lap_done(4, 60.0), {})
    assert ride.end_rollout()["racer/gap_to_optimal"] == pytest.approx(0.25)
    ride = Ride(optimal_lap_s=20.0, first_lap_is_flying=True)  # as from a random start
    ride.step(lap_done(2, 22.0))
    assert ride.end_rollout()["racer/gap_to_optimal"] == pytest.approx(0.1)


def test_without_an_optimal_lap_or_a_clean_flying_lap_there_is_no_gap():
    ride = Ride()
    ride.step(lap_done(3, 25.0))
    assert set(ride.end_rollout()) == LAP_KEYS
    ride = Ride(optimal_lap_s=20.0)
    ride.step(lap_done(2, 25.0), lap_done(3, 25.0, clean=False), at(3, 1500))
    assert set(ride.end_rollout()) == LAP_KEYS


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_optimal_lap_is_refused(seconds):
    with pytest.raises(ConfigError, match="optimal_lap_s must be a positive time"):
        RacerMetricsCallback(optimal_lap_s=seconds)


# --- random drives with known laps ---


def random_drive(seed, num_cars=4, num_steps=60):
    """Random laps and episode ends: per step the infos with and without lap times, the lap times, and the ends."""
    rng = np.random.default_rng(seed)
    lap, tick, line = np.ones(num_cars, int), np.zeros(num_cars, int), np.zeros(num_cars, int)
    sparse, dense, laps, ends = [], [], [], []
    for _ in range(num_steps):
        tick += 1
        crossing, ending = rng.random(num_cars) < 0.1, rng.random(num_cars) < 0.05
        lap += crossing
        times_s = (tick - line) / 60.0
        laps.append(times_s[crossing].tolist())
        ends.append([(car, lap[car] > 1) for car in np.flatnonzero(ending)])
        dense.append([at(int(lap[car]), int(tick[car])) for car in range(num_cars)])
        done = [lap_done(int(lap[car]), times_s[car], tick=int(tick[car])) for car in range(num_cars)]
        sparse.append([info if is_crossing else {} for info, is_crossing in zip(done, crossing, strict=True)])
        line[crossing] = tick[crossing]
        lap[ending], tick[ending], line[ending] = 1, 0, 0
    return sparse, dense, laps, ends


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_figures_of_a_random_drive_are_right(seed, is_sparse):
    sparse, dense, laps, ends = random_drive(seed)
    ride = Ride()
    for start in range(0, len(laps), 10):
        for step in range(start, start + 10):
            ride.step(*(sparse if is_sparse else dense)[step], ends=[car for car, _ in ends[step]])
        times_s = list(chain(*laps[start : start + 10]))
        ended = list(chain(*ends[start : start + 10]))
        expected = {}
        if times_s:
            expected["racer/mean_lap_time_sec"] = pytest.approx(np.mean(times_s))
            expected["racer/best_lap_time_sec"] = pytest.approx(min(times_s))
        if ended:
            expected["racer/completion_rate"] = pytest.approx(np.mean([has_lap for _, has_lap in ended]))
            expected["racer/episodes_this_rollout"] = len(ended)
        assert ride.end_rollout() == expected


def test_a_new_training_starts_with_no_laps(ride):
    ride.step(at(2, 600))
    ride.end_rollout()
    ride.callback.on_training_start({}, {})
    ride.step(at(2, 1200))
    assert ride.end_rollout()["racer/best_lap_time_sec"] == 20.0
    ride.callback.model.num_timesteps = 1
    ride.callback.on_training_start({}, {})
    ride.step(at(3, 1800))
    assert ride.end_rollout()["racer/best_lap_time_sec"] == 10.0


# --- stable-baselines3's own logger ---


def off_policy_ride(**options):
    """A callback of an off-policy algorithm, whose logger is dumped by the test."""
    ride = Ride(**options)
    model = SAC.__new__(SAC)
    model._logger = ride.logger = Logger(None, [Dumps()])
    model.num_timesteps = 0
    ride.callback.model = model
    return ride, ride.logger.output_formats[0].dumps


def test_an_on_policy_dump_holds_the_figures_of_the_last_rollout_once(ride):
    ride.logger = ride.callback.model.logger = Logger(None, [out := Dumps()])
    for seconds, is_dumped in ((30.0, True), (40.0, False), (20.0, True)):
        ride.step(lap_done(2, seconds, clean=False) | {"progress": seconds}, {"progress": 0.0}, ends=[0])
        ride.callback.on_rollout_end()
        if is_dumped:
            ride.logger.dump()
    ride.callback.on_rollout_end()
    ride.logger.dump()
    figures = dict.fromkeys(EPISODE_KEYS, 1) | {"reward/progress": pytest.approx(15.0)}
    expected = [figures | dict.fromkeys(LAP_KEYS, seconds) for seconds in (30.0, 20.0)]
    assert out.dumps == [*expected, {}]


def test_off_policy_figures_cover_all_rollouts_since_the_last_dump():
    ride, dumps = off_policy_ride(optimal_lap_s=20.0)
    for info, ends in [(lap_done(3, 30.0), []), ({}, []), (lap_done(4, 20.0), [0]), ({}, [0]), ({}, [])]:
        ride.step(info, ends=ends)
        ride.callback.on_rollout_end()
    ride.logger.dump()
    expected = {"racer/mean_lap_time_sec": 25.0, "racer/best_lap_time_sec": 20.0, "racer/completion_rate": 0.5}
    assert dumps == [expected | {"racer/episodes_this_rollout": 2, "racer/gap_to_optimal": pytest.approx(0.25)}]
    ride.step({}, ends=[])
    ride.callback.on_rollout_end()
    ride.logger.dump()
    ride.step(lap_done(2, 50.0))
    ride.callback.on_rollout_end()
    ride.logger.dump()
    assert dumps[1:] == [{}, {"racer/mean_lap_time_sec": 50.0, "racer/best_lap_time_sec": 50.0}]


def test_a_dump_within_a_rollout_holds_the_episode_that_just_ended_once():
    ride, dumps = off_policy_ride()
    for seconds in (30.0, 40.0):
        ride.step(lap_done(2, seconds), ends=[0])
        ride.logger.dump()
        ride.callback.on_rollout_end()
    ride.logger.dump()
    assert [dump.get("racer/mean_lap_time_sec") for dump in dumps] == [30.0, 40.0, None]
    assert [dump.get("racer/episodes_this_rollout") for dump in dumps] == [1, 1, None]


# --- stable-baselines3's own algorithms ---


def learn(algorithm, num_envs, steps, log_interval, **settings):
    """The logger's dumps of a short run."""
    env = VecNormalize(DummyVecEnv([lambda: Monitor(TinyRacer())] * num_envs))
    model = algorithm("MlpPolicy", env, policy_kwargs={"net_arch": [2]}, device="cpu", **settings)
    model.set_logger(Logger(None, [out := Dumps()]))
    model.learn(steps, callback=RacerMetricsCallback(), log_interval=log_interval)
    return out.dumps


def test_sac_logs_every_lap_and_episode_exactly_once():
    dumps = learn(SAC, 1, 26, log_interval=3, buffer_size=50, learning_starts=21, batch_size=2)
    assert [dump["racer/episodes_this_rollout"] for dump in dumps] == [3, 3]
    assert [(dump["racer/mean_lap_time_sec"], dump["reward/progress"]) for dump in dumps] == [(2.0, 0.5)] * 2


@pytest.mark.parametrize(("algorithm", "settings"), [(PPO, {"batch_size": 4, "n_epochs": 1}), (A2C, {})])
def test_an_on_policy_algorithm_logs_the_figures_of_each_rollout(algorithm, settings):
    dumps = learn(algorithm, 2, 48, log_interval=1, n_steps=8, **settings)
    expected = {"racer/episodes_this_rollout": 4, "racer/completion_rate": 1.0, "racer/best_lap_time_sec": 2.0}
    assert [{name: dump[name] for name in expected} for dump in dumps] == [expected] * 3
