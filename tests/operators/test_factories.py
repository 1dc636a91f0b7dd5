"""Factories against NumPy."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

import tensorpy as tp


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: tp.linspace(0, 1, 7, dtype=tp.float64), np.linspace(0, 1, 7)),
        (lambda: tp.logspace(0, 3, 4, dtype=tp.float64), np.logspace(0, 3, 4)),
        (lambda: tp.eye(2, 4), np.eye(2, 4)),
        (lambda: tp.arange(5000), np.arange(5000)),
        (lambda: tp.arange(1, -2, -0.25, dtype=tp.float64), np.arange(1, -2, -0.25)),
        (lambda: tp.tril_indices(4, 3, -1), np.stack(np.tril_indices(4, -1, 3))),
        (lambda: tp.triu_indices(3, 5, 1), np.stack(np.triu_indices(3, 1, 5))),
        (lambda: tp.ones(3, 4).tril(-1), np.tri(3, 4, -1)),
        (lambda: tp.ones(3, 4).triu(1), np.triu(np.ones((3, 4)), 1)),
        (lambda: tp.complex(tp.ones(2), tp.zeros(2)), np.ones(2, np.complex64)),
        (lambda: tp.vander(tp.tensor([1.0, 2.0])), np.vander([1.0, 2.0])),
    ],
)
def test_against_numpy(made, expected):
    np.testing.assert_allclose(np.asarray(made()), expected)


def test_like_self():
    t = tp.zeros(2, dtype=tp.int16)
    assert t.new_ones(3).dtype == tp.int16 and t.new_full((2,), 4, dtype=tp.float32).tolist() == [4.0, 4.0]
    assert tp.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
    with pytest.raises(RuntimeError, match="non-negative"):
        tp.linspace(0, 1, -1)


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "full", "rand", "randn", "randint"])
def test_like_keeps_the_strides_of_dense_tensors(name: str) -> None:
    """Those of dimensions of one element, too: they say whether a tensor is channels last."""
    make, more = getattr(tp, name + "_like"), {"full": (2.0,), "randint": (0, 5)}.get(name, ())
    weight = tp.randn(8, 1, 3, 3)
    for t in (
        weight.to(memory_format=tp.channels_last),
        weight[:, :, :1, :1].contiguous().to(memory_format=tp.channels_last),
        tp.randn(3, 1, 4).transpose(0, 1),
        tp.randn(5, 1).t(),
        tp.empty(0, 3).t(),
        tp.randn(12).as_strided((3, 1, 4), (4, 99, 1)),
        tp.randn(4, 5, 6).permute(2, 0, 1),
    ):
        assert make(t, *more).stride() == t.stride()
    assert make(tp.randn(4, 6)[:, ::2].t(), *more).stride() == (1, 3)


def test_with_device() -> None:
    """A default for this thread and scope; errors and threads leave no trace."""
    with tp.device("meta"):
        assert tp.ones(2).is_meta and tp.nn.Linear(2, 2).weight.is_meta
        assert tp.ones(2, device="cpu").is_cpu and tp.tensor([1.0]).is_meta
        seen = []
        thread = threading.Thread(target=lambda: seen.append(tp.ones(1).device.type))
        thread.start()
        thread.join()
        assert seen == ["cpu"]
        with pytest.raises(KeyError), tp.device("cpu"):
            raise KeyError
        assert tp.ones(2).is_meta
    assert tp.ones(2).is_cpu
    with pytest.raises(RuntimeError, match="inside no"):
        tp.device("cpu").__exit__(None, None, None)
    with contextlib.ExitStack() as stack, pytest.raises(RuntimeError, match="inside each other"):
        for _ in range(100):
            stack.enter_context(tp.device("meta"))
    assert tp.ones(2).is_cpu
    with pytest.raises(RuntimeError, match="not available"), tp.device("privateusethree"):
        pass


BIG = 2**63 - 1


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("dtype", [tp.int64, tp.int32, tp.uint8])
def test_ranges_of_integers_are_counted_in_integers(dtype: tp.dtype) -> None:
    """Its numbers are those that the ends and the step are as integers, also where an end is the last there is."""
    for start, end, step, expected in (
        (0, 9, 2.5, [0, 2, 4, 6, 8]),
        (1.5, 4.6, 1, [1, 2, 3, 4]),
        (5, 0, -2, [5, 3, 1]),
        (3, 3, 1, [3]),
        (2**62, BIG, 2**61, [2**62, 2**62 + 2**61]),
        (-(2**63), BIG, 2**62, [-(2**63), -(2**62), 0, 2**62]),
        (BIG - 1, BIG, 1, [BIG - 1, BIG]),
    ):
        bits = 8 * dtype.itemsize
        wrapped = [n % 2**bits - (2**bits if dtype.is_signed and n % 2**bits >> (bits - 1) else 0) for n in expected]
        assert tp.range(start, end, step, dtype=dtype).tolist() == wrapped
    for start, end, step in (
        (0, 1e30, 1),
        (0, 1e30, 1e29),
        (0, 1, tp.nan),
        (1, 1, tp.nan),
        (0, 9, tp.inf),
        (0, 9, 0.5),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            tp.range(start, end, step, dtype=dtype)


def test_whole_numbers_are_counted_exactly() -> None:
    with pytest.raises(RuntimeError, match="invalid size"):
        tp.arange(2**62 + 1, 2**62)


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_a_range_wants_a_step_that_is_a_number() -> None:
    for start, end in ((0, 1), (1, 1)):
        with pytest.raises(RuntimeError, match="step must be nonzero"):
            tp.range(start, end, tp.nan)
