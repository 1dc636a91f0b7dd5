"""Samples with one thing spoilt (a dimension, an index, the number of dimensions, a dtype): where PyTorch refuses the
call, tensorpy does, with the same class of exception.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_out_dtype import arguments, overload

import tensorpy as tp
from tensorpy.testing.harness import over
from tensorpy.testing.samples import Array, OpInfo, OpSample

torch = pytest.importorskip("torch")

SAMPLES = 3  # of one operator
DTYPES = ("bool", "int64", "int16", "float16", "float64", "complex64")
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, OverflowError)

# Taken though PyTorch refuses, and why that is meant.
TAKEN = {
    "binary_cross_entropy": "arguments are broadcast with each other, not to one of them",
    "binary_cross_entropy_with_logits": "the same, and promoted",
    "soft_margin_loss": "the same",
    "scaled_dot_product_attention": "a mask may have dimensions in front",
    "hinge_embedding_loss": "a mean of integers is one of floats",
    "index_select": "indices into what is empty are not looked at",
    "index_add": "the same",
    "linear": "a weight of one dimension takes batches too",
    "nll_loss2d_forward": "targets are counted, whatever dimensions they have",
    "repeat_interleave": "a tensor without dimensions is a line of one",
    "fft_rfft": "an empty batch has an empty result",
    "linalg_vander": "of float16 too",
    "norm": "elements may be narrowed before they are summed",
}

# Where PyTorch itself writes past its memory and ends the process.
CRASHES = {"lu_unpack": "pivots out of range", "lstm": "weights and states that do not fit each other"}


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def spoilt_array(name: str, a: Array, main_dtype: str) -> Iterator[tuple[str, Array]]:
    if a.dtype == "int64" != main_dtype and a.values.size and ("ind" in name or "target" in name):
        for at, wrong in ((0, 99), (-1, -99)):
            values = a.values.copy()
            values.reshape(-1)[at] = wrong
            yield "index", replace(a, values=values)
    yield "ndim", replace(a, values=a.values[None])
    if a.values.ndim and a.values.shape[0]:
        yield "ndim", replace(a, values=a.values[0])
    for dtype in DTYPES:
        if dtype != a.dtype:
            values = a.values if dtype == "complex64" else np.real(a.values)
            with np.errstate(all="ignore"):
                yield "dtype", Array(values.astype(dtype), dtype)


def spoilt(info: OpInfo, sample: OpSample) -> Iterator[tuple[str, OpSample]]:
    """What is spoilt, and the sample with it."""
    names = [a.name for a in info.op.schema.arguments]
    given = [*zip(names, sample.args, strict=False), *sample.kwargs.items()]
    for i, (name, value) in enumerate(given):
        found: list[tuple[str, Any]] = []
        if name.startswith("dim") and is_int(value):
            found += [("dim", 9), ("dim", -9)]
        elif name.startswith("dim") and isinstance(value, (list, tuple)) and value and all(map(is_int, value)):
            found += [("dim", [9, *value[1:]]), ("dim twice", [value[0], *value])]
        elif isinstance(value, Array):
            found += spoilt_array(name, value, info.main_dtype)
        for what, wrong in found:
            if i < len(sample.args):
                yield what, OpSample((*sample.args[:i], wrong, *sample.args[i + 1 :]), sample.kwargs)
            else:
                yield what, OpSample(sample.args, {**sample.kwargs, name: wrong})


def refusal(library: Any, info: OpInfo, sample: OpSample) -> Exception | None:
    args, kwargs = arguments(library, info, sample, out=False)
    try:
        overload(library, info.name)(*args, **kwargs)
    except REFUSALS as error:
        return error
    return None


def is_same(what: str, got: Exception, expected: Exception) -> bool:
    """A dtype without a kernel is a RuntimeError or the NotImplementedError below it. An index out of range is an
    IndexError or a RuntimeError, as PyTorch's loops go; so is a wrong number of dimensions, where PyTorch may ask for
    the size of one that is not there before it looks.
    """
    kinds = {type(got), type(expected)}
    if len(kinds) == 1 or kinds == {RuntimeError, NotImplementedError}:
        return True
    return kinds == {RuntimeError, IndexError} and what in ("index", "ndim")


def is_in_torch(info: OpInfo) -> bool:
    try:
        return not info.base.startswith("_") and info.base not in CRASHES and overload(torch, info.name) is not None
    except AttributeError:
        return False


@over(is_in_torch)
def test_what_pytorch_refuses(info: OpInfo) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in info.samples(info.main_dtype, SAMPLES):
            for what, wrong in spoilt(info, sample):
                expected = refusal(torch, info, wrong)
                if expected is None or re.search("Expected a value of type|is missing value for", str(expected)):
                    continue
                got = refusal(tp, info, wrong)
                message = f"{info.name}{wrong}, wrong {what}: {got!r}, PyTorch: {expected!r}"
                if got is None:
                    kernel = isinstance(expected, NotImplementedError)  # that PyTorch lacks
                    assert kernel or info.base in TAKEN, message
                else:
                    assert is_same(what, got, expected), message
