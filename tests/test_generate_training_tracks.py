"""The tool that generates the generalist's further tracks."""

import pytest

import generate_training_tracks
from hotlap.tracks.generation.circuit_generator import generate_circuit
from hotlap.tracks.generation.generator import generate
from hotlap.tracks.generation.split_seeds import TEST_SEEDS, TRAIN_SEEDS
from hotlap.tracks.registry import load_track, named_tracks


def test_it_saves_tracks_that_a_recipes_patterns_find(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path))
    assert generate_training_tracks.main(["--short", "2", "--circuits", "1"]) == 0
    assert f"2 short tracks and 1 circuits are in {tmp_path}" in capsys.readouterr().out
    assert named_tracks("gen-*") == ["gen-20000", "gen-20001"]
    assert named_tracks("circ-*") == ["circ-40000"]
    assert (load_track("gen-20001").centreline.x_m == generate(20_001).x_m).all()
    assert (load_track("circ-40000").centreline.x_m == generate_circuit(40_000).x_m).all()


def test_its_seeds_are_not_those_of_the_splits():
    seeds = {*range(generate_training_tracks.FIRST_SHORT, generate_training_tracks.FIRST_SHORT + 600)}
    assert not seeds & {*TRAIN_SEEDS, *TEST_SEEDS}


def test_a_negative_number_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        generate_training_tracks.main(["--short", "-3"])
    assert ended.value.code == 2
    assert "must be 0 or more, got -3" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "file"))
    assert generate_training_tracks.main(["--short", "1", "--circuits", "0"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("generate_training_tracks: ")
