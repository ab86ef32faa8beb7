"""benchmarks/gpu.py runs from end to end at a small size, without a GPU."""

import importlib.util
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
def test_it_prints_every_table(program, capsys):
    assert program.main(["--device", "cpu", "--small"]) == 0
    out = capsys.readouterr().out
    assert "256 cars on cpu:" in out
    assert "| 64 | 16-16 | 2 | 4 |" in out
    assert "| 1 | 0.0 %" in out


def test_bad_arguments_are_refused_in_one_line(program, capsys):
    assert program.main(["flight"]) == 2
    assert capsys.readouterr().err == "gpu: 'flight' is no part of it. Parts: engine, speed, learning.\n"
    assert program.main(["--device", "tpu"]) == 2
    assert "--device must be cpu, cuda or auto, got 'tpu'" in capsys.readouterr().err
