"""A Gymnasium vector environment as a VecEnv: the same results as DummyVecEnv with monitored environments."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import hotlap
from hotlap.drivers.casual import CasualDriver
from hotlap.envs.infos import REWARD_KEYS
from hotlap.errors import ActionError, ConfigError
from hotlap.training.sb3.vec_envs.vector_env import GymVectorVecEnv

SHORT = {"episode": {"maxSteps": 40, "stillnessTimeoutTicks": 15, "start": "random"}}


def racers(num_envs: int, config: dict | None) -> tuple[GymVectorVecEnv, DummyVecEnv]:
    """The same cars twice: in one batch, and one by one in Monitors."""
    return (
        GymVectorVecEnv(hotlap.RacerVectorEnv(num_envs, config=config)),
        DummyVecEnv([lambda: Monitor(hotlap.RacerEnv(config=config)) for _ in range(num_envs)]),
    )


def poles(num_envs: int) -> tuple[GymVectorVecEnv, DummyVecEnv]:
    def make() -> gym.Env:
        return gym.make("CartPole-v1", max_episode_steps=20)

    batch = SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    return GymVectorVecEnv(batch), DummyVecEnv([lambda: Monitor(make()) for _ in range(num_envs)])


def compare(one: GymVectorVecEnv, other: DummyVecEnv, actions: list) -> list[bool]:
    """Step both and compare all results; for each episode that ended, whether it was truncated."""
    one.seed(11), other.seed(11)
    np.testing.assert_array_equal(one.reset(), other.reset())
    assert one.reset_infos == other.reset_infos
    ends = []
    for action in actions:
        mine, theirs = one.step(action), other.step(action)
        for a, b in zip(mine[:3], theirs[:3], strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        for number in np.flatnonzero(~theirs[2]):
            assert mine[3][number] == {}
        for number in np.flatnonzero(theirs[2]):
            info, expected = mine[3][number], theirs[3][number]
            np.testing.assert_array_equal(info.pop("terminal_observation"), expected.pop("terminal_observation"))
            assert min(info["episode"].pop("t"), expected["episode"].pop("t")) >= 0.0
            assert info == expected
            assert one.reset_infos[number].items() <= other.reset_infos[number].items()
            ends.append(info["TimeLimit.truncated"])
    return ends


def test_cars_equal_those_in_a_dummy_vec_env():
    one, other = racers(5, SHORT)
    rng = np.random.default_rng(0)
    actions = list(rng.uniform([-1, 0, 0], [1, 1, 1], (150, 5, 3)).astype(np.float32))
    for action in actions:
        action[0] = [0, 0, 1]  # stands still and is terminated, where others run into the time limit
    assert set(compare(one, other, actions)) == {False, True}


def test_third_party_environments_equal_those_in_a_dummy_vec_env():
    one, other = poles(4)
    rng = np.random.default_rng(0)
    # The first pole is balanced badly enough to fall, the others sway until the time limit or fall too.
    actions = [np.where(np.arange(4) == 0, 1, rng.integers(0, 2, 4)) for _ in range(200)]
    assert set(compare(one, other, actions)) == {False, True}


def test_a_lap_fills_the_info_of_its_car():
    one = GymVectorVecEnv(hotlap.RacerVectorEnv(2))
    one.seed(0)
    obs = one.reset()
    driver = CasualDriver()
    driver.begin(one.env.fleet, 0)
    laps = []
    for _ in range(2800):
        action = driver.act(obs)
        action[0] = [0, 0, 1]
        obs, _, dones, infos = one.step(action)
        if infos[1] and not dones[1]:
            laps.append(infos[1])
            assert dones[0] or infos[0] == {}
    [info] = laps
    assert 35.0 < info["lapTime"] < 45.0
    assert type(info["lapClean"]) is bool
    assert {"progress", "lap", "stepCount", "rawSpeed"} <= set(info)


def test_reward_terms_are_means_over_all_cars():
    one, other = racers(4, SHORT)
    assert one.reward_term_means == {}
    one.seed(3), other.seed(3)
    one.reset(), other.reset()
    assert one.reward_term_means == {}
    rng = np.random.default_rng(1)
    num_ended = 0
    for _ in range(60):
        action = rng.uniform([-1, 0, 0], [1, 1, 1], (4, 3)).astype(np.float32)
        _, _, dones, _ = one.step(action)
        infos = other.step(action)[3]
        num_ended += int(dones.sum())
        assert one.reward_term_means == {
            key: pytest.approx(np.mean([info[key] for info in infos]), abs=1e-12) for key in REWARD_KEYS
        }
    assert num_ended > 0


def test_environments_without_reward_terms_have_no_means():
    one, _ = poles(2)
    one.reset()
    one.step(np.array([0, 1]))
    assert one.reward_term_means == {}


def test_options_apply_to_the_next_reset_only():
    one = GymVectorVecEnv(hotlap.RacerVectorEnv(2))
    one.seed(0)
    one.set_options({"start": "random"})
    one.reset()
    assert all(info["speed"] > 0.0 for info in one.reset_infos)
    one.reset()
    assert all(info["speed"] == 0.0 for info in one.reset_infos)
    one.set_options([{"start": "random"}, {"start": "line"}])
    with pytest.raises(ConfigError, match="the same for all"):
        one.reset()


def test_without_a_seed_a_reset_begins_the_next_episodes():
    one, other = racers(3, SHORT)
    one.seed(5), other.seed(5)
    for _ in range(3):
        np.testing.assert_array_equal(one.reset(), other.reset())


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_other_autoreset_modes_are_refused(mode):
    env = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2, autoreset_mode=mode)
    with pytest.raises(ConfigError, match="autoreset mode must be same-step"):
        GymVectorVecEnv(env)


def test_actions_that_are_not_finite_are_refused():
    one, _ = racers(2, SHORT)
    one.reset()
    bad = np.full((2, 3), np.nan, np.float32)
    with pytest.raises(ActionError, match="finite"):
        one.step(bad)


def test_close_closes_the_vector_environment():
    closed = []
    env = hotlap.RacerVectorEnv(2)
    env.close = lambda: closed.append(True)
    GymVectorVecEnv(env).close()
    assert closed == [True]


@pytest.mark.timeout(60)  # importing torch is slow on a busy machine
def test_ppo_learns_and_is_evaluated_over_it():
    venv = VecNormalize(GymVectorVecEnv(hotlap.RacerVectorEnv(4, config=SHORT)))
    model = PPO("MlpPolicy", venv, n_steps=32, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(256)
    assert model.num_timesteps == 256
    assert len(model.ep_info_buffer) > 0
    mean, _ = evaluate_policy(model, venv, n_eval_episodes=2)
    assert np.isfinite(mean)
