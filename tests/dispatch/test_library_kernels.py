"""Kernels by key (get_kernel), kernels that come before their operator, tuples of one result, and effects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import library
from tensorpy.fx.experimental.proxy_tensor import make_fx


@pytest.fixture
def lib() -> Iterator[library.Library]:
    made = library.Library("kernelslib", "FRAGMENT")
    yield made
    made._destroy()


# ---- get_kernel ----


def test_a_kernel_stays_what_it_is() -> None:
    """A kernel in its place may call it, and it may be called when that is gone."""
    before = library.get_kernel("aten::sin", "CPU")
    own = library.Library("aten", "IMPL")

    def kernel(keyset: int, x: tp.Tensor) -> Any:
        return before.call_boxed(keyset, x) if bool((x < 0).any()) else tp.zeros_like(x)

    own.impl("sin", kernel, "CPU", with_keyset=True)
    try:
        assert tp.sin(tp.tensor([1.0])).item() == 0
        x = tp.tensor([-1.0], requires_grad=True)
        tp.sin(x).backward()
        assert x.grad is not None and x.grad.item() == pytest.approx(0.5403023)
        assert library.get_kernel("aten::sin", "CPU").call_boxed("CPU", tp.ones(1)).item() == 0
    finally:
        own._destroy()
    assert tp.sin(tp.ones(1)).item() == before.call_boxed(0, tp.ones(1)).item() != 0


def test_arguments_of_a_kernel() -> None:
    add = library.get_kernel(tp.ops.aten.add.Tensor, "CPU")
    assert add.op_handle is tp.ops.aten.add.Tensor
    assert add.call_boxed(tp.dispatch.keys(tp.ones(1)), tp.ones(1), tp.ones(1), alpha=3).item() == 4
    x = tp.ones(1)
    assert library.get_kernel("aten::add_.Tensor", "CPU").call_boxed(0, x, x) is x and x.item() == 2
    for wrong in (tp.ones(1), None, [3]):
        with pytest.raises(TypeError, match="set of dispatch keys"):
            add.call_boxed(wrong, tp.ones(1), tp.ones(1))
    with pytest.raises(TypeError, match="get_kernel makes them"):
        type(add)()


def test_a_kernel_in_python_outlives_its_library(lib: library.Library) -> None:
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    kernel = library.get_kernel("kernelslib::twice", "CPU")
    lib._destroy()
    gc.collect()
    assert kernel.call_boxed(0, tp.ones(1)).item() == 2


@pytest.mark.parametrize(
    ("op", "key", "kind", "words"),
    [
        ("aten::nosuch", "CPU", RuntimeError, "does not exist"),
        ("aten::add", "CPU", RuntimeError, "does not exist"),
        ("sin", "CPU", RuntimeError, "does not exist"),
        ("aten::sin", "Bogus", ValueError, "no dispatch key"),
        ("aten::sin", "CompositeImplicitAutograd", RuntimeError, "alias key"),
        ("aten::sin", "XPU", RuntimeError, "no kernel for XPU"),
        (3, "CPU", ValueError, "its name, not int"),
    ],
)
def test_kernels_that_are_not_there(op: Any, key: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        library.get_kernel(op, key)


# ---- kernels that come before their operator ----


def test_a_kernel_waits_for_its_operator(lib: library.Library) -> None:
    kernels = library.Library("kernelslib", "IMPL")
    kernels.impl("later", lambda x: x * 5, "CPU")
    assert not hasattr(tp.ops.kernelslib, "later")
    lib.define("later(Tensor x) -> Tensor")
    assert tp.ops.kernelslib.later(tp.ones(1)).item() == 5
    lib._destroy()
    again = library.Library("kernelslib", "FRAGMENT")  # the kernel waits for the next declaration
    again.define("later(Tensor x) -> Tensor")
    assert tp.ops.kernelslib.later(tp.ones(1)).item() == 5
    kernels._destroy()
    with pytest.raises(NotImplementedError, match="has no kernel"):
        tp.ops.kernelslib.later(tp.ones(1))
    again._destroy()


def test_a_library_that_is_gone_leaves_nothing_that_waits(lib: library.Library) -> None:
    kernels = library.Library("kernelslib", "IMPL")
    kernels.impl("never", lambda x: x, "CPU")
    library.register_kernel("kernelslib::never", "cpu", lambda x: x, lib=kernels)
    kernels._destroy()
    forgotten = library.Library("kernelslib", "IMPL")
    forgotten.impl("never", lambda x: x, "CPU")
    del forgotten
    gc.collect()
    lib.define("never(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="has no kernel"):
        tp.ops.kernelslib.never(tp.ones(1))


def test_what_libraries_refuse(lib: library.Library) -> None:
    lib.define("composed(Tensor x) -> Tensor")
    lib.impl("composed", lambda x: x + 1)
    with pytest.raises(RuntimeError, match="follows from theirs"):
        lib.impl("composed", lambda x: x, "Meta")
    with pytest.raises(RuntimeError, match="stands for all"):
        library.Library("_", "FRAGMENT")
    with pytest.raises(AssertionError, match="takes a dispatch key"):
        library.Library("_", "IMPL").fallback(lambda *args: None)
    library.Library("_", "IMPL").fallback(lambda *args: None, "XPU")  # of a device that is not here
    with pytest.raises(NotImplementedError):
        library.fallthrough_kernel()


# ---- tuples of one ----


def one(x: tp.Tensor) -> tuple[tp.Tensor]:
    return (x + 1,)


def test_a_tuple_of_one_result_is_a_tuple() -> None:
    made = library.custom_op("kernelslib::one", one, mutates_args=())
    made.register_fake(lambda x: (tp.empty_like(x),))
    made.register_autograd(lambda ctx, grad: grad * 2)
    made.register_vmap(lambda info, dims, x: (one(x), (dims[0],)))
    assert str(made._schema) == "kernelslib::one(Tensor x) -> ((Tensor))"
    assert [str(r.type) for r in made._schema.returns] == ["Tuple[Tensor]"]
    x = tp.ones(2, requires_grad=True)
    results = made(x)
    assert type(results) is tuple and len(results) == 1
    results[0].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    assert made(tp.ones(2, device="meta"))[0].shape == (2,)
    assert tp.vmap(made)(tp.ones(3, 2))[0].tolist() == [[2, 2]] * 3
    gm = make_fx(lambda x: made(x)[0])(tp.ones(2))
    assert "getitem = one[0]" in gm.code and gm(tp.ones(1)).tolist() == [2]
    assert set(library.opcheck(made, (tp.ones(2, requires_grad=True),)).values()) == {"SUCCESS"}


def test_a_tuple_of_one_is_not_its_part(lib: library.Library) -> None:
    lib.define("pair(Tensor x) -> ((Tensor))")
    lib.define("plain(Tensor x) -> (Tensor)")
    lib.impl("pair", lambda x: x + 1, "CPU")
    lib.impl("plain", lambda x: (x + 1,), "CPU")
    with pytest.raises(RuntimeError, match="has to return 1 result, as a tuple"):
        tp.ops.kernelslib.pair(tp.ones(1))
    with pytest.raises(RuntimeError, match="returned tuple"):
        tp.ops.kernelslib.plain(tp.ones(1))
    assert str(tp.ops.kernelslib.plain.default._schema).endswith("-> Tensor")
    for wrong in ("((Tensor), Tensor)", "((Tensor)", "((Tensor, Tensor))"):
        with pytest.raises(RuntimeError, match='at "'):
            lib.define(f"wrong(Tensor x) -> {wrong}")


def test_parentheses_of_one_result() -> None:
    def numbered(x: tp.Tensor) -> tuple[int]:
        return (x.numel(),)

    assert library.infer_schema(one, mutates_args=()) == "(Tensor x) -> ((Tensor))"
    assert library.custom_op("kernelslib::numbered", numbered, mutates_args=())(tp.ones(3)) == (3,)


# ---- effects ----


def test_a_call_with_an_effect_is_no_dead_code(lib: library.Library) -> None:
    lib.define("told(Tensor x) -> Tensor")
    lib.impl("told", lambda x: x.clone(), "CPU")

    def f(x: tp.Tensor) -> tp.Tensor:
        tp.ops.kernelslib.told(x)
        return x + 1

    def calls() -> bool:
        graph = make_fx(f)(tp.ones(1)).graph
        graph.eliminate_dead_code()
        return any("told" in str(node.target) for node in graph.nodes)

    assert not calls()
    lib._register_effectful_op("kernelslib::told", library.EffectType.ORDERED)
    assert calls()
    lib._register_effectful_op("kernelslib::told", None)
    assert not calls()
    with pytest.raises(ValueError, match="namespace::name"):
        lib._register_effectful_op("told", library.EffectType.ORDERED)
