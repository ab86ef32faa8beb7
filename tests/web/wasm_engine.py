"""The page's WebAssembly module in the `wasmtime` runtime, as one of the simulator's engines."""

import ctypes
import json
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import wasmtime
from wasmtime import _bindings as bindings
from wasmtime._func import enter_wasm

from hotlap.sim.engine import Races, Scenario
from hotlap.sim.policy_forward import PackedPolicy, PolicyMemory
from hotlap.sim.race import Field
from hotlap.sim.ribbon import Ribbons
from hotlap.sim.step import Batch, make_batch
from hotlap.sim.world import NUM_ACTIONS, NUM_OBSERVATIONS

STATIC = Path(str(files("hotlap.web"))) / "static"
DESCRIPTION = json.loads((STATIC / "sim.json").read_text(encoding="utf-8"))
PAGE_BYTES = 65536
KINDS = {"i32": 0, "i64": 1}  # as in wasmtime.h


class WasmEngine:
    """Resets, steps and observes cars in WebAssembly. Batches live in the module's memory, without copies."""

    def __init__(self, memory_bytes: int = 32 << 20, name: str = "sim") -> None:
        self._store = wasmtime.Store()
        self._description = json.loads((STATIC / f"{name}.json").read_text(encoding="utf-8"))
        module = wasmtime.Module(self._store.engine, (STATIC / f"{name}.wasm").read_bytes())
        instance = wasmtime.Instance(self._store, module, [self._refuse(one) for one in module.imports])
        self._exports = instance.exports(self._store)
        memory = self._exports["memory"]
        memory.grow(self._store, memory_bytes // PAGE_BYTES)
        size = memory.data_len(self._store)
        self._first_address = ctypes.addressof(memory.data_ptr(self._store).contents)
        self._bytes = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(self._first_address))
        self._next = int(self._exports["__heap_base"].value(self._store))
        self._scenarios: dict[tuple[int, ...], tuple[Scenario, Scenario]] = {}
        self._kept: dict[tuple, tuple] = {}

    def _refuse(self, one):
        """Python's error functions, which the module imports, must never be called."""

        def fail(*_):
            raise AssertionError(f"the module called {one.name}")

        return wasmtime.Func(self._store, one.type, fail)

    def put(self, array):
        """A view of the module's memory that holds a copy of `array`."""
        first = (self._next + 63) // 64 * 64
        self._next = first + array.nbytes
        assert self._next <= len(self._bytes), "the test needs more memory"
        view = self._bytes[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        return view

    def address(self, view) -> int:
        return view.ctypes.data - self._first_address

    def call(self, name, **values) -> int:
        return self._call_again(name, None, lambda: values)

    def _call_again(self, name, kept, values, **others) -> int:
        """Call a function; values that depend on the arrays in `kept` alone are looked up at the first such call."""
        key = (name, *map(id, kept or ()))
        if kept is None or key not in self._kept:
            known, function = values(), self._exports[name]
            parameters = list(zip(self._description["functions"][name], function.type(self._store).params, strict=True))
            numbers = (bindings.wasmtime_val_t * len(parameters))()
            open_places = [
                (number, one) for number, (one, _) in zip(numbers, parameters, strict=True) if one not in known
            ]
            for number, (parameter, kind) in zip(numbers, parameters, strict=True):
                number.kind = KINDS[str(kind)]
                if parameter in known:
                    self._set(number, known[parameter])
            num_results = len(function.type(self._store).results)
            # With the arrays, or others could get their ids.
            self._kept[key] = kept, function, numbers, open_places, num_results
        _, function, numbers, open_places, num_results = self._kept[key]
        for number, parameter in open_places:
            self._set(number, others[parameter])
        answer = bindings.wasmtime_val_t()
        # As `Func.__call__` does, which spends most of a tick on looking up the types of the parameters.
        with enter_wasm(self._store) as trap:
            error = bindings.wasmtime_func_call(
                self._store._context(), ctypes.byref(function._func), numbers, len(numbers), answer, num_results, trap
            )
            assert not error, name
        return int(answer.of.i32)

    def _set(self, number, value) -> None:
        plain = self.address(value) if isinstance(value, np.ndarray) else int(value)
        if number.kind == KINDS["i64"]:
            number.of.i64 = plain
        else:
            number.of.i32 = plain

    def make_batch(self, num_cars: int, num_observations: int = NUM_OBSERVATIONS) -> Batch:
        return Batch(*map(self.put, make_batch(num_cars, num_observations)))

    def _place(self, scenario: Scenario) -> Scenario:
        """The scenario in the module's memory, copied there once."""
        key = tuple(map(id, scenario))
        if key not in self._scenarios:
            ribbons = Ribbons(*map(self.put, scenario.ribbons))
            # The key's objects are kept, or another scenario could get their ids.
            self._scenarios[key] = scenario, Scenario(ribbons, self.put(scenario.cars), self.put(scenario.rules))
        return self._scenarios[key][1]

    def _lend(self, array):
        """The argument of one call, in memory that the next call reuses."""
        before = self._next
        view = self.put(array)
        self._next = before
        return view

    def _values(self, scenario: Scenario, batch: Batch):
        tracks, nodes, portals = scenario.ribbons
        return {
            "tracks": tracks, "num_tracks": len(tracks), "nodes": nodes, "num_nodes": len(nodes),
            "portals": portals, "num_portals": len(portals), "cars": scenario.cars, "rules": scenario.rules,
            "num_car_records": len(scenario.cars), "num_cars": len(batch.states), **batch._asdict(),
        }  # fmt: skip

    def reset(self, mask, scenario: Scenario, batch: Batch) -> None:
        self._call_cars("reset", scenario, batch, mask=mask)

    def step(self, actions, scenario: Scenario, batch: Batch, *, autoreset: bool, repeat: int) -> int:
        columns = {"num_action_columns": actions.shape[1]}
        lent = self._lend(actions)
        bad = self._call_cars("step", scenario, batch, actions=lent, autoreset=autoreset, repeat=repeat, **columns)
        if actions.shape[1] > NUM_ACTIONS:  # those under way
            actions[:] = lent
        return bad

    def observe(self, scenario: Scenario, batch: Batch) -> None:
        self._call_cars("observe", scenario, batch, num_observations=batch.obs.shape[1])

    def _call_cars(self, name, scenario: Scenario, batch: Batch, **others) -> int:
        values = partial(self._values, self._place(scenario), batch)
        lent = {key: self._lend(one) if isinstance(one, np.ndarray) else one for key, one in others.items()}
        return self._call_again(name, (*scenario, *batch), values, **lent)

    def decide(self, policy: PackedPolicy, obs, memory: PolicyMemory) -> None:
        """`decide_cars` of the simulator; policy and memory must lie in the module's memory."""
        self._call_again("decide", (*policy, obs, *memory), lambda: {
            **policy._asdict(), "num_layers": len(policy.layers), "num_numbers": len(policy.numbers), "obs": obs,
            "num_cars": len(obs), "num_observations": obs.shape[1], "history": memory.history,
            "num_history": memory.history.shape[1], "work": memory.work[0], "num_work": memory.work.shape[1],
            "actions": memory.actions,
        })  # fmt: skip


class WasmRaceEngine:
    """Resets, steps and observes races in WebAssembly; batch and field are copied there and back at each call."""

    def __init__(self, memory_bytes: int = 32 << 20) -> None:
        self._module = WasmEngine(memory_bytes)

    def _call(self, name, races: Races, **values) -> int:
        module, batch, field = self._module, races.batch, races.field
        world, before = module._place(races.scenario), module._next
        lent = {key: module.put(value) if isinstance(value, np.ndarray) else value for key, value in values.items()}
        batch_there, field_there = Batch(*map(module.put, batch)), Field(*map(module.put, field))
        columns = {"num_observations": batch.obs.shape[1], "race": module.put(races.race_rules)}
        answer = module.call(name, **module._values(world, batch_there), **field_there._asdict(), **columns, **lent)
        for target, source in zip((*batch, *field), (*batch_there, *field_there), strict=True):
            target[...] = source
        module._next = before
        return answer

    def reset(self, mask, races: Races) -> None:
        self._call("reset_races", races, mask=mask)

    def step(self, actions, races: Races, *, autoreset, repeat) -> int:
        return self._call("step_races", races, actions=actions, autoreset=autoreset, repeat=repeat)

    def observe(self, races: Races) -> None:
        self._call("observe_races", races)
