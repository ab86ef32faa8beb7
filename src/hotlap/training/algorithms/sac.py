"""SAC: stable-baselines3's, with an exact step budget."""

import torch
from stable_baselines3 import SAC

from hotlap.training.algorithms.step_budget import OffPolicyLearner


class HotlapSAC(OffPolicyLearner, SAC):
    """SAC with an exact step budget."""

    def named_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Those of the actor, the critic and, where it is learned, the entropy coefficient."""
        found = {"actor": self.actor.optimizer, "critic": self.critic.optimizer}
        if self.ent_coef_optimizer is not None:
            found["entropy"] = self.ent_coef_optimizer
        return found
