"""A whole update of the compiled PPO is that of torch, up to rounding."""

import numpy as np
import pytest
import torch

from hotlap.learning.compiled import entry_points
from hotlap.learning.compiled.layout import LOG_STD, NUM_SEEN, SIZE
from hotlap.learning.compiled.learner import CompiledPPO, CompiledRecipe
from hotlap.learning.compiled.model import PLACES
from hotlap.tracks.registry import load_track

RECIPE = CompiledRecipe(num_cars=128, num_steps=16, batch_rows=512, num_epochs=2, log_std_init=-0.7)
ADAM_EPS = 1e-5


@pytest.fixture(scope="module")
def judged():
    """A learner after its second rollout and before its update."""
    learner = CompiledPPO(load_track("track-01").ribbon, RECIPE, seed=3)
    learner.learn()
    record, arrays = learner._record, learner.arrays
    learner._on_parts(learner._collect)
    entry_points.merge(record, arrays, learner._tallies)
    for part in learner.parts:
        entry_points.judge(record, arrays, part)
    for part in learner.parts:
        entry_points.normalize(record, part, learner._tallies)
    return learner


class TorchUpdate:
    """The same networks, loss and optimizer, of torch and in float64."""

    def __init__(self, weights):
        self.values = {
            name: torch.tensor(take(weights, place), dtype=torch.float64, requires_grad=True)
            for name, place in PLACES.items()
        }
        self.log_std = torch.tensor(weights[LOG_STD:], dtype=torch.float64, requires_grad=True)
        self.parameters = [*self.values.values(), self.log_std]
        self.adam = torch.optim.Adam(self.parameters, lr=RECIPE.learning_rate, eps=ADAM_EPS)

    def network(self, name, head, observations):
        for layer in (f"mlp_extractor.{name}.0", f"mlp_extractor.{name}.2"):
            observations = torch.tanh(self.layer(layer, observations))
        return self.layer(head, observations)

    def layer(self, name, inputs):
        return inputs @ self.values[f"{name}.weight"].T + self.values[f"{name}.bias"]

    def loss(self, batch):
        means = 1.1 * torch.tanh(self.network("policy_net", "mlp_extractor.policy_net.4", batch["observations"]))
        noise = (batch["actions"] - means) / self.log_std.exp()
        log_probs = -0.5 * noise.square().sum(1) - self.log_std.sum()
        ratio = (log_probs - batch["log_probs"]).exp()
        clipped = ratio.clamp(1.0 - RECIPE.clip_range, 1.0 + RECIPE.clip_range)
        policy = -torch.minimum(ratio * batch["advantages"], clipped * batch["advantages"]).mean()
        values = self.network("value_net", "value_net", batch["observations"])[:, 0]
        return policy + RECIPE.value_weight * (values - batch["targets"]).square().mean()

    def step(self, batch):
        self.adam.zero_grad()
        self.loss(batch).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, RECIPE.max_grad_norm)
        self.adam.step()


def take(numbers, place):
    first, rows, columns = place
    if not columns:
        return numbers[first : first + rows].copy()
    return numbers[first : first + rows * SIZE].reshape(rows, SIZE)[:, :columns].copy()


def minibatch(learner, number):
    """The rows of all parts in a minibatch, as torch's float64."""
    rows = RECIPE.batch_rows // len(learner.parts)
    found = []
    for part in learner.parts:
        order = part.order[number * rows : (number + 1) * rows]
        found.append(
            {
                "observations": part.observations.reshape(-1, SIZE)[order, :NUM_SEEN],
                "actions": part.actions.reshape(2, -1)[:, order].T,
                **{name: getattr(part, name)[order] for name in ("log_probs", "advantages", "targets")},
            }
        )
    return {name: torch.tensor(np.concatenate([one[name] for one in found])).double() for name in found[0]}


def difference(reference, numbers, scale_of):
    """The largest difference of any array, as a fraction of its largest value."""
    pairs = [(take(numbers, place), scale_of(reference.values[name])) for name, place in PLACES.items()]
    pairs.append((numbers[LOG_STD : LOG_STD + 2], scale_of(reference.log_std)))
    return max(np.abs(mine - theirs).max() / np.abs(theirs).max() for mine, theirs in pairs)


def test_advantages_are_generalized_and_normalized(judged):
    gamma, decay = RECIPE.gamma, RECIPE.gamma * RECIPE.gae_lambda
    found = []
    for part in judged.parts:
        values, rewards, goes_on = (
            getattr(part, name).reshape(-1, 64).astype(float) for name in ("values", "rewards", "continues")
        )
        advantage, rows = np.zeros(64), []
        for step in reversed(range(RECIPE.num_steps)):
            error = rewards[step] + gamma * goes_on[step] * values[step + 1] - values[step]
            advantage = error + decay * goes_on[step] * advantage
            rows.append(advantage)
        found.append(np.array(rows[::-1]))
        np.testing.assert_allclose(part.targets.reshape(-1, 64), found[-1] + values[:-1], atol=1e-5)
    together = np.stack(found)
    normalized = (together - together.mean()) / together.std()
    mine = np.stack([part.advantages.reshape(-1, 64) for part in judged.parts])
    np.testing.assert_allclose(mine, normalized, atol=2e-5)


def test_gradients_are_those_of_autograd_and_the_whole_update_is_torchs(judged):
    record, arrays = judged._record, judged.arrays
    reference = TorchUpdate(arrays.weights)
    before = arrays.weights.copy()
    for epoch in range(RECIPE.num_epochs):
        for index, part in enumerate(judged.parts):
            entry_points.shuffle(record, index, arrays, epoch, part)
            assert sorted(part.order) == list(range(len(part.order)))
        for number in range(RECIPE.decisions_per_rollout // RECIPE.batch_rows):
            for part in judged.parts:
                entry_points.differentiate(record, arrays, part, number)
            batch = minibatch(judged, number)
            if epoch == number == 0:
                reference.loss(batch).backward()
                mine = judged._gradients.sum(0)
                assert difference(reference, mine, lambda value: value.grad.numpy()) < 2e-4
            entry_points.descend(record, arrays, judged._gradients, epoch == 1)
            reference.step(batch)
    assert difference(reference, arrays.weights, lambda value: value.detach().numpy()) < 2e-4
    assert np.abs(arrays.weights - before).max() > 1e-3
