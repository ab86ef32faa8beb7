"""Adam over one flat vector of all parameters: a few operations per step instead of a few per parameter."""

import math

import torch
from torch import Tensor

_ALIGNMENT = 16  # floats: every parameter begins at a multiple of 64 bytes, so that sums are the same in every process


class FlatAdam:
    """A working copy of an optimizer's parameters, moments and settings, with torch's Adam and clipping of the norm.

    `store` copies everything back, so that the optimizer stays the holder of its state.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        [self._group] = optimizer.param_groups
        self._optimizer = optimizer
        self._parameters: list[Tensor] = self._group["params"]
        sizes = [-(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT for parameter in self._parameters]
        self._values, self._gradients, self._means, self._squares = torch.zeros(4, sum(sizes))
        self._scratch = torch.empty_like(self._values)
        offsets = [sum(sizes[:index]) for index in range(len(sizes))]
        self._offsets = dict(zip(map(id, self._parameters), offsets, strict=True))
        self._num_steps = 0
        for parameter in self._parameters:
            self.value(parameter).copy_(parameter.detach())
            if state := optimizer.state.get(parameter):
                self._view(self._means, parameter).copy_(state["exp_avg"])
                self._view(self._squares, parameter).copy_(state["exp_avg_sq"])
                self._num_steps = int(state["step"])

    @staticmethod
    def fits(optimizer: torch.optim.Optimizer) -> bool:
        """Whether this is plain Adam over one group of float32 parameters on the CPU."""
        if type(optimizer) is not torch.optim.Adam or len(optimizer.param_groups) != 1:
            return False
        [group] = optimizer.param_groups
        extras = ("weight_decay", "amsgrad", "maximize")
        is_plain = all(
            parameter.dtype == torch.float32 and parameter.device.type == "cpu" and parameter.requires_grad
            for parameter in group["params"]
        )
        return is_plain and not any(group[name] for name in extras)

    def value(self, parameter: Tensor) -> Tensor:
        """The working copy of a parameter."""
        return self._view(self._values, parameter)

    def gradient(self, parameter: Tensor) -> Tensor:
        """Where the gradient of a parameter belongs."""
        return self._view(self._gradients, parameter)

    def _view(self, vector: Tensor, parameter: Tensor) -> Tensor:
        begin = self._offsets[id(parameter)]
        return vector[begin : begin + parameter.numel()].view_as(parameter)

    def step(self, max_grad_norm: float) -> None:
        """Clip the gradients to `max_grad_norm` and update the parameters, as torch does."""
        gradients, scratch = self._gradients, self._scratch
        scale = max_grad_norm / (float(torch.linalg.vector_norm(gradients)) + 1e-6)
        if not scale >= 1.0:  # NaN must reach the parameters, as with torch's own clipping
            gradients.mul_(scale)
        beta1, beta2 = self._group["betas"]
        self._num_steps += 1
        self._means.lerp_(gradients, 1.0 - beta1)
        self._squares.mul_(beta2).addcmul_(gradients, gradients, value=1.0 - beta2)
        torch.sqrt(self._squares, out=scratch)
        scratch.div_(math.sqrt(1.0 - beta2**self._num_steps)).add_(self._group["eps"])
        self._values.addcdiv_(self._means, scratch, value=-self._group["lr"] / (1.0 - beta1**self._num_steps))

    @torch.no_grad()
    def store(self) -> None:
        """Copy parameters and moments back into the policy and its optimizer."""
        for parameter in self._parameters:
            parameter.copy_(self.value(parameter))
            self._optimizer.state[parameter] = {
                "step": torch.tensor(float(self._num_steps)),
                "exp_avg": self._view(self._means, parameter).clone(),
                "exp_avg_sq": self._view(self._squares, parameter).clone(),
            }
