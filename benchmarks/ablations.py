"""Trains a recipe with one change at a time and prints what each gives: python benchmarks/ablations.py [--workers 2].

The recipe and each change are trained from seeds 1 to 5, one core per run, as `hotlap train` does. Then the best model
of every run is evaluated from 1,000 random starts not used for selection, which takes seconds. Runs stay in the output
folder: called again, the script goes on where it was stopped; `--table` evaluates those that are finished, and
`--json FILE` writes their figures.
"""

import argparse
import contextlib
import os
import queue
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.atomic_files import writable
from hotlap.drawing.axes import Axes, AxesStyle
from hotlap.drawing.figure import Figure
from hotlap.errors import ConfigError, HotlapError
from hotlap.evaluation.evaluate import Evaluation, evaluate
from hotlap.optimal.reference import find_reference
from hotlap.reports.formatting import MISSING, percent
from hotlap.reports.plots.chart import DRIVER, FOOT_IN, OPTIMUM, RIGHT_IN, TITLE_IN, WIDTH_IN, to_png, write_title
from hotlap.reports.tables import Table, to_markdown
from hotlap.runs.find_driver import find_driver
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig, load_config
from hotlap.runs.run_folder import CONFIG_NAME, RunFolder
from hotlap.tracks.maps.map_colours import BACKGROUND, BADGE, FAINT, TEXT
from hotlap.tracks.registry import load_track
from results_file import write_results

RECIPE, OUT = "racer-ppo", Path("results/ablations")
BASE, SEEDS = "recipe", (1, 2, 3, 4, 5)
STARTS, START_SEED = 1000, 123  # no training and no selection uses this seed
NAMES_IN, LINE_IN = 3.9, 0.3  # of the picture: the width of the changes' names, the height of a line
COLUMNS = ("what is different", "completed", "clean laps", "gap", "median", "against the recipe")


@dataclass(frozen=True)
class Change:
    """What a run does unlike the recipe: a line for the table, and the settings by their dotted keys."""

    label: str
    settings: Mapping[str, Any]


CHANGES = {
    BASE: Change("nothing: the recipe", {}),
    "rays": Change("`observation` rays", {"racer.observation": "rays"}),
    "fourier-8": Change("Fourier features of the lap progress (`lap_fourier` 8)", {"racer.lap_fourier": 8}),
    "repeat-2": Change("30 decisions/s, gamma 0.9935", {"racer.action_repeat": 2, "ppo.gamma": 0.9935}),
    "repeat-3": Change("20 decisions/s, gamma 0.9902", {"racer.action_repeat": 3, "ppo.gamma": 0.9902}),
    "repeat-5": Change("12 decisions/s, gamma 0.9838", {"racer.action_repeat": 5, "ppo.gamma": 0.9838}),
    "gamma-980": Change("gamma 0.98", {"ppo.gamma": 0.98}),
    "gamma-990": Change("gamma 0.99", {"ppo.gamma": 0.99}),
    "gamma-993": Change("gamma 0.993", {"ppo.gamma": 0.993}),
    "batch-512": Change("minibatches of 512", {"ppo.batch_size": 512}),
    "batch-2048": Change("minibatches of 2,048", {"ppo.batch_size": 2048}),
    "batch-4096": Change("minibatches of 4,096", {"ppo.batch_size": 4096}),
    "kl-10": Change("`desired_kl` 0.01", {"ppo.desired_kl": 0.01}),
    "kl-40": Change("`desired_kl` 0.04", {"ppo.desired_kl": 0.04}),
    "kl-falling": Change("`desired_kl` falling (`final_lr_fraction` 0.15)", {"ppo.final_lr_fraction": 0.15}),
    "noise-40": Change("noise falling to 0.04 (`final_min_std`)", {"ppo.final_min_std": 0.04}),
    "head-pedal": Change(
        "bounded actions, one axis for both pedals (`action_head` pedal_axis)", {"policy.action_head": "pedal_axis"}
    ),
    "lambda-95": Change("`gae_lambda` 0.95", {"ppo.gae_lambda": 0.95}),
    "lambda-98": Change("`gae_lambda` 0.98", {"ppo.gae_lambda": 0.98}),
    "net-64": Change("64-64 network", {"policy.net_arch": [64, 64]}),
    "net-128": Change("128-128 network", {"policy.net_arch": [128, 128]}),
    "episodes-50": Change("episodes of 50 s (`max_ticks` 3000)", {"racer.episode.max_ticks": 3000}),
    "penalties-4": Change(
        "four times the penalties (`wall_penalty` −0.008, `off_track_penalty` −0.004)",
        {"racer.rewards.wall_penalty": -0.008, "racer.rewards.off_track_penalty": -0.004},
    ),
    "spun-0": Change("no spun cars at the start (`spun_fraction` 0)", {"racer.episode.spun_fraction": 0.0}),
    "min-speed-0": Change(
        "slow cars pay penalties, too (`penalty_min_speed_mps` 0)", {"racer.rewards.penalty_min_speed_mps": 0.0}
    ),
}


@dataclass(frozen=True)
class Job:
    """One run: a change, a seed, the folder of all runs, its decisions, None for the recipe's, and the recipe."""

    change: str
    seed: int
    out: Path
    steps: int | None = None
    recipe: str = RECIPE

    @property
    def name(self) -> str:
        """The name of its folder."""
        name = f"{self.change}-seed{self.seed}"
        return name if self.recipe == RECIPE else f"{self.recipe}-{name}"

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.out / self.name

    @property
    def config(self) -> RunConfig:
        """Its settings."""
        steps = {} if self.steps is None else {"steps": self.steps}
        return resolve_config(self.recipe, {**CHANGES[self.change].settings, **steps, "seed": self.seed})

    @property
    def is_begun(self) -> bool:
        """Whether its folder holds a run, which must be of these settings."""
        path = self.folder / CONFIG_NAME
        if not path.is_file():
            return False
        if load_config(path) != self.config:
            raise ConfigError(f"{path}: is of a run with other settings than {self.name}. Choose another --out.")
        return True

    @property
    def is_finished(self) -> bool:
        """Whether it has been trained to its end."""
        return self.is_begun and RunFolder(self.folder, self.config.experiment_id).is_finished


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default=RECIPE, help=f"the recipe that is changed; {RECIPE} unless given")
    parser.add_argument("--only", nargs="+", metavar="CHANGE", choices=CHANGES, default=list(CHANGES))
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the runs")
    parser.add_argument("--workers", type=positive, default=1, help="runs at a time, one core each")
    parser.add_argument("--steps", type=positive, help="decisions of each run instead of the recipe's")
    parser.add_argument("--table", action="store_true", help="train nothing, print the table of the finished runs")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures of every run, too")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw the gaps, too")
    options = parser.parse_args(arguments)
    common = options.out, options.steps, options.recipe
    jobs = [Job(name, seed, *common) for name in options.only for seed in SEEDS]
    base = [Job(BASE, seed, *common) for seed in SEEDS]
    try:
        picture = None if options.picture is None else writable(options.picture)
        failed = [] if options.table else train_all(jobs, options.workers)
        shown = jobs if BASE in options.only else [*base, *jobs]
        found = evaluate_all(shown)
        if not found:
            raise ConfigError(f"{options.out}: has no finished run of these changes. Train them first.")
        print(make_table(found))
        if options.json is not None:
            write_results(writable(options.json), {"recipe": options.recipe, "runs": figures(shown, found)})
        if picture is not None:
            picture.write_bytes(draw_gaps(found))
    except HotlapError as error:
        print(f"ablations: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"ablations: {error.filename}: {error.strerror}. Choose another path.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ablations: stopped. Called again, it goes on from here.", file=sys.stderr)
        return 130
    for job in failed:
        print(f"ablations: {job.folder}: the run failed. Its output is in {job.folder}.log.", file=sys.stderr)
    return 1 if failed else 0


def positive(text: str) -> int:
    """A whole number of 1 or more, from the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def train_all(jobs: Sequence[Job], num_workers: int) -> list[Job]:
    """Train the runs that are not finished, seed by seed; returns those that failed."""
    missing = sorted((job for job in jobs if not job.is_finished), key=lambda job: job.seed)
    cores: queue.Queue[int] = queue.Queue()
    for core in usable_cores(num_workers):
        cores.put(core)

    def train(job: Job) -> bool:
        core = cores.get()
        try:
            return train_on(core, job)
        finally:
            cores.put(core)

    with ThreadPoolExecutor(num_workers) as pool:
        try:
            trained = list(pool.map(train, missing))
        except KeyboardInterrupt:  # the runs got it too, and save
            pool.shutdown(cancel_futures=True)
            raise
    return [job for job, is_trained in zip(missing, trained, strict=True) if not is_trained]


def usable_cores(num_workers: int) -> list[int]:
    """A core for each worker, by turns where there are fewer cores."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    return [cores[worker % len(cores)] for worker in range(num_workers)]


def train_on(core: int, job: Job) -> bool:
    """Train one run on one core, from its last checkpoint if it has one; returns whether it ended well."""
    job.out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hotlap", "resume", str(job.folder), "--quiet"]
    if not job.is_begun:
        recipe = job.out / f"{job.name}.toml"
        recipe.write_text(job.config.to_toml(), encoding="utf-8")
        command[3:-1] = ["train", "--recipe", str(recipe), "--run-name", str(job.folder)]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    with Path(f"{job.folder}.log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **threads})
        if hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                os.sched_setaffinity(process.pid, {core})
        code = process.wait()
    print(f"{job.name}: exit code {code}", file=sys.stderr, flush=True)
    return code == 0


def evaluate_all(jobs: Sequence[Job]) -> dict[str, list[Evaluation]]:
    """The figures of every finished run, by change."""
    found: dict[str, list[Evaluation]] = {}
    for job in jobs:
        if job.is_finished:
            found.setdefault(job.change, []).append(evaluate_best(job))
    return found


def evaluate_best(job: Job) -> Evaluation:
    """Laps of the run's best model from starts not used for selection."""
    track_id = job.config.racer.track
    found = evaluate(find_driver(str(job.folder)), track_id, episodes=STARTS, start="random", seed=START_SEED)
    reference = find_reference(load_track(track_id))
    return found if reference is None else found.against(reference.lap_time_s)


def figures(jobs: Sequence[Job], found: Mapping[str, Sequence[Evaluation]]) -> list[dict[str, Any]]:
    """Change, seed, settings and evaluation of every finished run, for JSON."""
    rows = {name: iter(runs) for name, runs in found.items()}
    return [
        {
            "change": job.change,
            "seed": job.seed,
            "settings": CHANGES[job.change].settings,
            "evaluation": next(rows[job.change]).as_dict(),
        }
        for job in jobs
        if job.is_finished
    ]


def gaps(evaluations: Sequence[Evaluation]) -> list[float]:
    """The gaps to the optimal lap, of the runs that lap clean."""
    return [found.gap_to_optimal for found in evaluations if found.gap_to_optimal is not None]


def make_table(found: Mapping[str, Sequence[Evaluation]]) -> str:
    """A row for each change, as markdown."""
    return to_markdown(Table(list(COLUMNS), [row(name, found) for name in found]))


def row(name: str, found: Mapping[str, Sequence[Evaluation]]) -> list[str]:
    """The figures of every seed, the median gap, and what they say against the recipe's."""
    runs = found[name]
    own = gaps(runs)
    shown = [MISSING if run.gap_to_optimal is None else f"{100.0 * run.gap_to_optimal:.1f}" for run in runs]
    return [
        CHANGES[name].label,
        ", ".join(percent(run.completion_rate) for run in runs),
        ", ".join(percent(run.clean_lap_rate) for run in runs),
        ", ".join(shown) + (" %" if own else ""),
        f"{100.0 * statistics.median(own):.1f} %" if own else MISSING,
        compare(name, found),
    ]


def compare(name: str, found: Mapping[str, Sequence[Evaluation]]) -> str:
    """In words: slower or faster where every seed is beyond every seed of the recipe, otherwise not told apart."""
    own, base = gaps(found[name]), gaps(found.get(BASE, []))
    if len(own) < len(found[name]):
        return "a run without clean laps"
    if name == BASE or min(len(own), len(base)) < len(SEEDS):
        return ""
    if min(own) > max(base):
        return "slower"
    return "faster" if max(own) < min(base) else "not told apart"


def draw_gaps(found: Mapping[str, Sequence[Evaluation]]) -> bytes:
    """A PNG with a line for each change and a dot for each seed, over a band as wide as the recipe's seeds."""
    lines = {name: [100.0 * gap for gap in gaps(runs)] for name, runs in found.items()}
    order = sorted((name for name in lines if lines[name]), key=lambda name: statistics.median(lines[name]))
    lines_in = LINE_IN * max(1, len(order))
    figure = Figure(WIDTH_IN, TITLE_IN + FOOT_IN + lines_in, BACKGROUND)
    style = AxesStyle(grid=BADGE, text=FAINT, tick_names=TEXT)
    axes = figure.add_axes(Axes(NAMES_IN, TITLE_IN, WIDTH_IN - NAMES_IN - RIGHT_IN, lines_in, style))
    if base := lines.get(BASE):
        axes.band((min(base), max(base)), -np.inf, np.inf, BADGE, layer=0)
    for place, name in enumerate(order):
        axes.dots(lines[name], place, OPTIMUM if name == BASE else DRIVER, 7.0, rim=BACKGROUND)
    axes.x.limits = 0.0, axes.x_range[1]
    axes.x.label = "gap to the optimal lap, %"
    axes.y.limits, axes.y.is_reversed, axes.y.has_grid = (-0.5, max(1, len(order)) - 0.5), True, False
    axes.y.ticks, axes.y.names = range(len(order)), [plain(CHANGES[name].label) for name in order]
    write_title(figure, f"{RECIPE}, one change at a time", "a dot is the best model of one seed, 1,000 random starts")
    return to_png(figure)


def plain(label: str) -> str:
    """A label without Markdown and without the settings in brackets."""
    return label.split(" (")[0].replace("`", "")


if __name__ == "__main__":
    sys.exit(main())
