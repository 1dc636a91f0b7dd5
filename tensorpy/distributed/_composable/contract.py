"""contract: functions that change a module in place, once, and keep what they know of it beside it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorpy.nn import Module

_STATES = "_composable_states"


class _State:
    """What a function keeps of a module."""


def contract(state_cls: type[_State] = _State) -> Callable[[Callable[..., Any]], Any]:
    """A decorator of functions of a module, which they change in place and return: `fn.state(module)` is theirs alone.

    Arguments:
        state_cls: the class of what a function keeps
    """

    def decorate(fn: Callable[..., Any]) -> Any:
        @functools.wraps(fn)
        def changed(module: Module, *args: Any, **kwargs: Any) -> Module:
            states = module.__dict__.setdefault(_STATES, {})
            if fn.__name__ in states:
                raise AssertionError(f"{fn.__name__} was called on this {type(module).__name__} before")
            names = [name for name, _ in module.named_parameters()]
            states[fn.__name__] = state_cls()
            try:
                made: Module = fn(module, *args, **kwargs)
            except BaseException:
                del states[fn.__name__]
                raise
            if made is not module or [name for name, _ in module.named_parameters()] != names:
                raise RuntimeError(f"{fn.__name__} returned another module, or one with other parameters")
            return made

        found: Any = changed
        found.state = lambda module: module.__dict__.get(_STATES, {}).get(fn.__name__)
        return found

    return decorate
