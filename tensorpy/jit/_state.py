"""The compiled classes and functions by what they were compiled from: nothing is compiled, so there are none."""

from __future__ import annotations

from typing import Any

_script_classes: dict[type, Any] = {}


def _get_script_class(python_class: type) -> Any:
    """The compiled class of a class: None."""
    return _script_classes.get(python_class)


def _clear_class_state() -> None:
    """Forgets the compiled classes."""
    _script_classes.clear()
