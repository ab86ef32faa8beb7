"""Known laps as fixtures, and coarse pictures."""

import pytest

from hotlap.reports.plots import chart
from reports.known_laps import known_comparison, known_reference, known_track


@pytest.fixture
def track():
    return known_track()


@pytest.fixture
def reference():
    return known_reference()


@pytest.fixture
def comparison():
    return known_comparison()


@pytest.fixture(autouse=True)
def coarse_pictures(monkeypatch):
    """Fewer pixels are drawn faster."""
    monkeypatch.setattr(chart, "DPI", 80)
