"""Matrix products against NumPy, their gradients against finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tensorpy as tp

rng = np.random.default_rng(0)


def numeric_gradient(f, arrays, i, step=1e-6):
    """Central differences of the sum of f's result in array i."""
    gradient = np.zeros_like(arrays[i])
    for at in np.ndindex(*arrays[i].shape):
        values = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[i][at] += sign * step
            values.append(float(f(*(tp.from_numpy(a) for a in moved)).sum().item()))
        gradient[at] = (values[0] - values[1]) / (2 * step)
    return gradient


def check_gradients(f, *arrays, tolerance=1e-6):
    tensors = [tp.from_numpy(a.copy()).requires_grad_() for a in arrays]
    f(*tensors).sum().backward()
    for i, t in enumerate(tensors):
        np.testing.assert_allclose(np.array(t.grad.tolist()), numeric_gradient(f, list(arrays), i), atol=tolerance)


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 2, 3), (0, 3, 4)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(a, b, dtype):
    x, y = ((rng.standard_normal(s) * 4).astype(dtype) for s in (a, b))
    result = tp.matmul(tp.from_numpy(x), tp.from_numpy(y))
    np.testing.assert_allclose(
        np.array(result.tolist()).reshape(np.matmul(x, y).shape), np.matmul(x, y), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("a", "b"), SHAPES[:10])
def test_matmul_gradient(a, b):
    check_gradients(tp.matmul, rng.standard_normal(a), rng.standard_normal(b))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_bmm_takes_any_strides(order):
    x, y = rng.standard_normal((3, 3, 3)), rng.standard_normal((3, 3, 3))
    result = tp.bmm(tp.from_numpy(x).permute(*order), tp.from_numpy(y).permute(*order))
    np.testing.assert_allclose(np.array(result.tolist()), np.matmul(x.transpose(order), y.transpose(order)))


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, 0), (0.5, 3)])
@pytest.mark.parametrize("addend", [(2, 4), (4,), (2, 1), ()])
def test_addmm(alpha, beta, addend):
    c, a, b = rng.standard_normal(addend), rng.standard_normal((2, 3)), rng.standard_normal((3, 4))
    result = tp.addmm(tp.from_numpy(np.asarray(c)), tp.from_numpy(a), tp.from_numpy(b), alpha=alpha, beta=beta)
    np.testing.assert_allclose(np.array(result.tolist()), beta * c + alpha * (a @ b))


def test_addmm_gradient():
    check_gradients(
        lambda c, a, b: tp.addmm(c, a, b, alpha=2, beta=3),
        rng.standard_normal((4,)),
        rng.standard_normal((2, 3)),
        rng.standard_normal((3, 4)),
    )


def test_nan_behind_beta_zero_does_not_count():
    c = tp.full((2, 2), float("nan"))
    assert tp.addmm(c, tp.ones(2, 2), tp.ones(2, 2), beta=0).tolist() == [[2, 2], [2, 2]]


def test_out_may_be_an_operand():
    a = rng.standard_normal((3, 3))
    t = tp.from_numpy(a.copy())
    tp.mm(t, t, out=t)
    np.testing.assert_allclose(np.array(t.tolist()), a @ a)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.mm(tp.ones(2, 3), tp.ones(2, 3)),
        lambda: tp.matmul(tp.ones(()), tp.ones(2)),
        lambda: tp.bmm(tp.ones(2, 3, 4), tp.ones(3, 4, 5)),
        lambda: tp.dot(tp.ones(2), tp.ones(3)),
        lambda: tp.mm(tp.ones(2, 2), tp.ones(2, 2, dtype=tp.float64)),
        lambda: tp.addmm(tp.ones(3), tp.ones(2, 2), tp.ones(2, 2)),
    ],
)
def test_operands_that_do_not_fit(call):
    with pytest.raises(RuntimeError):
        call()


EQUATIONS = [
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iji->j", (3, 2, 3)),
    ("ij->", (2, 3)),
    ("...i->i...", (2, 3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->", (3,), (3,)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bij,bij->b", (5, 2, 3), (5, 2, 3)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (6, 3, 4)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    ("ab,ab,ac->bc", (2, 3), (2, 3), (2, 4)),
    ("ij,kj->k", (2, 3), (4, 3)),
    ("Ba,aB", (2, 3), (3, 2)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda c: c[0])
def test_einsum(case):
    equation, *shapes = case
    arrays = [rng.standard_normal(s) for s in shapes]
    result = tp.einsum(equation, *(tp.from_numpy(a) for a in arrays))
    expected = np.einsum(equation, *arrays)
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(np.array(result.tolist()), expected)
    check_gradients(lambda *t: tp.einsum(equation, *t) ** 2, *arrays, tolerance=1e-5)


# Recorded from PyTorch 2.13, a to e of sizes 2 to 6: programs view what comes.
LAYOUTS = {
    "ab,cd->acbd": (60, 15, 5, 1),
    "ab,cd->dbca": (3, 1, 30, 15),
    "abc,cd->bad": (10, 5, 1),
    "ab,a->ba": (1, 3),
    "ab,bc->ca": (2, 1),
    "abc,cd->adb": (15, 1, 5),
    "abc,cd->dab": (6, 3, 1),
    "abc,cde->deab": (36, 6, 3, 1),
    "abc,cde->adeb": (90, 6, 1, 30),
    "ab,bc,cd->da": (2, 1),
    "bac,bdc->bad": (10, 5, 1),
    "abc,adc->bad": (5, 15, 1),
}


@pytest.mark.parametrize("equation", LAYOUTS)
def test_the_layout_of_an_einsum(equation):
    given = equation.split("->")[0].split(",")
    out = tp.einsum(equation, *(tp.ones([2 + "abcde".index(c) for c in labels]) for labels in given))
    assert out.stride() == LAYOUTS[equation]


def test_einsum_forms():
    a, b = tp.rand(2, 3), tp.rand(3, 4)
    product = a @ b
    assert (tp.einsum(" ij, jk ", [a, b])).tolist() == product.tolist()
    assert (tp.einsum(a, [0, 30], b, [30, 1], [1, 0])).tolist() == product.t().tolist()
    assert (tp.einsum(a, [..., 0], [0, ...])).tolist() == a.t().tolist()
    assert tp.einsum("ij->ji", a).data_ptr() == a.data_ptr()
    chain = tp._C.einsum("ij,jk,kl->il", [a, b, tp.ones(4, 5)], path=[1, 2, 0, 1])
    np.testing.assert_allclose(np.array(chain.tolist()), np.array((product @ tp.ones(4, 5)).tolist()), rtol=1e-5)
    assert tuple(tp.einsum("ij,ij->ij", tp.ones(2, 1), tp.ones(2, 3)).shape) == (2, 3)


@pytest.mark.parametrize(
    ("equation", "phrase"),
    [
        ("ij,jk", "fewer operands"),
        ("i", "does not match the number of dimensions"),
        ("ij->k", "does not appear"),
        ("ij->ii", "more than once"),
        ("i.j", "not part of any ellipsis"),
        ("i1", "must be in"),
        ("ii", "sizes don't match"),
    ],
)
def test_einsum_errors(equation, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        tp.einsum(equation, tp.ones(2, 3))


def test_tensordot():
    a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 3, 5))
    x, y = tp.from_numpy(a), tp.from_numpy(b)
    for dims in (1, ([1, 2], [1, 0]), [[2], [0]], 0):
        expected = np.tensordot(a, b, dims)
        np.testing.assert_allclose(np.array(tp.tensordot(x, y, dims).tolist()), expected)
    with pytest.raises(RuntimeError, match="dims >= 0"):
        tp.tensordot(x, y, -1)
    check_gradients(lambda p, q: tp.tensordot(p, q, ([1, 2], [1, 0])), a, b)


def test_addr_and_block_diag_compute_in_the_common_dtype():
    bytes_, small = tp.tensor([253, 1], dtype=tp.uint8), tp.tensor([2], dtype=tp.uint8)
    assert tp.addr(tp.zeros(2, 1), bytes_, small, alpha=2).tolist() == [[1012.0], [4.0]]
    assert tp.addr(bytes_[:1], tp.ones(1), tp.ones(1), beta=3).tolist() == [[760.0]]
    assert tp.block_diag(tp.ones(2), tp.tensor(1.0, dtype=tp.float64)).dtype == tp.float32
    assert tp.block_diag(tp.ones(2, dtype=tp.int64), tp.tensor(1.0)).dtype == tp.float32


def by_columns(*shape):
    return tp.randn(*reversed(shape)).t()


@pytest.mark.parametrize("columns", itertools.product((False, True), repeat=2))
def test_a_gradient_has_the_layout_of_its_matrix(columns):
    a = (by_columns if columns[0] else tp.randn)(3, 4).requires_grad_()
    b = (by_columns if columns[1] else tp.randn)(4, 5).requires_grad_()
    bias = tp.randn(5, requires_grad=True)
    for result in (a @ b, tp.addmm(bias, a, b, alpha=2)):
        grads = tp.autograd.grad(result.sin().sum(), (a, b))
        assert [g.stride() for g in grads] == [a.stride(), b.stride()]


@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3), (3,)])
def test_gradients_of_weights_are_contiguous(shape):
    layer = tp.nn.Linear(3, 4)
    for grad in tp.autograd.grad(layer(tp.randn(shape)).sin().sum(), layer.parameters()):
        grad.view(-1)
