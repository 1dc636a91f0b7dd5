"""Functions of sparse tensors as functions of their values, which gradcheck moves one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is not _C.strided


def _like(x: Tensor, dense: Tensor) -> Tensor:
    """A dense tensor in the layout of x, with the elements that are not zero."""
    if x.layout is _C.sparse_coo:
        return dense.to_sparse(x.sparse_dim()).coalesce()
    blocks = tuple(x.values().shape[-2 - x.dense_dim() : x.values().ndim - x.dense_dim()])
    words: dict[str, Any] = {"blocksize": blocks} if x.layout in (_C.sparse_bsr, _C.sparse_bsc) else {}
    return dense.to_sparse(layout=x.layout, dense_dim=x.dense_dim(), **words)


def _all_elements(x: Tensor) -> Tensor:
    """The same tensor with every element stored, zeros too."""
    dense = x.to_dense()
    zero = dense == 0
    whole = _like(x, dense.masked_fill(zero, 1))
    whole.values().masked_fill_(_like(x, zero.to(_C.float64) + 1).values() == 2, 0)
    return whole


def over_values(func: Callable[..., Any], inputs: Any, masked: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and its inputs, with values in place of sparse inputs that require a gradient.

    Masked, the elements that are stored are all that there is to a sparse tensor; else those that are not are zeros,
    which move as well. Sparse outputs become dense.
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if not any(map(_is_sparse, given)):
        return func, given
    patterns: dict[int, Tensor] = {}
    leaves = list(given)
    for i, value in enumerate(given):
        if not (_is_sparse(value) and value.requires_grad):
            continue
        x = value.detach()
        patterns[i] = (x.coalesce() if x.layout is _C.sparse_coo else x) if masked else _all_elements(x)
        leaves[i] = patterns[i].values().clone().requires_grad_()

    def of_values(*values: Any) -> Any:
        outputs = func(*(_C._layout_like(patterns[i], v) if i in patterns else v for i, v in enumerate(values)))
        several = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        return tuple(o.to_dense(masked_grad=masked) if _is_sparse(o) else o for o in several)

    return of_values, tuple(leaves)


__all__ = ["over_values"]
