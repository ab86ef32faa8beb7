"""The package works where there is no home folder, or none that can be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRIVE = """
import numpy as np, hotlap
from hotlap.tracks.registry import list_tracks, load_track
env = hotlap.RacerEnv()
env.reset(seed=0)
obs, *_ = env.step(np.array([0, 1, 0], np.float32))
assert len(list_tracks()) == 128
print(obs.sum())
"""
# A user that is not in the password database has no home without HOME, as in many containers.
NO_PASSWORD_ENTRY = "import os.path; os.path.expanduser = lambda path: path\n"
SAVE = """
from hotlap.errors import OutputFileError
from hotlap.tracks.registry import save_track
try:
    save_track("ring", load_track("track-01").centreline, "")
except OutputFileError as error:
    assert "Set HOTLAP_HOME to a writable folder" in str(error), error
else:
    raise AssertionError("a track was saved without a home")
"""


def run(code: str, tmp_path: Path, **changed: str | None) -> None:
    environ = {**os.environ, **changed}
    for name in (
        "HOTLAP_HOME",
        "XDG_CACHE_HOME",
        "LOCALAPPDATA",
        *(key for key, value in changed.items() if not value),
    ):
        environ.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environ, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(tmp_path.iterdir()) == []  # nothing was written to the working folder instead


@pytest.mark.parametrize("home", [None, "", "/nowhere/at/all", os.devnull], ids=["unset", "empty", "missing", "a file"])
def test_it_drives_without_a_usable_home(compiled, tmp_path, home, monkeypatch):
    # Compiled code stays cached, so that the test does not compile; the next test does without.
    from hotlap.sim.compilation import cache_root

    run(DRIVE, tmp_path, HOME=home, USERPROFILE=home, HOTLAP_CACHE=str(cache_root().parent))


def test_it_drives_for_a_user_who_has_no_home_and_says_how_to_save_a_track(compiled, tmp_path):
    from hotlap.sim.compilation import cache_root

    run(NO_PASSWORD_ENTRY + DRIVE + SAVE, tmp_path, HOME=None, HOTLAP_CACHE=str(cache_root().parent))


@pytest.mark.parametrize("home", [None, os.devnull], ids=["unset", "a file"])
def test_the_simulator_is_imported_without_a_cache(tmp_path, home):
    code = "from hotlap.sim import batch_cpu, compilation; assert compilation.cache_folder() is None"
    run(NO_PASSWORD_ENTRY + code if home is None else code, tmp_path, HOME=home, HOTLAP_CACHE=None)
