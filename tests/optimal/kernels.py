"""The simulator's equations over arrays, by its own kernels: what the optimiser's copy is compared with."""

import numpy as np

from hotlap.sim.compilation import entry_point
from hotlap.sim.ribbon import arc_length, locate, pack_ribbons
from hotlap.sim.vehicle import CarParameters, advance, body_rates, car_record

F = np.float32
CAR = CarParameters()


@entry_point()
def fill_rates(bodies, commands, resistance_mps2, cars, rates):
    """Fill the seven rates of every body."""
    for i in range(bodies.shape[0]):
        b, c, r = bodies[i], commands[i], rates[i]
        body = (b[0], b[1], b[2], b[3], b[4], b[5], b[6])
        r[0], r[1], r[2], r[3], r[4], r[5], r[6] = body_rates(
            body, (c[0], c[1], c[2]), F(1.0), resistance_mps2, cars[0]
        )


@entry_point()
def fill_places(ribbons, node, x, y, left_m, arc_m):
    """Fill metres left and arc length of every point, searched from its node."""
    tracks, nodes, _ = ribbons
    for i in range(x.shape[0]):
        at, share, left_m[i] = locate(tracks[0], nodes, node[i], x[i], y[i])
        arc_m[i] = arc_length(tracks[0], at, share)


@entry_point()
def fill_straight(trace, cars, resistance_mps2):
    """Fill (ticks + 1, 8) rows of distance and body from the first on: full throttle, straight ahead."""
    zero, one = F(0.0), F(1.0)
    for tick in range(trace.shape[0] - 1):
        b = trace[tick]
        pose, body = advance(
            (b[0], zero, zero),
            (b[1], b[2], b[3], b[4], b[5], b[6], b[7]),
            (zero, one, zero),
            one,
            resistance_mps2,
            cars[0],
        )
        after = trace[tick + 1]
        after[0] = pose[0]
        after[1], after[2], after[3], after[4], after[5], after[6], after[7] = body


def rates_of(bodies: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """The seven rates (num, 7) of bodies (num, 7) under commands (num, 3), on the road."""
    rates = np.zeros(bodies.shape, F)
    fill_rates(bodies.astype(F), commands.astype(F), F(CAR.rolling_mps2), car_record(), rates)
    return rates.astype(np.float64)


def places_of(nodes, node: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Metres left of the centreline and along it, of every point."""
    left_m, arc_m = np.zeros(len(x), F), np.zeros(len(x), F)
    ribbons = pack_ribbons([nodes], [np.ones(nodes.num_nodes)])
    fill_places(ribbons, node.astype(np.int64), x.astype(F), y.astype(F), left_m, arc_m)
    return left_m.astype(np.float64), arc_m.astype(np.float64)


def sprint_s(body: np.ndarray, distance_m: float) -> float:
    """How long the simulator takes for a straight of this length at full throttle, from a body (7,) at its start."""
    trace = np.zeros((3600, 8), F)
    trace[0, 1:] = body
    fill_straight(trace, car_record(), F(CAR.rolling_mps2))
    return float(np.interp(distance_m, trace[:, 0], np.arange(len(trace)) / 60.0))


def warm_up() -> None:
    """Compile the wrappers before anyone's clock runs."""
    from hotlap.optimal.launch import launch
    from hotlap.tracks.registry import load_track

    rates_of(np.ones((1, 7)), np.zeros((1, 3)))
    places_of(load_track("track-01").nodes, np.zeros(1), np.zeros(1), np.zeros(1))
    sprint_s(np.zeros(7), 1.0)
    launch(CAR)
