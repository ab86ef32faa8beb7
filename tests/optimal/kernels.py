"""What the optimiser is compared with: the simulator's own kernels over arrays, and the time of a plan."""

import numpy as np

from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import State
from hotlap.sim.ribbon import pack_ribbons
from hotlap.sim.vehicle import car_record
from sim import free_drives, worlds
from sim.kernels import CAR, F, locate_on

__all__ = ["CAR", "driven_s", "places_of", "rates_of", "sprint_s", "warm_up"]


def rates_of(bodies: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """The seven rates (num, 7) of bodies (num, 7) under commands (num, 3), on the road."""
    rates = np.zeros(bodies.shape, F)
    free_drives.rates_of(bodies.astype(F), commands.astype(F), F(1.0), F(CAR.rolling_mps2), car_record(), rates)
    return rates.astype(np.float64)


def places_of(nodes, node: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Metres left of the centreline and along it, of every point, searched from its node."""
    ribbons = pack_ribbons([nodes], [np.ones(nodes.num_nodes)])
    _, _, left_m, arc_m = locate_on(ribbons, 0, node, x, y)
    return left_m.astype(np.float64), arc_m.astype(np.float64)


def sprint_s(body: np.ndarray, distance_m: float) -> float:
    """How long the simulator takes for a straight of this length at full throttle, from a body (7,) at its start."""
    trace = free_drives.free_drive(free_drives.hold(60.0, throttle=1.0), start=np.concatenate([np.zeros(3), body]))
    return float(np.interp(distance_m, trace[:, free_drives.X], np.arange(len(trace)) / 60.0))


def driven_s(plan, nodes, from_m: float, start_mps: float) -> float:
    """Time over a plan from a place and a speed before its first point, by speeds, angles and curvature alone."""
    curvature = along_track(nodes.curvature_radpm, nodes, plan.arc_m)
    heading = plan.states[:, State.HEADING]
    along_mps = plan.states[:, State.FORWARD] * np.cos(heading) - plan.states[:, State.LEFT] * np.sin(heading)
    pace = np.concatenate([[1.0 / start_mps], (1.0 - plan.states[:, State.LATERAL] * curvature) / along_mps])
    return float(np.sum(0.5 * (pace[1:] + pace[:-1]) * np.diff(plan.arc_m, prepend=from_m)))


def warm_up() -> None:
    """Compile the wrappers before tests are timed."""
    from hotlap.optimal.launch import launch

    worlds.warm_up()
    launch(CAR)
