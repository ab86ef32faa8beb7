"""Settings in somebody else's run folder: no import, no connection, no other road."""

import sys
from pathlib import Path

import pytest

from attacks.run_folders.attacked_runs import RUN, content
from hotlap.tracks import digest
from tiny_runs import tiny_config

# --- another road under the old id ---


def test_a_run_whose_track_got_another_road_is_refused(hotlap, monkeypatch):
    config = tiny_config()
    Path("tiny.toml").write_text(config.to_toml())
    assert hotlap("train", "--recipe", "tiny.toml")[0] == 0
    before = content(RUN)
    monkeypatch.setattr("hotlap.training.run_state.track_digest", lambda nodes: "0123")
    code, [line] = hotlap("resume", RUN, "--steps", 200)
    assert (code, "was trained on another road of the name 'track-01'" in line) == (2, True)
    assert content(RUN) == before
    assert digest.track_digest is not None


# --- settings of somebody else's run folder ---


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('env = "attacks/Poison-v0"', 'env = "evil:Env-v0"', "would import a module"),
        ('env = "attacks/Poison-v0"', 'env = "hotlap/RemoteRacer-v0"', "--bridge-url"),
        ("[policy]", '[env_args]\nurl = "http://example.org"\n\n[policy]', "not known to take the argument 'url'"),
    ],
)
def test_a_run_folder_cannot_import_or_connect(stopped, hotlap, here, monkeypatch, old, new, words):
    (here / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(here)
    config = stopped / "config.toml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    code, lines = hotlap("resume", stopped)
    assert code == 2
    assert words in lines[-1]
    assert "evil" not in sys.modules
