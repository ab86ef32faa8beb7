"""A function of tensors as a CUDA graph: hundreds of kernels launched by one call. For GPUs only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def capture(function: Callable[[], object], generator: torch.Generator) -> Callable[[], object]:
    """Run `function` once, so that libraries and kernels are ready, then capture it; the result replays it.

    It must write into the same tensors each time, must not branch on their values, and draw random numbers only from
    `generator`.
    """
    # TensorFloat-32: products of float32 numbers rounded to 11 bits, added in float32; several times as fast.
    before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, True
    side = torch.cuda.Stream(generator.device)  # type: ignore[no-untyped-call]
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
    torch.cuda.synchronize()
    generator.set_state(state)


@contextmanager
def beside(device: torch.device, launch: Callable[[], object]) -> Iterator[None]:
    """Launch work that does not change what the body reads; both run at the same time, after all before them.

    The body may wait for its own results, which must be in main memory at its end.
    """
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    launch()
    with torch.cuda.stream(side):
        yield
