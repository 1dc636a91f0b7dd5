"""Tensors and a mode that log the operators that are called with them, a line each, as libraries' tests read them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from itertools import count
from typing import Any

from tensorpy._C import Tensor
from tensorpy.fx.code import short_dtype
from tensorpy.utils._python_dispatch import TorchDispatchMode
from tensorpy.utils._pytree import tree_map
from tensorpy.utils.weak import WeakTensorKeyDictionary

__all__ = [
    "LoggingTensor",
    "LoggingTensorHandler",
    "LoggingTensorMode",
    "capture_logs",
    "capture_logs_with_logging_tensor_mode",
    "log_input",
]

_log = logging.getLogger("LoggingTensor")


def log_input(name: str, var: Tensor) -> None:
    """Logs that a tensor is an input with a name."""
    _log.info("input", (name,), {}, var)


class LoggingTensor(Tensor):
    """A tensor that holds another one, and logs the operators that it is given to."""

    elem: Tensor
    context = contextlib.nullcontext

    @staticmethod
    def __new__(cls, elem: Tensor, *args: Any, **kwargs: Any) -> Any:
        made = Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=kwargs.get("requires_grad", False),
        )
        made.elem = elem.detach() if made.requires_grad else elem
        return made

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        show: Any = super().__repr__
        return str(show(tensor_contents=f"{self.elem}"))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def inner(value: Any) -> Any:
            return value.elem if isinstance(value, cls) else value

        def outer(value: Any) -> Any:
            return cls(value) if isinstance(value, Tensor) else value

        with cls.context():
            result = tree_map(outer, func(*tree_map(inner, args), **tree_map(inner, kwargs or {})))
        _log.info(f"{func.__module__}.{func.__name__}", args, kwargs or {}, result)
        return result


class LoggingTensorMode(TorchDispatchMode):
    """A mode that logs the operators that are called in it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        _log.info(f"{func.__module__}.{func.__name__}", args, kwargs or {}, result)
        return result


class LoggingTensorHandler(logging.Handler):
    """Makes lines of what is logged: tensors are numbers, in the order in which they are seen."""

    def __init__(self, log_list: list[str], use_shortid_for_all_tensors: bool = False, *args: Any) -> None:
        super().__init__()
        self.log_list, self.all_tensors = log_list, use_shortid_for_all_tensors
        self.numbers: Any = WeakTensorKeyDictionary()
        self.next = count()

    def _number(self, tensor: Tensor) -> int:
        if tensor not in self.numbers:
            self.numbers[tensor] = next(self.next)
        return int(self.numbers[tensor])

    def _text(self, value: Any, with_type: bool = False) -> str:
        if isinstance(value, Tensor if self.all_tensors else LoggingTensor):
            kind = f": {short_dtype(value.dtype)}[{', '.join(map(str, value.shape))}]" if with_type else ""
            return f"${self._number(value)}{kind}"
        return repr(value)

    def emit(self, record: logging.LogRecord) -> None:
        """Adds a line."""
        call: Any = record.args
        args, kwargs, result = call
        given = [str(tree_map(self._text, each)) for each in args]
        given += [f"{k}={tree_map(self._text, v)!s}" for k, v in kwargs.items()]
        made = tree_map(lambda each: self._text(each, True), result)
        self.log_list.append(f"{made} = {record.msg}({', '.join(given)})")


@contextlib.contextmanager
def capture_logs(is_mode: bool = False, python_tb: bool = False, script_tb: bool = False) -> Iterator[list[str]]:
    """A context with the list of the lines that are logged in it.

    Arguments:
        is_mode: whether all tensors have numbers, not only those that log
    """
    lines: list[str] = []
    handler = LoggingTensorHandler(lines, is_mode)
    before = _log.propagate, _log.level
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.propagate = False
    try:
        yield lines
    finally:
        _log.removeHandler(handler)
        _log.propagate, level = before
        _log.setLevel(level)


@contextlib.contextmanager
def capture_logs_with_logging_tensor_mode(python_tb: bool = False, script_tb: bool = False) -> Iterator[list[str]]:
    """A context with the list of the operators that are called in it."""
    with LoggingTensorMode(), capture_logs(True) as lines:
        yield lines
