"""The race version is what this source computes, and changes when races do."""

import numpy as np
import pytest

import hotlap
from hotlap.sim.race import FINISHED, RETIRED
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.tracks import golden_races as golden


class WatchedEngine(CpuRaceEngine):
    """Counts what happens in the races."""

    num_contacts = num_finished = num_retired = num_ended = num_cut_off = 0

    def step(self, actions, races, **options):
        bad_car = super().step(actions, races, **options)
        batch, field = races.batch, races.field
        self.num_contacts += np.count_nonzero(field.entrants["touched"])
        self.num_ended += bool(batch.terminated[0])
        self.num_cut_off += bool(batch.truncated[0])
        self.num_finished += np.count_nonzero(field.entrants["status"] == FINISHED)
        self.num_retired += np.count_nonzero(field.entrants["status"] == RETIRED)
        return bad_car


def test_the_race_version_is_the_one_this_source_computes():
    engine = WatchedEngine()
    assert golden.race_version(engine) == hotlap.RACE_VERSION
    assert engine.num_contacts > 500
    assert min(engine.num_finished, engine.num_retired, engine.num_ended, engine.num_cut_off) > 0


@pytest.mark.parametrize("column", ["x_m", "left_mps"])
def test_another_bit_of_one_car_is_another_version(column, monkeypatch):
    race = golden.GOLDEN_RACES[0]._replace(num_steps=30)
    monkeypatch.setattr(golden, "GOLDEN_RACES", (race,))

    class NudgedEngine(CpuRaceEngine):
        def reset(self, mask, races):
            super().reset(mask, races)
            values = races.batch.states[column]
            values[1] = np.nextafter(values[1], np.float32(1e9))

    before = golden.race_version()
    assert golden.race_version() == before
    assert golden.race_version(NudgedEngine()) != before
