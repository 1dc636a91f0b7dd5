"""torch.jit's names: there is nothing to compile, so functions, classes and modules are given back as they came.

`save` writes a module as it is, and `load` reads what `save` wrote; PyTorch's compiled programs cannot be read.
"""

from __future__ import annotations

import builtins
import types
import typing
import warnings
from typing import Any, Final, NamedTuple

import tensorpy.jit.annotations as annotations  # type: ignore[assignment]  # noqa: F401  (not __future__'s)
from tensorpy.nn import Module


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function, class or module itself. A module whose parameters wait for their shapes is refused.

    Arguments:
        obj: a function, class or module
        optimize: is taken
        example_inputs: is taken

    Returns: obj.

    Raises: RuntimeError for a module whose parameters have no shape yet.

    Example:
        >>> @tp.jit.script
        ... def double(x: tp.Tensor) -> tp.Tensor:
        ...     return x * 2
        >>> double(tp.ones(2))
        tensor([2., 2.])
    """
    for name, child in obj.named_modules() if hasattr(obj, "named_modules") else ():
        if getattr(child, "has_uninitialized_params", bool)():
            where = f" in {name!r}" if name else ""
            raise RuntimeError(
                f"'{type(child).__name__}' has uninitialized parameters{where}: run a forward pass first"
            )
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """The function or module itself; the inputs are not looked at.

    Arguments:
        func: a function or module
        example_inputs: is taken

    Returns: func.

    Example:
        >>> tp.jit.trace(tp.sin, tp.ones(2))(tp.zeros(1))
        tensor([0.])
    """
    return func


def trace_module(mod: Any, inputs: Any = None, *args: Any, **options: Any) -> Any:
    """The module itself; the inputs are not looked at.

    Arguments:
        mod: a module
        inputs: is taken

    Returns: mod.

    Example:
        >>> layer = nn.ReLU()
        >>> tp.jit.trace_module(layer, {"forward": tp.ones(2)}) is layer
        True
    """
    return mod


def script_if_tracing(fn: Any) -> Any:
    """The function itself.

    Arguments:
        fn: the function

    Returns: fn.

    Example:
        >>> tp.jit.script_if_tracing(abs)(-1)
        1
    """
    return fn


_script_if_tracing = script_if_tracing


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, or of a container's type with parameters, `List[int]`, whose items it has then.

    Arguments:
        obj: the value
        target_type: the type

    Returns: bool.

    Example:
        >>> tp.jit.isinstance([1, 2], list[int]), tp.jit.isinstance([1, "a"], list[int])
        (True, False)
    """
    origin = typing.get_origin(target_type)
    if target_type is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, choice) for choice in typing.get_args(target_type))
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if not builtins.isinstance(obj, origin):
        return False
    inner = typing.get_args(target_type)
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    if origin is tuple and inner[-1:] != (Ellipsis,):
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    return all(isinstance(item, inner[0]) for item in obj)


def script_method(fn: Any) -> Any:
    """The method itself."""
    return fn


def export(fn: Any) -> Any:
    """The method itself.

    Arguments:
        fn: the method

    Returns: fn.

    Example:
        >>> tp.jit.export(abs)(-1)
        1
    """
    return fn


def unused(fn: Any) -> Any:
    """The method itself.

    Arguments:
        fn: the method

    Returns: fn.

    Example:
        >>> tp.jit.unused(abs)(-1)
        1
    """
    return fn


def ignore(drop: Any = False, **options: Any) -> Any:
    """The method itself, or a decorator that gives it.

    Arguments:
        drop: the method, or what is taken and changes nothing

    Returns: the method, or a decorator.

    Example:
        >>> tp.jit.ignore(abs)(-1)
        1
    """
    return drop if callable(drop) else lambda fn: fn


def interface(obj: Any) -> Any:
    """The class itself.

    Arguments:
        obj: the class

    Returns: obj.

    Example:
        >>> tp.jit.interface(int)("1")
        1
    """
    return obj


def _overload_method(func: Any) -> Any:
    return func


def _overload(func: Any) -> Any:
    return func


def freeze(
    mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True, preserve_parameters: bool = False
) -> Any:
    """The module itself.

    Arguments:
        mod: the module
        preserved_attrs: is taken
        optimize_numerics: is taken
        preserve_parameters: is taken

    Returns: mod.

    Example:
        >>> tp.jit.freeze(tp.jit.script(nn.ReLU().eval()))
        ReLU()
    """
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module itself.

    Arguments:
        mod: the module
        other_methods: is taken

    Returns: mod.

    Example:
        >>> tp.jit.optimize_for_inference(nn.ReLU().eval())
        ReLU()
    """
    return mod


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value.

    Arguments:
        the_type: is taken
        the_value: the value

    Returns: the_value.

    Example:
        >>> tp.jit.annotate(list[int], [])
        []
    """
    return the_value


def is_scripting() -> bool:
    """Whether this runs compiled: never."""
    return False


def is_tracing() -> bool:
    """Whether this is being traced: never."""
    return False


def fork(func: Any, *args: Any, **kwargs: Any) -> Any:
    """What the function gives; it runs at once.

    Arguments:
        func: the function, whose arguments follow

    Returns: what the function gives.

    Example:
        >>> tp.jit.wait(tp.jit.fork(abs, -1))
        1
    """
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """What `fork` gave.

    Arguments:
        future: what fork gave

    Returns: future.

    Raises: RuntimeError for None.

    Example:
        >>> tp.jit.wait(tp.jit.fork(abs, -1))
        1
    """
    if future is None:
        raise RuntimeError("Future can't be None")
    return future


# The names that programs called them by before these were public.
_fork, _wait = fork, wait


class Attribute(NamedTuple):
    """A value and the type it is meant to have.

    Arguments:
        value: the value
        type: the type

    Example:
        >>> tp.jit.Attribute([], list[int]).value
        []
    """

    value: Any
    type: Any


class ScriptModule(Module):
    """A module like any other.

    Example:
        >>> class Twice(tp.jit.ScriptModule):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Twice()(1)
        2
    """


RecursiveScriptModule = ScriptModule


class ScriptFunction:
    """A compiled function: programs ask whether something is one, and nothing is, `script` gives functions back.

    Example:
        >>> isinstance(tp.jit.script(abs), tp.jit.ScriptFunction)
        False
    """

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__}: nothing is compiled; script() gives back what it is given")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{type(self).__name__}: nothing is compiled; script() gives back what it is given")


class ScriptMethod(ScriptFunction):
    """A compiled method: nothing is one.

    Example:
        >>> isinstance(tp.nn.ReLU().forward, tp.jit.ScriptMethod)
        False
    """


class ScriptDict(dict[Any, Any]):
    """A dict that compiled programs would take without a copy: a dict."""


class ScriptList(list[Any]):
    """A list that compiled programs would take without a copy: a list."""


class TracerWarning(Warning):
    """Said of what a trace would miss: nothing is traced."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Has those that come from the library, but for this module, not shown."""
        warnings.filterwarnings("ignore", category=TracerWarning, module=r"(tensorpy|torch)\.(?!jit)")


class Error(RuntimeError):
    """An error of a compiled program."""


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Writes a module, its class by name, to a file.

    Arguments:
        m: the module
        f: a path, or an open file

    Example:
        >>> tp.jit.save(nn.ReLU(), "relu.pt")
    """
    from tensorpy import serialization

    serialization.save(m, f)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """The module that `save` wrote. Like every pickle, such a file can run code: read only those that you trust.

    Arguments:
        f: a path, or an open file
        map_location: where its tensors go, as in tp.load

    Returns: a module.

    Example:
        >>> tp.jit.save(nn.ReLU(), "relu.pt")
        >>> tp.jit.load("relu.pt")
        ReLU()
    """
    from tensorpy import serialization

    return serialization.load(f, map_location=map_location, weights_only=False)


__all__ = ["Final"]
