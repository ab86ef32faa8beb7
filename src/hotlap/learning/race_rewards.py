"""What other cars add to the reward of a decision: metres and positions gained, contacts and faults."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotlap.hyperparameters import RaceSettings
from hotlap.sim.opponent_view import SIGHT_M
from hotlap.sim.race import FAULT_MPS


@dataclass(frozen=True)
class Decision:
    """What happened to the cars of all races in one decision; every tensor is (races, cars)."""

    moved_m: Tensor  # along the road
    arc_m: Tensor  # where they are now
    is_racing: Tensor
    positions_gained: Tensor
    contact_mps: Tensor  # closing speed of the hardest contact
    is_at_fault: Tensor


def race_reward(settings: RaceSettings, decision: Decision, lengths_m: Tensor, unit_m: Tensor) -> Tensor:
    """The reward (races, cars); a lap has `lengths_m`, and as progress `unit_m` metres count 1, both (races, 1)."""
    gained_m = metres_gained(decision, lengths_m)
    reward = gained_m * (settings.gain / unit_m) + settings.overtake * decision.positions_gained
    hits_mps = decision.contact_mps * (decision.contact_mps > float(FAULT_MPS))
    own_mps = hits_mps * decision.is_at_fault
    reward += settings.contact_penalty * hits_mps + settings.fault_penalty * own_mps
    return reward + settings.fault_cost * (own_mps > 0.0)


def metres_gained(decision: Decision, lengths_m: Tensor) -> Tensor:
    """What each car moved more than the mean of the cars within sight of it; zero where there is none."""
    arc_m, racing = decision.arc_m, decision.is_racing
    gaps_m = arc_m[:, None, :] - arc_m[:, :, None]
    lengths_m = lengths_m[:, :, None]
    gaps_m = gaps_m - lengths_m * torch.round(gaps_m / lengths_m)
    near = (gaps_m.abs() < float(SIGHT_M)) & racing[:, None, :] & racing[:, :, None]
    near &= ~torch.eye(arc_m.shape[1], dtype=torch.bool, device=arc_m.device)
    moved_m = (near * decision.moved_m[:, None, :]).sum(2)
    count = near.sum(2)
    return torch.where(count > 0, decision.moved_m - moved_m / count.clamp(min=1), 0.0)
