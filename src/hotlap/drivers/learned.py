"""`LearnedDriver`: drives a fleet with a trained model of the racer."""

from hotlap.drivers.packed import PackedDriver
from hotlap.envs.spaces import action_space
from hotlap.errors import DriverError
from hotlap.models.model_file import ModelCard, ModelFile
from hotlap.models.policy import LearnedPolicy


class LearnedDriver(PackedDriver):
    """Drives a fleet with a trained model, with the action repeat and observation stack it was trained with."""

    def __init__(self, policy: LearnedPolicy, card: ModelCard, name: str) -> None:
        super().__init__(policy.pack(card), card.action_repeat, name)

    @classmethod
    def from_file(cls, model: ModelFile) -> "LearnedDriver":
        """The driver of a model file."""
        if not model.card.is_racer:
            raise DriverError(
                f"{model.path}: is a model of {model.card.environment}; it cannot drive. Use a racer model."
            )
        policy = LearnedPolicy.from_file(model, model.card.racer_observations, action_space())
        return cls(policy, model.card, model.path.stem)
