"""Caches of generated code, of which there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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

__all__ = ["clear_caches", "clear_inductor_caches", "fresh_cache", "fresh_inductor_cache"]
