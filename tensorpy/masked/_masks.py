"""What PyTorch's package has beside the operators of masked elements: masks of arguments and of results."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

_SCANS = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize")


def _name_of(op: Any) -> str:
    name = op if isinstance(op, str) else getattr(op, "__name__", "")
    return str(name).rpartition(".")[2].removeprefix("masked_")


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions that an argument `dim` means, none of them negative, in order."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    size, found = builtins.max(ndim, 1), []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -size <= d < size:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {d})")
        if d % size in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % size)
    return tuple(sorted(found))


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """The value that an operator's result does not depend on, a tensor without dimensions; None where there is none."""
    name = _name_of(op_name)
    if name in ("mean", "var", "std"):
        return None
    if name == "median" and not input.is_floating_point():
        input = input.to(_C.get_default_dtype())
    made: Tensor = _C._masked._masked_identity(input, name, args[0] if args else None)
    return made


def _input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
    """The mask in the shape of the input."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    made: Tensor = _C._masked._masked_mask(input, mask)
    return made


def _output_mask(op: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Where a result is of at least one element that was selected."""
    name = _name_of(op)
    mask = _input_mask(input, mask=kwargs.get("mask"))
    if name in _SCANS:
        return mask
    at = 1 if name == "norm" else 0
    dims = _canonical_dim(args[at] if len(args) > at else kwargs.get("dim"), input.ndim)
    if name == "median" and len(args) <= at and "dim" not in kwargs:
        dims = _canonical_dim(-1, input.ndim)
    return mask.any(dims, bool(kwargs.get("keepdim", False))) if input.ndim else mask


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The input where the mask is True, else the value."""
    return _C.where(mask, input, fill_value)


def _combine_input_and_mask(op: Any, input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """The input with the identity of an operator where the mask is False. Nothing flows back to what is left out."""
    made: Tensor = _C._masked._masked_input(input, mask, _name_of(op), args[0] if args else None)
    return made
