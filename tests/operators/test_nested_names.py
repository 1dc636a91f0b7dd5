"""Nested tensors by the names that PyTorch's modules call: against torch where it is there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from test_nested import nested, plain, same

import tensorpy as tp

torch: Any
try:
    import torch
except ImportError:
    torch = None


def numbers(t: Any, *sizes: int) -> Any:
    return t.arange(float(t.ones(sizes).numel())).view(sizes) / 10


def mask(t: Any) -> Any:
    return t.tensor([[1, 1, 0], [1, 0, 0]]) > 0


def dummy(t: Any, x: Any) -> Any:
    return t._nested_get_jagged_dummy(x)


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "values": lambda t, x: (t._nested_get_values(x), t._nested_get_values(x.transpose(1, 2)).shape),
    "offsets": lambda t, x: (t._nested_get_offsets(x), x._offsets, x._lengths),
    "said lengths": lambda t, x: (
        t._nested_get_lengths(x),
        t._nested_get_lengths(
            t.nested.nested_tensor_from_jagged(numbers(t, 5, 2), t.tensor([0, 2, 5]), t.tensor([1, 2]))
        ),
    ),
    "ragged": lambda t, x: (t._nested_get_ragged_idx(x.transpose(1, 2)), x._ragged_idx),
    "lengths": lambda t, x: (t._nested_get_min_seqlen(x).shape, t._nested_get_max_seqlen(x).shape),
    "lengths that nobody said": lambda t, x: [
        get(t.nested.nested_tensor_from_jagged(numbers(t, 5, 2), t.tensor([0, 2, 5])))
        for get in (t._nested_get_min_seqlen, t._nested_get_max_seqlen)
    ],
    "lengths that were said": lambda t, x: [
        get(t.nested.nested_tensor_from_jagged(numbers(t, 5, 2), t.tensor([0, 2, 5]), min_seqlen=2, max_seqlen=3)).shape
        for get in (t._nested_get_min_seqlen, t._nested_get_max_seqlen)
    ],
    "cached": lambda t, x: (x._get_min_seqlen(), x._get_max_seqlen(), x._min_seqlen, x._max_seqlen),
    "view": lambda t, x: t._nested_view_from_jagged(numbers(t, 5, 2), t.tensor([0, 2, 5]), dummy(t, x)),
    "view of parts": lambda t, x: t._nested_view_from_jagged(
        numbers(t, 5, 2), t.tensor([0, 2, 5]), dummy(t, x), t.tensor([1, 2]), 1
    ),
    "buffer": lambda t, x: t._nested_view_from_buffer_copy(
        numbers(t, 6), t.tensor([[2, 1], [1, 4]]), t.tensor([[1, 1], [4, 1]]), t.tensor([0, 2])
    ),
    "padded": lambda t, x: t._nested_from_padded(numbers(t, 2, 3, 4), t.tensor([[2, 1], [1, 4]])),
    "padded heads": lambda t, x: t._nested_from_padded(numbers(t, 2, 3, 4, 2), t.tensor([[3, 6], [2, 6]]), True),
    "too small": lambda t, x: t._nested_from_padded(numbers(t, 2, 3, 4), t.tensor([[2, 1], [1, 5]])),
    "padded like": lambda t, x: t._nested_from_padded_and_nested_example(
        numbers(t, 2, 4, 3), t.nested.nested_tensor([t.ones(2, 3), t.ones(1, 2)])
    ),
    "padded jagged": lambda t, x: t._nested_from_padded_tensor(numbers(t, 2, 4, 3), t.tensor([0, 3, 4]), dummy(t, x)),
    "mask": lambda t, x: t._nested_tensor_from_mask(numbers(t, 2, 3, 4), mask(t)),
    "bad mask": lambda t, x: t._nested_tensor_from_mask(numbers(t, 2, 3, 4), mask(t).flip(1)),
    "aligned": lambda t, x: [
        t._nested_tensor_from_mask_left_aligned(numbers(t, 2, 3, 4), m) for m in (mask(t), mask(t).flip(1))
    ],
    "list": lambda t, x: t._nested_tensor_from_tensor_list([t.ones(2), t.ones(3)], dtype=t.float64),
    "strides": lambda t, x: t._nested_compute_contiguous_strides_offsets(t.tensor([[2, 1], [1, 4]])),
    "select": lambda t, x: t.ops.aten._nested_select_backward(t.ones_like(x[0]), x, 0, 0),
    "to padded": lambda t, x: t.ops.aten._jagged_to_padded_dense_forward(
        numbers(t, 5, 2), [t.tensor([0, 2, 5])], [4], -1.0
    ),
    "of padded": lambda t, x: t.ops.aten._padded_dense_to_jagged_forward(numbers(t, 2, 3, 2), [t.tensor([0, 2, 5])], 5),
    "projections": lambda t, x: t.ops.aten._transform_bias_rescale_qkv(numbers(t, 2, 3, 24), numbers(t, 24), 2),
    "projections of nested": lambda t, x: t.ops.aten._transform_bias_rescale_qkv(
        t.nested.nested_tensor([numbers(t, 2, 24), numbers(t, 3, 24)]), numbers(t, 24), 2
    ),
    "strides of one": lambda t, x: (
        str(x.transpose(1, 2).stride()[1:]),
        x.stride(1),
        x._values,
        len(x._size),
        x._strides[1:],
    ),
    "sizes": lambda t, x: (
        2 * x.shape[1] == x.shape[1] * 2,
        2 * x.shape[1] == x.shape[1],
        str(2 * x.shape[1])[:3],
        x.stride(0) == x.shape[1] * x.stride(1),
    ),
    "bags": lambda t, x: t.nn.functional.embedding_bag(
        t.nested.nested_tensor([t.tensor([1, 2]), t.tensor([3])], layout=t.jagged), numbers(t, 5, 2), mode="mean"
    ),
    "bags of parts": lambda t, x: t.nn.functional.embedding_bag(
        t.nested.nested_tensor([t.tensor([1, 2, 0]), t.tensor([3])], layout=t.jagged), numbers(t, 5, 2), mode="sum"
    ),
    "softmax of none": lambda t, x: t.nn.functional.softmax(t.nested.nested_tensor([]), -1),
    "batches that differ": lambda t, x: t.matmul(
        t.nested.nested_tensor([t.ones(2, 4)]), t.nested.nested_tensor([t.ones(4, 2)] * 2)
    ),
    "sum": lambda t, x: t.ops.aten._nested_sum_backward(
        t.nested.nested_tensor([t.ones(2, 1)]), t.nested.nested_tensor([t.ones(2, 3)]), [-1], True
    ),
}


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("name", CASES)
def test_names_as_in_torch(name: str) -> None:
    found = []
    for t in (torch, tp):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(plain(CASES[name](t, nested(t, 1, "jagged"))))
            except Exception as error:
                found.append(type(error).__name__)
    assert same(*found), f"{found[1]}, not {found[0]}"


def test_a_copy_of_values() -> None:
    n = nested(tp, 1, "jagged")
    made = tp._nested_get_values_copy(n)
    made.zero_()
    assert not n.values().equal(made)


def test_numbers_that_lead_out() -> None:
    """Sizes, offsets and masks are checked against what they are about."""
    dense = tp.ones(2, 3, 2)
    for call in (
        lambda: tp._nested_from_padded(dense, tp.tensor([[4, 2], [1, 2]])),
        lambda: tp._nested_from_padded(dense, tp.tensor([[-1, 2], [1, 2]])),
        lambda: tp._nested_from_padded(dense, tp.tensor([[1, 2]])),
        lambda: tp._nested_from_padded(dense, tp.tensor([[1], [1]])),
        lambda: tp.ops.aten._padded_dense_to_jagged_forward(dense, [tp.tensor([0, 2, 9])]),
        lambda: tp.ops.aten._padded_dense_to_jagged_forward(dense, [tp.tensor([0, 2**62, -(2**62)])]),
        lambda: tp.ops.aten._padded_dense_to_jagged_forward(dense, [tp.tensor([0, 2])]),
        lambda: tp.ops.aten._jagged_to_padded_dense_forward(dense, [tp.tensor([0, 3])], [3]),
        lambda: tp.ops.aten._jagged_to_padded_dense_forward(dense, [tp.tensor([0, 2])], [-3]),
        lambda: tp._nested_tensor_from_mask(dense, tp.ones(2, 2) > 0),
        lambda: tp._nested_tensor_from_mask(dense, tp.ones(2, 3)),
        lambda: tp._nested_compute_contiguous_strides_offsets(tp.tensor([[-1, 2]])),
        lambda: tp._nested_compute_contiguous_strides_offsets(tp.tensor([[2**62, 2**62]])),
        lambda: tp._nested_view_from_jagged(tp.ones(3), tp.tensor([0, 4]), tp.ones(1)),
        lambda: tp._nested_get_values(dense),
        lambda: tp._nested_get_offsets(dense),
        lambda: tp._nested_get_max_seqlen(dense),
    ):
        with pytest.raises(RuntimeError):
            call()


@pytest.mark.parametrize("said", [{}, {"max_seqlen": 9}, {"min_seqlen": 0, "max_seqlen": 9}])
@pytest.mark.parametrize("lengths", [None, [1, 3]])
def test_lengths_that_were_said(said: dict[str, int], lengths: list[int] | None) -> None:
    def answers(t: Any) -> Any:
        values, offsets = t.arange(12.0).reshape(6, 2), t.tensor([0, 2, 6])
        x = t.nested.nested_tensor_from_jagged(values, offsets, lengths and t.tensor(lengths), **said)
        found = []
        for y in (x, x * 2, x.transpose(1, 2), x.clone()):
            found += [y._maybe_max_seqlen, y._maybe_min_seqlen]
        return [*found, x._max_seqlen, x._min_seqlen]

    found = answers(tp)
    most, least = said.get("max_seqlen"), said.get("min_seqlen")
    real = (2, 4) if lengths is None else (1, 3)
    assert found == [most, least] * 4 + [most or real[1], real[0] if least is None else least]
    if torch is not None:
        assert found == answers(torch)


def test_what_was_said_is_the_length_of_padding() -> None:
    x = tp.nested.nested_tensor_from_jagged(tp.arange(6.0), tp.tensor([0, 2, 6]), max_seqlen=5)
    assert x.to_padded_tensor(-1.0).tolist() == [[0.0, 1.0, -1.0, -1.0, -1.0], [2.0, 3.0, 4.0, 5.0, -1.0]]
    for wrong in ({"min_seqlen": -1}, {"max_seqlen": -3}):
        with pytest.raises(RuntimeError, match="negative"):
            tp.nested.nested_tensor_from_jagged(tp.arange(6.0), tp.tensor([0, 2, 6]), **wrong)
    for wrong in ({"least": -2}, {"most": 2**63 - 1}):
        with pytest.raises(RuntimeError, match="negative"):
            tp._C._nested_make(tp.ones(2), tp.tensor([0, 2]), None, None, 1, True, **wrong)
