"""The protocol is the published one, and complete."""

from dataclasses import replace

import pytest

import benchmark_table
from hotlap.benchmark.protocol import BUILT_IN, DIGEST, OVERTAKING, TEST, check_road, encode_protocol, load_protocol
from hotlap.errors import ConfigError
from hotlap.tracks.registry import split_ids


def test_it_has_the_built_in_tracks_the_test_split_and_the_overtaking_scenarios():
    protocol = load_protocol()
    assert protocol.version == 1
    assert protocol.parts == (BUILT_IN, TEST, OVERTAKING)
    assert [one.track_id for one in protocol.laps[BUILT_IN]] == ["track-01", "track-02", "track-03"]
    assert [one.track_id for one in protocol.laps[TEST]] == split_ids("test")
    assert len(split_ids("test")) == 25
    assert {part: {len(one.seeds) for one in tracks} for part, tracks in protocol.laps.items()} == {
        BUILT_IN: {100},
        TEST: {20},
    }
    assert len(protocol.scenarios) == 2400
    for part in (BUILT_IN, TEST):
        check_road(protocol.laps[part][0])


def test_the_digest_is_that_of_the_file_and_another_seed_changes_it(monkeypatch):
    protocol = load_protocol()
    assert protocol.digest == DIGEST
    first, *others = protocol.laps[BUILT_IN]
    changed = replace(first, seeds=(first.seeds[0] + 1, *first.seeds[1:]))
    assert replace(protocol, laps={**protocol.laps, BUILT_IN: (changed, *others)}).digest != DIGEST
    monkeypatch.setattr("hotlap.benchmark.protocol.DIGEST", "0" * 16)
    with pytest.raises(ConfigError, match="Install Hotlap again"):
        load_protocol.__wrapped__()


def test_the_file_is_what_the_script_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark_table, "DATA", tmp_path)
    benchmark_table.draw()
    assert (tmp_path / "protocol-1.json").read_bytes() == encode_protocol(load_protocol())
    assert DIGEST in capsys.readouterr().out


def test_another_road_is_refused():
    first = load_protocol().laps[BUILT_IN][0]
    with pytest.raises(ConfigError, match="track-01: its road is"):
        check_road(replace(first, road="0" * 16))


def test_a_part_can_be_driven_alone():
    protocol = load_protocol()
    assert protocol.only(TEST).parts == (TEST,)
    assert protocol.only(OVERTAKING).parts == (OVERTAKING,)
    with pytest.raises(ConfigError, match="built-in, test, overtaking"):
        protocol.only("moon")
