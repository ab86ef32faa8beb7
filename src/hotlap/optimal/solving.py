"""Solve everything there is to know of a track's optimum: both laps and the line."""

from hotlap.optimal.lap import solve_flying, solve_standing
from hotlap.optimal.raceline import raceline_of
from hotlap.optimal.store import Reference
from hotlap.tracks.registry import Track


def solve_reference(track: Track) -> Reference:
    """The flying and the standing optimum of `track`; an OptimalError if one of them cannot be found."""
    flying = solve_flying(track.nodes)
    standing = solve_standing(track.nodes)
    return Reference(raceline_of(flying, track.nodes), flying.time_s, standing.time_s, flying.mesh_change)
