"""The example clients drive a lap through a real bridge, and both drive the same lap.

With an exported model, it is the lap that `hotlap evaluate` drives, to the last bit.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import forked_python
from benchmark.small_entries import small_protocol
from cli.conftest import hotlap
from hotlap.benchmark.verification import verify_entry
from tiny_runs import RACER

__all__ = ["hotlap"]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PYTHON = [sys.executable, str(EXAMPLES / "python" / "drive.py")]
JAVASCRIPT = EXAMPLES / "javascript" / "drive.mjs"
PYTHON_MODEL = [sys.executable, str(EXAMPLES / "python" / "drive_model.py")]
JAVASCRIPT_MODEL = EXAMPLES / "javascript" / "drive_model.mjs"

TIMEOUT_S = 50
# As `python -W ignore SCRIPT …`, for a forked process.
WITHOUT_WARNINGS = (
    "import runpy, sys, warnings; warnings.simplefilter('ignore'); del sys.argv[0];"
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def missing(what: str, remedy: str) -> None:
    """Skip the test, with a word on what to install; in CI nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing: CI must run the JavaScript examples")
    pytest.skip(f"{what} is missing: {remedy}")


def node(script: Path = JAVASCRIPT) -> list[str]:
    """The command that runs a JavaScript example."""
    program = shutil.which("node")
    if program is None:
        missing("Node.js", "install it to run the JavaScript examples")
    if script == JAVASCRIPT_MODEL and not (script.parent / "node_modules" / "onnxruntime-node").is_dir():
        missing("onnxruntime-node", "npm ci --prefix examples/javascript --ignore-scripts")
    return [program, str(script)]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)


def run_forked(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python example in a process that has imported torch already."""
    command = [sys.executable, str(EXAMPLES / "python" / script), *arguments]
    return forked_python.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)


def lap_line(command: list[str], url: str) -> str:
    answer = run([*command, url])
    assert (answer.returncode, answer.stderr) == (0, "")
    first, last = answer.stdout.splitlines()
    assert re.fullmatch(r"physics \S+, \d+ tracks", first)
    return last


def test_both_examples_drive_the_same_lap(bridge_server):
    line = lap_line(PYTHON, bridge_server.url)
    assert 50.0 < float(re.fullmatch(r"lap time (\S+) s, return \S+", line)[1]) < 80.0
    assert lap_line(node(), bridge_server.url) == line


# --- a trained model ---


def model_laps(command: list[str], model: Path, url: str) -> dict[str, float]:
    """The lap times that an example prints."""
    answer = run([*command, str(model), url])
    assert (answer.returncode, answer.stderr) == (0, "")
    found = re.fullmatch(r"track-01: standing lap (\S+) s, flying lap (\S+) s\n", answer.stdout)
    return {"standing_lap_time_sec": float(found[1]), "best_lap_time_sec": float(found[2])}


def evaluated_laps(hotlap, driver: str) -> dict[str, float]:
    """The lap times that `hotlap evaluate` reports."""
    figures = hotlap("evaluate", driver, "--track", "track-01", "--start", "line", "--episodes", 1, "--json").figures
    assert figures["completion_rate"] == 1.0
    return {name: figures[name] for name in ("standing_lap_time_sec", "best_lap_time_sec")}


# One sees rays and the other the road; each is driven by one of the examples, which drive alike.
def test_an_exported_model_drives_the_evaluated_lap_in_python(hotlap, bridge_server, tmp_path):
    assert hotlap("export", "generalist", "--format", "onnx", "--out", tmp_path / "driver.onnx").code == 0
    laps = model_laps(PYTHON_MODEL, tmp_path / "driver.onnx", bridge_server.url)
    assert laps == evaluated_laps(hotlap, "generalist")
    assert laps["best_lap_time_sec"] < laps["standing_lap_time_sec"] < 40.0


def test_an_exported_model_drives_the_evaluated_lap_in_javascript(hotlap, bridge_server, tmp_path):
    assert hotlap("export", "champion", "--format", "onnx", "--out", tmp_path / "driver.onnx").code == 0
    laps = model_laps(node(JAVASCRIPT_MODEL), tmp_path / "driver.onnx", bridge_server.url)
    assert laps == evaluated_laps(hotlap, "champion")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_first_model_of_the_default_recipe_drives_its_evaluated_lap(hotlap, bridge_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("--env", RACER, "--recipe", "racer-ppo", "--steps", 2_500_000, "--run-name", "first", "-q")
    assert hotlap("train", *arguments).code == 0
    assert hotlap("export", "first", "--format", "onnx", "--out", tmp_path / "driver.onnx").code == 0
    laps = evaluated_laps(hotlap, "first")
    assert model_laps(PYTHON_MODEL, tmp_path / "driver.onnx", bridge_server.url) == laps
    assert model_laps(node(JAVASCRIPT_MODEL), tmp_path / "driver.onnx", bridge_server.url) == laps


# --- the benchmark ---


def test_a_program_enters_the_benchmark_over_the_bridge(hotlap, bridge_server, tmp_path, monkeypatch):
    small = small_protocol(num_scenarios=0)
    [starts] = small.laps["built-in"]
    protocol = replace(small, laps={"built-in": (replace(starts, seeds=starts.seeds[:1]),)})
    monkeypatch.setattr("hotlap.benchmark.protocol.load_protocol", lambda: protocol)
    (tmp_path / "protocol.json").write_text(hotlap("benchmark", "protocol").out)
    files = [str(tmp_path / name) for name in ("protocol.json", "entry.zip")]
    answer = run([sys.executable, str(EXAMPLES / "python" / "benchmark_entry.py"), *files, bridge_server.url])
    assert (answer.returncode, answer.stderr) == (0, "")
    found = verify_entry(tmp_path / "entry.zip", protocol)
    assert (found.name, found.parts, found.num_laps) == ("room to drive", ("built-in",), 1)
    assert 50.0 < found.laps["track-01"].times_s[0] < 80.0


# --- refusals and what they need ---


def test_the_javascript_example_reports_a_missing_bridge():
    answer = run([*node(), "ws://127.0.0.1:1"])
    assert answer.returncode == 1
    assert "start one with hotlap bridge" in answer.stderr


def test_the_python_example_does_not_import_hotlap_and_the_javascript_example_needs_no_packages():
    text = (EXAMPLES / "python" / "drive.py").read_text(encoding="utf-8")
    assert re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) == ["json", "sys", "websocket"]

    text = Path(PYTHON_MODEL[1]).read_text(encoding="utf-8")
    needed = ["json", "sys", "numpy", "onnxruntime", "drive"]
    assert re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) == needed

    text = (EXAMPLES / "python" / "benchmark_entry.py").read_text(encoding="utf-8")
    needed = ["json", "struct", "sys", "zipfile", "pathlib", "drive"]
    assert re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) == needed

    imported = re.findall(r"^import .* from '(.*)';", JAVASCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert imported
    assert all(name.startswith("node:") for name in imported)


def test_the_learner_in_one_file_learns_and_says_how_well():
    answer = run_forked("tensor_ppo.py", "--minutes", "0.02")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert re.search(r"^\d+ of 100 random starts drove a lap, \d+ of them cleanly$", answer.stdout, re.MULTILINE)
    assert len((EXAMPLES / "python" / "tensor_ppo.py").read_text(encoding="utf-8").splitlines()) <= 250


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rllib_learns_on_the_environment():
    if any(importlib.util.find_spec(name) is None for name in ("ray", "pyarrow", "lz4")):
        pytest.skip('RLlib is missing: pip install "ray[rllib]", in an environment of its own')
    script = EXAMPLES / "python" / "rllib_ppo.py"
    arguments = ["--iterations", "2", "--steps", "256", "--cars", "2"]
    command = [sys.executable, "-W", "ignore", str(script), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"^iteration 2: return -?\d+\.\d$", answer.stdout, re.MULTILINE)


def test_the_clone_learns_from_a_dataset_and_says_how_well(hotlap, tmp_path, monkeypatch):
    pytest.importorskip("minari", reason='Minari is missing: pip install "hotlap[data]"')
    monkeypatch.chdir(tmp_path)
    assert hotlap("dataset", "record", "champion", "--episodes", 1, "--id", "few-v0").code == 0
    script = EXAMPLES / "python" / "behaviour_cloning.py"
    arguments = ["datasets/few-v0", "--passes", "2", "--starts", "2", "--max-lap-s", "1"]
    command = [sys.executable, "-c", WITHOUT_WARNINGS, str(script), *arguments]
    answer = forked_python.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    assert re.fullmatch(r"1 episodes, \d+ decisions of 4 ticks on track-01", lines[0])
    errors = [float(re.fullmatch(r"pass +\d  error (\S+)", line)[1]) for line in lines[1:3]]
    assert errors[1] < errors[0]
    assert lines[3] == "from 2 random starts: 0 flying laps, 0 of them clean"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_clone_of_the_champion_laps_within_five_percent(hotlap, tmp_path, monkeypatch, record_property):
    pytest.importorskip("minari", reason='Minari is missing: pip install "hotlap[data]"')
    monkeypatch.chdir(tmp_path)
    assert hotlap("dataset", "record", "champion", "--episodes", 100, "--noise", 0.1, "--id", "noisy-v0").code == 0
    script = str(EXAMPLES / "python" / "behaviour_cloning.py")
    command = [sys.executable, "-W", "ignore", script, "datasets/noisy-v0", "--starts", "200"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=1100)
    [line] = re.findall(r"^from 200 random starts: .*$", answer.stdout, re.MULTILINE)
    record_property("figure", f"behaviour cloning, {line}")
    clean, median = re.search(r"(\d+) of them clean; gap to the optimum: median (\S+) %", line).groups()
    assert int(clean) >= 190
    assert float(median) < 5.0


RACE = ["--cars", "4", "--seed", "2"]


@pytest.mark.parametrize(
    ("script", "arguments", "last_line"),
    [
        ("race_sb3.py", ["--steps", "2048", "--races", "4"], r"2,048 steps; in five seconds a car drives -?\d+ m"),
        ("race_cleanrl.py", ["--steps", "2048", "--races", "4"], r"in five seconds a car drives -?\d+ m"),
        ("race_torchrl.py", ["--rollouts", "1"], r"rollout 1: in eight seconds a car drives -?\d+ m"),
    ],
)
def test_plain_learners_learn_in_races(script, arguments, last_line):
    if script == "race_torchrl.py" and importlib.util.find_spec("torchrl") is None:
        pytest.skip("TorchRL is missing: pip install torchrl")
    answer = run_forked(script, *arguments, *RACE)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert re.fullmatch(last_line, answer.stdout.splitlines()[-1])
    assert len((EXAMPLES / "python" / script).read_text(encoding="utf-8").splitlines()) < 200
