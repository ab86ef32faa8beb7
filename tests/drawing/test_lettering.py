"""Texts: their size and place."""

import numpy as np
import pytest

from hotlap.drawing.lettering import fitting_size, plain, text_mask, text_width_in


def test_widths_grow_with_text_and_size_and_bold_is_wider():
    width_in = text_width_in("lap time", 10.0)
    assert 0.4 < width_in < 0.7
    assert text_width_in("lap time", 20.0) == pytest.approx(2.0 * width_in)
    assert text_width_in("lap time lap time", 10.0) > 2.0 * width_in
    assert text_width_in("lap time", 10.0, is_bold=True) > width_in


def test_a_text_too_long_is_set_smaller_so_that_it_just_fits():
    assert fitting_size("short", 12.0, 5.0) == 12.0
    size_pt = fitting_size("a name that is far too long", 12.0, 1.0)
    assert text_width_in("a name that is far too long", size_pt) == pytest.approx(1.0)
    assert fitting_size("", 12.0, 1.0) == 12.0
    assert fitting_size("x", 12.0, -1.0) > 0.0


def test_letters_stand_on_the_baseline():
    mask, _, top = text_mask("H", 100.0)
    assert mask.shape[0] + top == pytest.approx(0, abs=1)
    assert -top == pytest.approx(73, abs=2)  # a capital letter of this font
    below, _, below_top = text_mask("p", 100.0)
    assert below.shape[0] + below_top > 15


def test_names_of_many_languages_have_letters_and_no_line_is_broken():
    box = text_mask("\ue000", 40.0)[0]
    for letter in "äßéłşžđøñЖДяΩθŐİệ·…−°²×→":
        mask = text_mask(letter, 40.0)[0]
        assert mask.shape != box.shape or not np.array_equal(mask, box), letter
    assert plain("a\nb\tc\x00") == "a b c "
    assert text_mask("a\nb", 20.0)[0].shape == text_mask("a b", 20.0)[0].shape
