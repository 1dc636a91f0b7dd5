"""Samples of convolutions and pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from . import references_nn as nn
from .table import ARITHMETIC, FLOATS, LOOSE, Array, Make, samples

TOLERANCES = {**LOOSE, "float32": (1e-4, 1e-4), "float16": (1e-2, 3e-2), "bfloat16": (6e-2, 2e-1),
              "complex64": (1e-4, 1e-4)}  # fmt: skip
LINEAR: dict[str, Any] = {"dtypes": tuple(d for d in ARITHMETIC if d != "bool"), "tolerances": TOLERANCES}
SPACE = {1: (7,), 2: (6, 5), 3: (3, 3, 4)}
BATCH, OUT = {1: 2, 2: 2, 3: 1}, {1: 6, 2: 4, 3: 2}


def image(make: Make, dims: int) -> Array:
    return make(BATCH[dims], 4, *SPACE[dims])


KERNEL = {1: (3,), 2: (2, 3), 3: (2, 1, 2)}


def _conv(dims: int) -> Any:
    """Every parameter beside its default, and together."""

    def generate(make: Make) -> Iterator[Any]:
        ways = nn.each_way(stride=(1, 2), padding=(0, 1), dilation=(1, 2), groups=(1, 2)) if dims < 3 else [
            {}, {"stride": 2}, {"padding": 1}, {"dilation": (1, 1, 2)}, {"groups": 2}, {"stride": 2, "padding": 1},
            {"padding": (1, 0, 1), "stride": (1, 2, 1)}, {"groups": 2, "stride": 2}, {"padding": 2},
            {"stride": (2, 1, 1)},
        ]  # fmt: skip
        for way in ways:
            groups = way.get("groups", 1)
            for bias in (True, False):
                yield (
                    image(make, dims),
                    make(OUT[dims], 4 // groups, *KERNEL[dims]),
                    make(OUT[dims]) if bias else None,
                    way,
                )
        yield make(4, *SPACE[dims]), make(2, 4, *KERNEL[dims])  # without a batch
        yield make(0, 4, *SPACE[dims]), make(2, 4, *KERNEL[dims]), make(2)
        yield make(1, 3, *SPACE[dims]), make(3, 1, *KERNEL[dims]), None, {"groups": 3}  # each channel alone
        yield image(make, dims), make(5, 4, *(1,) * dims)

    return generate


def _conv_by_word(dims: int) -> Any:
    def generate(make: Make) -> Iterator[Any]:
        for word in ("same", "valid"):
            yield image(make, dims), make(OUT[dims], 4, *KERNEL[dims]), make(OUT[dims]), 1, word
            yield image(make, dims), make(OUT[dims], 2, *KERNEL[dims]), None, 1, word, 2, 2
        yield image(make, dims), make(OUT[dims], 4, *KERNEL[dims]), make(OUT[dims]), 2, "valid"
        yield make(4, *SPACE[dims]), make(OUT[dims], 4, *KERNEL[dims]), make(OUT[dims]), 1, "same"

    return generate


def _transposed(dims: int) -> Any:
    def generate(make: Make) -> Iterator[Any]:
        for way in nn.each_way(stride=(1, 2), padding=(0, 1), groups=(1, 2)):
            yield (
                image(make, dims),
                make(4, OUT[dims] // way["groups"], *KERNEL[dims]),
                make(OUT[dims]),
                way,
            )
        yield image(make, dims), make(4, 2, *KERNEL[dims]), None, {"stride": 2, "output_padding": 1}
        yield image(make, dims), make(4, 2, *KERNEL[dims]), make(2), {"dilation": 2}
        yield (
            image(make, dims),
            make(4, 2, *KERNEL[dims]),
            None,
            {"dilation": 2, "padding": 1, "stride": 2},
        )
        yield make(4, *SPACE[dims]), make(4, 2, *KERNEL[dims]), make(2)
        yield make(0, 4, *SPACE[dims]), make(4, 2, *KERNEL[dims])

    return generate


for _dims in (1, 2, 3):
    samples(f"conv{_dims}d", reference=nn.conv, **LINEAR)(_conv(_dims))
    samples(f"conv{_dims}d.padding", reference=nn.conv, **LINEAR)(_conv_by_word(_dims))
    _name = f"conv_transpose{_dims}d" + (".input" if _dims > 1 else "")
    samples(_name, reference=nn.conv_transpose, **LINEAR)(_transposed(_dims))


@samples("convolution", reference=nn.convolution, **LINEAR)
def convolution(make: Make) -> Iterator[Any]:
    for transposed in (False, True):
        w = (4, 3, 2, 3) if transposed else (3, 4, 2, 3)
        yield make(2, 4, 6, 5), make(*w), make(3), [1, 1], [0, 0], [1, 1], transposed, [0, 0], 1
        yield make(2, 4, 6, 5), make(*w), None, [2, 1], [1, 0], [1, 1], transposed, [1 if transposed else 0, 0], 1
        yield make(2, 4, 6, 5), make(4, 2, 2, 3), None, [2, 2], [1, 1], [1, 2], transposed, [0, 0], 2
    yield make(2, 4, 7), make(3, 4, 3), make(3), [2], [1], [1], False, [0], 1


# ---- pooling ----

REAL = tuple(d for d in (*FLOATS, "uint8", "int8", "int16", "int32", "int64"))


def _max_pool(make: Make) -> Iterator[Any]:
    """Input shapes with and without a batch, kernels, strides, paddings, dilations and both ways to round."""
    for shape in ((2, 3, 8, 7), (3, 8, 7), (1, 2, 6, 9), (2, 1, 5, 5), (0, 3, 8, 7), (1, 6, 6), (1, 1, 4, 9)):
        for way in nn.each_way(kernel_size=(2, (3, 2), 3), stride=((), 1, (2, 3), 3), padding=(0, 1, (0, 1)),
                               dilation=(1, 2, (1, 2)), ceil_mode=(False, True)):  # fmt: skip
            kernel, dilation = nn.tuple_of(way["kernel_size"], 2), nn.tuple_of(way["dilation"], 2)
            reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
            if all(r <= n + 2 * p for r, n, p in zip(reach, shape[-2:], nn.tuple_of(way["padding"], 2), strict=True)):
                yield make.distinct(*shape), *way.values()
    if make.dtype == "float64":
        return  # where elements are equal there is no gradient
    for kernel, stride, padding, ceil_mode in itertools.product((1, 2, 3), (1, 2), (0, 1), (False, True)):
        if 2 * padding <= kernel:
            yield make.ties(2, 2, 5, 5), kernel, stride, padding, 1, ceil_mode  # of equal ones the first is reported


samples("max_pool2d_with_indices", reference=nn.max_pool(2), dtypes=REAL)(_max_pool)
samples("max_pool2d", reference=lambda *a, **k: nn.max_pool(2)(*a, **k)[0], dtypes=REAL)(_max_pool)


@samples("avg_pool2d", reference=nn.avg_pool(2), dtypes=FLOATS, tolerances=LOOSE)
def avg_pool2d(make: Make) -> Iterator[Any]:
    for shape in ((2, 3, 6, 7), (3, 6, 7)):
        for way in nn.each_way(kernel_size=(2, (3, 2)), stride=((), 1, (2, 3)), padding=(0, 1), ceil_mode=(False, True),
                               count_include_pad=(True, False)):  # fmt: skip
            yield make(*shape), *way.values()
    yield make(2, 3, 6, 7), 2, 2, 0, False, True, 3
    yield make(0, 3, 6, 7), 2


@samples("adaptive_avg_pool2d", reference=nn.adaptive_avg_pool(2), dtypes=FLOATS, tolerances=LOOSE)
def adaptive_avg_pool2d(make: Make) -> Iterator[Any]:
    for shape in ((2, 3, 6, 7), (3, 5, 4), (0, 2, 4, 4)):
        for size in ((1, 1), (2, 3), (3, 2), (5, 4), (6, 7), (9, 9)):
            yield make(*shape), size
