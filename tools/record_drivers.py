"""Record the casual and the optimal driver on the built-in tracks, for the page: `src/hotlap/web/recorded/*.replay`.

usage: python tools/record_drivers.py [casual|optimal]

Run it after a change of the physics or of the built-in tracks. It solves the optimal laps, which takes minutes. Inputs
are quantised as a person's are, so that a replay is small; the optimal laps are the driver's to a few milliseconds. The
casual driver has noise: of many drives the one is kept whose flying lap is that of `hotlap evaluate casual`.
"""

import sys
from pathlib import Path

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.driver import make_driver
from hotlap.evaluation.baseline import measure_casual_lap
from hotlap.web.page_data import RECORDED, RECORDED_DRIVERS
from hotlap.web.replays import Replay, record_drive, record_typical_drive, simulate

# A drive of about two minutes; then the page starts it again.
NUM_OPTIMAL_LAPS = {"track-01": 4, "track-02": 2, "track-03": 2}
OPTIMAL_SEED = 1
NUM_CASUAL_DRIVES = 200


def record(name: str, track_id: str) -> Replay:
    """The replay of a driver on a track."""
    if name == "casual":
        return record_typical_drive(CasualDriver(), track_id, NUM_CASUAL_DRIVES, measure_casual_lap(track_id))
    return record_drive(make_driver(name), track_id, NUM_OPTIMAL_LAPS[track_id], OPTIMAL_SEED, is_quantised=True)


def main(drivers: list[str]) -> None:
    """Write the replays of these drivers."""
    RECORDED.mkdir(exist_ok=True)
    for track_id, num_optimal_laps in NUM_OPTIMAL_LAPS.items():
        for name in drivers:
            replay = record(name, track_id)
            laps = simulate(replay, track_id)
            num_laps = 2 if name == "casual" else num_optimal_laps
            if len(laps) < num_laps or not all(lap.is_clean for lap in laps):
                sys.exit(f"{track_id}: the {name} driver did not drive {num_laps} clean laps: {laps}")
            path = Path(RECORDED, f"{track_id}.{name}.replay")
            path.write_bytes(replay.to_bytes())
            times = ", ".join(f"{lap.time_s:.3f}" for lap in laps)
            print(f"{path.name}: {path.stat().st_size:,} bytes, {times} s", flush=True)


if __name__ == "__main__":
    if not set(sys.argv[1:]) <= set(RECORDED_DRIVERS):
        sys.exit((__doc__ or "").strip())
    main(sys.argv[1:] or list(RECORDED_DRIVERS))
