"""The page's WebAssembly module in the `wasmtime` runtime, as one of the simulator's engines."""

import ctypes
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import wasmtime

from hotlap.sim.engine import Races, Scenario
from hotlap.sim.policy_forward import PackedPolicy, PolicyMemory
from hotlap.sim.race import Field
from hotlap.sim.ribbon import Ribbons
from hotlap.sim.step import Batch, make_batch
from hotlap.sim.world import NUM_OBSERVATIONS

STATIC = Path(str(files("hotlap.web"))) / "static"
DESCRIPTION = json.loads((STATIC / "sim.json").read_text(encoding="utf-8"))
PAGE_BYTES = 65536


class WasmEngine:
    """Resets, steps and observes cars in WebAssembly. Batches live in the module's memory, without copies."""

    def __init__(self, memory_bytes: int = 32 << 20) -> None:
        self._store = wasmtime.Store()
        module = wasmtime.Module(self._store.engine, (STATIC / "sim.wasm").read_bytes())
        instance = wasmtime.Instance(self._store, module, [self._refuse(one) for one in module.imports])
        self._exports = instance.exports(self._store)
        memory = self._exports["memory"]
        memory.grow(self._store, memory_bytes // PAGE_BYTES)
        size = memory.data_len(self._store)
        self._first_address = ctypes.addressof(memory.data_ptr(self._store).contents)
        self._bytes = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(self._first_address))
        self._functions = {name: self._typed(name) for name in DESCRIPTION["functions"]}
        self._next = int(self._exports["__heap_base"].value(self._store))
        self._scenarios: dict[tuple[int, ...], tuple[Scenario, Scenario]] = {}

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
        function, parameters = self._functions[name]
        arguments = [
            as_type(self.address(value) if isinstance(value := values[parameter], np.ndarray) else int(value))
            for parameter, as_type in parameters
        ]
        return function(self._store, *arguments)

    def _typed(self, name):
        """A function, and each parameter's name with its type: plain numbers take wasmtime twice as long."""
        function = self._exports[name]
        makers = {"i32": wasmtime.Val.i32, "i64": wasmtime.Val.i64}
        types = [makers[str(one)] for one in function.type(self._store).params]
        return function, list(zip(DESCRIPTION["functions"][name], types, strict=True))

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
            "num_cars": len(batch.states), **batch._asdict(),
        }  # fmt: skip

    def reset(self, mask, scenario: Scenario, batch: Batch) -> None:
        self.call("reset", **self._values(self._place(scenario), batch), mask=self._lend(mask))

    def step(self, actions, scenario: Scenario, batch: Batch, *, autoreset: bool, repeat: int) -> int:
        values = self._values(self._place(scenario), batch)
        return self.call("step", actions=self._lend(actions), autoreset=autoreset, repeat=repeat, **values)

    def observe(self, scenario: Scenario, batch: Batch) -> None:
        values = self._values(self._place(scenario), batch)
        self.call("observe", **values, num_observations=batch.obs.shape[1])

    def decide(self, policy: PackedPolicy, obs, memory: PolicyMemory) -> None:
        """`decide_cars` of the simulator; policy and memory must lie in the module's memory."""
        self.call(
            "decide", **policy._asdict(), num_layers=len(policy.layers), num_numbers=len(policy.numbers), obs=obs,
            num_cars=len(obs), num_observations=obs.shape[1], history=memory.history,
            num_history=memory.history.shape[1], work=memory.work[0], num_work=memory.work.shape[1],
            actions=memory.actions,
        )  # fmt: skip


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
