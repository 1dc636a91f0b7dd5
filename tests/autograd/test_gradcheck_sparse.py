"""gradcheck of functions of sparse tensors: their values move, and what is not stored moves too unless it is masked."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp
from tensorpy.autograd import GradcheckError, gradcheck, gradgradcheck

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # layouts that are in beta in PyTorch

DENSE = tp.tensor([[0.0, 1, 2, 0], [3, 0, 4, 0]], dtype=tp.float64)
LAYOUTS: list[Any] = [
    {"layout": tp.sparse_coo},
    {"layout": tp.sparse_csr},
    {"layout": tp.sparse_csc},
    {"layout": tp.sparse_bsr, "blocksize": (1, 2)},
    {"layout": tp.sparse_bsc, "blocksize": (2, 1)},
]


def sparse(words: dict[str, Any], dense: tp.Tensor = DENSE) -> tp.Tensor:
    return dense.to_sparse(**words).requires_grad_()


@pytest.mark.parametrize("words", LAYOUTS, ids=lambda words: str(words["layout"]))
@pytest.mark.parametrize("masked", [False, True])
def test_right_gradients(words: dict[str, Any], masked: bool) -> None:
    x, y = sparse(words), tp.rand(4, 3, dtype=tp.float64, requires_grad=True)
    assert gradcheck(lambda t: t.to_dense(masked_grad=masked).sin(), (x,), masked=masked)
    assert gradcheck(lambda t: t * 2.5, (x,), masked=masked)
    assert gradcheck(tp.matmul, (x, y), masked=masked)
    assert gradcheck(tp.matmul, (x, y), masked=masked, fast_mode=True)
    assert gradgradcheck(lambda t: t.to_dense(masked_grad=masked).exp(), (x,), masked=masked)


class Wrong(tp.autograd.Function):
    """Twice the tensor, whose gradient is wrong at a place of the dense tensor."""

    @staticmethod
    def forward(ctx: Any, x: tp.Tensor, place: tuple[int, int]) -> tp.Tensor:
        ctx.place = place
        return x.to_dense() * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        grad = grad * 2
        grad[ctx.place] *= 3
        return grad, None


@pytest.mark.parametrize("words", LAYOUTS[:3], ids=lambda words: str(words["layout"]))
@pytest.mark.parametrize("fast", [False, True])
def test_a_wrong_gradient_is_found(words: dict[str, Any], fast: bool) -> None:
    """Of an element that is not stored only where it moves."""
    x = sparse(words)
    for masked in (False, True):
        with pytest.raises(GradcheckError):
            gradcheck(lambda t: Wrong.apply(t, (1, 2)), (x,), masked=masked, fast_mode=fast)
    assert gradcheck(lambda t: Wrong.apply(t, (0, 0)), (x,), masked=True, fast_mode=fast)
    with pytest.raises(GradcheckError):
        gradcheck(lambda t: Wrong.apply(t, (0, 0)), (x,), fast_mode=fast)


def test_hybrid_and_not_coalesced() -> None:
    places = tp.tensor([[0, 1, 1]])
    x = tp.sparse_coo_tensor(places, tp.rand(3, 2, dtype=tp.float64), (3, 2)).requires_grad_()
    assert gradcheck(lambda t: t.to_dense(masked_grad=False).cos(), (x,))
    assert gradcheck(lambda t: t.to_dense(masked_grad=True).cos(), (x,), masked=True)
    dense = tp.rand(2, 4, 3, dtype=tp.float64)
    assert gradcheck(lambda t: t * 3, (dense.to_sparse_csr(dense_dim=1).requires_grad_(),))


def test_gradients_of_outputs_may_be_sparse() -> None:
    x = sparse(LAYOUTS[0])
    assert gradgradcheck(lambda t: t * t, (x,), (sparse(LAYOUTS[0], DENSE + 1),))
    assert x.grad is None and x.to_dense().equal(DENSE)
