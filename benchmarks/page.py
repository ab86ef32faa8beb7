"""Measures the page in Chromium: python benchmarks/page.py [--seconds N] [--json].

Frame times with 12 cars at 1920x1080, with 12 that race and meet, and with 256 cars; time from opening to the first
moving car, frames from a key to the picture, and the weight of the page. Needs Chromium (Debian: apt-get install
chromium).
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from hotlap.web.site import static_files, write_site
from web.chromium import Chromium, Page, find_chromium

NUM_CARS = 12
FRAME_MS = 16.0

CARS = f"""
(async () => {{
  const {{ makeEntry }} = await import('./js/drivers.js');
  const {{ app }} = hotlap;
  const entries = [];
  for (let k = 0; k < {NUM_CARS}; k += 1) {{
    const driver = app.drivers[k % app.drivers.length];
    entries.push({{ ...await makeEntry(driver, app.track), id: `car-${{k}}` }});
  }}
  app.stage.setCars(entries);
}})()
"""

STANDING_S = 9.0  # after ten, a car that stands is out of the race
RIVALS = f"""
(async () => {{
  const {{ race }} = hotlap.app.views;
  await race.setFormat('rivals');
  Object.assign(race.rivals, {{ numRivals: {NUM_CARS - 1}, kind: 'mix', laps: 3, place: 'back' }});
  await race.prepare();
}})()
"""

KEY = """
new Promise((done) => {
  let frames = -1;
  const { app } = hotlap;
  const look = () => {
    frames += 1;
    if (app.stage.cars[0].pose.throttle > 0) done(frames);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(() => {
    window.dispatchEvent(new KeyboardEvent('keydown', { code: 'ArrowUp', bubbles: true }));
    requestAnimationFrame(look);
  });
})
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: str) -> Iterator[str]:
    """The folder on a free port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def frame_figures(page: Page, seconds: float) -> dict[str, float]:
    """Frames and ticks per second, and the main thread's time per frame (ms)."""
    page.evaluate(
        "void (hotlap.app.stage.frames = [], hotlap.app.stage.works = [], window.firstTick = hotlap.app.stage.tick)"
    )
    began = time.perf_counter()
    page.evaluate(f"new Promise((done) => setTimeout(done, {1000 * seconds}))")
    frames, works, ticks = page.evaluate(
        "[hotlap.app.stage.frames, hotlap.app.stage.works, hotlap.app.stage.tick - window.firstTick]"
    )
    elapsed = time.perf_counter() - began
    works.sort()
    frames.sort()
    return {
        "frames_per_sec": len(frames) / elapsed,
        "ticks_per_sec": ticks / elapsed,
        "work_p50_ms": works[len(works) // 2],
        "work_p95_ms": works[int(0.95 * (len(works) - 1))],
        "share_under_16_ms": sum(work < FRAME_MS for work in works) / len(works),
        "interval_p95_ms": frames[int(0.95 * (len(frames) - 1))],
    }


def measure(seconds: float) -> dict[str, Any]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        write_site(Path(folder))
        parts = [*static_files(), "data/tracks.json", *(f"data/track-0{k}.track" for k in (1, 2, 3))]
        figures: dict[str, Any] = {"page_bytes": sum((Path(folder) / part).stat().st_size for part in parts)}
        browser = Chromium()
        try:
            with served(folder) as url:
                browser.open(url).wait("hotlap.state().cars[0].speed > 0.1")  # warm
                began = time.perf_counter()
                page = browser.open(url, 1920, 1080)
                page.wait("hotlap.state().cars[0].speed > 0.1")
                figures["first_moving_car_sec"] = time.perf_counter() - began
                page.evaluate(CARS)
                figures["cars_12"] = frame_figures(page, seconds)
                page.evaluate("void hotlap.app.stage.camera.setMode('chase')")
                figures["cars_12_road_ahead_up"] = frame_figures(page, seconds)
                page.evaluate("void hotlap.app.stage.camera.setMode('track')")
                figures["cars_12_whole_track"] = frame_figures(page, seconds)
                page.go(f"{url}#learn")
                page.wait("hotlap.app.stage.swarm")
                figures["swarm_256"] = frame_figures(page, seconds)
                page.go(f"{url}#race")
                page.wait("document.querySelector('[data-action=start]')")
                page.evaluate(RIVALS)
                page.click("[data-action=start]")
                page.wait("hotlap.state().racing")
                figures["race_of_12"] = frame_figures(page, min(seconds, STANDING_S))
                page.evaluate("hotlap.app.views.race.setFormat('ghost')")
                page.click("[data-action=start]")
                page.wait("hotlap.state().racing")
                figures["key_to_picture_frames"] = page.evaluate(KEY)
        finally:
            browser.close()
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    options = parser.parse_args(arguments)
    if find_chromium() is None:
        print("page: there is no Chromium. On Debian: apt-get install chromium", file=sys.stderr)
        return 2
    figures = measure(options.seconds)
    for name, value in figures.items():
        if isinstance(value, dict):
            print(f"{name:<24}" + "  ".join(f"{key} {number:.3g}" for key, number in value.items()))
        else:
            print(f"{name:<24}{value:,.3g}" if isinstance(value, float) else f"{name:<24}{value:,}")
    if options.json:
        print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
