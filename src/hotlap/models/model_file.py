"""What a model file says about itself, read without any learning library, and when it must be refused."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hotlap.config import build, snake_case
from hotlap.envs.fleet import check_repeat
from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.registration import RACER_ID
from hotlap.envs.spaces import OBSERVATION_LAYOUT
from hotlap.errors import ConfigError, InputFileError, ModelError
from hotlap.models.archive import read_archive
from hotlap.sim.version import PHYSICS_VERSION

# Where runs lie unless they were put elsewhere.
EXPERIMENTS = Path("results") / "experiments"
PolicyKind = Literal["auto", "MlpPolicy", "CnnPolicy", "MultiInputPolicy"]
POLICY_GROUP, NORMALIZER_GROUP = "policy", "normalizer"
MAX_WIDTH = 65_536
_CHECKPOINT = re.compile(r"checkpoint_(\d{1,15})\.zip", re.ASCII)
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class PolicySettings:
    """The networks' shape; what is left out is as the learning library has it."""

    kind: PolicyKind = "auto"
    net_arch: tuple[int, ...] | None = None  # hidden layers' widths
    activation: Literal["tanh", "relu", "elu"] | None = None
    log_std_init: float | None = None

    def __post_init__(self) -> None:
        for width in self.net_arch or ():
            if not 1 <= width <= MAX_WIDTH:
                raise ConfigError(f"net_arch: a layer's width must be from 1 to {MAX_WIDTH}, got {width}.")


@dataclass(frozen=True)
class ModelCard:
    """All that is needed to build a model's policy and to let it drive as it was trained to."""

    algorithm: Literal["ppo", "sac", "a2c"]
    environment: str
    seed: int
    step: int
    config_digest: str
    weights_digest: str
    policy: PolicySettings
    observation_space: str  # as Gymnasium prints it: enough to notice another one
    action_space: str
    env_args: Mapping[str, Any] = field(default_factory=dict)
    physics: str | None = None  # of the racer's models
    observation_layout: str | None = None
    track: str | None = None
    action_repeat: int = 1
    stack: int = 1
    lap_fourier: int = 0
    clip_obs: float | None = None  # None: observations are not normalized
    trained_on: str = ""

    def __post_init__(self) -> None:
        check_repeat(self.action_repeat)
        stacked_observation_space(self.stack, self.lap_fourier)  # refuses what no policy can see
        if self.clip_obs is not None and not self.clip_obs > 0.0:
            raise ConfigError(f"clip_obs must be more than zero, got {self.clip_obs:g}.")

    @property
    def is_racer(self) -> bool:
        """Whether the model drives our cars."""
        return self.environment == RACER_ID

    def as_plain(self) -> dict[str, Any]:
        """Plain data for the file's manifest."""
        plain = asdict(self)
        plain["policy"]["net_arch"] = list(self.policy.net_arch) if self.policy.net_arch is not None else None
        plain["env_args"] = dict(self.env_args)
        return plain


@dataclass(frozen=True)
class ModelFile:
    """A model as it lies in its file: the card, the policy's weights, and the normalizer's statistics if it has one."""

    path: Path
    card: ModelCard
    weights: Arrays
    normalizer: Arrays


def read_model(path: Path) -> ModelFile:
    """The model in a file, whole and made for this version of everything it depends on."""
    archive = read_archive(path, only=(POLICY_GROUP, NORMALIZER_GROUP))
    card = card_of(archive.about, path)
    refuse_foreign(card, path)
    normalizer = archive.tensors.get(NORMALIZER_GROUP, {})
    weights = archive.tensors.get(POLICY_GROUP)
    if not weights:
        raise ModelError(f"{path}: holds no policy. Take another model.")
    if card.clip_obs is not None and not {"obs_mean", "obs_var"} <= set(normalizer):
        raise ModelError(
            f"{path}: was trained on normalized observations, and their statistics are missing. Take another model."
        )
    for name, array in {**weights, **normalizer}.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}: {name!r:.80} is not finite; its training went wrong. Take an earlier one.")
    return ModelFile(path, card, weights, normalizer)


def card_of(about: Mapping[str, Any], path: Path) -> ModelCard:
    """The card in a file's manifest."""
    card = about.get("card")
    if not isinstance(card, Mapping):
        raise ModelError(f"{path}: does not say what it is a model of. Is it another program's file?")
    try:
        return build(ModelCard, card, "card", snake_case)
    except (ConfigError, TypeError) as error:
        raise ModelError(f"{path}: its description cannot be read ({error}). Was it made by a newer hotlap?") from None


def refuse_foreign(card: ModelCard, path: Path) -> None:
    """A model of the racer drives on the physics and sees the observations it was trained with, or not at all."""
    if not card.is_racer:
        return
    if card.physics != PHYSICS_VERSION:
        raise ModelError(
            f"{path}: was trained on physics {card.physics}; these are {PHYSICS_VERSION}. Train it again, or use the "
            "version of hotlap it was made with."
        )
    if card.observation_layout != OBSERVATION_LAYOUT:
        raise ModelError(
            f"{path}: sees observations laid out as {card.observation_layout}; here they are {OBSERVATION_LAYOUT}. "
            "Train it again, or use the version of hotlap it was made with."
        )


def find_model(run: str) -> Path:
    """What a path or a run's name means: itself, or a run's best model, its final one, or newest checkpoint."""
    found = [path for path in (Path(run), EXPERIMENTS / run) if run and is_there(path)]
    if not found:
        raise InputFileError(f"{run!r:.80} is not known. Name a run (`hotlap train` makes them) or a model file.")
    folder = found[0]
    if not folder.is_dir():
        return folder
    for pattern in ("*_best.zip", "*_model.zip"):
        models = sorted(folder.glob(pattern))
        if models:
            return models[0]
    checkpoints = {int(match[1]): path for path in folder.iterdir() if (match := _CHECKPOINT.fullmatch(path.name))}
    if not checkpoints:
        raise InputFileError(f"{folder}: holds no model and no checkpoint yet. Train it first, or name another.")
    return checkpoints[max(checkpoints)]


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder; a name that cannot be one means no."""
    try:
        return path.exists()
    except OSError:  # too long
        return False
