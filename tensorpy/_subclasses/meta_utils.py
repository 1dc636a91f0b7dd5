"""Whether two tensors say the same of themselves, but for their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

_ABOUT = ("dtype", "requires_grad", "is_sparse", "layout")
_ASKED = ("is_inference", "is_conj", "is_neg")
_OF_SPARSE = ("dense_dim", "sparse_dim", "is_coalesced")


def assert_metadata_eq(
    assert_eq: Callable[[Any, Any], None],
    m1: Tensor,
    m2: Tensor,
    *,
    skip_symbolic: bool = False,
    skip_leaf: bool = False,
) -> None:
    """Calls `assert_eq` with what two tensors say, one thing after the other, and of what they view.

    Arguments:
        assert_eq: takes two values, raises where they differ
        m1: a tensor
        m2: the other one
        skip_symbolic: whether shapes, strides and offsets are left out
        skip_leaf: whether it is left out which of them is a leaf

    Example:
        >>> from tensorpy._subclasses.meta_utils import assert_metadata_eq
        >>> seen = []
        >>> assert_metadata_eq(lambda a, b: seen.append(a == b), tp.ones(2), tp.ones(2, device="meta"))
        >>> all(seen)
        True
    """
    names = [*_ABOUT, *([] if skip_symbolic else ["shape"]), *([] if skip_leaf else ["is_leaf"])]
    for name in names:
        assert_eq(getattr(m1, name), getattr(m2, name))
    calls: list[str] = list(_ASKED)
    if m1.layout is _C.sparse_coo:
        calls += _OF_SPARSE
    elif m1.layout is _C.strided:
        calls += ["_is_view", *([] if skip_symbolic else ["stride", "storage_offset"])]
    for name in calls:
        assert_eq(getattr(m1, name)(), getattr(m2, name)())
    assert_eq(m1.grad is not None, m2.grad is not None)
    for one, other in ((m1.grad, m2.grad), (m1._base, m2._base)):
        if one is not None and other is not None:
            options: dict[str, bool] = {"skip_symbolic": skip_symbolic, "skip_leaf": skip_leaf}
            assert_metadata_eq(assert_eq, one, other, **options)
