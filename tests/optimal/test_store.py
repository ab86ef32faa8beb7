"""Kept laps: they come back as they were stored, fit only their own road and physics, and ship for every track."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from hotlap.errors import OptimalError
from hotlap.optimal import store
from hotlap.optimal.store import Reference, find_reference, keep_reference, solved_folder, track_digest
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
    monkeypatch.setattr(store, "PHYSICS_VERSION", "another")
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
