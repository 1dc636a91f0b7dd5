"""What compile() refuses, and that the library is afterwards as before: each error is clear, nothing of it stays."""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy._compile import ReplayError
from tensorpy._dynamo import exc
from tensorpy._dynamo.testing import CompileCounter
from tensorpy.utils import extension

ALL = {"smallest": 0}
X = tp.arange(12.0).reshape(3, 4)


def steady(x: tp.Tensor) -> tp.Tensor:
    y = (x.sin() * 2 + 1).exp()
    return (y / y.sum(-1, keepdim=True)).cumsum(0)


STEADY = tp.compile(steady, options=ALL)


def state() -> tuple[Any, ...]:
    """What a function compiled before and one compiled now give, and what the library holds."""
    gc.collect()
    w = X.clone().requires_grad_()
    tp.compile(steady, mode="reduce-overhead")(w).square().sum().backward()
    assert w.grad is not None
    results = [STEADY(X), tp.compile(steady, options=ALL)(X), w.grad]
    modes = tp.compiler.is_compiling(), tp.is_grad_enabled(), tp._C._code_is_whole(), tp._dynamo.list_backends()
    return *(t.tolist() for t in results), *modes


@pytest.fixture(autouse=True)
def as_before() -> Any:
    before = state()
    yield
    assert state() == before


def refused(error: type[Exception], words: str) -> AbstractContextManager[Any]:
    return pytest.raises(error, match=words)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"mode": "fastest"}, "Unrecognized mode=fastest, should be one of: default, reduce-overhead"),
        ({"mode": "default", "options": {"tile": 4096}}, "Either mode or options can be specified"),
        ({"backend": "nvfuser"}, "Invalid backend: 'nvfuser', expected one of 'eager', .*'tensorpy'.* or a function"),
        ({"backend": 3}, "Invalid backend: 3"),
        ({"options": {"tiles": 1}}, r"Unexpected optimization option tiles, known options are \['smallest', 'tile'"),
        ({"options": {"tile": "big"}}, "Unexpected type of attr tile, got str, expected int"),
        ({"options": {"smallest": -1}}, "attr smallest is a number of bytes, got -1"),
        ({"dynamic": "yes"}, "dynamic has to be True, False or None, got str"),
    ],
)
def test_unknown_words(how: dict[str, Any], words: str) -> None:
    for made in (lambda: tp.compile(steady, **how), lambda: tp.compile(**how)(steady)):
        with refused(RuntimeError, words):
            made()
    module = nn.Linear(2, 2)
    with refused(RuntimeError, words):
        module.compile(**how)
    assert module(tp.ones(2)).shape == (2,)


@pytest.mark.parametrize("how", [{}, {"mode": "reduce-overhead"}, {"backend": CompileCounter()}], ids=" ".join)
def test_a_break_of_a_whole_function(how: dict[str, Any]) -> None:
    kept: list[tp.Tensor] = []

    def breaks(x: tp.Tensor) -> tp.Tensor:
        y = x * 3
        kept[:] = [y]
        return y if y.sum() > limit else -y

    limit = 0.0
    whole = tp.compile(breaks, fullgraph=True, **how)
    for _ in range(3):
        with refused(exc.Unsupported, rf"test_compile_errors\.py:{breaks.__code__.co_firstlineno + 3}"):
            whole(X)
        assert kept[0].equal(X * 3)  # what was noted before the error has values
    assert tp.compile(breaks, **how)(X).equal(X * 3)


def test_a_replay_that_differs() -> None:
    """What, where, and how to mend it; a call after it is the function's."""
    factor = 2.0

    def scaled(x: tp.Tensor) -> tp.Tensor:
        return x * factor

    fast = tp.compile(scaled, mode="reduce-overhead")
    for _ in range(6):
        assert fast(X).equal(X * 2)
    factor = 3.0
    fast(X)
    line = scaled.__code__.co_firstlineno + 1
    with refused(ReplayError, rf"something else than what is replayed: a number .*:{line}\. .*has to be an argument"):
        fast(X)
    assert all(fast(X).equal(X * 3) for _ in range(20))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x.exp() @ x, RuntimeError),
        (lambda x: (x + 1).index_select(0, tp.tensor([7])), IndexError),
        (lambda x: nn.functional.cross_entropy(x + 1, tp.tensor([0, 9, 1])), IndexError),
        (lambda x: tp.linalg.inv((x + 1)[:, :3] * 0), tp.linalg.LinAlgError),
        (lambda x: (x + 1).view(5), RuntimeError),
        (lambda x: (x + 1).nothing, AttributeError),
    ],
)
@pytest.mark.parametrize(
    "how", [{"options": ALL}, {"mode": "reduce-overhead"}, {"backend": CompileCounter()}], ids=" ".join
)
def test_errors_of_operators(function: Callable[[tp.Tensor], Any], error: type[Exception], how: dict[str, Any]) -> None:
    """Their class and words are the operator's, and the traceback ends in the line that called it."""
    with pytest.raises(error) as plain:
        function(X)
    compiled = tp.compile(function, **how)
    for _ in range(5):
        with pytest.raises(error) as got:
            compiled(X)
        assert str(got.value) == str(plain.value)
        assert any(entry.name == "<lambda>" for entry in got.traceback[-2:])


FAILS = r"""
#include "tensorpy/library.h"
__attribute__((visibility("default"))) int calls_that_fail = 0;
TENSORPY_KERNEL(int, total, (tp_tensor *, x), (tp_ints, dim), (tp_tensor *, out)) {
    tp_view from = tp_view_of(x), to = tp_view_of(out);
    if (calls_that_fail && calls_that_fail--) return tp_fail(TP_ValueError, "no sum of %d rows", (int)from.sizes[0]);
    ((float *)to.data)[0] = 0;
    for (int64_t i = 0; i < from.numel; i++) ((float *)to.data)[0] += ((const float *)from.data)[i];
    return 0;
}
TENSORPY_LIBRARY_IMPL(prim, CPU, m) { return tp_impl(m, "reduce.sum", total); }
"""


def test_an_error_of_a_kernel_that_runs_at_the_end(tmp_path: Path) -> None:
    """It names the operator and its line; tensors without values say so."""
    path = extension.load_inline("fails_at_the_end", FAILS, build_directory=tmp_path)
    kept: list[tp.Tensor] = []

    def sums(x: tp.Tensor) -> tp.Tensor:
        kept[:] = [(x + 1).sum()]
        return kept[0] * 2

    try:
        fails = ctypes.c_int.in_dll(ctypes.CDLL(path), "calls_that_fail")
        compiled = tp.compile(sums, options=ALL)
        expected = compiled(X)
        line = re.escape(f"{__file__}:{sums.__code__.co_firstlineno + 1}")
        for _ in range(2):
            fails.value = 1
            with refused(ValueError, rf"^sum, called earlier in a compiled function \({line}\): no sum of 3"):
                compiled(X)
            with refused(RuntimeError, "a tensor has no values"):
                kept[0].item()
            assert compiled(X).equal(expected) and kept[0] * 2 == expected
        fails.value = 1
        with pytest.raises(ValueError, match="no sum of 3 rows") as error:
            tp.compile(sums, backend="eager")(X)
        assert error.traceback[-1].name == "sums" and error.traceback[-1].lineno + 1 == sums.__code__.co_firstlineno + 1
    finally:
        tp.ops.unload_library(path)
