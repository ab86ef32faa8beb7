"""A run's state in plain data and arrays: what it was made from, and what is missing or not finite."""

import numpy as np
import pytest

from hotlap.errors import DivergedError
from hotlap.runs.snapshot import REPLAY_GROUP, Snapshot


def make(weight=1.0, replayed=2.0):
    replay = {"position": 3, "rewards": np.full(2, replayed)}
    learner = {"counters": {"num_timesteps": 640}}
    return Snapshot.of({"learner": learner, "policy": {"w": np.full(2, weight)}, REPLAY_GROUP: replay})


def test_its_parts_are_those_it_was_made_from_and_a_replay_buffer_without_arrays_is_left_out():
    snapshot = make()
    assert snapshot.step == 640
    assert "policy" not in snapshot.plain  # a model's arrays have nothing beside them
    parts = snapshot.parts()
    assert parts["learner"] == {"counters": {"num_timesteps": 640}}
    assert parts["policy"]["w"].tolist() == [1.0, 1.0]
    assert (parts[REPLAY_GROUP]["position"], parts[REPLAY_GROUP]["rewards"].tolist()) == (3, [2.0, 2.0])
    kept = {name: arrays for name, arrays in snapshot.groups.items() if name != REPLAY_GROUP}
    assert REPLAY_GROUP not in Snapshot(snapshot.plain, kept).parts()


def test_only_what_is_learned_must_be_finite():
    make(replayed=np.nan).refuse_not_finite()
    with pytest.raises(DivergedError, match="policy 'w' holds NaN or infinity"):
        make(weight=np.inf).refuse_not_finite()
