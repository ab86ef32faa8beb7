"""One run from one configuration: what it builds, keeps to, writes down and lets go, whatever happens on the way."""

import json
import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotlap.config import as_plain
from hotlap.errors import OutputFileError, TrainingError
from hotlap.models.archive import read_about, read_archive, tensors_digest
from hotlap.models.model_file import read_model
from hotlap.training import trainer as module
from hotlap.training.policy_evaluation import FINAL_SEED
from hotlap.training.results import ExperimentResults
from hotlap.training.run_files.metrics_document import TrainingMetrics
from hotlap.training.run_files.run_folder import RunFolder
from hotlap.training.trainer import Trainer
from hotlap.training.vec_envs.factory import TrainingEnvs
from hotlap.training.vec_envs.racer import RacerVecEnv
from tiny_runs import LUNAR, RACER, folder_at, skip_evaluation, tiny_config, train


@pytest.fixture
def lazy(monkeypatch):
    """Runs that learn nothing: the library's `learn` is a double that keeps its arguments."""
    calls = []

    def learn(self, total_timesteps, **arguments):
        calls.append((self, total_timesteps, arguments))
        self.num_timesteps += total_timesteps
        return self

    for kind in ("HotlapPPO", "HotlapA2C", "HotlapSAC"):
        monkeypatch.setattr(f"hotlap.training.algorithms.learners.{kind}.learn", learn)
    skip_evaluation(monkeypatch)
    return calls


@pytest.fixture
def closings(monkeypatch):
    """Grows by one whenever worlds are closed."""
    closed, close = [], TrainingEnvs.close

    def closing(self):
        closed.append(self)
        close(self)

    monkeypatch.setattr(TrainingEnvs, "close", closing)
    return closed


# --- construction ---


def test_making_a_trainer_touches_nothing(tmp_path):
    config = tiny_config()
    trainer = Trainer(config, RunFolder(tmp_path / "run", config.experiment_id))
    assert not (tmp_path / "run").exists()
    assert trainer.checkpoints.config == config.checkpoint
    assert trainer.optimal_lap_s is None


def test_nothing_is_written_before_worlds_and_learner_stand(tmp_path, lazy):
    config, path = tiny_config(), tmp_path / "run"
    seen = []

    def make_folder():
        seen.append(path.exists())
        folder_at(path, config)

    Trainer(config, RunFolder(path, config.experiment_id)).run(on_ready=make_folder)
    assert seen == [False]
    assert sorted(file.name for file in path.iterdir()) == [
        "config.toml", "ppo_seed42_metrics.json", "ppo_seed42_metrics.jsonl", "ppo_seed42_model.zip",
        "ppo_seed42_results.json", "tensorboard",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [
        tiny_config(racer={"track": "nowhere"}),
        tiny_config("sac", "CartPole-v1"),
        tiny_config(policy={"kind": "MultiInputPolicy"}),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_written(tmp_path, config):
    path = tmp_path / "run"
    trainer = Trainer(config, RunFolder(path, config.experiment_id))
    with pytest.raises((TrainingError, ValueError)):
        trainer.run(on_ready=lambda: folder_at(path, config))
    assert not path.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused(tmp_path):
    config = tiny_config(device="cuda")
    with pytest.raises(TrainingError, match="--device cuda: torch finds no CUDA here"):
        train(config, tmp_path)


# --- model building ---


@pytest.mark.parametrize(("algo", "env"), [("ppo", RACER), ("a2c", LUNAR), ("sac", "Pendulum-v1")])
def test_the_learner_is_the_algorithm_over_the_worlds(tmp_path, lazy, algo, env):
    train(tiny_config(algo, env, num_envs=2), tmp_path)
    [(model, steps, arguments)] = lazy
    assert (type(model).__name__, model.n_envs, steps) == (f"Hotlap{algo.upper()}", 2, 100)
    assert arguments["reset_num_timesteps"] is True
    assert arguments["log_interval"] == (4 if algo == "sac" else 1)
    names = [type(callback).__name__ for callback in arguments["callback"].callbacks]
    assert names == ["RacerMetricsCallback"] * (env == RACER) + ["MetricsCallback", "CheckpointCallback"]


def test_whoever_watches_is_told_and_comes_after_the_runs_own(tmp_path, lazy):
    class Mine(BaseCallback):
        def _on_step(self):
            return True

    config, mine = tiny_config(), Mine()
    Trainer(config, folder_at(tmp_path, config), on_progress=print, callbacks=[mine]).run()
    callbacks = lazy[0][2]["callback"].callbacks
    assert [type(callback).__name__ for callback in callbacks[2:]] == ["CheckpointCallback", "ProgressCallback", "Mine"]


def test_torch_uses_as_many_threads_as_the_settings_say(tmp_path, lazy):
    before = torch.get_num_threads()
    try:
        train(tiny_config(torch_threads=2), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_global_generators_begin_at_the_seed(tmp_path, lazy, monkeypatch):
    drawn = []
    make = module.TrainingEnvs

    def drawing(config):
        drawn.append((np.random.random(), torch.rand(1).item()))  # noqa: NPY002
        return make(config)

    monkeypatch.setattr(module, "TrainingEnvs", drawing)
    for number, seed in enumerate((1, 1, 2)):
        train(tiny_config(seed=seed), tmp_path / str(number))
    assert drawn[0] == drawn[1] != drawn[2]


# --- hyperparameters ---


@pytest.mark.parametrize("algo", ["ppo", "sac", "a2c"])
def test_results_and_configuration_tell_the_hyperparameters_in_use(tmp_path, lazy, algo):
    config = tiny_config(algo, "Pendulum-v1", **{algo: {"learning_rate": 1.25e-3}})
    outcome = train(config, tmp_path)
    assert outcome.results.hyperparameters == as_plain(config.hyperparameters)
    assert outcome.results.hyperparameters["learning_rate"] == 1.25e-3
    assert "learning_rate = 0.00125" in (tmp_path / "config.toml").read_text()


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
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(scope="module", params=[(RACER, 3), (LUNAR, 1)], ids=["racer", "lunar"])
def finished(request, tmp_path_factory):
    """A short run to its end, with evaluations: its configuration, folder and outcome."""
    env, num_envs = request.param
    path = tmp_path_factory.mktemp("finished")
    config = tiny_config(env=env, num_envs=num_envs, evaluation={"interval": 50, "episodes": 2, "final_episodes": 3})
    return config, folder_at(path, config), train(config, path)


def test_the_results_document_has_the_contracts_keys(finished):
    config, folder, outcome = finished
    document = json.loads(folder.results.read_text())
    assert set(document) == {"experiment_results"}
    content = document["experiment_results"]
    sections = {*RESULTS, "hyperparameters", "environment", "provenance"}
    assert set(content) == sections | ({"evaluation"} if config.is_racer else set())
    for section, keys in RESULTS.items():
        assert set(content[section]) == keys
    for name in ("start_time", "end_time"):
        assert UTC.fullmatch(content["metadata"][name])
    assert ExperimentResults.load(folder.results) == outcome.results


def test_the_metrics_document_has_the_contracts_keys(finished):
    config, folder, outcome = finished
    document = json.loads(folder.metrics.read_text())
    assert set(document) == {"training_metrics"}
    content = document["training_metrics"]
    assert set(content) == {*METRICS, "time_series"}
    for section, keys in METRICS.items():
        assert set(content[section]) == keys
    assert all(set(point) == POINT and UTC.fullmatch(point["timestamp"]) for point in content["time_series"])
    steps = [point["timestep"] for point in content["time_series"]]
    first = -(-10 // config.num_envs) * config.num_envs
    assert steps[0] == first
    assert steps == sorted(set(steps))
    assert content["aggregated"]["total_timesteps"] == outcome.step
    assert TrainingMetrics.load(folder.metrics).to_dict() == document


def test_figures_and_files_agree_with_each_other(finished):
    config, folder, outcome = finished
    results = outcome.results
    assert outcome.step == results.metadata.total_timesteps == (102 if config.is_racer else 100)
    assert list(results.model.checkpoints) == [
        f"checkpoint_{step}.zip" for step in ((42, 81) if config.is_racer else (40, 80))
    ]
    assert all((folder.path / name).is_file() for name in results.model.checkpoints)
    assert results.model.model_file == folder.model.name
    metrics = TrainingMetrics.load(folder.metrics)
    assert results.metrics.total_episodes >= metrics.time_series[-1].episode > 0 or not config.is_racer
    weights = read_archive(folder.model).tensors["policy"]
    card = read_about(folder.model)["card"]
    assert results.provenance.weights_digest == tensors_digest(weights) == card["weights_digest"]
    assert results.provenance.config_digest == config.digest() == card["config_digest"]
    assert card["step"] == outcome.step


def test_no_run_on_the_racer_converges_since_it_has_no_threshold(finished):
    config, _, outcome = finished
    assert outcome.results.metrics.converged is (None if config.is_racer else False)


def test_the_final_figures_are_over_as_many_episodes_as_asked_for(finished):
    config, _, outcome = finished
    if config.is_racer:
        assert outcome.results.evaluation["episodes"] == 3
        assert outcome.results.evaluation["track"] == "track-01"
        # Of the best model, over other starts than those by which it was chosen.
        assert outcome.results.evaluation["driver"] == f"{config.experiment_id}_best"
        assert outcome.results.evaluation["seed"] == FINAL_SEED
    assert outcome.results.metrics.final_reward_std >= 0.0


def test_a_model_holds_everything_but_no_pickle_and_no_replay_buffer(finished):
    _, folder, _ = finished
    for path in (folder.model, folder.best):
        archive = read_archive(path)
        assert {"policy", "optimizer", "normalizer", "generators"} <= set(archive.tensors)
        assert "replay" not in archive.tensors
        assert set(archive.documents) == {"state"}


def test_the_best_model_has_its_statistics_inside(finished):
    _, folder, _ = finished
    model = read_model(folder.best)
    assert {"obs_mean", "obs_var"} <= set(model.normalizer)
    assert 50 <= model.card.step <= 102


def test_every_figure_of_the_contract_is_in_tensorboards_files(tmp_path, monkeypatch):
    """A real training, but for a lap that car 0 is said to have finished every 20 steps."""
    step_wait, steps = RacerVecEnv.step_wait, []

    def lapping(self):
        obs, rewards, dones, infos = step_wait(self)
        steps.append(1)
        if len(steps) % 20 == 0 and not dones[0]:
            infos[0] = {"lapTime": 30.0 + len(steps), "lapClean": True, "lap": 2, "stepCount": len(steps)}
        return obs, rewards, dones, infos

    monkeypatch.setattr(RacerVecEnv, "step_wait", lapping)
    skip_evaluation(monkeypatch)
    train(tiny_config(num_envs=2, steps=192, evaluation={"interval": 64}), tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()

    def told(name):
        return [(event.step, pytest.approx(event.value)) for event in events.Scalars(name)]

    names = set(events.Tags()["scalars"])
    assert names >= {f"reward/{key}" for key in ("progress", "speed", "wall", "offTrack", "backward", "stillness")}
    assert names >= {
        "racer/mean_lap_time_sec", "racer/best_lap_time_sec", "racer/completion_rate", "racer/episodes_this_rollout",
        "racer/gap_to_optimal", "rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "train/loss",
        "train/approx_kl", "train/value_loss", "train/learning_rate", "eval/mean_reward",
    }  # fmt: skip
    # Three rollouts of 32 vector steps; car 0 laps at steps 20, 40 and 80; at 60 its episode ends, as every 30 steps.
    assert told("racer/mean_lap_time_sec") == [(64, 50.0), (128, 70.0), (192, 110.0)]
    assert told("racer/best_lap_time_sec") == [(64, 50.0), (128, 70.0), (192, 110.0)]
    assert told("racer/episodes_this_rollout")[0] == (64, 2.0)
    assert [step for step, _ in told("reward/progress")] == [64, 128, 192]
    assert [step for step, _ in told("eval/mean_reward")] == [64, 128, 192]
    assert [step for step, _ in told("train/loss")] == [
        128,
        192,
    ]  # the library writes an update's with the next rollout


# --- timing ---


class Clock(BaseCallback):
    """A clock that stands still but for a second a step."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.now_s = 1000.0
        monkeypatch.setattr(module, "time", SimpleNamespace(time=self.look, monotonic=self.look))

    def look(self):
        return self.now_s

    def _on_step(self):
        self.now_s += 1.0
        return True


def test_training_time_is_what_learning_took_over_all_sittings(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    clock, config = Clock(monkeypatch), tiny_config(checkpoint={"interval": 0})

    class Stop(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 50:
                trainer.stop()
            return True

    folder = folder_at(tmp_path, config)
    trainer = Trainer(config, folder, callbacks=[Stop(), clock])
    assert trainer.run().results is None
    clock.now_s += 10_000.0  # in between, nobody learns
    trainer = Trainer(config, folder, callbacks=[clock])
    results = trainer.run(trainer.checkpoints.find_newest()).results
    assert results.metrics.training_time_seconds == 100.0
    assert results.metadata.start_time == "1970-01-01T00:16:40.000Z"
    # At 1,000 s it began, learned for 51 s, lay for 10,000 s and did again what came after step 32, for 68 s.
    assert results.metadata.end_time == "1970-01-01T03:05:19.000Z"


def test_the_final_evaluation_is_not_training(tmp_path, lazy, monkeypatch):
    clock = Clock(monkeypatch)
    judge = module.PolicyEvaluator.evaluate_returns

    def slowly(self, policy, episodes):
        clock.now_s += 500.0
        return judge(self, policy, episodes)

    monkeypatch.setattr(module.PolicyEvaluator, "evaluate_returns", slowly)
    outcome = train(tiny_config(), tmp_path)
    assert outcome.results.metrics.training_time_seconds == 0.0
    assert outcome.results.metadata.end_time == "1970-01-01T00:25:00.000Z"


# --- clean-up ---


def test_worlds_and_threads_are_let_go_at_the_end(tmp_path, closings, lazy):
    before = threading.active_count()
    train(tiny_config(), tmp_path)
    assert len(closings) == 1
    assert threading.active_count() == before


def test_worlds_and_threads_are_let_go_after_a_stop(tmp_path, closings):
    before = threading.active_count()
    assert train(tiny_config(), tmp_path, stop_at=5).results is None
    assert len(closings) == 1
    assert threading.active_count() == before


class Burning(BaseCallback):
    """Fails in mid-rollout, as anything may."""

    def __init__(self, error):
        super().__init__()
        self._error = error

    def _on_step(self):
        raise self._error


@pytest.mark.parametrize("error", [RuntimeError("fire"), KeyboardInterrupt(), MemoryError()])
def test_worlds_and_threads_are_let_go_when_learning_fails(tmp_path, closings, error):
    config = tiny_config()
    before = threading.active_count()
    with pytest.raises(type(error)):
        Trainer(config, folder_at(tmp_path, config), callbacks=[Burning(error)]).run()
    assert len(closings) == 1
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "place", ["build_model", "PolicyEvaluator", "EventWriter", "MetricsCollector", "save_snapshot"]
)
def test_worlds_and_threads_are_let_go_wherever_it_fails(tmp_path, closings, lazy, monkeypatch, place):
    def fail(*arguments, **more):
        raise OutputFileError("no room")

    monkeypatch.setattr(module, place, fail)
    before = threading.active_count()
    with pytest.raises(OutputFileError, match="no room"):
        train(tiny_config(), tmp_path)
    assert len(closings) == 1
    assert threading.active_count() == before


def test_worlds_are_let_go_when_the_folder_cannot_be_made(tmp_path, closings):
    config = tiny_config()

    def refuse():
        raise OutputFileError("no room")

    with pytest.raises(OutputFileError):
        Trainer(config, RunFolder(tmp_path / "run", "x")).run(on_ready=refuse)
    assert len(closings) == 1
    assert not (tmp_path / "run").exists()


def test_the_librarys_own_way_of_saving_is_never_used(tmp_path, monkeypatch):
    """It pickles."""

    def fail(*arguments, **more):
        raise AssertionError

    for name in ("save", "load", "set_parameters"):
        monkeypatch.setattr(BaseAlgorithm, name, fail)
    monkeypatch.setattr(torch, "save", fail)
    monkeypatch.setattr(torch, "load", fail)
    config = tiny_config(evaluation={"interval": 50, "episodes": 1})
    train(config, tmp_path, stop_at=60)
    assert train(config, tmp_path, resume=True).results is not None


def test_a_stop_asked_for_while_worlds_are_being_made_is_not_forgotten(tmp_path):
    config = tiny_config()
    trainer = Trainer(config, folder_at(tmp_path, config))
    outcome = trainer.run(on_ready=trainer.stop)
    assert (outcome.results, outcome.step, outcome.is_saved) == (None, 1, True)
    trainer = Trainer(config, folder_at(tmp_path / "other", config))
    trainer.stop()
    assert trainer.run().step == 1
