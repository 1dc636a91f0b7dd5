"""Batched tensors as physical ones and back, for what autograd computes of all samples at once.

Note [Batched tensors] in csrc/batched/batched.h says what both are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorpy import _C
from tensorpy._C import Tensor

Levels = Sequence[tuple[int, int, str]]  # number, size and randomness of each vmap that a thread is inside of


def physical(t: Tensor, levels: Levels) -> Tensor:
    """With the batches of the levels as its first dimensions, the outermost first."""
    for number, size, _ in reversed(levels):
        t = _C._vmap_remove(t, number, size)
    return t


def batched(t: Tensor, levels: Levels) -> Tensor:
    """The way back."""
    for number, *_ in levels:
        t = _C._vmap_add(t, 0, number)
    return t
