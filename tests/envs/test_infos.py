"""The names of infos and their places in the simulator's record."""

import numpy as np

from hotlap.envs.infos import LAP_KEYS, REWARD_KEYS, SHARED_KEYS, STEP_KEYS
from hotlap.sim.world import INFO_DTYPE


def test_reward_terms_are_the_first_columns_and_lap_keys_the_last():
    names = INFO_DTYPE.names
    assert (*REWARD_KEYS, *names[len(REWARD_KEYS) : -len(LAP_KEYS)], *LAP_KEYS) == names
    assert (*STEP_KEYS, *LAP_KEYS) == names
    # `reward_term_means` reads them as a float32 view.
    assert [INFO_DTYPE.fields[name] for name in REWARD_KEYS] == [(np.dtype(np.float32), 4 * k) for k in range(6)]
    assert INFO_DTYPE.itemsize % 4 == 0


def test_speed_differs_between_step_and_reset():
    assert SHARED_KEYS == ("lap", "checkpoint", "stepCount", "tick")
