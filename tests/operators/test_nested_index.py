"""Elements of nested tensors that tensors of indices name: against torch where it is there, and piece by piece."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from test_nested import needs_torch, plain, same, torch

import tensorpy as tp

LENGTHS = (2, 5, 3)


def jagged(t: Any, *inner: int) -> Any:
    pieces = [t.sin(t.arange(float(k * t.ones(inner).numel()))).view(k, *inner) + k for k in LENGTHS]
    return t.nested.nested_tensor(pieces, layout=t.jagged)


def with_holes(t: Any) -> Any:
    values = t.sin(t.arange(40.0)).view(10, 4)
    return t.nested.nested_tensor_from_jagged(values, t.tensor([0, 3, 6, 10]), t.tensor([2, 1, 3]))


def put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """In place, with the values between the pieces."""
    x.index_put_(indices, values, accumulate)
    return x, x.values()


def assigned(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def normalized(t: Any, x: Any, dim: int) -> Any:
    return t.nn.functional.layer_norm(x, x.shape[dim:])


def numbers(t: Any, *n: int) -> Any:
    return t.tensor(list(n))


ALL, EACH = (0, 1, 2), (1, 2, 0)
CASES: dict[str, Callable[[Any], Any]] = {
    "rows": lambda t: jagged(t, 4).index_put((numbers(t, *ALL), numbers(t, *EACH)), t.full((3, 4), 9.0)),
    "rows in place": lambda t: put(jagged(t, 4), (numbers(t, *ALL), numbers(t, *EACH)), t.full((3, 4), 9.0)),
    "added twice": lambda t: put(jagged(t, 4), (numbers(t, 0, 0, 2), numbers(t, 1, 1, 2)), t.ones(3, 4), True),
    "elements": lambda t: jagged(t, 4).index_put(tuple(numbers(t, *i) for i in (ALL, EACH, (0, 3, 1))), t.ones(3)),
    "deep": lambda t: jagged(t, 2, 4).index_put(tuple(numbers(t, *i) for i in (ALL, EACH, (1, 0, 1))), t.ones(3, 4)),
    "transposed": lambda t: (
        jagged(t, 4)
        .transpose(1, 2)
        .index_put(tuple(numbers(t, *i) for i in (ALL, (3, 0, 2), (1, 4, 2))), numbers(t, 7, 8, 9).float())
    ),
    "pieces": lambda t: jagged(t, 4).index_put((numbers(t, 0, 2),), t.zeros(4)),
    "pieces in place": lambda t: put(jagged(t, 4), (numbers(t, 0, 2),), t.ones(2, 1, 4), True),
    "pieces of a padded one": lambda t: jagged(t, 4).index_put((numbers(t, 2),), t.arange(20.0).view(1, 5, 4)),
    "pieces by a mask": lambda t: jagged(t, 4).index_put((t.tensor([True, False, True]),), t.tensor(5.0)),
    "holes": lambda t: with_holes(t).index_put((numbers(t, *ALL), numbers(t, 1, 0, 2)), t.ones(3, 4)),
    "holes in place": lambda t: put(with_holes(t), (numbers(t, *ALL), numbers(t, 1, 0, 2)), t.ones(3, 4)),
    "out of a piece": lambda t: jagged(t, 4).index_put((numbers(t, *ALL), numbers(t, 2, 0, 0)), t.ones(3, 4)),
    "out of a hole": lambda t: with_holes(t).index_put((numbers(t, *ALL), numbers(t, 2, 0, 0)), t.ones(3, 4)),
    "no such piece": lambda t: jagged(t, 4).index_put((numbers(t, 0, 1, 3), numbers(t, *EACH)), t.ones(3, 4)),
    "nested values": lambda t: jagged(t, 4).index_put((numbers(t, 0),), jagged(t, 4)),
    "assigned rows": lambda t: assigned(jagged(t, 4), (numbers(t, *ALL), numbers(t, *EACH)), 5.0),
    "assigned pieces": lambda t: assigned(jagged(t, 4), numbers(t, 0, 2), 5.0),
    "norm of pieces": lambda t: normalized(t, jagged(t, 4), 1),
    "norm of deep ones": lambda t: normalized(t, jagged(t, 2, 4), 1),
    "norm of all": lambda t: normalized(t, jagged(t, 4), 0),
    "padded less": lambda t: jagged(t, 4).to_padded_tensor(0.0, (3, 2, 4)),
    "padded less strided": lambda t: t.nested.nested_tensor(list(jagged(t, 4).unbind())).to_padded_tensor(
        0.0, (3, 2, 4)
    ),
    "batch transposed": lambda t: jagged(t, 4).transpose(0, 1),
    "batch permuted": lambda t: jagged(t, 2, 4).permute(1, 0, 2, 3),
    "broadcast": lambda t: t.broadcast_to(jagged(t, 4), (3, -1, 4)),
    "selected rows": lambda t: t.nested.masked_select(t.arange(24.0).view(2, 3, 4), t.arange(4) % 3 == 0),
    "lengths": lambda t: (
        jagged(t, 4)._maybe_min_seqlen,
        jagged(t, 4)._maybe_max_seqlen,
        jagged(t, 4)._min_seqlen_tensor,
        jagged(t, 4)._max_seqlen_tensor,
    ),
}


@needs_torch
@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str) -> None:
    found = []
    for t in (torch, tp):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(plain(CASES[name](t)))
            except Exception as error:
                found.append(type(error).__name__)
    assert same(*found), f"{found[1]}, not {found[0]}"


@pytest.mark.parametrize("seed", range(20))
def test_rows_piece_by_piece(seed: int) -> None:
    """Any rows in any order, from the ends too, and gradients; PyTorch takes as many indices as there are pieces."""
    rng = random.Random(seed)
    lengths = [rng.randrange(1, 6) for _ in range(rng.randrange(1, 5))]
    pieces = [tp.randn(k, 3, requires_grad=True) for k in lengths]
    which = [rng.randrange(len(lengths)) for _ in range(rng.randrange(6))]
    rows = [rng.randrange(-lengths[b], lengths[b]) for b in which]
    values = tp.randn(len(which), 3, requires_grad=True)
    n = tp.nested.as_nested_tensor(pieces, layout=tp.jagged)
    index = tp.tensor(which, dtype=tp.int64), tp.tensor(rows, dtype=tp.int64)
    made = n.index_put(index, values, accumulate=True)
    again = [p.detach().clone().requires_grad_() for p in pieces]
    expected = list(again)
    for b, row, value in zip(which, rows, values.detach(), strict=True):
        expected[b] = expected[b].index_put((tp.tensor([row]),), value, accumulate=True)
    for a, b in zip(made.unbind(), expected, strict=True):
        assert tp.allclose(a, b)
    weights = [tp.randn(k, 3) for k in lengths]
    sum((p * w).sum() for p, w in zip(made.unbind(), weights, strict=True)).backward()
    for p, w in zip(pieces, weights, strict=True):
        assert p.grad.equal(w)
    assert values.grad is not None or not which
    for g, b, row in zip(values.grad if which else (), which, rows, strict=True):
        assert g.equal(weights[b][row])


def test_masks_and_what_is_refused() -> None:
    n = jagged(tp, 4)
    n[n > 0.5] = 0.0
    assert not (n > 0.5).any() and n.index_put((n == 0,), tp.tensor(3.0)).max() == 3
    before = n.values().clone()
    for key, error in (
        ((tp.tensor([0]), None), NotImplementedError),
        ((tp.tensor([0]), tp.tensor([0]), tp.tensor([0]), tp.tensor([0])), IndexError),
        ((n > 0, tp.tensor([0])), NotImplementedError),
        (n, ValueError),
        ((tp.tensor([0]), tp.tensor([9])), RuntimeError),
        ((tp.tensor([0]), tp.tensor([-(2**63)])), RuntimeError),
        ((tp.tensor([2**62]), tp.tensor([0])), IndexError),
        (slice(None), NotImplementedError),
    ):
        with pytest.raises(error):
            n[key] = 1.0
    with pytest.raises(RuntimeError, match="requires grad"):
        n.clone().requires_grad_()[tp.tensor([0])] = 1.0
    assert n.values().equal(before)
