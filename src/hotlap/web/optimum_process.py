"""Solves a track's optimal lap in a process of its own: `python -m hotlap.web.optimum_process TRACK REPLAY_FILE`.

Progress is one JSON object per line on stdout. The lap goes where `hotlap optimal` saves it; the optimal driver's laps
go to REPLAY_FILE.
"""

import json
import sys
from pathlib import Path

from hotlap.atomic_files import write_atomically
from hotlap.drivers.optimal_follower import OptimalDriver, solve_followed
from hotlap.errors import HotlapError, OptimalError
from hotlap.optimal.lap import solve_flying, solve_standing
from hotlap.optimal.reference import find_reference, make_reference, save_reference
from hotlap.tracks.registry import load_track
from hotlap.web.replays import record_drive


def solve(track_id: str, replay_path: Path) -> None:
    """Solve the lap, where that was not done before, and record the driver that follows it."""
    track = load_track(track_id)
    laps = None
    if find_reference(track) is None:
        say(0.0, 0.26, "solving the flying lap")
        flying = solve_flying(track.nodes)
        say(0.26, 0.44, "solving the standing lap")
        laps = flying, solve_standing(track.nodes, warm_start=flying)
        save_reference(track, make_reference(track, *laps))
    say(0.44 if laps else 0.0, 0.93, "solving the lap to follow")
    driver = OptimalDriver(*solve_followed(track.nodes, laps))
    say(0.93, 1.0, "driving it")
    replay = record_drive(driver, track_id, num_laps=2, is_quantised=True)
    write_atomically(replay_path, replay.to_bytes())
    say(1.0, 1.0, "done")


def say(begins: float, ends: float, message: str) -> None:
    """Report a stage: its fraction of the work from and to."""
    sys.stdout.write(json.dumps({"from": begins, "to": ends, "message": message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        solve(sys.argv[1], Path(sys.argv[2]))
    except OptimalError as problem:
        sys.exit(f"the solver found no lap: {problem}")
    except HotlapError as problem:
        sys.exit(str(problem))
