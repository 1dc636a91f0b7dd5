"""What a pass that runs a graph anew notes of the nodes that it runs, and marks of a program's own (`annotate`)."""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from tensorpy.fx.node import Node

__all__ = [
    "annotate", "annotate_fn", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta",
    "set_current_meta", "set_stack_trace",
]  # fmt: skip


class _State(threading.local):
    """What one thread annotates nodes with."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserves = False


_state = _State()


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """As long as it lasts, nodes that are made have what is noted; afterwards the notes are what they were."""
    before = _state.preserves, copy(_state.meta)
    _state.preserves = enable
    try:
        yield
    finally:
        _state.preserves, _state.meta = before


def has_preserved_node_meta() -> bool:
    """Whether nodes have what is noted."""
    return _state.preserves


def set_stack_trace(stack: list[str]) -> None:
    """Where the program is, for nodes that are made from here on."""
    if _state.preserves and stack:
        _state.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Where the program is: as it is noted, or as Python has it."""
    if _state.preserves:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """As long as it lasts, nodes that are made have these marks in `meta["custom"]`, beside those of outer scopes."""
    had, before = "custom" in _state.meta, _state.meta.get("custom", {})
    preserves, _state.preserves = _state.preserves, True
    _state.meta["custom"] = {**before, **annotation_dict}
    try:
        yield
    finally:
        _state.preserves = preserves
        if had:
            _state.meta["custom"] = before
        else:
            _state.meta.pop("custom", None)


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the same while the function runs."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return run

    return decorate


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """As long as it lasts, what is noted is a node's."""
    before = _state.meta
    if _state.preserves and node.meta:
        _state.meta = copy(node.meta)
    try:
        yield
    finally:
        _state.meta = before


def mark(node: Node) -> None:
    """Gives a node that was made what is noted of its program."""
    if _state.preserves:
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom"):
            if key in _state.meta:
                node.meta.setdefault(key, copy(_state.meta[key]))


def get_current_meta() -> dict[str, Any]:
    """What is noted."""
    return _state.meta
