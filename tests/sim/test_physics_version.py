"""The name of the physics fits what this source computes, and changes when physics do."""

import numpy as np
import pytest

import hotlap
from hotlap.sim.vehicle import CarParameters, car_record
from hotlap.tracks import golden_traces as golden


def test_the_physics_version_is_the_one_this_source_computes():
    assert golden.physics_version() == hotlap.PHYSICS_VERSION


@pytest.mark.parametrize(
    "changed", [{"friction": 1.4200001}, {"mass_kg": 1200.1}, {"wall_friction": 0.4501}, {"length_m": 4.41}]
)
def test_another_parameter_is_another_version(changed, monkeypatch):
    assert CarParameters()._replace(**changed) != CarParameters()
    monkeypatch.setattr(golden, "TICKS", 30)
    before = golden.physics_version()
    monkeypatch.setattr(golden, "car_record", lambda: car_record(CarParameters()._replace(**changed)))
    assert golden.physics_version() != before


def test_another_number_of_substeps_is_another_version(monkeypatch):
    monkeypatch.setattr(golden, "TICKS", 30)
    before = golden.physics_version()
    monkeypatch.setattr(golden, "car_record", lambda: car_record(num_substeps=7))
    assert golden.physics_version() != before


def test_another_motion_is_another_version_even_with_the_same_parameters(monkeypatch):
    monkeypatch.setattr(golden, "TICKS", 30)
    before = golden.physics_version()
    assert golden.physics_version() == before
    reflexes = golden.reflexes
    monkeypatch.setattr(golden, "reflexes", lambda obs, tick: np.nextafter(reflexes(obs, tick), np.float32(2.0)))
    assert golden.physics_version() != before
