"""What the keeper saves, judges and stops, and when; its learner is a double that only counts."""

import logging
import math

import pytest
from stable_baselines3.common.logger import Logger

from hotlap.errors import OutputFileError
from hotlap.training.algorithms.learners import HotlapA2C, HotlapPPO, HotlapSAC
from hotlap.training.callbacks.checkpointing import CheckpointCallback
from hotlap.training.checkpoint import CheckpointConfig, CheckpointManager
from hotlap.training.policy_evaluation import PolicyScore
from hotlap.training.state.snapshot import Snapshot


class Figures:
    """An output of the logger that keeps what it is given."""

    def __init__(self):
        self.told = []

    def write(self, values, excluded, step):
        self.told.append((step, dict(values)))


class Run:
    """A run whose learner collects nothing and learns nothing, under a real keeper."""

    def __init__(self, tmp_path, kind=HotlapPPO, *, n_steps=40, n_envs=1, interval=0, evaluate_each=0, scores=()):
        self.saved = []  # (step, the state's step, the keeper's state in it)
        self.judged, self.best = [], []
        self.disk_is_full = False
        self.captures = 0
        self.n_steps = n_steps
        self.model = kind.__new__(kind)
        self.model.n_envs, self.model.num_timesteps = n_envs, 0
        self.figures = Figures()
        self.model._logger = Logger(None, [self.figures])
        self._scores = iter(scores)
        manager = CheckpointManager(tmp_path, CheckpointConfig(interval))
        self.keeper = CheckpointCallback(manager, self.capture, self.write, self.judge, self.keep_best, evaluate_each)
        self.keeper.init_callback(self.model)

    def capture(self):
        self.captures += 1
        counters = {"num_timesteps": self.model.num_timesteps}
        return Snapshot({"learner": {"counters": counters}, "keeper": self.keeper.get_state()}, {})

    def write(self, snapshot, step):
        if self.disk_is_full:
            raise OutputFileError("checkpoint: cannot be written (No space left on device).")
        self.saved.append((step, snapshot.step, snapshot.plain["keeper"]))

    def judge(self):
        self.judged.append(self.model.num_timesteps)
        score = next(self._scores, 0.0)
        return PolicyScore((score,), {"eval/mean_reward": score}, score)

    def keep_best(self):
        if self.disk_is_full:
            raise OutputFileError("best: cannot be written (No space left on device).")
        self.best.append(self.model.num_timesteps)

    def learn(self, steps, stop_at=None):
        """Do as the library does, to `steps` in all; False where the keeper stopped it."""
        self.keeper.on_training_start({}, {})
        is_going = True
        while is_going and self.model.num_timesteps < steps:
            left = math.ceil((steps - self.model.num_timesteps) / self.model.n_envs)
            self.model.rollout_steps = min(self.n_steps, left)
            self.model.is_rollout_short = left < self.n_steps
            self.keeper.on_rollout_start()
            for _ in range(self.model.rollout_steps):
                self.model.num_timesteps += self.model.n_envs
                if stop_at is not None and self.model.num_timesteps >= stop_at:
                    self.keeper.is_stop_asked = True
                is_going = self.keeper.on_step()
                if not is_going:
                    break
        self.keeper.on_training_end()
        return is_going

    @property
    def steps(self):
        """When it was saved, and the step to go on from."""
        return [(step, state) for step, state, _ in self.saved]


# --- checkpoints ---


def test_a_checkpoint_within_a_rollout_holds_the_rollouts_beginning(tmp_path):
    run = Run(tmp_path, interval=30)
    run.learn(160)
    assert run.steps == [(30, 0), (60, 40), (90, 80), (120, 120), (150, 120)]


def test_a_checkpoint_at_a_rollouts_end_holds_the_state_after_the_update(tmp_path):
    run = Run(tmp_path, interval=40)
    run.learn(120)
    assert run.steps == [(40, 40), (80, 80), (120, 120)]


def test_several_environments_pass_the_interval_with_a_vector_step(tmp_path):
    run = Run(tmp_path, n_envs=7, n_steps=10, interval=50)
    run.learn(210)
    assert run.steps == [(56, 0), (105, 70), (154, 140), (203, 140)]


def test_several_intervals_passed_at_once_are_one_checkpoint(tmp_path):
    run = Run(tmp_path, n_envs=100, n_steps=2, interval=30)
    run.learn(400)
    assert run.steps == [(100, 0), (200, 200), (300, 200), (400, 400)]


@pytest.mark.parametrize("kind", [HotlapPPO, HotlapA2C, HotlapSAC])
def test_after_a_rollout_cut_short_a_longer_run_goes_on_from_its_beginning(tmp_path, kind):
    run = Run(tmp_path, kind, n_steps=4, interval=10)
    run.learn(10)
    assert run.steps == [(10, 8)]


def test_without_an_interval_nothing_is_saved(tmp_path):
    run = Run(tmp_path)
    run.learn(100)
    assert run.saved == []


@pytest.mark.parametrize(
    ("kind", "n_steps", "captures"),
    [
        (HotlapPPO, 40, 5),  # one at each boundary: a stop may come at any time
        (HotlapA2C, 5, 3),  # only those that are saved
        (HotlapSAC, 1, 3),
        (HotlapSAC, 40, 3),  # a replay buffer is not copied on the off chance
    ],
)
def test_states_are_captured_where_they_may_be_needed_and_nowhere_else(tmp_path, kind, n_steps, captures):
    run = Run(tmp_path, kind, n_steps=n_steps, interval=60)
    run.learn(200)
    assert [step for step, _ in run.steps] == [60, 120, 180]
    assert run.captures == captures


def test_the_state_in_a_checkpoint_says_what_comes_next(tmp_path):
    whole, first = Run(tmp_path, interval=30, n_steps=20), Run(tmp_path, interval=30, n_steps=20)
    whole.learn(200)
    first.learn(70)
    step, state, keeper = first.saved[-1]
    assert (step, state) == (60, 60)
    second = Run(tmp_path, interval=30, n_steps=20)
    second.model.num_timesteps = state
    second.keeper.set_state(keeper)
    second.learn(200)
    assert first.steps + second.steps == whole.steps


def test_a_full_disk_costs_the_checkpoint_and_is_said(tmp_path, caplog):
    run = Run(tmp_path, interval=30)
    run.disk_is_full = True
    run.learn(50)
    assert run.saved == []
    assert not run.keeper.is_saved
    [message] = caplog.messages
    assert "No space left on device" in message
    assert "The run goes on" in message
    run.disk_is_full = False
    run.learn(100)
    assert [step for step, _ in run.steps] == [60, 90]
    assert run.keeper.is_saved


# --- stopping ---


@pytest.mark.parametrize("stop_at", [1, 2, 39, 40, 41, 79, 80, 100])
def test_a_stop_saves_the_rollouts_beginning_at_once(tmp_path, stop_at):
    run = Run(tmp_path)
    assert not run.learn(200, stop_at)
    assert run.steps == [(stop_at, (stop_at - 1) // 40 * 40)]
    assert run.keeper.is_stopped


@pytest.mark.parametrize(("kind", "n_steps"), [(HotlapA2C, 5), (HotlapSAC, 4)])
def test_where_no_state_was_captured_a_stop_waits_for_the_rollouts_end(tmp_path, kind, n_steps):
    run = Run(tmp_path, kind, n_steps=n_steps)
    assert not run.learn(200, stop_at=11)
    boundary = math.ceil(11 / n_steps) * n_steps
    assert run.steps == [(boundary + 1, boundary)]


def test_a_stop_asked_for_before_the_beginning_saves_the_beginning(tmp_path):
    run = Run(tmp_path)
    run.keeper.is_stop_asked = True
    assert not run.learn(200)
    assert run.steps == [(1, 0)]


def test_whoever_stops_need_not_wait_for_an_evaluation_that_is_due_and_it_stays_due(tmp_path):
    run = Run(tmp_path, HotlapA2C, n_steps=5, evaluate_each=10)
    run.learn(200, stop_at=9)
    assert run.judged == []
    _, state, keeper = run.saved[-1]
    again = Run(tmp_path, HotlapA2C, n_steps=5, evaluate_each=10)
    again.model.num_timesteps = state
    again.keeper.set_state(keeper)
    again.learn(15)
    assert again.judged[0] == state == 10


def test_a_stop_that_comes_after_the_last_step_changes_nothing(tmp_path):
    run = Run(tmp_path, HotlapA2C, n_steps=5)
    assert run.learn(10, stop_at=10)
    assert not run.keeper.is_stopped


def test_a_stop_that_could_not_be_saved_is_known(tmp_path):
    run = Run(tmp_path)
    run.disk_is_full = True
    run.learn(200, stop_at=50)
    assert run.keeper.is_stopped
    assert not run.keeper.is_saved


# --- evaluations ---


def test_evaluations_come_at_the_first_boundary_after_each_interval_and_at_the_end(tmp_path):
    run = Run(tmp_path, evaluate_each=50)
    run.learn(210)
    assert run.judged == [80, 120, 160, 200, 210]


def test_an_evaluation_at_the_very_end_is_not_done_twice(tmp_path):
    run = Run(tmp_path, evaluate_each=40, interval=40)
    run.learn(80)
    assert run.judged == [40, 80]
    again = Run(tmp_path, evaluate_each=40)
    again.model.num_timesteps = 80
    again.keeper.set_state(run.saved[-1][2])
    again.learn(80)
    assert again.judged == []


def test_an_evaluations_figures_are_told_at_its_own_step(tmp_path):
    run = Run(tmp_path, evaluate_each=40, scores=[1.5, 2.5])
    run.learn(80)
    assert run.figures.told == [(40, {"eval/mean_reward": 1.5}), (80, {"eval/mean_reward": 2.5})]


def test_only_a_better_model_is_kept(tmp_path):
    run = Run(tmp_path, evaluate_each=40, scores=[1.0, 0.5, 1.0, 1.1, 3.0, 2.0])
    run.learn(240)
    assert run.best == [40, 160, 200]


def test_a_score_that_is_no_number_is_worse_than_any(tmp_path):
    run = Run(tmp_path, evaluate_each=40, scores=[math.nan, -5.0, math.nan])
    run.learn(120)
    assert run.best == [40, 80]


def test_the_best_so_far_survives_a_resume(tmp_path):
    run = Run(tmp_path, evaluate_each=40, interval=40, scores=[1.0, 2.0])
    run.learn(80)
    again = Run(tmp_path, evaluate_each=40, scores=[1.5, 2.5])
    again.model.num_timesteps = 80
    again.keeper.set_state(run.saved[-1][2])
    again.learn(160)
    assert again.best == [160]


def test_a_best_model_that_could_not_be_written_ends_nothing(tmp_path, caplog):
    run = Run(tmp_path, evaluate_each=40, scores=[1.0])
    run.disk_is_full = True
    assert run.learn(40)
    assert "without this best model" in caplog.messages[0]
    assert caplog.records[0].levelno == logging.WARNING


def test_without_an_interval_nothing_is_evaluated(tmp_path):
    run = Run(tmp_path)
    run.learn(100)
    assert run.judged == []
