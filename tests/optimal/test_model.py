"""The optimiser's equations equal the simulator's: the car's against the kernel, the track's against displacements."""

import casadi as ca
import numpy as np
import pytest

from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State, body_rates, motion
from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.registry import load_track
from optimal.kernels import CAR, places_of, rates_of

NUM_POINTS = 10_000


def random_drives(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bodies (num, 7) anywhere above walking speed, controls (num, 3) that a driver could give."""
    rng = np.random.default_rng(seed)
    low = [5.0, -6.0, -1.5, -1.0, 0.0, 0.0, -3000.0]
    high = [65.0, 6.0, 1.5, 1.0, 1.0, 1.0, 3000.0]
    bodies = rng.uniform(low, high, (2 * NUM_POINTS, 7)).astype(np.float32).astype(np.float64)
    # The model leaves out front wheels that roll at walking speed; no lap goes there.
    bodies = bodies[rolling_mps(bodies) > CAR.slip_floor_mps][:NUM_POINTS]
    limit = CAR.steering_rate_per_s
    return bodies, rng.uniform([-limit, 0.0, 0.0], [limit, 1.0, 1.0], (NUM_POINTS, 3))


def rolling_mps(bodies: np.ndarray) -> np.ndarray:
    """Speed of the front wheels in the direction they point."""
    vx, vy, yaw, steer = bodies[:, :4].T
    fraction = 1.0 / (1.0 + (vx * vx + vy * vy) / CAR.steering_scale_mps**2)
    angle = -steer * (CAR.steering_fast_rad + (CAR.steering_slow_rad - CAR.steering_fast_rad) * fraction)
    return vx * np.cos(angle) + (vy + CAR.front_m * yaw) * np.sin(angle)


def simulated(bodies: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """The kernel's rates under the commands of these controls."""
    commands = controls.copy()
    commands[:, 0] = bodies[:, 3] + CAR.steering_lag_s * controls[:, Control.STEER_RATE]
    return rates_of(bodies, commands)


def modelled(bodies: np.ndarray, controls: np.ndarray, car: CarParameters = CAR) -> np.ndarray:
    """The optimiser's rates."""
    body, control = ca.SX.sym("b", 7), ca.SX.sym("u", NUM_CONTROLS)
    rates = ca.Function("rates", [body, control], [body_rates(body, control, car)])
    return np.array(rates.map(len(bodies))(bodies.T, controls.T)).T


def relative_errors(found: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Errors in units of each rate's usual size."""
    return np.abs(found - known) / np.maximum(np.abs(known), known.std(axis=0))


def test_the_car_moves_as_in_the_simulator():
    bodies, controls = random_drives()
    errors = relative_errors(modelled(bodies, controls), simulated(bodies, controls))
    assert errors.max() < 1e-5


PARAMETERS = (
    "mass_kg friction load_sensitivity stiffness_rear drag_area_m2 brake_front_share steering_scale_mps pitch_lag_s "
    "rolling_mps2"
)


@pytest.mark.parametrize("name", PARAMETERS.split())
def test_the_comparison_detects_one_percent_of_a_parameter(name):
    bodies, controls = random_drives()
    other = CAR._replace(**{name: 1.01 * getattr(CAR, name)})
    errors = relative_errors(modelled(bodies, controls, other), simulated(bodies, controls))
    assert errors.max() > 1e-4


def motion_function() -> ca.Function:
    """The optimiser's rates and progress from state, controls and curvature."""
    x, u, k = ca.SX.sym("x", NUM_STATES), ca.SX.sym("u", NUM_CONTROLS), ca.SX.sym("k")
    now = motion(x, u, k, CAR)
    return ca.Function("motion", [x, u, k], [now.rates, now.progress_mps])


def test_the_car_moves_along_the_track_as_a_point_in_the_plane():
    """Put a car beside a real centreline, move it a little in x and y, and ask the simulator where it is."""
    nodes = load_track("track-01").nodes
    rng = np.random.default_rng(1)
    count, step_s = 400, 0.02
    node = rng.integers(0, nodes.num_nodes, count)
    lateral, heading = rng.uniform(-3.0, 3.0, count), rng.uniform(-0.5, 0.5, count)
    vx, vy, yaw = rng.uniform(10.0, 40.0, count), rng.uniform(-3.0, 3.0, count), rng.uniform(-1.0, 1.0, count)
    place_m = (node + 0.5) * nodes.step_m

    states = np.zeros((count, NUM_STATES))
    columns = (State.LATERAL, State.HEADING, State.FORWARD, State.LEFT, State.YAW)
    for column, values in zip(columns, (lateral, heading, vx, vy, yaw), strict=True):
        states[:, column] = values
    curvature = along_track(nodes.curvature_radpm, nodes, place_m)
    rates, progress = motion_function().map(count)(states.T, np.zeros((NUM_CONTROLS, count)), curvature[None, :])
    rates, progress = np.array(rates).T, np.array(progress).ravel()

    tx, ty = along_track(nodes.tangent_x, nodes, place_m), along_track(nodes.tangent_y, nodes, place_m)
    road = np.arctan2(ty, tx)
    x_m = along_track(nodes.x_m, nodes, place_m) - lateral * ty
    y_m = along_track(nodes.y_m, nodes, place_m) + lateral * tx
    course_x = vx * np.cos(road + heading) - vy * np.sin(road + heading)
    course_y = vx * np.sin(road + heading) + vy * np.cos(road + heading)
    sides = [places_of(nodes, node, x_m + sign * 0.5 * step_s * course_x, y_m + sign * 0.5 * step_s * course_y)
             for sign in (-1.0, 1.0)]  # fmt: skip
    moved_left = (sides[1][0] - sides[0][0]) / step_s
    lap_m = nodes.length_m
    moved_on = ((sides[1][1] - sides[0][1] + 0.5 * lap_m) % lap_m - 0.5 * lap_m) / step_s
    # The kernel knows the road node by node; between nodes its normals turn in steps.
    assert np.abs(moved_left - rates[:, State.LATERAL]).max() < 0.15
    assert np.abs(moved_on / progress - 1.0).max() < 0.01
    # The heading turns with the car, less what the road turned meanwhile.
    road_before, road_after = (
        np.arctan2(along_track(nodes.tangent_y, nodes, arc_m), along_track(nodes.tangent_x, nodes, arc_m))
        for _, arc_m in sides
    )
    turned = (road_after - road_before + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(yaw - turned / step_s - rates[:, State.HEADING]).max() < 0.02


def test_progress_on_the_centreline_equals_speed_and_is_larger_inside_a_bend():
    state = np.zeros(NUM_STATES)
    state[State.FORWARD] = 30.0
    assert float(motion_function()(state, np.zeros(3), 0.02)[1]) == pytest.approx(30.0)
    state[State.LATERAL] = 10.0  # the inside of a 50 m bend: 40 m
    assert float(motion_function()(state, np.zeros(3), 0.02)[1]) == pytest.approx(30.0 * 50.0 / 40.0)
