"""The functions of the compiled PPO that `build_wasm.py` compiles to `learn.wasm`, and what `learn.json` says of them.

They have the names of `hotlap.learning.compiled.entry_points` and call the same kernels. Sizes are the recipe's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, from_dtype, njit, types

from hotlap.learning.compiled import layout
from hotlap.learning.compiled.entry_points import HERE, begin_all
from hotlap.learning.compiled.layout import NUM_GRADIENTS, NUM_PARTS, NUM_TALLIES, LearnerArrays, PartArrays
from hotlap.learning.compiled.learner import CompiledRecipe
from hotlap.learning.compiled.model import PLACES, fixed_arrays, make_card
from hotlap.learning.compiled.rollout import (
    begin_cars,
    collect_rollout,
    judge_rollout,
    merge_tallies,
    normalize_advantages,
    set_factors,
)
from hotlap.learning.compiled.update import adapt, begin_figures, compute_gradients, shuffle_rows, take_step
from hotlap.sim.compilation import folder_digest, source_digest
from hotlap.sim.step import Batch, make_batch

RECORDS: dict[str, "np.dtype[np.void]"] = {"recipe": layout.RECIPE_DTYPE, "learner": layout.LEARNER_DTYPE}
NUM_SEEN, NUM_AXES, NUM_WORK, SIZE = layout.NUM_SEEN, layout.NUM_AXES, layout.NUM_WORK, layout.SIZE
NUM_WEIGHTS = layout.NUM_WEIGHTS

_int, _floats, _doubles, _ints = (
    types.int32,
    types.CPointer(types.float32),
    types.CPointer(types.float64),
    types.CPointer(types.int32),
)
_inlined = njit(inline="always")  # a function of its own could not return these arrays


def _records(name: str) -> Any:
    return types.CPointer(from_dtype(RECORDS[name]))


_RECIPE = {"recipe": _records("recipe")}
_LEARNER = {
    "learner": _records("learner"), "weights": _floats, "moments": _floats, "statistics": _doubles, "factors": _floats,
}  # fmt: skip
_PART = {
    "observations": _floats, "actions": _floats, "log_probs": _floats, "rewards_scaled": _floats,
    "continues": _floats, "values": _floats, "advantages": _floats, "targets": _floats, "running": _floats,
    "cut_observations": _floats, "cut_rows": _ints, "cut_count": _ints, "order": _ints, "tallies": _doubles,
    "gradients": _floats, "wanted": _floats, "work": _floats,
}  # fmt: skip
_ALL_TALLIES, _ALL_GRADIENTS = {"all_tallies": _doubles}, {"all_gradients": _floats}
_INDEX = {"part_index": _int}


@_inlined
def _learner(learner, weights, moments, statistics, factors):
    return LearnerArrays(
        carray(learner, (1,)), carray(weights, (NUM_WEIGHTS,)), carray(moments, (2 * NUM_WEIGHTS,)),
        carray(statistics, (NUM_TALLIES,)), carray(factors, (3 * NUM_SEEN,)),
    )  # fmt: skip


@_inlined
def _part(
    num_cars, num_rows, observations, actions, log_probs, rewards_scaled, continues, values, advantages, targets,
    running, cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
):  # fmt: skip
    return PartArrays(
        carray(observations, ((num_rows + num_cars) * SIZE,)), carray(actions, (NUM_AXES * num_rows,)),
        carray(log_probs, (num_rows,)), carray(rewards_scaled, (num_rows,)), carray(continues, (num_rows,)),
        carray(values, (num_rows + num_cars,)), carray(advantages, (num_rows,)), carray(targets, (num_rows,)),
        carray(running, (num_cars,)), carray(cut_observations, (num_cars * SIZE,)), carray(cut_rows, (num_cars,)),
        carray(cut_count, (1,)), carray(order, (num_rows,)), carray(tallies, (NUM_TALLIES,)),
        carray(gradients, (NUM_GRADIENTS,)), carray(wanted, (num_cars, 3)), carray(work, (NUM_WORK,)),
    )  # fmt: skip


@_inlined
def _batch(num_cars, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos):
    return Batch(
        carray(states, (num_cars,)), carray(obs, (num_cars, NUM_SEEN)), carray(rewards, (num_cars,)),
        carray(terminated, (num_cars,)), carray(truncated, (num_cars,)), carray(infos, (num_cars,)),
        carray(final_obs, (num_cars, NUM_SEEN)), carray(final_infos, (num_cars,)),
    )  # fmt: skip


@_inlined
def _ribbons(tracks, num_tracks, nodes, num_nodes, portals, num_portals):
    return carray(tracks, (num_tracks,)), carray(nodes, (num_nodes,)), carray(portals, (num_portals,))


def _begin_learner(recipe, learner, weights, moments, statistics, factors):
    begin_all(carray(recipe, (1,))[0], _learner(learner, weights, moments, statistics, factors))
    return 0


def _begin_part(
    recipe, part_index, tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules,
    states, obs, rewards, terminated, truncated, infos, final_obs, final_infos,
    observations, actions, log_probs, rewards_scaled, continues, values, advantages, targets, running,
    cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
):  # fmt: skip
    plan = carray(recipe, (1,))[0]
    size = plan.num_cars
    ribbons = _ribbons(tracks, num_tracks, nodes, num_nodes, portals, num_portals)
    batch = _batch(size, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos)
    part = _part(
        size, size * plan.num_steps, observations, actions, log_probs, rewards_scaled, continues, values, advantages,
        targets, running, cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
    )  # fmt: skip
    begin_cars(plan, part_index, ribbons, carray(cars, (1,)), carray(rules, (1,)), batch, part)
    return 0


def _collect(
    recipe, part_index, tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules,
    states, obs, rewards, terminated, truncated, infos, final_obs, final_infos,
    learner, weights, moments, statistics, factors,
    observations, actions, log_probs, rewards_scaled, continues, values, advantages, targets, running,
    cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
):  # fmt: skip
    plan = carray(recipe, (1,))[0]
    size = plan.num_cars
    ribbons = _ribbons(tracks, num_tracks, nodes, num_nodes, portals, num_portals)
    batch = _batch(size, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos)
    part = _part(
        size, size * plan.num_steps, observations, actions, log_probs, rewards_scaled, continues, values, advantages,
        targets, running, cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
    )  # fmt: skip
    known = _learner(learner, weights, moments, statistics, factors)
    return collect_rollout(plan, part_index, ribbons, carray(cars, (1,)), carray(rules, (1,)), batch, known, part)


def _merge(recipe, learner, weights, moments, statistics, factors, all_tallies):
    known = _learner(learner, weights, moments, statistics, factors)
    merge_tallies(carray(recipe, (1,))[0], known, carray(all_tallies, (NUM_PARTS, NUM_TALLIES)))
    begin_figures(known)
    return 0


def _judge(
    recipe, learner, weights, moments, statistics, factors,
    observations, actions, log_probs, rewards_scaled, continues, values, advantages, targets, running,
    cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
):  # fmt: skip
    plan = carray(recipe, (1,))[0]
    part = _part(
        plan.num_cars, plan.num_cars * plan.num_steps, observations, actions, log_probs, rewards_scaled, continues,
        values, advantages, targets, running, cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted,
        work,
    )  # fmt: skip
    judge_rollout(plan, _learner(learner, weights, moments, statistics, factors), part)
    return 0


def _normalize(
    recipe, all_tallies,
    observations, actions, log_probs, rewards_scaled, continues, values, advantages, targets, running,
    cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
):  # fmt: skip
    plan = carray(recipe, (1,))[0]
    part = _part(
        plan.num_cars, plan.num_cars * plan.num_steps, observations, actions, log_probs, rewards_scaled, continues,
        values, advantages, targets, running, cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted,
        work,
    )  # fmt: skip
    normalize_advantages(plan, part, carray(all_tallies, (NUM_PARTS, NUM_TALLIES)))
    return 0


def _shuffle(
    recipe, part_index, epoch, learner, weights, moments, statistics, factors,
    observations, actions, log_probs, rewards_scaled, continues, values, advantages, targets, running,
    cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
):  # fmt: skip
    plan = carray(recipe, (1,))[0]
    part = _part(
        plan.num_cars, plan.num_cars * plan.num_steps, observations, actions, log_probs, rewards_scaled, continues,
        values, advantages, targets, running, cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted,
        work,
    )  # fmt: skip
    shuffle_rows(plan, part_index, _learner(learner, weights, moments, statistics, factors), epoch, part)
    return 0


def _differentiate(
    recipe, batch_index, learner, weights, moments, statistics, factors,
    observations, actions, log_probs, rewards_scaled, continues, values, advantages, targets, running,
    cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted, work,
):  # fmt: skip
    plan = carray(recipe, (1,))[0]
    part = _part(
        plan.num_cars, plan.num_cars * plan.num_steps, observations, actions, log_probs, rewards_scaled, continues,
        values, advantages, targets, running, cut_observations, cut_rows, cut_count, order, tallies, gradients, wanted,
        work,
    )  # fmt: skip
    compute_gradients(plan, _learner(learner, weights, moments, statistics, factors), part, batch_index)
    return 0


def _descend(recipe, is_last_epoch, learner, weights, moments, statistics, factors, all_gradients):
    known = _learner(learner, weights, moments, statistics, factors)
    steps = carray(all_gradients, (NUM_PARTS, NUM_GRADIENTS))
    take_step(carray(recipe, (1,))[0], known, steps, is_last_epoch != 0)
    return 0


def _finish(recipe, learner, weights, moments, statistics, factors):
    known = _learner(learner, weights, moments, statistics, factors)
    adapt(carray(recipe, (1,))[0], known)
    set_factors(known)
    return 0


def learner_functions(
    scenario: dict[str, Any], batch: dict[str, Any]
) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """The functions and their parameters; `scenario` and `batch` are those of the simulator's functions."""
    world = scenario | {name: kind for name, kind in batch.items() if name != "num_cars"}
    return {
        "begin_learner": (_begin_learner, _RECIPE | _LEARNER),
        "begin_part": (_begin_part, _RECIPE | _INDEX | world | _PART),
        "collect": (_collect, _RECIPE | _INDEX | world | _LEARNER | _PART),
        "merge": (_merge, _RECIPE | _LEARNER | _ALL_TALLIES),
        "judge": (_judge, _RECIPE | _LEARNER | _PART),
        "normalize": (_normalize, _RECIPE | _ALL_TALLIES | _PART),
        "shuffle": (_shuffle, _RECIPE | _INDEX | {"epoch": _int} | _LEARNER | _PART),
        "differentiate": (_differentiate, _RECIPE | {"batch_index": _int} | _LEARNER | _PART),
        "descend": (_descend, _RECIPE | {"is_last_epoch": _int} | _LEARNER | _ALL_GRADIENTS),
        "finish": (_finish, _RECIPE | _LEARNER),
    }


def _describe_bytes(arrays: Any, **renamed: str) -> dict[str, int]:
    """The bytes that each array takes, by its parameter's name."""
    return {renamed.get(name, name): int(array.nbytes) for name, array in arrays._asdict().items()}


def describe_learner(
    functions: dict[str, tuple[Callable[..., Any], dict[str, Any]]],
    describe_record: Callable[..., dict[str, Any]],
    describe_values: Callable[..., dict[str, float]],
) -> dict[str, Any]:
    """What the page has to know to learn, so that no size and no setting is written in JavaScript."""
    recipe = CompiledRecipe()
    record = recipe.record(seed=0)
    num_cars = int(record["num_cars"][0])
    batch = make_batch(num_cars, NUM_SEEN)
    return {
        "source_digest": learner_digest(),
        "num_parts": NUM_PARTS,
        "num_epochs": recipe.num_epochs,
        "num_batches": recipe.decisions_per_rollout // recipe.batch_rows,
        "decisions_per_rollout": recipe.decisions_per_rollout,
        "action_repeat": recipe.action_repeat,
        "num_observations": NUM_SEEN,
        "size": SIZE,
        "functions": {name: list(parameters) for name, (_, parameters) in functions.items()},
        "records": {name: describe_record(dtype) for name, dtype in RECORDS.items()},
        "recipe": describe_values(record),
        "rules": describe_values(recipe.racer.rules()),
        # Bytes of each array; those of all parts lie one after the other.
        "learner_bytes": _describe_bytes(layout.make_learner()),
        "part_bytes": _describe_bytes(layout.make_part(num_cars, recipe.num_steps), rewards="rewards_scaled"),
        "batch_bytes": _describe_bytes(batch),
        "statistics": {"count": layout.SEEN_COUNT, "sums": layout.SEEN_SUMS, "squares": layout.SEEN_SQUARES},
        "model": {
            "card": make_card(recipe).as_plain(),
            "places": {name: list(place) for name, place in PLACES.items()},
            "log_std": [layout.LOG_STD, layout.LOG_STD + 1, layout.LOG_STD + 1],
            "fixed": {name: [list(array.shape), array.ravel().tolist()] for name, array in fixed_arrays().items()},
        },
    }


def learner_digest() -> str:
    """Digest of all source that the module depends on."""
    return f"{source_digest()}-{folder_digest(HERE)}"
