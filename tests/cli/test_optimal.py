"""`hotlap optimal`: figures of the contract, a picture, and refusals in one line."""

from dataclasses import replace

import pytest

from hotlap.drivers import driver as drivers
from hotlap.drivers import optimal_follower as optimal
from hotlap.errors import OptimalError
from hotlap.optimal import reference
from hotlap.optimal.reference import find_reference
from hotlap.tracks.registry import load_track

FIGURES = {"lap_time_sec", "replay_lap_time_sec", "standing_lap_time_sec", "status", "solve_sec"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, so that nothing solved here outlives the test."""
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def known():
    return find_reference(load_track("track-01"))


@pytest.fixture
def solver(monkeypatch, known):
    """A stand-in that answers at once; the tracks it was asked for."""
    asked = []
    slower = replace(known, lap_time_s=known.lap_time_s + 1.0, standing_mesh_change=3e-5)
    monkeypatch.setattr(reference, "solve_laps", lambda track: asked.append(track.track_id) or ("flying", "standing"))
    monkeypatch.setattr(reference, "reference_of", lambda track, flying, standing: slower)
    return asked


def test_a_known_lap_is_shown_and_driven(hotlap, monkeypatch, solver, followed, known):
    monkeypatch.setattr(drivers, "make_driver", lambda name: optimal.OptimalDriver(*followed))
    answer = hotlap("optimal", "track-01", "--json")
    assert answer.code == 0
    figures = answer.figures
    assert set(figures) >= FIGURES
    assert len(answer.out.splitlines()) == 1
    assert (figures["status"], figures["lap_time_sec"]) == ("known", known.lap_time_s)
    assert figures["standing_lap_time_sec"] == known.standing_lap_time_s
    assert figures["replay_lap_time_sec"] == pytest.approx(known.lap_time_s, rel=0.015)
    assert figures["solve_sec"] >= 0.0
    assert figures["standing_mesh_change"] is None
    assert solver == []


def test_fresh_solves_anew(hotlap, solver, known):
    answer = hotlap("optimal", "track-01", "--fresh", "--no-replay", "--json")
    assert answer.code == 0
    assert solver == ["track-01"]
    assert answer.figures["status"] == "solved"
    assert answer.figures["lap_time_sec"] == known.lap_time_s + 1.0
    assert answer.figures["replay_lap_time_sec"] is None
    assert answer.figures["standing_mesh_change"] == 3e-5
    assert "solving track-01" in answer.err


def test_what_was_solved_is_handed_to_the_driver(hotlap, monkeypatch, solver, followed, known):
    handed = []
    monkeypatch.setattr(optimal, "solve_followed", lambda nodes, near: handed.append(near) or followed)
    answer = hotlap("optimal", "track-01", "--fresh", "--json")
    assert answer.code == 0
    assert handed == [("flying", "standing")]
    assert answer.figures["replay_lap_time_sec"] == pytest.approx(known.lap_time_s, rel=0.015)


def test_for_people(hotlap, known):
    answer = hotlap("optimal", "track-01", "--no-replay")
    assert answer.code == 0
    assert f"optimal lap {known.lap_time_s:.3f} s (known" in answer.out
    assert f"from rest {known.standing_lap_time_s:.2f} s" in answer.out
    assert "driven" not in answer.out


def test_the_picture_is_drawn(hotlap, tmp_path):
    place = tmp_path / "new" / "lap.png"
    answer = hotlap("optimal", "track-01", "--no-replay", "--png", place, "--json")
    assert (answer.code, answer.figures["png"]) == (0, str(place))
    assert place.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "track 'nowhere' is not known"),
        (["track-1"], "Did you mean 'track-01'?"),
        ([], "TRACK"),
    ],
)
def test_bad_input_is_refused_in_one_line(refused, arguments, words):
    assert words in refused("optimal", *arguments, "--json")


def test_a_picture_over_a_folder_is_refused_before_anything_is_solved(refused, solver, tmp_path):
    assert "is a folder" in refused("optimal", "track-01", "--fresh", "--png", tmp_path)
    assert solver == []


def test_a_solver_that_fails_is_quoted_in_one_line(hotlap, monkeypatch):
    def give_up(track):
        raise OptimalError("the optimal lap did not converge on 150 intervals: Restoration_Failed.")

    monkeypatch.setattr(reference, "solve_laps", give_up)
    answer = hotlap("optimal", "track-01", "--fresh", "--json")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines()[-1] == (
        "hotlap: the optimal lap did not converge on 150 intervals: Restoration_Failed."
    )
    assert "Traceback" not in answer.err


def test_evaluate_measures_against_it(hotlap):
    answer = hotlap("evaluate", "casual", "--track", "track-01", "--episodes", 5, "--json")
    assert answer.code == 0
    assert answer.figures["gap_to_optimal"] == pytest.approx(0.44, abs=0.05)
    people = hotlap("evaluate", "casual", "--track", "track-01", "--episodes", 1)
    assert "optimal lap    28." in people.out
    assert "gap 4" in people.out
