"""The switches of autograd, where PyTorch has them; two of them have nothing to switch here."""

from __future__ import annotations

from typing import Any

from tensorpy._modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Switch:
    """A switch that takes effect where it is made, and as a context goes back at its end."""

    mode = True  # what the class's switch is set to

    def __init__(self, mode: bool = True) -> None:
        kind = type(self)
        self.prev, kind.mode = kind.mode, bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        type(self).mode = self.prev


class set_multithreading_enabled(_Switch):
    """Whether backward may use a thread for each device: it runs on the calling thread here either way."""


class enforce_grad_layout_policy(_Switch):
    """Whether gradients get their parameters' strides when they are accumulated: here they keep their own."""
