"""Measured figures of README and docs come from files in benchmarks/results, which scripts wrote."""

import json
import re
from pathlib import Path

import pytest

import driver_laps
import figures
from sim.free_drives import ON_ROAD, ON_RUNOFF, best_lateral_g, peak_braking_g
from sim.kernels import CAR

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [page for page in figures.pages() if page.name != "recipes.md"]  # that one is generated from the recipes
SETTINGS_BLOCK = re.compile(r"<!-- settings: .*?<!-- end of settings -->\n", re.DOTALL)

NUMBER = r"[+−-]?\d[\d,.]*"
RATE = r"(?:\w+ )?(?:steps?|decisions?|ticks?|frames?|laps?|samples?|cars?)(?:/s| per second| a second)"
FIGURE = re.compile(
    rf"(?<![\w./]){NUMBER}(?: to {NUMBER})? ?"
    rf"(?:%|×|million\b|k?m?s\b|minutes?\b|hours?\b|[KMG]i?B\b|g\b|km/h|m/s|mm\b|times (?:as|faster|slower)|{RATE})"
)

# Figures that nobody measured: settings, limits, definitions.
SETTINGS = {
    "benchmark.md": ["2 MB", "8 s", "512 MiB"],
    "bridge.md": ["1 MiB", "20 s"],
    "casual-driver.md": ["8.8 s", "0.25 s", "70 %", "0.4 s", "60 %", "0.3 s", "0.8 s"],
    "environment.md": ["20 m/s", "80 m/s", "4 s", "8 s", "90 %"],
    "gpu.md": ["10 million"],
    "learning.md": ["15 decisions per second", "30 decisions per second", "4 s", "8 s"],
    "models.md": ["256 MiB", "1 GiB", "4 GiB", "32 MiB"],
    "optimal.md": ["8 m/s", "0.2 s", "0.13 s", "0.05 %", "90 %", "85 %"],
    "physics.md": ["54 %", "71 %", "80 ms", "50 to 80 ms", "45 %", "3 m/s"],
    "processes.md": ["5 ms", "30 s", "10 s", "5 s"],
    "racing.md": ["95 %", "60 %", "0.5 m/s", "8 m/s", "20 m/s", "35 %", "8 s", "10 s", "30 s", "2 s"],
    "report.md": ["95 %", "30 s"],
    "training.md": ["10 %", "4 s", "12 s", "50 s"],
    "web-api.md": ["10 s", "15 s", "20 MB"],
}
# Measured, but not in a file.
WITHOUT_FILE = {
    # The speed of the engine needs an idle machine and an NVIDIA H200; experiments/2026-11-15-gpu-engine.md records it.
    "README.md": ["0.8 million", "1,000 million"],
    # `test_the_cars_figures_are_those_of_the_physics` measures these anew.
    "physics.md": ["67 m/s", "20 m/s", "1.34 g", "0.77 g"],
}


@pytest.mark.parametrize("page", figures.pages(), ids=lambda page: page.name)
def test_the_figures_of_a_page_are_those_of_the_result_files(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- figures:") == text.count("<!-- end of figures -->") == len(figures.BLOCK.findall(text))
    assert figures.render(text) == text, "run: python benchmarks/figures.py"


def test_every_block_of_figures_is_on_a_page():
    found = [name for page in figures.pages() for _, name, _, _ in figures.BLOCK.findall(page.read_text("utf-8"))]
    assert sorted(found) == sorted(figures.BLOCKS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_figure_is_written_by_hand(page):
    """What a block or a code block shows is left out: tests of their own compare it."""
    text = SETTINGS_BLOCK.sub("", figures.BLOCK.sub("", page.read_text(encoding="utf-8")))
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = {figure.strip() for figure in FIGURE.findall(text)}
    known = {*SETTINGS.get(page.name, []), *WITHOUT_FILE.get(page.name, [])}
    assert found - known == set(), "a measured figure belongs into benchmarks/results, a setting into SETTINGS"
    assert known - found == set(), "no longer on the page"


@pytest.mark.parametrize("path", sorted(figures.RESULTS.glob("*")), ids=lambda path: path.name)
def test_a_result_file_names_its_script_commit_machine_and_physics(path):
    origin = json.loads(path.read_text(encoding="utf-8"))["origin"]
    script, *arguments = origin["command"].split()
    assert (ROOT / "benchmarks" / script).is_file()
    assert [argument for argument in arguments if argument.startswith("/")] == []  # places of one machine
    assert re.match(r"[0-9a-f]{12}", origin["commit"])
    assert "cores" in origin["machine"]
    assert origin["physics"]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("driver", "track_id"), [("casual", "track-01"), ("generalist", "test-010")])
def test_the_laps_of_the_result_file_are_driven_again(driver, track_id):
    [row] = [row for row in figures.read("drivers")["laps"] if (row["driver"], row["track"]) == (driver, track_id)]
    assert driver_laps.measure(driver, track_id, row["episodes"], row["start"]) == row


@pytest.mark.usefixtures("compiled")
def test_the_cars_figures_are_those_of_the_physics():
    rows = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", (DOCS / "physics.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert rows["top speed"] == f"{CAR.top_speed_mps:.0f} m/s"
    road_g, runoff_g = peak_braking_g(20.0, **ON_ROAD), peak_braking_g(20.0, **ON_RUNOFF)
    assert rows["braking from 20 m/s, road and runoff"] == f"{road_g:.2f} g and {runoff_g:.2f} g"
    assert rows["steady cornering at 20 m/s"] == f"{best_lateral_g(20.0, **ON_ROAD):.2f} g"
