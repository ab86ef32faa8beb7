"""Solve the optimal laps that ship with the package: the built-in tracks and the frozen split.

Run it after a change of the physics or of the shipped tracks. Laps that are still valid are skipped, so an interrupted
run can be continued.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

# One solver per process and one thread per solver: the matrices are too small for more threads.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

SHIPPED = Path(__file__).resolve().parent.parent / "src" / "hotlap" / "optimal" / "data"


def solve(track_id: str, folder: Path) -> str:
    """Solve one track into `folder`; returns a line that reports the result."""
    from hotlap.errors import OptimalError
    from hotlap.optimal.reference import save_reference, solve_reference
    from hotlap.tracks.registry import load_track

    began = time.perf_counter()
    try:
        track = load_track(track_id)
        found = solve_reference(track)
        save_reference(track, found, folder)
    except OptimalError as error:
        return f"{track_id}: FAILED: {error}"
    return (
        f"{track_id}: {track.nodes.length_m:.0f} m, flying {found.lap_time_s:.3f} s, standing "
        f"{found.standing_lap_time_s:.3f} s, mesh {found.mesh_change:.1e} and {found.standing_mesh_change:.1e}, "
        f"{time.perf_counter() - began:.0f} s"
    )


def replay(track_id: str) -> str:
    """Drive one track with the optimal driver; returns a line that reports the gap to the optimum."""
    from hotlap.drivers.optimal_follower import OptimalDriver
    from hotlap.errors import HotlapError
    from hotlap.evaluation.evaluate import evaluate
    from hotlap.optimal.reference import find_reference
    from hotlap.tracks.registry import load_track

    reference = find_reference(load_track(track_id))
    if reference is None:
        return f"{track_id}: not solved"
    try:
        result = evaluate(OptimalDriver(), track_id, episodes=1).against(reference.lap_time_s)
    except HotlapError as error:
        return f"{track_id}: FAILED: {error}"
    if result.gap_to_optimal is None:
        return f"{track_id}: FAILED: no clean flying lap"
    return f"{track_id}: replayed {result.mean_lap_time_sec:.3f} s, {100.0 * result.gap_to_optimal:.2f} % off"


def main() -> int:
    """Solve or replay every chosen track; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tracks", nargs="*", help="track ids; all shipped ones if none are given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    parser.add_argument("--replay", action="store_true", help="drive the solved laps instead of solving")
    args = parser.parse_args()

    from hotlap.optimal.reference import find_reference
    from hotlap.tracks.registry import list_tracks, load_track

    chosen = args.tracks or [entry.track_id for entry in list_tracks() if entry.source != "yours"]
    tracks = sorted((load_track(track_id) for track_id in chosen), key=lambda track: -track.nodes.length_m)
    todo = [track.track_id for track in tracks if args.replay or find_reference(track) is None]
    failed = 0
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(replay, one) if args.replay else pool.submit(solve, one, args.out) for one in todo]
        for done, job in enumerate(as_completed(jobs), start=1):
            line = job.result()
            failed += "FAILED" in line
            print(f"[{done}/{len(todo)}] {line}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
