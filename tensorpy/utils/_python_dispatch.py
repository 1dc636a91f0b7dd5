"""Modes and classes that operators ask below autograd: `__torch_dispatch__`.

    class Logged(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            print(func)
            return func(*args, **(kwargs or {}))

`func` is an operator (`tensorpy.ops.aten.add.Tensor`), the arguments are what its schema says, without defaults. How a
call gets there is written in C (csrc/python/python_key.c).
"""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = [
    "BaseTorchDispatchMode",
    "DispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


_STACKS = {None: 0, "Python": 0, "PythonMode": 1}  # of modes: csrc/python/python_key.c


class TorchDispatchMode:
    """A mode, whose `__torch_dispatch__` is asked about every operator in its scope, factories too.

    Modes nest: the innermost is asked first and is off while its own function runs, so what it calls goes to the next
    one. NotImplemented leaves the operator to the classes of the arguments. A mode stands below autograd and autocast;
    one with `_dispatch_key="PythonMode"` above them, where operators arrive as they were called.
    """

    supports_higher_order_operators = False  # whether it is asked about operators that take functions, too

    def __init__(self, _dispatch_key: str | None = None) -> None:
        if _dispatch_key not in _STACKS:
            raise ValueError(f"a mode stands at the key 'Python' or 'PythonMode', not {_dispatch_key!r}")
        self.__dict__["_stack"] = _STACKS[_dispatch_key]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _C._push_dispatch_mode(self, self.__dict__.get("_stack", 0))
        return self

    def __exit__(self, *unused: object) -> None:
        _C._pop_dispatch_mode(self.__dict__.get("_stack", 0))

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to the machinery around programs, which is_in_torch_dispatch_mode may leave out."""
        return False

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An older way to write `Mode(...)`."""
        warnings.warn("`Mode.push()` is no longer necessary: `with Mode()` does it", stacklevel=2)
        return cls(*args, **kwargs)


DispatchMode = TorchDispatchMode


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode of this thread."""
    modes = _C._dispatch_modes()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes of this thread, the outermost first."""
    return list(_C._dispatch_modes())


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether any mode is on in this thread; or one that is none of the machinery's (is_infra_mode())."""
    modes = [mode for stack in sorted({*_STACKS.values()}) for mode in _C._dispatch_modes(stack)]
    return any(include_infra_modes or not type(mode).is_infra_mode() for mode in modes)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """All modes of this thread off for a scope."""
    taken = [[_C._pop_dispatch_mode(stack) for _ in _C._dispatch_modes(stack)] for stack in sorted({*_STACKS.values()})]
    try:
        yield [mode for modes in reversed(taken) for mode in modes]
    finally:
        for stack, modes in enumerate(taken):
            for mode in reversed(modes):
                _C._push_dispatch_mode(mode, stack)


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Nobody is asked in its scope: operators on objects that have elements run as on tensors."""
    before = _C._set_dispatch_off(True)
    try:
        yield
    finally:
        _C._set_dispatch_off(before)


# ---- what a schema says of aliases ----


@dataclass(frozen=True)
class AliasInfo:
    """An argument or a result: the letter of its alias set, "" for none; whether it is written."""

    name: str
    type: str
    alias: str
    is_write: bool


@dataclass(frozen=True)
class SchemaInfo:
    """What an operator's schema says of its arguments and its results."""

    args: tuple[AliasInfo, ...]
    outs: tuple[AliasInfo, ...]


_ITEM = re.compile(
    r"(?P<type>\w+)(?:\((?P<alias>\w+)(?P<write>!)?(?: -> [^)]*)?\))?(?P<rest>[\[\]?\d]*)(?: (?P<name>\w+))?"
)


def _items(text: str) -> tuple[AliasInfo, ...]:
    """The comma-separated parts of one side of a schema."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    found = [_ITEM.match(part) for part in parts if part not in ("", "*")]
    return tuple(
        AliasInfo(m["name"] or "", m["type"] + (m["rest"] or ""), m["alias"] or "", bool(m["write"]))
        for m in found
        if m is not None
    )


@functools.cache
def get_alias_info(func: Any) -> SchemaInfo:
    """What the operator's schema says of what it writes and what its results share."""
    arguments, _, results = func._schema.rpartition(" -> ")
    results = results.removeprefix("(").removesuffix(")") if results.startswith("(") else results
    return SchemaInfo(_items(arguments[arguments.index("(") + 1 : -1]), _items(results))


# ---- wrappers ----


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether objects of the class say which tensors they hold, and are made again of them."""
    own = issubclass(t, Tensor) and t is not Tensor
    return own and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether its class says which tensors it holds, and makes it again of them."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A wrapper of the same class whose inner tensors are `callback(name, tensor)` of t's."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size or made.stride() != stride:
        raise AssertionError(
            f"{type(t).__name__}.__tensor_unflatten__ made sizes {tuple(made.shape)} and strides {made.stride()}, not "
            f"{tuple(size)} and {tuple(stride)}"
        )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a wrapper's `__torch_dispatch__` returns: for operators that write, the argument that was written.

    Views share the storage, and so the version, of what they view; the layer sees to that by itself for wrappers.
    """
    info = get_alias_info(func)
    given = dict(zip([a.name for a in info.args], args, strict=False)) | (kwargs or {})
    if not any(result.is_write for result in info.outs):
        return out
    by_alias = {a.alias: given.get(a.name) for a in info.args if a.is_write}
    written = [by_alias[result.alias] for result in info.outs if result.is_write]
    return written[0] if len(info.outs) == 1 else type(out)(written)
