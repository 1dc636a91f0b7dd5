"""Pipes that go on where they were: their first samples are read again, and left out."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Generator
from tensorpy.utils.data.datapipes._hook_iterator import _SnapshotState
from tensorpy.utils.data.graph_settings import apply_random_seed


def _simple_graph_snapshot_restoration(datapipe: Any, n_iterations: int, rng: Generator | None = None) -> None:
    """Lets the next iterator of a pipe begin after n_iterations samples, shuffled by seeds from `rng`."""
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. The pipe has been restored already, and not been read since."
        )
    apply_random_seed(datapipe, Generator() if rng is None else rng)
    reader = iter(datapipe)
    for done in range(n_iterations):
        try:
            next(reader)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available: {done}"
            ) from None
    datapipe._fast_forward_iterator, datapipe._snapshot_state = reader, _SnapshotState.Restored
