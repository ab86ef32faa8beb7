"""Every command that writes a picture or a file, on a full disk: one line, and the file of before is still there."""

import builtins
import io
from pathlib import Path

import pytest

from runs.full_disk import Disk

ROOM = 1_000  # bytes that are left on the disk, for each file
OLD = b"of before"
CENTRELINE = Path(__file__).resolve().parents[2] / "src/hotlap/tracks/data/track-02.csv"


class FullFile(Disk):
    """A buffered file on a full disk: it writes everything or fails. Usable in a `with` block."""

    def write(self, content):
        taken = super().write(content)
        return taken if taken == len(content) else super().write(content[taken:])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def __iter__(self):
        return iter(self.file)


@pytest.fixture
def full_disk(monkeypatch, tmp_path):
    """Fills the disk of the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))
    real_open = io.open

    def open_file(name, mode="r", *arguments, **options):
        file = real_open(name, mode, *arguments, **options)
        is_written = set(mode) & set("wxa+")
        if isinstance(name, int) or not is_written or not Path(name).absolute().is_relative_to(tmp_path):
            return file
        return FullFile(file, ROOM)

    def fill():
        monkeypatch.setattr(builtins, "open", open_file)
        monkeypatch.setattr(io, "open", open_file)

    return fill


COMMANDS = {
    "drive": ("drive casual --laps 1 --png out/x.png", ["out/x.png"]),
    "tracks show": ("tracks show track-01 --png out/x.png", ["out/x.png"]),
    "optimal": ("optimal track-01 --no-replay --png out/x.png", ["out/x.png"]),
    "report": ("report casual --track track-01 --out out", ["out/report.html"]),
    "export onnx": ("export champion --format onnx --out out/x.onnx", ["out/x.onnx"]),
    "export sb3": ("export champion --format sb3 --out out/x.zip", ["out/x.zip", "out/x_vecnormalize.pkl"]),
    "tracks import": (f"tracks import {CENTRELINE} --id mine", ["home/tracks/mine.csv"]),
    "tracks generate": ("tracks generate --seed 1 --id mine", ["home/tracks/mine.csv"]),
}


@pytest.mark.parametrize(("command", "files"), COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_is_one_line_and_destroys_nothing(refused, full_disk, command, files):
    for name in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(OLD)
    full_disk()
    line = refused(*command.split())
    assert "No space left on device" in line
    assert "Errno" not in line
    found = {path.relative_to(Path.cwd()).as_posix() for path in Path.cwd().rglob("*") if path.is_file()}
    assert found == set(files)
    assert [Path(name).read_bytes() for name in files] == [OLD] * len(files)


def test_a_page_that_cannot_be_written_completely_leaves_the_page_of_before(hotlap, refused, full_disk):
    assert hotlap("site", "public").code == 0
    pages = [path for path in Path("public").rglob("*") if path.is_file()]
    before = {}
    for path in pages:
        if path.name != "sim.json":  # by which a page is recognised
            path.write_bytes(OLD)
        before[path] = path.read_bytes()
    full_disk()
    line = refused("site", "public")
    assert "No space left on device" in line
    assert {path: path.read_bytes() for path in Path("public").rglob("*") if path.is_file()} == before
