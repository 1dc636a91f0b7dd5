"""compile(): functions whose tensor operations are noted while Python runs, and run together.

Python runs at every call, so whatever a function reads, prints or decides is right; nothing is guarded or assumed. What
is noted and when it runs is in csrc/plan/plan.h. This module is the interface: what may be compiled, and which words
are taken.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorpy import _C

MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# The words that `backend` takes, and what becomes of the function: no region, a region, a region whose calls are fused.
BACKENDS = {"eager": None, "aot_eager": False, "inductor": True, "tensorpy": True}
# smallest: bytes of the largest tensor of a call that waits: below, noting costs more than it gains. tile: bytes of a
# thread's part of a tile of rows: what fits the L2 cache beside what is computed from it.
OPTIONS = {"smallest": 128 * 1024, "tile": 192 * 1024}

if os.environ.get("TENSORPY_COMPILE") == "0":
    _C._set_compiling(False)


def _backend(backend: Any) -> str:
    if callable(backend):
        raise NotImplementedError(
            "compile(backend=...) takes a name: a function of a graph is not called, since nothing is traced. "
            "tensorpy.fx.make_fx makes the graph of a call"
        )
    if backend not in BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, expected one of {', '.join(map(repr, BACKENDS))}")
    return str(backend)


def _sizes(options: dict[str, Any] | None) -> dict[str, int]:
    for name, value in (options or {}).items():
        if name not in OPTIONS:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {list(OPTIONS)}")
        if not isinstance(value, int) or isinstance(value, bool):
            raise RuntimeError(f"Unexpected type of attr {name}, got {type(value).__name__}, expected int")
        if not 0 <= value < 1 << 40:
            raise RuntimeError(f"attr {name} is a number of bytes, got {value}")
    return OPTIONS | (options or {})


def _check_words(mode: Any, options: Any, dynamic: Any) -> None:
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(str(m) for m in MODES if m)}")
    if dynamic is not None and not isinstance(dynamic, bool):
        raise RuntimeError(f"dynamic has to be True, False or None, got {type(dynamic).__name__}")


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
        dynamic: for programs that say it: sizes may change at any call
        backend: "tensorpy" or "inductor" fuse calls, "aot_eager" only notes them, "eager" gives the function itself
        mode: "default", or the other names of PyTorch's, which are the same
        options: "smallest": how many bytes a call's largest tensor has at least for the call to wait; "tile": bytes of
            each thread's part of the rows that pass several calls before the next rows
        disable: whether the function is given back as it is

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
    fuses, sizes = BACKENDS[_backend(backend)], _sizes(options)
    if disable:
        return model

    how = Compiler(fuses, bool(fullgraph), sizes["smallest"], sizes["tile"])
    as_module = getattr(type(model), "_compiled_as", None)  # nn/modules/compiled.py
    return as_module(model, how) if as_module else how(model)


@dataclass(frozen=True)
class Compiler:
    """Makes a compiled function of one."""

    fuses: bool | None  # None: the function itself
    fullgraph: bool
    smallest: int
    tile: int

    def __call__(self, function: Callable[..., Any]) -> Any:
        if self.fuses is None:
            return function
        return named(_C._Compiled(function, self.fuses, self.fullgraph, self.smallest, self.tile, False))


def named(compiled: Any) -> Any:
    """With the name and documentation of the function that it calls."""
    return functools.update_wrapper(compiled, compiled._torchdynamo_orig_callable)


__all__ = ["compile"]
