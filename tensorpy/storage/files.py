"""Storages and tensors whose memory is a file."""

from __future__ import annotations

import mmap
import os
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


def storage_from_file(filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> Any:
    """A storage whose memory is a file's first bytes; with `shared` it grows to nbytes and sees what is written."""
    descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if shared and size < nbytes:
            os.ftruncate(descriptor, nbytes)
        elif nbytes > size:
            raise RuntimeError(f"the file {os.fspath(filename)!r} has {size} bytes, not {nbytes}")
        if nbytes == 0:
            return _C.empty(0).untyped_storage()
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        return _C.frombuffer(mmap.mmap(descriptor, nbytes, access=access), dtype=_C.uint8).untyped_storage()
    finally:
        os.close(descriptor)


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: _C.dtype | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A row of elements whose memory is a file: with `shared` what is written reaches the file.

    Arguments:
        filename: the path
        size: how many elements
        dtype: the dtype; None takes the usual one
        requires_grad: whether autograd records what is done with the tensor
        pin_memory: whether the CPU's memory is pinned for copies to a device

    Returns: a tensor (size,).

    Example:
        >>> tp.ones(4).numpy().tofile("numbers")
        >>> tp.from_file("numbers", size=4)
        tensor([1., 1., 1., 1.])
    """
    options: Any = {"dtype": dtype, "requires_grad": requires_grad, "pin_memory": pin_memory}
    row: Tensor = _C.from_file(os.fspath(filename), shared, size, **options)
    return row
