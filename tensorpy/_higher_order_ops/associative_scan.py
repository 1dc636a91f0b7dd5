"""associative_scan: what an associative function of two makes of each slice and all before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import stack
from tensorpy._higher_order_ops.operators import OPERATORS, Flat, is_recorded, slices
from tensorpy._higher_order_ops.scan import checked, walked
from tensorpy.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The inclusive scan of trees of tensors along a dimension: the first slice, `combine_fn` of it and the second, of
    that and the third, ...; with `reverse` from the last on. The slices are taken one after another in both modes."""
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    tensors, spec = checked(xs, dim, reverse, "associative_scan")
    if tensors[0].shape[dim] < 2:
        return xs
    if combine_mode == "pointwise" and is_recorded(xs):
        function = Flat(combine_fn, (xs, xs))
        made = OPERATORS["associative_scan"](function, walked(tensors, dim, reverse), ())
        ordered = [m.flip([0]) if reverse else m for m in made]
        return function.result([m.movedim(0, dim) if dim else m for m in ordered])
    first, *rest = slices(tensors, dim, reverse)
    done = [first]
    for each in rest:
        leaves, got = tree_flatten(combine_fn(tree_unflatten(done[-1], spec), tree_unflatten(each, spec)))
        if got != spec:
            raise RuntimeError(f"The tree structure of xs and of what combine_fn gives differ: {spec}, {got}")
        if any((a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(each, leaves, strict=True)):
            raise RuntimeError("The shapes and dtypes of what combine_fn gives have to be those of a slice of xs")
        done.append(leaves)
    done = done[::-1] if reverse else done
    return tree_unflatten([stack(list(column), dim) for column in zip(*done, strict=True)], spec)
