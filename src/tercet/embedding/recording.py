"""On a GPU, a step of training recorded once and then replayed.

A step is hundreds of small kernels. To launch each of them takes longer than to run it; a recording is
launched at once.
"""

from collections.abc import Callable

import torch

from tercet.embedding.residual_network import ResidualNetwork

WARM = 3  # steps before the recording, in which libraries take the memory that they keep


class Recording:
    """A function of nothing that works on the same tensors each time, and looks at none of their values."""

    def __init__(self, step: Callable[[], None], phi: ResidualNetwork) -> None:
        self._step, self._phi = step, phi
        self._warmed = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do the step: as it is at first, then from the recording."""
        if self._graph is None and self._warmed < WARM:
            self._warm()
            return
        if self._graph is None:
            self._graph = self._recorded()
        self._graph.replay()

    def _warm(self) -> None:
        # Beside the usual stream, as recordings are made.
        usual = torch.cuda.current_stream()
        beside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        beside.wait_stream(usual)
        with torch.cuda.stream(beside):
            self._step()
        usual.wait_stream(beside)
        self._warmed += 1

    def _recorded(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        if self._phi.generator is not None:  # each replay drops other values
            graph.register_generator_state(self._phi.generator)
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._step()
        return graph
