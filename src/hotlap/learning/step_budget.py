"""Plans rollouts so that a run ends at its step budget: the last rollout is as short as the budget requires."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RolloutPlan:
    """The next rollout."""

    num_steps: int  # of every environment
    is_short: bool  # whether the step budget cuts it short
    ends_at: int  # decisions of the whole run after it


def plan_rollout(num_timesteps: int, total_steps: int, num_envs: int, num_steps: int) -> RolloutPlan:
    """`num_steps` of every environment, or what is left of the budget after `num_timesteps` decisions."""
    left = math.ceil((total_steps - num_timesteps) / num_envs)
    planned = min(num_steps, left)
    return RolloutPlan(planned, planned < num_steps, num_timesteps + planned * num_envs)
