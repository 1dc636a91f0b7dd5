"""Products of sparse matrices and merged coordinates: against dense ones, and PyTorch where it is installed; gradients;
indices that were written after a tensor was made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

WIDTHS = [1, 3, 8, 17, 64, 130]
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}


def matrix(seed: int, rows: int, columns: int, count: int, dtype: str) -> tuple[Any, Any, Any]:
    """Coordinates, some of them more than once, and values."""
    rng = np.random.default_rng(seed)
    indices = np.stack([rng.integers(0, rows, count), rng.integers(0, columns, count)])
    values = rng.standard_normal(count) * 5
    if dtype.startswith("complex"):
        values = values + 1j * rng.standard_normal(count)
    return tp.tensor(indices), tp.tensor(values.astype(dtype)), rng


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "complex64", "complex128"])
@pytest.mark.parametrize("width", WIDTHS)
def test_products_are_those_of_dense_matrices(width: int, dtype: str, device: str) -> None:
    indices, values, rng = matrix(width, 9, 7, 60, dtype)
    coo = tp.sparse_coo_tensor(indices, values, (9, 7)).to(device)
    dense = tp.tensor((rng.standard_normal((7, width)) * 5).astype(dtype)).to(device)
    whole = np.zeros((9, 7), np.complex128)
    np.add.at(whole, tuple(indices.numpy()), values.numpy().astype(np.complex128))
    want = whole @ dense.cpu().numpy().astype(np.complex128)
    if dtype == "int8":
        want = want.real.astype(np.int64).astype(np.int8)
    for sparse in (coo, coo.coalesce(), coo.to_sparse_csr(), coo.to_sparse_csc()):
        found = (sparse @ dense).cpu().numpy()
        np.testing.assert_allclose(
            found, want, rtol=2e-2 if dtype == "float16" else 1e-4, atol=0.2 if dtype == "float16" else 1e-3
        )
        turned = (dense.t() @ sparse.t()).cpu().numpy()
        np.testing.assert_array_equal(turned.T, found)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_gradients_of_products(layout: str) -> None:
    indices, values, rng = matrix(0, 5, 4, 9, "float64")
    sparse = tp.sparse_coo_tensor(indices, values, (5, 4)).coalesce().to_sparse(layout=getattr(tp, layout))
    dense = tp.tensor(rng.standard_normal((4, 3)))
    check = tp.sparse.as_sparse_gradcheck(tp.autograd.gradcheck)
    assert check(lambda s, d: s @ d, (sparse.requires_grad_(), dense.requires_grad_()), masked=True)
    rows, columns = tp.tensor([0, 2, 1, 2]), tp.tensor([3, 0, 1, 1])
    begins = tp.tensor([0, 1, 1, 3, 4])
    each = tp.tensor(rng.standard_normal(4)).requires_grad_()
    other = tp.tensor(rng.standard_normal((3, 2))).requires_grad_()
    for function in (
        lambda v, d: tp._C._coo_mm(rows, columns, v, d, 3),
        lambda v, d: tp._C._csr_mm(begins, columns, v, d),
        lambda v, d: tp._C._csr_mm(begins, columns, None, d) * v.sum(),
        lambda v, d: tp._C._coo_dot(columns.clamp(max=1), rows, v.view(2, 2), d),
    ):
        assert tp.autograd.gradcheck(
            function, (each, tp.cat([other, other[:1]]).detach().requires_grad_()), check_forward_ad=True
        )
        assert tp.autograd.gradgradcheck(function, (each, tp.cat([other, other[:1]]).detach().requires_grad_()))


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reduced_products(reduce: str, dtype: str, device: str) -> None:
    indices, values, rng = matrix(3, 8, 6, 14, dtype)
    sparse = tp.sparse_coo_tensor(indices, values, (8, 6)).coalesce().to_sparse_csr()
    dense = tp.tensor(rng.standard_normal((6, 5)).astype(dtype))
    found = tp.sparse.mm(sparse.to(device), dense.to(device), reduce).cpu().numpy()
    begins, columns, numbers = (p.numpy() for p in (sparse.crow_indices(), sparse.col_indices(), sparse.values()))
    for row in range(8):
        parts = [numbers[j] * dense.numpy()[columns[j]] for j in range(begins[row], begins[row + 1])]
        want = REDUCTIONS[reduce](parts, 0) if parts else np.zeros(5)
        np.testing.assert_allclose(found[row], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients_of_reduced_products_are_pytorchs(reduce: str) -> None:
    torch = pytest.importorskip("torch")
    begins, columns = [0, 2, 2, 5], [0, 3, 1, 2, 3]
    values, dense = [1.0, -2.0, 3.0, 3.0, 0.5], np.arange(8.0).reshape(4, 2) - 3
    found = {}
    for library in (tp, torch):
        a = library.sparse_csr_tensor(begins, columns, values, (3, 4), dtype=library.float64).requires_grad_()
        b = library.tensor(dense).requires_grad_()
        made = library.sparse.mm(a, b, reduce)
        made.backward(library.tensor(np.arange(6.0).reshape(3, 2)))
        found[library] = [made.detach().numpy(), a.grad.values().numpy(), b.grad.numpy()]
    for ours, theirs in zip(found[tp], found[torch], strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_reduced_products_refuse_what_they_do_not_take() -> None:
    coo = tp.eye(2).to_sparse()
    with pytest.raises(RuntimeError, match="csr layout"):
        tp.sparse.mm(coo, tp.eye(2), "amax")
    with pytest.raises(RuntimeError, match="strided"):
        tp.sparse.mm(coo.to_sparse_csr(), coo, "amax")
    with pytest.raises(RuntimeError, match="must be either"):
        tp.sparse.mm(coo.to_sparse_csr(), tp.eye(2), "median")


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    indices, values, rng = matrix(5, 3000, 2000, 200_000, "float32")
    coo = tp.sparse_coo_tensor(indices, values, (3000, 2000))
    dense = tp.tensor(rng.standard_normal((2000, 20)).astype(np.float32))
    found = []
    before = tp.get_num_threads()
    try:
        for threads in (1, 2, 3):
            tp.set_num_threads(threads)
            merged = coo.coalesce()
            found.append([merged.indices(), merged.values(), coo @ dense, merged @ dense, coo.to_sparse_csr() @ dense])
    finally:
        tp.set_num_threads(before)
    for other in found[1:]:
        assert all(tp.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("size", [(5, 4), (2**40, 2**20), (3, 1, 7), (11,), (2**31, 2**31)])
@pytest.mark.parametrize("dtype", ["float64", "bool", "int8", "complex64"])
def test_merged_coordinates(size: tuple[int, ...], dtype: str, device: str) -> None:
    rng = np.random.default_rng(len(size))
    indices = np.stack([rng.integers(0, n, 30) for n in size])[:, rng.integers(0, 30, 100)]
    values = rng.integers(-9, 9, 100).astype(dtype)
    merged = tp.sparse_coo_tensor(tp.tensor(indices), tp.tensor(values), size).to(device).coalesce().cpu()
    want: dict[tuple[int, ...], Any] = {}
    for place, value in zip(indices.T.tolist(), values, strict=True):
        want[tuple(place)] = want[tuple(place)] + value if tuple(place) in want else value
    assert merged.indices().t().tolist() == [list(place) for place in sorted(want)]
    np.testing.assert_array_equal(merged.values().numpy(), [want[place] for place in sorted(want)])


def test_hybrid_tensors_are_merged_with_gradients() -> None:
    values = tp.arange(12.0, dtype=tp.float64).view(3, 2, 2).requires_grad_()
    assert tp.autograd.gradcheck(
        lambda v: tp.sparse_coo_tensor([[1, 0, 1]], v, (3, 2, 2)).coalesce().values(), (values,)
    )


def wild_coo(place: tuple[int, int], number: int, device: str) -> Any:
    made = tp.sparse_coo_tensor([[0, 1, 2], [0, 1, 2]], [1.0, 2.0, 3.0], (3, 3)).to(device)
    made._indices()[place] = number
    return made


@pytest.mark.parametrize("number", [3, -1, 10**12, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("row", [0, 1])
def test_wild_coordinates_are_refused(row: int, number: int, device: str) -> None:
    sparse = wild_coo((row, 1), number, device)
    with pytest.raises(IndexError):
        (sparse @ tp.ones(3, 2, device=device)).cpu()
    with pytest.raises(IndexError):
        (tp.ones(3, 3, device=device) @ sparse).cpu()
    if (row, number) != (1, 3) and (row, number) != (1, -1):  # the number of another place
        with pytest.raises(IndexError):
            sparse.coalesce().cpu()


@pytest.mark.parametrize("begins", [[9, 1, 2, 3], [0, 3, 2, 3], [0, 1, 2, 9], [0, -1, 2, 3], [0, 1, 2, 2]])
def test_wild_lines_are_refused(begins: list[int], device: str) -> None:
    sparse = tp.eye(3).to_sparse_csr().to(device)
    sparse.crow_indices().copy_(tp.tensor(begins))
    for reduce in (None, *REDUCTIONS):
        with pytest.raises(RuntimeError, match="lines"):
            tp.sparse.mm(sparse, tp.ones(3, 2, device=device), reduce).cpu()


def test_wild_columns_are_refused(device: str) -> None:
    sparse = tp.eye(3).to_sparse_csr().to(device)
    sparse.col_indices()[1] = 77
    for reduce in (None, *REDUCTIONS):
        with pytest.raises(IndexError):
            tp.sparse.mm(sparse, tp.ones(3, 2, device=device), reduce).cpu()
    with pytest.raises(IndexError):
        tp.sparse.sampled_addmm(sparse, tp.ones(3, 2, device=device), tp.ones(2, 3, device=device)).cpu()


def test_matrices_without_values_rows_or_columns() -> None:
    for rows, inner, columns in ((0, 3, 2), (3, 0, 2), (3, 2, 0), (2, 3, 4)):
        none = tp.sparse_coo_tensor(tp.zeros(2, 0, dtype=tp.int64), tp.zeros(0), (rows, inner))
        for sparse in (none, none.to_sparse_csr()):
            assert tp.equal(sparse @ tp.ones(inner, columns), tp.zeros(rows, columns))


def test_a_dense_tensor_is_added_to_where_it_stands() -> None:
    for whole, sparse in (
        (tp.zeros(4, 3), tp.sparse_coo_tensor([[3, 1, 3]], tp.ones(3, 3), (4, 3))),
        (tp.zeros(4, 3), tp.sparse_coo_tensor([[3, 1, 3], [0, 2, 0]], tp.ones(3), (4, 3))),
        (tp.zeros(3, 4).t(), tp.sparse_coo_tensor([[3, 1, 3]], tp.ones(3, 3), (4, 3))),
        (tp.zeros(3, 4).t(), tp.sparse_coo_tensor([[3, 1, 3], [0, 2, 0]], tp.ones(3), (4, 3))),
    ):
        address, want = whole.data_ptr(), whole + 2 * sparse.to_dense()
        assert whole.add_(sparse, alpha=2) is whole
        assert whole.data_ptr() == address and tp.equal(whole, want)
        assert tp.equal(whole.sub_(sparse, alpha=2), tp.zeros(4, 3))
    with pytest.raises(RuntimeError, match="cast"):
        tp.zeros(4, 3, dtype=tp.int64).add_(sparse)
    leaf = tp.zeros(4, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.add_(sparse)
    (leaf * 2).add_(sparse).sum().backward()
    assert tp.equal(leaf.grad, tp.full((4, 3), 2.0))


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_sampled_addmm_of_batches_is_that_of_each_matrix(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    pattern = tp.tensor(np.tile([[0.0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], (*batch, 1, 1)))
    sparse = (pattern * 2).to_sparse_csr()
    a, b = tp.tensor(rng.standard_normal((*batch, 3, 5))), tp.tensor(rng.standard_normal((*batch, 5, 4)))
    found = tp.sparse.sampled_addmm(sparse, a, b, beta=0.5, alpha=3.0)
    assert found.layout is tp.sparse_csr
    np.testing.assert_allclose(found.to_dense().numpy(), (pattern + 3.0 * (a @ b) * pattern).numpy())
    with pytest.raises(RuntimeError, match="does not match the shape"):
        tp.sparse.sampled_addmm(sparse, a, tp.ones(*batch, 5, 3, dtype=tp.float64))


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_systems_of_matrices_in_rows(upper: bool, unit: bool, transpose: bool) -> None:
    rng = np.random.default_rng(0)
    whole = tp.tensor(rng.standard_normal((5, 5)) + 5 * np.eye(5))
    matrix, right = (whole.triu() if upper else whole.tril()), tp.tensor(rng.standard_normal((5, 2)))
    want = tp.triangular_solve(right, matrix, upper=upper, transpose=transpose, unitriangular=unit).solution
    sparse = matrix.to_sparse_csr()
    found = tp.triangular_solve(right, sparse, upper=upper, transpose=transpose, unitriangular=unit)
    assert tp.equal(found.solution, want)
    assert found.cloned_coefficient.numel() == 0
    out = tp.empty(5, 2, dtype=tp.float64), tp.empty(0, dtype=tp.float64)
    tp.triangular_solve(right, sparse, upper=upper, transpose=transpose, unitriangular=unit, out=out)
    assert tp.equal(out[0], want)
    assert tp.triangular_solve(right, tp.zeros(5, 5, dtype=tp.float64).to_sparse_csr()).solution.isnan().all()
    with pytest.raises(ValueError, match="unsupported sparse layout"):
        tp.triangular_solve(right, matrix.to_sparse_csc())


def test_what_does_not_fit_says_so_as_dense_products_do() -> None:
    a = tp.ones(2, 3)
    for sparse in (a.to_sparse(), a.to_sparse_csr()):
        for call in (lambda m: m @ a, lambda m: tp.mm(m, a[None]), lambda m: tp.addmm(a, m, a)):
            with pytest.raises(RuntimeError) as dense:
                call(a)
            with pytest.raises(RuntimeError) as found:
                call(sparse)
            assert str(found.value) == str(dense.value)
    with pytest.raises(RuntimeError, match="expand"):
        tp.addmm(tp.ones(1, 3, 3), tp.ones(3, 3).to_sparse_csr(), tp.ones(3, 3))
    with pytest.raises(RuntimeError, match="Expected input tensors to have the same shape"):
        tp.add(tp.ones(2, 2).to_sparse_csr(), tp.ones(2, 1).to_sparse_csr())


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_coo"])
def test_what_is_added_to_a_sparse_product_is_broadcast(layout: str) -> None:
    """A number, a row; a bias of linear; dense as it is."""
    a, b = tp.arange(6.0).view(2, 3), tp.arange(12.0).view(3, 4)
    one, two = (t.to_sparse(layout=getattr(tp, layout)) for t in (a, b))
    for more in (tp.tensor(2.0), tp.ones(4), tp.ones(1, 4), tp.ones(2, 1), tp.ones(2, 4)):
        if layout != "sparse_coo":
            assert tp.addmm(more, one, two, beta=2, alpha=3).equal(tp.addmm(more, a, b, beta=2, alpha=3))
        assert tp.addmm(more, one, b, beta=2).equal(tp.addmm(more, a, b, beta=2))
    if layout != "sparse_coo":
        weight = b.t().to_sparse(layout=getattr(tp, layout))
        assert tp.nn.functional.linear(one, weight, tp.ones(4)).equal(a @ b + 1)
        truth = a > 2
        added = truth.to_sparse(layout=getattr(tp, layout)) + truth
        assert added.dtype is tp.bool and added.equal(truth)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_inner_names_of_products(reduce: str) -> None:
    indices, values, rng = matrix(4, 8, 6, 14, "float32")
    sparse = tp.sparse_coo_tensor(indices, values, (8, 6)).coalesce().to_sparse_csr()
    dense, more = tp.tensor(rng.standard_normal((6, 5))).float(), tp.ones(8, 5)
    found, places = tp.ops.aten._sparse_mm_reduce_impl(sparse, dense, reduce)
    assert found.equal(tp.sparse.mm(sparse, dense, reduce)) and places.numel() == 0 and places.dtype == tp.int64
    found = tp.ops.aten._sparse_addmm(more, sparse, dense, beta=2, alpha=3)
    tp.testing.assert_close(found, more * 2 + 3 * (sparse.to_dense() @ dense))


def test_products_over_nothing_at_places_of_a_sparse_matrix() -> None:
    a, b = tp.ones(5, 0, requires_grad=True), tp.ones(0, 5, requires_grad=True)
    places = tp.eye(5).to_sparse_csr().requires_grad_()
    tp.sparse.sampled_addmm(places, a, b, beta=0.5).to_dense().sum().backward()
    assert a.grad is not None and b.grad is not None and a.grad.shape == a.shape and b.grad.shape == b.shape
    assert places.grad is not None and places.grad.to_dense().equal(tp.eye(5) / 2)


FACTORS = ["to_sparse()", "to_sparse_csr()", "to_sparse_csc()"]
PRODUCTS = ["mm(a, d)", "mm(d, a)", "mm(a, b)", "mv(a, d[0])", "a @ d", "addmm(d, a, c)", "addmm(c, a, d)"]
PRODUCTS += ["sparse.addmm(d, a, c)", "sparse.sampled_addmm(a, d, d)", "sparse.sampled_addmm(a, c, d)"]


@pytest.mark.parametrize("layout", FACTORS)
@pytest.mark.parametrize("call", PRODUCTS)
def test_factors_of_two_dtypes_are_refused(call: str, layout: str, device: str) -> None:
    c, d = tp.eye(2, device=device), tp.eye(2, device=device, dtype=tp.int64)
    names = {"c": c, "d": d, "a": eval(f"c.{layout}", {"c": c}), "b": eval(f"d.{layout}", {"d": d})}
    with pytest.raises(RuntimeError, match=r"expected m1 and m2 to have the same dtype, but got: (float|long)"):
        eval(call if "@" in call else f"tp.{call}", {"tp": tp, **names})


def test_a_sum_with_a_product_is_of_one_dtype(device: str) -> None:
    a = tp.eye(2, device=device)
    with pytest.raises(RuntimeError, match="expected self and mat1 to have the same dtype"):
        a.double().to_sparse().sspaddmm(a.to_sparse(), a)
