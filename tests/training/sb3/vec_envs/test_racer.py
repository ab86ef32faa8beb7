"""Our cars as a VecEnv: the same results as DummyVecEnv with monitored single environments."""

import copy
import pickle
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
from hotlap.errors import ActionError, ConfigError, StateError, UnknownTrackError
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv

F = np.float32
# All reward terms are used; cars that brake end by standing still, the others after two seconds.
CONFIG = {
    "weights": {"speedBonus": 0.01, "wallPenalty": -0.02, "backwardPenalty": -0.003},
    "episode": {"maxSteps": 120, "stillnessTimeoutTicks": 15, "start": "random"},
}


def dummy(
    num_envs: int, config=CONFIG, tracks=("track-01",), repeat: int = 1, stack: int = 1, observation: str = "rays"
) -> VecEnv:
    """The oracle: monitored single environments."""

    def make(car: int) -> gym.Env:
        return Monitor(HoldAction(RacerEnv(tracks[car % len(tracks)], config, observation=observation), repeat))

    env = DummyVecEnv([lambda car=car: make(car) for car in range(num_envs)])
    return VecFrameStack(env, stack) if stack > 1 else env


def racer(num_envs: int = 3, seed: int | None = 0, **options) -> RacerVecEnv:
    env = RacerVecEnv(num_envs, config=CONFIG, **options)
    if seed is not None:
        env.seed(seed)
        env.reset()
    return env


def actions_at(step: int, num_envs: int) -> np.ndarray:
    """Some cars race, some stop, some go for the wall."""
    actions = np.random.default_rng(step).uniform([-1, 0, 0], [1, 1, 0.2], (num_envs, 3)).astype(F)
    actions[::4], actions[1::4] = [0.0, 0.0, 1.0], [0.5, 0.7, 0.0]
    return actions


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
    ("num_envs", "num_steps", "options"),
    [
        (1, 150, {}),
        (2, 300, {"num_threads": 1}),
        (7, 300, {"num_threads": 1}),
        (5, 130, {"num_threads": 2}),
        (5, 180, {"action_repeat": 2}),
        (5, 120, {"action_repeat": 3}),
        (5, 52, {"action_repeat": 7}),
        (5, 300, {"stack": 2}),
        (5, 300, {"stack": 4}),
        (5, 150, {"stack": 3, "action_repeat": 2}),
        (5, 300, {"observation": "road"}),
        (5, 150, {"stack": 2, "action_repeat": 2, "observation": "road"}),
    ],
)
def test_results_are_those_of_monitored_single_environments(num_envs, num_steps, options):
    repeat, stack = options.get("action_repeat", 1), options.get("stack", 1)
    observation = options.get("observation", "rays")
    env, others = racer(num_envs, None, **options), dummy(num_envs, repeat=repeat, stack=stack, observation=observation)
    assert (
        env.observation_space.shape
        == others.observation_space.shape
        == ({"rays": 14, "road": 58}[observation] * stack,)
    )
    for one in (env, others):
        assert one.seed(40) == list(range(40, 40 + num_envs))
    seen = compare(env, others, num_steps, lap_every=20 if repeat > 1 else 45)
    # Of a single car no lap is completed and no episode truncated.
    events = ("truncated", "terminated", "laps") if num_envs > 1 else ("terminated",)
    assert min(seen[event] for event in events) > 0
    assert all(env.observation_space.contains(row) for row in env.step(actions_at(0, num_envs))[0])


def test_cars_drive_several_tracks_in_turn():
    tracks = ["track-03", "track-01", "train-000"]
    env = RacerVecEnv(5, tracks, CONFIG)
    others = dummy(5, tracks=tracks)
    for one in (env, others):
        one.seed(0)
    assert compare(env, others, 60, lap_every=30)["laps"] > 0


# --- infos ---


def test_terminating_at_the_time_limit_is_not_a_truncation():
    both = {"episode": {"maxSteps": 20, "stillnessTimeoutTicks": 20}}
    env, others = RacerVecEnv(2, config=both), dummy(2, both)
    for one in (env, others):
        one.seed(0)
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
    env, others = racer(3, None), dummy(3)
    for one in (env, others):
        one.seed(9)
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
        for one in (env, others):
            one.seed(2)
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
    for step in range(20):
        for one in (env, twin):
            one.step(actions_at(step, 4))
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


# --- saving ---


def same_state(one: RacerVecEnv, other: RacerVecEnv) -> bool:
    a, b = one.get_state(), other.get_state()
    return set(a) == set(b) and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(("stack", "repeat"), [(1, 1), (3, 2)])
def test_a_restored_environment_continues_bit_identically(stack, repeat):
    env = racer(5, stack=stack, action_repeat=repeat)
    for step in range(50):
        env.step(actions_at(step, 5))
    state = env.get_state()
    other = racer(5, 99, stack=stack, action_repeat=repeat)
    other.set_state(state)
    for column in state.values():  # set_state must have copied it
        column[...] = 0
    ends = 0
    for step in range(50, 200):
        ours, theirs = env.step(actions_at(step, 5)), other.step(actions_at(step, 5))
        for a, b in zip(ours[:3], theirs[:3], strict=True):
            np.testing.assert_array_equal(a, b)
        for car in np.flatnonzero(ours[2]):
            ends += 1
            assert ours[3][car]["episode"]["r"] == theirs[3][car]["episode"]["r"]
            assert ours[3][car]["episode"]["l"] == theirs[3][car]["episode"]["l"]
    assert ends > 5
    np.testing.assert_array_equal(env.reset(), other.reset())
    assert same_state(env, other)


def test_a_state_is_a_flat_dict_of_arrays():
    for name, column in racer(2).get_state().items():
        assert isinstance(name, str)
        assert isinstance(column, np.ndarray)
        assert column.dtype.kind in "fiub"


@pytest.mark.parametrize("seeded", [False, True])
def test_pending_seeds_and_starts_are_saved(seeded):
    env, other = racer(3, None), racer(3)
    if seeded:
        env.seed(17)
        env.set_options([{"start": "line"}, {"start": "random"}, {}])
    other.set_state(env.get_state())
    assert same_state(env, other)
    if not seeded:
        with pytest.raises(gym.error.ResetNeeded):
            other.step(actions_at(0, 3))
        assert not np.array_equal(env.reset(), other.reset())
        return
    np.testing.assert_array_equal(env.reset(), other.reset())
    np.testing.assert_array_equal(env.reset(), other.reset())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("returns", np.zeros(3, F), "column 'returns' must be float64 of shape .3,., got float32"),
        ("returns", np.full(3, np.nan), "returns must be finite"),
        ("lengths", np.zeros(4, np.int64), "column 'lengths'"),
        ("lengths", np.full(3, -1), "lengths not negative"),
        ("is_reset", np.array(1), "column 'is_reset' must be bool"),
        ("seeds", np.zeros(3, np.int64), "column 'seeds'"),
        ("starts", np.full(3, 3, np.int8), "'starts' must be from -1 to 1"),
        ("starts", np.full(3, -2, np.int8), "'starts' must be from -1 to 1"),
        ("stack", np.zeros((3, 28), F), "the stack must be"),
        ("world.node", np.full(3, -1, np.int32), "column 'node' must not be negative"),
        ("boost", np.zeros(3), "columns are not those of this version"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(name, value, words):
    env, twin = racer(3), racer(3)
    other = racer(3, 5)
    for step in range(30):
        other.step(actions_at(step, 3))
    with pytest.raises(StateError, match=words):
        env.set_state({**other.get_state(), name: value})
    assert same_state(env, twin)


def test_a_state_of_other_cars_or_no_state_is_refused():
    env = racer(3)
    for state in (None, {}, racer(4).get_state(), racer(3, stack=2).get_state(), env.fleet.get_state()):
        with pytest.raises(StateError):
            env.set_state(state)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_is_independent(clone):
    env = racer(3, stack=2)
    for step in range(40):
        env.step(actions_at(step, 3))
    twin = clone(env)
    before = env.get_state()
    for step in range(40, 140):
        twin.step(actions_at(step, 3))
    assert all(np.array_equal(column, env.get_state()[name]) for name, column in before.items())
    for step in range(40, 140):
        env.step(actions_at(step, 3))
    np.testing.assert_array_equal(env.reset(), twin.reset())
    assert same_state(env, twin)


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
