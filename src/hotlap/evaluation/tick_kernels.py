"""What is counted on every tick of a drive that is not compiled as a whole: for a few cars NumPy takes much longer."""

import numpy as np

from hotlap.sim.compilation import entry_point
from hotlap.sim.world import INFO_DTYPE, STATE_DTYPE


@entry_point()
def count_tick(infos, rewards, running, returns, touched):
    """Add the rewards of the running cars; the number of contacts that began, and the number of laps that ended."""
    num_contacts, num_laps = 0, 0
    for i in range(running.shape[0]):
        touches = running[i] and infos[i].wallContact
        if running[i]:
            returns[i] += np.float64(rewards[i])
            lap_time_s = infos[i].lapTime
            num_laps += lap_time_s == lap_time_s  # it is NaN on all other ticks
        num_contacts += touches and not touched[i]
        touched[i] = touches
    return num_contacts, num_laps


@entry_point()
def find_stuck(states, progress, tick, max_ticks, within_m, stuck):
    """Fill which cars have not got `within_m` further for more than `max_ticks`; backwards counts as negative."""
    for i in range(states.shape[0]):
        car, arc_m = progress[i], np.float64(states[i].arc_m)
        half_m = 0.5 * car.lap_m
        car.distance_m += (arc_m - car.arc_m + half_m) % car.lap_m - half_m
        car.arc_m = arc_m
        if car.distance_m >= car.mark_m + within_m:
            car.mark_m, car.mark_tick = car.distance_m, tick
        stuck[i] = tick - car.mark_tick > max_ticks


PROGRESS_DTYPE = np.dtype(
    [
        ("lap_m", np.float64),
        ("arc_m", np.float64),
        ("distance_m", np.float64),
        ("mark_m", np.float64),  # where the car was when it had last got further
        ("mark_tick", np.int64),
    ]
)


def warm_up() -> None:
    """Compile all, or load it from the disk cache, before the first tick."""
    flags, states, progress = np.zeros(0, np.bool_), np.zeros(0, STATE_DTYPE), np.zeros(0, PROGRESS_DTYPE)
    count_tick(np.zeros(0, INFO_DTYPE), np.zeros(0, np.float32), flags, np.zeros(0), flags.copy())
    find_stuck(states, progress, 0, 0, 0.0, flags)
