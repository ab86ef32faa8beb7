"""Measures training in a browser's tab: python benchmarks/tab_training.py [--seconds N] [--seeds N ...] [--track ID].

Decisions per second of the compiled PPO, natively on one thread and two and in Chromium with one worker and two, by
turns; then a whole training in Chromium for each seed: seconds to the first lap, until within 8 % of the optimal lap,
and the best lap. Needs Chromium (Debian: apt-get install chromium).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from hotlap.learning.compiled.learner import CompiledPPO
from hotlap.tracks.registry import load_track
from hotlap.web.site import write_site
from page import served
from web.chromium import Chromium, Page, find_chromium

TAB = "hotlap.app.views.learn.tab"
NUM_ROLLOUTS = 8
ROUNDS = 2
CLOSE = 0.08
POLL_S = 1.0


def native_rate(track: str, threads: int) -> float:
    """Decisions per second of the native learner, after its first rollouts."""
    learner = CompiledPPO(load_track(track).ribbon, seed=1, threads=threads)
    for _ in range(2):
        learner.learn()
    before, began = learner.num_decisions, time.perf_counter()
    for _ in range(NUM_ROLLOUTS):
        learner.learn()
    return (learner.num_decisions - before) / (time.perf_counter() - began)


def page_rate(page: Page, workers: int) -> float:
    """Decisions per second in the browser, with the laps that it drives after every update."""
    limits = f"{{ numWorkers: {workers}, maxRollouts: {NUM_ROLLOUTS + 2} }}"
    page.evaluate(f"{TAB}.start(hotlap.app.track, 1, {limits})")
    page.wait(f"{TAB}.run.rollouts >= 2", 120)
    before = page.evaluate(f"[{TAB}.run.step, {TAB}.run.seconds]")
    page.wait(f"{TAB}.run.state === 'finished'", 300)
    after = page.evaluate(f"[{TAB}.run.step, {TAB}.run.seconds]")
    return (after[0] - before[0]) / (after[1] - before[1])


def train(page: Page, seed: int, seconds: float) -> dict[str, Any]:
    """A training of some seconds, with two workers."""
    page.evaluate(f"hotlap.app.views.learn.learnHere({seed})")
    began = time.monotonic()
    while page.evaluate(f"{TAB}.run.seconds") < seconds and time.monotonic() - began < 2 * seconds + 60:
        time.sleep(POLL_S)
    page.evaluate(f"{TAB}.pause()")
    run = page.evaluate(
        f"(({{ curves, step, seconds, firstLap }}) => ({{ curves, step, seconds, firstLap }}))({TAB}.run)"
    )
    gaps, best = run["curves"]["gap_to_optimal"], run["curves"]["best_lap_time_sec"]
    close = next((step for step, gap in zip(gaps["step"], gaps["value"], strict=True) if gap <= CLOSE), None)
    return {
        "seed": seed,
        "decisions": run["step"],
        "seconds": run["seconds"],
        "first_lap_sec": run["firstLap"],
        "decisions_to_8_percent": close,
        # The rate hardly changes within a run.
        "sec_to_8_percent": close and run["seconds"] * close / run["step"],
        "best_lap_sec": best["value"][-1] if best["value"] else None,
        "gap_to_optimal": gaps["value"][-1] if gaps["value"] else None,
    }


def measure(track: str, seeds: Sequence[int], seconds: float) -> dict[str, Any]:
    """All figures."""
    figures: dict[str, Any] = {"load": os.getloadavg()[0], "rates": {}, "runs": []}
    browser = Chromium()
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_site(Path(folder))
            with served(folder) as url:
                page = browser.open(f"{url}?track={track}#learn")
                page.wait("hotlap.app.stage.swarm", 60)
                for _ in range(ROUNDS):
                    for count in (1, 2):
                        rates = figures["rates"]
                        rates.setdefault(f"native_{count}", []).append(native_rate(track, count))
                        rates.setdefault(f"chromium_{count}", []).append(page_rate(page, count))
                for seed in seeds:
                    figures["runs"].append(train(page, seed, seconds))
                    print(json.dumps(figures["runs"][-1]), flush=True)
    finally:
        browser.close()
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--track", default="track-01", help="id of a built-in track")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=600.0, help="length of each training")
    options = parser.parse_args(arguments)
    if find_chromium() is None:
        print("tab_training: there is no Chromium. On Debian: apt-get install chromium", file=sys.stderr)
        return 2
    figures = measure(options.track, options.seeds, options.seconds)
    for name, rates in figures["rates"].items():
        print(f"{name:<12}" + "  ".join(f"{rate:8,.0f}" for rate in rates) + " decisions/s")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
