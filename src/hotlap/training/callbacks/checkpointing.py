"""Keeps a run safe while it learns: checkpoints, evaluations of the policy, the best model, and an orderly stop."""

import logging
import math
from collections.abc import Callable
from typing import Any, cast

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from hotlap.errors import OutputFileError
from hotlap.training.algorithms.learners import Learner
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.policy_evaluation import PolicyScore
from hotlap.training.state.snapshot import Snapshot

# Shorter rollouts are over before anyone notices; capturing each of them would cost more than it saves.
STEPS_WORTH_A_CAPTURE = 32
_log = logging.getLogger(__name__)


class CheckpointCallback(BaseCallback):
    """Saves and evaluates at the boundaries between rollouts.

    All that a run is can be captured only there, so a checkpoint that falls due within a rollout holds the state at the
    rollout's beginning: going on from it means collecting that rollout again, which gives the same bits.
    """

    def __init__(
        self,
        checkpoints: CheckpointManager,
        capture: Callable[[], Snapshot],
        write: Callable[[Snapshot, int], None],
        judge: Callable[[], PolicyScore],
        keep_best: Callable[[], object],
        evaluation_interval: int,
    ) -> None:
        """`write` gets a state and the step at which it is saved; `keep_best` saves the policy as it is now.

        An `evaluation_interval` of 0 means none.
        """
        super().__init__()
        self._interval = checkpoints.config.interval
        self._capture, self._write, self._judge, self._keep_best = capture, write, judge, keep_best
        self._evaluation_interval = evaluation_interval
        self._next_save = self._interval
        self._next_evaluation = evaluation_interval
        self._evaluated_at: int | None = None  # step
        self._best: list[float] | None = None
        self._boundary: Snapshot | None = None
        self._steps_in_rollout = 0
        self._is_save_due = False
        self.is_stop_asked = False
        self.is_stopped = False
        self.is_saved = False  # whether the last attempt to write a checkpoint went well

    # --- what a checkpoint keeps of it ---

    def get_state(self) -> dict[str, Any]:
        """Plain data: when the next save and evaluation are due, when the last was, and the best score so far."""
        return {
            "next_save": self._next_save,
            "next_evaluation": self._next_evaluation,
            "evaluated_at": self._evaluated_at,
            "best": self._best,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state`'s answer."""
        self._next_save, self._next_evaluation = int(state["next_save"]), int(state["next_evaluation"])
        self._evaluated_at, self._best = state["evaluated_at"], state["best"]

    # --- the run's course ---

    def _on_rollout_start(self) -> None:
        self._steps_in_rollout = 0
        # Whoever asked to stop need not wait for an evaluation: it stays due, and the resumed run begins with it.
        if not self.is_stop_asked and self._is_evaluation_due():
            self._evaluate()
        self._boundary = self._capture() if self._is_boundary_wanted() else None
        if self._is_save_due and self._boundary is not None:
            self._save(self._boundary)

    def _on_step(self) -> bool:
        self._steps_in_rollout += 1
        if self._interval and self.num_timesteps >= self._next_save:
            self._next_save = (self.num_timesteps // self._interval + 1) * self._interval
            self._is_save_due = True
        if self._boundary is None:
            return True
        if self.is_stop_asked:
            self.is_stopped = True
            self._save(self._boundary)
            return False
        if self._is_save_due and not self._is_at_boundary():
            self._save(self._boundary)
        return True

    def _on_training_end(self) -> None:
        if self.is_stopped:
            return
        if self._evaluation_interval and self._evaluated_at != self.num_timesteps:
            self._evaluate()
        if self._is_save_due:
            self._save(self._capture())

    # --- how ---

    @property
    def _learner(self) -> Learner:
        return cast(Learner, self.model)

    def _is_boundary_wanted(self) -> bool:
        if self._is_save_due or self.is_stop_asked:
            return True
        learner = self._learner
        ends_at = self.num_timesteps + learner.rollout_steps * learner.n_envs
        # One that falls due at the very end of a whole rollout is taken there.
        is_due_within = bool(self._interval) and (
            self._next_save <= ends_at if learner.is_rollout_short else self._next_save <= ends_at - learner.n_envs
        )
        # A replay buffer is too large to be copied on the off chance.
        is_cheap = isinstance(learner, OnPolicyAlgorithm)
        return is_due_within or (is_cheap and learner.rollout_steps >= STEPS_WORTH_A_CAPTURE)

    def _is_at_boundary(self) -> bool:
        """Whether the rollout is whole with this step, so that the state after its update can be saved instead.

        One that the budget cuts short never is: a longer run would go on from that rollout's beginning.
        """
        return not self._learner.is_rollout_short and self._steps_in_rollout >= self._learner.rollout_steps

    def _save(self, snapshot: Snapshot) -> None:
        self._is_save_due = False
        try:
            self._write(snapshot, self.num_timesteps)
            self.is_saved = True
        except OutputFileError as error:
            self.is_saved = False
            _log.warning("%s The run goes on without this checkpoint; those before it are whole.", error)

    def _is_evaluation_due(self) -> bool:
        return bool(self._evaluation_interval) and self.num_timesteps >= self._next_evaluation

    def _evaluate(self) -> None:
        self._next_evaluation = (self.num_timesteps // self._evaluation_interval + 1) * self._evaluation_interval
        self._evaluated_at = self.num_timesteps
        judgement = self._judge()
        for output in self.logger.output_formats:  # at once: the next dump has a later step
            output.write(dict(judgement.figures), dict.fromkeys(judgement.figures, ()), self.num_timesteps)
        # Nothing is larger than a number that is none, and then no later model would be kept.
        score = [-math.inf if math.isnan(value) else value for value in judgement.score]
        if self._best is None or score > self._best:
            self._best = score
            try:
                self._keep_best()
            except OutputFileError as error:
                _log.warning("%s The run goes on without this best model.", error)
