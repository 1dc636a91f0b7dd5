"""Types for annotations, under PyTorch's names."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, Union

from tensorpy import _C
from tensorpy._C import Size, Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = Union[builtins.int, builtins.float, builtins.bool]  # noqa: UP007  (isinstance takes it, before 3.10 too)
_Number = (builtins.int, builtins.float, builtins.bool)
_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_dtype, _device, _layout = _C.dtype, _C.device, _C.layout
_size = Union[Size, Sequence[builtins.int]]  # noqa: UP007
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]  # noqa: UP007
Device = Union[_C.device, str, builtins.int, None]  # noqa: UP007
FileLike = Union[str, "os.PathLike[str]", IO[bytes]]
Storage: Any = _C.UntypedStorage if hasattr(_C, "UntypedStorage") else object
