"""What a class of tensors says to export: its constructor is called as it is written."""

from __future__ import annotations

from typing import Any


def mark_subclass_constructor_exportable_experimental(constructor_subclass: Any) -> Any:
    """The constructor of a class of tensors, which graphs may have a call of."""
    return constructor_subclass


__all__ = ["mark_subclass_constructor_exportable_experimental"]
