"""A run's folder carried between machines: a round trip, and archives that would write elsewhere."""

import io
import tarfile

import pytest

from hotlap.errors import ArchiveError
from hotlap.sweeps.run_archive import pack_run, unpack_run


def tar_of(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    return content.getvalue()


def test_a_folder_arrives_as_it_was_and_replaces_the_old_one(tmp_path):
    run = tmp_path / "run"
    (run / "tensorboard").mkdir(parents=True)
    (run / "config.toml").write_text("seed = 1")
    (run / "tensorboard" / "events").write_bytes(b"\x00\x01")
    (run / ".run.lock").write_text("{}")
    (run / ".config.toml.1-2.partial").write_text("half")
    target = tmp_path / "target"
    target.mkdir()
    (target / "stale").touch()
    unpack_run(pack_run(run), target)
    found = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert found == {"config.toml", "tensorboard/events"}
    assert (target / "tensorboard" / "events").read_bytes() == b"\x00\x01"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "target"]


@pytest.mark.parametrize(
    "content",
    [
        tar_of("../escaped"),
        tar_of("/absolute"),
        tar_of("a/b/c"),
        tar_of("a\\b"),
        tar_of("link", tarfile.SYMTYPE),
        tar_of("hard", tarfile.LNKTYPE),
        tar_of("device", tarfile.CHRTYPE),
        b"not a tar file",
        tar_of("cut")[:300],
    ],
)
def test_an_archive_that_is_not_a_run_leaves_the_folder_alone(tmp_path, content):
    target = tmp_path / "place" / "run"
    target.mkdir(parents=True)
    (target / "kept").write_text("kept")
    with pytest.raises(ArchiveError, match="archive"):
        unpack_run(content, target)
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "place",
        "place/run",
        "place/run/kept",
    ]
