"""Helpers of the distributions: broadcasting of parameters, probabilities and logits, lazily computed attributes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy import _C
from tensorpy import special as _special
from tensorpy._C import Tensor
from tensorpy.functional import broadcast_tensors
from tensorpy.nn import functional as F

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

_operators: Any = _C
standard_gamma: Any
sample_dirichlet: Any
standard_gamma, sample_dirichlet = _operators._standard_gamma, _operators._sample_dirichlet

special: Any = _special  # its names are made when it is imported: checkers see none


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors of one shape from tensors and numbers; numbers take dtype and device of the first tensor."""
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError("Input arguments must all be instances of Number or tensorpy.Tensor.")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    if like is None:
        options: dict[str, Any] = {"dtype": _C.get_default_dtype()}
    else:
        dtype = like.dtype if like.is_floating_point() else _C.get_default_dtype()
        options = {"dtype": dtype, "device": like.device}
    return tuple(broadcast_tensors(*[v if isinstance(v, Tensor) else _C.tensor(v, **options) for v in values]))


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draws of the normal distribution with mean 0 and variance 1."""
    return tp.normal(tp.zeros(shape, dtype=dtype, device=device), tp.ones(shape, dtype=dtype, device=device))


def open_uniform(shape: Any, like: Any) -> Tensor:
    """Draws from the open interval (0, 1), fit for logarithms, of like's dtype and device."""
    return clamp_probs(tp.rand(shape, dtype=like.dtype, device=like.device))


def exponential(shape: Any, like: Any) -> Tensor:
    """Draws of the exponential distribution with mean 1, of like's dtype and device."""
    return tp.empty(shape, dtype=like.dtype, device=like.device).exponential_()


def sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1)


# libraries of distributions reach for these by PyTorch's own names
_standard_normal, _sum_rightmost = standard_normal, sum_rightmost


def _lower(n: int, diag: int, device: Any) -> tuple[Any, Any]:
    """Rows and columns of the entries of an n by n matrix on and below the diagonal `diag`, row by row."""
    if not -n < diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n + 1}, {n - 1}].")
    rows, columns = tp.tril_indices(n, n, diag, device=device).unbind(0)
    return rows, columns


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below the diagonal `diag` of square matrices (..., n, n), row by row."""
    rows, columns = _lower(mat.shape[-1], diag, mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Square matrices, zero above the diagonal `diag`, of which tril_matrix_to_vec gives `vec` (..., k)."""
    k = vec.shape[-1]
    if diag > 0:  # k = n (n + 1) / 2 + diag n - diag (diag + 1) / 2
        n = (math.isqrt(8 * (k + diag * (diag + 1)) + 1) - 1) // 2 - diag
    else:  # k = m (m + 1) / 2 for the m = n + diag rows that have entries
        n = (math.isqrt(8 * k + 1) - 1) // 2 - diag
    rows, columns = _lower(n, diag, vec.device)
    if rows.shape[0] != k:
        raise ValueError(f"{k} entries are no lower triangle of a square matrix with diag {diag}")
    flat = vec.new_zeros((*vec.shape[:-1], n * n)).index_copy(-1, rows * n + columns, vec)
    return flat.unflatten(-1, (n, n))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log-odds (binary) or from unnormalised log-probabilities along the last dimension."""
    return tp.sigmoid(logits) if is_binary else tp.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved off 0 and 1 by the dtype's epsilon."""
    eps = tp.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds (binary) or log-probabilities of probabilities."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return F.softplus(x)


TYPE_CHECKING = False
if TYPE_CHECKING:  # what it computes may also be set: no checker knows such a property

    def lazy_property(wrapped: Callable[[Any], Any]) -> Any: ...

else:

    class lazy_property:
        """An attribute that is computed, with gradients recorded, when it is first read, and kept from then on."""

        def __init__(self, wrapped: Callable[[Any], Any]) -> None:
            self.wrapped = wrapped
            self.__doc__ = wrapped.__doc__
            self.__name__ = wrapped.__name__

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return _LazyProperty(self.wrapped)
            with tp.enable_grad():
                value = self.wrapped(instance)
            setattr(instance, self.__name__, value)
            return value

    class _LazyProperty(lazy_property, property):
        """What a class has: a property, of which can be told that it is computed from what was given."""

        def __init__(self, wrapped: Callable[[Any], Any]) -> None:
            property.__init__(self, wrapped)
