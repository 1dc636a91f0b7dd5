"""Sums of sparse tensors over a group: each process has all of the others' elements, and adds them."""

from __future__ import annotations

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.messages import message, packed


def _all_of(found: ProcessGroup, mine: Tensor) -> Tensor:
    """Tensors of one shape, after each other."""
    whole = tp.empty(found.size(), *mine.shape, dtype=mine.dtype)
    if found._is_one():
        return mine.unsqueeze(0)
    message(found, "all_gather", packed(mine), whole, count=mine.numel(), profiled=False)
    return whole


def _rows(found: ProcessGroup, mine: Tensor, counts: list[int]) -> Tensor:
    """Rows of all processes, each of which has another number."""
    padded = tp.zeros(max(counts), *mine.shape[1:], dtype=mine.dtype)
    padded[: mine.shape[0]] = mine
    whole = _all_of(found, padded)
    return tp.cat([whole[r, :n] for r, n in enumerate(counts)])


def sum_of_all(found: ProcessGroup, name: str, mine: Tensor) -> Tensor:
    """The sum of all processes' COO tensors, coalesced; RuntimeError in all where their shapes differ.

    Arguments:
        found: the processes
        name: what asks, for errors
        mine: this process's; of one shape, and with one number of sparse dimensions, in all
    """
    mine = mine.detach().cpu().coalesce()
    indices, values = mine.indices(), mine.values()
    kinds = _all_of(found, tp.tensor([mine.ndim, mine.sparse_dim(), indices.shape[1]]))
    same = bool((kinds[:, :2] == kinds[0, :2]).all())
    if not same or bool((shapes := _all_of(found, tp.tensor(list(mine.shape)))).ne(shapes[0]).any()):
        raise RuntimeError(f"{name}: the sparse tensors of all processes are of one shape, and so are their indices'")
    counts = [int(n) for n in kinds[:, 2]]
    where, what = _rows(found, indices.t(), counts), _rows(found, values, counts)
    bounds = tp.tensor(mine.shape[: mine.sparse_dim()], dtype=tp.int64)
    if bool(((where < 0) | (where >= bounds)).any()):
        raise RuntimeError(f"{name}: an index that came from another process is outside of {list(mine.shape)}")
    return _C._coo(where.t(), what, tuple(mine.shape), False).coalesce()
