"""Drives on an endless plain, with no track around the car, and figures of them that a person can check."""

import numpy as np

from hotlap.sim.compilation import entry_point
from hotlap.sim.vehicle import TICKS_PER_SECOND, Body, advance, body_rates, car_record
from sim.kernels import CAR, GRAVITY_MPS2, F

# Columns of a free drive's trace: the pose, then the body's.
X, Y, YAW = 0, 1, 2
FORWARD, LEFT, YAW_RATE, STEER, THROTTLE, BRAKE, SHIFT = (3 + column for column in range(len(Body._fields)))

ON_ROAD = {"grip": 1.0, "resistance_mps2": CAR.rolling_mps2}
ON_RUNOFF = {"grip": CAR.runoff_grip, "resistance_mps2": CAR.rolling_mps2 + CAR.runoff_drag_mps2}


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


def speed_of(rows: np.ndarray) -> np.ndarray:
    return np.hypot(rows[..., FORWARD], rows[..., LEFT]).astype(np.float64)


def slip_deg(rows: np.ndarray) -> np.ndarray:
    """Angle between where the car points and where it goes; positive when it goes to the left of its nose."""
    return np.degrees(np.arctan2(rows[..., LEFT], rows[..., FORWARD])).astype(np.float64)


def lateral_g(row: np.ndarray) -> float:
    return float(speed_of(row) * abs(row[YAW_RATE])) / GRAVITY_MPS2


def corner(steer: float, speed_mps: float, seconds: float = 6.0, **surface: float) -> np.ndarray:
    """The car (a row of a trace) after holding wheel and speed for a while."""
    row = np.zeros(10, F)
    row[FORWARD] = speed_mps
    memory = 0.0
    for _ in range(round(seconds * TICKS_PER_SECOND)):
        error = speed_mps - float(speed_of(row))
        memory += 0.01 * error
        pedal = float(np.clip(2.0 * error + memory, -1.0, 1.0))
        row = free_drive(np.array([[steer, max(pedal, 0.0), max(-pedal, 0.0)]]), start=row, **surface)[1]
    return row


def best_lateral_g(speed_mps: float, **surface: float) -> float:
    """The most a car holds steadily: its speed kept and its slip small."""
    best = 0.0
    for steer in np.arange(0.2, 0.72, 0.04):
        row = corner(float(steer), speed_mps, seconds=4.0, **surface)
        if abs(slip_deg(row)) < 10.0 and float(speed_of(row)) > 0.95 * speed_mps:
            best = max(best, lateral_g(row))
    return best


def peak_braking_g(speed_mps: float, **surface: float) -> float:
    trace = free_drive(hold(5.0, brake=1.0), forward_mps=speed_mps, **surface)
    return float(-np.diff(trace[:, FORWARD].astype(np.float64)).min()) * TICKS_PER_SECOND / GRAVITY_MPS2


def warm_up() -> None:
    """Compile the wrappers before tests are timed."""
    free_drive(hold(0.1))
    body_rates_at()
