"""_scaled_mm: products of 8-bit floats with scales, against PyTorch and against products of float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:TF32")
FORMATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


@pytest.fixture(autouse=True)
def own_kernels() -> Iterator[None]:
    """PyTorch's own: those of oneDNN, on CPUs with AMX, take fewer dtypes and round in other places."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def matrices(module: Any, a: str, b: str, shape: tuple[int, int, int] = (16, 32, 16)) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    m, k, n = shape
    x, y = rng.standard_normal((m, k)).astype("float32"), rng.standard_normal((n, k)).astype("float32")
    return module.from_numpy(x).to(getattr(module, a)), module.from_numpy(y).to(getattr(module, b)).t()


def both(call: Any) -> tuple[Any, Any]:
    return call(torch), call(tp)


def check_equal(expected: Any, got: Any) -> None:
    assert str(got.dtype).rpartition(".")[2] == str(expected.dtype)[6:]
    np.testing.assert_allclose(got.double().numpy(), expected.double().numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("a", FORMATS)
@pytest.mark.parametrize("b", FORMATS[:2])
@pytest.mark.parametrize("out", [None, "float32", "bfloat16", "float16", "float64", "float8_e5m2"])
def test_products(a: str, b: str, out: str | None) -> None:
    """In the dtype that is asked for; without one in the first matrix's."""

    def call(m: Any) -> Any:
        x, y = matrices(m, a, b)
        return m._scaled_mm(x, y, m.tensor(2.0), m.tensor(0.5), out_dtype=out and getattr(m, out))

    check_equal(*both(call))


@pytest.mark.parametrize("out", [None, "float32", "float8_e4m3fn"])
def test_scales_and_bias(out: str | None) -> None:
    """Scales of rows and columns; a bias in any dtype; the result's scale counts where 8 bits are asked for."""

    def calls(m: Any) -> list[Any]:
        x, y = matrices(m, "float8_e4m3fn", "float8_e4m3fn")
        dtype = out and getattr(m, out)
        rows, columns = m.arange(1.0, 17).reshape(16, 1), m.arange(1.0, 17).reshape(1, 16) / 8
        one, bias = m.tensor(1.0), m.arange(16.0)
        return [
            m._scaled_mm(x, y, rows, columns, out_dtype=dtype),
            m._scaled_mm(x, y, one, one, bias, out_dtype=dtype),
            m._scaled_mm(x, y, one, one, bias.to(m.bfloat16), out_dtype=dtype),
            m._scaled_mm(x, y, one, one, bias.reshape(1, 16), out_dtype=dtype),
            m._scaled_mm(x, y, one, one[None, None], scale_result=one * 2, out_dtype=dtype),
            m._scaled_mm(x, y, one, one, out_dtype=dtype, use_fast_accum=True),
            m._scaled_mm(x[:0], y, one, one, out_dtype=dtype),
            m._scaled_mm(x[:, :0], y[:0], one, one, out_dtype=dtype),
        ]

    for expected, got in zip(*both(calls), strict=True):
        check_equal(expected, got)


def test_out() -> None:
    def call(m: Any) -> list[Any]:
        x, y = matrices(m, "float8_e4m3fn", "float8_e5m2")
        one, outs = m.tensor(3.0), [m.empty(16, 16), m.empty(16, 16, dtype=m.bfloat16)]
        for out in outs:
            assert m._scaled_mm(x, y, one, one, out=out) is out
        m._scaled_mm(x, y, one, one, out_dtype=m.float32, out=outs[0])
        return outs

    for expected, got in zip(*both(call), strict=True):
        check_equal(expected, got)


def test_what_is_refused() -> None:
    """With PyTorch's class of error, and the beginning of its message."""

    def calls(m: Any) -> list[Any]:
        x, y = matrices(m, "float8_e4m3fn", "float8_e4m3fn")
        one, S = m.tensor(1.0), m._scaled_mm
        return [
            lambda: S(x, y[:31], one, one),
            lambda: S(x[0], y, one, one),
            lambda: S(x, y[0], one, one),
            lambda: S(x.float(), y, one, one),
            lambda: S(x, y, one.double(), one),
            lambda: S(x, y, m.ones(2), one),
            lambda: S(x, y, m.ones(16, 2), m.ones(2, 16)),
            lambda: S(x, y, one, one, m.ones(15)),
            lambda: S(x, y, one, one, out_dtype=m.bfloat16, out=m.empty(16, 16)),
        ]

    for theirs, ours in zip(*both(calls), strict=True):
        with pytest.raises((RuntimeError, ValueError)) as expected:
            theirs()
        with pytest.raises(expected.type) as got:
            ours()
        assert str(got.value)[:20] == str(expected.value)[:20]
