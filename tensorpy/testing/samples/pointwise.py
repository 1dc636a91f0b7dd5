"""Pointwise operators whose samples do not follow from the schema alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .table import ALL_DTYPES, LEAVES, Make, samples


@samples("clamp", dtypes=("bool", *LEAVES["uint"], *LEAVES["sint"], *LEAVES["float"]))
def clamp(make: Make) -> Iterator[Any]:
    yield make(3, 4), 1, 3
    yield make(3, 4), {"min": 2}
    yield make(3, 4), {"max": 2}
    yield make(()), 3, 1
    yield make(0, 3), 1, 3


@samples("clamp.Tensor", dtypes=("bool", *LEAVES["uint"], *LEAVES["sint"], *LEAVES["float"]))
def clamp_tensor(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4), make(4)
    yield make(3, 4), {"min": make(3, 1)}
    yield make(3), {"max": make(2, 3)}
    yield make(0, 3), make(()), make(1, 3)


@samples("nextafter", dtypes=LEAVES["float"], reference=np.nextafter)
def nextafter(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(4)
    yield make(()), make(2)
    yield make(0, 3), make(3)
    yield make.with_nan(3, 4), make(3, 4)
    yield make(2, 1, 3), make(4, 1)
    yield make(5), make(())
    yield make(67), make(67)
    yield make(1, 3), make(2, 1)


@samples("nan_to_num")
def nan_to_num(make: Make) -> Iterator[Any]:
    yield make(3, 4)
    yield make(())
    yield make.with_nan(3, 4)
    if make.dtype.startswith("float"):
        yield make.array([float("nan"), 1.5], make.dtype), 2.5


FLOATS = LEAVES["float"]
NUMBERS = tuple(d for d in ALL_DTYPES if d != "bool")


@samples("selu", "celu", dtypes=FLOATS)
def scaled_elu(make: Make) -> Iterator[Any]:
    yield make(3, 4)
    yield make(())
    yield make(0, 3)


@samples("relu6", dtypes=FLOATS)
def relu6(make: Make) -> Iterator[Any]:
    yield make(3, 4, low=-9, high=9)
    yield make(())
    yield make(0, 3)


@samples("positive", dtypes=NUMBERS)
def positive(make: Make) -> Iterator[Any]:
    yield make(3, 4)
    yield make(())


@samples("masked_fill.Tensor")
def masked_fill_tensor(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4, dtype="bool"), make(())
    yield make(3, 4), make(4, dtype="bool"), make(())
    yield make(0, 3), make(1, 3, dtype="bool"), make(())


ONE = (
    "absolute negative fix arcsin arctan arcsinh rad2deg deg2rad sinc special_expit special_exp2 "
    "special_expm1 special_erf special_erfc special_sinc special_ndtr special_i0"
)


@samples(*ONE.split(), dtypes=FLOATS)
def other_names(make: Make) -> Iterator[Any]:
    yield make(3, 4, low=-0.9, high=0.9)
    yield make((), low=-0.9, high=0.9)
    yield make(0, 3)


@samples("isclose", dtypes=NUMBERS, gradcheck=False)
def isclose(make: Make) -> Iterator[Any]:
    x = make(3, 4)
    yield x, x
    yield make(3, 4), make(4)
    for rtol, atol, shape in itertools.product((0.0, 0.5), (0.0, 2.0), ((3, 4), (), (0, 3))):
        yield make(*shape), make(*shape), {"rtol": rtol, "atol": atol}
    yield make.ties(4), make.ties(4), {"equal_nan": False}
    if make.dtype.startswith("float"):
        odd = make.array([float("nan"), float("inf"), -float("inf"), 1.0], make.dtype)
        yield odd, odd
        yield odd, odd, {"equal_nan": True}


TWO = "divide.Tensor true_divide.Tensor multiply.Tensor subtract.Tensor arctan2 float_power.Tensor_Tensor"


@samples(*TWO.split(), dtypes=FLOATS)
def other_names_of_two(make: Make) -> Iterator[Any]:
    yield make(3, 4, low=0.5, high=3), make(4, low=0.5, high=3)
    yield make((), low=0.5, high=3), make(3, low=0.5, high=3)
