"""`hotlap dataset`: what it prints, and its errors."""

import sys


def test_a_dataset_is_recorded_and_verified(hotlap, here):
    answer = hotlap("dataset", "record", "champion", "--episodes", 1, "--json")
    assert answer.code == 0, answer.err
    figures = answer.figures
    assert (figures["dataset_id"], figures["episodes"], figures["laps"]) == ("hotlap/own-tracks/champion-v0", 1, 1)
    assert (here / figures["folder"] / "main_data.hdf5").is_file()
    found = hotlap("dataset", "verify", figures["folder"])
    assert found.out == f"1 episode, {figures['steps']:,} steps: every number is what the simulator gives\n"
    assert hotlap("dataset", "verify", figures["folder"], "--json").figures["steps"] == figures["steps"]
    again = hotlap("dataset", "record", "champion", "--episodes", 1, "--id", "two-v0")
    assert again.out.splitlines()[0] == f"1 episode, {figures['steps']:,} steps, 1 lap, 1 of them clean"


def test_errors_are_one_line(refused, here):
    assert "--episodes" in refused("dataset", "record", "champion", "--episodes", "x")
    assert "none comes with the package for 'train-001'" in refused(
        "dataset", "record", "champion", "--track", "train-001"
    )
    assert "is no dataset" in refused("dataset", "verify", here)
    (here / "file").write_text("")
    assert "cannot be written" in refused("dataset", "record", "champion", "--out", here / "file")


def test_without_h5py_it_says_what_to_install(refused, here, monkeypatch):
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
