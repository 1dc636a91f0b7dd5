"""while_loop: a function again and again, as long as another says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor
from tensorpy._compile import UncapturedHigherOrderOpError
from tensorpy._higher_order_ops.cond import _is_true
from tensorpy._higher_order_ops.operators import OPERATORS, Flat, is_recorded
from tensorpy.utils._pytree import tree_flatten

__all__ = ["while_loop"]


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """What is carried after the last `body_fn(*carried)`: it runs as long as `cond_fn(*carried)` is true.

    The body gives what it takes: as many values, nested alike, tensors of the same shapes and dtypes.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or a list, got {type(carried_inputs)}")
    carried = tuple(carried_inputs)
    if is_recorded(carried):
        functions = [Flat(function, carried) for function in (cond_fn, body_fn)]
        if not all(isinstance(leaf, Tensor) for leaf in tree_flatten(carried)[0]):
            raise UncapturedHigherOrderOpError("while_loop: what a node of a graph carries are tensors, not numbers")
        made = OPERATORS["while_loop"](*functions, tuple(functions[1].tensors), ())
        return tuple(functions[1].result(made))
    while _is_true(cond_fn(*carried), "cond_fn"):
        given = body_fn(*carried)
        new = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        leaves, spec = tree_flatten(new)
        olds, wanted = tree_flatten(carried)
        if spec != wanted:
            raise RuntimeError(f"body_fn should return the same pytree structure as its inputs {wanted}, got {spec}")
        for old, leaf in zip(olds, leaves, strict=True):
            if getattr(old, "shape", None) != getattr(leaf, "shape", None):
                raise RuntimeError(
                    f"body_fn should return tensors of the shapes it is given, {old.shape}, got {leaf.shape}"
                )
            if getattr(old, "dtype", None) != getattr(leaf, "dtype", None):
                raise RuntimeError(
                    f"body_fn should return tensors of the dtypes it is given, {old.dtype}, got {leaf.dtype}"
                )
        carried = new
    return carried
