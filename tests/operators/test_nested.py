"""Nested tensors: against torch.nested where it is there, and piece by piece."""

from __future__ import annotations

import copy
import io
import pickle
import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

torch: Any
try:
    import torch
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
F = "nn.functional"


def pieces_of(t: Any, seed: int, dims: int = 2, dtype: Any = None) -> list[Any]:
    """The same pieces in every library: (length, 3) or (length, 3, 2)."""
    rng = np.random.default_rng(seed)
    shapes = [(n, 3, 2)[:dims] for n in rng.integers(1, 5, size=rng.integers(1, 4))]
    made = [t.from_numpy(rng.standard_normal(s).astype("float32")) for s in shapes]
    return [p.to(dtype) for p in made] if dtype else made


def nested(t: Any, seed: int, layout: str, dims: int = 2) -> Any:
    return t.nested.nested_tensor(pieces_of(t, seed, dims), layout=getattr(t, layout))


def plain(r: Any) -> Any:
    """What a result says: sizes and numbers of each of its tensors."""
    if isinstance(r, (tuple, list)):
        return [plain(x) for x in r]
    if not hasattr(r, "is_nested"):
        return str(r).replace("torch.", "").replace("tensorpy.", "")
    if r.is_nested:
        return [str(r.layout).rpartition(".")[2], [plain(p) for p in r.unbind()]]
    r = r.detach()
    return tuple(r.shape), str(r.dtype).rpartition(".")[2], r.double().numpy()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def functional(t: Any) -> Any:
    return t.nn.functional


BOTH: dict[str, Callable[[Any, Any], Any]] = {
    "add number": lambda t, x: x + 1,
    "add": lambda t, x: x + x,
    "sub": lambda t, x: x - x * 2,
    "mul": lambda t, x: x * x,
    "div": lambda t, x: x / (x * x + 1),
    "div number": lambda t, x: x / 2,
    "mul one": lambda t, x: x * t.tensor(2.5),
    "neg": lambda t, x: -x,
    "abs": lambda t, x: x.abs(),
    "relu": lambda t, x: x.relu(),
    "gelu": lambda t, x: functional(t).gelu(x),
    "silu": lambda t, x: functional(t).silu(x),
    "tanh": lambda t, x: x.tanh(),
    "sin": lambda t, x: x.sin(),
    "cos": lambda t, x: x.cos(),
    "sgn": lambda t, x: x.sgn(),
    "isnan": lambda t, x: x.isnan(),
    "logical_not": lambda t, x: x.logical_not(),
    "gt": lambda t, x: x > 0,
    "ge": lambda t, x: x >= 0,
    "eq": lambda t, x: x == 0.0,
    "masked_fill": lambda t, x: x.masked_fill(x > 0, 7.0),
    "softmax": lambda t, x: x.softmax(-1),
    "softmax ragged": lambda t, x: x.softmax(1),
    "transpose": lambda t, x: x.transpose(1, 2),
    "transpose twice": lambda t, x: x.transpose(1, 2).transpose(1, 2) + x,
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "unsqueeze last": lambda t, x: x.unsqueeze(-1),
    "view": lambda t, x: x.view(x.size(0), -1, 3),
    "reshape": lambda t, x: x.reshape(x.size(0), -1, 3, 1),
    "heads": lambda t, x: x.reshape(x.size(0), -1, 3, 1).transpose(1, 2),
    "select piece": lambda t, x: x[0],
    "select": lambda t, x: x[0, 0],
    "last piece": lambda t, x: x[-1],
    "select column": lambda t, x: x.select(2, 1),
    "linear": lambda t, x: functional(t).linear(x, t.ones(2, 3), t.arange(2.0)),
    "layer_norm": lambda t, x: functional(t).layer_norm(x, (3,), t.arange(3.0), t.ones(3)),
    "dropout": lambda t, x: functional(t).dropout(x, 0.0),
    "padded": lambda t, x: x.to_padded_tensor(-1.0),
    "padded more": lambda t, x: t.nested.to_padded_tensor(x, 0.0, (x.size(0), 6, 3)),
    "unbind": lambda t, x: x.unbind(),
    "iterate": lambda t, x: list(x),
    "clone": lambda t, x: x.clone(),
    "detach": lambda t, x: x.detach(),
    "double": lambda t, x: x.to(t.float64),
    "half": lambda t, x: x.half(),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "ones_like": lambda t, x: t.ones_like(x),
    "split_with_sizes": lambda t, x: x.split_with_sizes([1, 2], -1),
    "chunk": lambda t, x: x.chunk(3, -1),
    "cat": lambda t, x: t.cat([x, x], -1),
    "contiguous": lambda t, x: x.transpose(1, 2).contiguous(),
    "is_contiguous": lambda t, x: (x.is_contiguous(), x.transpose(1, 2).is_contiguous()),
    "add_": lambda t, x: x.add_(1),
    "mul_": lambda t, x: x.mul_(x),
    "fill_": lambda t, x: x.fill_(3),
    "zero_": lambda t, x: x.zero_(),
    "copy_": lambda t, x: t.zeros_like(x).copy_(x),
    "sizes": lambda t, x: (x.size(0), x.size(-1), x.dim(), x.numel(), x.is_nested, x.element_size()),
    "same size": lambda t, x: (x.is_same_size(x), x.is_same_size(x * 2)),
    "unbind other": lambda t, x: x.unbind(1),
    "gradient": lambda t, x: gradients(t, x, lambda n: (n * n).softmax(-1) * n),
    "gradient padded": lambda t, x: gradients(t, x, lambda n: n.sin().to_padded_tensor(2.0) ** 2),
    "gradient linear": lambda t, x: gradients(t, x, lambda n: functional(t).linear(n, t.ones(2, 3))),
    "gradient norm": lambda t, x: gradients(t, x, lambda n: functional(t).layer_norm(n, (3,)) * n),
    "gradient transposed": lambda t, x: gradients(t, x, lambda n: n.transpose(1, 2) * n.transpose(1, 2)),
    "squeeze": lambda t, x: (x.unsqueeze(-1).squeeze(-1), x.unsqueeze(2).squeeze(2), x.squeeze(2)),
    "is_pinned": lambda t, x: x.is_pinned(),
    "bytes": lambda t, x: (x.nbytes, t.ops.aten.sym_numel(x)),
    "set a piece": lambda t, x: x.__setitem__((0,), 1.0) or x,
    "set a row": lambda t, x: x.__setitem__((0, 0), t.arange(3.0)) or x,
    "linear_backward": lambda t, x: t.ops.aten.linear_backward(
        x, functional(t).linear(x, t.ones(2, 3)), t.ones(2, 3), [True, True, True]
    ),
    "norm backward": lambda t, x: t.ops.aten.native_layer_norm_backward(
        x,
        x,
        (3,),
        *t.ops.aten.native_layer_norm(x, (3,), t.ones(3), t.ones(3), 1e-5)[1:],
        t.ones(3),
        t.ones(3),
        [True, True, True],
    ),
    "vmap": lambda t, x: (t.func.vmap(t.sin)(x), t.func.vmap(lambda p: p.sum())(x)),
    "vmap of two": lambda t, x: t.func.vmap(lambda p, q: p * q)(x, t.arange(3.0 * x.size(0)).view(x.size(0), 3)),
    "other offsets": lambda t, x: x + t.nested.nested_tensor([t.ones(9, 3)] * x.size(0), layout=x.layout),
    "copied": lambda t, x: t.nested.nested_tensor([*x.unbind()], layout=x.layout),
    "attention": lambda t, x: functional(t).scaled_dot_product_attention(
        *(x.unsqueeze(-1).transpose(1, 2) for _ in range(3))
    ),
}
STRIDED: dict[str, Callable[[Any, Any], Any]] = {
    "values": lambda t, x: x.values(),
    "tables": lambda t, x: (x._nested_tensor_size(), x._nested_tensor_strides(), x._nested_tensor_storage_offsets()),
    "tables transposed": lambda t, x: (
        x.transpose(1, 2)._nested_tensor_size(),
        x.transpose(1, 2)._nested_tensor_strides(),
    ),
    "matmul": lambda t, x: x @ x.transpose(1, 2),
    "bmm": lambda t, x: t.bmm(x.transpose(1, 2), x),
    "cat pieces": lambda t, x: t.cat([x, x]),
    "shape": lambda t, x: x.shape,
    "irregular": lambda t, x: t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 2)]).size(1),
    "repr": lambda t, x: repr(t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 2)])),
    "pieces of any sizes": lambda t, x: t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 3)]) * 2,
    "padded any": lambda t, x: t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 3)]).to_padded_tensor(0.5),
    "tables any": lambda t, x: t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 3)])._nested_tensor_strides(),
    "softmax any": lambda t, x: t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 3)]).softmax(-1),
    "sum kept": lambda t, x: x.sum(-1, keepdim=True),
    "offsets": lambda t, x: x.offsets(),
    "ints": lambda t, x: t.nested.nested_tensor([[1, 2], [3]]),
    "squeeze several": lambda t, x: x.unsqueeze(-1).unsqueeze(-1).squeeze((3, 4)),
    "select rows": lambda t, x: x.select(1, 0),
    "squeeze rows": lambda t, x: x.squeeze(1),
    "normal_": lambda t, x: x.normal_().mul_(0),
    "matmul.out": lambda t, x: t.matmul(x, x.transpose(1, 2), out=t.zeros_like(x @ x.transpose(1, 2))),
    "several dtypes": lambda t, x: t.nested.nested_tensor([t.ones(2), t.ones(3).double()]),
    "of dimensions": lambda t, x: t.nested.nested_tensor([t.ones(1), t.ones(1, 2)]),
}
JAGGED: dict[str, Callable[[Any, Any], Any]] = {
    "values": lambda t, x: x.values(),
    "offsets": lambda t, x: (x.offsets(), x.lengths()),
    "shape": lambda t, x: (len(x.shape), x.shape[0], x.shape[2], x.size(1) == x.size(1), x.size(1) == (x + 1).size(1)),
    "exp": lambda t, x: x.exp(),
    "pow": lambda t, x: x**2,
    "row": lambda t, x: x * t.arange(3.0),
    "wide row": lambda t, x: x + t.arange(3.0).view(1, 1, 3),
    "row of each": lambda t, x: x * t.arange(3.0 * x.size(0)).view(x.size(0), 1, 3),
    "compare": lambda t, x: x == x,
    "where": lambda t, x: t.where(x > 0, x, t.zeros_like(x)),
    "clamp": lambda t, x: x.clamp(-0.5, 0.5),
    "sum": lambda t, x: x.sum(),
    "sum ragged": lambda t, x: x.sum(1),
    "sum last": lambda t, x: x.sum(-1),
    "sum last kept": lambda t, x: x.sum(-1, keepdim=True),
    "sum ragged kept": lambda t, x: x.sum(1, keepdim=True),
    "sum batch": lambda t, x: x.sum(0),
    "mean": lambda t, x: (x.mean(1), x.mean(-1), x.mean()),
    "max": lambda t, x: (*x.max(1), *x.min(-1), x.max(), x.min()),
    "amax": lambda t, x: (x.amax(1), x.amin(-1), x.argmax(1)),
    "prod": lambda t, x: x.prod(1),
    "all": lambda t, x: ((x > 0).all(), (x > 0).any()),
    "matmul": lambda t, x: x @ t.arange(6.0).view(3, 2),
    "matmul of each": lambda t, x: x @ t.arange(6.0 * x.size(0)).view(x.size(0), 3, 2),
    "permute": lambda t, x: x.permute(0, 2, 1),
    "narrow": lambda t, x: x.narrow(2, 0, 2),
    "slice": lambda t, x: x[:, :, 1:],
    "unflatten": lambda t, x: x.unflatten(-1, [3, 1]),
    "log_softmax": lambda t, x: x.log_softmax(-1),
    "repr": lambda t, x: repr(x).replace(str(x.shape[1]), "j"),
    "embedding": lambda t, x: functional(t).embedding(
        t.nested.nested_tensor([t.tensor([1, 0]), t.tensor([2])], layout=t.jagged), t.arange(6.0).view(3, 2)
    ),
    "two dimensions differ": lambda t, x: t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 3)], layout=t.jagged),
    "from_jagged": lambda t, x: t.nested.nested_tensor_from_jagged(t.arange(5.0), t.tensor([0, 2, 5])) * 2,
    "from lengths": lambda t, x: t.nested.nested_tensor_from_jagged(t.ones(5, 2), lengths=t.tensor([4, 1])).offsets(),
    "no offsets": lambda t, x: t.nested.nested_tensor_from_jagged(t.ones(5, 2)),
    "jagged_dim": lambda t, x: t.nested.nested_tensor_from_jagged(t.ones(2, 5), t.tensor([0, 2, 5]), jagged_dim=2),
    "narrow rows": lambda t, x: (
        t.nested.narrow(t.arange(12.0).view(3, 4), 1, t.tensor([0, 1, 2]), t.tensor([2, 3, 1]), layout=t.jagged) + 1
    ),
    "masked_select": lambda t, x: t.nested.masked_select(
        t.arange(6.0).view(2, 3), t.tensor([[1, 0, 1], [0, 0, 1]]) > 0
    ),
    "as rows": lambda t, x: t.nested.as_nested_tensor(t.ones(2, 3), layout=t.jagged),
    "sum of all rows": lambda t, x: (x.sum((0, 1)), x.sum((0, 1), keepdim=True), x.mean((0, 1)), x.sum((0, 1, 2))),
    "amax of all rows": lambda t, x: (x.amax((0, 1)), (x > 0).any((0, 1)), (x > 0).all((0, 1), keepdim=True)),
    "stack": lambda t, x: (t.stack([x, x], -1), t.stack([x, x], 3), t.stack([x, x], 2), t.stack([x, x], -2)),
    "chunk pieces": lambda t, x: x.chunk(2),
    "expand": lambda t, x: x.unsqueeze(-1).expand(x.size(0), x.size(1), 3, 4),
    "along rows": lambda t, x: (x.transpose(1, 2) @ x, t.bmm(x.transpose(1, 2), x)),
    "ragged columns": lambda t, x: t.nested.nested_tensor([t.ones(2, 3), t.ones(2, 4)], layout=t.jagged) * 2,
    "of a nested one": lambda t, x: t.nested.nested_tensor(x, layout=t.jagged),
    "losses": lambda t, x: functional(t).l1_loss(x, x * 2),
    "all true": lambda t, x: (t.ops.aten._is_all_true(x == x), t.ops.aten._is_any_true(x != x)),
    "embedding backward": lambda t, x: t.ops.aten.embedding_dense_backward(
        x, x.sum(-1).mul(0).to(t.int64), 4, -1, False
    ),
    "gradient ragged": lambda t, x: gradients(t, x, lambda n: n.exp().sum(1) ** 2),
    "gradient mean": lambda t, x: gradients(t, x, lambda n: (n * n).mean(-1)),
    "gradient row": lambda t, x: gradients(t, x, lambda n: n * t.arange(3.0)),
}


def gradients(t: Any, x: Any, f: Any) -> Any:
    leaves = [p.detach().clone().requires_grad_() for p in x.unbind()]
    r = f(t.nested.as_nested_tensor(leaves, layout=x.layout))
    total = sum((p.sum() for p in r.unbind()), t.tensor(0.0)) if r.is_nested else r.sum()
    total.backward()
    return [p.grad for p in leaves]


def outcome(t: Any, call: Any, seed: int, layout: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(call(t, nested(t, seed, layout)))
        except Exception as error:
            return type(error).__name__


# What is here and in PyTorch's layout is not, or not of each seed's tensors.
MORE = {
    *(("strided", name) for name in ("iterate", "gradient norm", "gradient transposed", "attention")),
    *(("jagged", name) for name in ("slice", "gradient ragged")),
}
CASES = [("strided", n, c) for n, c in (BOTH | STRIDED).items()] + [
    ("jagged", n, c) for n, c in (BOTH | JAGGED).items()
]


@needs_torch
@pytest.mark.parametrize(("layout", "name", "call"), CASES, ids=[f"{a}-{b}" for a, b, _ in CASES])
def test_as_in_torch(layout: str, name: str, call: Any) -> None:
    refused = 0
    for seed in range(4):
        expected, found = (outcome(t, call, seed, layout) for t in (torch, tp))
        if (layout, name) in MORE and expected in ("RuntimeError", "NotImplementedError", "ValueError"):
            refused += 1
            continue
        assert same(expected, found), f"{name} of {layout}, seed {seed}: {found}, not {expected}"
    assert (refused > 0) == ((layout, name) in MORE)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_each_piece_by_itself(layout: str) -> None:
    """What torch has no kernels for: any operator is the one on each piece."""
    calls: list[Callable[[Any], Any]] = [
        lambda x: x.cumsum(0 if x.dim() == 2 else 1),
        lambda x: x.var(-1),
        lambda x: x.sort(-1).values,
        lambda x: x.erf() + x.square(),
        lambda x: x.flip(-1),
        lambda x: x.logsumexp(-1),
        lambda x: x.std(-1, keepdim=True),
        lambda x: tp.lerp(x, x * 2, 0.25),
    ]
    for seed in range(5):
        pieces = pieces_of(tp, seed)
        whole = tp.nested.nested_tensor(pieces, layout=getattr(tp, layout))
        for call in calls:
            for a, b in zip(call(whole).unbind(), map(call, pieces), strict=True):
                assert a.shape == b.shape and tp.allclose(a, b)


def test_random_calls_of_several_steps() -> None:
    rng = random.Random(7)
    steps: list[Callable[[Any, bool], Any]] = [
        lambda x, _: x.sin(),
        lambda x, _: x * x + 0.5,
        lambda x, _: x - x.mean(-1, keepdim=True),
        lambda x, _: x.softmax(-1),
        lambda x, whole: x.softmax(1 if whole else 0),
        lambda x, _: x.clamp(-1, 1),
        lambda x, whole: x.transpose(1 if whole else 0, 2 if whole else 1) * 2,
    ]
    for seed in range(20):
        pieces = pieces_of(tp, seed)
        leaves, again = ([p.clone().requires_grad_() for p in pieces] for _ in range(2))
        whole = tp.nested.as_nested_tensor(leaves, layout=rng.choice([tp.strided, tp.jagged]))
        for step in [rng.choice(steps) for _ in range(rng.randint(1, 5))]:
            whole, again_ = step(whole, True), [step(p, False) for p in again]
            again = again_
        for a, b in zip(whole.unbind(), again, strict=True):
            assert tp.allclose(a, b, atol=1e-6)
        sum(p.square().sum() for p in whole.unbind()).backward()


# ---- writes, views, files ----


def test_pieces_are_views() -> None:
    n = tp.nested.nested_tensor([tp.zeros(2), tp.zeros(3)], layout=tp.jagged)
    n[1].fill_(4)
    n.transpose(1, 1)[0][0] = 2
    assert n.values().tolist() == [2, 0, 4, 4, 4]
    n.add_(1)
    assert n.unbind()[0].tolist() == [3, 1]


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_written_where_grad_is_wanted(layout: str) -> None:
    n = tp.nested.nested_tensor([tp.zeros(2)], layout=getattr(tp, layout), requires_grad=True)
    for write in (lambda: n.add_(1), lambda: n.zero_(), lambda: n.copy_(n.detach())):
        with pytest.raises(RuntimeError, match="grad"):
            write()
    with tp.no_grad():
        n.add_(1)
    assert n[0].tolist() == [1, 1]


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda y, x: y.mul_(2).sin_(),
    "add_": lambda y, x: y.add_(x),
    "fill_": lambda y, x: y.fill_(2.0),
    "zero_": lambda y, x: y.zero_().add_(x * 4),
    "copy_": lambda y, x: y.copy_(x * 3),
    "relu_": lambda y, x: y.add_(x).relu_(),
}


def recorded(lib: Any, layout: str, write: Callable[[Any, Any], Any]) -> list[Any]:
    """What is written into a recorded tensor, and the gradients of what it was made of."""
    x = lib.nested.nested_tensor(pieces_of(lib, 3), layout=getattr(lib, layout), requires_grad=True)
    y = x * 1.5
    seen = y * 1
    assert write(y, x) is y
    sum((p * p).sum() for p in [*y.unbind(), *seen.unbind()]).backward()
    return [[p.tolist() for p in t.unbind()] for t in (y, x.grad)]


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_writes_are_recorded(layout: str, name: str) -> None:
    """As those of each piece."""
    found = recorded(tp, layout, WRITES[name])
    leaves = [p.requires_grad_() for p in pieces_of(tp, 3)]
    pieces = [x * 1.5 for x in leaves]
    seen = [y * 1 for y in pieces]
    for y, x in zip(pieces, leaves, strict=True):
        WRITES[name](y, x)
    sum((p * p).sum() for p in [*pieces, *seen]).backward()  # type: ignore[union-attr]
    for ours, theirs in zip([*found[0], *found[1]], [*pieces, *(x.grad for x in leaves)], strict=True):
        assert np.allclose(ours, theirs.tolist(), atol=1e-6)
    if torch is not None and (layout == "jagged" or name in ("add_", "fill_", "copy_")):
        for ours, theirs in zip(found, recorded(torch, layout, WRITES[name]), strict=True):
            assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_what_a_write_records_of_others(layout: str) -> None:
    x = nested(tp, 3, layout).requires_grad_()
    y = x.detach().clone()
    y.copy_(x * 2)
    assert y.requires_grad and not y.is_leaf and tp._C._layout_part(y.detach(), 0).grad_fn is None
    y.retain_grad()
    y.mul_(3)
    sum(p.sum() for p in y.unbind()).backward()  # type: ignore[union-attr]
    assert all((p == 6).all() for p in x.grad.unbind()) and all((p == 1).all() for p in y.grad.unbind())
    z = x * 1
    w = z.sin()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        sum(p.sum() for p in w.unbind()).backward()  # type: ignore[union-attr]


@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.parametrize("way", ["save", "pickle", "deepcopy"])
def test_files_and_copies(layout: str, way: str) -> None:
    for seed in range(3):
        n = nested(tp, seed, layout).requires_grad_()
        if way == "save":
            file = io.BytesIO()
            tp.save(n, file)
            file.seek(0)
            back = tp.load(file)
        else:
            back = pickle.loads(pickle.dumps(n)) if way == "pickle" else copy.deepcopy(n)
        assert back.layout == n.layout and back.equal(n)
        assert back.requires_grad or (way == "save" and layout == "strided")
    if way != "deepcopy":
        any_sizes = tp.nested.nested_tensor([tp.ones(1, 2), tp.ones(2, 3)])
        assert pickle.loads(pickle.dumps(any_sizes)).equal(any_sizes)


def test_parts_written_later() -> None:
    """A table of sizes that was changed is refused, as offsets are."""
    for change in (lambda s: s.fill_(2**40), lambda s: s.resize_(1, 1), lambda s: s.neg_(), lambda s: s.resize_(2, 70)):
        n = tp.nested.nested_tensor([tp.ones(1, 2), tp.ones(2, 3)])
        change(tp._C._layout_part(n, 3))
        for use in (
            lambda n: n.unbind(),
            lambda n: n + 1,
            lambda n: n.to_padded_tensor(0.0),
            repr,
            lambda n: n.softmax(-1),
        ):
            with pytest.raises(RuntimeError):
                use(n)


def test_contiguous() -> None:
    for layout in (tp.strided, tp.jagged):
        n = tp.nested.nested_tensor([tp.arange(6.0).view(2, 3), tp.ones(4, 3)], layout=layout).transpose(1, 2)
        assert not n.is_contiguous() and n.contiguous().is_contiguous() and n.contiguous().equal(n)
        file = io.BytesIO()
        tp.save(n, file)
        file.seek(0)
        assert tp.load(file).equal(n)


@needs_torch
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_files_with_torch(layout: str) -> None:
    for write, read in ((tp, torch), (torch, tp)):
        file = io.BytesIO()
        n = nested(write, 1, layout)
        write.save({"n": n}, file)
        file.seek(0)
        back = read.load(file, weights_only=write is torch)["n"]
        assert same(plain(back), plain(n))


# ---- bad input ----


def test_offsets_that_lead_out() -> None:
    values = tp.arange(6.0)
    for offsets in ([0, 7], [-1, 3], [4, 2], [0, 3, 2**62], [[0, 1]], []):
        with pytest.raises(RuntimeError):
            tp.nested.nested_tensor_from_jagged(values, tp.tensor(offsets, dtype=tp.int64))
    for lengths in ([7], [-1], [2, 2]):
        with pytest.raises(RuntimeError):
            tp.nested.nested_tensor_from_jagged(values, tp.tensor([0, 6]), tp.tensor(lengths))
    for dim in (0, 2, -1, 2**40):
        with pytest.raises(RuntimeError):
            tp.nested.nested_tensor_from_jagged(values, tp.tensor([0, 6]), jagged_dim=dim)


def test_offsets_written_later() -> None:
    """Whatever is in them, an operator reads its values only, or refuses."""
    rng = random.Random(3)
    for _ in range(200):
        offsets = tp.tensor([0, 2, 6])
        n = tp.nested.nested_tensor_from_jagged(tp.arange(12.0).view(6, 2), offsets)
        offsets[rng.randrange(3)] = rng.choice([-1, 0, 3, 6, 7, 2**40, -(2**62), 2**63 - 1])
        call = rng.choice(list((BOTH | JAGGED).values()))
        try:
            call(tp, n)
        except (RuntimeError, ValueError, IndexError, NotImplementedError, TypeError):
            pass
    offsets = tp.tensor([0, 2, 6])
    n = tp.nested.nested_tensor_from_jagged(tp.arange(6.0), offsets)
    offsets.resize_(2)
    with pytest.raises(RuntimeError):
        n.unbind()


@pytest.mark.parametrize(
    "call",
    [
        lambda n: n.numpy(),
        lambda n: n.tolist(),
        lambda n: n.untyped_storage(),
        lambda n: n.expand(2, 4, 3),
        lambda n: n.sum(0),
        lambda n: n.transpose(0, 1),
        lambda n: n.view(5, -1, 3),
        lambda n: n.cumsum(0),
        lambda n: n + tp.ones(2, 2, 2, 2, 2),
        lambda n: n + tp.ones(5, 1, 1),
        lambda n: n[5],
        lambda n: n.matmul(tp.nested.nested_tensor([tp.ones(3, 2)] * 3)),
        lambda n: n.median(),
        lambda n: n.tile((1, 1, 2)),
        lambda n: n.flatten(0, 1),
        lambda n: n.index_add_(0, tp.tensor([0]), n),
        lambda n: n.sum((0, 2)),
        lambda n: n.__setitem__(slice(None), 1.0),
        lambda n: n.to_sparse(),
        lambda n: tp.ones(2).copy_(n),
        lambda n: n.to_padded_tensor(0.0, (2, 1)),
    ],
)
def test_refused(call: Any) -> None:
    for layout in (tp.strided, tp.jagged):
        n = tp.nested.nested_tensor([tp.ones(2, 3), tp.ones(4, 3)], layout=layout)
        with pytest.raises((RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)):
            call(n)


def test_without_pieces() -> None:
    n = tp.nested.nested_tensor([])
    assert n.size(0) == 0 and n.unbind() == () and (n + 1).numel() == 0
    assert n.to_padded_tensor(0.0).shape == (0,)
    with pytest.raises(RuntimeError, match="non-zero numel"):
        tp.nested.nested_tensor([tp.ones(0), tp.ones(0)]).to_padded_tensor(0.0)


@pytest.mark.parametrize("layout", [tp.strided, tp.jagged])
def test_squeeze_names_its_dimension(layout: Any) -> None:
    n = tp.nested.nested_tensor([tp.ones(1, 3), tp.ones(2, 3)], layout=layout).unsqueeze(-1)
    assert n.squeeze(-1).dim() == 3
    for call in (n.squeeze, lambda: n.squeeze(0)):
        with pytest.raises(RuntimeError, match=r"squeeze\(\)"):
            call()
    if layout is tp.jagged:
        with pytest.raises(RuntimeError, match="ragged"):
            n.squeeze(1)
    else:
        with pytest.raises(NotImplementedError, match="_nested_get_min_seqlen"):
            tp._nested_get_min_seqlen(n)


def test_a_module_and_its_gradients() -> None:
    tp.manual_seed(0)
    model = tp.nn.Sequential(tp.nn.Linear(3, 4), tp.nn.LayerNorm(4), tp.nn.GELU(), tp.nn.Linear(4, 2))
    pieces = pieces_of(tp, 2)
    tp.cat([model(p) for p in pieces]).square().sum().backward()
    expected = [p.grad for p in model.parameters()]
    model.zero_grad()
    model(tp.nested.as_nested_tensor(pieces, layout=tp.jagged)).square().sum().backward()
    for a, p in zip(expected, model.parameters(), strict=True):
        assert a is not None and p.grad is not None and tp.allclose(a, p.grad, atol=1e-5)


def test_stack_and_the_rest_on_each_piece() -> None:
    """Dimensions that are counted in the result, and those of a reduction of strided pieces."""
    pieces = pieces_of(tp, 4)
    for layout in (tp.strided, tp.jagged):
        whole = tp.nested.nested_tensor(pieces, layout=layout)
        for dim in (1, 2, 3, -1, -2, -3):
            found = tp.stack([whole, whole * 2], dim)
            for a, p in zip(found.unbind(), pieces, strict=True):
                assert a.equal(tp.stack([p, p * 2], dim - 1 if dim > 0 else dim))
    for a, p in zip(tp.nested.nested_tensor(pieces).sum(1).unbind(), pieces, strict=True):
        assert tp.allclose(a, p.sum(0))


def test_over_all_rows_and_losses_with_gradients() -> None:
    calls: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
        (lambda n: n.sum((0, 1)), lambda p: p.sum(0)),
        (lambda n: n.mean((0, 1, 2)), lambda p: p.mean()),
        (lambda n: n.var((0, 1)), lambda p: p.var(0)),
        (lambda n: n.amax((0, 1), keepdim=True), lambda p: p.amax(0)[None, None]),
        (lambda n: tp.nn.functional.mse_loss(n, n * n), lambda p: tp.nn.functional.mse_loss(p, p * p)),
        (lambda n: tp.nn.functional.l1_loss(n, n * n), lambda p: tp.nn.functional.l1_loss(p, p * p)),
        (lambda n: tp.nn.functional.mse_loss(n, n * n, reduction="none").sum(), lambda p: ((p * p - p) ** 2).sum()),
    ]
    for whole, flat in calls:
        leaves, again = ([p.clone().requires_grad_() for p in pieces_of(tp, 2)] for _ in range(2))
        a, b = whole(tp.nested.as_nested_tensor(leaves, layout=tp.jagged)), flat(tp.cat(again))
        assert a.shape == b.shape and tp.allclose(a, b, atol=1e-6)
        a.square().sum().backward()
        b.square().sum().backward()
        for x, y in zip(leaves, again, strict=True):
            assert x.grad is not None and y.grad is not None and tp.allclose(x.grad, y.grad, atol=1e-6)


def test_a_written_piece_and_its_gradient() -> None:
    n = tp.nested.nested_tensor([tp.zeros(2), tp.zeros(3)], requires_grad=True)
    with pytest.raises(RuntimeError, match="grad"):
        n[0] = 1.0
    with tp.no_grad():
        n[0] = 1.0
    assert n[0].tolist() == [1, 1]


def test_a_nested_tensor_of_nothing() -> None:
    n = tp.nested.nested_tensor([])
    assert n.dim() == 1 and n.size(0) == 0 and n.numel() == 0 and str(n) == "nested_tensor([\n\n])"
    assert (n * 2).dim() == 1 and n.to(tp.float64).dtype is tp.float64 and len(n.unbind()) == 0


def test_gaps_count_for_nothing() -> None:
    """Values that no piece has are no part of sums over all pieces, nor of gradients of a weight."""
    values, weight = tp.arange(16.0).view(8, 2), tp.ones(3, 2, requires_grad=True)
    n = tp.nested.nested_tensor_from_jagged(values, tp.tensor([0, 3, 8]), tp.tensor([2, 4]))
    kept = tp.cat([*n.unbind()])
    assert (
        len(kept) == 6 and n.contiguous().sum((0, 1)).equal(kept.sum(0)) and n.numel() == 12 and n.sum() == kept.sum()
    )
    tp.nn.functional.linear(n, weight).sum().backward()
    assert weight.grad is not None and tp.allclose(weight.grad, kept.sum(0).expand(3, 2))


ACROSS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda t, n: n.sum(1),
    "all": lambda t, n: (n > 0).all(1),
    "mean of pieces": lambda t, n: n.mean((0, 1)),
    "amax": lambda t, n: n.amax((1, 2)),
    "max": lambda t, n: n.max(1),
    "softmax": lambda t, n: n.softmax(1),
    "log_softmax": lambda t, n: n.log_softmax(-2),
    "padded": lambda t, n: n.to_padded_tensor(0.0),
    "chunk": lambda t, n: n.chunk(2, -1),
    "split": lambda t, n: n.split(1, 2),
    "a split list": lambda t, n: n.split([1, 1], 2),
}


@pytest.mark.parametrize("name", ACROSS)
def test_gaps_are_refused_where_pieces_are_joined(name: str) -> None:
    """As PyTorch does, by an error of its class; what lies one after the other is computed."""
    n = tp.nested.nested_tensor_from_jagged(tp.arange(16.0).view(8, 2), tp.tensor([0, 3, 8]), tp.tensor([2, 4]))
    wanted = ValueError if name in ("chunk", "split", "a split list") else RuntimeError
    with pytest.raises(wanted, match="holes"):
        ACROSS[name](tp, n)
    ACROSS[name](tp, n.contiguous())
    if name == "log_softmax":
        return  # refused there with and without
    torch = pytest.importorskip("torch")
    theirs = torch.nested.nested_tensor_from_jagged(
        torch.arange(16.0).view(8, 2), torch.tensor([0, 3, 8]), torch.tensor([2, 4])
    )
    with pytest.raises(wanted):
        ACROSS[name](torch, theirs)


# ---- modules ----


def transformer(t: Any, norm_first: bool = False) -> Any:
    layer = t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first)
    model = t.nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    with t.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(t.sin(t.arange(float(p.numel())).view(p.shape) + i) / 2)
    return model


def padded(t: Any) -> tuple[Any, Any]:
    return t.sin(t.arange(80.0).view(2, 5, 8)), t.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]) > 0


ENCODERS: dict[str, Callable[[Any, Any], Any]] = {
    "padded": lambda t, m: m(padded(t)[0], src_key_padding_mask=padded(t)[1]),
    "padded anywhere": lambda t, m: m(padded(t)[0], src_key_padding_mask=padded(t)[1].flip(1)),
    "padded by numbers": lambda t, m: m(
        padded(t)[0], src_key_padding_mask=t.zeros(2, 5).masked_fill(padded(t)[1], float("-inf"))
    ),
    "nested": lambda t, m: m(t.nested.nested_tensor([padded(t)[0][0], padded(t)[0][1, :2]])),
    "layer of nested": lambda t, m: m.layers[0](t.nested.nested_tensor([padded(t)[0][0], padded(t)[0][1, :2]])),
    "attention": lambda t, m: m.layers[0].self_attn(
        *[t.nested.nested_tensor([padded(t)[0][0], padded(t)[0][1, :2]])] * 3
    ),
    "without weights": lambda t, m: m.layers[0].self_attn(
        *[t.nested.nested_tensor([padded(t)[0][0], padded(t)[0][1, :2]])] * 3, need_weights=False
    ),
}


@needs_torch
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_as_in_torch(name: str, grad: bool, norm_first: bool) -> None:
    """In evaluation without gradients what a mask hides is zero, as PyTorch's nested encoder leaves it."""
    found = []
    for t in (torch, tp):
        with warnings.catch_warnings(), t.set_grad_enabled(grad):
            warnings.simplefilter("ignore")
            try:
                shared = transformer(t, norm_first)
                x = [t.nested.nested_tensor([padded(t)[0][0], padded(t)[0][1, :2]])] * 3
                direct = ENCODERS[name](t, shared) if "attention" not in name else shared.layers[0].self_attn(*x)
                found.append(plain(direct))
            except Exception as error:
                found.append(type(error).__name__)
    if isinstance(found[0], str):  # PyTorch has no kernels for gradients of nested attention
        assert grad and name not in ("padded", "padded anywhere", "padded by numbers")
    else:
        assert same(*found), found


def test_attention_of_nested_queries_has_gradients() -> None:
    tp.manual_seed(0)
    attention = tp.nn.MultiheadAttention(8, 2, batch_first=True)
    pieces = [tp.randn(n, 8) for n in (3, 5)]
    for layout in (tp.strided, tp.jagged):
        for need_weights in (False, True):
            leaves, again = ([p.clone().requires_grad_() for p in pieces] for _ in range(2))
            n = tp.nested.as_nested_tensor(leaves, layout=layout)
            found, shown = attention(n, n, n, need_weights=need_weights)
            assert found.layout == n.layout and (shown is None or shown.shape == (2, 5, 5))
            sum(p.square().sum() for p in found.unbind()).backward()
            for p in again:
                attention(p[None], p[None], p[None])[0].square().sum().backward()
            for a, b in zip(leaves, again, strict=True):
                assert a.grad is not None and b.grad is not None and tp.allclose(a.grad, b.grad, atol=1e-5)


# ---- devices, threads, failures ----

STEPS: list[Callable[[Any], Any]] = [
    lambda n: n * 2 + n.sin(),
    lambda n: n.softmax(-1),
    lambda n: n.softmax(1),
    lambda n: n.sum((0, 1)),
    lambda n: n.to_padded_tensor(0.5),
    lambda n: n.transpose(1, 2) @ n,
    lambda n: tp.nn.functional.linear(n, tp.ones(2, 3, device=n.device)),
    lambda n: tp.nn.functional.layer_norm(n, (3,)),
    lambda n: tp.nn.functional.scaled_dot_product_attention(*[n.unsqueeze(-1).transpose(1, 2)] * 3),
    lambda n: n.cumsum(-1),
    lambda n: n.chunk(3, -1)[1],
    lambda n: n.clone().add_(1),
]


@pytest.mark.skipif(not tp.opencl.is_available(), reason="there is no OpenCL device")
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_on_opencl(layout: str) -> None:
    for seed in range(2):
        n = nested(tp, seed, layout)
        there = n.to("opencl")
        assert there.device.type == "opencl" and there.cpu().equal(n)
        for step in STEPS:
            a, b = step(n), step(there)
            assert b.device.type == "opencl"
            assert same(plain(a), plain(b.cpu()))


def test_two_threads_at_once() -> None:
    """The same tensors, and offsets that another thread writes meanwhile: numbers of a pattern, or an error."""
    n, wrong = nested(tp, 0, "jagged"), []
    expected = [plain(step(n)) for step in STEPS]

    def read() -> None:
        for _ in range(20):
            for step, e in zip(STEPS, expected, strict=True):
                if not same(plain(step(n)), e):
                    wrong.append(step)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    offsets = tp.tensor([0, 2, 6])
    shared = tp.nested.nested_tensor_from_jagged(tp.arange(18.0).view(6, 3), offsets)

    def write() -> None:
        for i in range(400):
            offsets[1] = (2, 3, 100, -7)[i % 4]

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        try:
            assert shared.sum((0, 1)).tolist() == [45.0, 51.0, 57.0]
        except RuntimeError:
            continue
    writer.join()


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_failing_allocations(layout: str) -> None:
    """Each allocation of each step fails once: a MemoryError, and the tensors are as they were."""
    n = nested(tp, 0, layout)
    before = plain(n)
    for step in STEPS:
        step(n)
        for count in range(2000):
            tp._C._fail_allocation_after(count)
            failed = False
            try:
                step(n)
            except (MemoryError, RuntimeError):
                failed = True
            finally:
                reached = not tp._C._fail_allocation_after(-1)
            assert failed or not reached
            if not reached:
                break
        assert same(plain(n), before)
