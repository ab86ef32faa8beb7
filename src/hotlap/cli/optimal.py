"""`hotlap optimal`: the minimum-time lap of a track."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotlap.cli.output import print_json, seconds, writable

if TYPE_CHECKING:
    from hotlap.optimal.plan import Plan
    from hotlap.tracks.registry import Track


def optimal(
    track_id: Annotated[str, typer.Argument(metavar="TRACK", help="Track id; `hotlap tracks list` shows all.")],
    fresh: Annotated[bool, typer.Option("--fresh", help="Solve again, even if the lap is already known.")] = False,
    replay: Annotated[bool, typer.Option(help="Drive the lap in the simulator with the optimal driver.")] = True,
    png: Annotated[Path | None, typer.Option(help="Write a map of the line, coloured by speed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")] = False,
) -> None:
    """Solve a track's minimum-time lap, and check it by driving it in the simulator.

    Example: hotlap optimal track-01 --fresh --json
    """
    from hotlap.optimal.reference import find_reference, make_reference, save_reference, solve_laps
    from hotlap.tracks.registry import load_track

    track = load_track(track_id)
    png_path = writable(png) if png else None
    started = time.perf_counter()
    reference = None if fresh else find_reference(track)
    status, laps = "known", None
    if reference is None:
        typer.echo(f"solving {track_id}: flying lap, then standing lap…", err=True)
        laps = solve_laps(track)
        reference = make_reference(track, *laps)
        save_reference(track, reference)
        status = "solved"
    solve_sec = time.perf_counter() - started
    replayed_s = _replay(track, laps) if replay else None
    if png_path:
        from hotlap.tracks.track_map import draw_track

        line = reference.raceline
        draw_track(
            track.nodes,
            png_path,
            title=f"{track.name} · optimal lap",
            subtitle=f"{reference.lap_time_s:.2f} s flying, {reference.standing_lap_time_s:.2f} s from rest",
            raceline=(line.x_m, line.y_m, line.vx_mps),
        )
    if as_json:
        print_json(
            {
                "track": track_id,
                "lap_time_sec": reference.lap_time_s,
                "replay_lap_time_sec": replayed_s,
                "standing_lap_time_sec": reference.standing_lap_time_s,
                "status": status,
                "solve_sec": solve_sec,
                "mesh_change": reference.mesh_change,
                "standing_mesh_change": reference.standing_mesh_change,
                "png": str(png_path) if png_path else None,
            }
        )
        return
    print(f"{track.track_id}: {track.name}, optimal lap {reference.lap_time_s:.3f} s ({status}, {solve_sec:.1f} s)")
    print(f"  from rest {seconds(reference.standing_lap_time_s)}")
    if replayed_s is not None:
        gap = 100.0 * (replayed_s / reference.lap_time_s - 1.0)
        print(f"  driven in the simulator: {seconds(replayed_s)}, {gap:.2f} % slower")
    if png_path:
        print(f"picture: {png_path}")


def _replay(track: "Track", laps: "tuple[Plan, Plan] | None") -> float | None:
    """The optimal driver's clean flying lap (s) in the simulator; None if it drove none.

    Laps just solved are the warm start of the plans that the driver follows.
    """
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.evaluate import evaluate

    typer.echo("driving it in the simulator…", err=True)
    if laps is None:
        return evaluate(make_driver("optimal"), track.track_id, episodes=1).mean_lap_time_sec
    from hotlap.drivers.optimal_follower import OptimalDriver, solve_followed

    driver = OptimalDriver(*solve_followed(track.nodes, warm_start=laps))
    return evaluate(driver, track.track_id, episodes=1).mean_lap_time_sec
