"""Make a trained driver quicker: search for a better last layer of its network by what it drives.

usage: python tools/polish_driver.py OUT.zip MODEL.zip --tracks track-02 [--seed N] [--generations N]
       python tools/polish_driver.py OUT.zip MODEL.zip --tracks 'circuit-*' --seconds 30 --cars 1000 --device cuda

While a driver learns it needs noise in its actions, and it learns to leave room for that noise. When it races it has
none. This takes the room back: the driver drives without noise, and its last layer moves towards those that came
round quicker without leaving the road (`covariance_search`). Neither gradients nor the optimal lap are used.

The search is in coordinates in which each of the layer's main features counts the same. In a generation all candidates
drive from the same random starts, half of them hard ones at which the given model or a mean of earlier candidates
failed or was not clean: a search that sees few starts forgets those that are rare. Every 20 generations the average of
their means, which wanders less than a single one, drives from other starts, always the same, and the best of these
averages is written. All starts are others than those of the drivers' cards.

With `--device` the cars of all candidates are tensors that drive side by side (`tensor_course`): on a GPU a thousand
starts for each candidate take about as long as a few on the CPU.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covariance_search import CovarianceSearch
from hotlap.atomic_files import writable
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import HotlapError
from hotlap.evaluation.evaluate import start_cars
from hotlap.models.model_file import ModelFile, read_model, write_model
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.tracks.registry import find_entries, named_tracks
from last_layer import LastLayer, Numbers, check_model, hidden_features, num_hidden
from polish_courses import Course, Drives

if TYPE_CHECKING:
    from tensor_course import TensorCourse

CHECK_EVERY = 20  # generations
MAX_HARD = 64  # the latest are kept; a quarter of the cars if that is more
FAILED = 1.5  # who is so much slower than the given model has failed
FEATURE_CARS, FEATURE_TICKS, FEATURE_EVERY = 64, 900, 15  # a quarter of it while the cars settle
MAX_SEARCH_SEED, CHECK_SEED, FEATURE_SEED = 1 << 40, 1 << 50, 1 << 51


def score(found: Drives, usual: Drives, unclean: float, failed: float = FAILED - 1.0) -> float:
    """The mean over the cars of how slow they were in units of the usual, more where one was not clean or failed."""
    is_known = np.isfinite(usual.slowness)  # where the given model failed there is nothing to compare with
    if not is_known.any():
        return 1.0 + failed
    ratios = found.slowness[is_known] / usual.slowness[is_known]
    costs = ratios + np.where(found.is_clean[is_known], 0.0, unclean)
    return float(np.where(ratios < FAILED, costs, 1.0 + max(failed, unclean)).mean())


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
        self._hard = [*self._hard, *((int(car), int(seeds[car])) for car in bad)][-max(MAX_HARD, self._num_cars // 4) :]


class Polish:
    """The search for one model."""

    def __init__(
        self, model: ModelFile, tracks: Sequence[str], options: argparse.Namespace, pool: ThreadPoolExecutor
    ) -> None:
        self._options, self._driver = options, PackedDriver.from_model(model)
        self._rng = np.random.default_rng(options.seed)
        tracks = [tracks[k] for k in self._rng.permutation(len(tracks))]
        layer, num_ticks = num_hidden(model), round((options.seconds or 0.0) * TICKS_PER_SECOND)

        def course(some: Sequence[str], num_candidates: int) -> "Course | TensorCourse":
            if options.device is None:
                return Course(self._driver, some, num_ticks, pool, options.threads if num_candidates == 1 else 1)
            from tensor_course import TensorCourse  # torch takes seconds to import

            return TensorCourse(self._driver, some, num_ticks, num_candidates, layer, options.device)

        groups = grouped(tracks, options.cars)
        self._courses = [
            (course(some, 1 + options.population), Starts(options.cars, self._rng))
            for some in groups[: options.courses]
        ]
        self._check = course([tracks[k % len(tracks)] for k in range(options.checked)], 1)
        features = collect_features(self._driver, tracks[:FEATURE_CARS], layer)
        self._layer = LastLayer(model, self._driver.packed, features, options.features)
        self._search = CovarianceSearch(self._layer.size, options.population, options.spread, options.seed)

    def run(self, keep: Callable[[ModelFile], None]) -> None:
        """Search, and have the best model kept whenever there is a better one; at first the given one."""
        options, given = self._options, self._driver.packed.numbers
        seeds = np.arange(options.checked, dtype=np.uint64) + CHECK_SEED
        (usual,) = self._check.drive_all([given], seeds)
        best_score = self._score(usual, usual)
        keep(self._layer.model_with(given))
        print(f"{self._layer.size} numbers; {usual.is_clean.mean():.1%} of {options.checked} drives clean", flush=True)
        began = time.monotonic()
        with suppress(KeyboardInterrupt):
            self._look_for_hard_starts(given)  # a model that was polished before has some
            means: list[NDArray[np.float64]] = []
            for generation in range(1, options.generations + 1):
                self._improve()
                means.append(self._search.mean)
                is_late = time.monotonic() - began > 60.0 * options.minutes
                if generation % CHECK_EVERY and generation != options.generations and not is_late:
                    continue
                numbers = self._layer.numbers_at(np.mean(means, axis=0))
                means.clear()
                (found,) = self._check.drive_all([numbers], seeds)
                reached = self._score(found, usual)
                if reached < best_score:
                    best_score = reached
                    keep(self._layer.model_with(numbers))
                print(
                    f"generation {generation}, {time.monotonic() - began:.0f} s: {100 * (reached - 1):+.2f} %, "
                    f"{quicker(found, usual):+.2f} % lap time, {found.is_clean.mean():.2%} clean, "
                    f"best {100 * (best_score - 1):+.2f} %",
                    flush=True,
                )
                if is_late:
                    break
                self._look_for_hard_starts(numbers)

    def _score(self, found: Drives, usual: Drives) -> float:
        return score(found, usual, self._options.unclean, self._options.failed)

    def _improve(self) -> None:
        """One generation on one course."""
        course, starts = self._courses[int(self._rng.integers(len(self._courses)))]
        candidates = [self._driver.packed.numbers, *map(self._layer.numbers_at, self._search.ask())]
        usual, *others = course.drive_all(candidates, starts.draw())
        self._search.tell(np.array([self._score(found, usual) for found in others]))

    def _look_for_hard_starts(self, numbers: Numbers) -> None:
        """Drive the mean from new starts, on other courses than before where there are many."""
        rounds = -(-self._options.scanned // self._options.cars)
        for chosen in self._rng.integers(len(self._courses), size=rounds):
            course, starts = self._courses[chosen]
            seeds = starts.draw_new()
            starts.remember(seeds, *course.drive_all([numbers], seeds))


def quicker(found: Drives, usual: Drives) -> float:
    """By how many percent the median drive of those that did not fail is slower."""
    ratios = found.slowness / usual.slowness
    ratios = ratios[np.isfinite(ratios) & (ratios < FAILED)]
    return 100.0 * (float(np.median(ratios)) - 1.0) if len(ratios) else np.inf


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
    parser.add_argument("--failed", type=positive, default=FAILED - 1.0, help="what a drive that failed adds")
    parser.add_argument("--minutes", type=positive, default=3600.0, help="after which the search ends")
    parser.add_argument("--courses", type=whole(1), default=1000, help="groups of tracks that are used at most")
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], help="all candidates drive at once as torch tensors; needs --seconds"
    )
    parser.add_argument("--threads", type=whole(1), default=default_threads())
    parser.add_argument("--seed", type=whole(0), default=1)
    options = parser.parse_args(arguments)
    if options.device is not None and options.seconds is None:
        parser.error("argument --device: needs --seconds. Give both.")
    try:
        model, out = read_model(options.model), writable(options.out)
        check_model(model)
        tracks = [track for name in options.tracks for track in named_tracks(name)]
        find_entries(tracks)
        with ThreadPoolExecutor(options.threads) as pool:
            Polish(model, tracks, options, pool).run(lambda polished: write_model(out, replace(polished, path=out)))
    except HotlapError as error:
        print(f"polish_driver: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
