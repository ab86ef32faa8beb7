"""Drivers by name."""

import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.driver import make_driver
from hotlap.errors import DriverError


def test_the_casual_driver_has_a_name():
    driver = make_driver("casual")
    assert isinstance(driver, CasualDriver)
    assert driver.name == "casual"


@pytest.mark.parametrize("name", ["", "Casual", "verstappen", "../casual", "x" * 500])
def test_an_unknown_name_is_refused_with_those_there_are(name):
    with pytest.raises(DriverError, match=r"is not known\. .*casual") as caught:
        make_driver(name)
    assert len(str(caught.value)) < 200
