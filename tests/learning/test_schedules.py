import pytest

from hotlap.learning.schedules import LR_FACTOR, adapt_lr_scale, linear_decay


def test_a_linear_decay_falls_from_one_to_its_final_fraction():
    assert [linear_decay(0.2, remaining) for remaining in (1.0, 0.5, 0.0)] == pytest.approx([1.0, 0.6, 0.2])


@pytest.mark.parametrize(
    ("scale", "kl", "expected"),
    [
        (1.0, 0.021, 1.0 / LR_FACTOR),
        (1.0, 0.02, 1.0),
        (1.0, 0.005, 1.0),
        (1.0, 0.004, LR_FACTOR),
        (0.021, 1.0, 0.02),
        (19.0, 0.0, 20.0),
    ],
)
def test_the_rate_changes_within_bounds_where_the_kl_is_beyond_half_or_twice_the_desired_one(scale, kl, expected):
    assert adapt_lr_scale(scale, kl, desired_kl=0.01) == expected
