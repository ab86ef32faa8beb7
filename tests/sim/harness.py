"""Shared by the simulator's tests: kernels wrapped so that Python can call them over arrays, and small worlds.

The wrappers are entry points like the package's own, so they are compiled once and cached on disk.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from shapely import Polygon

from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.sim import batch_cpu
from hotlap.sim.compilation import entry_point
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.laps import crossing_fraction
from hotlap.sim.maths import (
    arc_tangent,
    clamp,
    exp_minus_one,
    hyperbolic_tangent,
    mix,
    sin_cos,
    wrap_angle,
)
from hotlap.sim.rays import cast
from hotlap.sim.rewards import RULES_DTYPE, START_ON_LINE, reward_terms
from hotlap.sim.ribbon import RibbonNodes, Ribbons, arc_length, locate, pack_ribbons, place
from hotlap.sim.rng import uniform
from hotlap.sim.step import make_batch, step_car
from hotlap.sim.tyres import tyre_force
from hotlap.sim.vehicle import Body, CarParameters, advance, body_rates, car_record
from hotlap.sim.world import NUM_OBSERVATIONS, STATE_DTYPE
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import build_nodes, wall_lines
from hotlap.tracks.registry import load_track
from tracks.shapes import eight, stadium

F = np.float32
BUILT_IN = ("track-01", "track-02", "track-03")
GRAVITY_MPS2 = 9.81
CAR = CarParameters()

# Columns of a free drive's trace: the pose, then the body's.
X, Y, YAW = 0, 1, 2
FORWARD, LEFT, YAW_RATE, STEER, THROTTLE, BRAKE, SHIFT = (3 + column for column in range(len(Body._fields)))


# --- kernels over arrays ---


@entry_point()
def sin_cos_of(x, sines, cosines):
    """Fill `sines` and `cosines` for every angle of `x`."""
    for i in range(x.shape[0]):
        sines[i], cosines[i] = sin_cos(x[i])


@entry_point()
def tanh_of(x, found):
    """Fill `found` with the hyperbolic tangent of every `x`."""
    for i in range(x.shape[0]):
        found[i] = hyperbolic_tangent(x[i])


@entry_point()
def exp_minus_one_of(x, found):
    """Fill `found` with exp(x) - 1 of every `x`."""
    for i in range(x.shape[0]):
        found[i] = exp_minus_one(x[i])


@entry_point()
def arc_tangent_of(y, x, angles):
    """Fill `angles` for every vector."""
    for i in range(x.shape[0]):
        angles[i] = arc_tangent(y[i], x[i])


@entry_point()
def wrap_mix_clamp(angles, wrapped, mixed, clamped):
    """Fill the three outputs from `angles`; mixed goes from 2 to the angle by a quarter, clamped is in [-1, 1]."""
    for i in range(angles.shape[0]):
        wrapped[i] = wrap_angle(angles[i])
        mixed[i] = mix(np.float32(2.0), angles[i], np.float32(0.25))
        clamped[i] = clamp(angles[i], np.float32(-1.0), np.float32(1.0))


@entry_point()
def tyre_forces(demand_n, slip, grip_n, stiffness, along_n, across_n):
    """Fill both forces for every row."""
    for i in range(slip.shape[0]):
        along_n[i], across_n[i] = tyre_force(demand_n[i], slip[i], grip_n[i], stiffness[i])


@entry_point()
def drive_freely(trace, commands, grip, resistance_mps2, cars):
    """Fill `trace` (ticks + 1, 10) from its first row on, with no track around the car."""
    for tick in range(commands.shape[0]):
        row = trace[tick]
        pose, body = advance(
            (row[0], row[1], row[2]),
            (row[3], row[4], row[5], row[6], row[7], row[8], row[9]),
            (commands[tick, 0], commands[tick, 1], commands[tick, 2]),
            grip,
            resistance_mps2,
            cars[0],
        )
        after = trace[tick + 1]
        after[0], after[1], after[2] = pose
        after[3], after[4], after[5], after[6], after[7], after[8], after[9] = body


@entry_point()
def rates_of(bodies, commands, grip, resistance_mps2, cars, rates):
    """Fill the seven rates of every body."""
    for i in range(bodies.shape[0]):
        b, c, r = bodies[i], commands[i], rates[i]
        body = (b[0], b[1], b[2], b[3], b[4], b[5], b[6])
        r[0], r[1], r[2], r[3], r[4], r[5], r[6] = body_rates(body, (c[0], c[1], c[2]), grip, resistance_mps2, cars[0])


@entry_point()
def locate_points(ribbons, track, from_node, x, y, node, fraction, left_m, arc_m):
    """Fill where every point is, each searched from its own node."""
    tracks, nodes, _ = ribbons
    for i in range(x.shape[0]):
        node[i], fraction[i], left_m[i] = locate(tracks[track], nodes, from_node[i], x[i], y[i])
        arc_m[i] = arc_length(tracks[track], node[i], fraction[i])


@entry_point()
def place_points(ribbons, track, node, fraction, left_m, x, y):
    """Fill the world positions of points on the ribbon."""
    tracks, nodes, _ = ribbons
    for i in range(node.shape[0]):
        x[i], y[i] = place(tracks[track], nodes, node[i], fraction[i], left_m[i])


@entry_point()
def cast_rays(ribbons, track, node, x, y, dx, dy, distance_m):
    """Fill the distance to the wall of every ray."""
    tracks, _, portals = ribbons
    for i in range(node.shape[0]):
        distance_m[i] = cast(tracks[track], portals, node[i], x[i], y[i], dx[i], dy[i])


@entry_point()
def crossing_fractions(gate_m, from_m, to_m, moved_m, length_m, fractions):
    """Fill the crossing fraction of every row."""
    for i in range(gate_m.shape[0]):
        fractions[i] = crossing_fraction(gate_m[i], from_m[i], to_m[i], moved_m[i], length_m)


@entry_point()
def terms_of(rules, moved_fraction, speed_fraction, is_still, pays_for_wall, pays_for_edge, terms):
    """Fill the six reward terms of one tick."""
    out = reward_terms(rules[0], moved_fraction, speed_fraction, is_still, pays_for_wall, pays_for_edge)
    terms[0], terms[1], terms[2], terms[3], terms[4], terms[5] = out


@entry_point()
def uniforms(seeds, episodes, draws, values):
    """Fill the draw of every row."""
    for i in range(seeds.shape[0]):
        values[i] = uniform(seeds[i], episodes[i], draws[i])


@entry_point()
def play(actions, ribbons, cars, rules, batch, autoreset, trace):
    """Step every car through `actions` (ticks, cars, 3); `trace` (ticks, cars) keeps the state after each tick."""
    for tick in range(actions.shape[0]):
        for i in range(actions.shape[1]):
            step_car(i, actions[tick], ribbons, cars, rules, batch, autoreset, 1)
            trace[tick, i] = batch.states[i]


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
        self.ribbons = pack_ribbons(tracks, [np.full(nodes.num_nodes, 15.0) for nodes in tracks])
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
        play(np.ascontiguousarray(actions, F), self.ribbons, self.cars, self.rules, self.batch, autoreset, trace)
        return trace

    def put(self, *, arc_m: float, left_m: float = 0.0, car: int = 0, turn_rad: float = 0.0, speed_mps=0.0) -> None:
        """Move a car to a place on the lap, heading `turn_rad` left of the road; gates and clock stay as they are."""
        nodes = self.tracks[self.states["track"][car]].nodes
        steps = (arc_m % nodes.length_m) / nodes.step_m
        node = min(int(steps), nodes.num_nodes - 1)
        me = self.states[car]
        me["node"], me["share"] = node, steps - node
        me["x_m"], me["y_m"] = place_on(self.ribbons, int(me["track"]), node, float(me["share"]), left_m)
        me["lateral_m"], me["arc_m"] = left_m, (F(node) + me["share"]) * F(nodes.step_m)
        me["yaw_rad"] = np.angle(np.exp(1j * (heading_at(nodes, node, float(me["share"])) + turn_rad)))
        me["forward_mps"], me["left_mps"], me["yaw_radps"] = speed_mps, 0.0, 0.0
        me["steer"], me["throttle"], me["brake"], me["shift_n"] = 0.0, 0.0, 0.0, 0.0


def heading_at(nodes: RibbonNodes, node: int, fraction: float = 0.0) -> float:
    """Direction of travel on the centreline."""
    after = (node + 1) % nodes.num_nodes
    along_x = (1.0 - fraction) * nodes.tangent_x[node] + fraction * nodes.tangent_x[after]
    along_y = (1.0 - fraction) * nodes.tangent_y[node] + fraction * nodes.tangent_y[after]
    return float(np.arctan2(along_y, along_x))


def place_on(ribbons: Ribbons, track: int, node: int, fraction: float, left_m: float) -> tuple[np.float32, np.float32]:
    """World position of one point on a ribbon."""
    x, y = np.zeros(1, F), np.zeros(1, F)
    place_points(ribbons, track, np.array([node]), np.array([fraction], F), np.array([left_m], F), x, y)
    return x[0], y[0]


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


# --- driving laps ---


def steady_driver(world: "World", **habits: float) -> CasualDriver:
    """A driver who follows the centreline without delay or noise, so that a lap is a function of its start."""
    calm = {"reaction_s": 0.0, "steer_noise": 0.0, "pedal_noise": 0.0}
    driver = CasualDriver(CasualHabits(**(calm | habits)))
    driver.begin(world, seed=0)  # type: ignore[arg-type]
    return driver


def drive_laps(world: "World", num_laps: int, max_ticks: int = 12_000, **habits: float) -> list[tuple[float, bool]]:
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


# --- free drives ---


def free_drive(
    commands: np.ndarray,
    *,
    grip: float = 1.0,
    resistance_mps2: float | None = None,
    cars: np.ndarray | None = None,
    start: np.ndarray | None = None,
    **body: float,
) -> np.ndarray:
    """Drive on an endless plain through (ticks, 3) commands; the trace (ticks + 1, 10) of pose and body.

    `start` is a row of another trace; columns of the body may be given by name instead.
    """
    trace = np.zeros((len(commands) + 1, 3 + len(Body._fields)), F)
    if start is not None:
        trace[0] = start
    for name, value in body.items():
        trace[0, 3 + Body._fields.index(name)] = value
    resistance = CAR.rolling_mps2 if resistance_mps2 is None else resistance_mps2
    drive_freely(
        trace, np.ascontiguousarray(commands, F), F(grip), F(resistance), car_record() if cars is None else cars
    )
    return trace


def hold(seconds: float, steer: float = 0.0, throttle: float = 0.0, brake: float = 0.0) -> np.ndarray:
    """The same command for a while: (ticks, 3)."""
    return np.tile(np.array([steer, throttle, brake], F), (round(seconds * 60), 1))


def warm_up() -> None:
    """Compile every wrapper with the types that the tests use, before tests are timed."""
    floats, ints = np.zeros(1, F), np.zeros(1, np.int64)
    sin_cos_of(floats, floats.copy(), floats.copy())
    arc_tangent_of(floats, floats, floats.copy())
    tanh_of(floats, floats.copy())
    exp_minus_one_of(floats, floats.copy())
    wrap_mix_clamp(floats, floats.copy(), floats.copy(), floats.copy())
    tyre_forces(floats, floats, np.ones(1, F), floats, floats.copy(), floats.copy())
    crossing_fractions(floats, floats, floats, floats, F(1.0), floats.copy())
    uniforms(np.zeros(1, np.uint64), ints, ints, floats.copy())
    terms_of(make_rules(), F(0.0), F(0.0), False, False, False, np.zeros(6, F))
    free_drive(hold(0.1))
    body_rates_at()
    world = World([nodes_of("oval")])
    world.play(np.zeros((1, 1, 3), F))
    world.put(arc_m=1.0)
    locate_on(world.ribbons, 0, np.zeros(1, np.int64), floats, floats)
    rays_on(world.ribbons, 0, np.zeros(1, np.int64), floats, floats, np.ones(1), np.zeros(1))


def body_rates_at(
    command: tuple[float, float, float] = (0.0, 0.0, 0.0),
    *,
    grip: float = 1.0,
    resistance_mps2: float = 0.0,
    cars: np.ndarray | None = None,
    **body: float,
) -> Body:
    """The seven rates at one state."""
    values = np.array([[body.get(name, 0.0) for name in Body._fields]], F)
    rates = np.zeros_like(values)
    rates_of(values, np.array([command], F), F(grip), F(resistance_mps2), car_record() if cars is None else cars, rates)
    return Body(*rates[0].tolist())


def locate_on(
    ribbons: Ribbons, track: int, from_node: np.ndarray, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Node, fraction, metres left and arc length of every point."""
    size = len(from_node)
    node, fraction, left_m, arc_m = np.zeros(size, np.int64), np.zeros(size, F), np.zeros(size, F), np.zeros(size, F)
    locate_points(ribbons, track, from_node.astype(np.int64), x.astype(F), y.astype(F), node, fraction, left_m, arc_m)
    return node, fraction, left_m, arc_m


def rays_on(
    ribbons: Ribbons, track: int, node: np.ndarray, x: np.ndarray, y: np.ndarray, dx: np.ndarray, dy: np.ndarray
) -> np.ndarray:
    """Distance to the wall of every ray."""
    distance_m = np.zeros(len(node), F)
    cast_rays(ribbons, track, node.astype(np.int64), x.astype(F), y.astype(F), dx.astype(F), dy.astype(F), distance_m)
    return distance_m
