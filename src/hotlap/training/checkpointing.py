"""Decides when a run is checkpointed, evaluated and stopped."""

import logging
import math
from typing import Any

from hotlap.errors import ArchiveError, OutputFileError
from hotlap.learning.distributed.processes import Processes
from hotlap.runs.snapshot import Snapshot
from hotlap.training.learners import Learner
from hotlap.training.policy_evaluation import PolicyEvaluator
from hotlap.training.run_state import RunState
from hotlap.training.run_writer import RunWriter

# A stop waits for the end of a rollout shorter than this; capturing the state before each of them would cost too much.
MIN_STEPS_TO_CAPTURE = 32
_log = logging.getLogger(__name__)


class Checkpointing:
    """Saves and evaluates at the boundaries between rollouts.

    A run's state is complete only there. So a checkpoint that is due within a rollout holds the state from before that
    rollout; a run that resumes from it collects the rollout again, bit-identical.
    """

    def __init__(
        self,
        learner: Learner,
        run_state: RunState,
        writer: RunWriter,
        evaluator: PolicyEvaluator,
        *,
        checkpoint_interval: int,
        evaluation_interval: int,
        curve_interval: int = 0,
        logs_laps: bool = False,
    ) -> None:
        """Intervals are in steps; 0 means never.

        With `logs_laps` the evaluations log the figures `racer/*` too, and every `curve_interval` steps there is a
        smaller evaluation for them, which selects nothing.
        """
        self._learner, self._run_state, self._writer, self._evaluator = learner, run_state, writer, evaluator
        self._interval, self._evaluation_interval = checkpoint_interval, evaluation_interval
        self._next_save, self._next_evaluation = checkpoint_interval, evaluation_interval  # steps
        self._curve_interval = self._next_curve = curve_interval
        self.logs_laps = logs_laps
        self._evaluated_at: int | None = None  # step of the last evaluation that selects
        self._laps_logged_at: int | None = None  # step of the last evaluation of either kind
        self._best_score: list[float] | None = None
        self._boundary: Snapshot | None = None  # the state before the current rollout
        self._steps_in_rollout = 0
        self._is_save_due = False
        self._is_stop_agreed = False  # by all processes; only between rollouts
        self.is_stop_requested = False
        self.is_stopped = False
        self.is_saved = False  # whether the last attempt to write a checkpoint succeeded
        self.num_unsaved = 0  # checkpoints and best models that could not be written

    # --- state ---

    def get_state(self) -> dict[str, Any]:
        """Plain data: when the next save and evaluations are due, when the last was, and the best score so far.

        Also whether evaluations log the laps: the optimal lap that decides it may be solved before the run is resumed.
        """
        return {
            "next_save": self._next_save,
            "next_evaluation": self._next_evaluation,
            "evaluated_at": self._evaluated_at,
            "best_score": self._best_score,
            "next_curve": self._next_curve,
            "laps_logged_at": self._laps_logged_at,
            "logs_laps": self.logs_laps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self._next_save, self._next_evaluation = int(state["next_save"]), int(state["next_evaluation"])
        self._evaluated_at, self._best_score = state["evaluated_at"], state["best_score"]
        self._next_curve = int(state.get("next_curve", self._next_curve))
        self._laps_logged_at = state.get("laps_logged_at")
        self.logs_laps = bool(state.get("logs_laps", self.logs_laps))

    # --- the loop ---

    def begin_training(self) -> None:
        """Prepare, once everything is built or restored."""
        # The best model was never written, or dropped with what came after the checkpoint.
        if not self._processes.from_leader(lambda: self._writer.has_best):
            self._best_score = None
        if self._interval:
            self._writer.check_sizes(self._capture(with_replay=False), self._learner.replay_bytes)

    def begin_rollout(self) -> None:
        """Evaluate and save what is due, and keep the state that a stop within the rollout would need."""
        self._steps_in_rollout = 0
        self._plan = self._learner.plan
        if not self._processes.is_alone:
            self._is_stop_agreed = self._processes.any(self.is_stop_requested)
        # A requested stop does not wait for an evaluation: it stays due, and the resumed run begins with it.
        if not self._is_stopping:
            if self._is_evaluation_due():
                self._evaluate()
            elif self._is_curve_due():
                self._evaluate_curve()
        self._boundary = self._capture() if self._is_boundary_needed() else None
        if self._is_save_due and self._boundary is not None:
            self._save(self._boundary)

    def note_step(self) -> bool:
        """Save what is due within the rollout; False, after saving, where the run is to stop."""
        self._steps_in_rollout += 1
        if self._interval and self._step >= self._next_save:
            self._next_save = (self._step // self._interval + 1) * self._interval
            self._is_save_due = True
        if self._boundary is None:
            return True
        if self._is_stopping:
            self.is_stopped = True
            self._save(self._boundary)
            return False
        if self._is_save_due and not self._ends_whole_rollout():
            self._save(self._boundary)
        return True

    def end_training(self) -> None:
        """Evaluate and save at the end of the step budget."""
        is_due = self._is_evaluation_due() if self._evaluation_interval else self._is_curve_due()
        if self._is_save_due and not is_due:
            # A longer run has no evaluation here: one that resumes from this checkpoint does not know of it.
            self._save(self._capture())
        if self._evaluation_interval and self._evaluated_at != self._step:
            self._evaluate()
        elif self._curve_interval and self.logs_laps and self._laps_logged_at != self._step:
            self._evaluate_curve()
        if self._is_save_due:
            self._save(self._capture())

    # --- decisions ---

    @property
    def _step(self) -> int:
        return self._learner.num_timesteps

    @property
    def _processes(self) -> Processes:
        return self._learner.processes

    @property
    def _is_stopping(self) -> bool:
        """Whether to save and stop; what several processes do next must not depend on which of them was asked."""
        return self.is_stop_requested if self._processes.is_alone else self._is_stop_agreed

    def _is_boundary_needed(self) -> bool:
        if self._is_save_due or self._is_stopping:
            return True
        learner, plan = self._learner, self._plan
        # A checkpoint due at the last step of a whole rollout is saved after it instead.
        last_needed = plan.ends_at if plan.is_short else plan.ends_at - learner.total_envs
        is_due_within = bool(self._interval) and self._next_save <= last_needed
        # Without a checkpoint due, a state is captured in case of a stop, but a replay buffer is too large for that.
        is_cheap = not learner.replay_bytes and not learner.has_atomic_rollouts
        return is_due_within or (is_cheap and plan.num_steps >= MIN_STEPS_TO_CAPTURE)

    def _ends_whole_rollout(self) -> bool:
        """Whether the rollout is complete with this step, so that the state after its update can be saved instead.

        Never for a rollout cut short by the step budget: a longer run would resume from before that rollout.
        """
        return not self._plan.is_short and self._steps_in_rollout >= self._plan.num_steps

    def _is_evaluation_due(self) -> bool:
        return bool(self._evaluation_interval) and self._step >= self._next_evaluation

    def _is_curve_due(self) -> bool:
        return self.logs_laps and bool(self._curve_interval) and self._step >= self._next_curve

    # --- actions ---

    def _capture(self, *, with_replay: bool = True) -> Snapshot:
        """The state, which is refused where it is not finite: a checkpoint of NaN would push out good ones."""
        snapshot = self._run_state.capture(self, with_replay=with_replay)
        snapshot.refuse_not_finite()
        return snapshot

    def _save(self, snapshot: Snapshot) -> None:
        self._is_save_due = False
        try:
            self._writer.save_checkpoint(snapshot, self._step)
            self.is_saved = True
        except (OutputFileError, ArchiveError) as error:
            self.is_saved = False
            self._note_unsaved(error, "Training continues without this checkpoint; the earlier ones are intact.")

    def _note_unsaved(self, error: Exception, consequence: str) -> None:
        """Warn about the first file that cannot be written; the run's exit code tells about the others."""
        _log.log(logging.INFO if self.num_unsaved else logging.WARNING, "%s %s", error, consequence)
        self.num_unsaved += 1

    def _evaluate(self) -> None:
        self._next_evaluation = (self._step // self._evaluation_interval + 1) * self._evaluation_interval
        self._evaluated_at = self._step
        score = self._processes.from_leader(self._score)
        self._note_laps()
        if self._best_score is None or score > self._best_score:
            self._best_score = score
            try:
                self._writer.save_best(self._capture(with_replay=False))
            except (OutputFileError, ArchiveError) as error:
                self._note_unsaved(error, "Training continues without this best model.")

    def _score(self) -> list[float]:
        """Evaluate the policy and log the figures."""
        found = self._evaluator.score(self._learner.policy())
        self._log(found.figures, found.racer)
        # Nothing compares greater than NaN: with one as the best score, no later model would be kept.
        return [-math.inf if math.isnan(value) else value for value in found.score]

    def _evaluate_curve(self) -> None:
        self._processes.from_leader(lambda: self._log({}, self._evaluator.lap_figures(self._learner.policy())))
        self._note_laps()

    def _note_laps(self) -> None:
        self._laps_logged_at = self._step
        if self._curve_interval:
            self._next_curve = (self._step // self._curve_interval + 1) * self._curve_interval

    def _log(self, figures: dict[str, float], racer: dict[str, float]) -> None:
        """Log an evaluation; the figures `racer/*` once a step, and only where the laps of training are not logged."""
        if self.logs_laps and self._laps_logged_at != self._step:
            figures = {**figures, **racer}
        self._writer.log_evaluation(figures, self._step)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("step %d: %s", self._step, ", ".join(f"{key} {value:g}" for key, value in figures.items()))

    def save_boundary(self) -> None:
        """Save the state from before the current rollout, if it was captured."""
        if self._boundary is not None:
            self._save(self._boundary)
