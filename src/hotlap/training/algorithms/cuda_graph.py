"""A function of tensors as a CUDA graph: hundreds of kernels launched by one call."""

from collections.abc import Callable

import torch


def capture(function: Callable[[], object]) -> Callable[[], None]:
    """Run `function` once, so that libraries and kernels are ready, then capture it; the result replays it.

    It must write into the same tensors each time and must not branch on their values.
    """
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay
