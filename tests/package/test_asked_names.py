"""Names that programs ask for: hooks of several gradients, selective checkpoints, packages of files, stores."""

from __future__ import annotations

import functools
import importlib
import io
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.autograd import graph
from tensorpy.nn import parallel
from tensorpy.testing import FileCheck, assert_close
from tensorpy.utils import checkpoint as checkpoints


def libraries() -> list[Any]:
    try:
        return [tp, importlib.import_module("torch")]
    except ImportError:
        return [tp]


# ---- autograd.graph ----


@pytest.mark.parametrize("t", libraries(), ids=lambda t: t.__name__)
def test_hooks_of_several_gradients(t: Any) -> None:
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    seen: list[Any] = []
    handle = t.autograd.graph.register_multi_grad_hook((x, y), seen.append)
    for factor in (2, 3):
        (x * y * factor).sum().backward()
    assert [[g.tolist() for g in grads] for grads in seen] == [[[2, 2], [2, 2]], [[3, 3], [3, 3]]]
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 2
    t.autograd.graph.register_multi_grad_hook((x, y), seen.append, mode="any")
    (x * y).sum().backward()
    assert len(seen) == 3 and seen[2].tolist() == [1, 1]
    with pytest.raises(ValueError):
        t.autograd.graph.register_multi_grad_hook((x, y), seen.append, mode="some")


@pytest.mark.parametrize("t", libraries(), ids=lambda t: t.__name__)
@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_of_gradients_that_do_not_come(t: Any, mode: str) -> None:
    """Where a backward does not reach one of the tensors the others' gradients are told, with None for it."""
    x, y, z = (t.ones(2, requires_grad=True) for _ in range(3))
    double = x * 2
    product = double * y
    seen: list[Any] = []

    def told() -> Any:
        found = [[None if g is None else g.tolist() for g in s] if mode == "all" else s.tolist() for s in seen]
        seen.clear()
        return found

    t.autograd.graph.register_multi_grad_hook((double, product, z), seen.append, mode=mode)
    product.sum().backward(retain_graph=True)
    assert told() == ([[[1, 1], [1, 1], None]] if mode == "all" else [[1, 1]])
    t.autograd.grad(product.sum(), [double], retain_graph=True)
    assert told() == ([[[1, 1], [1, 1], None]] if mode == "all" else [[1, 1]])
    t.autograd.grad(double.sum(), [x], retain_graph=True)
    assert told() == ([[[1, 1], None, None]] if mode == "all" else [[1, 1]])
    (product * z).sum().backward()
    assert told() == ([[[1, 1], [1, 1], [2, 2]]] if mode == "all" else [[2, 2]])
    (x * y).sum().backward()
    assert told() == []


@pytest.mark.parametrize("t", libraries(), ids=lambda t: t.__name__)
def test_contexts_of_saved_tensors(t: Any) -> None:
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = y**2
        y.mul_(3)
        z.sum().backward()
    assert x.grad.tolist() == [2, 2]
    hooks = t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v)
    with t.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
        pass
    with hooks:
        pass
    edge = t.autograd.graph.get_gradient_edge(z)
    assert edge.node is z.grad_fn and edge.output_nr == 0 and isinstance(edge, t.autograd.graph.GradientEdge)


def test_tensors_change_places() -> None:
    a, b = tp.nn.Parameter(tp.ones(2)), tp.nn.Parameter(tp.zeros(3), requires_grad=False)
    a.grad, a.note = tp.full((2,), 5.0), "a"
    tp.utils.swap_tensors(a, b)
    assert a.tolist() == [0, 0, 0] and not a.requires_grad and a.grad is None and not hasattr(a, "note")
    assert b.tolist() == [1, 1] and b.requires_grad and b.grad.tolist() == [5, 5] and b.note == "a"

    class InSlots(tp.Tensor):
        __slots__ = ("left", "right")

    class OtherSlots(tp.Tensor):
        __slots__ = ("left",)

    x, y = (tp.full((n,), float(n)).as_subclass(InSlots) for n in (2, 3))
    x.left, y.right = "x", "y"
    tp.utils.swap_tensors(x, y)
    assert (x.right, y.left, x.shape) == ("y", "x", (3,)) and not hasattr(x, "left") and not hasattr(y, "right")
    for other in (tp.ones(1), tp.ones(1).as_subclass(OtherSlots)):
        with pytest.raises(RuntimeError, match="Cannot swap t1 and t2 if they have different slots"):
            tp.utils.swap_tensors(x, other)
    assert x.shape == (3,) and type(x) is InSlots


class _Holds(tp.Tensor):
    """A tensor without memory of its own."""

    @staticmethod
    def __new__(cls, held: tp.Tensor) -> Any:
        return tp.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device=held.device)

    def __init__(self, held: tp.Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls(func(*(a.held if isinstance(a, _Holds) else a for a in args), **(kwargs or {})))


@pytest.mark.parametrize("other", [lambda: tp.ones(3), lambda: _Holds(tp.ones(3)), lambda: tp.nn.Buffer(tp.ones(3))])
def test_tensors_of_two_classes_change_places_with_their_classes(other: Callable[[], tp.Tensor]) -> None:
    a, b = tp.nn.Parameter(tp.zeros(2)), other()
    kind, numbers = type(b), id(a)
    tp.utils.swap_tensors(a, b)
    assert type(a) is kind and type(b) is tp.nn.Parameter and id(a) == numbers
    assert a.shape == (3,) and not a.requires_grad and getattr(a, "held", a).tolist() == [1, 1, 1]
    assert b.requires_grad and b.tolist() == [0, 0] and not hasattr(b, "held")


def test_a_module_is_converted_by_swaps_to_tensors_of_another_class() -> None:
    m = tp.nn.Linear(2, 2)
    weight = m.weight
    tp.__future__.set_swap_module_params_on_conversion(True)
    try:
        m._apply(lambda t: _Holds(t.detach()))
    finally:
        tp.__future__.set_swap_module_params_on_conversion(False)
    assert m.weight is weight and isinstance(weight, _Holds)


@pytest.fixture
def ways() -> Iterator[Any]:
    yield tp.__future__
    tp.__future__.set_swap_module_params_on_conversion(False)
    tp.__future__.set_overwrite_module_params_on_conversion(False)


def test_a_module_that_is_converted_swaps_or_overwrites_its_parameters(ways: Any) -> None:
    layer = tp.nn.Linear(2, 3)
    weight = layer.weight
    weight.grad = tp.ones(3, 2)
    grad = weight.grad
    ways.set_swap_module_params_on_conversion(True)
    layer.double()
    assert layer.weight is weight and weight.grad is grad and grad.dtype == weight.dtype == tp.float64
    layer.to("meta")
    assert layer.weight is weight and weight.is_meta and weight.requires_grad and isinstance(weight, tp.nn.Parameter)
    held = weakref.ref(layer.bias)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.bias") as raised:
        layer.float()
    assert "weakref" in str(raised.value.__cause__) and held() is layer.bias
    ways.set_swap_module_params_on_conversion(False)
    ways.set_overwrite_module_params_on_conversion(True)
    other = tp.nn.Linear(2, 3)
    weight = other.weight
    assert other.double().weight is not weight and other.weight.dtype == tp.float64


def test_a_state_is_loaded_by_swaps(ways: Any) -> None:
    class Doubles(tp.nn.Parameter):
        def module_load(self, other: Any, assign: bool = False) -> Any:
            return other if assign else Doubles(other * 2)

    ways.set_swap_module_params_on_conversion(True)
    layer = tp.nn.Linear(2, 1, bias=False)
    weight = layer.weight
    layer.load_state_dict({"weight": tp.full((1, 2), 3.0)})
    assert layer.weight is weight and weight.tolist() == [[3, 3]] and weight.requires_grad
    layer.load_state_dict({"weight": tp.full((1, 2), 4.0, dtype=tp.float64)}, assign=True)
    assert layer.weight is weight and weight.dtype == tp.float64
    layer.weight = weight = Doubles(tp.zeros(1, 2))
    layer.load_state_dict({"weight": tp.ones(1, 2)})
    assert layer.weight is weight and weight.tolist() == [[2, 2]]
    with pytest.raises(RuntimeError, match=r"While swapping the parameter.*module_load returned one of self or other"):
        layer.load_state_dict({"weight": tp.ones(1, 2)}, assign=True)


# ---- checkpoints ----


def policy(t: Any, ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
    policies = importlib.import_module(f"{t.__name__}.utils.checkpoint").CheckpointPolicy
    return policies.MUST_SAVE if "sin" in str(op) else policies.PREFER_RECOMPUTE


@pytest.mark.parametrize("t", libraries(), ids=lambda t: t.__name__)
@pytest.mark.parametrize("kept, products, sines", [("mm", 4, 2), ("none", 6, 2), ("policy", 6, 1)])
def test_a_selective_checkpoint_computes_again_what_it_does_not_keep(
    t: Any, kept: str, products: int, sines: int
) -> None:
    module = importlib.import_module(f"{t.__name__}.utils.checkpoint")
    mode = importlib.import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode
    seen: list[str] = []

    class Calls(mode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = t.linspace(0.0, 1.0, 4).reshape(2, 2).requires_grad_()
    w = t.ones(2, 2, requires_grad=True)

    def part(x: Any) -> Any:
        return ((x @ w).sin() @ w).cos()

    (expected,) = t.autograd.grad(part(x).sum(), x)
    chosen = {"mm": [t.ops.aten.mm.default], "none": [], "policy": functools.partial(policy, t)}[kept]
    contexts = functools.partial(module.create_selective_checkpoint_contexts, chosen)
    y = module.checkpoint(part, x, use_reentrant=False, context_fn=contexts)
    with Calls():
        y.sum().backward()
    assert (seen.count("aten.mm.default"), seen.count("aten.sin.default")) == (products, sines)
    assert x.grad.tolist() == expected.tolist()


def test_settings_of_checkpoints() -> None:
    runs: list[int] = []

    def part(x: Any) -> Any:
        y = x.exp()
        runs.append(1)
        return y

    for stops, total in ((True, 1), (False, 2)):
        runs.clear()
        with checkpoints.set_checkpoint_early_stop(stops):
            y = checkpoints.checkpoint(part, tp.ones(1, requires_grad=True), use_reentrant=False)
        y.backward()
        assert len(runs) == total
    with pytest.raises(ValueError, match="to be an OpOverload"):
        checkpoints.create_selective_checkpoint_contexts([tp.mm])


# ---- files ----


def test_packages_name_places_of_storages() -> None:
    from tensorpy.serialization import location

    on = True
    tp.serialization.register_package(
        1, lambda s: "shelf:3" if on else None, lambda s, name: s if name.startswith("shelf") else None
    )
    try:
        file = io.BytesIO()
        tp.save(tp.ones(2), file)
        assert (
            b"shelf:3" in file.getvalue() and tp.serialization.location_tag(tp.ones(1).untyped_storage()) == "shelf:3"
        )
        file.seek(0)
        assert tp.load(file).tolist() == [1, 1]
    finally:
        location._package_registry.clear()
    file.seek(0)
    with pytest.raises(RuntimeError, match="shelf"):
        tp.load(file)


def test_the_order_of_bytes_of_old_files() -> None:
    endianness = tp.serialization.LoadEndianness
    file = io.BytesIO()
    tp.save(tp.ones(2), file, _disable_byteorder_record=True)
    for wanted in (endianness.BIG, endianness.LITTLE, None):
        tp.serialization.set_default_load_endianness(wanted)
        file.seek(0)
        one = tp.ones(1).untyped_storage()
        if wanted is endianness.BIG:
            one.byteswap(tp.float32)
        assert tp.load(file).untyped_storage().tolist() == one.tolist() * 2
    assert tp.serialization.get_default_load_endianness() is None


# ---- parallel, distributed ----


def test_replicas_share_their_gradients() -> None:
    model = tp.nn.Sequential(tp.nn.Linear(2, 3), tp.nn.Linear(3, 1))
    x = tp.rand(4, 2)
    replicas = parallel.replicate(model, ["cpu", "cpu"])
    made = parallel.gather(parallel.parallel_apply(replicas, parallel.scatter(x, ["cpu", "cpu"])), "cpu")
    assert_close(made, model(x))
    (expected,) = tp.autograd.grad(model(x).sum(), model[0].weight)
    made.sum().backward()
    assert_close(model[0].weight.grad, expected)
    parts = parallel.scatter({"a": x, "b": [1, x]}, ["cpu", "cpu"])
    assert [p["a"].shape[0] for p in parts] == [2, 2] and parts[1]["b"][0] == 1


@pytest.mark.parametrize("t", libraries(), ids=lambda t: t.__name__)
def test_stores(t: Any) -> None:
    d = importlib.import_module(f"{t.__name__}.distributed")
    store = d.HashStore()
    store.set("a", "1")
    assert store.get("a") == b"1" and (store.add("n", 3), store.add("n", 2)) == (3, 5)
    assert store.compare_set("a", "1", "2") == b"2" and store.compare_set("a", "x", "3") == b"2"
    assert store.check(["a", "n"]) and not store.check(["b"]) and store.delete_key("a") and not store.delete_key("a")
    front = d.PrefixStore("p", store)
    front.set("k", "v")
    assert store.get("p/k") == b"v" == front.get("k")
    with pytest.raises(d.DistStoreError):
        store.wait(["missing"], timedelta(milliseconds=10))


def test_objects_of_one_process() -> None:
    d = tp.distributed
    d.init_process_group("gloo", rank=0, world_size=1)
    try:
        given: list[Any] = [None]
        d.scatter_object_list(given, [{"x": 1}])
        assert given == [{"x": 1}] and d.batch_isend_irecv([]) == []
        with pytest.raises(ValueError, match="no other process"):
            d.batch_isend_irecv([d.P2POp(d.isend, tp.ones(1), 0)])
    finally:
        d.destroy_process_group()


# ---- testing ----


def test_file_check() -> None:
    FileCheck().check("a").check_next("b").check_not("c").check("d").run("xa\nb\ne d")
    FileCheck().check_count("a", 2, exactly=True).check_same("b").run("a a b\nb")
    for check, text in (
        (FileCheck().check("a").check_not("c"), "a c"),
        (FileCheck().check_count("a", 2, exactly=True), "a a a"),
        (FileCheck().check("a").check_same("b"), "a\nb"),
        (FileCheck().check("a").check_next("b"), "a b\n"),
        (FileCheck().check("b").check("a"), "a b"),
    ):
        with pytest.raises(RuntimeError, match="Expected"):
            check.run(text)


def test_large_tensors_are_compared_with_the_same_words() -> None:
    a = tp.zeros(300, 400)
    b = a.clone()
    b[7, 9], b[200, 3] = 2.0, -5.0
    with pytest.raises(AssertionError) as caught:
        assert_close(a, b)
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\nMismatched elements: 2 / 120000 (0.0%)\n"
        "Greatest absolute difference: 5.0 at index (200, 3) (up to 1e-05 allowed): got 0.0, expected -5.0\n"
        "Greatest relative difference: 1.0 at index (7, 9) (up to 1.3e-06 allowed)"
    )
    nan, inf = tp.tensor([1.0, float("nan")]), tp.tensor([1.0, float("inf")])
    assert_close(nan, nan.clone(), equal_nan=True)
    assert_close(inf, inf.clone())
    for x, y in ((nan, nan.clone()), (inf, -inf), (inf, nan), (tp.tensor([2**62]), tp.tensor([2**62 + 1]))):
        with pytest.raises(AssertionError):
            assert_close(x, y)
    s = tp.eye(2).to_sparse()
    assert_close(s, s.clone())
    with pytest.raises(AssertionError, match="Sparse COO values"):
        assert_close(s, s * 2)
    with pytest.warns(FutureWarning), pytest.raises(AssertionError):
        tp.testing.assert_allclose(tp.ones(1), np.array([2.0]))


def test_tags_are_the_names() -> None:
    assert tp.Tag.core in tp.ops.aten.add.Tensor.tags and tp.Tag("pointwise") is tp.Tag.pointwise
    for packet in (getattr(tp.ops.aten, name) for name in dir(tp.ops.aten) if not name.startswith("__")):
        assert all(isinstance(t, tp.Tag) for o in packet.overloads() for t in getattr(packet, o).tags)
    assert graph.GradientEdge._fields[:2] == ("node", "output_nr")


AS_TORCH = """
import torch

x = torch.ones(2, requires_grad=True)
nodes = torch._C._functions
assert isinstance((x * 1).grad_fn.next_functions[0][0], nodes.AccumulateGrad)
assert issubclass(nodes.AccumulateGrad, torch.autograd.graph.Node)
later = nodes.DelayedError("not now", 1)(x)
try:
    later.sum().backward()
except RuntimeError as error:
    assert "not now" in str(error)
else:
    raise AssertionError
nodes.UndefinedGrad()(x * 2).sum().backward()
assert x.grad is None
own = torch._C._autograd
assert own._saved_tensors_hooks_is_enabled() and own.SavedTensor is torch.autograd.SavedTensor
own._unsafe_set_version_counter(x, 7)
assert x._version == 7
torch._C._set_fwd_grad_enabled(False)
assert not torch._C._is_fwd_grad_enabled()
torch._C._set_fwd_grad_enabled(True)
torch._C._stash_obj_in_tls("name", 3)
assert torch._C._is_key_in_tls("name") and torch._C._get_obj_in_tls("name") == 3
assert torch._C._storage_address(x) == torch._C._storage_address(x[1:])
import torch._refs.special
assert "add" in torch._refs.__all__ and "entr" in torch._refs.special.__all__
from torch._prims.context import TorchRefsMode
from torch._prims_common import compare_tensor_meta
from torch._prims_common.wrappers import _maybe_remove_out_wrapper
with TorchRefsMode(strict=True):
    assert _maybe_remove_out_wrapper(torch._refs.add)(1, torch.ones(1)).item() == 2
compare_tensor_meta(x, torch.zeros(2))
for other in (torch.zeros(3), torch.zeros(2).double(), torch.zeros(2, device="meta")):
    try:
        compare_tensor_meta(x, other)
    except RuntimeError as error:
        assert "are not equal" in str(error)
    else:
        raise AssertionError
from torch._subclasses.fake_utils import outputs_alias_inputs
assert outputs_alias_inputs([x * 2, x[1:]], (x,)) and not outputs_alias_inputs(x * 2, x)
assert not torch.profiler.itt.is_available()
with torch.profiler.itt.range("r {}", 1):
    torch.profiler.itt.mark("m")
assert torch.jit._wait(torch.jit._fork(abs, -1)) == 1
"""


def test_what_programs_ask_of_the_engine_and_of_its_nodes() -> None:
    subprocess.run([sys.executable, "-m", "tensorpy.run", "-c", AS_TORCH], check=True, timeout=300)
