"""Solve everything there is to know of a track's optimum: both laps and the line."""

from hotlap.optimal.lap import solve_flying, solve_standing
from hotlap.optimal.plan import Plan
from hotlap.optimal.raceline import raceline_of
from hotlap.optimal.store import Reference
from hotlap.tracks.registry import Track


def solve_laps(track: Track) -> tuple[Plan, Plan]:
    """The flying and the standing optimum of `track`; an OptimalError if one of them cannot be found."""
    flying = solve_flying(track.nodes)
    return flying, solve_standing(track.nodes, near=flying)


def reference_of(track: Track, flying: Plan, standing: Plan) -> Reference:
    """What of the solved laps is kept."""
    line = raceline_of(flying, track.nodes)
    return Reference(line, flying.time_s, standing.time_s, flying.mesh_change, standing.mesh_change)


def solve_reference(track: Track) -> Reference:
    """The optimum of `track`, solved now; an OptimalError if it cannot be found."""
    return reference_of(track, *solve_laps(track))
