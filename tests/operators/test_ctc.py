"""ctc_loss: values and gradients are PyTorch's, for lengths and targets in every form."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.nn import functional as F

rng = np.random.default_rng(6)
TIMES, LENGTHS = [9, 7, 9, 2], [3, 2, 0, 4]  # the last one has no alignment


def targets_of(blank: int, in_rows: bool) -> np.ndarray:
    rows = rng.choice([c for c in range(6) if c != blank], (4, 4))
    rows[0, 1] = rows[0, 0]  # a label twice needs a blank between
    return rows if in_rows else np.concatenate([r[:n] for r, n in zip(rows, LENGTHS, strict=True)])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients(reduction: str, dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    for blank, in_rows, as_tensors in itertools.product((0, 3), (True, False), (True, False)):
        scores, targets = rng.standard_normal((9, 4, 6)).astype(dtype), targets_of(blank, in_rows)
        x, y = tp.from_numpy(scores.copy()).requires_grad_(), torch.tensor(scores, requires_grad=True)
        lengths = (tp.tensor(TIMES), tp.tensor(LENGTHS)) if as_tensors else (TIMES, LENGTHS)
        ours = F.ctc_loss(x.log_softmax(-1), tp.from_numpy(targets), *lengths, blank, reduction, zero_infinity=True)
        theirs = torch.nn.functional.ctc_loss(
            y.log_softmax(-1), torch.tensor(targets), TIMES, LENGTHS, blank, reduction, zero_infinity=True
        )
        near = {"rtol": 1e-4, "atol": 1e-5} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-10}
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), **near)
        ours.sum().backward()
        theirs.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), **near)


def test_the_gradient_is_that_of_the_scores() -> None:
    """Against differences of the loss of scores before a log_softmax."""
    scores = tp.randn(6, 2, 4, dtype=tp.float64, generator=tp.Generator().manual_seed(1)).requires_grad_()
    targets = tp.tensor([[1, 1, 2], [3, 2, 0]])

    def loss(x: tp.Tensor) -> tp.Tensor:
        return F.ctc_loss(x.log_softmax(-1), targets, [6, 5], [3, 2], reduction="none")

    assert tp.autograd.gradcheck(loss, (scores,), check_forward_ad=True)


def test_what_cannot_be_said_is_infinite() -> None:
    logs = tp.zeros(2, 1, 3).log_softmax(-1).requires_grad_()
    never = F.ctc_loss(logs, tp.tensor([[1, 1]]), [2], [2], reduction="none")
    assert never.tolist() == [float("inf")]
    never.sum().backward()
    assert logs.grad.isnan().all()
    empty = F.ctc_loss(logs, tp.tensor([[1, 1]]), [0], [0], reduction="sum")
    assert float(empty) == 0


def test_one_sample_without_a_batch() -> None:
    logs = tp.randn(5, 4).log_softmax(-1)
    alone = F.ctc_loss(logs, tp.tensor([1, 2]), [5], [2], reduction="none")
    batch = F.ctc_loss(logs.unsqueeze(1), tp.tensor([[1, 2]]), [5], [2], reduction="none")
    assert alone.shape == () and float(alone) == float(batch[0])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"input_lengths": [5, 5]}, RuntimeError, "input_lengths must be of size batch_size"),
        ({"input_lengths": [5, 5, 9]}, RuntimeError, "at most 5"),
        ({"input_lengths": [5, 5, -1]}, RuntimeError, "at least 0"),
        ({"target_lengths": [2, 1, 5]}, RuntimeError, "targets"),
        ({"blank": 4}, RuntimeError, "blank must be in label range"),
        ({"targets": tp.tensor([[1, 9], [1, 1], [1, 1]])}, RuntimeError, "out of range"),
        ({"targets": tp.ones(3, 2)}, RuntimeError, "targets"),
        ({"input_lengths": tp.ones(3), "target_lengths": tp.tensor([2, 1, 1])}, RuntimeError, "must be integral"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], says: str) -> None:
    given = {"targets": tp.tensor([[1, 2], [1, 1], [3, 2]]), "input_lengths": [5, 5, 4], "target_lengths": [2, 1, 1]}
    with pytest.raises(error, match=says):
        F.ctc_loss(tp.zeros(5, 3, 4), **{**given, **options})
