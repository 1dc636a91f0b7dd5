"""func.functionalize: results and effects are those of the function, and nothing writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from wrapped import Recorder, writes

import tensorpy as tp
from tensorpy.func import functionalize
from tensorpy.testing.checks import takes_out
from tensorpy.testing.harness import arguments, check_same, function_of, over, seed, tensors
from tensorpy.testing.samples import OpInfo

MOVES_MEMORY = ("resize_", "set_")  # a tensor gets other memory: no value stands for that


def moves_memory(info: OpInfo) -> bool:
    return info.op.schema.name.unqualified.startswith(MOVES_MEMORY)


def run(f: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> tuple[list[tp.Tensor], list[str]]:
    """The results of the function without writes, and the operators that wrote."""
    with Recorder() as mode:
        results = tensors(functionalize(f)(*args, **kwargs))
    return results, [func.__name__ for func, _, _ in mode.calls if writes(func)]


def copies(value: Any) -> Any:
    if isinstance(value, tp.Tensor):
        return value.clone()
    return type(value)(copies(v) for v in value) if isinstance(value, (list, tuple)) else value


def check(info: OpInfo, f: Callable[..., Any]) -> None:
    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        plain, own = copies(args), copies(args)
        seed(kwargs)
        expected = tensors(f(*plain, **kwargs))
        seed(kwargs)
        got, written = run(f, own, kwargs)
        assert set(written) <= {"copy_"}, f"{info.name}{sample} wrote with {written}"
        for a, b in zip([*got, *tensors(own)], [*expected, *tensors(plain)], strict=True):
            check_same(info, a, b, f"{info.name}{sample}", exact=False)


@over(lambda info: not moves_memory(info))
def test_every_operator(info: OpInfo) -> None:
    """As it is; in place where it is so."""
    check(info, function_of(info))


@over(lambda info: info.variant("inplace") is not None and not info.random and not moves_memory(info))
def test_every_operator_in_place(info: OpInfo) -> None:
    """On a tensor that the function made, through a view of it."""
    function = function_of(info, inplace=True)

    def f(x: tp.Tensor, *args: Any, **kwargs: Any) -> tp.Tensor:
        held = tp.stack([x, x])
        function(held[1], *args, **kwargs)
        return held

    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        try:
            expected = f(*copies(args), **kwargs)
        except (RuntimeError, TypeError, ValueError):
            with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
                run(f, copies(args), kwargs)
            continue
        (got,), written = run(f, copies(args), kwargs)
        assert not written, f"{info.name}{sample} wrote with {written}"
        check_same(info, got, expected, f"{info.name}{sample}", exact=False)


@over(lambda info: takes_out(info) and not info.random)
def test_every_operator_with_out(info: OpInfo) -> None:
    """Into tensors that the function made."""
    function, operator = function_of(info), info.variant("out")
    listed = operator is not None and "[]" in str(operator.schema.out[0].type)
    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        expected = tensors(function(*args, **kwargs))

        def f(*given: Any, **named: Any) -> tuple[tp.Tensor, ...]:
            outs = tuple(tp.empty_like(e) for e in expected)  # noqa: B023
            function(*given, **named, out=outs if len(outs) > 1 or listed else outs[0])
            return outs

        got, written = run(f, args, kwargs)
        assert not written, f"{info.name}{sample} wrote with {written}"
        for a, b in zip(got, expected, strict=True):
            check_same(info, a, b, f"{info.name}{sample}", exact=False)


# ---- by hand ----


def both(f: Callable[..., Any], *args: tp.Tensor, remove: str = "mutations") -> list[str]:
    """The function as it is and without writes give the same, in results and arguments; the operators that ran."""
    plain, own = [a.clone() for a in args], [a.clone() for a in args]
    expected = f(*plain)
    with Recorder() as mode:
        got = functionalize(f, remove=remove)(*own)
    for a, b in zip([*tensors(got), *own], [*tensors(expected), *plain], strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype and a.tolist() == b.tolist()
    assert not any(writes(func) and func.__name__ not in ("copy_", "t_") for func, _, _ in mode.calls)
    return mode.names


def square(n: int = 3) -> tp.Tensor:
    return tp.arange(float(n * n)).reshape(n, n)


def test_writes_through_views_of_views() -> None:
    def f(x: tp.Tensor) -> Any:
        y = x.clone()
        y[0].add_(1)
        y.t()[1].mul_(3)
        y.view(-1)[2:7:2].sub_(5)
        y.diagonal().fill_(7)
        y.unsqueeze(0).permute(2, 0, 1)[1].neg_()
        y.as_strided((2, 2), (1, 2), 1).zero_()
        first, rest = y.split([1, 2])
        first.copy_(rest[1])
        for row in y.unbind():
            row[-1] = 11
        return y, first, y[y > 5]

    both(f, square())


def test_complex_and_other_dtypes() -> None:
    def f(x: tp.Tensor) -> Any:
        z = tp.complex(x, x * 2)
        z.real.add_(1)
        z.imag[0] = 3
        tp.view_as_real(z)[..., 0].mul_(2)
        bits = x.clone()
        bits.view(tp.int32)[0] = 0
        return z, bits

    both(f, square())


def test_arguments_get_their_values_at_the_end() -> None:
    def f(x: tp.Tensor, y: tp.Tensor) -> Any:
        x[0] = 9
        y.view(-1).add_(x.sum())
        x.mul_(2)
        return x, x[1]

    names = both(f, square(), square(2))
    assert names.count("copy_") == 2 and names.index("copy_") > len(names) - 5
    x = square().clone()
    same, row = functionalize(f)(x, square(2))
    assert same is x and row._base is x


def test_arguments_that_share_memory() -> None:
    def f(x: tp.Tensor, row: tp.Tensor, same: tp.Tensor) -> Any:
        x.add_(1)
        row.mul_(10)
        return same.sum()

    plain, own = square(), square()
    expected, got = f(plain, plain[1], plain), functionalize(f)(own, own[1], own)
    assert own.tolist() == plain.tolist() and got.item() == expected.item()

    def g(x: tp.Tensor, part: tp.Tensor, turned: tp.Tensor) -> tp.Tensor:
        part.add_(1)
        turned[0] = 7
        x.as_strided((2,), (4,), 1).mul_(3)
        return part + turned

    plain, own = (tp.arange(20.0)[2:11].reshape(3, 3) for _ in range(2))
    expected, got = (f(t, t[1:, 1:], t.t()[:2, :2]) for f, t in ((g, plain), (functionalize(g), own)))
    assert own.tolist() == plain.tolist() and got.tolist() == expected.tolist()


def test_places_in_memory() -> None:
    def f(x: tp.Tensor) -> Any:
        y = x.clone().t()
        base = x + 0
        y.mul_(2)
        base.t()[0].add_(1)
        base.as_strided((3,), (4,)).zero_()
        base[1].add_(5)
        return base, base.as_strided((3,), (4,)), y

    both(f, square())


def test_what_changes_a_tensors_shape() -> None:
    def f(x: tp.Tensor) -> Any:
        y = x.clone()
        y.t_()
        y[0] = 1
        y.unsqueeze_(0).squeeze_()
        out = tp.empty(0)
        tp.add(y, 1, out=out)
        return y, out

    both(f, square())

    def turns(x: tp.Tensor) -> tp.Tensor:
        return x.t_()

    both(turns, tp.arange(6.0).reshape(2, 3))


def test_gradients_pass() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        y = x * 2
        y[0].mul_(5)
        y.relu_()
        return y.sum()

    x = tp.ones(3, requires_grad=True)
    functionalize(f)(x).backward()
    assert x.grad.tolist() == [10.0, 2.0, 2.0]

    def inside(x: tp.Tensor) -> tp.Tensor:
        leaf = x.detach().clone().requires_grad_()
        (leaf * leaf).sum().backward()
        return leaf.grad

    assert functionalize(inside)(tp.tensor([3.0])).tolist() == [6.0]


def test_views_run_as_copies_where_that_is_asked() -> None:
    def f(x: tp.Tensor) -> Any:
        y = x.clone()
        y[0].add_(1)
        return y.t()

    names = both(f, square(), remove="mutations_and_views")
    assert names.count("clone") == 1 + sum(name in ("select.int", "t") for name in names)
    with pytest.raises(RuntimeError, match="remove is"):
        functionalize(f, remove="views")


def test_it_nests() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        y = x.clone()

        def g(z: tp.Tensor) -> tp.Tensor:
            z[0].add_(1)
            return z * 2

        return functionalize(g)(y) + y

    both(f, square())


def test_containers_and_keywords() -> None:
    def f(pair: dict[str, tp.Tensor], *, by: float) -> dict[str, Any]:
        pair["a"].mul_(by)
        return {"sum": pair["a"] + pair["b"], "n": 3, "parts": [pair["a"]]}

    a = tp.ones(2)
    result = functionalize(f)({"a": a, "b": tp.ones(2)}, by=2.0)
    assert result["sum"].tolist() == [3.0, 3.0] and result["n"] == 3 and result["parts"][0] is a
    assert a.tolist() == [2.0, 2.0]


def test_random_numbers_are_the_same() -> None:
    def f() -> Any:
        x = tp.empty(5)
        return x.uniform_().clone(), x.normal_(2, 3).clone(), x.bernoulli_(0.3).clone(), x.exponential_()

    tp.manual_seed(3)
    expected = f()
    tp.manual_seed(3)
    with Recorder() as mode:
        got = functionalize(f)()
    assert [t.tolist() for t in got] == [t.tolist() for t in expected]
    assert not any(writes(func) for func, _, _ in mode.calls)


def test_what_cannot_be_done_is_said() -> None:
    outside = tp.ones(2)
    kept: list[tp.Tensor] = []
    x = tp.ones(2)
    for f, message in (
        (lambda: outside.add_(1), "neither an argument of the function nor made in it"),
        (lambda: tp.ones(1).expand(3).add_(1), "more than one element"),
        (lambda: tp.ones(2).resize_(5), "other memory"),
        (lambda: tp.ones(2).add_(tp.ones(3, 2)), "shape"),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match=message):
            functionalize(f)()
    functionalize(kept.append)(x)
    with pytest.raises(RuntimeError, match="used outside the function"):
        kept[0] + 1
    assert outside.tolist() == [1.0, 1.0] and repr(kept[0]) == "FunctionalTensor(tensor([1., 1.]))"

    class Own(Exception):
        pass

    def fails(x: tp.Tensor) -> None:
        x.add_(1)
        raise Own

    with pytest.raises(Own):
        functionalize(fails)(x)
    assert x.tolist() == [1.0, 1.0] and tp.ones(1).add_(1).tolist() == [2.0]
