"""What `import tensorpy` needs of `__torch_function__`: Tensor's own, the switches, functions of Python that ask.

The rest is in tensorpy.overrides, which is imported at first use.
"""

from __future__ import annotations

import _thread
import sys

from tensorpy import _C
from tensorpy._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


has_torch_function: Callable[[Iterable[Any]], bool] = _C._has_torch_function
has_torch_function_unary: Callable[[Any], bool] = _C._has_torch_function_unary
has_torch_function_variadic: Callable[..., bool] = _C._has_torch_function_variadic


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Asks the modes and `relevant_args` for the result of `public_api(*args, **kwargs)`, after has_torch_function.

    Returns: what the first that knows an answer gives.

    Raises: TypeError where nobody does.

    Example:
        >>> class Mine(tp.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return "mine"
        >>> def double(x):
        ...     if tp.overrides.has_torch_function((x,)):
        ...         return tp.overrides.handle_torch_function(double, (x,), x)
        ...     return x * 2
        >>> double(tp.ones(2).as_subclass(Mine))
        'mine'
    """
    return _C._handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def make_overridable(module: str | dict[str, Any], names: Iterable[str]) -> None:
    """Makes functions of a module, given by its name or its globals, ask before they run."""
    home = vars(sys.modules[module]) if isinstance(module, str) else module
    for name in names:
        home[name] = _C._overridable(home[name])


def _switch_off(how: int) -> int:
    """Asks fewer: 1 no classes, 2 no modes either; gives what it was."""
    before: int = _C._set_functions_off(how)
    if before > how:
        _C._set_functions_off(before)
    return before


class _Disable:
    before: Any
    how: int

    def __enter__(self) -> None:
        self.before = _switch_off(self.how)

    def __exit__(self, *unused: object) -> None:
        _C._set_functions_off(self.before)


class DisableTorchFunctionSubclass(_Disable):
    """In its scope the classes of arguments are not asked; modes are.

    Example:
        >>> with tp.DisableTorchFunctionSubclass():
        ...     tp.ones(2)
        tensor([1., 1.])
    """

    how = 1


class DisableTorchFunction(_Disable):
    """In its scope nobody is asked: no class, no mode.

    Example:
        >>> with tp.DisableTorchFunction():
        ...     tp.ones(2)
        tensor([1., 1.])
    """

    how = 2


def get_default_nowrap_functions() -> set[Any]:
    """What gives on a subclass just what is there: a base, a gradient.

    Returns: a set of functions.

    Example:
        >>> len(tp.overrides.get_default_nowrap_functions()) > 0
        True
    """
    return {Tensor.__dict__[name].__get__ for name in ("_base", "grad")}


_nowrap: set[Any] = set()
_running = _thread._local()  # .function: what this thread's innermost call of Tensor.__torch_function__ runs


def _convert(result: Any, cls: type) -> Any:
    """A result, or a tuple or list of them, with its tensors as objects of the class."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(_convert(item, cls) for item in result)
    return result


def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs the function on the class's objects as on tensors; tensors among the results become the class's.

    A function that asks again while it runs is another library's, which our switch does not hold from asking: it takes
    no tensors of ours.
    """
    outer = getattr(_running, "function", None)
    if func == outer or not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    before = _switch_off(1)
    _running.function = func
    try:
        result = func(*args, **(kwargs or {}))
    finally:
        _running.function = outer
        _C._set_functions_off(before)
    if not _nowrap:
        _nowrap.update(get_default_nowrap_functions())
    return result if cls is Tensor or func in _nowrap else _convert(result, cls)


_C._set_type_attribute(Tensor, "__torch_function__", classmethod(_torch_function))
for _switch in (DisableTorchFunction, DisableTorchFunctionSubclass):
    setattr(_C, _switch.__name__, _switch)
