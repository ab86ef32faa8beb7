"""The action head `pedal_axis`: bounded mean actions in an ordinary network, which every export can hold."""

import numpy as np
import onnxruntime
import pytest
import torch
from stable_baselines3 import PPO

from hotlap.errors import ConfigError
from hotlap.models.actor import pack_model
from hotlap.models.model_file import PolicySettings, read_model
from hotlap.models.onnx_export import policy_graph
from hotlap.models.policy import LearnedPolicy
from hotlap.models.sb3_exchange import export_sb3, read_sb3
from hotlap.runs.run_config import RunConfig
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.training.sb3.learner import SB3Learner
from tiny_runs import skip_evaluation, tiny_config, train

POLICY = {"net_arch": [8, 6], "activation": "tanh", "action_head": "pedal_axis"}
HEAD = np.array([[1.1, 0.0], [0.0, 1.1], [0.0, -1.1]], np.float32)


def observations(size=200):
    return np.random.default_rng(0).normal(0.0, 3.0, (size, 14)).astype(np.float32)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model after a few updates, with weights so large that its actions fill their range."""
    skip_evaluation(monkeypatch)
    train(tiny_config(policy=POLICY), tmp_path)
    found = read_model(tmp_path / "ppo_seed42_model.zip")
    for name, array in found.weights.items():
        if "policy_net" in name:
            array *= 20.0
    return found


def test_mean_actions_stay_near_their_bounds_and_throttle_mirrors_the_brake():
    learner = SB3Learner(tiny_config(policy=POLICY)).model
    with torch.no_grad():
        for parameter in learner.policy.mlp_extractor.parameters():
            parameter.mul_(1000.0)
    means = learner.policy.get_distribution(torch.from_numpy(observations())).distribution.mean.detach().numpy()
    assert np.abs(means).max() <= np.float32(1.1)
    assert np.abs(means).max() > 1.0
    np.testing.assert_array_equal(means[:, 1], -means[:, 2])


def test_noise_presses_one_pedal_or_the_other():
    policy = SB3Learner(tiny_config(policy=POLICY)).model.policy
    obs = torch.from_numpy(observations(20_000))
    with torch.no_grad():
        actions, _, log_probs = policy(obs)
        _, log_probs_again, entropy = policy.evaluate_actions(obs, actions)
        means, std = policy.get_distribution(obs).distribution.mean, policy.log_std.exp()
        noise = actions - means
        axes = torch.distributions.Normal(means[:, :2], std[:2])  # steering and pedals
    torch.testing.assert_close(noise[:, 1], -noise[:, 2])
    assert noise.std(0).numpy() == pytest.approx(std.numpy(), rel=0.03)
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.03
    torch.testing.assert_close(log_probs, axes.log_prob(actions[:, :2]).sum(1))
    torch.testing.assert_close(log_probs_again, log_probs)
    torch.testing.assert_close(entropy, axes.entropy().sum(1))


@pytest.mark.parametrize("algo", ["ppo", "a2c"])
def test_the_brakes_standard_deviation_follows_the_throttles(algo, tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    train(tiny_config(algo=algo, policy=POLICY), tmp_path)
    steer, throttle, brake = read_model(tmp_path / f"{algo}_seed42_model.zip").weights["log_std"]
    assert brake == throttle != steer


def test_a_new_policy_starts_from_free_pedals():
    learner = SB3Learner(tiny_config(policy=POLICY)).model
    means = learner.policy.get_distribution(torch.from_numpy(observations())).distribution.mean
    assert float(means.detach().abs().max()) < 0.1


def test_the_head_is_not_trained_and_the_rest_is(model):
    np.testing.assert_array_equal(model.weights["action_net.weight"], HEAD)
    np.testing.assert_array_equal(model.weights["action_net.bias"], np.zeros(3, np.float32))
    assert model.weights["mlp_extractor.policy_net.4.weight"].shape == (2, 6)
    assert model.weights["mlp_extractor.value_net.2.weight"].shape == (6, 8)
    assert model.weights["log_std"].any()


def test_onnx_plain_stable_baselines3_and_the_kernel_give_its_actions(model, tmp_path):
    obs, policy = observations(), LearnedPolicy.from_file(model)
    expected = policy.act(obs)
    assert (expected[:, 1] * expected[:, 2] == 0.0).all()  # never both pedals
    assert len(np.unique(expected[:, 0])) > 50
    export_sb3(model, tmp_path / "plain")
    again = read_sb3(tmp_path / "plain.zip", "hotlap/Racer-v0")
    assert again.card.policy == model.card.policy
    np.testing.assert_array_equal(LearnedPolicy.from_file(again).act(obs), expected)
    assert PPO.load(tmp_path / "plain.zip").policy.action_net.weight.shape == (3, 2)
    packed = pack_model(model)
    memory = make_memory(packed, len(obs))
    decide_cars(packed, obs, memory)
    np.testing.assert_allclose(memory.actions, expected, atol=1e-5)
    session = onnxruntime.InferenceSession(policy_graph(model).SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"observation": obs})[0], memory.actions)


@pytest.mark.parametrize("settings", [{}, {"net_arch": (8,)}, {"net_arch": (8,), "activation": "elu"}])
def test_it_needs_hidden_layers_with_tanh(settings):
    with pytest.raises(ConfigError, match="action_head: pedal_axis needs net_arch and the activation tanh"):
        PolicySettings(action_head="pedal_axis", **settings)


@pytest.mark.parametrize("changes", [{"env": "Pendulum-v1"}, {"algo": "sac"}])
def test_it_is_for_the_racer_with_an_actor_critic_only(changes):
    policy = PolicySettings(net_arch=(8,), activation="tanh", action_head="pedal_axis")
    with pytest.raises(ConfigError, match=r"policy\.action_head: pedal_axis is for hotlap/Racer-v0 with PPO or A2C"):
        RunConfig(policy=policy, **changes)
