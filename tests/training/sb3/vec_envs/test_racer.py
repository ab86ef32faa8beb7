"""Our cars as a VecEnv: the same results as DummyVecEnv with monitored single environments."""

import warnings
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack

from envs.oracles import HoldAction, place_before_the_line
from hotlap.envs.fleet import MAX_REPEAT
from hotlap.envs.infos import REWARD_KEYS
from hotlap.envs.observations import MAX_STACK
from hotlap.envs.racer import RacerEnv
from hotlap.errors import ActionError, ConfigError, UnknownTrackError
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv
from training.sb3.vec_envs.racer_cars import CONFIG, F, actions_at, drive, racer


def dummy(num_envs: int, config=CONFIG, tracks=("track-01",), action_repeat=1, stack=1, observation="rays") -> VecEnv:
    """The oracle: monitored single environments."""

    def make(car: int) -> gym.Env:
        return Monitor(HoldAction(RacerEnv(tracks[car % len(tracks)], config, observation=observation), action_repeat))

    env = DummyVecEnv([lambda car=car: make(car) for car in range(num_envs)])
    return VecFrameStack(env, stack) if stack > 1 else env


def seeded(seed: int, *envs: VecEnv) -> tuple[VecEnv, ...]:
    for env in envs:
        assert env.seed(seed) == list(range(seed, seed + env.num_envs))
    return envs


def move_before_the_line(env: RacerVecEnv, others: VecEnv, cars: list[int]) -> None:
    """Put cars of both environments shortly before the start line."""
    state = env.get_state()
    world = {name.removeprefix("world."): column for name, column in state.items() if name.startswith("world.")}
    for car in cars:
        place_before_the_line(world, [car], env.fleet.tracks[world["track"][car]].nodes, metres=6.0)
    env.set_state(state)
    for car, single in enumerate(others.unwrapped.envs):
        own = {name: column[car : car + 1] for name, column in world.items()}
        single.unwrapped.set_state({**own, "track": np.zeros(1, np.int32)})


def same_info(ours: dict, theirs: dict, done: bool) -> None:
    """Our info of one car equals theirs; it is empty unless a lap or the episode ended."""
    theirs = dict(theirs)
    if not done:
        assert theirs.pop("TimeLimit.truncated") is False
        assert ours == (theirs if "lapTime" in theirs else {})
        return
    assert set(ours) == set(theirs)
    for key in set(ours) - {"terminal_observation", "episode"}:
        assert ours[key] == theirs[key], key
        assert type(ours[key]) is type(theirs[key]), key
    np.testing.assert_array_equal(ours["terminal_observation"], theirs["terminal_observation"])
    assert ours["terminal_observation"].dtype == F
    assert (ours["episode"]["r"], ours["episode"]["l"]) == (theirs["episode"]["r"], theirs["episode"]["l"])
    assert set(ours["episode"]) == {"r", "l", "t"}


def compare(env: RacerVecEnv, others: VecEnv, num_steps: int, lap_every: int = 45) -> Counter:
    """Drive both alike and compare all results; counts the events."""
    seen: Counter = Counter()
    np.testing.assert_array_equal(env.reset(), others.reset())
    assert env.reset_infos == others.unwrapped.reset_infos
    for step in range(num_steps):
        if step % lap_every == 10:
            move_before_the_line(env, others, list(range(1, env.num_envs, 2)))
        actions = actions_at(step, env.num_envs)
        obs, rewards, dones, infos = env.step(actions)
        expected_obs, expected_rewards, expected_dones, expected_infos = others.step(actions)
        np.testing.assert_array_equal(obs, expected_obs)
        np.testing.assert_array_equal(rewards, expected_rewards)
        np.testing.assert_array_equal(dones, expected_dones)
        assert (obs.dtype, rewards.dtype, dones.dtype) == (F, F, np.bool_)
        means = {name: np.mean([info[name] for info in expected_infos]) for name in REWARD_KEYS}
        assert env.reward_term_means == pytest.approx(means, abs=1e-12)
        for car in range(env.num_envs):
            same_info(infos[car], expected_infos[car], bool(dones[car]))
            seen.update(
                truncated=infos[car].get("TimeLimit.truncated", False),
                terminated=bool(dones[car]) and not infos[car]["TimeLimit.truncated"],
                laps="lapTime" in infos[car],
            )
        assert env.reset_infos == others.unwrapped.reset_infos
    return seen


# --- the same as single environments in a DummyVecEnv ---


@pytest.mark.parametrize(
    ("num_envs", "num_steps", "num_threads", "options"),
    [
        (1, 150, None, {}),
        (2, 300, 1, {}),
        (7, 300, 1, {}),
        (5, 130, 2, {}),
        (5, 180, None, {"action_repeat": 2}),
        (5, 120, None, {"action_repeat": 3}),
        (5, 52, None, {"action_repeat": 7}),
        (5, 300, None, {"stack": 2}),
        (5, 300, None, {"stack": 4}),
        (5, 150, None, {"stack": 3, "action_repeat": 2}),
        (5, 300, None, {"observation": "road"}),
        (5, 150, None, {"stack": 2, "action_repeat": 2, "observation": "road"}),
    ],
)
def test_results_are_those_of_monitored_single_environments(num_envs, num_steps, num_threads, options):
    env, others = racer(num_envs, None, num_threads=num_threads, **options), dummy(num_envs, **options)
    size = {"rays": 14, "road": 58}[options.get("observation", "rays")] * options.get("stack", 1)
    assert env.observation_space.shape == others.observation_space.shape == (size,)
    seen = compare(*seeded(40, env, others), num_steps, lap_every=20 if "action_repeat" in options else 45)
    # Of a single car no lap is completed and no episode truncated.
    events = ("truncated", "terminated", "laps") if num_envs > 1 else ("terminated",)
    assert min(seen[event] for event in events) > 0
    assert all(env.observation_space.contains(row) for row in env.step(actions_at(0, num_envs))[0])


def test_cars_drive_several_tracks_in_turn():
    tracks = ["track-03", "track-01", "train-000"]
    assert compare(*seeded(0, RacerVecEnv(5, tracks, CONFIG), dummy(5, tracks=tracks)), 60, lap_every=30)["laps"] > 0


# --- infos ---


def test_terminating_at_the_time_limit_is_not_a_truncation():
    both = {"episode": {"maxSteps": 20, "stillnessTimeoutTicks": 20}}
    env, others = seeded(0, RacerVecEnv(2, config=both), dummy(2, both))
    for one in (env, others):
        one.reset()
    for _ in range(20):
        ours, theirs = (one.step(np.tile(F([0.0, 0.0, 1.0]), (2, 1))) for one in (env, others))
    assert env.fleet.batch.terminated.all()
    assert env.fleet.batch.truncated.all()
    for car in range(2):
        same_info(ours[3][car], theirs[3][car], done=True)
        assert ours[3][car]["TimeLimit.truncated"] is False


def test_reward_term_means_are_empty_before_the_first_step():
    env = racer(2)
    assert env.reward_term_means == {}
    env.step(actions_at(0, 2))
    assert env.reward_term_means != {}
    env.reset()
    assert env.reward_term_means == {}


def test_writing_into_returned_arrays_does_not_change_the_environment():
    one, other = racer(4, stack=3), racer(4, stack=3)
    for step in range(130):
        results, expected = one.step(actions_at(step, 4)), other.step(actions_at(step, 4))
        for array, right in zip(results[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(array, right)
            array[...] = 0
        assert one.reward_term_means == other.reward_term_means


# --- seeds, options, reset ---


def test_a_seed_applies_to_the_next_reset_only():
    env, others = seeded(9, racer(3, None), dummy(3))
    first = env.reset()
    np.testing.assert_array_equal(first, others.reset())
    second = env.reset()
    np.testing.assert_array_equal(second, others.reset())
    assert not np.array_equal(first, second)
    env.seed(9)
    np.testing.assert_array_equal(env.reset(), first)


def test_unseeded_environments_differ_and_do_not_use_numpys_global_generator():
    np.random.seed(0)  # noqa: NPY002 (the learner's)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, other = racer(2, None), racer(2, None)
    assert not np.array_equal(one.reset(), other.reset())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number from 0"):
        racer(2, None).seed(seed)


def test_options_apply_to_the_next_reset_only_and_per_car():
    line = {"episode": {"maxSteps": 50}}
    env, others = RacerVecEnv(3, config=line), dummy(3, line)
    for options in ({"start": "random"}, None, [{"start": "random"}, {}, {"start": "line"}], {}):
        for one in seeded(2, env, others):
            one.set_options(options)
        np.testing.assert_array_equal(env.reset(), others.reset())
        np.testing.assert_array_equal(env.reset(), others.reset())
        assert env.reset_infos == others.unwrapped.reset_infos


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "moon"}, "start must be"),
        ({"speed": 3}, "unknown key 'speed'"),
        ([{}, {}], "one dict for each of the 3 cars, got 2"),
        ([{}, {}, {"begin": 1}], "unknown key 'begin'"),
        ("random", "must be a dict"),
    ],
)
def test_invalid_options_are_refused_at_once(options, words):
    env = racer(3)
    with pytest.raises(ConfigError, match=words):
        env.set_options(options)
    env.reset()


# --- actions ---


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_action_is_an_error_and_nothing_moves(bad):
    env, twin = racer(4, stack=2), racer(4, stack=2)
    for one in (env, twin):
        drive(one, 0, 20)
    actions = actions_at(20, 4)
    actions[2, 1] = bad
    with pytest.raises(ActionError, match=r"car 2 must be finite.*nothing moved"):
        env.step(actions)
    for name, column in env.get_state().items():
        np.testing.assert_array_equal(column, twin.get_state()[name], err_msg=name)
    for step in range(20, 150):
        ours, expected = env.step(actions_at(step, 4)), twin.step(actions_at(step, 4))
        np.testing.assert_array_equal(ours[0], expected[0])
        for info, right in zip(ours[3], expected[3], strict=True):
            assert (info or {"episode": {}})["episode"].get("r") == (right or {"episode": {}})["episode"].get("r")


@pytest.mark.parametrize("actions", [np.zeros((3, 3), F), np.zeros(3, F), [["a", "b", "c"]] * 4, None])
def test_actions_of_another_shape_or_kind_are_refused(actions):
    env = racer(4)
    with pytest.raises(ActionError, match="shape"):
        env.step(actions)


# --- attributes, rendering, arguments ---


def test_the_action_repeat_can_be_changed():
    env = racer(3, action_repeat=2)
    assert env.get_attr("action_repeat", indices=[0, 2]) == [2, 2]
    env.set_attr("action_repeat", 4)
    assert env.get_attr("action_repeat", indices=0) == [4]
    assert "world.x_m" in env.env_method("get_state")[0]


def test_it_cannot_render_and_can_be_closed_twice():
    env = racer(2)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
    env.close()
    env.close()


def test_making_one_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        racer(2, action_repeat=2, stack=2)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_envs": 0}, ConfigError, "num_envs must be"),
        ({"num_envs": 2.0}, ConfigError, "num_envs must be"),
        ({"action_repeat": 0}, ConfigError, "action_repeat must be from 1 to 60 ticks"),
        ({"action_repeat": MAX_REPEAT + 1}, ConfigError, "action_repeat must be from 1 to 60 ticks"),
        ({"action_repeat": True}, ConfigError, "action_repeat must be a whole number"),
        ({"stack": 0}, ConfigError, "stack must be"),
        ({"stack": MAX_STACK + 1}, ConfigError, "stack must be"),
        ({"num_threads": 0}, ConfigError, "num_threads must be"),
        ({"track_id": "track-1"}, UnknownTrackError, "Did you mean"),
        ({"track_id": []}, ConfigError, "at least one track"),
        ({"config": {"episodes": {}}}, ConfigError, "episodes"),
    ],
)
def test_invalid_arguments_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        RacerVecEnv(**{"num_envs": 2, **options})
