"""Rules that a program writes itself, for a Function or an operator of its own: called with physical tensors.

A rule is called with what PyTorch's are: rule(info, in_dims, *args), and returns the outputs and their out_dims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.utils._pytree import broadcast_to_leaves, tree_flatten, tree_leaves, tree_structure, tree_unflatten


class VmapInfo(NamedTuple):
    """What a rule is told of the vmap that it is called by."""

    batch_size: int
    randomness: str


def batch_number(tree: Any) -> int:
    """The highest level among the tensors of a tree; 0 where none is batched."""
    return max((_C._batch_number(t) for t in tree_leaves(tree) if isinstance(t, Tensor)), default=0)


@contextmanager
def _only_below(place: int) -> Iterator[None]:
    """The levels from this one on are out of sight."""
    before = _C._vmap_show(place)
    try:
        yield
    finally:
        _C._vmap_show(before)


def call_rule(name: str, rule: Callable[..., Any], args: Any) -> Any:
    """What a rule gives for arguments of which some are batched."""
    leaves, spec = tree_flatten(tuple(args))
    leaves = _C._vmap_lift(leaves)
    number = batch_number(leaves)
    place, size, randomness = next(
        ((i, level[1], level[2]) for i, level in enumerate(_C._vmap_levels()) if level[0] == number), (-1, 0, "")
    )
    if place < 0:
        raise RuntimeError(f"{name}: a tensor from inside of a vmap is used after that has ended")
    mapped = [isinstance(v, Tensor) and _C._batch_number(v) == number for v in leaves]
    physical = [_C._vmap_remove(v, number, size) if m else v for v, m in zip(leaves, mapped, strict=True)]
    in_dims = tree_unflatten([0 if m else None for m in mapped], spec)
    with _only_below(place):
        returned = rule(VmapInfo(size, randomness), in_dims, *tree_unflatten(physical, spec))
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, outputs and out_dims: that of "
            f"{name} gave a {type(returned).__name__}"
        )
    outputs, out_spec = tree_flatten(returned[0])
    dims = broadcast_to_leaves(returned[1], out_spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple: of "
            f"{name} out_dims={returned[1]} has the structure {tree_structure(returned[1])}, the output {out_spec}"
        )
    return tree_unflatten(
        [o if d is None else _C._vmap_add(o, d, number) for o, d in zip(outputs, dims, strict=True)], out_spec
    )


def sample_by_sample(function: Callable[..., Any]) -> Callable[..., Any]:
    """The rule that calls the function for each sample in turn."""

    def rule(info: VmapInfo, in_dims: Any, *args: Any) -> Any:
        leaves, spec = tree_flatten(args)
        dims = tree_leaves(in_dims)
        if info.batch_size == 0:
            raise RuntimeError("vmap: there are no samples to call a Function for")
        results = []
        for b in range(info.batch_size):
            some = [v if d is None else v.select(d, b) for v, d in zip(leaves, dims, strict=True)]
            results.append(tree_flatten(function(*tree_unflatten(some, spec))))
        columns = zip(*(flat for flat, _ in results), strict=True)
        return tree_unflatten([_C.stack(list(column)) for column in columns], results[0][1]), 0

    return rule
