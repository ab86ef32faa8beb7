"""Evaluates a run's policies over deterministic episodes, the same ones every time."""

import random
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hotlap.drivers.packed import PackedDriver
from hotlap.envs.gym_registry import check_env_args, check_env_id, make_env
from hotlap.errors import ConfigError, ModelError
from hotlap.evaluation.evaluate import Evaluation, evaluate
from hotlap.evaluation.returns import Returns, evaluate_returns
from hotlap.models.model_file import ModelCard, ModelFile, PolicyArrays, read_model
from hotlap.models.policy import LearnedPolicy
from hotlap.optimal.reference import find_reference
from hotlap.runs.run_config import RunConfig, in_process
from hotlap.tracks.registry import load_track, load_tracks
from hotlap.training.race_evaluation import evaluate_races, race_score
from hotlap.training.sb3.vec_envs.factory import make_cars

# Both are far from the seeds of training. The final figures are over starts not used for selection, since those would
# flatter the model that was selected.
SELECTION_SEED = 1_000_000_007
FINAL_SEED = 2_000_000_011
# In a selection, one failed start in a hundred counts as much as laps that are 3 % longer, one lap in a hundred that is
# not clean as much as laps that are 1 % longer.
FAILURE_COST, UNCLEAN_COST = 3.0, 1.0
_LOGGED_LAPS = ("mean_reward", "completion_rate", "clean_lap_rate", "median_lap_time_sec", "gap_to_optimal")
MAX_EPISODE_STEPS = 100_000  # an episode that nothing else ends is cut off here


@dataclass(frozen=True)
class PolicyScore:
    """The result of an evaluation: figures for the log, and a score by which the best model is selected."""

    score: tuple[float, ...]  # compared from the left; greater is better
    figures: dict[str, float]
    racer: dict[str, float] = field(default_factory=dict)  # the figures of the laps under the keys `racer/*`


class PolicyEvaluator:
    """Evaluates a run's policies."""

    def __init__(self, config: RunConfig, card: ModelCard) -> None:
        self._config, self._card = in_process(config), card
        racer = self._config.racer
        track_id = racer.only_track if self._config.is_racer else None
        reference = find_reference(load_track(track_id)) if track_id is not None else None
        self.optimal_lap_s = reference.lap_time_s if reference else None
        # Kept, since making them again for each evaluation would take seconds.
        self._roads = load_tracks(racer.track_ids) if racer.is_generated else ()

    def score(self, policy: PolicyArrays) -> PolicyScore:
        """Evaluate a policy: laps from random starts for the racer, returns in other environments."""
        episodes = self._config.evaluation.episodes
        if self._config.is_racer:
            laps = score_laps(self.evaluate_laps(policy, episodes))
            return self._score_races(policy, laps) if self._config.race.is_on else laps
        with _preserved_generators():  # those that stable-baselines3 draws from
            returns = self.evaluate_returns(self.learned_policy(policy), episodes)
        figures = {"eval/mean_reward": returns.mean, "eval/mean_ep_length": returns.length_mean}
        return PolicyScore((returns.mean,), figures)

    def _score_races(self, policy: PolicyArrays, laps: PolicyScore) -> PolicyScore:
        """Rank by laps completed alone, to a tenth, then by races."""
        driver = PackedDriver.from_model(self._model(policy))
        figures = evaluate_races(driver, self._config.racer.track_ids)
        return PolicyScore((laps.score[0], race_score(figures)), {**laps.figures, **figures}, laps.racer)

    def lap_figures(self, policy: PolicyArrays) -> dict[str, float]:
        """The figures of a smaller evaluation under the keys `racer/*`."""
        return racer_figures(self.evaluate_laps(policy, self._config.evaluation.curve_episodes))

    def learned_policy(self, policy: PolicyArrays) -> LearnedPolicy:
        """The policy of a learner in training as one that acts on raw observations."""
        return LearnedPolicy.from_file(self._model(policy))

    def evaluate_laps(self, policy: PolicyArrays, episodes: int) -> Evaluation:
        """Laps on the run's own tracks from random starts."""
        return self._race(PackedDriver.from_model(self._model(policy)), episodes, SELECTION_SEED)

    def _model(self, policy: PolicyArrays) -> ModelFile:
        return ModelFile(Path(self._config.experiment_id), self._card, policy.weights, policy.normalizer)

    def evaluate_file(self, path: Path, episodes: int) -> Evaluation:
        """Laps of a model file, from starts not used for selection."""
        return self._race(PackedDriver.from_model(read_model(path)), episodes, FINAL_SEED)

    def _race(self, driver: PackedDriver, episodes: int, seed: int) -> Evaluation:
        racer = self._config.racer
        tracks = racer.only_track or racer.track_ids
        found = evaluate(driver, tracks, episodes=episodes, start="random", seed=seed)
        return found.against(self.optimal_lap_s) if self.optimal_lap_s else found

    def evaluate_returns(self, policy: LearnedPolicy, episodes: int, seed: int = SELECTION_SEED) -> Returns:
        """Returns and lengths of whole episodes under the run's own settings."""
        config = self._config
        if config.is_racer:
            return _racer_returns(policy, config, episodes, seed)
        limits = {"episodes": episodes, "seed": seed, "max_steps": MAX_EPISODE_STEPS}
        return evaluate_returns(policy.act, config.env, config.env_args, **limits)


@contextmanager
def _preserved_generators() -> Iterator[None]:
    """Restore the process's random generators at the end, whatever was drawn from them in between."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])


def score_laps(laps: Evaluation) -> PolicyScore:
    """Rank by completion and clean laps to a tenth each, then by lap time, lengthened by failures and unclean laps."""
    figures = {f"eval/{name}": value for name in _LOGGED_LAPS if (value := getattr(laps, name)) is not None}
    lap_s, completed, clean = laps.median_lap_time_sec, laps.completion_rate, laps.clean_lap_rate or 0.0
    longer = 1.0 + FAILURE_COST * (1.0 - completed) + UNCLEAN_COST * (1.0 - clean)
    score = (
        round(completed, 1),
        round(clean, 1),
        -lap_s * longer if lap_s is not None else -np.inf,
        laps.mean_reward,
    )
    return PolicyScore(score, figures, racer_figures(laps))


def racer_figures(laps: Evaluation) -> dict[str, float]:
    """An evaluation as the figures that `RacerMetricsCallback` logs; one that does not exist is left out."""
    figures = {"racer/completion_rate": laps.completion_rate, "racer/episodes_this_rollout": float(laps.episodes)}
    if laps.lap_times_s:
        figures["racer/mean_lap_time_sec"] = sum(laps.lap_times_s) / len(laps.lap_times_s)
        figures["racer/best_lap_time_sec"] = min(laps.lap_times_s)
    if laps.gap_to_optimal is not None:
        figures["racer/gap_to_optimal"] = laps.gap_to_optimal
    return figures


def _racer_returns(policy: LearnedPolicy, config: RunConfig, episodes: int, seed: int) -> Returns:
    env = make_cars(config.racer, episodes)
    env.seed(seed)
    obs: Any = env.reset()
    returns: NDArray[np.float64] = np.zeros(episodes)
    lengths: NDArray[np.int64] = np.zeros(episodes, np.int64)
    running = np.ones(episodes, np.bool_)
    for _ in range(MAX_EPISODE_STEPS):
        obs, rewards, dones, _ = env.step(policy.act(obs))
        returns[running] += rewards[running]
        lengths[running] += 1
        running &= ~dones
        if not running.any():
            break
    return Returns(returns, lengths)


def evaluate_model(path: Path, episodes: int, seed: int, allowed_imports: Collection[str] = ()) -> dict[str, Any]:
    """Return and length of a model's deterministic episodes in its own Gymnasium environment.

    The file chooses among the registered environments and their arguments, and nothing it names is imported:
    `allowed_imports` are the modules that the user named and that are imported already.
    """
    model = read_model(path)
    try:
        env_id = check_env_id(model.card.environment, allowed_imports)
        env_args = check_env_args(env_id, model.card.env_args)
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from None
    env = make_env(env_id, env_args)
    try:
        policy = LearnedPolicy.from_file(model, env.observation_space, env.action_space)
    finally:
        env.close()
    found = evaluate_returns(policy.act, env_id, env_args, episodes=episodes, seed=seed, max_steps=MAX_EPISODE_STEPS)
    return {
        "model": str(path),
        "environment": env_id,
        "episodes": episodes,
        "seed": seed,
        "mean_reward": found.mean,
        "std_reward": found.std,
        "mean_episode_length": found.length_mean,
    }
