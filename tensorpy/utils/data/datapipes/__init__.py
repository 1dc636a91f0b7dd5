"""Pipes of data: datasets made of others, which also are methods of them: `pipe.map(f).shuffle().batch(8)`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import importlib

    if name in ("datapipe", "determinism", "iter", "map", "utils"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
