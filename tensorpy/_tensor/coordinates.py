"""Tensors of coordinates: what indices, values and a size have to be for each other."""

from __future__ import annotations

from typing import Any

from tensorpy._C import Tensor


def checked_size(places: Tensor, kept: Tensor, size: Any) -> tuple[int, ...]:
    """The size, given or the least one, that the indices and values fit."""
    if places.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    if kept.dim() == 0:
        raise RuntimeError("values must be of nnz x dense sizes, but got a number")
    if places.shape[1] != kept.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: "
            f"{kept.shape[0]}"
        )
    n = places.shape[0]
    least = [int(m) + 1 for m in places.amax(1).tolist()] if places.shape[1] else [0] * n
    if places.numel() and int(places.min()) < 0:
        raise RuntimeError(f"found negative index {int(places.min())} among the indices")
    whole = (*least, *kept.shape[1:]) if size is None else tuple(int(s) for s in size)
    if len(whole) != n + kept.dim() - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(whole)}, sparse_dim = {n}, "
            f"dense_dim = {kept.dim() - 1}"
        )
    for d, (needed, given) in enumerate(zip(least, whole, strict=False)):
        if needed > given:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {given} but found index {needed - 1}"
            )
    if tuple(kept.shape[1:]) != whole[n:]:
        raise RuntimeError(
            f"values has incorrect size, expected [{kept.shape[0]}, {list(whole[n:])}], got {list(kept.shape)}"
        )
    return whole
