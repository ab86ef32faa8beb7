"""Compiled code is cached between processes and invalidated by any edit of the source."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import hotlap
from hotlap.sim import compilation as compiling

PACKAGE = Path(hotlap.__file__).parent

# Stands in for `batch_cpu.py`: an entry point in an unedited file that calls a kernel in an edited one.
PROBE = """
import numpy as np
from hotlap.sim.compilation import cache_folder, entry_point, source_digest
from hotlap.sim.tyres import tyre_force

@entry_point()
def push(out):
    out[0], out[1] = tyre_force(np.float32(100.0), np.float32(0.1), np.float32(1000.0), np.float32(10.0))

out = np.zeros(2, np.float32)
push(out)
print(source_digest(), cache_folder(), sum(push.stats.cache_hits.values()), out[1])
"""
# `batch_cpu.py` itself: a second of driving round a circle.
STEP_PROBE = """
import numpy as np
from hotlap.sim import batch_cpu
from hotlap.sim.compilation import cache_folder, source_digest
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.ribbon import pack_ribbons
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import car_record

turn, radius_m, even = np.arange(600) * 2 * np.pi / 600, 600 / 2 / np.pi, np.ones(600)
x, y, road, wall = np.cos(turn), np.sin(turn), 6 * even, 12 * even
nodes = RibbonNodes(1.0, radius_m * x, radius_m * y, -y, x, even / radius_m, road, road, wall, wall)
world = (pack_ribbons([nodes], [15 * even]), car_record(), np.ones(1, RULES_DTYPE))
batch = make_batch(1)
batch_cpu.reset_cars(np.ones(1, bool), *world, batch)
for _ in range(60):
    batch_cpu.step_serial(np.array([[-0.5, 0.8, 0.0]], np.float32), *world, batch, False, 1)
hits = sum(batch_cpu.step_serial.stats.cache_hits.values())
print(source_digest(), cache_folder(), hits, batch.states["yaw_radps"][0])
"""


class Answer:
    """The probe's output."""

    def __init__(self, line: str) -> None:
        self.digest, self.folder, hits, result = line.split()
        self.hits, self.result = int(hits), float(result)


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of the simulator that may be edited, beside a program that uses it."""
    package = tmp_path / "hotlap"
    shutil.copytree(PACKAGE / "sim", package / "sim", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text("")
    (tmp_path / "probe.py").write_text(PROBE)
    return tmp_path


def run_probe(folder: Path, cache: Path) -> Answer:
    environ = {**os.environ, "PYTHONPATH": str(folder), "HOTLAP_CACHE": str(cache)}
    answer = subprocess.run(
        [sys.executable, str(folder / "probe.py")], capture_output=True, text=True, check=True, env=environ
    )
    return Answer(answer.stdout)


@pytest.mark.parametrize(
    "program",
    [PROBE, pytest.param(STEP_PROBE, marks=[pytest.mark.slow, pytest.mark.timeout(300)])],
    ids=["tyre", "step"],
)
def test_an_edit_in_one_file_is_seen_by_an_entry_point_in_another(copy, tmp_path, program):
    (copy / "probe.py").write_text(program)
    cache = tmp_path / "cache"
    first, again = run_probe(copy, cache), run_probe(copy, cache)
    assert (first.hits, again.hits) == (0, 1)
    assert first.result == again.result
    path = copy / "hotlap" / "sim" / "tyres.py"
    before = path.read_text()
    after = before.replace("lateral_n = -grip_n *", "lateral_n = F(-0.8) * grip_n *")
    assert after != before
    path.write_text(after)
    edited = run_probe(copy, cache)
    assert edited.hits == 0
    assert edited.result != first.result
    if program is PROBE:
        assert edited.result == pytest.approx(0.8 * first.result, rel=1e-6)
    assert edited.digest != first.digest
    assert edited.folder != first.folder


def test_where_nothing_can_be_written_the_simulator_still_runs(copy, tmp_path):
    in_the_way = tmp_path / "a-file"
    in_the_way.write_text("not a folder")
    answer = run_probe(copy, in_the_way)
    assert answer.folder == "None"
    assert answer.result < 0.0


def test_compiling_the_engine_is_said_once_and_other_functions_are_not_mentioned(caplog):
    def begin(module):
        function = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
        listener.on_start(SimpleNamespace(data={"dispatcher": function}))
        return [record.getMessage() for record in caplog.records]

    listener = compiling._FirstCompilation()
    assert begin("hotlap.sim.tyres") == begin("of.somebody.else") == []
    line = "compiling the simulator for this machine: this takes up to a minute, and happens once"
    assert begin("hotlap.sim.batch_cpu") == [line]
    assert begin("hotlap.sim.race_cpu") == [line]


def test_the_digest_is_of_every_file_of_the_simulator(copy, monkeypatch):
    sim = copy / "hotlap" / "sim"
    monkeypatch.setattr(compiling, "__file__", str(sim / "compilation.py"))
    digest = compiling.source_digest.__wrapped__
    before = digest()
    assert before == compiling.source_digest()
    for path in sorted(sim.glob("*.py")):
        text = path.read_bytes()
        path.write_bytes(text + b"\n")
        assert digest() != before, path.name
        path.write_bytes(text)
    (sim / "further.py").write_text("")
    assert digest() != before


def test_only_the_newest_caches_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLAP_CACHE", str(tmp_path))
    root = compiling.cache_root()
    assert root == tmp_path / "compiled"
    for age in range(8):
        folder = root / f"old-{age}"
        folder.mkdir(parents=True)
        (folder / "code.nbi").write_text("")
        os.utime(folder, (1e9 - age, 1e9 - age))
    folder = compiling.cache_folder.__wrapped__()
    assert folder == root / compiling.source_digest()
    kept = {path.name for path in root.iterdir()}
    assert kept == {folder.name, *(f"old-{age}" for age in range(compiling.MAX_KEPT_CACHES - 1))}


@pytest.mark.parametrize(("platform", "variable"), [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")])
def test_the_default_cache_is_in_the_platforms_cache_folder(platform, variable, tmp_path, monkeypatch):
    monkeypatch.delenv("HOTLAP_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert compiling.cache_root() == tmp_path / "hotlap" / "compiled"


def test_other_users_of_numba_keep_their_own_cache_folder():
    from numba import config

    before = config.CACHE_DIR

    @compiling.entry_point()
    def nothing():
        return 0

    assert before == config.CACHE_DIR
