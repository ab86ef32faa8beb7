"""Fixtures of the tests of whole runs."""

import pytest

from tiny_runs import skip_evaluation, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Returns the folder of an uninterrupted run, trained on first use."""
    found = {}

    def get(config):
        name = config.to_toml()
        if name not in found:
            found[name] = tmp_path_factory.mktemp("whole")
            with pytest.MonkeyPatch.context() as patch:
                skip_evaluation(patch)
                train(config, found[name])
        return found[name]

    return get


@pytest.fixture
def unevaluated(monkeypatch):
    skip_evaluation(monkeypatch)
