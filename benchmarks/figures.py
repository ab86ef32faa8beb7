"""Writes the figures of README and docs from benchmarks/results: python benchmarks/figures.py.

A page has a block for each, between `<!-- figures: NAME -->` and `<!-- end of figures -->`. A test compares them.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ablations
import benchmark_speed
import benchmark_table
import domain_randomization
import league
import learning_tables
import method_table
import overtaking
import road_statistics
from hotlap.atomic_files import atomic_write
from hotlap.evaluation.evaluate import Evaluation
from hotlap.models.shipped_models import CHAMPION, GENERALIST
from hotlap.reports.formatting import MISSING, gap_percent, percent, seconds, signed_percent, whole
from hotlap.reports.tables import Table, to_markdown

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(r"(<!-- figures: ([\w-]+) -->\n)(.*?)(<!-- end of figures -->\n)", re.DOTALL)
RECIPE, OTHER_RECIPES = ablations.RECIPE, ("racer-sac", "racer-a2c")  # also the names of the files with their runs
TEST_SPLIT = "test-"  # how the ids of its tracks begin


def pages() -> list[Path]:
    """The pages whose figures come from files."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def render(text: str) -> str:
    """The page with every block written anew."""
    return BLOCK.sub(lambda found: found[1] + BLOCKS[found[2]]() + found[4], text)


def read(name: str) -> dict[str, Any]:
    """A result file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def laps(driver: str) -> dict[str, Evaluation]:
    """The figures of a shipped driver by track."""
    rows = (Evaluation(**row) for row in read("drivers")["laps"])
    return {row.track: row for row in rows if row.driver == driver}


def recipe_runs(name: str) -> list[Evaluation]:
    """The runs of a recipe, the seeds in order."""
    runs = sorted(read(name)["runs"], key=lambda run: run["seed"])
    return [Evaluation(**run["evaluation"]) for run in runs if run["change"] == ablations.BASE]


def median_gap(runs: Iterable[Evaluation]) -> float:
    """The median gap of the runs that lap clean; infinite where none does."""
    return statistics.median(ablations.gaps(list(runs)) or [float("inf")])


def precise_gap(value: float | None) -> str:
    """A small gap with two decimals: +1.04 %."""
    return MISSING if value is None else f"+{gap_percent(value, 2)}"


def markdown(heads: Sequence[str], rows: Sequence[list[str]], texts: Iterable[str] = ()) -> str:
    """A table whose columns have numbers, to the right, except the first and `texts`."""
    lines = to_markdown(Table(list(heads), list(rows))).splitlines(keepends=True)
    lines[1] = "| " + " | ".join("---" if head in {heads[0], *texts} else "---:" for head in heads) + " |\n"
    return "".join(lines)


def results_table() -> str:
    """One row for each result of the README."""
    rows = []
    for label, driver in (("casual driver", "casual"), ("optimal driver", "optimal")):
        found = laps(driver)["track-01"]
        rows.append([label, "`track-01`", *driven(found), precise_gap(found.gap_to_optimal)])
    for track, found in laps(CHAMPION).items():
        rows.append(["champion", f"`{track}`", *driven(found), precise_gap(found.gap_to_optimal)])
    generalist = [row for track, row in laps(GENERALIST).items() if track.startswith(TEST_SPLIT)]
    rows.append(
        [
            "generalist",
            f"{len(generalist)} tracks it never saw",
            *worst_rates(generalist),
            MISSING,
            f"median {signed_percent(median_gap(generalist))}, worst {signed_percent(worst_gap(generalist))}",
        ]
    )
    for recipe in (RECIPE, *OTHER_RECIPES):
        runs = recipe_runs(recipe)
        rows.append(
            [
                f"`{recipe}`, {len(runs)} seeds",
                f"`{runs[0].track}`",
                *worst_rates(runs),
                seconds(statistics.median(run.median_lap_time_sec or 0.0 for run in runs)),
                f"median {signed_percent(median_gap(runs))}, worst {signed_percent(worst_gap(runs))}",
            ]
        )
    return markdown(["driver", "drives", "completed", "clean laps", "median lap", "gap"], rows, ["drives"])


def driven(found: Evaluation) -> list[str]:
    """What was driven: completed, clean, median lap."""
    return [percent(found.completion_rate), percent(found.clean_lap_rate), seconds(found.median_lap_time_sec)]


def worst_rates(runs: Iterable[Evaluation]) -> list[str]:
    """The smallest fraction of completed starts and of clean laps."""
    rows = list(runs)
    rates = min(run.completion_rate for run in rows), min(run.clean_lap_rate or 0.0 for run in rows)
    return [rate if rate == "100 %" else f"{rate} or more" for rate in map(percent, rates)]


def worst_gap(runs: Iterable[Evaluation]) -> float:
    """The largest gap."""
    return max(ablations.gaps(list(runs)))


def tracks_table() -> str:
    """The built-in tracks, with the optimal and the casual lap."""
    rows = [
        [
            f"`{track_id}`",
            f"{track['name']}: {track['character']}",
            f"{track['length_m']:,.0f} m",
            seconds(track["optimal_lap_time_sec"]),
            seconds(laps("casual")[track_id].median_lap_time_sec),
        ]
        for track_id, track in built_in().items()
    ]
    return markdown(["track", "character", "length", "optimal lap", "casual driver"], rows, ["character"])


def built_in() -> dict[str, Any]:
    """The built-in tracks: those that have a champion."""
    return {track_id: track for track_id, track in read("drivers")["tracks"].items() if track_id in laps(CHAMPION)}


def casual_table() -> str:
    """The casual driver's laps."""
    heads = ["track", "flying lap, median", "best", "spread", "standing lap, mean", "completed", "clean laps", "gap"]
    rows = [
        [
            f"`{track_id}`",
            seconds(found.median_lap_time_sec),
            seconds(found.best_lap_time_sec),
            seconds(found.std_lap_time_sec),
            seconds(found.standing_lap_time_sec),
            percent(found.completion_rate),
            percent(found.clean_lap_rate),
            gap_percent(found.gap_to_optimal),
        ]
        for track_id, found in laps("casual").items()
    ]
    return markdown(heads, rows)


def optimal_table() -> str:
    """The optimal driver's laps beside the optimum."""
    rows = [
        [
            f"{track_id} {track['name']}",
            f"{track['optimal_lap_time_sec']:.3f} s",
            f"{laps('optimal')[track_id].median_lap_time_sec:.3f} s",
            gap_percent(laps("optimal")[track_id].gap_to_optimal, 2),
            f"{track['optimal_standing_lap_time_sec']:.3f} s",
        ]
        for track_id, track in built_in().items()
    ]
    return markdown(["track", "optimum, flying", "driven, clean", "gap", "optimum, standing"], rows)


def mesh_line() -> str:
    """How fine the mesh of the shipped laps is."""
    tracks = read("drivers")["tracks"]
    largest = max(track["mesh_change"] for track in tracks.values())
    return (
        f"The last refinement of the mesh changed the flying lap of none of the {len(tracks)} shipped tracks by more "
        f"than {100.0 * largest:.3f} %.\n"
    )


def champions_table() -> str:
    """The champions on their tracks."""
    rows = [
        [
            f"`{track_id}`",
            whole(found.episodes),
            *driven(found),
            seconds(built_in()[track_id]["optimal_lap_time_sec"]),
            precise_gap(found.gap_to_optimal),
        ]
        for track_id, found in laps(CHAMPION).items()
    ]
    heads = ["champion of", "random starts", "completed", "clean laps", "median lap", "optimal lap", "gap"]
    return markdown(heads, rows)


def generalist_table() -> str:
    """The generalist on tracks it has never seen: the test split as one row, and each built-in track."""
    found = laps(GENERALIST)
    split = [row for track_id, row in found.items() if track_id.startswith(TEST_SPLIT)]
    groups = {f"{len(split)} tracks of the split `test`": split}
    groups |= {f"`{track_id}`": [row] for track_id, row in found.items() if row not in split}
    rows = [
        [
            label,
            f"{sum(run.completion_rate == 1.0 for run in runs)} of {len(runs)}",
            percent(statistics.fmean(run.clean_lap_rate or 0.0 for run in runs)),
            signed_percent(median_gap(runs)),
            signed_percent(worst_gap(runs)),
        ]
        for label, runs in groups.items()
    ]
    heads = ["generalist on", "completed from every start", "clean laps", "median gap", "worst gap"]
    return markdown(heads, rows)


def seeds_table() -> str:
    """The recipe racer-ppo, a row for each seed."""
    return markdown(["seed", "completed", "clean laps", "median lap", "gap"], seed_rows(RECIPE))


def seed_rows(name: str) -> list[list[str]]:
    """The runs of a result file's recipe, a row for each seed."""
    runs = sorted((run for run in read(name)["runs"] if run["change"] == ablations.BASE), key=lambda run: run["seed"])
    rows = []
    for run in runs:
        found = Evaluation(**run["evaluation"])
        gap = MISSING if found.gap_to_optimal is None else signed_percent(found.gap_to_optimal)
        rows.append([str(run["seed"]), *driven(found), gap])
    return rows


def other_algorithms_table() -> str:
    """SAC and A2C, a row for each seed of their recipes."""
    rows = [[f"`{recipe}`", *row] for recipe in OTHER_RECIPES for row in seed_rows(recipe)]
    return markdown(["recipe", "seed", "completed", "clean laps", "median lap", "gap"], rows)


def roads_table() -> str:
    """Generated circuits against real ones."""
    return to_markdown(Table(road_statistics.HEADS, road_statistics.rows(read("roads"))))


def roads_line() -> str:
    """How many real corners the generated circuits cover."""
    return road_statistics.coverage(read("roads"))


BLOCKS: dict[str, Callable[[], str]] = {
    "results": results_table,
    "tracks": tracks_table,
    "casual": casual_table,
    "optimal": optimal_table,
    "mesh": mesh_line,
    "method": lambda: markdown(*method_table.summary(read("drivers")["laps"])),
    "champions": champions_table,
    "generalist": generalist_table,
    "seeds": seeds_table,
    "other-algorithms": other_algorithms_table,
    "gpu-engine": lambda: markdown(*learning_tables.gpu_engine(read("gpu"))),
    "gpu-speed": lambda: markdown(*learning_tables.gpu_speed(read("gpu"))),
    "lunar": lambda: markdown(*learning_tables.lunar(read("lunar"))),
    "lunar-line": lambda: learning_tables.lunar_line(read("lunar")),
    "roads": roads_table,
    "roads-line": roads_line,
    "league": lambda: league.describe(read("league")),
    "benchmark-built-in": lambda: benchmark_table.describe(read("benchmark"), "built-in"),
    "benchmark-test": lambda: benchmark_table.describe(read("benchmark"), "test"),
    "benchmark-overtaking": lambda: benchmark_table.describe(read("benchmark"), "overtaking"),
    "benchmark-speed": lambda: benchmark_speed.describe(read("benchmark-speed")),
    "domain-randomization": lambda: domain_randomization.make_table(read("domain-randomization")),
    "overtaking": lambda: markdown(overtaking.HEADS, overtaking.rows(read("overtaking"))),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write every block of every page anew; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (written := render(text)) != text:
            with atomic_write(page) as file:
                file.write(written.encode())
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
