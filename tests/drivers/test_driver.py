"""Drivers made of a name or of a model."""

import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.driver import make_driver
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import DriverError
from hotlap.models.model_file import read_model


def test_without_a_model_the_built_in_driver_is_made():
    assert isinstance(make_driver("casual"), CasualDriver)
    with pytest.raises(DriverError, match=r"^driver 'champion' is not built in\. .*casual or optimal"):
        make_driver("champion")


def test_the_driver_of_a_model_is_named_after_its_file_unless_it_is_a_shipped_one(racer):
    model = read_model(racer.path)
    for name, expected in (("mine", "ppo_seed42_model"), ("champion", "champion"), ("generalist", "generalist")):
        driver = make_driver(name, model)
        assert isinstance(driver, PackedDriver)
        assert driver.name == expected
