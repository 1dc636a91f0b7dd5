"""compiler.explain and f.plans(): what a plan says is what ran."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

import tensorpy as tp
from tensorpy import nn

EXPLAIN = tp.compiler.explain
KB = 1024


def explain(function: Any, *args: Any, **how: Any) -> Any:
    return EXPLAIN(tp.compile(function, options={"smallest": 0}, **how))(*args)


def test_a_group_and_what_it_moves() -> None:
    x, y = tp.ones(64, 64), tp.ones(64)
    plan = explain(lambda x, y: (x * 2 + y).exp(), x, y)
    (unit,) = plan.units
    assert (unit.kind, unit.operators) == ("group", ("mul.Scalar", "add.Tensor", "exp"))
    assert (unit.shape, unit.dtype) == ((64, 64), tp.float32)
    whole, row = 64 * 64 * 4, 64 * 4
    assert (unit.moved, unit.alone) == (2 * whole + row, 6 * whole + row)
    assert plan.unstored == 2 * whole and plan.peak == 0 and plan.breaks == [] and len(plan.flushes) == 1
    assert plan.calls == 3 and plan.groups == [unit] and unit.ends == "nothing follows"
    assert "moves 32.2 KB instead of 96.2 KB" in str(plan)


@pytest.mark.parametrize(
    "function, ends",
    [
        (lambda x: (x + 1) @ x, "the next call stays whole"),
        (lambda x: (x + 1).cumsum(0), "the next call stays whole"),
        (lambda x: (x + 1)[1:] * 2, "the next call has other elements"),
        (lambda x: (x + 1) * x.t(), "the next call reads a tensor that lies in another way"),
        (lambda x: (x.add_(1), x + x.t())[1], "the next call shares memory in another way"),
    ],
)
def test_why_the_next_call_is_not_in_it(function: Any, ends: str) -> None:
    assert explain(function, tp.ones(32, 32)).units[0].ends.startswith(ends)


def test_the_line_that_asks_for_a_value() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        return y

    (early,) = explain(function, tp.ones(30)).breaks
    first = function.__code__.co_firstlineno
    assert (early.why, early.operator) == ("memory is read or lent", "_local_scalar_dense")
    assert early.line == f"{__file__}:{first + 2}"


def test_calls_that_do_not_wait() -> None:
    @tp.library.custom_op("test_compile_plans::look", mutates_args=())
    def look(x: tp.Tensor) -> tp.Tensor:
        return x.clone()

    def function(x: tp.Tensor) -> tp.Tensor:
        y = x * 2
        return look(y) + 1

    (seen,) = explain(function, tp.eye(30)).at_once
    assert seen.operator == "test_compile_plans::look" and "more than its arguments" in seen.why
    assert seen.line == f"{__file__}:{function.__code__.co_firstlineno + 2}"
    small = EXPLAIN(tp.compile(function))(tp.ones(30))
    assert small.calls == 0 and "too small" in small.at_once[0].why
    assert "too small" in str(small)


def test_tiles_and_one_by_one() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    x = tp.randn(2048, 1024)
    (unit,) = explain(function, x).units
    assert unit.kind == "tiles" and len(unit.operators) == 5
    plan = explain(function, x, backend="aot_eager")
    assert [u.ends for u in plan.units] == ["calls run one by one"] * 5 and plan.unstored == 0
    assert plan.peak >= 2 * x.numel() * 4


def test_modules_and_what_is_kept() -> None:
    net, x = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)), tp.randn(64, 64)
    fast = tp.compile(net, options={"smallest": 0})
    plan = EXPLAIN(fast)(x)
    assert plan.calls >= 3 and fast.forward.plans() == [plan]
    EXPLAIN(fast)(x)
    EXPLAIN(fast)(x[:7])
    fast(x[:5])
    assert len(fast.forward.plans()) == 2
    assert tp.compile(lambda x: x).plans() == [] and "calls ->" in str(EXPLAIN(net)(x))


def test_errors_pass_and_nothing_is_told_afterwards() -> None:
    fast = tp.compile(lambda x: (x + 1) + tp.ones(7), options={"smallest": 0})
    with pytest.raises(RuntimeError, match="must match"):
        EXPLAIN(fast)(tp.ones(3))
    assert fast.plans() == [] and fast(tp.ones(7)).tolist() == [3.0] * 7
    with pytest.raises(TypeError, match="takes a list"):
        fast._tell(3)


def test_profiles_show_groups() -> None:
    fast = tp.compile(lambda x: (x * 2 + 1).exp(), options={"smallest": 0})
    with tp.profiler.profile() as profile:
        fast(tp.ones(100))
    assert "group of 3 calls: mul.Scalar, add.Scalar, exp" in [e.name for e in profile.events()]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize(
    ("function", "unit", "calls"),
    [
        (lambda x: (x * 2 + 1).exp(), "group of 3 calls", ["mul.Scalar", "add.Scalar", "exp"]),
        (lambda x: ((x - 1) ** 2).mean(), "group of 3 calls", ["sub.Scalar", "pow.Tensor_Scalar", "mean"]),
        (lambda x: (x - x.amax(-1, keepdim=True)).exp(), "tiles of 3 calls", ["amax", "sub.Tensor", "exp"]),
    ],
    ids=["chain", "reduction", "tiles"],
)
def test_a_profile_has_the_calls_in_their_unit(
    function: Any, unit: str, calls: list[str], memory: bool, threads: int
) -> None:
    """One after the other, from the unit's begin on; what they compute is the same."""
    tp.set_num_threads(threads)
    x = tp.randn(512, 1024)
    compiled = tp.compile(function)
    expected = compiled(x)
    with tp.profiler.profile(profile_memory=memory) as profile:
        assert compiled(x).equal(expected)
    (whole,) = (e for e in profile.events() if e.name.startswith(unit))
    parts = [e for e in profile.events() if e.cpu_parent is whole]
    assert [e.name for e in parts] == calls and whole.name == f"{unit}: {', '.join(calls)}"
    ends = [whole.time_range.start, *(e.time_range.end for e in parts)]
    assert [e.time_range.start for e in parts] == pytest.approx(ends[:-1])
    assert ends == sorted(ends) and ends[-1] <= whole.time_range.end and ends[-1] > ends[0]


def test_the_picture_has_each_unit_and_flush_in_their_order() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        y = (x * 2 + 1).exp()
        return y.sum(0) if y.max() < 100 else y @ y

    plan = explain(function, tp.rand(256, 256))
    picture = ElementTree.fromstring(plan._repr_svg_())
    words = [text.text for text in picture.findall(".//{*}text")]
    assert words[0] == str(plan).partition("\n")[0]
    units = [word for word in words if re.fullmatch(r"(group|tiles|call) \d+", word or "")]
    assert units == [f"{unit.kind} {i}" for i, unit in enumerate(plan.units, 1)]
    assert {name for unit in plan.units for name in unit.operators} <= set(words)
    (flush,) = plan.breaks
    at = next(i for i, word in enumerate(words) if word and word.startswith("flush: "))
    assert flush.line is not None and flush.line in (words[at] or "")
    assert words.index(units[flush.after - 1]) < at < words.index(units[flush.after])
    paper, *boxes = picture.findall(".//{*}rect")
    assert paper.get("fill") == "white" and all(float(box.get("width", "0")) <= 820 for box in boxes)


def test_calls_that_stay_alone_share_a_row_of_the_picture() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        y = x @ x @ x @ x
        z = (y + 1).exp() @ x @ x
        return z.cumsum(0).cumsum(1) if z.max() < 0 else z.cumsum(0).cumsum(1) @ x

    plan = explain(function, tp.rand(256, 256))
    kinds = "".join(unit.kind[0] for unit in plan.units)
    after = plan.breaks[0].after
    words = [text.text or "" for text in ElementTree.fromstring(plan._repr_svg_()).findall(".//{*}text")]
    runs = re.finditer(r"c+|g|t", kinds[:after] + "|" + kinds[after:])
    said = {"c": "call", "g": "group", "t": "tiles"}
    expected = []
    for run in runs:
        first, length = run.start() + 1 - (run.start() > after), len(run[0])
        expected.append(f"{said[run[0][0]]} {first}" if length == 1 else f"calls {first}-{first + length - 1}")
    assert [word for word in words if re.fullmatch(r"(group|tiles|calls?) [\d-]+", word)] == expected
    assert "calls 1-3" in expected and sum(word.endswith("one by one") for word in words) == 3
    wide = explain(lambda x: [x := x @ x for _ in range(60)][-1], tp.rand(256, 256))._repr_svg_()
    assert wide.count(">mm<") == 60 and wide.count("one by one") > 1


def test_a_picture_of_nothing_and_of_very_many_operators() -> None:
    assert "0 calls" in explain(lambda x: x, tp.ones(1))._repr_svg_()

    def many(x: tp.Tensor) -> tp.Tensor:
        for _ in range(40):
            x = x.maximum(x.logical_or(x))
        return x

    assert re.search(r"and \d+ more", explain(many, tp.rand(256, 256))._repr_svg_())
