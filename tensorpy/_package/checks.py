"""Checks that a program states: `_check(size > 0, lambda: "...")`, each with its class of error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C

_Message = Callable[[], object] | None


def _fail(kind: type[Exception], message: _Message) -> Exception:
    if message is None:
        return kind("Expected cond to be True, but got False: the caller gave no message")
    if not callable(message):
        raise TypeError("message must be a callable")
    return kind(str(message()))


def _check_with(error_type: type[Exception], cond: bool, message: _Message = None) -> None:
    """An error of the class unless `cond`; `message` gives its words, and is called only then."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise _fail(error_type, message)


def _check(cond: bool, message: _Message = None) -> None:
    """RuntimeError unless `cond`."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: _Message = None) -> None:
    """IndexError unless `cond`."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: _Message = None) -> None:
    """ValueError unless `cond`."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: _Message = None) -> None:
    """TypeError unless `cond`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: _Message = None) -> None:
    """NotImplementedError unless `cond`."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: _Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless `i` can be a size: not negative, and no more than `max`."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: _Message = None) -> None:
    """An error of the class unless all elements of a tensor of booleans are true."""
    if not isinstance(cond, _C.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: _Message = None) -> None:
    """RuntimeError unless all elements of a tensor of booleans are true."""
    _check_tensor_all_with(RuntimeError, cond, message)
