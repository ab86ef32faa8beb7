"""Where the figures under racer/* come from: laps of training where episodes have time for them, else evaluations."""

import pytest

from hotlap.envs.settings import EpisodeRules
from hotlap.optimal.reference import find_reference
from hotlap.runs.recipe import recipe_names, resolve_config
from hotlap.runs.run_config import RacerOptions
from hotlap.tracks.registry import load_track
from hotlap.training import lap_source
from hotlap.training.lap_source import has_time_for_laps

TICKS = 60


def fits(limit_s, start="line", **options):
    episode = EpisodeRules(max_ticks=round(TICKS * limit_s), start=start)
    return has_time_for_laps(RacerOptions(episode=episode, **options))


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("racer-ppo", [False, False, False]),  # 12 s
        ("racer-ppo-cuda", [False, False, False]),
        # 50 s: enough for the short track, and for no lap of the long ones.
        ("racer-ppo-champion", [True, False, False]),
        ("racer-sac", [True, False, False]),
        ("racer-a2c", [True, False, False]),
    ],
)
def test_the_source_of_each_shipped_recipe_on_each_track(recipe, expected):
    tracks = ("track-01", "track-02", "track-03")
    assert [has_time_for_laps(resolve_config(recipe, {"racer.track": name}).racer) for name in tracks] == expected


def test_the_generalists_tracks_are_too_long_for_most_of_its_episodes():
    assert not has_time_for_laps(resolve_config("racer-ppo-generalist", {}).racer)


def test_every_shipped_recipe_that_may_need_evaluations_makes_them_often():
    for name in (name for name in recipe_names() if name.startswith("racer-")):
        config = resolve_config(name, {})
        assert 0 < config.evaluation.curve_interval <= config.steps / 50, name


@pytest.mark.parametrize("track", ["track-01", "track-02"])
def test_a_start_from_the_line_needs_a_standing_lap_ten_per_cent_slower_than_the_optimum(track):
    needed_s = 1.1 * find_reference(load_track(track)).standing_lap_time_s
    assert fits(needed_s + 0.1, track=track)
    assert not fits(needed_s - 0.1, track=track)


def test_a_random_start_needs_half_a_lap_more():
    needed_s = 1.5 * 1.1 * find_reference(load_track("track-01")).lap_time_s
    assert fits(needed_s + 0.1, "random")
    assert not fits(needed_s - 0.1, "random")


def test_on_several_tracks_half_of_all_starts_count():
    """50 s leave time for a lap from each start on the line of the short track, and from none of the long ones."""
    assert fits(50.0, tracks=("track-01", "track-02"))
    assert not fits(50.0, tracks=("track-01", "track-02", "track-03"))


@pytest.mark.parametrize("track", ["track-01", "track-02", "track-03"])
def test_without_an_optimal_lap_the_centreline_gives_an_estimate(monkeypatch, track):
    reference = find_reference(load_track(track))
    monkeypatch.setattr(lap_source, "find_reference", lambda _: None)
    for start, lap_s in (("line", reference.standing_lap_time_s), ("random", 1.5 * reference.lap_time_s)):
        assert not fits(lap_s, start, track=track)  # time for the optimum only
        assert fits(1.3 * lap_s, start, track=track)
