"""NCCL's functions by torch's names: the library is not here, as in a build of torch for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

__all__ = [
    "all_gather",
    "all_reduce",
    "broadcast",
    "init_rank",
    "is_available",
    "reduce",
    "reduce_scatter",
    "unique_id",
]

SUM = 0


def _missing(*args: Any, **options: Any) -> NoReturn:
    """A call of NCCL: an error, as the library is not here; `distributed` has collectives.

    Raises: AttributeError, always.
    """
    raise AttributeError("NCCL is not here: torch.distributed's collectives run on gloo, mpi or shared memory")


version: Callable[..., NoReturn] = _missing
unique_id: Callable[..., NoReturn] = _missing
init_rank: Callable[..., NoReturn] = _missing
all_reduce: Callable[..., NoReturn] = _missing
reduce: Callable[..., NoReturn] = _missing
broadcast: Callable[..., NoReturn] = _missing
all_gather: Callable[..., NoReturn] = _missing
reduce_scatter: Callable[..., NoReturn] = _missing


def is_available(tensors: Sequence[Any]) -> bool:
    """Whether NCCL takes these tensors: none is on a device of CUDA.

    Arguments:
        tensors: the tensors

    Returns: bool.

    Example:
        >>> tp.cuda.nccl.is_available([tp.ones(1)])
        False
    """
    return False
