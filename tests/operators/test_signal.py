"""signal.windows: values are PyTorch's, of windows of any length, symmetric and periodic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.signal import windows

OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {} for name in windows.__all__},
    "exponential": {"tau": 2.5},
    "gaussian": {"std": 1.7},
    "kaiser": {"beta": 5.0},
    "general_cosine": {"a": [0.5, 0.3, 0.1]},
    "general_hamming": {"alpha": 0.6},
}


@pytest.mark.parametrize("name", windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
def test_values_are_torchs(name: str, sym: bool) -> None:
    torch = pytest.importorskip("torch")
    for length in (0, 1, 2, 5, 8):
        ours = getattr(windows, name)(length, sym=sym, dtype=tp.float64, **OPTIONS[name])
        theirs = getattr(torch.signal.windows, name)(length, sym=sym, dtype=torch.float64, **OPTIONS[name])
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-9, 1e-12)


def test_arguments() -> None:
    assert windows.hann(4).dtype is tp.get_default_dtype()
    assert windows.hann(4, requires_grad=True).requires_grad
    assert windows.exponential(4, center=1.0, sym=False)[1] == 1


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: windows.hann(-1), ValueError, "non-negative window length"),
        (lambda: windows.hann(3, dtype=tp.float16), ValueError, "float32 or float64"),
        (lambda: windows.gaussian(3, std=-1.0), ValueError, "positive"),
        (lambda: windows.exponential(3, tau=0.0), ValueError, "positive"),
        (lambda: windows.exponential(3, center=1.0), ValueError, "symmetric"),
        (lambda: windows.kaiser(3, beta=-1.0), ValueError, "non-negative"),
        (lambda: windows.general_cosine(3, a=[]), ValueError, "empty"),
        (lambda: windows.general_cosine(3, a=3), TypeError, "list"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
