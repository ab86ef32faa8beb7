"""Training over the bridge with plain stable-baselines3, as a user would write it."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import hotlap
from hotlap.training.sb3.vec_envs.vector_env import GymVectorVecEnv

CONFIG = {"episode": {"maxSteps": 40, "stillnessTimeoutTicks": 15, "start": "random"}}
PPO_SIZE = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "seed": 0, "device": "cpu"}


def test_ppo_trains_saves_loads_and_predicts(bridge_server, tmp_path):
    def make() -> gym.Env:
        return Monitor(gym.make("hotlap/RemoteRacer-v0", bridge_url=bridge_server.url, config=CONFIG))

    venv = VecNormalize(DummyVecEnv([make, make]))
    model = PPO("MlpPolicy", venv, **PPO_SIZE)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(128)
    assert any((value != before[name]).any() for name, value in model.policy.state_dict().items())
    assert model.num_timesteps == 128
    assert len(model.ep_info_buffer) > 0

    model.save(tmp_path / "model")
    venv.save(tmp_path / "statistics.pkl")
    again = VecNormalize.load(str(tmp_path / "statistics.pkl"), DummyVecEnv([make]))
    again.training = False
    loaded = PPO.load(tmp_path / "model", device="cpu")
    again.seed(3)
    obs = again.reset()
    for _ in range(50):
        action, _ = loaded.predict(obs, deterministic=True)
        np.testing.assert_array_equal(action, model.predict(obs, deterministic=True)[0])
        obs, reward, _, _ = again.step(action)
        assert np.isfinite(obs).all()
        assert np.isfinite(reward).all()
    venv.close()
    again.close()


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_training_on_a_remote_batch_gives_the_weights_of_the_local_one(bridge_server, binary):
    def weights(batch: gym.vector.VectorEnv) -> dict[str, np.ndarray]:
        venv = VecNormalize(GymVectorVecEnv(batch))
        model = PPO("MlpPolicy", venv, **PPO_SIZE)
        model.learn(256)
        venv.close()
        return {name: value.numpy() for name, value in model.policy.state_dict().items()}

    remote = gym.make_vec(
        "hotlap/RemoteRacer-v0", 8, "vector_entry_point", bridge_url=bridge_server.url, config=CONFIG, binary=binary
    )
    local = weights(hotlap.RacerVectorEnv(8, config=CONFIG))
    for name, value in weights(remote).items():
        np.testing.assert_array_equal(value, local[name], err_msg=name)
