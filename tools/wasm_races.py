"""The functions of races that `build_wasm.py` compiles to WebAssembly, and what they take.

They call what the CPU engine of races calls. `obs` has `num_observations` columns.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, from_dtype, njit, types

from hotlap.sim.batch_cpu import find_bad_action
from hotlap.sim.contact import POSE_DTYPE
from hotlap.sim.engine import ALL_FINE
from hotlap.sim.race import ENTRANT_DTYPE, RACE_RULES_DTYPE, Field, show
from hotlap.sim.race_cpu import begin_race, step_and_see
from hotlap.sim.race_step import see
from hotlap.sim.step import Batch
from hotlap.sim.world import NUM_ACTIONS

RECORDS: dict[str, "np.dtype[np.void]"] = {
    "pose": POSE_DTYPE,
    "entrant": ENTRANT_DTYPE,
    "race_rules": RACE_RULES_DTYPE,
}


_inlined = njit(inline="always")  # a function of its own could not return these arrays


def _records(name: str) -> Any:
    return types.CPointer(from_dtype(RECORDS[name]))


_RACE = {"race": _records("race_rules")}
_FIELD = {
    "num_observations": types.int32,
    "poses": _records("pose"),
    "entrants": _records("entrant"),
    "final_entrants": _records("entrant"),
}


@_inlined
def _ribbons(tracks, num_tracks, nodes, num_nodes, portals, num_portals):
    return carray(tracks, (num_tracks,)), carray(nodes, (num_nodes,)), carray(portals, (num_portals,))


@_inlined
def _batch(num_cars, num_observations, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos):
    return Batch(
        carray(states, (num_cars,)), carray(obs, (num_cars, num_observations)), carray(rewards, (num_cars,)),
        carray(terminated, (num_cars,)), carray(truncated, (num_cars,)), carray(infos, (num_cars,)),
        carray(final_obs, (num_cars, num_observations)), carray(final_infos, (num_cars,)),
    )  # fmt: skip


@_inlined
def _field(num_cars, poses, entrants, final_entrants):
    return Field(carray(poses, (num_cars,)), carray(entrants, (num_cars,)), carray(final_entrants, (num_cars,)))


def _step_races(
    actions, autoreset, repeat,
    tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules, race,
    num_cars, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos,
    num_observations, poses, entrants, final_entrants,
):  # fmt: skip
    ribbons = _ribbons(tracks, num_tracks, nodes, num_nodes, portals, num_portals)
    batch = _batch(
        num_cars, num_observations, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos
    )
    field, rule, limits = _field(num_cars, poses, entrants, final_entrants), carray(rules, (1,)), carray(race, (1,))
    wanted, car = carray(actions, (num_cars, NUM_ACTIONS)), carray(cars, (1,))
    bad = find_bad_action(wanted)
    if bad == ALL_FINE:
        for number in range(num_cars // limits[0].num_cars):
            step_and_see(number, wanted, ribbons, car, rule, limits, batch, field, autoreset != 0, repeat)
    return bad


def _reset_races(
    mask,
    tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules, race,
    num_cars, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos,
    num_observations, poses, entrants, final_entrants,
):  # fmt: skip
    ribbons = _ribbons(tracks, num_tracks, nodes, num_nodes, portals, num_portals)
    batch = _batch(
        num_cars, num_observations, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos
    )
    field, rule, limits = _field(num_cars, poses, entrants, final_entrants), carray(rules, (1,)), carray(race, (1,))
    size = limits[0].num_cars
    num_races = num_cars // size
    wanted, car = carray(mask, (num_races,)), carray(cars, (1,))
    for number in range(num_races):
        if wanted[number]:
            first, last = number * size, (number + 1) * size
            begin_race(first, last, ribbons, rule, limits, batch, field)
            for i in range(first, last):
                see(i, first, last, ribbons, car, batch, field, batch.obs[i])
    return 0


def _observe_races(
    tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules, race,
    num_cars, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos,
    num_observations, poses, entrants, final_entrants,
):  # fmt: skip
    ribbons = _ribbons(tracks, num_tracks, nodes, num_nodes, portals, num_portals)
    batch = _batch(
        num_cars, num_observations, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos
    )
    field, car, limits = _field(num_cars, poses, entrants, final_entrants), carray(cars, (1,)), carray(race, (1,))
    for i in range(num_cars):
        show(batch.states[i], field.entrants[i], field.poses[i], ribbons[0], ribbons[1])
    for i in range(num_cars):
        first = i - i % limits[0].num_cars
        see(i, first, first + limits[0].num_cars, ribbons, car, batch, field, batch.obs[i])
    return 0


def race_functions(
    call: dict[str, dict[str, Any]], scenario: dict[str, Any], batch: dict[str, Any]
) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """The functions by name, with their parameters in order; `call` has those of `step` and `reset` alone."""
    shared = {**scenario, **_RACE, **batch, **_FIELD}
    return {
        "reset_races": (_reset_races, {**call["reset"], **shared}),
        "step_races": (_step_races, {**call["step"], **shared}),
        "observe_races": (_observe_races, shared),
    }
