"""Evaluations during a run disturb nothing, select the best model, and are logged once, whatever is resumed."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from hotlap.evaluation.evaluate import Evaluation
from hotlap.runs.run_folder import RunFolder
from hotlap.training.policy_evaluation import PolicyEvaluator, PolicyScore
from tiny_runs import (
    ALGORITHMS,
    LUNAR,
    RACER,
    assert_same_run,
    metrics,
    read_events,
    skip_evaluation,
    tensors,
    tiny_config,
    train,
)

EVERYWHERE = pytest.mark.parametrize("env", [RACER, LUNAR], ids=["racer", "lunar"])
EVERY_ALGORITHM = pytest.mark.parametrize("algo", ALGORITHMS)


# --- laps of evaluations, and the first and last step ---


def evaluate_weights(self, policy, episodes):
    """Laps that depend on nothing but the weights."""
    lap_s = 30.0 + float(sum(abs(weights.astype(np.float64).sum()) for weights in policy.weights.values()))
    return Evaluation(
        "x", "track-01", "random", 0, episodes, 1, 1.0, 1.0, lap_s, lap_s, lap_s, 0.0, None, lap_s / 28.0 - 1.0,
        0.0, 0.0, (lap_s,),
    )  # fmt: skip


@pytest.fixture(scope="module", params=ALGORITHMS)
def extended(request, tmp_path_factory):
    """The configuration of a run with such laps, and its folder; each algorithm is trained once."""
    config = tiny_config(request.param, num_envs=2, steps=256, **EXTENDED)
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        skip_evaluation(patch)
        patch.setattr(PolicyEvaluator, "evaluate_laps", evaluate_weights)
        train(config, folder)
    return config, folder


@pytest.fixture
def evaluated_weights(monkeypatch):
    """Evaluations give such laps."""
    skip_evaluation(monkeypatch)
    monkeypatch.setattr(PolicyEvaluator, "evaluate_laps", evaluate_weights)


LAPS = {"interval": 96, "episodes": 4, "curve_interval": 32, "curve_episodes": 2}
EXTENDED = {"recording_interval": 50, "evaluation": LAPS, "checkpoint": {"interval": 64}}


@EVERY_ALGORITHM
def test_a_resumed_run_has_the_laps_of_its_evaluations_once(tmp_path, evaluated_weights, algo):
    config = tiny_config(algo, num_envs=2, steps=256, recording_interval=1000, evaluation=LAPS)
    train(config, tmp_path / "whole")
    laps = metrics(RunFolder(tmp_path / "whole", config.experiment_id))["racer_series"]
    assert len(laps) == len({point["timestep"] for point in laps}) >= 4
    assert len({point["mean_lap_time_sec"] for point in laps}) == len(laps)
    for stop_at in (40, 64, 66, 130, 190):
        assert train(config, tmp_path / "stopped", stop_at, resume=stop_at > 40).results is None
    train(config, tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole", config)


@pytest.mark.parametrize("first", [64, 70, pytest.param(192, marks=pytest.mark.slow)])
def test_an_extended_run_has_neither_a_last_step_nor_laps_too_many(tmp_path, evaluated_weights, extended, first):
    """The shorter run ends on a whole rollout with a checkpoint at its very end, or within one."""
    config, whole = extended
    shorter = tiny_config(config.algo, num_envs=2, steps=first, **EXTENDED)
    train(shorter, tmp_path / "run")
    points = metrics(RunFolder(tmp_path / "run", config.experiment_id))["time_series"]
    assert points[-1]["timestep"] == first
    train(config, tmp_path / "run", resume=True)
    one, other = (metrics(RunFolder(path, config.experiment_id)) for path in (tmp_path / "run", whole))
    assert one["time_series"] == other["time_series"]
    assert one["racer_series"] == other["racer_series"]
    assert read_events(tmp_path / "run") == read_events(whole)


# --- evaluations ---

GLOBAL_RNG = "hotlap-tests/GlobalRng-v0"


class GlobalRng(gym.Env):
    """Draws from NumPy's global generator."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 9
        return self.look(), {}

    def step(self, action):
        self.left -= 1
        return self.look(), float(action[0]), False, self.left == 0, {}

    def look(self):
        return np.random.uniform(-1.0, 1.0, 2).astype(np.float32)  # noqa: NPY002


@pytest.fixture(scope="module", autouse=True)
def registered():
    gym.register(GLOBAL_RNG, GlobalRng)
    yield
    del gym.registry[GLOBAL_RNG]


@pytest.mark.parametrize("env", [RACER, LUNAR, GLOBAL_RNG])
@EVERY_ALGORITHM
def test_evaluating_does_not_disturb_training(tmp_path, algo, env):
    folders = []
    for interval in (0, 25):
        config = tiny_config(algo, env, num_envs=2, evaluation={"interval": interval, "episodes": 2})
        train(config, tmp_path / str(interval))
        folders.append(RunFolder(tmp_path / str(interval), config.experiment_id))
    without, evaluated = folders
    assert tensors(without.model) == tensors(evaluated.model)
    assert metrics(without) == {**metrics(evaluated), "racer_series": []}
    assert (without.best.exists(), evaluated.best.exists()) == (False, True)


def test_the_best_model_is_the_one_with_the_best_evaluation(tmp_path, monkeypatch):
    scores = iter([1.0, 5.0, 2.0, 3.0])
    config = tiny_config(steps=128, evaluation={"interval": 32, "episodes": 1}, checkpoint={"interval": 32})
    skip_evaluation(monkeypatch)
    monkeypatch.setattr(PolicyEvaluator, "score", lambda *_: PolicyScore((next(scores),), {}))
    train(config, tmp_path)
    folder = RunFolder(tmp_path, config.experiment_id)
    best, then = tensors(folder.best), tensors(tmp_path / "checkpoint_64.zip")
    assert {name: best[name] for name in then} == then
    assert best != tensors(folder.model)
