"""Our cars under stable-baselines3: what DummyVecEnv gives of monitored single environments, without their cost."""

import copy
import pickle
import time
import warnings
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecNormalize

from hotlap.envs.fleet import MAX_REPEAT
from hotlap.envs.observations import MAX_STACK
from hotlap.envs.racer import RacerEnv
from hotlap.errors import ActionError, ConfigError, StateError, UnknownTrackError
from hotlap.sim.world import INFO_DTYPE
from hotlap.training.vec_envs.racer import REWARD_TERMS, RacerVecEnv

F = np.float32
# Every reward term counts; cars that brake end by standing still, the others after two seconds.
CONFIG = {
    "weights": {"speedBonus": 0.01, "wallPenalty": -0.02, "backwardPenalty": -0.003},
    "episode": {"maxSteps": 120, "stillnessTimeoutTicks": 15, "start": "random"},
}
ENDED_KEYS = {"terminal_observation", "TimeLimit.truncated", "episode"}


class HoldAction(gym.Wrapper):
    """`repeat` steps of the environment as one: the meaning of `action_repeat`, spelled out."""

    def __init__(self, env: gym.Env, repeat: int) -> None:
        super().__init__(env)
        self.repeat = repeat

    def step(self, action):
        gains, lap, touched = [], {}, False
        for _ in range(self.repeat):
            obs, reward, terminated, truncated, info = self.env.step(action)
            gains.append([reward, *(info[name] for name in REWARD_TERMS)])
            touched |= info["wallContact"]
            lap |= {name: info[name] for name in ("lapTime", "lapClean") if name in info}
            if terminated or truncated:
                break
        total = np.array(gains[0], F)
        for gain in gains[1:]:
            total += np.array(gain, F)
        reward, *terms = total.tolist()
        told = dict(zip(REWARD_TERMS, terms, strict=True))
        return obs, reward, terminated, truncated, {**info, **told, **lap, "wallContact": touched}


def dummy(num_envs: int, config=CONFIG, tracks=("track-01",), repeat: int = 1, stack: int = 1) -> VecEnv:
    """The environments we are to be mistaken for."""

    def make(car: int) -> gym.Env:
        return Monitor(HoldAction(RacerEnv(tracks[car % len(tracks)], config), repeat))

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


def place_before_the_line(env: RacerVecEnv, others: VecEnv, cars: list[int]) -> None:
    """Put cars of both shortly before the line, fast, with only the line itself still to cross."""
    state = env.get_state()
    for car in cars:
        nodes = env.fleet.tracks[state["world.track"][car]].nodes
        node = nodes.num_nodes - round(6.0 / nodes.step_m)
        for name, value in (
            ("x_m", nodes.x_m[node]),
            ("y_m", nodes.y_m[node]),
            ("yaw_rad", np.arctan2(nodes.tangent_y[node], nodes.tangent_x[node])),
            ("forward_mps", 40.0),
            ("node", node),
            ("share", 0.0),
            ("lateral_m", 0.0),
            ("arc_m", node * nodes.step_m),
            ("next_gate", 0),
            ("clock_runs", 1),
        ):
            state[f"world.{name}"][car] = value
    env.set_state(state)
    singles = [single.unwrapped for single in others.unwrapped.envs]
    for car, single in enumerate(singles):
        own = {name.removeprefix("world."): column for name, column in state.items() if name.startswith("world.")}
        own = {name: column[car : car + 1] for name, column in own.items()}
        own["track"] = np.zeros(1, np.int32)
        single.set_state(own)


def same_info(ours: dict, theirs: dict, done: bool) -> None:
    """Our info of one car says what theirs does; nothing unless a lap or the episode ended."""
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
    """Drive both alike and compare everything they say; counts what happened."""
    seen: Counter = Counter()
    np.testing.assert_array_equal(env.reset(), others.reset())
    assert env.reset_infos == others.unwrapped.reset_infos
    for step in range(num_steps):
        if step % lap_every == 10:
            place_before_the_line(env, others, list(range(1, env.num_envs, 2)))
        actions = actions_at(step, env.num_envs)
        obs, rewards, dones, infos = env.step(actions)
        expected_obs, expected_rewards, expected_dones, expected_infos = others.step(actions)
        np.testing.assert_array_equal(obs, expected_obs)
        np.testing.assert_array_equal(rewards, expected_rewards)
        np.testing.assert_array_equal(dones, expected_dones)
        assert (obs.dtype, rewards.dtype, dones.dtype) == (F, F, np.bool_)
        means = {name: np.mean([info[name] for info in expected_infos]) for name in REWARD_TERMS}
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


@pytest.mark.parametrize(("num_envs", "num_threads", "num_steps"), [(2, 1, 300), (7, 1, 300), (5, 2, 130)])
def test_every_figure_is_that_of_monitored_single_environments(num_envs, num_threads, num_steps):
    env, others = racer(num_envs, None, num_threads=num_threads), dummy(num_envs)
    for one in (env, others):
        assert one.seed(40) == list(range(40, 40 + num_envs))
    seen = compare(env, others, num_steps)
    assert min(seen[what] for what in ("truncated", "terminated", "laps")) > 0


def test_a_single_car_is_a_batch_too():
    env, others = racer(1, None), dummy(1)
    for one in (env, others):
        one.seed(5)
    assert compare(env, others, 150)["terminated"] > 0


@pytest.mark.parametrize("repeat", [2, 3, 7])
def test_an_action_repeated_is_held_for_that_many_ticks(repeat):
    env, others = racer(5, None, action_repeat=repeat), dummy(5, repeat=repeat)
    for one in (env, others):
        one.seed(3)
    seen = compare(env, others, 360 // repeat, lap_every=20)
    assert min(seen[what] for what in ("truncated", "terminated", "laps")) > 0


@pytest.mark.parametrize(("stack", "repeat"), [(2, 1), (4, 1), (3, 2)])
def test_stacked_observations_are_those_of_vec_frame_stack(stack, repeat):
    env, others = racer(5, None, stack=stack, action_repeat=repeat), dummy(5, stack=stack, repeat=repeat)
    assert env.observation_space.shape == others.observation_space.shape == (14 * stack,)
    for one in (env, others):
        one.seed(3)
    seen = compare(env, others, 300 // repeat)
    assert min(seen[what] for what in ("truncated", "terminated", "laps")) > 0
    assert all(env.observation_space.contains(row) for row in env.step(actions_at(0, 5))[0])


def test_cars_take_several_tracks_in_turn():
    tracks = ["track-03", "track-01", "train-000"]
    env = RacerVecEnv(5, tracks, CONFIG)
    others = dummy(5, tracks=tracks)
    for one in (env, others):
        one.seed(0)
    assert compare(env, others, 60, lap_every=30)["laps"] > 0


def test_the_normalizer_on_top_gives_the_same_numbers():
    env, others = (VecNormalize(one, gamma=0.95) for one in (racer(4, None), dummy(4)))
    for one in (env, others):
        one.seed(11)
    np.testing.assert_array_equal(env.reset(), others.reset())
    ends = 0
    for step in range(200):
        actions = actions_at(step, 4)
        obs, rewards, dones, infos = env.step(actions)
        expected_obs, expected_rewards, expected_dones, expected_infos = others.step(actions)
        np.testing.assert_array_equal(obs, expected_obs)
        np.testing.assert_array_equal(rewards, expected_rewards)
        np.testing.assert_array_equal(dones, expected_dones)
        for car in np.flatnonzero(dones):
            ends += 1
            np.testing.assert_array_equal(
                infos[car]["terminal_observation"], expected_infos[car]["terminal_observation"]
            )
    assert ends > 5
    np.testing.assert_array_equal(env.get_original_obs(), others.get_original_obs())
    assert env.obs_rms.mean.tolist() == others.obs_rms.mean.tolist()
    assert env.ret_rms.var == others.ret_rms.var


# --- infos ---


def test_infos_are_empty_but_for_cars_that_finished_something():
    env = racer(6)
    for step in range(150):
        _, _, dones, infos = env.step(actions_at(step, 6))
        assert [bool(info) for info in infos] == dones.tolist()
        assert len({id(info) for info in infos}) == 6
        for car in np.flatnonzero(dones):
            assert infos[car].keys() >= ENDED_KEYS


def test_a_finished_episode_is_timed_from_when_the_environment_was_made():
    before = time.time()
    env = racer(1)
    info: dict = {}
    while not info:
        info = env.step([[0.0, 0.0, 1.0]])[3][0]
    assert 0.0 < info["episode"]["t"] <= time.time() - before + 1e-6
    assert info["episode"]["t"] == round(info["episode"]["t"], 6)


def test_an_early_reset_forgets_the_running_episode():
    env = racer(2)
    for step in range(30):
        env.step(actions_at(step, 2))
    env.reset()
    earned, told = np.zeros(2), []
    for _ in range(120):
        assert told == []
        _, rewards, _, infos = env.step(np.tile(F([0.0, 0.9, 0.0]), (2, 1)))
        earned += rewards
        told += [info["episode"] for info in infos if info]
    assert [episode["l"] for episode in told] == [120, 120]
    assert [episode["r"] for episode in told] == [round(total, 6) for total in earned.tolist()]


def test_standing_still_at_the_time_limit_is_no_truncation():
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


def test_the_reward_terms_are_the_first_columns_of_the_infos():
    assert INFO_DTYPE.names[: len(REWARD_TERMS)] == REWARD_TERMS
    assert [INFO_DTYPE.fields[name] for name in REWARD_TERMS] == [(np.dtype(F), 4 * k) for k in range(6)]
    assert INFO_DTYPE.itemsize % 4 == 0


def test_the_means_of_the_reward_terms_add_up_to_the_mean_reward():
    env = racer(8)
    ended = 0
    for step in range(100):
        _, rewards, dones, _ = env.step(actions_at(step, 8))
        ended += dones.sum()
        assert tuple(env.reward_term_means) == REWARD_TERMS
        assert sum(env.reward_term_means.values()) == pytest.approx(rewards.mean(dtype=np.float64), abs=1e-8)
    assert ended > 0


def test_there_are_no_means_where_there_was_no_step():
    env = racer(2)
    assert env.reward_term_means == {}
    env.step(actions_at(0, 2))
    assert env.reward_term_means != {}
    env.reset()
    assert env.reward_term_means == {}


def test_what_a_step_returned_stays_as_it_was():
    for stack in (1, 3):
        env = racer(4, stack=stack)
        kept = [env.reset(), *env.step(actions_at(0, 4))[:3]]
        copies = [array.copy() for array in kept]
        for step in range(1, 60):
            env.step(actions_at(step, 4))
        for array, before in zip(kept, copies, strict=True):
            np.testing.assert_array_equal(array, before)


def test_writing_into_what_was_returned_does_not_reach_the_environment():
    one, other = racer(4, stack=3), racer(4, stack=3)
    for step in range(130):
        results, expected = one.step(actions_at(step, 4)), other.step(actions_at(step, 4))
        for array, right in zip(results[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(array, right)
            array[...] = 0
        assert one.reward_term_means == other.reward_term_means


# --- seeds, options, reset ---


def test_twin_runs_agree_and_another_seed_does_not():
    runs = []
    for seed in (7, 7, 8):
        env = racer(4, seed)
        runs.append([env.step(actions_at(step, 4))[0] for step in range(140)])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_a_seed_holds_for_the_next_reset_only():
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


def test_unseeded_environments_differ_and_leave_numpys_global_generator_alone():
    np.random.seed(0)  # noqa: NPY002 (the learner's)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, other = racer(2, None), racer(2, None)
    assert not np.array_equal(one.reset(), other.reset())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number from 0"):
        racer(2, None).seed(seed)


def test_options_hold_for_the_next_reset_only_and_for_each_car_its_own():
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
def test_options_that_make_no_sense_are_refused_at_once(options, words):
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


def test_a_step_needs_a_reset_and_actions():
    env = racer(2, None)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(actions_at(0, 2))
    env.reset()
    with pytest.raises(ActionError, match="step_async"):
        env.step_wait()
    env.step_async(actions_at(0, 2))
    env.step_wait()
    with pytest.raises(ActionError, match="step_async"):
        env.step_wait()


# --- saving ---


def same_state(one: RacerVecEnv, other: RacerVecEnv) -> bool:
    a, b = one.get_state(), other.get_state()
    return set(a) == set(b) and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(("stack", "repeat"), [(1, 1), (3, 2)])
def test_a_restored_environment_goes_on_bit_for_bit(stack, repeat):
    env = racer(5, stack=stack, action_repeat=repeat)
    for step in range(50):
        env.step(actions_at(step, 5))
    state = env.get_state()
    other = racer(5, 99, stack=stack, action_repeat=repeat)
    other.set_state(state)
    for column in state.values():  # what was given is not what is kept
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
def test_seeds_and_starts_to_come_are_saved_too(seeded):
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
        ("is_seeded", np.array(1), "column 'is_seeded' must be bool"),
        ("seeds", np.zeros(3, np.int64), "column 'seeds'"),
        ("starts", np.full(3, 2, np.int8), "'starts' must be from -1 to 1"),
        ("starts", np.full(3, -2, np.int8), "'starts' must be from -1 to 1"),
        ("stack", np.zeros((3, 28), F), "the stack must be"),
        ("world.node", np.full(3, -1, np.int32), "column 'node' must not be negative"),
        ("boost", np.zeros(3), "columns are not this version's"),
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


def test_a_state_of_other_cars_or_of_none_is_refused():
    env = racer(3)
    for state in (None, {}, racer(4).get_state(), racer(3, stack=2).get_state(), env.fleet.get_state()):
        with pytest.raises(StateError):
            env.set_state(state)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_its_own_way(clone):
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


# --- what else a VecEnv has ---


def test_it_passes_for_monitored_and_for_nothing_else():
    env = racer(3)
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(Monitor, indices=1) == [True]
    assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [False] * 3


def test_attributes_and_methods_are_those_of_the_batch():
    env = racer(3, action_repeat=2)
    assert env.render_mode is None
    assert env.get_attr("render_mode") == [None] * 3
    assert env.get_attr("action_repeat", indices=[0, 2]) == [2, 2]
    assert not env.has_attr("wings")
    env.set_attr("action_repeat", 4)
    assert env.get_attr("action_repeat", indices=0) == [4]
    states = env.env_method("get_state")
    assert len(states) == 3
    assert "world.x_m" in states[0]
    with pytest.raises(ConfigError, match="leave `indices` out"):
        env.set_attr("action_repeat", 1, indices=[0])
    with pytest.raises(ConfigError, match="leave `indices` out"):
        env.env_method("get_state", indices=0)
    with pytest.raises(AttributeError):
        env.env_method("fly")


def test_nothing_is_drawn_and_closing_twice_is_fine():
    env = racer(2)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
    env.close()
    env.close()


def test_making_one_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        racer(2, action_repeat=2, stack=2)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_envs": 0}, ConfigError, "num_envs must be"),
        ({"num_envs": 2.0}, ConfigError, "num_envs must be"),
        ({"action_repeat": 0}, ConfigError, "whole number of ticks"),
        ({"action_repeat": MAX_REPEAT + 1}, ConfigError, "whole number of ticks"),
        ({"action_repeat": True}, ConfigError, "whole number of ticks"),
        ({"stack": 0}, ConfigError, "stack must be"),
        ({"stack": MAX_STACK + 1}, ConfigError, "stack must be"),
        ({"num_threads": 0}, ConfigError, "num_threads must be"),
        ({"track_id": "track-1"}, UnknownTrackError, "Did you mean"),
        ({"track_id": []}, ConfigError, "at least one track"),
        ({"config": {"episodes": {}}}, ConfigError, "episodes"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        RacerVecEnv(**{"num_envs": 2, **options})
