"""The settings of PPO, SAC and A2C and of normalization, named as stable-baselines3 names them, and of races."""

from dataclasses import dataclass
from typing import ClassVar

from hotlap.config import FRACTION, NOT_NEGATIVE, POSITIVE, Range, check_ranges, setting
from hotlap.errors import ConfigError

MAX_STEPS = 10**12
_ROLLOUT_STEPS = Range(1, 10**7)
_LEARNING_RATE = "Learning rate of the optimizer."
_GAMMA = "Discount factor."
_GAE_LAMBDA = "Trade-off between bias and variance in generalized advantage estimation."
_ENT_COEF = "Weight of the entropy bonus in the loss."
_VF_COEF = "Weight of the value loss."
_FINAL_LR_FRACTION = "Decay the learning rate linearly to this fraction of itself."
_MAX_GRAD_NORM = "Gradients are clipped to this norm."


@dataclass(frozen=True)
class PPOSettings:
    """PPO; the last four keys are additions to stable-baselines3's."""

    needs_continuous_actions: ClassVar[bool] = False

    learning_rate: float = setting(3e-4, _LEARNING_RATE, POSITIVE)
    n_steps: int = setting(2048, "Steps of each environment per rollout.", _ROLLOUT_STEPS)
    batch_size: int = setting(64, "Decisions per minibatch.", Range(2, 10**7))
    n_epochs: int = setting(10, "Passes over a rollout per update.", Range(1, 1000))
    gamma: float = setting(0.99, _GAMMA, FRACTION)
    gae_lambda: float = setting(0.95, _GAE_LAMBDA, FRACTION)
    clip_range: float = setting(0.2, "Clipping of the probability ratio.", POSITIVE)
    ent_coef: float = setting(0.0, _ENT_COEF, NOT_NEGATIVE)
    vf_coef: float = setting(0.5, _VF_COEF, NOT_NEGATIVE)
    max_grad_norm: float = setting(0.5, _MAX_GRAD_NORM, POSITIVE)
    normalize_advantage: bool = setting(True, "Normalize advantages within each minibatch.")
    target_kl: float | None = setting(None, "End an update early when the policy's KL divergence exceeds it.", POSITIVE)
    desired_kl: float | None = setting(
        None, "Adapt the learning rate after each rollout so that an update changes the policy by this KL.", POSITIVE
    )
    final_lr_fraction: float = setting(
        1.0, "Decay the learning rate, or `desired_kl` if it is set, linearly to this fraction of itself.", FRACTION
    )
    min_std: float = setting(0.0, "Lower bound of the actions' standard deviation.", NOT_NEGATIVE)
    final_min_std: float = setting(0.0, "`min_std` changes linearly to this value over the run.", NOT_NEGATIVE)

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def min_num_envs(self) -> int:
        """The fewest environments it can learn with: a single decision has no advantages to normalize."""
        return 2 if self.n_steps == 1 else 1


@dataclass(frozen=True)
class A2CSettings:
    """A2C; the last key is an addition to stable-baselines3's."""

    needs_continuous_actions: ClassVar[bool] = False

    learning_rate: float = setting(7e-4, _LEARNING_RATE, POSITIVE)
    n_steps: int = setting(5, "Steps of each environment per rollout.", _ROLLOUT_STEPS)
    gamma: float = setting(0.99, _GAMMA, FRACTION)
    gae_lambda: float = setting(1.0, _GAE_LAMBDA, FRACTION)
    ent_coef: float = setting(0.0, _ENT_COEF, NOT_NEGATIVE)
    vf_coef: float = setting(0.5, _VF_COEF, NOT_NEGATIVE)
    max_grad_norm: float = setting(0.5, _MAX_GRAD_NORM, POSITIVE)
    rms_prop_eps: float = setting(1e-5, "RMSProp's epsilon.", NOT_NEGATIVE)
    use_rms_prop: bool = setting(True, "Use RMSProp instead of Adam.")
    normalize_advantage: bool = setting(False, "Normalize advantages within each rollout.")
    final_lr_fraction: float = setting(1.0, _FINAL_LR_FRACTION, FRACTION)

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def min_num_envs(self) -> int:
        """The fewest environments it can learn with: a single decision has no advantages to normalize."""
        return 2 if self.n_steps == 1 and self.normalize_advantage else 1


@dataclass(frozen=True)
class SACSettings:
    """SAC; the entropy coefficient is learned. The last two keys are additions to stable-baselines3's."""

    needs_continuous_actions: ClassVar[bool] = True
    min_num_envs: ClassVar[int] = 1

    learning_rate: float = setting(3e-4, _LEARNING_RATE, POSITIVE)
    buffer_size: int = setting(1_000_000, "Decisions in the replay buffer.", Range(1, 10**8))
    learning_starts: int = setting(100, "Steps of random actions before learning starts.", Range(0, MAX_STEPS))
    batch_size: int = setting(256, "Decisions per minibatch.", Range(1, 10**7))
    tau: float = setting(0.005, "Step of the target networks towards the trained ones, per update.", FRACTION)
    gamma: float = setting(0.99, _GAMMA, FRACTION)
    train_freq: int = setting(1, "Vector steps between two rounds of updates.", Range(1, 10**6))
    gradient_steps: int = setting(1, "Updates per round.", Range(1, 10**6))
    n_steps: int = setting(
        1, "Decisions whose rewards are added up before the value of the next observation counts.", Range(1, 1000)
    )
    initial_ent_coef: float = setting(1.0, "Entropy coefficient at the start.", POSITIVE)
    target_entropy: float | None = setting(
        None, "The entropy coefficient keeps the actions' entropy at this; minus the number of actions if not given."
    )
    final_lr_fraction: float = setting(1.0, _FINAL_LR_FRACTION, FRACTION)

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class NormalizeSettings:
    """Running normalization of observations and rewards during training."""

    obs: bool = setting(False, "Normalize observations.")
    reward: bool = setting(False, "Normalize rewards.")
    clip_obs: float = setting(10.0, "Clip normalized observations to this size.", POSITIVE)
    clip_reward: float = setting(10.0, "Clip normalized rewards to this size.", POSITIVE)

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def is_on(self) -> bool:
        """Whether anything is normalized."""
        return self.obs or self.reward


Hyperparameters = PPOSettings | SACSettings | A2CSettings


@dataclass(frozen=True)
class RaceSettings:
    """Training in races: who drives the cars that do not learn, and what other cars add to the reward.

    Three races of four have a rolling start, the others a standing one; each lasts as long as an episode.
    """

    num_cars: int = setting(1, "Cars of each race; with 1 every car is alone.", Range(1, 32))
    learners: tuple[int, ...] = setting(
        (), "How many cars of a race learn, for the races in turn; all of them if not given.", Range(1, 32)
    )
    opponents: tuple[str, ...] = setting((), "Drivers of cars that do not learn: shipped ones, runs or model files.")
    min_throttle: float = setting(
        1.0,
        "In half of the races a driver of `opponents` presses the throttle only up to a limit, drawn from here to 1.",
        FRACTION,
    )
    league_size: int = setting(0, "Earlier versions of the policy that drive cars too.", Range(0, 16))
    league_interval: int = setting(
        20_000_000, "Time between two versions that are kept for that.", Range(1, MAX_STEPS), unit="steps"
    )
    league_fraction: float = setting(0.5, "Fraction of the cars that do not learn with such a version.", FRACTION)
    gain: float = setting(
        0.0,
        "Reward of the metres gained on the mean of the cars within 50 m, counted as progress is.",
        Range(0, 100),
    )
    overtake: float = setting(0.0, "Reward of a position gained; it is taken away for one lost.", Range(0, 100))
    contact_penalty: float = setting(
        0.0, "Reward of a decision with a contact, for each m/s of closing speed.", Range(-100, 0)
    )
    fault_penalty: float = setting(0.0, "The same for a contact that is the car's own fault, added.", Range(-100, 0))
    fault_cost: float = setting(
        0.0, "Reward of a decision with a contact of one's own fault, however soft.", Range(-100, 0)
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        if any(learners > self.num_cars for learners in self.learners):
            raise ConfigError(f"learners: a race has {self.num_cars} cars, got {max(self.learners)}. Give fewer.")
        if any(learners < self.num_cars for learners in self.learners) and not (self.opponents or self.league_size):
            raise ConfigError("learners: nobody drives the other cars. Give opponents or a league_size.")

    @property
    def is_on(self) -> bool:
        """Whether cars race each other."""
        return self.num_cars > 1
