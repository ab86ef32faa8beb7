"""A reference is both laps and the line of the flying one."""

from types import SimpleNamespace

from hotlap.optimal import solving


def test_a_reference_is_made_of_both_laps_the_second_found_from_the_first(monkeypatch):
    track = SimpleNamespace(nodes="nodes")
    flying, standing = SimpleNamespace(time_s=30.0, mesh_change=1e-4), SimpleNamespace(time_s=33.0, mesh_change=2e-4)
    asked = []
    monkeypatch.setattr(solving, "solve_flying", lambda nodes: asked.append(nodes) or flying)
    monkeypatch.setattr(solving, "solve_standing", lambda nodes, near: asked.append((nodes, near)) or standing)
    monkeypatch.setattr(solving, "raceline_of", lambda plan, nodes: (plan, nodes))
    found = solving.solve_reference(track)
    assert asked == ["nodes", ("nodes", flying)]
    assert (found.lap_time_s, found.standing_lap_time_s) == (30.0, 33.0)
    assert (found.mesh_change, found.standing_mesh_change) == (1e-4, 2e-4)
    assert found.raceline == (flying, "nodes")
