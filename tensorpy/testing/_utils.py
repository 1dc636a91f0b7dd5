"""Generators that are where they were before, for tests of operators that draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy.random import fork_rng, manual_seed
from tensorpy.utils._mode_utils import no_dispatch


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A context after which the default generators are where they were before; no mode sees that."""
    fork = fork_rng()
    with no_dispatch():
        fork.__enter__()
    try:
        yield
    finally:
        with no_dispatch():
            fork.__exit__(None, None, None)


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call under a seed that is always the same."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)
