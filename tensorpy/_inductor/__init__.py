"""The names of PyTorch's code generator: what programs set of it, and what of it stands for compile() here.

There is no code to generate, so settings (config.py) and caches (utils.py) change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _compile
from tensorpy._inductor import config, exc, utils


def compile(gm: Any, example_inputs: Any, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """compile() of a graph.

    Arguments:
        gm: a GraphModule, or another function of tensors
        example_inputs: its arguments; nobody reads them
        options: as compile() takes them

    Returns: a function that is called as the graph.

    Example:
        >>> double = tp._inductor.compile(tp.fx.symbolic_trace(lambda x: x * 2), [tp.ones(2)])
        >>> double(tp.ones(2))
        tensor([2., 2.])
    """
    return _compile.compile(gm, options=options)


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The settings that a mode of compile() stands for in PyTorch.

    Arguments:
        mode: one of compile()'s modes; None: all of them
        dynamic: nobody reads it

    Returns: a dict of settings; without a mode, one of such dicts.

    Raises: RuntimeError for a mode that is not there.

    Example:
        >>> tp._inductor.list_mode_options("reduce-overhead")
        {'triton.cudagraphs': True}
    """
    if mode is None:
        return {name: dict(settings) for name, settings in config.MODES.items()}
    if mode not in config.MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(config.MODES)}")
    return dict(config.MODES[mode])


def list_options() -> list[str]:
    """The names that compile(options=) takes: tensorpy's, and those of PyTorch's that change nothing.

    Returns: a list of str.

    Example:
        >>> "tile" in tp._inductor.list_options(), "triton.cudagraphs" in tp._inductor.list_options()
        (True, True)
    """
    return [*_compile.OPTIONS, *_compile.without_effect()]


def cudagraph_mark_step_begin() -> None:
    """Nothing: results of replayed calls are the program's own.

    Example:
        >>> tp._inductor.cudagraph_mark_step_begin()
    """


__all__ = ["compile", "config", "cudagraph_mark_step_begin", "exc", "list_mode_options", "list_options", "utils"]
