import pytest

from benchmark.small_entries import small_protocol
from hotlap.benchmark.entrants import find_entrant
from hotlap.benchmark.protocol import BUILT_IN, OVERTAKING
from hotlap.errors import ConfigError, DriverError
from hotlap.models.shipped_models import find_shipped


def test_a_driver_without_weights_brings_no_model():
    entrant = find_entrant("casual", small_protocol())
    assert (entrant.name, entrant.parts, entrant.model) == ("casual", (BUILT_IN, OVERTAKING), None)
    assert entrant.driver_on("track-01").name == "casual"


def test_one_model_for_all_tracks_is_brought_and_the_champions_are_not():
    generalist = find_entrant("generalist", small_protocol())
    assert generalist.model == find_shipped("generalist", "track-01").read_bytes()
    assert find_entrant("champion", small_protocol()).model is None


def test_one_part_is_driven_where_it_is_asked_for():
    assert find_entrant("casual", small_protocol(), OVERTAKING).parts == (OVERTAKING,)


def test_what_cannot_enter_is_refused():
    with pytest.raises(DriverError, match="driver optimal: its laps are in every table"):
        find_entrant("optimal", small_protocol())
    with pytest.raises(ConfigError, match="part"):
        find_entrant("casual", small_protocol(), "unknown")
