"""rearrange: axes by name, in the notation of einops.rocks: `rearrange(x, "b (h w) -> b w h", h=2)`."""

from __future__ import annotations

import math
import re
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = ["rearrange"]

_ALONE = ["..."]  # an ellipsis outside parentheses: its dimensions stay apart
_TOKEN = re.compile(r"\s*(\(|\)|\.\.\.|[A-Za-z_]\w*|1)")


def _groups(side: str, pattern: str) -> list[list[str]]:
    """The names of each dimension of one side; the ellipsis is a name, 1 a dimension without names."""
    groups: list[list[str]] = []
    inside, at, side = False, 0, side.rstrip()
    while at < len(side):
        found = _TOKEN.match(side, at)
        if found is None:
            raise ValueError(f"rearrange: cannot read {side[at:]!r} in {pattern!r}")
        at, token = found.end(), found.group(1)
        if token in "()":
            if inside != (token == ")"):
                raise ValueError(f"rearrange: parentheses of {pattern!r} do not match")
            inside = token == "("
            if inside:
                groups.append([])
        else:
            names = [] if token == "1" else [token]
            if inside:
                groups[-1] += names
            else:
                groups.append(_ALONE if names == _ALONE else names)
    if inside:
        raise ValueError(f"rearrange: parentheses of {pattern!r} do not match")
    names = [name for group in groups for name in group]
    if len(set(names)) < len(names):
        raise ValueError(f"rearrange: a name stands twice on a side of {pattern!r}")
    return groups


def _spread(groups: list[list[str]], dims: int) -> list[list[str]]:
    """With names of its own for each dimension that the ellipsis stands for; in parentheses they are one dimension."""
    extra = [f"...{i}" for i in range(dims)]
    spread: list[list[str]] = []
    for group in groups:
        if group is _ALONE:
            spread += [[name] for name in extra]
        else:
            spread.append([part for name in group for part in (extra if name == "..." else [name])])
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

    Example:
        >>> tp.func.rearrange(tp.ones(2, 3), "a b -> b a").shape
        tensorpy.Size([3, 2])
    """
    x = tensor if isinstance(tensor, Tensor) else _C.stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise ValueError(f"rearrange: {pattern!r} has no '->'")
    before, after = _groups(left, pattern), _groups(right, pattern)
    names, wanted = [n for g in before for n in g], [n for g in after for n in g]
    if set(names) != set(wanted) or not set(axes_lengths) <= set(names):
        raise ValueError(f"rearrange: the sides of {pattern!r} (and {list(axes_lengths)}) do not have the same names")
    dims = x.ndim - sum(group is not _ALONE for group in before)
    if dims < 0 or (dims > 0 and "..." not in names):
        raise ValueError(f"rearrange: {pattern!r} is not of {x.ndim} dimensions")
    before, after = _spread(before, dims), _spread(after, dims)
    sizes = _sizes(before, x.shape, axes_lengths, pattern)
    order = [n for g in before for n in g]
    split = x.reshape([sizes[n] for n in order])
    moved = split.permute([order.index(n) for g in after for n in g])
    return moved.reshape([math.prod(sizes[n] for n in g) for g in after])
