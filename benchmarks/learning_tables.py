"""The tables of docs on learning on a GPU and on LunarLander-v3. `figures.py` writes them."""

import statistics
from collections.abc import Mapping
from typing import Any

from hotlap.reports.formatting import MISSING, whole

HeadsAndRows = tuple[list[str], list[list[str]]]


def gpu_engine(found: Mapping[str, Any]) -> HeadsAndRows:
    """The simulator on a GPU."""
    rows = [
        [found["device"], whole(row["cars"]), str(row["ticks_per_step"]), f"{row['steps_per_s'] / 1e6:,.0f} million"]
        for row in found["engine"]
    ]
    return ["GPU", "cars", "ticks per step", "steps per second"], rows


def gpu_speed(found: Mapping[str, Any]) -> HeadsAndRows:
    """Learning on a GPU."""
    rows = [
        [
            whole(row["num_cars"]),
            f"{row['width']}-{row['width']}",
            str(row["num_epochs"]),
            str(row["num_batches"]),
            f"{row['decisions_per_s'] / 1e6:.1f} million",
        ]
        for row in found["speed"]
    ]
    return ["cars", "network", "epochs", "minibatches", "decisions per second"], rows


def lunar(found: Mapping[str, Any]) -> HeadsAndRows:
    """LunarLander-v3, a row for each seed."""
    rows = [
        [
            str(run["seed"]),
            whole(run["steps"]),
            MISSING if run["solved_at_step"] is None else whole(run["solved_at_step"]),
            f"{run['mean_return']:.1f}",
            f"{run['return_std']:.1f}",
            whole(run["episode_length"]),
        ]
        for run in sorted(found["runs"], key=lambda run: run["seed"])
    ]
    return ["seed", "steps", "steps to 200", "return", "std", "episode length"], rows


def lunar_line(found: Mapping[str, Any]) -> str:
    """LunarLander-v3 in a sentence."""
    returns = [run["mean_return"] for run in found["runs"]]
    return (
        f"The best models of {len(returns)} seeds have a median return of {statistics.median(returns):.1f} over 100 "
        f"deterministic episodes, the worst {min(returns):.1f}; the task counts as solved at 200.\n"
    )
