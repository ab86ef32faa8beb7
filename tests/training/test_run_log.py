"""What happens between two logged points is averaged and written once; what is not written survives a resume."""

import json

import numpy as np
import pytest

from hotlap.errors import DivergedError
from hotlap.learning.events import StepEvents
from hotlap.sim.world import INFO_DTYPE
from hotlap.training.run_log import RunLog, find_loss


class Output:
    """Keeps what is written."""

    def __init__(self):
        self.written = []

    def write(self, figures, step):
        self.written.append((step, dict(figures)))


def step(number, episodes=(), terms=None, laps=(), successes=()):
    """A step of our cars: returns and lengths of the episodes that ended, and (time, lap, is clean) of laps."""
    rows = len(episodes) + len(laps)
    infos = np.zeros(rows, INFO_DTYPE)
    infos["lapTime"], infos["lap"] = np.nan, 1
    for row, (time_s, lap, is_clean) in enumerate(laps, len(episodes)):
        infos["lapTime"][row], infos["lap"][row], infos["lapClean"][row] = time_s, lap, is_clean
    ended = np.arange(rows) < len(episodes)
    returns = np.array([value for value, _ in episodes] + [0.0] * len(laps))
    lengths = np.array([length for _, length in episodes] + [0] * len(laps))
    return StepEvents(number, np.arange(rows), ended, returns, lengths, infos, terms or {}, successes)


def dumped(log, at=10):
    output = Output()
    log.dump(at, [output.write])
    [(number, figures)] = output.written
    assert number == at
    return figures


def test_reward_terms_are_means_over_the_steps_and_start_anew_after_a_dump():
    log = RunLog(1)
    log.add_step(step(1, terms={"progress": 1.0, "wall": 0.0}))
    log.add_step(step(2, terms={"progress": 3.0, "wall": -1.0}))
    assert dumped(log) == {"reward/progress": 2.0, "reward/wall": -0.5}
    assert dumped(log) == {}


@pytest.mark.parametrize(("num_envs", "window"), [(1, 100), (128, 128)])
def test_returns_are_means_over_the_last_episodes(num_envs, window):
    log = RunLog(num_envs)
    for number in range(200):
        log.add_step(step(number, [(float(number), 2 * number)]))
    expected = np.mean(range(200 - window, 200))
    found = dumped(log)
    assert (found["rollout/ep_rew_mean"], found["rollout/ep_len_mean"]) == (expected, 2 * expected)
    assert log.mean_return == expected
    assert "rollout/success_rate" not in found


def test_successes_are_logged_where_the_environment_tells_them():
    log = RunLog(1)
    log.add_step(step(1, [(1.0, 5), (2.0, 5)], successes=(True, False)))
    assert dumped(log)["rollout/success_rate"] == 0.5


def test_laps_are_those_since_the_last_dump():
    log = RunLog(1, optimal_lap_s=25.0)
    log.add_step(step(1, [(1.0, 5)], laps=[(40.0, 2, True), (30.0, 3, True)]))
    found = dumped(log)
    assert found["racer/mean_lap_time_sec"] == 35.0
    assert found["racer/best_lap_time_sec"] == 30.0
    assert found["racer/gap_to_optimal"] == pytest.approx(0.2)  # the first lap was standing
    assert (found["racer/completion_rate"], found["racer/episodes_this_rollout"]) == (0.0, 1)
    assert not [name for name in dumped(log) if name.startswith("racer/")]


def test_where_evaluations_log_the_laps_training_does_not():
    log = RunLog(1)
    log.logs_laps = False
    log.add_step(step(1, [(1.0, 5)], laps=[(40.0, 2, True)]))
    assert not [name for name in dumped(log) if name.startswith("racer/")]


def test_figures_of_updates_are_the_newest_and_their_loss_is_returned():
    log = RunLog(1)
    assert log.add_update({"train/loss": 1.0, "train/std": 0.5}) == 1.0
    assert log.add_update({"train/loss": 2.0}) == 2.0
    assert log.add_update({}) is None
    assert dumped(log) == {"train/loss": 2.0, "train/std": 0.5}
    assert dumped(log) == {}


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_refused(loss):
    with pytest.raises(DivergedError, match=f"the loss of the last update is {loss}"):
        RunLog(1).add_update({"train/loss": loss})


def test_the_speed_is_that_of_this_process():
    now = [100.0]
    log = RunLog(1, clock=lambda: now[0])
    log.begin(500)
    now[0] = 104.0
    assert dumped(log, at=900)["time/fps"] == 100


def test_what_is_not_written_yet_survives_a_resume():
    whole, first, second = RunLog(1, optimal_lap_s=25.0), RunLog(1, optimal_lap_s=25.0), RunLog(1, optimal_lap_s=25.0)
    steps = [step(n, [(float(n), n)], {"progress": float(n)}, [(30.0 + n, 3, True)]) for n in range(6)]
    for log, part in ((whole, steps), (first, steps[:4])):
        for one in part:
            log.add_step(one)
        log.add_update({"train/loss": 1.0})
    second.set_state(json.loads(json.dumps(first.get_state())))
    for one in steps[4:]:
        second.add_step(one)
    assert second.num_new_episodes == whole.num_new_episodes == 6
    assert dumped(second) == dumped(whole)


@pytest.mark.parametrize(
    ("values", "loss"),
    [
        ({"train/loss": 1.0, "train/value_loss": 5.0, "train/policy_loss": 7.0}, 1.0),
        ({"train/policy_loss": -0.5, "train/value_loss": 2.0}, 1.5),
        ({"train/actor_loss": -1.0, "train/critic_loss": 4.0, "train/ent_coef_loss": 9.0}, 3.0),
        ({"train/value_loss": 2.0}, None),
        ({"train/critic_loss": 2.0, "rollout/ep_rew_mean": 1.0}, None),
        ({}, None),
    ],
)
def test_the_loss_depends_on_what_the_algorithm_logs(values, loss):
    assert find_loss(values) == loss
