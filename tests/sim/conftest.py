"""Makes `harness` importable whatever pytest's import mode, and compiles it before the first test's clock starts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


def pytest_collection_finish(session: pytest.Session) -> None:
    """See the hook of the same name in `tests/conftest.py`."""
    here = Path(__file__).resolve().parent
    if session.config.option.collectonly or not any(item.path.is_relative_to(here) for item in session.items):
        return
    from sim.harness import warm_up

    warm_up()
