"""DTensor: every operator on parts is the operator on the whole, beside PyTorch's in the same processes."""

from __future__ import annotations

import copy
import importlib
import importlib.util
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
from tensorpy import nn
from tensorpy.distributed import tensor as dt
from tensorpy.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from tensorpy.distributed.tensor._utils import compute_local_shape_and_global_offset
from tensorpy.distributed.tensor.experimental import implicit_replication, local_map

# ---- placements ----


def placements_of(ndim: int, mesh_ndim: int, lib: Any = dt) -> list[tuple[Any, ...]]:
    one = [lib.Replicate(), *[lib.Shard(d) for d in range(ndim)]]
    return list(itertools.product(one, repeat=mesh_ndim))


def moves(rank: int, size: int) -> None:
    """Between all placements, sizes that parts do not divide among them."""
    mesh = dist.init_device_mesh("cpu", (2, 2) if size == 4 else (size,))
    for shape in [(5, 4), (1, 3), (0, 2), (9,)] if size == 2 else [(5, 7)]:
        whole = tp.arange(float(tp.Size(shape).numel())).reshape(shape)
        every = placements_of(len(shape), mesh.ndim)
        for source in every:
            given = distribute_tensor(whole, mesh, source)
            assert given.placements == source and tuple(given.shape) == shape
            for to in every:
                made = given.redistribute(placements=to)
                assert made.placements == to
                expected = distribute_tensor(whole, mesh, to, src_data_rank=None)
                assert tp.equal(made.to_local(), expected.to_local()), (shape, source, to)
        for to, kind in itertools.product(every, ["sum", "avg", "max", "min", "product"]):
            parts = [Partial(kind), *[Replicate()] * (mesh.ndim - 1)]
            given = DTensor.from_local(whole * (mesh.get_local_rank(0) + 1), mesh, parts)
            n = mesh.shape[0]
            factor = {"sum": n * (n + 1) / 2, "avg": (n + 1) / 2, "max": n, "min": 1}.get(kind)
            expected = whole * factor if factor else whole**n * tp.arange(1.0, n + 1).prod()
            assert tp.allclose(given.redistribute(placements=to).full_tensor(), expected), (shape, kind, to)


def gradients_of_moves(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    local = tp.full((2, 4), float(rank + 1), requires_grad=True)
    whole = DTensor.from_local(local, mesh, [Shard(0)])
    (whole.redistribute(placements=[Replicate()]).to_local() * (rank + 1)).sum().backward()
    assert tp.equal(local.grad, tp.full((2, 4), float(rank + 1)))  # its replicas are one tensor: their gradients, too
    local.grad = None
    whole = DTensor.from_local(local, mesh, [Partial()])
    whole.full_tensor().sum().backward()
    assert tp.equal(local.grad, tp.ones(2, 4))
    local.grad = None
    out = DTensor.from_local(local, mesh, [Replicate()]).to_local(grad_placements=[Partial()])
    (out * (rank + 1)).sum().backward()  # what each did with a replica is added up
    assert tp.equal(local.grad, tp.full((2, 4), size * (size + 1) / 2))
    x = distribute_tensor(tp.arange(8.0).reshape(4, 2), mesh, [Shard(0)]).requires_grad_()
    (x * x).redistribute(placements=[Shard(1)]).sum().backward()
    assert x.grad.placements == (Shard(0),)
    assert tp.equal(x.grad.full_tensor(), tp.arange(8.0).reshape(4, 2) * 2)


# ---- operators ----

Pair = Callable[[Any, Any], Any]

# of two tensors [6, 4] and [6, 4]; `lib` is tensorpy or torch
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda lib, a, b: a + b,
    "add number": lambda lib, a, b: a + 2,
    "sub": lambda lib, a, b: a - b * 2,
    "mul": lambda lib, a, b: a * b,
    "div": lambda lib, a, b: a / (b * b + 1),
    "scaled sum": lambda lib, a, b: a.sum(0) * 3 + b.sum(0),
    "rows": lambda lib, a, b: a * b[0],
    "columns": lambda lib, a, b: a - b.mean(1, keepdim=True),
    "where": lambda lib, a, b: lib.where(a > b, a, b),
    "fill": lambda lib, a, b: a.masked_fill(b > 0, 1.5),
    "gelu": lambda lib, a, b: lib.nn.functional.gelu(a),
    "to": lambda lib, a, b: a.to(lib.float64),
    "sum": lambda lib, a, b: a.sum(),
    "sum of all and keep": lambda lib, a, b: a.sum((0, 1), keepdim=True),
    "sum 0": lambda lib, a, b: a.sum(0),
    "sum -1": lambda lib, a, b: a.sum(-1, keepdim=True),
    "mean": lambda lib, a, b: a.mean(),
    "mean 0": lambda lib, a, b: a.mean(0),
    "amax": lambda lib, a, b: a.amax(0),
    "min": lambda lib, a, b: a.min(),
    "max 1": lambda lib, a, b: a.max(1)[0],
    "prod": lambda lib, a, b: a.prod(1),
    "var": lambda lib, a, b: a.var(0),
    "argmax": lambda lib, a, b: a.argmax(0),
    "any": lambda lib, a, b: (a > 1).any(0),
    "norm": lambda lib, a, b: lib.linalg.vector_norm(a, 3.0),
    "norm inf": lambda lib, a, b: lib.linalg.vector_norm(a, float("inf")),
    "norm 1 of rows": lambda lib, a, b: lib.linalg.vector_norm(a, 1, 1),
    "t": lambda lib, a, b: a.t(),
    "view": lambda lib, a, b: a.view(6, 2, 2) if a.shape[1] == 4 else a,
    "merge": lambda lib, a, b: a.unsqueeze(1).expand(6, 3, 4).transpose(0, 1).sum(0),
    "select": lambda lib, a, b: a[:, 1],
    "slice": lambda lib, a, b: a[1:4, ::2],
    "split": lambda lib, a, b: a.split(2, 1)[1],
    "chunk": lambda lib, a, b: a.chunk(3, 0)[2],
    "unbind": lambda lib, a, b: a.unbind(1)[0],
    "cat": lambda lib, a, b: lib.cat([a, b]),
    "cat 1": lambda lib, a, b: lib.cat([a, b], 1),
    "stack": lambda lib, a, b: lib.stack([a, b], 1),
    "mm": lambda lib, a, b: a @ b.t(),
    "mm t": lambda lib, a, b: a.t() @ b,
    "addmm": lambda lib, a, b: lib.addmm(b.sum(0)[:1], a, b.t()),
    "addmm row": lambda lib, a, b: lib.addmm(b[0], a.t(), b),
    "bmm": lambda lib, a, b: lib.bmm(a.unsqueeze(0), b.t().unsqueeze(0)),
    "mm 3": lambda lib, a, b: a.unsqueeze(1) @ b.t(),
    "linear": lambda lib, a, b: lib.nn.functional.linear(a, b, b[:, 0]),
    "softmax": lambda lib, a, b: a.softmax(-1),
    "log_softmax": lambda lib, a, b: a.log_softmax(0),
    "cumsum": lambda lib, a, b: a.cumsum(0),
    "layer_norm": lambda lib, a, b: lib.nn.functional.layer_norm(a, (4,), b[0], b[1]),
    "mse": lambda lib, a, b: lib.nn.functional.mse_loss(a, b),
    "mse rows": lambda lib, a, b: lib.nn.functional.mse_loss(a, b, reduction="none"),
    "sort": lambda lib, a, b: a.sort(1)[0],
    "product of a partial": lambda lib, a, b: (a.t() @ b) @ b[:4],
    "twice a partial": lambda lib, a, b: (a.t() @ b) * (a.t() @ b),
    "view of a partial": lambda lib, a, b: (a.t() @ b).view(2, 8),
    "zeros_like": lambda lib, a, b: lib.zeros_like(a.t() @ b) + lib.ones_like(a)[0],
    "dropout off": lambda lib, a, b: lib.nn.functional.dropout(a, 0.5, False),
}  # fmt: skip


def outcome(lib: Any, call: Any, a: Any, b: Any, whole: Callable[[Any], Any]) -> Any:
    """Values, those of gradients, and whether the operator is one for distributed tensors; whole(t) is all of t."""
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    out = call(lib, a, b)
    values = [whole(out.detach())]
    if out.requires_grad and out.dtype.is_floating_point:
        (out * out).sum().backward()
        values += [whole(t.grad) for t in (a, b) if t.grad is not None]
    return [v.tolist() for v in values]


def same(mine: Any, yours: Any) -> bool:
    if isinstance(mine, list):
        return len(mine) == len(yours) and all(same(m, y) for m, y in zip(mine, yours, strict=True))
    return mine == pytest.approx(yours, rel=2e-4, abs=2e-4)


def operators(rank: int, size: int) -> tuple[int, int]:
    """Each under each placement is what it is on whole tensors, gradients, too."""
    mesh = dist.init_device_mesh("cpu", (2, 2) if size == 4 else (size,))
    numbers = random.Random(5)
    values = [[[numbers.uniform(-2, 2) for _ in range(4)] for _ in range(6)] for _ in range(2)]
    done = refused = 0
    for name, call in CALLS.items():
        a, b = (tp.tensor(v) for v in values)
        expected = outcome(tp, call, a, b, lambda t: t)
        pairs = list(itertools.product(placements_of(2, mesh.ndim), repeat=2))
        for of_a, of_b in numbers.sample(pairs, 4 if mesh.ndim == 1 else 2):
            da, db = distribute_tensor(a, mesh, of_a), distribute_tensor(b, mesh, of_b)
            try:
                found = outcome(tp, call, da, db, lambda t: t.full_tensor())
            except RuntimeError as error:
                assert "is cut as dimension" in str(error), (name, of_a, of_b)
                refused += 1
                continue
            done += 1
            assert same(found, expected), (name, of_a, of_b, found, expected)
    return done, refused


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_moves_and_operators(size: int, tmp_path: Path) -> None:
    for done, refused in world(everything, size, where("file", tmp_path)):
        assert done > (200 if size == 2 else 100) and refused < done / 10


def everything(rank: int, size: int) -> tuple[int, int]:
    moves(rank, size)
    gradients_of_moves(rank, size)
    return operators(rank, size)


def beside_torch(rank: int, size: int, folder: str) -> tuple[int, list[str]]:
    """How often placements of results are PyTorch's, and where not."""
    torch: Any = importlib.import_module("torch")
    theirs = importlib.import_module("torch.distributed.tensor")
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/torch", rank=rank, world_size=size)
    meshes = {torch: torch.distributed.init_device_mesh("cpu", (size,)), tp: dist.init_device_mesh("cpu", (size,))}
    numbers = random.Random(5)
    values = [[[numbers.uniform(-2, 2) for _ in range(4)] for _ in range(6)] for _ in range(2)]
    alike, unlike = 0, []
    pairs = list(itertools.product(range(3), repeat=2))
    for name, call, (i, j) in [(n, c, pair) for n, c in CALLS.items() for pair in numbers.sample(pairs, 4)]:

        def one(lib: Any, names: Any, name: str = name, call: Any = call, i: int = i, j: int = j) -> tuple[str, Any]:
            every = placements_of(2, 1, names)
            chosen = zip(values, (every[i], every[j]), strict=True)
            a, b = (names.distribute_tensor(lib.tensor(v), meshes[lib], p) for v, p in chosen)
            try:
                out = call(lib, a, b)
            except (RuntimeError, NotImplementedError) as error:
                return type(error).__name__, None
            return str(out.placements), out.full_tensor().tolist()

        mine, yours = one(tp, dt), one(torch, theirs)
        assert mine[1] is None or yours[1] is None or same(mine[1], yours[1]), (name, i, j)
        alike += mine[0] == yours[0]
        if mine[0] != yours[0]:
            unlike.append(f"{name} {i}{j}: {mine[0]}, PyTorch {yours[0]}")
    torch.distributed.destroy_process_group()
    return alike, unlike


@needs_mpi
def test_placements_are_those_of_pytorch(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    alike, unlike = world(beside_torch, 2, where("file", tmp_path), str(tmp_path))[0]
    assert len(unlike) <= 12 and alike > 200, unlike


# ---- programs ----


class Words(nn.Module):
    """Rows of a table, a layer, scores."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.norm = nn.LayerNorm(8)
        self.inner = nn.Linear(8, 12)
        self.outer = nn.Linear(12, 10)

    def forward(self, words: Any) -> Any:
        return self.outer(F.gelu(self.inner(self.norm(self.table(words)))))


def steps_of(model: Any, words: Any, targets: Any, whole: Any, optimizer: Any, weight: Any) -> list[float]:
    made = optimizer(model.parameters())
    losses = []
    for _ in range(3):
        made.zero_grad()
        loss = F.cross_entropy(model(words), targets, weight=weight, ignore_index=3)
        loss.backward()
        total = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        made.step()
        losses += [whole(loss).item(), whole(total).item()]
    return losses


CUTS: list[dict[str, int]] = [  # which parameters, along which dimension
    {}, {"inner.weight": 0, "inner.bias": 0, "outer.weight": 1}, {"table.weight": 0},
    {"table.weight": 1, "norm.weight": 0},
]  # fmt: skip


def training(rank: int, size: int) -> None:
    """A step on parts is the step on the whole: whichever parameters are cut, and the batch or not."""
    mesh = dist.init_device_mesh("cpu", (size,))
    for seed, optimizer in enumerate(
        (lambda p: tp.optim.SGD(p, lr=0.1, momentum=0.9), tp.optim.AdamW, tp.optim.Adagrad)
    ):
        tp.manual_seed(seed)
        plain = Words()
        words, targets = tp.randint(0, 10, (9,)), tp.randint(0, 10, (9,))
        weight = tp.rand(10) + 0.5
        start = {name: value.clone() for name, value in plain.state_dict().items()}
        expected = steps_of(plain, words, targets, lambda t: t, optimizer, weight)
        for cut, rows in itertools.product(CUTS, (Shard(0), Replicate())):
            model = Words()
            model.load_state_dict(start)

            def partition(name: str, module: Any, mesh: Any, cut: Any = cut) -> None:
                for own, value in list(module._parameters.items()):
                    dim = cut.get(f"{name}.{own}")
                    if dim is not None:
                        made = nn.Parameter(distribute_tensor(value.data, mesh, [Shard(dim)]))
                        module.register_parameter(own, made)

            distribute_module(model, mesh, partition)
            given = [distribute_tensor(t, mesh, [rows]) for t in (words, targets)]
            whole_weight = distribute_tensor(weight, mesh)
            found = steps_of(model, *given, lambda t: t.full_tensor(), optimizer, whole_weight)
            assert found == pytest.approx(expected, rel=1e-4), (cut, rows)
            for name, value in model.state_dict().items():
                assert isinstance(value, DTensor)
                assert tp.allclose(value.full_tensor(), plain.state_dict()[name], atol=1e-5), (cut, rows, name)


# of a distributed tensor, made with the options, or of a whole one
DRAWS: list[Callable[..., Any]] = [
    lambda lib, **options: lib.rand(5, 3, **options),
    lambda lib, **options: lib.randn((5, 3), **options),
    lambda lib, **options: lib.empty(5, 3, **options).normal_(1.0, 2.0),
    lambda lib, **options: lib.zeros(5, 3, **options).uniform_(-1, 1),
    lambda lib, **options: tp.rand_like(lib.ones(5, 3, **options)),
    lambda lib, **options: F.dropout(lib.full((5, 3), 2.0, **options), 0.4),
    lambda lib, **options: nn.init.kaiming_uniform_(lib.empty(5, 3, **options)),
]


def numbers_drawn(rank: int, size: int) -> None:
    """Draws are those of the whole tensor, whatever the state of each generator was."""
    mesh = dist.init_device_mesh("cpu", (size,))
    for to, draw in itertools.product([Shard(0), Shard(1), Replicate()], DRAWS):
        tp.manual_seed(11)
        made = draw(dt, device_mesh=mesh, placements=[to])
        behind = tp.rand(1)
        tp.manual_seed(11)
        assert isinstance(made, DTensor) and made.placements == (to,)
        assert tp.equal(made.full_tensor(), draw(tp)) and tp.equal(tp.rand(1), behind)
    tp.manual_seed(100 + rank)  # unlike in all: the mesh's first process leads
    other = dist.init_device_mesh("cpu", (size,))
    drawn = dt.rand(4, device_mesh=other, placements=[Replicate()])
    tp.manual_seed(100)
    assert tp.equal(drawn.to_local(), tp.rand(4))


def small_things(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    other = dist.init_device_mesh("cpu", (size, 1))
    x = distribute_tensor(tp.arange(6.0).reshape(3, 2), mesh, [Shard(0)])
    assert repr(x) == f"DTensor(local_tensor={x.to_local()}, device_mesh={mesh}, placements=(Shard(dim=0),))"
    assert x.shape == (3, 2) and x.stride() == (2, 1) and x.device_mesh is mesh and x.sum().item() == 15.0
    assert float(x[1, 1]) == 3.0 and x.max().item() == 5.0
    for error, match, call in (
        (RuntimeError, "mixed Tensor and DTensor", lambda: x + tp.ones(3, 2)),
        (NotImplementedError, "aten.searchsorted.Tensor does not have a sharding", lambda: tp.searchsorted(x, x)),
        (RuntimeError, "writes to a tensor", lambda: x.sum(0).fill_(1)),
        (ValueError, "same length", lambda: x.redistribute(placements=[Shard(0), Shard(1)])),
        (IndexError, "names no dimension", lambda: x.redistribute(placements=[Shard(2)])),
        (RuntimeError, "to Partial is for internal", lambda: x.redistribute(placements=[Partial()])),
        (RuntimeError, "placements is needed", lambda: x.redistribute()),
        (NotImplementedError, "Cross device mesh", lambda: x.redistribute(other, [Shard(0)] * 2)),
        (TypeError, "placements is a list", lambda: distribute_tensor(tp.ones(2), mesh, Shard(0))),
        (RuntimeError, "leaf tensors", lambda: distribute_tensor(tp.ones(2, requires_grad=True) * 2, mesh)),
        (ValueError, "is distributed as", lambda: distribute_tensor(x, mesh, [Replicate()])),
        (RuntimeError, "cut or copied", lambda: distribute_tensor(tp.ones(2), mesh, [Partial()])),
        (ValueError, "the part of", lambda: DTensor.from_local(tp.ones(2, 2), mesh, [Shard(0)], shape=(9, 2))),
        (ValueError, "reduce_op is one of", lambda: Partial("xor")),
        (RuntimeError, "lie on one mesh", lambda: x + distribute_tensor(tp.ones(3, 2), other)),
        (RuntimeError, "distributed.checkpoint", lambda: tp.save(x, "nowhere.pt")),
        (RuntimeError, "is cut as dimension 1", lambda: x.redistribute(placements=[Shard(1)]).reshape(6)),
        (RuntimeError, "not for parts of sums", lambda: x.sum(0).normal_()),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            call()
    one = nn.Parameter(distribute_tensor(tp.ones(1), mesh, [Shard(0)]))  # a part of it is empty
    assert one.placements == (one * 2 + one).placements == (Shard(0),)
    assert (one * 2 + one).full_tensor().tolist() == [3.0] and (one + tp.tensor(1.0)).placements == (Shard(0),)
    cut = x.sum(0, keepdim=True).to(tp.int64)  # parts of a sum are not cut to integers
    assert cut.full_tensor().tolist() == [[6, 9]] and (x * 0.5).sum().to(tp.int32).item() == 7
    for rows, how in itertools.product((1, 2, 3), ("mean", "sum", "none")):
        scores = tp.linspace(-1, 1, 5 * rows).reshape(rows, 5).requires_grad_()
        mine = distribute_tensor(scores.detach(), mesh, [Shard(0)]).requires_grad_()
        loss = F.cross_entropy(mine, distribute_tensor(tp.arange(rows), mesh, [Shard(0)]), reduction=how)
        whole = F.cross_entropy(scores, tp.arange(rows), reduction=how)
        loss.sum().backward()
        whole.sum().backward()
        assert tp.allclose(loss.full_tensor(), whole) and tp.allclose(mine.grad.full_tensor(), scores.grad)
    copied = copy.deepcopy(nn.Parameter(x))
    assert (
        isinstance(copied, nn.Parameter) and isinstance(copied, DTensor) and tp.equal(copied.to_local(), x.to_local())
    )
    for unlike in (
        tp.ones(2, dtype=tp.float64 if rank else tp.float32), tp.ones(2, 3).t() if rank else tp.ones(3, 2),
        tp.ones(2, requires_grad=rank == 0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="of parts are alike"):
            DTensor.from_local(unlike, mesh, [Shard(0)], run_check=True)
    with implicit_replication():
        both = tp.ones(2) + x
    assert both.placements == (Shard(0),) and tp.equal(both.full_tensor(), x.full_tensor() + 1)
    assert (x + tp.ones(1)).placements == (Shard(0),)
    even = distribute_tensor(tp.arange(8.0).reshape(4, 2), mesh, [Shard(0)])
    scaled = local_map(lambda part, by: part * by, [Shard(0)], ([Shard(0)], None), device_mesh=mesh)
    assert tp.equal(scaled(even, 3).full_tensor(), even.full_tensor() * 3)
    with pytest.raises(ValueError, match="redistribute_inputs=True"):
        scaled(even.redistribute(placements=[Replicate()]), 3)
    sums = local_map(
        lambda part: (part.sum(), part.shape[1]), ([Partial()], None), ([Shard(1)],), redistribute_inputs=True
    )
    total, columns = sums(even)
    assert total.full_tensor().item() == 28.0 and columns == 1
    assert compute_local_shape_and_global_offset((3, 2), mesh, [Shard(0)]) == ((2 - rank, 2), (2 * rank, 0))
    first = dist.DeviceMesh("cpu", [0])
    alone = DTensor.from_local(tp.ones(3), first, [Shard(0)]).sum().to_local()
    assert alone.item() == (0.0 if rank else 3.0)  # zero where there is nothing
    local = tp.full((2,), float(rank))
    assert DTensor.from_local(local, mesh, run_check=True).to_local().tolist() == [0.0, 0.0]
    x.add_(distribute_tensor(tp.ones(3, 2), mesh)).sub_(1)
    assert x.placements == (Shard(0),) and x.full_tensor().tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    with mesh:
        assert dt.zeros(4, placements=[Shard(0)]).full_tensor().tolist() == [0.0] * 4
    y = dt.ones(4, 2, dtype=tp.float64, requires_grad=True, device_mesh=mesh, placements=[Shard(0)])
    assert y.requires_grad and y.dtype == tp.float64 and y.is_leaf
    (y.to_local() * 2).sum().backward()
    assert y.grad.placements == (Shard(0),) and y.grad.full_tensor().tolist() == [[2.0, 2.0]] * 4
    seen: list[Any] = []
    model = nn.Linear(2, 4)
    distribute_module(
        model, mesh, None,
        lambda module, inputs, mesh: (distribute_tensor(inputs[0], mesh, [Shard(0)]),),
        lambda module, outputs, mesh: seen.append(outputs.placements) or outputs.to_local(),
    )  # fmt: skip
    out = model(tp.ones(2 * size, 2))
    assert seen == [(Shard(0),)] and out.shape == (2, 4) and type(out) is tp.Tensor


def programs(rank: int, size: int) -> None:
    numbers_drawn(rank, size)
    small_things(rank, size)
    training(rank, size)


@needs_mpi
def test_programs(tmp_path: Path) -> None:
    world(programs, 2, where("file", tmp_path))
