"""Settings of cars that differ: texts, refusals, saved states, threads, races."""

import numpy as np
import pytest

from hotlap.envs.domain import DomainRules, parse_domain
from hotlap.envs.fleet import Fleet
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ConfigError, StateError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.tracks.golden_traces import scripted_actions

ALL = "grip=0.8:1.1,mass=0.9:1.1,power=0.9:1.1,delay=1:5,noise=0.02"


def make_fleet(text=ALL, num_cars=6, num_threads=1, max_ticks=50):
    domain = {} if text is None else {"domain": parse_domain(text, "car")}
    settings = RacerSettings(**domain)
    episode = RacerSettings.load({"episode": {"start": "random", "maxSteps": max_ticks}}).episode
    fleet = Fleet(
        ["track-01"],
        RacerSettings(settings.rewards, episode, settings.domain),
        num_cars,
        CpuEngine(num_threads),
        "road",
    )
    fleet.seed(np.arange(num_cars, dtype=np.uint64))
    fleet.reset()
    return fleet


def drive(fleet, num_steps=40, first=0):
    """The observations and rewards of some steps."""
    found = []
    for step in range(first, first + num_steps):
        fleet.step(scripted_actions(fleet.batch.obs, step), autoreset=True, repeat=2)
        batch = fleet.batch
        final_obs = batch.final_obs[batch.terminated | batch.truncated]
        found.append(batch.obs.tobytes() + batch.rewards.tobytes() + final_obs.tobytes())
    return found


# --- texts ---


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("grip=0.9", DomainRules(grip_low=0.9, grip_high=0.9)),
        (" grip=0.8:1.1 , mass=1.2", DomainRules(grip_low=0.8, grip_high=1.1, mass_low=1.2, mass_high=1.2)),
        ("power=0.75,delay=2:4", DomainRules(power_low=0.75, power_high=0.75, delay_low_ticks=2, delay_high_ticks=4)),
        ("delay=0:3,noise=0.01", DomainRules(delay_high_ticks=3, observation_noise=0.01)),
        ("grip=1", DomainRules()),
    ],
)
def test_a_text_and_its_rules(text, rules):
    assert parse_domain(text, "--car") == rules
    assert not str(rules) or parse_domain(str(rules), "--car") == rules
    assert rules.is_standard == (str(rules) == "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grip", r"'grip' is not NAME=NUMBER or NAME=LOW:HIGH. Give it a value: grip=1\."),
        ("grap=0.9", r"'grap=0.9' is not NAME=NUMBER or NAME=LOW:HIGH. Did you mean 'grip'\?"),
        ("", r"'' is not NAME=NUMBER"),
        ("grip", r"'grip' is not NAME=NUMBER"),
        ("grip=much", r"--car: grip must be a number, got 'much'\."),
        ("grip=nan", r"grip must be finite, got nan\."),
        ("delay=1.5", r"--car: delay must be a whole number, got '1.5'\."),
        ("delay=31", r"delay_low_ticks must be from 0 to 30 ticks, got 31\."),
        ("grip=0.2", r"grip_low must be from 0.5 to 1.5, got 0.2\."),
        ("grip=1.1:0.9", r"grip_low must not be more than grip_high, got 1.1 and 0.9\."),
        ("noise=0:0.1", r"noise takes one value, once\."),
        ("grip=1:1.1:1.2", r"grip takes one value or LOW:HIGH, once\."),
        ("grip=1,grip=0.9", r"grip takes one value or LOW:HIGH, once\."),
    ],
)
def test_a_bad_text_is_refused_in_one_line(text, words):
    with pytest.raises(ConfigError, match=words) as refusal:
        parse_domain(text, "--car")
    assert "\n" not in str(refusal.value)


def test_the_keys_of_ai_config():
    found = RacerSettings.load({"domain": {"gripLow": 0.8, "gripHigh": 1.1, "delayHigh": 3, "observationNoise": 0.01}})
    assert found.domain == DomainRules(grip_low=0.8, grip_high=1.1, delay_high_ticks=3, observation_noise=0.01)
    with pytest.raises(ConfigError, match=r"unknown key 'grip_low'\. Did you mean 'gripLow'"):
        RacerSettings.load({"domain": {"grip_low": 0.8}})


def test_races_refuse_cars_that_differ():
    settings = RacerSettings(domain=DomainRules(mass_low=0.9, mass_high=0.9))
    with pytest.raises(ConfigError, match=r"domain: the cars of a race are all the standard car, got mass=0.9\."):
        RaceFleet(["track-01"], settings, 1, 2)


# --- bits ---


def test_factors_of_one_give_the_bits_of_the_standard_car():
    assert drive(make_fleet("grip=1,mass=1:1,power=1,delay=0,noise=0")) == drive(make_fleet(None))
    assert drive(make_fleet("grip=0.999")) != drive(make_fleet(None))


def test_a_drawn_range_of_one_point_is_the_fixed_car_to_rounding():
    """What a car draws is a factor of the fixed car: both ways to 0.9 give the same drive but for the last bits."""
    fixed, drawn = make_fleet("grip=0.9"), make_fleet("grip=0.8999999:0.9000001")
    for fleet in (fixed, drawn):
        drive(fleet, 10)
    np.testing.assert_allclose(fixed.states["x_m"], drawn.states["x_m"], atol=1e-3)


def test_threads_do_not_change_bits():
    many = [make_fleet(num_cars=130, num_threads=threads) for threads in (1, 2)]
    assert drive(many[0], 12) == drive(many[1], 12)


def test_a_car_does_not_depend_on_the_others():
    drive(few := make_fleet(num_cars=2), 20)
    drive(many := make_fleet(num_cars=5), 20)
    for name in few.states.dtype.names:
        assert few.states[name].tobytes() == many.states[name][:2].tobytes(), name


@pytest.mark.parametrize("text", [ALL, "delay=3", "grip=0.8:1.1"])
def test_a_saved_state_continues_with_the_same_bits(text):
    fleet = make_fleet(text)
    drive(fleet, 33)
    saved = fleet.get_state()
    expected = drive(fleet, 20, first=33)
    other = make_fleet(text)
    drive(other, 7)
    other.set_state(saved)
    assert drive(other, 20, first=33) == expected


def test_a_state_without_the_actions_under_way_is_refused():
    fleet, plain = make_fleet("delay=3"), make_fleet(None)
    with pytest.raises(StateError, match="under_way_0"):
        fleet.set_state(plain.get_state())
    with pytest.raises(StateError, match="its columns are not those of this version"):
        plain.set_state(fleet.get_state())
    saved = fleet.get_state()
    saved["under_way_4"][1] = np.nan
    before = fleet.states.tobytes()
    with pytest.raises(StateError, match="'under_way_4' must be finite"):
        fleet.set_state(saved)
    assert fleet.states.tobytes() == before
