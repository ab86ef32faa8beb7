"""Cars behind a bridge as a fleet: the state of the same cars in this process, several connections, refusals."""

from contextlib import ExitStack, closing

import numpy as np
import pytest

from bridge.json_clients import SHORT_RANDOM
from hotlap.bridge import remote_fleet
from hotlap.bridge.remote_fleet import RemoteCars, RemoteFleet
from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, BridgeConnectionError, BridgeError, ConfigError, StateError
from hotlap.sim.batch_cpu import CpuEngine

SETTINGS = RacerSettings.load(SHORT_RANDOM)
TRACKS = ["track-03", "track-01", "track-02"]
NUM_CARS = 10


@pytest.fixture
def make(bridge_server):
    """A factory of remote fleets, which closes them at the end."""
    with ExitStack() as stack:

        def make(num_cars: int = NUM_CARS, **options) -> RemoteFleet:
            cars = RemoteCars(num_cars, TRACKS, SETTINGS, "road", **options)
            return stack.enter_context(closing(RemoteFleet(bridge_server.url, cars)))

        yield make


def begin(fleet: Fleet | RemoteFleet, seeds: range = range(5, 5 + NUM_CARS)) -> None:
    fleet.seed(np.array(list(seeds), np.uint64))
    fleet.reset()


def drive(fleet: Fleet | RemoteFleet, num_steps: int, repeat: int = 3) -> list[bytes]:
    """Everything that random actions lead to, as bytes."""
    rng, seen = np.random.default_rng(num_steps), []
    for _ in range(num_steps):
        fleet.step(rng.uniform(-1, 1, (NUM_CARS, 3)).astype(np.float32), autoreset=True, repeat=repeat)
        batch = fleet.batch
        ended = batch.terminated | batch.truncated
        seen += [batch.obs.tobytes(), batch.rewards.tobytes(), batch.terminated.tobytes(), batch.truncated.tobytes()]
        for infos in (batch.infos, batch.final_infos[ended]):
            seen += [infos[name].tobytes() for name in infos.dtype.names]
        seen.append(batch.final_obs[ended].tobytes())
    return seen


@pytest.mark.parametrize("is_binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("num_per_connection", [1024, 4])
def test_cars_states_and_resets_are_those_of_a_local_fleet(make, monkeypatch, is_binary, num_per_connection):
    monkeypatch.setattr(remote_fleet, "MAX_ENVS", num_per_connection)
    local = Fleet(TRACKS, SETTINGS, NUM_CARS, CpuEngine(), "road")
    remote = make(action_repeat=3, is_binary=is_binary)
    assert len(remote._parts) == -(-NUM_CARS // num_per_connection)
    for fleet in (local, remote):
        begin(fleet)
    assert remote.batch.obs.tobytes() == local.batch.obs.tobytes()
    assert drive(remote, 40) == drive(local, 40)
    saved, again = local.get_state(), remote.get_state()
    assert [(name, column.tobytes()) for name, column in saved.items()] == [
        (name, column.tobytes()) for name, column in again.items()
    ]
    for fleet in (local, remote):
        fleet.next_episode()
        fleet.reset(start="line")
    assert remote.batch.obs.tobytes() == local.batch.obs.tobytes()
    other = make(action_repeat=3, is_binary=is_binary)
    for fleet in (local, other):
        fleet.set_state(saved)
    assert other.batch.obs.tobytes() == local.batch.obs.tobytes()
    assert drive(other, 30) == drive(local, 30)


def test_a_state_that_does_not_fit_is_refused(make):
    fleet = make()
    begin(fleet)
    state = fleet.get_state()
    bad = {
        "columns": {name: column for name, column in state.items() if name != "lap"},
        "of shape": {name: column[1:] for name, column in state.items()},
        "must be float32": {**state, "x_m": state["x_m"].astype(np.float64)},
        "finite": {**state, "x_m": np.full_like(state["x_m"], np.nan)},
        "does not have": {**state, "track": state["track"] + 3},
        "beyond the end of its track": {**state, "node": state["node"] + 10**6},
    }
    for words, wrong in bad.items():
        with pytest.raises(StateError, match=f"state: .*{words}"):
            fleet.set_state(wrong)
    assert {name: column.tobytes() for name, column in fleet.get_state().items()} == {
        name: column.tobytes() for name, column in state.items()
    }


def test_what_a_bridge_cannot_do_is_refused_and_no_car_moves(make):
    fleet = make(action_repeat=3)
    begin(fleet)
    state = fleet.get_state()
    actions = np.zeros((NUM_CARS, 3), np.float32)
    with pytest.raises(ConfigError, match="begin their episodes together"):
        fleet.reset(mask=np.arange(NUM_CARS) > 2)
    for autoreset, repeat in ((False, 3), (True, 1)):
        with pytest.raises(ConfigError, match="repeat actions 3 times"):
            fleet.step(actions, autoreset, repeat)
    actions[4, 1] = np.nan
    with pytest.raises(ActionError, match="action of car 4 must be finite"):
        fleet.step(actions, True, 3)
    assert fleet.get_state()["tick"].tolist() == state["tick"].tolist()


def test_a_bridge_that_answers_with_other_cars_is_an_error_and_several_connections_are_closed(make, monkeypatch):
    monkeypatch.setattr(remote_fleet, "MAX_ENVS", 4)
    fleet = make()
    begin(fleet)
    read = remote_fleet.read_step

    def fewer(data: bytes, num_obs: int):
        step = read(data, num_obs)
        return step.__class__(**{**vars(step), "obs": step.obs[1:]})

    monkeypatch.setattr(remote_fleet, "read_step", fewer)
    with pytest.raises(BridgeError, match="has observations of shape"):
        drive(fleet, 1, 1)
    with pytest.raises(BridgeConnectionError, match="closed"):
        drive(fleet, 1, 1)


def test_actions_that_arrive_late_are_refused_in_one_line():
    settings = RacerSettings.load({"domain": {"delayHigh": 2}})
    with pytest.raises(ConfigError, match=r"^delayHigh: a fleet behind a bridge cannot save actions under way\."):
        RemoteCars(1, ["track-01"], settings, "rays")
    RemoteCars(1, ["track-01"], RacerSettings.load({"domain": {"gripLow": 0.8, "observationNoise": 0.1}}), "rays")
