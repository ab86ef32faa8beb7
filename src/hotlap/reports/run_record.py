"""One training run as reports use it, and the grouping of runs that differ only in their seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotlap.errors import ReportError
from hotlap.reports.curves import Curve

# Settings that do not affect what is learned, except the seed, over which runs are grouped.
_IGNORED_SETTINGS = ("seed", "steps", "torch_threads", "recording_interval", "checkpoint.", "evaluation.")
_MAX_NAMED_SETTINGS = 3


@dataclass(frozen=True)
class EvaluationFigures:
    """A policy's figures over deterministic episodes; None where a figure does not exist."""

    step: int  # at which the policy was evaluated
    mean_return: float | None = None
    return_std: float | None = None
    episode_length: float | None = None
    completion_rate: float | None = None
    clean_lap_rate: float | None = None
    median_lap_s: float | None = None
    gap: float | None = None  # of the median clean flying lap to the optimal one


@dataclass(frozen=True)
class RunRecord:
    """One run, finished or not.

    `curves` holds the TensorBoard scalars by key, and the run's own metrics as `metrics/…`: `reward` and
    `episode_length` are means over the last 100 episodes, `episode` counts episodes.
    """

    name: str
    folder: Path
    algorithm: str
    environment: str
    track: str | None  # None for other environments than the racer
    seed: int
    settings: Mapping[str, Any]  # flat: "ppo.gamma" to 0.99
    requested_steps: int
    step: int  # the last one known
    is_finished: bool
    curves: Mapping[str, Curve]
    last_seen: str | None = None  # the time of the newest point, ISO 8601
    num_episodes: int | None = None
    training_s: float | None = None
    reward_threshold: float | None = None  # from which the environment counts as solved
    final: EvaluationFigures | None = None

    def curve(self, key: str) -> Curve:
        """The curve of a key; empty if it was never logged."""
        return self.curves.get(key, Curve())

    @property
    def figures(self) -> EvaluationFigures | None:
        """The final evaluation, or the last periodic one while there is no final one."""
        if self.final is not None:
            return self.final
        returns = self.curve("eval/mean_reward")
        if not len(returns):
            return None
        step = int(returns.step[-1])
        return EvaluationFigures(
            step=step,
            mean_return=returns.last,
            episode_length=self.curve("eval/mean_ep_length").at(step),
            completion_rate=self.curve("eval/completion_rate").at(step),
            clean_lap_rate=self.curve("eval/clean_lap_rate").at(step),
            median_lap_s=self.curve("eval/median_lap_time_sec").at(step),
            gap=self.curve("eval/gap_to_optimal").at(step),
        )

    @property
    def solved_at(self) -> tuple[int, float | None] | None:
        """Step and training time (s) of the first evaluation at or above the environment's threshold."""
        if self.reward_threshold is None:
            return None
        return self.curve("eval/mean_reward").first_reaching(self.reward_threshold)


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ only in their seed."""

    label: str
    runs: tuple[RunRecord, ...]  # by seed


def group_runs(records: Sequence[RunRecord]) -> list[RunGroup]:
    """Group runs of the same settings, in the order given; raises ReportError for runs that cannot be compared.

    Runs whose folders have the same name are named by their paths.
    """
    _check_comparable(records)
    names = [record.name for record in records]
    found: dict[str, list[RunRecord]] = {}
    for record in records:
        record = replace(record, name=str(record.folder)) if names.count(record.name) > 1 else record
        found.setdefault(repr((record.algorithm, sorted(_compared_settings(record).items()))), []).append(record)
    groups = [sorted(runs, key=lambda run: run.seed) for runs in found.values()]
    labels = _make_labels([runs[0] for runs in groups])
    return [RunGroup(label, tuple(runs)) for label, runs in zip(labels, groups, strict=True)]


def _check_comparable(records: Sequence[RunRecord]) -> None:
    first = records[0]
    folders = [record.folder.resolve() for record in records]
    for index, record in enumerate(records):
        if folders[index] in folders[:index]:
            raise ReportError(f"{record.folder}: the run is given twice. Name each run once.")
        for what, own, other in (
            ("environment", record.environment, first.environment),
            ("track", record.track, first.track),
        ):
            if own != other:
                raise ReportError(
                    f"{record.folder}: its {what} is {own}, but that of {first.folder} is {other}. Compare only runs "
                    f"of the same {what}."
                )


def _compared_settings(record: RunRecord) -> dict[str, str]:
    """The settings by which runs are grouped, as text."""
    return {key: _to_text(value) for key, value in record.settings.items() if not key.startswith(_IGNORED_SETTINGS)}


def _to_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _make_labels(records: Sequence[RunRecord]) -> list[str]:
    """Each run's algorithm, and the settings in which it differs from the others of that algorithm."""
    labels = []
    for record in records:
        peers = [_compared_settings(other) for other in records if other.algorithm == record.algorithm]
        own = _compared_settings(record)
        keys = sorted(key for key in set().union(*peers) if len({peer.get(key) for peer in peers}) > 1)
        parts = [f"{key.rpartition('.')[2]} {own.get(key, 'unset')}" for key in keys[:_MAX_NAMED_SETTINGS]]
        more = ["…"] if len(keys) > _MAX_NAMED_SETTINGS else []
        labels.append(", ".join([record.algorithm.upper(), *parts, *more]))
    return labels
