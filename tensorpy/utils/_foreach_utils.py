"""Lists of tensors put together by where they are and what they are of."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]]:
    """{(device, dtype): (the lists, their indices)} by the tensors of the first list; a None stays with its place."""
    groups: dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]] = {}
    for place, first in enumerate(tensorlistlist[0]):
        key = (None, None) if first is None else (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for into, source in zip(lists, tensorlistlist, strict=True):
            if source:  # a list may be empty for all
                into.append(source[place])
        if with_indices:
            indices.append(place)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Device types whose operators over lists are kernels."""
    return ["cpu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Device types whose steps of optimizers are kernels."""
    return ["cpu"]
