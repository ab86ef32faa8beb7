"""Replays in the simulator: they drive the recorded lap to the bit, and a forged one is refused."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.errors import DriverError, ReplayError
from hotlap.evaluation.evaluate import Lap, drive, make_evaluation_fleet
from hotlap.web.replay_format import quantise
from hotlap.web.replays import Replay, best_lap, make_race_fleet, record_drive, simulate, verify


@pytest.fixture(scope="module")
def casual() -> Replay:
    return record_drive(CasualDriver(), "track-01", num_laps=2)


class ParkedDriver:
    name = "parked"

    def begin(self, fleet, seed): ...

    def act(self, obs):
        return np.zeros((1, 3), np.float32)


def test_a_recorded_drive_is_the_drive_of_an_evaluation(casual):
    fleet = make_evaluation_fleet("track-01", 1)
    fleet.seed(np.zeros(1, np.uint64))
    fleet.reset(start="line")
    driver = CasualDriver()
    driver.begin(fleet, 0)
    laps = drive(driver, fleet, 2).laps
    assert simulate(casual, "track-01") == laps
    assert verify(casual, "track-01") == best_lap(laps)
    # A flying lap is faster than a standing one.
    assert [lap.number for lap in laps] == [1, 2]
    assert casual.lap == 2


def test_runs_of_equal_inputs_give_the_bits_of_single_ticks(casual):
    quantised = replace(casual, actions=np.repeat(quantise(casual.actions)[::20], 20, axis=0)[: casual.num_ticks])
    fleet = make_race_fleet("track-01")
    for action in quantised.actions:
        fleet.step(action[None].copy(), autoreset=False)
    simulated = make_race_fleet("track-01")
    from hotlap.web.replays import _runs

    lengths = [length for _, length in _runs(quantised.actions)]
    assert sum(lengths) == casual.num_ticks
    assert max(lengths) > 1
    for first, length in _runs(quantised.actions):
        simulated.step(quantised.actions[first : first + 1], autoreset=False, repeat=length)
    assert fleet.states.tobytes() == simulated.states.tobytes()


def test_a_quantised_recording_verifies_after_its_text_form():
    replay = record_drive(CasualDriver(), "track-01", num_laps=1, is_quantised=True)
    again = Replay.from_text(replay.to_text())
    lap = verify(again, "track-01")
    assert np.float32(lap.time_s) == replay.lap_time_s
    assert lap.is_clean


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (lambda r: replace(r, lap_time_s=np.nextafter(r.lap_time_s, np.float32(0.0))), "but re-simulated it takes"),
        (lambda r: replace(r, lap_time_s=np.float32(20.0)), r"claims lap 2 in 20\.000000 s, but re-simulated"),
        (lambda r: replace(r, lap=3), "claims lap 3, but re-simulated it completes 2 laps"),
        (lambda r: replace(r, actions=r.actions[:-60]), "claims lap 2, but re-simulated it completes 1 laps"),
        (lambda r: replace(r, actions=np.roll(r.actions, 1, axis=0)), "re-simulated"),
        (lambda r: replace(r, physics="1-000000000000"), "was driven with physics 1-000000000000; this version has"),
        (lambda r: replace(r, track_digest="0" * 16), "was driven on road 0000000000000000; that of track-01 is"),
    ],
)
def test_a_forged_replay_is_refused(casual, forge, words):
    with pytest.raises(ReplayError, match=words) as caught:
        verify(forge(casual), "track-01")
    assert "\n" not in str(caught.value)


def test_a_replay_of_another_road_is_refused(casual):
    with pytest.raises(ReplayError, match="that of track-02 is"):
        verify(casual, "track-02")


def test_a_clean_lap_counts_before_a_faster_one():
    laps = [Lap(0, 1, 30.0, True), Lap(0, 2, 28.0, False), Lap(0, 3, 29.0, True)]
    assert best_lap(laps).number == 3
    assert best_lap(laps[1:2]).number == 2


def test_a_driver_that_completes_no_lap_is_an_error():
    with pytest.raises(DriverError, match="completed no lap of track-01"):
        record_drive(ParkedDriver(), "track-01", num_laps=1)
