"""TensorPPO collects, learns and logs what stable-baselines3's PPO does, up to rounding."""

import math

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

from hotlap.training.algorithms import registry
from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.mlp import ActorCritic
from hotlap.training.algorithms.ppo import HotlapPPO
from hotlap.training.algorithms.ppo_update import LossSettings, MinibatchLosses, PPOUpdate, Rollout, ThreadChoice
from hotlap.training.algorithms.tensor_ppo import TensorPPO
from tiny_runs import tiny_config
from training.algorithms.small_learners import weights
from training.algorithms.tiny_learners import make_learner

LOGGED = {
    "approx_kl", "clip_fraction", "clip_range", "entropy_loss", "explained_variance", "loss", "learning_rate",
    "n_updates", "policy_gradient_loss", "std", "value_loss",
}  # fmt: skip


PEDAL_AXIS = {"net_arch": [8, 6], "activation": "tanh", "action_head": "pedal_axis"}
LOCAL_NAMES_LEFT_OUT = {"n_steps", "obs_tensor", "idx", "done", "terminal_obs", "terminal_value", "values"}
ARRAYS = ("observations", "actions", "rewards", "values", "log_probs", "advantages", "returns")


def build(kind=TensorPPO, num_envs=6, **changes):
    """A learner of that class for a few cars whose episodes end after a few decisions."""
    changes = {"policy": {"net_arch": [8, 6]}, "ppo": {"ent_coef": 0.01, "batch_size": 50}, **changes}
    config = tiny_config(num_envs=num_envs, **changes)
    assert registry.learner_class(config) is TensorPPO
    return make_learner(kind, config)


class Keep(BaseCallback):
    """Keeps a copy of every rollout, as stable-baselines3's buffer has it, and the names that callbacks can read."""

    def __init__(self):
        super().__init__()
        self.rollouts, self.names = [], set()

    def _on_step(self):
        self.names |= set(self.locals)
        return True

    def _on_rollout_end(self):
        if isinstance(self.model, TensorPPO):
            rollout = self.model.rollout
            tensors = {
                name: getattr(rollout, name)
                for name in ("observations", "rewards", "log_probs", "advantages", "returns")
            }
            tensors |= {"values": rollout.values[:-1], "actions": rollout.actions.permute(1, 2, 0)}
            arrays = {name: tensor.numpy().copy() for name, tensor in tensors.items()}
            ended = rollout.ended[:-1].numpy()
        else:
            buffer = self.model.rollout_buffer
            arrays = {name: getattr(buffer, name).copy() for name in ARRAYS}
            ended = buffer.episode_starts[1:]
        self.rollouts.append({**arrays, "ended": ended.astype(np.float32)})


# --- against stable-baselines3 ---


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"normalize": {"obs": False, "reward": False}},
        {"normalize": {"obs": False}},
        {"normalize": {"reward": False, "clip_obs": 0.5}},
        {
            "racer": {
                "stack": 3,
                "lap_fourier": 2,
                "action_repeat": 2,
                "episode": {"start": "random", "max_ticks": 21},
            }
        },
        {
            "racer": {
                "observation": "road",
                "lap_fourier": 2,
                "episode": {"start": "random", "max_ticks": 21},
            }
        },
        {"racer": {"episode": {"start": "random", "max_ticks": 5}}},  # each car is cut off several times per rollout
        {"policy": PEDAL_AXIS},
    ],
    ids=[
        "normalized",
        "as they are",
        "rewards only",
        "clipped observations",
        "stacked",
        "road",
        "short episodes",
        "pedal axis",
    ],
)
def test_rollouts_are_those_of_the_library(changes):
    ours, theirs = Keep(), Keep()
    for kind, keep in ((TensorPPO, ours), (HotlapPPO, theirs)):
        learner = build(kind, **changes)
        learner.learning_rate = 0.0
        learner.lr_schedule = lambda _: 0.0  # the same policy throughout, so that rounding cannot add up
        learner.learn(3 * 32 * 6, callback=keep)
    assert len(ours.rollouts) == 3
    for one, other in zip(ours.rollouts, theirs.rollouts, strict=True):
        assert one["ended"].sum() > 5  # some of them cut off by the time limit
        for name, array in one.items():
            np.testing.assert_allclose(array, other[name], rtol=1e-5, atol=1e-5, err_msg=name)
    assert theirs.names - ours.names == LOCAL_NAMES_LEFT_OUT


def moments_of(policy):
    """Adam's means of the gradients; the library keeps none of a layer that is not trained, ours are zero."""
    states = policy.optimizer.state
    zeros = [torch.zeros_like(parameter) for parameter in policy.parameters()]
    found = [
        states[one]["exp_avg"] if one in states else zero for one, zero in zip(policy.parameters(), zeros, strict=True)
    ]
    return torch.cat([each.flatten() for each in found]).numpy()


@pytest.mark.parametrize(
    "policy", [*({"net_arch": [8, 6], "activation": name} for name in ("tanh", "relu", "elu")), PEDAL_AXIS]
)
def test_training_gives_the_weights_and_figures_of_the_library(policy):
    found = {}
    for kind in (TensorPPO, HotlapPPO):
        learner = build(kind, policy=policy)
        learner.learn(2 * 32 * 6)
        values = dict(learner.logger.name_to_value)
        found[kind] = weights(learner), moments_of(learner.policy), values
    (ours, our_moments, our_log), (theirs, their_moments, their_log) = found.values()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(our_moments, their_moments, rtol=1e-3, atol=1e-4)
    assert {name.removeprefix("train/") for name in our_log if name.startswith("train/")} == LOGGED
    assert our_log.keys() == their_log.keys()
    for name in our_log.keys() - {"time/fps", "time/time_elapsed"}:
        assert our_log[name] == pytest.approx(their_log[name], rel=1e-2, abs=1e-4), name


def oracle_gradients(policy, rollout, settings):
    """The gradients of stable-baselines3's loss by autograd, before clipping, and the two losses."""
    values, log_prob, entropy = policy.evaluate_actions(rollout.observations, rollout.actions.t())
    advantages = rollout.advantages
    if settings.normalize_advantage:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = torch.exp(log_prob - rollout.log_probs)
    clipped = advantages * torch.clamp(ratio, 1 - settings.clip_range, 1 + settings.clip_range)
    policy_loss = -torch.min(advantages * ratio, clipped).mean()
    value_loss = nn.functional.mse_loss(rollout.returns, values.flatten())
    loss = policy_loss - settings.ent_coef * entropy.mean() + settings.vf_coef * value_loss
    policy.optimizer.zero_grad()
    loss.backward()
    return policy_loss.item(), value_loss.item()


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
@pytest.mark.parametrize("net_arch", [[64, 64], [16], [24, 8, 12]])
@pytest.mark.parametrize("normalize_advantage", [True, False])
def test_every_gradient_is_that_of_autograd(activation, net_arch, normalize_advantage):
    policy = build(policy={"net_arch": net_arch, "activation": activation}).policy
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    num_rows, num_obs = 500, policy.observation_space.shape[0]
    rollout = Rollout(
        normal(num_rows, num_obs), normal(3, num_rows), normal(num_rows) - 4.0, normal(num_rows), normal(num_rows)
    )
    settings = LossSettings(0.2, 0.01, 0.5, math.inf, normalize_advantage)
    policy_loss, value_loss = oracle_gradients(policy, rollout, settings)
    expected = {name: parameter.grad.clone() for name, parameter in policy.named_parameters()}
    adam = FlatAdam(policy.optimizer)
    update = PPOUpdate(adam, ActorCritic.of(policy), policy.log_std, rollout, settings, num_rows)
    losses = MinibatchLosses(*update.run([torch.arange(num_rows)]).numpy().T)
    for name, parameter in policy.named_parameters():
        ours, oracle = adam.gradient(parameter), expected[name]
        assert float((ours - oracle).abs().max()) <= 1e-5 * float(oracle.abs().max()), name
    assert losses.policy == pytest.approx([policy_loss], rel=1e-5)
    assert losses.value == pytest.approx([value_loss], rel=1e-5)
    assert 0.05 < losses.clip_fraction.item() < 0.999


# --- the same bits ---


def test_two_runs_give_the_same_bits_and_another_seed_does_not():
    def trained(seed):
        learner = build()
        learner.set_random_seed(seed)
        return weights(learner.learn(3 * 32 * 6))

    np.testing.assert_array_equal(trained(1), trained(1))
    assert (trained(1) != trained(2)).any()


# --- graphs, on the CPU: the same code, without a GPU to replay it ---


class GraphedPPO(TensorPPO):
    """Works as on a GPU: captures a rollout and an update, and draws minibatches on the device."""

    uses_graphs = True


def test_capturing_changes_nothing_of_the_first_rollout():
    ours, plain = Keep(), Keep()
    build(GraphedPPO).learn(32 * 6, callback=ours)
    build(TensorPPO).learn(32 * 6, callback=plain)
    for name, array in ours.rollouts[0].items():
        np.testing.assert_array_equal(array, plain.rollouts[0][name], err_msg=name)


def test_callbacks_see_the_same_laps_and_episodes_with_graphs():
    seen = {}
    for kind in (GraphedPPO, TensorPPO):
        keep = Events()
        build(kind, ppo={"n_steps": 96}).learn(96 * 6, callback=keep)
        seen[kind] = keep.events
    assert seen[GraphedPPO] == seen[TensorPPO]
    assert len(seen[TensorPPO]) > 10


class Events(BaseCallback):
    """Keeps step, car and info of every lap and ended episode, without the time of day."""

    def __init__(self):
        super().__init__()
        self.events = []

    def _on_step(self):
        for car, info in enumerate(self.locals["infos"]):
            if info:
                info["episode"].pop("t")
                self.events.append((self.num_timesteps, car, info))
        return True


def test_the_learning_rate_is_that_of_the_library_with_graphs():
    rates = []
    for kind in (GraphedPPO, HotlapPPO):
        learner = build(kind, ppo={"final_lr_fraction": 0.1, "batch_size": 50})
        learner.learn(3 * 32 * 6)
        rates.append(learner.policy.optimizer.param_groups[0]["lr"])
    assert rates[0] == pytest.approx(rates[1])
    assert rates[0] == pytest.approx(0.1 * 3e-4)  # at the end of the run


def test_with_graphs_two_runs_give_the_same_bits():
    first, second = (weights(build(GraphedPPO).learn(3 * 32 * 6)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != weights(build(GraphedPPO))).any()


def test_graphs_that_were_released_are_captured_again_and_change_nothing():
    found = []
    for is_released in (False, True):
        learner = build(GraphedPPO).learn(2 * 32 * 6)
        if is_released:
            learner.release_graphs()
            assert learner._graphs is None
        found.append(weights(learner.learn(2 * 32 * 6, reset_num_timesteps=False)))
        assert learner._graphs is not None
    np.testing.assert_array_equal(*found)


# --- what is left to the library ---


@pytest.mark.parametrize(
    "change",
    [
        lambda learner: setattr(learner, "target_kl", 0.01),
        lambda learner: setattr(learner, "clip_range_vf", lambda _: 0.2),
        lambda learner: setattr(learner.policy, "optimizer", torch.optim.SGD(learner.policy.parameters(), 1e-3)),
        lambda learner: setattr(learner.policy.mlp_extractor, "policy_net", nn.Sequential(nn.Linear(14, 6), nn.GELU())),
    ],
)
def test_settings_that_it_does_not_know_are_left_to_the_library(change):
    learner = build()
    assert learner.own_nets() is not None
    change(learner)
    assert learner.own_nets() is None


def test_target_kl_ends_an_update_early():
    learner = build(ppo={"target_kl": 1e-9, "n_epochs": 5})
    learner.learn(2 * 32 * 6)
    assert learner._n_updates < 2 * 5


def test_a_budget_that_cuts_the_last_rollout_short_gives_finite_weights():
    learner = build(num_envs=1).learn(32 + 1)
    assert learner.rollout_steps == 1
    assert np.isfinite(weights(learner)).all()


# --- threads ---


@pytest.mark.parametrize(("threaded_s", "is_better"), [(0.8, True), (1.2, False)])
def test_a_second_thread_is_used_where_it_is_faster(threaded_s, is_better):
    choice = ThreadChoice(num_trials=3)
    tried = []
    for _ in range(6):
        tried.append(choice.should_use())
        choice.note(tried[-1], threaded_s if tried[-1] else 1.0)
    assert tried == [True, False] * 3
    assert [choice.should_use() for _ in range(3)] == [is_better] * 3


@pytest.mark.parametrize("is_better", [True, False])
def test_threads_change_no_bit(monkeypatch, is_better):
    expected = weights(build().learn(2 * 32 * 6))
    monkeypatch.setattr(ThreadChoice, "should_use", lambda self: is_better)
    np.testing.assert_array_equal(weights(build().learn(2 * 32 * 6)), expected)
