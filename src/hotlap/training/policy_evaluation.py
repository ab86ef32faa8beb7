"""How good is the policy now: deterministic episodes beside the training, the same ones every time."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from hotlap.drivers.learned import LearnedDriver
from hotlap.envs.gym_registry import make_env
from hotlap.evaluation.evaluate import Evaluation, evaluate
from hotlap.evaluation.returns import Returns, evaluate_returns
from hotlap.models.model_file import ModelCard, read_model
from hotlap.models.policy import LearnedPolicy
from hotlap.optimal.reference import find_reference
from hotlap.tracks.registry import load_track
from hotlap.training.run_config import RunConfig
from hotlap.training.state.snapshot import normalizer_arrays
from hotlap.training.vec_envs.factory import in_process, make_cars

# Far from any seed that training uses; and the last word is spoken over other starts than those by which the best model
# was chosen, which would flatter it.
SELECTION_SEED = 1_000_000_007
FINAL_SEED = 2_000_000_011
# Steps after which an episode is left, since nothing else may end it.
LONGEST_EPISODE = 100_000


@dataclass(frozen=True)
class PolicyScore:
    """What an evaluation said: figures for the log, and a score by which the best model is chosen."""

    score: tuple[float, ...]  # compared from the left; more is better
    figures: dict[str, float]
    mean_reward: float
    laps: Evaluation | None = None


class PolicyEvaluator:
    """Evaluates a run's policies."""

    def __init__(self, config: RunConfig, card: ModelCard) -> None:
        self._config, self._card = in_process(config), card
        is_racer, track = self._config.is_racer, self._config.racer.track
        reference = find_reference(load_track(track)) if is_racer else None
        self.optimal_lap_s = reference.lap_time_s if reference else None

    def judge(self, policy: LearnedPolicy, episodes: int) -> PolicyScore:
        """One evaluation: laps from random starts for the racer, returns elsewhere."""
        if self._config.is_racer:
            return _judge_laps(self.evaluate_laps(policy, episodes))
        returns = self.evaluate_returns(policy, episodes)
        figures = {"eval/mean_reward": returns.mean, "eval/mean_ep_length": returns.length_mean}
        return PolicyScore((returns.mean,), figures, returns.mean)

    def evaluate_laps(self, policy: LearnedPolicy, episodes: int) -> Evaluation:
        """The racer's figures on the run's own track, over random starts."""
        return self._race(LearnedDriver(policy, self._card, self._config.experiment_id), episodes, SELECTION_SEED)

    def evaluate_file(self, path: Path, episodes: int) -> Evaluation:
        """The same of a model file, over starts that chose no model."""
        return self._race(LearnedDriver.from_file(read_model(path)), episodes, FINAL_SEED)

    def _race(self, driver: LearnedDriver, episodes: int, seed: int) -> Evaluation:
        found = evaluate(driver, self._config.racer.track, episodes=episodes, start="random", seed=seed)
        return found.against(self.optimal_lap_s) if self.optimal_lap_s else found

    def evaluate_returns(self, policy: LearnedPolicy, episodes: int) -> Returns:
        """Returns and lengths of whole episodes under the run's own rules."""
        config = self._config
        if config.is_racer:
            return _racer_returns(policy, config, episodes)
        return evaluate_returns(
            policy.act,
            config.env,
            config.env_args,
            episodes=episodes,
            seed=SELECTION_SEED,
            max_steps=LONGEST_EPISODE,
        )


def _judge_laps(laps: Evaluation) -> PolicyScore:
    figures = {"eval/mean_reward": laps.mean_reward, "eval/completion_rate": laps.completion_rate}
    named = {"clean_lap_rate": laps.clean_lap_rate, "median_lap_time_sec": laps.median_lap_time_sec}
    named["gap_to_optimal"] = laps.gap_to_optimal
    figures |= {f"eval/{name}": value for name, value in named.items() if value is not None}
    # Whoever comes round beats whoever is fast; so does a clean lap, though not by a hair's breadth.
    clean = laps.clean_lap_rate or 0.0
    lap_s = laps.median_lap_time_sec
    score = (
        laps.completion_rate,
        round(clean, 1),
        -lap_s if lap_s is not None else -np.inf,
        laps.mean_reward,
    )
    return PolicyScore(score, figures, laps.mean_reward, laps)


def _racer_returns(policy: LearnedPolicy, config: RunConfig, episodes: int) -> Returns:
    env = make_cars(config.racer, episodes)
    env.seed(SELECTION_SEED)
    obs: Any = env.reset()
    returns: NDArray[np.float64] = np.zeros(episodes)
    lengths: NDArray[np.int64] = np.zeros(episodes, np.int64)
    running = np.ones(episodes, np.bool_)
    for _ in range(LONGEST_EPISODE):
        obs, rewards, dones, _ = env.step(policy.act(obs))
        returns[running] += rewards[running]
        lengths[running] += 1
        running &= ~dones
        if not running.any():
            break
    return Returns(returns, lengths)


def live_policy(model: BaseAlgorithm, card: ModelCard) -> LearnedPolicy:
    """The policy of a learner in training, with its statistics as they are now."""
    normalizer = model.get_vec_normalize_env()
    if card.clip_obs is None or normalizer is None:
        return LearnedPolicy(model.policy)
    return LearnedPolicy(model.policy, card.clip_obs, normalizer_arrays(normalizer))


def evaluate_model(path: Path, episodes: int, seed: int) -> dict[str, Any]:
    """Return and length of a model's deterministic episodes in its own Gymnasium environment."""
    model = read_model(path)
    card = model.card
    env = make_env(card.environment, card.env_args)
    try:
        policy = LearnedPolicy.from_file(model, env.observation_space, env.action_space)
    finally:
        env.close()
    found = evaluate_returns(
        policy.act, card.environment, card.env_args, episodes=episodes, seed=seed, max_steps=LONGEST_EPISODE
    )
    return {
        "model": str(path),
        "environment": card.environment,
        "episodes": episodes,
        "seed": seed,
        "mean_reward": found.mean,
        "std_reward": found.std,
        "mean_episode_length": found.length_mean,
    }
