"""Caches of generated code, of which there is none; which devices are GPUs that it would be for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy.utils._ordered_set import OrderedSet as OrderedSet

GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


@contextmanager
def fresh_cache(cache_entries: Any = None, dir: str | None = None, delete: bool = True) -> Iterator[None]:
    """Nothing: there is no cache that calls in the block could find something in.

    Arguments:
        cache_entries: nothing is added to it
        dir: no folder is made there
        delete: nothing is deleted

    Returns: a context.

    Example:
        >>> with tp._inductor.utils.fresh_cache():
        ...     tp.compile(tp.neg)(tp.ones(1))
        tensor([-1.])
    """
    yield


fresh_inductor_cache = fresh_cache


def clear_caches() -> None:
    """Nothing: there are none.

    Example:
        >>> tp._inductor.utils.clear_caches()
    """


clear_inductor_caches = clear_caches


def is_gpu(device: str | None) -> bool:
    """Whether a kind of device is a GPU's."""
    return device in GPU_TYPES


def get_gpu_type() -> str:
    """The kind of GPU that is there, "cuda" if there is none."""
    return "cuda"


def is_big_gpu(index_or_device: Any = 0) -> bool:
    """Whether a device has many processors: none does."""
    return False


def get_gpu_shared_memory() -> int:
    """How many bytes the threads of a GPU share: it has none."""
    return 0


__all__ = ["clear_caches", "clear_inductor_caches", "fresh_cache", "fresh_inductor_cache"]
