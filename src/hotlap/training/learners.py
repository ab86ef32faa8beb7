"""The `Learner` protocol, and which learner trains a run: ours over tensors, or stable-baselines3's."""

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from gymnasium import Space

from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.racer_vector import make_fleet_env
from hotlap.envs.spaces import action_space
from hotlap.errors import TrainingError
from hotlap.learning.cars import Cars
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.learning.events import OnStep
from hotlap.learning.normalizer import NoNormalizer, Normalizer
from hotlap.learning.ppo import PPO
from hotlap.learning.sac import SAC
from hotlap.learning.step_budget import RolloutPlan
from hotlap.models.model_file import PolicyArrays
from hotlap.runs.run_config import RunConfig
from hotlap.sim.batch_cpu import default_threads


class Learner(Protocol):
    """What a run trains. It owns all its state: weights, optimizers, normalizer, environments and generators."""

    processes: Processes  # those that train this run together

    @property
    def has_atomic_rollouts(self) -> bool:
        """Whether a rollout cannot be stopped halfway; then a stop waits for its end."""

    @property
    def num_timesteps(self) -> int:
        """Decisions of all environments so far."""

    @property
    def total_envs(self) -> int:
        """The environments of all processes."""

    @property
    def replay_bytes(self) -> int:
        """The size of the replay buffer when it is full; 0 without one."""

    @property
    def plan(self) -> RolloutPlan:
        """The next rollout."""

    def collect(self, on_step: OnStep) -> bool:
        """Collect a rollout; `on_step` is told every step and may end it. Returns whether it is complete."""

    def update(self) -> dict[str, float]:
        """Learn from what was collected; returns the figures to log."""

    def policy(self) -> PolicyArrays:
        """The weights, by stable-baselines3's names, and the normalizer's statistics. Copies."""

    def load_policy(self, policy: PolicyArrays) -> None:
        """Start from the weights of a model, and its statistics of observations where they are normalized."""

    def state_dict(self, *, with_replay: bool = True) -> dict[str, Any]:
        """All that a bit-identical continuation needs, between two rollouts; a model needs no replay buffer."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""

    def close(self) -> None:
        """Close the environments and release the device."""


def build_learner(config: RunConfig, processes: Processes = ALONE) -> Learner:
    """The seeded learner of a run; with several processes, the part of this one.

    All processes have the same weights and the same generators; each car keeps the seed it has in one process.
    """
    if is_ours(config):
        if config.algo == "sac" and not processes.is_alone:
            raise _one_process_only(config)
        return _build_ours(config, processes)
    if not processes.is_alone:
        raise _one_process_only(config)
    from hotlap.training.sb3.learner import SB3Learner  # slow to import, and our cars do not need it

    return SB3Learner(config)


def is_ours(config: RunConfig) -> bool:
    """Whether our own learner trains a run: PPO and SAC on the racer, with what they know."""
    if not config.is_racer or config.policy.kind not in ("auto", "MlpPolicy"):
        return False
    if config.algo == "ppo":
        return config.ppo.target_kl is None
    return config.algo == "sac" and config.device == "cpu"


def policy_spaces(config: RunConfig, learner: Learner) -> tuple[Space[Any], Space[Any]]:
    """The observation and the action space, as a run's policy sees them."""
    if config.is_racer:
        racer = config.racer
        return stacked_observation_space(racer.stack, racer.lap_fourier, racer.observation), action_space()
    found: tuple[Space[Any], Space[Any]] = learner.spaces  # type: ignore[attr-defined]
    return found


def _build_ours(config: RunConfig, processes: Processes) -> Learner:
    num_cars, num_threads = processes.share(config.num_envs, "num_envs"), None
    if not processes.is_alone:
        num_threads = processes.num_threads(default_threads())
    cars = _make_cars(config, num_cars, num_threads)
    try:
        normalizer: Normalizer | NoNormalizer = NoNormalizer()
        if config.normalize.is_on:
            num_obs, gamma = cars.obs.shape[1], config.hyperparameters.gamma
            normalizer = Normalizer(config.normalize, gamma, num_cars, num_obs, cars.obs.device, processes)
        budget = {"total_steps": config.steps, "seed": config.seed}
        if config.algo == "sac":
            return SAC(config.sac, config.policy, cars, normalizer, **budget)
        return PPO(
            config.ppo,
            config.policy,
            cars,
            normalizer,
            **budget,
            batch_size=processes.share(config.ppo.batch_size, "ppo.batch_size"),
            processes=processes,
            **({} if num_threads is None else {"max_threads": num_threads}),
        )
    except BaseException:
        cars.close()
        raise


def _make_cars(config: RunConfig, num_cars: int, num_threads: int | None) -> Cars:
    racer = config.racer
    env = make_fleet_env(
        num_cars,
        racer.track_ids,
        racer.settings(),
        observation=racer.observation,
        action_repeat=racer.action_repeat,
        num_threads=num_threads,
        bridge=config.env_args if config.is_remote else None,
    )
    return Cars(
        env.fleet,
        torch.device(config.device),
        action_repeat=racer.action_repeat,
        stack=racer.stack,
        lap_fourier=racer.lap_fourier,
        on_close=env.close,
    )


def _one_process_only(config: RunConfig) -> TrainingError:
    return TrainingError(
        f"{config.algo} on {config.env} with these settings trains in one process only; several train PPO on the racer "
        "with a plain network. Start it without torchrun."
    )
