"""Results that come later: a Future is completed once, by whoever computes it, and waited for by others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tensorpy import _C

T = TypeVar("T")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[T]):
    """A value that `set_result` or `set_exception` gives once; callbacks run in the thread that completes it.

    Arguments:
        devices: the devices

    Example:
        >>> future = tp.Future()
        >>> future.set_result(5)
        >>> future.wait()
        5
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._drive: Callable[[], Any] | None = None  # completes it, where nobody does so by himself

    def _go(self) -> None:
        """Completes it, if it is one that waits to be asked."""
        drive, self._drive = self._drive, None
        if drive is not None:
            drive()

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._done.is_set()

    def wait(self) -> T:
        """The value, when it is there; raises the exception."""
        self._go()
        self._done.wait()
        return self.value()

    def value(self) -> T:
        """The value, which has to be there: RuntimeError otherwise."""
        if not self.done():
            raise RuntimeError("the future has no value yet: wait() waits for it")
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error = value, error
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._tell(callback)

    def set_result(self, result: T) -> None:
        """Completes it with a value."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Completes it with an exception, which wait() raises."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result!r} is of type {type(result).__name__}, not an Exception.")
        self._complete(None, result)

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Has a function called with the future when it is complete: now, if it is."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        self._tell(callback)

    def _tell(self, callback: Callable[[Future[T]], Any]) -> None:
        """An error of a callback is no error of the future's, nor of whoever completes it: it is logged."""
        try:
            callback(self)
        except Exception:
            logging.getLogger(__name__).exception("a callback of a future failed")

    def __reduce__(self) -> Any:
        raise RuntimeError(f"Can not pickle {_C._package()}.futures.Future")

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The future of what a function makes of this one when it is complete; its error is a RuntimeError that names
        the one of the function."""
        after: Future[Any] = Future()
        after._drive = self._go

        def run(me: Future[T]) -> None:
            try:
                after.set_result(callback(me))
            except Exception as error:
                after.set_exception(_as_callbacks(error))

        self.add_done_callback(run)
        return after


def _as_callbacks(error: Exception) -> RuntimeError:
    if isinstance(error, RuntimeError):
        return error
    made = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future whose value is the list, complete when each of them is.

    Arguments:
        futures: the futures

    Returns: a Future.

    Raises: RuntimeError where one is None.

    Example:
        >>> a, b = tp.Future(), tp.Future()
        >>> both = tp.futures.collect_all([a, b])
        >>> a.set_result(1); b.set_result(2)
        >>> [f.value() for f in both.wait()]
        [1, 2]
    """
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    whole: Future[list[Future[Any]]] = Future()
    left, lock = len(futures), threading.Lock()

    def go() -> None:
        for future in futures:
            future._go()

    whole._drive = go

    def count(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            whole.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        whole.set_result(futures)
    return whole


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all, when each is there; the first exception is raised.

    Arguments:
        futures: the futures

    Returns: a list.

    Example:
        >>> a = tp.Future()
        >>> a.set_result(1)
        >>> tp.futures.wait_all([a])
        [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
