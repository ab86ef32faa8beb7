"""Returns of whole episodes: environments with known returns, and a plain loop as the oracle."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from hotlap.errors import ActionError, ConfigError
from hotlap.evaluation import returns as returns_module
from hotlap.evaluation.returns import MAX_ENVS, Returns, evaluate_returns


class Countdown(gym.Env):
    """Its episodes last the last digit of the seed plus one steps; the reward is the action."""

    observation_space = spaces.Box(0, 20, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (), np.float32)
    open = 0
    max_open = 0

    def __init__(self) -> None:
        Countdown.open += 1
        Countdown.max_open = max(Countdown.max_open, Countdown.open)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.digit = seed % 10
        self.left = self.digit + 1
        return self.look(), {}

    def step(self, action):
        if self.left == 0:
            raise AssertionError("stepped after the end")
        self.left -= 1
        return self.look(), float(action), self.left == 0, False, {}

    def look(self):
        return np.array([self.digit, self.left], float)

    def close(self) -> None:
        Countdown.open -= 1


class Endless(Countdown):
    def step(self, action):
        return self.look(), 0.5, False, False, {}


class Keyed(Countdown):
    observation_space = spaces.Dict({"digit": spaces.Discrete(10), "left": spaces.Box(0, 20, (1,), np.float32)})

    def look(self):
        return {"digit": self.digit, "left": np.array([self.left], np.float32)}


@pytest.fixture(autouse=True)
def registered_environments():
    Countdown.open = Countdown.max_open = 0
    for kind in (Countdown, Endless, Keyed):
        gym.register(f"test/{kind.__name__}-v0", kind)
    yield
    for kind in (Countdown, Endless, Keyed):
        del gym.registry[f"test/{kind.__name__}-v0"]


def tenth_of_the_digit(obs: np.ndarray) -> np.ndarray:
    return (obs[:, 0] / 10.0).astype(np.float32)


def one_by_one(predict, env_id: str, env_args: dict, episodes: int, seed: int) -> tuple[list[float], list[int]]:
    """The oracle: a fresh environment, a batch of one, one episode after another."""
    returns, lengths = [], []
    for episode in range(episodes):
        env = gym.make(env_id, **env_args)
        obs, _ = env.reset(seed=seed + episode)
        total, length, ended = 0.0, 0, False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(predict(obs[None])[0])
            total, length, ended = total + float(reward), length + 1, terminated or truncated
        returns.append(total)
        lengths.append(length)
    return returns, lengths


# --- known answers ---


@pytest.mark.parametrize("episodes", [1, 7, MAX_ENVS, MAX_ENVS + 1, 2 * MAX_ENVS + 30])
def test_episode_j_is_seeded_seed_plus_j_and_played_to_its_end(episodes):
    found = evaluate_returns(tenth_of_the_digit, "test/Countdown-v0", {}, episodes=episodes, seed=4)
    digits = (4 + np.arange(episodes)) % 10
    np.testing.assert_array_equal(found.lengths, digits + 1)
    np.testing.assert_allclose(found.returns, (digits + 1) * digits / 10.0, rtol=1e-6)


def test_means_and_standard_deviation():
    found = Returns(np.array([1.0, 2.0, 6.0]), np.array([10, 20, 60]))
    assert found.mean == 3.0
    assert found.std == pytest.approx(np.sqrt(14 / 3))
    assert found.length_mean == 30.0


def test_an_endless_episode_stops_at_max_steps():
    found = evaluate_returns(tenth_of_the_digit, "test/Endless-v0", {}, episodes=3, seed=0, max_steps=40)
    np.testing.assert_array_equal(found.lengths, [40, 40, 40])
    np.testing.assert_array_equal(found.returns, [20.0, 20.0, 20.0])


def test_a_time_limit_ends_an_episode():
    found = evaluate_returns(
        tenth_of_the_digit, "test/Countdown-v0", {"max_episode_steps": 3}, episodes=10, seed=0, max_steps=9
    )
    np.testing.assert_array_equal(found.lengths, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3])


def test_the_batch_keeps_its_size_and_ended_rows_keep_their_last_observation():
    seen = []

    def predict(obs):
        seen.append(obs.copy())
        obs[:] = np.nan  # the policy may change its copy
        return np.zeros(len(obs), np.float32)

    evaluate_returns(predict, "test/Countdown-v0", {}, episodes=5, seed=0)
    assert [obs.shape for obs in seen] == [(5, 2)] * 5
    np.testing.assert_array_equal(seen[0][:, 1], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(seen[3][:, 1], [0, 0, 0, 1, 2])
    np.testing.assert_array_equal(seen[3][:, 0], [0, 1, 2, 3, 4])


def test_observations_with_keys_come_as_a_dict_of_batches():
    seen = []

    def predict(obs):
        seen.append(obs)
        return (obs["digit"] / 10.0).astype(np.float32)

    found = evaluate_returns(predict, "test/Keyed-v0", {}, episodes=4, seed=2)
    np.testing.assert_array_equal(found.lengths, [3, 4, 5, 6])
    np.testing.assert_array_equal(seen[0]["digit"], [2, 3, 4, 5])
    assert seen[0]["left"].shape == (4, 1)


def test_no_more_than_a_hundred_environments_at_once_and_none_left_open():
    evaluate_returns(tenth_of_the_digit, "test/Countdown-v0", {}, episodes=250, seed=0)
    assert (Countdown.max_open, Countdown.open) == (100, 0)

    def fail(obs):
        raise RuntimeError("no idea")

    with pytest.raises(RuntimeError, match="no idea"):
        evaluate_returns(fail, "test/Countdown-v0", {}, episodes=3, seed=0)
    assert Countdown.open == 0


# --- against a plain loop ---


@pytest.mark.parametrize(
    ("env_id", "env_args"),
    [("CartPole-v1", {}), ("LunarLander-v3", {"gravity": -11.0}), ("Pendulum-v1", {"max_episode_steps": 30})],
)
def test_returns_equal_those_of_a_plain_loop(env_id, env_args, monkeypatch):
    if env_id.startswith("Lunar"):
        pytest.importorskip("Box2D")
    monkeypatch.setattr(returns_module, "MAX_ENVS", 8)
    space = gym.make(env_id, **env_args).action_space
    weights = np.random.default_rng(0).normal(size=gym.make(env_id).observation_space.shape)

    def predict(obs):
        score = (obs.astype(np.float64) * weights).sum(axis=1)  # row by row: the same bits at any width
        if isinstance(space, spaces.Discrete):
            return (np.abs(score * 100).astype(np.int64)) % space.n
        return np.tanh(score)[:, None].astype(np.float32)

    found = evaluate_returns(predict, env_id, env_args, episodes=20, seed=5)
    returns, lengths = one_by_one(predict, env_id, env_args, 20, 5)
    assert found.returns.tolist() == returns
    assert found.lengths.tolist() == lengths
    assert len(set(returns)) > 5


def test_a_network_is_deterministic():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))

    def predict(obs):
        with torch.no_grad():
            return net(torch.from_numpy(obs)).argmax(dim=1).numpy()

    one, other = (evaluate_returns(predict, "CartPole-v1", {}, episodes=30, seed=0) for _ in range(2))
    np.testing.assert_array_equal(one.returns, other.returns)
    np.testing.assert_array_equal(one.lengths, other.lengths)


def test_the_racer_can_be_evaluated():
    def predict(obs):
        return np.tile(np.float32([0.0, 1.0, 0.0]), (len(obs), 1))

    args = {"config": {"episode": {"maxSteps": 60}}}
    found = evaluate_returns(predict, "hotlap/Racer-v0", args, episodes=3, seed=0)
    np.testing.assert_array_equal(found.lengths, [60, 60, 60])
    assert found.returns.tolist() == one_by_one(predict, "hotlap/Racer-v0", args, 3, 0)[0]


# --- refusals ---


@pytest.mark.parametrize("wrong", [{"episodes": 0}, {"seed": -1}, {"max_steps": 0}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be . or more"):
        evaluate_returns(tenth_of_the_digit, "CartPole-v1", {}, **({"episodes": 1, "seed": 0} | wrong))


def test_too_few_actions_are_refused():
    with pytest.raises(ActionError, match="asked for 4 actions and gave 2"):
        evaluate_returns(lambda obs: np.zeros(2, np.float32), "test/Countdown-v0", {}, episodes=4, seed=0)


def test_an_unknown_environment_is_refused():
    with pytest.raises(ConfigError, match="Did you mean 'CartPole-v1'"):
        evaluate_returns(tenth_of_the_digit, "CartPool-v1", {}, episodes=1, seed=0)
