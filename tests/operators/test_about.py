"""What Python asks a tensor itself, as operators: beside torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.autograd.forward_ad

torch = pytest.importorskip("torch")


def given(t: Any) -> dict[str, Any]:
    whole = t.arange(24.0).reshape(2, 3, 4)
    image = t.zeros(2, 3, 4, 5).contiguous(memory_format=t.channels_last)
    leaf = t.ones(2, 3).requires_grad_()
    return {
        "plain": whole,
        "turned": whole.transpose(0, 2),
        "part": whole[1:, ::2],
        "repeated": whole[0].expand(2, 3, 4),
        "overlapping": whole.as_strided((2, 2), (1, 1)),
        "number": t.tensor(1.5),
        "empty": t.zeros(0, 3),
        "image": image,
        "whole numbers": t.ones(3, dtype=t.int64),
        "leaf": leaf,
        "result": leaf * 2,
        "second": (leaf * 2).unbind(0)[1],
        "meta": t.zeros(2, device="meta"),
    }


QUESTIONS: dict[str, tuple[Any, ...]] = {
    "numel": (),
    "dim": (),
    "size.int": (1,),
    "stride.int": (-1,),
    "sym_size.int": (0,),
    "sym_stride.int": (0,),
    "sym_numel": (),
    "sym_storage_offset": (),
    "storage_offset": (),
    "is_contiguous": (),
    "sym_is_contiguous": (),
    "get_device": (),
    "is_distributed": (),
    "_is_zerotensor": (),
    "_debug_has_internal_overlap": (),
    "is_leaf": (),
    "output_nr": (),
    "_version": (),
    "retains_grad": (),
}


def operator(t: Any, name: str) -> Any:
    base, _, overload = name.partition(".")
    return getattr(getattr(t.ops.aten, base), overload or "default")


def answer(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class of its error."""
    try:
        found = call()
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error).__name__
    return str(found) if type(found).__name__ == "dtype" else found


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name: str) -> None:
    ours, theirs = given(tp), given(torch)
    for what in ours:
        if name == "_debug_has_internal_overlap" and what == "meta":
            continue
        a, b = (
            answer(lambda t=t, x=x[what]: operator(t, name)(x, *QUESTIONS[name]))
            for t, x in ((tp, ours), (torch, theirs))
        )
        assert a == b and type(a) is type(b), (what, a, b)


@pytest.mark.parametrize("form", ["contiguous_format", "preserve_format", "channels_last"])
def test_what_is_contiguous_already_is_given_back(form: str) -> None:
    for make in (
        lambda t: t.ones(2, 3),
        lambda t: t.ones(2, 3).t(),
        lambda t: t.ones(2, 3, 2, 2),
        lambda t: t.ones(2, 3, 2, 2).contiguous(memory_format=t.channels_last),
    ):
        found = []
        for t in (tp, torch):
            x, chosen = make(t), getattr(t, form)
            if form == "channels_last" and x.dim() != 4:
                continue
            try:
                made = x.contiguous(memory_format=chosen)
            except RuntimeError as error:
                made = str(error)
            same = made if isinstance(made, str) else (made.data_ptr() == x.data_ptr(), made.stride())
            found.append((x.is_contiguous(memory_format=chosen), same))
        assert not found or found[0] == found[1]


@pytest.mark.parametrize("form", ["contiguous_format", "preserve_format", "channels_last"])
def test_formats(form: str) -> None:
    ours, theirs = given(tp), given(torch)
    for what in ours:
        found = [
            answer(lambda t=t, x=x[what]: t.ops.aten.is_contiguous.memory_format(x, getattr(t, form)))
            for t, x in ((tp, ours), (torch, theirs))
        ]
        assert found[0] == found[1], what


def test_what_two_tensors_share() -> None:
    for t in (tp, torch):
        aten, x = t.ops.aten, t.ones(2, 3)
        assert aten._has_same_storage_numel(x, x[0]) and not aten._has_same_storage_numel(x, x[0].clone())
        assert aten._has_compatible_shallow_copy_type(x, x.long())
        assert not aten._has_compatible_shallow_copy_type(x, t.ones(2, device="meta"))
        assert aten._lazy_clone(x).data_ptr() != x.data_ptr() and aten._lazy_clone(x).equal(x)
        assert (aten._efficientzerotensor([2, 3], dtype=t.int64) + x.long()).tolist() == [[1] * 3] * 2
        zeros = aten._new_zeros_with_same_feature_meta(t.zeros(4, 2), x.t(), self_num_batch_dims=1)
        assert tuple(zeros.shape) == (4, 3, 2) and zeros.stride() == (6, 1, 3) and not zeros.any()


def test_dtypes() -> None:
    names = "bool uint8 int32 int64 float16 bfloat16 float32 float64 complex64".split()
    for a in names:
        for b in names:
            assert tp.ops.aten.can_cast(getattr(tp, a), getattr(tp, b)) == torch.can_cast(
                getattr(torch, a), getattr(torch, b)
            )
            ours = tp.ops.aten.promote_types(getattr(tp, a), getattr(tp, b))
            theirs = torch.promote_types(getattr(torch, a), getattr(torch, b))
            assert str(ours).partition(".")[2] == str(theirs).partition(".")[2]


def about_gradients(t: Any) -> list[Any]:
    aten, found = t.ops.aten, []
    leaf = t.arange(6.0).reshape(2, 3)
    assert aten.requires_grad_(leaf) is leaf
    result = leaf * 2
    aten.retain_grad(result)
    found.append(aten.retains_grad(result))
    aten._backward(result.square().sum(), [])
    found += [leaf.grad.tolist(), result.grad.tolist()]
    aten._backward(leaf * 2, [leaf], t.ones(2, 3), True, False)
    found.append(leaf.grad.tolist())
    cut = aten.detach_(leaf * 2)
    seen = aten.data(leaf)
    seen += 1
    found += [cut.requires_grad, seen.requires_grad, leaf.tolist(), aten._version(leaf)]
    aten.set_data(leaf, t.ones(4, dtype=t.float64))
    found += [leaf.tolist(), leaf.requires_grad, str(leaf.dtype).partition(".")[2]]
    for call in (
        lambda: aten.requires_grad_(t.ones(2, dtype=t.int64)),
        lambda: aten.requires_grad_(leaf * 2, False),
        lambda: aten.retain_grad(t.ones(2)),
        lambda: aten._backward(leaf * 2, []),
        lambda: aten.detach_((leaf * 2)[:2]),
        lambda: aten.set_data(leaf, t.ones(2, dtype=t.int64)),
    ):
        found.append(answer(call))
    return found


def test_gradients() -> None:
    assert about_gradients(tp) == about_gradients(torch)


def about_tangents(t: Any, fw: Any) -> list[Any]:
    aten, x = t.ops.aten, t.ones(3)
    found = [aten._unpack_dual(x, 0)[1], answer(lambda: aten._make_dual(x, x, 0)), aten._fw_primal(x, 0).tolist()]
    with fw.dual_level():
        dual = aten._make_dual(x, x * 2, 0)
        found += [fw.unpack_dual(dual).tangent.tolist(), aten._unpack_dual(dual, 0)[1].tolist()]
        found += [aten._unpack_dual(dual * 3, 0)[1].tolist(), aten._unpack_dual(aten._fw_primal(dual, 0), 0)[1]]
        found += [dual.data_ptr() == x.data_ptr(), answer(lambda: aten._make_dual(dual, x, 0))]
    return found


def test_tangents() -> None:
    assert about_tangents(tp, tp.autograd.forward_ad) == about_tangents(torch, torch.autograd.forward_ad)
    with tp.autograd.forward_ad.dual_level():
        x = tp.ones(3)
        copied = tp.ops.aten._make_dual_copy(x, x * 2, 0)
        assert copied.data_ptr() != x.data_ptr() and tp.ops.aten._unpack_dual(copied, 0)[1].tolist() == [2.0] * 3
        assert tp.ops.aten._unpack_dual(tp.ops.aten._fw_primal_copy(copied, 0), 0)[1] is None


def test_memory_that_elements_share() -> None:
    for t in (tp, torch):
        shared = t.ones(1, 3).expand(4, 3)
        unknown = t.ones(2, 1, 10)[::2].as_strided((2, 1, 5), (10, 0, 2))
        assert [t._debug_has_internal_overlap(x) for x in (t.ones(3, 3), shared, unknown)] == [0, 1, 2]


def test_questions_that_have_no_answer() -> None:
    for t in (tp, torch):
        for dtype in (t.quint8, t.qint8, t.qint32):
            with pytest.raises(RuntimeError, match="not supported for quantized"):
                _ = dtype.is_signed
        pieces = t.nested.nested_tensor([t.ones(2, 4), t.ones(3, 4)])
        for one, other in ((pieces, t.ones(2, 4)), (t.ones(2, 4), pieces)):
            with pytest.raises(RuntimeError, match="Expected both self and other to be nested tensors"):
                one.is_same_size(other)


def test_functions_of_elements_return_numbers() -> None:
    for t in (tp, torch):
        x, y = t.ones(3), t.ones(3, requires_grad=True)
        with pytest.raises(TypeError):
            x.apply_(lambda _: "words")
        with pytest.raises(TypeError, match="not callable"):
            x.map_(t.ones(3), "words")
        with pytest.raises(RuntimeError, match="requires grad"):
            x.map2_(t.ones(3), y, lambda a, b, c: a)
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Own", (t.FloatTensor,), {})
