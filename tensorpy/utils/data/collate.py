"""Samples put together as batches."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = ["default_collate", "default_convert"]


def _is_array(value: Any) -> bool:
    """An array or a number of NumPy's, told without importing it."""
    return type(value).__module__ == "numpy" and type(value).__name__ not in ("str_", "string_", "bytes_")


def _like(value: Any, items: dict[Any, Any]) -> Any:
    """A mapping of a value's kind; a dict where that kind cannot be made."""
    try:
        if isinstance(value, MutableMapping):
            made = copy.copy(value)
            made.update(items)
            return made
        return type(value)(items)
    except TypeError:
        return items


def _listed_like(value: Any, items: list[Any]) -> Any:
    """A sequence of a value's kind; a list where that kind cannot be made."""
    if isinstance(value, tuple):
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    try:
        if isinstance(value, MutableSequence):
            made = copy.copy(value)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return type(value)(items)
    except TypeError:
        return items


def default_convert(data: Any) -> Any:
    """NumPy's arrays as tensors, inside of mappings and sequences too; anything else as it is.

    Arguments:
        data: the data

    Example:
        >>> tp.utils.data.default_convert([tp.ones(1), "text"])
        [tensor([1.]), 'text']
    """
    if isinstance(data, Tensor) or isinstance(data, (str, bytes)):
        return data
    if _is_array(data):
        return data if getattr(data.dtype, "kind", "") in "SUO" else _C.as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        items = [default_convert(value) for value in data]
        return items if type(data) is tuple else _listed_like(data, items)
    return data


def default_collate(batch: Any) -> Any:
    """A list of samples as one: tensors and numbers stacked, mappings and sequences by their parts.

    Arguments:
        batch: the batch

    Example:
        >>> tp.utils.data.default_collate([(1, 2.0), (3, 4.0)])
        [tensor([1, 3]), tensor([2., 4.], dtype=tensorpy.float64)]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _C.stack(list(batch), 0)
    if _is_array(first):
        if getattr(first.dtype, "kind", "") in "SUO":
            raise TypeError(f"{_COMPLAINT}{first.dtype}")
        return _C.stack([_C.as_tensor(b) for b in batch], 0) if first.shape else _C.as_tensor(_stacked(batch))
    if isinstance(first, float):
        return _C.tensor(batch, dtype=_C.float64)
    if isinstance(first, int):
        return _C.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [
            default_collate(list(samples) if not _all_text(samples) else samples)
            for samples in zip(*batch, strict=True)
        ]
        return parts if type(first) is tuple else _listed_like(first, parts)
    raise TypeError(f"{_COMPLAINT}{type(first)}")


_COMPLAINT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "


def _all_text(samples: Any) -> bool:
    return isinstance(samples[0], (str, bytes))


def _stacked(numbers: Any) -> Any:
    import numpy as np

    return np.stack(numbers)
