"""The fft functions: the operators whose `python_module` is fft, without their prefix."""

from __future__ import annotations

from tensorpy import _C
from tensorpy._package import proposing as _proposing

_PREFIX = "fft_"
_module = getattr(_C, "_fft", None)
__all__ = sorted(name.removeprefix(_PREFIX) for name in dir(_module) if name.startswith(_PREFIX))
globals().update({name: getattr(_module, _PREFIX + name) for name in __all__})

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("fft", globals())
