"""The linalg functions: the operators whose `python_module` is linalg, without their prefix; and LinAlgError."""

from __future__ import annotations

from tensorpy import _C
from tensorpy._package import proposing as _proposing

_PREFIX = "linalg_"
_module = getattr(_C, "_linalg", None)
__all__ = sorted(name.removeprefix(_PREFIX) for name in dir(_module) if name.startswith(_PREFIX))
globals().update({name: getattr(_module, _PREFIX + name) for name in __all__})

LinAlgError = _C._LinAlgError
__all__ += ["LinAlgError"]


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("linalg", globals())
