"""Adam over one flat vector of all parameters: a few operations per step instead of a few per parameter."""

import torch
from torch import Tensor

_ALIGNMENT = 16  # floats: every parameter begins at a multiple of 64 bytes, so that sums are the same in every process


class FlatAdam:
    """A working copy of an optimizer's parameters, moments and settings, with torch's Adam and clipping of the norm.

    `load` takes everything from the optimizer and `store` copies it back, so that the optimizer stays the holder of its
    state. A step has no number of its own in Python, so it can be captured in a CUDA graph.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        [self._group] = optimizer.param_groups
        self._optimizer = optimizer
        self._parameters: list[Tensor] = self._group["params"]
        device = self._parameters[0].device
        sizes = [-(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT for parameter in self._parameters]
        self.values, self._gradients, self._means, self._squares = torch.zeros(4, sum(sizes), device=device)
        self._scratch = torch.empty_like(self.values)
        offsets = [sum(sizes[:index]) for index in range(len(sizes))]
        self._offsets = dict(zip(map(id, self._parameters), offsets, strict=True))
        self._num_steps, self._lr = torch.zeros(2, dtype=torch.float64, device=device)
        self.load()

    @staticmethod
    def fits(optimizer: torch.optim.Optimizer) -> bool:
        """Whether this is plain Adam over one group of float32 parameters."""
        if type(optimizer) is not torch.optim.Adam or len(optimizer.param_groups) != 1:
            return False
        [group] = optimizer.param_groups
        extras = ("weight_decay", "amsgrad", "maximize")
        is_plain = all(parameter.dtype == torch.float32 for parameter in group["params"])
        return is_plain and not any(group[name] for name in extras)

    def value(self, parameter: Tensor) -> Tensor:
        """The working copy of a parameter."""
        return self.view(self.values, parameter)

    def gradient(self, parameter: Tensor) -> Tensor:
        """Where the gradient of a parameter belongs; zero for one that is not trained."""
        return self.view(self._gradients, parameter)

    @property
    def gradients(self) -> Tensor:
        """All gradients as one vector."""
        vector: Tensor = self._gradients
        return vector

    def view(self, vector: Tensor, parameter: Tensor) -> Tensor:
        """The part of a vector laid out as `values` that belongs to a parameter."""
        begin = self._offsets[id(parameter)]
        return vector[begin : begin + parameter.numel()].view_as(parameter)

    @torch.no_grad()
    def load(self) -> None:
        """Take over the parameters, the moments and the learning rate."""
        self.load_values()
        self.load_lr()
        self._means.zero_()
        self._squares.zero_()
        self._num_steps.zero_()
        for parameter in self._parameters:
            if state := self._optimizer.state.get(parameter):
                self.view(self._means, parameter).copy_(state["exp_avg"])
                self.view(self._squares, parameter).copy_(state["exp_avg_sq"])
                self._num_steps.fill_(float(state["step"]))

    @torch.no_grad()
    def load_values(self) -> None:
        """Take over the parameters."""
        torch._foreach_copy_([self.value(parameter) for parameter in self._parameters], self._parameters)

    def load_lr(self) -> None:
        """Take over the learning rate."""
        self._lr.fill_(self._group["lr"])

    def step(self, max_grad_norm: float | None = None) -> None:
        """Clip the gradients to `max_grad_norm`, unless that is None, and update the parameters, as torch does."""
        gradients, scratch = self._gradients, self._scratch
        if max_grad_norm is not None:
            self._clip(max_grad_norm)
        beta1, beta2 = self._group["betas"]
        self._num_steps.add_(1.0)
        if gradients.device.type == "cpu":
            self._step_at_once(beta1, beta2)
            return
        self._means.lerp_(gradients, 1.0 - beta1)
        self._squares.mul_(beta2).addcmul_(gradients, gradients, value=1.0 - beta2)
        first, second = 1.0 - torch.pow(beta1, self._num_steps), 1.0 - torch.pow(beta2, self._num_steps)
        torch.sqrt(self._squares, out=scratch)
        scratch.div_(second.sqrt_()).add_(self._group["eps"])
        self.values.sub_(torch.div(self._means, scratch, out=scratch).mul_(self._lr / first))

    def _clip(self, max_norm: float) -> None:
        """Scale the gradients down to this norm; a NaN reaches the parameters, as with torch's own clipping."""
        factor = max_norm / (torch.linalg.vector_norm(self._gradients) + 1e-6)
        if factor.device.type != "cpu":
            self._gradients.mul_(factor.clamp_(max=1.0))
        elif not (number := float(factor)) >= 1.0:  # a product with a tensor takes five times as long as with a number
            self._gradients.mul_(number)

    def _step_at_once(self, beta1: float, beta2: float) -> None:
        """The update in one pass over the vectors, as torch's `fused` Adam does it; five times as fast on a CPU."""
        torch._fused_adam_(
            [self.values],
            [self._gradients],
            [self._means],
            [self._squares],
            [],
            [self._num_steps.float()],
            lr=float(self._lr),
            beta1=beta1,
            beta2=beta2,
            weight_decay=0.0,
            eps=self._group["eps"],
            amsgrad=False,
            maximize=False,
        )

    @torch.no_grad()
    def store_values(self) -> None:
        """Copy the parameters back into the policy."""
        torch._foreach_copy_(self._parameters, [self.value(parameter) for parameter in self._parameters])

    @torch.no_grad()
    def store(self) -> None:
        """Copy parameters and moments back into the policy and its optimizer."""
        self.store_values()
        num_steps = self._num_steps.float().cpu()  # where torch's Adam keeps it
        for parameter in self._parameters:
            self._optimizer.state[parameter] = {
                "step": num_steps.clone(),
                "exp_avg": self.view(self._means, parameter).clone(),
                "exp_avg_sq": self.view(self._squares, parameter).clone(),
            }
