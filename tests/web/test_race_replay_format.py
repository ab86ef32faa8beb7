"""The bytes of races against rivals: they come back as they were, and what is damaged is refused in one line."""

import numpy as np
import pytest

from hotlap.errors import ReplayError
from hotlap.sim.version import RACE_VERSION
from hotlap.web.race_replay_format import RivalGroup, RivalRace
from hotlap.web.replay_format import quantise

TIMES_S = np.array([61.5, np.nan, 58.25], np.float32)


def make_race(**changes) -> RivalRace:
    rng = np.random.default_rng(4)
    fields = {
        "track_digest": "0123456789abcdef",
        "laps": 2,
        "rivals": (RivalGroup("casual", 0, 1), RivalGroup("run:my.run_1@200", 0x00AB12CD, 1)),
        "slots": (2, 0, 1),
        "actions": quantise(rng.uniform(-1.0, 1.0, (50, 3)).astype(np.float32)),
        "race_times_s": TIMES_S,
    }
    return RivalRace(**(fields | changes))


def test_a_race_comes_back_as_it_was():
    race = make_race()
    back = RivalRace.from_text(race.to_text())
    assert (back.track_digest, back.laps, back.rivals, back.slots) == (
        race.track_digest, race.laps, race.rivals, race.slots,
    )  # fmt: skip
    assert back.race_version == RACE_VERSION
    assert back.actions.tobytes() == race.actions.tobytes()
    assert back.race_times_s.tobytes() == TIMES_S.tobytes()
    assert back.names() == ["you", "casual", "run:my.run_1@200"]


HEAD_BYTES = 30
FIELD = b"casual*1,run:my.run_1@200#00ab12cd*1"


def test_the_bytes_are_those_of_the_documentation():
    content = make_race().to_bytes()
    assert content[:6] == b"HRC1\x00\x03"
    assert int.from_bytes(content[22:26], "little") == 50
    assert (content[26], content[28]) == (2, len(FIELD))
    assert content[HEAD_BYTES : HEAD_BYTES + len(FIELD)] == FIELD
    assert content[HEAD_BYTES + len(FIELD) :][:3] == bytes([2, 0, 1])


def put(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda c: b"HLR1" + c[4:], "does not begin like one"),
        (lambda c: put(c, 4, b"\x03"), "packed for a link"),
        (lambda c: put(c, 4, b"\x09"), "encoding 9 is not known"),
        (lambda c: put(c, 5, b"\x01"), "2 to 12 cars"),
        (lambda c: put(c, 5, b"\x20"), "2 to 12 cars"),
        (lambda c: put(c, 26, b"\x0b"), "1 to 10 laps"),
        (lambda c: put(c, 22, b"\xff\xff\xff\xff"), "36000 ticks"),
        (lambda c: put(c, HEAD_BYTES, b"../x"), "list of rivals is damaged"),
        (lambda c: put(c, HEAD_BYTES + 7, b"2"), "list of rivals is damaged"),
        (lambda c: put(c, HEAD_BYTES + len(FIELD), b"\x00"), "each once"),
        (lambda c: put(c, HEAD_BYTES + len(FIELD) + 3, b"\x00\x00\x80\xff"), "no race takes"),
        (lambda c: c[: HEAD_BYTES + len(FIELD) + 5], "cut off"),
        (lambda c: c[:-1], "cut off|damaged"),
        (lambda c: c + b"\x00", "bytes after its end"),
    ],
)
def test_a_damaged_race_is_refused_in_one_line(damage, words):
    with pytest.raises(ReplayError, match=words) as caught:
        RivalRace.from_bytes(damage(make_race().to_bytes()))
    assert "\n" not in str(caught.value)


def test_one_driver_is_not_split_into_several_groups():
    rivals = (RivalGroup("casual", 0, 1), RivalGroup("casual", 0, 1))
    with pytest.raises(ReplayError, match="list of rivals is damaged"):
        RivalRace.from_bytes(make_race(rivals=rivals).to_bytes())


def test_whatever_is_changed_in_its_bytes_it_is_read_or_refused():
    rng, content = np.random.default_rng(11), make_race().to_bytes()
    num_refused = 0
    for _ in range(400):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), rng.integers(1, 4)):
            damaged[at] = rng.integers(256)
        try:
            RivalRace.from_bytes(bytes(damaged))
        except ReplayError:
            num_refused += 1
    assert num_refused > 100
