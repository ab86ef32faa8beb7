"""The reference lap: taken where it is known, solved once where it is not, and missed aloud."""

import builtins
import sys

import numpy as np
import pytest

from hotlap.errors import OptimalError
from hotlap.evaluation.reference import get_reference
from hotlap.optimal import solving
from hotlap.optimal.store import find_reference
from hotlap.tracks.centreline import Centreline
from hotlap.tracks.registry import load_track, save_track


@pytest.fixture
def told():
    """What the user was told."""
    return []


@pytest.fixture
def unsolved(tmp_path, monkeypatch):
    """A track of the user's that nobody has solved."""
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    angle = np.arange(120) * 2.0 * np.pi / 120
    width = np.full(120, 5.0)
    save_track("ring", Centreline(60.0 * np.cos(angle), 60.0 * np.sin(angle), width, width.copy()), "a ring")
    return load_track("ring")


def never(track):
    raise AssertionError(f"{track.track_id} was solved")


def test_a_known_lap_is_not_solved_again(monkeypatch, told):
    monkeypatch.setattr(solving, "solve_reference", never)
    found = get_reference(load_track("track-01"), told.append)
    assert 25.0 < found.lap_time_s < 32.0
    assert told == []


def test_an_unknown_lap_is_solved_once_and_kept(monkeypatch, unsolved, told):
    known = find_reference(load_track("track-01"))
    solved = []
    monkeypatch.setattr(solving, "solve_reference", lambda track: solved.append(track) or known)
    assert get_reference(unsolved, told.append) is known
    assert solved == [unsolved]
    [said] = told
    assert said.startswith("solving the optimal lap of ring, once")
    monkeypatch.setattr(solving, "solve_reference", never)
    assert get_reference(unsolved, told.append).lap_time_s == pytest.approx(known.lap_time_s)
    assert len(told) == 1


def test_a_lap_that_cannot_be_solved_is_missed_aloud(monkeypatch, unsolved, told):
    def give_up(track):
        raise OptimalError("the optimal lap did not converge.")

    monkeypatch.setattr(solving, "solve_reference", give_up)
    assert get_reference(unsolved, told.append) is None
    assert told[-1] == "no gap to the optimum: the optimal lap did not converge."
    assert find_reference(unsolved) is None


def test_without_the_solver_known_laps_still_serve_and_others_are_missed_aloud(monkeypatch, unsolved, told):
    for name in [name for name in sys.modules if name.startswith(("casadi", "hotlap.optimal."))]:
        if name != "hotlap.optimal.store":
            monkeypatch.delitem(sys.modules, name)
    genuine = builtins.__import__

    def without_casadi(name, *rest):
        if name.split(".")[0] == "casadi":
            raise ImportError("No module named 'casadi'")
        return genuine(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_casadi)
    assert get_reference(load_track("track-01"), told.append) is not None
    assert told == []
    assert get_reference(unsolved, told.append) is None
    assert told == ["no gap to the optimum: ring was never solved, and CasADi is missing (hotlap[optimal])."]
