"""Pointwise operators: limits of dtypes, bounds that are left out, in-place twins, gradients at ties and edges."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.autograd import gradcheck, gradgradcheck
from tensorpy.testing.harness import function_of
from tensorpy.testing.samples import TABLE


@pytest.mark.parametrize(("dtype", "largest"), [("float16", 65504.0), ("bfloat16", 3.3895313892515355e38)])
def test_nan_to_num_keeps_to_the_limits_of_the_dtype(dtype: str, largest: float) -> None:
    x = tp.tensor([float("nan"), float("inf"), -float("inf")], dtype=getattr(tp, dtype))
    assert x.nan_to_num().tolist() == [0.0, largest, -largest]
    assert x.nan_to_num_(1.0, 2.0, 3.0).tolist() == [1.0, 2.0, 3.0]


def test_clamp_with_one_bound() -> None:
    x = tp.tensor([1.0, 5.0, 9.0])
    assert x.clamp(min=4).tolist() == [4.0, 5.0, 9.0]
    assert x.clamp(max=tp.tensor([2.0])).tolist() == [1.0, 2.0, 2.0]
    assert x.clone().clamp_(min=6).tolist() == [6.0, 6.0, 9.0]
    with pytest.raises(RuntimeError, match="At least one of"):
        x.clamp()


def test_angle_of_integers_is_floating() -> None:
    assert tp.angle(tp.tensor([-2, 0, 3])).dtype is tp.float32


@pytest.mark.parametrize("name", ["relu6", "selu", "celu"])
def test_inplace_twins(name: str) -> None:
    function = getattr(tp.nn.functional, name)
    x = tp.tensor([-2.0, 0.5, 7.0])
    expected = function(x).tolist()
    assert function(x, inplace=True) is x
    assert x.tolist() == expected


def test_ties_are_shared_out() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    y = tp.tensor([1.0, 3.0], requires_grad=True)
    a, b = tp.autograd.grad(tp.maximum(x, y).sum(), [x, y])
    assert a.tolist() == [0.5, 0.0]
    assert b.tolist() == [0.5, 1.0]
    a, b = tp.autograd.grad(tp.fmax(x, y).sum(), [x, y])
    assert a.tolist() == [1.0, 0.0]
    assert b.tolist() == [0.0, 1.0]


def test_gradients_at_the_origin_are_finite() -> None:
    for name in ("sgn", "angle", "abs"):
        z = tp.tensor([0j, 3 + 4j], requires_grad=True)
        (g,) = tp.autograd.grad(getattr(tp, name)(z).abs().sum(), [z])
        assert tp.view_as_real(g).isfinite().sum().item() == 4, name


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_to_the_second_order(approximate: str) -> None:
    x = tp.tensor([-1.5, -0.2, 0.4, 2.0], dtype=tp.float64, requires_grad=True)

    def function(t: tp.Tensor) -> tp.Tensor:
        return tp.nn.functional.gelu(t, approximate=approximate)

    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_masked_fill_takes_a_tensor_of_one_element() -> None:
    x = tp.tensor([1.0, 2.0], requires_grad=True)
    value = tp.tensor(5.0, requires_grad=True)
    y = x.masked_fill(tp.tensor([True, False]), value)
    assert y.tolist() == [5.0, 2.0]
    a, b = tp.autograd.grad(y.sum(), [x, value])
    assert (a.tolist(), b.item()) == ([0.0, 1.0], 1.0)
    with pytest.raises(RuntimeError, match="0-dimensional value"):
        x.masked_fill(tp.tensor([True, False]), tp.tensor([1.0]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "complex64", "bfloat16"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 2.0, True])
def test_power_of_a_number(dtype: str, exponent: float) -> None:
    """Some exponents have loops of their own, of every dtype, variant and layout."""
    x = tp.tensor([1, 2, 3, 5, 7], dtype=getattr(tp, dtype))
    if exponent < 0 and not (x.is_floating_point() or x.is_complex()) and isinstance(exponent, int):
        with pytest.raises(RuntimeError, match="negative integer powers"):
            x**exponent
        return
    got = x**exponent
    whole = dtype.startswith("int") and isinstance(exponent, int)
    expected = [v**exponent for v in [1, 2, 3, 5, 7]]
    if whole:
        bits = 8 * x.element_size()
        assert got.tolist() == [(v + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for v in expected]
    else:
        wide = tp.complex128 if got.is_complex() else tp.float64
        tp.testing.assert_close(got.to(wide), tp.tensor(expected, dtype=wide), rtol=1e-2, atol=0)
        assert got.dtype == (tp.float32 if dtype.startswith("int") else x.dtype)
    spread = tp.empty(10, dtype=got.dtype)[::2]
    assert tp.pow(x, exponent, out=spread).tolist() == got.tolist()
    if got.dtype == x.dtype:
        assert x.clone().pow_(exponent).tolist() == got.tolist()


def powers_of_float32() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng, n = np.random.default_rng(0), 1 << 16
    ends = [0, 1, np.inf, np.nan, 2, 0.5, 3, 2.5, 1e-45, 3.4e38, 2**24, 2**24 + 2, 2**24 - 1, 1.0000001, 0.99999994]
    x, y = np.meshgrid(*[[s * e for e in ends for s in (1, -1)]] * 2)
    whole = np.meshgrid(np.arange(-40, 41), np.arange(-12, 13))
    near_1 = 1 + rng.standard_normal(n) * 10.0 ** rng.uniform(-7, -1, n)
    anywhere = np.exp2(rng.uniform(-149, 128, n))
    return {
        "ends": (x, y),
        "whole": (whole[0], whole[1]),
        "near 1": (near_1, rng.uniform(-150, 128, n) / np.log2(near_1)),
        "anywhere": (anywhere, rng.standard_normal(n) * 3),
    }


@pytest.mark.parametrize("kind", powers_of_float32())
def test_powers_of_float32(kind: str) -> None:
    """Within 4 units in the last place, and C's values at the ends, for a tensor and for a number as the exponent."""
    x, y = (np.ascontiguousarray(v.astype(np.float32).ravel()) for v in powers_of_float32()[kind])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        rounded = exact.astype(np.float32)
    got = tp.pow(tp.from_numpy(x), tp.from_numpy(y)).numpy()
    finite = np.isfinite(rounded) & np.isfinite(got)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(exact[finite]))
    unit = np.ldexp(1.0, np.maximum(np.frexp(exact[finite])[1], -125) - 24)
    assert np.max(np.abs(got[finite] - exact[finite]) / unit) < 4
    small = np.abs(exact) < 2**24
    whole = small & (exact == np.round(exact)) & (kind == "whole")
    np.testing.assert_array_equal(got[whole], exact[whole])
    for i in range(0, len(y), len(y) // 5):
        alike = tp.pow(tp.from_numpy(x), float(y[i])), tp.pow(tp.from_numpy(x), tp.full_like(tp.from_numpy(x), y[i]))
        if float(y[i]) not in (1, 2, 3, -1, -2, 0.5, -0.5):  # these are products and roots
            np.testing.assert_array_equal(alike[0].numpy(), alike[1].numpy())


def test_powers_of_special_numbers() -> None:
    """As NumPy has them, roots of the infinities and signs of zeros among them."""
    x = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, -1e-30]
    for exponent in (1, 2, 3, -1, -2, 0.5, -0.5, 2.5):
        with np.errstate(all="ignore"):
            expected = np.array(x) ** exponent if exponent != -0.5 else 1 / np.sqrt(np.array(x))
        got = np.array((tp.tensor(x, dtype=tp.float64) ** exponent).tolist())
        np.testing.assert_allclose(got, expected, rtol=1e-15)
        np.testing.assert_array_equal(np.signbit(got[:4]), np.signbit(expected[:4]))
    powers = (2 ** tp.tensor([0.0, 1.0, -1.0, 10.0, math.inf, -math.inf])).tolist()
    assert powers == [1, 2, 0.5, 1024, math.inf, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_division_is_exact(dtype: str) -> None:
    """Quotients of whole numbers and tenths, which rounding could put on the other side of a whole number."""
    numbers = np.arange(-20_000, 20_000, 7, dtype=dtype)
    for divisor in (0.1, 3, 7, -0.7, 1e-3):
        d = np.array(divisor, dtype=dtype)
        expected = [math.floor(Fraction(float(n)) / Fraction(float(d))) for n in numbers * d]
        assert (tp.tensor(numbers * d) // tp.tensor(d)).tolist() == expected
    x = tp.tensor([1.0, -1.0, 0.0, math.inf, -math.inf, 1.0, -1.0, 0.0, 2.0, math.nan], dtype=getattr(tp, dtype))
    y = [math.inf, math.inf, -math.inf, 2.0, 2.0, 0.0, 0.0, 0.0, math.nan, -math.inf]
    np.testing.assert_array_equal(
        (x // tp.tensor(y, dtype=getattr(tp, dtype))).tolist(),
        [0, -1, 0, math.nan, math.nan, math.inf, -math.inf] + [math.nan] * 3,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_are_exact(dtype: str) -> None:
    """Of numbers of all sizes, where blocks give up on the quick form, and of those where none has to; in place too."""
    random = np.random.default_rng(0)
    raw = random.integers(0, 1 << 32, (2, 1 << 14), dtype=np.uint64).astype(np.uint32).view(dtype)
    near = (random.integers(-500, 500, (2, 1 << 14)) * 0.1).astype(dtype)
    tiny = (random.integers(0, 99, (2, 1 << 10)) * np.finfo(dtype).smallest_subnormal).astype(dtype)
    for x, y in (raw, near, tiny):
        a, b = tp.tensor(x), tp.tensor(y)
        with np.errstate(all="ignore"):
            fmod = np.fmod(x, y)
            remainder = np.where((fmod != 0) & ((fmod < 0) != (y < 0)), fmod + y, fmod)
        for made, want in ((a.fmod(b), fmod), (a.remainder(b), remainder), (a.clone().remainder_(b), remainder)):
            np.testing.assert_array_equal(made.numpy(), want)
        np.testing.assert_array_equal(np.signbit(a.fmod(b).numpy())[fmod == 0], np.signbit(x)[fmod == 0])


def test_logit_of_a_wide_eps() -> None:
    """Where 1 - eps is below eps: what is below eps becomes that, and only the rest is held below 1 - eps."""
    x = tp.tensor([math.inf, -math.inf, 0.5, 1.0, 0.0, math.nan])
    expected = [-math.inf, math.inf, math.inf, -math.inf, math.inf, math.nan]
    np.testing.assert_array_equal(x.logit(1.0).tolist(), expected)
    high = math.log(0.7 / 0.3)
    np.testing.assert_allclose(x.logit(0.7).tolist(), [-high, high, high, -high, high, math.nan], rtol=1e-6)


def test_powers_of_bools() -> None:
    t = tp.tensor([True, False])
    for got, expected in ((t**True, [True, False]), (t**False, [True, True]), (t.clone().pow_(False), [True, True])):
        assert got.dtype == tp.bool and got.tolist() == expected
    assert (t**2).dtype == tp.int64


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "exp", "expm1", "tanh"])
@pytest.mark.parametrize("length", [1, 7, 31, 32, 33, 400])
def test_float32_functions_at_the_ends(name, length):
    """Zeros of both signs, infinities, NaN, negative and subnormal numbers, the least and the largest, and powers."""
    tiny, least, largest = np.float32(2.0**-149), np.finfo(np.float32).tiny, np.finfo(np.float32).max
    ends = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        -1.0,
        1.0,
        tiny,
        -tiny,
        3 * tiny,
        least,
        least - tiny,
        largest,
        -largest,
    ]
    x = np.array(
        [*ends, *(2.0**e * m for e in range(-140, 127, 7) for m in (0.7071, 1, 1.4142, 1.9999999))], np.float32
    )
    x = np.resize(np.roll(x, length), length) if length < len(x) else x
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
        wanted = exact.astype(np.float32)
        found = getattr(tp, name)(tp.from_numpy(x)).numpy()
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(wanted[~np.isnan(wanted)]))
        np.testing.assert_array_equal(found[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])
        finite = np.isfinite(wanted)
        spacing = np.maximum(np.spacing(np.abs(wanted[finite])), 2.0**-149)
        assert (np.abs(found[finite] - exact[finite]) <= 4 * spacing).all()


DIVISIONS = {
    "remainder": tp.remainder,
    "fmod": tp.fmod,
    "floor_divide": tp.floor_divide,
    "div, floor": lambda a, b: tp.div(a, b, rounding_mode="floor"),
    "div, trunc": lambda a, b: tp.div(a, b, rounding_mode="trunc"),
    "remainder_": lambda a, b: a.clone().remainder_(b),
}


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("dtype", [tp.uint8, tp.int8, tp.int16, tp.int32, tp.int64])
def test_a_divisor_is_zero_in_the_dtype_that_is_computed_in(name, dtype):
    """A number, or a tensor of no dimension, loses its high bits beside a narrower dtype."""
    values, bits = tp.tensor([5, 7], dtype=dtype), 8 * dtype.itemsize
    for divisor in (0, 1 << bits, 3 << bits) if bits < 62 else (0,):
        for given in (divisor, tp.tensor(divisor)):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                DIVISIONS[name](values, given)
    if bits < 62:
        assert DIVISIONS[name](values, (1 << bits) + 2).tolist() == DIVISIONS[name](values, 2).tolist()


def test_an_exponent_is_of_the_dtype_that_is_computed_in():
    for dtype, exponent in ((tp.uint8, 256), (tp.int8, 128), (tp.int16, 1 << 15), (tp.int32, 1 << 31)):
        with pytest.raises(RuntimeError, match="cannot be converted to type"):
            tp.tensor([5], dtype=dtype) ** exponent
    assert (tp.tensor([True]) ** 300).tolist() == [1]


def of_two_operands(dtype: tp.dtype) -> list[str]:
    """Functions of two tensors of the dtype, where a number may stand for the first."""
    return [
        name
        for name, info in TABLE.items()
        if info.op.kind == "functional"
        and info.op.pointwise is not None
        and len(info.op.schema.arguments) >= 2
        and all(str(argument.type) == "Tensor" for argument in info.op.schema.arguments[:2])
        and str(dtype).partition(".")[2] in map(str, info.dtypes)
        and hasattr(tp, name.partition(".")[0])
    ]


@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128, tp.float32, tp.int64], ids=str)
def test_a_number_holds_all_its_digits_beside_a_tensor(dtype: tp.dtype) -> None:
    """A number before a tensor is not rounded to the default dtype first; alone, numbers have the default dtype."""
    met, called = tp.float32 if dtype is tp.int64 else dtype, set()
    for name, x in itertools.product(of_two_operands(dtype), (tp.tensor([3.0, 0.7]), tp.tensor(3.0))):
        function = function_of(TABLE[name])
        try:
            ours = function(0.1, x.to(dtype))
        except (TypeError, NotImplementedError, RuntimeError):  # no number is taken there, or none of the kind
            continue
        expected = function(tp.tensor(0.1, dtype=met), x.to(dtype).to(met))
        assert ours.dtype == expected.dtype, name
        assert ours.isclose(expected, rtol=0, atol=0, equal_nan=True).all(), (name, ours, expected)
        called.add(name.partition(".")[0])
    assert {"add", "mul", "pow", "sub"} <= called
    if dtype is not tp.int64:  # the operators
        assert (0.1 / tp.ones(1, dtype=dtype)).item() == (0.1 * tp.ones(1, dtype=dtype)).item()
    for number in (0.1, 0.1j):
        assert tp.mul(number, 2).dtype == (tp.complex64 if isinstance(number, complex) else tp.float32)
        assert tp.add(number, 0.2).dtype == tp.mul(number, 2).dtype


@pytest.mark.parametrize("dtype", [tp.float64, tp.float32, tp.float16, tp.bfloat16], ids=str)
def test_a_number_is_found_in_every_dtype(dtype: tp.dtype) -> None:
    values = [0.1, 0.3, 0.7]
    x = tp.tensor(values, dtype=dtype)
    for place, value in enumerate(values):
        assert tp.isin(x, value).tolist() == [i == place for i in range(3)]
        assert tp.isin(value, x).item()
        assert tp.searchsorted(x, value).item() == tp.bucketize(value, x).item() == place
        assert tp.searchsorted(x, value, right=True).item() == place + 1
