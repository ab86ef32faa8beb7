"""`hotlap optimal`: figures of the contract, a picture, and refusals in one line."""

import re
from dataclasses import replace
from unittest.mock import Mock

import pytest

from hotlap.drivers import driver as drivers
from hotlap.drivers import optimal_follower as optimal
from hotlap.errors import OptimalError
from hotlap.optimal import reference
from hotlap.optimal.reference import find_reference
from hotlap.tracks.registry import load_track
from hotlap.web import replays

FIGURES = {"lap_time_sec", "replay_lap_time_sec", "standing_lap_time_sec", "status", "solve_sec"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A separate cache, so that nothing solved here outlives the test."""
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def known():
    return find_reference(load_track("track-01"))


@pytest.fixture
def solver(monkeypatch, known):
    """A stand-in that answers at once; the ids of the tracks it was called with."""
    asked = []
    slower = replace(known, lap_time_s=known.lap_time_s + 1.0, standing_mesh_change=3e-5)
    monkeypatch.setattr(reference, "solve_laps", lambda track: asked.append(track.track_id) or ("flying", "standing"))
    monkeypatch.setattr(reference, "make_reference", lambda track, flying, standing: slower)
    return asked


def test_the_known_lap_of_a_built_in_track_is_driven_by_recorded_inputs(hotlap, monkeypatch, solver, known):
    """Nothing is solved: neither the lap nor the driver's own plan."""
    monkeypatch.setattr(drivers, "make_driver", Mock(side_effect=AssertionError("solves a plan")))
    answer = hotlap("optimal", "track-01", "--json")
    assert (answer.code, answer.err, answer.figures["status"], solver) == (0, "", "known", [])
    assert answer.figures["replay_lap_time_sec"] == pytest.approx(known.lap_time_s, rel=0.005)
    assert answer.figures["replay_sec"] > 0.0
    first, _, driven, how = hotlap("optimal", "track-01").out.splitlines()
    assert first == f"track-01: Lantern Bay, optimal lap {known.lap_time_s:.3f} s (known, not solved again)"
    assert driven == "  driven in the simulator: 28.40 s, gap 0.30 %"
    assert re.fullmatch(r"    \(the optimal driver's recorded inputs, driven again in [\d.]+ s\)", how)


def test_a_known_lap_without_recorded_inputs_is_driven_by_a_plan_solved_now(
    hotlap, monkeypatch, solver, followed, known
):
    monkeypatch.setattr(replays, "recorded_drive", lambda driver, track_id: None)
    monkeypatch.setattr(drivers, "make_driver", lambda *_: optimal.OptimalDriver(*followed))
    assert "(the optimal driver's own plan, solved and driven in " in hotlap("optimal", "track-01").out
    answer = hotlap("optimal", "track-01", "--json")
    assert "solving the driver's own plan" in answer.err
    figures = answer.figures
    assert set(figures) >= FIGURES
    assert (answer.code, len(answer.out.splitlines())) == (0, 1)
    assert (figures["status"], figures["lap_time_sec"]) == ("known", known.lap_time_s)
    assert figures["standing_lap_time_sec"] == known.standing_lap_time_s
    assert figures["replay_lap_time_sec"] == pytest.approx(known.lap_time_s, rel=0.015)
    assert figures["solve_sec"] >= 0.0
    assert figures["standing_mesh_change"] is None
    assert solver == []


def test_fresh_solves_again_and_warm_starts_the_driver(hotlap, monkeypatch, solver, followed, known):
    handed = []
    monkeypatch.setattr(optimal, "solve_followed", lambda nodes, warm_start: handed.append(warm_start) or followed)
    answer = hotlap("optimal", "track-01", "--fresh", "--json")
    assert (answer.code, answer.figures["status"], solver) == (0, "solved", ["track-01"])
    assert answer.figures["lap_time_sec"] == known.lap_time_s + 1.0
    assert answer.figures["standing_mesh_change"] == 3e-5
    assert "solving track-01" in answer.err
    assert handed == [("flying", "standing")]
    assert answer.figures["replay_lap_time_sec"] == pytest.approx(known.lap_time_s, rel=0.015)


def test_without_replay_the_text_shows_both_laps_and_the_picture_is_drawn(hotlap, known, tmp_path):
    answer = hotlap("optimal", "track-01", "--no-replay")
    assert answer.code == 0
    assert f"optimal lap {known.lap_time_s:.3f} s (known" in answer.out
    assert f"from rest {known.standing_lap_time_s:.2f} s" in answer.out
    assert "driven" not in answer.out
    place = tmp_path / "new" / "lap.png"
    answer = hotlap("optimal", "track-01", "--no-replay", "--png", place, "--json")
    assert (answer.code, answer.figures["png"], answer.figures["replay_lap_time_sec"]) == (0, str(place), None)
    assert place.read_bytes().startswith(b"\x89PNG")


def test_bad_input_is_refused_in_one_line_before_anything_is_solved(refused, solver, tmp_path):
    assert "track 'nowhere' is not known" in refused("optimal", "nowhere", "--json")
    assert "TRACK" in refused("optimal")
    assert "is a folder" in refused("optimal", "track-01", "--fresh", "--png", tmp_path)
    assert solver == []


def test_a_failed_solve_is_one_error_line(hotlap, monkeypatch):
    monkeypatch.setattr(reference, "solve_laps", Mock(side_effect=OptimalError("the lap did not converge.")))
    answer = hotlap("optimal", "track-01", "--fresh", "--json")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines()[-1] == "hotlap: the lap did not converge."
    assert "Traceback" not in answer.err


def test_evaluate_measures_against_the_optimal_lap(hotlap):
    figures = hotlap("evaluate", "casual", "--track", "track-01", "--episodes", 5, "--json").figures
    assert figures["gap_to_optimal"] == pytest.approx(0.44, abs=0.05)
    text = hotlap("evaluate", "casual", "--track", "track-01", "--episodes", 1)
    assert "optimal lap    28." in text.out
    assert "gap 4" in text.out
