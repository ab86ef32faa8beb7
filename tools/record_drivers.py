"""Record the casual and the optimal driver on the built-in tracks, for the page: `src/hotlap/web/recorded/*.replay`.

usage: python tools/record_drivers.py

Run it after a change of the physics or of the built-in tracks. It solves the optimal laps, which takes minutes. Inputs
are quantised as a person's are, so that a replay is small; the laps are those of the drivers to a few milliseconds.
"""

import sys
from pathlib import Path

from hotlap.drivers.driver import make_driver
from hotlap.web.page_data import RECORDED, RECORDED_DRIVERS
from hotlap.web.replays import record_drive, simulate

# A drive of about two minutes; then the page starts it again.
NUM_LAPS = {"track-01": 4, "track-02": 2, "track-03": 2}
SEED = 1


def main() -> None:
    """Write every replay."""
    RECORDED.mkdir(exist_ok=True)
    for track_id, num_laps in NUM_LAPS.items():
        for name in RECORDED_DRIVERS:
            replay = record_drive(make_driver(name), track_id, num_laps, SEED, is_quantised=True)
            laps = simulate(replay, track_id)
            if len(laps) < num_laps or not all(lap.is_clean for lap in laps):
                sys.exit(f"{track_id}: the {name} driver did not drive {num_laps} clean laps: {laps}")
            path = Path(RECORDED, f"{track_id}.{name}.replay")
            path.write_bytes(replay.to_bytes())
            times = ", ".join(f"{lap.time_s:.3f}" for lap in laps)
            print(f"{path.name}: {path.stat().st_size:,} bytes, {times} s", flush=True)


if __name__ == "__main__":
    main()
