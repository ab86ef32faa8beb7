"""What stable-baselines3 writes about a model in plain text beside its pickles, in our own terms."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from gymnasium import spaces

from hotlap.config import build, snake_case
from hotlap.errors import ConfigError, ModelError
from hotlap.models.model_file import ModelCard, PolicySettings
from hotlap.models.policy import ACTIVATIONS, network_observations

# What a policy may have been made with that says nothing about how it plays, gSDE's settings as long as that is off.
_UNHEARD = {"ortho_init", "optimizer_class", "optimizer_kwargs", "use_sde", "full_std", "use_expln", "clip_mean"}
_UNHEARD |= {":type:", ":serialized:", "device"}


def find_count(data: Mapping[str, Any], name: str) -> int:
    """A whole number by its name, or zero where there is none."""
    value = data.get(name)
    return value if type(value) is int and value >= 0 else 0


def find_algorithm(path: Path, data: Mapping[str, Any]) -> Literal["ppo", "a2c", "sac"]:
    """Which of ours it is: the file does not name it, but the policy's home and the settings tell."""
    policy = data.get("policy_class")
    home = policy.get("__module__") if isinstance(policy, Mapping) else None
    if home == "stable_baselines3.sac.policies":
        return "sac"
    if home == "stable_baselines3.common.policies":
        return "ppo" if "clip_range" in data else "a2c"
    raise ModelError(f"{path}: its policy is of {home!s:.80}; only the library's own for PPO, A2C and SAC come over.")


def find_policy(path: Path, data: Mapping[str, Any]) -> PolicySettings:
    """The networks' shape, if it is one that ours can have."""
    given = data.get("policy_kwargs")
    given = given if isinstance(given, Mapping) else {}
    strange = sorted(set(given) - _UNHEARD - {"net_arch", "activation_fn", "log_std_init"})
    if data.get("use_sde") or given.get("use_sde"):
        strange.append("use_sde")
    if strange:
        raise ModelError(
            f"{path}: its policy has {', '.join(strange)!s:.80}, which Hotlap's have not. Train it without."
        )
    found: dict[str, Any] = {"log_std_init": given.get("log_std_init")}
    if given.get("net_arch") is not None:
        found["net_arch"] = _widths(path, given["net_arch"])
    if "activation_fn" in given:
        names = {str(kind): name for name, kind in ACTIVATIONS.items()}
        told = str(given["activation_fn"])
        found["activation"] = names.get(told) or f"class {_last_name(told)}"
    try:
        return build(PolicySettings, found, "policy_kwargs", snake_case)
    except ConfigError as error:
        raise ModelError(f"{path}: {error} Such a policy cannot come over.") from None


def _widths(path: Path, arch: Any) -> Any:
    """The hidden layers' widths, which with us are the same for the policy and for what values its actions."""
    if isinstance(arch, list) and len(arch) == 1 and isinstance(arch[0], Mapping):
        [arch] = arch  # as the library wrote it before 1.8
    if not isinstance(arch, Mapping):
        return arch
    policy, value = arch.get("pi", []), arch.get("vf", arch.get("qf", []))
    if policy != value:
        raise ModelError(
            f"{path}: has layers {policy!s:.40} to act and {value!s:.40} to value; Hotlap has one shape for both. "
            "Train it so."
        )
    return policy


def check_space(path: Path, card: ModelCard, what: str, data: Mapping[str, Any], space: spaces.Space[Any]) -> None:
    """Compare the text of a saved space with the environment's; bounds matter where actions are clipped to them."""
    told = data.get(f"{what.removesuffix('s')}_space")
    told = told if isinstance(told, Mapping) else {}
    here, names = space, ["n", "nvec", "_shape", "low", "high"]
    if what == "observations":
        here, names = network_observations(space), names[:-2]
    is_alike = str(told.get(":type:")).endswith(f".{type(here).__name__}'>")
    for name in names:
        is_alike = is_alike and _numbers(told.get(name)) == _numbers(getattr(here, name, None))
    if not is_alike:
        kind, text = _last_name(str(told.get(":type:"))), " ".join(str(space).split())
        figures = ", ".join(f"{name} {told[name]!s:.60}" for name in names if told.get(name) is not None)
        raise ModelError(
            f"{path}: its {what} are {kind} ({figures}); those of {card.environment} are {text:.160}. Name the "
            "environment it was trained in (--env)" + (", or its --stack and --lap-fourier." if card.is_racer else ".")
        )


def _last_name(text: str) -> str:
    """`Box` of `<class 'gymnasium.spaces.box.Box'>`."""
    return text.rpartition(".")[2].removesuffix("'>")


def _numbers(value: Any) -> list[float]:
    """The numbers in an array's or a list's text."""
    return [float(text) for text in re.findall(r"-?(?:inf|\d+\.?\d*(?:e[+-]?\d+)?)", str(value))]
