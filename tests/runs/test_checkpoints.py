"""The names of checkpoints in a folder, and their settings in words."""

import pytest

from hotlap.errors import ConfigError
from hotlap.runs.checkpoints import CheckpointConfig, checkpoint_path, checkpoint_steps


def test_steps_are_in_order_and_other_files_are_not_checkpoints(tmp_path):
    for step in (1000, 20, 0):
        checkpoint_path(tmp_path, step).touch()
    others = (
        "checkpoint_007.zip",
        "checkpoint_-1.zip",
        "checkpoint_1.zip.partial",
        "xcheckpoint_1.zip",
        "checkpoint_٣.zip",
    )
    for name in others:
        (tmp_path / name).touch()
    assert checkpoint_steps(tmp_path) == [0, 20, 1000]
    assert checkpoint_steps(tmp_path / "missing") == []


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (CheckpointConfig(), "checkpoints: every 10,000 steps, keeping all"),
        (CheckpointConfig(500, 3), "checkpoints: every 500 steps, keeping the newest 3"),
        (CheckpointConfig(0, 3), "checkpoints: only when stopped"),
    ],
)
def test_the_settings_are_described(config, text):
    assert config.describe() == text


@pytest.mark.parametrize("name", ["interval", "keep"])
def test_negative_numbers_are_refused(name):
    with pytest.raises(ConfigError, match=name):
        CheckpointConfig(**{name: -1})
