"""Text that a function prints while its call is recorded: the graph would print nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class _Watched:
    """A stream that tells what this thread writes to it."""

    def __init__(self, stream: Any, tell: Callable[[], None]) -> None:
        self._stream, self._tell, self._thread = stream, tell, threading.get_ident()

    def _told(self) -> Any:
        if threading.get_ident() == self._thread:
            self._tell()
        return self._stream

    def write(self, text: str) -> Any:
        return self._told().write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self._told().writelines(lines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def watched(tell: Callable[[], None]) -> Iterator[None]:
    """Calls `tell` where text goes to sys.stdout.

    Arguments:
        tell: takes nothing

    Example:
        >>> from tensorpy._dynamo.printed import watched
        >>> seen = []
        >>> with watched(lambda: seen.append(1)):
        ...     print("text")
        text
        >>> len(seen) > 0
        True
    """
    before = sys.stdout
    own = _Watched(before, tell)
    sys.stdout = own
    try:
        yield
    finally:
        if sys.stdout is own:
            sys.stdout = before


__all__ = ["watched"]
