"""Numbers and shapes at the edge, each as PyTorch 2.13 has it."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
from opencl_programs import ROOT

import tensorpy as tp
import tensorpy.nn.functional as F

INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
NUMBERS = [
    3e9, -3e9, 1e20, -1e20, math.nan, math.inf, -math.inf, 4e4, 7e4, 256.0, 300.7, -1.0, -1.9, -300.2, 2.0**31,
    -(2.0**31), 2.0**31 - 128, 2.0**63, -(2.0**63), 0.0, -0.0, 127.9, 128.0, -129.0,
]  # fmt: skip


def cut(number: float, bits: int, signed: bool) -> int:
    """What x86 converts a float to, and what is left of it in a dtype."""
    wide = 64 if bits == 64 else 32
    fits = math.isfinite(number) and -(2 ** (wide - 1)) <= int(number) < 2 ** (wide - 1)
    left = (int(number) if fits else -(2 ** (wide - 1))) % 2**bits
    return left - 2**bits if signed and left >= 2 ** (bits - 1) else left


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("of", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["one", "row", "strided"])
def test_floats_become_integers(of: str, to: str, layout: str) -> None:
    """Alone and in rows that are computed by vectors, finite or not."""
    dtype, bits = getattr(tp, to), int(to.lstrip("uint"))
    held = tp.tensor(NUMBERS, dtype=getattr(tp, of))
    expected = [cut(v, bits, to.startswith("i")) for v in held.double().tolist()]
    if layout == "one":
        assert [v.to(dtype).item() for v in held] == expected
    elif layout == "row":
        assert held.repeat(9).to(dtype).tolist() == expected * 9
    else:
        assert held[:, None].expand(-1, 3).clone()[:, 1].to(dtype).tolist() == expected


@pytest.mark.parametrize("n", [2, 15, 100])
@pytest.mark.parametrize("dim", [0, 1])
def test_log_softmax_of_large_numbers(n: int, dim: int) -> None:
    """The largest is taken away before the logarithm is."""
    x = tp.arange(n).double().neg()
    expected = x.log_softmax(0)
    rows = (x + 2.0**24).float().repeat(3, 1)
    assert rows[0, 1] - rows[0, 0] == -1
    got = rows.log_softmax(1) if dim else rows.t().contiguous().log_softmax(0).t()
    for row in got:
        tp.testing.assert_close(row.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.complex64, tp.complex128])
@pytest.mark.parametrize("at", [0, 2])
def test_cholesky_of_nan(upper: bool, dtype: tp.dtype, at: int) -> None:
    """The minor that a NaN is in is not positive."""
    a = tp.eye(4, dtype=dtype).repeat(2, 1, 1)
    a[1, at, at] = math.nan
    assert tp.linalg.cholesky_ex(a, upper=upper).info.tolist() == [0, at + 1]
    with pytest.raises(tp.linalg.LinAlgError):
        tp.linalg.cholesky(a, upper=upper)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (-math.inf, math.inf, "from is out of bounds"),
        (0.0, math.inf, "to is out of bounds"),
        (math.nan, 1.0, "from is out of bounds"),
        (0.0, math.nan, "to is out of bounds"),
        (-3e38, 3e38, "uniform_ expects to-from <= std::numeric_limits<Float>::max"),
        (0.0, 1e39, "to is out of bounds"),
    ],
)
def test_uniform_needs_a_range_that_the_dtype_has(low: float, high: float, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        tp.empty(2).uniform_(low, high)
    if abs(low) < 1e38 and abs(high) < 1e40:
        tp.empty(2, dtype=tp.float64).uniform_(low, high)


@pytest.mark.parametrize("sizes", [(0,), (0, 1), (1, 0), (0, 0), (1, 1, 0)])
def test_convolution_with_a_kernel_of_nothing(sizes: tuple[int, ...]) -> None:
    n = len(sizes)
    x, w = tp.ones(1, 1, *[3] * n), tp.ones(1, 1, *sizes)
    for name in (f"conv{n}d", f"conv_transpose{n}d"):
        with pytest.raises(RuntimeError, match="kernel size should be greater than zero"):
            getattr(F, name)(x, w)


ORDERS = ("sort", "sort of columns", "argsort", "topk", "topk of columns", "kthvalue", "mode", "median", "cat")
FACTORS = ("linalg_lu", "qr", "complex", "max.dim", "min.dim", "poisson", "tril", "triu", "softmax", "gather")


@pytest.mark.parametrize("names", [ORDERS, FACTORS], ids=["orders", "others"])
def test_a_tensor_is_swapped_while_operators_read_it(names: tuple[str, ...]) -> None:
    """swapping.py in a process of its own, which a read out of bounds ends."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *sys.path])}
    program = [sys.executable, str(ROOT / "tests" / "swapping.py"), *names]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, f"at {done.stdout.splitlines()[-1:]}: exit {done.returncode}\n{done.stderr[-2000:]}"
