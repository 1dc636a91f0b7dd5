"""Single behaviours of operators beside PyTorch's: results, classes of errors, the beginnings of messages."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest

import tensorpy as tp

NAN = float("nan")


def outcome(t: Any, call: str, length: int = 40) -> Any:
    """What a call gives, as lists; or the class of its error and the beginning of the message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(call, {"t": t, "F": t.nn.functional, "NAN": NAN})
        except Exception as error:
            name = type(error).__name__.removeprefix("_")
            return name, str(error)[:length]
    return repr(result).replace("tensorpy", "torch")


def compare(call: str, length: int = 40) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(tp, call, length) == outcome(torch, call, length)


# ---- values that are not finite ----


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("function", ["eigh", "eigvalsh"])
def test_eigenvalues_of_nan_are_lapacks(function: str, n: int) -> None:
    compare(f"t.linalg.{function}(t.full(({n}, {n}), NAN))", 60)
    compare(f"t.linalg.{function}(t.full((2, {n}, {n}), NAN))", 60)


# ---- masks of bytes ----


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
@pytest.mark.parametrize(
    "call",
    ["t.arange(4).index_put_(({m},), t.tensor(9))", "t.arange(4).index_put(({m},), t.arange(2))", "t.arange(4)[{m}]"],
)
def test_masks_of_bytes_stand_for_places_and_take_no_single_value(call: str, dtype: str) -> None:
    compare(call.format(m=f"t.tensor([1, 0, 1, 0], dtype=t.{dtype})"), 62)


def test_masked_fill_names_itself() -> None:
    for call in ("t.zeros(2).masked_fill(t.ones(2), 1)", "t.zeros(2).masked_fill_(t.ones(2), 1)"):
        compare(call, len("masked_fill_ only supports boolean masks, but got mask with dtype "))


# ---- shapes ----


@pytest.mark.parametrize(
    "shapes", [((2,), (2, 1)), ((2, 1), (2,)), ((2, 2), (2,)), ((2,), (2, 2)), ((), (2,)), ((3,), (2,)), ((0,), (1,))]
)
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_soft_margin_losses_have_the_shape_of_the_scores(shapes: Any, reduction: str) -> None:
    compare(f"F.soft_margin_loss(t.ones({shapes[0]}), t.ones({shapes[1]}), reduction='{reduction}')", 100)


@pytest.mark.parametrize("given", ["ones(3)", "ones(0)", "ones(2, 2)", "tensor([True])", "tensor([-1])"])
def test_bincount_of_what_is_no_count(given: str) -> None:
    compare(f"t.bincount(t.{given})")


# ---- determinism ----

PUT = """
import {package} as t
t.use_deterministic_algorithms(True)
for accumulate in (False, True):
    try:
        print(t.zeros(4).put_(t.tensor([1, 1]), t.tensor([1.0, 2.0]), accumulate).tolist())
    except RuntimeError as error:
        print(str(error)[:44])
"""


def test_put_has_no_order_of_its_writes() -> None:
    pytest.importorskip("torch")
    ours, theirs = (
        subprocess.run([sys.executable, "-c", PUT.format(package=p)], capture_output=True, text=True, check=True).stdout
        for p in ("tensorpy", "torch")
    )
    assert ours == theirs and ours.startswith("put_ does not have a deterministic")
