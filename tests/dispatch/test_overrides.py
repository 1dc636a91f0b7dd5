"""__torch_function__: classes and modes that are asked before a function runs."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import threading
import types
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import _C, overrides
from tensorpy.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    resolve_name,
)
from tensorpy.testing.harness import arguments, call, check_same, fresh, function_of, over, seed, tensors
from tensorpy.testing.samples import OpInfo


class Recorder(TorchFunctionMode):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    @property
    def names(self) -> list[str | None]:
        return [resolve_name(f) for f in self.calls]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(func)
        return func(*args, **kwargs)


class Sub(tp.Tensor):
    calls: ClassVar[list[tuple[Any, Any, Any, Any]]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Sub.calls.append((func, types, args, kwargs))
        return super().__torch_function__(func, types, args, kwargs)


def asked(action: Callable[[], Any]) -> list[str | None]:
    """The functions that Sub was asked about."""
    Sub.calls.clear()
    action()
    return [resolve_name(func) for func, *_ in Sub.calls]


class Duck:
    """No tensor, but what functions are asked of."""

    def __init__(self, answer: Any = "quack") -> None:
        self.answer = answer

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls, func, types, args, kwargs


def sub(data: Any) -> Sub:
    return tp.tensor(data).as_subclass(Sub)


# ---- every function ----


def asked_function(info: OpInfo) -> Any:
    """What users call; None for an attribute."""
    function = function_of(info)
    return getattr(function, "__wrapped__", None) if inspect.isfunction(function) else function


@over()
def test_every_operator_is_asked_about(info: OpInfo) -> None:
    """A mode gets the function that was called, and what it returns is the result."""
    function = asked_function(info)
    if function is None:
        return  # an attribute: test_attributes
    for sample in info.samples(info.main_dtype, 1):
        args, kwargs = arguments(sample, "cpu", info)
        if info.random:
            seed(kwargs)
        expected = call(function, fresh(info, args), kwargs)
        if info.random:
            seed(kwargs)
        args = fresh(info, args)
        with Recorder() as mode:
            result = function(*args, **kwargs)
        assert len(mode.calls) == 1 and mode.calls[0] is function
        if getattr(tp, function.__name__, None) is function:
            assert resolve_name(function) == f"tensorpy.{function.__name__}"
        for a, b in zip(tensors(result), expected, strict=True):
            check_same(info, a, b, f"{info.name}{sample}")


@over(lambda info: bool(info.op.tensor_arguments))
def test_every_operator_asks_its_arguments(info: OpInfo) -> None:
    """Tensors of a class, and objects that stand for tensors."""
    function = asked_function(info)
    if function is None:
        return

    class Answers(tp.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "answer", func, types

    def changed(value: Any, to: Callable[[tp.Tensor], Any]) -> Any:
        if isinstance(value, tp.Tensor):
            return to(value)
        return type(value)(changed(v, to) for v in value) if isinstance(value, (list, tuple)) else value

    for sample in info.samples(info.main_dtype, 1):
        args, kwargs = arguments(sample, "cpu", info)
        if not any(isinstance(a, (tp.Tensor, list)) for a in args):
            continue
        given = [changed(a, lambda t: t.as_subclass(Answers)) for a in args]
        assert function(*given, **kwargs) == ("answer", function, (Answers,)), info.name
        if info.op.function.is_function:
            duck = [changed(a, lambda t: Duck()) for a in args]
            assert function(*duck, **kwargs)[:3] == (Duck, function, (Duck,)), info.name


PYTHON_FUNCTIONS = [
    f
    for where, functions in overrides.get_overridable_functions().items()
    for f in functions
    if isinstance(f, _C._overridable) and where is not tp.Tensor
]


@pytest.mark.parametrize("function", PYTHON_FUNCTIONS, ids=resolve_name)
def test_every_function_in_python_is_asked_about(function: Any) -> None:
    duck = Duck()
    assert function(duck) == (Duck, function, (Duck,), (duck,), {})
    assert function(1, input=duck) == (Duck, function, (Duck,), (1,), {"input": duck})
    assert function([1, duck]) == (Duck, function, (Duck,), ([1, duck],), {})
    with Recorder() as mode, pytest.raises(TypeError):
        function(1, 2, no_such_argument=3)
    assert mode.calls == [function]


RARE = (
    ([1], [1]),
    (0, [1, 2]),
    ([1], 0),
    (tp.ones(2, 2), 0, 0),
    ([tp.tensor([0])], tp.ones(1)),
    (tp.ones(1), [1], [1]),
    ([2, 2], 2, 0),
    (False, False, tp.float16, tp.bfloat16),
)
METHODS = [f for f in overrides.get_overridable_functions()[tp.Tensor] if getattr(f, "__name__", "") != "__get__"]


@pytest.mark.parametrize("method", METHODS, ids=resolve_name)
def test_every_method_is_asked_about(method: Any) -> None:
    class Answers(tp.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            raise KeyError("asked")

    seen: list[Any] = []
    x = tp.ones(2, 2).as_subclass(Answers)
    scattered = (0, tp.zeros(2, 2, dtype=tp.int64), tp.ones(2, 2), "sum")
    for given in (
        scattered,
        (),
        (x,),
        (x, x),
        (0,),
        (0, 0),
        ([0],),
        (0, 0, 0),
        (0, x),
        (0, 0, x),
        (0, x, x),
        (0, x, 0),
        (x, 0),
        *RARE,
    ):
        try:
            method(x, *given, **({"size": 1} if method.__name__ == "nonzero_static" else {}))
        except KeyError:
            break
        except (TypeError, ValueError, NotImplementedError):
            continue
    assert seen, resolve_name(method)
    named = (resolve_name(seen[0]) or "").rpartition(".")[2].strip("_")
    assert named


SECOND_NAMES = ("_grad_fn", "_grad")  # of attributes, by whose own names classes and modes are asked
ATTRIBUTES = [name for name, v in tp.Tensor.__dict__.items() if isinstance(v, types.GetSetDescriptorType)]


@pytest.mark.parametrize("name", sorted(set(ATTRIBUTES) - overrides._NOT_ASKED))
def test_every_attribute_is_asked_about(name: str) -> None:
    x = sub([1.0])
    getter = tp.Tensor.__dict__[name].__get__
    Sub.calls.clear()
    try:
        getattr(x, name)
    except RuntimeError:  # imag of a real number
        pass
    assert (name in SECOND_NAMES or Sub.calls[0][0] == getter) and Sub.calls[0][2][0] is x
    with Recorder() as mode:
        try:
            getattr(tp.ones(1), name)
        except RuntimeError:
            pass
    asked = name.removeprefix("_") if name in SECOND_NAMES else name
    assert resolve_name(mode.calls[-1]) == f"tensorpy.Tensor.{asked}.__get__"


BINARY = {
    "add": ("add", "add", "add_"),
    "sub": ("sub", "__rsub__", "sub_"),
    "mul": ("mul", "mul", "mul_"),
    "truediv": ("div", "__rtruediv__", "div_"),
    "floordiv": ("__floordiv__", "__rfloordiv__", "floor_divide_"),
    "mod": ("remainder", "__rmod__", "remainder_"),
    "pow": ("__pow__", "__rpow__", "__ipow__"),
    "and_": ("__and__", "bitwise_and", "__iand__"),
    "or_": ("__or__", "bitwise_or", "__ior__"),
    "xor": ("__xor__", "bitwise_xor", "__ixor__"),
    "lshift": ("__lshift__", "__rlshift__", "__ilshift__"),
    "rshift": ("__rshift__", "__rrshift__", "__irshift__"),
    "matmul": ("matmul", "__rmatmul__", "matmul"),
}


@pytest.mark.parametrize("name", sorted(BINARY))
def test_python_operators(name: str) -> None:
    """As PyTorch names them: a method where there is one, else Python's."""
    function = getattr(operator, name)
    in_place = getattr(operator, "i" + name.strip("_"))
    names = [f"tensorpy.Tensor.{n}" for n in BINARY[name]]
    start = [3.0, 5.0] if name == "truediv" else [3, 5]
    x, y = sub(start), tp.tensor([1, 2]).to(tp.tensor(start).dtype)
    assert asked(lambda: function(x, y)) == [names[0]] == asked(lambda: function(y, x))
    assert function(x, y).tolist() == function(tp.tensor(start), y).tolist() and type(function(y, x)) is Sub
    assert asked(lambda: in_place(sub(start), y)) == [names[2]]
    duck = Duck()
    assert function(y, duck)[:2] == (Duck, getattr(tp.Tensor, BINARY[name][0])) and function(y, duck)[3][1] is duck
    assert resolve_name(function(duck, y)[1]) == names[1] and function(duck, y)[3] == (y, duck)
    if name != "matmul":
        assert asked(lambda: function(x, 2)) == [names[0]] and asked(lambda: function(2, x)) == [names[1]]
        assert asked(lambda: in_place(sub(start), 2)) == [names[2]]
    with Recorder() as mode, pytest.raises(TypeError):
        function(y, object())
    assert mode.calls == []


def test_other_slots() -> None:
    x, z = sub([1.0, 2.0]), sub(3)
    for action, name in (
        (lambda: -x, "neg"),
        (lambda: +x, "positive"),
        (lambda: abs(x), "abs"),
        (lambda: ~z, "__invert__"),
        (lambda: x[0], "__getitem__"),
        (lambda: x[None, :1], "__getitem__"),
        (lambda: x.__setitem__(0, 5.0), "__setitem__"),
        (lambda: tp.zeros(2).__setitem__(0, z), "__setitem__"),
        (lambda: len(x), "__len__"),
        (lambda: 1.0 in x, "__contains__"),
        (lambda: repr(x), "__repr__"),
        (lambda: f"{z}", "__format__"),
        (lambda: bool(z), "__bool__"),
        (lambda: int(z), "__int__"),
        (lambda: float(z), "__float__"),
        (lambda: complex(z), "__complex__"),
        (lambda: "abcd"[z], "__index__"),
        (lambda: x == x, "__eq__"),
        (lambda: x < 1, "lt"),
        (lambda: list(reversed(x)), "__reversed__"),
        (lambda: copy.deepcopy(x), "__deepcopy__"),
        (lambda: pickle.dumps(x), "__reduce_ex__"),
        (lambda: x.__array__(), "__array__"),
        (lambda: x.numpy(), "numpy"),
        (lambda: x.__dlpack__(), "__dlpack__"),
        (lambda: x.untyped_storage(), "untyped_storage"),
        (lambda: setattr(x, "data", x), "data.__set__"),
        (lambda: setattr(x, "grad", None), "grad.__set__"),
        (lambda: setattr(x, "requires_grad", False), "requires_grad.__set__"),
    ):
        assert asked(action)[:1] == [f"tensorpy.Tensor.{name}"], name
    assert asked(lambda: list(x))[:2] == ["tensorpy.Tensor.dim", "tensorpy.Tensor.unbind"]
    assert (
        asked(lambda: hash(x)) == asked(lambda: x.as_subclass(tp.Tensor)) == asked(lambda: setattr(x, "own", 1)) == []
    )
    assert asked(lambda: tp.zeros(2)[z - 3]) == ["tensorpy.Tensor.sub"]


# ---- who is asked, and in which order ----


def test_the_arguments_of_a_call() -> None:
    x = sub([1.0])
    Sub.calls.clear()
    tp.add(1.0, other=x, alpha=2)
    assert Sub.calls == [(tp.add, (Sub,), (1.0,), {"other": x, "alpha": 2})]
    Sub.calls.clear()
    x.add(x, alpha=2)
    assert Sub.calls == [(tp.Tensor.add, (Sub,), (x, x), {"alpha": 2})]
    assert asked(lambda: tp.cat([tp.ones(1), x])) == ["tensorpy.cat"]
    assert asked(lambda: tp.add(tp.ones(1), 1, out=sub([0.0]))) == ["tensorpy.add"]
    assert asked(lambda: tp.ops.aten.add.Tensor(x, x)) == ["aten.add.Tensor"]
    assert asked(lambda: tp.ops.aten.add(x, x)) == ["aten.add"]
    assert asked(lambda: tp.ops.aten.relu(x)) == ["aten.relu"]
    assert asked(lambda: F.relu(x, inplace=False)) == ["tensorpy.nn.functional.relu"]
    assert asked(lambda: tp.einsum("i,i->", x, x)) == ["tensorpy.einsum"]


def test_order_of_the_classes() -> None:
    order: list[str] = []

    def kind(name: str, bases: tuple[type, ...], answer: Any) -> Any:
        def torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(name)
            return answer

        return type(name, bases, {"__torch_function__": classmethod(torch_function)})

    a = kind("A", (), NotImplemented)
    b = kind("B", (a,), NotImplemented)
    c = kind("C", (tp.Tensor,), NotImplemented)
    d = kind("D", (), "d")
    t = tp.ones(1).as_subclass(c)
    assert tp.cat([a(), t, b(), a(), d()]) == "d"
    assert order == ["B", "A", "C", "D"]
    with pytest.raises(
        TypeError,
        match=r"no implementation found for 'tensorpy.add' .*: \[<class '.*B'>, <class '.*A'>, <class '.*C'>\]",
    ):
        tp.add(a(), b(), out=t)


def test_unrelated_subclasses_refuse_each_other() -> None:
    class One(tp.Tensor):
        pass

    class Two(tp.Tensor):
        pass

    class Three(One):
        pass

    one, two, three = (tp.ones(2).as_subclass(k) for k in (One, Two, Three))
    for action in (lambda: one + two, lambda: tp.add(one, two), lambda: one.add(two), lambda: tp.cat([one, two])):
        with pytest.raises(TypeError, match="no implementation found for 'tensorpy"):
            action()
    assert type(one + three) is type(three + one) is type(tp.cat([one, three])) is Three
    assert has_torch_function((one,)) and not has_torch_function((tp.ones(1), 1, "x"))


@pytest.mark.parametrize(
    "name, call",
    [
        ("sum", lambda d: tp.sum(tp.ones(2), d)),
        ("sum", lambda d: tp.ones(2).sum((d,))),
        ("zeros", lambda d: tp.zeros(d)),
        ("zeros", lambda d: tp.zeros((d, 2))),
        ("arange", lambda d: tp.arange(d)),
        ("full", lambda d: tp.full((2,), d)),
        ("view", lambda d: tp.ones(2).view(d, 1)),
        ("to", lambda d: tp.ones(2).to(d)),
        ("ones", lambda d: tp.ones(2, dtype=d)),
        ("clamp", lambda d: tp.clamp(tp.ones(2), min=d)),
        ("pad", lambda d: tp.nn.functional.pad(tp.ones(2), (0, d))),
        ("__getitem__", lambda d: tp.ones(2)[d]),
        ("__getitem__", lambda d: tp.ones(2, 2)[d, 1]),
        ("__getitem__", lambda d: tp.ones(2)[[d]]),
        ("_assert", lambda d: tp._assert(d, "message")),
    ],
)
def test_what_stands_for_a_number_is_asked(name: str, call: Any) -> None:
    class Number:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__, cls in types

    assert call(Number()) == (name, True)


def test_errors_of_arguments_stay_errors() -> None:
    for action in (
        lambda: tp.add(Duck(), 1, no_such=2),
        lambda: tp.zeros(Duck(), 2, 3, no_such=1),
        lambda: tp.ones(object()),
    ):
        with pytest.raises(TypeError):
            action()

    class Own(Exception):
        pass

    class Raises(tp.Tensor):
        @classmethod
        def __torch_function__(cls, *unused: Any) -> Any:
            raise Own

    x = tp.ones(1).as_subclass(Raises)
    for action in (lambda: x + 1, lambda: x.shape, lambda: tp.exp(x), lambda: x[0], lambda: F.relu(x), lambda: bool(x)):
        with pytest.raises(Own):
            action()


# ---- Tensor's own ----


def test_the_default_converts_results() -> None:
    class Plain(tp.Tensor):
        pass

    x = tp.tensor([[1.0, 2.0]]).as_subclass(Plain)
    default = tp.Tensor.__torch_function__
    made = Plain.__torch_function__(tp.max, (Plain,), (x, 1))
    assert type(made) is tp.return_types.max and type(made.values) is Plain
    assert type(Plain.__torch_function__(tp.split, (Plain,), (x, 1), {"dim": 1})[1]) is Plain
    assert default(tp.exp, (), (tp.ones(1),)).tolist() == tp.exp(tp.ones(1)).tolist()
    assert Plain.__torch_function__(tp.exp, (int,), (x,)) is NotImplemented
    y = sub([1.0]).requires_grad_()
    (y * 2).sum().backward()
    assert type(y.grad) is tp.Tensor and type(y.detach()) is Sub


def test_switching_it_off() -> None:
    x = sub([1.0])
    with DisableTorchFunctionSubclass():
        assert asked(lambda: x + 1) == [] and type(x + 1) is tp.Tensor and not has_torch_function((x,))
        with Recorder() as mode:
            x.add(1)
        assert mode.names == ["tensorpy.Tensor.add"]
        with DisableTorchFunction(), DisableTorchFunctionSubclass(), Recorder() as mode:
            x.add(1)
        assert mode.calls == []
    assert asked(lambda: x + 1) == ["tensorpy.Tensor.add"]
    assert _C.DisableTorchFunction is DisableTorchFunction
    with pytest.raises(TypeError), DisableTorchFunctionSubclass():
        tp.add(Duck(), 1)


# ---- modes ----


def test_a_mode_sees_what_takes_no_tensor() -> None:
    with Recorder() as mode:
        x = tp.tensor([1.0])
        tp.ones(2), tp.arange(3), tp.as_tensor([1]), tp.asarray([1]), tp.randn(2), tp.promote_types(tp.int8, tp.int16)
        x.shape, F.relu(x), x + 1
    assert mode.names == [
        *(f"tensorpy.{n}" for n in ("tensor", "ones", "arange", "as_tensor", "asarray", "randn", "promote_types")),
        "tensorpy.Tensor.shape.__get__",
        "tensorpy.nn.functional.relu",
        "tensorpy.Tensor.add",
    ]


SPARSE = {
    "sparse_coo_tensor": lambda first, values, **size: tp.sparse_coo_tensor(first[:1].expand(2, 1), values, **size),
    "sparse_csr_tensor": lambda first, values, **size: tp.sparse_csr_tensor(first, [0], values, **size),
    "sparse_csc_tensor": lambda first, values, **size: tp.sparse_csc_tensor(first, [0], values, **size),
    "sparse_bsr_tensor": lambda first, values, **size: tp.sparse_bsr_tensor(first, [0], values.view(1, 1, 1), **size),
    "sparse_bsc_tensor": lambda first, values, **size: tp.sparse_bsc_tensor(first, [0], values.view(1, 1, 1), **size),
    "sparse_compressed_tensor": lambda first, values, **size: tp.sparse_compressed_tensor(
        first, [0], values, layout=tp.sparse_csr, **size
    ),
}


@pytest.mark.parametrize("name", SPARSE)
def test_modes_are_asked_for_sparse_tensors_and_classes_are_not(name: str) -> None:
    """As for `tensor`."""
    first, values = tp.tensor([0, 1]), tp.ones(1)
    with Recorder() as outer, Recorder() as inner:
        made = SPARSE[name](first, values, size=(1, 1))
    assert getattr(tp, name) in inner.calls and getattr(tp, name) in outer.calls
    assert made.to_dense().tolist() == [[1.0]]
    made = SPARSE[name](first.as_subclass(Sub), values.as_subclass(Sub), size=(1, 1))
    assert type(made) is tp.Tensor
    assert f"tensorpy.{name}" not in asked(lambda: SPARSE[name](first.as_subclass(Sub), sub([1.0]), size=(1, 1)))


def test_modes_nest() -> None:
    order: list[str] = []

    class Named(TorchFunctionMode):
        def __init__(self, name: str, answers: bool = True) -> None:
            self.name, self.answers = name, answers

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(self.name)
            assert self not in overrides._get_current_function_mode_stack()
            return func(*args, **kwargs) if self.answers else NotImplemented

    x = sub([1.0])
    with Named("outer") as outer, Named("inner") as inner:
        assert overrides._get_current_function_mode_stack() == [outer, inner]
        assert overrides._get_current_function_mode() is inner
        assert type(x + 1) is Sub
    assert order == ["inner", "outer"]
    with Named("leaves it", False):
        assert tp.exp(Duck())[:2] == (Duck, tp.exp)
        with pytest.raises(TypeError, match=r"no implementation found for 'tensorpy\.ones'"):
            tp.ones(1)
    assert overrides._get_current_function_mode() is None
    with overrides.BaseTorchFunctionMode():
        assert tp.ones(1).tolist() == [1.0]
    with pytest.raises(NotImplementedError), TorchFunctionMode():
        tp.ones(1)
    with pytest.raises(RuntimeError, match="no TorchFunctionMode is on"):
        _C._pop_function_mode()


def test_modes_belong_to_their_thread() -> None:
    seen: list[int] = []

    def work() -> None:
        with Recorder() as mode:
            for _ in range(50):
                tp.ones(2)
        seen.append(len(mode.calls))

    with Recorder() as mine:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert seen == [50] * 4 and mine.calls == []


# ---- for functions of one's own ----


def test_functions_of_ones_own() -> None:
    def norm(x: Any, p: int = 2) -> Any:
        if overrides.has_torch_function_unary(x):
            return handle_torch_function(norm, (x,), x, p=p)
        return x.norm(p)

    duck = Duck()
    assert norm(duck, 3) == (Duck, norm, (Duck,), (duck,), {"p": 3})
    assert norm(tp.tensor([3.0, 4.0])).item() == 5.0
    x = tp.ones(1)
    with Recorder() as mode:
        norm(x)
    assert mode.calls[0] is norm
    with pytest.raises(TypeError, match=r"no implementation found for '.*norm'"):
        handle_torch_function(norm, (), 1)

    @overrides.wrap_torch_function(lambda a, b: (a, b))
    def both(a: Any, b: Any) -> Any:
        return a + b

    assert both(1, duck)[1] is both and both(1, 2) == 3
    assert overrides.has_torch_function_variadic(1, duck) and not overrides.has_torch_function_variadic(1, tp.ones(1))


def test_redispatch_function() -> None:
    depth: list[str | None] = []

    class Logged(tp.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            depth.append(resolve_name(func))
            return overrides.redispatch_function(func, types, args, kwargs)

    x = tp.ones(2).as_subclass(Logged)
    assert type(F.softsign(x)) is tp.Tensor
    assert depth[0] == "tensorpy.nn.functional.softsign" and len(depth) > 1
    assert type(x.exp()) is tp.Tensor


# ---- lists and names ----


def test_lists_of_functions() -> None:
    overridable, ignored = overrides.get_overridable_functions(), overrides.get_ignored_functions()
    assert tp.add in overridable[tp] and F.relu in overridable[F] and tp.Tensor.shape.__get__ in overridable[tp.Tensor]
    assert tp.manual_seed in ignored and tp.is_tensor in ignored and tp.from_numpy in ignored
    every = [f for functions in overridable.values() for f in functions]
    assert not set(every) & ignored and len(every) == len(set(every))
    stand_ins = overrides.get_testing_overrides()
    assert set(stand_ins) == set(every) and all(f() == -1 for f in stand_ins.values())
    assert list(inspect.signature(stand_ins[F.relu]).parameters) == ["input", "inplace"]


def test_names() -> None:
    assert resolve_name(tp.add) == "tensorpy.add" and resolve_name(tp.Tensor.add) == "tensorpy.Tensor.add"
    assert resolve_name(tp.Tensor.shape.__get__) == "tensorpy.Tensor.shape.__get__"
    assert resolve_name(tp.linalg.vector_norm) == "tensorpy.linalg.vector_norm"
    assert resolve_name(tp.ops.aten.add.Tensor) == "aten.add.Tensor"
    assert resolve_name(tp.ops.aten.add) == "aten.add"
    assert resolve_name(len) is resolve_name([]) is None
    assert overrides.is_tensor_method_or_property(tp.Tensor.add) and not overrides.is_tensor_method_or_property(tp.add)
    assert overrides.is_tensor_method_or_property(tp.Tensor.T.__get__)
    assert overrides.is_tensor_like(Duck()) and overrides.is_tensor_like(sub([1])) and not overrides.is_tensor_like(1)


def test_functions_in_python_look_as_they_are() -> None:
    assert inspect.signature(F.relu).parameters["inplace"].default is False
    assert F.relu.__name__ == "relu" and F.relu.__doc__ and "relu" in repr(F.relu)
    for function in (F.relu, tp.einsum, tp.nn.init.zeros_, tp.autograd.grad):
        assert pickle.loads(pickle.dumps(function)) is function and copy.deepcopy(function) is function
    assert inspect.signature(tp.Tensor.backward).parameters["gradient"].default is None
    bound = tp.ones(2).unique
    assert bound().tolist() == [1.0] and callable(tp.Tensor.unique)
    assert inspect.unwrap(F.relu).__code__.co_name == "relu"


def test_subclasses_are_kept_by_c_more_than_once() -> None:
    """What C holds alone keeps its class and attributes however often Python lets it go."""
    x = tp.ones(2, requires_grad=True)
    held = (x * 1).as_subclass(Sub)
    held.label = "kept"
    loss = tp.exp(held).sum()
    node = loss.grad_fn
    leaf = tp.ones(1)
    leaf.requires_grad_()
    grad = tp.zeros(1).as_subclass(Sub)
    grad.label = "grad"
    leaf.grad = grad
    del grad
    for _ in range(4):
        assert type(leaf.grad) is Sub and leaf.grad.label == "grad"
    assert node is not None


# ---- two libraries that ask each other's classes ----


class Theirs:
    """A tensor of another library, whose answer is to run the function on the same objects."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {})) if all(issubclass(cls, t) for t in types) else NotImplemented


def their_function(x):
    """A function of theirs, which asks every class that has a __torch_function__."""
    result = type(x).__torch_function__(their_function, (type(x),), (x,), {})
    if result is NotImplemented:
        raise TypeError("no implementation found")
    return result


def test_a_function_of_another_library_takes_no_tensors_of_ours():
    with pytest.raises(TypeError, match="no implementation found"):
        their_function(tp.ones(3))
    assert tp.Tensor.__torch_function__(tp.add, (tp.Tensor,), (tp.ones(2), 1)).tolist() == [2, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: tp.add(x, y),
        lambda x, y: x + y,
        lambda x, y: tp.stack([y]),
        lambda x, y: x[y],
        lambda x, y: x == y,
        lambda x, y: tp.nn.functional.relu(y),
        lambda x, y: tp.nn.Linear(3, 3)(y),
        lambda x, y: tp.einsum("i,i", x, y),
    ],
)
def test_a_class_of_another_library_is_asked_once(call):
    with pytest.raises(TypeError, match="no implementation found for 'tensorpy"):
        call(tp.ones(3), Theirs())


def test_a_wrapper_inside_a_wrapper_is_asked_for_each():
    class Wrapper:
        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls(func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {})))

    assert tp.add(Wrapper(Wrapper(tp.ones(2))), 1).inner.inner.tolist() == [2, 2]


def test_both_libraries_in_one_process():
    torch = pytest.importorskip("torch")
    ours, theirs = tp.ones(3), torch.ones(3)
    for mixed in (
        lambda: torch.relu(ours),
        lambda: torch.nn.functional.relu(ours),
        lambda: torch.stack([ours]),
        lambda: theirs + ours,
        lambda: ours + theirs,
        lambda: tp.relu(theirs),
        lambda: theirs[ours],
    ):
        with pytest.raises(TypeError):
            mixed()
    assert tp.tensor(theirs).tolist() == torch.tensor(ours).tolist() == [1, 1, 1]


def test_what_all_refuse_is_said_in_pytorchs_words() -> None:
    class Nothing:
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented

    with pytest.raises(
        TypeError, match=r"^Multiple dispatch failed for 'tensorpy\.add'; all __torch_function__ handlers"
    ):
        tp.add(Nothing(), 1)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        tp._foreach_sqrt([tp.ones(1)], 2)
