"""What a run writes to TensorBoard and its metrics file while it trains."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.evaluation.evaluate import Evaluation
from hotlap.learning.cars import Cars
from hotlap.sim.world import INFO_DTYPE
from hotlap.training import trainer as trainer_module
from hotlap.training.policy_evaluation import PolicyEvaluator
from hotlap.training.trainer import Trainer
from tiny_runs import ALGORITHMS, folder_at, metrics, read_events, skip_evaluation, tiny_config, train


def test_tensorboards_files_hold_all_documented_figures(tmp_path, monkeypatch):
    """A real training run, except that car 0 reports a lap every 20 steps."""
    step, steps = Cars.step, []

    def lapping(self):
        step(self)
        steps.append(1)
        if len(steps) % 20 == 0 and not self.ended[0]:
            info = self.infos.numpy().view(INFO_DTYPE)[0, 0]
            info["lapTime"], info["lapClean"], info["lap"], info["stepCount"] = 30.0 + len(steps), True, 2, len(steps)

    monkeypatch.setattr(Cars, "step", lapping)
    monkeypatch.setattr(trainer_module, "has_time_for_laps", lambda _: True)
    skip_evaluation(monkeypatch)
    train(tiny_config(num_envs=2, steps=192, evaluation={"interval": 64}), tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()

    def logged(name):
        return [(event.step, pytest.approx(event.value)) for event in events.Scalars(name)]

    names = set(events.Tags()["scalars"])
    assert names >= {f"reward/{key}" for key in ("progress", "speed", "wall", "offTrack", "backward", "stillness")}
    assert names >= {
        "racer/mean_lap_time_sec", "racer/best_lap_time_sec", "racer/completion_rate", "racer/episodes_this_rollout",
        "racer/gap_to_optimal", "rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "train/loss",
        "train/approx_kl", "train/value_loss", "train/learning_rate", "eval/mean_reward",
    }  # fmt: skip
    # Three rollouts of 32 vector steps. Car 0 laps at steps 20, 40 and 80, not at 60: episodes end every 30 steps.
    assert logged("racer/mean_lap_time_sec") == [(64, 50.0), (128, 70.0), (192, 110.0)]
    assert logged("racer/best_lap_time_sec") == [(64, 50.0), (128, 70.0), (192, 110.0)]
    assert logged("racer/episodes_this_rollout")[0] == (64, 2.0)
    assert [step for step, _ in logged("reward/progress")] == [64, 128, 192]
    assert [step for step, _ in logged("eval/mean_reward")] == [64, 128, 192]
    assert [step for step, _ in logged("train/loss")] == [64, 128, 192]


def single(value):
    """As TensorBoard stores it."""
    return float(np.float32(value))


def racer_events(path):
    """The scalars under racer/* of a run, by step."""
    found = {}
    for name, points in read_events(path).items():
        for step, value in points if name.startswith("racer/") else ():
            found.setdefault(step, {})[name.removeprefix("racer/")] = value
    return found


def racer_records(path, config):
    """The racer's series in the metrics file, by step, without the keys that were not logged."""
    found = {}
    for point in metrics(folder_at(path, config))["racer_series"]:
        step = point.pop("timestep")
        assert step not in found
        found[step] = {name: value for name, value in point.items() if value is not None}
    return found


def laps_by_evaluation(monkeypatch):
    """Evaluations give known laps: none the first time, then each a second faster."""
    calls = iter(range(1000))

    def evaluate_laps(self, policy, episodes):
        number = next(calls)
        times_s = (40.0 - number, 42.0 - number) if number else ()
        flying_s = times_s[0] if times_s else None
        return Evaluation(
            "x", "track-01", "random", 0, episodes, len(times_s), len(times_s) / 4, None, flying_s, flying_s, flying_s,
            None, None, None if flying_s is None else flying_s / 28.0 - 1.0, None, 0.0, times_s,
        )  # fmt: skip

    skip_evaluation(monkeypatch)
    monkeypatch.setattr(PolicyEvaluator, "evaluate_laps", evaluate_laps)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_laps_of_episodes_too_short_for_one_are_those_of_the_evaluations(tmp_path, monkeypatch, algo):
    """With the same values in TensorBoard, the metrics file and the progress; nothing where there was no lap."""
    laps_by_evaluation(monkeypatch)
    evaluation = {"interval": 64, "episodes": 4, "curve_interval": 32, "curve_episodes": 2}
    config, reports = tiny_config(algo, num_envs=2, steps=192, evaluation=evaluation), []
    Trainer(config, folder_at(tmp_path, config), on_progress=reports.append).run()
    found = racer_events(tmp_path)
    assert found == racer_records(tmp_path, config)
    first, *later = found.items()
    assert first[1] == {"completion_rate": 0.0, "episodes_this_rollout": {64: 4.0}.get(first[0], 2.0)}
    for number, (step, figures) in enumerate(later, 1):
        is_selecting = any(at == step for at, _ in read_events(tmp_path)["eval/mean_reward"])
        assert figures == {
            "completion_rate": 0.5,
            "episodes_this_rollout": 4.0 if is_selecting else 2.0,
            "mean_lap_time_sec": 41.0 - number,
            "best_lap_time_sec": 40.0 - number,
            "gap_to_optimal": single((40.0 - number) / 28.0 - 1.0),
        }
    assert list(found)[-1] == 192
    assert len(found) >= (3 if algo == "ppo" else 6)  # PPO's rollouts have 64 steps
    last = reports[-1]
    assert last.is_end
    assert (last.completion_rate, last.mean_lap_s, last.best_lap_s, last.gap) == tuple(
        found[192][name] for name in ("completion_rate", "mean_lap_time_sec", "best_lap_time_sec", "gap_to_optimal")
    )


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_metrics_file_has_the_laps_of_training_as_tensorboard_has_them(tmp_path, monkeypatch, algo):
    monkeypatch.setattr(trainer_module, "has_time_for_laps", lambda _: True)
    skip_evaluation(monkeypatch)
    config = tiny_config(algo, num_envs=2, steps=192, evaluation={"interval": 64, "curve_interval": 32})
    train(config, tmp_path)
    found = racer_events(tmp_path)
    assert found == racer_records(tmp_path, config)
    assert found
    assert all(set(figures) == {"completion_rate", "episodes_this_rollout"} for figures in found.values())


def test_short_episodes_without_evaluations_log_no_laps(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    config = tiny_config(num_envs=2, steps=192)
    train(config, tmp_path)
    assert racer_events(tmp_path) == racer_records(tmp_path, config) == {}


@pytest.mark.parametrize(("start", "is_flying"), [("line", False), ("random", True)])
def test_the_first_lap_is_a_flying_one_for_every_start_but_the_line(tmp_path, monkeypatch, start, is_flying):
    """Car 0 reports a clean first lap; only a flying one has a gap to the optimum."""
    step = Cars.step

    def lapping(self):
        step(self)
        if self.episode_lengths[0] == 5:
            info = self.infos.numpy().view(INFO_DTYPE)[0, 0]
            info["lapTime"], info["lapClean"], info["lap"], info["stepCount"] = 30.0, True, 2, 5

    monkeypatch.setattr(Cars, "step", lapping)
    monkeypatch.setattr(trainer_module, "has_time_for_laps", lambda _: True)
    skip_evaluation(monkeypatch)
    episode = {"max_ticks": 30, "stillness_timeout_ticks": 25, "start": start}
    train(tiny_config(num_envs=2, steps=64, racer={"episode": episode}), tmp_path)
    [figures] = racer_events(tmp_path).values()
    assert figures["mean_lap_time_sec"] == 30.0
    assert ("gap_to_optimal" in figures) == is_flying


def test_a_run_shorter_than_its_recording_interval_has_its_first_and_last_step(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    config = tiny_config(num_envs=2, recording_interval=10_000)
    train(config, tmp_path)
    first, last = metrics(folder_at(tmp_path, config))["time_series"]
    assert (first["timestep"], first["episode"], first["reward"], first["loss"]) == (2, 0, None, None)
    assert (last["timestep"], last["episode"] > 0) == (100, True)
    assert isinstance(last["reward"], float)
    assert isinstance(last["loss"], float)
