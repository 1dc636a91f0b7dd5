"""Pointwise calls that a reduction takes as they are made, on OpenCL: the bits of what lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from devices import dtypes_of
from opencl_programs import ROOT, needs_device, output_of
from test_compile_reductions import FOLDS, Fold, same_bits

import tensorpy as tp
from tensorpy.testing.checks import bits
from tensorpy.utils._pytree import tree_leaves

pytestmark = needs_device
SHAPES = [(70000,), (64, 192), (40, 130), (20000, 3), (2, 5, 3, 7, 64)]


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = tp.opencl.fused_kernels, tp.opencl.fallback
    tp.opencl.fused_kernels, tp.opencl.fallback = "wait", "allow"
    yield
    tp.opencl.fused_kernels, tp.opencl.fallback = before


def compiled(function: Callable[..., Any]) -> Any:
    return tp.compile(function, options={"smallest": 0})


def drawn(shape: tuple[int, ...], seed: int, dtype: tp.dtype = tp.float32) -> tp.Tensor:
    return tp.randn(shape, generator=tp.Generator().manual_seed(seed)).mul(3).to(dtype).to("opencl")


def dims_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    n = len(shape)
    return list(dict.fromkeys([(0,), (n - 1,), tuple(range(0, n, 2)), tuple(range(n))]))


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits(fold: str, shape: tuple[int, ...]) -> None:
    function, dtypes = FOLDS[fold]
    every = shape == (64, 192)
    for dtype in [d for d in dtypes if str(d).removeprefix("tensorpy.") in dtypes_of("opencl")][: None if every else 1]:
        a, b = drawn(shape, 1, dtype), drawn(shape, 2, dtype)
        for dim in dims_of(shape)[every:]:
            assert same_bits(lambda a, b, dim=dim: (function(a * b + a, dim),), a, b), (dtype, dim)
    assert same_bits(lambda a, b, dim=dim: (v := a * b + a, function(v, dim)), a, b), dim


# What depends on which elements share a block, and what does not.
MAPS: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "of vectors": lambda v: v.exp() * 0.5,
    "quick": lambda v: (v * 1e3).sin() + v.cos(),
    "of two": lambda v: (v.abs() + 1).pow(v).clamp(0, 1e6),
    "stored": lambda v: v.to(tp.bfloat16).tanh(),
}


@pytest.mark.parametrize("of", MAPS)
@pytest.mark.parametrize("shape", [(64, 192), (100, 90), (70001,)], ids=str)
def test_blocks(of: str, shape: tuple[int, ...]) -> None:
    x, row = drawn(shape, 3), drawn(shape[-1:], 4)
    x.view(-1)[5::731] = float("inf")
    x.view(-1)[9::337] = 1e20
    for dim in dims_of(shape)[:2]:
        assert same_bits(lambda x, d=dim: (MAPS[of](x + 1).sum(d),), x)
        assert same_bits(lambda x, r, d=dim: (v := MAPS[of](x * r), v.amax(d, keepdim=True)), x, row)


@pytest.mark.parametrize("width", [64, 100])
def test_broadcasts_slices_and_other_sizes(width: int) -> None:
    x, row, column, wide = drawn((80, width), 1), drawn((width,), 2), drawn((80, 1), 3), drawn((80, 3 * width), 4)
    fold: Fold
    for fold in (lambda v, d: v.sum(d), lambda v, d: v.amax(d)):
        for d in ((0,), (1,), (0, 1)):
            assert same_bits(lambda x, r, c, d=d, f=fold: (f((x - c).exp() * r, d),), x, row, column)
            assert same_bits(lambda w, c, d=d, f=fold: (f(w.chunk(3, -1)[1] * w[:, :width] + c, d),), wide, column)
        for view in ((-1,), (8, 10, width)):
            assert same_bits(lambda x, r, view=view, f=fold: (f((x * r).view(view), (-1,)),), x, row)
            assert same_bits(lambda x, r, view=view, f=fold: (v := x * r, f(v.view(view), (0,))), x, row)


def test_in_place() -> None:
    def f(a: tp.Tensor) -> tuple[tp.Tensor, ...]:
        a = a.clone()
        a.mul_(2).add_(1)
        return a, (a > 0).any(), a.view(-1).sum(), a.amax(1)

    assert same_bits(f, drawn((192, 256), 1))


def softmax(x: tp.Tensor) -> tp.Tensor:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def test_what_runs_as_one() -> None:
    x, fast = drawn((64, 256), 1), compiled(softmax)
    fast(x)
    plan = tp.compiler.explain(fast)(x)
    assert [u.operators for u in plan.groups] == [("sub.Tensor", "exp", "sum.dim_IntList", "div.Tensor")]
    assert plan.unstored == 2 * x.nbytes  # the powers are computed again when their sum is known
    assert bits(fast(x)) == bits(softmax(x))


# What a reduction's values are to do after it, and how many bytes per element of x are never in memory then.
AGAIN: dict[str, tuple[Callable[[tp.Tensor], Any], int]] = {
    "once more": (lambda x: (v := x.exp(), v / v.sum(1, keepdim=True))[1], 4),
    "in a chain": (lambda x: (v := x.exp() + 1, (v - v.mean(1, keepdim=True)).abs() * 2)[1], 16),
    "in a second reduction": (lambda x: (v := x.exp(), (v - v.mean(1, keepdim=True)).square().sum(1))[1], 12),
    "returned": (lambda x: (v := x.exp(), v / v.sum(1, keepdim=True)), 0),
    "needed later": (lambda x: (v := x.exp(), v / v.sum(1, keepdim=True), v.cumsum(0))[1:], 0),
    "of more than it gives": (lambda x: (v := x * x.flip(0) * x.roll(1), v / v.sum(1, keepdim=True))[1], 4),
    "written over": (lambda x: (v := x.exp(), s := v.sum(1, keepdim=True), x.mul_(2), v / s)[3], 4),
    "of many calls": (lambda x: (v := x.exp() + x * x - x.sin(), v / v.sum(1, keepdim=True))[1], 16),
}


@pytest.mark.parametrize("after", AGAIN)
def test_what_is_computed_again(after: str) -> None:
    function, unstored = AGAIN[after]
    x, other = drawn((64, 256), 1), drawn((64, 256), 1)
    fast = compiled(function)
    for made, right in zip(tree_leaves(fast(x)), tree_leaves(function(other)), strict=True):
        assert bits(made) == bits(right)
    assert bits(x) == bits(other)
    assert tp.compiler.explain(fast)(x).unstored == unstored * x.numel()


def test_where_the_device_cannot_have_the_kernel() -> None:
    """Blocks that a line is not made of: the calls of map are one kernel, and the reduction one of its own."""
    x = drawn((60, 90), 1)
    fast = compiled(lambda x: ((x * 1e3).sin() * 2).sum(1))
    assert bits(fast(x)) == bits(((x * 1e3).sin() * 2).sum(1))
    assert fast._report()["fused"] == 4
    many = compiled(lambda x: sum(tp.where(x > k, x.clamp(-k, 20 + k), x) for k in range(40)).sum())  # type: ignore[attr-defined]
    assert bits(many(x)) == bits(sum(tp.where(x > k, x.clamp(-k, 20 + k), x) for k in range(40)).sum())  # type: ignore[attr-defined]


def test_one_by_one_until_the_kernel_is_there() -> None:
    tp.opencl.fused_kernels = "background"
    x, fast = drawn((65, 256), 1), compiled(lambda x: (x * 3 - 1).exp2().mean(1))
    right = bits((x * 3 - 1).exp2().mean(1))
    assert tp.compiler.explain(fast)(x).groups == []
    assert bits(fast(x)) == right
    tp._C._opencl.await_builds()
    assert [u.operators for u in tp.compiler.explain(fast)(x).groups] == [
        ("mul.Scalar", "sub.Scalar", "exp2", "mean.dim")
    ]
    assert bits(fast(x)) == right


def test_numbers_and_sizes_build_no_second_kernel() -> None:
    fast = compiled(lambda x, by: (x * by + 1).sum(1))
    fast(drawn((64, 256), 1), 0.5)
    before = tp.opencl.cache_info()["built"]
    for rows, by in ((64, 0.75), (70, 2.5), (640, 1.5)):
        fast(drawn((rows, 256), 2), by)
    assert tp.opencl.cache_info()["built"] == before


@pytest.mark.parametrize("tuning", ["cpu", "gpu"])
def test_kernels_of_the_other_kind(tuning: str) -> None:
    program = """
        import itertools
        import tensorpy as tp
        from test_compile_opencl_reductions import MAPS, drawn, dims_of, same_bits
        tp.opencl.fused_kernels = "wait"
        folds = (lambda v, d: v.sum(d), lambda v, d: v.amax(d), lambda v, d: (v > 1).any(d), lambda v, d: v.mean(d))
        for shape in ((30000,), (64, 192), (3, 7, 320)):
            x, row = drawn(shape, 1), drawn(shape[-1:], 2)
            for dim, fold in itertools.product(dims_of(shape)[:2], folds):
                assert same_bits(lambda x, r: (fold((x * r + 1).exp() - x, dim),), x, row)
                assert same_bits(lambda x: (v := x.half().sin() * x, fold(v, dim)), x)
        fast = tp.compile(lambda x: (x * 2 + 1).sum(0), options={"smallest": 0})
        print(tp.compiler.explain(fast)(x).groups[0].operators)
    """
    path = ":".join(str(ROOT / name) for name in ("", "tests", "tests/tracing"))
    assert (
        output_of(program, TENSORPY_OPENCL_TUNING=tuning, PYTHONPATH=path)
        == "('mul.Scalar', 'add.Scalar', 'sum.dim_IntList')"
    )


def test_gradients() -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        x, w = drawn((64, 128), 1), drawn((128,), 2).requires_grad_()
        loss = wrap(lambda x: softmax(x * w).square().mean() + (w * 2).exp().sum())
        for _ in range(3):
            loss(x).backward()
        return [bits(w.grad)]  # type: ignore[arg-type]

    assert run(compiled) == run(lambda f: f)
