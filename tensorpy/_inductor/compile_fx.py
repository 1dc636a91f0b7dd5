"""What backends of programs call to have a graph compiled as compile() does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _compile


def compile_fx(model_: Any, example_inputs_: Any, *given: Any, **words: Any) -> Callable[..., Any]:
    """compile() of a graph that a backend of the program's was given.

    Arguments:
        model_: a GraphModule
        example_inputs_: its arguments; nobody reads them

    Returns: a function that is called as the graph.

    Example:
        >>> from tensorpy._inductor.compile_fx import compile_fx
        >>> tp.compile(lambda x: x.sin() + 1, backend=compile_fx)(tp.zeros(2))
        tensor([1., 1.])
    """
    return _compile.compile(model_)


compile_fx_inner = compile_fx

__all__ = ["compile_fx", "compile_fx_inner"]
