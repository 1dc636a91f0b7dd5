"""The errors of 16-bit floats, operator by operator: as docs/accuracy_16bit.md publishes them, and beside torch's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.testing.accuracy import (
    COLUMNS,
    DTYPES,
    ONCE,
    allowed,
    distance,
    is_measured,
    measure,
    published,
)
from tensorpy.testing.harness import over
from tensorpy.testing.samples import TABLE, OpInfo

PAGE = Path(__file__).parents[2] / "docs" / "accuracy_16bit.md"
BOUNDS = published(PAGE.read_text())
ROOM = 1.3  # another CPU's loops and libraries sum in another order


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@over(is_measured)
def test_error_is_the_published_one(info: OpInfo) -> None:
    """Results and gradients against float64; of an operator that is not in the page's table, one rounding."""
    for dtype in DTYPES:
        for kind, errors in measure(info, dtype, with_torch=False).items():
            bound = BOUNDS.get(info.name, {}).get((kind, dtype), ONCE)
            assert errors.ours <= max(ROOM * bound, ONCE), (
                f"{info.name}{errors.worst}: the {kind} is {errors.ours:.2f} units off in {dtype}, published: {bound}"
            )


@over(is_measured)
def test_error_is_within_torchs(info: OpInfo) -> None:
    pytest.importorskip("torch")
    for dtype in DTYPES:
        for kind, errors in measure(info, dtype, with_torch=True).items():
            if errors.torch is not None:
                assert errors.ours <= allowed(errors.torch), (
                    f"{info.name}{errors.worst}: the {kind} is {errors.ours:.2f} units off in {dtype}, torch's "
                    f"{errors.torch:.2f}"
                )


def test_the_page_names_what_there_is() -> None:
    assert set(BOUNDS) <= set(TABLE) and all(set(found) <= set(COLUMNS) for found in BOUNDS.values())


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_of_many_scores(dtype: str) -> None:
    """Large scores: each rounding between steps would show."""
    rng = np.random.RandomState(3)
    q, k, v = (tp.tensor(rng.uniform(-4, 4, (2, 3, 40, 64)).tolist(), dtype=getattr(tp, dtype)) for _ in range(3))
    for mask in (None, tp.zeros(40, 40), tp.zeros(40, 40, dtype=q.dtype), tp.ones(40, 40, dtype=tp.bool)):
        got = tp.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        wide = None if mask is None else mask if mask.dtype == tp.bool else mask.double()
        exact = tp.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=wide)
        assert got.dtype == q.dtype
        assert distance(np.array(got.tolist()), np.array(exact.tolist()), dtype) <= ONCE


def test_mixed_dtypes_are_not_narrowed() -> None:
    """One argument that is wider makes the result wider."""
    a, b = tp.tensor([1.0, 2.0], dtype=tp.bfloat16), tp.tensor([1.001, 2.0])
    assert tp.nn.functional.mse_loss(a, b).dtype == tp.float32
    assert tp.nn.functional.mse_loss(a, a).dtype == tp.bfloat16
