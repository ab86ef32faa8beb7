"""The page on one run, several, and unfinished ones."""

import re
from dataclasses import replace
from pathlib import Path

from hotlap.reports.html import Picture
from hotlap.reports.model_laps import ModelLaps
from hotlap.reports.pages.run_page import RunPictures, render_run, render_runs
from hotlap.reports.run_record import group_runs
from reports.markup import assert_complete, text_of
from reports.written_runs import lander, record

LINES = [Picture(f"{name}.png", name, "", b"", is_half=True) for name in ("left", "right")]
PICTURES = RunPictures(LINES, [Picture("c.png", "curve", "", b"")], [Picture("d.png", "losses", "", b"")])


def test_page_on_a_racer_shows_training_and_lap(track, comparison):
    run = record(num_episodes=70)
    page = render_run(ModelLaps(run, None, comparison, "ppo_seed1_best"), track, PICTURES)
    assert_complete(page, 4)
    text = text_of(page)
    assert "PPO on Lantern Bay" in text
    assert "run1, seed 1: 4,000 steps in 101 s and 70 episodes." in text
    assert "Driven by ppo_seed1_best." in text
    assert f"{comparison.lap.time_s:.2f} s" in text
    assert "gap to optimum 1 4,000 101 s 100 % 90 % 32.00 s +10.0 %" in text
    assert "Time lost, corner by corner" in text
    assert "not finished" not in text
    assert 'class="note"' not in page
    assert re.findall(r"<h2>(left|right|curve|losses)</h2>", page) == ["left", "right", "curve", "losses"]


def test_unfinished_run_is_marked(track):
    run = record(is_finished=False, final=None, step=2000, last_seen="2026-01-02T03:04:05Z")
    text = text_of(render_run(ModelLaps(run, problem="no lap to show. No model yet."), track, RunPictures()))
    assert "run1 is not finished: step 2,000 of 4,000, last seen 2026-01-02T03:04:05Z." in text
    assert "run1: no lap to show. No model yet." in text
    assert "1, so far" in text
    run = lander(is_finished=False, final=None, curves={}, step=0, training_s=None)
    page = render_run(ModelLaps(run), None, RunPictures())  # without any data
    assert_complete(page, 0)
    assert "steps 0" in text_of(page)


def test_page_on_lunar_lander_shows_returns_and_settings():
    page = render_run(ModelLaps(lander()), None, RunPictures(training=PICTURES.training))
    assert_complete(page, 1)
    text = text_of(page)
    assert "PPO on LunarLander-v3" in text
    assert "time to 200 300 s return 231.0 std 20.0 episode length 300" in text
    assert "corner" not in text.split("Settings")[0]
    assert "ppo.gamma 0.99" in text


def test_page_compares_several_seeds(track, comparison):
    runs = [record(seed) for seed in (1, 2, 3)]
    slow = replace(comparison, lap=replace(comparison.lap, time_s=99.0))
    laps = [ModelLaps(runs[0], None, slow), ModelLaps(runs[1], problem="stuck."), ModelLaps(runs[2], None, comparison)]
    page = render_runs(group_runs(runs), laps, track, PICTURES)
    assert_complete(page, 4)
    text = text_of(page)
    assert "PPO on Lantern Bay, 3 runs" in text
    assert "The runs differ only in their seed." in text
    assert "median lap, median of 3 33.00 s median lap, worst of 3 34.00 s" in text
    assert "run2: stuck." in text
    assert "The racing line below is that of run3, the fastest run." in text
    assert text.count("its 95 % interval") == 1
    # Each run with a lap is a column, and its losses add up to that of the whole lap.
    assert "corner run1 run3 T1" in text
    total = f"+{float(comparison.delta_s[-1]):.2f} s"
    assert f"whole lap {total} {total}" in text


def test_each_group_has_its_own_table():
    other = lander(2, settings={"ppo.gamma": 0.5}, folder=Path("other"))
    groups = group_runs([lander(1), other])
    page = render_runs(groups, [ModelLaps(run) for group in groups for run in group.runs], None, RunPictures())
    assert_complete(page, 0)
    assert re.findall(r"<h3>([^<]+)</h3>", page) == ["PPO, gamma 0.99", "PPO, gamma 0.5"]
    assert "2 settings: PPO, gamma 0.99 (1); PPO, gamma 0.5 (1)." in text_of(page)


def test_text_is_escaped(track, comparison):
    nasty = "<script>&"
    runs = [replace(record(seed), name=nasty, algorithm=nasty, settings={nasty: nasty}) for seed in (1, 2)]
    laps = [ModelLaps(run, None, comparison, nasty, nasty) for run in runs]
    for page in (
        render_run(laps[0], replace(track, name=nasty), RunPictures()),
        render_runs(group_runs(runs), laps, replace(track, name=nasty), RunPictures()),
    ):
        assert "<script" not in page.lower()
        assert_complete(page, 0)
