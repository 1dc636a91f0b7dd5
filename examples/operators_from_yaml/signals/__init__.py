"""Operators of this package: `signals.ops.softclip(x, 2.0)`, or tensorpy.ops.signals.softclip."""

from tensorpy.utils.extension import load_installed

load_installed("signals._ops")

from signals import ops  # noqa: E402  (what the library has declared)

__all__ = ["ops"]
