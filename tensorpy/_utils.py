"""What several modules need; and private functions of torch's that programs use, lists of tensors in one flat one."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

_rebuild_tensor: Any = getattr(_C, "_rebuild_tensor")  # noqa: B009


def bytes_tensor(storage: Any) -> Tensor:
    """All bytes of a storage as a row of uint8, on its device."""
    n = storage.nbytes()
    return _rebuild_tensor(Tensor, storage, _C.uint8, (n,), (1,), 0, storage.device, False)


def unravel(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The place of an element that is counted row by row."""
    place = []
    for size in reversed(shape):
        place.append(index % size)
        index //= size
    return tuple(reversed(place))


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of all tensors, of one dtype, one after another."""
    return _C.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of the flat tensor in the shapes of the tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def _element_size(dtype: Any) -> int:
    """Bytes of an element of a dtype."""
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device given as a number, a name or a device: -1 of the CPU, where that is allowed."""
    if isinstance(device, int):
        return device
    found = _C.device(device) if device is not None else None
    if found is not None and found.type == "cpu" and allow_cpu:
        return -1
    if found is None or found.index is None:
        if not optional:
            raise ValueError(f"expected a device with an index, got {device!r}")
        return 0
    return found.index


class KeyErrorMessage(str):
    """A text that KeyError shows as it is: it shows its argument's repr."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, so that another process or thread can raise it.

    Arguments:
        exc_info: what sys.exc_info() gives; None takes the exception that is being handled
        where: where it happened, for the message
    """

    exc_type: Any
    exc_msg: str
    where: str

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind: Any
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        lines = "".join(traceback.format_exception(kind, error, trace))
        self.exc_type, self.where = kind, where
        self.exc_msg = f"Caught {kind.__name__} {where}.\nOriginal {lines}"

    def reraise(self) -> None:
        """Raises an exception of the same class, or RuntimeError where that class wants other arguments."""
        text: str = KeyErrorMessage(self.exc_msg) if self.exc_type is KeyError else self.exc_msg
        try:
            kind: Any = self.exc_type
            error = kind(message=text) if getattr(kind, "message", None) else kind(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


def render_call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A call as text, with the sizes of tensors in place of their values."""

    def text(value: Any) -> str:
        if isinstance(value, Tensor):
            other = "" if value.dtype == _C.get_default_dtype() else f", dtype={value.dtype}"
            place = "" if value.device.type == "cpu" else f", device='{value.device}'"
            return f"tensor([...], size={tuple(value.shape)}{place}{other})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {text(each)}" for key, each in value.items()) + "}"
        if isinstance(value, list):
            return f"[{', '.join(map(text, value))}]"
        if isinstance(value, tuple):
            return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
        return repr(value)

    name: Any = getattr(fn, "__name__", str(fn))
    owner = getattr(fn, "__module__", None)
    if type(fn).__name__ in ("OpOverload", "OpOverloadPacket"):
        whole = str(fn)
    elif hasattr(Tensor, name) and getattr(Tensor, name) is fn:
        whole = f"torch.Tensor.{name}"
    elif owner in (None, "torch", "tensorpy", "tensorpy._C"):
        whole = f"torch.{name}"
    else:
        whole = f"{owner.replace('tensorpy', 'torch', 1)}.{name}"
    return f"{whole}({', '.join([*map(text, args), *(f'{key}={text(each)}' for key, each in kwargs.items())])})"
