"""`SB3Learner`: stable-baselines3's algorithms behind the same protocol as our own learners."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv

from hotlap.errors import TrainingError, one_line
from hotlap.learning.distributed.processes import ALONE
from hotlap.learning.events import OnStep, StepEvents
from hotlap.learning.step_budget import RolloutPlan
from hotlap.models.action_head import fix_action_head
from hotlap.models.model_file import PolicyArrays
from hotlap.models.policy import policy_arguments, policy_kind
from hotlap.runs.run_config import RunConfig
from hotlap.training.sb3 import state
from hotlap.training.sb3.algorithms import ALGORITHMS, BudgetedAlgorithm, is_off_policy
from hotlap.training.sb3.vec_envs.factory import TrainingEnvs
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv


class SB3Learner:
    """Trains any Gymnasium environment, or our cars with A2C, by stable-baselines3."""

    processes = ALONE
    has_atomic_rollouts = False

    def __init__(self, config: RunConfig) -> None:
        # Before anything is drawn: a run is a function of its configuration.
        set_random_seed(config.seed, using_cuda=config.device == "cuda")
        self._config, self._envs = config, TrainingEnvs(config)
        self._has_begun = self._is_restored = False
        try:
            self.model = build_model(config, self._envs.env)
        except BaseException:
            self._envs.close()
            raise
        self.model._total_timesteps = config.steps
        self._teller = _Teller(self._envs.base_env)
        self._callback: BaseCallback = self._teller

    @property
    def num_timesteps(self) -> int:
        """Decisions of all environments so far."""
        return self.model.num_timesteps

    @property
    def total_envs(self) -> int:
        """The environments."""
        return self.model.n_envs

    @property
    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        """Observation and action space, as the policy sees them."""
        return self._envs.env.observation_space, self._envs.env.action_space

    @property
    def replay_bytes(self) -> int:
        """The size of the replay buffer when it is full; 0 for an algorithm without one."""
        return sum(array.nbytes for array in state.replay_arrays(self.model).values())

    @property
    def plan(self) -> RolloutPlan:
        """The next rollout."""
        return self.model.plan

    # --- learn ---

    def collect(self, on_step: OnStep) -> bool:
        """Collect a rollout; `on_step` is told every step and may end it. Returns whether it is complete."""
        model: Any = self.model
        self._begin()
        self._teller.tell = on_step
        if is_off_policy(model):
            is_complete = model.collect_rollouts(
                model.env,
                self._callback,
                model.train_freq,
                model.replay_buffer,
                action_noise=model.action_noise,
                learning_starts=model.learning_starts,
                log_interval=None,
            ).continue_training
        else:
            is_complete = model.collect_rollouts(model.env, self._callback, model.rollout_buffer, model.n_steps)
        model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
        return bool(is_complete)

    def update(self) -> dict[str, float]:
        """Update the policy; returns the figures to log, none before learning starts."""
        model: Any = self.model
        logger = model.logger
        logger.name_to_value.clear()
        if not is_off_policy(model):
            model.train()
        elif model.num_timesteps > model.learning_starts:
            model.train(batch_size=model.batch_size, gradient_steps=model.gradient_steps)
        figures = {name: float(value) for name, value in logger.name_to_value.items() if name != "train/n_updates"}
        logger.name_to_value.clear()
        return figures

    def _begin(self) -> None:
        """Reset the environments, unless they were restored, and set up what the library sets up when it learns."""
        if self._has_begun:
            return
        left = self._config.steps - self.model.num_timesteps
        _, self._callback = self.model._setup_learn(left, self._teller, reset_num_timesteps=not self._is_restored)
        self._callback.on_training_start({}, {})
        self._has_begun = True

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()

    # --- state ---

    def policy(self) -> PolicyArrays:
        """The weights and the normalizer's statistics. Copies."""
        return state.policy_arrays(self.model)

    def load_policy(self, policy: PolicyArrays) -> None:
        """Start from the weights of a model, and its statistics of observations where they are normalized."""
        state.load_policy(self.model, policy)

    def state_dict(self, *, with_replay: bool = True) -> dict[str, Any]:
        """All that a bit-identical continuation needs, between two rollouts; a model needs no replay buffer."""
        return state.capture(self.model, with_replay=with_replay) | {"envs": self._envs.capture()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; where environments cannot be restored, their episodes restart."""
        state.restore(self.model, saved)
        self._is_restored = True
        if not self._envs.restore(saved["envs"]):
            self._restart_episodes()
        # Last: environments may draw from the generators while they are rebuilt.
        state.restore_generators(self.model, saved["rng"])

    def _restart_episodes(self) -> None:
        """Reset all environments, with other seeds than at the start of the run."""
        model: Any = self.model
        env: VecEnv = model.env
        env.seed(self._config.seed + model.num_timesteps)
        model._last_obs = env.reset()
        model._last_episode_starts = np.ones(env.num_envs, np.bool_)
        normalizer = model.get_vec_normalize_env()
        if normalizer is not None:
            model._last_original_obs = normalizer.get_original_obs()


def build_model(config: RunConfig, env: VecEnv) -> BudgetedAlgorithm:
    """The seeded algorithm of a run over its environments."""
    algorithm = ALGORITHMS[config.algo]
    kind = policy_kind(config.policy, env.observation_space)
    try:
        with warnings.catch_warnings():
            # Where nothing but the library can train a run on a GPU, the user asked for it.
            warnings.filterwarnings("ignore", message="You are trying to run", module="stable_baselines3")
            model = algorithm(
                policy=kind,
                env=env,
                policy_kwargs=policy_arguments(config.policy, config.algo),
                device=config.device,
                seed=config.seed,
                **algorithm.constructor_arguments(config.hyperparameters),
            )
        fix_action_head(model.policy, config.policy)  # type: ignore[arg-type]
    # The library checks its arguments by assertions and by whatever its parts happen to raise.
    except (AssertionError, ValueError, TypeError, RuntimeError) as error:
        raise TrainingError(
            f"{config.algo} cannot be built for {config.env} with these settings: {one_line(error)}. Change them."
        ) from None
    model.set_logger(Logger(None, []))
    return model


class _Teller(BaseCallback):
    """Turns what the library tells its callbacks about a step into `StepEvents`."""

    tell: OnStep  # of the rollout being collected

    def __init__(self, env: VecEnv) -> None:
        super().__init__()
        self._cars = env if isinstance(env, RacerVecEnv) else None

    def _on_step(self) -> bool:
        infos, ended = self.locals["infos"], np.asarray(self.locals["dones"], np.bool_)
        rows, records = self._cars.ended_laps_and_episodes(ended) if self._cars else (np.flatnonzero(ended), None)
        episodes = [infos[row].get("episode") or {"r": np.nan, "l": 0} for row in rows]
        return self.tell(
            StepEvents(
                self.num_timesteps,
                rows,
                ended[rows],
                np.array([episode["r"] for episode in episodes], np.float64),
                np.array([episode["l"] for episode in episodes], np.int64),
                records,
                self._cars.reward_term_means if self._cars else {},
                tuple(bool(infos[row]["is_success"]) for row in rows if "is_success" in infos[row]),
            )
        )
