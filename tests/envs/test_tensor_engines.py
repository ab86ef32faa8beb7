"""Columns of records as views of words."""

import numpy as np
import torch

from hotlap.envs.tensor_engines import _words_of, columns_of
from hotlap.sim.world import STATE_DTYPE


def test_columns_are_views_of_the_records():
    states = np.zeros(4, STATE_DTYPE)
    states["x_m"], states["lap"] = [1.5, 2.5, 3.5, 4.5], [1, 2, 3, 4]
    columns = columns_of(_words_of(states), STATE_DTYPE, ("x_m", "lap"))
    assert columns["x_m"].dtype == torch.float32
    assert columns["x_m"].tolist() == [1.5, 2.5, 3.5, 4.5]
    assert columns["lap"].tolist() == [1, 2, 3, 4]
    columns["x_m"][2] = -1.0
    assert states["x_m"].tolist() == [1.5, 2.5, -1.0, 4.5]
