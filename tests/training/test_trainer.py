"""One run from one configuration: what the trainer builds and writes, and that it cleans up when something fails."""

import json
import re
import threading
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.config import as_plain
from hotlap.errors import HotlapError, OutputFileError
from hotlap.evaluation.evaluate import Evaluation
from hotlap.models.archive import read_about, read_archive, tensors_digest
from hotlap.models.model_file import read_model
from hotlap.runs.metrics_document import TrainingMetrics
from hotlap.runs.run_folder import RunFolder
from hotlap.runs.snapshot import REPLAY_GROUP
from hotlap.sim.world import INFO_DTYPE
from hotlap.training import run_writer
from hotlap.training import trainer as trainer_module
from hotlap.training.algorithms.registry import LEARNERS
from hotlap.training.policy_evaluation import FINAL_SEED, PolicyEvaluator, evaluate_model
from hotlap.training.results import ExperimentResults
from hotlap.training.state import run_state
from hotlap.training.trainer import Trainer
from hotlap.training.vec_envs.factory import TrainingEnvs
from hotlap.training.vec_envs.tensor_cars import TensorCars
from tiny_runs import (
    ALGORITHMS,
    LUNAR,
    RACER,
    StopAt,
    folder_at,
    metrics,
    read_events,
    skip_evaluation,
    tiny_config,
    train,
)


@pytest.fixture
def lazy(monkeypatch):
    """Replaces the library's `learn` by a double that only records its arguments."""
    calls = []

    def learn(self, total_timesteps, **arguments):
        calls.append((self, total_timesteps, arguments))
        self.num_timesteps += total_timesteps
        return self

    for spec in LEARNERS.values():
        monkeypatch.setattr(spec.learner, "learn", learn)
    skip_evaluation(monkeypatch)
    return calls


# --- construction ---


def test_nothing_is_written_before_environments_and_learner_are_built(tmp_path, lazy):
    config, path = tiny_config(), tmp_path / "run"
    seen = []

    def make_folder():
        seen.append(path.exists())
        folder_at(path, config)

    trainer = Trainer(config, RunFolder(path, config.experiment_id))
    assert (trainer.checkpoints.config, trainer.optimal_lap_s) == (config.checkpoint, None)
    trainer.run(on_ready=make_folder)
    assert seen == [False]
    own = [f"ppo_seed42_{name}" for name in ("metrics.json", "model.zip", "results.json")]
    assert sorted(file.name for file in path.iterdir()) == ["config.toml", *own, "tensorboard"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (tiny_config(racer={"track": "nowhere"}), "track 'nowhere' is not known"),
        (tiny_config("sac", "CartPole-v1"), "SAC needs continuous actions"),
        (tiny_config(policy={"kind": "MultiInputPolicy"}), "MultiInputPolicy does not suit observations"),
        (tiny_config(device="cuda"), "--device cuda: torch finds no NVIDIA GPU"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is_written(tmp_path, monkeypatch, config, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    path = tmp_path / "run"
    trainer = Trainer(config, RunFolder(path, config.experiment_id))
    with pytest.raises(HotlapError, match=words):
        trainer.run(on_ready=lambda: folder_at(path, config))
    assert not path.exists()


class Mine(BaseCallback):
    def _on_step(self):
        return True


@pytest.mark.parametrize(("algo", "env"), [("ppo", RACER), ("a2c", LUNAR), ("sac", "Pendulum-v1")])
def test_the_learner_has_the_runs_settings_and_callbacks(tmp_path, lazy, algo, env):
    config = tiny_config(algo, env, num_envs=2, **{algo: {"learning_rate": 1.25e-3}})
    outcome = Trainer(config, folder_at(tmp_path, config), on_progress=print, callbacks=[Mine()]).run()
    [(model, steps, arguments)] = lazy
    name = "TensorPPO" if algo == "ppo" else f"Hotlap{algo.upper()}"
    assert (type(model).__name__, model.n_envs, steps) == (name, 2, 100)
    assert arguments["reset_num_timesteps"] is True
    assert arguments["log_interval"] == (4 if algo == "sac" else 1)
    names = ["RacerMetricsCallback"] * (env == RACER) + ["MetricsCallback", "CheckpointingCallback", "ProgressCallback"]
    assert [type(callback).__name__ for callback in arguments["callback"].callbacks] == [*names, "Mine"]
    assert model.learning_rate == 1.25e-3
    assert outcome.results.hyperparameters == as_plain(config.hyperparameters)
    assert "learning_rate = 0.00125" in (tmp_path / "config.toml").read_text()


def test_torch_uses_the_configured_number_of_threads(tmp_path, lazy):
    before = torch.get_num_threads()
    try:
        train(tiny_config(torch_threads=2), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_global_generators_are_seeded(tmp_path, lazy, monkeypatch):
    drawn = []
    make = trainer_module.TrainingEnvs

    def drawing(*arguments):
        drawn.append((np.random.random(), torch.rand(1).item()))  # noqa: NPY002
        return make(*arguments)

    monkeypatch.setattr(trainer_module, "TrainingEnvs", drawing)
    for number, seed in enumerate((1, 1, 2)):
        train(tiny_config(seed=seed), tmp_path / str(number))
    assert drawn[0] == drawn[1] != drawn[2]


# --- results ---

RESULTS = {
    "metadata": {"experiment_id", "algorithm", "environment", "seed", "start_time", "end_time", "total_timesteps"},
    "model": {"policy", "model_file", "checkpoint_interval", "checkpoints"},
    "metrics": {"final_reward_mean", "final_reward_std", "episode_length_mean", "total_episodes",
                "training_time_seconds", "converged"},
}  # fmt: skip
METRICS = {
    "metadata": {"experiment_id", "algorithm", "environment", "seed", "recording_interval"},
    "aggregated": {"reward_mean", "reward_std", "reward_min", "reward_max", "episode_length_mean", "total_timesteps"},
}
POINT = {"timestep", "episode", "reward", "episode_length", "loss", "timestamp"}
RACER_POINT = {"timestep", "mean_lap_time_sec", "best_lap_time_sec", "completion_rate", "episodes_this_rollout",
               "gap_to_optimal"}  # fmt: skip
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(scope="module", params=[(RACER, 3), (LUNAR, 1)], ids=["racer", "lunar"])
def finished(request, tmp_path_factory):
    """The configuration, folder and outcome of a short run with evaluations."""
    env, num_envs = request.param
    path = tmp_path_factory.mktemp("finished")
    config = tiny_config(env=env, num_envs=num_envs, evaluation={"interval": 50, "episodes": 2, "final_episodes": 3})
    return config, folder_at(path, config), train(config, path)


def test_the_documents_have_the_contracts_keys(finished):
    config, folder, outcome = finished
    document = json.loads(folder.results.read_text())
    assert set(document) == {"experiment_results"}
    content = document["experiment_results"]
    sections = {*RESULTS, "hyperparameters", "environment", "provenance", "best"}
    assert set(content) == sections | ({"evaluation"} if config.is_racer else set())
    assert {section: set(content[section]) for section in RESULTS} == RESULTS
    assert all(UTC.fullmatch(content["metadata"][name]) for name in ("start_time", "end_time"))
    assert ExperimentResults.load(folder.results) == outcome.results

    document = json.loads(folder.metrics.read_text())
    assert set(document) == {"training_metrics"}
    content = document["training_metrics"]
    assert set(content) == {*METRICS, "time_series"} | ({"racer_series"} if config.is_racer else set())
    assert all(set(point) == RACER_POINT for point in content.get("racer_series", ()))
    assert {section: set(content[section]) for section in METRICS} == METRICS
    assert all(set(point) == POINT and UTC.fullmatch(point["timestamp"]) for point in content["time_series"])
    steps = [point["timestep"] for point in content["time_series"]]
    assert steps[:2] == [config.num_envs, -(-10 // config.num_envs) * config.num_envs]
    assert steps[-1] == outcome.step
    assert steps == sorted(set(steps))
    assert content["aggregated"]["total_timesteps"] == outcome.step
    assert TrainingMetrics.load(folder.metrics).to_dict() == document


def test_figures_and_files_agree_with_each_other(finished):
    config, folder, outcome = finished
    results = outcome.results
    assert outcome.step == results.metadata.total_timesteps == (102 if config.is_racer else 100)
    steps = (42, 81) if config.is_racer else (40, 80)
    assert results.model.checkpoints == tuple(f"checkpoint_{step}.zip" for step in steps)
    assert all((folder.path / name).is_file() for name in results.model.checkpoints)
    assert results.model.model_file == folder.model.name
    card = read_about(folder.model)["card"]
    weights = read_archive(folder.model).tensors["policy"]
    assert results.provenance.weights_digest == tensors_digest(weights) == card["weights_digest"]
    assert results.provenance.config_digest == config.digest() == card["config_digest"]
    assert card["step"] == outcome.step
    assert results.metrics.final_reward_std >= 0.0
    # The racer has no reward threshold.
    assert results.metrics.converged is (None if config.is_racer else False)
    best = read_model(folder.best)
    if config.is_racer:
        metrics = TrainingMetrics.load(folder.metrics)
        assert results.metrics.total_episodes >= metrics.time_series[-1].episode > 0
        # Of the best model, over starts not used for selection.
        found = [results.evaluation[name] for name in ("episodes", "track", "driver", "seed")]
        assert found == [3, "track-01", "ppo_seed42_best", FINAL_SEED]
        assert results.best == {"model_file": folder.best.name, "step": best.card.step, **results.evaluation}
    else:
        names = ("final_reward_mean", "final_reward_std", "episode_length_mean")
        for path, found in ((folder.model, msgspec.structs.asdict(results.metrics)), (folder.best, results.best)):
            expected = evaluate_model(path, episodes=3, seed=FINAL_SEED)
            assert [found[name] for name in names] == pytest.approx(
                [expected[name] for name in ("mean_reward", "std_reward", "mean_episode_length")]
            )
        assert (results.best["model_file"], results.best["step"]) == (folder.best.name, best.card.step)
        assert results.best["converged"] is False


def test_a_model_holds_the_whole_state_but_no_replay_buffer(finished):
    _, folder, _ = finished
    for path in (folder.model, folder.best):
        archive = read_archive(path)
        assert {"policy", "optimizers", "normalizer", "rng"} <= set(archive.tensors)
        assert REPLAY_GROUP not in archive.tensors
        assert set(archive.documents) == {"state"}
    model = read_model(folder.best)
    assert {"obs_mean", "obs_var"} <= set(model.normalizer)
    assert 50 <= model.card.step <= 102


def test_tensorboards_files_hold_all_documented_figures(tmp_path, monkeypatch):
    """A real training run, except that car 0 reports a lap every 20 steps."""
    step, steps = TensorCars.step, []

    def lapping(self):
        step(self)
        steps.append(1)
        if len(steps) % 20 == 0 and not self.ended[0]:
            info = self.infos.numpy().view(INFO_DTYPE)[0, 0]
            info["lapTime"], info["lapClean"], info["lap"], info["stepCount"] = 30.0 + len(steps), True, 2, len(steps)

    monkeypatch.setattr(TensorCars, "step", lapping)
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
    # The library logs the loss of an update with the next rollout.
    assert [step for step, _ in logged("train/loss")] == [128, 192]


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
    step = TensorCars.step

    def lapping(self):
        step(self)
        if self.episode_lengths[0] == 5:
            info = self.infos.numpy().view(INFO_DTYPE)[0, 0]
            info["lapTime"], info["lapClean"], info["lap"], info["stepCount"] = 30.0, True, 2, 5

    monkeypatch.setattr(TensorCars, "step", lapping)
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


# --- timing ---


class Clock(BaseCallback):
    """A clock that advances by one second per step."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.now_s = 1000.0
        clock = SimpleNamespace(time=self.read, monotonic=self.read)
        for module in (trainer_module, run_state):
            monkeypatch.setattr(module, "time", clock)

    def read(self):
        return self.now_s

    def _on_step(self):
        self.now_s += 1.0
        return True


def test_training_time_is_summed_over_all_resumes_without_the_final_evaluation(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    clock, config = Clock(monkeypatch), tiny_config(checkpoint={"interval": 0})
    evaluate = PolicyEvaluator.evaluate_returns

    def slowly(*arguments):
        clock.now_s += 500.0
        return evaluate(*arguments)

    monkeypatch.setattr(PolicyEvaluator, "evaluate_returns", slowly)
    folder, stop = folder_at(tmp_path, config), StopAt(50)
    stop.trainer = Trainer(config, folder, callbacks=[stop, clock])
    assert stop.trainer.run().results is None
    clock.now_s += 10_000.0  # between the two processes
    trainer = Trainer(config, folder, callbacks=[clock])
    results = trainer.run(trainer.checkpoints.find_newest()).results
    assert results.metrics.training_time_seconds == 100.0
    assert results.metadata.start_time == "1970-01-01T00:16:40.000Z"
    # It started at 1,000 s, trained for 51 s, paused for 10,000 s, trained from step 32 to the end for 68 s, and was
    # evaluated for 500 s.
    assert results.metadata.end_time == "1970-01-01T03:13:39.000Z"


# --- clean-up ---


@pytest.fixture
def cleaned_up(monkeypatch):
    """Checks at the end that environments were closed once and that no thread is left."""
    closed, close, before = [], TrainingEnvs.close, threading.active_count()

    def closing(self):
        closed.append(self)
        close(self)

    monkeypatch.setattr(TrainingEnvs, "close", closing)
    yield
    assert len(closed) == 1
    assert threading.active_count() == before


@pytest.mark.parametrize("stop_at", [None, 5])
def test_environments_and_threads_end_with_the_run(tmp_path, cleaned_up, monkeypatch, stop_at):
    skip_evaluation(monkeypatch)
    train(tiny_config(), tmp_path, stop_at)


class Failing(BaseCallback):
    """Raises in the middle of a rollout."""

    def __init__(self, error):
        super().__init__()
        self._error = error

    def _on_step(self):
        raise self._error


@pytest.mark.parametrize("error", [RuntimeError("fire"), KeyboardInterrupt(), MemoryError()])
def test_environments_and_threads_end_when_learning_fails(tmp_path, cleaned_up, error):
    config = tiny_config()
    with pytest.raises(type(error)):
        Trainer(config, folder_at(tmp_path, config), callbacks=[Failing(error)]).run()


def fail(*arguments, **more):
    raise OutputFileError("no room")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (trainer_module, "build_learner"),
        (trainer_module, "PolicyEvaluator"),
        (run_writer, "EventOutput"),
        (run_writer, "MetricsCollector"),
        (run_writer, "save_snapshot"),
        (None, "on_ready"),
    ],
)
def test_environments_and_threads_end_wherever_it_fails(tmp_path, cleaned_up, lazy, monkeypatch, module, name):
    if module is not None:
        monkeypatch.setattr(module, name, fail)
    config = tiny_config()
    with pytest.raises(OutputFileError, match="no room"):
        Trainer(config, folder_at(tmp_path, config)).run(on_ready=None if module else fail)


def test_the_librarys_own_save_and_load_which_pickle_are_never_used(tmp_path, monkeypatch):
    for owner, names in ((BaseAlgorithm, ("save", "load", "set_parameters")), (torch, ("save", "load"))):
        for name in names:
            monkeypatch.setattr(owner, name, None)  # a call raises
    config = tiny_config(evaluation={"interval": 50, "episodes": 1})
    train(config, tmp_path, stop_at=60)
    assert train(config, tmp_path, resume=True).results is not None


def test_a_stop_requested_before_training_starts_is_kept(tmp_path):
    config = tiny_config()
    trainer = Trainer(config, folder_at(tmp_path, config))
    outcome = trainer.run(on_ready=trainer.stop)
    assert (outcome.results, outcome.step, outcome.is_saved) == (None, 1, True)
    trainer = Trainer(config, folder_at(tmp_path / "other", config))
    trainer.stop()
    assert trainer.run().step == 1
