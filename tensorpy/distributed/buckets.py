"""Buckets: gradients that go in one message, and which parameters make one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.work import Work
from tensorpy.futures import Future

FIRST_BUCKET_BYTES = 1 << 20


class GradBucket:
    """Gradients that go in one message: what a communication hook gets.

    Arguments:
        index: which bucket it is
        flat: the gradients in one row
        places: a view of it for each parameter
        parameters: whose gradients these are
        is_last: whether no other bucket follows in this backward

    Example:
        >>> bucket = tp.distributed.GradBucket(0, tp.ones(2), [], [], True)  # DistributedDataParallel makes them
        >>> bucket.buffer(), bucket.is_last()
        (tensor([1., 1.]), True)
    """

    def __init__(self, index: int, flat: Tensor, places: list[Tensor], parameters: list[Tensor], is_last: bool) -> None:
        self._index, self._flat, self._places = index, flat, places
        self._parameters, self._is_last = parameters, is_last

    def index(self) -> int:
        """Its number; buckets begin in this order."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients after each other, in one dimension."""
        return self._flat

    def set_buffer(self, buffer: Tensor) -> None:
        """Puts another tensor in the place of buffer()."""
        self._flat = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, as parts of buffer()."""
        return list(self._places)

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients they are."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no bucket comes after it."""
        return self._is_last


class Bucket:
    """Numbers of parameters, and where their gradients lie; sparse: one gradient that lies nowhere."""

    numbers: tuple[int, ...]
    sparse: bool

    def __init__(self, numbers: list[int], parameters: Sequence[Tensor], sparse: bool) -> None:
        self.numbers, self.sparse = tuple(numbers), sparse
        self.flat: Tensor | None = None
        self.places: list[Tensor] = []
        if not sparse:
            first = parameters[numbers[0]]
            whole = sum(parameters[i].numel() for i in numbers)
            self.flat = tp.zeros(whole, dtype=first.dtype, device=first.device)
            self.places = places_in(self.flat, [parameters[i] for i in numbers])
        self.carried: Work | Future[Any] | None = None


def places_in(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Parts of a bucket, each laid out as its parameter."""
    made, begin = [], 0
    for p in parameters:
        dense = p.is_contiguous() or p.numel() == sum((n - 1) * s for n, s in zip(p.shape, p.stride(), strict=True)) + 1
        strides = p.stride() if dense else tp.empty(p.shape, device="meta").stride()
        made.append(flat.new_empty(0).set_(flat.untyped_storage(), begin, p.shape, strides))
        begin += p.numel()
    return made


def assign(parameters: Sequence[Tensor], order: Sequence[int], sparse: Sequence[bool], caps: list[int]) -> Any:
    """Which parameters, in this order, make a bucket: of one dtype and device, and no more bytes than its cap.

    The first bucket of a kind has the first cap, the next one the next; the last cap is that of all others.
    """
    made: list[list[int]] = []
    open_ones: dict[Any, tuple[list[int], int, int]] = {}  # numbers, bytes, which cap
    for i in order:
        p = parameters[i]
        if sparse[i]:
            made.append([i])
            continue
        kind = (p.dtype, p.device)
        numbers, size, cap = open_ones.get(kind, ([], 0, 0))
        if not numbers:
            made.append(numbers)
        numbers.append(i)
        size += p.numel() * p.element_size()
        full = size >= caps[min(cap, len(caps) - 1)]
        open_ones[kind] = ([], 0, cap + 1) if full else (numbers, size, cap)
    # a bucket can begin when its last part is there
    place = {i: at for at, i in enumerate(order)}
    return sorted(made, key=lambda numbers: place[numbers[-1]])


class BuiltinCommHookType(Enum):
    """Hooks of DistributedDataParallel that PyTorch has in C++: _register_builtin_comm_hook takes them.

    Example:
        >>> tp.distributed.BuiltinCommHookType.FP16_COMPRESS.value
        1
    """

    ALLREDUCE = 0
    FP16_COMPRESS = 1


__all__ = ["BuiltinCommHookType", "GradBucket"]
