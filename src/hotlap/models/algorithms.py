"""The algorithms whose policies Hotlap stores, and what differs between them."""

from collections.abc import Mapping
from dataclasses import dataclass

from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.a2c import CnnPolicy, MlpPolicy, MultiInputPolicy
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.sac import CnnPolicy as SACCnnPolicy
from stable_baselines3.sac import MlpPolicy as SACMlpPolicy
from stable_baselines3.sac import MultiInputPolicy as SACMultiInputPolicy

from hotlap.models.model_file import AlgorithmName, PolicyKind

# stable-baselines3 uses the same policy classes for PPO and A2C.
_ACTOR_CRITIC_POLICIES: dict[PolicyKind, type[BasePolicy]] = {
    "MlpPolicy": MlpPolicy,
    "CnnPolicy": CnnPolicy,
    "MultiInputPolicy": MultiInputPolicy,
}
_SAC_POLICIES: dict[PolicyKind, type[BasePolicy]] = {
    "MlpPolicy": SACMlpPolicy,
    "CnnPolicy": SACCnnPolicy,
    "MultiInputPolicy": SACMultiInputPolicy,
}


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of stable-baselines3; the defaults are those of the on-policy actor-critics."""

    name: AlgorithmName
    sb3_class: type[BaseAlgorithm]
    policies: Mapping[PolicyKind, type[BasePolicy]]
    is_off_policy: bool = False  # learns from a replay buffer
    critic_key: str = "vf"  # of the critic's widths in `net_arch`
    has_log_std: bool = True  # has the parameter log_std_init sets


ALGORITHMS: Mapping[str, Algorithm] = {
    "ppo": Algorithm("ppo", PPO, _ACTOR_CRITIC_POLICIES),
    "a2c": Algorithm("a2c", A2C, _ACTOR_CRITIC_POLICIES),
    "sac": Algorithm(
        "sac",
        SAC,
        _SAC_POLICIES,
        is_off_policy=True,
        critic_key="qf",
        has_log_std=False,
    ),
}
