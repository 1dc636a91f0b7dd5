"""Groups whose messages classes of Python carry: the functions that send ask their methods, with PyTorch's options.

A class below ProcessGroup that defines `allreduce`, `broadcast` and their kin is asked for them; so is a group that a
backend makes which `Backend.register_backend` was given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

from tensorpy.distributed.groups import ProcessGroup, _Group

_F = TypeVar("_F", bound=Callable[..., Any])

# By a function's name: what its arguments are as a method's: the method's name, arguments, options, async_op.
AS_METHODS: dict[str, Callable[..., tuple[str, tuple[Any, ...], Any, bool]]] = {}


def asks_group(function: _F) -> _F:
    """The function; in a group of Python's own, what its method does."""
    code = function.__code__
    place = code.co_varnames[: code.co_argcount].index("group")

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        given = args[place] if len(args) > place else kwargs.get("group")
        found = _Group.WORLD if given is None else given
        if type(found) is ProcessGroup or not getattr(found, "_asks", False):
            return function(*args, **kwargs)
        return _ask(cast(ProcessGroup, found), *AS_METHODS[function.__name__](found, *args, **kwargs))

    return cast(_F, asked)


def has(found: ProcessGroup, name: str) -> bool:
    """Whether a group's class has a method of its own."""
    return getattr(type(found), name, None) is not getattr(ProcessGroup, name, None)


def _ask(found: ProcessGroup, name: str, args: tuple[Any, ...], options: Any, async_op: bool) -> Any:
    if not has(found, name):
        raise NotImplementedError(f"{type(found).__name__} has no method {name}, by which it would send this")
    given = args if options is None else (*args, options)
    work = getattr(found, name)(*given)
    if async_op or work is None:
        return work
    work.wait(timedelta(seconds=found._seconds))
    return None
