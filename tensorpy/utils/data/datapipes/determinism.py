"""What pipes of PyTorch's are decorated with: marks of a changing order, and types, which are left to checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy.utils.data.datapipes.datapipe import IterDataPipe

_guaranteed = False


@contextmanager
def guaranteed_datapipes_determinism() -> Iterator[None]:
    """A context in which to make a pipe that is marked `non_deterministic` is a TypeError.

    Returns: a context manager.

    Example:
        >>> with tp.utils.data.guaranteed_datapipes_determinism():
        ...     pass
    """
    global _guaranteed
    before, _guaranteed = _guaranteed, True
    try:
        yield
    finally:
        _guaranteed = before


def non_deterministic(arg: Any) -> Any:
    """A decorator of pipes whose order changes: always, or where a function of the arguments is true.

    Arguments:
        arg: the argument

    Returns: the class, or a decorator.

    Raises: TypeError for what is no IterDataPipe.

    Example:
        >>> @tp.utils.data.non_deterministic  # doctest: +SKIP
        ... class Pipe(tp.utils.data.IterDataPipe): ...
    """
    if isinstance(arg, type):
        if not issubclass(arg, IterDataPipe):
            raise TypeError(
                f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found"
            )
        return _marked(arg, lambda *args, **options: True)
    if not callable(arg):
        raise TypeError(f"{arg} can not be decorated by non_deterministic")
    return lambda cls: _marked(cls, arg)


def _marked(cls: Any, changes: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **options: Any) -> Any:
        if _guaranteed and changes(*args, **options):
            raise TypeError(f"{cls.__name__} is non-deterministic with these arguments, and determinism is guaranteed")
        return cls(*args, **options)

    return make


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function: what its arguments' types are, is for checkers to say.

    Arguments:
        f: the function

    Returns: the function.

    Example:
        >>> @tp.utils.data.argument_validation
        ... def double(x: int):
        ...     return x * 2
        >>> double(3)
        6
    """
    return f


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function: what types it gives, is for checkers to say.

    Arguments:
        f: the function

    Returns: the function.

    Example:
        >>> @tp.utils.data.runtime_validation  # doctest: +SKIP
        ... def __iter__(self):
        ...     yield 1
    """
    return f


@contextmanager
def runtime_validation_disabled() -> Iterator[None]:
    """A context without checks of types while a program runs: there are none.

    Returns: a context manager.

    Example:
        >>> with tp.utils.data.runtime_validation_disabled():
        ...     pass
    """
    yield
