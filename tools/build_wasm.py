"""Compile simulator and learner to WebAssembly for the page: `sim.wasm` and `learn.wasm`, each with its description.

usage: python tools/build_wasm.py

Run it after every change in `src/hotlap/sim/` and `src/hotlap/learning/compiled/`. It needs `wasm-ld` (Debian: lld) or
the package ziglang; nothing else does, since the files are part of the package.

numba compiles the same functions that the CPU runs, behind C signatures. Its unoptimised LLVM IR does not depend on
the size of a pointer, so llvmlite can compile it for wasm32. WebAssembly has no fused multiply-add, so the results
have the CPU's bits. Only the learner is vectorised: its innermost loops compute values that do not depend on each
other, and neither compiler may change the order of a sum.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

# IR that is optimised for this machine cannot be compiled for another; numba reads this when it is imported.
os.environ["NUMBA_OPT"] = "0"

import llvmlite.binding as llvm
import numpy as np
from numba import carray, cfunc, from_dtype, types

import wasm_learner
import wasm_races
from hotlap.envs.settings import MAX_COUNT, RacerSettings
from hotlap.sim.batch_cpu import find_bad_action
from hotlap.sim.compilation import source_digest
from hotlap.sim.domain import disturb_if_noisy, own_place
from hotlap.sim.engine import ALL_FINE
from hotlap.sim.policy_forward import LAYER_DTYPE, POLICY_DTYPE, PackedPolicy, decide
from hotlap.sim.race import DRAWN_SLOT, START_GRID, START_ROLLING
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS
from hotlap.sim.rays import _RAY_COS, _RAY_SIN, RAY_RANGE_M
from hotlap.sim.rewards import RULES_DTYPE, START_ON_LINE, START_RANDOM
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE
from hotlap.sim.step import Batch, reset_car, step_car
from hotlap.sim.vehicle import CAR_DTYPE, TICKS_PER_SECOND, car_record
from hotlap.sim.version import PHYSICS_VERSION, RACE_VERSION
from hotlap.sim.world import INFO_DTYPE, NUM_ACTIONS, NUM_OBSERVATIONS, OBS_SPEED, STATE_DTYPE, observe

STATIC = Path(__file__).resolve().parent.parent / "src" / "hotlap" / "web" / "static"
TARGET = "wasm32-unknown-unknown"
INITIAL_MEMORY_BYTES = 4 << 20  # grows as the page asks for more

RECORDS = {
    "track": TRACK_DTYPE,
    "node": NODE_DTYPE,
    "portal": PORTAL_DTYPE,
    "car": CAR_DTYPE,
    "rules": RULES_DTYPE,
    "state": STATE_DTYPE,
    "info": INFO_DTYPE,
    "policy": POLICY_DTYPE,
    "layer": LAYER_DTYPE,
    **wasm_races.RECORDS,
}

_int, _float_array, _byte_array = types.int32, types.CPointer(types.float32), types.CPointer(types.boolean)


def _records(name: str) -> Any:
    return types.CPointer(from_dtype(RECORDS[name]))


# What the functions take, by name and in order; a `num_*` is the length of the array before it.
_SCENARIO = {
    "tracks": _records("track"),
    "num_tracks": _int,
    "nodes": _records("node"),
    "num_nodes": _int,
    "portals": _records("portal"),
    "num_portals": _int,
    "cars": _records("car"),
    "rules": _records("rules"),
}
_BATCH = {
    "num_cars": _int,
    "states": _records("state"),
    "obs": _float_array,
    "rewards": _float_array,
    "terminated": _byte_array,
    "truncated": _byte_array,
    "infos": _records("info"),
    "final_obs": _float_array,
    "final_infos": _records("info"),
}
_POLICY = {
    "shape": _records("policy"),
    "layers": _records("layer"),
    "num_layers": _int,
    "numbers": _float_array,
    "num_numbers": _int,
}
_MEMORY = {"history": _float_array, "num_history": _int, "work": _float_array, "num_work": _int}


def _step(
    actions, autoreset, repeat, num_action_columns, num_car_records,
    tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules,
    num_cars, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos,
):  # fmt: skip
    ribbons = (carray(tracks, (num_tracks,)), carray(nodes, (num_nodes,)), carray(portals, (num_portals,)))
    batch = Batch(
        carray(states, (num_cars,)), carray(obs, (num_cars, NUM_OBSERVATIONS)), carray(rewards, (num_cars,)),
        carray(terminated, (num_cars,)), carray(truncated, (num_cars,)), carray(infos, (num_cars,)),
        carray(final_obs, (num_cars, NUM_OBSERVATIONS)), carray(final_infos, (num_cars,)),
    )  # fmt: skip
    wanted, rule = carray(actions, (num_cars, num_action_columns)), carray(rules, (1,))
    car = carray(cars, (num_car_records,))
    bad = find_bad_action(wanted)
    if bad == ALL_FINE:
        for i in range(num_cars):
            step_car(i, wanted, ribbons, car, rule, batch, autoreset != 0, repeat)
    return bad


def _reset(
    mask, num_car_records,
    tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules,
    num_cars, states, obs, rewards, terminated, truncated, infos, final_obs, final_infos,
):  # fmt: skip
    ribbons = (carray(tracks, (num_tracks,)), carray(nodes, (num_nodes,)), carray(portals, (num_portals,)))
    batch = Batch(
        carray(states, (num_cars,)), carray(obs, (num_cars, NUM_OBSERVATIONS)), carray(rewards, (num_cars,)),
        carray(terminated, (num_cars,)), carray(truncated, (num_cars,)), carray(infos, (num_cars,)),
        carray(final_obs, (num_cars, NUM_OBSERVATIONS)), carray(final_infos, (num_cars,)),
    )  # fmt: skip
    car, rule, wanted = carray(cars, (num_car_records,)), carray(rules, (1,)), carray(mask, (num_cars,))
    for i in range(num_cars):
        if wanted[i]:
            reset_car(i, ribbons, car, rule, batch)
    return 0


def _observe(
    tracks, num_tracks, nodes, num_nodes, portals, num_portals, cars, rules,
    num_cars, states, obs, num_observations, num_car_records,
):  # fmt: skip
    ribbons = (carray(tracks, (num_tracks,)), carray(nodes, (num_nodes,)), carray(portals, (num_portals,)))
    car, rule = carray(cars, (num_car_records,)), carray(rules, (1,))
    me, seen = carray(states, (num_cars,)), carray(obs, (num_cars, num_observations))
    for i in range(num_cars):
        place = own_place(i, car)
        observe(me[i], ribbons, car[place : place + 1], seen[i])
        disturb_if_noisy(me[i], rule, seen[i])
    return 0


def _decide(
    shape, layers, num_layers, numbers, num_numbers, num_cars, obs, num_observations,
    history, num_history, work, num_work, actions,
):  # fmt: skip
    policy = PackedPolicy(carray(shape, (1,)), carray(layers, (num_layers,)), carray(numbers, (num_numbers,)))
    seen, past = carray(obs, (num_cars, num_observations)), carray(history, (num_cars, num_history))
    room, wanted = carray(work, (num_work,)), carray(actions, (num_cars, NUM_ACTIONS))
    for i in range(num_cars):
        decide(policy, seen[i], past[i], room, wanted[i])
    return 0


def _pick(parameters: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: parameters[name] for name in names}


# What only one function takes, before the rest.
_CALL = {"reset": {"mask": _byte_array}, "step": {"actions": _float_array, "autoreset": _int, "repeat": _int}}
# Cars that differ have records of their own, and a row of actions is wider where they arrive late.
_RECORDS, _COLUMNS = {"num_car_records": _int}, {"num_action_columns": _int}

Functions = dict[str, tuple[Callable[..., Any], dict[str, Any]]]

FUNCTIONS: Functions = {
    "reset": (_reset, {**_CALL["reset"], **_RECORDS, **_SCENARIO, **_BATCH}),
    "step": (_step, {**_CALL["step"], **_COLUMNS, **_RECORDS, **_SCENARIO, **_BATCH}),
    "observe": (
        _observe,
        _SCENARIO | _pick(_BATCH, "num_cars", "states", "obs") | {"num_observations": _int} | _RECORDS,
    ),
    "decide": (
        _decide,
        _POLICY | _pick(_BATCH, "num_cars", "obs") | {"num_observations": _int} | _MEMORY | {"actions": _float_array},
    ),
    **wasm_races.race_functions(_CALL, _SCENARIO, _BATCH),
}


def compile_function(
    name: str, function: Callable[..., Any], parameters: dict[str, Any], *, is_vectorized: bool = False
) -> bytes:
    """The object code of one exported function with everything it calls."""
    compiled = cfunc(types.int32(*parameters.values()), error_model="numpy")(function)
    features = "+bulk-memory,+simd128" if is_vectorized else "+bulk-memory"
    machine = llvm.Target.from_triple(TARGET).create_target_machine(opt=3, reloc="static", features=features)
    text = compiled.inspect_llvm()
    text = re.sub(rf'@"?{re.escape(compiled.native_name)}"?(?=\()', f"@{name}", text)
    text = re.sub(r"^target triple.*$", f'target triple = "{TARGET}"', text, flags=re.MULTILINE)
    text = re.sub(r"^target datalayout.*$", f'target datalayout = "{machine.target_data}"', text, flags=re.MULTILINE)
    # wasm objects have no common symbols. The square root is an instruction, and exact on every machine.
    text = re.sub(r"= common ([^\n]*global)", r"= internal \1", text)
    text = text.replace("@sqrtf(", "@llvm.sqrt.f32(").replace("@sqrt(", "@llvm.sqrt.f64(")
    module = llvm.parse_assembly(text)
    for one in module.functions:
        if not one.is_declaration and one.name != name:
            one.linkage = "internal"
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = is_vectorized
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    module.verify()
    code: bytes = machine.emit_object(module)
    return code


def find_linker() -> list[str]:
    """The command of a linker for WebAssembly."""
    if found := shutil.which("wasm-ld"):
        return [found]
    try:
        import ziglang  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        sys.exit("build_wasm: no linker. Install Debian's lld, or `pip install ziglang`, and run this again.")
    return [sys.executable, "-m", "ziglang", "wasm-ld"]


def link(objects: dict[str, bytes]) -> bytes:
    """One module of the objects, which exports a function for each."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, code in objects.items():
            path = Path(folder, f"{name}.o")
            path.write_bytes(code)
            paths.append(str(path))
        out = Path(folder, "sim.wasm")
        exports = [f"--export={name}" for name in (*objects, "__heap_base")]
        # What is undefined are Python's error functions, which are never called.
        options = ["--no-entry", "--allow-undefined", "--strip-all", f"--initial-memory={INITIAL_MEMORY_BYTES}"]
        subprocess.run([*find_linker(), *paths, "-o", str(out), *options, *exports], check=True)
        return out.read_bytes()


def describe_record(dtype: "np.dtype[np.void]") -> dict[str, Any]:
    """A record's size, and type and offset of each field."""
    fields = {name: [dtype[name].str.lstrip("<|"), dtype.fields[name][1]] for name in dtype.names or ()}  # type: ignore[index]
    return {"size": dtype.itemsize, "fields": fields}


def describe_values(record: "np.ndarray[Any, np.dtype[np.void]]") -> dict[str, float]:
    """The values of a one-element record array; a float32 survives as a JSON number."""
    return {name: record[name][0].item() for name in record.dtype.names or ()}


def describe_module() -> dict[str, Any]:
    """What the page has to know to call the module, so that no offset is written in JavaScript."""
    settings = RacerSettings()
    endless = replace(settings, episode=replace(settings.episode, max_ticks=MAX_COUNT))
    return {
        "source_digest": source_digest(),
        "physics": PHYSICS_VERSION,
        "race": RACE_VERSION,
        "ticks_per_second": TICKS_PER_SECOND,
        "num_observations": NUM_OBSERVATIONS,
        "num_race_observations": NUM_RACE_OBSERVATIONS,
        "num_actions": NUM_ACTIONS,
        "obs_speed": OBS_SPEED,
        "rays": {
            "range_m": float(RAY_RANGE_M),
            "cos": [float(c) for c in _RAY_COS],
            "sin": [float(s) for s in _RAY_SIN],
        },
        "functions": {name: list(parameters) for name, (_, parameters) in FUNCTIONS.items()},
        "records": {name: describe_record(dtype) for name, dtype in RECORDS.items()},
        "car": describe_values(car_record()),
        "rules": describe_values(endless.rules()),
        "starts": {"line": START_ON_LINE, "random": START_RANDOM},
        "race_starts": {"grid": START_GRID, "rolling": START_ROLLING},
        "drawn_slot": DRAWN_SLOT,
    }


def write_description(path: Path, description: dict[str, Any]) -> None:
    """Write a description with one line per short list, which keeps the file readable."""
    text = json.dumps(description, indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text)
    path.write_text(text + "\n", encoding="utf-8")


def write_module(name: str, functions: Functions, description: dict[str, Any], *, is_vectorized: bool) -> None:
    """Compile functions to one module, and write it with its description."""
    module = link(
        {one: compile_function(one, *function, is_vectorized=is_vectorized) for one, function in functions.items()}
    )
    STATIC.mkdir(parents=True, exist_ok=True)
    (STATIC / f"{name}.wasm").write_bytes(module)
    write_description(STATIC / f"{name}.json", description)
    print(f"{STATIC / name}.wasm: {len(module):,} bytes, {', '.join(functions)}")


def main() -> None:
    """Write all four files."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    write_module("sim", FUNCTIONS, describe_module(), is_vectorized=False)
    learner = wasm_learner.learner_functions(_SCENARIO, _BATCH)
    description = wasm_learner.describe_learner(learner, describe_record, describe_values)
    write_module("learn", learner, description, is_vectorized=True)


if __name__ == "__main__":
    main()
