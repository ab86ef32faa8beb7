"""Runs of a fraction of a second that train in races."""

from typing import Any

from hotlap.runs.run_config import RunConfig
from tiny_runs import tiny_config

RACE: dict[str, Any] = {
    "num_cars": 4,
    "learners": [4, 1],
    "opponents": ["champion", "generalist"],
    "league_size": 2,
    "league_interval": 60,
    "gain": 1.0,
    "contact_penalty": -0.01,
    "fault_cost": -0.1,
}


def race_config(num_envs: int = 8, **changes: Any) -> RunConfig:
    """Two races of four cars, of which four and one learn."""
    racer = {
        "observation": "race",
        "action_repeat": 4,
        "tracks": ["track-01", "test-000"],
        "episode": {"max_ticks": 120, "start": "random"},
    }
    ppo = {"n_steps": 8, "batch_size": 16, "n_epochs": 2}
    return tiny_config(num_envs=num_envs, steps=400, **{"racer": racer, "race": RACE, "ppo": ppo, **changes})
