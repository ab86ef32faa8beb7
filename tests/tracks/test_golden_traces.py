"""The golden traces: the same digest every time, another when anything changes."""

import subprocess
import sys

import numpy as np
import pytest

from hotlap.sim.batch_cpu import CpuEngine
from hotlap.tracks import golden_traces as golden
from hotlap.tracks.golden_traces import golden_digest, physics_version, scripted_actions


@pytest.mark.usefixtures("compiled")
def test_the_smallest_change_of_a_parameter_or_an_action_gives_another_digest(monkeypatch):
    monkeypatch.setattr(golden, "TICKS", 60)
    before = golden_digest(CpuEngine())
    assert golden_digest(CpuEngine()) == before

    def nudged(obs, tick):
        actions = scripted_actions(obs, tick)
        if tick == 3:
            actions[5, 1] = 0.5 - actions[5, 1] * 0.01
        return actions

    with monkeypatch.context() as patch:
        patch.setattr(golden, "scripted_actions", nudged)
        assert golden_digest(CpuEngine()) != before
    record = golden.car_record()
    record["drag_per_m"] = np.nextafter(record["drag_per_m"], np.float32(1.0))
    monkeypatch.setattr(golden, "car_record", lambda: record)
    assert golden_digest(CpuEngine()) != before


def test_scripted_actions_are_float32_and_sometimes_erratic():
    obs = np.full((22, 14), 0.2, np.float32)
    actions = np.stack([scripted_actions(obs, tick) for tick in range(0, 500, 40)])
    assert actions.dtype == np.float32
    assert (np.abs(actions[..., 0]) > 1.0).any()
    calm = np.abs(actions[..., 0]) <= 1.0
    assert calm.mean() > 0.8


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_module_prints_the_version():
    command = [sys.executable, "-m", "hotlap.tracks.golden_traces"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == physics_version() + "\n"
