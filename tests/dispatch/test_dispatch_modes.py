"""__torch_dispatch__: modes and classes that operators ask below autograd."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wrapped import Recorder, Wrapped, changed, unwrapped, writes

import tensorpy as tp
from tensorpy import library
from tensorpy.overrides import enable_reentrant_dispatch
from tensorpy.testing.harness import arguments, call, check_same, fresh, function_of, inputs_of, over
from tensorpy.testing.samples import OpInfo, OpSample
from tensorpy.testing.samples.table import CATALOG
from tensorpy.utils import _python_dispatch as pd
from tensorpy.utils._python_dispatch import TorchDispatchMode, get_alias_info

aten = tp.ops.aten
IMPLICIT = {str(op.schema.name) for op in CATALOG if op.is_implicit}


# ---- every operator ----


def check_fits(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The schema takes these arguments, none is its default that could be left out."""
    text = func._schema.rpartition(" -> ")[0]
    names = [a.name for a in get_alias_info(func).args]
    keyword = [n for n in names if n not in [a.name for a in pd._items(text[text.index("(") + 1 : -1].split("*,")[0])]]
    assert len(args) <= len(names) - len(keyword), (func, args)
    assert set(kwargs) <= set(keyword), (func, kwargs)
    required = [a for a in text[text.index("(") + 1 : -1].split(", ") if "=" not in a and a not in ("*", "")]
    assert len(args) + len(kwargs) >= min(len(required), 1), (func, args)


@over()
def test_every_operator_reaches_a_mode(info: OpInfo) -> None:
    """With an overload whose schema its arguments fit; what the mode computes is what comes of the call."""
    function = function_of(info)
    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        with tp.dispatch.trace() as layers:
            expected = call(function, fresh(info, args), kwargs)
        with Recorder() as mode:
            got = call(function, fresh(info, args), kwargs)
        for a, b in zip(got, expected, strict=True):
            check_same(info, a, b, f"{info.name}{sample}")
        for func, given, named in mode.calls:
            check_fits(func, given, named)
        called = [e.op for e in layers if e.op not in ("clone", "empty")]
        if called and called[0] not in IMPLICIT:
            stem = called[0].removesuffix(".Scalar")  # asked_as: see its entry
            assert {called[0], stem, f"{stem}.Tensor"} & set(mode.names), f"{info.name}{sample}"


@over()
def test_every_operator_reaches_a_wrapper(info: OpInfo) -> None:
    function = function_of(info)
    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        expected = call(function, fresh(info, args), kwargs)
        got = call(function, changed(fresh(info, args), Wrapped), changed(kwargs, Wrapped))
        for a, b in zip(got, expected, strict=True):
            check_same(info, unwrapped(a), b, f"{info.name}{sample}")


def gradients(info: OpInfo, sample: OpSample, wrap: Callable[[tp.Tensor], tp.Tensor]) -> list[Any]:
    """Of a weighted sum of the results, for each floating tensor among the arguments."""
    args, kwargs = arguments(sample, "cpu", info)
    inputs, fill = inputs_of(info, args, kwargs)
    leaves = tuple(wrap(x.detach()).requires_grad_() for x in inputs)
    given, named = fill(leaves)
    if info.op.kind == "inplace":
        given = [given[0] * 1, *given[1:]]
    given, named = (changed(v, lambda t: t if type(t) is type(wrap(tp.empty(0))) else wrap(t)) for v in (given, named))
    results = [r for r in call(function_of(info), given, named) if r.requires_grad]
    weights = [wrap(tp.arange(1, r.numel() + 1).to(r.dtype).reshape(r.shape)) for r in results]
    if not results or not any(x.numel() for x in leaves):
        return []
    return list(tp.autograd.grad(results, leaves, weights, allow_unused=True))


@over(lambda info: info.differentiable and "float64" in info.dtypes)
def test_every_gradient_passes_a_wrapper(info: OpInfo) -> None:
    for sample in info.samples("float64", 1):
        try:
            expected = gradients(info, sample, lambda t: t)
        except (RuntimeError, ValueError, TypeError):
            continue  # of a source that is larger than what is scattered
        for got, grad in zip(gradients(info, sample, Wrapped), expected, strict=True):
            assert (got is None) == (grad is None), info.name
            if got is not None:
                assert type(got) is Wrapped, info.name
                check_same(info, got.inner, grad, f"{info.name}{sample}: gradient", exact=False)


def test_a_gradient_that_nobody_asks_for_is_none_through_a_wrapper() -> None:
    x, weight = tp.randn(2, 3, 8, 8), tp.randn(4, 3, 3, 3)
    for asks in ((True, False), (False, True)):
        given = [Wrapped(t).requires_grad_(ask) for t, ask in zip((x, weight), asks, strict=True)]
        tp.conv2d(*given).sum().backward()
        assert [t.grad is not None for t in given] == list(asks)


# ---- modes ----


def test_a_mode_sees_operators_below_autograd() -> None:
    x = tp.ones(2, requires_grad=True)
    with Recorder() as mode:
        y = (x * 2 + 1).sum()
        y.backward()
        z = tp.zeros(3, dtype=tp.int64)
        z[0] = 5
    assert mode.names[:3] == ["mul.Tensor", "add.Tensor", "sum"]  # as which they are asked
    assert mode.names[-3:] == ["zeros", "select.int", "fill_.Scalar"]
    func, args, kwargs = mode.calls[-3]
    said = {"dtype": tp.int64, "device": tp.device("cpu"), "pin_memory": False}  # as a factory of Python's says it
    assert func is aten.zeros.default and args == ([3],) and kwargs == said
    assert x.grad.tolist() == [2.0, 2.0] and y.requires_grad and z.tolist() == [5, 0, 0]


def test_defaults_are_left_out() -> None:
    a, b = tp.ones(2), tp.ones(2)
    with Recorder() as mode:
        tp.add(a, b)
        tp.add(a, b, alpha=2)
        tp.sum(a, 0)
        tp.sum(a, [0], True)
    assert [(len(args), kwargs) for _, args, kwargs in mode.calls] == [(2, {}), (2, {"alpha": 2}), (2, {}), (3, {})]
    assert mode.calls[0][1][0] is a


def test_what_a_mode_returns_is_the_result() -> None:
    class Ones(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return tp.ones(3) if func is aten.zeros.default else func(*args, **kwargs)

    with Ones():
        assert tp.zeros(2).tolist() == [1.0, 1.0, 1.0]
        assert tp.zeros_like(tp.empty(2)).tolist() == [0.0, 0.0]
    assert tp.zeros(1).tolist() == [0.0]


def test_modes_nest_and_are_off_inside_their_own_handler() -> None:
    order: list[str] = []

    class Named(TorchDispatchMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(f"{self.name}:{func._own_name}")
            assert self not in pd._get_current_dispatch_mode_stack()
            return func(*args, **kwargs)

    outer, inner = Named("outer"), Named("inner")
    x = tp.ones(2)
    with outer:
        with inner:
            assert pd._get_current_dispatch_mode_stack() == [outer, inner]
            assert pd._get_current_dispatch_mode() is inner and pd.is_in_torch_dispatch_mode()
            x.exp()
            with pd._disable_current_modes() as off:
                assert set(off) == {outer, inner}
                x.log()
        x.neg()
    assert order == ["inner:exp", "outer:exp", "outer:neg"]
    assert not pd.is_in_torch_dispatch_mode() and pd._get_current_dispatch_mode() is None


def test_errors_arrive_unchanged_and_leave_the_modes_in_place() -> None:
    class Own(Exception):
        pass

    error = Own("mine")

    class Raises(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise error

    with Raises() as mode:
        with pytest.raises(Own) as caught:
            tp.ones(2)
        assert caught.value is error and pd._get_current_dispatch_mode() is mode
    assert tp.ones(1).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="no TorchDispatchMode is on"):
        tp._C._pop_dispatch_mode()


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (3, RuntimeError, "returned int as result 0, where the schema says Tensor"),
        (None, RuntimeError, "returned NoneType"),
        (NotImplemented, TypeError, "no implementation found for 'aten.exp.default'"),
    ],
)
def test_wrong_results_are_refused(returned: Any, error: type[Exception], message: str) -> None:
    class Returns(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return returned

    x = tp.ones(2)
    with Returns(), pytest.raises(error, match=message):
        x.exp()


def test_a_mode_above_all_layers_sees_calls_as_they_were_made() -> None:
    x = tp.ones(2, 2, requires_grad=True)
    with Recorder("PythonMode") as outer, Recorder() as inner:
        tp.nn.functional.linear(x, x)
        x.reshape(4)
    assert outer.names == ["linear", "reshape"]
    assert inner.names == ["t", "mm", "view"]
    with pytest.raises(ValueError, match="stands at the key"):
        Recorder("CPU")


def test_modes_belong_to_their_thread() -> None:
    seen: list[int] = []

    def work() -> None:
        with Recorder() as mode:
            for _ in range(50):
                tp.ones(2).add(1)
        seen.append(len(mode.calls))

    with Recorder() as mine:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert seen == [100] * 4 and mine.calls == []


def test_autograd_works_again_in_a_handler_that_asks() -> None:
    class Squares(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is not aten.exp.default:
                return func(*args, **kwargs)
            with enable_reentrant_dispatch():
                x = args[0].detach().requires_grad_()
                (grad,) = tp.autograd.grad((x * x).sum(), x)
                return grad

    with Squares():
        assert tp.tensor([1.0, 2.0]).exp().tolist() == [2.0, 4.0]


# ---- classes ----


def test_a_wrapper_is_differentiated() -> None:
    inner = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    w = Wrapped(inner, requires_grad=True)
    loss = (w.exp() * w.t()).sum()
    assert type(loss) is Wrapped and loss.grad_fn is not None and loss.grad_fn.name() == "SumBackward0"
    loss.backward()
    n = inner.numpy()
    assert type(w.grad) is Wrapped
    np.testing.assert_allclose(w.grad.inner.numpy(), np.exp(n) * n.T + np.exp(n.T), rtol=1e-6)
    (w * 2).sum().backward()
    np.testing.assert_allclose(w.grad.inner.numpy(), np.exp(n) * n.T + np.exp(n.T) + 2, rtol=1e-6)


def test_double_backward_through_a_wrapper() -> None:
    w = Wrapped(tp.tensor([2.0, 3.0], dtype=tp.float64), requires_grad=True)
    (first,) = tp.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = tp.autograd.grad(first.sum(), w)
    assert type(second) is Wrapped and second.inner.tolist() == [12.0, 18.0]


def test_views_of_a_wrapper_share_its_version() -> None:
    w = Wrapped(tp.zeros(2, 2))
    row = w[0]
    assert type(row) is Wrapped and row._base is w and w._version == row._version == 0
    row.add_(1)
    assert w._version == row._version == 1 and w.inner.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_an_in_place_operator_on_a_view_of_a_wrapper_is_differentiated() -> None:
    w = Wrapped(tp.ones(3), requires_grad=True)
    y = w * 1
    y[1:].mul_(3)
    y.sum().backward()
    assert type(w.grad) is Wrapped and w.grad.inner.tolist() == [1.0, 3.0, 3.0]
    saved = w.exp()
    saved.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()


def test_a_wrapper_keeps_its_class_and_attributes() -> None:
    w = Wrapped(tp.tensor([1.0, 2.0]), requires_grad=True)
    w.label = "x"
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert type(other) is Wrapped and other.requires_grad and other.label == "x"
        assert other.inner.tolist() == [1.0, 2.0] and other.inner is not w.inner
    assert repr(w) == "Wrapped(..., size=(2,), requires_grad=True)"
    assert isinstance(w, tp.Tensor) and isinstance(w + 1, Wrapped)
    result = w * 2  # C holds it alone, hands it out, and keeps it again
    node = result.grad_fn
    for _ in range(3):
        made = w.exp()
        assert type(made) is Wrapped and made.inner is not None
    assert node is not None


def test_a_wrapper_goes_when_nothing_holds_it() -> None:
    w = Wrapped(tp.ones(2), requires_grad=True)
    loss = (w.exp() * w).sum()
    loss.backward()
    held = [weakref.ref(t) for t in (w, w.inner, loss)]
    del w, loss
    gc.collect()
    assert [r() for r in held] == [None] * 3


def test_what_reads_memory_refuses_a_wrapper() -> None:
    w = Wrapped(tp.ones(2))
    for read in (
        w.tolist,
        w.numpy,
        lambda: w.untyped_storage().data_ptr(),
        lambda: w.untyped_storage().tolist(),
        lambda: copy.deepcopy(w.untyped_storage()),
        w.__dlpack__,
        lambda: memoryview(w),
        lambda: np.asarray(w),
        lambda: tp.Generator().set_state(Wrapped(tp.zeros(16, dtype=tp.uint8))),
    ):
        with pytest.raises((RuntimeError, BufferError, TypeError), match=r"no elements|no buffer|16 contiguous"):
            read()
    with pd.no_dispatch(), pytest.raises(RuntimeError, match=r"add\.Tensor: argument 'self' has no elements"):
        w.add(tp.ones(2))
    with pytest.raises(ValueError, match="cannot be left out"), tp.dispatch.exclude("Python"):
        pass
    assert w.data_ptr() == 0 and w.sum().item() == 2.0 and float(Wrapped(tp.tensor(3.0))) == 3.0
    assert bool(Wrapped(tp.ones(1))) and ["a", "b"][Wrapped(tp.tensor(1))] == "b"
    assert tp.tensor([Wrapped(tp.tensor(1.5)), 2.0]).tolist() == [1.5, 2.0]


def test_a_class_over_a_tensor_with_elements() -> None:
    class Counted(tp.Tensor):
        calls = 0

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            Counted.calls += 1
            assert types == (Counted,)
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = tp.ones(3).as_subclass(Counted)
    y = x.add(1).mul(2)  # what its class gives for an operator is what the program gets, which is a Tensor here
    assert type(y) is tp.Tensor and Counted.calls == 1 and y.tolist() == [4.0] * 3
    assert type(tp.Tensor._make_subclass(Counted, tp.ones(1)) + 1) is tp.Tensor and Counted.calls == 2
    assert type(x.add_(1)) is Counted and Counted.calls == 3 and x.sub_(1) is x
    Counted.calls = 3
    with pd.no_dispatch():
        assert (x + 1).tolist() == [2.0] * 3 and Counted.calls == 3


def test_the_more_derived_class_is_asked_first_and_may_leave_it() -> None:
    asked: list[str] = []

    class Left(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append("left")
            assert types == (Left, Wrapped)
            return NotImplemented

    class Other(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    result = tp.ops.aten.add.Tensor(Wrapped(tp.ones(2)), Left(tp.ones(2)))
    assert type(result) is Wrapped and asked == ["left"] and result.inner.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="every __torch_dispatch__ returned NotImplemented"):
        Other(tp.ones(2)).exp()


def test_make_wrapper_subclass() -> None:
    w = tp.Tensor._make_wrapper_subclass(
        Wrapped, (2, 3), strides=(1, 2), storage_offset=4, dtype=tp.int16, device="meta"
    )
    assert (w.shape, w.stride(), w.storage_offset(), w.dtype, w.device.type) == ((2, 3), (1, 2), 4, tp.int16, "meta")
    last = tp.Tensor._make_wrapper_subclass(Wrapped, (1, 2, 3, 4), memory_format=tp.channels_last)
    assert last.is_contiguous(memory_format=tp.channels_last) and last.dtype == tp.get_default_dtype()
    for wrong, words in ((tp.Tensor, "must define"), (tp.nn.Parameter, "must define"), (int, "does not inherit from")):
        with pytest.raises(TypeError, match=words):
            tp.Tensor._make_wrapper_subclass(wrong, (2,))
    for sizes, options in (
        ((-1,), {}),
        ((2,), {"strides": (1, 1)}),
        ((2,), {"storage_offset": -1}),
        ((1 << 62, 8), {}),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            tp.Tensor._make_wrapper_subclass(Wrapped, sizes, **options)


def test_traceable_wrappers() -> None:
    w = Wrapped(tp.ones(2))
    assert pd.is_traceable_wrapper_subclass(w) and not pd.is_traceable_wrapper_subclass(tp.ones(2))
    assert pd.transform_subclass(w, lambda name, t: t + len(name)).inner.tolist() == [6.0, 6.0]
    with pytest.raises(AssertionError, match="__tensor_unflatten__ made sizes"):
        pd.transform_subclass(w, lambda name, t: t[:1])


def test_an_object_of_another_class_is_not_made_of_a_wrapper() -> None:
    with pytest.raises(RuntimeError, match=r"subclass Buffer but the raw .* object of type Wrapped"):
        Wrapped(tp.ones(2)).as_subclass(tp.nn.Buffer)


def test_rules_for_an_operator_and_a_class() -> None:
    class Other(Wrapped):
        pass

    lib = library.Library("testrules", "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x.clone(), "CompositeExplicitAutograd")
    library.register_torch_dispatch(
        "testrules::f", Recorder, lambda mode, func, types, args, kwargs: args[0] + 1, lib=lib
    )
    library.register_torch_dispatch(
        "testrules::f", Other, lambda cls, func, types, args, kwargs: cls(args[0].inner + 2), lib=lib
    )
    f = tp.ops.testrules.f
    with Recorder():
        assert f(tp.zeros(1)).tolist() == [1.0]
    assert f(Other(tp.zeros(1))).inner.tolist() == [2.0] and f(Wrapped(tp.zeros(1))).inner.tolist() == [0.0]
    lib._destroy()
    with Recorder(), pytest.raises(NotImplementedError):
        f(tp.zeros(1))
    with pytest.raises(TypeError, match="has no __torch_dispatch__"):
        library.register_torch_dispatch("add.Tensor", int, print)


def test_overloads_are_one_object_each() -> None:
    add = aten.add.Tensor
    assert tp._C._op_overload("add.Tensor") is add is aten.add.Tensor and str(add) == "aten.add.Tensor"
    assert add.overloadpacket is aten.add and add.namespace == "aten" and add._opname == "add"
    assert pickle.loads(pickle.dumps(add)) is add


def test_what_a_schema_says_of_aliases() -> None:
    info = get_alias_info(aten.split.Tensor)
    assert (info.args[0].name, info.args[0].alias, info.args[0].is_write) == ("self", "a", False)
    assert [o.type for o in info.outs] == ["Tensor[]"]
    assert writes(aten.add_.Tensor) and writes(aten.add.out) and not writes(aten.add.Tensor)
    assert [(o.name, o.alias, o.is_write) for o in get_alias_info(aten.sort.values).outs] == [
        ("values", "a", True),
        ("indices", "b", True),
    ]


def test_nothing_is_left_behind() -> None:
    """Memory and objects, after calls through all of it."""
    from tensorpy.func import functionalize

    def once() -> None:
        w = Wrapped(tp.ones(3), True)
        (w.exp() * w).sum().backward()
        w.detach()[0].add_(1)
        with Recorder():
            tp.ones(2) + 1

        def f(x: tp.Tensor) -> tp.Tensor:
            y = x.clone()
            y[0].add_(1)
            return x.mul_(y)

        functionalize(f)(tp.ones(4))
        with pytest.raises(RuntimeError):
            w.tolist()
        with Recorder("PythonMode"):
            tp.nn.functional.relu(w)

    def state() -> tuple[int, int]:
        gc.collect()
        return tp._C._memory_stats()["live_blocks"], len(gc.get_objects())

    for _ in range(5):
        once()
    blocks, objects = state()
    for _ in range(50):
        once()
    after = state()
    assert after[0] <= blocks and after[1] < objects + 50


def test_views_of_wrappers_that_nobody_answers_have_geometry() -> None:
    class Wrapper(tp.Tensor):
        @staticmethod
        def __new__(cls, shape):
            return tp.Tensor._make_wrapper_subclass(cls, shape, dtype=tp.float32)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("it is not asked")

    wrapper, other = Wrapper((2, 3)), Wrapper((4,))
    before = tp._C._set_dispatch_off(True)
    try:
        views = [wrapper.t(), wrapper.view(6), wrapper.unbind()[1], wrapper.expand(4, 2, 3), wrapper.detach()]
        views += [tp.ops.aten._unsafe_view(wrapper, [3, 2])]
        assert [v.shape for v in views] == [(3, 2), (6,), (3,), (4, 2, 3), (2, 3), (3, 2)]
        assert all(v.untyped_storage() is wrapper.untyped_storage() for v in views)
        other.set_(views[0])
        assert other.stride() == (1, 3) and other.untyped_storage() is wrapper.untyped_storage()
        for refused in (
            lambda: views[0].sum(),
            lambda: wrapper + 1,
            lambda: views[1].tolist(),
            lambda: wrapper.clone(),
        ):
            with pytest.raises(RuntimeError, match="has no elements of its own"):
                refused()
    finally:
        tp._C._set_dispatch_off(before)
