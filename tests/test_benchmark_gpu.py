"""benchmarks/gpu.py runs from end to end at a small size, without a GPU."""

import importlib.util
import json
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "benchmarks" / "gpu.py"


@pytest.fixture
def program():
    spec = importlib.util.spec_from_file_location("gpu_benchmark", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(180)
def test_it_prints_every_table_and_writes_the_figures(program, capsys, tmp_path):
    assert program.main(["--device", "cpu", "--small", "--json", str(tmp_path / "gpu.json")]) == 0
    out = capsys.readouterr().out
    assert "256 cars on cpu:" in out
    assert "| 64 | 16-16 | 2 | 4 |" in out
    assert "| 1 | 0.0 %" in out
    written = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    assert list(written) == ["origin", "device", "engine", "speed", "learning"]
    assert f"256 cars on cpu: {written['engine'][0]['steps_per_s'] / 1e6:.1f} million steps/s" in out
    assert f"| {written['speed'][0]['decisions_per_s'] / 1e6:.1f} |" in out
    assert written["learning"][0]["checks"][0]["eval/completion_rate"] == 0.0


def test_bad_arguments_are_refused_in_one_line(program, capsys):
    assert program.main(["flight"]) == 2
    assert capsys.readouterr().err == "gpu: 'flight' is no part of it. Parts: engine, speed, learning.\n"
    assert program.main(["--device", "tpu"]) == 2
    assert "--device must be cpu, cuda or auto, got 'tpu'" in capsys.readouterr().err
