"""The rules of an episode and the six reward terms."""

import numpy as np

from hotlap.sim.compilation import kernel

F = np.float32
ZERO = F(0.0)

START_ON_LINE, START_RANDOM = 0, 1

RULES_DTYPE = np.dtype(
    [
        ("progress", np.float32),
        ("speed_bonus", np.float32),
        ("wall_penalty", np.float32),
        ("off_track_penalty", np.float32),
        ("backward_penalty", np.float32),
        ("stillness_penalty", np.float32),
        ("stillness_speed_mps", np.float32),
        ("progress_length_m", np.float32),  # what the distance of a tick is divided by; zero: the lap's length
        ("progress_time_s", np.float32),  # if not zero, what the guide's time for that distance is divided by instead
        ("penalty_min_speed_mps", np.float32),  # walls and edges cost slower cars nothing
        ("max_ticks", np.int32),
        ("stillness_timeout_ticks", np.int32),
        ("start", np.int32),
        ("spun_fraction", np.float32),  # of the random starts
        ("num_gates", np.int32),
        # How cars differ (`domain.py`). What a car draws for an episode lies between low and high; factors of the car.
        ("grip_low", np.float32),
        ("grip_high", np.float32),
        ("mass_low", np.float32),
        ("mass_high", np.float32),
        ("power_low", np.float32),
        ("power_high", np.float32),
        ("delay_low_ticks", np.int32),
        ("delay_high_ticks", np.int32),
        ("observation_noise", np.float32),  # standard deviation, in the units of the columns
    ],
    align=True,
)


@kernel
def reward_terms(rules, moved_fraction, speed_fraction, is_still, pays_for_wall, pays_for_edge):
    """The weighted terms (progress, speed, wall, off track, backward, stillness); the reward is their sum.

    `moved_fraction` is the tick's distance over the unit of progress (`world.progress_unit`); `speed_fraction` is the
    speed over the top speed.
    """
    return (
        rules.progress * moved_fraction,
        rules.speed_bonus * speed_fraction,
        rules.wall_penalty if pays_for_wall else ZERO,
        rules.off_track_penalty if pays_for_edge else ZERO,
        rules.backward_penalty if moved_fraction < ZERO else ZERO,
        rules.stillness_penalty if is_still else ZERO,
    )
