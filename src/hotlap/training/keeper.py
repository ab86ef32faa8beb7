"""Keeps a run safe while it learns: checkpoints, evaluations of the policy, the best model, and an orderly stop."""

import logging
from collections.abc import Callable
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from hotlap.errors import OutputFileError
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.judging import Judgement
from hotlap.training.snapshot import Snapshot

# Shorter rollouts are over before anyone notices; capturing each of them would cost more than it saves.
STEPS_WORTH_A_CAPTURE = 32
_log = logging.getLogger(__name__)


class RunKeeper(BaseCallback):
    """Saves and evaluates at the boundaries between rollouts.

    All that a run is can be captured only there, so a checkpoint that falls due within a rollout holds the state at the
    rollout's beginning: going on from it means collecting that rollout again, which gives the same bits.
    """

    def __init__(
        self,
        checkpoints: CheckpointManager,
        capture: Callable[[], Snapshot],
        write: Callable[[Snapshot, int], None],
        judge: Callable[[], Judgement] | None,
        keep_best: Callable[[Snapshot, Judgement], None],
        evaluation_interval: int,
    ) -> None:
        super().__init__()
        self._interval = checkpoints.config.interval
        self._capture, self._write, self._judge, self._keep_best = capture, write, judge, keep_best
        self._evaluation_interval = evaluation_interval
        self._next_save = self._interval
        self._next_evaluation = evaluation_interval
        self._best: list[float] | None = None
        self._boundary: Snapshot | None = None
        self._steps_in_rollout = 0
        self._is_save_due = False
        self._is_boundary_missing = False
        self.is_stop_asked = False
        self.is_stopped = False

    # --- what a checkpoint keeps of it ---

    def get_state(self) -> dict[str, Any]:
        """Plain data: when the next save and evaluation are due, and the best score so far."""
        return {"next_save": self._next_save, "next_evaluation": self._next_evaluation, "best": self._best}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state`'s answer."""
        self._next_save, self._next_evaluation = int(state["next_save"]), int(state["next_evaluation"])
        self._best = state["best"]

    # --- the run's course ---

    def _on_rollout_start(self) -> None:
        self._steps_in_rollout = 0
        self._evaluate_if_due()
        if self._is_save_due or self._is_boundary_wanted():
            self._boundary = self._capture()
        else:
            self._boundary = None
        if self._is_save_due:
            self._save(self._boundary)

    def _on_step(self) -> bool:
        self._steps_in_rollout += 1
        if self._interval and self.num_timesteps >= self._next_save:
            self._next_save = (self.num_timesteps // self._interval + 1) * self._interval
            self._is_save_due = True
            if self._boundary is not None and not self._is_last_of_whole_rollout():
                self._save(self._boundary)
        if self.is_stop_asked and self._boundary is not None:
            self.is_stopped = True
            self._save(self._boundary)
            return False
        return True

    def _on_training_end(self) -> None:
        if self.is_stopped:
            return
        self._evaluate_if_due(is_last=True)
        if self._is_save_due:
            # After a rollout cut short by the budget, a longer run goes on from that rollout's beginning instead.
            is_short = bool(getattr(self.model, "is_rollout_short", False))
            self._save(self._boundary if is_short and self._boundary is not None else self._capture())

    # --- how ---

    def _is_boundary_wanted(self) -> bool:
        if self.is_stop_asked:
            return True
        if not isinstance(self.model, OnPolicyAlgorithm):
            return False  # between two of its updates lies a step or a few: it saves after them
        ends_at = self.num_timesteps + self.model.rollout_steps * self.model.n_envs
        is_due_within = bool(self._interval) and self._next_save <= ends_at
        return is_due_within or self.model.rollout_steps >= STEPS_WORTH_A_CAPTURE

    def _is_last_of_whole_rollout(self) -> bool:
        planned = int(getattr(self.model, "rollout_steps", 0))
        is_short = bool(getattr(self.model, "is_rollout_short", False))
        return not is_short and self._steps_in_rollout >= planned

    def _save(self, snapshot: Snapshot) -> None:
        self._is_save_due = False
        try:
            self._write(snapshot, self.num_timesteps)
        except OutputFileError as error:
            _log.warning("%s The run goes on; the checkpoint before this one is whole.", error)

    def _evaluate_if_due(self, is_last: bool = False) -> None:
        is_due = self._evaluation_interval and self.num_timesteps >= self._next_evaluation
        if self._judge is None or not (is_due or (is_last and self._evaluation_interval)):
            return
        self._next_evaluation = (self.num_timesteps // self._evaluation_interval + 1) * self._evaluation_interval
        judgement = self._judge()
        for name, value in judgement.figures.items():
            self.logger.record(name, value)
        score = list(judgement.score)
        if self._best is None or score > self._best:
            self._best = score
            try:
                self._keep_best(self._capture().without_replay(), judgement)
            except OutputFileError as error:
                _log.warning("%s The run goes on without this best model.", error)
