"""A training run as reports see it, whoever read its files, and which runs differ in their seed alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotlap.errors import ReportError
from hotlap.reports.curves import Curve

# Settings that say how long and how closely a run was followed, not what was tried.
_ASIDE = ("seed", "steps", "torch_threads", "recording_interval", "checkpoint.", "evaluation.")
_MOST_NAMED_SETTINGS = 3


@dataclass(frozen=True)
class Figures:
    """How good a policy was over deterministic episodes; None where there is no such figure."""

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

    `curves` has what was logged to TensorBoard under its key, and the run's own metrics under `metrics/…`: `reward`
    and `episode_length` are means over the last 100 episodes, `episode` counts them.
    """

    name: str
    folder: Path
    algorithm: str
    environment: str
    track: str | None  # of a racer
    seed: int
    settings: Mapping[str, Any]  # flat: "ppo.gamma" to 0.99
    steps_asked: int
    step: int  # the last one known
    is_finished: bool
    curves: Mapping[str, Curve]
    last_seen: str | None = None  # the time of the newest point, ISO 8601
    num_episodes: int | None = None
    training_s: float | None = None
    reward_threshold: float | None = None  # from which the environment counts as solved
    final: Figures | None = None

    def curve(self, key: str) -> Curve:
        """A figure over the run; an empty curve where it was never logged."""
        return self.curves.get(key, Curve())

    @property
    def figures(self) -> Figures | None:
        """The final evaluation's, or until there is one those of the last evaluation on the way."""
        if self.final is not None:
            return self.final
        returns = self.curve("eval/mean_reward")
        if not len(returns):
            return None
        step = int(returns.step[-1])
        return Figures(
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
        """Step and seconds of the first evaluation at or over the environment's threshold."""
        if self.reward_threshold is None:
            return None
        return self.curve("eval/mean_reward").first_reaching(self.reward_threshold)


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in their seed alone."""

    label: str
    runs: tuple[RunRecord, ...]  # by seed


def group_runs(records: Sequence[RunRecord]) -> list[RunGroup]:
    """Runs of the same settings together, in the order in which they were named; what cannot be compared is refused.

    Runs whose folders have the same name are called by their paths.
    """
    _refuse_mixture(records)
    names = [record.name for record in records]
    found: dict[str, list[RunRecord]] = {}
    for record in records:
        record = replace(record, name=str(record.folder)) if names.count(record.name) > 1 else record
        found.setdefault(repr((record.algorithm, sorted(_kind(record).items()))), []).append(record)
    groups = [sorted(runs, key=lambda run: run.seed) for runs in found.values()]
    labels = _labels([runs[0] for runs in groups])
    return [RunGroup(label, tuple(runs)) for label, runs in zip(labels, groups, strict=True)]


def _refuse_mixture(records: Sequence[RunRecord]) -> None:
    first = records[0]
    folders = [record.folder.resolve() for record in records]
    for index, record in enumerate(records):
        if folders[index] in folders[:index]:
            raise ReportError(f"{record.folder}: is named twice. Name each run once.")
        for what, own, other in (
            ("environment", record.environment, first.environment),
            ("track", record.track, first.track),
        ):
            if own != other:
                raise ReportError(
                    f"{record.folder}: its {what} is {own}, that of {first.folder} is {other}. Runs can be laid side "
                    f"by side on one {what} only."
                )


def _kind(record: RunRecord) -> dict[str, str]:
    """The settings that say what was tried, as text."""
    return {key: _text(value) for key, value in record.settings.items() if not key.startswith(_ASIDE)}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _labels(records: Sequence[RunRecord]) -> list[str]:
    """The algorithm of each, and what sets it apart from the others of that algorithm."""
    labels = []
    for record in records:
        peers = [_kind(other) for other in records if other.algorithm == record.algorithm]
        own = _kind(record)
        keys = sorted(key for key in set().union(*peers) if len({peer.get(key) for peer in peers}) > 1)
        parts = [f"{key.rpartition('.')[2]} {own.get(key, 'unset')}" for key in keys[:_MOST_NAMED_SETTINGS]]
        more = ["…"] if len(keys) > _MOST_NAMED_SETTINGS else []
        labels.append(", ".join([record.algorithm.upper(), *parts, *more]))
    return labels
