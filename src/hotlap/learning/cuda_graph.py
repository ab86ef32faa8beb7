"""A function of tensors as a CUDA graph: hundreds of kernels launched by one call.

On the CPU the functions run in the same order without graphs, so that tests without a GPU follow the same path.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def capture(
    function: Callable[[], object], generator: torch.Generator, allow_tf32: bool = True
) -> Callable[[], object]:
    """Run `function` once, so that libraries and kernels are ready, then capture it; the result replays it.

    It must write into the same tensors each time, must not branch on their values, and draw random numbers only from
    `generator`. On the CPU the result is the function itself.
    """
    device = generator.device
    if device.type != "cuda":
        function()
        return function
    # TensorFloat-32: products of float32 numbers rounded to 11 bits, added in float32; several times as fast.
    before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, allow_tf32
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        function()
    torch.backends.cuda.matmul.allow_tf32 = before
    return graph.replay


@contextmanager
def preserve_generator(generator: torch.Generator) -> Iterator[None]:
    """Restore a random generator at the end."""
    state = generator.get_state()
    yield
    if generator.device.type == "cuda":
        torch.cuda.synchronize()
    generator.set_state(state)


@contextmanager
def beside(device: torch.device, launch: Callable[[], object]) -> Iterator[None]:
    """Launch work that does not change what the body reads; on a GPU both run at the same time, after all before them.

    The body may wait for its own results, which must be in main memory at its end.
    """
    if device.type != "cuda":
        launch()
        yield
        return
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    launch()
    with torch.cuda.stream(side):
        yield
