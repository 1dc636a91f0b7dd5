"""Rules of networks, indices and losses: what is computed on parts is what is computed on the whole, gradients, too."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
import tensorpy.nn.functional as F
from tensorpy import distributed as dist
from tensorpy.distributed.tensor import Replicate, Shard, distribute_tensor
from tensorpy.distributed.tensor.parallel import loss_parallel

R = Replicate()


def floats(*shapes: tuple[int, ...]) -> list[Any]:
    made = tp.Generator().manual_seed(3)
    return [tp.randn(shape, generator=made) for shape in shapes]


def ints(high: int, *shape: int) -> Any:
    return tp.randint(0, high, shape, generator=tp.Generator().manual_seed(4))


HEADS = ((2, 4, 6, 3),) * 3
# what is computed, and of which tensors
CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding=1), floats((4, 4, 7), (6, 4, 3), (6,))),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2), floats((3, 4, 6, 5), (2, 4, 3, 3), (2,))),
    "conv2d without bias": (lambda x, w: F.conv2d(x, w), floats((2, 2, 5, 5), (4, 2, 3, 3))),
    "conv2d of groups": (lambda x, w, b: F.conv2d(x, w, b, groups=4), floats((2, 8, 5, 5), (8, 2, 3, 3), (8,))),
    "conv_transpose2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2), floats((2, 4, 3, 3), (4, 6, 2, 2), (6,))),
    "conv_transpose1d of groups": (
        lambda x, w: F.conv_transpose1d(x, w, groups=2), floats((3, 4, 5), (4, 3, 2)),
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), floats((4, 4, 3), (4,), (4,))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), floats((4, 6, 3), (6,), (6,))),
    "batch_norm of known moments": (
        lambda x, m, w: F.batch_norm(x, m.detach(), (m * m + 1).detach(), w), floats((4, 6, 3), (6,), (6,)),
    ),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), floats((2, 4, 4, 6))),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2, 1), floats((2, 4, 6))),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), floats((2, 4, 5, 6))),
    "interpolate": (
        lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=False), floats((2, 4, 3, 4)),
    ),
    "pad": (lambda x: F.pad(x, (1, 0, 0, 0, 0, 2)), floats((2, 4, 3, 4))),
    "repeat": (lambda x: x.repeat(2, 1, 3), floats((4, 3))),
    "triu": (lambda x: x.triu(1), floats((4, 4, 5))),
    "inv": (lambda x: tp.linalg.inv(x @ x.mT + tp.diag_embed(tp.ones_like(x[..., 0]))), floats((4, 3, 3))),
    "det": (lambda x: tp.linalg.det(x), floats((4, 3, 3))),
    "solve": (lambda a, b: tp.linalg.solve(a, b), floats((4, 3, 3), (4, 3, 2))),
    "kthvalue": (lambda x: x.kthvalue(2, 0)[0], floats((4, 6))),
    "median": (lambda x: x.median(1, True)[0], floats((4, 6))),
    "cummax": (lambda x: x.cummax(1)[0], floats((4, 6))),
    "cov": (lambda x: x.cov(), floats((3, 5))),
    "corrcoef": (lambda x: x.corrcoef(), floats((3, 5))),
    "squeeze": (lambda x: x.squeeze(), floats((2, 3, 1))),
    "squeeze of a dimension": (lambda x: x.squeeze(0) * x.squeeze(2).sum(1)[:1].sum(), floats((2, 3, 1))),
    "squeeze of dimensions": (lambda x: x.squeeze((0, 1, 2)), floats((2, 1, 3))),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), floats(*HEADS)),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3), floats(*HEADS),
    ),
    "attention with a mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > 0), floats(*HEADS, (6, 6)),
    ),
    "attention with a mask of heads": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m.detach()), floats(*HEADS, (2, 1, 6, 6)),
    ),
    "attention of shared heads": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        floats((2, 4, 6, 3), (2, 2, 6, 3), (2, 2, 6, 3)),
    ),
    "attention of float64": (
        lambda q, k, v: F.scaled_dot_product_attention(q.double(), k.double(), v.double()), floats(*HEADS),
    ),
    "index": (lambda x, i: x[i], [*floats((6, 4, 3)), ints(6, 4)]),
    "index behind": (lambda x, i: x[:, i], [*floats((4, 6, 3)), ints(6, 4, 2)]),
    "index by two": (lambda x, i, j: x[i, :, j], [*floats((4, 5, 4)), ints(4, 4), ints(4, 3, 4)]),
    "index by neighbours": (lambda x, i, j: x[:, i, j], [*floats((4, 5, 4)), ints(4, 4, 2), ints(4, 2)]),
    "index by bools": (lambda x, y: x[y > 0], floats((6, 4), (6, 4))),
    "index_put": (
        lambda x, i, v: x.clone().index_put((i,), v, accumulate=True), [*floats((4, 6)), ints(4, 5), *floats((5, 6))],
    ),
    "index_put of a row": (lambda x, i, v: x.index_put((i,), v), [*floats((4, 6)), tp.tensor([2, 0]), *floats((6,))]),
    "index_select": (lambda x, i: x.index_select(1, i), [*floats((4, 6, 2)), ints(6, 8)]),
    "index_add": (lambda x, i, v: x.index_add(0, i, v, alpha=2), [*floats((4, 6)), ints(4, 5), *floats((5, 6))]),
    "index_copy": (lambda x, i, v: x.index_copy(1, i, v), [*floats((4, 6)), tp.tensor([5, 0]), *floats((4, 2))]),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), [*floats((4, 6)), tp.tensor([5, 0])]),
    "gather": (lambda x, i: x.gather(1, i), [*floats((4, 6)), ints(6, 4, 8)]),
    "gather of fewer rows": (lambda x, i: x.gather(1, i), [*floats((4, 6)), ints(6, 2, 4)]),
    "scatter_add": (lambda x, i, v: x.scatter_add(0, i, v), [*floats((4, 6)), ints(4, 5, 6), *floats((5, 6))]),
    "embedding_bag": (lambda i, w: F.embedding_bag(i, w, mode="sum"), [ints(5, 3, 2), *floats((5, 4))]),
    "matmul of heads": (lambda q, k: q @ k.transpose(2, 3), floats(*HEADS[:2])),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), floats((2, 8, 3, 4))),
    "split": (lambda x: x.split([2, 4], 1)[0] * 2, floats((4, 6))),
    "split into one": (lambda x: x.split([4])[0] * 2, floats((4, 6))),
    "fft": (lambda x: tp.fft.fft(x, dim=1).abs(), floats((4, 6))),
    "rfft2": (lambda x: tp.fft.irfft2(tp.fft.rfft2(x) * 2), floats((4, 6, 4))),
    "transpose_copy": (lambda x: tp.ops.aten.transpose_copy.int(x, 0, 1), floats((4, 6))),
    "view_copy": (lambda x: tp.ops.aten.view_copy.default(x, [4, 3, 2]), floats((4, 6))),
    "select_scatter": (lambda x, y: x.select_scatter(y, 0, 1), floats((4, 6), (6,))),
    "slice_scatter": (lambda x, y: x.slice_scatter(y, 1, 0, 4), floats((4, 6), (4, 4))),
    "pinv": (lambda x: tp.linalg.pinv(x), floats((4, 3, 2))),
    "argsort": (lambda x: x.argsort(1), floats((4, 6))),
    "binary_cross_entropy": (
        lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.detach().sigmoid()), floats((4, 6), (4, 6)),
    ),
    "masked_select": (lambda x, y: x.masked_select(y > 0), floats((4, 6), (4, 6))),
    "nonzero": (lambda x: (x > 0).nonzero(), floats((4, 6))),
}  # fmt: skip


def outcome(call: Any, given: list[Any], whole: Callable[[Any], Any]) -> list[Any]:
    given = [t.detach().requires_grad_() if t.is_floating_point() else t for t in given]
    out = call(*given)
    values = [whole(out.detach())]
    if out.requires_grad:
        (out * out).sum().backward()
        values += [whole(t.grad) for t in given if t.grad is not None]
    return values


def rules(rank: int, size: int) -> list[str]:
    """The cases under some placements of their arguments; which ways are refused."""
    mesh = dist.init_device_mesh("cpu", (2, 2) if size == 4 else (size,))
    numbers, refused = random.Random(7), []
    for name, (call, given) in CASES.items():
        expected = outcome(call, given, lambda t: t)
        every = [list(itertools.product([R, *map(Shard, range(t.ndim))], repeat=mesh.ndim)) for t in given]
        combinations = [tuple(one[0] for one in every)]  # whole tensors, then some others
        combinations += [tuple(numbers.choice(one) for one in every) for _ in range(8 if size == 2 else 3)]
        for chosen in combinations:
            parts = [distribute_tensor(t, mesh, p) for t, p in zip(given, chosen, strict=True)]
            try:
                found = outcome(call, parts, lambda t: t.full_tensor())
            except RuntimeError as error:
                assert "is cut as dimension" in str(error), (name, chosen, error)
                refused.append(name)
                continue
            assert len(found) == len(expected), (name, chosen)
            for mine, whole in zip(found, expected, strict=True):
                assert mine.shape == whole.shape and mine.dtype == whole.dtype, (name, chosen)
                assert tp.allclose(mine, whole, rtol=1e-4, atol=1e-4), (name, chosen, mine, whole)
    return refused


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_rules(size: int, tmp_path: Path) -> None:
    for refused in world(rules, size, where("file", tmp_path)):
        assert len(refused) < 40, refused


# what stays where it is: nothing is gathered
KEPT: list[tuple[str, list[Any], Any]] = [
    ("conv2d", [Shard(0), R, R], Shard(0)),
    ("conv2d", [R, Shard(0), Shard(0)], Shard(1)),
    ("conv2d of groups", [Shard(1), Shard(0), Shard(0)], Shard(1)),
    ("group_norm", [Shard(0), R, R], Shard(0)),
    ("batch_norm", [Shard(1), Shard(0), Shard(0)], Shard(1)),
    ("max_pool2d", [Shard(1)], Shard(1)),
    ("attention", [Shard(1)] * 3, Shard(1)),
    ("attention", [Shard(2), R, R], Shard(2)),
    ("causal attention", [Shard(0)] * 3, Shard(0)),
    ("index", [R, Shard(0)], Shard(0)),
    ("index", [Shard(2), R], Shard(2)),
    ("index behind", [R, Shard(1)], Shard(2)),
    ("index_select", [Shard(0), R], Shard(0)),
    ("gather", [R, Shard(1)], Shard(1)),
    ("solve", [Shard(0), Shard(0)], Shard(0)),
]


def kept(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    for name, placements, expected in KEPT:
        call, given = CASES[name]
        out = call(*[distribute_tensor(t, mesh, [p]) for t, p in zip(given, placements, strict=True)])
        assert out.placements == (expected,), (name, placements, out.placements)
    x = distribute_tensor(tp.ones(4, 6, 3), mesh, [Shard(1)])
    moments = [distribute_tensor(tp.zeros(6), mesh, [Shard(0)]) for _ in range(2)]
    F.batch_norm(x, *moments, training=True)
    assert moments[0].full_tensor().tolist() == pytest.approx([0.1] * 6)
    moments = [distribute_tensor(tp.zeros(6), mesh) for _ in range(2)]  # what is written stays where it is
    F.batch_norm(x, *moments, training=True)
    assert moments[0].full_tensor().tolist() == pytest.approx([0.1] * 6)


def by_class(rank: int, size: int) -> None:
    """Cross entropy over classes that are cut, rows, too."""
    meshes = [dist.init_device_mesh("cpu", (size,))]
    if size == 4:
        meshes.append(dist.init_device_mesh("cpu", (2, 2)))
    for shape, how, weighed, dtype in itertools.product(
        ((4, 7), (4, 7, 2)), ("mean", "sum", "none"), (False, True), (tp.float32, tp.bfloat16)
    ):
        for mesh in meshes:
            scores = floats(shape)[0].to(dtype).requires_grad_()
            targets = ints(7, shape[0], *shape[2:])
            targets[1] = -100
            weight = tp.arange(1.0, 8).to(dtype) if weighed else None
            mine = distribute_tensor(scores.detach(), mesh, [Shard(0), Shard(1)][-mesh.ndim :]).requires_grad_()
            given = targets if mesh.ndim == 1 else distribute_tensor(targets, mesh, [Shard(0), R])
            expected = F.cross_entropy(
                scores.float(), targets, None if weight is None else weight.float(), reduction=how
            )
            with loss_parallel():
                logs = mine.log_softmax(1)
                assert logs.placements == mine.placements
                loss = F.cross_entropy(mine, given, weight, reduction=how)
                if mesh.ndim == 1:
                    assert loss.placements == (R,)
                loss.sum().backward()
            expected.sum().backward()
            near = 1e-5 if dtype == tp.float32 else 5e-2
            assert tp.allclose(loss.full_tensor().float(), expected, rtol=near, atol=near), (shape, how, weighed)
            assert mine.grad.placements == mine.placements
            assert tp.allclose(mine.grad.full_tensor().float(), scores.grad.float(), rtol=near, atol=near), (shape, how)
    mine = distribute_tensor(tp.zeros(2, 8), meshes[0], [Shard(1)])
    assert mine.log_softmax(1).placements == (R,)  # outside of it a line is gathered
    with pytest.raises(RuntimeError, match="mixed Tensor and DTensor"):
        F.cross_entropy(mine, tp.tensor([1, 2]))


def programs(rank: int, size: int) -> None:
    by_class(rank, size)
    if size == 2:
        kept(rank, size)


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_programs(size: int, tmp_path: Path) -> None:
    world(programs, size, where("file", tmp_path))
