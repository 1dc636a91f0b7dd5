"""The linalg functions: the operators whose `python_module` is linalg, without their prefix; and LinAlgError."""

from __future__ import annotations

from tensorpy import _C

_PREFIX = "linalg_"
_module = getattr(_C, "_linalg", None)
__all__ = sorted(name.removeprefix(_PREFIX) for name in dir(_module) if name.startswith(_PREFIX))
globals().update({name: getattr(_module, _PREFIX + name) for name in __all__})

LinAlgError = _C._LinAlgError
__all__ += ["LinAlgError"]


TYPE_CHECKING = False
if not TYPE_CHECKING:

    def __getattr__(name: str) -> None:
        """Names what stands for a name that is not here."""
        from tensorpy._package.nearby import ending

        raise AttributeError(f"module 'tensorpy.linalg' has no attribute '{name}'{ending('linalg', name, globals())}")
