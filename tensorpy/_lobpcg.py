"""Some largest or smallest eigenvalues of symmetric matrices, from products with few vectors.

A. V. Knyazev, "Toward the optimal preconditioned eigensolver", 2001; the basis is kept orthonormal as in
A. Stathopoulos, K. Wu, "A block orthogonalization procedure with constant synchronization requirements", 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import finfo
from tensorpy._tensor.torch_function import make_overridable
from tensorpy.autograd.grad_mode import no_grad

__all__ = ["LOBPCG", "lobpcg"]


class LOBPCG:
    """The iteration for one matrix; `tracker` sees it after each step and ends it by bvars["force_stop"] = True."""

    def __init__(
        self,
        A: Any,
        B: Any,
        X: Tensor,
        iK: Any,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Callable[[Any], Any] | None,
    ) -> None:
        self.A, self.B, self.iK = A, B, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.X = X
        self.E = X.new_zeros(X.shape[-1])
        self.R = self.S = X.new_zeros(X.shape)
        self.P: Tensor | None = None
        self.ivars: dict[str, int] = {"istep": 0, "converged_count": 0, "iterations_left": iparams["niter"]}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {"force_stop": False}
        self.tvars: dict[str, Tensor] = {}

    def _stretched(self, x: Tensor) -> Tensor:
        return x if self.B is None else self.B @ x

    def _orthonormal(self, basis: Tensor, against: Tensor | None = None) -> Tensor:
        """What the columns add to those of an orthonormal basis; directions that are rounding errors are left out."""
        least = self.fparams["ortho_tol_drop"]
        for _ in range(self.iparams["ortho_i_max"]):
            if against is not None:
                basis = basis - against @ (against.mT @ self._stretched(basis))
            lengths = (basis * self._stretched(basis)).sum(0).clamp(min=0).sqrt()
            basis = basis[:, lengths > least * lengths.max()] if basis.shape[1] else basis
            if not basis.shape[1]:
                break
            basis = basis / (basis * self._stretched(basis)).sum(0).sqrt()
            values, vectors = _C._linalg.linalg_eigh(basis.mT @ self._stretched(basis))
            kept = values > least * values.max()
            basis = basis @ (vectors[:, kept] / values[kept].sqrt())
        return basis

    def _white(self, basis: Tensor) -> Tensor:
        """The basis made orthonormal by the Cholesky factor of its products, which fails if it is not one."""
        factor = _C._linalg.linalg_cholesky(basis.mT @ self._stretched(basis), upper=True)
        return _C._linalg.linalg_solve_triangular(factor, basis, upper=True, left=False)

    def _best(self, basis: Tensor) -> tuple[Tensor, Tensor]:
        """The values and coefficients of the best vectors in the span of an orthonormal basis (Rayleigh and Ritz)."""
        products = basis.mT @ (self.A @ basis)
        values, vectors = _C._linalg.linalg_eigh((products + products.mT) / 2)
        if self.bparams["largest"]:
            values, vectors = values.flip(0), vectors.flip(1)
        n = self.iparams["n"]
        return values[:n], vectors[:, :n]

    def _measure(self) -> None:
        """Residuals, and how many vectors in front have converged."""
        stretched = self._stretched(self.X)
        self.R = self.A @ self.X - stretched * self.E
        f, norm = self.fvars, _C._linalg.linalg_vector_norm
        scale = norm(self.X, dim=0) * (f["A_norm"] + self.E.abs() * f["B_norm"])
        self.tvars["rerr"] = norm(self.R, dim=0) / scale
        done = (self.tvars["rerr"] < self.fparams["tol"]).tolist()
        self.ivars["converged_count"] = done.index(False) if False in done else len(done)

    def _start(self) -> None:
        x = self.X
        length = float(_C._linalg.linalg_vector_norm(x))
        self.fvars["X_norm"] = length
        self.fvars["A_norm"] = float(_C._linalg.linalg_vector_norm(self.A @ x)) / length
        self.fvars["B_norm"] = 1.0 if self.B is None else float(_C._linalg.linalg_vector_norm(self.B @ x)) / length
        basis = self._orthonormal(x)
        while basis.shape[1] < self.iparams["n"]:  # the given vectors are not independent
            more = _C.randn([x.shape[0], self.iparams["n"] - basis.shape[1]], dtype=x.dtype, device=x.device)
            basis = _C.cat([basis, self._orthonormal(more, basis)], 1)
        self.E, z = self._best(basis)
        self.X = basis @ z
        self._measure()

    def _step(self) -> None:
        done, n = self.ivars["converged_count"], self.iparams["n"]
        wanted = self.R[:, done:] if self.iK is None else self.iK @ self.R[:, done:]
        more = wanted if self.P is None else _C.cat([wanted, self.P], 1)
        if self.method == "basic":
            self.S = self._white(_C.cat([self.X, more], 1))
        else:
            self.S = _C.cat([self.X, self._orthonormal(more, self.X)], 1)
        self.E, z = self._best(self.S)
        self.X = self.S @ z
        self.P = self.S[:, n:] @ z[n:] if self.S.shape[1] > n else None
        if self.P is not None and self.method == "basic":
            self.P = self.P / _C._linalg.linalg_vector_norm(self.P, dim=0).clamp(min=self.fparams["ortho_tol_drop"])
        self.ivars["istep"] += 1
        self.ivars["iterations_left"] -= 1
        self._measure()

    def _is_over(self) -> bool:
        enough = self.ivars["converged_count"] >= self.iparams["k"]
        return enough or self.bvars["force_stop"] or self.ivars["iterations_left"] == 0

    def run(self) -> None:
        """Iterates until the wanted pairs have converged or the steps are used up."""
        self._start()
        while not self._is_over():
            self._step()
            if self.tracker is not None:
                self.tracker(self)


def _differentiable(A: Tensor, B: Tensor | None, E: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs as functions of the matrices: a step of Newton's method, which moves nothing where they are exact.

    For each pair of (A - e B) x = 0 and x B x = 1, whose derivative by x and e is the bordered matrix.
    """
    images, stretched = A @ X, X if B is None else B @ X
    residual = images - stretched * E.unsqueeze(-2)
    excess = (X * stretched).sum(-2) - 1
    with no_grad():
        plain = _C.eye(A.shape[-1], dtype=A.dtype, device=A.device) if B is None else B
        corner = A.unsqueeze(-3) - E[..., None, None] * plain.unsqueeze(-3)
        border = stretched.mT.unsqueeze(-1)
        zero = _C.zeros([*border.shape[:-2], 1, 1], dtype=A.dtype, device=A.device)
        matrix = _C.cat([_C.cat([corner, border], -1), _C.cat([border.mT, zero], -1)], -2)
    wrong = _C.cat([residual.mT, excess.unsqueeze(-1) / 2], -1)
    step = _C._linalg.linalg_solve(matrix, wrong.unsqueeze(-1)).squeeze(-1)
    return E + step[..., -1], X - step[..., :-1].mT


def _each(t: Any, lead: tuple[int, ...]) -> Iterator[Any]:
    """The matrices of a batch."""
    count = 1
    for size in lead:
        count *= size
    if t is None or not lead:
        yield from [t] * count
    else:
        yield from t.expand(*lead, *t.shape[-2:]).reshape(-1, *t.shape[-2:])


def _checked(A: Any, k: int | None, B: Any, X: Tensor | None, n: int | None) -> tuple[int, int]:
    """How many pairs are wanted, and how many vectors are iterated."""
    m = A.shape[-1]
    if A.shape[-2] != m:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    if X is not None and tuple(X.shape) != (*A.shape[:-2], m, n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(*A.shape[:-2], m, n)}")
    return k, n


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], Any] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of A x = e B x, and their vectors; A is symmetric, B positive definite.

    The matrices may be batches, or sparse. `n` random vectors, or the columns of X, are iterated, with iK to
    precondition, until the residuals of k are below `tol` or `niter` steps are done. Gradients are of exact pairs.

    Arguments:
        A: the symmetric matrix, or a batch of them, (*, n, n); may be sparse
        k: how many pairs are wanted
        B: the positive definite matrix of the right side; None for the identity
        n: how many vectors the iteration begins with
        niter: how many iterations there are
        tol: how small the residuals get
        method: 'basic' or 'ortho'
        tracker: a function that is called at each step
        ortho_iparams: integers that set the method
        ortho_fparams: floats that set the method
        ortho_bparams: flags that set the method

    Returns: the values (*, k) and their vectors (*, n, k).

    Example:
        >>> values, vectors = tp.lobpcg(tp.diag(tp.arange(1.0, 10.0)), k=1)
        >>> values
        tensor([9.0000])
    """
    k, n = _checked(A, k, B, X, n)
    dtype = A.dtype if A.is_floating_point() else _C.float32
    tolerance: float = finfo(dtype).eps ** 0.5 if tol is None else tol
    iparams = {"m": A.shape[-1], "n": n, "k": k, "niter": 1000 if niter is None else niter, "ortho_i_max": 3}
    fparams = {"tol": tolerance, "ortho_tol": tolerance, "ortho_tol_drop": tolerance, "ortho_tol_replace": tolerance}
    iparams |= {"ortho_j_max": 3, **(ortho_iparams or {})}
    fparams |= ortho_fparams or {}
    bparams = {"largest": True if largest is None else largest, "ortho_use_drop": False, **(ortho_bparams or {})}
    lead = tuple(A.shape[:-2])
    with no_grad():
        if X is None:
            X = _C.randn([*lead, A.shape[-1], n], dtype=dtype, device=A.device)
        values, vectors = [], []
        for a, b, vectors_of, inverse in zip(*(_each(t, lead) for t in (A, B, X, iK)), strict=True):
            worker = LOBPCG(
                a, b, vectors_of, inverse, dict(iparams), dict(fparams), dict(bparams), method or "ortho", tracker
            )
            worker.run()
            values.append(worker.E[:k])
            vectors.append(worker.X[:, :k])
        E, x = (_C.stack(v).reshape(*lead, *v[0].shape) for v in (values, vectors))
    if _C.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad)):
        return _differentiable(A, B, E, x)
    return E, x


make_overridable(__name__, ("lobpcg",))
