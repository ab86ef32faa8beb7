"""The physics version is what this source computes, and changes when the physics do."""

import pytest

import hotlap
from hotlap.sim.vehicle import CarParameters, car_record
from hotlap.tracks import golden_traces as golden


def test_the_physics_version_is_the_one_this_source_computes():
    assert golden.physics_version() == hotlap.PHYSICS_VERSION


OTHERS = {"friction": 1.4200001, "mass_kg": 1200.1, "wall_friction": 0.4501, "length_m": 4.41}
RECORDS = [car_record(CarParameters()._replace(**{name: value})) for name, value in OTHERS.items()]


@pytest.mark.parametrize("other", [*RECORDS, car_record(num_substeps=7)], ids=[*OTHERS, "substeps"])
def test_another_parameter_or_number_of_substeps_is_another_version(other, monkeypatch):
    monkeypatch.setattr(golden, "TICKS", 30)
    before = golden.physics_version()
    monkeypatch.setattr(golden, "car_record", lambda: other)
    assert golden.physics_version() != before
