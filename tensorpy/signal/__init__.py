"""Signals: windows."""

from tensorpy.signal import windows as windows

__all__ = ["windows"]
