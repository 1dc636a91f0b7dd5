"""rearrange: axes by name, in the notation of einops.rocks: `rearrange(x, "b (h w) -> b w h", h=2)`."""

from __future__ import annotations

import math
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.func.axes import ELLIPSIS, ParsedExpression, parse_pattern, validate_rearrange_expressions

__all__ = ["rearrange"]

_ALONE = [ELLIPSIS]  # an ellipsis outside parentheses: its dimensions stay apart


def _groups(side: ParsedExpression) -> list[list[str]]:
    """The names of each dimension of one side; a dimension of size 1 has none."""
    return [_ALONE if group == ELLIPSIS else [str(axis) for axis in group] for group in side.composition]


def _spread(groups: list[list[str]], dims: int) -> list[list[str]]:
    """With names of its own for each dimension that the ellipsis stands for; in parentheses they are one dimension."""
    extra = [f"...{i}" for i in range(dims)]
    spread: list[list[str]] = []
    for group in groups:
        if group is _ALONE:
            spread += [[name] for name in extra]
        else:
            spread.append([part for name in group for part in (extra if name == ELLIPSIS else [name])])
    return spread


def _sizes(groups: list[list[str]], shape: Any, known: dict[str, int], pattern: str) -> dict[str, int]:
    """The size of each name, one of a dimension's from its others."""
    sizes = dict(known)
    for group, size in zip(groups, shape, strict=True):
        unknown = [name for name in group if name not in sizes]
        product = math.prod(sizes[name] for name in group if name in sizes)
        if len(unknown) == 1 and product and size % product == 0:
            sizes[unknown[0]] = size // product
        elif unknown or product != size:
            raise ValueError(
                f"rearrange: a dimension of size {size} is no ({' '.join(group)}) of {pattern!r} with {known}"
            )
    return sizes


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """The tensor with its dimensions split, permuted and joined as the pattern says; several tensors are stacked first.

    Names in parentheses share a dimension, `...` stands for any number of dimensions, 1 for a dimension of size 1. The
    sizes of names that do not follow from the tensor's shape are given by name.

    Returns: a tensor.

    Raises: ValueError for a pattern that does not fit the tensor.

    Example:
        >>> tp.func.rearrange(tp.ones(2, 3), "a b -> b a").shape
        tensorpy.Size([3, 2])
    """
    x = tensor if isinstance(tensor, Tensor) else _C.stack(list(tensor))
    left, right = parse_pattern(pattern, axes_lengths)
    validate_rearrange_expressions(left, right, axes_lengths)
    before, after = _groups(left), _groups(right)
    dims = x.ndim - sum(group is not _ALONE for group in before)
    if dims < 0 or (dims > 0 and not left.has_ellipsis):
        raise ValueError(f"rearrange: {pattern!r} is not of {x.ndim} dimensions")
    before, after = _spread(before, dims), _spread(after, dims)
    sizes = _sizes(before, x.shape, axes_lengths, pattern)
    order = [n for g in before for n in g]
    split = x.reshape([sizes[n] for n in order])
    moved = split.permute([order.index(n) for g in after for n in g])
    return moved.reshape([math.prod(sizes[n] for n in g) for g in after])
