"""The page's `sim.wasm` is this source's simulator, to the bit."""

import numpy as np
import pytest

import hotlap
from hotlap.drivers.driver import observation_of
from hotlap.drivers.packed import PackedDriver
from hotlap.envs.spaces import num_observations
from hotlap.evaluation.evaluate import drive_compiled, make_evaluation_fleet
from hotlap.sim import policy_forward
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.compilation import source_digest
from hotlap.sim.domain import make_actions
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.policy_forward import make_memory, pack_policy
from hotlap.sim.ribbon import NODE_DTYPE
from hotlap.sim.step import Batch
from hotlap.sim.vehicle import CAR_DTYPE, car_record
from hotlap.sim.world import INFO_DTYPE, STATE_DTYPE
from hotlap.tracks import golden_traces
from hotlap.tracks.registry import load_track
from sim.cuda_simulator import DOMAIN
from web.wasm_engine import DESCRIPTION, WasmEngine

BUILT_IN = ("track-01", "track-02", "track-03")
REBUILD = "run `python tools/build_wasm.py`"


def raw(array) -> bytes:
    """The bits of an array, without the padding of records."""
    columns = [array[name] for name in array.dtype.names] if array.dtype.names else [array]
    return b"".join(np.ascontiguousarray(column).tobytes() for column in columns)


def test_the_module_was_made_from_this_source():
    assert DESCRIPTION["source_digest"] == source_digest(), REBUILD
    assert DESCRIPTION["physics"] == hotlap.PHYSICS_VERSION, REBUILD


@pytest.mark.parametrize(("name", "dtype"), [("state", STATE_DTYPE), ("info", INFO_DTYPE), ("node", NODE_DTYPE)])
def test_the_description_has_every_field_where_it_is(name, dtype):
    record = DESCRIPTION["records"][name]
    assert record["size"] == dtype.itemsize
    assert {field: offset for field, (_, offset) in record["fields"].items()} == {
        field: dtype.fields[field][1] for field in dtype.names
    }


def test_the_described_car_is_the_simulators():
    described = np.zeros(1, CAR_DTYPE)
    for name, value in DESCRIPTION["car"].items():
        described[name] = value
    assert described.tobytes() == car_record().tobytes()


@pytest.mark.timeout(180)
def test_golden_traces_in_webassembly_give_the_physics_version():
    assert golden_traces.physics_version(WasmEngine()) == hotlap.PHYSICS_VERSION


@pytest.mark.timeout(180)
@pytest.mark.parametrize("track_id", BUILT_IN)
def test_thousands_of_random_steps_equal_the_cpus(track_id):
    num_cars, num_steps = 8, 800
    rng = np.random.default_rng(7)
    scenario = Scenario(load_track(track_id).ribbon, car_record(), golden_traces.golden_rules())
    batches, engines = [], [CpuEngine(), WasmEngine()]
    for engine in engines:
        batch = engine.make_batch(num_cars)
        batch.states["seed"] = np.arange(num_cars)
        engine.reset(np.ones(num_cars, np.bool_), scenario, batch)
        batches.append(batch)
    for step in range(num_steps):
        if step % 15 == 0:
            actions = rng.uniform([-1.2, -0.2, -0.6], [1.2, 1.2, 0.6], (num_cars, 3)).astype(np.float32)
        repeat = 1 + step % 3
        for engine, batch in zip(engines, batches, strict=True):
            assert engine.step(actions, scenario, batch, autoreset=True, repeat=repeat) == ALL_FINE
        for name in Batch._fields:
            mine, page = (raw(getattr(batch, name)) for batch in batches)
            assert mine == page, f"{name} differs after step {step}"
    assert batches[0].states["episode"].max() > 0  # an episode ended, so that resets were compared


def test_cars_that_differ_equal_the_cpus():
    num_cars, rng = 5, np.random.default_rng(3)
    rules = golden_traces.golden_rules()
    for name, value in DOMAIN.rules().items():
        rules[name] = value
    rules["max_ticks"] = 40
    drives = []
    for engine in (CpuEngine(), WasmEngine()):
        # Each engine writes the records of its own cars.
        scenario = Scenario(load_track("track-03").guided_ribbon, DOMAIN.car_records(num_cars), rules)
        batch = engine.make_batch(num_cars)
        batch.states["seed"] = np.arange(num_cars)
        engine.reset(np.ones(num_cars, np.bool_), scenario, batch)
        drives.append((engine, scenario, batch, make_actions(num_cars, DOMAIN.delay_high_ticks)))
    for step in range(120):
        asked = rng.uniform([-1.2, -0.2, -0.6], [1.2, 1.2, 0.6], (num_cars, 3)).astype(np.float32)
        for engine, scenario, batch, actions in drives:
            actions[:, :3] = asked
            assert engine.step(actions, scenario, batch, autoreset=True, repeat=1 + step % 3) == ALL_FINE
        for name in Batch._fields:
            mine, page = (raw(getattr(batch, name)) for _, _, batch, _ in drives)
            assert mine == page, f"{name} differs after step {step}"
    assert drives[0][2].states["episode"].min() > 2
    seen = [batch.obs.copy() for _, _, batch, _ in drives]
    for engine, scenario, batch, _ in drives:
        batch.obs[:] = 0.0
        engine.observe(scenario, batch)
    assert [raw(batch.obs) for _, _, batch, _ in drives] == [raw(obs) for obs in seen]


def test_a_bad_action_moves_no_car():
    engine, scenario = WasmEngine(), Scenario(load_track("track-01").ribbon, car_record(), golden_traces.golden_rules())
    batch = engine.make_batch(2)
    engine.reset(np.ones(2, np.bool_), scenario, batch)
    before = raw(batch.states)
    actions = np.array([[0.0, 1.0, 0.0], [0.0, np.nan, 0.0]], np.float32)
    assert engine.step(actions, scenario, batch, autoreset=False, repeat=1) == 1
    assert raw(batch.states) == before


@pytest.mark.parametrize("observation", ["road", "road-2"])
def test_the_view_of_the_road_equals_the_cpus(observation):
    scenario = Scenario(load_track("track-02").guided_ribbon, car_record(), golden_traces.golden_rules())
    cpu, page, rng = CpuEngine(), WasmEngine(), np.random.default_rng(1)
    batches = [engine.make_batch(16, num_observations(observation)) for engine in (cpu, page)]
    batches[0].states["seed"] = np.arange(16)
    cpu.reset(np.ones(16, np.bool_), scenario, batches[0])
    for _ in range(50):
        actions = rng.uniform([-1.0, 0.0, 0.0], [1.0, 1.0, 0.5], (16, 3)).astype(np.float32)
        cpu.step(actions, scenario, batches[0], autoreset=True, repeat=4)
        batches[1].states[:] = batches[0].states
        page.observe(scenario, batches[1])
        assert raw(batches[0].obs) == raw(batches[1].obs)
    assert np.abs(batches[0].obs[:, 14:]).max() > 0.5


def driving_policy(num_stack, activation, num_fourier, is_squashed, num_seen=14):
    """A policy that gets round track-01: the first layer leans to the side with more room, the rest is small noise."""
    rng = np.random.default_rng(3)
    num_inputs = num_stack * num_seen + 2 * num_fourier
    first = rng.normal(0.0, 0.003, (24, num_inputs)).astype(np.float32)
    bias, now = np.zeros(24, np.float32), (num_stack - 1) * num_seen
    # Two units of opposite sign each, so that activations that cut off one half let a value pass.
    for ray, weight in ((1, 0.08), (2, 0.26), (3, 0.035)):
        first[0, now + ray], first[0, now + 8 - ray] = weight, -weight
    first[2, now + 4], first[2, now + 9], bias[2] = 0.19, -0.3, 0.031
    first[1], first[3], bias[3] = -first[0], -first[2], -bias[2]
    last = rng.normal(0.0, 0.003, (3, 24)).astype(np.float32)
    last[:, :4] = [[9.6, -9.6, 0.0, 0.0], [0.0, 0.0, 5.6, -5.6], [0.0, 0.0, -5.6, 5.6]]
    layers = [(first, bias), (last, np.zeros(3, np.float32))]
    bounds = np.array([-1, 0, 0], np.float32), np.ones(3, np.float32)
    mean, scale = rng.normal(0.0, 1e-3, num_inputs), rng.uniform(0.9, 1.1, num_inputs)
    return pack_policy(
        layers, activation=activation, bounds=bounds, mean=mean, scale=scale, clip=10.0,
        num_observations=num_seen, num_stack=num_stack, num_fourier=num_fourier, is_squashed=is_squashed,
    )  # fmt: skip


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("policy", "repeat", "laps"),
    [
        (driving_policy(2, "tanh", 4, is_squashed=False), 3, 2),
        (driving_policy(1, "relu", 0, is_squashed=True), 1, 0),
        (driving_policy(3, "elu", 2, is_squashed=False), 2, 0),
        (driving_policy(1, "tanh", 4, is_squashed=False, num_seen=num_observations("road")), 3, 0),
        (driving_policy(1, "tanh", 0, is_squashed=False, num_seen=num_observations("road-2")), 4, 0),
    ],
    ids=["tanh", "relu", "elu", "road", "road-2"],
)
def test_a_policy_drives_the_cpus_lap(policy, repeat, laps):
    """Decisions and ticks as the page makes them, against the compiled loop of `hotlap evaluate`."""
    driver = PackedDriver(policy, repeat, "packed")
    fleet = make_evaluation_fleet("track-01", 1, observation_of(driver))
    fleet.reset(start="line")
    counter = drive_compiled(driver, fleet, max(laps, 1), num_threads=1)
    assert len(counter.laps) >= laps, "the test's policy must get round"

    engine = WasmEngine()
    batch, seen = engine.make_batch(1), engine.put(np.zeros_like(fleet.batch.obs))
    engine.reset(np.ones(1, np.bool_), fleet.scenario, batch)
    memory = policy_forward.PolicyMemory(*map(engine.put, make_memory(policy, 1)))
    placed = policy_forward.PackedPolicy(*map(engine.put, policy))
    lap_times_s = []
    for tick in range(int(fleet.states["tick"][0])):
        if tick % repeat == 0:
            engine.observe(fleet.scenario, batch._replace(obs=seen))
            engine.decide(placed, seen, memory)
        engine.step(memory.actions, fleet.scenario, batch, autoreset=False, repeat=1)
        if np.isfinite(batch.infos["lapTime"][0]):
            lap_times_s.append(float(batch.infos["lapTime"][0]))
    assert raw(batch.states) == raw(fleet.states)
    assert raw(batch.obs) == raw(np.ascontiguousarray(fleet.batch.obs[:, :14]))
    assert lap_times_s == [lap.time_s for lap in counter.laps]
