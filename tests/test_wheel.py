"""The wheel, alone in an empty environment outside the checkout: a lap, races, the page in a browser, the bridge."""

import json
import os
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from pathlib import Path

import pytest

import build_packages
from server_process import ServerProcess
from web.chromium import Chromium, find_chromium
from web.test_static_page import drive_race

ROOT = Path(__file__).resolve().parent.parent
STARTING_S = 300.0  # it compiles first
MAX_MB = 350.0  # of what pip installs, without bytecode
INSTALLED = """
import json, sys
from importlib.metadata import distributions
from pathlib import Path
own = ("pip", "setuptools")
files = [file for found in distributions() if found.name not in own for file in found.files or []]
paths = {Path(file.locate()) for file in files if not str(file).endswith(".pyc")}
size = sum(path.stat().st_size for path in paths if path.is_file())
print(json.dumps([size / 1e6, sorted(found.name.lower() for found in distributions())]))
"""


class Empty:
    """An empty environment with the wheel in it, and an empty folder to work in."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder, place = folder / "work", folder / "venv"
        self.folder.mkdir()
        venv.create(place, with_pip=True)
        self.programs = place / ("Scripts" if os.name == "nt" else "bin")
        left_out = ("PYTHONPATH", "VIRTUAL_ENV", "FORK_SERVER", "HOTLAP_CACHE", "BRIDGE_PORT")
        own = {key: value for key, value in os.environ.items() if key not in left_out}
        # The compiled code is that of the wheel.
        self.environ = {**own, "HOTLAP_HOME": str(folder / "home"), "HOTLAP_CACHE": str(folder / "cache")}
        started_s = time.monotonic()
        constraints = str(ROOT / "constraints.txt")
        self.run("python", "-m", "pip", "install", "--quiet", "-c", constraints, str(wheel))
        self.install_s = time.monotonic() - started_s

    def run(self, program: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, which must end with this exit code."""
        command = [str(self.programs / program), *arguments]
        answer = subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False, timeout=900
        )
        assert answer.returncode == code, answer.stdout + answer.stderr
        return answer


class InstalledServer(ServerProcess):
    """A server of the wheel; `sys.executable` must be its Python."""

    popen = subprocess.Popen

    def __init__(self, empty: Empty, verb: str, scheme: str, *options: str) -> None:
        log, command = empty.folder / f"{verb}.log", [verb, "--port", "0", *options]
        super().__init__(log, command, scheme, STARTING_S, cwd=empty.folder, env=empty.environ)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Wheel and sdist, newly built."""
    return build_packages.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def empty(packages, tmp_path_factory):
    """The wheel in an empty environment."""
    return Empty(tmp_path_factory.mktemp("empty"), packages[0])


@pytest.mark.slow
def test_the_packages_have_every_source_and_nothing_else_and_are_small(packages):
    assert build_packages.content_faults(*packages) == []
    assert build_packages.size_faults(*packages) == []
    assert build_packages.check_with_twine(*packages).count("FAILED") == 0


@pytest.mark.slow
def test_what_is_installed_is_small_and_has_no_torch(empty, record_property):
    megabytes, names = json.loads(empty.run("python", "-c", INSTALLED).stdout)
    record_property("figure", f"pip install hotlap: {megabytes:.0f} MB in {empty.install_s:.0f} s")
    assert not {"torch", "stable-baselines3", "tensorboard", "matplotlib"} & set(names)
    assert megabytes < MAX_MB


@pytest.mark.slow
def test_it_drives_a_lap_in_an_empty_folder_and_says_that_it_compiles(empty):
    first = empty.run("hotlap", "drive", "casual", "--laps", "1", "--png", "lap.png")
    assert first.stdout.startswith("lap 1  standing  43.79 s  clean\n")
    assert first.stderr.startswith("compiling the simulator for this machine")
    assert (empty.folder / "lap.png").read_bytes().startswith(b"\x89PNG")
    again = empty.run("hotlap", "drive", "casual", "--laps", "1")
    assert again.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "evaluate champion --json",
        "evaluate generalist --track test-003 --json",
        "race champion*2 casual --laps 1 --json",
        "report champion --out report --json",
        "tracks show track-02 --png track.png",
        "site site",
        "optimal track-03 --json",
        "doctor",
    ],
    ids=lambda command: command.split()[0],
)
def test_it_works_without_torch(empty, command):
    answer = empty.run("hotlap", *command.split())
    if command.endswith("--json"):
        assert json.loads(answer.stdout.splitlines()[-1])


@pytest.mark.slow
def test_training_says_what_to_install(empty):
    answer = empty.run("hotlap", "train", "--steps", "1000", code=2)
    assert answer.stderr == 'hotlap: this needs torch. Install it: pip install "hotlap[train]".\n'
    assert not (empty.folder / "results").exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_person_races_on_its_page_in_a_browser(empty, monkeypatch):
    if find_chromium() is None:
        pytest.skip("there is no Chromium")
    monkeypatch.setattr(sys, "executable", str(empty.programs / "python"))
    browser = Chromium()
    try:
        with InstalledServer(empty, "play", "http", "--no-open") as served:
            page = browser.open(f"{served.url}/?driver=casual#race")
            page.wait("hotlap.state().connected && hotlap.state().view")
            drive_race(page)
            assert page.evaluate("Number(document.querySelector('#result .big-lap').dataset.seconds)") > 0.0
            assert page.errors == []
    finally:
        browser.close()


@pytest.mark.slow
def test_the_example_drives_a_lap_over_its_bridge(empty, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(empty.programs / "python"))
    with InstalledServer(empty, "bridge", "ws") as bridge:
        answer = empty.run("python", str(ROOT / "examples" / "python" / "drive.py"), bridge.url)
    assert answer.stdout.splitlines()[-1].startswith("lap time ")


# --- the check itself ---


def test_missing_and_foreign_files_are_found(tmp_path):
    names = build_packages.list_sources()
    wheel, sdist = tmp_path / "hotlap-1.whl", tmp_path / "hotlap-1.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            if name.startswith("src/") and not name.endswith("py.typed"):
                archive.writestr(name.removeprefix("src/"), "")
        archive.writestr("hotlap/secret.txt", "")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"hotlap-1/{name}"))
    assert build_packages.content_faults(wheel, sdist) == [
        "hotlap-1.whl lacks src/hotlap/py.typed",
        "hotlap-1.whl has src/hotlap/secret.txt, which git does not know",
    ]
    assert build_packages.size_faults(wheel, sdist) == []
