"""An out= of another dtype: each operator takes what its entry says (`out_dtype`), which is what PyTorch takes. An
out= that is an input, too, is read before it is written."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from codegen.out_dtype import takes_castable
from tensorpy.testing.harness import name_of, over
from tensorpy.testing.samples import Array, OpInfo, OpSample
from tensorpy.testing.samples.catalog import CATALOG
from tensorpy.testing.samples.table import Dtype, Seed

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

DTYPES = ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
SAMPLES = 2  # of one operator and dtype

# Where PyTorch's own kernels do not agree about it.
TWO_WAYS = {
    "abs": "of complex numbers it casts, of others not",
    "range": "PyTorch's process ends where out= is of integers and the step is not: it divides by 0",
    **dict.fromkeys(("linalg_matrix_power", "matrix_power"), "the power 0 it casts, others not"),
    **dict.fromkeys(
        ("fft_hfft", "fft_hfft2", "fft_hfftn", "fft_irfft", "fft_irfft2", "fft_irfftn"), "it casts, but not to complex"
    ),
    "fft_ifft": "of a complex input it does not cast",
    "chain_matmul": "of one matrix it copies, of several not",
}


def has_single_outs(info: OpInfo) -> bool:
    out = info.variant("out")
    return out is not None and info.op.kind != "inplace" and all(str(o.type) == "Tensor" for o in out.schema.out)


def outs(info: OpInfo) -> list[str]:
    out = info.variant("out")
    assert out is not None
    return [o.name for o in out.schema.out]


def overload(library: Any, name: str) -> Any:
    base, _, which = name.partition(".")
    return getattr(getattr(library.ops.aten, base), which or "default")


def arguments(library: Any, info: OpInfo, sample: OpSample, out: bool = True) -> tuple[list[Any], dict[str, Any]]:
    """The sample's arguments; of the out= variant those that it takes: a factory's has no dtype."""

    def convert(value: Any) -> Any:
        match value:
            case Array():
                flat = library.from_numpy(np.array(value.values).reshape(-1))  # a copy: operators write to it
                return flat.to(getattr(library, value.dtype)).reshape(value.values.shape)
            case Dtype(name):
                return getattr(library, name)
            case Seed(n):
                return library.Generator().manual_seed(n)
        return library.device("cpu")

    args, kwargs = sample.map(convert)
    op = info.variant("out") if out else info.op
    assert op is not None
    taken = {a.name for a in op.schema.arguments}
    return args, {k: v for k, v in kwargs.items() if k in taken}


def answer(library: Any, info: OpInfo, sample: OpSample, results: list[Any], i: int, dtype: str) -> Exception | None:
    """The error of a call whose i-th out= is of `dtype` and whose others are as they should be."""
    args, kwargs = arguments(library, info, sample)
    for j, (name, (shape, own)) in enumerate(zip(outs(info), results, strict=True)):
        kwargs[name] = library.empty(shape, dtype=getattr(library, dtype if i == j else own))
    try:
        overload(library, str(info.variant("out").schema.name))(*args, **kwargs)  # type: ignore[union-attr]
    except (RuntimeError, ValueError, TypeError) as error:
        return error
    return None


def cases(library: Any, info: OpInfo) -> Iterator[tuple[OpSample, list[Any], int, str, str]]:
    """Samples, their results' shapes and dtypes, and for each result the dtypes that out= may have."""
    for dtype in info.some_dtypes:
        for sample in info.samples(dtype, SAMPLES):
            args, kwargs = arguments(library, info, sample, out=False)
            try:
                made = overload(library, info.name)(*args, **kwargs)
            except (RuntimeError, TypeError, AttributeError, ValueError, IndexError):
                continue  # PyTorch may lack the operator or the dtype
            results = [
                (tuple(t.shape), name_of(t.dtype)) for t in (made if isinstance(made, (tuple, list)) else [made])
            ]
            if answer(library, info, sample, results, -1, ""):
                continue
            for i, (_, own) in enumerate(results):
                for other in DTYPES:
                    yield sample, results, i, own, other


def lets_choose(info: OpInfo) -> bool:
    """Whether the caller may choose the result's dtype, which out= then does."""
    names = {a.name for a in info.op.schema.arguments}
    return "dtype" in names or info.base in ("any", "all", "bernoulli")


@over(has_single_outs)
def test_as_the_entry_says(info: OpInfo) -> None:
    casts = takes_castable(info.variant("out"), CATALOG)  # type: ignore[arg-type]
    for sample, results, i, own, other in cases(tp, info):
        error = answer(tp, info, sample, results, i, other)
        castable = tp.can_cast(getattr(tp, own), getattr(tp, other))
        what = f"{info.name}{sample}, a result of {own} into out= of {other}: {error}"
        if lets_choose(info) and not (casts and not castable):
            continue  # what it computes in the other dtype is its own affair
        assert (error is None) == (castable if casts else own == other), what
        assert error is None or isinstance(error, RuntimeError), what


@over(lambda info: has_single_outs(info) and len(outs(info)) == 1 and "empty" not in info.base)
def test_an_input(info: OpInfo) -> None:
    """Of the result's size or of another one: it is read before it is resized and written, or that is an error."""
    (name,) = outs(info)
    call = overload(tp, str(info.variant("out").schema.name))  # type: ignore[union-attr]
    for dtype in info.some_dtypes:
        for sample in info.samples(dtype, SAMPLES):
            args, _ = arguments(tp, info, sample)
            for at, given in enumerate(args):
                args, kwargs = arguments(tp, info, sample)
                try:
                    tp.manual_seed(0)
                    expected = call(*args, **kwargs, **{name: given.new_empty(0)})
                    args, kwargs = arguments(tp, info, sample)
                    tp.manual_seed(0)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        got = call(*args, **kwargs, **{name: args[at]})
                except (RuntimeError, ValueError, TypeError, AttributeError, IndexError):
                    continue
                assert str(got) == str(expected.reshape(got.shape)), f"{info.name}{sample}, out= is argument {at}"


@pytest.mark.skipif(torch is None, reason="needs PyTorch")
@over(lambda info: has_single_outs(info) and info.base not in TWO_WAYS)
def test_as_in_pytorch(info: OpInfo) -> None:
    """Where neither of the two lacks a kernel for the dtype, or finds a number that does not fit it."""
    compared = 0
    with warnings.catch_warnings(), contextlib.suppress(AttributeError):
        warnings.simplefilter("ignore")
        for sample, results, i, own, other in cases(torch, info):
            expected = answer(torch, info, sample, results, i, other)
            got = answer(tp, info, sample, results, i, other)
            lacking = any(isinstance(e, NotImplementedError) for e in (expected, got))
            if lacking or any(word in str(expected) for word in ("overflow", "out of bounds", "step must be")):
                continue
            compared += 1
            if isinstance(expected, TypeError):  # of cat alone
                expected = RuntimeError(*expected.args)
            assert type(got) is type(expected), f"{info.name}{sample}, {own} into {other}: {got!r}, not {expected!r}"
    if not compared:
        pytest.skip("PyTorch has no such operator, or takes none of the samples")
