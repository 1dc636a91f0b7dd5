"""Decorators of functions that would say how an operator is written in an ONNX file: the functions stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def parse_args(*kinds: str) -> Callable[[Any], Any]:
    """Says what the function's arguments are."""
    return lambda function: function
