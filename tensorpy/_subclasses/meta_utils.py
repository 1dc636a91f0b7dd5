"""Tensors of Meta that say of themselves what others do, and whether two say the same, but for their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._subclasses.fake_tensor import _meta_of
from tensorpy.autograd.grad_mode import enable_grad, set_grad_enabled
from tensorpy.nn.parameter import Parameter
from tensorpy.utils.weak import WeakTensorKeyDictionary

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


def is_sparse_any(t: Any) -> bool:
    """Whether a tensor keeps some of its elements alone, in any layout.

    Arguments:
        t: what is asked about

    Returns: bool.

    Example:
        >>> from tensorpy._subclasses.meta_utils import is_sparse_any
        >>> is_sparse_any(tp.eye(2)), is_sparse_any(tp.eye(2).to_sparse_csr())
        (False, True)
    """
    return (
        isinstance(t, Tensor) and t.layout is not _C.strided and str(t.layout).rpartition(".")[2].startswith("sparse")
    )


class MetaConverter:
    """Makes tensors of Meta that say of themselves what others do: sizes, strides, what they view, whether they want a
    gradient and have one. The same tensor gives the same each time, as long as it lives.

    Example:
        >>> from tensorpy._subclasses.meta_utils import MetaConverter
        >>> convert, x = MetaConverter(), tp.ones(2, 3, requires_grad=True)
        >>> convert(x.t()).stride(), convert(x) is convert(x), convert(x).is_leaf
        ((1, 3), True, True)
    """

    def __init__(self) -> None:
        self._known: Any = WeakTensorKeyDictionary()
        self.hit = self.miss = 0

    def successful(self) -> bool:
        """Whether it made twins of all tensors that it was given, and of one at least.

        Returns: bool.
        """
        return self.hit > 0 and self.miss == 0

    def __call__(self, t: Any, shape_env: Any = None, **unused: Any) -> Any:
        """A tensor's twin on Meta; what is no tensor stays what it is.

        Arguments:
            t: the tensor
            shape_env: not read: sizes are numbers

        Returns: the twin; NotImplemented for a tensor that is quantized, or has no strides and is not sparse.
        """
        if not isinstance(t, Tensor):
            return t
        if t.is_quantized or not (t.layout is _C.strided or is_sparse_any(t)):
            self.miss += 1
            return NotImplemented
        self.hit += 1
        made = self._known.get(t)
        if made is not None:
            return made
        with enable_grad():
            made = self._known[t] = self._twin(t)
        if t.is_leaf and t.grad is not None:
            made.grad = self(t.grad)
        return made

    def _twin(self, t: Tensor) -> Tensor:
        base = t._base if t._is_view() and t.layout is _C.strided else None
        parts = base is not None and base.dtype.is_complex and base.dtype.to_real() == t.dtype
        if base is not None and (parts or base.dtype == t.dtype):
            with set_grad_enabled(not t.is_leaf):
                seen = _C.view_as_real(self(base)) if parts else self(base)
                made = seen.as_strided(t.size(), t.stride(), t.storage_offset())
        elif t.layout is _C.strided:
            memory = _meta_of(t.detach()).untyped_storage()
            made = _C.empty(0, dtype=t.dtype, device="meta").set_(memory, t.storage_offset(), t.size(), t.stride())
        else:
            made = t.detach().to("meta")
        if t.layout is _C.strided:
            _C._mark_pending(made, t.is_conj(), t.is_neg())
        if isinstance(t, Parameter):
            return Parameter(made, t.requires_grad)
        if t.requires_grad and not made.requires_grad:
            made.requires_grad_()
            return made if t.is_leaf else made.clone()
        return made
