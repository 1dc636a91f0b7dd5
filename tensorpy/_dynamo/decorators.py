"""What programs say about their functions and tensors: where Python runs at every call, most of it changes nothing."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any

from tensorpy import _C
from tensorpy.compiler import allow_in_graph, assume_constant_result, disable, set_stance, substitute_in_graph
from tensorpy.nn import Module

from . import config
from .dynamic import MAY_VARY, MUST_VARY, RANGES, STAYS
from .exc import Unsupported
from .graphs import GraphRecorder, breaks_are_errors

disallow_in_graph = forbid_in_graph = skip_frame = allow_in_graph

_is_opaque: ContextVar[bool] = ContextVar("_is_opaque", default=False)  # within a function of nonstrict_trace


def graph_break(msg: str = "") -> None:
    """Says that a graph should end here: an error with fullgraph=True.

    A backend of the program's is given one graph for what comes before, and one for what comes after. What is noted may
    run at any time, so nothing else depends on it.

    Arguments:
        msg: what the error says

    Example:
        >>> tp._dynamo.graph_break()

    Raises: Unsupported in a function that is compiled with fullgraph=True.
    """
    said = f"graph_break() is called{': ' * bool(msg)}{msg}"
    is_error = _C._code_is_whole() or (_C._code_is_compiled() and breaks_are_errors.get())
    if is_error and not _is_opaque.get():
        raise Unsupported(f"compile(fullgraph=True): the function does not run as a whole: {said}")
    recorder = _C._tracer.current()
    if isinstance(recorder, GraphRecorder) and not _is_opaque.get():
        recorder.cut(said)


class error_on_graph_break(ContextDecorator):
    """Whether a call that is no graph is an error, as with fullgraph=True: in a with block, or while a function runs.

    Arguments:
        error_on_graph_break: whether it is

    Example:
        >>> twice = tp.compile(lambda x: x * 2 if x.sum() > 0 else x, backend=tp._dynamo.testing.CompileCounter())
        >>> with tp._dynamo.error_on_graph_break(True):
        ...     twice(tp.ones(1))
        Traceback (most recent call last):
        tensorpy._dynamo.exc.Unsupported: compile(fullgraph=True): the function is no graph: item() asks for ...
    """

    def __init__(self, error_on_graph_break: bool) -> None:
        self.error = error_on_graph_break
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before.append(breaks_are_errors.set(self.error))

    def __exit__(self, *error: Any) -> None:
        breaks_are_errors.reset(self._before.pop())


def nonstrict_trace(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in which graph_break() is never an error.

    Arguments:
        traceable_fn: the function

    Example:
        >>> tp._dynamo.nonstrict_trace(lambda x: x + 1)(1)
        2
    """

    @functools.wraps(traceable_fn)
    def traced(*args: Any, **kwargs: Any) -> Any:
        before = _is_opaque.set(True)
        try:
            return traceable_fn(*args, **kwargs)
        finally:
            _is_opaque.reset(before)

    return traced


def disable_nested_graph_breaks(fn: Any = None) -> Any:
    """The function itself; without one, a decorator. A graph ends where the program says so.

    Arguments:
        fn: the function

    Example:
        >>> tp._dynamo.disable_nested_graph_breaks(abs)(-1)
        1
    """
    return disable_nested_graph_breaks if fn is None else fn


def is_dynamo_disable_recursive(method: Any) -> bool | None:
    """What disable() was told of what a function calls; None for a function that it was not asked to keep out.

    Arguments:
        method: the function

    Example:
        >>> tp._dynamo.is_dynamo_disable_recursive(tp.compiler.disable(abs))
        True
    """
    recursive: bool | None = getattr(method, "_torchdynamo_disable_recursive", None)
    return recursive


class override_cudagraphs(ContextDecorator):
    """Nothing, in a with block or while a function runs: there are no CUDA graphs.

    Arguments:
        fwd: is taken
        bwd: is taken

    Example:
        >>> with tp._dynamo.override_cudagraphs(fwd=False):
        ...     tp.compile(tp.neg)(tp.ones(1))
        tensor([-1.])
    """

    def __init__(self, fwd: bool | None = None, bwd: bool | None = None) -> None:
        self.fwd, self.bwd = fwd, bwd

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def set_recursion_limit(limit: int) -> None:
    """How deep Python's calls may be: Python runs at every call of a compiled function.

    Arguments:
        limit: the depth; the smaller one stays where it is below what is set

    Example:
        >>> tp._dynamo.set_recursion_limit(sys.getrecursionlimit())
    """
    sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))


def patch_dynamo_config(settings: Any = None, value: Any = None, **more: Any) -> Any:
    """config.patch: settings for a while."""
    return config.patch(settings, value, **more)


def run(fn: Any = None) -> Any:
    """The function itself."""
    return fn if fn is not None else run


def skip(fn: Any = None) -> Any:
    """The function with its own calls as they are written; without one, a decorator."""
    return skip if fn is None else fn


def dont_skip_tracing(fn: Any = None) -> Any:
    """The function itself; without one, a decorator."""
    return dont_skip_tracing if fn is None else fn


def _mark(t: Any, mark: str, index: Any) -> list[int]:
    """Notes dimensions of a tensor under a mark; gives them."""
    dims = [int(dim) for dim in (index if isinstance(index, (list, tuple, range)) else [index])]
    vars(t).setdefault(mark, set()).update(dims)
    return dims


def mark_dynamic(t: Any, index: Any, *, min: int | None = None, max: int | None = None, **options: Any) -> None:
    """Has a size of an argument be a symbol in the graph that compile() gives to a backend: the graph is for all sizes.

    Arguments:
        t: the tensor
        index: its dimension, or several
        min: the least size
        max: the greatest size
        options: PyTorch's, which change nothing

    Raises: ConstraintViolationError at the call, where the function is for a single size.

    Example:
        >>> counter = tp._dynamo.testing.CompileCounter()
        >>> x, double = tp.ones(4), tp.compile(lambda x: x * 2, backend=counter)
        >>> tp._dynamo.mark_dynamic(x, 0)
        >>> double(x).shape, double(tp.ones(7)).shape, counter.frame_count
        (tensorpy.Size([4]), tensorpy.Size([7]), 1)
    """
    for dim in _mark(t, MUST_VARY, index):
        vars(t).setdefault(RANGES, {})[dim] = min, max


def mark_unbacked(t: Any, index: Any, **options: Any) -> None:
    """The same as mark_dynamic(): a branch on the size is a guard.

    Arguments:
        t: the tensor
        index: its dimension, or several
        options: PyTorch's, which change nothing

    Example:
        >>> tp._dynamo.mark_unbacked(tp.ones(4), 0)
    """
    mark_dynamic(t, index)


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Has a size of an argument be a symbol, unless the function is for a single size. See mark_dynamic().

    Arguments:
        t: the tensor
        index: its dimension, or several

    Example:
        >>> tp._dynamo.maybe_mark_dynamic(tp.ones(4), 0)
    """
    _mark(t, MAY_VARY, index)


def mark_static(t: Any, index: Any = None) -> Any:
    """Has a size of an argument be a number, also where compile(dynamic=True) says otherwise. A class of modules is
    given back, so that this may decorate it.

    Arguments:
        t: the tensor
        index: its dimension, or several; all of them, unless said

    Example:
        >>> tp._dynamo.mark_static(tp.ones(4), 0)
    """
    if isinstance(t, type) and issubclass(t, Module):
        return t
    _mark(t, STAYS, range(t.dim()) if index is None else index)
    return None


def mark_static_address(t: object, guard: bool = False) -> None:
    """Nothing: an address may change."""


__all__ = ["allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "dont_skip_tracing"]
__all__ += ["error_on_graph_break", "forbid_in_graph", "graph_break", "mark_dynamic", "mark_static"]
__all__ += ["disable_nested_graph_breaks", "is_dynamo_disable_recursive", "override_cudagraphs", "set_recursion_limit"]
__all__ += ["mark_static_address", "mark_unbacked", "maybe_mark_dynamic", "nonstrict_trace", "patch_dynamo_config"]
__all__ += ["run", "set_stance", "skip", "skip_frame", "substitute_in_graph"]
