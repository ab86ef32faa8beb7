"""`hotlap tracks`: list, show, import and generate tracks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any

import typer

from hotlap.atomic_files import writable
from hotlap.cli.output import Json, print_json, seconds
from hotlap.errors import OptimalError
from hotlap.reports.formatting import MISSING

MIN_WRAP_COLUMNS = 20

tracks_app = typer.Typer(help="List, show, import and generate tracks.", no_args_is_help=True)


@tracks_app.command("list")
def list_tracks(
    split: Annotated[bool, typer.Option("--split", help="Also list the 125 tracks of the frozen split.")] = False,
    as_json: Json = False,
) -> None:
    """List all tracks, with the length and the optimal lap of the built-in ones and yours.

    For a track of the frozen split `hotlap tracks show ID` has them.

    Example: hotlap tracks list
    """
    from hotlap.tracks.registry import SPLITS
    from hotlap.tracks.registry import list_tracks as entries
    from hotlap.web.page_data import describe_entry

    rows = [describe_entry(entry) for entry in entries() if as_json or split or entry.source not in SPLITS]
    if as_json:
        print_json({"tracks": rows})
        return
    _print_rows(rows)
    if not split:
        counts = ", ".join(f"{name}-000 to {name}-{len(seeds) - 1:03d}" for name, seeds in SPLITS.items())
        number = sum(map(len, SPLITS.values()))
        print(f"and {number} generated tracks (--split): {counts}")


def _print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table of tracks; the last column is wrapped at the width of the terminal."""
    heads = ("track", "name", "length", "optimal lap")
    cells = [
        (row["id"], row["name"], _metres(row["length_m"]), seconds(row["optimal_lap_time_sec"]), _about(row))
        for row in rows
    ]
    widths = [max(len(head), *(len(cell[index]) for cell in cells)) for index, head in enumerate(heads)]

    def line(cell: Sequence[str]) -> str:
        return f"{cell[0]:<{widths[0]}}  {cell[1]:<{widths[1]}}  {cell[2]:>{widths[2]}}  {cell[3]:>{widths[3]}}  "

    print(f"{line(heads)}character")
    indent = len(line(heads))
    width = max(get_terminal_size().columns - indent, MIN_WRAP_COLUMNS)
    for cell in cells:
        first, *more = wrap(cell[4], width) or [""]
        print(f"{line(cell)}{first}".rstrip())
        for part in more:
            print(" " * indent + part)


def _metres(length_m: float | None) -> str:
    return MISSING if length_m is None else f"{length_m:,.0f} m"


def _about(row: Mapping[str, Any]) -> str:
    if "error" in row:
        return f"cannot be used; `hotlap tracks show {row['id']}` says why"
    return str(row["character"])


@tracks_app.command("show")
def show_track(
    track_id: Annotated[str, typer.Argument(metavar="ID", help="Track id.")],
    png: Annotated[Path | None, typer.Option(help="Write a map of the track.")] = None,
    with_line: Annotated[bool, typer.Option("--optimal", help="Draw the optimal line on the map.")] = False,
    as_json: Json = False,
) -> None:
    """Show a track's key figures, or draw its map.

    Example: hotlap tracks show track-01 --png track-01.png --optimal
    """
    from hotlap.optimal.reference import find_reference
    from hotlap.tracks.registry import load_track

    track = load_track(track_id)
    reference = find_reference(track)
    png_path = writable(png) if png else None
    if with_line and reference is None:
        raise OptimalError(f"{track_id}: its optimal lap was not solved yet. Solve it: hotlap optimal {track_id}")
    if png_path:
        from hotlap.tracks.maps.track_map import draw_track

        line = reference.raceline if reference and with_line else None
        draw_track(
            track.nodes,
            png_path,
            title=track.name,
            subtitle=f"{track.nodes.length_m:,.0f} m · {track.character}",
            raceline=(line.x_m, line.y_m, line.vx_mps) if line else None,
            medals=track.medals_s,
        )
    figures = {
        "id": track.track_id,
        "name": track.name,
        "character": track.character,
        "length_m": track.nodes.length_m,
        "min_radius_m": 1.0 / float(abs(track.nodes.curvature_radpm).max()),
        "min_width_m": float((track.nodes.road_left_m + track.nodes.road_right_m).min()),
        "max_width_m": float((track.nodes.road_left_m + track.nodes.road_right_m).max()),
        "medals_sec": dict(track.medals_s) or None,
        "optimal_lap_time_sec": reference.lap_time_s if reference else None,
        "png": str(png_path) if png_path else None,
    }
    if as_json:
        print_json(figures)
        return
    print(f"{track.track_id}: {track.name} ({track.character})")
    print(
        f"  length {track.nodes.length_m:,.0f} m   tightest radius {figures['min_radius_m']:.1f} m"
        f"   width {figures['min_width_m']:.1f} to {figures['max_width_m']:.1f} m"
    )
    if track.medals_s:
        print("  medals: " + ", ".join(f"{name} {time_s:.2f} s" for name, time_s in track.medals_s.items()))
    if reference:
        print(f"  optimal lap: {reference.lap_time_s:.2f} s")
    if png_path:
        print(f"picture: {png_path}")


@tracks_app.command("import")
def import_track(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Centreline CSV (x, y, width right, width left in metres), or a map with a circuit: .osm, .geojson.",
        ),
    ],
    track_id: Annotated[str, typer.Option("--id", help="Id of the new track.")],
    reverse: Annotated[bool, typer.Option(help="Reverse the driving direction.")] = False,
    width: Annotated[float | None, typer.Option(help="Constant total road width (m).")] = None,
    start: Annotated[float, typer.Option(help="Move the start line forward by this many metres.")] = 0.0,
    as_json: Json = False,
) -> None:
    """Import a track file: check it, resample it smoothly and save it among your own tracks.

    The ways of a map are joined into the longest loop; its attribution is kept in the track's file.

    Example: hotlap tracks import Monza.csv --id monza
    """
    from hotlap.tracks.files.centreline_file import import_comment
    from hotlap.tracks.files.track_import import import_track as read_track
    from hotlap.tracks.registry import load_track, save_track

    track = read_track(file, reverse_travel=reverse, width_m=width, start_m=start)
    path = save_track(track_id, track.centreline, import_comment(file.name, track.attribution))
    _report(load_track(track_id).nodes.length_m, track_id, path, as_json)


@tracks_app.command("generate")
def generate_track(
    seed: Annotated[int, typer.Option(help="Seed; a seed gives the same track on every machine.")],
    track_id: Annotated[str, typer.Option("--id", help="Id of the new track.")],
    circuit: Annotated[
        bool, typer.Option("--circuit", help="As large as a real circuit: up to 7 km, a road of uneven width.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Generate a track from a seed.

    Example: hotlap tracks generate --seed 7 --id my-track
    """
    from hotlap.tracks.generation.circuit_generator import generate_circuit
    from hotlap.tracks.generation.generator import generate
    from hotlap.tracks.registry import load_track, save_track

    centreline = generate_circuit(seed) if circuit else generate(seed)
    path = save_track(track_id, centreline, f"generated from seed {seed}{', a circuit' if circuit else ''}")
    _report(load_track(track_id).nodes.length_m, track_id, path, as_json)


def _report(length_m: float, track_id: str, path: Path, as_json: bool) -> None:
    if as_json:
        print_json({"id": track_id, "length_m": length_m, "file": str(path)})
        return
    print(f"{track_id}: {length_m:,.0f} m, saved as {path}")
    print(f"see it: hotlap tracks show {track_id} --png {track_id}.png")
