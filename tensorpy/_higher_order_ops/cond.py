"""cond: one of two functions, by a boolean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._C import Tensor
from tensorpy._higher_order_ops.operators import OPERATORS, Flat, chosen, is_batched, is_recorded
from tensorpy.utils._pytree import tree_leaves

__all__ = ["cond"]


def _is_true(value: Any, what: str) -> bool:
    """A bool, or what a tensor of one element says."""
    if not isinstance(value, (bool, int, Tensor)):
        raise RuntimeError(f"Expected {what} to be bool or tensor, but got {value}.")
    if isinstance(value, Tensor) and value.numel() != 1:
        raise RuntimeError(f"Expected {what} to be bool or single-element tensor, but got {value}.")
    return bool(value.item() if isinstance(value, Tensor) else value)


def cond(
    pred: bool | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """`true_fn(*operands)` if pred is true, else `false_fn(*operands)`. Only the one that is called is differentiated.

    Inside of vmap, where pred differs by sample, both are called, and each sample has the result of its own.

    Arguments:
        pred: a bool, or a tensor of one element
        true_fn: what is called if it is true
        false_fn: what is called if it is not
        operands: the arguments of both: tensors, or trees of tensors

    Returns: what the branch gives. While make_fx records, it is one node where pred is a tensor,
    with a graph for each branch.

    Raises: RuntimeError for branches that cannot be called, and for operands that are no tuple of tensors.

    Example:
        >>> tp.cond(tp.tensor(True), lambda x: x + 1, lambda x: x - 1, (tp.ones(2),))
        tensor([2., 2.])
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    leaves = tree_leaves(operands)
    if not isinstance(operands, (tuple, list)) or not all(isinstance(leaf, (Tensor, int, bool)) for leaf in leaves):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
            f"but got {operands}."
        )
    if isinstance(pred, Tensor) and pred.numel() == 1 and (is_batched(pred) or is_recorded(pred, operands)):
        branches = [Flat(branch, tuple(operands)) for branch in (true_fn, false_fn)]
        given = tuple(branches[0].tensors)
        made = chosen(pred, *branches) if is_batched(pred) else OPERATORS["cond"](pred, *branches, given)
        return branches[0].result(made)
    return (true_fn if _is_true(pred, "pred") else false_fn)(*operands)
