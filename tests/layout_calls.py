"""Tensors of every layout, and calls that some of them take: what the tests of layers, failures and devices go over."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import tensorpy as tp

DENSE = tp.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]])
F = tp.nn.functional
Make = Callable[[], Any]

SPARSE: dict[str, Make] = {
    "sparse_coo": DENSE.to_sparse,
    "several values at a place": lambda: tp.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (3, 3)),
    "sparse_csr": DENSE.to_sparse_csr,
    "sparse_csc": DENSE.to_sparse_csc,
    "sparse_bsr": lambda: DENSE.to_sparse_bsr((1, 1)),
    "sparse_bsc": lambda: DENSE.to_sparse_bsc((1, 1)),
}
OTHERS: dict[str, Make] = {
    "quantized": lambda: tp.quantize_per_tensor(DENSE, 0.5, 1, tp.quint8),
    "quantized by channels": lambda: tp.quantize_per_channel(
        DENSE, tp.tensor([0.5, 1.0, 0.25]), tp.tensor([0, 1, 2]), 0, tp.qint8
    ),
    "nested": lambda: tp.nested.nested_tensor([tp.ones(1, 3), tp.ones(2, 3)]),
    "jagged": lambda: tp.nested.nested_tensor([tp.ones(1, 3), tp.ones(2, 3)], layout=tp.jagged),
    "zeros": lambda: tp._efficientzerotensor((3, 3)),
}
METHODS = """abs angle clone coalesce contiguous deg2rad dequantize detach double indices int_repr is_coalesced
is_contiguous isnan max mean min nan_to_num neg norm numel prod relu sgn sigmoid sin sqrt square sum t tanh to_dense
to_sparse to_sparse_bsr to_sparse_csc to_sparse_csr trunc unbind values zero_""".split()


def method(name: str) -> Callable[[Any, Any], Any]:
    called = operator.methodcaller(name, *([(1, 1)] if name == "to_sparse_bsr" else []))
    return lambda s, d: called(s)


# Of a tensor of a layout and the dense one.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: method(name) for name in METHODS},
    "@": lambda s, d: s @ d,
    "@ vector": lambda s, d: s @ d[0],
    "+": lambda s, d: s + s,
    "dense +": lambda s, d: d + s,
    "* number": lambda s, d: s * 2,
    "//": lambda s, d: s // 2,
    "**": lambda s, d: s**2,
    "[0]": lambda s, d: s[0],
    "[:1]": lambda s, d: s[:1],
    "addmm": lambda s, d: tp.sparse.addmm(d, s, d),
    "cat": lambda s, d: tp.cat([s, s]),
    "dropout": lambda s, d: F.dropout(s, 0.5, False),
    "index_select": lambda s, d: s.index_select(0, tp.tensor([0, 1], device=d.device)),
    "layer_norm": lambda s, d: F.layer_norm(s, (3,)),
    "linear": lambda s, d: F.linear(s, d),
    "masked_fill": lambda s, d: s.masked_fill(d > 2, 1.0),
    "narrow": lambda s, d: s.narrow(0, 0, 1),
    "ones_like": lambda s, d: tp.ones_like(s),
    "out=": lambda s, d: tp.mm(s, d, out=tp.empty(3, 3, device=d.device)),
    "sampled_addmm": lambda s, d: tp.sparse.sampled_addmm(s, d, d),
    "softmax": lambda s, d: tp.sparse.softmax(s, 1),
    "softmax, nested": lambda s, d: F.softmax(s, -1),
    "sparse_mask": lambda s, d: d.sparse_mask(s),
    "sum of a dimension": lambda s, d: s.sum(0),
    "to_padded_tensor": lambda s, d: tp.nested.to_padded_tensor(s, 0.0),
    "transpose": lambda s, d: s.transpose(0, 1),
    "unflatten": lambda s, d: s.unflatten(-1, (3, 1)),
}


def same(a: Any, b: Any, exactly: bool = True) -> bool:
    """Values, layouts and dtypes; floating ones nearly, as two devices compute."""
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y, exactly) for x, y in zip(a, b, strict=True))
    if not isinstance(a, tp.Tensor):
        return bool(a == b)
    if a.layout is not b.layout or a.dtype is not b.dtype:
        return False
    if a.is_nested:
        return same(a.unbind(), b.unbind(), exactly)
    if a.is_quantized:
        return a.equal(b)
    if a.layout is not tp.strided:
        return a._nnz() == b._nnz() and same(a.to_dense(), b.to_dense(), exactly)
    return tp.equal(a, b) if exactly else a.shape == b.shape and tp.allclose(a, b, rtol=1e-5, atol=1e-6)


def taken(make: Make) -> list[str]:
    """The calls that a tensor takes; which of them has a kernel is another test's."""
    found = []
    for name, call in CALLS.items():
        try:
            call(make(), DENSE)
        except (RuntimeError, AttributeError, TypeError, ValueError):
            continue
        found.append(name)
    return found
