"""Tools around tensors: hooks, data loading, checkpointing, pictures. Its parts are imported at first use."""

from __future__ import annotations

_PARTS = (
    "_layers",
    "_python_dispatch",
    "_pytree",
    "benchmark",
    "checkpoint",
    "data",
    "dlpack",
    "extension",
    "hooks",
    "model_zoo",
    "viz",
)


def __getattr__(name: str) -> object:
    if name in _PARTS:
        import importlib

        return importlib.import_module(f"tensorpy.utils.{name}")
    raise AttributeError(f"module 'tensorpy.utils' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *(part for part in _PARTS if not part.startswith("_"))})
