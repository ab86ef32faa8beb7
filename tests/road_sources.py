"""Roads of a stream without processes: shipped tracks in turn, or what the workers would make."""

from hotlap.errors import RoadStreamError
from hotlap.tracks.registry import load_track
from hotlap.tracks.road_workers import RoadWorkers

TRACKS = ("track-02", "track-01", "track-03", "train-001", "train-002")


def track_of(number: int, run_seed: int = 0) -> str:
    """The shipped track that stands for a road; another seed has them in another order."""
    return TRACKS[(number + number // len(TRACKS) + run_seed) % len(TRACKS)]


class ShippedRoads(RoadWorkers):
    """Gives shipped tracks; `lost_at` is the road whose process has died."""

    lost_at: int | None = None

    def __init__(self, run_seed: int = 0, num_workers: int = 1) -> None:
        self.run_seed, self.taken, self.is_closed = run_seed, [], False

    def ask(self, numbers):
        """Nothing to do: they are there."""

    def take(self, number):
        if number == self.lost_at:
            raise RoadStreamError("the process 1 that makes roads was killed by signal 9")
        self.taken.append(number)
        return load_track(track_of(number, self.run_seed)).guided_ribbon

    def close(self):
        self.is_closed = True
