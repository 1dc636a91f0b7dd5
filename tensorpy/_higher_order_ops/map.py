"""map: a function of each slice along the first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor, stack
from tensorpy._higher_order_ops.operators import OPERATORS, Flat, is_recorded
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each slice x of trees of tensors along the first dimension, stacked."""
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    counts = {leaf.shape[0] if leaf.ndim else 0 for leaf in leaves}
    if 0 in counts:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if len(counts) > 1:
        raise RuntimeError(
            f"Leading dimensions of mapped xs must be consistent. Got shapes {[x.shape for x in leaves]}."
        )
    if is_recorded(xs, args):
        function = Flat(lambda rows, rest: f(rows, *rest), (xs, args))
        return function.result(OPERATORS["map_impl"](function, leaves, function.tensors[len(leaves) :]))
    rows = [tree_flatten(f(tree_unflatten([leaf[i] for leaf in leaves], spec), *args)) for i in range(counts.pop())]
    columns = zip(*(row for row, _ in rows), strict=True)
    return tree_unflatten([stack(list(c)) if isinstance(c[0], Tensor) else c[0] for c in columns], rows[0][1])
