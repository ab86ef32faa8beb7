"""The overtaking benchmark: two cars for 8 s, the driver under test behind; whether it is safe and gets past."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver
from hotlap.drivers.line_keeper import LineKeeper
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.evaluation.overtaking_scenarios import DURATION_S, KEPT, SCENARIO_SEED, OvertakingScenario
from hotlap.evaluation.races import Entry, OnProgress, Pilot, RaceCounter
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.race import RETIRED
from hotlap.sim.vehicle import TICKS_PER_SECOND

FindDriver = Callable[[str, str], Driver]  # of a name, for a track
Flags = NDArray[np.bool_]

AHEAD, BEHIND = 0, 1  # the cars of a scenario; the driver under test is behind
_LAPS = 3  # nobody drives as many in a scenario


@dataclass(frozen=True)
class OvertakingOutcomes:
    """What happened in each scenario, (scenarios,), to the driver under test unless said otherwise."""

    has_contact: Flags  # of anybody's fault
    has_fault: Flags
    has_left_road: Flags  # its centre was beyond the road's edge
    has_hit_wall: Flags
    is_ahead: Flags  # at the end
    is_faster: Flags  # it would be ahead if the cars could not meet
    other_left_road: Flags  # the car ahead, alone, left the road or hit a wall

    @property
    def is_safe(self) -> Flags:
        """Without a contact of its own fault, always on the road, and without a wall."""
        return ~(self.has_fault | self.has_left_road | self.has_hit_wall)

    @property
    def is_overtake(self) -> Flags:
        """Ahead at the end, safe, and without any contact."""
        return self.is_ahead & self.is_safe & ~self.has_contact


@dataclass(frozen=True)
class OvertakingRates:
    """Fractions of some of the scenarios, with the bounds of 95 % intervals of the two that count."""

    scenarios: int
    safe_rate: float
    safe_low: float
    safe_high: float
    overtake_rate: float
    overtake_low: float
    overtake_high: float
    ahead_rate: float
    faster_rate: float
    contact_rate: float
    at_fault_rate: float
    off_road_rate: float
    wall_rate: float


@dataclass(frozen=True)
class OvertakingResult:
    """A driver's rates in all scenarios, by the line of the car ahead, and by track."""

    driver: str
    overall: OvertakingRates
    by_line: dict[str, OvertakingRates]
    by_track: dict[str, OvertakingRates]
    other_left_road: int  # scenarios in which the car ahead, alone, left the road or hit a wall

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def measure_overtaking(
    driver: str,
    scenarios: Sequence[OvertakingScenario],
    find_driver: FindDriver,
    *,
    num_threads: int | None = None,
    progress: OnProgress | None = None,
) -> OvertakingResult:
    """Drive all scenarios and count. The results do not depend on the number of threads."""
    found = drive_scenarios(driver, scenarios, find_driver, num_threads=num_threads, progress=progress)
    lines, tracks = np.array([one.line for one in scenarios]), np.array([one.track for one in scenarios])
    return OvertakingResult(
        driver=driver,
        overall=_rates(found, np.ones(len(scenarios), np.bool_)),
        by_line={str(line): _rates(found, lines == line) for line in np.unique(lines)},
        by_track={str(track): _rates(found, tracks == track) for track in np.unique(tracks)},
        other_left_road=int(found.other_left_road.sum()),
    )


@dataclass(frozen=True)
class ScenarioDrive:
    """What was seen of the cars of all scenarios, each array (scenarios, 2)."""

    progress_m: NDArray[np.float64]  # at the end
    contacts: NDArray[np.int64]
    faults: NDArray[np.int64]
    off_road: Flags
    hit_wall: Flags


def drive_scenarios(
    driver: str,
    scenarios: Sequence[OvertakingScenario],
    find_driver: FindDriver,
    *,
    num_threads: int | None = None,
    progress: OnProgress | None = None,
) -> OvertakingOutcomes:
    """Drive all scenarios: the cars together, and for what is possible each alone."""
    drives = []
    for number, absent in enumerate((None, BEHIND, AHEAD)):
        report = partial(_report_part, progress, number, 3) if progress else None
        drives.append(_drive(driver, scenarios, find_driver, absent, num_threads or default_threads(), report))
    both, other_alone, own_alone = drives
    return OvertakingOutcomes(
        has_contact=both.contacts[:, BEHIND] > 0,
        has_fault=both.faults[:, BEHIND] > 0,
        has_left_road=both.off_road[:, BEHIND],
        has_hit_wall=both.hit_wall[:, BEHIND],
        is_ahead=both.progress_m[:, BEHIND] > both.progress_m[:, AHEAD],
        is_faster=own_alone.progress_m[:, BEHIND] > other_alone.progress_m[:, AHEAD],
        other_left_road=(other_alone.off_road | other_alone.hit_wall)[:, AHEAD],
    )


def drive_together(
    driver: str,
    scenarios: Sequence[OvertakingScenario],
    find_driver: FindDriver,
    *,
    num_threads: int | None = None,
    progress: OnProgress | None = None,
) -> ScenarioDrive:
    """Drive all scenarios with both cars, and not each alone."""
    return _drive(driver, scenarios, find_driver, None, num_threads or default_threads(), progress)


def _report_part(progress: OnProgress, number: int, num_parts: int, fraction: float) -> None:
    progress((number + fraction) / num_parts)


def _drive(
    driver: str,
    scenarios: Sequence[OvertakingScenario],
    find_driver: FindDriver,
    absent: int | None,
    num_threads: int,
    progress: OnProgress | None,
) -> ScenarioDrive:
    """Drive all scenarios at once, tick by tick, without the car `absent`."""
    shape = (len(scenarios), 2)
    fleet = RaceFleet([one.track for one in scenarios], RacerSettings(), *shape, _LAPS, "grid", num_threads)
    place_cars(fleet, scenarios, absent)
    pilots = _find_pilots(driver, scenarios, find_driver, fleet, num_threads)
    max_throttle = np.ones(shape, np.float32)
    max_throttle[:, AHEAD] = [one.max_throttle for one in scenarios]
    counter, actions = RaceCounter(fleet), np.zeros((fleet.num_cars, 3), np.float32)
    off_road, hit_wall = np.zeros(fleet.num_cars, np.bool_), np.zeros(fleet.num_cars, np.bool_)
    num_ticks = round(DURATION_S * TICKS_PER_SECOND)
    with ThreadPoolExecutor(num_threads) as pool:
        for tick in range(num_ticks):
            for pilot in pilots:
                if tick % pilot.action_repeat == 0:
                    pilot.act(actions, pool)
            actions[:, 1] = np.minimum(actions[:, 1], max_throttle.reshape(-1))
            fleet.step(actions, autoreset=False)
            counter.add_step(1)
            off_road |= road_room_m(fleet) < 0.0
            hit_wall |= fleet.batch.infos["wallContact"]
            if progress:
                progress((tick + 1) / num_ticks)
    progress_m = fleet.progress_m.reshape(shape)
    return ScenarioDrive(progress_m, counter.contacts, counter.faults, off_road.reshape(shape), hit_wall.reshape(shape))


def _find_pilots(
    driver: str, scenarios: Sequence[OvertakingScenario], find_driver: FindDriver, fleet: RaceFleet, num_threads: int
) -> list[Pilot]:
    """Who drives which cars; a driver may be another one on each track."""
    owned: dict[tuple[str, str, int], list[int]] = {}
    for number, one in enumerate(scenarios):
        owned.setdefault((one.line, one.track, AHEAD), []).append(number)
        owned.setdefault((driver, one.track, BEHIND), []).append(number)
    pilots = []
    for (name, track, car), numbers in owned.items():
        if name == KEPT and car == AHEAD:
            found: Driver = LineKeeper(np.array([scenarios[number].offset for number in numbers]))
        else:
            found = find_driver(name, track)
        rows = 2 * np.array(numbers, np.int64) + car
        pilots.append(Pilot(Entry(name, found), fleet, rows, SCENARIO_SEED, num_threads))
    return pilots


def place_cars(fleet: RaceFleet, scenarios: Sequence[OvertakingScenario], absent: int | None = None) -> None:
    """Put the two cars of every scenario on the road; the car `absent` is out of the race, so nobody meets it."""
    fleet.seed(np.arange(len(scenarios), dtype=np.uint64))
    fleet.reset()
    state = fleet.get_state()
    track, nodes = fleet.scenario.ribbons.tracks[fleet.states["track"]], fleet.scenario.ribbons.nodes
    length_m, step_m = (track[name].astype(np.float64) for name in ("length_m", "step_m"))
    places = np.array([[one.place, one.place] for one in scenarios]).reshape(-1)
    behind_m = np.array([[0.0, one.gap_m] for one in scenarios]).reshape(-1)
    arc_m = places * length_m - behind_m
    state["race_laps_done"] = np.where(arc_m < 0.0, -1, 0).astype(np.int32)
    steps = np.where(arc_m < 0.0, arc_m + length_m, arc_m) / step_m
    node = np.minimum(steps.astype(np.int32), track["num_nodes"] - 1)
    share = np.clip(steps - node, 0.0, 1.0)
    here = nodes[track["first_node"] + node]
    there = nodes[track["first_node"] + (node + 1) % track["num_nodes"]]

    def at(name: str) -> NDArray[np.float64]:
        """A column of the nodes where each car is."""
        found: NDArray[np.float64] = (1.0 - share) * here[name] + share * there[name]
        return found

    offsets = np.array([[one.offset, one.own_offset] for one in scenarios]).reshape(-1)
    lateral_m = offsets * np.minimum(at("road_left_m"), at("road_right_m"))
    paces = np.array([[one.pace, one.pace] for one in scenarios]).reshape(-1)
    speed_mps = (paces * at("start_speed_mps")).reshape(-1, 2)
    speed_mps[:, BEHIND] = speed_mps.min(axis=1)
    columns = {
        "x_m": at("x_m") - at("tangent_y") * lateral_m,
        "y_m": at("y_m") + at("tangent_x") * lateral_m,
        "yaw_rad": np.arctan2(at("tangent_y"), at("tangent_x")),
        "forward_mps": speed_mps.reshape(-1),
        "yaw_radps": speed_mps.reshape(-1) * at("curvature_radpm"),
        "node": node,
        "share": share,
        "lateral_m": lateral_m,
        "arc_m": steps * step_m,
    }
    state |= {name: column.astype(state[name].dtype) for name, column in columns.items()}
    state["next_gate"], state["clock_runs"] = np.zeros_like(state["next_gate"]), np.zeros_like(state["clock_runs"])
    state["race_arc_m"] = state["race_from_arc_m"] = state["arc_m"]
    state["race_position"] = np.tile(np.array([1, 2], np.int32), len(scenarios))
    state["race_ahead_of"] = np.tile(np.array([0b10, 0], np.uint32), len(scenarios))
    if absent is not None:
        state["race_status"][absent::2] = RETIRED
    fleet.set_state(state)


def road_room_m(fleet: RaceFleet) -> NDArray[np.float64]:
    """Metres from every car's centre to the road's edge on its side; negative off the road."""
    states, ribbons = fleet.states, fleet.scenario.ribbons
    track, share = ribbons.tracks[states["track"]], states["share"].astype(np.float64)
    here = ribbons.nodes[track["first_node"] + states["node"]]
    there = ribbons.nodes[track["first_node"] + (states["node"] + 1) % track["num_nodes"]]
    left_m, right_m = ((1.0 - share) * here[name] + share * there[name] for name in ("road_left_m", "road_right_m"))
    lateral_m = states["lateral_m"]
    room_m: NDArray[np.float64] = np.where(lateral_m > 0.0, left_m - lateral_m, right_m + lateral_m)
    return room_m


def _rates(found: OvertakingOutcomes, chosen: Flags) -> OvertakingRates:
    """The rates of the scenarios that are chosen, at least one."""

    def rate(flags: Flags) -> float:
        return float(flags[chosen].mean())

    num, safe, overtake = int(chosen.sum()), rate(found.is_safe), rate(found.is_overtake)
    return OvertakingRates(
        num,
        safe,
        *wilson_interval(safe, num),
        overtake,
        *wilson_interval(overtake, num),
        ahead_rate=rate(found.is_ahead),
        faster_rate=rate(found.is_faster),
        contact_rate=rate(found.has_contact),
        at_fault_rate=rate(found.has_fault),
        off_road_rate=rate(found.has_left_road),
        wall_rate=rate(found.has_hit_wall),
    )


def wilson_interval(rate: float, num: int) -> tuple[float, float]:
    """Bounds of the 95 % interval of a rate (Wilson, JASA 22, 1927)."""
    z = 1.959964
    middle = (rate + z * z / (2 * num)) / (1.0 + z * z / num)
    half = z / (1.0 + z * z / num) * sqrt(rate * (1.0 - rate) / num + z * z / (4 * num * num))
    return max(0.0, middle - half), min(1.0, middle + half)
