"""Saved laps: a round trip, used only for their own road and physics, shipped for every track."""

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
    car_digest,
    find_or_solve_reference,
    find_reference,
    save_reference,
    solved_folder,
)
from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import list_tracks, load_track, save_track, split_ids
from tracks.shapes import circle


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Separate folders for tracks and solved laps."""
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    return tmp_path / "cache"


@pytest.fixture
def mine():
    save_track("mine", circle(60.0), "a ring")
    return load_track("mine")


@pytest.fixture
def solved() -> Reference:
    known = find_reference(load_track("track-01"))
    return replace(known, lap_time_s=12.345678, standing_lap_time_s=15.5, mesh_change=1e-4)


def test_a_saved_lap_is_found_unchanged(mine, solved, cache):
    assert find_reference(mine) is None
    path = save_reference(mine, solved)
    assert path.parent == solved_folder() == cache / "optimal"
    found = find_reference(mine)
    assert (found.lap_time_s, found.standing_lap_time_s, found.mesh_change) == (12.345678, 15.5, 1e-4)
    assert found.standing_mesh_change is None  # not recorded
    for column in fields(solved.raceline):
        if column.name != "comment":
            kept, given = getattr(found.raceline, column.name), getattr(solved.raceline, column.name)
            np.testing.assert_allclose(kept, given, atol=1e-5)
    path.write_text(comment_changed(path.read_text(), lambda about: about.update(lap_time_s=9.0)))
    assert find_reference(mine).lap_time_s == 9.0  # figures are read from the comment
    save_reference(mine, replace(solved, standing_mesh_change=2e-4))
    assert find_reference(mine).standing_mesh_change == 2e-4


def test_a_saved_lap_is_not_used_for_another_road_of_the_same_id(mine, solved):
    path = save_reference(mine, solved)
    save_track("mine", circle(61.0), "another ring")
    other = load_track("mine")
    assert find_reference(other) is None
    path.rename(path.with_name(f"mine-{track_digest(other.nodes)}.csv"))
    assert find_reference(other) is None  # not even under the right name


def test_a_lap_is_found_for_its_own_car_only(mine, solved):
    slippery, heavy = (CarParameters()._replace(**change) for change in ({"friction": 1.2}, {"mass_kg": 1300.0}))
    save_reference(mine, solved)
    path = save_reference(mine, replace(solved, lap_time_s=13.5), car=slippery)
    assert car_digest(slippery) in path.name
    assert find_reference(mine).lap_time_s == 12.345678
    assert find_reference(mine, slippery).lap_time_s == 13.5
    assert find_reference(mine, heavy) is None
    path.rename(path.with_name(path.name.replace(car_digest(slippery), car_digest(heavy))))
    assert find_reference(mine, heavy) is None  # not even under the right name
    shipped = load_track("track-01")
    assert find_reference(shipped)
    assert find_reference(shipped, slippery) is None


def test_the_lap_of_another_car_is_solved_for_it_and_saved(mine, solved, monkeypatch):
    heavy, asked, said = CarParameters()._replace(mass_kg=1300.0), [], []
    monkeypatch.setitem(sys.modules, "casadi", SimpleNamespace())
    monkeypatch.setattr(reference, "solve_reference", lambda track, car: asked.append(car) or solved)
    for _ in range(2):
        assert find_or_solve_reference(mine, said.append, heavy).lap_time_s == solved.lap_time_s
    assert asked == [heavy]
    assert [text.split(",")[0] for text in said] == ["solving the optimal lap of mine for this car"]


def test_a_saved_lap_is_not_used_for_another_physics_version(mine, solved, monkeypatch):
    save_reference(mine, solved)
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
        lambda text: "\0\x01\x02",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("{", "", 1),
        lambda text: text.replace(";", ",;x"),
        lambda text: comment_changed(text, lambda about: about.pop("lap_time_s")),
        lambda text: comment_changed(text, lambda about: about.update(lap_time_s="soon")),
        lambda text: comment_changed(text, lambda about: about.update(lap_time_s=None)),
        lambda text: comment_changed(text, lambda about: about.update(standing_mesh_change="fine")),
        lambda text: comment_changed(text, lambda about: about.pop("road")),
    ],
    ids=["empty", "binary", "cut", "no json", "no table", "no time", "a word", "null", "a wordy mesh", "no road"],
)
def test_a_damaged_file_is_ignored(mine, solved, damage):
    path = save_reference(mine, solved)
    path.write_text(damage(path.read_text()))
    assert find_reference(mine) is None
    save_reference(mine, solved)
    assert find_reference(mine)


def test_a_cache_that_cannot_be_created_is_an_error(mine, solved, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(OptimalError, match=r"cannot be created .* HOTLAP_CACHE"):
        save_reference(mine, solved)


def test_every_shipped_track_has_its_laps_and_none_depends_on_its_mesh():
    ids = [entry.track_id for entry in list_tracks()]
    assert set(ids) == {"track-01", "track-02", "track-03", *split_ids("train"), *split_ids("test")}
    assert len(ids) == 128
    found = {track_id: find_reference(load_track(track_id)) for track_id in ids}
    assert [track_id for track_id, one in found.items() if one is None] == []
    # A standing lap takes longer by the time it takes to accelerate.
    assert [name for name, one in found.items() if not 1.0 < one.standing_lap_time_s - one.lap_time_s < 10.0] == []
    assert [name for name, one in found.items() if not 0.0 <= one.mesh_change < 5e-4] == []


def test_a_reference_holds_both_laps_and_the_flying_one_warm_starts_the_standing_one(monkeypatch):
    track = SimpleNamespace(nodes="nodes")
    flying, standing = SimpleNamespace(time_s=30.0, mesh_change=1e-4), SimpleNamespace(time_s=33.0, mesh_change=2e-4)
    asked = []
    monkeypatch.setattr(lap, "solve_flying", lambda nodes, car: asked.append((nodes, car)) or flying)
    monkeypatch.setattr(
        lap, "solve_standing", lambda nodes, car, warm_start: asked.append((nodes, car, warm_start)) or standing
    )
    monkeypatch.setattr(raceline, "make_raceline", lambda plan, nodes: (plan, nodes))
    found = reference.solve_reference(track, "car")
    assert asked == [("nodes", "car"), ("nodes", "car", flying)]
    assert (found.lap_time_s, found.standing_lap_time_s) == (30.0, 33.0)
    assert (found.mesh_change, found.standing_mesh_change) == (1e-4, 2e-4)
    assert found.raceline == (flying, "nodes")


@pytest.fixture
def notices():
    """The texts passed to `notify`."""
    return []


def never(track, car):
    raise AssertionError(f"{track.track_id} was solved")


def test_a_known_lap_is_not_solved_again(monkeypatch, notices):
    monkeypatch.setattr(reference, "solve_reference", never)
    found = find_or_solve_reference(load_track("track-01"), notices.append)
    assert 25.0 < found.lap_time_s < 32.0
    assert notices == []


def test_an_unknown_lap_is_solved_once_and_saved(monkeypatch, mine, notices):
    known = find_reference(load_track("track-01"))
    solved = []
    monkeypatch.setattr(reference, "solve_reference", lambda track, car: solved.append(track) or known)
    assert find_or_solve_reference(mine, notices.append) is known
    assert solved == [mine]
    [notice] = notices
    assert notice.startswith("solving the optimal lap of mine, once")
    monkeypatch.setattr(reference, "solve_reference", never)
    assert find_or_solve_reference(mine, notices.append).lap_time_s == pytest.approx(known.lap_time_s)
    assert len(notices) == 1


def test_a_lap_that_cannot_be_solved_is_reported(monkeypatch, mine, notices):
    def give_up(track, car):
        raise OptimalError("the optimal lap did not converge.")

    monkeypatch.setattr(reference, "solve_reference", give_up)
    assert find_or_solve_reference(mine, notices.append) is None
    assert notices[-1] == "no gap to the optimum: the optimal lap did not converge."
    assert find_reference(mine) is None


def test_without_casadi_saved_laps_are_found_and_others_are_reported(monkeypatch, mine, notices):
    for name in [name for name in sys.modules if name.startswith(("casadi", "hotlap.optimal."))]:
        if name != "hotlap.optimal.reference":
            monkeypatch.delitem(sys.modules, name)
    genuine = builtins.__import__

    def without_casadi(name, *rest):
        if name.split(".")[0] == "casadi":
            raise ImportError("No module named 'casadi'")
        return genuine(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_casadi)
    assert find_or_solve_reference(load_track("track-01"), notices.append) is not None
    assert notices == []
    assert find_or_solve_reference(mine, notices.append) is None
    assert notices == ["no gap to the optimum: mine was never solved, and CasADi is not installed (hotlap[optimal])."]
    with pytest.raises(OptimalError, match=r"solving needs CasADi\. Install it: pip install 'hotlap\[optimal\]'"):
        reference.solve_laps(mine)
