"""Operators from Python: what their gradients are told, which results and schemas are refused, and who finds them."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import Tensor, library
from tensorpy.utils import _python_dispatch as pd
from tests.wrapped import Wrapped


@pytest.fixture
def lib() -> Iterator[library.Library]:
    made = library.Library("testcustom", "FRAGMENT")
    yield made
    made._destroy()


# ---- gradients ----


def test_backward_is_told_whose_gradient_is_wanted() -> None:
    """One mark for each argument, a list of them for a list of tensors."""
    seen = []

    @library.custom_op("testcustom::wanted", mutates_args=())
    def wanted(x: Tensor, ys: list[Tensor], scale: float = 2.0) -> Tensor:
        return x * scale + sum(ys)

    def backward(ctx: Any, grad: Tensor) -> Any:
        seen.append(ctx.needs_input_grad)
        gx = grad * 2.0 if ctx.needs_input_grad[0] else None
        return gx, [grad if need else None for need in ctx.needs_input_grad[1]], None

    wanted.register_autograd(backward)
    x, y, z = tp.ones(2, requires_grad=True), tp.ones(2), tp.ones(2, requires_grad=True)
    wanted(x, [y, z]).sum().backward()
    assert x.grad is not None and z.grad is not None and y.grad is None
    assert (x.grad.tolist(), z.grad.tolist()) == ([2.0, 2.0], [1.0, 1.0])
    wanted(y, [y, z], 3.0).sum().backward()
    assert seen == [(True, [False, True], False), (False, [False, True], False)]


def test_gradients_of_a_list_arrive_as_a_list() -> None:
    @library.custom_op("testcustom::both", mutates_args=())
    def both(x: Tensor, scale: float = 2.0) -> list[Tensor]:
        return [x.sin() * scale, x.cos() * scale]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        assert isinstance(output, list) and inputs[1] == 2.0
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, grads: Any) -> Any:
        assert isinstance(grads, list)
        (x,) = ctx.saved_tensors
        return 2.0 * (grads[0] * x.cos() - grads[1] * x.sin())  # that of an argument which is its default is left out

    both.register_autograd(backward, setup_context=setup)
    x = tp.tensor([0.5], requires_grad=True)
    made = both(x)
    (made[0].sum() + made[1].sum()).backward()
    assert x.grad is not None and x.grad.allclose(2.0 * (x.cos() - x.sin()).detach())


def test_arguments_by_keyword_are_told_by_name(lib: library.Library) -> None:
    """In any order of setup_context's parameters; tensors among them have no gradient, which is said."""
    lib.define("scaled(Tensor x, *, float by) -> Tensor")
    lib.impl("scaled", lambda x, *, by: x * by, "CPU")

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.by = keyword_only_inputs["by"]

    library.register_autograd("testcustom::scaled", lambda ctx, grad: grad * ctx.by, setup_context=setup, lib=lib)
    x = tp.ones(2, requires_grad=True)
    tp.ops.testcustom.scaled(x, by=3.0).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]
    lib.define("hidden(Tensor x, *, Tensor y) -> Tensor")
    with pytest.raises(NotImplementedError, match="given by keyword alone"):
        library.register_autograd("testcustom::hidden", lambda ctx, grad: grad, lib=lib)
    with pytest.raises(NotImplementedError, match="given by keyword alone"):
        library.register_vmap("testcustom::hidden", lambda info, dims, x, *, y: (x, 0), lib=lib)


# ---- results and schemas ----


@pytest.mark.parametrize(
    ("fn", "schema"),
    [
        (lambda x: x, "(Tensor x) -> Tensor"),
        (lambda x: x.view(-1), "(Tensor x) -> Tensor"),
        (lambda x: [x.clone(), x.t()], "(Tensor x) -> Tensor[]"),
        (lambda x: (y := x.clone(), y[0]), "(Tensor x) -> (Tensor, Tensor)"),
        (lambda x: x.sin_(), "(Tensor(a!) x) -> Tensor"),
    ],
)
def test_results_are_new(fn: Any, schema: str) -> None:
    op = library.custom_op("testcustom::shares", fn, mutates_args={"x"} if "!" in schema else (), schema=schema)
    with pytest.raises(RuntimeError, match="may not alias"):
        op(tp.ones(2, 2))


def test_a_schema_and_mutates_args_agree() -> None:
    with pytest.raises(ValueError, match=r"the op mutates {'x'}"):
        library.custom_op("testcustom::sin_", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(ValueError, match="collection of names, or the string 'unknown'"):

        @library.custom_op("testcustom::word", mutates_args="x")
        def word(x: Tensor) -> None: ...

    with pytest.raises(ValueError, match="expected schema to look like"):
        library.define("testcustom::twice", "twice(Tensor x) -> Tensor")


def test_defaults_of_dtypes_and_devices() -> None:
    @library.custom_op("testcustom::defaults", mutates_args=())
    def defaults(
        x: Tensor,
        kind: tp.dtype = tp.int32,
        where: tp.device = tp.device("cpu:0"),  # noqa: B008
        name: str = "a",
    ) -> Tensor:
        assert (kind, where, name) == (tp.int32, tp.device("cpu:0"), "a")
        return x.clone()

    schema = defaults._opoverload._schema
    assert schema.partition("(")[2] == 'Tensor x, ScalarType kind=int32, Device where="cpu:0", str name="a") -> Tensor'
    assert [a.default_value for a in schema.arguments] == [None, 3, tp.device("cpu:0"), "a"]
    assert defaults(tp.ones(1)).item() == 1


# ---- kernels ----


def test_the_older_forms_take_a_library(lib: library.Library) -> None:
    @library.define(lib, "plus(Tensor x) -> Tensor")
    def plus(x: Tensor) -> Tensor:
        return x + 1

    lib.define("minus(Tensor x) -> Tensor")

    @library.impl(lib, "minus", "CPU")
    def minus(x: Tensor) -> Tensor:
        return x - 1

    @library.impl(lib, tp.ops.testcustom.minus.default, "Meta")
    def on_meta(x: Tensor) -> Tensor:
        return tp.empty_like(x)

    assert tp.ops.testcustom.plus(tp.ones(1)).item() == 2 and tp.ops.testcustom.minus(tp.ones(1)).item() == 0
    assert tp.ops.testcustom.minus(tp.ones(2, device="meta")).shape == (2,)


def test_what_a_library_refuses(lib: library.Library) -> None:
    other = library.Library("aten", "IMPL", "CPU")
    with pytest.raises(RuntimeError, match="is not the one of"):
        other.impl("neg", lambda x: x, "Meta")
    with pytest.raises(RuntimeError, match="not of the namespace"):
        lib.impl(tp.ops.aten.neg.default, lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match="Expected one of"):
        library.impl("testcustom::any", "something")
    lib.define("made(Tensor x) -> Tensor")
    lib.impl("made", lambda x: x.sin(), "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="follows from theirs"):
        library.register_fake("testcustom::made", tp.empty_like, lib=lib)


def test_a_library_that_nobody_holds_is_destroyed() -> None:
    made = library.Library("testdropped", "FRAGMENT")
    made.define("f(Tensor x) -> Tensor")
    made.impl("f", lambda x: x + 1, "CPU")
    assert tp.ops.testdropped.f(tp.ones(1)).item() == 2
    made = library.Library("testdropped", "FRAGMENT")  # as when a cell of a notebook runs again
    gc.collect()
    made.define("f(Tensor x) -> Tensor")
    made._destroy()


def test_kernels_of_devices_that_are_not_here_are_taken() -> None:
    @library.custom_op("testcustom::elsewhere", mutates_args=(), device_types="cuda")
    def elsewhere(x: Tensor) -> Tensor:
        raise AssertionError

    library.register_kernel("testcustom::elsewhere", ("cpu", "xpu"), lambda x: x + 1)
    library.register_autocast("testcustom::elsewhere", "cuda", tp.float16)
    assert elsewhere(tp.ones(1)).item() == 2


def test_a_kernel_by_the_argument_device() -> None:
    @library.custom_op("testcustom::ramp", mutates_args=(), device_types="cpu")
    def ramp(n: int, device: tp.device) -> Tensor:
        return tp.arange(n)

    assert ramp(3, device="cpu").tolist() == ramp(3, tp.device("cpu")).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="does not have a kernel registered for meta"):
        ramp(3, "meta")
    ramp.register_kernel("meta", lambda n, device: tp.empty(n, device="meta"))
    assert ramp(3, "meta").shape == (3,)
    with pytest.raises(ValueError, match="argument `device"):
        library.custom_op(
            "testcustom::nowhere", lambda: tp.ones(1), mutates_args=(), device_types="cpu", schema="() -> Tensor"
        )


def test_a_kernel_is_off_for_a_scope() -> None:
    @library.custom_op("testcustom::stepped", mutates_args=())
    def stepped(x: Tensor) -> Tensor:
        return x + 1

    stepped.register_kernel("cpu", lambda x: x + 2)
    x = tp.zeros(1)
    with stepped.set_kernel_enabled("cpu", enabled=False):
        assert stepped(x).item() == 1
    with stepped.set_kernel_enabled("cpu"):
        assert stepped(x).item() == 2
    assert stepped(x).item() == 2 and stepped._qualname == "testcustom::stepped" and stepped._name == "stepped"


# ---- names ----


def test_names_of_overloads_are_torchs() -> None:
    op = tp.ops.aten.add.Tensor
    assert (op.__name__, op._name, op._own_name) == ("add.Tensor", "aten::add.Tensor", "add.Tensor")
    assert tp.ops.aten.sin.default.__name__ == "sin.default" and not op._defined_in_python
    assert str(tp.ops.aten.add) == "aten.add" and tp.ops.aten.add._qualified_op_name == "aten::add"
    assert tp.Tag.pt2_compliant_tag in op.tags and tp.Tag.pointwise in op.tags

    @library.custom_op("testcustom::named", mutates_args=())
    def named(x: Tensor) -> Tensor:
        return x.clone()

    assert named._opoverload.__name__ == "named.default" and named._opoverload._defined_in_python
    assert named._opoverload.overloadpacket.__name__ == "named"


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_numbers_stand_for_tensors(name: str) -> None:
    """Graphs of torch's write `aten.mul.Tensor(x, 2)` for x * 2."""
    packet, x = getattr(tp.ops.aten, name), tp.tensor([3, 4])
    for number in (2, 2.5, True):
        if name == "sub" and number is True:
            continue
        made, expected = packet.Tensor(x, number), getattr(tp, name)(x, number)
        assert made.dtype == expected.dtype and made.tolist() == expected.tolist()
    assert tp.ops.aten.add.Tensor(x, 2, alpha=3).tolist() == [9, 10]


def test_a_number_is_seen_in_a_tensors_place() -> None:
    """As PyTorch's handlers see x * 2; comparisons keep their Scalar overloads."""
    seen: list[tuple[str, Any]] = []

    class Seen(pd.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func.__name__, (*args[1:], *(kwargs or {}).values())))
            return func(*args, **(kwargs or {}))

    x = tp.tensor([3, 4])
    with Seen():
        made = [x + 2, x - 2.5, x * True, x / 2, x // 2, tp.add(x, 2, alpha=3), x == 2]
        x += 1
    assert [t.tolist() for t in made[:2]] == [[5, 6], [0.5, 1.5]] and made[5].tolist() == [9, 10]
    assert seen == [
        ("add.Tensor", (2,)),
        ("sub.Tensor", (2.5,)),
        ("mul.Tensor", (True,)),
        ("div.Tensor", (2,)),
        ("floor_divide.default", (2,)),
        ("add.Tensor", (2, 3)),
        ("eq.Scalar", (2,)),
        ("add_.Tensor", (1,)),
    ]


# ---- wrappers and modes ----


def test_storages_of_wrappers_tell_who_views_whom() -> None:
    w = Wrapped(tp.arange(4.0))
    assert w.untyped_storage() is w.view(2, 2).untyped_storage() is not (w + 1).untyped_storage()
    assert w.untyped_storage().nbytes() == 16
    for read in ("data_ptr", "tolist"):
        with pytest.raises((RuntimeError, TypeError)):
            getattr(w.untyped_storage(), read)()
    with pytest.raises(TypeError):
        tp.zeros(2).set_(w.untyped_storage())
    with pytest.raises(RuntimeError, match="no elements of its own"):
        pickle.dumps(w.untyped_storage())


def test_a_class_is_asked_after_its_data_was_set() -> None:
    seen: list[str] = []

    class Asked(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            base: Any = super()
            return base.__torch_dispatch__(func, types, list(args), kwargs)

    x = tp.ones(2).as_subclass(Asked)
    x.data = tp.zeros(2)
    assert type(x) is Asked
    x.neg()
    x.set_(tp.ones(3))
    x.neg()
    assert [name for name in seen if name != "detach.default"] == ["neg.default", "set_.source_Tensor", "neg.default"]


def test_a_mode_is_no_class_method() -> None:
    class Wrong(pd.TorchDispatchMode):
        __torch_dispatch__: Any = classmethod(lambda cls, func, types, args=(), kwargs=None: None)

    with pytest.raises(RuntimeError, match="a classmethod is not supported"), Wrong():
        pass


def test_modes_of_the_machinery_are_left_out() -> None:
    class Infra(pd.BaseTorchDispatchMode):
        @classmethod
        def is_infra_mode(cls) -> bool:
            return True

    with Infra():
        assert pd.is_in_torch_dispatch_mode() and not pd.is_in_torch_dispatch_mode(include_infra_modes=False)
        with pd.BaseTorchDispatchMode():
            assert pd.is_in_torch_dispatch_mode(include_infra_modes=False)
    assert not pd.is_in_torch_dispatch_mode()


def test_a_class_says_what_is_printed() -> None:
    class Boxed(Tensor):
        def __repr__(self) -> str:
            base: Any = super()
            text: str = base.__repr__(tensor_contents="...")
            return text

    assert repr(tp.ones(2).as_subclass(Boxed)) == str(tp.ones(2).as_subclass(Boxed)) == "Boxed(...)"
    leaf: Any = tp.ones(1, requires_grad=True)
    assert leaf.__repr__(tensor_contents="x") == "tensor(x, requires_grad=True)"
    assert repr(tp.ones(1)) == tp.ones(1).__repr__() == "tensor([1.])"


class Held(Tensor):
    """A wrapper that a file may name."""

    elem: Tensor
    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls: Any, elem: Tensor) -> Any:
        made = Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype, strides=elem.stride())
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*(a.elem if isinstance(a, Held) else a for a in args), **(kwargs or {}))
        return cls(made) if isinstance(made, Tensor) else made


def test_a_wrapper_in_a_file() -> None:
    file = io.BytesIO()
    held = Held(tp.arange(3))
    tp.save(held, file)
    file.seek(0)
    with tp.serialization.safe_globals([Held]):
        loaded = tp.load(file)
    assert type(loaded) is Held and loaded.dtype == tp.int64 and loaded.elem.tolist() == [0, 1, 2]
    assert copy.deepcopy(held).elem.tolist() == [0, 1, 2]
