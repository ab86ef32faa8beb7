"""The replay format: round trips, the documented bytes, and refusals."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hotlap.errors import ReplayError
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.web.replay_format import MAX_REPLAY_BYTES, MAX_TICKS, Replay, quantise

TRACK_DIGEST = "0123456789abcdef"
HEAD_BYTES = 40


def some_replay(actions, **changes):
    fields = {
        "track_digest": TRACK_DIGEST,
        "actions": np.asarray(actions, np.float32),
        "lap": 2,
        "lap_time_s": np.float32(31.25),
    }
    return Replay(**{**fields, **changes})


def deflate(body):
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(body) + compressor.flush()


def inflate(content):
    return zlib.decompress(content[HEAD_BYTES:], -15)


def test_the_bytes_are_those_of_the_documentation():
    actions = quantise(np.array([[0.0, 1.0, 0.0]] * 300 + [[-1.0, 0.0, 1.0]] * 2, np.float32))
    content = some_replay(actions, seed=7).to_bytes()
    edition, digest = PHYSICS_VERSION.split("-")
    assert content[:4] == b"HLR1"
    assert content[4:6] == b"\0\0"
    assert struct.unpack_from("<H", content, 6)[0] == int(edition)
    assert content[8:14].hex() == digest
    assert content[14:22].hex() == TRACK_DIGEST
    assert struct.unpack_from("<QIfH", content, 22) == (7, 302, 31.25, 2)
    # 300 ticks are two runs, as a run has at most 255; steer -127 is 129 modulo 256, throttle -255 is 1.
    assert inflate(content) == bytes([255, 45, 2, 0, 0, 129, 255, 0, 1, 0, 0, 255])


def test_exact_inputs_are_float32_columns():
    content = some_replay([[0.1, 0.2, 0.3]] * 2 + [[0.5, 0.25, 0.0]], is_quantised=False).to_bytes()
    assert content[4] == 1
    columns = np.frombuffer(inflate(content)[2:], "<f4").reshape(3, 2)
    assert inflate(content)[:2] == bytes([2, 1])
    assert np.array_equal(columns, np.array([[0.1, 0.5], [0.2, 0.25], [0.3, 0.0]], np.float32))


def test_steps_are_one_correctly_rounded_float32_division():
    steer = quantise(np.array([[k / 127, k / 127, 0.0] for k in range(128)], np.float32))[:, 0]
    assert [float(value) for value in steer] == [float(np.float32(k / 127)) for k in range(128)]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 400).flatmap(lambda n: npst.arrays(np.float32, (n, 3), elements=st.floats(-2, 2, width=32))),
    st.integers(1, 90),
    st.booleans(),
    st.integers(0, 2**64 - 1),
)
def test_what_is_written_is_read_back_bit_for_bit(rows, hold, is_quantised, seed):
    actions = np.repeat(quantise(rows) if is_quantised else rows, hold, axis=0)[:MAX_TICKS]
    before = some_replay(actions, seed=seed, is_quantised=is_quantised, lap_time_s=np.float32(28.3171))
    for after in (Replay.from_bytes(before.to_bytes()), Replay.from_text(before.to_text())):
        assert after.actions.tobytes() == actions.tobytes()
        assert (after.track_digest, after.lap, after.seed, after.physics) == (TRACK_DIGEST, 2, seed, PHYSICS_VERSION)
        assert after.lap_time_s == np.float32(28.3171)
        assert after.is_quantised == is_quantised


def test_a_minute_on_a_keyboard_fits_into_a_link():
    # Keys smoothed into analogue steering: it ramps up and down by about 10 steps a tick.
    ticks = np.arange(3600)
    steer = np.clip(3.0 * np.sin(ticks / 30.0), -1.0, 1.0)
    throttle = np.clip(np.sin(ticks / 100.0) * 4.0 + 1.0, 0.0, 1.0)
    actions = quantise(np.stack([steer, throttle, 1.0 - throttle], axis=1).astype(np.float32))
    assert len(some_replay(actions).to_text()) < 4_000


GOOD = some_replay(quantise(np.zeros((10, 3), np.float32))).to_bytes()


def changed(offset, content):
    return GOOD[:offset] + content + GOOD[offset + len(content) :]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not begin like one"),
        (b"HLR2" + GOOD[4:], "does not begin like one"),
        (GOOD[: HEAD_BYTES - 1], "does not begin like one"),
        (GOOD + b"\0" * MAX_REPLAY_BYTES, "at most 262144 bytes"),
        (changed(4, b"\2"), "packed for a link"),
        (changed(4, b"\4"), "encoding 4 is not known"),
        (changed(5, b"\1"), "start 1 is not known"),
        (changed(30, struct.pack("<I", 0)), "1 to 36000 ticks, got 0"),
        (changed(30, struct.pack("<I", MAX_TICKS + 1)), "1 to 36000 ticks, got 36001"),
        (changed(30, struct.pack("<I", 11)), "do not fit its number of ticks"),
        (changed(34, struct.pack("<f", float("nan"))), "claims lap 2 in nan s"),
        (changed(34, struct.pack("<f", -1.0)), "which no lap takes"),
        (changed(38, struct.pack("<H", 0)), "claims lap 0"),
        (GOOD[:-1], "cut off|damaged"),
        (GOOD + b"x", "bytes after its end"),
        (GOOD[:HEAD_BYTES] + b"\xff\xff\xff", "inputs are damaged"),
        (GOOD[:HEAD_BYTES] + deflate(b"\0" * 10_000_000), "more inputs than ticks"),
        (GOOD[:HEAD_BYTES] + deflate(b""), "do not fit"),
        (GOOD[:HEAD_BYTES] + deflate(bytes([10, 0, 0])), "do not fit"),
        (GOOD[:HEAD_BYTES] + deflate(bytes([10, 0, 0, 0, 0, 0, 0, 0])), "do not fit"),
        (GOOD[:HEAD_BYTES] + deflate(bytes([10, 128, 0, 0])), "steer must be from -127 to 127"),
        (changed(4, b"\1")[:HEAD_BYTES] + deflate(b"\12" + struct.pack("<3f", 0, float("inf"), 0)), "not finite"),
    ],
)
def test_a_damaged_or_forged_replay_is_refused_in_one_line(content, words):
    with pytest.raises(ReplayError, match=words) as caught:
        Replay.from_bytes(content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "SExS MQ", "SExSMQ==", "SExSMQ+/", "é", "SExSM\n", "A" * 400_000])
def test_text_that_is_not_base64url_is_refused(text):
    with pytest.raises(ReplayError, match=r"^replay: "):
        Replay.from_text(text)


@pytest.mark.parametrize("stray", ["\n", " ", "!", "=", "é"])
def test_a_stray_character_in_a_good_text_is_refused(stray):
    text = some_replay(quantise(np.zeros((10, 3), np.float32))).to_text()
    assert Replay.from_text(text).num_ticks == 10
    for count in (1, 4):  # four leave the length a multiple of what it was
        with pytest.raises(ReplayError, match="not base64url"):
            Replay.from_text(text[:20] + count * stray + text[20:])


def test_inputs_that_are_not_quantised_are_not_stored_as_if_they_were():
    with pytest.raises(ReplayError, match="not quantised"):
        some_replay([[0.3, 0.3, 0.0]]).to_bytes()
