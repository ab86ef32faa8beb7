"""Stock parts of stable-baselines3 on our cars give the same results as on monitored single environments."""

import warnings

import numpy as np
import pytest
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, VecNormalize

from hotlap.envs.racer import RacerEnv
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv

# Episodes short enough that a tiny run sees several, ended by time and by standing still.
SHORT = {"episode": {"maxSteps": 25, "stillnessTimeoutTicks": 12, "start": "random"}}
SMALL = {"net_arch": [8]}


def dummy(num_envs: int) -> VecEnv:
    return DummyVecEnv([lambda: Monitor(RacerEnv(config=SHORT)) for _ in range(num_envs)])


def racer(num_envs: int, **options) -> RacerVecEnv:
    return RacerVecEnv(num_envs, config=SHORT, **options)


def ppo(env: VecEnv, **options) -> PPO:
    sizes = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "policy_kwargs": dict(SMALL)}
    return PPO("MlpPolicy", env, seed=3, device="cpu", **sizes, **options)


def weights(model) -> dict[str, list]:
    return {name: tensor.tolist() for name, tensor in model.policy.state_dict().items()}


def test_ppo_learns_the_same_weights_as_on_single_environments():
    learned = [ppo(VecNormalize(make(4), gamma=0.99)).learn(128) for make in (racer, dummy)]
    ours, theirs = learned
    assert weights(ours) == weights(theirs)
    assert ours.num_timesteps == theirs.num_timesteps == 128
    figures = [[(one["r"], one["l"]) for one in model.ep_info_buffer] for model in learned]
    assert figures[0] == figures[1]
    assert len(figures[0]) >= 4
    np.testing.assert_array_equal(ours._last_obs, theirs._last_obs)


def test_sac_stores_the_same_transitions_as_on_single_environments():
    stored = []
    for make in (racer, dummy):
        model = SAC(
            "MlpPolicy", make(2), learning_starts=60, batch_size=16, buffer_size=400, seed=3, policy_kwargs=dict(SMALL)
        )
        stored.append(model.learn(160).replay_buffer)
    ours, theirs = stored
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        np.testing.assert_array_equal(getattr(ours, name)[:80], getattr(theirs, name)[:80], err_msg=name)
    assert ours.timeouts[:80].any()


def test_ppo_learns_with_repeated_actions_and_stacked_observations():
    model = ppo(racer(4, action_repeat=3, stack=2)).learn(128)
    assert model.observation_space.shape == (28,)
    assert {info["l"] for info in model.ep_info_buffer} == {9}  # 25 ticks by threes


def test_evaluate_policy_gives_the_same_returns_and_no_warning():
    model = ppo(racer(3))
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (racer, dummy):
            env = make(3)
            env.seed(8)
            results.append(evaluate_policy(model, env, n_eval_episodes=7, return_episode_rewards=True))
    assert results[0] == results[1]
    assert len(results[0][0]) == 7


def test_the_stock_callbacks_evaluate_and_save(tmp_path):
    env = VecNormalize(racer(4))
    evaluation_env = VecNormalize(racer(2), training=False, norm_reward=False)
    evaluation_env.seed(1)
    callbacks = [
        EvalCallback(evaluation_env, n_eval_episodes=4, eval_freq=8, log_path=str(tmp_path), verbose=0),
        CheckpointCallback(save_freq=16, save_path=str(tmp_path), save_vecnormalize=True),
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*Monitor.*")
        ppo(env).learn(128, callback=callbacks)
    evaluations = np.load(tmp_path / "evaluations.npz")
    assert evaluations["timesteps"].tolist() == [32, 64, 96, 128]
    assert evaluations["results"].shape == (4, 4)
    assert sorted(path.name for path in tmp_path.glob("rl_model_*")) == [
        "rl_model_128_steps.zip",
        "rl_model_64_steps.zip",
        "rl_model_vecnormalize_128_steps.pkl",
        "rl_model_vecnormalize_64_steps.pkl",
    ]
    np.testing.assert_array_equal(evaluation_env.obs_rms.mean, env.obs_rms.mean)


def test_vec_monitor_counts_the_same_episodes():
    with pytest.warns(UserWarning, match="already wrapped"):
        env = VecMonitor(racer(3))
    plain = racer(3)
    for one in (env, plain):
        one.seed(4)
        one.reset()
    ends = 0
    for step in range(60):
        actions = np.random.default_rng(step).uniform(-1.0, 1.0, (3, 3)).astype(np.float32)
        _, _, dones, infos = env.step(actions)
        own = plain.step(actions)[3]
        for car in np.flatnonzero(dones):
            ends += 1
            assert infos[car]["episode"]["l"] == own[car]["episode"]["l"]
            assert infos[car]["episode"]["r"] == pytest.approx(own[car]["episode"]["r"], abs=2e-6)
    assert ends >= 6
