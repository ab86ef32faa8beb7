"""CUDA kernels that compute the CPU's bits.

A GPU would fuse a multiplication and an addition into one rounding. NVVM does so unless told `fma=0`, and nvJitLink
compiles once more and fuses again unless link-time optimisation is off. numba-cuda has a public switch for the second
only, so the first is set here, for the time of a compilation, and the machine code is checked afterwards.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import config as numba_config
from numba import cuda

from hotlap.errors import CudaError

# Few cars leave most of a GPU idle, and numba would warn about it on every launch.
numba_config.CUDA_LOW_OCCUPANCY_WARNINGS = False

# What would round unlike the CPU: fused operations, a product whose rounding is left open (`mul.rn` is never fused, so
# additions need no such mark), approximations, flushed denormals, float64.
_INEXACT = r"\b(?:(?:fma|mad)\.\S*f(?:32|64)|mul\.f(?:32|64)|\w+\.(?:approx|full)\.\S*|\w+\.\S*ftz\S*)"
# Float64 is exact too, but where nobody asked for it, it is a literal that crept in.
_FLOAT64 = r"\b\w+\.\S*f64"


def exact_kernel(
    function: Callable[..., None],
    signature: tuple[Any, ...],
    max_registers: int | None = None,
    *,
    sums_float64: bool = False,
) -> Any:
    """`function` as a CUDA kernel for arguments of these types, compiled now and without fused operations.

    `sums_float64` is for a kernel that uses float64 on purpose.
    """
    with _without_fusing():
        compiled = cuda.jit(signature, lto=False, max_registers=max_registers)(function)
    for overload in compiled.overloads.values():
        # Not `inspect_asm`: it compiles once more, for another name of the same GPU.
        check_exact(overload._codelibrary.get_asm_str(), function.__name__, sums_float64=sums_float64)
    return compiled


def check_exact(ptx: str, name: str, *, sums_float64: bool = False) -> None:
    """Refuse machine code that would not give the CPU's bits."""
    found = re.search(_INEXACT if sums_float64 else f"{_INEXACT}|{_FLOAT64}", ptx)
    if found:
        raise CudaError(
            f"CUDA kernel {name}: holds the instruction {found.group()!r}, which rounds unlike the CPU. "
            "This numba-cuda compiles in another way than the tested one: install the version in constraints.txt, "
            "or use --device cpu."
        )


@contextmanager
def _without_fusing() -> Iterator[None]:
    from numba.cuda.cudadrv import nvvm

    genuine = nvvm.CompilationUnit

    class UnfusedUnit(genuine):  # type: ignore[misc, valid-type]
        def __init__(self, options: dict[str, Any]) -> None:
            super().__init__({**options, "fma": 0})

    nvvm.CompilationUnit = UnfusedUnit
    try:
        yield
    finally:
        nvvm.CompilationUnit = genuine
