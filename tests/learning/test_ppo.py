"""PPO collects, learns and logs what stable-baselines3's does, up to rounding, and owns its state."""

import math

import numpy as np
import pytest
import torch

from hotlap.errors import StateError
from hotlap.learning import ppo as ppo_module
from hotlap.learning.adam import as_tensors
from hotlap.learning.ppo import PPO
from hotlap.learning.schedules import LR_SCALE_RANGE
from hotlap.learning.thread_choice import ThreadChoice
from hotlap.training.learners import build_learner, is_ours
from hotlap.training.sb3.learner import SB3Learner
from small_learners import learn, ours, weights
from tiny_runs import tiny_config

LOGGED = {
    "approx_kl", "clip_fraction", "clip_range", "entropy_loss", "explained_variance", "loss", "learning_rate",
    "policy_gradient_loss", "std", "value_loss",
}  # fmt: skip
PEDAL_AXIS = {"net_arch": [8, 6], "activation": "tanh", "action_head": "pedal_axis"}
EPISODE = {"start": "random", "max_ticks": 21}


def configure(num_envs=6, num_rollouts=3, **changes):
    """A run of a few cars whose episodes end after a few decisions."""
    changes = {"policy": {"net_arch": [8, 6]}, **changes}
    changes["ppo"] = {"ent_coef": 0.01, "batch_size": 50, **changes.get("ppo", {})}
    n_steps = changes["ppo"].get("n_steps", 32)
    config = tiny_config(num_envs=num_envs, steps=num_rollouts * n_steps * num_envs, **changes)
    assert is_ours(config)
    return config


class Keep:
    """Keeps a copy of every rollout, as stable-baselines3's buffer has it."""

    def __init__(self):
        self.rollouts = []

    def __call__(self, learner):
        if isinstance(learner, PPO):
            rollout = learner._parts.rollout
            names = ("observations", "rewards", "log_probs", "advantages", "returns")
            tensors = {name: getattr(rollout, name) for name in names}
            tensors |= {"values": rollout.values[:-1], "actions": rollout.actions.permute(1, 2, 0)}
            found = {name: tensor.numpy().copy() for name, tensor in tensors.items()}
            ended = rollout.ended[:-1].numpy()
        else:
            buffer = learner.model.rollout_buffer
            names = ("observations", "actions", "rewards", "values", "log_probs", "advantages", "returns")
            found = {name: getattr(buffer, name).copy() for name in names}
            ended = buffer.episode_starts[1:]
        self.rollouts.append({**found, "ended": ended.astype(np.float32)})


# --- against stable-baselines3 ---


ROLLOUTS = {
    "normalized": {},
    "as they are": {"normalize": {"obs": False, "reward": False}},
    "rewards only": {"normalize": {"obs": False}},
    "clipped observations": {"normalize": {"reward": False, "clip_obs": 0.5}},
    "stacked": {"racer": {"stack": 3, "lap_fourier": 2, "action_repeat": 2, "episode": EPISODE}},
    "road": {"racer": {"observation": "road", "lap_fourier": 2, "episode": EPISODE}},
    "short episodes": {"racer": {"episode": {"start": "random", "max_ticks": 5}}},  # several per car and rollout
    "pedal axis": {"policy": PEDAL_AXIS},
}


@pytest.mark.parametrize("changes", ROLLOUTS.values(), ids=ROLLOUTS)
def test_rollouts_are_those_of_the_library(changes):
    # The same policy throughout, so that rounding cannot add up.
    config = configure(**changes, ppo={"learning_rate": 1e-12})
    mine, theirs = Keep(), Keep()
    learn(ours(config), on_rollout=mine)
    learn(SB3Learner(config), on_rollout=theirs)
    assert len(mine.rollouts) == len(theirs.rollouts) == 3
    for one, other in zip(mine.rollouts, theirs.rollouts, strict=True):
        assert one["ended"].sum() > 5  # some of them cut off by the time limit
        for name, array in one.items():
            np.testing.assert_allclose(array, other[name], rtol=1e-5, atol=1e-5, err_msg=name)


def library_moments(model):
    """Adam's means of the gradients; the library keeps none of a layer that is not trained, ours are zero."""
    states = model.policy.optimizer.state
    parameters = dict(model.policy.named_parameters())
    return {
        name: states[one]["exp_avg"] if one in states else torch.zeros_like(one) for name, one in parameters.items()
    }


@pytest.mark.parametrize(
    "policy", [*({"net_arch": [8, 6], "activation": name} for name in ("tanh", "relu", "elu")), PEDAL_AXIS]
)
@pytest.mark.parametrize("more", [{}, {"desired_kl": 0.01, "final_lr_fraction": 0.3, "min_std": 0.9}])
def test_training_gives_the_weights_and_figures_of_the_library(policy, more):
    config = configure(num_rollouts=2, policy=policy, ppo=more)
    mine, figures = learn(ours(config))
    theirs, their_figures = learn(SB3Learner(config))
    np.testing.assert_allclose(weights(mine), weights(theirs), rtol=1e-4, atol=1e-5)
    moments = mine._adam.state_dict()["exp_avg"]
    for name, moment in library_moments(theirs.model).items():
        np.testing.assert_allclose(moments[name], moment, rtol=1e-3, atol=1e-4, err_msg=name)
    assert {name.removeprefix("train/") for name in figures} == LOGGED
    assert figures.keys() == their_figures.keys()
    for name, figure in figures.items():
        assert figure == pytest.approx(their_figures[name], rel=1e-2, abs=1e-4), name
    normalizer, expected = mine.policy().normalizer, theirs.policy().normalizer
    assert normalizer.keys() == expected.keys()
    for name, array in normalizer.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


def told(learner, describe):
    """What a learner tells of each of its steps."""
    steps = []
    learn(learner, on_step=lambda events: steps.append(describe(events)) is None)
    return steps


def test_the_learner_tells_the_steps_that_the_library_tells():
    def describe(events):
        terms = [round(value, 5) for value in events.reward_terms.values()]
        return events.num_timesteps, events.envs.tolist(), list(events.episodes()), events.infos["lap"].tolist(), terms

    config = configure(ppo={"n_steps": 96})
    seen = [told(learner, describe) for learner in (ours(config), SB3Learner(config))]
    for (*one, episodes, laps, terms), (*other, their_episodes, their_laps, their_terms) in zip(*seen, strict=True):
        assert (one, laps) == (other, their_laps)
        assert np.array(episodes) == pytest.approx(np.array(their_episodes), abs=1e-5)
        assert terms == pytest.approx(their_terms, abs=1e-4)
    assert sum(len(episodes) for *_, episodes, _, _ in seen[0]) > 10


# --- the same bits ---


def trained(config, num_rollouts=None):
    return weights(learn(ours(config), num_rollouts)[0])


def test_two_runs_give_the_same_bits_and_another_seed_does_not():
    np.testing.assert_array_equal(trained(configure(seed=1)), trained(configure(seed=1)))
    assert (trained(configure(seed=1)) != trained(configure(seed=2))).any()


def test_the_global_generators_are_neither_read_nor_changed():
    expected = trained(configure())
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(trained(configure()), expected)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


@pytest.mark.parametrize("more", [{}, {"normalize": {"obs": False, "reward": False}}, {"policy": PEDAL_AXIS}])
def test_a_learner_restored_in_the_middle_goes_on_with_the_same_bits(more):
    config = configure(num_rollouts=4, ppo={"desired_kl": 0.01, "final_lr_fraction": 0.3}, **more)
    expected = trained(config)
    first, _ = learn(ours(config), 2)
    state = first.state_dict()
    learn(first, 1)  # what was captured does not change with it
    resumed = ours(config)
    resumed.load_state_dict(state)
    assert resumed.num_timesteps == 2 * 32 * 6
    np.testing.assert_array_equal(weights(learn(resumed)[0]), expected)


def test_a_state_of_another_network_or_number_of_cars_is_refused():
    state = ours(configure()).state_dict()
    with pytest.raises(StateError, match="must have shape"):
        ours(configure(policy={"net_arch": [9, 6]})).load_state_dict(state)
    with pytest.raises(StateError, match="running returns"):
        ours(configure(num_envs=5)).load_state_dict(state)
    with pytest.raises(StateError, match="has a normalizer"):
        ours(configure(normalize={"obs": False, "reward": False})).load_state_dict(state)


# --- graphs, on the CPU: the same code, without a GPU to replay it ---


class GraphedPPO(PPO):
    """Works as on a GPU: captures a rollout and an update, and draws minibatches on the device."""

    _uses_graphs = True


@pytest.fixture
def graphed(monkeypatch):
    """Builds learners that work as on a GPU."""

    def build(config):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hotlap.training.learners.PPO", GraphedPPO)
            return build_learner(config)

    return build


def test_capturing_changes_nothing_of_the_first_rollout(graphed):
    mine, plain = Keep(), Keep()
    learn(graphed(configure()), 1, on_rollout=mine)
    learn(ours(configure()), 1, on_rollout=plain)
    for name, array in mine.rollouts[0].items():
        np.testing.assert_array_equal(array, plain.rollouts[0][name], err_msg=name)


def test_the_same_steps_are_told_with_graphs(graphed):
    def describe(events):
        rows = (events.envs, events.has_ended, events.returns, events.lengths, events.infos["stepCount"])
        return events.num_timesteps, [row.tolist() for row in rows], events.reward_terms

    config = configure(num_rollouts=1, ppo={"n_steps": 96})
    seen = [told(learner, describe) for learner in (graphed(config), ours(config))]
    assert seen[0] == seen[1]
    assert sum(len(rows[0]) for _, rows, _ in seen[0]) > 10


def test_the_learning_rate_is_that_of_the_library_with_graphs(graphed):
    config = configure(ppo={"final_lr_fraction": 0.1})
    learner, figures = learn(graphed(config))
    _, expected = learn(SB3Learner(config))
    assert figures["train/learning_rate"] == pytest.approx(expected["train/learning_rate"])
    assert float(learner._adam._lr) == pytest.approx(0.1 * 3e-4)  # at the end of the run


def test_with_graphs_two_runs_give_the_same_bits(graphed):
    first, second = (weights(learn(graphed(configure()))[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != weights(graphed(configure()))).any()


def test_graphs_that_were_released_are_captured_again_and_change_nothing(graphed):
    found = []
    for is_released in (False, True):
        learner, _ = learn(graphed(configure(num_rollouts=4)), 2)
        if is_released:
            learner.close()
            assert learner._parts is None
        found.append(weights(learn(learner)[0]))
    np.testing.assert_array_equal(*found)


# --- the step budget ---


@pytest.mark.parametrize(("num_envs", "steps", "done"), [(1, 33, 33), (3, 50, 51), (6, 192, 192)])
def test_the_last_rollout_is_as_short_as_the_budget_requires(num_envs, steps, done):
    config = tiny_config(num_envs=num_envs, steps=steps, policy={"net_arch": [8]}, ppo={"batch_size": 16})
    learner, _ = learn(ours(config))
    assert learner.num_timesteps == done
    assert np.isfinite(weights(learner)).all()


# --- threads ---


@pytest.mark.parametrize("is_better", [True, False])
def test_threads_change_no_bit(monkeypatch, is_better):
    expected = trained(configure(num_rollouts=2))
    monkeypatch.setattr(ThreadChoice, "should_use", lambda self: is_better)
    np.testing.assert_array_equal(trained(configure(num_rollouts=2)), expected)


# --- the standard deviation ---


@pytest.mark.parametrize(("remaining", "min_std"), [(1.0, 0.5), (0.5, 0.3), (0.0, 0.1)])
def test_the_standard_deviation_is_clamped(remaining, min_std):
    learner = ours(configure(ppo={"min_std": 0.5, "final_min_std": 0.1}))
    for std in (0.01, 5.0):
        learner._adam.value(ppo_module.LOG_STD).fill_(math.log(std))
        learner._limit_std(remaining)
        assert learner.policy().weights["log_std"] == pytest.approx(math.log(max(std, min_std)))


def test_the_weights_of_a_model_are_taken_over():
    config = configure()
    model, _ = learn(ours(config))
    started = ours(configure(seed=7))
    started.load_policy(model.policy())
    assert torch.equal(started._adam.values, model._adam.values)
    np.testing.assert_array_equal(started.policy().normalizer["obs_mean"], model.policy().normalizer["obs_mean"])
    assert as_tensors(model.policy().weights).keys() == started.policy().weights.keys()


def test_a_start_model_begins_with_the_lowest_learning_rate_that_may_adapt():
    """A policy with little noise is lost in one update at the rate of a new one."""
    policy = learn(ours(configure()))[0].policy()
    for desired_kl, scale in ((0.01, LR_SCALE_RANGE[0]), (None, 1.0)):
        started = ours(configure(seed=7, ppo={"desired_kl": desired_kl, "learning_rate": 1e-3}))
        started.load_policy(policy)
        assert started._learning_rate(1.0) == pytest.approx(scale * 1e-3)
