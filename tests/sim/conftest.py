"""Compiles the test kernels before tests are timed."""

from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)  # the simulator itself comes first
def pytest_collection_finish(session: pytest.Session) -> None:
    """See the hook of the same name in `tests/conftest.py`."""
    here = Path(__file__).resolve().parent
    if session.config.option.collectonly or not any(item.path.is_relative_to(here) for item in session.items):
        return
    from sim.worlds import warm_up

    warm_up()
