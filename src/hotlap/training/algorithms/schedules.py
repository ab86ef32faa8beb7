"""How settings change over a run."""

from typing import Any, ClassVar

from hotlap.training.algorithms.step_budget import Learner


class DecayingLearningRate(Learner):
    """A learner that keeps its settings, and whose learning rate decays linearly to `final_lr_fraction` of itself."""

    own_settings: ClassVar[tuple[str, ...]] = ("final_lr_fraction",)  # those that stable-baselines3 does not have

    def __init__(self, *args: Any, settings: Any, **kwargs: Any) -> None:
        self.settings = settings
        super().__init__(*args, **kwargs)

    @classmethod
    def constructor_arguments(cls, settings: Any) -> dict[str, Any]:
        """The library's arguments, and all settings for what we add."""
        found = super().constructor_arguments(settings)
        return {name: value for name, value in found.items() if name not in cls.own_settings} | {"settings": settings}

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = self._learning_rate

    def _learning_rate(self, progress_remaining: float) -> float:
        rate: float = self.settings.learning_rate * self._decay(progress_remaining)
        return rate

    def _decay(self, progress_remaining: float) -> float:
        """From 1 at the start of the run to `final_lr_fraction` at its end."""
        final: float = self.settings.final_lr_fraction
        return final + (1.0 - final) * progress_remaining
