"""A complex number for each argument of type Scalar in the table: refused where PyTorch refuses it, or the same result.

What reads such a number as a real one, and drops its imaginary part, is found by the class of argument.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.testing.accuracy import _leaves, _numbers, given, torch_function
from tensorpy.testing.harness import function_of
from tensorpy.testing.samples import TABLE, OpInfo, OpSample

NUMBER = complex(1, 2)
SAMPLES = 4  # of an operator and dtype


def places(info: OpInfo) -> Iterator[tuple[int, str]]:
    for at, argument in enumerate(info.op.schema.arguments):
        if str(argument.type) in ("Scalar", "Scalar?"):
            yield at, argument.name


def called(function: Callable[..., Any], library: Any, sample: OpSample, at: int, name: str) -> Any:
    """The class of result and its numbers, or None for an error."""
    args, kwargs = given(sample, library, False)
    if at < len(args):
        args[at] = NUMBER
    else:
        kwargs[name] = NUMBER
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError):
        return None
    return [(str(t.dtype).rpartition(".")[2], _numbers(t)) for t in _leaves(result, library)]


def alike(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return len(a) == len(b) and all(
        x[0] == y[0] and x[1].shape == y[1].shape and np.allclose(x[1], y[1], 1e-4, 1e-4, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_complex_number_is_refused_or_computed_with(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    calls, wrong = 0, []
    for info in TABLE.values():
        theirs = torch_function(info)
        if theirs is None or dtype not in info.dtypes:
            continue
        ours = getattr(function_of(info), "__wrapped__", function_of(info))
        for at, name in places(info):
            for sample in info.samples(dtype)[:SAMPLES]:
                calls += 1
                if not alike(called(ours, tp, sample, at, name), called(theirs, torch, sample, at, name)):
                    wrong.append(f"{info.op.schema.name}({name}={NUMBER}) of {sample}")
    assert calls > 300 and not wrong, "\n".join(wrong)
