import pytest

from hotlap.sweeps.objectives import Objective


@pytest.mark.parametrize(
    ("direction", "values", "median"),
    [
        ("minimize", [3.0, 1.0, 2.0], 2.0),
        ("minimize", [1.0, None, 3.0], 3.0),
        ("minimize", [1.0, None], float("inf")),
        ("maximize", [1.0, None, 3.0], 1.0),
        ("maximize", [1.0, 2.0], 1.5),
    ],
)
def test_the_value_of_a_trial_is_the_median_of_its_seeds(direction, values, median):
    assert Objective("gap_to_optimal", direction).median(values) == median
