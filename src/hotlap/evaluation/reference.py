"""The optimal lap to measure drivers against: found where it was kept, or solved once and kept."""

from collections.abc import Callable

from hotlap.errors import OptimalError
from hotlap.optimal.store import Reference, find_reference, keep_reference
from hotlap.tracks.registry import Track


def get_reference(track: Track, tell: Callable[[str], None]) -> Reference | None:
    """The track's optimal lap, solved now if need be (that takes a minute and is said); None where it cannot be had."""
    found = find_reference(track)
    if found:
        return found
    try:
        from hotlap.optimal.solving import solve_reference
    except ImportError:
        tell(f"no gap to the optimum: {track.track_id} was never solved, and CasADi is missing (hotlap[optimal]).")
        return None
    tell(f"solving the optimal lap of {track.track_id}, once; about a minute for each two kilometres.")
    try:
        solved = solve_reference(track)
        keep_reference(track, solved)
    except OptimalError as error:
        tell(f"no gap to the optimum: {error}")
        return None
    return solved
