"""scan: a function of each slice and of what was carried from the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor
from tensorpy._compile import UncapturedHigherOrderOpError
from tensorpy._higher_order_ops.operators import OPERATORS, Flat, is_recorded, slices, stacked
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["scan"]


def checked(xs: Any, dim: Any, reverse: bool, name: str) -> tuple[list[Tensor], Any]:
    """The leaves of trees of tensors of as many slices along a dimension, and how they nest."""
    leaves, spec = tree_flatten(xs)
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not leaves:
        raise RuntimeError(f"{name}() operator requires xs leaves.")
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"All xs leaves must be a Tensor but got {leaves}")
    for leaf in leaves:
        leaf.size(dim)  # IndexError
    count = leaves[0].shape[dim]
    if any(leaf.shape[dim] != count for leaf in leaves):
        raise RuntimeError("All xs leaves must have the same number of elements in the dimension that is walked")
    return leaves, spec


def walked(xs: list[Tensor], dim: int, reverse: bool) -> list[Tensor]:
    """Tensors whose slices along the first dimension are taken, first to last."""
    moved = [x.movedim(dim, 0) if dim else x for x in xs]
    return [x.flip([0]) for x in moved] if reverse else moved


def _pair(made: Any) -> tuple[Any, Any]:
    if not isinstance(made, (tuple, list)) or len(made) != 2:
        raise UncapturedHigherOrderOpError(f"combine_fn gives a carry and a result, not {type(made).__name__}")
    return made[0], made[1]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """(carry, ys): `carry, y = combine_fn(carry, x)` for each slice x of xs along a dimension, the first carry being
    `init`; the ys are stacked along a new first dimension, in the order of the slices."""
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    inits, init_spec = tree_flatten(init)
    if not inits:
        raise RuntimeError("scan() operator requires init leaves.")
    if not tree_flatten(xs)[0]:
        return init, []
    tensors, spec = checked(xs, dim, reverse, "scan")
    if is_recorded(init, xs) and tensors[0].shape[dim]:
        function = Flat(lambda carry, x: _pair(combine_fn(carry, x)), (init, xs))
        carry, rest = function.tensors[: len(inits)], walked(function.tensors[len(inits) :], dim, reverse)
        made = list(OPERATORS["scan"](function, carry, rest, ()))
        ys = [y.flip([0]) if reverse else y for y in made[len(inits) :]]
        return tuple(function.result([*made[: len(inits)], *ys]))
    carry, rows, out_spec = init, [], None
    for each in slices(tensors, dim, reverse):
        carry, y = _pair(combine_fn(carry, tree_unflatten(each, spec)))
        leaves, got = tree_flatten(carry)
        if got != init_spec:
            raise RuntimeError(
                f"The tree structure of init and of the carry that combine_fn gives differ: {init_spec}, {got}"
            )
        for old, leaf in zip(inits, leaves, strict=True):
            if isinstance(old, Tensor) and (old.shape, old.dtype) != (leaf.shape, leaf.dtype):
                raise RuntimeError(
                    "The carry of combine_fn has to have the metadata of init: expected "
                    f"{list(old.shape)} of {old.dtype}, got {list(leaf.shape)} of {leaf.dtype}"
                )
        row, out_spec = tree_flatten(y)
        rows.append(row)
    if not rows or out_spec is None:
        raise RuntimeError("scan() of no slices: what the results look like is not known")
    rows = rows[::-1] if reverse else rows
    return carry, tree_unflatten(list(stacked(rows)), out_spec)
