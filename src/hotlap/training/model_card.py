"""Makes the card that a run writes into its model files and checkpoints."""

import platform
from dataclasses import replace
from typing import Any

from gymnasium import Space

from hotlap.envs.spaces import OBSERVATION_LAYOUTS
from hotlap.models.model_file import ModelCard
from hotlap.models.policy import policy_kind
from hotlap.models.space_data import space_data
from hotlap.runs.run_config import RunConfig, in_process
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track, one_road


def make_card(
    config: RunConfig, spaces: tuple[Space[Any], Space[Any]], step: int = 0, weights_digest: str = ""
) -> ModelCard:
    """The card of a run's model at a step; `spaces` are those of observations and actions as the policy sees them.

    A model trained behind the bridge gets the card of one trained in this process: the cars are the same.
    """
    local, (observations, actions) = in_process(config), spaces
    racer: dict[str, Any] = {}
    if local.is_racer:
        racer = {
            "physics": PHYSICS_VERSION,
            "observation_layout": OBSERVATION_LAYOUTS[local.racer.observation],
            "action_repeat": local.racer.action_repeat,
            "stack": local.racer.stack,
            "lap_fourier": local.racer.lap_fourier,
        }
        if not local.racer.tracks:
            # Of a stream of roads, the digest of one of them tells whether the generator still makes the same.
            road = load_track(one_road(local.racer.track))
            racer |= {"track": local.racer.track, "track_digest": track_digest(road.nodes)}
    return ModelCard(
        algorithm=config.algo,
        environment=local.env,
        seed=config.seed,
        step=step,
        config_digest=config.digest(),
        weights_digest=weights_digest,
        policy=replace(config.policy, kind=policy_kind(config.policy, observations)),
        observation_space=space_data(observations),
        action_space=space_data(actions),
        env_args=dict(local.env_args),
        clip_obs=config.normalize.clip_obs if config.normalize.obs else None,
        trained_on=f"{platform.system()} {platform.machine()}, {config.device}",
        **racer,
    )
