"""The types that numba infers inside the simulator's kernels, without the minute that compiling them takes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numba
from numba.core import typing
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import AnnotateTypes, IRLegalization

from hotlap.sim import batch_cpu, laps, maths, policy_forward, rays, rewards, ribbon, road_view, tyres, vehicle, world

MODULES = (batch_cpu, laps, maths, policy_forward, rays, rewards, ribbon, road_view, tyres, vehicle, world)


class TypesOnly(CompilerBase):
    """numba's compiler up to the step that makes machine code."""

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("types")
        for part in (DefaultPassBuilder.define_untyped_pipeline, DefaultPassBuilder.define_typed_pipeline):
            passes.passes.extend(part(self.state).passes)
        passes.add_pass(IRLegalization, "legal IR")
        passes.add_pass(AnnotateTypes, "types")
        passes.finalize()
        return [passes]

    def _compile_core(self) -> SimpleNamespace:
        for passes in self.define_pipelines():
            passes.run(self.state)
        return SimpleNamespace(
            signature=typing.signature(self.state.return_type, *self.state.args),
            type_annotation=self.state.type_annotation,
            entry_point=print,  # numba wants a function of C; nobody calls it
            objectmode=False,
            typing_error=None,
            metadata=self.state.metadata,
        )


@contextmanager
def types_only(functions: Iterable[Dispatcher]) -> Iterator[None]:
    """Inside, these functions get types and no machine code; after it, they have what they had before."""
    before = [
        (function, list(function.overloads.values()), function._compiler.pipeline_class) for function in functions
    ]
    for function, _, _ in before:
        function._reset_overloads()
        function._compiler.pipeline_class = TypesOnly
    try:
        yield
    finally:
        for function, overloads, pipeline in before:
            function._reset_overloads()
            function._compiler.pipeline_class = pipeline
            for compiled in overloads:
                function.add_overload(compiled)


def float64_variables(function: Dispatcher, typed: Iterable[Any]) -> list[str]:
    """Everything inside a function that numba typed as float64, but for constants it turns into float32."""
    return [
        f"{function.__name__}.{name}: {kind}"
        for one in typed
        for name, kind in one.type_annotation.typemap.items()
        if "float64" in str(kind) and "load_attr" not in name
    ]


def typed_kernels() -> list[tuple[Dispatcher, list[Any]]]:
    """Each kernel of a tick and of a decision that is called with some types, and what numba inferred for them."""
    found = (value for module in MODULES for value in vars(module).values() if isinstance(value, Dispatcher))
    functions = list({id(function): function for function in found}.values())
    with types_only(functions):
        for function, signature in called_kernels():
            function.compile(signature)
        return [(function, list(function.overloads.values())) for function in functions if function.overloads]


def called_kernels() -> list[tuple[Dispatcher, tuple[Any, ...]]]:
    """The kernels from which all others are called, with the types of their arguments."""
    ribbons = ribbon.TRACK_DTYPE, ribbon.NODE_DTYPE, ribbon.PORTAL_DTYPE
    dtypes = (*ribbons, vehicle.CAR_DTYPE, world.STATE_DTYPE, world.INFO_DTYPE, rewards.RULES_DTYPE)
    track, node, portal, car, state, info, rules = (numba.from_dtype(dtype) for dtype in dtypes)
    f4, i4 = numba.float32, numba.int32
    tracks, nodes, portals, cars, floats = (numba.types.Array(kind, 1, "C") for kind in (track, node, portal, car, f4))
    arrays = [numba.from_dtype(dtype) for dtype in (policy_forward.POLICY_DTYPE, policy_forward.LAYER_DTYPE)]
    policy = numba.types.NamedTuple(
        (*(numba.types.Array(kind, 1, "C") for kind in arrays), floats), policy_forward.PackedPolicy
    )
    ribbon_arrays = numba.types.NamedTuple((tracks, nodes, portals), ribbon.Ribbons)
    return [
        (policy_forward.decide, (policy, floats, floats, floats, floats)),
        (world.tick, (state, floats, tracks, nodes, portals, cars, rules, info)),
        (world.observe, (state, ribbon_arrays, cars, floats)),
        (world.begin_episode, (state, tracks, nodes, rules)),
        (tyres.tyre_force, (f4, f4, f4, f4)),
        (maths.sin_cos, (f4,)),
        (maths.arc_tangent, (f4, f4)),
        (rays.cast, (track, portals, i4, f4, f4, f4, f4)),
        (ribbon.locate, (track, nodes, i4, f4, f4)),
        (laps.crossing_fraction, (f4, f4, f4, f4, f4)),
        (vehicle.body_rates, (numba.types.UniTuple(f4, 7), numba.types.UniTuple(f4, 3), f4, f4, car)),
    ]
