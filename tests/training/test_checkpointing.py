"""When a run is checkpointed, evaluated and stopped. The learner is a double that only counts steps."""

import math

import pytest

from hotlap.errors import OutputFileError
from hotlap.learning.distributed.processes import ALONE
from hotlap.learning.step_budget import plan_rollout
from hotlap.runs.snapshot import Snapshot
from hotlap.training.checkpointing import Checkpointing
from hotlap.training.policy_evaluation import PolicyScore

ON_POLICY, OFF_POLICY = 0, 1000  # bytes of the replay buffer


class CountingLearner:
    """Counts steps, and does nothing else."""

    processes = ALONE
    has_atomic_rollouts = False

    def __init__(self, replay_bytes, n_steps, n_envs):
        self.replay_bytes, self.n_steps, self.total_envs = replay_bytes, n_steps, n_envs
        self.num_timesteps, self.budget = 0, 0

    @property
    def plan(self):
        return plan_rollout(self.num_timesteps, self.budget, self.total_envs, self.n_steps)

    def policy(self):
        return self


class Run:
    """A run without learning under real checkpointing; also its own run state, writer and evaluator."""

    def __init__(
        self, replay_bytes=ON_POLICY, *, n_steps=40, n_envs=1, interval=0, evaluation_interval=0, scores=(), **more
    ):
        self.saved = []  # (step, step of the state, the checkpointing's state in it)
        self.evaluated, self.best, self.logged = [], [], []
        self.is_disk_full = False
        self.num_captures = 0
        self.learner = CountingLearner(replay_bytes, n_steps, n_envs)
        self._scores = iter(scores)
        self.checkpointing = Checkpointing(
            self.learner,
            self,
            self,
            self,
            checkpoint_interval=interval,
            evaluation_interval=evaluation_interval,
            **more,
        )

    has_best = True

    def check_sizes(self, snapshot, replay_bytes):
        self.num_captures -= 1  # not a state that may be saved

    def resume_from(self, saved):
        _, self.learner.num_timesteps, state = saved
        self.checkpointing.set_state(state)
        return self

    def capture(self, checkpointing, *, with_replay):
        self.num_captures += 1
        counters = {"num_timesteps": self.learner.num_timesteps}
        return Snapshot({"learner": {"counters": counters}, "checkpointing": checkpointing.get_state()}, {})

    def save_checkpoint(self, snapshot, step):
        if self.is_disk_full:
            raise OutputFileError("checkpoint: cannot be written (No space left on device).")
        self.saved.append((step, snapshot.step, snapshot.plain["checkpointing"]))

    def score(self, policy):
        self.evaluated.append(policy.num_timesteps)
        score = next(self._scores, 0.0)
        return PolicyScore((score,), {"eval/mean_reward": score}, {"racer/completion_rate": 0.75})

    def lap_figures(self, policy):
        return {"racer/completion_rate": 0.25}

    def log_evaluation(self, figures, step):
        self.logged.append((step, figures))

    def save_best(self, snapshot):
        if self.is_disk_full:
            raise OutputFileError("best: cannot be written (No space left on device).")
        self.best.append(snapshot.step)

    def learn(self, steps, stop_at=None):
        """Go through a run as the trainer does, up to `steps`; False where it was stopped."""
        learner, checkpointing = self.learner, self.checkpointing
        learner.budget = steps
        checkpointing.begin_training()
        while learner.num_timesteps < steps:
            checkpointing.begin_rollout()
            for _ in range(learner.plan.num_steps):
                learner.num_timesteps += learner.total_envs
                if stop_at is not None and learner.num_timesteps >= stop_at:
                    checkpointing.is_stop_requested = True
                if not checkpointing.note_step():
                    return False
        checkpointing.end_training()
        return True

    @property
    def steps(self):
        """The step of each checkpoint, and the step a run resumes from."""
        return [(step, state) for step, state, _ in self.saved]


# --- checkpoints ---


@pytest.mark.parametrize(
    ("options", "steps", "expected"),
    [
        # Due within a rollout: the state from before the rollout.
        ({"interval": 30}, 160, [(30, 0), (60, 40), (90, 80), (120, 120), (150, 120)]),
        # Due at the end of a rollout: the state after its update.
        ({"interval": 40}, 120, [(40, 40), (80, 80), (120, 120)]),
        # Several environments: the first vector step past the interval.
        ({"n_envs": 7, "n_steps": 10, "interval": 50}, 210, [(56, 0), (105, 70), (154, 140), (203, 140)]),
        # Several intervals within one vector step: one checkpoint.
        ({"n_envs": 100, "n_steps": 2, "interval": 30}, 400, [(100, 0), (200, 200), (300, 200), (400, 400)]),
        ({}, 100, []),
    ],
)
def test_checkpoints_are_saved_at_each_interval_with_a_state_from_a_rollout_boundary(options, steps, expected):
    run = Run(**options)
    run.learn(steps)
    assert run.steps == expected


@pytest.mark.parametrize("kind", [ON_POLICY, OFF_POLICY])
def test_a_checkpoint_at_the_end_of_a_short_rollout_holds_the_state_before_it(kind):
    run = Run(kind, n_steps=4, interval=10)
    run.learn(10)
    assert run.steps == [(10, 8)]


@pytest.mark.parametrize(
    ("kind", "n_steps", "num_captures"),
    [
        (ON_POLICY, 40, 5),  # at each boundary, in case of a stop
        (ON_POLICY, 5, 3),  # only those that are saved
        (OFF_POLICY, 1, 3),
        (OFF_POLICY, 40, 3),  # a replay buffer is copied only for a checkpoint
    ],
)
def test_states_are_captured_only_where_they_may_be_needed(kind, n_steps, num_captures):
    run = Run(kind, n_steps=n_steps, interval=60)
    run.learn(200)
    assert [step for step, _ in run.steps] == [60, 120, 180]
    assert run.num_captures == num_captures


def test_a_resumed_run_saves_at_the_same_steps():
    options = {"interval": 30, "n_steps": 20}
    whole, first, second = Run(**options), Run(**options), Run(**options)
    whole.learn(200)
    first.learn(70)
    assert first.steps[-1] == (60, 60)
    second.resume_from(first.saved[-1]).learn(200)
    assert first.steps + second.steps == whole.steps


def test_a_full_disk_costs_the_checkpoint_and_is_logged(caplog):
    run = Run(interval=30)
    run.is_disk_full = True
    run.learn(50)
    assert (run.saved, run.checkpointing.is_saved) == ([], False)
    [message] = caplog.messages
    assert "No space left on device" in message
    assert "Training continues" in message
    run.is_disk_full = False
    run.learn(100)
    assert [step for step, _ in run.steps] == [60, 90]
    assert run.checkpointing.is_saved
    run.is_disk_full = True
    run.learn(200, stop_at=110)
    assert (run.checkpointing.is_stopped, run.checkpointing.is_saved) == (True, False)


# --- stopping ---


@pytest.mark.parametrize("stop_at", [1, 2, 39, 40, 41, 79, 80, 100])
def test_a_stop_saves_the_state_before_the_rollout_at_once(stop_at):
    run = Run()
    assert not run.learn(200, stop_at)
    assert run.steps == [(stop_at, (stop_at - 1) // 40 * 40)]
    assert run.checkpointing.is_stopped


@pytest.mark.parametrize(("kind", "n_steps"), [(ON_POLICY, 5), (OFF_POLICY, 4)])
def test_without_a_captured_state_a_stop_waits_for_the_end_of_the_rollout(kind, n_steps):
    run = Run(kind, n_steps=n_steps)
    assert not run.learn(200, stop_at=11)
    boundary = math.ceil(11 / n_steps) * n_steps
    assert run.steps == [(boundary + 1, boundary)]


def test_a_stop_requested_before_the_start_saves_the_initial_state_and_one_after_the_end_nothing():
    run = Run()
    run.checkpointing.is_stop_requested = True
    assert not run.learn(200)
    assert run.steps == [(1, 0)]
    run = Run(ON_POLICY, n_steps=5)
    assert run.learn(10, stop_at=10)
    assert (run.steps, run.checkpointing.is_stopped) == ([], False)


def test_a_stop_does_not_wait_for_a_due_evaluation_which_the_resumed_run_makes():
    run = Run(ON_POLICY, n_steps=5, evaluation_interval=10)
    run.learn(200, stop_at=9)
    assert run.evaluated == []
    resumed = Run(ON_POLICY, n_steps=5, evaluation_interval=10).resume_from(run.saved[-1])
    resumed.learn(15)
    assert resumed.evaluated[0] == run.saved[-1][1] == 10


# --- evaluations ---


@pytest.mark.parametrize(
    ("interval", "steps", "expected"), [(50, 210, [80, 120, 160, 200, 210]), (40, 80, [40, 80]), (0, 100, [])]
)
def test_evaluations_are_at_the_first_boundary_after_each_interval_and_at_the_end(interval, steps, expected):
    run = Run(evaluation_interval=interval)
    run.learn(steps)
    assert run.evaluated == expected


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([1.0, 0.5, 1.0, 1.1, 3.0, 2.0], [40, 160, 200]),
        ([math.nan, -5.0, math.nan], [40, 80]),  # NaN is worse than any number
    ],
)
def test_figures_are_logged_at_their_own_step_and_only_a_better_model_is_saved(scores, best):
    run = Run(evaluation_interval=40, scores=scores)
    run.learn(40 * len(scores))
    assert run.best == best
    assert [step for step, _ in run.logged] == [40 * (number + 1) for number in range(len(scores))]
    assert str([figures["eval/mean_reward"] for _, figures in run.logged]) == str(scores)


def test_a_resumed_run_keeps_the_best_score_and_does_not_repeat_the_evaluation_at_its_end():
    run = Run(evaluation_interval=40, interval=40, scores=[1.0, 2.0])
    run.learn(80)
    resumed = Run(evaluation_interval=40, scores=[1.5, 2.5]).resume_from(run.saved[-1])
    resumed.learn(80)
    assert resumed.evaluated == []
    resumed.learn(160)
    assert resumed.best == [160]


def test_training_continues_when_the_best_model_cannot_be_written(caplog):
    run = Run(evaluation_interval=40, scores=[1.0])
    run.is_disk_full = True
    assert run.learn(40)
    assert "without this best model" in caplog.messages[0]
    assert caplog.records[0].levelname == "WARNING"


# --- laps ---


def laps_of(run):
    return [
        (step, figures["racer/completion_rate"]) for step, figures in run.logged if "racer/completion_rate" in figures
    ]


def test_evaluations_log_laps_only_where_they_are_asked_to():
    run = Run(evaluation_interval=80, curve_interval=40)
    run.learn(200)
    assert laps_of(run) == []
    assert run.evaluated == [80, 160, 200]


def test_smaller_evaluations_between_those_that_select_log_laps_only():
    run = Run(evaluation_interval=120, curve_interval=50, logs_laps=True)
    run.learn(280)
    assert run.evaluated == [120, 240, 280]
    # The one that selects serves at its step; the next smaller one comes at the first boundary from 150 on.
    assert laps_of(run) == [(80, 0.25), (120, 0.75), (160, 0.25), (200, 0.25), (240, 0.75), (280, 0.75)]
    assert [step for step, figures in run.logged if "eval/mean_reward" in figures] == [120, 240, 280]


def test_without_evaluations_that_select_the_smaller_ones_include_the_last_step():
    run = Run(curve_interval=80, logs_laps=True)
    run.learn(200)
    assert laps_of(run) == [(80, 0.25), (160, 0.25), (200, 0.25)]
    assert (run.evaluated, run.best) == ([], [])


@pytest.mark.parametrize("stop_at", [30, 50, 95, 130, 210])
def test_a_resumed_run_has_every_point_of_the_laps_once(stop_at):
    options = {"n_steps": 40, "evaluation_interval": 120, "curve_interval": 40, "logs_laps": True}
    whole = Run(**options)
    whole.learn(280)
    run = Run(**options)
    assert not run.learn(280, stop_at=stop_at)
    _, step, _ = run.saved[-1]
    # The rule may say something else now: the checkpoint decides.
    resumed = Run(**{**options, "logs_laps": False}).resume_from(run.saved[-1])
    assert resumed.checkpointing.logs_laps
    resumed.learn(280)
    kept = [point for point in laps_of(run) if point[0] <= step]
    assert kept + laps_of(resumed) == laps_of(whole)


def test_a_checkpoint_without_the_laps_state_resumes():
    state = Run(evaluation_interval=120).checkpointing.get_state()
    for name in ("next_curve", "laps_logged_at", "logs_laps"):
        del state[name]
    run = Run(evaluation_interval=120, curve_interval=40, logs_laps=True)
    run.checkpointing.set_state(state)
    run.learn(80)
    assert laps_of(run) == [(40, 0.25), (80, 0.75)]
