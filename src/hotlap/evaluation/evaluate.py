"""Drives a fleet with a driver and measures its laps: the figures of `hotlap evaluate`.

A driver whose policy is compiled drives in one compiled loop, any other in a Python loop; both give the same figures.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver, observation_of
from hotlap.envs.domain import DomainRules
from hotlap.envs.fleet import Fleet, make_engine
from hotlap.envs.settings import MAX_COUNT, RacerSettings, start_code
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName
from hotlap.errors import ActionError, ConfigError
from hotlap.evaluation.tick_kernels import PROGRESS_DTYPE, count_tick, find_stuck
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.engine import ALL_FINE, DeviceName
from hotlap.sim.policy_drive import DriveRules, Drives, begin_drives, drive_further
from hotlap.sim.policy_forward import PackedPolicy, make_memory
from hotlap.sim.rewards import START_ON_LINE
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.tracks.registry import Track

MAX_EPISODES = 100_000

# A car is stuck if it does not get this much further along the track within this time.
STUCK_AFTER_S = 60
STUCK_WITHIN_M = 120.0

# Compiled code returns after about this many ticks of all cars, to report progress and to be interrupted.
TICKS_PER_CALL = 200_000
MIN_TICKS_PER_CAR, MAX_TICKS_PER_CAR = 60, 600

STANDARD = DomainRules()  # the standard car

OnProgress = Callable[[float], None]  # called with the fraction done, 0 to 1


@runtime_checkable
class PolicyDriver(Driver, Protocol):
    """A driver that is nothing but a policy for compiled code."""

    packed: PackedPolicy
    action_repeat: int


@dataclass(frozen=True)
class Evaluation:
    """The figures of a driver on a track; one that does not exist is None."""

    driver: str
    track: str
    start: str
    seed: int
    episodes: int
    laps: int
    completion_rate: float
    clean_lap_rate: float | None
    mean_lap_time_sec: float | None
    median_lap_time_sec: float | None
    best_lap_time_sec: float | None
    std_lap_time_sec: float | None
    standing_lap_time_sec: float | None
    gap_to_optimal: float | None
    wall_contacts_per_lap: float | None
    mean_reward: float
    lap_times_s: tuple[float, ...] = field(default=(), repr=False)  # of all laps, in the order in which they ended
    failed_cars: tuple[int, ...] = field(default=(), repr=False)  # those without a clean flying lap
    car: str = ""  # how it differs from the standard car: `grip=0.9`

    def against(self, optimal_lap_s: float) -> "Evaluation":
        """A copy with `gap_to_optimal`: median clean flying lap / optimal flying lap - 1."""
        if self.median_lap_time_sec is None:
            return self
        return replace(self, gap_to_optimal=self.median_lap_time_sec / optimal_lap_s - 1.0)

    def as_dict(self) -> dict[str, Any]:
        """The figures as a dict for JSON, without the single laps and cars."""
        figures = asdict(self)
        del figures["lap_times_s"], figures["failed_cars"]
        if not self.car:
            del figures["car"]
        return figures


@dataclass(frozen=True)
class Lap:
    """A completed lap of car `car`; lap number 1 is the first that starts at the line."""

    car: int
    number: int
    time_s: float
    is_clean: bool


class LapCounter:
    """Counts laps, returns and wall contacts while a fleet is driven."""

    def __init__(self, num_cars: int) -> None:
        self.laps: list[Lap] = []
        self.returns = np.zeros(num_cars)
        self.wall_contacts = 0
        self._touched = np.zeros(num_cars, np.bool_)

    def add_tick(self, fleet: Fleet, running: NDArray[np.bool_]) -> None:
        """Add the last tick of the cars that are still running."""
        infos = fleet.batch.infos
        contacts, num_laps = count_tick(infos, fleet.batch.rewards, running, self.returns, self._touched)
        self.wall_contacts += contacts
        if num_laps:
            for car in (~np.isnan(infos["lapTime"]) & running).nonzero()[0]:
                row = infos[car]
                self.laps.append(Lap(int(car), int(row["lap"]) - 1, float(row["lapTime"]), bool(row["lapClean"])))


def evaluate(
    driver: Driver,
    track: str | Track | Sequence[str],
    *,
    episodes: int,
    start: str = "line",
    seed: int = 0,
    progress: OnProgress | None = None,
    device: DeviceName = "cpu",
    domain: DomainRules = STANDARD,
) -> Evaluation:
    """Measure `driver` over `episodes` episodes of a standing and a flying lap.

    From a random start an episode is the rest of the lap and a flying one. On several tracks the episodes take turns.
    Only a learned driver can drive on a GPU.
    """
    if not 1 <= episodes <= MAX_EPISODES:
        raise ConfigError(f"episodes must be from 1 to {MAX_EPISODES}, got {episodes}.")
    num_laps = 2 if start_code(start) == START_ON_LINE else 1
    fleet = start_cars(driver, track, range(seed, seed + episodes), start, domain)
    if isinstance(driver, PolicyDriver):
        counter = drive_compiled(driver, fleet, num_laps, progress, device=device)
    elif device != "cpu":
        raise ConfigError(f"--device {device}: {driver.name} drives on the CPU only. Use --device cpu.")
    else:
        driver.begin(fleet, seed)
        counter = drive(driver, fleet, num_laps, progress)
    task: dict[str, Any] = {
        "driver": driver.name,
        "track": fleet.tracks[0].track_id if isinstance(track, str | Track) else f"{len(track)} tracks",
        "start": start,
        "seed": seed,
        "episodes": episodes,
        "car": str(domain),
    }
    return Evaluation(**task, **compute_figures(counter, episodes, num_laps))


def start_cars(
    driver: Driver,
    track: str | Track | Sequence[str],
    seeds: Sequence[int],
    start: str,
    domain: DomainRules = STANDARD,
) -> Fleet:
    """Cars for this driver at the start of an episode, one for each seed."""
    fleet = make_evaluation_fleet(track, len(seeds), observation_of(driver), domain)
    fleet.seed(np.array([seed % 2**64 for seed in seeds], np.uint64))
    fleet.reset(start=start)
    return fleet


def drive(
    driver: Driver,
    fleet: Fleet,
    num_laps: int,
    progress: OnProgress | None = None,
    counter: LapCounter | None = None,
) -> LapCounter:
    """Drive until every car has completed its laps or is stuck; returns the counter, by default a new one."""
    counter = counter or LapCounter(fleet.num_cars)
    running = np.ones(fleet.num_cars, np.bool_)
    stuck = StuckDetector(fleet)
    tick = 0
    while running.any():
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
        tick += 1
        counter.add_tick(fleet, running)
        done = fleet.states["lap"] > num_laps
        running &= ~(done | fleet.batch.terminated | stuck.is_stuck(tick))
        if progress and tick % 30 == 0:
            progress(_fraction_done(fleet, running, num_laps))
    return counter


def drive_compiled(
    driver: PolicyDriver,
    fleet: Fleet,
    num_laps: int,
    progress: OnProgress | None = None,
    num_threads: int | None = None,
    device: DeviceName = "cpu",
) -> LapCounter:
    """Like `drive`, for a fleet that was just reset, in compiled code; a car stops where it is done.

    Neither the number of threads, one per core by default, nor the device changes a bit.
    """
    needed, given = int(driver.packed.shape["num_observations"][0]), fleet.batch.obs.shape[1]
    if given < needed:  # compiled code would read past the end of a row
        raise ValueError(f"{driver.name} sees {needed} observations, and the fleet has {given}")
    on_gpu = device == "cuda"
    drive_on_device = _gpu_drive() if on_gpu else drive_further
    rules = DriveRules(num_laps, driver.action_repeat, STUCK_AFTER_S * TICKS_PER_SECOND, STUCK_WITHIN_M)
    drives = begin_drives(fleet.batch, lap_lengths_m(fleet), num_laps)
    num_workers = fleet.num_cars if on_gpu else min(num_threads or default_threads(), fleet.num_cars)
    memory = make_memory(driver.packed, fleet.num_cars, num_workers, fleet.delay_ticks)
    num_ticks = min(max(TICKS_PER_CALL // fleet.num_cars, MIN_TICKS_PER_CAR), MAX_TICKS_PER_CAR)
    if on_gpu:
        num_ticks = MAX_TICKS_PER_CAR
    running = drives.cars["is_running"]
    while running.any():
        bad = drive_on_device(driver.packed, memory, rules, fleet.scenario, fleet.batch, drives, num_ticks)
        if bad != ALL_FINE:
            raise ActionError(
                f"{driver.name}: the action of car {bad} must be finite, got {memory.actions[bad].tolist()}. "
                "Use another model."
            )
        if progress:
            progress(_fraction_done(fleet, running, num_laps))
    return _count_laps(drives)


def _gpu_drive() -> Callable[..., int]:
    from hotlap.sim.policy_drive_cuda import drive_further_on_gpu  # needs numba-cuda

    return drive_further_on_gpu


def _count_laps(drives: Drives) -> LapCounter:
    """The finished drives as a counter, its laps in the order in which they ended."""
    counter = LapCounter(len(drives.cars))
    counter.returns[:] = drives.cars["reward"]
    counter.wall_contacts = int(drives.cars["num_contacts"].sum())
    ended = np.argwhere(drives.lap_ticks > 0)
    for car, lap in ended[np.argsort(drives.lap_ticks[drives.lap_ticks > 0], kind="stable")].tolist():
        time_s, is_clean = float(drives.lap_times_s[car, lap]), bool(drives.lap_clean[car, lap])
        counter.laps.append(Lap(car, lap + 1, time_s, is_clean))
    return counter


def lap_lengths_m(fleet: Fleet) -> NDArray[np.float64]:
    """The length of every car's lap."""
    of_tracks = np.array([track.nodes.length_m for track in fleet.tracks])
    of_cars: NDArray[np.float64] = of_tracks[fleet.states["track"]]
    return of_cars


class StuckDetector:
    """Finds cars that do not get further along the track."""

    def __init__(self, fleet: Fleet) -> None:
        self._states = fleet.states
        self._progress = np.zeros(fleet.num_cars, PROGRESS_DTYPE)
        self._progress["lap_m"], self._progress["arc_m"] = lap_lengths_m(fleet), fleet.states["arc_m"]

    def is_stuck(self, tick: int) -> NDArray[np.bool_]:
        """Which cars are stuck, (num_cars,); to be called on every tick."""
        stuck = np.empty(len(self._progress), np.bool_)
        find_stuck(self._states, self._progress, tick, STUCK_AFTER_S * TICKS_PER_SECOND, STUCK_WITHIN_M, stuck)
        return stuck


def _fraction_done(fleet: Fleet, running: NDArray[np.bool_], num_laps: int) -> float:
    num_gates = int(fleet.settings.episode.num_gates)
    fraction = (fleet.states["lap"] - 1 + fleet.states["gate"] / num_gates) / num_laps
    return float(np.where(running, np.minimum(fraction, 1.0), 1.0).mean())


def make_evaluation_fleet(
    track: str | Track | Sequence[str],
    num_cars: int,
    observation: ObservationName = DEFAULT_OBSERVATION,
    domain: DomainRules = STANDARD,
) -> Fleet:
    """Cars under the default rules, without the time limit."""
    defaults = RacerSettings(domain=domain)
    settings = replace(defaults, episode=replace(defaults.episode, max_ticks=MAX_COUNT))
    tracks = [track] if isinstance(track, str | Track) else track
    return Fleet(tracks, settings, num_cars, make_engine(num_cars), observation)


def compute_figures(counter: LapCounter, episodes: int, num_laps: int) -> dict[str, Any]:
    """The measured figures of an Evaluation; the lap numbered `num_laps` is the flying one."""
    flying = [lap for lap in counter.laps if lap.number == num_laps]
    standing_s = [lap.time_s for lap in counter.laps if lap.number < num_laps and lap.is_clean]
    clean = {lap.car: lap.time_s for lap in flying if lap.is_clean}
    clean_s = np.array(list(clean.values()))
    total = len(counter.laps)
    return {
        "laps": total,
        "completion_rate": len(flying) / episodes,
        "clean_lap_rate": sum(lap.is_clean for lap in counter.laps) / total if total else None,
        "mean_lap_time_sec": float(clean_s.mean()) if len(clean_s) else None,
        "median_lap_time_sec": float(np.median(clean_s)) if len(clean_s) else None,
        "best_lap_time_sec": float(clean_s.min()) if len(clean_s) else None,
        "std_lap_time_sec": float(clean_s.std()) if len(clean_s) else None,
        "standing_lap_time_sec": float(np.mean(standing_s)) if standing_s else None,
        "gap_to_optimal": None,
        "wall_contacts_per_lap": counter.wall_contacts / total if total else None,
        "mean_reward": float(counter.returns.mean()),
        "lap_times_s": tuple(lap.time_s for lap in counter.laps),
        "failed_cars": tuple(car for car in range(episodes) if car not in clean),
    }
