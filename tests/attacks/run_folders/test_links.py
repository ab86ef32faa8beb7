"""Links and other things in a run folder that are not files of the run: refused, and nothing outside is touched."""

import os

import pytest

from attacks.run_folders.attacked_runs import SECRET, assert_as_in_peace, content, needs_posix, write_recipe
from hotlap import atomic_files as hotlap_files
from hotlap import errors as hotlap_errors
from hotlap.runs.journal import Journal
from hotlap.runs.run_lock import LOCK_NAME


@needs_posix
@pytest.mark.parametrize(
    "name",
    ["config.toml", "ppo_seed42_metrics.jsonl", "checkpoint_60.zip", "checkpoint_999.zip", "ppo_seed42_best.zip",
     "ppo_seed42_model.zip", "ppo_seed42_results.json", "ppo_seed42_metrics.json", LOCK_NAME,
     "tensorboard/events.out.tfevents.1.x", "report/report.html"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_what_is_not_a_regular_file_is_refused_and_its_target_unchanged(stopped, hotlap, here, name, kind):
    outside, path = here / "outside", stopped / name
    outside.write_bytes((stopped / name).read_bytes() if (stopped / name).exists() else SECRET.encode())
    before = outside.read_bytes()
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make = {
        "link": lambda: path.symlink_to(outside),
        "dangling": lambda: path.symlink_to(here / "nothing"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    code, [line] = hotlap("resume", stopped)
    assert code == 2
    assert path.name in line
    assert outside.read_bytes() == before
    assert not (here / "nothing").exists()


@needs_posix
@pytest.mark.parametrize("name", ["tensorboard", "report"])
@pytest.mark.parametrize("command", ["resume", "train"])
def test_a_linked_folder_is_refused_and_nothing_in_it_deleted(stopped, hotlap, here, name, command):
    outside = here / "outside"
    if (stopped / name).exists():
        (stopped / name).rename(outside)
    outside.mkdir(exist_ok=True)
    (outside / "report.html").write_text(SECRET)
    (stopped / name).symlink_to(outside)
    before = content(outside)
    arguments = ["resume", stopped] if command == "resume" else ["train", "--recipe", write_recipe(), "--overwrite"]
    code, [line] = hotlap(*arguments)
    assert (code, f"{stopped / name}: must be a folder of this run, but is a link" in line) == (2, True)
    assert content(outside) == before


@needs_posix
def test_a_link_put_there_after_the_check_is_not_followed(tmp_path):
    secret, link = tmp_path / "secret", tmp_path / "a.jsonl"
    secret.write_text(SECRET)
    link.symlink_to(secret)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hotlap_files, "refuse_not_plain", lambda *_, **__: None)
        with pytest.raises(hotlap_errors.OutputFileError, match="cannot be written"):
            Journal(link)
    assert secret.read_text() == SECRET


@needs_posix
@pytest.mark.parametrize(
    ("name", "command"),
    [("ppo_seed42_metrics.jsonl", "resume"), (LOCK_NAME, "resume"), (LOCK_NAME, "train")],
)
def test_a_hard_link_to_a_file_outside_is_not_written_through(stopped, hotlap, here, name, command):
    outside, path = here / "outside", stopped / name
    outside.write_bytes(path.read_bytes() + b"precious" if path.exists() else SECRET.encode())
    before = outside.read_bytes()
    path.unlink(missing_ok=True)
    path.hardlink_to(outside)
    arguments = ["resume", stopped] if command == "resume" else ["train", "--recipe", write_recipe(), "--overwrite"]
    code, lines = hotlap(*arguments)
    assert outside.read_bytes() == before
    [line] = [line for line in lines if line.startswith("hotlap: ")]
    assert code == 2
    assert line.startswith(f"hotlap: {path}: ")
    assert "it is a hard link to a file with another name; replace it by a copy" in line


@needs_posix
@pytest.mark.parametrize("command", ["resume", "train"])
def test_hard_links_to_files_that_are_replaced_leave_those_outside_unchanged(stopped, hotlap, here, command):
    outside = here / "outside"
    outside.mkdir()
    for path in stopped.iterdir():
        if path.is_file() and (command == "train" or path.suffix != ".jsonl"):
            (outside / path.name).hardlink_to(path)
    before = content(outside)
    arguments = ["resume", stopped] if command == "resume" else ["train", "--recipe", write_recipe(), "--overwrite"]
    assert hotlap(*arguments)[0] == 0
    assert content(outside) == before
    assert_as_in_peace(hotlap)
