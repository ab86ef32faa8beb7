"""Small worlds for the simulator's tests: tracks, cars on them, and a driver who laps."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from shapely import Polygon

from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import num_observations
from hotlap.sim import batch_cpu
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.guide_line import add_guides
from hotlap.sim.rewards import RULES_DTYPE, START_ON_LINE
from hotlap.sim.ribbon import pack_ribbons
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import car_record
from hotlap.sim.world import NUM_OBSERVATIONS, STATE_DTYPE
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import build_nodes, wall_lines
from hotlap.tracks.registry import load_track
from sim import free_drives, kernels
from sim.kernels import F
from tracks.shapes import eight, stadium

BUILT_IN = ("track-01", "track-02", "track-03")


# --- tracks ---


def oval(straight_m: float = 300.0) -> Centreline:
    """Two straights and two half circles of 60 m, with 6 m of road on either side."""
    return stadium(60.0, straight_m, right=6.0, left=6.0)


@lru_cache(maxsize=256)
def nodes_of(name: str | int) -> RibbonNodes:
    """The nodes of a built-in track by id, of a generated one by seed, or of `oval` and `eight`."""
    if isinstance(name, int):
        return build_nodes(generate(name))
    if name in ("oval", "eight"):
        return build_nodes(oval() if name == "oval" else eight(150.0))
    return load_track(name).nodes


def drivable_area(nodes: RibbonNodes) -> Polygon:
    """What lies between the walls of a track that does not cross itself, computed without the ribbon."""
    walls = sorted((Polygon(wall) for wall in wall_lines(nodes)), key=lambda polygon: polygon.area)
    area = Polygon(walls[1].exterior, [walls[0].exterior])
    assert area.is_valid, "the walls cross, so inside and outside are undefined"
    return area


def heading_at(nodes: RibbonNodes, node: int, fraction: float = 0.0) -> float:
    """Direction of travel on the centreline."""
    after = (node + 1) % nodes.num_nodes
    along_x = (1.0 - fraction) * nodes.tangent_x[node] + fraction * nodes.tangent_x[after]
    along_y = (1.0 - fraction) * nodes.tangent_y[node] + fraction * nodes.tangent_y[after]
    return float(np.arctan2(along_y, along_x))


# --- worlds ---


def make_rules(**changes) -> np.ndarray:
    """The contract's default rules, changed where asked."""
    rewards = {"progress": 1.0, "wall_penalty": -0.002, "off_track_penalty": -0.001, "stillness_penalty": -0.001}
    limits = {"max_ticks": 2**31 - 1, "stillness_timeout_ticks": 2**31 - 1, "stillness_speed_mps": 2.0}
    rules = np.zeros(1, RULES_DTYPE)
    for name, value in (rewards | limits | {"start": START_ON_LINE, "num_gates": 30} | changes).items():
        rules[name] = value
    return rules


class Place(NamedTuple):
    """A track as drivers read it: its nodes."""

    nodes: RibbonNodes


class World:
    """Cars on tracks, for tests that set states by hand; drivers accept it as a fleet."""

    settings = RacerSettings()

    def __init__(
        self,
        tracks: Sequence[RibbonNodes],
        num_cars: int = 1,
        *,
        car: np.ndarray | None = None,
        num_obs: int = NUM_OBSERVATIONS,
        **rules,
    ) -> None:
        self.tracks = tuple(Place(nodes) for nodes in tracks)
        self.num_cars = num_cars
        ribbons = pack_ribbons(tracks, [np.full(nodes.num_nodes, 15.0) for nodes in tracks])
        has_guide = num_obs >= num_observations("road-2") or "progress_time_s" in rules
        self.ribbons = add_guides(ribbons, tracks) if has_guide else ribbons
        self.cars = car_record() if car is None else car
        self.rules = make_rules(**rules)
        self.batch = make_batch(num_cars, num_obs)
        self.states["track"] = np.arange(num_cars) % len(tracks)
        self.states["seed"] = np.arange(num_cars)
        self.reset()

    @property
    def scenario(self) -> Scenario:
        return Scenario(self.ribbons, self.cars, self.rules)

    @property
    def states(self) -> np.ndarray:
        return self.batch.states

    @property
    def infos(self) -> np.ndarray:
        return self.batch.infos

    def reset(self) -> None:
        batch_cpu.reset_cars(np.ones(self.num_cars, np.bool_), self.ribbons, self.cars, self.rules, self.batch)

    def step(self, actions, autoreset: bool = False, num_threads: int = 1, repeat: int = 1) -> None:
        # A copy, since numba would compile again for a read-only array.
        actions = np.broadcast_to(np.asarray(actions, F), (self.num_cars, 3)).copy()
        engine = batch_cpu.CpuEngine(num_threads)
        assert engine.step(actions, self.scenario, self.batch, autoreset=autoreset, repeat=repeat) == ALL_FINE

    def play(self, actions: np.ndarray, autoreset: bool = False) -> np.ndarray:
        """Drive through (ticks, cars, 3) actions; the states after every tick, (ticks, cars)."""
        trace = np.zeros(actions.shape[:2], STATE_DTYPE)
        for states, chosen in zip(trace, np.ascontiguousarray(actions, F), strict=True):
            assert batch_cpu.step_serial(chosen, *self.scenario, self.batch, autoreset, 1) == ALL_FINE
            states[:] = self.states
        return trace

    def put(self, *, arc_m: float, left_m: float = 0.0, car: int = 0, turn_rad: float = 0.0, speed_mps=0.0) -> None:
        """Move a car to a place on the lap, heading `turn_rad` left of the road; gates and clock stay as they are."""
        nodes = self.tracks[self.states["track"][car]].nodes
        steps = (arc_m % nodes.length_m) / nodes.step_m
        node = min(int(steps), nodes.num_nodes - 1)
        me = self.states[car]
        me["node"], me["share"] = node, steps - node
        me["x_m"], me["y_m"] = kernels.place_on(self.ribbons, int(me["track"]), node, float(me["share"]), left_m)
        me["lateral_m"], me["arc_m"] = left_m, (F(node) + me["share"]) * F(nodes.step_m)
        me["yaw_rad"] = np.angle(np.exp(1j * (heading_at(nodes, node, float(me["share"])) + turn_rad)))
        me["forward_mps"], me["left_mps"], me["yaw_radps"] = speed_mps, 0.0, 0.0
        me["steer"], me["throttle"], me["brake"], me["shift_n"] = 0.0, 0.0, 0.0, 0.0


# --- driving laps ---


def steady_driver(world: World, **habits: float) -> CasualDriver:
    """A driver who follows the centreline without delay or noise, so that a lap is a function of its start."""
    calm = {"reaction_s": 0.0, "steer_noise": 0.0, "pedal_noise": 0.0}
    driver = CasualDriver(CasualHabits(**(calm | habits)))
    driver.begin(world, seed=0)  # type: ignore[arg-type]
    return driver


def drive_laps(world: World, num_laps: int, max_ticks: int = 12_000, **habits: float) -> list[tuple[float, bool]]:
    """(lap time, clean) of the first car's next laps."""
    driver = steady_driver(world, **habits)
    laps: list[tuple[float, bool]] = []
    for _ in range(max_ticks):
        world.step(driver.act(world.batch.obs))
        info = world.infos[0]
        if not np.isnan(info["lapTime"]):
            laps.append((float(info["lapTime"]), bool(info["lapClean"])))
        if len(laps) == num_laps:
            return laps
    raise AssertionError(f"only {len(laps)} of {num_laps} laps in {max_ticks} ticks")


def warm_up() -> None:
    """Compile all that the simulator's tests wrap, and what makes guides, before tests are timed."""
    nodes = nodes_of("oval")
    kernels.warm_up(add_guides(pack_ribbons([nodes], [np.zeros(nodes.num_nodes)]), [nodes]))
    free_drives.warm_up()
