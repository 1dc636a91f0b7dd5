"""Operators over lists of tensors: each against the operator that it calls for each place, and against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from side_by_side import Scenarios, compare, error_of, filled

import tensorpy as tp
from tensorpy.testing.samples.table import CATALOG

scenario = Scenarios()

NAMES = sorted({op.schema.name.unqualified for op in CATALOG if op.function.origin.each})
UNARY = [
    n
    for n in NAMES
    if not n.endswith("_")
    and [str(op.schema) for op in CATALOG.overloads(n) if op.kind != "out"] == [f"{n}(Tensor[] self) -> Tensor[]"]
]
UNARY.remove("_foreach_max")
BINARY = [f"_foreach_{n}" for n in ("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow")]
TERNARY = ["_foreach_addcmul", "_foreach_addcdiv"]


def tensors(t: Any, dtype: str = "float32", shift: float = 1.5) -> list[Any]:
    """Positive and not too large; one is a matrix that is not contiguous, one has a single element."""
    made = [filled(t, 3) + shift, filled(t, 4, 2).t() + shift, filled(t, 1) + shift]
    return [x.to(dtype=getattr(t, dtype)) for x in made]


def test_the_names_are_torchs():
    """All public list operators of torch."""
    torch = pytest.importorskip("torch")
    theirs = {name for name in dir(torch) if name.startswith("_foreach_")}
    assert theirs <= set(NAMES)
    assert all(callable(getattr(tp.ops.aten, name)) for name in NAMES)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: str) -> None:
    def tell(t: Any) -> Any:
        given = [x * 0.5 for x in tensors(t, dtype, 0.4)]
        made = getattr(t, name)(given)
        written = [x.clone() for x in given]
        assert getattr(t, name + "_")(written) is written
        assert [w._version for w in written] == [1, 1, 1]
        return [[x.float() for x in made], [x.float() for x in written]] if dtype != "bfloat16" else len(made)

    compare(tell)
    if dtype == "bfloat16":
        given = tensors(tp, dtype, 0.4)
        one = getattr(tp, name.removeprefix("_foreach_"))
        for got, x in zip(getattr(tp, name)(given), given, strict=True):
            np.testing.assert_array_equal(got.float().numpy(), one(x).float().numpy())


@pytest.mark.parametrize("name", UNARY)
def test_out(name: str) -> None:
    """The variants that write to lists, which tensorpy.ops has alone, as in torch."""
    given = [x * 0.5 for x in tensors(tp, shift=0.4)]
    out = [tp.empty(x.shape) for x in given]
    assert getattr(tp.ops.aten, name).out(given, out=out) is None
    for written, wanted in zip(out, getattr(tp, name)(given), strict=True):
        np.testing.assert_array_equal(written.numpy(), wanted.numpy())
    with pytest.raises(TypeError):
        getattr(tp, name)(given, out=out)


def operands(t: Any) -> list[Any]:
    """Of binary operators: a number, a list of tensors, a list of numbers."""
    return [2, 0.75, tensors(t, shift=0.5), [1, 2.5, 3]]


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    def tell(t: Any) -> Any:
        seen = []
        for other in operands(t):
            given, written = tensors(t), tensors(t)
            seen.append(getattr(t, name)(given, other))
            getattr(t, name + "_")(written, other)
            seen.append(written)
        return seen

    compare(tell)


@pytest.mark.parametrize("name", TERNARY)
def test_ternary(name: str) -> None:
    def tell(t: Any) -> Any:
        seen = []
        for value in (2, [1, 2.5, 3], t.tensor([0.5, 1.0, 2.0])):
            given, written = tensors(t), tensors(t)
            a, b = tensors(t, shift=0.5), tensors(t, shift=2.0)
            seen.append(getattr(t, name)(given, a, b, value))
            getattr(t, name + "_")(written, a, b, value)
            seen.append(written)
        return seen

    compare(tell)


@scenario
def others(t: Any) -> Any:
    given, end = tensors(t), tensors(t, shift=3.0)
    written = [tensors(t) for _ in range(5)]
    t._foreach_lerp_(written[0], end, 0.25)
    t._foreach_lerp_(written[1], end, [0.1, 0.2, 0.3])
    t._foreach_lerp_(written[2], end, tensors(t, shift=0.1))
    t._foreach_copy_(written[3], [x.double() for x in end])
    t._foreach_zero_(written[4])
    return [
        written,
        t._foreach_lerp(given, end, 0.25),
        t._foreach_lerp(given, end, [0.1, 0.2, 0.3]),
        t._foreach_lerp(given, end, tensors(t, shift=0.1)),
        t._foreach_max(given),
        t._foreach_norm(given),
        t._foreach_norm(given, 1),
        t._foreach_norm(given, float("inf"), t.float64),
        t._foreach_pow(2.0, given),
        t._foreach_add(given, end, alpha=0.5),
        t._foreach_sub(given, end, alpha=2),
        t._foreach_add(given, t.tensor(2.0), alpha=3),
        t._foreach_mul(given, t.tensor(2.0)),
        t._foreach_div(given, t.tensor(2.0)),
        t._foreach_mm([filled(t, 2, 3), filled(t, 3, 3)], [filled(t, 3, 2), filled(t, 3, 3)]),
        [x.stride() for x in t._foreach_clone(given)],
    ]


@scenario
def dtypes(t: Any) -> Any:
    """Numbers and tensors promote place by place."""
    mixed = [t.tensor([1, 2]), t.tensor([1.5]), t.tensor([True, False])]
    made = [
        *t._foreach_add(mixed, 1.5),
        *t._foreach_mul(mixed, mixed),
        *t._foreach_sqrt(mixed),
        *t._foreach_div(mixed, 2),
    ]
    return [[x, str(x.dtype)] for x in made]


@scenario
def errors(t: Any) -> Any:
    a = tensors(t)
    calls = [
        lambda: t._foreach_add([], 1),
        lambda: t._foreach_abs_([]),
        lambda: t._foreach_add(a, a[:1]),
        lambda: t._foreach_add(a, [1.0]),
        lambda: t._foreach_mul(a, t.tensor([2.0, 3.0])),
        lambda: t._foreach_addcmul(a, a, a, t.tensor([2.0])),
        lambda: t._foreach_addcmul(a, a, a, t.tensor([[2.0]])),
        lambda: t._foreach_addcmul(a, a, a[:1], 1),
        lambda: t._foreach_addcdiv_(a, a, a, [1.0]),
        lambda: t._foreach_copy_(a, a[:2]),
        lambda: t._foreach_lerp(a, a, [a[0]]),
        lambda: t._foreach_abs(iter(a)),
        lambda: t._foreach_exp_([t.tensor([1, 2])]),
    ]
    return [error_of(call) for call in calls]


@scenario
def gradients(t: Any) -> Any:
    """A graph is recorded place by place."""
    given = [x.detach().requires_grad_() for x in tensors(t)]
    scaled = t._foreach_mul(given, 2.0)
    t._foreach_add_(scaled, [x.detach() for x in given])
    t._foreach_exp_(scaled)
    parts = [*t._foreach_addcmul(given, scaled, scaled, 0.5), *t._foreach_maximum(given, tensors(t))]
    sum(x.sum() for x in [*parts, *t._foreach_norm(given)]).backward()
    leaf = error_of(lambda: t._foreach_mul_(given, 2.0))
    with t.no_grad():
        t._foreach_mul_(given, 2.0)
    return [[x.grad for x in given], leaf, [x._version for x in given], given]


@scenario
def unscaled(t: Any) -> Any:
    """The gradients of a GradScaler."""
    seen = []
    for bad in (1.0, float("inf"), float("nan")):
        given, found = [*tensors(t), t.tensor([bad, 2.0])], t.zeros(1)
        t._amp_foreach_non_finite_check_and_unscale_(given, found, t.tensor(0.5))
        seen.append([given[:3], found])
    return seen


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)


def test_saved_values_are_watched():
    """What is written in place counts for the graph, on the way past the layers too."""
    x = tp.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp()
    kept = z.detach()
    tp._foreach_mul_([kept], 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_versions_of_a_call_that_fails() -> None:
    """What was written before the error counts, as of the calls one by one, and says who wrote it."""
    x = tp.ones(3, requires_grad=True)
    saved, integers, rest = x.exp().detach(), tp.arange(3), tp.ones(4)
    with pytest.raises(RuntimeError, match="can't be cast"):
        tp._foreach_add_([saved, integers, rest], 0.5)
    assert [t._version for t in (saved, integers, rest)] == [1, 0, 0] and rest.tolist() == [1.0] * 4
    z = x.exp()
    tp._foreach_add_([z.detach()], 0.5)
    with pytest.raises(RuntimeError, match=r"add_\.Scalar wrote to it"):
        z.sum().backward()


def told(call: Any, *given: Any) -> str:
    """The words of what a call raises."""
    try:
        call(*given)
    except (RuntimeError, TypeError) as error:
        return str(error)
    return "nothing raised"


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("_")])
def test_nothing_is_written_before_a_later_leaf_is_refused(name: str) -> None:
    """The lists' tensors are asked first: a leaf, or a view of one, leaves those before it as they were."""
    leaf = tp.full((2,), 0.5, requires_grad=True)
    for refused in (leaf, leaf[:1]):
        first = tp.full(refused.shape, 0.5)
        same = [first.clone(), first.clone()]
        calls = [[], [2.0], [same], [same, same], [same, 0.5]]
        words = [told(getattr(tp.ops.aten, name), [first, refused], *given) for given in calls]
        assert any("leaf Variable that requires grad" in said for said in words), words
        assert first.tolist() == [0.5] * first.numel() and first._version == 0
    with tp.no_grad():
        tp._foreach_zero_([first, leaf])
    assert leaf.tolist() == [0, 0]


@pytest.mark.parametrize("threads", [1, 2])
def test_many_tensors_on_threads(threads: int) -> None:
    before = tp.get_num_threads()
    tp.set_num_threads(threads)
    try:
        given = [tp.full((3000,), float(i)) for i in range(64)]
        tp._foreach_add_(given, 1.0)
        tp._foreach_sqrt_(given)
        for i, x in enumerate(given):
            np.testing.assert_array_equal(x.numpy(), np.full(3000, np.sqrt(np.float32(i + 1))))
        with pytest.raises(RuntimeError, match=r"size|shape"):
            tp._foreach_add_(given, [tp.ones(2) if i == 40 else tp.ones(3000) for i in range(64)])
    finally:
        tp.set_num_threads(before)


def test_layers_above_are_met():
    """Whoever watches or changes calls sees the operator of each place."""
    given = tensors(tp)
    with tp.dispatch.trace() as t:
        tp._foreach_add_(given, 1)
    assert [e.op for e in t if e.op.startswith("add_") and e.key == "CPU"] == ["add_.Scalar"] * 3
    batched = tp.func.vmap(lambda a, b: tp._foreach_mul([a, b], 2.0))(tp.ones(4, 2), tp.ones(4, 3))
    assert [tuple(x.shape) for x in batched] == [(4, 2), (4, 3)]
    meta = tp._foreach_exp([x.to("meta") for x in given])
    assert [tuple(m.shape) for m in meta] == [tuple(x.shape) for x in given]


EMPTY = {
    "no tensor": [
        "t._foreach_add([], 1)",
        "t._foreach_add([], [])",
        "t._foreach_neg([])",
        "t._foreach_norm([])",
        "t._foreach_addcmul([], [], [])",
        "t._foreach_copy_([], [])",
        "t._foreach_zero_([])",
    ],
    "numbers": [
        "t._foreach_add([t.ones(1)], [])",
        "t._foreach_addcmul([t.ones(1)] * 2, [t.ones(1)] * 2, [t.ones(1)] * 2, t.ones(2, 2)[:, 1])",
        "t._foreach_addcmul([t.ones(1)] * 3, [t.ones(1)] * 3, [t.ones(1)] * 3, t.ones(2, 2)[:, 1])",
    ],
    "complex": [
        "t._foreach_clamp_max([t.ones(1)], 1j)",
        "t._foreach_minimum([t.ones(1)], [1j])",
        "t.clamp_min(t.tensor([1j]), 1)",
        "t.clamp(t.tensor([1j]), 1, 2)",
        "t._foreach_maximum([t.ones(10, dtype=t.complex64)], [t.ones(11, dtype=t.complex64)])",
        "t._foreach_pow([t.ones(10, dtype=t.bool)], [t.ones(11, dtype=t.bool)])",
    ],
}


@pytest.mark.parametrize("call", [call for calls in EMPTY.values() for call in calls])
def test_refusals_are_torchs(call: str) -> None:
    torch, told = pytest.importorskip("torch"), []
    for t in (tp, torch):
        with pytest.raises(Exception) as refused:
            eval(call, {"t": t})
        told.append((refused.type, str(refused.value).splitlines()[0]))
    assert told[0] == told[1]
