"""func.functionalize: results and effects are those of the function, and nothing writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wrapped import Recorder, writes

import tensorpy as tp
from tensorpy._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode, dispatch_functionalize
from tensorpy.func import functionalize
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.testing.checks import takes_out
from tensorpy.testing.harness import arguments, check_same, function_of, over, seed, tensors
from tensorpy.testing.samples import OpInfo
from tensorpy.utils._python_dispatch import get_alias_info


def run(f: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> tuple[list[tp.Tensor], list[str]]:
    """The results of the function without writes, and the operators that wrote."""
    with Recorder() as mode:
        results = tensors(functionalize(f)(*args, **kwargs))
    return results, [func._own_name for func, _, _ in mode.calls if writes(func)]


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
        turned = {"as_strided_", "set_.source_Tensor"} if "inplace_view" in info.op.function.origin.tags else set()
        assert set(written) <= {"copy_"} | turned, f"{info.name}{sample} wrote with {written}"
        for a, b in zip([*got, *tensors(own)], [*expected, *tensors(plain)], strict=True):
            check_same(info, a, b, f"{info.name}{sample}", exact=False)


@over()
def test_every_operator(info: OpInfo) -> None:
    """As it is; in place where it is so."""
    check(info, function_of(info))


@over(lambda info: info.variant("inplace") is not None and not info.random)
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


def views(func: Any) -> bool:
    return any(a.alias and not a.is_write for a in get_alias_info(func).args)


@over(lambda info: info.op.is_view and info.op.kind == "functional")
def test_no_view_is_left(info: OpInfo) -> None:
    """Where views are removed too, what is read and written through one is read by copies and put back by them."""
    function = function_of(info)

    def f(x: tp.Tensor, *args: Any, **kwargs: Any) -> Any:
        held = x.clone()
        for part in tensors(function(held, *args, **kwargs)):
            part.copy_(part + part)
        return held, function(held, *args, **kwargs)

    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        try:
            expected = tensors(f(*args, **kwargs))
        except RuntimeError:  # several elements of the view lie at one place
            continue
        with Recorder() as mode:
            got = tensors(functionalize(f, remove="mutations_and_views")(*args, **kwargs))
        left = [func._own_name for func, _, _ in mode.calls if views(func) or writes(func)]
        assert not left, f"{info.name}{sample} ran {left}"
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
    assert not any(writes(func) and func._own_name not in ("copy_", "t_") for func, _, _ in mode.calls)
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

    def through_views(x: tp.Tensor) -> tp.Tensor:
        leaf = x.detach().clone().requires_grad_()
        y = leaf * 2
        row, flat = y[0], y.view(-1)
        row.mul_(3)
        flat[1:3].add_(leaf.reshape(-1)[:2])
        (y * y).sum().backward()
        return leaf.grad

    x = square()
    assert functionalize(through_views)(x).equal(through_views(x))

    def in_columns(x: tp.Tensor) -> tp.Tensor:
        leaf = x.t().detach().requires_grad_()
        (leaf * leaf.exp()).sum().backward()
        return leaf.grad

    assert functionalize(in_columns)(x).equal(in_columns(x))

    def of_what_changed(x: tp.Tensor) -> tp.Tensor:
        leaf = x.detach().clone().requires_grad_()
        e = leaf.exp()
        e[0].add_(1)
        e.sum().backward()
        return leaf.grad

    with pytest.raises(RuntimeError, match="modified by an inplace"):
        functionalize(of_what_changed)(x)


def test_views_run_as_copies_where_that_is_asked() -> None:
    def f(x: tp.Tensor) -> Any:
        y = x.clone()
        y[0].add_(1)
        return y.t()

    names = both(f, square(), remove="mutations_and_views")
    assert names == ["clone", "select_copy.int", "add.Tensor", "select_scatter", "select_copy.int", "t_copy"]
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


def smaller(x: tp.Tensor) -> Any:
    y = x.clone()
    view = y[1:]
    y.resize_(2, 1).add_(10)
    return y, view.mul_(2)


def larger(x: tp.Tensor) -> Any:
    y = x.clone()
    y.mul_(2).resize_(2, 3)
    y.view(-1)[x.numel() :].fill_(7)
    return y, y.t()[1]


def as_another(x: tp.Tensor) -> Any:
    y, z = x.clone(), tp.zeros(2)
    z.set_(y).add_(1)
    w = tp.ones(1).set_(y, 0, (2, 2), (1, 1))
    y.mul_(3)
    return y, z, w, tp.ones(2).set_(), tp.empty(0).resize_as_(x).fill_(2)


def arguments_too(x: tp.Tensor) -> Any:
    return x.resize_(2).add_(1)


def arguments_larger(x: tp.Tensor) -> Any:
    x.resize_(6)[3:] = 5
    return x


def arguments_set(x: tp.Tensor) -> Any:
    return x.set_(tp.arange(4.0)).mul_(2)


@pytest.mark.parametrize("f", [smaller, larger, as_another, arguments_too, arguments_larger, arguments_set])
def test_other_sizes_and_memories(f: Callable[..., Any]) -> None:
    """resize_ and set_ change what a stand-in shows; an argument gets it at the end."""
    plain, own = tp.tensor([1.0, 2.0, 3.0]), tp.tensor([1.0, 2.0, 3.0])
    expected = tensors(f(plain))
    got, _ = run(f, [own], {})
    for a, b in zip([*got, own], [*expected, plain], strict=True):
        assert a.shape == b.shape and a.stride() == b.stride() and tp.equal(a, b)
    if f not in (arguments_too, arguments_larger, arguments_set):
        graph = make_fx(functionalize(f))(tp.tensor([1.0, 2.0, 3.0]))
        assert "_(" not in graph.code.replace("__(", "")
        for a, b in zip(
            tensors(graph(tp.tensor([4.0, 5.0, 6.0]))), tensors(f(tp.tensor([4.0, 5.0, 6.0]))), strict=True
        ):
            assert tp.equal(a, b)


def test_what_cannot_be_done_is_said() -> None:
    outside = tp.ones(2)
    kept: list[tp.Tensor] = []
    x = tp.ones(2)
    for f, message in (
        (lambda: outside.add_(1), "neither an argument of the function nor made in it"),
        (lambda: tp.ones(1).expand(3).add_(1), "more than one element"),
        (lambda: outside.resize_(3), "neither an argument of the function nor made in it"),
        (lambda: outside.set_(tp.ones(1)), "neither an argument of the function nor made in it"),
        (lambda: tp.ones(4)[1:].resize_(5), "Attempted to resize a view tensor to a larger size"),
        (lambda: tp.ones(2).add_(tp.ones(3, 2)), "shape"),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match=message):
            functionalize(f)()
    functionalize(kept.append)(x)
    with pytest.raises(RuntimeError, match="used outside the function"):
        kept[0] + 1
    assert outside.tolist() == [1.0, 1.0] and repr(kept[0]) == "FunctionalTensor(lvl=1, value=\\\ntensor([1., 1.]))"

    class Own(Exception):
        pass

    def fails(x: tp.Tensor) -> None:
        x.add_(1)
        raise Own

    with pytest.raises(Own):
        functionalize(fails)(x)
    assert x.tolist() == [1.0, 1.0] and tp.ones(1).add_(1).tolist() == [2.0]


def test_data_of_the_program_is_a_tensor_of_the_function() -> None:
    def f(x: tp.Tensor) -> Any:
        y = tp.tensor([1.0, 2.0, 3.0])
        y[1] = 7
        x[[0, 1]] += y
        x[x > 5] = 0
        return x.new_tensor([1.0, 2.0, 3.0]).mul_(y), y[:2], tp.zeros(3).add_(tp.tensor(4.0))

    both(f, square())
    traced = make_fx(functionalize(lambda x: tp.tensor([1.0, 2.0, 3.0]).mul_(x)))(tp.ones(3))
    assert traced(tp.full((3,), 2.0)).tolist() == [2.0, 4.0, 6.0] == traced(tp.full((3,), 2.0)).tolist()


# ---- operators from outside ----


@pytest.fixture
def lib() -> Iterator[tp.library.Library]:
    made = tp.library.Library("functionalized", "FRAGMENT")
    yield made
    made._destroy()


def test_operators_of_libraries_follow_their_annotations(lib: tp.library.Library) -> None:
    """In place with a functional variant and without, several written at once, out=, a view with an inverse."""
    for schema, kernel in {
        "double_(Tensor(a!) self) -> Tensor(a!)": lambda x: x.mul_(2),
        "double(Tensor self) -> Tensor": lambda x: x * 2,
        "lonely_(Tensor(a!) self, int by) -> Tensor(a!)": lambda x, by: x.add_(by),
        "both_(Tensor(a!) x, Tensor(b!)? y, Tensor z) -> Tensor": lambda x, y, z: (x.add_(z), y.mul_(z), x * y)[2],
        "into(Tensor self, *, Tensor(a!) out) -> Tensor(a!)": lambda x, out: out.copy_(x + 1),
        "turn(Tensor(a) self, int at) -> Tensor(a)": lambda x, at: x.select(0, at),
        "turn_inverse(Tensor base, Tensor view, int at) -> Tensor": lambda b, v, at: b.select_scatter(v, 0, at),
    }.items():
        lib.define(schema)
        lib.impl(schema.partition("(")[0], kernel, "CompositeExplicitAutograd")
    ops = tp.ops.functionalized

    def f(x: tp.Tensor) -> Any:
        y = x.clone()
        ops.double_(y[0])
        ops.lonely_(y.t()[1], 3)
        product = ops.both_(y[1], y[2], x[0])
        ops.into(x[0], out=y[0])
        ops.turn(y, 1).add_(1)
        ops.turn(y, 0)[1].mul_(7)
        x.add_(1)
        return y, product

    plain, own = square(), square()
    expected = f(plain)
    with Recorder() as mode:
        got = functionalize(f)(own)
    for a, b in zip([*got, own], [*expected, plain], strict=True):
        assert a.tolist() == b.tolist()
    assert "functionalized::double" in mode.names and "functionalized::double_" not in mode.names
    assert mode.names.count("functionalized::turn_inverse") == 2
    held = own.untyped_storage().data_ptr()
    for func, args, _ in mode.calls:
        for a, given in zip(get_alias_info(func).args, args, strict=False):
            if a.is_write and isinstance(given, tp.Tensor) and func._own_name != "copy_":
                assert given.untyped_storage().data_ptr() != held, f"{func} wrote an argument"


def test_a_view_that_nobody_undoes_is_named(lib: tp.library.Library) -> None:
    lib.define("first(Tensor(a) self) -> Tensor(a)")
    lib.impl("first", lambda x: x[0], "CompositeExplicitAutograd")

    def f(x: tp.Tensor) -> tp.Tensor:
        y = x.clone()
        tp.ops.functionalized.first(y).add_(1)
        return y

    assert functionalize(lambda x: tp.ops.functionalized.first(x) * 2)(square()).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(
        RuntimeError, match=r"through the view functionalized::first, .* define the operator functional"
    ):
        functionalize(f)(square())


# ---- no functional variant ----


def test_what_has_no_functional_variant_writes_copies() -> None:
    def renormed(x: tp.Tensor) -> Any:
        tp._C.embedding_renorm_(x[1:], tp.tensor([0, 1]), 1.0, 2.0)
        return x.fill_diagonal_(4)

    def stepped(p: tp.Tensor, g: tp.Tensor) -> Any:
        momentum = tp.zeros_like(p)
        options = {
            "weight_decay": 0.1,
            "momentum": 0.9,
            "lr": 0.5,
            "dampening": 0.0,
            "nesterov": False,
            "maximize": False,
        }
        tp.ops.aten._fused_sgd_([p], [g], [momentum], is_first_step=True, **options)
        return momentum, p * 1

    for f, n in ((renormed, 1), (stepped, 2)):
        plain, own = ([square() + i for i in range(n)] for _ in range(2))
        expected, got = tensors(f(*plain)), tensors(functionalize(f)(*own))
        for a, b in zip([*got, *own], [*expected, *plain], strict=True):
            assert a.tolist() == b.tolist()


# ---- graphs ----


def scattered(x: Any) -> Any:
    y = x.clone()
    y[0].add_(1)
    x.mul_(2)
    return y.t()


def filled(x: Any) -> Any:
    first, rest = x.split([1, 2])
    first.fill_(3)
    rest.zero_()
    x.diagonal().add_(1)
    return x[1:].sum(0)


def reshaped(x: Any) -> Any:
    y = x.view(-1)
    y[2:7:2].mul_(3)
    x.unsqueeze(0).permute(2, 0, 1)[0].sub_(1)
    y.clamp_(min=0)
    return x.transpose(0, 1).unbind(0)[0]


@pytest.mark.parametrize("f", [scattered, filled, reshaped])
def test_graphs_are_as_torchs(f: Callable[[Any], Any]) -> None:
    """No operator in place but a copy to the argument; the same scatters as PyTorch; right values for other input."""
    torch = pytest.importorskip("torch")
    torch_make_fx = pytest.importorskip("torch.fx.experimental.proxy_tensor").make_fx
    data = [[1.0, 2.0, 3.0], [4.0, -5.0, 6.0], [7.0, 8.0, -9.0]]

    def calls(graph: Any) -> list[str]:
        nodes = [n for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")]
        return [n.target.__name__.removesuffix(".default") for n in nodes]

    ours = make_fx(functionalize(f))(square())
    theirs = torch_make_fx(torch.func.functionalize(f))(torch.arange(9.0).reshape(3, 3))
    names = calls(ours.graph)
    inplace = [name for name in names if name.partition(".")[0].endswith("_")]
    assert inplace == ["copy_"]
    scatters, expected = (
        sorted(name for name in listed if "scatter" in name) for listed in (names, calls(theirs.graph))
    )
    assert scatters == expected
    x, plain, reference = tp.tensor(data), tp.tensor(data), torch.tensor(data)
    result, eager = ours(x), f(plain)
    assert result.tolist() == eager.tolist() == theirs(reference).tolist()
    assert x.tolist() == plain.tolist() == reference.tolist()


def test_stand_ins_by_hand() -> None:
    from tensorpy.func.functionalize import disable, enable, from_functional_tensor, is_functional_tensor, sync
    from tensorpy.func.functionalize import to_functional_tensor as stand_in

    for reapply in (False, True):
        x, y = tp.ones(2, 2), tp.zeros(2)
        a, b = stand_in(x), stand_in(y)
        enable(reapply_views=reapply)
        try:
            row = a[0]
            row.add_(b + 1)
            made = stand_in(x) * a
        finally:
            disable()
        sync(a)
        assert from_functional_tensor(a).tolist() == [[2.0, 2.0], [1.0, 1.0]] and x.tolist() == [[1.0, 1.0]] * 2
        assert from_functional_tensor(row).tolist() == [2.0, 2.0]
        assert from_functional_tensor(made).tolist() == [[2.0, 2.0], [1.0, 1.0]]
        assert is_functional_tensor(row) and not is_functional_tensor(x)
        with pytest.raises(RuntimeError, match="takes a functional tensor"):
            from_functional_tensor(x)


def test_what_is_recorded_of_stand_ins_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.proxy_tensor import make_fx as torchs

    from tensorpy.func.functionalize import disable, enable, from_functional_tensor, sync, to_functional_tensor

    def f(of: Any, x: Any) -> Any:
        y = x.view(4, 2)
        first, second = x.split(2)
        diagonal = second.diagonal()
        y.add_(of.ones(4, 2))
        diagonal.mul_(2)
        out = of.empty(0)
        of.add(first, second, out=out)
        return out

    def recorded(of: Any, make: Any, parts: Any, reapply: bool) -> str:
        stand_in, begin, end, sync, value = parts

        def run(x):
            a = stand_in(x)
            begin(reapply_views=reapply)
            try:
                result = f(of, a)
            finally:
                end()
            sync(a)
            sync(result)
            return value(a), value(result)

        return str(make(run)(of.ones(4, 2)).code)

    ours = (to_functional_tensor, enable, disable, sync, from_functional_tensor)
    theirs = (
        torch._to_functional_tensor,
        torch._enable_functionalization,
        torch._disable_functionalization,
        torch._sync,
        torch._from_functional_tensor,
    )
    for reapply in (False, True):
        text = recorded(tp, make_fx, ours, reapply).replace("tensorpy.", "torch.")
        assert text.strip() == recorded(torch, torchs, theirs, reapply).strip()


# ---- the scopes of PyTorch's compilers ----


def test_a_function_whose_writes_stay_inside() -> None:
    def f(x: Any) -> Any:
        y = x.view(-1)
        y.mul_(3)
        return x, {"part": y[1:]}

    x = tp.arange(4.0).view(2, 2)
    whole, named = dispatch_functionalize(f)(x)
    assert x.tolist() == [[0, 1], [2, 3]] and whole.tolist() == [[0, 3], [6, 9]]
    assert named["part"].tolist() == [3, 6, 9]
    assert not any(isinstance(t, FunctionalTensor) for t in (whole, named["part"]))
    code = make_fx(dispatch_functionalize(f))(x).code
    assert "mul.Tensor" in code and "mul_" not in code and "forward(self, arg0_1):" in code


def test_a_scope_of_stand_ins_where_their_key_was_excluded() -> None:
    plain = tp.ones(2)
    include, exclude = tp._C._get_dispatch_sets()
    tp._C._set_dispatch_sets(include, exclude | tp._C._KEYS["Functionalize"])
    try:
        with FunctionalTensorMode(export=True):
            made = FunctionalTensor.to_functional(plain)
            assert isinstance(made, FunctionalTensor)
            made.add_(1)
            FunctionalTensor.sync(made)
            value = FunctionalTensor.from_functional(made)
        assert value.tolist() == [2, 2]
        assert tp._C._get_dispatch_sets() == (include, exclude | tp._C._KEYS["Functionalize"])
    finally:
        tp._C._set_dispatch_sets(include, exclude)
