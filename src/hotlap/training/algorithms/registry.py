"""The table of the algorithms that can be trained, and the one function that builds a run's learner from it."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from stable_baselines3.common.vec_env import VecEnv

from hotlap.errors import TrainingError, one_line
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.models.action_head import fix_action_head
from hotlap.models.model_file import AlgorithmName
from hotlap.models.policy import policy_arguments, policy_kind
from hotlap.runs.run_config import RunConfig
from hotlap.sim.batch_cpu import default_threads
from hotlap.training.algorithms.a2c import HotlapA2C
from hotlap.training.algorithms.ppo import HotlapPPO
from hotlap.training.algorithms.sac import HotlapSAC
from hotlap.training.algorithms.step_budget import Learner
from hotlap.training.algorithms.tensor_ppo import TensorPPO
from hotlap.training.algorithms.tensor_sac import TensorSAC

MIN_STATS_WINDOW = 100  # episodes behind `rollout/ep_rew_mean`, as in stable-baselines3


@dataclass(frozen=True)
class LearnerSpec:
    """What training has to know about one algorithm."""

    learner: type[Learner]
    racer_learner: type[Learner] | None = None  # for our cars; None: `learner`
    log_interval: int = 1  # of stable-baselines3's `learn`: rollouts on-policy, episodes off-policy


LEARNERS: Mapping[AlgorithmName, LearnerSpec] = {
    "ppo": LearnerSpec(HotlapPPO, TensorPPO),
    "a2c": LearnerSpec(HotlapA2C),
    "sac": LearnerSpec(HotlapSAC, TensorSAC, log_interval=4),
}


def learner_class(config: RunConfig) -> type[Learner]:
    """The class of a run's learner."""
    spec = LEARNERS[config.algo]
    return spec.racer_learner if config.is_racer and spec.racer_learner is not None else spec.learner


def build_learner(config: RunConfig, env: VecEnv, processes: Processes = ALONE) -> Learner:
    """The seeded learner of a run over its environments; with several processes, over the part of this one.

    All processes have the same weights and the same generators; each car keeps the seed it has in one process.
    """
    learner = _build(config, env, processes)
    if not processes.is_alone:
        learner.processes = processes
        if not isinstance(learner, TensorPPO) or learner.own_nets() is None:
            raise TrainingError(
                f"{config.algo} on {config.env} with these settings trains in one process only; several train PPO on "
                "the racer with a plain network. Start it without torchrun."
            )
        learner.max_threads = processes.num_threads(default_threads())
        env.seed(config.seed + processes.rank * env.num_envs)
    return learner


def _build(config: RunConfig, env: VecEnv, processes: Processes) -> Learner:
    kind = policy_kind(config.policy, env.observation_space)
    learner = learner_class(config)
    arguments = learner.constructor_arguments(config.hyperparameters)
    if "batch_size" in arguments:
        arguments["batch_size"] = processes.share(arguments["batch_size"], f"{config.algo}.batch_size")
    try:
        with warnings.catch_warnings():
            # The library warns that its PPO is slow on a GPU; ours is not.
            warnings.filterwarnings("ignore", message="You are trying to run", module="stable_baselines3")
            found = learner(
                policy=kind,
                env=env,
                policy_kwargs=policy_arguments(config.policy, config.algo),
                device=config.device,
                seed=config.seed,
                stats_window_size=max(MIN_STATS_WINDOW, config.num_envs),
                **arguments,
            )
        fix_action_head(found.policy, config.policy)  # type: ignore[arg-type]
        return found
    # The library checks its arguments by assertions and by whatever its parts happen to raise.
    except (AssertionError, ValueError, TypeError, RuntimeError) as error:
        raise TrainingError(
            f"{config.algo} cannot be built for {config.env} with these settings: {one_line(error)}. Change them."
        ) from None
