"""The methods of tensors that the standard asks for and PyTorch has not."""

from __future__ import annotations

from types import ModuleType

import tensorpy.array_api as namespace
from tensorpy import Tensor, device

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"no array API {api_version} is there; versions are {', '.join(VERSIONS)}")
    return namespace


def to_device(self: Tensor, device: device | str, /, *, stream: object = None) -> Tensor:
    if stream is not None:
        raise ValueError("to_device(): no device has streams of the array API's kind; stream is None")
    return self.to(device)
