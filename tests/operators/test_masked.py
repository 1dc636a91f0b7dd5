"""masked: reductions, scans and normalisations of what a mask selects, against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")

MASK = [[True, False, True], [False, False, False], [True, True, True]]
VALUES = [[0.5, 1.0, 2.0], [3.0, -4.0, 5.0], [-1.0, 2.0, 7.0]]
DIMS: list[Any] = [None, 0, 1, -1, (0, 1)]
REDUCTIONS = "sum prod amin amax mean var std norm logsumexp".split()


def said(lib: Any, name: str, *args: Any, mask: Any = MASK, dtype: str = "float32", **kwargs: Any) -> Any:
    """The result, or the error's class."""
    x = lib.tensor(VALUES, dtype=getattr(lib, dtype))
    if "dtype" in kwargs:
        kwargs["dtype"] = getattr(lib, kwargs["dtype"])
    try:
        found = getattr(lib.masked, name)(x, *args, mask=None if mask is None else lib.tensor(mask), **kwargs)
    except (ValueError, RuntimeError, TypeError, IndexError, NotImplementedError) as error:
        return type(error).__name__
    return str(found.dtype).split(".")[1], found.numpy()


def same(name: str, *args: Any, **options: Any) -> None:
    ours, theirs = said(tp, name, *args, **options), said(torch, name, *args, **options)
    if isinstance(theirs, str):
        assert ours == theirs
        return
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, dim: Any, dtype: str) -> None:
    at = {"norm": (2.0, dim), "var": (dim, True), "std": (dim, False)}.get(name, (dim,))
    for options in ({}, {"keepdim": True}, {"mask": None}, {"mask": [True, False, True]}, {"dtype": "float64"}):
        if dtype == "float32" or "dtype" not in options:
            same(name, *at, **({"dtype": dtype} | options))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize(
    "name", ["argmin", "argmax", "median", "cumsum", "cumprod", "softmax", "log_softmax", "softmin"]
)
def test_along_one_dimension(name: str, dtype: str) -> None:
    if name.startswith("cum") and dtype == "bool":
        return  # PyTorch has no kernel
    for dim in (0, 1, -2):
        same(name, dim, dtype=dtype)
        same(name, dim, dtype=dtype, mask=None)


def test_normalize_and_mistakes() -> None:
    for ord in (2.0, 1.0, float("inf"), float("-inf")):
        same("normalize", ord, 1)
        same("norm", ord, 1)
    same("sum", (0, 0))
    same("sum", 5)
    same("sum", 0, mask=[[[True]]])


def test_logaddexp_and_masks() -> None:
    for lib in (tp, torch):
        x, mask = lib.tensor(VALUES), lib.tensor(MASK)
        found = lib.masked.logaddexp(x, x, input_mask=mask, other_mask=~mask)
        np.testing.assert_allclose(found.numpy(), np.array(VALUES), rtol=1e-6)
        out = lib.masked._output_mask(lib.masked.sum, x, 1, mask=mask, keepdim=True)
        assert out.tolist() == [[True], [False], [True]]


def test_nothing_flows_back_to_what_is_left_out() -> None:
    x = tp.tensor(VALUES, requires_grad=True)
    tp.masked.sum(x * x, 1, mask=tp.tensor(MASK)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == (2 * x.detach() * tp.tensor(MASK)).tolist()
