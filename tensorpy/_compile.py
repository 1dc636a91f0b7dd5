"""compile(): functions whose tensor operations are noted while Python runs, and run together.

Python runs at every call, so whatever a function reads, prints or decides is right; nothing is guarded or assumed. What
is noted and when it runs is in csrc/plan/plan.h. mode="reduce-overhead" is the exception: Note [Replay] in
csrc/plan/tape.h. This module is the interface: what may be compiled, and which words are taken.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tensorpy import _C

if TYPE_CHECKING:
    from typing import TypedDict, TypeVar, overload

    from typing_extensions import Unpack

    from tensorpy.func.signatures import OfTensors, T
    from tensorpy.nn import Module

    F = TypeVar("F", bound=Callable[..., Any])
    M = TypeVar("M", bound=Module)

    class _Words(TypedDict, total=False):
        fullgraph: bool
        dynamic: bool | None
        backend: Any
        mode: str | None
        options: dict[str, Any] | None
        disable: bool


MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# The words that `backend` takes, and whether calls are fused; with "eager" they are not even noted.
BACKENDS = {"eager": False, "aot_eager": False, "inductor": True, "tensorpy": True}
# smallest: bytes of the largest tensor of a call that waits: below, noting costs more than it gains. tile: bytes of a
# thread's part of a tile of rows: what fits the L2 cache beside what is computed from it. recompute: whether values
# that backward can compute again are given up meanwhile.
OPTIONS = {"smallest": 128 * 1024, "tile": 192 * 1024, "recompute": True}
# Functions of graphs that the program named, and the tags of each.
REGISTERED: dict[str, tuple[Callable[..., Any], frozenset[str]]] = {}

if os.environ.get("TENSORPY_COMPILE") == "0":
    _C._set_compiling(False)


stance = "default"  # what compiler.set_stance says; whether functions are compiled at all is the engine's


class TorchDynamoException(RuntimeError):
    """What compiled functions raise of their own."""


class TorchRuntimeError(TorchDynamoException):
    """Functions that become graphs give tensors that do not go together: other shapes, other dtypes."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """A branch or a loop's body cannot be a graph: it writes to its arguments, gives them back, or gives no tensors."""


class InvalidBackend(TorchDynamoException):
    """There is no backend of that name."""

    def __init__(self, name: Any, known: list[str]) -> None:
        super().__init__(f"Invalid backend: {name!r}, expected one of {', '.join(map(repr, known))} or a function")


class ReplayError(RuntimeError):
    """A function compiled with mode="reduce-overhead" has done something else than what is replayed of it."""


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Gives a backend a name that compile() takes; without a function, a decorator that does it.

    Arguments:
        compiler_fn: called with a GraphModule and its inputs; gives a function of these inputs
        name: the function's own, unless said
        tags: words by which list_backends leaves backends out

    Example:
        >>> @tp._dynamo.register_backend
        ... def as_it_is(graph, inputs):
        ...     return graph.forward
        >>> tp.compile(lambda x: x * 2, backend="as_it_is")(tp.ones(2))
        tensor([2., 2.])
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"A callable function is expected, but {type(compiler_fn)} is provided.")
    name = name or compiler_fn.__name__
    if name in BACKENDS or name in REGISTERED:
        raise AssertionError(f"duplicate name: {name}")
    REGISTERED[name] = compiler_fn, frozenset([tags] if isinstance(tags, str) else tags)
    return compiler_fn


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that compile() takes as its backend; without those that fuse nothing, which are for debugging.

    Returns: a list of str.

    Example:
        >>> "tensorpy" in tp._dynamo.list_backends(), "eager" in tp._dynamo.list_backends(exclude_tags=())
        (True, True)
    """
    without = frozenset(exclude_tags or ())
    own = [name for name, fuses in BACKENDS.items() if fuses or "debug" not in without]
    return sorted([*own, *(name for name, (_, tags) in REGISTERED.items() if not tags & without)])


def lookup_backend(backend: Any) -> Any:
    """What a backend's name stands for: a function, or a name of tensorpy's own."""
    if callable(backend):
        return backend
    if isinstance(backend, str) and backend in REGISTERED:
        return REGISTERED[backend][0]
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise InvalidBackend(backend, [*BACKENDS, *REGISTERED])
    return backend


def without_effect() -> dict[str, Any]:
    """What programs give as options and nobody reads: settings of PyTorch's code generator, and a filter of guards."""
    from tensorpy.utils._config_module import inductor_settings

    return {**inductor_settings(), "guard_filter_fn": None}


def _checked(options: dict[str, Any] | None) -> dict[str, Any]:
    own = dict(OPTIONS)
    for name, value in (options or {}).items():
        known: dict[str, Any] = OPTIONS if name in OPTIONS else without_effect()
        if name not in known:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {list(OPTIONS)}")
        kind = type(known[name])
        if known[name] is not None and type(value) is not kind:
            raise RuntimeError(f"Unexpected type of attr {name}, got {type(value).__name__}, expected {kind.__name__}")
        if name not in OPTIONS:
            continue
        if not 0 <= value < 1 << 40:
            raise RuntimeError(f"attr {name} is a number of bytes, got {value}")
        own[name] = value
    return own


def _check_words(mode: Any, options: Any, dynamic: Any) -> None:
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(str(m) for m in MODES if m)}")
    if dynamic is not None and not isinstance(dynamic, bool):
        raise RuntimeError(f"dynamic has to be True, False or None, got {type(dynamic).__name__}")


# For checkers a module stays one.
if TYPE_CHECKING:

    @overload
    def compile(model: M, **words: Unpack[_Words]) -> M: ...
    @overload
    def compile(model: OfTensors[T], **words: Unpack[_Words]) -> Callable[..., T]: ...
    @overload
    def compile(model: None = None, **words: Unpack[_Words]) -> Callable[[F], F]: ...


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The function or module with its tensor operations noted and run together; without one, a decorator that does it.

    Python runs at every call, and results are those of the function itself, to the bit.

    Arguments:
        model: the function, method or module; None makes a decorator
        fullgraph: whether a call that cannot be noted as a whole is an error
        dynamic: whether sizes are symbols in the graphs of a function's backend; None: those that differ between calls
        backend: "tensorpy" or "inductor" fuse calls, "aot_eager" only notes them, "eager" calls the function; a
            function is given graphs of the calls and their inputs, and gives what is called instead
        mode: "reduce-overhead": calls that three calls have shown are done again without Python, and compared now and
            then; what changes has to be an argument. "default" and the others: every call is followed
        options: "smallest": how many bytes a call's largest tensor has at least for the call to wait; "tile": bytes of
            each thread's part of the rows that pass several calls before the next rows; "recompute": whether saved
            values that backward can compute again from others are given up until then, which is the default. Settings
            of PyTorch's code generator ("max_autotune", "triton.cudagraphs") change nothing
        disable: whether the function is given back as it is

    Returns: a function that is called as the given one, or a module; without a model a decorator.

    Raises: AssertionError for what cannot be called.

    Example:
        >>> square = tp.compile(lambda x: x * x)
        >>> square(tp.tensor([2.0, 3.0]))
        tensor([4., 9.])
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    _check_words(mode, options, dynamic)
    backend = lookup_backend(backend)
    if isinstance(backend, str):
        how = _own_compiler(backend, fullgraph, options, mode)
    else:
        how = Compiler(True, bool(fullgraph))
        words = {"mode": None if mode == "default" else mode, "options": options}
        words = {name: word for name, word in words.items() if word}
        how = replace(how, backend=backend, words=words, dynamic=dynamic)
    if disable:
        return model

    if isinstance(model, type):
        return of_class(model, how)
    as_module = getattr(type(model), "_compiled_as", None)  # nn/modules/compiled.py
    return as_module(model, how) if as_module else how(model)


@dataclass(frozen=True)
class Compiler:
    """Makes a compiled function of one."""

    fuses: bool
    fullgraph: bool
    smallest: int = OPTIONS["smallest"]
    tile: int = OPTIONS["tile"]
    recompute: bool = True
    backend: Callable[..., Any] | None = None  # of the program's
    words: Any = None  # that it is given
    replays: bool = False
    plain: bool = False  # nothing is noted
    dynamic: bool | None = None  # of graphs: whether sizes are symbols

    def __call__(self, function: Callable[..., Any]) -> Any:
        if self.backend is not None:
            return self._of_graphs(function)
        how = (self.fuses, self.fullgraph, self.smallest, self.tile, False, self.replays, self.recompute and self.fuses)
        return named(_C._Compiled(function, *how, self.plain))

    def _of_graphs(self, function: Callable[..., Any]) -> Any:
        """A graph's function runs outside of regions."""
        follow = replace(self, fullgraph=False, backend=None)(function)
        made = _C._of_graphs(function, self.backend, follow, self.fullgraph, self.words, self.dynamic)
        return functools.update_wrapper(_C._Compiled(made, False, False, 0, 0, True), function)


def _own_compiler(backend: str, fullgraph: Any, options: Any, mode: Any) -> Compiler:
    how = Compiler(BACKENDS[backend], bool(fullgraph), **_checked(options))
    return replace(how, replays=mode == "reduce-overhead" and how.fuses, plain=backend == "eager")


def of_class(kind: type, how: Callable[..., Any]) -> type:
    """The class itself, with calls of its instances compiled."""
    if any("__call__" in base.__dict__ for base in kind.__mro__):
        plain: Any = kind
        plain.__call__ = how(plain.__call__)
    return kind


def named(compiled: Any) -> Any:
    """With the name and documentation of the function that it calls."""
    return functools.update_wrapper(compiled, compiled._torchdynamo_orig_callable)


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """A function that is run as it is written; without one, a decorator. Tracing has no guards to keep out."""
    return (lambda given: given) if fn is None else fn


__all__ = ["compile"]
