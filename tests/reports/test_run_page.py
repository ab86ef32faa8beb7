"""The page on runs: what it says of one, of several, and of those that are not finished."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.evaluation.lap_comparison import compare
from hotlap.reports.html import Picture
from hotlap.reports.model_laps import Drive
from hotlap.reports.run_page import Plates, render_run, render_runs
from hotlap.reports.run_record import group_runs
from hotlap.tracks.registry import load_track
from reports.markup import assert_whole, text_of
from reports.written_runs import lander, record

LINES = [Picture(f"{name}.png", name, "", b"", is_half=True) for name in ("left", "right")]
PLATES = Plates(LINES, [Picture("c.png", "curve", "", b"")], [Picture("d.png", "losses", "", b"")])


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def comparison(track):
    raceline = centreline_raceline(track)
    return compare(follow(raceline, track, 0.9), track, raceline, float(clock(raceline, track)[1][-1]))


def test_a_racers_page_shows_run_and_lap(track, comparison):
    run = record(num_episodes=70)
    page = render_run(Drive(run, None, comparison, "ppo_seed1_best"), track, PLATES)
    assert_whole(page, 4)
    text = text_of(page)
    assert "PPO on Lantern Bay" in text
    assert "run1, seed 1: 4,000 steps in 101 s and 70 episodes." in text
    assert "Driven by ppo_seed1_best." in text
    assert f"{comparison.lap.time_s:.2f} s" in text
    assert "gap to optimum 1 4,000 101 s 100 % 90 % 32.00 s +10.0 %" in text
    assert "Time lost, corner by corner" in text
    assert "not finished" not in text
    assert 'class="note"' not in page


def test_the_lines_come_before_the_curves_and_the_losses_after(track, comparison):
    page = render_run(Drive(record(), None, comparison), track, PLATES)
    assert re.findall(r"<h2>(left|right|curve|losses)</h2>", page) == ["left", "right", "curve", "losses"]


def test_a_run_in_progress_says_how_far_it_is(track):
    run = record(is_finished=False, final=None, step=2000, last_seen="2026-01-02T03:04:05Z")
    text = text_of(render_run(Drive(run, trouble="no lap to show. No model yet."), track, Plates()))
    assert "run1 is not finished: step 2,000 of 4,000, last seen 2026-01-02T03:04:05Z." in text
    assert "run1: no lap to show. No model yet." in text
    assert "1, so far" in text


def test_a_landers_page_shows_returns():
    page = render_run(Drive(lander()), None, Plates(training=PLATES.training))
    assert_whole(page, 1)
    text = text_of(page)
    assert "PPO on LunarLander-v3" in text
    assert "time to 200 300 s return 231.0 std 20.0 episode length 300" in text
    assert "corner" not in text


def test_a_run_of_which_nothing_is_known_yet_still_has_a_page():
    run = lander(is_finished=False, final=None, curves={}, step=0, training_s=None)
    page = render_run(Drive(run), None, Plates())
    assert_whole(page, 0)
    assert "steps 0" in text_of(page)


def test_settings_are_all_there():
    text = text_of(render_run(Drive(lander()), None, Plates()))
    assert "ppo.gamma 0.99" in text


def test_several_runs_side_by_side(track, comparison):
    runs = [record(seed) for seed in (1, 2, 3)]
    slow = replace(comparison, lap=replace(comparison.lap, time_s=99.0))
    drives = [Drive(runs[0], None, slow), Drive(runs[1], trouble="stuck."), Drive(runs[2], None, comparison)]
    page = render_runs(group_runs(runs), drives, track, PLATES)
    assert_whole(page, 4)
    text = text_of(page)
    assert "PPO on Lantern Bay, 3 runs" in text
    assert "differ in their seed alone" in text
    assert "median lap, median of 3 33.00 s median lap, worst of 3 34.00 s" in text
    assert "run2: stuck." in text
    assert "The lines below are those of run3, the fastest." in text
    assert text.count("its 95 % interval") == 1
    # Each run that has a lap is a column, and its losses add up to the whole lap's.
    assert "corner run1 run3 T1" in text
    total = f"+{float(comparison.delta_s[-1]):.2f} s"
    assert f"whole lap {total} {total}" in text


def test_several_settings_have_a_table_each():
    other = lander(2, settings={"ppo.gamma": 0.5}, folder=Path("other"))
    groups = group_runs([lander(1), other])
    page = render_runs(groups, [Drive(run) for group in groups for run in group.runs], None, Plates())
    assert_whole(page, 0)
    assert re.findall(r"<h3>([^<]+)</h3>", page) == ["PPO, gamma 0.99", "PPO, gamma 0.5"]
    assert "2 settings: PPO, gamma 0.99 (1); PPO, gamma 0.5 (1)." in text_of(page)


def test_text_is_escaped(track, comparison):
    nasty = "<script>&"
    runs = [replace(record(seed), name=nasty, algorithm=nasty, settings={nasty: nasty}) for seed in (1, 2)]
    drives = [Drive(run, None, comparison, nasty, nasty) for run in runs]
    for page in (
        render_run(drives[0], replace(track, name=nasty), Plates()),
        render_runs(group_runs(runs), drives, replace(track, name=nasty), Plates()),
    ):
        assert "<script" not in page.lower()
        assert_whole(page, 0)
