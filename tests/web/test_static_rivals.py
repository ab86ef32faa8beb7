"""Races against rivals in a real browser: the grid, contact, the order, the finish, with the simulator's bits."""

import json

import numpy as np
import pytest

from hotlap.sim.engine import ALL_FINE, Races, Scenario
from hotlap.sim.race import START_GRID, make_field, race_rules
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import car_record
from hotlap.tracks.digest import track_digest
from hotlap.tracks.golden_traces import golden_rules
from hotlap.tracks.registry import load_track
from hotlap.web.race_replay_format import RivalGroup, RivalRace
from hotlap.web.rival_kernels import CASUAL_VERSION
from hotlap.web.rival_races import CasualRivals, start_race

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def page(used_page):
    """Race; a visitor's first one is against the clock again afterwards."""
    used_page.show("race")
    yield used_page
    used_page.evaluate("hotlap.app.views.race.setFormat('ghost')")


def line_up(page, **settings):
    """Put a field on the grid."""
    page.wait("document.querySelector('[data-action=start]')")
    chosen = json.dumps(settings)
    page.evaluate(
        "(async () => { const race = hotlap.app.views.race; await race.setFormat('rivals'); "
        f"Object.assign(race.rivals, {chosen}); await race.prepare(); }})()"
    )
    page.wait("document.querySelector('[data-action=start]')")


def test_twelve_cars_start_are_ordered_and_classified(page):
    line_up(page, numRivals=11, kind="mix", laps=1, place="back")
    assert len(page.state()["cars"]) == 12
    positions = "hotlap.app.stage.cars.map((car) => hotlap.app.views.race.rivals.position(car.index))"
    page.evaluate("hotlap.setPace(8)")
    page.click("[data-action=start]")
    page.wait("hotlap.state().racing && hotlap.state().tick > 200")
    assert sorted(page.evaluate(positions)) == list(range(1, 13))
    assert page.evaluate("document.querySelectorAll('#tower li').length") == 12
    assert "12 of 12" in page.evaluate("document.querySelector('#tower').textContent")  # it stands, others do not
    page.wait("document.querySelector('#classification')", 90)
    rows = page.evaluate("[...document.querySelectorAll('#classification tbody tr')].map((row) => row.dataset.car)")
    assert len(rows) == 12
    assert rows[0].startswith("champion")
    assert rows[-1] == "human"
    assert page.evaluate("document.activeElement.textContent.startsWith('Again')")
    assert page.errors == []


def test_a_car_that_runs_into_another_is_told_whose_fault_it_is(page):
    line_up(page, numRivals=2, kind="casual", laps=1, place="back")
    # The others sleep; the person drives straight on, into the car ahead.
    said = page.evaluate(
        "(() => { const { stage, views } = hotlap.app; views.race.setPhase('racing');"
        "stage.cars.forEach((car, k) => { car.pilot = { act: (world) => world.setAction(k, 0, k ? 0 : 1, 0) }; });"
        "for (let k = 0; k < 240 && !document.querySelector('.flash'); k += 1) stage.advance();"
        "return document.querySelector('.flash').textContent; })()"
    )
    assert said == "Contact: your fault"
    assert page.evaluate("hotlap.app.views.race.rivals.contacts[0]")["faults"] >= 1
    assert page.evaluate("hotlap.app.views.race.rivals.contacts.slice(1).reduce((sum, one) => sum + one.all, 0)") >= 1
    assert page.errors == []


def test_a_race_in_the_browser_has_the_cpus_bits(page):
    """The same inputs, driven again by the CPU's engine of races, end in the same states and times."""
    line_up(page, numRivals=3, kind="champion", laps=1, place="middle")
    inputs, states, slots, positions = page.evaluate(
        "(() => { const { stage } = hotlap.app; const inputs = [];"
        "stage.cars[0].pilot = { act: (world) => world.setAction(0, 0, 1, 0) }; stage.onTick = null;"
        "for (let k = 0; k < 600; k += 1) { stage.advance(); inputs.push([...stage.world.actions]); }"
        "const { rivals } = hotlap.app.views.race;"
        "const size = stage.world.records.state.size * 4;"
        "const bytes = [...stage.world.u8.subarray(stage.world.at.states, stage.world.at.states + size)];"
        "return [inputs, bytes, stage.world.slots, stage.cars.map((car) => rivals.position(car.index))]; })()"
    )
    scenario = Scenario(load_track("track-01").ribbon, car_record(), golden_rules())
    batch, field = make_batch(4, NUM_RACE_OBSERVATIONS), make_field(4)
    engine, races = CpuRaceEngine(), Races(scenario, race_rules(4, 1, START_GRID, 100_000), batch, field)
    field.entrants["slot"] = slots
    engine.reset(np.ones(1, np.bool_), races)
    num_contacts = 0
    for actions in np.array(inputs, np.float32).reshape(-1, 4, 3):
        assert engine.step(actions, races, autoreset=False, repeat=1) == ALL_FINE
        num_contacts += np.count_nonzero(field.entrants["contact_mps"])
    assert num_contacts > 0
    assert field.entrants["position"].tolist() == positions
    there = np.frombuffer(bytes(states), batch.states.dtype)
    for column in ("x_m", "y_m", "yaw_rad", "forward_mps", "left_mps", "arc_m", "lap"):
        assert there[column].tobytes() == batch.states[column].tobytes(), column


def test_the_casual_rival_laps_as_the_casual_driver_does(page):
    line_up(page, numRivals=1, kind="casual", laps=2, place="back")
    lap_s, is_clean = page.evaluate(
        "(async () => { const { CasualPilot } = await import('./js/casual_pilot.js'); const { stage } = hotlap.app;"
        "const car = stage.cars[1]; car.pilot = new CasualPilot(stage.world, 1); car.pilot.begin();"
        "stage.onTick = null;"
        "while (car.laps.length < 1 && stage.tick < 6000) stage.advance();"
        "return [car.laps[0]?.time, car.laps[0]?.clean]; })()"
    )
    assert is_clean
    assert lap_s == pytest.approx(40.73, rel=0.08)  # its first lap, from the grid

    # Rivals that are turned around, or stand behind a car that does not start, drive as the server's do.
    line_up(page, numRivals=3, kind="casual", laps=2, place="front")
    states = page.evaluate(
        "(() => { const { stage } = hotlap.app; const { world } = stage; const { size, fields } = world.records.state;"
        "const at = (car) => (world.at.states + car * size + fields.yaw_rad[1]) >> 2;"
        "world.f32[at(1)] += 2.5; world.f32[at(3)] -= 1.5; stage.onTick = null;"
        "stage.cars[0].pilot = { act: () => world.setAction(0, 0, 0, 0) };"
        "for (const car of stage.cars.slice(1)) car.pilot.begin();"
        "for (let k = 0; k < 1200; k += 1) stage.advance();"
        "return [...world.u8.subarray(world.at.states, world.at.states + 4 * size)]; })()"
    )
    fleet = start_race(rival_race((0, 1, 2, 3), CASUAL_VERSION), "track-01")
    fleet.states["yaw_rad"][[1, 3]] += np.array([2.5, -1.5], np.float32)
    rivals, actions = CasualRivals(fleet, range(1, 4)), np.zeros((4, 3), np.float32)
    for _ in range(1200):
        rivals.act(actions)
        fleet.step(actions, autoreset=False)
    there = np.frombuffer(bytes(states), fleet.states.dtype)
    for column in ("x_m", "y_m", "yaw_rad", "forward_mps"):
        assert there[column].tobytes() == fleet.states[column].tobytes(), column
    assert (fleet.states["forward_mps"][1:] > 10.0).all()
    assert page.errors == []


def rival_race(slots, version):
    """Two laps of track-01 against casual rivals; nobody has driven yet."""
    nothing, times_s = np.zeros((1, 3), np.float32), np.full(len(slots), np.nan, np.float32)
    rivals = (RivalGroup("casual", version, len(slots) - 1),)
    return RivalRace(track_digest(load_track("track-01").nodes), 2, rivals, slots, nothing, times_s)
