"""Work: a message that was asked for with async_op, and its end.

What is under way lives in C (csrc/distributed/work.h). What is left to do when it has come (copying into tensors that
are not contiguous, an average's division) runs once, in whoever finds it done first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tensorpy import _C
from tensorpy._package import async_events
from tensorpy.distributed.errors import DistBackendError
from tensorpy.futures import Future


def seconds_of(timeout: Any, otherwise: float) -> float:
    """A timedelta, or a number of seconds; None or no time at all stands for `otherwise`."""
    if timeout is None:
        return otherwise
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    return seconds if seconds > 0 else otherwise


class _Order(threading.local):
    kept = False


_order = _Order()


@contextmanager
def in_order() -> Iterator[None]:
    """A context in which futures of works go on when they are waited for, and not before.

    What a future begins when it goes on is then begun in the same order in all processes of a group, as it has to be.
    """
    before, _order.kept = _order.kept, True
    try:
        yield
    finally:
        _order.kept = before


class Work:
    """A message that was asked for with async_op; without anything under way it is done.

    Arguments:
        capsule: the engine's request; None where it is done
        seconds: after how long it is late
        finish: what is done when it has ended
        outputs: what get_future() and result() give
        ranks: the processes
        arrived: is told who sent it
        event: what a profile that records has of it

    Example:
        >>> work = tp.distributed.all_reduce(tp.ones(2), async_op=True)
        >>> work.wait(), work.is_completed()
        (True, True)
    """

    def __init__(
        self,
        capsule: Any = None,
        seconds: float = 0.0,
        finish: Callable[[], None] | None = None,
        outputs: Any = (),
        ranks: tuple[int, ...] = (0,),
        arrived: Callable[[tuple[int, int]], None] | None = None,
        event: async_events.Event | None = None,
    ) -> None:
        self._capsule, self._seconds, self._finish, self._outputs = capsule, seconds, finish, outputs
        self._ranks, self._arrived, self._event = ranks, arrived, event
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._future: Future[Any] | None = None

    def _end(self) -> None:
        """What is left to do once it is done."""
        async_events.end(self._event)
        with self._lock:
            if self._arrived is not None:
                arrived, self._arrived = self._arrived, None
                try:
                    arrived(_C._distributed.arrival(self._capsule))
                except DistBackendError as error:
                    self._error = error
            if self._finish is not None:
                finish, self._finish = self._finish, None
                finish()
        if self._error is not None:
            raise self._error

    def wait(self, timeout: Any = None) -> bool:
        """Waits for it; DistBackendError where it failed, or did not come in time."""
        if self._capsule is not None:
            try:
                _C._distributed.wait(self._capsule, seconds_of(timeout, self._seconds))
            except DistBackendError as error:
                self._error = error
                raise
            self._end()
        return True

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is done, or has failed."""
        if self._capsule is None or self._error is not None:
            return True
        try:
            done = bool(_C._distributed.done(self._capsule))
            if done:
                self._end()
        except DistBackendError as error:
            self._error = error
            return True
        return done

    def is_success(self) -> bool:
        """Whether it is done, and did not fail."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """Why it failed; None if it did not, or not yet."""
        self.is_completed()
        return self._error

    def result(self) -> list[Any]:
        """The tensors that it wrote."""
        if not self.is_completed():
            raise RuntimeError("the work is not done yet: wait() waits for it")
        return list(self._outputs)

    def source_rank(self) -> int:
        """Which rank of the group a message came from."""
        if self._capsule is None:
            return 0
        if not self.is_completed():
            raise RuntimeError("the message has not come yet: wait() waits for it")
        return int(_C._distributed.arrival(self._capsule)[0])

    _source_rank = source_rank

    def get_future(self) -> Future[Any]:
        """A future of the tensors that it writes; a thread waits for it, or who waits for the future (in_order)."""
        if self._future is None:
            future: Future[Any] = Future()
            self._future = future

            def complete() -> None:
                try:
                    self.wait()
                except Exception as error:
                    future.set_exception(error)
                else:
                    future.set_result(list(self._outputs))

            if _order.kept:
                future._drive = complete
            elif self.is_completed():
                complete()
            else:
                threading.Thread(target=complete, name="tensorpy future of a work", daemon=True).start()
        return self._future


class FutureWork(Work):
    """A Work that is done when a future is.

    Arguments:
        future: the future
    """

    def __init__(self, future: Future[Any]) -> None:
        super().__init__()
        self._of = future

    def wait(self, timeout: Any = None) -> bool:
        """Waits for the future."""
        self._of.wait()
        return True

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self._of.done()

    def get_future(self) -> Future[Any]:
        """The future."""
        return self._of

    def result(self) -> Any:
        """What the future has."""
        return self._of.value()


class Works(Work):
    """Several works as one."""

    def __init__(self, parts: list[Work], event: async_events.Event | None = None) -> None:
        super().__init__(outputs=[t for part in parts for t in part._outputs], event=event)
        self._parts = parts

    def wait(self, timeout: Any = None) -> bool:
        """Waits for all."""
        for part in self._parts:
            part.wait(timeout)
        async_events.end(self._event)
        return True

    def is_completed(self) -> bool:
        """Whether all are done, or failed."""
        done = [part.is_completed() for part in self._parts]
        self._error = next((part._error for part in self._parts if part._error is not None), None)
        if all(done):
            async_events.end(self._event)
        return all(done)
