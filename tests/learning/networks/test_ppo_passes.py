"""The passes of PPO's two networks: the gradients of autograd, and the same bits compiled, in a second thread."""

import threading

import pytest
import torch
from torch import nn

from hotlap.learning.networks.mlp import Mlp
from hotlap.learning.networks.passes import compiled
from hotlap.learning.networks.ppo_passes import NUM_LOSSES, BatchInputs, Decisions, pass_policy, pass_value

NUM_INPUTS, MAX_ROWS, NUM_AXES = 13, 300, 2
CLIP_RANGE, ENT_COEF, VF_COEF = 0.2, 0.01, 0.5
ACTIVATIONS = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.ELU: "elu"}

over_networks = pytest.mark.parametrize("hidden", [[96, 96], [24, 8, 12], [16], []])
over_activations = pytest.mark.parametrize("module", [nn.Tanh, nn.ReLU, nn.ELU])
over_rows = pytest.mark.parametrize("num_rows", [MAX_ROWS, 7])


@pytest.fixture(autouse=True)
def one_thread():
    """As in a training: the bits of a product depend on the number of torch's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pairs(widths, fill):
    shapes = zip(widths[1:], widths, strict=False)
    return [(fill(num_outputs, num_inputs), fill(num_outputs)) for num_outputs, num_inputs in shapes]


class Case:
    """A network with its gradients, and a minibatch; the same values for the same arguments."""

    def __init__(self, hidden, module, num_rows, num_outputs):
        torch.manual_seed(1)
        widths = [NUM_INPUTS, *hidden, num_outputs]
        self.module = module
        self.layers = pairs(widths, lambda *shape: 0.3 * torch.randn(*shape))
        self.gradients = pairs(widths, torch.empty)
        self.net = Mlp(self.layers, ACTIVATIONS[module], MAX_ROWS, self.gradients).net
        self.observations = torch.randn(num_rows, NUM_INPUTS)
        vectors = torch.randn(3, num_rows) - torch.tensor([[2.5], [0.0], [0.0]])
        self.batch = Decisions(torch.arange(num_rows), torch.randn(NUM_AXES, num_rows), *vectors)
        self.log_std, self.log_std_gradient = torch.tensor([-0.3, 0.2]), torch.empty(NUM_AXES)
        self.losses = torch.zeros(NUM_LOSSES)
        self.gathered, table = torch.empty(3, NUM_INPUTS), torch.randn(50, NUM_INPUTS)
        self.following = BatchInputs(table, torch.tensor([3, 1, 44]), self.gathered)

    def pass_policy(self, function):
        own = self.net, self.observations, self.batch, self.log_std, self.log_std_gradient
        function(*own, CLIP_RANGE, ENT_COEF, self.losses)

    def pass_value(self, function):
        function(self.net, self.observations, self.batch.returns, VF_COEF, self.losses, self.following)

    def outputs(self):
        """The network's outputs by torch, whose layers require gradients."""
        values = self.observations
        for index, (weight, bias) in enumerate(self.layers):
            values = nn.functional.linear(values, weight.requires_grad_(), bias.requires_grad_())
            values = self.module()(values) if index + 1 < len(self.layers) else values
        return values

    def results(self):
        return [*sum(self.gradients, ()), self.log_std_gradient, self.losses, self.gathered]

    def check_gradients(self, loss):
        found = torch.autograd.grad(loss, sum(self.layers, ()))
        for own, its in zip(sum(self.gradients, ()), found, strict=True):
            torch.testing.assert_close(own, its, rtol=1e-4, atol=1e-6)


@over_networks
@over_activations
def test_the_value_function_has_the_gradients_of_autograd(hidden, module):
    case = Case(hidden, module, MAX_ROWS, 1)
    case.pass_value(pass_value)
    loss = nn.functional.mse_loss(case.outputs()[:, 0], case.batch.returns)
    case.check_gradients(VF_COEF * loss)
    torch.testing.assert_close(case.losses[3], loss.detach())
    assert torch.equal(case.gathered, case.following.table[case.following.rows])


@over_networks
@over_activations
def test_the_policy_has_the_gradients_of_autograd(hidden, module):
    case = Case(hidden, module, MAX_ROWS, NUM_AXES)
    batch = Decisions(*(each.clone() for each in case.batch))
    case.pass_policy(pass_policy)
    log_std = case.log_std.requires_grad_()
    chosen = torch.distributions.Normal(case.outputs(), log_std.exp())
    ratio = (chosen.log_prob(batch.actions.t()).sum(1) - batch.log_probs).exp()
    clipped = ratio.clamp(1.0 - CLIP_RANGE, 1.0 + CLIP_RANGE) * batch.advantages
    loss = -torch.minimum(ratio * batch.advantages, clipped).mean()
    entropy = chosen.entropy().sum(1).mean()
    total = loss - ENT_COEF * entropy
    [by_log_std] = torch.autograd.grad(total, [log_std], retain_graph=True)
    torch.testing.assert_close(case.log_std_gradient, by_log_std, rtol=1e-4, atol=1e-6)
    case.check_gradients(total)
    torch.testing.assert_close(case.losses[0], loss.detach())
    torch.testing.assert_close(case.losses[4], -entropy.detach())


@over_networks
@over_activations
@over_rows
@pytest.mark.parametrize("function", [pass_policy, pass_value])
def test_compiled_in_another_thread_it_has_the_same_bits(hidden, module, num_rows, function):
    num_outputs = NUM_AXES if function is pass_policy else 1
    plain, other = Case(hidden, module, num_rows, num_outputs), Case(hidden, module, num_rows, num_outputs)
    getattr(plain, function.__name__)(function)
    run = compiled(function)
    assert isinstance(run, torch.jit.ScriptFunction)
    thread = threading.Thread(target=getattr(other, function.__name__), args=(run,))
    thread.start()
    thread.join()
    unused = {"pass_policy": [other.gathered, plain.gathered], "pass_value": [other.log_std_gradient]}
    skipped = {id(tensor) for tensor in unused[function.__name__]}
    for mine, its in zip(other.results(), plain.results(), strict=True):
        assert id(mine) in skipped or torch.equal(mine, its)
