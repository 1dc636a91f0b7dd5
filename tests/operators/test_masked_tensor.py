"""MaskedTensor: printed forms, values, gradients and classes of errors are PyTorch's."""

from __future__ import annotations

import io
from typing import Any

import pytest

import tensorpy as tp

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

PARTS = (
    "m", "i", "b", "one", "m[0]", "m[0, 0]", "m[0, 1]", "m.get_data()", "m.get_mask()", "m.to_tensor(0)", "repr(m)",
    "m.dtype", "m.shape", "m.dim()", "m.numel()", "len(m)", "m.layout", "s.layout", "c.layout", "m.is_contiguous()",
    "m.requires_grad", "s.is_sparse_coo()", "s.is_sparse", "m.is_sparse", "c.is_sparse_csr()", "s.get_data()",
    "s.get_mask()", "t.masked.is_masked_tensor(m)", "t.masked.is_masked_tensor(d)", "one.to_tensor(-9.0)",
    "t.masked.masked_tensor(t.tensor(3.0), t.tensor(False))",
    "t.masked.masked_tensor(t.tensor(3), t.tensor(True)).item()",
    "t.masked.masked_tensor(t.tensor([1000000.5, 2.0]), t.tensor([True, False]))", "t.masked.as_masked_tensor(d, k)",
)  # fmt: skip
ELEMENTS = (
    "m + 1", "m + m", "m + n", "m * d", "m / 2", "m // 2", "m % 2", "m ** 2", "-m", "abs(m)", "m.exp()", "t.sqrt(m)",
    "t.pow(m, 2)", "m.clamp(0, 2)", "m > 2", "m < n", "m == m", "t.maximum(m, n)", "t.atan2(m, n)", "m.isnan()",
    "t.bitwise_and(b, b)", "s.sin()", "s + s", "s * 2", "c * c", "c.abs()", "m.float()", "m.to(t.float64)", "m.int()",
    "m.clone().add_(1)", "m.clone().sin_()", "m.clone()", "m.detach()", "m.contiguous()", "t.ones_like(m)",
    "t.where(d > 2, m, n)", "t.where(d > 2, m, o)", "t.where(d > 2, m, d)",
)  # fmt: skip
REDUCED = (
    "m.sum()", "m.sum(0)", "m.sum(-1, keepdim=True)", "m.sum((0, 1))", "t.sum(m)", "t.sum(m, dim=1, keepdim=True)",
    "m.mean()", "m.mean(1)", "m.mean(0)", "m.amax()", "m.amin(0)", "m.amax(1, keepdim=True)", "m.argmax()",
    "m.argmin(0)", "m.prod()", "m.prod(0)", "m.var()", "m.std()", "m.all()", "b.all()", "b.all(0)", "s.sum()",
    "b._is_any_true()", "make(d > 9, k)._is_any_true()", "make(d > 0, d > 9)._is_any_true()",
    "c.mean()", "s.amax()", "t.softmax(m, 1)", "m.softmax(0)", "t.masked.sum(m)", "t.masked.mean(m, 0, mask=k)",
)  # fmt: skip
MOVED = (
    "m.t()", "m.transpose(0, 1)", "m.view(3, 2)", "m.reshape(6)", "m.unsqueeze(0)", "m.expand(2, 2, 3)",
    "one.expand(3, 2)", "m.split(1)", "m[:, 1:]", "m[t.tensor([0, 1])]", "m.select(0, 1)", "t.cat([m, m])",
    "t.stack([m, n])", "m.unfold(1, 2, 1)", "t.nn.functional.unfold(m.view(1, 1, 2, 3), (1, 2))", "s", "c",
    "s.to_dense()", "m.to_sparse()", "m.to_sparse_csr()",
)  # fmt: skip
ERRORS = (
    "m + o", "t.masked.masked_tensor(d, d)", "t.masked.masked_tensor(d, k[0])", "t.masked.masked_tensor(d, k.t())",
    "t.masked.masked_tensor([1.0], [True])", "t.masked.masked_tensor(m, k)", "t.masked.masked_tensor(d, m)",
    "t.masked.masked_tensor(d.to(t.complex64), k)", "t.masked.masked_tensor(d.to_sparse(), k)",
    "t.masked.masked_tensor(d.to(t.uint8), k)", "t.masked.masked_tensor(d.to_sparse_csc(), k.to_sparse_csc())",
    "m.matmul(d.t())", "m.sort()", "m.nansum()", "s.sum(0)", "m[0].to_sparse_csr()",
    "t.masked.masked_tensor(t.tensor(3), t.tensor(False)).item()", "s.contiguous()", "s.is_contiguous()",
)  # fmt: skip
SCALARS = (
    "(m * 2).sum()", "m.sin().mean(1).sum()", "m.prod()", "m.to_tensor(7.0).sum()",
    "m.transpose(0, 1).exp().sum()", "m.sum()", "(m * m).sum()", "m[0].sum()", "t.cat([m, m]).sum()",
)  # fmt: skip


def tensors(t: Any) -> dict[str, Any]:
    d = t.tensor([[1.0, 2.0, -3.0], [4.0, 5.0, 6.0]])
    k = t.tensor([[True, False, True], [False, False, True]])
    make = t.masked.masked_tensor
    m = make(d, k)
    names = {"t": t, "d": d, "k": k, "m": m, "make": make, "n": make(d * 2, k), "o": make(d, ~k), "i": make(d.int(), k)}
    names |= {"b": make(d > 0, k), "one": make(t.tensor([1.0, 2.0]), t.tensor([True, False]))}
    return names | {"s": m.to_sparse(), "c": m.to_sparse_csr()}


def shown(value: Any) -> str:
    return " ".join(str(value).replace("tensorpy", "torch").split())


@pytest.mark.parametrize("expression", [*PARTS, *ELEMENTS, *REDUCED, *MOVED])
def test_what_is_printed_is_pytorchs(expression: str) -> None:
    torch = pytest.importorskip("torch")
    assert shown(eval(expression, tensors(tp))) == shown(eval(expression, tensors(torch)))


def test_any_and_all_look_at_what_counts() -> None:
    names = tensors(tp)
    for b in (names["make"](names["d"] > 0, names["k"]), names["make"](names["d"] > 9, names["k"])):
        for dims in ((), (0,), (1, True)):
            assert shown((~b).any(*dims)) == shown(~b.all(*dims))
    assert shown(b._is_all_true()) == "MaskedTensor(False, True)"


@pytest.mark.parametrize("expression", ERRORS)
def test_what_is_refused(expression: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, ValueError)) as theirs:
        eval(expression, tensors(torch))
    with pytest.raises(theirs.type):
        eval(expression, tensors(tp))


@pytest.mark.parametrize("expression", SCALARS)
def test_gradients_are_pytorchs(expression: str) -> None:
    found = []
    for library in (tp, pytest.importorskip("torch")):
        names = tensors(library)
        names["m"] = library.masked.masked_tensor(names["d"], names["k"], requires_grad=True)
        eval(expression, names).backward()
        found.append(shown(names["m"].grad))
    assert found[0] == found[1]


def test_gradients_of_data_do_not_see_what_is_left_out() -> None:
    """As masked.sum's and its kin's, which compute with plain tensors."""
    for function in (
        lambda x: x.exp().sum(), lambda x: x.mean(0).sum(), lambda x: x.amax(1).sum(),
        lambda x: x.softmax(1)[:, :2].sum(),
        lambda x: x.logsumexp(1).sum(), lambda x: x.var(1).sum(), lambda x: x[tp.tensor([0, 0, 1])].square().sum(),
        lambda x: x.expand(2, 2, 3).sum(), lambda x: x.to_sparse_csr().sum(), lambda x: x.norm(),
    ):  # fmt: skip
        x = tp.tensor([[1.0, float("nan"), 3.0], [4.0, 5.0, 6.0]], dtype=tp.float64, requires_grad=True)
        mask = tp.tensor([[True, False, True], [False, True, True]])
        result = function(tp.masked.as_masked_tensor(x, mask))
        result.backward()
        assert bool(result.get_data().isfinite()) and bool(x.grad.to_tensor(0.0).isfinite().all())
        changed = x.detach().masked_fill(~mask, -100.0).requires_grad_()
        again = function(tp.masked.as_masked_tensor(changed, mask))
        again.backward()
        assert again.get_data().item() == result.get_data().item()
        assert changed.grad.to_tensor(0.0).equal(x.grad.to_tensor(0.0))


def test_gradients_of_parts_add_up() -> None:
    d, k = tp.arange(6.0).reshape(2, 3), tp.tensor([[True, False, True], [True, True, True]])
    x = tp.masked.masked_tensor(d, k, requires_grad=True)
    y = x * x
    (y[0].sum() + 2 * y[:, 1:].sum() + x[1].sum()).backward()
    assert x.grad.to_tensor(-1.0).tolist() == [[0.0, -1.0, 12.0], [1.0, 17.0, 21.0]]


def test_tensors_that_match() -> None:
    from tensorpy.masked.maskedtensor.core import _tensors_match

    a = tp.tensor([1.0, 2.0])
    assert _tensors_match(a, a.double()) and not _tensors_match(a, a + 1e-6)
    assert _tensors_match(a, a + 1e-6, exact=False)
    assert _tensors_match(a.to_sparse(), a.to_sparse()) and not _tensors_match(a.to_sparse(), tp.zeros(2).to_sparse())
    with pytest.raises(ValueError, match="layout"):
        _tensors_match(a, a.to_sparse())


def test_random_chains_are_those_of_plain_tensors() -> None:
    """Where every element counts, a masked tensor is a tensor."""
    steps = [
        lambda x: x * 2 + 1, lambda x: x.sin(), lambda x: x.transpose(0, 1), lambda x: x.reshape(2, -1),
        lambda x: x[:, :2] if x.shape[1] > 2 else x, lambda x: x.sigmoid() - x, lambda x: x.cumsum(1),
        lambda x: x.softmax(0), lambda x: x / (x * x + 1),
    ]  # fmt: skip
    tp.manual_seed(0)
    for _ in range(40):
        data = tp.randn(4, 6, dtype=tp.float64)
        plain, leaf = data.clone().requires_grad_(), data.clone().requires_grad_()
        masked, other = tp.masked.as_masked_tensor(leaf, tp.ones_like(data, dtype=tp.bool)), plain
        for i in tp.randint(0, len(steps), (5,)).tolist():
            masked, other = steps[i](masked), steps[i](other)
        assert masked.get_mask().all() and masked.get_data().allclose(other)
        masked.sum().backward()
        other.sum().backward()
        assert leaf.grad.get_data().allclose(plain.grad)


def test_listed_operators_keep_the_mask() -> None:
    """What PyTorch lists is there, by functions and in place, and a masked tensor takes it."""
    from tensorpy.masked.maskedtensor import binary, core, reductions, unary

    masked_tensor = tp.masked.masked_tensor
    mask = tp.tensor([True, False, True])
    more = {"pow": (2,), "clamp": (0.1,), "clip": (0.1,)}
    for name, function in zip(unary.UNARY_NAMES, unary.NATIVE_UNARY_FNS, strict=True):
        data = tp.tensor([1, 2, 3]) if name == "bitwise_not" else tp.tensor([0.2, 0.3, 0.4])
        result = function(masked_tensor(data, mask), *more.get(name, ()))
        assert result.get_mask().equal(mask), name
        tp.testing.assert_close(result.get_data()[0], function(data[0], *more.get(name, ())), equal_nan=True)
    for name, function in zip(binary.BINARY_NAMES, binary.NATIVE_BINARY_FNS, strict=True):
        data = tp.tensor([1, 2, 3]) if name.startswith("bitwise") else tp.tensor([0.2, 0.3, 0.4])
        result = function(masked_tensor(data, mask), masked_tensor(data, mask))
        assert result.get_mask().equal(mask) and result.get_data()[2].equal(function(data[2], data[2])), name
    assert len(unary.NATIVE_INPLACE_UNARY_FNS) == 58 and len(binary.NATIVE_INPLACE_BINARY_FNS) == 30
    x = masked_tensor(tp.tensor([3.0, 4.0, 0.0]), mask)
    for function, method in zip(reductions.TORCH_REDUCE_FNS, reductions.TENSOR_REDUCE_FNS, strict=True):
        assert str(function(x)) == str(method(x))
    assert core._masks_match(x, 1.0) and not core._masks_match(x, masked_tensor(x.get_data(), ~mask))


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr"])
def test_files_have_data_and_mask(layout: str) -> None:
    def of(t: tp.Tensor) -> tp.Tensor:
        return t if layout == "strided" else t.to_sparse(layout=getattr(tp, layout))

    x, file = tp.eye(3), io.BytesIO()
    saved: Any = tp.masked.masked_tensor(of(x), of(x != 0), requires_grad=True)
    tp.save(saved, file)
    file.seek(0)
    made: Any = tp.load(file, weights_only=False)
    assert repr(made) == repr(saved) and made.requires_grad
    for one, other in ((made.get_data(), saved.get_data()), (made.get_mask(), saved.get_mask())):
        assert str(one.layout).endswith(layout) and tp.equal(one.to_dense(), other.to_dense())
