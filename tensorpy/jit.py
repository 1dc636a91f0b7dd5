"""torch.jit's names: there is nothing to compile, so functions, classes and modules are given back as they came.

A file of a compiled program cannot be read or written: `load` and `save` are names only.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tensorpy._absent import absent
from tensorpy.nn import Module


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function, class or module itself."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """The function or module itself; the inputs are not looked at."""
    return func


def trace_module(mod: Any, inputs: Any = None, *args: Any, **options: Any) -> Any:
    """The module itself; the inputs are not looked at."""
    return mod


def script_if_tracing(fn: Any) -> Any:
    """The function itself."""
    return fn


def script_method(fn: Any) -> Any:
    """The method itself."""
    return fn


def export(fn: Any) -> Any:
    """The method itself."""
    return fn


def unused(fn: Any) -> Any:
    """The method itself."""
    return fn


def ignore(drop: Any = False, **options: Any) -> Any:
    """The method itself, or a decorator that gives it."""
    return drop if callable(drop) else lambda fn: fn


def interface(obj: Any) -> Any:
    """The class itself."""
    return obj


def _overload_method(func: Any) -> Any:
    return func


def _overload(func: Any) -> Any:
    return func


def freeze(
    mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True, preserve_parameters: bool = False
) -> Any:
    """The module itself."""
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module itself."""
    return mod


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def is_scripting() -> bool:
    """Whether this runs compiled: never."""
    return False


def is_tracing() -> bool:
    """Whether this is being traced: never."""
    return False


def fork(func: Any, *args: Any, **kwargs: Any) -> Any:
    """What the function gives; it runs at once."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """What `fork` gave."""
    return future


class Attribute(NamedTuple):
    """A value and the type it is meant to have."""

    value: Any
    type: Any


class ScriptModule(Module):
    """A module like any other."""


RecursiveScriptModule = ScriptModule
ScriptFunction = absent(__name__, "ScriptFunction")
load = absent(__name__, "load")
save = absent(__name__, "save")

__all__ = ["Final"]
