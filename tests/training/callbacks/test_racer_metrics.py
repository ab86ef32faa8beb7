"""Laps, episodes and reward terms as TensorBoard sees them: no world is driven, every answer is known beforehand."""

import json
from collections import defaultdict
from itertools import chain
from types import MappingProxyType, SimpleNamespace
from unittest.mock import MagicMock

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import SAC
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hotlap.errors import ConfigError, ModelError
from hotlap.sim import vehicle
from hotlap.training.callbacks import racer_metrics as callbacks
from hotlap.training.callbacks.racer_metrics import RacerMetricsCallback
from hotlap.training.callbacks.run_metrics import MetricsCallback, find_loss
from hotlap.training.metrics_collector import MetricsCollector

LAP_KEYS = {"racer/mean_lap_time_sec", "racer/best_lap_time_sec"}
EPISODE_KEYS = {"racer/completion_rate", "racer/episodes_this_rollout"}


class RecordingLogger:
    """Keeps what was recorded apart from what was recorded to be averaged; knows nothing of dumps."""

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


class World(gym.Env):
    """The least that stable-baselines3 wraps."""

    observation_space = action_space = gym.spaces.Box(-1, 1, (1,), np.float32)


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
        """What the rollout's end recorded."""
        self.logger.records = {}
        self.callback.on_rollout_end()
        return self.logger.records


@pytest.fixture
def ride():
    return Ride()


def at(lap, tick, **more):
    """An info without a lap time, as every step of the single environment but the last of a lap has."""
    return {"lap": lap, "stepCount": tick, **more}


def lap_done(lap, seconds, *, clean=True, tick=0):
    """The info that ends a lap, after which the car is on lap `lap`."""
    return {"lap": lap, "stepCount": tick, "lapTime": seconds, "lapClean": clean}


def test_the_constants_are_the_simulators():
    assert callbacks.TICKS_PER_SECOND == RacerMetricsCallback.TICKS_PER_SECOND == vehicle.TICKS_PER_SECOND == 60
    assert callbacks.REWARD_KEYS == RacerMetricsCallback.REWARD_KEYS
    assert callbacks.REWARD_KEYS == ("progress", "speed", "wall", "offTrack", "backward", "stillness")


# --- reward terms ---


def test_reward_terms_are_averaged_over_steps_and_cars(ride):
    ride.step({"progress": 0.1, "wall": -1.0}, {"progress": 0.3})
    ride.step({"progress": 0.8})
    assert np.mean(ride.logger.means["reward/progress"]) == pytest.approx(0.4)
    assert ride.logger.means["reward/wall"] == [-1.0]
    assert set(ride.logger.means) == {"reward/progress", "reward/wall"}
    assert ride.end_rollout() == {}


def test_the_environments_own_means_over_all_cars_go_before_infos(ride):
    env = SimpleNamespace(reward_term_means=MappingProxyType(dict.fromkeys(callbacks.REWARD_KEYS, 0.5)))
    ride.step({"progress": 9.0, "lap": 1, "stepCount": 1}, {}, {}, env=env)
    assert ride.logger.means == {f"reward/{key}": [0.5] for key in callbacks.REWARD_KEYS}


def test_the_means_are_found_under_wrappers(ride):
    cars = DummyVecEnv([World])
    cars.reward_term_means = {"progress": 0.25}
    ride.step({}, env=VecNormalize(cars))
    assert ride.logger.means == {"reward/progress": [0.25]}


@pytest.mark.parametrize("env", [None, MagicMock(), SimpleNamespace(), SimpleNamespace(reward_term_means=None)])
def test_an_environment_without_means_is_no_trouble(ride, env):
    ride.step({"progress": 0.1}, env=env)
    assert ride.logger.means == {"reward/progress": [0.1]}


def test_infos_of_another_environment_say_nothing(ride):
    ride.step({"TimeLimit.truncated": False}, {"other": 1})
    assert ride.logger.means == {}
    assert ride.end_rollout() == {}


def test_a_model_of_which_nothing_is_known_is_no_trouble():
    callback = RacerMetricsCallback()
    callback.model = MagicMock()
    callback.on_training_start({"env": MagicMock()}, {})
    callback.update_locals({"infos": [lap_done(2, 30.0)], "dones": [True]})
    callback.on_step()
    callback.on_rollout_end()
    told = dict(call.args for call in callback.model.logger.record.call_args_list)
    assert told == dict.fromkeys(LAP_KEYS, 30.0) | dict.fromkeys(EPISODE_KEYS, 1)


def test_a_step_without_anything_is_no_trouble(ride):
    ride.callback.locals = {}
    assert ride.callback.on_step() is True
    assert ride.end_rollout() == {}


# --- laps ---


def test_lap_times_are_those_the_environment_gives(ride):
    ride.step(lap_done(2, 31.25, tick=1876), {})
    ride.step({}, lap_done(2, 40.0))
    ride.step(lap_done(3, 30.0, tick=3676), {})
    assert ride.end_rollout() == {
        "racer/mean_lap_time_sec": pytest.approx(33.75),
        "racer/best_lap_time_sec": 30.0,
    }


def test_without_lap_times_a_lap_lasts_from_the_last_line_to_this_one(ride):
    ride.step(at(1, 1))
    ride.step(at(2, 1800))
    ride.step(at(2, 1801))
    ride.step(at(3, 3300))
    assert ride.end_rollout() == {"racer/mean_lap_time_sec": 27.5, "racer/best_lap_time_sec": 25.0}


def test_a_lap_given_and_a_lap_counted_follow_each_other(ride):
    ride.step(lap_done(2, 30.0, tick=1800))
    ride.step(at(3, 3000))
    assert ride.end_rollout() == {"racer/mean_lap_time_sec": 25.0, "racer/best_lap_time_sec": 20.0}


def test_a_lap_begun_in_one_rollout_and_ended_in_the_next_is_timed_whole(ride):
    ride.step(at(2, 600))
    ride.end_rollout()
    ride.step(at(2, 900))
    assert ride.end_rollout() == {}
    ride.step(at(3, 1200))
    assert ride.end_rollout()["racer/mean_lap_time_sec"] == 10.0


def test_laps_that_went_by_unseen_share_their_time(ride):
    ride.step(at(3, 3600))
    ride.step(at(4, 4200))
    assert ride.end_rollout() == {"racer/mean_lap_time_sec": pytest.approx(70 / 3), "racer/best_lap_time_sec": 10.0}


def test_the_lap_of_an_episodes_last_step_counts_and_the_next_begins_anew(ride):
    ride.step(at(2, 1200), ends=[0])
    ride.step(at(1, 1))
    ride.step(at(2, 600))
    records = ride.end_rollout()
    assert records["racer/mean_lap_time_sec"] == 15.0
    assert records["racer/completion_rate"] == 1.0


def test_a_new_episode_that_nobody_announced_begins_anew(ride):
    ride.step(at(3, 1200))
    ride.step(at(1, 1))
    ride.step(at(2, 300))
    assert ride.end_rollout()["racer/best_lap_time_sec"] == 5.0


def test_cars_do_not_mix(ride):
    ride.step(at(2, 600), at(1, 600), at(1, 600))
    ride.step(at(2, 1200), at(2, 1200), at(1, 1200), ends=[1])
    ride.step(at(3, 1800), at(2, 300), at(2, 1800))
    assert ride.end_rollout() == {
        "racer/mean_lap_time_sec": (10 + 20 + 20 + 5 + 30) / 5,
        "racer/best_lap_time_sec": 5.0,
        "racer/completion_rate": 1.0,
        "racer/episodes_this_rollout": 1,
    }


# --- episodes ---


def test_completion_is_the_share_of_ended_episodes_with_a_lap(ride):
    ride.step(lap_done(2, 30.0), {}, {}, {})
    ride.end_rollout()
    ride.step(at(2, 2000), at(1, 2000), {}, {}, ends=[0, 1])
    ride.step(at(1, 1), {}, {"TimeLimit.truncated": True}, {}, ends=[2])
    assert ride.end_rollout() == {"racer/completion_rate": pytest.approx(1 / 3), "racer/episodes_this_rollout": 3}
    # The lap of the episode before does not count for the next.
    ride.step(at(1, 900), {}, {}, {}, ends=[0])
    assert ride.end_rollout() == {"racer/completion_rate": 0.0, "racer/episodes_this_rollout": 1}


def test_what_happened_is_told_once(ride):
    ride.step(lap_done(2, 30.0), ends=[0])
    assert set(ride.end_rollout()) == LAP_KEYS | EPISODE_KEYS
    assert ride.end_rollout() == {}
    ride.step({})
    assert ride.end_rollout() == {}


@pytest.mark.parametrize("dones", [[True, False], (1, 0), np.array([True, False])])
def test_ends_may_come_in_any_form(ride, dones):
    ride.callback.locals = {"infos": [{}, {}], "dones": dones}
    ride.callback.on_step()
    assert ride.end_rollout()["racer/episodes_this_rollout"] == 1


# --- the gap to the optimum ---


def test_the_gap_is_that_of_the_median_clean_flying_lap():
    ride = Ride(optimal_lap_s=20.0)
    ride.step(lap_done(2, 10.0), lap_done(3, 90.0, clean=False))  # standing; not clean
    ride.step(lap_done(3, 25.0), lap_done(4, 22.0))
    ride.step(lap_done(4, 60.0), {})
    assert ride.end_rollout()["racer/gap_to_optimal"] == pytest.approx(0.25)


def test_from_a_random_start_the_first_lap_is_flying():
    ride = Ride(optimal_lap_s=20.0, first_lap_is_flying=True)
    ride.step(lap_done(2, 22.0))
    assert ride.end_rollout()["racer/gap_to_optimal"] == pytest.approx(0.1)


def test_there_is_no_gap_without_an_optimum_or_a_clean_flying_lap():
    ride = Ride()
    ride.step(lap_done(3, 25.0))
    assert set(ride.end_rollout()) == LAP_KEYS
    ride = Ride(optimal_lap_s=20.0)
    ride.step(lap_done(2, 25.0), lap_done(3, 25.0, clean=False), at(3, 1500))
    assert set(ride.end_rollout()) == LAP_KEYS


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_optimum_is_refused(seconds):
    with pytest.raises(ConfigError, match="optimal_lap_s must be a positive time"):
        RacerMetricsCallback(optimal_lap_s=seconds)


# --- against a drive written down beforehand ---


def random_drive(seed, num_cars=4, num_steps=60):
    """Random laps and ends; gives (infos, ends) per step, with and without lap times, and the laps by step."""
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
        sparse.append(
            [
                lap_done(int(lap[car]), times_s[car], tick=int(tick[car])) if crossing[car] else {}
                for car in range(num_cars)
            ]
        )
        line[crossing] = tick[crossing]
        lap[ending], tick[ending], line[ending] = 1, 0, 0
    return sparse, dense, laps, ends


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_random_drive_is_told_as_it_was(seed, is_sparse):
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


def test_a_resumed_callback_tells_what_an_uninterrupted_one_does():
    sparse, dense, _, ends = random_drive(seed=7)
    whole, parts = Ride(optimal_lap_s=1.0), Ride(optimal_lap_s=1.0)
    for step in range(len(dense)):
        infos = (sparse if step % 3 else dense)[step]
        for ride in (whole, parts):
            ride.step(*infos, ends=[car for car, _ in ends[step]])
        if step % 4 == 0:
            state = json.loads(json.dumps(parts.callback.get_state()))
            parts = Ride(optimal_lap_s=1.0)
            parts.callback.set_state(state)
        if step % 10 == 9:
            assert parts.end_rollout() == whole.end_rollout()


@pytest.mark.parametrize("state", [None, {}, {"laps": [1], "lap_ticks": [0], "tally": {}}, {"laps": "1"}])
def test_a_foreign_state_is_refused(ride, state):
    with pytest.raises(ModelError, match="racer metrics state"):
        ride.callback.set_state(state)


def test_learning_anew_begins_with_no_laps(ride):
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
    """A callback of an off-policy algorithm, which dumps whenever it likes."""
    ride = Ride(**options)
    model = SAC.__new__(SAC)
    model._logger = ride.logger = Logger(None, [Dumps()])
    model.num_timesteps = 0
    ride.callback.model = model
    return ride, ride.logger.output_formats[0].dumps


def test_an_on_policy_dump_has_its_rollouts_figures(ride):
    out = Dumps()
    ride.logger = ride.callback.model.logger = Logger(None, [out])
    for seconds in (30.0, 20.0):
        ride.step(lap_done(2, seconds, clean=False) | {"progress": seconds}, {"progress": 0.0}, ends=[0])
        ride.callback.on_rollout_end()
        ride.logger.dump()
    ride.callback.on_rollout_end()
    ride.logger.dump()
    assert out.dumps[0]["racer/mean_lap_time_sec"] == 30.0
    assert out.dumps[0]["reward/progress"] == pytest.approx(15.0)
    assert out.dumps[1] == {
        "racer/mean_lap_time_sec": 20.0,
        "racer/best_lap_time_sec": 20.0,
        "racer/completion_rate": 1.0,
        "racer/episodes_this_rollout": 1,
        "reward/progress": pytest.approx(10.0),
    }
    assert out.dumps[2] == {}


def test_an_on_policy_dump_after_several_rollouts_has_the_last_ones_figures(ride):
    ride.logger = ride.callback.model.logger = Logger(None, [out := Dumps()])
    for seconds in (30.0, 20.0):
        ride.step(lap_done(2, seconds))
        ride.callback.on_rollout_end()
    ride.logger.dump()
    assert out.dumps == [{"racer/mean_lap_time_sec": 20.0, "racer/best_lap_time_sec": 20.0}]


def test_one_step_rollouts_are_gathered_until_the_dump():
    ride, dumps = off_policy_ride(optimal_lap_s=20.0)
    for info, ends in [(lap_done(3, 30.0), []), ({}, []), (lap_done(4, 20.0), [0]), ({}, [0]), ({}, [])]:
        ride.step(info, ends=ends)
        ride.callback.on_rollout_end()
    ride.logger.dump()
    assert dumps == [
        {
            "racer/mean_lap_time_sec": 25.0,
            "racer/best_lap_time_sec": 20.0,
            "racer/completion_rate": 0.5,
            "racer/episodes_this_rollout": 2,
            "racer/gap_to_optimal": pytest.approx(0.25),
        }
    ]
    ride.step({}, ends=[])
    ride.callback.on_rollout_end()
    ride.logger.dump()
    ride.step(lap_done(2, 50.0))
    ride.callback.on_rollout_end()
    ride.logger.dump()
    assert dumps[1:] == [{}, {"racer/mean_lap_time_sec": 50.0, "racer/best_lap_time_sec": 50.0}]


def test_a_dump_within_a_rollout_has_the_episode_that_called_for_it_and_has_it_once():
    ride, dumps = off_policy_ride()
    for seconds in (30.0, 40.0):
        ride.step(lap_done(2, seconds), ends=[0])
        ride.logger.dump()
        ride.callback.on_rollout_end()
    ride.logger.dump()
    assert [dump.get("racer/mean_lap_time_sec") for dump in dumps] == [30.0, 40.0, None]
    assert [dump.get("racer/episodes_this_rollout") for dump in dumps] == [1, 1, None]


def test_what_waits_for_a_dump_outlives_a_resume():
    before, _ = off_policy_ride()
    before.step(lap_done(2, 30.0), ends=[0])
    before.callback.on_rollout_end()
    after, dumps = off_policy_ride()
    after.callback.set_state(json.loads(json.dumps(before.callback.get_state())))
    after.step(lap_done(2, 20.0))
    after.callback.on_rollout_end()
    after.logger.dump()
    assert dumps[0]["racer/mean_lap_time_sec"] == 25.0
    assert dumps[0]["racer/episodes_this_rollout"] == 1
    # What was dumped before the state was taken is not waiting.
    before.logger.dump()
    assert before.callback.get_state()["tally"]["num_laps"] == 0


# --- feeding the collector ---


def fed_callback(values):
    collector = MetricsCollector("x", "ppo", "e", 0, recording_interval=1)
    callback = MetricsCallback(collector)
    callback.model = SimpleNamespace(logger=SimpleNamespace(name_to_value=values), num_timesteps=0)
    return callback, collector


def test_finished_episodes_are_collected():
    callback, collector = fed_callback({})
    stale = {"episode": {"r": 99.0, "l": 1}}
    callback.locals = {
        "infos": [{"episode": {"r": 1.0, "l": 10}}, stale, {}, {"episode": {"r": 3.0, "l": 20}}],
        "dones": np.array([True, False, True, True]),
    }
    callback.model.num_timesteps = 4
    assert callback.on_step() is True
    (point,) = collector.metrics().time_series
    assert (point.timestep, point.episode, point.reward, point.episode_length) == (4, 2, 2.0, 15.0)


def test_the_last_updates_loss_is_collected_and_kept_over_a_dump():
    values = {}
    callback, collector = fed_callback(values)
    for step, loss in enumerate([None, 0.5, None, 0.25], 1):
        values.clear()
        if loss is not None:
            values["train/loss"] = loss
        callback.on_rollout_start()
        collector.note_step(step)
    assert [point.loss for point in collector.metrics().time_series] == [None, 0.5, 0.5, 0.25]


@pytest.mark.parametrize(
    ("values", "loss"),
    [
        ({"train/loss": 1.0, "train/value_loss": 5.0, "train/policy_loss": 7.0}, 1.0),
        ({"train/policy_loss": -0.5, "train/value_loss": 2.0}, 1.5),
        ({"train/actor_loss": -1.0, "train/critic_loss": 4.0, "train/ent_coef_loss": 9.0}, 3.0),
        ({"train/value_loss": 2.0}, None),
        ({"train/critic_loss": 2.0, "rollout/ep_rew_mean": 1.0}, None),
        ({}, None),
    ],
)
def test_each_algorithm_has_its_loss(values, loss):
    assert find_loss(values) == loss


@pytest.mark.parametrize("logger", [MagicMock(), RecordingLogger()])
def test_a_logger_of_another_make_has_no_loss(logger):
    callback, collector = fed_callback({})
    callback.model.logger = logger
    callback.on_rollout_start()
    collector.note_step(1)
    assert collector.metrics().time_series[0].loss is None
