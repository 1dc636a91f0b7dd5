"""Streams and events of cuda by the module that programs import them from."""

from __future__ import annotations

from tensorpy import cuda as _cuda

Stream = _cuda.Stream
Event = _cuda.Event
ExternalStream = _cuda.ExternalStream

__all__ = ["Event", "ExternalStream", "Stream"]
