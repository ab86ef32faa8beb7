"""Entries are driven again; one that claims anything else is refused in one line."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from benchmark.small_entries import (
    change_document,
    members_of,
    refusal_of,
    small_protocol,
    write_members,
    write_small_entry,
)
from hotlap.benchmark.actions import RUN_DTYPE
from hotlap.benchmark.entry_file import DOCUMENT, MODEL
from hotlap.benchmark.verification import verify_entry
from hotlap.errors import HotlapError, ReplayError
from hotlap.models.shipped_models import find_shipped


def refusal(path, protocol):
    return refusal_of(verify_entry, HotlapError, path, protocol)


def test_an_entry_is_verified_and_the_same_drives_give_the_same_bytes(protocol, entry, tmp_path):
    found = verify_entry(entry, protocol, num_threads=1)
    assert (found.name, found.parts, found.num_laps, found.has_model) == ("champion", protocol.parts, 3, False)
    again = verify_entry(entry, protocol, num_threads=3)
    assert again.laps["track-01"].times_s.tobytes() == found.laps["track-01"].times_s.tobytes()
    alone = small_protocol(num_scenarios=0)
    first, second = (write_small_entry(tmp_path / f"{number}.zip", alone).read_bytes() for number in range(2))
    assert first == second


def faster(document):
    row = document["laps"]["track-01"][1]
    row[1] = float(np.nextafter(np.float32(row[1]), np.float32(0.0)))


def between(document):
    row = document["laps"]["track-01"][1]
    row[1] += 1e-9  # no float32: it would round to the right one


CLAIMS = {
    "a time that is faster by the last bit": (faster, "track-01, start 1: claims"),
    "a time between two float32": (between, "track-01, start 1: claims"),
    "a lap where there is none": (lambda d: d["laps"]["track-01"][0].__setitem__(1, None), "row 0 makes no sense"),
    "a lap that is not clean": (lambda d: d["laps"]["track-01"][2].__setitem__(2, False), "start 2: claims a lap"),
    "a missing track": (lambda d: d["laps"].pop("track-01"), "laps: 'track-01' is missing"),
    "a foreign track": (lambda d: d["laps"].update({"track-02": []}), "'track-02' is no track of its parts"),
    "a missing start": (lambda d: d["laps"]["track-01"].pop(), "must have 3 rows"),
    "a missing part": (lambda d: d.update(parts=["built-in"]), "overtaking: must be null"),
    "an unknown part": (lambda d: d.update(parts=["moon"]), "parts: must be some of"),
    "no part": (lambda d: d.update(parts=[]), "parts: must be some of"),
    "another benchmark": (lambda d: d.update(benchmark=2), "benchmark: is 2"),
    "a version that is no number": (lambda d: d.update(benchmark=True), "benchmark: is True"),
    "another protocol": (lambda d: d.update(digest="0" * 16), "digest: is '0000"),
    "another physics": (lambda d: d.update(physics="0-0"), "physics: is '0-0'"),
    "other races": (lambda d: d.update(race="0-0"), "race: is '0-0'"),
    "other opponents": (lambda d: d.update(opponents="x"), "opponents: is 'x'"),
    "another format": (lambda d: d.update(format="x"), "must have the format"),
    "an unknown field": (lambda d: d.update(x=1), "must have the format"),
    "an empty name": (lambda d: d.update(name=" "), "name: must have"),
    "a name that clears the screen": (lambda d: d.update(name="\x1b[2J"), "name: must have"),
    "an overtake": (
        lambda d: d["overtaking"].__setitem__(0, [d["overtaking"][0][0], True, True]),
        "scenario 0: claims",
    ),
    "a missing scenario": (lambda d: d["overtaking"].pop(), "must have 2 rows"),
    "runs that are too many": (lambda d: d["laps"]["track-01"][0].__setitem__(0, 10**9), "row 0 makes no sense"),
    "one run more": (lambda d: d["laps"]["track-01"][0].__setitem__(0, d["laps"]["track-01"][0][0] + 1), "bytes, not"),
}


@pytest.mark.parametrize(("change", "text"), CLAIMS.values(), ids=CLAIMS)
def test_a_changed_claim_is_refused(protocol, entry, tmp_path, change, text):
    assert text in refusal(change_document(entry, tmp_path / "forged.zip", change), protocol)


def change_runs(content: bytes, change) -> bytes:
    runs = np.frombuffer(content, RUN_DTYPE).copy()
    change(runs)
    return runs.tobytes()


@pytest.mark.parametrize("member", ["track-01.actions", "overtaking.actions"])
def test_a_changed_action_is_refused(protocol, entry, tmp_path, member):
    def turn(runs):
        runs["steer"][200:400] = 1.0

    members = members_of(entry)
    forged = write_members(tmp_path / "forged.zip", members | {member: change_runs(members[member], turn)})
    assert "driven again" in refusal(forged, protocol)


def test_ticks_after_the_end_are_refused(protocol, entry, tmp_path):
    members = members_of(entry)

    def longer(runs):
        runs["ticks"][json.loads(members[DOCUMENT])["laps"]["track-01"][0][0] - 1] += 100

    content = change_runs(members["track-01.actions"], longer)
    forged = write_members(tmp_path / "forged.zip", members | {"track-01.actions": content})
    assert "track-01, start 0: has 100 ticks after the end of its drive" in refusal(forged, protocol)


def test_the_laps_of_a_model_must_be_its_own(tmp_path):
    protocol = small_protocol(num_scenarios=0)
    model, other = (find_shipped("champion", track).read_bytes() for track in ("track-01", "track-02"))
    own = write_small_entry(tmp_path / "own.zip", protocol, model=model)
    assert verify_entry(own, protocol).has_model
    forged = write_members(tmp_path / "forged.zip", members_of(own) | {MODEL: other})
    assert "its model drives another lap" in refusal(forged, protocol)
    damaged = write_members(tmp_path / "damaged.zip", members_of(own) | {MODEL: b"PK"})
    text = refusal(damaged, protocol)
    assert "model.zip" in text
    assert str(Path("/tmp")) not in text.replace(str(damaged), "")


def test_a_member_of_some_megabytes_is_read(protocol, entry, tmp_path):
    large = write_members(tmp_path / "large.zip", members_of(entry) | {MODEL: random.Random(0).randbytes(5 << 20)})
    assert "model.zip: is damaged or not a zip" in refusal(large, protocol)


def test_a_refusal_is_a_replay_error(protocol, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK")
    with pytest.raises(ReplayError):
        verify_entry(tmp_path / "x.zip", protocol)
