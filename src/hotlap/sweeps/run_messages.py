"""What a sweep and the processes that train its runs tell each other: plain data, so that it travels as JSON."""

from typing import Any, Literal

import msgspec


class RunTask(msgspec.Struct, frozen=True):
    """A run to start or to resume. `objectives` are pairs of name and direction."""

    trial: int
    seed: int
    folder: str
    config: dict[str, Any]
    objectives: tuple[tuple[str, Literal["minimize", "maximize"]], ...]
    rung: int | None = None  # steps after which the run pauses; None trains to the end
    allow_import: tuple[str, ...] = ()


class RunReport(msgspec.Struct, frozen=True):
    """How a task ended.

    `finished`: `values` has the objectives. `paused`: at the rung. `stopped`: saved, because it was asked to stop.
    `failed`: `error` says why. `lost`: the process or its machine died.
    """

    kind: Literal["finished", "paused", "stopped", "failed", "lost"]
    values: tuple[float | None, ...] = ()
    rung_value: float | None = None
    has_rung: bool = False
    step: int = 0
    elapsed_s: float = 0.0
    error: str = ""


Ended = tuple[RunTask, RunReport]
