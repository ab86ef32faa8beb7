"""What a run says of itself: the card inside its model files, and the document of what it came to."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stable_baselines3.common.vec_env import VecEnv

from hotlap.config import as_plain
from hotlap.envs.gym_registry import reward_threshold
from hotlap.envs.spaces import OBSERVATION_LAYOUT
from hotlap.evaluation.evaluate import Evaluation
from hotlap.evaluation.returns import Returns
from hotlap.models.model_file import ModelCard
from hotlap.models.policy import policy_kind
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.results import (
    ExperimentResults,
    FinalMetrics,
    ModelSummary,
    RunMetadata,
    is_converged,
    provenance,
)
from hotlap.training.run_config import RunConfig
from hotlap.training.run_files.json_documents import utc_text
from hotlap.training.vec_envs.factory import in_process


@dataclass(frozen=True)
class Course:
    """How a run went; times in seconds since 1970."""

    began_s: float
    ended_s: float
    trained_s: float  # spent learning, over all its sittings
    step: int
    num_episodes: int
    weights_digest: str


def make_card(config: RunConfig, env: VecEnv, step: int, weights_digest: str) -> ModelCard:
    """What the model of a run needs to say of itself; `env` is what the learner sees."""
    local = in_process(config)
    racer: dict[str, Any] = {}
    if local.is_racer:
        world = local.racer
        racer = {"physics": PHYSICS_VERSION, "observation_layout": OBSERVATION_LAYOUT, "track": world.track}
        racer |= {"action_repeat": world.action_repeat, "stack": world.stack, "lap_fourier": world.lap_fourier}
    return ModelCard(
        algorithm=config.algo,
        environment=local.env,
        seed=config.seed,
        step=step,
        config_digest=config.digest(),
        weights_digest=weights_digest,
        policy=replace(config.policy, kind=policy_kind(config.policy, env.observation_space)),
        observation_space=str(env.observation_space),
        action_space=str(env.action_space),
        env_args=dict(local.env_args),
        clip_obs=config.normalize.clip_obs if config.normalize.obs else None,
        trained_on=f"{platform.system()} {platform.machine()}, {config.device}",
        **racer,
    )


def make_results(
    config: RunConfig,
    env: VecEnv,
    course: Course,
    files: tuple[Path, Sequence[str]],
    returns: Returns,
    laps: Evaluation | None,
) -> ExperimentResults:
    """The document of a finished run; `files` are its final model and the names of its checkpoints."""
    model, checkpoints = files
    return ExperimentResults(
        RunMetadata(
            config.experiment_id,
            config.algo,
            config.env,
            config.seed,
            utc_text(course.began_s),
            utc_text(course.ended_s),
            course.step,
        ),
        ModelSummary(
            policy_kind(config.policy, env.observation_space),
            model.name,
            config.checkpoint.interval,
            tuple(checkpoints),
        ),
        FinalMetrics(
            returns.mean,
            returns.std,
            returns.length_mean,
            course.num_episodes,
            course.trained_s,
            is_converged(returns.mean, reward_threshold(config.env)),
        ),
        as_plain(config.hyperparameters),
        _environment(config, env),
        provenance(config.digest(), course.weights_digest),
        None if laps is None else laps.as_dict(),
    )


def _environment(config: RunConfig, env: VecEnv) -> dict[str, Any]:
    found: dict[str, Any] = {"num_envs": config.num_envs, "observation_space": str(env.observation_space)}
    found |= {"action_space": str(env.action_space), "normalize": as_plain(config.normalize)}
    if config.is_racer:
        return found | as_plain(config.racer)
    return found | {"env_args": dict(config.env_args), "backend": config.backend}
