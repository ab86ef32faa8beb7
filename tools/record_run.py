"""Turn a finished run with all its checkpoints into the recorded run of the page: `src/hotlap/web/recorded/`.

usage: hotlap train --recipe racer-ppo --checkpoint-interval 200000 --keep 0 --run-name recorded
       python tools/record_run.py results/experiments/recorded

Run it after a change of the physics.
"""

import json
import sys
from pathlib import Path
from typing import Any

from hotlap.evaluation.baseline import measure_casual_lap
from hotlap.models.model_file import read_model
from hotlap.optimal.reference import find_reference
from hotlap.runs.run_config import load_config
from hotlap.runs.run_folder import CONFIG_NAME, RunFolder
from hotlap.tracks.registry import load_track
from hotlap.training.checkpoint import CheckpointManager
from hotlap.web.page_data import RECORDED, RUN_FILE
from hotlap.web.policy_file import policy_bytes
from hotlap.web.runs import read_curves, view_run

# Early checkpoints differ most, so they are closer together.
MILLIONS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 2.0, 2.4, 3.0, 3.6, 4.4, 5.4, 6.6, 8.0, 10.0, 12.0, 14.0, 16.0)
MAX_CURVE_POINTS = 160


def thin(curve: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A curve with fewer points, each rounded to what a chart can show."""
    every = -(-len(curve["step"]) // MAX_CURVE_POINTS)
    return {"step": curve["step"][::every], "value": [round(value, 4) for value in curve["value"][::every]]}


def main(folder: Path) -> None:
    """Write the run and the policies of its checkpoints."""
    view = view_run(folder.name, folder)
    if view is None or view.state != "finished":
        sys.exit(f"{folder}: is not a finished run of the racer.")
    RECORDED.mkdir(exist_ok=True)
    for old in [*RECORDED.glob("recorded-*.policy"), RECORDED / RUN_FILE]:
        old.unlink(missing_ok=True)
    checkpoints = CheckpointManager(folder)
    steps = sorted({min(checkpoints.steps(), key=lambda step: abs(step - 1e6 * wanted)) for wanted in MILLIONS})
    plain = view.as_plain()
    plain["checkpoints"] = []
    for step in steps:
        name = f"recorded-{step}.policy"
        (RECORDED / name).write_bytes(policy_bytes(read_model(checkpoints.path_of(step))))
        plain["checkpoints"].append({"step": step, "policy": f"data/{name}"})
    best = read_model(RunFolder(folder, load_config(folder / CONFIG_NAME).experiment_id).best)
    (RECORDED / "recorded-best.policy").write_bytes(policy_bytes(best))
    reference = find_reference(load_track(view.track))
    plain |= {
        "id": "recorded",
        "best": {"policy": "data/recorded-best.policy", "step": best.card.step},
        "casual_lap_time_sec": measure_casual_lap(view.track),
        "optimal_lap_time_sec": reference.lap_time_s if reference else None,
        "curves": {name: thin(curve) for name, curve in read_curves(folder).items()},
    }
    (RECORDED / RUN_FILE).write_text(json.dumps(plain) + "\n", encoding="utf-8")
    num_bytes = sum(path.stat().st_size for path in RECORDED.iterdir())
    print(f"{RECORDED}: {len(steps)} checkpoints, {num_bytes:,} bytes in all")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit((__doc__ or "").strip())
    main(Path(sys.argv[1]))
