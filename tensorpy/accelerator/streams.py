"""Streams and events of any device that has them: tensorpy.Stream, tensorpy.Event."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorpy import _C
from tensorpy.accelerator.devices import resolve, types

_calls = _C._streams


def _device(device: Any, type: str | None) -> _C.device:
    """A device given as None (the current one), a number, a name or a device; of a type, else an accelerator."""
    if type is None:
        found = resolve(device)
    elif device is None or isinstance(device, int):
        found = _C.device(type, device) if device is not None and device >= 0 else _C.device(type)
    else:
        found = _C.device(device)
        if found.type != _C.device(type).type:
            raise ValueError(f"expected a device {type}, got {found}")
    return found if found.index is not None else _C.device(found.type, int(_C._current_device(found)))


def _is_host(device: Any) -> bool:
    """Whether a device or its name is the CPU's, which has one stream: what is called has been done."""
    return isinstance(device, (str, _C.device)) and _C.device(device).type == "cpu"


class Event:
    """A mark in a stream: `record()` sets it after all that is enqueued there.

    Arguments:
        device: where the elements are: a device or its name; None takes the default
        enable_timing: whether the time is taken
        blocking: is taken, and changes nothing here

    Example:
        >>> if tp.accelerator.is_available():
        ...     event = tp.Event(enable_timing=True)
    """

    _type: ClassVar[str | None] = None

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False) -> None:
        self.enable_timing = enable_timing
        self._given = device
        self._mark: Any = None

    @property
    def device(self) -> _C.device:
        """The device in whose streams it is recorded."""
        return _device(self._given, self._type)

    def _place(self, stream: Stream | None) -> tuple[_C.device, int]:
        return (self.device, -1) if stream is None else (stream.device, stream.stream_id)

    def record(self, stream: Stream | None = None) -> None:
        """Marks the end of what is enqueued by now on a stream (the current one)."""
        self._mark = _calls.event_new(self._place(stream), self.enable_timing)

    def query(self) -> bool:
        """Whether all before the mark is done."""
        return self._mark is None or bool(_calls.event_query(self._mark))

    def synchronize(self) -> None:
        """Waits for all before the mark."""
        if self._mark is not None:
            _calls.event_synchronize(self._mark)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes a stream (the current one) wait for the mark; the host goes on."""
        if self._mark is not None:
            _calls.event_hold(self._mark, self._place(stream))

    def elapsed_time(self, end: Event) -> float:
        """The milliseconds between this mark and a later one."""
        if self._mark is None or end._mark is None:
            raise RuntimeError("both events must be recorded before calculating elapsed time")
        return float(_calls.event_elapsed(self._mark, end._mark))


class Stream:
    """A queue of a device, in order, beside its default one. `with stream:` sends there what this thread enqueues.

    Streams do not know of each other: `wait_stream` and events put their work in order, and a tensor that another
    stream than its own uses is named to `Tensor.record_stream`, so that its memory is not given to others too early.
    A device has a number of streams beside the default one, from which on they are shared.

    Arguments:
        device: a device or its name; None takes the accelerator, or the CPU where there is none
        priority: a lower number goes first

    Example:
        >>> if tp.accelerator.is_available():
        ...     stream = tp.Stream()
    """

    device: Any
    stream_id: int
    _type: ClassVar[str | None] = None
    _event: ClassVar[type[Event]] = Event

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        host = device is None and self._type is None and not types()
        self.device = _C.device("cpu") if host or _is_host(device) else _device(device, self._type)
        self.stream_id = 0 if _is_host(self.device) else int(_calls.stream_new(self.device, priority))
        self._entered: list[tuple[int, int]] = []

    @classmethod
    def _of(cls, device: _C.device, number: int) -> Stream:
        self = cls.__new__(cls)
        self.device, self.stream_id, self._entered = device, number, []
        return self

    @property
    def device_index(self) -> int:
        """The index of the device whose queue this is."""
        return -1 if _is_host(self.device) else int(self.device.index or 0)

    @property
    def device_type(self) -> str:
        """The type of the device whose queue this is."""
        return str(self.device.type)

    def synchronize(self) -> None:
        """Waits until all that was enqueued here is done."""
        if not _is_host(self.device):
            _calls.stream_synchronize(self.device, self.stream_id)

    def query(self) -> bool:
        """Whether all that was enqueued here is done."""
        return _is_host(self.device) or bool(_calls.stream_query(self.device, self.stream_id))

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one by default."""
        event = event or self._event(self.device)
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What is enqueued here from now on comes after an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What is enqueued here from now on comes after all that another stream was given so far."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        if _is_host(self.device):
            return self
        before = int(_C._current_device(self.device))
        _C._set_device(self.device)
        self._entered.append((before, int(_calls.stream_current(self.device))))
        _calls.stream_set(self.device, self.stream_id)
        return self

    def __exit__(self, *unused: Any) -> None:
        if _is_host(self.device):
            return
        device, number = self._entered.pop()
        _calls.stream_set(self.device, number)
        _C._set_device(_C.device(self.device.type, device))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (other.device, other.stream_id) == (self.device, self.stream_id)

    def __hash__(self) -> int:
        return hash((self.device.type, self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} device={self.device} stream_id={self.stream_id}>"


def current_stream(device: Any, type: str | None, cls: type[Stream] = Stream) -> Stream:
    """This thread's current stream of a device."""
    found = _device(device, type)
    return cls._of(found, int(_calls.stream_current(found)))


def default_stream(device: Any, type: str | None, cls: type[Stream] = Stream) -> Stream:
    """The stream of a device that is current until another is chosen."""
    return cls._of(_device(device, type), 0)


def set_stream(stream: Stream) -> None:
    """Makes a stream the current one of this thread."""
    _calls.stream_set(stream.device, stream.stream_id)


Stream.__module__ = Event.__module__ = "tensorpy"
