"""Decides where a run's `racer/*` figures come from: its training episodes, or its evaluations."""

from hotlap.envs.settings import EpisodeRules
from hotlap.optimal.reference import find_reference
from hotlap.runs.run_config import RacerOptions
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import TICKS_PER_SECOND, CarParameters
from hotlap.tracks.registry import Track, load_track

# A trained car is slower than the optimal lap by up to about this factor.
PACE = 1.1
# The fraction of the starts that must leave time for a lap; with fewer, most episodes of a perfect car complete none.
MIN_FRACTION = 0.5
# Without an optimal lap: the centreline at the limit of grip, 8 to 45 % longer than the optimum on the shipped tracks,
# and the usual loss of a standing start.
CENTRELINE_GRIP_SHARE = 1.0
STANDING_START_S = 4.0


def has_time_for_laps(racer: RacerOptions) -> bool:
    """Whether training episodes are long enough for laps, so that their laps tell how well the car drives.

    They are if from at least half of the starts, over all tracks, a car 10 % slower than the optimal lap completes a
    lap. On one track that is a limit of 1.1 standing laps from the line, and of 1.65 flying laps from other starts: the
    clock starts when the car crosses the line, half a lap later on average.
    """
    episode = racer.settings().episode
    fractions = [_lapping_fraction(load_track(track_id), episode) for track_id in racer.track_ids]
    return sum(fractions) >= MIN_FRACTION * len(fractions)


def _lapping_fraction(track: Track, episode: EpisodeRules) -> float:
    """The fraction of a track's starts that leave time for a lap."""
    flying_s, standing_s = _paced_laps(track)
    limit_s = episode.max_ticks / TICKS_PER_SECOND
    if episode.start == "line":
        return float(limit_s >= standing_s)
    # The rest of the first lap takes from nothing to a whole lap, all equally likely.
    return min(max(limit_s / flying_s - 1.0, 0.0), 1.0)


def _paced_laps(track: Track) -> tuple[float, float]:
    """The flying and the standing lap (s) of a car that drives well."""
    reference = find_reference(track)
    if reference is not None:
        return PACE * reference.lap_time_s, PACE * reference.standing_lap_time_s
    nodes = track.nodes
    speed_mps = speed_profile(nodes.curvature_radpm, nodes.step_m, CarParameters(), CENTRELINE_GRIP_SHARE)
    flying_s = float((nodes.step_m / speed_mps).sum())
    return flying_s, flying_s + STANDING_START_S
