"""Samples put together as batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]


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

    Returns: what was given, with tensors.

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


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Tensors stacked."""
    kind = "nested" if batch[0].is_nested else "sparse" if "sparse" in str(batch[0].layout) else ""
    if kind:
        raise RuntimeError(
            f"the default collate_fn makes no batches of {kind} tensors: give the DataLoader a collate_fn of your own"
        )
    return _C.stack(list(batch), 0)


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Floats as float64."""
    return _C.tensor(batch, dtype=_C.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Ints as a tensor of them."""
    return _C.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Texts as they are."""
    return batch


def _collated_arrays(batch: Any) -> Any:
    """Arrays of NumPy, or its numbers."""
    first = batch[0]
    if getattr(first.dtype, "kind", "") in "SUO":
        raise TypeError(f"{_COMPLAINT}{first.dtype}")
    return _C.stack([_C.as_tensor(b) for b in batch], 0) if first.shape else _C.as_tensor(_stacked(batch))


# What samples of a type are put together by; else of the first type here that a sample is an instance of. Programs add
# their own. Arrays and numbers of NumPy are told without importing it.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """A list of samples as one, by functions for their types; mappings and sequences by their parts.

    Arguments:
        batch: the samples
        collate_fn_map: a function for each type, called with the samples and `collate_fn_map=`

    Example:
        >>> from tensorpy.utils.data._utils.collate import collate
        >>> collate([{"a": "x"}, {"a": "y"}], collate_fn_map={str: lambda batch, *, collate_fn_map: "".join(batch)})
        {'a': 'xy'}
    """
    first, kinds = batch[0], collate_fn_map or {}
    if type(first) in kinds:
        return kinds[type(first)](batch, collate_fn_map=collate_fn_map)
    if kinds and _is_array(first):
        return _collated_arrays(batch)
    for kind, put_together in kinds.items():
        if isinstance(first, kind):
            return put_together(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like(
            first,
            {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first},
        )
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch, strict=True)]
        return parts if type(first) is tuple else _listed_like(first, parts)
    raise TypeError(f"{_COMPLAINT}{type(first)}")


def default_collate(batch: Any) -> Any:
    """A list of samples as one: tensors and numbers stacked, mappings and sequences by their parts.

    Arguments:
        batch: the batch

    Returns: what one sample is, with a first dimension for the batch.

    Raises: TypeError for samples of another type, RuntimeError for ones of different lengths.

    Example:
        >>> tp.utils.data.default_collate([(1, 2.0), (3, 4.0)])
        [tensor([1, 3]), tensor([2., 4.], dtype=tensorpy.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


_COMPLAINT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "


def _stacked(numbers: Any) -> Any:
    import numpy as np

    return np.stack(numbers)
