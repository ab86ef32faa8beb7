"""The rules of an episode and the six reward terms."""

import numpy as np

from hotlap.sim.compilation import kernel

F = np.float32
ZERO = F(0.0)

START_ON_LINE, START_RANDOM, START_ANYWHERE = 0, 1, 2

RULES_DTYPE = np.dtype(
    [
        ("progress", np.float32),
        ("speed_bonus", np.float32),
        ("wall_penalty", np.float32),
        ("off_track_penalty", np.float32),
        ("backward_penalty", np.float32),
        ("stillness_penalty", np.float32),
        ("stillness_speed_mps", np.float32),
        ("stillness_pedals", np.float32),  # how much the pedals of a standing car change its penalty
        ("penalty_speed_mps", np.float32),  # walls and edges cost slower cars nothing
        ("progress_length_m", np.float32),  # what the distance of a tick is divided by; zero: the lap's length
        ("edge_margin_m", np.float32),  # the off-track penalty begins this far inside the edge of the road
        ("spun_share", np.float32),  # of the starts anywhere
        ("max_ticks", np.int32),
        ("stillness_ticks", np.int32),
        ("num_gates", np.int32),
        ("start", np.int32),
    ],
    align=True,
)


@kernel
def reward_terms(rules, moved_fraction, speed_fraction, still_fraction, pays_for_wall, pays_for_edge):
    """The weighted terms (progress, speed, wall, off track, backward, stillness); the reward is their sum.

    `moved_fraction` is the tick's distance over the lap's length, or over the one that the rules name; `speed_fraction`
    is the speed over the top speed; `still_fraction` is zero for a car that moves.
    """
    return (
        rules.progress * moved_fraction,
        rules.speed_bonus * speed_fraction,
        rules.wall_penalty if pays_for_wall else ZERO,
        rules.off_track_penalty if pays_for_edge else ZERO,
        rules.backward_penalty if moved_fraction < ZERO else ZERO,
        rules.stillness_penalty * still_fraction if still_fraction > ZERO else ZERO,
    )
