"""Operators under their plain names, past the functions of the same names in Python: `_VF.stft`, `_VF.norm`."""

from __future__ import annotations

from tensorpy import _C


def __getattr__(name: str) -> object:
    try:
        return getattr(_C, name)
    except AttributeError:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name) from None


def __dir__() -> list[str]:
    return dir(_C)
