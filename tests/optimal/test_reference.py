"""Kept laps: they come back as they were stored, fit only their own road and physics, and ship for every track."""

import builtins
import json
import sys
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from hotlap.errors import OptimalError
from hotlap.optimal import lap, raceline, reference
from hotlap.optimal.reference import (
    Reference,
    find_reference,
    get_reference,
    keep_reference,
    solved_folder,
    track_digest,
)
from hotlap.tracks.centreline import Centreline
from hotlap.tracks.registry import list_tracks, load_track, save_track, split_ids


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Homes of their own for tracks and solved laps."""
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    return tmp_path / "cache"


def ring(radius_m: float = 60.0) -> Centreline:
    angle = np.arange(120) * 2.0 * np.pi / 120
    width = np.full(120, 5.0)
    return Centreline(radius_m * np.cos(angle), radius_m * np.sin(angle), width, width.copy())


@pytest.fixture
def mine():
    save_track("mine", ring(), "a ring")
    return load_track("mine")


@pytest.fixture
def solved() -> Reference:
    known = find_reference(load_track("track-01"))
    return replace(known, lap_time_s=12.345678, standing_lap_time_s=15.5, mesh_change=1e-4)


def test_a_kept_lap_comes_back(mine, solved, cache):
    assert find_reference(mine) is None
    path = keep_reference(mine, solved)
    assert path.parent == solved_folder() == cache / "optimal"
    found = find_reference(mine)
    assert (found.lap_time_s, found.standing_lap_time_s, found.mesh_change) == (12.345678, 15.5, 1e-4)
    assert found.standing_mesh_change is None  # nobody said
    for column in fields(solved.raceline):
        if column.name != "comment":
            kept, given = getattr(found.raceline, column.name), getattr(solved.raceline, column.name)
            np.testing.assert_allclose(kept, given, atol=1e-5)


def test_the_standing_laps_mesh_is_kept_where_it_is_known(mine, solved):
    keep_reference(mine, replace(solved, standing_mesh_change=2e-4))
    assert find_reference(mine).standing_mesh_change == 2e-4


def test_another_road_of_the_same_name_is_not_measured_by_it(mine, solved):
    path = keep_reference(mine, solved)
    save_track("mine", ring(61.0), "another ring")
    other = load_track("mine")
    assert find_reference(other) is None
    path.rename(path.with_name(f"mine-{track_digest(other.nodes)}.csv"))
    assert find_reference(other) is None  # not even under the right name


def test_other_physics_are_not_measured_by_it(mine, solved, monkeypatch):
    keep_reference(mine, solved)
    assert find_reference(mine)
    monkeypatch.setattr(reference, "PHYSICS_VERSION", "another")
    assert find_reference(mine) is None
    assert find_reference(load_track("track-01")) is None


def comment_changed(text: str, change) -> str:
    """The file's text with its JSON line changed."""
    lines = text.splitlines()
    row = next(k for k, line in enumerate(lines) if "{" in line)
    start = lines[row].index("{")
    about = json.loads(lines[row][start:])
    change(about)
    lines[row] = lines[row][:start] + json.dumps(about)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("{", "", 1),
        lambda text: text.replace(";", ",;x"),
        lambda text: comment_changed(text, lambda about: about.pop("lap_time_s")),
        lambda text: comment_changed(text, lambda about: about.update(lap_time_s="soon")),
        lambda text: comment_changed(text, lambda about: about.update(lap_time_s=None)),
        lambda text: comment_changed(text, lambda about: about.update(standing_mesh_change="fine")),
        lambda text: comment_changed(text, lambda about: about.pop("road")),
    ],
    ids=["empty", "cut", "no json", "no table", "no time", "a word", "null", "a wordy mesh", "no road"],
)
def test_a_damaged_file_is_as_good_as_none(mine, solved, damage):
    path = keep_reference(mine, solved)
    path.write_text(damage(path.read_text()))
    assert find_reference(mine) is None
    keep_reference(mine, solved)
    assert find_reference(mine)


def test_bytes_that_are_no_text_are_as_good_as_none(mine, solved):
    path = keep_reference(mine, solved)
    path.write_bytes(bytes(range(256)))
    assert find_reference(mine) is None


def test_a_changed_comment_alone_does_no_harm(mine, solved):
    path = keep_reference(mine, solved)
    path.write_text(comment_changed(path.read_text(), lambda about: about.update(lap_time_s=9.0)))
    assert find_reference(mine).lap_time_s == 9.0


def test_a_cache_that_cannot_be_made_is_said(mine, solved, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(OptimalError, match=r"cannot be made .* HOTLAP_CACHE"):
        keep_reference(mine, solved)


def test_the_road_is_what_counts_not_the_walls():
    nodes = load_track("track-01").nodes
    assert track_digest(replace(nodes, wall_left_m=nodes.wall_left_m + 1.0)) == track_digest(nodes)
    for name in ("x_m", "curvature_radpm", "road_left_m", "road_right_m"):
        assert track_digest(replace(nodes, **{name: getattr(nodes, name) + 1e-9})) != track_digest(nodes)


@pytest.mark.timeout(60)  # builds all the tracks, if nobody has
def test_every_shipped_track_has_its_laps():
    ids = [entry.track_id for entry in list_tracks()]
    assert set(ids) == {"track-01", "track-02", "track-03", *split_ids("train"), *split_ids("test")}
    assert len(ids) == 128
    found = {track_id: find_reference(load_track(track_id)) for track_id in ids}
    assert [track_id for track_id, one in found.items() if one is None] == []
    # From rest it takes longer, but no longer than it takes to get going.
    assert [name for name, one in found.items() if not 1.0 < one.standing_lap_time_s - one.lap_time_s < 10.0] == []


def test_the_first_track_takes_about_half_a_minute():
    assert 25.0 < find_reference(load_track("track-01")).lap_time_s < 32.0


def test_a_reference_is_made_of_both_laps_the_second_found_from_the_first(monkeypatch):
    track = SimpleNamespace(nodes="nodes")
    flying, standing = SimpleNamespace(time_s=30.0, mesh_change=1e-4), SimpleNamespace(time_s=33.0, mesh_change=2e-4)
    asked = []
    monkeypatch.setattr(lap, "solve_flying", lambda nodes: asked.append(nodes) or flying)
    monkeypatch.setattr(lap, "solve_standing", lambda nodes, near: asked.append((nodes, near)) or standing)
    monkeypatch.setattr(raceline, "raceline_of", lambda plan, nodes: (plan, nodes))
    found = reference.solve_reference(track)
    assert asked == ["nodes", ("nodes", flying)]
    assert (found.lap_time_s, found.standing_lap_time_s) == (30.0, 33.0)
    assert (found.mesh_change, found.standing_mesh_change) == (1e-4, 2e-4)
    assert found.raceline == (flying, "nodes")


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
    monkeypatch.setattr(reference, "solve_reference", never)
    found = get_reference(load_track("track-01"), told.append)
    assert 25.0 < found.lap_time_s < 32.0
    assert told == []


def test_an_unknown_lap_is_solved_once_and_kept(monkeypatch, unsolved, told):
    known = find_reference(load_track("track-01"))
    solved = []
    monkeypatch.setattr(reference, "solve_reference", lambda track: solved.append(track) or known)
    assert get_reference(unsolved, told.append) is known
    assert solved == [unsolved]
    [said] = told
    assert said.startswith("solving the optimal lap of ring, once")
    monkeypatch.setattr(reference, "solve_reference", never)
    assert get_reference(unsolved, told.append).lap_time_s == pytest.approx(known.lap_time_s)
    assert len(told) == 1


def test_a_lap_that_cannot_be_solved_is_missed_aloud(monkeypatch, unsolved, told):
    def give_up(track):
        raise OptimalError("the optimal lap did not converge.")

    monkeypatch.setattr(reference, "solve_reference", give_up)
    assert get_reference(unsolved, told.append) is None
    assert told[-1] == "no gap to the optimum: the optimal lap did not converge."
    assert find_reference(unsolved) is None


def test_without_the_solver_known_laps_still_serve_and_others_are_missed_aloud(monkeypatch, unsolved, told):
    for name in [name for name in sys.modules if name.startswith(("casadi", "hotlap.optimal."))]:
        if name != "hotlap.optimal.reference":
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
