"""Linear algebra: factors multiplied, gradients of what has no one answer, and input that has no answer."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck

DTYPES = [tp.float32, tp.float64, tp.complex64, tp.complex128]
SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 2), (2, 2, 4), (1, 1), (40, 33)]
SQUARE = [(3, 3), (2, 4, 4), (1, 1), (2, 1, 5, 5), (40, 40)]
L = tp.linalg


def draw(*shape: int, dtype: tp.dtype = tp.float64, seed: int = 0) -> tp.Tensor:
    rng = np.random.default_rng([seed, *shape])
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)
    return tp.tensor(values).to(dtype)


def hermitian(*shape: int, dtype: tp.dtype = tp.float64) -> tp.Tensor:
    a = draw(*shape, dtype=dtype)
    return a @ a.mH + shape[-1] * tp.eye(shape[-1], dtype=dtype)


def near(a: tp.Tensor, b: tp.Tensor) -> None:
    single = a.dtype in (tp.float32, tp.complex64)
    tp.testing.assert_close(a, b, rtol=2e-3 if single else 1e-8, atol=2e-3 if single else 1e-8)


def is_unitary(q: tp.Tensor) -> None:
    near(q.mH @ q, tp.eye(q.size(-1), dtype=q.dtype).expand(*q.shape[:-2], q.size(-1), q.size(-1)))


each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


# ---- factors give the matrix back ----


@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_the_factors(shape: tuple[int, ...], dtype: tp.dtype) -> None:
    a = draw(*shape, dtype=dtype)
    p, lower, upper = L.lu(a)
    near(p @ lower @ upper, a)
    for mode in ("reduced", "complete"):
        q, r = L.qr(a, mode)
        is_unitary(q)
        near(q @ r, a)
        assert bool((r.tril(-1) == 0).all())
    near(L.qr(a, "r")[1], L.qr(a)[1])
    for full in (False, True):
        u, s, vh = L.svd(a, full_matrices=full)
        k = s.size(-1)
        is_unitary(u)
        is_unitary(vh.mH)
        near((u[..., :k] * s.unsqueeze(-2).to(dtype)) @ vh[..., :k, :], a)
    u, s, v = tp.svd(a)
    near((u * s.unsqueeze(-2).to(dtype)) @ v.mH, a)
    near(a @ L.pinv(a) @ a, a)
    assert L.matrix_rank(a).eq(min(shape[-2:])).all()


@each_dtype
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_products_of_the_factors_of_square_matrices(shape: tuple[int, ...], dtype: tp.dtype) -> None:
    a, h, b = draw(*shape, dtype=dtype), hermitian(*shape, dtype=dtype), draw(*shape[:-1], 2, dtype=dtype)
    values, vectors = L.eigh(h)
    is_unitary(vectors)
    near((vectors * values.unsqueeze(-2).to(dtype)) @ vectors.mH, h)
    near(L.eigh(h, UPLO="U")[0], values)
    values, vectors = L.eig(a)
    near(a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2))
    near(L.eigvals(a).abs().sum(-1), values.abs().sum(-1))
    near(L.cholesky(h) @ L.cholesky(h).mH, h)
    near(L.cholesky(h, upper=True).mH @ L.cholesky(h, upper=True), h)
    for is_hermitian in (False, True):
        whole = h if is_hermitian else h + h.mT
        near(whole @ L.ldl_solve(*L.ldl_factor(whole, hermitian=is_hermitian), b, hermitian=is_hermitian), b)


@each_dtype
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver: str | None, dtype: tp.dtype) -> None:
    for shape in SHAPES:
        a, b = draw(*shape, dtype=dtype), draw(*shape[:-1], 2, dtype=dtype)
        found = L.lstsq(a, b, driver=driver)
        near(found.solution, L.pinv(a) @ b)
        m, n = shape[-2:]
        if m > n and driver not in (None, "gelsy"):
            near(found.residuals, ((a @ found.solution - b).abs() ** 2).sum(-2))
        if driver != "gels":
            assert found.rank.eq(min(m, n)).all()


# ---- gradients of what holds for Hermitian matrices only, or is known up to signs and phases ----


def with_phase_free(*parts: tp.Tensor) -> tuple[tp.Tensor, ...]:
    return tuple(p.abs() if p.is_complex() else p for p in parts)


GRADIENTS = {
    "cholesky": lambda a: L.cholesky(a @ a.mH + 3 * tp.eye(3, dtype=a.dtype)),
    "cholesky, upper": lambda a: L.cholesky(a @ a.mH + 3 * tp.eye(3, dtype=a.dtype), upper=True),
    "qr": L.qr,
    "eigh": lambda a: with_phase_free(*L.eigh(a + a.mH)),
    "eigvalsh": lambda a: L.eigvalsh(a + a.mH),
    "eig": lambda a: (lambda values, vectors: (values, vectors.abs()))(*L.eig(a)),
    "eigvals": L.eigvals,
    "svd": lambda a: with_phase_free(*L.svd(a, full_matrices=False)),
    "lstsq": lambda a: L.lstsq(a, draw(*a.shape[:-1], 2, dtype=a.dtype)).solution,
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
def test_gradients(name: str, dtype: tp.dtype) -> None:
    x = draw(2, 3, 3, dtype=dtype).requires_grad_()
    assert gradcheck(GRADIENTS[name], (x,))
    assert gradgradcheck(GRADIENTS[name], (x,))


@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
def test_gradients_of_tall_and_wide_matrices(shape: tuple[int, ...], dtype: tp.dtype) -> None:
    x = draw(*shape, dtype=dtype).requires_grad_()
    for name in ("qr", "svd", "lstsq"):
        assert gradcheck(GRADIENTS[name], (x,)), name
    b = draw(*shape[:-1], 2, dtype=dtype).requires_grad_()
    assert gradcheck(lambda a, b: L.lstsq(a, b, driver="gelsd")[:2], (x, b))


def test_det_of_singular_matrices_has_its_gradient() -> None:
    x = tp.tensor([[1.0, 2.0, 3.0], [0.0, 2.0, 1.0], [0.0, 0.0, 0.0]], dtype=tp.float64, requires_grad=True)
    L.det(x).backward()
    assert x.grad is not None
    near(x.grad, tp.tensor([[0.0, 0, 0], [0, 0, 0], [-4, -1, 2]], dtype=tp.float64))


def test_what_has_no_gradient_says_why() -> None:
    x = draw(4, 3).requires_grad_()
    for mode, why in (("r", "depends on Q"), ("complete", "nrows > ncols")):
        with pytest.raises(RuntimeError, match=why):
            L.qr(x, mode)[1].sum().backward()


# ---- input without an answer ----

SINGULAR = tp.tensor([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize("batch", [False, True])
def test_matrices_without_an_answer(batch: bool) -> None:
    zero = tp.stack([tp.eye(2), SINGULAR]) if batch else SINGULAR
    where = r"\(Batch element 1\)" if batch else ""
    for call, what in (
        (lambda: L.inv(zero), f"linalg.inv: {where}.*diagonal element 2 is zero"),
        (lambda: L.solve(zero, tp.ones(2, 1)), f"linalg.solve: {where}.*singular"),
        (lambda: L.cholesky(zero - 5 * SINGULAR), "linalg.cholesky: .*not positive-definite"),
    ):
        with pytest.raises(L.LinAlgError, match=what):
            call()
    assert issubclass(L.LinAlgError, RuntimeError)
    assert L.inv_ex(zero).info.tolist() == ([0, 2] if batch else 2)
    with pytest.raises(RuntimeError, match=r"U\[2,2\] is zero"):
        L.lu_factor(zero)


@each_dtype
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite(bad: float, dtype: tp.dtype) -> None:
    """LAPACK's iterations would not end, or end the process, on some of them."""
    a = draw(2, 30, 30, dtype=dtype)
    a[1, 3, 2] = bad
    a[1, 2, 3] = bad
    b = draw(2, 30, 2, dtype=dtype)
    calls = [lambda: L.eig(a), lambda: L.eigvals(a), lambda: L.lstsq(a, b), lambda: L.lstsq(a, b, driver="gelsd")]
    calls += [lambda: L.cholesky(a)]
    if bad == bad:  # as in PyTorch, the singular values of infinities are NaN, and a NaN is an error
        assert L.svdvals(a)[1].isnan().all() and not L.svd(a).S[0].isnan().any()
        assert L.matrix_norm(a, 2)[1].isnan()
    else:
        calls += [lambda: L.svd(a), lambda: L.svdvals(a)]
    for call in calls:
        with pytest.raises(L.LinAlgError, match=r"Batch element [01]"):
            call()
    for call in (lambda: L.eigh(a), lambda: L.eigvalsh(a)):  # as LAPACK has it, like PyTorch: NaN, or no convergence
        with contextlib.suppress(L.LinAlgError):
            call()
    for call in (lambda: L.qr(a), lambda: L.lu(a), lambda: L.det(a), lambda: L.matrix_exp(a)):
        call()


@each_dtype
@pytest.mark.parametrize("upper", [False, True])
def test_an_infinite_pivot_is_no_positive_definite_matrix(upper: bool, dtype: tp.dtype) -> None:
    """Of the rows below it nothing is known: some libraries call inf / inf a 0 and go on."""
    for matrix, info in ((tp.full((2, 2), math.inf), 2), (tp.diag(tp.tensor([1.0, math.inf, 2.0])), 3)):
        result = L.cholesky_ex(matrix.to(dtype), upper=upper)
        assert result.info.item() == info
        assert result.L.diagonal().real.isnan().tolist()[info - 1]
        with pytest.raises(L.LinAlgError, match=f"minor of order {info} "):
            L.cholesky(matrix.to(dtype), upper=upper)
    last = L.cholesky_ex(tp.diag(tp.tensor([1.0, math.inf])).to(dtype))  # no row is below
    assert last.info.item() == 0


def test_wrong_arguments() -> None:
    square, flat, long = tp.ones(3, 3), tp.ones(3), tp.ones(2, 3)
    for call, what in (
        (lambda: L.inv(flat), "at least 2 dimensions"),
        (lambda: L.inv(long), "square"),
        (lambda: L.cholesky(long), "square"),
        (lambda: L.det(square.int()), "floating point or complex"),
        (lambda: L.solve(square, tp.ones(4)), "Incompatible shapes"),
        (lambda: L.solve(square, tp.ones(3, 1).double()), "same dtype"),
        (lambda: L.solve_triangular(square, flat, upper=True), "at least 2 dimensions"),
        (lambda: L.qr(square, mode="x"), "unrecognized mode"),
        (lambda: L.eigh(square, UPLO="Q"), "'L' or 'U'"),
        (lambda: L.lstsq(square, square, driver="best"), "driver"),
        (lambda: L.lu_factor(square, pivot=False), "without pivoting"),
        (lambda: L.matrix_norm(flat), "at least 2 dimensions"),
        (lambda: L.matrix_norm(square, 3), "not supported"),
        (lambda: L.multi_dot([square]), "at least 2 tensors"),
        (lambda: tp.lu_unpack(square, tp.tensor([1, 9, 3], dtype=tp.int32)), "between 1 and .*one is 9"),
    ):
        with pytest.raises(RuntimeError, match=what):
            call()


def test_matrices_without_elements() -> None:
    for shape in ((0, 3, 3), (2, 0, 0), (0, 0)):
        a = tp.ones(shape)
        for made in (L.inv(a), L.cholesky(a), L.matrix_exp(a), L.eigh(a)[1], L.svd(a)[0], L.qr(a)[0], L.solve(a, a)):
            assert made.shape == a.shape
        assert L.det(a).shape == a.shape[:-2] and bool((L.det(a) == 1).all())
    u, s, vh = L.svd(tp.ones(3, 0))
    assert u.equal(tp.eye(3)) and s.shape == (0,) and vh.shape == (0, 0)
    assert L.qr(tp.ones(3, 0), "complete")[0].equal(tp.eye(3))


# ---- the library ----


def test_a_library_without_lapack_is_named() -> None:
    code = """
import tensorpy as tp

try:
    tp.linalg.inv(tp.eye(2))
except RuntimeError as error:
    assert "dgetrf_" in str(error) or "sgetrf_" in str(error), error
    assert "TENSORPY_BLAS" in str(error), error
    print("refused")
"""
    source = "".join(
        f"void cblas_{p}{name}(void) {{}}\n" for p, name in itertools.product("sdcz", ["gemm", "gemv"])
    ) + "".join(f"void cblas_{p}dot(void) {{}}\n" for p in "sd")
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "blas.c").write_text(source)
        library = str(Path(folder, "libblas.so"))
        try:
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(Path(folder, "blas.c"))], check=True)
        except FileNotFoundError:
            pytest.skip("there is no C compiler")
        environment = {**os.environ, "TENSORPY_BLAS": library}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "refused", run.stderr


def test_threads_share_a_batch_and_give_the_same() -> None:
    a, threads = draw(64, 20, 20), tp.get_num_threads()
    try:
        tp.set_num_threads(1)
        alone = L.inv(a), L.svdvals(a), L.eigvals(a)
        tp.set_num_threads(2)
        together = L.inv(a), L.svdvals(a), L.eigvals(a)
    finally:
        tp.set_num_threads(threads)
    for x, y in zip(alone, together, strict=True):
        assert x.equal(y)


@pytest.mark.parametrize("shape", [(7, 4), (4, 9), (2, 6, 5)])
def test_low_rank(shape: tuple[int, ...]) -> None:
    """Few random vectors find all singular values of a matrix that has few."""
    tp.manual_seed(0)
    a = tp.randn(*shape[:-1], 2, dtype=tp.float64) @ tp.randn(*shape[:-2], 2, shape[-1], dtype=tp.float64)
    mean = tp.ones(*shape[:-2], 1, shape[-1], dtype=tp.float64)
    for matrix, (u, s, v) in (
        (a, tp.svd_lowrank(a, q=3)),
        (a - mean, tp.svd_lowrank(a, q=4, M=mean)),
        (a - a.mean(-2, True), tp.pca_lowrank(a, q=3)),
        (a, tp.pca_lowrank(a, center=False)),
    ):
        assert tp.allclose(u * s.unsqueeze(-2) @ v.mH, matrix)
    with pytest.raises(ValueError, match="must be non-negative integer"):
        tp.pca_lowrank(a, q=40)


def test_lu_is_lu_factor() -> None:
    a = tp.randn(2, 3, 3)
    for mine in (a.lu(), tp.lu(a)):
        assert all(tp.equal(x, y) for x, y in zip(mine, tp.linalg.lu_factor(a), strict=True))
    assert tp.zeros(2, 2).lu(get_infos=True)[2].item() == 1


@pytest.mark.parametrize("method", ["ortho", "basic"])
@pytest.mark.parametrize("largest", [True, False])
def test_some_eigenvalues(method: str, largest: bool) -> None:
    """As those of all of them: plain, generalised, sparse, in batches, from given vectors and with a preconditioner."""
    tp.manual_seed(0)
    a, b, count = hermitian(30, 30), hermitian(1, 30, 30)[0] / 30, 3
    for matrix, other in ((a, None), (a, b)):
        factor = None if other is None else L.inv(L.cholesky(other))
        every = L.eigvalsh(matrix if factor is None else factor @ matrix @ factor.mH)
        e, x = tp.lobpcg(
            matrix, count, other, largest=largest, method=method, iK=L.inv(matrix) if not largest else None
        )
        assert tp.allclose(e, every.flip(0)[:count] if largest else every[:count])
        stretched = x if other is None else other @ x
        assert tp.allclose(matrix @ x, stretched * e, atol=1e-4) and tp.allclose(x.mT @ stretched, tp.eye(3).double())
        assert e.requires_grad is False
    start = draw(2, 30, 4)
    for e, _ in (
        tp.lobpcg(a.to_sparse(), 2, X=start[0], largest=largest, method=method),
        tp.lobpcg(tp.stack([a, a]), 2, X=start, largest=largest, method=method),
    ):
        every = L.eigvalsh(a)
        assert tp.allclose(e, (every.flip(0) if largest else every)[:2].expand(e.shape))


def test_gradients_of_some_eigenvalues() -> None:
    a, b, start = draw(12, 12), hermitian(12, 12), draw(12, 2)

    def pairs(a: tp.Tensor, b: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
        e, x = tp.lobpcg(a + a.mT, B=b + b.mT, X=start, niter=200, tol=1e-13)
        return e, x * x  # a vector's sign is free

    assert gradcheck(pairs, (a.requires_grad_(), b.requires_grad_()))
    assert gradcheck(lambda a: pairs(a, tp.eye(12).double() / 2), (a,))


def test_what_some_eigenvalues_refuse() -> None:
    a, seen = hermitian(12, 12), []

    def track(worker: object) -> None:
        seen.append(worker.ivars["istep"])
        worker.bvars["force_stop"] = len(seen) == 2

    tp.lobpcg(a, 2, tol=1e-30, tracker=track)
    assert seen == [1, 2]
    for error, options in (
        (ValueError, {"k": 5}),
        (AssertionError, {"B": a[:3, :3]}),
        (AssertionError, {"X": draw(11, 2)}),
    ):
        with pytest.raises(error):
            tp.lobpcg(a, **options)
    with pytest.raises(AssertionError):
        tp.lobpcg(draw(4, 3))


def test_pivots_without_dimensions() -> None:
    for rows in (0, 3):
        with pytest.raises(RuntimeError, match=r"LU_pivots has no dimension|pivots passed"):
            tp.lu_unpack(tp.zeros(rows, 3, 2), tp.tensor(1, dtype=tp.int32))
    with pytest.raises(RuntimeError, match="no dimension"):
        tp.ops.aten._lu_permutation(tp.tensor(1, dtype=tp.int32), 3)


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_matrix_exp_of_16_bits_is_that_of_32_rounded_once(dtype: tp.dtype) -> None:
    a = draw(3, 3).to(dtype)
    assert tp.equal(tp.matrix_exp(a), tp.matrix_exp(a.float()).to(dtype))
    x = a.clone().requires_grad_()
    tp.matrix_exp(x).sum().backward()
    assert x.grad.dtype == dtype


def test_conjugate_transposes_of_numbers() -> None:
    x = tp.tensor(2 + 1j)
    with pytest.warns(UserWarning, match="without dimensions"):
        assert (x.mT.item(), x.mH.item(), x.adjoint().item()) == (2 + 1j, 2 - 1j, 2 - 1j)
