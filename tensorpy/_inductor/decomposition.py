"""Decompositions under PyTorch's name: a table for what records programs, which compile() does not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tensorpy import _decomp

_F = TypeVar("_F", bound=Callable[..., Any])

decompositions: dict[Any, Any] = _decomp.core_aten_decompositions()


def register_decomposition(ops: Any) -> Callable[[_F], _F]:
    """Registers a function that runs in an operator's place, in this table.

    Arguments:
        ops: an overload, an operator (all its overloads), or several of these

    Returns: what takes the function and gives it back.

    Raises: RuntimeError for an overload that has one, unless it is that of its composite kernel.

    Example:
        >>> from tensorpy._inductor.decomposition import decompositions, register_decomposition
        >>> @register_decomposition([tp.ops.aten.silu.default])
        ... def silu(x):
        ...     return x * x.sigmoid()
        >>> decompositions[tp.ops.aten.silu.default] is silu
        True
    """
    return _decomp.register_decomposition(ops, decompositions)


def select_decomp_table() -> dict[Any, Any]:
    """The table as it is: what `make_fx` and `aot_function` take as decompositions.

    Returns: a dict from overloads to functions.

    Example:
        >>> from tensorpy._inductor.decomposition import select_decomp_table
        >>> tp.ops.aten._add_relu.Tensor in select_decomp_table()
        True
    """
    return decompositions


__all__ = ["decompositions", "register_decomposition", "select_decomp_table"]
