"""Collectives as operators: values, waits, gradients, Meta, traces, compiled functions, at 1, 2 and 4 ranks."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ranks import SECONDS, needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy.distributed import ReduceOp
from tensorpy.distributed import _functional_collectives as funcol
from tensorpy.distributed import _functional_operators as operators
from tensorpy.distributed.device_mesh import init_device_mesh
from tensorpy.distributed.nn import functional as nn
from tensorpy.fx.experimental.proxy_tensor import make_fx

OPS = tp.ops._c10d_functional


def mine(rank: int, *shape: int, dtype: Any = tp.float32) -> Any:
    return tp.randint(-4, 5, shape, generator=tp.Generator().manual_seed(rank)).to(dtype)


def plain(t: Any) -> Any:
    return funcol.wait_tensor(t)


# ---- values ----


def values(rank: int, size: int) -> None:
    g = dist.group.WORLD
    for dtype in (tp.float32, tp.bfloat16, tp.int64):
        x = mine(rank, 2 * size, 3, dtype=dtype)
        before = x.clone()
        everyone = [mine(r, 2 * size, 3, dtype=dtype) for r in range(size)]
        for name, op in operators.OPERATIONS.items():
            expected = x.clone()
            if name.startswith("b") and dtype.is_floating_point:
                with pytest.raises(RuntimeError, match="is no operation of"):
                    funcol.all_reduce(x, name, g)
                continue
            dist.all_reduce(expected, op)
            made = funcol.all_reduce(x, name.upper(), g)
            assert isinstance(made, funcol.AsyncCollectiveTensor) and made.dtype == dtype and made.shape == x.shape
            assert tp.equal(plain(made), expected), (dtype, name)
            part = plain(funcol.reduce_scatter_tensor(x, name, 0, g))
            assert tp.equal(part, expected[2 * rank : 2 * rank + 2]), (dtype, name)
        assert tp.equal(plain(funcol.broadcast(x, size - 1, g)), everyone[-1])
        for dim in (0, 1, -1, -2):
            assert tp.equal(plain(funcol.all_gather_tensor(x, dim, g)), tp.cat(everyone, dim))
        wide = x.reshape(3, 2 * size)
        total = sum(e.reshape(3, 2 * size) for e in everyone)
        assert tp.equal(plain(funcol.reduce_scatter_tensor(wide, "sum", 1, g)), total[:, 2 * rank : 2 * rank + 2])
        swapped = plain(funcol.all_to_all_single(x, None, None, g))
        assert tp.equal(swapped, tp.cat([e[2 * rank : 2 * rank + 2] for e in everyone]))
        inputs = [0] * size
        inputs[(rank + 1) % size] = 2 * size
        outputs = [0] * size
        outputs[(rank - 1) % size] = 2 * size
        assert tp.equal(plain(funcol.all_to_all_single(x, outputs, inputs, g)), everyone[rank - 1])
        order = [(r + 1) % size for r in range(size)]
        assert tp.equal(plain(funcol.permute_tensor(x, order, g)), everyone[rank - 1])
        assert tp.equal(x, before)  # nothing was written
    # several at once, and in place
    xs = [mine(rank, 2 * size), mine(rank + 9, 3, size)]
    expected = [t.clone() for t in xs]
    for t in expected:
        dist.all_reduce(t)
    for made, t in zip(funcol.all_reduce_coalesced(xs, "sum", g), expected, strict=True):
        assert tp.equal(plain(made), t)
    for made, t in zip(funcol.all_gather_into_tensor_coalesced(xs, g), xs, strict=True):
        assert tp.equal(plain(made).chunk(size)[rank], t)
    parts = funcol.reduce_scatter_tensor_coalesced(xs, "sum", [0, 1], g)
    assert tp.equal(plain(parts[0]), expected[0].chunk(size)[rank])
    assert tp.equal(plain(parts[1]), expected[1].chunk(size, 1)[rank])
    rows = tp.arange(12.0 * size * size).reshape(2 * size, 3, 2 * size)  # cut by rows, then by columns
    for given in (rows.requires_grad_().chunk(size)[rank], rows.detach().chunk(size)[rank]):
        columns = tp.ops._dtensor.shard_dim_alltoall(given, 0, -1, "0")
        assert tp.equal(columns, rows.chunk(size, 2)[rank]), (columns, rows)
        if given.requires_grad:
            (columns * (rank + 1)).sum().backward()
            of_columns = tp.arange(1.0, size + 1).repeat_interleave(2).expand(2, 3, 2 * size)
            assert tp.equal(rows.grad.chunk(size)[rank], of_columns)
    x = xs[0].clone()
    assert OPS.all_reduce_(x, "sum", "0") is x and tp.equal(OPS.wait_tensor(x), expected[0])
    written = [t.clone() for t in xs]
    made = OPS.all_reduce_coalesced_(written, "sum", "0")
    assert all(a is b and tp.equal(OPS.wait_tensor(a), t) for a, b, t in zip(made, written, expected, strict=True))
    x = mine(rank, 3)
    assert OPS.broadcast_(x, 0, "0") is x and tp.equal(OPS.wait_tensor(x), mine(0, 3))
    out = tp.empty(2 * size * size)
    assert OPS.all_gather_into_tensor_out(xs[0], size, "0", out=out) is out
    assert tp.equal(OPS.wait_tensor(out).chunk(size)[rank], xs[0])
    out = tp.empty(2)
    OPS.reduce_scatter_tensor_out(xs[0], "sum", size, "0", out=out)
    assert tp.equal(OPS.wait_tensor(out), expected[0].chunk(size)[rank])
    empty = plain(funcol.all_reduce(tp.empty(0, 3), "sum", g))
    assert empty.shape == (0, 3)


def to_the_next(rank: int, size: int) -> None:
    """Each sends to the next and hears from the one before it."""
    following, previous = (rank + 1) % size, (rank - 1) % size
    for shape in ((3,), (200_000,), (0, 2)):
        x, room = tp.full(shape, float(rank)), tp.zeros(shape)
        came, gone = OPS.irecv(room, previous, 4, "0"), OPS.isend(x, following, 4, "0")
        x.fill_(-1)  # what goes is a copy
        assert gone.shape == (0,) and came.data_ptr() == room.data_ptr()
        assert OPS.wait_tensor(came).tolist() == tp.full(shape, float(previous)).tolist() == room.tolist()
        assert OPS.wait_tensor(gone).shape == (0,)
    dist.barrier()


def waits(rank: int, size: int) -> None:
    g = dist.group.WORLD
    large = tp.full((1 << 20,), float(rank + 1))
    total = size * (size + 1) / 2
    # an operator waits, once; a caller may write what went
    made = funcol.all_reduce(large, "sum", g)
    gathered = funcol.all_gather_tensor(large, 0, g)
    parts = funcol.reduce_scatter_tensor(large, "sum", 0, g)
    large.fill_(-1)
    assert not made.completed and made.numel() == 1 << 20
    assert float((made * 2).max()) == 2 * total == float((made * 2).min()) and made.completed
    assert [gathered.trigger_wait()[r << 20].item() for r in range(size)] == [r + 1 for r in range(size)]
    assert float(parts.min()) == total == float(parts.max())
    assert funcol.all_reduce(tp.ones(2), "sum", g).tolist() == [size] * 2
    assert funcol.all_reduce(tp.ones(()), "sum", g).item() == size
    assert str(funcol.all_reduce(tp.ones(1), "sum", g)) == f"AsyncCollectiveTensor(tensor([{size}.]))"
    # one that went on is waited for where another collective takes it
    twice = funcol.all_reduce(funcol.all_reduce(tp.ones(3), "sum", g), "sum", g)
    assert plain(twice).tolist() == [size * size] * 3
    # nobody waits: memory is let go once the message is done
    for _ in range(50):
        funcol.all_reduce(tp.ones(1000), "sum", g)
    dist.barrier()
    plain(funcol.all_reduce(tp.ones(1), "sum", g))
    last = time.monotonic() + SECONDS
    while operators._under_way and time.monotonic() < last:
        time.sleep(0.01)
        operators._note(large, None)  # as the next collective does
    assert not operators._under_way


def gradients(rank: int, size: int) -> None:
    g, rows = dist.group.WORLD, 2 * size
    weights = [mine(r + 50, rows, 3, dtype=tp.float64) for r in range(size)]
    splits = {r: [(r + c) % 2 + 1 for c in range(size)] for r in range(size)}  # what r gives to c

    def given(r: int) -> Any:
        return mine(r, rows, 3, dtype=tp.float64)

    def check(f: Any, whole: Any) -> None:
        """The sum over all processes of what f gives, weighed, has the gradient that one process computes."""
        x = given(rank).requires_grad_()
        out = f(x)
        assert type(out) is tp.Tensor and out.requires_grad
        (out * weights[rank][: out.shape[0]]).sum().backward()
        alone = [given(r).requires_grad_() for r in range(size)]
        outs = whole(alone)
        sum((o * w[: o.shape[0]]).sum() for o, w in zip(outs, weights, strict=True)).backward()
        assert tp.allclose(out, outs[rank]) and tp.allclose(x.grad, alone[rank].grad), f

    check(lambda x: funcol.all_reduce(x * x, "sum", g), lambda a: [sum(t * t for t in a)] * size)
    check(
        lambda x: funcol.reduce_scatter_tensor_autograd(x * x, "sum", 0, g),
        lambda a: sum(t * t for t in a).chunk(size),
    )
    check(
        lambda x: funcol.all_gather_tensor_autograd(x[:2] * x[:2], 0, g),
        lambda a: [tp.cat([t[:2] * t[:2] for t in a])] * size,
    )
    check(
        lambda x: funcol.all_to_all_single_autograd(
            (x * x)[: sum(splits[rank])], [splits[r][rank] for r in range(size)], splits[rank], g
        ),
        lambda a: [
            tp.cat([(t * t)[: sum(splits[r])].split(splits[r])[c] for r, t in enumerate(a)]) for c in range(size)
        ],
    )
    check(
        lambda x: tp.cat(funcol.all_reduce_coalesced([x[:2] * 2, x[2:] * x[2:]], "sum", g)),
        lambda a: [tp.cat([sum(t[:2] * 2 for t in a), sum(t[2:] * t[2:] for t in a)])] * size,
    )
    for call in (
        lambda x: funcol.all_reduce(x, "max", g),
        lambda x: funcol.reduce_scatter_tensor(x, "avg", 0, g),
    ):
        with pytest.raises(RuntimeError, match="backward only supports 'sum' reduction"):
            call(given(rank).requires_grad_()).sum().backward()
        dist.barrier()


def programs(rank: int, size: int) -> None:
    g = dist.group.WORLD

    def layer(x: Any, w: Any) -> Any:
        """A product whose columns lie in all processes: gathered, and its gradient scattered."""
        y = funcol.all_gather_tensor(x @ w, 1, g).relu() + 1
        z = funcol.all_reduce(y * (rank + 1), "sum", g)
        return z * 2 + funcol.reduce_scatter_tensor(y, "sum", 0, g).sum()

    x, w = tp.randn(2 * size, 4, generator=tp.Generator().manual_seed(0)), mine(rank, 4, 3)
    expected = layer(x, w)
    module = make_fx(layer)(x, w)
    names = [str(n.target) for n in module.graph.nodes if "c10d" in str(n.target)]
    assert [n.split(".")[1] for n in names] == [
        "all_gather_into_tensor", "wait_tensor", "all_reduce", "wait_tensor", "reduce_scatter_tensor", "wait_tensor",
    ]  # fmt: skip
    assert tp.equal(module(x, w), expected)
    other = mine(rank + 7, 4, 3)
    assert tp.equal(module(x, other), layer(x, other))
    # what is noted before a message is computed before it goes
    compiled = tp.compile(layer)
    for _ in range(3):
        assert tp.allclose(compiled(x, w), expected, rtol=1e-6)
    v, u = w.clone().requires_grad_(), w.clone().requires_grad_()
    compiled(x, v).sum().backward()
    layer(x, u).sum().backward()
    assert tp.allclose(v.grad, u.grad, rtol=1e-6)
    with tp.profiler.profile() as seen:
        plain(funcol.all_reduce(x, "sum", g))
    said = {e.key for e in seen.key_averages()}
    assert {"_c10d_functional::all_reduce", "_c10d_functional::wait_tensor"} <= said, said
    # groups: of some, by name, of a mesh
    pair, _ = dist.new_subgroups(2)
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("a", "b"))
    neighbours = sum(range(rank // 2 * 2, rank // 2 * 2 + 2))
    ranks = [rank // 2 * 2, rank // 2 * 2 + 1]
    for group in (pair, pair.group_name, mesh["b"], (mesh, 1), ranks, [ranks]):
        assert funcol.all_reduce(tp.tensor([rank]), "sum", group).tolist() == [neighbours]
    with pytest.raises(AssertionError, match="Only 1D mesh"):
        funcol.all_reduce(x, "sum", mesh)
    dist.destroy_process_group(pair)
    with pytest.raises(RuntimeError, match="Could not resolve the process group"):
        funcol.all_reduce(x, "sum", pair.group_name)


def of_nn(rank: int, size: int) -> None:
    """distributed.nn.functional: values, and the gradients of the sum over all processes."""
    weights = [mine(r + 50, 3, dtype=tp.float64) for r in range(size)]

    def given(r: int) -> list[Any]:
        return list(mine(r, size, 3, dtype=tp.float64).requires_grad_().unbind())

    def check(f: Any, whole: Any) -> None:
        xs, alone = [t.detach().requires_grad_() for t in given(rank)], [given(r) for r in range(size)]
        outs, expected = f(xs), whole(alone)
        sum((o * o * (w + rank)).sum() for o, w in zip(outs, weights, strict=False)).backward()
        total = 0
        for r in range(size):
            total = total + sum((o * o * (w + r)).sum() for o, w in zip(expected[r], weights, strict=False))
        leaves = tp.autograd.grad(total, alone[rank], allow_unused=True)
        for out, one in zip(outs, expected[rank], strict=True):
            assert tp.allclose(out, one)
        for x, grad in zip(xs, leaves, strict=True):
            assert tp.allclose(0 * x if x.grad is None else x.grad, 0 * x if grad is None else grad)

    last = size - 1
    nothing = tp.zeros(3, dtype=tp.float64)
    check(lambda a: [nn.all_reduce(a[0])], lambda a: [[sum(t[0] for t in a)]] * size)
    check(lambda a: [nn.broadcast(a[0], last)], lambda a: [[a[last][0]]] * size)
    check(lambda a: nn.all_gather(a[0]), lambda a: [[t[0] for t in a]] * size)
    check(lambda a: nn.gather(a[0], last), lambda a: [*[[nothing] * size] * last, [t[0] for t in a]])
    check(lambda a: [nn.scatter(a, last)], lambda a: [[a[last][r]] for r in range(size)])
    check(lambda a: [nn.reduce_scatter(a[0], a)], lambda a: [[sum(t[r] for t in a)] for r in range(size)])
    check(lambda a: nn.all_to_all(a, a), lambda a: [[t[r] for t in a] for r in range(size)])
    check(
        lambda a: nn.all_to_all_single(tp.stack(a), tp.stack(a)).unbind(),
        lambda a: [[t[r] for t in a] for r in range(size)],
    )
    x = mine(rank, 3, dtype=tp.float64).requires_grad_()
    out = nn.reduce(x * x, last)
    (out * (1 if rank == last else 0)).sum().backward()
    assert tp.allclose(x.grad, 2 * x)
    if rank == last:
        assert tp.allclose(out, sum(mine(r, 3, dtype=tp.float64) ** 2 for r in range(size)))


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("part", [values, to_the_next, waits, gradients, of_nn, programs])
def test_processes(part: Any, size: int, tmp_path: Path) -> None:
    world(part, size, where("file", tmp_path))


# ---- one process, and none ----


@pytest.fixture
def alone() -> Any:
    dist.init_process_group(rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_a_world_of_one(alone: Any) -> None:
    x = mine(0, 4, 2)
    for op in operators.OPERATIONS:
        assert tp.equal(plain(funcol.all_reduce(x, op, alone)), x)
    for made in (
        funcol.all_gather_tensor(x, 1, alone), funcol.reduce_scatter_tensor(x, "sum", 1, alone),
        funcol.broadcast(x, 0, alone), funcol.all_to_all_single(x, [4], [4], alone),
        funcol.permute_tensor(x, [0], alone),
    ):  # fmt: skip
        assert tp.equal(plain(made), x) and plain(made).data_ptr() != x.data_ptr()


def test_what_cannot_be_sent(alone: Any) -> None:
    x = tp.ones(3)
    for call, error in (
        (lambda: funcol.all_reduce(x, "mean", alone), ValueError),
        (lambda: funcol.all_reduce(x, "premul_sum", alone), ValueError),
        (lambda: OPS.all_reduce(x, "sum", "nobody"), RuntimeError),
        (lambda: OPS.all_gather_into_tensor(x, 2, "0"), ValueError),
        (lambda: OPS.reduce_scatter_tensor(x, "sum", 2, "0"), ValueError),
        (lambda: OPS.reduce_scatter_tensor(x, "sum", 0, "0"), ValueError),
        (lambda: OPS.reduce_scatter_tensor(tp.ones(()), "sum", 1, "0"), ValueError),
        (lambda: OPS.all_to_all_single(x, [-3], [3], "0"), ValueError),
        (lambda: OPS.all_to_all_single(x, [2], [3], "0"), ValueError),
        (lambda: OPS.all_to_all_single(x, [1, 2], [3], "0"), ValueError),
        (lambda: funcol.all_to_all_single(x, [3], None, alone), AssertionError),
        (lambda: funcol.permute_tensor(x, [1], alone), ValueError),
        (lambda: funcol.all_reduce(x, "sum", [0, 1]), ValueError),
        (lambda: funcol.all_reduce(x, "sum", None), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_meta_has_shapes_without_a_world() -> None:
    x = tp.empty(4, 3, dtype=tp.float16, device="meta")
    for made, shape in (
        (OPS.all_reduce(x, "sum", "0"), (4, 3)),
        (OPS.broadcast(x, 0, "0"), (4, 3)),
        (OPS.all_gather_into_tensor(x, 8, "0"), (32, 3)),
        (OPS.all_gather_into_tensor(x[0, 0], 8, "0"), (8,)),
        (OPS.reduce_scatter_tensor(x, "sum", 2, "0"), (2, 3)),
        (OPS.all_to_all_single(x, [5, 2], [1, 3], "0"), (7, 3)),
        (OPS.wait_tensor(x), (4, 3)),
        (OPS.isend(x, 1, 0, "0"), (0,)),
        (OPS.irecv(x, 1, 0, "0"), (4, 3)),
        (OPS.all_reduce_coalesced_([x], "sum", "0")[0], (4, 3)),
        (OPS.all_reduce_coalesced([x], "sum", "0")[0], (4, 3)),
        (OPS.all_gather_into_tensor_coalesced([x], 2, "0")[0], (8, 3)),
        (OPS.reduce_scatter_tensor_coalesced([x], "sum", 4, "0")[0], (1, 3)),
        (tp.ops._c10d_functional_autograd.all_gather_into_tensor(x, 2, "0"), (8, 3)),
    ):
        assert made.shape == shape and made.dtype == tp.float16 and made.device.type == "meta"
    with pytest.raises(ValueError, match="must be a multiple of group_size 3, and the input is"):
        OPS.reduce_scatter_tensor(x, "sum", 3, "0")


def test_before_the_import_an_error_says_what_to_import() -> None:
    program = """
import sys
import tensorpy as tp
x = tp.ones(4, 3)
assert tp.ops._c10d_functional.all_gather_into_tensor(x.to("meta"), 2, "0").shape == (8, 3)
assert "tensorpy.distributed" not in sys.modules
try:
    tp.ops._c10d_functional.all_reduce(x, "sum", "0")
except NotImplementedError as error:
    print(error)
import tensorpy.distributed
tensorpy.distributed.init_process_group(rank=0, world_size=1)
print(tp.ops._c10d_functional.wait_tensor(tp.ops._c10d_functional.all_reduce(x, "sum", "0")).sum().item())
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.splitlines() == [
        "Could not run '_c10d_functional::all_reduce': its kernels come with tensorpy.distributed. next step: import "
        "tensorpy.distributed",
        "12.0",
    ], said


def test_tangents_are_sent_as_what_they_belong_to(alone: Any) -> None:
    x, t = mine(0, 4, 2), mine(1, 4, 2)
    calls: list[Any] = [
        lambda a: OPS.all_reduce(a, "sum", "0"),
        lambda a: OPS.all_reduce_(a * 1, "avg", "0"),
        lambda a: OPS.all_gather_into_tensor(a, 1, "0"),
        lambda a: OPS.reduce_scatter_tensor(a, "SUM", 1, "0"),
        lambda a: OPS.all_to_all_single(a, [4], [4], "0"),
        lambda a: OPS.all_reduce_coalesced([a], "sum", "0")[0],
        lambda a: OPS.all_gather_into_tensor_coalesced([a], 1, "0")[0],
        lambda a: OPS.reduce_scatter_tensor_coalesced([a], "sum", 1, "0")[0],
    ]
    for call in calls:
        value, tangent = tp.func.jvp(lambda a: OPS.wait_tensor(call(a)), (x,), (t,))  # noqa: B023
        assert tp.equal(value, x) and tp.equal(tangent, t)
    refused: list[Any] = [
        lambda a: OPS.all_reduce(a, "max", "0"),
        lambda a: OPS.reduce_scatter_tensor(a, "product", 1, "0"),
        lambda a: OPS.all_reduce_coalesced([a], "max", "0")[0],
        lambda a: OPS.broadcast(a, 0, "0"),
    ]
    for call in refused:
        with pytest.raises((RuntimeError, NotImplementedError)):
            tp.func.jvp(call, (x,), (t,))


@pytest.mark.filterwarnings("ignore:vmap. there is no batching rule")
def test_one_message_goes_for_a_batch(alone: Any) -> None:
    x = mine(0, 3, 2)
    with tp.dispatch.trace() as calls:
        made = tp.vmap(lambda a: OPS.wait_tensor(OPS.all_reduce(a, "sum", "0")))(x)
    assert tp.equal(made, x)
    assert [c.op for c in calls if c.key == "CPU" and "c10d" in c.op] == [
        "_c10d_functional::all_reduce", "_c10d_functional::wait_tensor",
    ]  # fmt: skip
    assert tp.equal(tp.vmap(lambda a: OPS.all_gather_into_tensor(a, 1, "0"))(x), x)


def test_in_place_has_the_gradient_of_what_it_writes(alone: Any) -> None:
    x = mine(0, 3).requires_grad_()
    y = x * 2
    OPS.wait_tensor(OPS.all_reduce_(y, "sum", "0"))
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="there is no gradient of this step"):
        OPS.all_reduce_coalesced_([x * 2], "sum", "0")


def test_graphs_keep_messages_that_nobody_reads(alone: Any) -> None:
    def step(x: Any) -> Any:
        OPS.all_reduce(x, "sum", "0")
        x.neg()
        return x + 1

    module = make_fx(step)(mine(0, 3))
    module.graph.eliminate_dead_code()
    left = [str(n.target) for n in module.graph.nodes if n.op == "call_function"]
    assert [name.rpartition("::")[2].split(".")[-2] for name in left] == ["all_reduce", "add"], left


def test_schemas_are_those_of_pytorch() -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("torch.distributed._functional_collectives")

    for namespace in ("_c10d_functional", "_c10d_functional_autograd", "_dtensor"):
        ours = [n for n in tp._C._operators() if n.startswith(namespace + "::")]
        said = {s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith(namespace + "::")}
        missing = said - set(ours)  # one takes a list of str, two objects of Python's
        objects = {"_c10d_functional::_wrap_tensor_autograd", "_dtensor::mesh_get_process_group"}
        assert missing <= {"_c10d_functional::batch_p2p_ops", *objects}
        for name in ours:
            schema = str(getattr(getattr(tp.ops, namespace), name.split("::")[1]).default._schema)
            theirs = str(getattr(getattr(torch.ops, namespace), name.split("::")[1]).default._schema)
            assert schema == theirs.replace("Any group_name", "str group_name"), name
            packets = (getattr(getattr(of.ops, namespace), name.split("::")[1]).default for of in (tp, torch))
            tags, said_tags = ({tag.name for tag in packet.tags} for packet in packets)
            assert tags == {*said_tags, "collective"}, name
    assert ReduceOp.SUM in operators.OPERATIONS.values()
