"""NumPy's reductions on tensors: np.sum(t), np.max(t, axis=0), ... give tensors, with the gradient and on the device.

NumPy hands its functions over through `__array_function__`. Reductions have arguments of their own there (axis, ddof,
no indices beside a maximum); everything else stays NumPy's, which takes a tensor as an array or calls its methods.
"""

from __future__ import annotations

from tensorpy import _C
from tensorpy._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _axes(t: Tensor, axis: Any) -> list[int]:
    """The dimensions as PyTorch counts them, where an empty list means all."""
    if axis is None:
        return list(range(t.dim()))
    axes = [int(i) for i in axis] if isinstance(axis, (tuple, list)) else [int(axis)]
    if not axes and t.dim():
        raise ValueError("axis=() reduces nothing: leave axis out to reduce all dimensions")
    for i in axes:
        if not -t.dim() <= i < t.dim():
            raise IndexError(f"axis {i} is out of bounds for a tensor of {t.dim()} dimensions")
    return [i % t.dim() for i in axes]


def _one_by_one(name: str) -> Callable[..., Tensor]:
    """A reduction that takes one dimension at a time."""

    def reduce(t: Tensor, axes: list[int], **how: Any) -> Tensor:
        t = t if axes else t.reshape(1)
        for axis in sorted(axes or [0], reverse=True):
            t = getattr(t, name)(axis, **how)
        return t

    return reduce


def _averaged(name: str) -> Callable[..., Tensor]:
    """A mean or its kin, which is a floating number of integers, too."""

    def reduce(t: Tensor, axes: list[int], dtype: Any = None, **how: Any) -> Tensor:
        wanted = dtype or (t.dtype if t.is_floating_point() or t.is_complex() else _C.float64)
        return getattr(t.to(wanted), name)(axes, **how)

    return reduce


def _of_all(name: str) -> Callable[..., Tensor]:
    return lambda t, axes, **how: getattr(t, name)(axes, **how)


# With what NumPy calls its second argument after the axis.
_REDUCTIONS: dict[str, tuple[Callable[..., Tensor], str]] = {
    "sum": (_of_all("sum"), "dtype"),
    "prod": (_one_by_one("prod"), "dtype"),
    "mean": (_averaged("mean"), "dtype"),
    "std": (_averaged("std"), "dtype"),
    "var": (_averaged("var"), "dtype"),
    "any": (_one_by_one("any"), "out"),
    "all": (_one_by_one("all"), "out"),
    "max": (_of_all("amax"), "out"),
    "amax": (_of_all("amax"), "out"),
    "min": (_of_all("amin"), "out"),
    "amin": (_of_all("amin"), "out"),
}


def _name_of(dtype: Any) -> str:
    """ "float32" of np.float32, np.dtype("f4"), "f4"."""
    import numpy as np

    return np.dtype(dtype).name


def _reduce(name: str, t: Tensor, axis: Any, out: Any, keepdims: bool, how: dict[str, Any]) -> Any:
    axes = _axes(t, axis)
    result = _REDUCTIONS[name][0](t, axes, **how)
    if keepdims:
        result = result.reshape([1 if i in axes else n for i, n in enumerate(t.shape)])
    if out is None:
        return result
    out[...] = result if isinstance(out, Tensor) else result.detach().cpu().numpy()
    return out


def array_function(self: Tensor, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy asks before one of its functions runs on tensors."""
    name, first = function.__name__, args[0] if args else None
    if function.__module__ != "numpy" or name not in _REDUCTIONS or not isinstance(first, Tensor):
        return function._implementation(*args, **kwargs)
    given = dict(zip(("axis", _REDUCTIONS[name][1]), args[1:], strict=False)) | kwargs
    known = {n: given.pop(n, None) for n in ("axis", "out", "keepdims")}
    how: dict[str, Any] = {}
    if name in ("std", "var"):
        how["correction"] = given.pop("ddof", 0)
    if (dtype := given.pop("dtype", None)) is not None:
        how["dtype"] = getattr(_C, _name_of(dtype))
    if given or len(args) > 3:  # where=, initial=
        return function(first.numpy(), *args[1:], **kwargs)
    return _reduce(name, first, **known, how=how)
