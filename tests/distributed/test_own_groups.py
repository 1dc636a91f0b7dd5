"""Process groups of Python's own: functions, operators and DDP ask their methods; backends by name."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed import distributed_c10d as c10d
from tensorpy.futures import Future
from tensorpy.nn.parallel import DistributedDataParallel as DDP


class Counted(dist._Work):
    """A message that is done; it counts who waits."""

    def __init__(self, result: Any, group: Alone) -> None:
        super().__init__()
        self.done: Future[Any] = Future()
        self.done.set_result(result)
        self.group = weakref.ref(group)

    def wait(self, timeout: Any) -> bool:  # type: ignore[override]
        found = self.group()
        assert found is not None
        found.waits += 1
        return True

    def get_future(self) -> Future[Any]:
        found = self.group()
        assert found is not None
        found.futures += 1
        return self.done


class Alone(dist.ProcessGroup):
    """One process, which says what it was asked."""

    def __init__(self, rank: int, size: int, wraps: bool = False) -> None:
        super().__init__(rank, size)
        self.wraps, self.waits, self.futures, self.asked = wraps, 0, 0, list[str]()

    def _work(self, name: str, result: Any) -> Any:
        self.asked.append(name)
        if not self.wraps:
            return Counted(result, self)
        future: Future[Any] = Future()
        future.set_result(result)
        return c10d._create_work_from_future(future)

    def broadcast(self, tensor_list: Any, opts: Any) -> Any:  # type: ignore[override]
        assert opts.rootRank == 0
        return self._work("broadcast", tensor_list)

    def allgather(self, output_tensors: Any, input_tensor: Any, opts: Any) -> Any:  # type: ignore[override]
        for output, given in zip(output_tensors[0], input_tensor, strict=True):
            output.copy_(given)
        return self._work("allgather", output_tensors)

    def allreduce(self, tensors: Any, opts: Any) -> Any:  # type: ignore[override]
        assert opts.reduceOp in (dist.ReduceOp.SUM, dist.ReduceOp.MAX)
        return self._work("allreduce", tensors)

    def send(self, tensors: Any, dst: int, tag: int) -> Any:  # type: ignore[override]
        tensors[0].add_(1)
        return self._work("send", None)

    def getBackendName(self) -> str:
        return "alone"


class Says(dist.ProcessGroup):
    def getRank(self) -> int:
        return 123

    def getSize(self) -> int:
        return 456

    def getBackendName(self) -> str:
        return "says"

    def setGroupName(self, name: str) -> None:
        self._group_name = "py:" + name

    def setGroupDesc(self, group_desc: str) -> None:
        self._group_desc = "py:" + group_desc


def test_what_a_class_says_of_itself() -> None:
    group = Says(0, 1)
    assert (group.name(), group.rank(), group.size()) == ("says", 123, 456)
    group._set_group_name("name")
    group._set_group_desc("desc")
    assert (group.group_name, group.group_desc) == ("py:name", "py:desc")
    assert group.getGroupName() == "py:name" and group.getGroupDesc() == "py:desc"
    group.abort()
    group.shutdown()
    store = dist.HashStore()
    made = Alone.__new__(Alone)
    dist.ProcessGroup.__init__(made, store, 0, 1)
    assert made.get_group_store() is store and made.rank() == 0


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("views", [False, True])
def test_ddp(wraps: bool, views: bool) -> None:
    group = Alone(0, 1, wraps)
    tp.manual_seed(123)
    plain = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    x = tp.rand(3, 2)
    model = DDP(plain, process_group=group, gradient_as_bucket_view=views)
    assert "broadcast" in group.asked
    for _ in range(2):  # the second round's buckets are laid out anew
        plain.zero_grad()
        model(x).sum().backward()
        grads = [p.grad.clone() for p in plain.parameters() if p.grad is not None]
        plain.zero_grad()
        plain(x).sum().backward()
        assert all(p.grad is not None and tp.equal(p.grad, g) for p, g in zip(plain.parameters(), grads, strict=True))
    assert group.asked.count("allreduce") >= 2
    assert wraps or (group.waits > 0 and group.futures > 0)
    quiet = Alone(0, 1, wraps)
    DDP(nn.Linear(2, 2), process_group=quiet, init_sync=False)
    assert quiet.asked == []


def test_functions_and_operators_ask_methods() -> None:
    group, x = Alone(0, 1), tp.ones(2)
    assert dist.all_reduce(x, dist.ReduceOp.MAX, group) is None and group.waits == 1
    assert isinstance(dist.all_reduce(x, group=group, async_op=True), Counted) and group.waits == 1
    rooms = [tp.zeros(2)]
    dist.all_gather(rooms, x, group)
    assert tp.equal(rooms[0], x)
    dist.send(x, 0, group)
    assert x.tolist() == [2, 2] and group.asked[-1] == "send"
    with pytest.raises(NotImplementedError, match="Alone has no method alltoall_base"):
        dist.all_to_all_single(x, x, group=group)
    c10d._register_process_group("alone", group)
    try:
        made = tp.ops._c10d_functional.all_reduce(x, "sum", "alone")
        assert made.tolist() == [2, 2] and group.asked[-1] == "allreduce"
    finally:
        c10d._unregister_process_group("alone")
    with pytest.raises(RuntimeError, match="Could not resolve the process group"):
        tp.ops._c10d_functional.all_reduce(x, "sum", "alone")


def test_backends_by_name() -> None:
    seen: list[Any] = []

    def make(store: Any, rank: int, size: int, timeout: Any) -> Alone:
        store.set("here", "1")
        seen.append((rank, size, timeout.total_seconds()))
        return Alone(rank, size)

    def extended(options: Any, given: Any) -> Alone:
        seen.append((options.group_rank, options.group_size, given))
        return Alone(options.group_rank, options.group_size)

    dist.Backend.register_backend("alonE", make)
    dist.Backend.register_backend("later", extended, extended_api=True, devices=["cpu"])
    try:
        assert dist.Backend.ALONE == "alone" and dist.is_backend_available("alone")  # type: ignore[attr-defined]
        with pytest.raises(AssertionError, match="already exist"):
            dist.Backend.register_backend("alone", make)
        dist.init_process_group("alone", store=dist.HashStore(), rank=0, world_size=1)
        world = dist.group.WORLD
        assert isinstance(world, Alone) and dist.get_backend() == "alone" and seen == [(0, 1, 1800.0)]
        dist.all_reduce(tp.ones(1))
        assert world.asked == ["allreduce"]
        some = dist.new_group([0], backend="later", pg_options=7)
        assert isinstance(some, Alone) and seen[-1] == (0, 1, 7) and some.group_name.isdecimal()
        dist.destroy_process_group()
        with pytest.raises(TypeError, match="not a ProcessGroup"):
            dist.Backend._plugins["alone"] = (lambda *_: 1, False, ["cpu"])
            dist.init_process_group("alone", store=dist.HashStore(), rank=0, world_size=1)
        assert not dist.is_initialized()
    finally:
        for name in ("alone", "later"):
            del dist.Backend._plugins[name]
            dist.Backend.backend_list.remove(name)
            delattr(dist.Backend, name.upper())


def test_backends_of_devices() -> None:
    assert dist.BackendConfig("gloo").get_device_backend_map() == {"cpu": "gloo", "opencl": "gloo"}
    assert repr(dist.BackendConfig("cpu:gloo,opencl:mpi")) == "cpu:gloo,opencl:mpi"
    for wrong in ("cpu:gloo,mpi", "cpu:gloo,cpu:mpi"):
        with pytest.raises(ValueError, match="BackendConfig"):
            dist.BackendConfig(wrong)
