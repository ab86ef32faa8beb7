"""`hotlap dataset`: what it prints, and its errors."""

import importlib
import sys
from dataclasses import replace

import pytest


@pytest.fixture
def replay(here, compiled):
    """The first seconds of a person's drive."""
    from hotlap.tracks.registry import load_track
    from hotlap.web.replays import find_recorded

    whole = find_recorded("casual", load_track("track-01"))
    (here / "ada.replay").write_bytes(replace(whole, actions=whole.actions[:200]).to_bytes())
    return "ada.replay"


def test_a_dataset_is_recorded_and_verified(hotlap, here, replay):
    answer = hotlap("dataset", "record", replay, "--json")
    assert answer.code == 0, answer.err
    figures = answer.figures
    assert (figures["dataset_id"], figures["episodes"], figures["steps"]) == ("hotlap/own-tracks/ada-v0", 1, 200)
    assert (here / figures["folder"] / "main_data.hdf5").is_file()
    found = hotlap("dataset", "verify", figures["folder"])
    assert found.out == "1 episode, 200 steps: every number is what the simulator gives\n"
    assert hotlap("dataset", "verify", figures["folder"], "--json").figures["steps"] == 200
    again = hotlap("dataset", "record", replay, "--id", "two-v0")
    assert again.out.splitlines()[0] == "1 episode, 200 steps, 0 laps, 0 of them clean"


def test_errors_are_one_line(refused, here):
    assert "--episodes" in refused("dataset", "record", "champion", "--episodes", "x")
    assert "none comes with the package for 'train-001'" in refused(
        "dataset", "record", "champion", "--track", "train-001"
    )
    assert "is no dataset" in refused("dataset", "verify", here)
    (here / "file").write_text("")
    assert "cannot be written" in refused("dataset", "record", "champion", "--out", here / "file")


def test_without_h5py_it_says_what_to_install(refused, here, monkeypatch):
    monkeypatch.setattr("hotlap.datasets", importlib.import_module("hotlap.datasets"))  # a second import replaces it
    for name in [name for name in sys.modules if name.startswith(("h5py", "hotlap.datasets"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert refused("dataset", "record", "casual").endswith('Install it: pip install "hotlap[data]".')


def test_people_on_the_leaderboard_are_recorded(hotlap, here, home, compiled):
    import h5py

    from hotlap.tracks.registry import load_track
    from hotlap.web.leaderboard import Leaderboard, leaderboard_path
    from hotlap.web.replays import find_recorded, verify

    replay = find_recorded("casual", load_track("track-01"))
    board = Leaderboard(leaderboard_path())
    lap = verify(replay, "track-01")
    board.add("track-01", replay, lap, driver="Ada", kind="human")
    board.close()
    answer = hotlap("dataset", "record", "leaderboard", "--json")
    assert answer.code == 0, answer.err
    with h5py.File(here / answer.figures["folder"] / "main_data.hdf5") as file:
        assert list(file) == ["episode_0"]
        assert file["episode_0"].attrs["driver"] == "Ada"
        assert len(file["episode_0/actions"]) == replay.num_ticks
