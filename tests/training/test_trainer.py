"""One run from one configuration: what the trainer builds and writes, and that it cleans up when something fails."""

import json
import re
import threading
from types import SimpleNamespace

import msgspec
import pytest
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from hotlap.config import as_plain
from hotlap.errors import HotlapError, OutputFileError
from hotlap.learning.ppo import PPO
from hotlap.models.archive import read_about, read_archive, tensors_digest
from hotlap.models.model_file import read_model
from hotlap.runs.metrics_document import TrainingMetrics
from hotlap.runs.run_folder import RunFolder
from hotlap.runs.snapshot import REPLAY_GROUP
from hotlap.training import run_state, run_writer
from hotlap.training import trainer as trainer_module
from hotlap.training.policy_evaluation import FINAL_SEED, PolicyEvaluator, evaluate_model
from hotlap.training.results import ExperimentResults
from hotlap.training.trainer import Observer, Trainer
from tiny_runs import LUNAR, RACER, StopAt, folder_at, skip_evaluation, tiny_config, train


@pytest.fixture
def lazy(monkeypatch):
    """Leaves the learning out."""
    monkeypatch.setattr(trainer_module._Session, "_learn", lambda self: True)
    skip_evaluation(monkeypatch)


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


class Seen(Observer):
    """Keeps what it is told."""

    def __init__(self):
        self.learners, self.steps = [], []

    def on_rollout_start(self, learner):
        self.learners.append(learner)

    def on_step(self, events):
        self.steps.append(events.num_timesteps)
        return True


@pytest.mark.parametrize(
    ("algo", "env", "kind"), [("ppo", RACER, "PPO"), ("a2c", LUNAR, "SB3Learner"), ("sac", "Pendulum-v1", "SB3Learner")]
)
def test_an_observer_is_told_every_rollout_and_step_of_the_runs_learner(tmp_path, monkeypatch, algo, env, kind):
    skip_evaluation(monkeypatch)
    config, seen = tiny_config(algo, env, num_envs=2, **{algo: {"learning_rate": 1.25e-3}}), Seen()
    outcome = Trainer(config, folder_at(tmp_path, config), observers=[seen]).run()
    assert seen.steps == list(range(2, 101, 2))
    assert {type(learner).__name__ for learner in seen.learners} == {kind}
    assert len(seen.learners) == {"ppo": 2, "a2c": 10, "sac": 25}[algo]
    assert outcome.results.hyperparameters == as_plain(config.hyperparameters)
    assert "learning_rate = 0.00125" in (tmp_path / "config.toml").read_text()


def test_an_observer_may_end_a_run_which_then_has_no_results(tmp_path):
    class End(Observer):
        def on_step(self, events):
            return events.num_timesteps < 40

    config = tiny_config()
    outcome = Trainer(config, folder_at(tmp_path, config), observers=[End()]).run()
    assert (outcome.step, outcome.results, outcome.is_stopped) == (40, None, False)


def test_torch_uses_the_configured_number_of_threads(tmp_path, lazy):
    before = torch.get_num_threads()
    try:
        train(tiny_config(torch_threads=2), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


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


# --- timing ---


class Clock(StopAt):
    """A clock that advances by one second per step; also asks the trainer to stop at a step."""

    def __init__(self, monkeypatch):
        super().__init__(step=50)
        self.now_s = 1000.0
        clock = SimpleNamespace(time=self.read, monotonic=self.read)
        for module in (trainer_module, run_state):
            monkeypatch.setattr(module, "time", clock)

    def read(self):
        return self.now_s

    def on_step(self, events):
        self.now_s += 1.0
        return super().on_step(events)


def test_training_time_is_summed_over_all_resumes_without_the_final_evaluation(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    clock, config = Clock(monkeypatch), tiny_config(checkpoint={"interval": 0})
    evaluate = PolicyEvaluator.evaluate_returns

    def slowly(*arguments):
        clock.now_s += 500.0
        return evaluate(*arguments)

    monkeypatch.setattr(PolicyEvaluator, "evaluate_returns", slowly)
    folder = folder_at(tmp_path, config)
    clock.trainer = Trainer(config, folder, observers=[clock])
    assert clock.trainer.run().results is None
    clock.now_s += 10_000.0  # between the two processes
    clock._step = 1000
    trainer = Trainer(config, folder, observers=[clock])
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
    closed, close, before = [], PPO.close, threading.active_count()

    def closing(self):
        closed.append(self)
        close(self)

    monkeypatch.setattr(PPO, "close", closing)
    yield
    assert len(closed) == 1
    assert threading.active_count() == before


@pytest.mark.parametrize("stop_at", [None, 5])
def test_environments_and_threads_end_with_the_run(tmp_path, cleaned_up, monkeypatch, stop_at):
    skip_evaluation(monkeypatch)
    train(tiny_config(), tmp_path, stop_at)


class Failing(Observer):
    """Raises in the middle of a rollout."""

    def __init__(self, error):
        self._error = error

    def on_step(self, events):
        raise self._error


@pytest.mark.parametrize("error", [RuntimeError("fire"), KeyboardInterrupt(), MemoryError()])
def test_environments_and_threads_end_when_learning_fails(tmp_path, cleaned_up, error):
    config = tiny_config()
    with pytest.raises(type(error)):
        Trainer(config, folder_at(tmp_path, config), observers=[Failing(error)]).run()


def fail(*arguments, **more):
    raise OutputFileError("no room")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (trainer_module, "PolicyEvaluator"),
        (run_writer, "EventWriter"),
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
