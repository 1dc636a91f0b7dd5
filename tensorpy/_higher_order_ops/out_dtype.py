"""out_dtype: an operator whose result has a dtype of its own."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, ops
from tensorpy._C import Tensor
from tensorpy._higher_order_ops.higher_order import HigherOrderOperator
from tensorpy._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from tensorpy.autograd import Function
from tensorpy.utils._pytree import tree_leaves, tree_map

__all__ = ["out_dtype"]

_ALLOWED = [
    getattr(getattr(ops.aten, name), overload)
    for name, overload in (
        ("linear", "default"), ("mm", "default"), ("conv2d", "default"), ("convolution", "default"), ("mul", "Tensor"),
        ("mul", "Scalar"), ("div", "Tensor"), ("div", "Scalar"),
    )
]  # fmt: skip


class _OutDtype(HigherOrderOperator):
    """`out_dtype(ops.aten.mm.default, tp.int32, a, b)`: the product of int8 as int32.

    The arguments are converted to what they and the dtype promote to, and the result is converted to the dtype.
    """

    def __init__(self) -> None:
        super().__init__("out_dtype")

    def __call__(self, op: Any, output_dtype: _C.dtype, *args: Any) -> Any:
        if not isinstance(op, _C.OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        schema: Any = op._schema
        if schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        returned = [str(value.type) for value in schema.returns]
        if returned != ["Tensor"]:
            raise ValueError(f"out_dtype's can only apply to ops that return a single tensorInstead got {returned}")
        if op not in _ALLOWED:
            raise ValueError(f"out_dtype only allows the following operators: {_ALLOWED}.")
        return super().__call__(op, output_dtype, *args)


out_dtype = _OutDtype()


@out_dtype.py_impl("CompositeExplicitAutograd")
def _compute(op: Any, output_dtype: _C.dtype, *args: Any) -> Tensor:
    leaves = (leaf for leaf in tree_leaves(args) if isinstance(leaf, (Tensor, bool, int, float, complex)))
    computed, _ = elementwise_dtypes(*leaves, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    promoted = _C.promote_types(computed, output_dtype)
    converted = tree_map(lambda leaf: leaf.to(promoted) if isinstance(leaf, Tensor) else leaf, args)
    return op(*converted).to(output_dtype)


class _Refused(Function):
    """A result whose gradient nobody knows: to ask for it is an error."""

    @staticmethod
    def forward(ctx: Any, op: Any, output_dtype: _C.dtype, *args: Any) -> Any:
        return out_dtype(op, output_dtype, *args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(f"Autograd not implemented for {out_dtype}")


@out_dtype.py_impl("Autograd")
def _recorded(op: Any, output_dtype: _C.dtype, *args: Any) -> Any:
    if _C.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args):
        return _Refused.apply(op, output_dtype, *args)
    return _compute(op, output_dtype, *args)
