"""The `Learner` protocol, and which learner trains a run: ours over tensors, or stable-baselines3's."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from gymnasium import Space

from hotlap.envs.fleet import make_engine
from hotlap.envs.fleet_vector import AnyFleet
from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.racer_vector import make_fleet_env
from hotlap.envs.spaces import action_space
from hotlap.envs.stream_fleet import StreamFleet, StreamPlan
from hotlap.errors import TrainingError
from hotlap.learning.cars import Cars
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.learning.events import OnStep
from hotlap.learning.normalizer import Normalizer
from hotlap.learning.ppo import PPO
from hotlap.learning.sac import SAC
from hotlap.learning.step_budget import RolloutPlan
from hotlap.models.model_file import PolicyArrays
from hotlap.runs.run_config import RunConfig
from hotlap.sim.batch_cpu import CpuEngine, default_threads
from hotlap.tracks.registry import GENERATED
from hotlap.tracks.road_stream import MAX_ROAD_NODES
from hotlap.tracks.road_workers import RoadWorkers
from hotlap.training.race_cars import make_race_cars

MAX_ROAD_WORKERS = 16  # processes


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
        """How long the next rollout is."""

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


def check_stream(config: RunConfig) -> None:
    """Raise TrainingError if a run on new roads is not one that our PPO trains."""
    if config.racer.is_generated and (config.algo != "ppo" or not is_ours(config) or config.is_remote):
        raise TrainingError(
            f"racer.track {GENERATED}: only PPO on the racer with a plain network and no target_kl, not behind a "
            f"bridge, trains on new roads; got {config.algo} on {config.env}. Change the settings or name a track."
        )


def build_learner(config: RunConfig, processes: Processes = ALONE, next_road: int | None = None) -> Learner:
    """The seeded learner of a run; with several processes, the part of this one.

    All processes have the same weights and the same generators; each car keeps the seed it has in one process. Where a
    state will be loaded, `next_road` says which roads of a stream it needs, so that others are not made first.
    """
    check_stream(config)
    if not processes.is_alone and (config.algo == "sac" or not is_ours(config)):
        raise TrainingError(
            f"{config.algo} on {config.env} with these settings trains in one process only; several train PPO on the "
            "racer with a plain network. Start it without torchrun."
        )
    if is_ours(config):
        return _build_ours(config, processes, next_road)
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


def _build_ours(config: RunConfig, processes: Processes, next_road: int | None) -> Learner:
    num_cars, num_threads = processes.share(config.num_envs, "num_envs"), None
    if not processes.is_alone:
        num_threads = processes.num_threads(default_threads())
    if config.race.is_on:
        if not processes.is_alone:
            raise TrainingError("race: races are trained in one process only. Start it without torchrun.")
        cars = make_race_cars(config, num_threads)
    elif config.racer.is_generated:
        cars = _make_stream_cars(config, processes, num_cars, num_threads, next_road)
    else:
        cars = _make_cars(config, num_cars, num_threads)
    try:
        num_obs, gamma = cars.obs.shape[1], config.hyperparameters.gamma
        normalizer = Normalizer(config.normalize, gamma, len(cars), num_obs, cars.obs.device, processes)
        budget = {"total_steps": config.steps, "seed": config.seed}
        if config.algo == "sac":
            return SAC(config.sac, config.policy, cars, normalizer, **budget)
        return PPO(
            config.ppo,
            config.policy,
            cars,
            normalizer,
            **budget,
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
    return _cars_of(config, env.fleet, env.close)


def _make_stream_cars(
    config: RunConfig, processes: Processes, num_cars: int, num_threads: int | None, next_road: int | None
) -> Cars:
    """Cars on a stream of generated roads, with the processes that make them."""
    racer = config.racer
    plan = StreamPlan(
        num_slots=min(racer.roads, config.num_envs),
        new_roads=racer.new_roads,
        max_nodes=MAX_ROAD_NODES,
        num_cars=num_cars,
        first_car=processes.rank * num_cars,
        total_cars=config.num_envs,
    )
    engine = CpuEngine(num_threads) if num_threads else make_engine(num_cars)
    roads = RoadWorkers(config.seed, min(num_threads or default_threads(), MAX_ROAD_WORKERS))
    try:
        fleet = StreamFleet(roads, plan, racer.settings(), engine, racer.observation, next_road)
        return _cars_of(config, fleet, fleet.close)
    except BaseException:
        roads.close()
        raise


def _cars_of(config: RunConfig, fleet: AnyFleet, on_close: Callable[[], object]) -> Cars:
    racer = config.racer
    return Cars(
        fleet,
        torch.device(config.device),
        action_repeat=racer.action_repeat,
        stack=racer.stack,
        lap_fourier=racer.lap_fourier,
        on_close=on_close,
    )
