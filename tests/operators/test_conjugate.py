"""Lazy conjugates and negatives: views whose elements are computed where they are used, for every operator."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.testing.harness import arguments, check_same, function_of, over, seed, tensors
from tensorpy.testing.samples import OpInfo
from tensorpy.utils import _pytree as pytree


def lazily(x: Any) -> Any:
    """A tensor of the same elements that is to be read as a conjugate, or as negatives."""
    if not isinstance(x, tp.Tensor) or x.layout != tp.strided:
        return x
    if x.is_complex():
        return tp.conj_physical(x.detach())._conj()
    if x.is_floating_point():
        return tp.neg(x.detach())._neg_view()
    return x


def plainly(x: Any) -> Any:
    return x.detach().clone() if isinstance(x, tp.Tensor) else x


def dtypes_of(info: OpInfo) -> list[str]:
    return [d for d in ("float32", "complex64") if d in info.dtypes]


def both(info: OpInfo, f: Callable[..., Any]) -> None:
    """The call gives the same, in results and in what it writes, for tensors with something pending."""
    for dtype in dtypes_of(info):
        for sample in info.samples(dtype, 3):
            args, kwargs = arguments(sample, "cpu", info)
            plain, lazy = pytree.tree_map(plainly, args), pytree.tree_map(lazily, args)
            what = f"{info.name}[{dtype}]{sample}"
            seed(kwargs)
            try:
                expected = tensors(f(*plain, **kwargs))
            except (RuntimeError, TypeError, ValueError, IndexError):
                continue
            seed(kwargs)
            got = tensors(f(*lazy, **kwargs))
            for a, b in zip([*got, *tensors(lazy)], [*expected, *tensors(plain)], strict=True):
                check_same(info, a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg(), what, exact=False)


def looks_at_bits(info: OpInfo) -> bool:
    """Views of another dtype, which are refused, and questions about the bits."""
    return info.name.startswith(("view_as_real", "view.dtype", "view_copy.dtype", "is_conj", "is_neg"))


@over(lambda info: not looks_at_bits(info))
def test_every_operator(info: OpInfo) -> None:
    both(info, function_of(info))


@over(lambda info: info.variant("inplace") is not None)
def test_every_operator_in_place(info: OpInfo) -> None:
    both(info, function_of(info, inplace=True))


def test_nothing_is_computed_and_writes_reach_the_base() -> None:
    x = tp.tensor([1 + 2j, 3 - 1j])
    y = x._conj()
    assert y.is_conj() and y.data_ptr() == x.data_ptr() and y._base is x and not y._conj().is_conj()
    y.fill_(1 + 1j)
    assert x.tolist() == [1 - 1j, 1 - 1j]
    y.imag.add_(1)
    assert y.imag.is_neg() and x.tolist() == [1 - 2j, 1 - 2j] and y.tolist() == [1 + 2j, 1 + 2j]
    y.mul_(x)
    assert x.tolist() == [5 - 0j, 5 - 0j]
    out = tp.empty(0, dtype=tp.complex64)._conj()
    assert tp.add(x, y, out=out) is out and out.tolist() == [10, 10] and out.is_conj()
    assert tp.ones(2).conj().is_conj() is False and (y[0].is_conj(), y.reshape(2, 1).is_conj()) == (True, True)
    assert not (y.clone().is_conj() or y.resolve_conj().is_conj() or (y + 1).is_conj())
    assert x.resolve_conj() is x and x.resolve_neg() is x


def test_two_writes_of_one_call() -> None:
    m = tp.tensor([[1 + 2j, 3], [4j, 5]])
    tp._foreach_mul_([m[0]._conj(), m[1]], 1j)
    assert m.tolist() == [[2 - 1j, -3j], [-4, 5j]]


def test_memory_is_not_shown_as_it_is() -> None:
    y = tp.tensor([1 + 2j, 3 - 1j])._conj()
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that has conjugate bit set"):
        y.numpy()
    with pytest.raises(RuntimeError, match="negative bit set"):
        np.asarray(y.imag)
    with pytest.raises(BufferError, match="Can't export tensors with the conjugate bit set"):
        np.from_dlpack(y)
    with pytest.raises((RuntimeError, BufferError)):
        memoryview(y)
    for view in (lambda: tp.view_as_real(y), lambda: y.view(tp.float32)):
        with pytest.raises(RuntimeError, match="conjugate"):
            view()
    assert y.numpy(force=True).tolist() == y.tolist() == [1 - 2j, 3 + 1j]
    assert repr(y) == "tensor([1.-2.j, 3.+1.j])" and y[0].item() == 1 - 2j and complex(y[1]) == 3 + 1j


@pytest.mark.parametrize("of", [lambda x: x._conj(), lambda x: x._conj().imag, lambda x: tp._neg_view(x)])
def test_copies_and_files(of: Callable[..., tp.Tensor]) -> None:
    y = of(tp.tensor([1 + 2j, 3 - 1j]))
    file = io.BytesIO()
    tp.save(y, file)
    file.seek(0)
    for again in (copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y)), tp.load(file)):
        assert again.tolist() == y.tolist()
    assert y.to("meta").shape == y.shape


def test_gradients() -> None:
    z = tp.randn(4, dtype=tp.complex128, requires_grad=True)
    assert tp.autograd.gradcheck(lambda z: z._conj() * z._conj().imag, (z,), check_forward_ad=True)
    assert tp.autograd.gradgradcheck(lambda z: z._conj() * z._conj().imag, (z,))

    def written(z: tp.Tensor) -> tp.Tensor:
        w = z * 1
        v = w._conj()
        v.mul_(2j)
        v.imag.mul_(3)
        w[0] = w[0] * 3
        return v * w + v.imag

    assert tp.autograd.gradcheck(written, (z,))


def test_under_layers() -> None:
    a = tp.randn(3, 4, dtype=tp.complex64)
    assert tp.equal(tp.func.vmap(lambda r: r.conj() * 2)(a), a.conj_physical() * 2)
    assert tp.allclose(a.mH @ a, a.conj_physical().t() @ a)
    gm = make_fx(lambda x: x._conj().imag.exp())(a)
    other = tp.randn(3, 4, dtype=tp.complex64)
    assert tp.equal(gm(other), (-other.imag).exp())

    def f(x: tp.Tensor) -> tp.Tensor:
        y = x.clone()
        y._conj().imag.add_(1)
        return y

    assert tp.equal(tp.func.functionalize(f)(a), f(a))
