"""`hotlap optimal`: the minimum-time lap of a track."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotlap.atomic_files import writable
from hotlap.cli.output import Json, print_json, seconds
from hotlap.reports.formatting import gap_percent

if TYPE_CHECKING:
    from hotlap.optimal.plan import Plan
    from hotlap.tracks.registry import Track

KNOWN, SOLVED = "known", "solved"


@dataclass(frozen=True)
class _Drive:
    """The optimal driver's clean flying lap in the simulator, None if it drove none; what was done, and how long."""

    lap_time_s: float | None
    how: str
    took_s: float


def optimal(
    track_id: Annotated[str, typer.Argument(metavar="TRACK", help="Track id; `hotlap tracks list` shows all.")],
    fresh: Annotated[bool, typer.Option("--fresh", help="Solve again, even if the lap is already known.")] = False,
    replay: Annotated[bool, typer.Option(help="Drive the lap in the simulator with the optimal driver.")] = True,
    png: Annotated[Path | None, typer.Option(help="Write a map of the line, coloured by speed.")] = None,
    as_json: Json = False,
) -> None:
    """Solve a track's minimum-time lap, and check it by driving it in the simulator.

    A lap that is known is not solved again. On a built-in track the optimal driver's recorded inputs are driven.

    Example: hotlap optimal track-01 --fresh --json
    """
    from hotlap.optimal.reference import find_reference, make_reference, save_reference, solve_laps
    from hotlap.tracks.registry import load_track

    track = load_track(track_id)
    png_path = writable(png) if png else None
    started = time.perf_counter()
    reference = None if fresh else find_reference(track)
    status, laps = KNOWN, None
    if reference is None:
        typer.echo(f"solving {track_id}: flying lap, then standing lap…", err=True)
        laps = solve_laps(track)
        reference = make_reference(track, *laps)
        save_reference(track, reference)
        status = SOLVED
    solve_sec = time.perf_counter() - started
    drive = _drive(track, laps) if replay else None
    if png_path:
        from hotlap.tracks.maps.track_map import draw_track

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
                "replay_lap_time_sec": drive.lap_time_s if drive else None,
                "standing_lap_time_sec": reference.standing_lap_time_s,
                "status": status,
                "solve_sec": solve_sec,
                "replay_sec": drive.took_s if drive else None,
                "mesh_change": reference.mesh_change,
                "standing_mesh_change": reference.standing_mesh_change,
                "png": str(png_path) if png_path else None,
            }
        )
        return
    how = f"solved in {solve_sec:.1f} s" if status == SOLVED else "known, not solved again"
    print(f"{track.track_id}: {track.name}, optimal lap {reference.lap_time_s:.3f} s ({how})")
    print(f"  from rest {seconds(reference.standing_lap_time_s)}")
    if drive is not None and drive.lap_time_s is None:
        print(f"  driven in the simulator: no clean flying lap ({drive.how} in {drive.took_s:.1f} s)")
    elif drive is not None and drive.lap_time_s is not None:
        gap = gap_percent(drive.lap_time_s / reference.lap_time_s - 1.0, decimals=2)
        print(f"  driven in the simulator: {seconds(drive.lap_time_s)}, gap {gap}")
        print(f"    ({drive.how} in {drive.took_s:.1f} s)")
    if png_path:
        print(f"picture: {png_path}")


def _drive(track: "Track", laps: "tuple[Plan, Plan] | None") -> _Drive:
    """Drive the lap in the simulator: recorded inputs where they ship, otherwise a plan that is solved now.

    The driver's plan keeps a margin to the limits, so it is not the optimal lap itself. Laps just solved are its warm
    start.
    """
    started = time.perf_counter()
    if laps is None and (recorded_s := _replay_recorded(track)) is not None:
        return _Drive(recorded_s, "the optimal driver's recorded inputs, driven again", time.perf_counter() - started)
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.evaluate import evaluate

    typer.echo("solving the driver's own plan, which keeps a margin, and driving it…", err=True)
    if laps is None:
        driver = make_driver("optimal")
    else:
        from hotlap.drivers.optimal_follower import OptimalDriver, solve_followed

        driver = OptimalDriver(*solve_followed(track.nodes, warm_start=laps))
    lap_s = evaluate(driver, track.track_id, episodes=1).mean_lap_time_sec
    return _Drive(lap_s, "the optimal driver's own plan, solved and driven", time.perf_counter() - started)


def _replay_recorded(track: "Track") -> float | None:
    """The clean flying lap (s) of the recorded inputs that ship for this road and physics; None if there is none."""
    from hotlap.web.replays import find_recorded, verify

    replay = find_recorded("optimal", track)
    lap = verify(replay, track.track_id) if replay else None
    return lap.time_s if lap and lap.is_clean and lap.number > 1 else None
