"""The lap times of the drivers that ship are the same wherever they are shown."""

import json
import re
from functools import lru_cache
from pathlib import Path

import pytest

from hotlap.evaluation.baseline import measure_casual_lap
from hotlap.evaluation.evaluate import evaluate
from hotlap.models.shipped_models import SHIPPED_FOLDER
from hotlap.optimal.reference import find_reference
from hotlap.runs.find_driver import find_driver
from hotlap.tracks.registry import load_track
from hotlap.web.leaderboard import Leaderboard
from hotlap.web.page_data import recorded_run
from hotlap.web.replays import find_recorded, simulate
from hotlap.web.services import PageServices

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parent.parent
BUILT_IN = ("track-01", "track-02", "track-03")
QUANTISATION_S = 0.003  # a recorded lap has quantised inputs, and is the nearest of many to the median


def cells(path: Path, track_id: str, heads: str) -> dict[str, str]:
    """The row of a track in the table of a page that has these heads, by head."""
    tables = re.findall(r"((?:^\|.*\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    for table in tables:
        rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
        if heads in rows[0]:
            [row] = [row for row in rows if row[0].startswith((f"`{track_id}`", track_id))]
            return dict(zip(rows[0], row, strict=True))
    raise AssertionError(f"{path.name} has no table with the column {heads!r}")


@lru_cache(maxsize=len(BUILT_IN))
def casual_lap(track_id: str) -> float:
    """The definition: the median clean flying lap of `hotlap evaluate casual`."""
    return measure_casual_lap(track_id)


@pytest.fixture
def services(tmp_path):
    made = PageServices(Leaderboard(tmp_path / "board.sqlite3"))
    yield made
    made.close()


@pytest.mark.parametrize("track_id", BUILT_IN)
def test_the_casual_driver_has_one_lap_time(track_id, services):
    lap_s, track = casual_lap(track_id), load_track(track_id)
    # The board of the server, and that of the static page, which drives the first two laps of the recording.
    [standing, flying] = simulate(find_recorded("casual", track), track_id)
    entry, _ = services.enter_driver("casual", track_id)
    assert entry.lap_time_s == flying.time_s < standing.time_s
    assert flying.time_s == pytest.approx(lap_s, abs=QUANTISATION_S)
    shown = f"{lap_s:.2f} s"
    assert f"{flying.time_s:.2f} s" == shown
    assert cells(ROOT / "README.md", track_id, "casual driver")["casual driver"] == shown
    assert cells(ROOT / "docs" / "casual-driver.md", track_id, "flying lap, median")["flying lap, median"] == shown


def test_the_text_and_the_recorded_run_have_the_casual_lap_too():
    shown = f"{casual_lap('track-01'):.2f}"
    assert recorded_run()["casual_lap_time_sec"] == pytest.approx(casual_lap("track-01"), abs=1e-9)
    assert f"flying lap     median {shown} s" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_road_without_a_recording_gets_a_typical_casual_lap(services):
    entry, is_new = services.enter_driver("casual", "test-010")
    assert is_new
    assert entry.lap == 2
    assert entry.lap_time_s == pytest.approx(measure_casual_lap("test-010"), abs=0.02)


@pytest.mark.parametrize("track_id", BUILT_IN)
def test_a_model_has_on_the_board_the_lap_that_evaluate_drives_from_the_line(track_id, services):
    for name in ("champion", "generalist"):
        entry, _ = services.enter_driver(name, track_id)
        found = evaluate(find_driver(name, track_id), track_id, episodes=1)
        assert entry.lap_time_s == found.best_lap_time_sec


@pytest.mark.parametrize("track_id", BUILT_IN)
def test_the_pages_have_the_figures_of_the_champions_card_and_the_optimal_lap(track_id):
    figures = json.loads((SHIPPED_FOLDER / f"{track_id}.json").read_text(encoding="utf-8"))["figures"]
    optimal_s = find_reference(load_track(track_id)).lap_time_s
    row = cells(ROOT / "docs" / "learning.md", track_id, "champion of")
    assert row["median lap"] == f"{figures['median_lap_time_sec']:.2f} s"
    assert row["gap"] == f"+{100.0 * figures['gap_to_optimal']:.2f} %"
    assert row["optimal lap"] == f"{optimal_s:.2f} s"
    assert cells(ROOT / "README.md", track_id, "casual driver")["optimal lap"] == f"{optimal_s:.2f} s"


@pytest.mark.parametrize("track_id", BUILT_IN)
def test_the_optimal_drivers_documented_lap_is_the_recorded_one(track_id):
    track = load_track(track_id)
    documented = cells(ROOT / "docs" / "optimal.md", track_id, "driven, clean")
    assert documented["optimum, flying"] == f"{find_reference(track).lap_time_s:.3f} s"
    recorded_s = float(find_recorded("optimal", track).lap_time_s)
    assert recorded_s == pytest.approx(float(documented["driven, clean"].removesuffix(" s")), abs=QUANTISATION_S)
