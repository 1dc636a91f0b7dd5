"""FakeTensorMode: what a program would compute, without elements; SchemaCheckMode: what operators write and share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy._subclasses import (
    CrossRefFakeMode,
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from tensorpy._subclasses.fake_tensor import FakeTensorDeviceMismatchError, MetadataMismatchError
from tensorpy._subclasses.meta_utils import MetaConverter, assert_metadata_eq, is_sparse_any
from tensorpy._subclasses.schema_check_mode import SchemaCheckMode
from tensorpy.nn import functional as F
from tensorpy.utils._python_dispatch import TorchDispatchMode


def test_a_training_step_without_elements() -> None:
    with FakeTensorMode():
        net = nn.Sequential(nn.Linear(40_000, 80_000), nn.GELU(), nn.LayerNorm(80_000), nn.Linear(80_000, 2))
        optimizer = tp.optim.AdamW(net.parameters())
        loss = tp.ones(())
        for _ in range(2):
            optimizer.zero_grad()
            loss = F.mse_loss(net(tp.ones(5, 40_000)), tp.zeros(5, 2))
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    assert all(isinstance(p, nn.Parameter) and isinstance(p.grad, FakeTensor) for p in net.parameters())
    assert loss.device == tp.device("cpu") and loss.is_cpu and not loss.is_meta and loss.grad_fn is not None
    twin = copy.deepcopy(net)
    assert [p.shape for p in twin.parameters()] == [p.shape for p in net.parameters()]
    assert isinstance(loss + 1, FakeTensor)  # outside of the mode, too


def test_what_programs_make_of_data_is_fake() -> None:
    with FakeTensorMode() as mode:
        made = [tp.tensor([1.0, 2]), tp.as_tensor([1]), tp.from_numpy(np.ones(2)), tp.tensor(np.zeros((4, 4)))]
        made += [tp.Tensor([1, 2]), tp.asarray([1]), tp.ones(2).new_tensor([1.0])]
        assert all(mode.is_our_fake(t) for t in made)
        x = tp.ones(3)
        x[0] = 2
        x[1:] += 1
        assert (1.0 / x).shape == (3,) and tp.where(x > 0, 1.0, x).dtype == tp.float32


def test_constants_are_known_until_others_may_have_written_them() -> None:
    with FakeTensorMode():
        a = tp.tensor(3.0)
        a += 1
        assert a.item() == 4.0 and (tp.tensor(2) * 2).item() == 4
        a.detach().add_(1)
        with pytest.raises(DataDependentOutputException):
            a.item()
        b = tp.tensor(3.0)
        b.add_(tp.ones(()))
        with pytest.raises(DataDependentOutputException):
            b.item()


def test_what_depends_on_elements_is_named() -> None:
    with FakeTensorMode() as mode:
        x = tp.ones(2)
        for call in (x.nonzero, lambda: tp.unique(x), lambda: x[x > 0]):
            with pytest.raises(DynamicOutputShapeException, match="aten"):
                call()
        with pytest.raises(DataDependentOutputException):
            bool(x.sum())
        with pytest.raises(FakeTensorDeviceMismatchError):
            tp.add(x, tp.ones(2, device="meta"))
        real = mode.from_tensor(tp.ones(2, 3).t())
        assert real.stride() == (1, 3)
    plain = tp.ones(3)
    with mode, pytest.raises(AssertionError, match="Please convert all Tensors"):
        tp.add(plain, 1)
    with mode:
        assert repr(plain) == "tensor([1., 1., 1.])" and repr(x) == "FakeTensor(..., size=(2,))"
        assert mode.from_tensor(plain) is mode.from_tensor(plain)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(plain + 1, FakeTensor)
    with FakeTensorMode(), pytest.raises(AssertionError, match="another FakeTensorMode"):
        tp.add(x, 1)


def test_a_mode_sees_one_operator_where_data_become_a_tensor() -> None:
    class Seen(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Seen() as mode:
        x = tp.tensor([1, 2], dtype=tp.float64)
        y = tp.from_numpy(np.ones(2))
    assert mode.names == ["aten.lift_fresh.default"] * 2
    assert type(x) is tp.Tensor and x.tolist() == [1.0, 2.0] and y.tolist() == [1.0, 1.0]


def test_what_operators_write_and_share_is_seen() -> None:
    x = tp.rand(3, 3)
    with SchemaCheckMode() as check:
        x.relu().sin()
        x.sinh_()
        x.add_(x)
        x.t()
        tp.ops.aten._unsafe_view(x, [9])
    check.ops.pop()
    check.aliasing.pop()
    assert check.ops == ["aten::relu", "aten::sin", "aten::sinh_", "aten::add_", "aten::t"]
    assert check.mutated == [("aten::sinh_", "input"), ("aten::add_", "input"), ("aten::add_", "other")]
    assert check.aliasing[0] == ("aten::sinh_", "input", "output_0") and len(check.aliasing) == 4


def test_an_operator_that_does_not_do_what_it_says() -> None:
    lib = tp.library.Library("testschemacheck", "DEF")
    try:
        lib.define("writes(Tensor x) -> Tensor")
        lib.define("shares(Tensor x) -> Tensor")
        lib.impl("writes", lambda x: x.mul_(2) * 3, "CPU")
        lib.impl("shares", lambda x: x.view(-1), "CPU")
        space = tp.ops.testschemacheck
        with SchemaCheckMode(), pytest.raises(RuntimeError, match="Argument x is not defined as mutable"):
            space.writes(tp.ones(2))
        with SchemaCheckMode(), pytest.raises(RuntimeError, match="not defined to alias output"):
            space.shares(tp.ones(2))
    finally:
        lib._destroy()


def test_hooks_are_set_by_their_numbers() -> None:
    x = tp.ones(2, requires_grad=True)
    x._backward_hooks = {1: lambda grad: grad * 2}
    x.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]
    x._backward_hooks = None
    assert x._backward_hooks is None
    with pytest.raises(TypeError, match="dict"):
        x._backward_hooks = 3


def test_schemas_and_tags_as_programs_print_them() -> None:
    schema = tp.ops.aten.add.Tensor._schema
    assert str(schema) == f"{schema}" == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert all(isinstance(tag, tp.Tag) for tag in tp.ops.aten.add.Tensor.tags)


def test_what_the_cpu_is() -> None:
    facts = tp.cpu.get_capabilities()
    assert facts["num_logical_cores"] >= facts["num_physical_cores"] >= 1 and facts["architecture"]
    assert tp.cpu._is_avx2_supported() is bool(facts.get("avx2") and facts.get("fma3"))
    assert isinstance(tp.cpu._is_avx512_supported(), bool)


def test_what_is_pending_on_fake_tensors() -> None:
    """Conjugates and negatives are computed by operators that the mode sees."""
    with FakeTensorMode() as mode:
        x = mode.from_tensor(tp.randn(3, 3, dtype=tp.complex64))
        y = mode.from_tensor(tp.randn(3))
        for made in (x.mH @ x, x.conj() + 1, x.conj().imag + y, tp._neg_view(y).exp(), tp._neg_view(x.conj()).exp()):
            assert mode.is_our_fake(made) and made.device.type == "cpu"
        assert x.conj().add_(x).is_conj()
        assert [tuple(t.shape) for t in tp.svd_lowrank(x, q=2)] == [(3, 2), (2,), (3, 2)]


def test_the_device_of_another_fake_tensor() -> None:
    with FakeTensorMode() as mode:
        y = mode.from_tensor(tp.randn(3))
        for other in (mode.from_tensor(tp.ones(2, dtype=tp.float64)), tp.ones(2, dtype=tp.int64)):
            for made in (y.to(other), y.to(other=other), y.type_as(other)):
                assert made.device == other.device and made.dtype == other.dtype
        assert y.to("meta").is_meta


def test_what_tensors_say_of_themselves_is_compared() -> None:
    def check(a: object, b: object) -> None:
        assert a == b

    base = tp.rand(3, 4, requires_grad=True)
    assert_metadata_eq(check, base, tp.empty(3, 4, device="meta", requires_grad=True))
    assert_metadata_eq(check, base.detach()[1:], base.detach().to("meta")[1:])
    for other in (base.double(), base.detach(), base[1:], base.t(), base.detach().to_sparse()):
        with pytest.raises(AssertionError):
            assert_metadata_eq(check, base, other)
    assert_metadata_eq(check, base.detach()[1:], base.detach()[:2], skip_symbolic=True)


def test_twins_on_meta_say_what_their_tensors_say() -> None:
    def check(a: object, b: object) -> None:
        assert a == b

    base = tp.rand(3, 4, requires_grad=True)
    (base * 2).sum().backward()
    complexes = tp.rand(3, dtype=tp.complex64)
    given = [base, base.t(), base[1:], base * 2, base.detach()[1:], base.detach().t().unfold(0, 2, 1)]
    given += [tp.nn.Parameter(base.detach()), complexes.conj(), complexes.conj().imag, tp.view_as_real(complexes)]
    given += [tp.eye(3).to_sparse(), tp.eye(3).to_sparse_csr()]
    convert = MetaConverter()
    for t in given:
        made = convert(t)
        assert made.is_meta and made is convert(t)
        assert isinstance(made, tp.nn.Parameter) == isinstance(t, tp.nn.Parameter)
        assert_metadata_eq(check, t, made)
    assert convert(base.t())._base is convert(base) and convert(base).grad.is_meta
    assert convert.successful() and convert("text") == "text"
    assert [is_sparse_any(t) for t in (1, base, *given[-2:])] == [False, False, True, True]
    assert convert(tp.quantize_per_tensor(tp.ones(2), 1.0, 0, tp.qint8)) is NotImplemented and not convert.successful()


# ---- fake and real ones side by side ----


@pytest.fixture(name="declared")
def library() -> Iterator[tp.library.Library]:
    with tp.library._scoped_library("crossref", "DEF") as lib:
        yield lib


def _declare(lib: Any, returns: str, real: Any, fake: Any, takes: str = "Tensor") -> Any:
    lib.define(f"op({takes} x) -> {returns}")
    lib.impl("op", real, "CPU")
    lib.impl("op", fake, "Meta")
    return tp.ops.crossref.op


@pytest.mark.parametrize(
    ("real", "fake", "says"),
    [
        (lambda x: x.clone(), lambda x: x.new_empty(3), "mismatched tensor metadata: Shapes"),
        (lambda x: x.clone(), lambda x: x.new_empty(2, 2, dtype=tp.int32), "mismatched tensor metadata: Dtypes"),
        (lambda x: x.clone(), lambda x: x.new_empty(2, 2).t(), "mismatched tensor metadata: Stride mismatch"),
    ],
)
def test_results_that_differ_from_those_of_fakes(declared: Any, real: Any, fake: Any, says: str) -> None:
    op = _declare(declared, "Tensor", real, fake)
    with pytest.raises(MetadataMismatchError, match=says), CrossRefFakeMode():
        op(tp.ones(2, 2))
    with CrossRefFakeMode(lambda op: op.namespace == "crossref"):
        assert op(tp.ones(2, 2)).shape == (2, 2)


def test_a_view_that_is_none_on_fakes(declared: Any) -> None:
    op = _declare(declared, "Tensor(a)", lambda x: x.view(-1), lambda x: x.new_empty(4), "Tensor(a)")
    with pytest.raises(MetadataMismatchError, match="outputs_alias_inputs check False != True"), CrossRefFakeMode():
        op(tp.ones(2, 2))
    with CrossRefFakeMode(check_aliasing=False):
        assert op(tp.ones(2, 2)).shape == (4,)


def test_one_of_several_results_that_differs(declared: Any) -> None:
    op = _declare(declared, "(Tensor, Tensor)", lambda x: (x.clone(), x.clone()), lambda x: (x.clone(), x.new_empty(0)))
    with pytest.raises(MetadataMismatchError, match=r"for output\[1\]: Shapes"), CrossRefFakeMode():
        op(tp.ones(2))


def test_operators_give_the_same_as_on_fakes() -> None:
    with CrossRefFakeMode():
        model = tp.nn.Sequential(tp.nn.BatchNorm2d(3), tp.nn.ReLU(), tp.nn.Conv2d(3, 2, 2))
        model(tp.rand(2, 3, 4, 4)).sum().backward()
        assert tp.full((4, 4), 1).dtype is tp.int64 and tp.tensor([1, 0]).nonzero().shape == (1, 1)


def test_no_operator_writes_where_numpy_lacks_the_dtype() -> None:
    x = tp.ones(3, dtype=tp.bfloat16)
    with SchemaCheckMode() as mode:
        x.add(x)
        x.add_(1)
    assert mode.mutated == [("aten::add_", "input")]
