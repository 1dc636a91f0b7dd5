"""Tensors whose memory is a file."""

from __future__ import annotations

import os
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: _C.dtype | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A row of elements whose memory is a file: with `shared` what is written reaches the file."""
    from tensorpy import storage

    kind = dtype or _C.get_default_dtype()
    row: Any = storage.bytes_of(storage.from_file(filename, bool(shared), size * kind.itemsize)).view(kind)
    return row.requires_grad_(requires_grad)
