"""The checkpoints in a run's folder: how often they are written, how many are kept, their names."""

import re
from dataclasses import dataclass
from pathlib import Path

from hotlap.config import NOT_NEGATIVE, check_ranges, setting

CHECKPOINT_NAME = re.compile(r"checkpoint_(0|[1-9]\d{0,14})\.zip", re.ASCII)


@dataclass(frozen=True)
class CheckpointConfig:
    """How often a run is saved, and how many checkpoints are kept."""

    interval: int = setting(10_000, "Time between two checkpoints; 0 turns them off.", NOT_NEGATIVE, unit="steps")
    keep: int = setting(0, "Number of newest checkpoints that are kept; 0 keeps all.", NOT_NEGATIVE)

    def __post_init__(self) -> None:
        check_ranges(self)

    def describe(self) -> str:
        """The two settings in words."""
        if not self.interval:
            return "checkpoints: only when stopped"
        kept = f"keeping the newest {self.keep}" if self.keep else "keeping all"
        return f"checkpoints: every {self.interval:,} steps, {kept}"


def checkpoint_path(folder: Path, step: int) -> Path:
    """The path of the checkpoint of a step."""
    return folder / f"checkpoint_{step}.zip"


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of all checkpoints in a folder, damaged ones too, in order."""
    if not folder.is_dir():
        return []
    found = (CHECKPOINT_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match.group(1)) for match in found if match)
