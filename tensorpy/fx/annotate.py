"""Gives a value of a trace a type."""

from __future__ import annotations

from typing import Any

from tensorpy.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """The value; where it is a proxy, its node has the type from then on."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type}"
            )
        val.node.type = type
    return val
