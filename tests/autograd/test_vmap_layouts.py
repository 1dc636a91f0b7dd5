"""Tensors of layouts under vmap: what samples share is computed with as outside, and those of a batch are samples."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import func, vmap

DENSE = tp.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]])
F = tp.nn.functional

SPARSE: dict[str, Callable[[], Any]] = {
    "sparse_coo": DENSE.to_sparse,
    "several values at a place": lambda: tp.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (3, 3)),
    "sparse_csr": DENSE.to_sparse_csr,
    "sparse_csc": DENSE.to_sparse_csc,
    "sparse_bsr": lambda: DENSE.to_sparse_bsr((1, 1)),
    "sparse_bsc": lambda: DENSE.to_sparse_bsc((1, 1)),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "quantized": lambda: tp.quantize_per_tensor(DENSE, 0.5, 1, tp.quint8),
    "nested": lambda: tp.nested.nested_tensor([tp.ones(1, 3), tp.ones(2, 3)]),
    "jagged": lambda: tp.nested.nested_tensor([tp.ones(1, 3), tp.ones(2, 3)], layout=tp.jagged),
    "zeros": lambda: tp._efficientzerotensor((3, 3)),
}
METHODS = """abs angle clone coalesce contiguous deg2rad dequantize detach double indices int_repr is_coalesced
is_contiguous isnan max mean min nan_to_num neg norm numel prod relu sgn sigmoid sin sqrt square sum t tanh to_dense
to_sparse to_sparse_bsr to_sparse_csc to_sparse_csr trunc unbind values zero_""".split()
CALLS: dict[str, Callable[[Any], Any]] = {
    **{name: operator.methodcaller(name, *([(1, 1)] if name == "to_sparse_bsr" else [])) for name in METHODS},
    "@": lambda s: s @ DENSE,
    "@ vector": lambda s: s @ DENSE[0],
    "+": lambda s: s + s,
    "dense +": lambda s: DENSE + s,
    "* number": lambda s: s * 2,
    "//": lambda s: s // 2,
    "**": lambda s: s**2,
    "[0]": lambda s: s[0],
    "[:1]": lambda s: s[:1],
    "addmm": lambda s: tp.sparse.addmm(DENSE, s, DENSE),
    "cat": lambda s: tp.cat([s, s]),
    "dropout": lambda s: F.dropout(s, 0.5, False),
    "index_select": lambda s: s.index_select(0, tp.tensor([0, 1])),
    "layer_norm": lambda s: F.layer_norm(s, (3,)),
    "linear": lambda s: F.linear(s, DENSE),
    "masked_fill": lambda s: s.masked_fill(DENSE > 2, 1.0),
    "narrow": lambda s: s.narrow(0, 0, 1),
    "ones_like": tp.ones_like,
    "out=": lambda s: tp.mm(s, DENSE, out=tp.empty(3, 3)),
    "sampled_addmm": lambda s: tp.sparse.sampled_addmm(s, DENSE, DENSE),
    "softmax": lambda s: tp.sparse.softmax(s, 1),
    "softmax, nested": lambda s: F.softmax(s, -1),
    "sparse_mask": DENSE.sparse_mask,
    "sum of a dimension": lambda s: s.sum(0),
    "to_padded_tensor": lambda s: tp.nested.to_padded_tensor(s, 0.0),
    "transpose": lambda s: s.transpose(0, 1),
    "unflatten": lambda s: s.unflatten(-1, (3, 1)),
}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if not isinstance(a, tp.Tensor):
        return bool(a == b)
    if a.layout is not b.layout or a.dtype is not b.dtype:
        return False
    if a.is_nested:
        return same(a.unbind(), b.unbind())
    if a.is_quantized or a.layout is tp.strided:
        return a.equal(b)
    return a._nnz() == b._nnz() and tp.equal(a.to_dense(), b.to_dense())


@pytest.mark.parametrize("kind", [*SPARSE, *OTHERS])
def test_what_samples_share(kind: str) -> None:
    made, met = {**SPARSE, **OTHERS}[kind], []
    for name, call in CALLS.items():
        try:
            expected = call(made())
        except (RuntimeError, AttributeError, TypeError, ValueError):  # which of them has a kernel is another test's
            continue
        s, results = made(), []
        vmap(lambda x, s=s, call=call, results=results: (results.append(call(s)), x)[1])(tp.ones(2))
        assert same(expected, results[0]), name
        met.append(name)
    assert len(met) > 15


@pytest.mark.parametrize("kind", SPARSE)
def test_products_and_their_gradients(kind: str) -> None:
    s = SPARSE[kind]()
    x = tp.arange(18.0).reshape(2, 3, 3)
    assert tp.allclose(vmap(lambda p: s @ p)(x), s.to_dense() @ x)
    assert tp.allclose(vmap(lambda p: p * s.to_dense())(x), x * s.to_dense())
    of_each = vmap(func.grad(lambda p: (s @ p).square().sum()))(x)
    assert tp.allclose(of_each, tp.stack([func.grad(lambda p: (s.to_dense() @ p).square().sum())(p) for p in x]))
    assert tp.allclose(func.jacrev(lambda p: s @ p)(x[0, 0]), s.to_dense())


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr])
def test_batches(layout: Any) -> None:
    many = tp.stack([DENSE, DENSE * 2]).to_sparse(layout=layout)
    assert tp.equal(vmap(lambda s: s.to_dense())(many), many.to_dense())
    assert tp.equal(vmap(lambda s: s.sin() * 2)(many).to_dense(), many.to_dense().sin() * 2)
    values = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    if layout is tp.sparse_coo:
        made = vmap(lambda v: tp.sparse_coo_tensor([[0, 1], [1, 0]], v, (2, 2)).to_dense())(values)
    else:
        made = vmap(lambda v: tp.sparse_csr_tensor([0, 1, 2], [1, 0], v, (2, 2)).to_dense())(values)
    assert made.tolist() == [[[0.0, 1.0], [2.0, 0.0]], [[0.0, 3.0], [4.0, 0.0]]]
    with pytest.raises(RuntimeError, match="nonzero"):
        vmap(lambda x: x.to_sparse(layout=layout))(tp.ones(2, 3, 3))
