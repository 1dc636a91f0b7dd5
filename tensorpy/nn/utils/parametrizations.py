"""Parametrisations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

from tensorpy import _C, linalg
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import finfo
from tensorpy.autograd.grad_mode import no_grad
from tensorpy.nn import functional as F
from tensorpy.nn.modules.conv import _ConvTransposeNd
from tensorpy.nn.modules.module import Module
from tensorpy.nn.utils import _power, parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """The norm of a weight, and its direction (Salimans & Kingma 2016)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return _C._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return _C.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Has a weight computed from its norms along a dimension and its direction.

    Arguments:
        module: the module
        name: the name of the parameter
        dim: the dimension that is not summed over; None takes all

    Returns: the module.

    Raises: ValueError for a weight that the module does not have.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    parts = _WeightNorm(dim)
    parametrize.register_parametrization(module, name, parts, unsafe=True)

    def take_old_names(state_dict: Any, prefix: str, *unused: Any) -> None:
        """The state of the older weight_norm."""
        for i, letter in enumerate("gv"):
            old = f"{prefix}{name}_{letter}"
            if old in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(old)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(f"Dimension out of range (got {dim} for a weight of {weight.dim()} dimensions)")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.dim()
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.dim() > 1:
            with no_grad():
                matrix = _power.as_matrix(weight, self.dim)
                u, v = (F.normalize(matrix.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in matrix.shape)
                _power.iterate(matrix, u, v, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = _power.as_matrix(weight, self.dim)
        if self.training:
            with no_grad():
                _power.iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # what backward keeps is not what the next call changes
        return weight / _C.vdot(u, _C.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def _default_dim(module: Any, dim: int | None) -> int:
    return dim if dim is not None else 1 if isinstance(module, _ConvTransposeNd) else 0


def _matrix_of(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Has a weight divided by its largest singular value, which is found by power iteration.

    Arguments:
        module: the module
        name: the name of the parameter
        n_power_iterations: how many iterations each forward makes
        eps: a small number that keeps divisions in range
        dim: the dimension that is not summed over; None takes all

    Returns: the module.

    Raises: ValueError for a weight that the module does not have.

    Example:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3), n_power_iterations=20)
        >>> tp.linalg.matrix_norm(layer.weight, 2).round(decimals=2)
        tensor(1., grad_fn=<RoundBackward1>)
    """
    weight = _matrix_of(module, name)
    made = _SpectralNorm(weight, n_power_iterations, _default_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, made)


# ---- orthogonal matrices ----

_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """A matrix with orthonormal rows or columns: from a skew matrix by the exponential or Cayley's map, or from
    Householder reflections; beside that a fixed orthogonal `base` (Lezcano-Casado 2019)."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        rows, columns = tall.shape[-2:]
        if self.orthogonal_map == "householder":
            below = tall.tril(-1)
            q = _C._linalg.linalg_householder_product(below, 2.0 / (1.0 + (below * below).sum(-2)))
            q = q * _diagonal(tall).int().unsqueeze(-2)
        else:
            lower = tall.tril()
            if rows != columns:
                lower = _C.cat([lower, lower.new_zeros(*lower.shape[:-2], rows, rows - columns)], -1)
            skew = lower - lower.mH
            q = (_C.matrix_exp if self.orthogonal_map == "matrix_exp" else _cayley)(skew)[..., :columns]
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if wide else q

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}, got {Q.shape}.")
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        if "base" not in self._buffers:
            reflections = self._reflections(tall)
            return reflections.mT if wide else reflections
        rows, columns = tall.shape[-2:]
        if rows != columns:
            more = _C.randn(*tall.shape[:-2], rows, rows - columns, dtype=Q.dtype, device=Q.device)
            self.base = _made_orthogonal(_C.cat([tall, more], -1))
        else:
            self.base = tall.clone() if _is_orthogonal(tall) else _made_orthogonal(tall)
        start = _C.zeros_like(Q)
        _diagonal(start).fill_(-1.0)  # what every map takes to the identity
        return start

    def _reflections(self, q: Tensor) -> Tensor:
        """The Householder reflections whose product has the columns of q; signs on the diagonal."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        factors, tau = _C.geqrf(q)
        signs = _diagonal(factors)
        signs.sign_()
        signs[tau == 0.0] *= -1
        return factors


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=-2, dim2=-1)


def _is_orthogonal(Q: Tensor, eps: float | None = None) -> bool:
    one = _C.eye(Q.shape[-1], dtype=Q.dtype, device=Q.device)
    return _C.allclose(Q.mH @ Q, one, atol=10.0 * Q.shape[-2] * finfo(Q.dtype).eps if eps is None else eps)


def _made_orthogonal(matrices: Tensor) -> Tensor:
    """The orthogonal factors of matrices, for a triangular factor whose diagonal is positive."""
    factors, tau = _C.geqrf(matrices)
    return _C._linalg.linalg_householder_product(factors, tau) * _diagonal(factors).sgn().unsqueeze(-2)


def _cayley(skew: Tensor) -> Tensor:
    solve: Any = getattr(linalg, "solve", None)
    if solve is None:
        raise NotImplementedError("orthogonal(): Cayley's map needs linalg.solve")
    one = _C.eye(skew.shape[-1], dtype=skew.dtype, device=skew.device)
    return solve(one - 0.5 * skew, one + 0.5 * skew)


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Has a weight with orthonormal rows or columns; orthogonal_map is "matrix_exp", "cayley" or "householder".

    Arguments:
        module: the module
        name: the name of the parameter
        use_trivialization: whether the weight is moved to where the parametrisation is the identity

    Returns: the module.

    Raises: ValueError for a weight of less than two dimensions, or an unknown orthogonal_map.

    Example:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
        >>> tp.allclose(layer.weight @ layer.weight.T, tp.eye(3), atol=1e-5)
        True
    """
    weight = _matrix_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
