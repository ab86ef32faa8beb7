"""The learner of `gradient_driver`: a policy whose weights follow the derivative of what its cars gain."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from differentiable_car import FORWARD, GUIDE_MPS, TURN, drive_tick, place_cars, road_room, standard_car, view_road
from gradient_cars import Group, Segment
from hotlap.drivers.packed import PackedDriver
from hotlap.models.actor_layers import VARIANCE_FLOOR
from hotlap.models.model_file import PEDAL_AXIS, ModelFile
from hotlap.sim.rays import NUM_RAYS
from hotlap.sim.road_view import NUM_POINTS, NUM_POINTS_2
from hotlap.sim.vehicle import TICKS_PER_SECOND

GAMMA, LAMBDA = 0.985, 0.95
SOFT_EDGE_M = 0.6  # past this the price of the edge grows linearly, before it with the square
FAR_SLOPE = 0.4  # its slope there, where that of a square metre is 1
FULL_PRICE_MPS = 15.0  # a slower car pays less, or else it would rather stand than drive back
MIN_GUIDE_MPS = 3.0
# A car whose derivative is larger than this tells less of the policy than of a spin that can no longer be caught.
# In units of arc length, place, angle, speeds, yaw rate, controls and load.
MAX_SLOPE, SLOPE_UNITS = 0.5, (1.0, 1.0, 20.0, 1.0, 1.0, 4.0, 2.0, 1.0, 1.0, 1e-3)
CRITIC_WIDTHS = 128, 128
HIDDEN_GAIN, LAST_GAIN, FIRST_THROTTLE = 1.4, 0.01, 0.4  # of a new policy
CRITIC_RATE, CRITIC_STEPS = 1e-3, 4
AVERAGED = 0.98  # of the averaged weights, what is kept at an update
FIRST_VALUE = 3.5  # of a critic that has learned nothing
TARGET_KEPT = 0.8


def limited(value: Tensor, low: float, high: float) -> Tensor:
    """Clip; the derivative passes where a value is inside, or outside and would come back."""
    found = value + (value.clamp(low, high) - value).detach()
    is_above, is_below = value.detach() > high, value.detach() < low
    if found.requires_grad:
        _change_slope(found, lambda slope: slope * ~((is_above & (slope < 0.0)) | (is_below & (slope > 0.0))))
    return found


def calm(slope: Tensor) -> Tensor:
    """The derivative by the states of cars, that of each limited in size."""
    slope = slope.nan_to_num(0.0, 0.0, 0.0)
    size = (slope / slope.new_tensor(SLOPE_UNITS)).norm(dim=1, keepdim=True)
    calmed: Tensor = slope * (MAX_SLOPE / len(slope) / size.clamp(min=1e-12)).clamp(max=1.0)
    return calmed


def _change_slope(value: Tensor, change: Callable[[Tensor], Tensor]) -> None:
    """Have the derivative by a tensor changed on its way back."""
    value.register_hook(change)  # type: ignore[no-untyped-call]


def perceptron(weights: dict[str, NDArray[np.float32]], names: Sequence[str]) -> nn.Sequential:
    """A network of the layers of these names, with tanh between them."""
    layers: list[nn.Module] = []
    for name in names:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data.copy_(torch.as_tensor(weight))
        layer.bias.data.copy_(torch.as_tensor(bias))
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def new_critic(num_inputs: int) -> nn.Sequential:
    """A critic that gives every car the same value."""
    widths = [num_inputs, *CRITIC_WIDTHS]
    layers: list[nn.Module] = []
    for left, right in pairwise(widths):
        layers += [nn.Linear(left, right), nn.Tanh()]
    last = nn.Linear(widths[-1], 1)
    nn.init.zeros_(last.weight)
    nn.init.constant_(last.bias, FIRST_VALUE)
    return nn.Sequential(*layers, last)


class Learner:
    """The policy, its critic, and their updates."""

    def __init__(self, model: ModelFile, driver: PackedDriver, rate: float, margin_m: float, edge_price: float) -> None:
        card = model.card
        self._model, self._driver = model, driver
        self._margin_m, self._edge_price = margin_m, edge_price
        self._car, self._rate = standard_car(), rate
        self._num_points = NUM_POINTS if driver.observation == "road" else NUM_POINTS_2
        depth = len(card.policy.net_arch or ())
        self._names = [f"mlp_extractor.policy_net.{2 * k}" for k in range(depth)]
        self._has_pedal_axis = card.policy.action_head == "pedal_axis"
        self._names.append(f"mlp_extractor.policy_net.{2 * depth}" if self._has_pedal_axis else "action_net")
        self.policy = perceptron(model.weights, self._names)
        self.averaged = perceptron(model.weights, self._names)
        self._mean = torch.as_tensor(model.normalizer["obs_mean"]).float()
        self._scale = torch.as_tensor(np.sqrt(model.normalizer["obs_var"] + VARIANCE_FLOOR)).float()
        # Fourier features change with every metre, and so would the slope of what a critic makes of them.
        self._num_seen = len(self._mean) - 2 * card.lap_fourier
        self._critic, self._target = new_critic(self._num_seen), new_critic(self._num_seen)
        self._target.load_state_dict(self._critic.state_dict())
        self._frequencies = 2.0 * torch.pi * torch.arange(1, card.lap_fourier + 1)
        self._adam = torch.optim.Adam(self.policy.parameters(), lr=rate, betas=(0.9, 0.99))
        self._critic_adam = torch.optim.Adam(self._critic.parameters(), lr=CRITIC_RATE)

    def forget(self) -> None:
        """Random weights in place of the model's; at first every car drives straight on with a little throttle."""
        layers = [layer for layer in self.policy if isinstance(layer, nn.Linear)]
        for layer in layers:
            nn.init.orthogonal_(layer.weight, LAST_GAIN if layer is layers[-1] else HIDDEN_GAIN)
            nn.init.zeros_(layer.bias)
        with torch.no_grad():
            layers[-1].bias[1] = FIRST_THROTTLE
        self.averaged.load_state_dict(self.policy.state_dict())

    @property
    def num_axes(self) -> int:
        """How many outputs the policy has."""
        return int(self.policy[-1].out_features)  # type: ignore[arg-type]

    def numbers(self) -> NDArray[np.float32]:
        """The packed policy's numbers with the present weights."""
        numbers = self._driver.packed.numbers.copy()
        layers = [layer for layer in self.policy if isinstance(layer, nn.Linear)]
        for layer, record in zip(layers, self._driver.packed.layers, strict=False):
            for first, values in (("first_weight", layer.weight.t()), ("first_bias", layer.bias)):
                begin = int(record[first])
                numbers[begin : begin + values.numel()] = values.detach().flatten().numpy()
        return numbers

    def averaged_model(self, path: Path) -> ModelFile:
        """The model with the averaged weights."""
        weights = dict(self._model.weights)
        layers = [layer for layer in self.averaged if isinstance(layer, nn.Linear)]
        for name, layer in zip(self._names, layers, strict=True):
            weights[f"{name}.weight"], weights[f"{name}.bias"] = (
                layer.weight.detach().numpy(),
                layer.bias.detach().numpy(),
            )
        return replace(self._model, weights=weights, path=path)

    def update(self, group: Group, segment: Segment, remaining: float, scale: float) -> dict[str, float]:
        """One update from a segment; the learning rates are scaled. Returns figures to print."""
        gained, inputs, rewards, is_counted, last = self._drive_again(group, segment)
        self._adam.zero_grad()
        torch.autograd.backward(-gained.mean())
        slope = float(nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0))
        self._adam.param_groups[0]["lr"] = self._rate * scale
        self._adam.step()
        with torch.no_grad():
            for kept, weight in zip(self.averaged.parameters(), self.policy.parameters(), strict=True):
                kept.lerp_(weight, 1.0 - AVERAGED)
        error = self._teach_critic(inputs, rewards, is_counted, last, remaining)
        pace = float(rewards.sum() / is_counted[:-1].sum()) * TICKS_PER_SECOND / self._driver.action_repeat
        return {"gained": float(gained.detach().mean()), "slope": slope, "critic": error, "pace": pace}

    def _inputs(self, state: Tensor, group: Group, walls: Tensor) -> Tensor:
        """What the policy's network sees, normalized."""
        motion, view = view_road(state, group.roads, self._num_points, self._car)
        progress = state[:, 0] / group.length_m
        columns = [walls[:, :NUM_RAYS], torch.stack([*motion, progress.clamp(0.0, 1.0)], 1), walls[:, NUM_RAYS:], view]
        angles = progress[:, None] * self._frequencies
        inputs = torch.cat([*columns, angles.sin(), angles.cos()], 1)
        clip = self._model.card.clip_obs
        normalized = (inputs - self._mean) / self._scale
        return normalized if clip is None else normalized.clamp(-clip, clip)

    def _command(self, axes: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        """Steering, throttle and brake, with noise as the simulator's cars had it."""
        lows = (-1.0, -1.0) if self._has_pedal_axis else (-1.0, 0.0, 0.0)
        axes = PEDAL_AXIS[0][0] * axes.tanh() if self._has_pedal_axis else axes
        inside = [limited(axis, low, 1.0) for axis, low in zip(axes.unbind(1), lows, strict=True)]
        moved = zip(inside, noise.unbind(1), lows, strict=True)
        steer, *pedals = (limited(axis + noises, low, 1.0) for axis, noises, low in moved)
        return (
            (steer, pedals[0].clamp(min=0.0), (-pedals[0]).clamp(min=0.0)) if self._has_pedal_axis else (steer, *pedals)
        )

    def _drive_again(self, group: Group, segment: Segment) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """What each car gained; and of each decision what the critic sees, the reward, and which cars count."""
        state = place_cars(segment.states, group.roads)
        counts, gained, discount = torch.ones(len(state), dtype=torch.bool), torch.zeros(len(state)), 1.0
        inputs, rewards, is_counted = [], [], [counts]
        for walls, noise, touched in zip(segment.walls[:-1], segment.noise, segment.has_touched, strict=True):
            if state.requires_grad:
                _change_slope(state, calm)
            inputs.append(self._inputs(state, group, walls))
            command = self._command(self.policy(inputs[-1]), noise)
            state, reward = self._drive_decision(state, command, group)
            reward = torch.where(counts, reward, 0.0)
            gained, discount, counts = gained + discount * reward, discount * GAMMA, counts & ~touched
            rewards.append(reward.detach())
            is_counted.append(counts)
        inputs.append(self._inputs(state, group, segment.walls[-1]))
        last = self._target(inputs[-1][:, : self._num_seen])[:, 0]
        gained = gained + torch.where(counts, discount * last, 0.0)
        seen = torch.stack([each.detach()[:, : self._num_seen] for each in inputs])
        return gained, seen, torch.stack(rewards), torch.stack(is_counted), last.detach()

    def _drive_decision(self, state: Tensor, command: tuple[Tensor, ...], group: Group) -> tuple[Tensor, Tensor]:
        """The cars after the ticks of a decision, and what each gained."""
        repeat, reward = self._driver.action_repeat, torch.zeros(len(state))
        for _ in range(repeat):
            road = group.roads.at(state[:, 0])
            near_m = (self._margin_m - road_room(state, road)).clamp(0.0, 4.0)
            state, gained_m = drive_tick(state, command, road, self._car)
            far = SOFT_EDGE_M**2 + FAR_SLOPE * (near_m - SOFT_EDGE_M)
            price = self._edge_price * torch.where(near_m < SOFT_EDGE_M, near_m.square(), far)
            price = price * (state[:, FORWARD] / FULL_PRICE_MPS).clamp(0.0, 1.0)
            reward = reward + gained_m / road[:, GUIDE_MPS].clamp(min=MIN_GUIDE_MPS) - price / repeat
        # Around the line and around the compass; what is taken away has no derivative.
        arc_m, turn_rad = state[:, 0].detach(), state[:, TURN].detach()
        laps, turns = torch.floor(arc_m / group.length_m), torch.round(turn_rad / (2.0 * torch.pi))
        wrapped = torch.zeros_like(state)
        wrapped[:, 0], wrapped[:, TURN] = laps * group.length_m, turns * 2.0 * torch.pi
        return state - wrapped, reward

    @torch.no_grad()
    def _returns(self, inputs: Tensor, rewards: Tensor, is_counted: Tensor, last: Tensor) -> Tensor:
        values = self._target(inputs[1:-1].flatten(0, 1)).view(len(inputs) - 2, -1)
        following, found = torch.cat([values, last[None]]), []
        ahead = last
        for reward, value, counts in zip(rewards.flip(0), following.flip(0), is_counted[1:].flip(0), strict=True):
            ahead = reward + GAMMA * torch.where(counts, (1.0 - LAMBDA) * value + LAMBDA * ahead, 0.0)
            found.append(ahead)
        return torch.stack(found[::-1])

    def _teach_critic(
        self, inputs: Tensor, rewards: Tensor, is_counted: Tensor, last: Tensor, remaining: float
    ) -> float:
        """Some steps of the critic on half of the decisions; returns its mean squared error."""
        returns = self._returns(inputs, rewards, is_counted, last).flatten()
        seen, counts = inputs[:-1].flatten(0, 1), is_counted[:-1].flatten().float()
        self._critic_adam.param_groups[0]["lr"] = CRITIC_RATE * (0.05 + 0.95 * remaining)
        order = torch.randperm(len(seen))[: len(seen) // 2]
        errors = []
        for rows in order.chunk(CRITIC_STEPS):
            error = (counts[rows] * (self._critic(seen[rows])[:, 0] - returns[rows]).square()).mean()
            self._critic_adam.zero_grad()
            torch.autograd.backward(error)
            nn.utils.clip_grad_norm_(self._critic.parameters(), 1.0)
            self._critic_adam.step()
            errors.append(float(error.detach()))
        with torch.no_grad():
            for target, weight in zip(self._target.parameters(), self._critic.parameters(), strict=True):
                target.lerp_(weight, 1.0 - TARGET_KEPT)
        return float(np.mean(errors))
