"""Every word of formulas compiles in a library from outside: what a formula calls in C is on the public headers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import ops
from tensorpy.utils.extension import load_yaml

YAML = """
- func: numbers(Tensor self, Scalar s, int i, float f) -> Tensor
  composite: |
    number = float(s) + f + abs(f) + sqrt(f) + exp(f) + log(f)
    whole = int(s) + abs(i) + max(i, 2) + min(i, 2) + i // 2 + i % 3
    whole = whole + self.numel() + self.dim() + self.size(0) + self.stride(-1) + self.storage_offset()
    scaled = (s * 2 + 1 - s / 2) ** 2
    kept = s if s < 3 and s != 2 or not bool(s) else -s
    self * number + whole * scaled + kept
- func: of_scalar(Tensor self, Scalar s) -> Tensor
  composite: self * (s.conj() * s.exp() * s.log() * s.sqrt() if s.is_complex() else exp(s) * log(s) * sqrt(s))
- func: chosen(Tensor self, Tensor[] list, int[] ints, int? maybe, str word, ScalarType? dtype, Device? device) ->
    (Tensor, Tensor)
  composite: |
    if self.dtype == float64:
        raise TypeError(f"chosen: {self.dtype}, {self.shape}, {word}, {len(ints)}")
    if device is not None and self.device != device:
        raise RuntimeError("chosen: another device")
    sizes = self.shape[1:] + ints
    first = list[0].conj() if len(list) > 0 else self
    at = ints[-1] if len(ints) > 0 else 0
    if word == "sum" and self.shape == first.shape or is_grad_enabled() and self.is_complex():
        first = first.sum(ints)
    count = maybe if maybe is not None else at
    (self.to(dtype) if dtype is not None else self * count, first.reshape(sizes) if word == "shape" else first)
"""


@pytest.fixture(scope="module")
def words() -> Iterator[Any]:
    path = load_yaml("words_of_formulas", YAML)
    yield ops.words_of_formulas
    ops.unload_library(path)


def test_numbers(words: Any) -> None:
    s, i, f = 2, 5, 1.5
    number = s + f + abs(f) + math.sqrt(f) + math.exp(f) + math.log(f)
    whole = s + 5 + 5 + 2 + 2 + 2 + (6 + 2 + 2 + 1 + 0)
    want = number + whole * (s * 2 + 1 - s / 2) ** 2 - s
    tp.testing.assert_close(words.numbers(tp.ones(2, 3), s, i, f), tp.full((2, 3), want))
    with pytest.raises(RuntimeError, match=r"cannot be converted to type double"):
        words.numbers(tp.ones(2), 2 + 1j, i, f)


def test_numbers_of_any_kind(words: Any) -> None:
    x = tp.ones(2)
    tp.testing.assert_close(words.of_scalar(x, 2), x * (math.exp(2) * math.log(2) * math.sqrt(2)))
    z = tp.tensor(1 + 2j)
    tp.testing.assert_close(words.of_scalar(x, 1 + 2j), x * z.conj() * z.exp() * z.log() * z.sqrt())


def test_lists_texts_types_and_devices(words: Any) -> None:
    x = tp.ones(2, 3)
    a, b = words.chosen(x, [x], [0], None, "sum", tp.float64, tp.device("cpu"))
    assert a.dtype == tp.float64 and b.tolist() == [2.0, 2.0, 2.0]
    a, b = words.chosen(x, [], [2], None, "shape", None, None)
    assert a.tolist() == (x * 2).tolist() and b.shape == (3, 2)
    with pytest.raises(TypeError, match=r"chosen: Double, \[2, 3\], word, 1"):
        words.chosen(x.double(), [], [1], 1, "word", None, None)
    with pytest.raises(RuntimeError, match="another device"):
        words.chosen(x, [], [1], 1, "word", None, tp.device("meta"))
