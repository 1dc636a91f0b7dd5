"""Sorting, scans, indexing and masks, against tensorpy's own CPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import tensorpy as tp

from ..harness import Case

N = 1 << 20
Work = Callable[..., object]


def waiting(work: Work, *tensors: tp.Tensor) -> None:
    work(*tensors)
    tp.opencl.synchronize()


def cases(device: str) -> Iterator[Case]:
    line, index, table = tp.randn(N), tp.randint(0, N, (N,)), tp.randn(N // 64, 64)
    work: dict[str, tuple[Work, list[tp.Tensor]]] = {
        "sort 1M": (lambda x: x.sort(), [line]),
        "sort 1024 lines of 1024": (lambda x: x.sort(), [line.reshape(1024, 1024)]),
        "topk 10 of 1M": (lambda x: x.topk(10), [line]),
        "cumsum 1M": (lambda x: x.cumsum(0), [line]),
        "gather 1M": (lambda x, i: x.gather(0, i), [line, index]),
        "scatter_add 1M": (lambda x, i: tp.zeros_like(x).scatter_add_(0, i, x), [line, index]),
        "index_select 16k rows of 64": (lambda x, i: x.index_select(0, i), [table, index[: N // 64] % (N // 64)]),
        "x[x > 0] of 1M": (lambda x: x[x > 0], [line]),
        "randn 1M": (lambda x: tp.randn(N, device=x.device), [line]),
    }
    for name, (function, tensors) in work.items():
        there = [t.to(device) for t in tensors]
        yield Case(name, {"tensorpy": partial(waiting, function, *there), "cpu": partial(function, *tensors)})
