"""A reference is both laps and the line of the flying one."""

from types import SimpleNamespace

from hotlap.optimal import solving


def test_a_reference_is_made_of_both_laps(monkeypatch):
    track = SimpleNamespace(nodes="nodes")
    flying, standing = SimpleNamespace(time_s=30.0, mesh_change=1e-4), SimpleNamespace(time_s=33.0, mesh_change=None)
    asked = []
    monkeypatch.setattr(solving, "solve_flying", lambda nodes: asked.append(nodes) or flying)
    monkeypatch.setattr(solving, "solve_standing", lambda nodes: asked.append(nodes) or standing)
    monkeypatch.setattr(solving, "raceline_of", lambda plan, nodes: (plan, nodes))
    found = solving.solve_reference(track)
    assert asked == ["nodes", "nodes"]
    assert (found.lap_time_s, found.standing_lap_time_s, found.mesh_change) == (30.0, 33.0, 1e-4)
    assert found.raceline == (flying, "nodes")
