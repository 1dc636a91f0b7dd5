"""Checks of what pipes are given, and streams that are closed by whoever forgets them."""

from __future__ import annotations

import fnmatch
import functools
import importlib.util
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "match_masks", "validate_input_col"]


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Raises a ValueError where fn does not take as many arguments as there are columns (a list or a tuple of them; one
    argument otherwise). Functions without a signature are let through.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise ValueError(f"The function {name} does not take {count} positional argument(s): {error}") from None


def _check_unpickable_fn(fn: Any) -> None:
    """A TypeError of what is no function; a warning of functions that other processes cannot be sent."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    while isinstance(fn, functools.partial):
        fn = fn.func
    if not inspect.isfunction(fn):
        return
    kind = "Lambda" if fn.__name__ == "<lambda>" else "Local" if "<locals>" in fn.__qualname__ else None
    if kind is not None and importlib.util.find_spec("dill") is None:
        warnings.warn(
            f"{kind} function is not supported by pickle: a function of a module, or functools.partial of one, is.",
            stacklevel=3,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits one of the masks, or there are none."""
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


class StreamWrapper:
    """A stream that is closed when nothing refers to it any more.

    Arguments:
        file_obj: the stream
        parent_stream: the stream that it is part of, which is kept open as long as this one
        name: what it is called in messages

    Example:
        >>> import io
        >>> tp.utils.data.datapipes.utils.common.StreamWrapper(io.StringIO("text")).read()
        'text'
    """

    file_obj: Any
    parent_stream: Any
    name: str | None
    closed: bool

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.closed = False

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Closes the streams in dicts, lists and tuples."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            cls.close_streams(list(v.values()), depth + 1)
        elif isinstance(v, (list, tuple)) and depth < 10:
            for one in v:
                cls.close_streams(one, depth + 1)

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self) -> None:
        """Closes the stream."""
        self.closed = True
        self.file_obj.close()

    def autoclose(self) -> None:
        """Closes it, as whoever is through with it does."""
        self.close()

    def __del__(self) -> None:
        if "file_obj" in self.__dict__ and not self.closed:
            try:
                self.close()
            except AttributeError:
                pass

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, state: Any) -> None:
        self.__init__(state)  # type: ignore[misc]


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str] | str, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """(path, open file) of each path. A mode "b" or "t" is for reading.

    Example:
        >>> list(tp.utils.data.datapipes.utils.common.get_file_binaries_from_pathnames([], "b"))
        []
    """
    for path in [pathnames] if isinstance(pathnames, str) else pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        stream = open(path, f"r{mode}" if mode in ("b", "t") else mode, encoding=encoding)
        yield path, StreamWrapper(stream)
