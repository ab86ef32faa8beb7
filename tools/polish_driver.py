"""Make a trained driver quicker: search for a better last layer of its network by what it drives.

usage: python tools/polish_driver.py OUT.zip MODEL.zip --tracks track-02 [--seed N] [--generations N]
       python tools/polish_driver.py OUT.zip MODEL.zip --tracks 'circuit-*' --seconds 30 --cars 24

While a driver learns it needs noise in its actions, and it learns to leave room for that noise. When it races it has
none. This takes the room back: the driver drives without noise, and its last layer moves towards those that came
round quicker without leaving the road (`covariance_search`). Neither gradients nor the optimal lap are used.

The search is in coordinates in which each of the layer's main features counts the same. In a generation all candidates
drive from the same random starts, half of them hard ones at which the given model or a mean of earlier candidates
failed or was not clean: a search that sees few starts forgets those that are rare. Every 20 generations the average of
their means, which wanders less than a single one, drives from other starts, always the same, and the best of these
averages is written. All starts are others than those of the drivers' cards.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from covariance_search import CovarianceSearch
from hotlap.atomic_files import writable
from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet
from hotlap.errors import HotlapError
from hotlap.evaluation.evaluate import STUCK_AFTER_S, STUCK_WITHIN_M, lap_lengths_m, start_cars
from hotlap.models.model_file import ModelFile, read_model, write_model
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.policy_drive import DriveRules, begin_drives, drive_further
from hotlap.sim.policy_forward import PackedPolicy, make_memory
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.tracks.registry import find_entries, named_tracks
from last_layer import LastLayer, Numbers, check_model, hidden_features, num_hidden

CHECK_EVERY = 20  # generations
MAX_HARD = 64  # the latest are kept
MAX_LAPS = 64  # in one drive
SETTLE_TICKS = 12 * TICKS_PER_SECOND  # not scored: what a start put the car in is over by then
LOOK_EVERY = TICKS_PER_SECOND  # whether a car has left the road; a new lap forgets it
FAILED = 1.5  # the score of a drive that failed; that of the given model is 1
TICKS_PER_CALL = 100_000
FEATURE_CARS, FEATURE_TICKS, FEATURE_EVERY = 64, 900, 15  # a quarter of it while the cars settle
MAX_SEARCH_SEED, CHECK_SEED, FEATURE_SEED = 1 << 40, 1 << 50, 1 << 51


@dataclass(frozen=True)
class Drives:
    """How slow cars were, infinite for those that failed, and whether they stayed on the road and off the walls."""

    slowness: NDArray[np.float64]  # seconds of a flying lap, or a metre
    is_clean: NDArray[np.bool_]


class Course:
    """Cars on some tracks, a fleet for every thread, so that candidates drive side by side.

    They drive the rest of a lap and a flying one, which is scored; or, where `num_ticks` is not 0, so long once they
    have settled: long tracks take too long otherwise.
    """

    def __init__(self, driver: PackedDriver, tracks: Sequence[str], num_ticks: int, num_threads: int) -> None:
        self._driver, self._num_ticks = driver, num_ticks
        self._fleets: SimpleQueue[Fleet] = SimpleQueue()
        for _ in range(num_threads):
            self._fleets.put(start_cars(driver, tracks, range(len(tracks)), "random"))

    def drive(self, numbers: Numbers, seeds: NDArray[np.uint64]) -> Drives:
        """Drive with these numbers of the policy from the random starts of these seeds."""
        fleet = self._fleets.get()
        try:
            fleet.seed(seeds)
            fleet.reset(start="random")
            packed = self._driver.packed._replace(numbers=numbers)
            return self._drive_ticks(fleet, packed) if self._num_ticks else self._drive_lap(fleet, packed)
        finally:
            self._fleets.put(fleet)

    def _rules(self, num_laps: int) -> DriveRules:
        return DriveRules(num_laps, self._driver.action_repeat, STUCK_AFTER_S * TICKS_PER_SECOND, STUCK_WITHIN_M)

    def _drive_lap(self, fleet: Fleet, packed: PackedPolicy) -> Drives:
        drives = begin_drives(fleet.batch, lap_lengths_m(fleet), 1)
        memory = make_memory(packed, fleet.num_cars)
        while drives.cars["is_running"].any():
            drive_further(packed, memory, self._rules(1), fleet.scenario, fleet.batch, drives, TICKS_PER_CALL)
        times_s = drives.lap_times_s[:, 0].astype(np.float64)
        return Drives(np.where(drives.lap_ticks[:, 0] > 0, times_s, np.inf), drives.lap_clean[:, 0])

    def _drive_ticks(self, fleet: Fleet, packed: PackedPolicy) -> Drives:
        drives = begin_drives(fleet.batch, lap_lengths_m(fleet), MAX_LAPS)
        memory = make_memory(packed, fleet.num_cars)

        def go_on(num_ticks: int) -> None:
            drive_further(packed, memory, self._rules(MAX_LAPS), fleet.scenario, fleet.batch, drives, num_ticks)

        go_on(SETTLE_TICKS)
        before = drives.cars.copy()
        ended = drives.lap_ticks > 0
        fleet.states["lap_spoiled"] = 0
        has_left = np.zeros(fleet.num_cars, np.bool_)
        for _ in range(0, self._num_ticks, LOOK_EVERY):
            go_on(LOOK_EVERY)
            has_left |= fleet.states["lap_spoiled"] > 0
        has_left |= ((drives.lap_ticks > 0) & ~ended & ~drives.lap_clean).any(axis=1)
        has_left |= drives.cars["num_contacts"] > before["num_contacts"]
        moved_m = np.maximum(drives.cars["distance_m"] - before["distance_m"], 1.0)
        return Drives(self._num_ticks / TICKS_PER_SECOND / moved_m, ~has_left)


def score(found: Drives, usual: Drives, unclean: float) -> float:
    """The mean over the cars of how slow they were in units of the usual, more where one was not clean."""
    is_known = np.isfinite(usual.slowness)  # where the given model failed there is nothing to compare with
    ratios = found.slowness[is_known] / usual.slowness[is_known] + np.where(found.is_clean[is_known], 0.0, unclean)
    return float(np.minimum(ratios, FAILED).mean()) if is_known.any() else FAILED


def collect_features(driver: PackedDriver, tracks: Sequence[str], num_layers: int) -> NDArray[np.float64]:
    """What the last hidden layer gives while the driver drives, (samples, width)."""
    fleet = start_cars(driver, tracks, range(FEATURE_SEED, FEATURE_SEED + FEATURE_CARS), "random")
    driver.begin(fleet, 0)
    seen = []
    for tick in range(FEATURE_TICKS):
        if tick % FEATURE_EVERY == 0:
            seen.append(hidden_features(driver.packed, fleet.batch.obs, num_layers))
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
    return np.concatenate(seen)


class Starts:
    """Seeds of the starts of a course's cars: new ones, and for up to half of the cars hard ones that it remembers."""

    def __init__(self, num_cars: int, rng: np.random.Generator) -> None:
        self._num_cars, self._rng = num_cars, rng
        self._hard: list[tuple[int, int]] = []  # car and seed

    def draw_new(self) -> NDArray[np.uint64]:
        """New starts alone."""
        return self._rng.integers(1, MAX_SEARCH_SEED, self._num_cars).astype(np.uint64)

    def draw(self) -> NDArray[np.uint64]:
        """New starts, and hard ones among them."""
        seeds = self.draw_new()
        count = min(len(self._hard), self._num_cars // 2)
        for chosen in self._rng.choice(len(self._hard), count, replace=False) if count else ():
            car, seed = self._hard[chosen]
            seeds[car] = seed
        return seeds

    def remember(self, seeds: NDArray[np.uint64], found: Drives) -> None:
        """Remember the starts that were not driven cleanly."""
        bad = np.flatnonzero(~found.is_clean | ~np.isfinite(found.slowness))
        self._hard = [*self._hard, *((int(car), int(seeds[car])) for car in bad)][-MAX_HARD:]


class Polish:
    """The search for one model."""

    def __init__(self, model: ModelFile, tracks: Sequence[str], options: argparse.Namespace) -> None:
        self._options, self._driver = options, PackedDriver.from_model(model)
        self._rng = np.random.default_rng(options.seed)
        tracks = [tracks[k] for k in self._rng.permutation(len(tracks))]
        num_ticks = round((options.seconds or 0.0) * TICKS_PER_SECOND)
        self._courses = [
            (Course(self._driver, some, num_ticks, options.threads), Starts(options.cars, self._rng))
            for some in grouped(tracks, options.cars)
        ]
        checked = [tracks[k % len(tracks)] for k in range(options.checked)]
        self._check = Course(self._driver, checked, num_ticks, 1)
        features = collect_features(self._driver, tracks[:FEATURE_CARS], num_hidden(model))
        self._layer = LastLayer(model, self._driver.packed, features, options.features)
        self._search = CovarianceSearch(self._layer.size, options.population, options.spread, options.seed)

    def run(self) -> ModelFile:
        """Search; returns the best model found, which is the given one if none is better."""
        options, given = self._options, self._driver.packed.numbers
        seeds = np.arange(options.checked, dtype=np.uint64) + CHECK_SEED
        usual = self._check.drive(given, seeds)
        best_score, best = score(usual, usual, options.unclean), given
        print(f"{self._layer.size} numbers; {usual.is_clean.mean():.1%} of {options.checked} drives clean", flush=True)
        began = time.monotonic()
        with suppress(KeyboardInterrupt), ThreadPoolExecutor(options.threads) as pool:
            self._look_for_hard_starts(pool, given)  # a model that was polished before has some
            means: list[NDArray[np.float64]] = []
            for generation in range(1, options.generations + 1):
                self._improve(pool)
                means.append(self._search.mean)
                if generation % CHECK_EVERY and generation != options.generations:
                    continue
                numbers = self._layer.numbers_at(np.mean(means, axis=0))
                means.clear()
                found = self._check.drive(numbers, seeds)
                reached = score(found, usual, options.unclean)
                if reached < best_score:
                    best_score, best = reached, numbers
                print(
                    f"generation {generation}, {time.monotonic() - began:.0f} s: {100 * (reached - 1):+.2f} %, "
                    f"{found.is_clean.mean():.1%} clean, best {100 * (best_score - 1):+.2f} %",
                    flush=True,
                )
                self._look_for_hard_starts(pool, numbers)
        return self._layer.model_with(best)

    def _improve(self, pool: ThreadPoolExecutor) -> None:
        """One generation on one course."""
        course, starts = self._courses[int(self._rng.integers(len(self._courses)))]
        seeds = starts.draw()
        candidates = [self._driver.packed.numbers, *map(self._layer.numbers_at, self._search.ask())]
        usual, *others = pool.map(lambda numbers: course.drive(numbers, seeds), candidates)
        self._search.tell(np.array([score(found, usual, self._options.unclean) for found in others]))

    def _look_for_hard_starts(self, pool: ThreadPoolExecutor, numbers: Numbers) -> None:
        """Drive the mean from new starts, on other courses than before where there are many."""
        rounds = -(-self._options.scanned // self._options.cars)
        chosen = [self._courses[k] for k in self._rng.integers(len(self._courses), size=rounds)]
        jobs = [(course, starts, starts.draw_new()) for course, starts in chosen]
        drives = list(pool.map(lambda job: job[0].drive(numbers, job[2]), jobs))
        for (_, starts, seeds), found in zip(jobs, drives, strict=True):
            starts.remember(seeds, found)


def grouped(tracks: Sequence[str], size: int) -> list[list[str]]:
    """The tracks in groups of this size; fewer tracks than that repeat, and a rest that fills no group is left out."""
    if len(tracks) < size:
        return [[tracks[k % len(tracks)] for k in range(size)]]
    return [list(tracks[k : k + size]) for k in range(0, len(tracks) - size + 1, size)]


def whole(lowest: int) -> Callable[[str], int]:
    """Reads a whole number of the command line, this one or more."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or int(text) < lowest:
            raise argparse.ArgumentTypeError(f"must be a whole number from {lowest}, got {text!r:.40}.")
        return int(text)

    return read


def positive(text: str) -> float:
    """Reads a number of the command line that is more than 0 and at most 3,600."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 3600.0:
        raise argparse.ArgumentTypeError(f"must be a number above 0, at most 3600, got {text!r:.40}.")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the polished model; returns the exit code. Ctrl-C ends the search, and the best model so far is written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.zip")
    parser.add_argument("model", type=Path, metavar="MODEL.zip")
    parser.add_argument("--tracks", required=True, nargs="+", help="tracks, a split, or patterns such as 'circuit-*'")
    parser.add_argument("--generations", type=whole(1), default=300)
    parser.add_argument("--population", type=whole(4), default=24, help="candidates of a generation")
    parser.add_argument("--cars", type=whole(1), default=8, help="drives of a candidate")
    parser.add_argument("--checked", type=whole(1), default=192, help="drives of a mean that may be written")
    parser.add_argument("--scanned", type=whole(1), default=96, help="new starts at which hard ones are looked for")
    parser.add_argument("--seconds", type=positive, help="of a drive; by default a flying lap")
    parser.add_argument("--features", type=whole(1), default=64, help="of the last hidden layer, the largest first")
    parser.add_argument(
        "--spread", type=positive, default=0.004, help="of the first candidates, in units of the action"
    )
    parser.add_argument(
        "--unclean", type=positive, default=0.05, help="what leaving the road adds to a score of about 1"
    )
    parser.add_argument("--threads", type=whole(1), default=default_threads())
    parser.add_argument("--seed", type=whole(0), default=1)
    options = parser.parse_args(arguments)
    try:
        model, out = read_model(options.model), writable(options.out)
        check_model(model)
        tracks = [track for name in options.tracks for track in named_tracks(name)]
        find_entries(tracks)
        polished = Polish(model, tracks, options).run()
        write_model(out, replace(polished, path=out))
    except HotlapError as error:
        print(f"polish_driver: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
