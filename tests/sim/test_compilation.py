"""Compiled code is kept between processes, and never outlives the source it came from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hotlap
from hotlap.sim import compilation as compiling

PACKAGE = Path(hotlap.__file__).parent

# Stands for `batch_cpu.py`: an entry point in a file that is never edited, calling a kernel in one that is.
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


class Answer:
    """What the probe said."""

    def __init__(self, line: str) -> None:
        self.digest, self.folder, hits, force = line.split()
        self.hits, self.force_n = int(hits), float(force)


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


def edit_tyres(folder: Path) -> None:
    """Make every tyre a fifth weaker sideways."""
    path = folder / "hotlap" / "sim" / "tyres.py"
    before = path.read_text()
    after = before.replace("lateral_n = -grip_n *", "lateral_n = F(-0.8) * grip_n *")
    assert after != before
    path.write_text(after)


def test_an_edit_in_one_file_is_seen_by_an_entry_point_in_another(copy, tmp_path):
    cache = tmp_path / "cache"
    first, again = run_probe(copy, cache), run_probe(copy, cache)
    assert (first.hits, again.hits) == (0, 1)
    assert first.force_n == again.force_n
    edit_tyres(copy)
    edited = run_probe(copy, cache)
    assert edited.hits == 0
    assert edited.force_n == pytest.approx(0.8 * first.force_n, rel=1e-6)
    assert edited.digest != first.digest
    assert edited.folder != first.folder


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_edit_of_the_tyres_changes_a_whole_step_though_the_entry_points_file_is_untouched(copy, tmp_path):
    (copy / "probe.py").write_text(
        "import sys\n"
        f"sys.path += [{str(Path(__file__).parent)!r}]\n"
        "import numpy as np\n"
        "from hotlap.sim import batch_cpu\n"
        "from hotlap.sim.step import make_batch\n"
        "from hotlap.sim.ribbon import pack_ribbons, RibbonNodes\n"
        "from hotlap.sim.rewards import RULES_DTYPE\n"
        "from hotlap.sim.vehicle import car_record\n"
        "turn = np.arange(600) * 2 * np.pi / 600\n"
        "r, even = 600 / 2 / np.pi, np.ones(600)\n"
        "nodes = RibbonNodes(1.0, r * np.cos(turn), r * np.sin(turn), -np.sin(turn), np.cos(turn), even / r,\n"
        "                    6 * even, 6 * even, 12 * even, 12 * even)\n"
        "world = (pack_ribbons([nodes], [15 * even]), car_record(), np.ones(1, RULES_DTYPE))\n"
        "batch = make_batch(1)\n"
        "batch_cpu.reset_cars(np.ones(1, bool), *world, batch)\n"
        "for _ in range(60):\n"
        "    batch_cpu.step_serial(np.array([[-0.5, 0.8, 0.0]], np.float32), *world, batch, False, 1)\n"
        "hits = sum(batch_cpu.step_serial.stats.cache_hits.values())\n"
        "print('-', '-', hits, batch.states['yaw_radps'][0])\n"
    )
    cache = tmp_path / "cache"
    first, again = run_probe(copy, cache), run_probe(copy, cache)
    assert (first.hits, again.hits) == (0, 1)
    assert first.force_n == again.force_n
    edit_tyres(copy)
    edited = run_probe(copy, cache)
    assert edited.hits == 0
    assert edited.force_n != first.force_n


def test_where_nothing_can_be_written_the_simulator_still_runs(copy, tmp_path):
    in_the_way = tmp_path / "a-file"
    in_the_way.write_text("not a folder")
    answer = run_probe(copy, in_the_way)
    assert answer.folder == "None"
    assert answer.force_n < 0.0


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


@pytest.mark.parametrize(
    ("platform", "variable", "tail"),
    [
        ("linux", "XDG_CACHE_HOME", "hotlap/compiled"),
        ("win32", "LOCALAPPDATA", "hotlap/compiled"),
    ],
)
def test_without_a_wish_the_cache_lies_where_the_platform_keeps_caches(platform, variable, tail, tmp_path, monkeypatch):
    monkeypatch.delenv("HOTLAP_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert compiling.cache_root() == tmp_path / tail


def test_other_users_of_numba_keep_their_own_cache_folder():
    from numba import config

    before = config.CACHE_DIR

    @compiling.entry_point()
    def nothing():
        return 0

    assert before == config.CACHE_DIR
