"""Compares generated circuits with real ones: python benchmarks/road_statistics.py FILE.csv… [--seeds 1000].

The files are centrelines in metres as in the TUM racetrack database (x, y, width right, width left), which is not part
of this project. Prints a table; `--json` writes its figures, `--picture` draws the corners of both and some maps.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotlap.atomic_files import writable
from hotlap.errors import HotlapError
from hotlap.reports.formatting import percent
from hotlap.reports.plots.roads import NUM_MAPS, draw_roads
from hotlap.reports.road_comparison import compare_roads, corners_of
from hotlap.reports.tables import Table, to_markdown
from hotlap.tracks.files.track_import import import_centreline
from hotlap.tracks.generation.circuit_generator import generate_circuit
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.geometry.road_statistics import measure_road
from results_file import write_results

HEADS = ["measure", "real: 10 / 50 / 90 %", "least to most", "generated: 10 / 50 / 90 %", "least to most"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.csv")
    parser.add_argument("--seeds", type=int, default=1000, help="number of generated circuits, from seed 0")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures, too")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw corners and maps")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error(f"--seeds must be 1 or more, got {options.seeds}")
    logging.disable(logging.WARNING)  # an import warns of every bend that it narrows
    try:
        real = [measure_road(build_nodes(import_centreline(file))) for file in options.files]
        generated = [measure_road(build_nodes(generate_circuit(seed))) for seed in range(options.seeds)]
        compared = compare_roads(real, generated)
        figures = {"num_real": len(real), "num_generated": len(generated), **compared.as_json()}
        if options.json is not None:
            write_results(writable(options.json), figures)
        if options.picture is not None:
            maps = [build_nodes(generate_circuit(seed)) for seed in range(min(options.seeds, NUM_MAPS))]
            png = draw_roads(corners_of(real), corners_of(generated), maps)
            writable(options.picture).write_bytes(png)
    except HotlapError as error:
        print(f"road_statistics: {error}", file=sys.stderr)
        return 2
    finally:
        logging.disable(logging.NOTSET)
    print(to_markdown(Table(HEADS, rows(figures))))
    print(coverage(figures))
    return 0


def rows(figures: dict[str, Any]) -> list[list[str]]:
    """One row for each measure."""
    found = []
    for name, spread in figures["spreads"].items():
        cells = [name]
        for values in (spread["real"], spread["generated"]):
            shown = [show(value) for value in values]
            cells += [" / ".join(shown[1:4]), f"{shown[0]} to {shown[4]}"] if shown else ["", ""]
        found.append(cells)
    return found


def show(value: float) -> str:
    """Three digits or more: 0.63, 9.1, 12.5, 4,316."""
    if value >= 100.0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 5.0 else f"{value:.2f}"


def coverage(figures: dict[str, Any]) -> str:
    """How many of the real corners have generated ones near them."""
    return (
        f"{percent(figures['covered'])} of the {figures['num_real_corners']} real corners have a near one among the "
        f"{figures['num_generated_corners']:,} of {figures['num_generated']:,} generated circuits, "
        f"{percent(figures['covered_many'])} have ten or more; "
        f"{percent(figures['left_fraction'])} of the generated corners turn left.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
