"""Races against rivals are driven again to the bit: every car, by its own driver."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.errors import DriverError, ReplayError
from hotlap.evaluation.race_replay import drive_again, read_replay, write_replay
from hotlap.web.race_replay_format import RivalGroup, RivalRace
from hotlap.web.rival_races import verify_race
from web.rival_race_makers import drive_a_race


@pytest.fixture(scope="module")
def race() -> RivalRace:
    return drive_a_race("track-01", "casual", "generalist")


def test_a_race_is_verified_and_hotlap_race_reads_what_comes_of_it(race, tmp_path):
    assert np.isfinite(race.race_times_s).all()
    driven = verify_race(RivalRace.from_bytes(race.to_bytes()), "track-01")
    assert driven.race_times_s == race.race_times_s.tolist()
    assert driven.drivers == ["you", "casual", "generalist"]
    write_replay(tmp_path / "race.json", driven)
    fleet = drive_again(read_replay(tmp_path / "race.json"))
    assert fleet.entrants["race_time_s"].tobytes() == race.race_times_s.tobytes()


def later(race: RivalRace, car: int) -> RivalRace:
    times_s = race.race_times_s.copy()
    times_s[car] = np.nextafter(times_s[car], np.float32(0.0))
    return replace(race, race_times_s=times_s)


def steered(race: RivalRace) -> RivalRace:
    actions = race.actions.copy()
    actions[200, 0] = np.float32(1.0)
    return replace(race, actions=actions)


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (lambda r: later(r, 0), "car 0 takes .* but re-simulated it takes"),
        (lambda r: later(r, 2), "car 2 takes"),
        (steered, "re-simulated it takes"),
        (lambda r: replace(r, slots=(0, 1, 2)), "re-simulated it takes"),
        (lambda r: replace(r, rivals=tuple(reversed(r.rivals))), "re-simulated it takes"),
        (lambda r: replace(r, rivals=(r.rivals[0], RivalGroup("generalist", 7, 1))), "another version here"),
        (lambda r: replace(r, rivals=(RivalGroup("casual", 0, 1), r.rivals[1])), "'casual' is another version here"),
        (lambda r: replace(r, rivals=(r.rivals[0], RivalGroup("run:nobody", 7, 1))), "is not known here"),
        (lambda r: replace(r, race_version="1-000000000000"), "race version 1-000000000000"),
        (lambda r: replace(r, track_digest="0" * 16), "on road 0000000000000000"),
    ],
)
def test_a_forged_race_is_refused_in_one_line(race, forge, words):
    with pytest.raises(ReplayError, match=words) as caught:
        verify_race(forge(race), "track-01")
    assert "\n" not in str(caught.value)


def test_a_rival_without_a_policy_is_refused(race):
    def find_none(driver_id: str, track_id: str) -> bytes:
        raise DriverError("none")

    with pytest.raises(ReplayError, match="'generalist' is not known here"):
        verify_race(race, "track-01", find_none)
