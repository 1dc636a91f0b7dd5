"""Classes and modes that a function of tensorpy asks before it runs: `__torch_function__`.

    class Logged(tensorpy.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(resolve_name(func))
            return super().__torch_function__(func, types, args, kwargs)

Any class may have one, subclass of Tensor or not; `TorchFunctionMode` is asked about every call of a scope. What is
asked, and in which order, is written in C (csrc/python/overrides.c).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorpy
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package.names import private_operators
from tensorpy._tensor.torch_function import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    get_default_nowrap_functions,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "FunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


# ---- modes ----


class TorchFunctionMode:
    """A mode, whose `__torch_function__` is asked about every call in its scope, calls without a tensor too.

    Modes nest: the innermost is asked first and is off while its own function runs, so what it calls goes to the next
    one. NotImplemented leaves the call to the classes of the arguments.

    Example:
        >>> class Names(tp.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     y = tp.add(tp.ones(2), 1)
        ones
        add
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _C._push_function_mode(self)
        return self

    def __exit__(self, *unused: object) -> None:
        _C._pop_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An older way to write `Mode(...)`.

        Returns: a mode.
        """
        warnings.warn("`Mode.push()` is no longer necessary: `with Mode()` does it", stacklevel=2)
        return cls(*args, **kwargs)


FunctionMode = TorchFunctionMode


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing.

    Example:
        >>> class Names(tp.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     y = tp.add(tp.ones(2), 1)
        ones
        add
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode of this thread."""
    modes = _C._function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All modes of this thread, the outermost first."""
    return list(_C._function_modes())


# ---- for functions of one's own ----


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Makes a function one that asks; `dispatcher`, called with its arguments, gives those that may answer.

    Returns: a decorator.

    Example:
        >>> @tp.overrides.wrap_torch_function(lambda x: (x,))
        ... def double(x):
        ...     return x * 2
        >>> double(tp.ones(2))
        tensor([2., 2.])
    """

    def inner(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return inner


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Calls `func` itself, without asking; functions that it calls ask again.

    Arguments:
        func: the function
        types: is taken
        args: the arguments by position
        kwargs: the keyword arguments

    Returns: what func gives.

    Example:
        >>> callable(tp.overrides.redispatch_function)
        True
    """
    if isinstance(func, _C._overridable):
        return inspect.unwrap(func)(*args, **(kwargs or {}))
    with DisableTorchFunction():
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp: object) -> bool:
    """Whether it is a Tensor, or of a class with `__torch_function__`.

    Arguments:
        inp: the object

    Returns: bool.

    Example:
        >>> tp.overrides.is_tensor_like(tp.ones(2)), tp.overrides.is_tensor_like(1)
        (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside a `__torch_dispatch__`: the layers above it, autograd among them, work again.

    Returns: a context manager.

    Example:
        >>> with tp.overrides.enable_reentrant_dispatch():
        ...     pass
    """
    include, exclude = _C._get_dispatch_sets()
    above = sum(bit for name, bit in _C._KEYS.items() if name.startswith("Autograd")) | _C._KEYS["ADInplaceOrView"]
    _C._set_dispatch_sets(include, exclude & ~above)
    try:
        yield
    finally:
        _C._set_dispatch_sets(include, exclude)


# ---- what can be overridden ----

# Attributes of Tensor that are Python's machinery, or say what the object is and not what is in it.
_NOT_ASKED = frozenset(
    "__new__ __hash__ __doc__ __dict__ __getattribute__ __setattr__ __delattr__ __torch_function__ __torch_dispatch__ "
    "__array_function__ __array_priority__ __array_interface__ __array_wrap__ __array_namespace__ __iter__ __next__ "
    "__module__ __weakref__ __del__ __delitem__ as_subclass _make_subclass _make_wrapper_subclass".split()
)
_GETSET = type(Tensor.__dict__["shape"])
_CALLABLE = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.BuiltinFunctionType,
    _C._overridable,
)


def _modules() -> dict[str, Any]:
    """Where users find functions, by the name that messages give."""
    from tensorpy import fft, linalg, special
    from tensorpy.nn import functional, init

    parts = {"nn.functional": functional, "fft": fft, "linalg": linalg, "special": special, "nn.init": init}
    return {"tensorpy": tensorpy, **{f"tensorpy.{name}": module for name, module in parts.items()}}


def _asked_functions() -> frozenset[Any]:
    """The C functions that ask: those with a parser, and a few by hand."""
    by_hand = ("tensor", "as_tensor", "asarray", "promote_types", "can_cast")
    return frozenset([*_C._parsed_functions(), *(getattr(_C, name) for name in by_hand)])


@functools.cache
def _tables() -> tuple[dict[Any, list[Any]], dict[Any, str], set[Any]]:
    """Functions that ask by module, all functions' names, and those that do not ask."""
    overridable: dict[Any, list[Any]] = {}
    names: dict[Any, str] = {}
    ignored: set[Any] = set()
    asked = _asked_functions()
    for where, module in _modules().items():
        here = overridable.setdefault(module, [])
        for name in sorted(set(dir(module))):
            function = getattr(module, name, None)
            is_function = isinstance(function, (types.BuiltinFunctionType, types.FunctionType, _C._overridable))
            if name.startswith("_") or not is_function:
                continue
            if function in names:
                continue
            names[function] = f"{where}.{name}"
            if isinstance(function, _C._overridable) or function in asked:
                here.append(function)
            else:
                ignored.add(function)
    for name in sorted(private_operators()):
        if isinstance(function := getattr(_C, name), types.BuiltinFunctionType):
            names.setdefault(function, f"tensorpy.{name}")
    methods = overridable.setdefault(Tensor, [])
    for name, value in sorted(Tensor.__dict__.items()):
        getters = [("__get__", value.__get__), ("__set__", value.__set__)] if isinstance(value, _GETSET) else []
        found = [(f"{name}.{kind}", f) for kind, f in getters] or [(name, value)] * isinstance(value, _CALLABLE)
        for text, function in found:
            names.setdefault(function, f"tensorpy.Tensor.{text}")
            if name in _NOT_ASKED:
                ignored.add(function)
            elif not text.endswith("__set__"):
                methods.append(function)
    return overridable, names, ignored


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """What asks `__torch_function__`, by the module (or Tensor) that it is found in; attributes as their getters.

    Returns: a dict of lists of functions.

    Example:
        >>> len(tp.overrides.get_overridable_functions()) > 0
        True
    """
    return {where: list(functions) for where, functions in _tables()[0].items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that ask nobody: they take no tensors, or say what the object is.

    Returns: a set of functions.

    Example:
        >>> len(tp.overrides.get_ignored_functions()) > 0
        True
    """
    return set(_tables()[2])


def _stand_in(function: Any) -> Callable[..., int]:
    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    with contextlib.suppress(TypeError, ValueError):
        vars(stand_in)["__signature__"] = inspect.signature(function)
    return stand_in


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that asks, one with its signature that gives -1.

    Returns: a dict of functions.

    Example:
        >>> len(tp.overrides.get_testing_overrides()) > 100
        True
    """
    return {function: _stand_in(function) for functions in _tables()[0].values() for function in functions}


def resolve_name(f: Any) -> str | None:
    """What users call a function: "tensorpy.Tensor.add"; None for one that is not tensorpy's.

    Arguments:
        f: the function

    Returns: a str, or None.

    Example:
        >>> tp.overrides.resolve_name(tp.Tensor.add)
        'tensorpy.Tensor.add'
    """
    if isinstance(f, (_C.OpOverload, _C._OpPacket)):
        return str(f)
    try:
        name: str | None = _tables()[1].get(f)
    except TypeError:  # not hashable
        return None
    return name and _C._package() + name.removeprefix("tensorpy")


def _name_of(f: Any) -> str:
    """For messages, of any function."""
    return resolve_name(f) or f"{getattr(f, '__module__', None)}.{getattr(f, '__name__', f)}"


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor, or what reads an attribute.

    Arguments:
        func: the function

    Returns: bool.

    Example:
        >>> tp.overrides.is_tensor_method_or_property(tp.Tensor.add)
        True
    """
    return func in _tables()[0][Tensor] or getattr(func, "__name__", None) == "__get__"
