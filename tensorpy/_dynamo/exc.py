"""The errors of compiled functions."""

from __future__ import annotations

from typing import Any

from tensorpy._compile import InvalidBackend, TorchDynamoException


class Unsupported(TorchDynamoException):
    """A function that was to be one graph (`fullgraph=True`) is none."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A function that was to be one graph needed more graphs than it may have."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised, or gave what cannot be called."""

    def __init__(self, backend: Any, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")


__all__ = ["BackendCompilerFailed", "FailOnRecompileLimitHit", "InvalidBackend", "TorchDynamoException", "Unsupported"]
