"""Reducer: what DistributedDataParallel does with gradients: buckets of them are summed while backward goes on.

The half in C (csrc/python/reducer.c) writes gradients into buckets as they come, and begins the plain ones. This half
makes the buckets, carries those that a hook, another device or a sparse layout asks more of, and ends the round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from time import time_ns
from typing import Any, NoReturn

import tensorpy as tp
from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._package import async_events
from tensorpy.distributed.buckets import Bucket, GradBucket, assign, places_in
from tensorpy.distributed.collectives import all_gather, all_reduce, broadcast
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.messages import begin_event
from tensorpy.distributed.objects import all_gather_object
from tensorpy.distributed.reduce_op import ReduceOp
from tensorpy.distributed.round_times import RoundTimes
from tensorpy.distributed.sparse import sum_of_all
from tensorpy.distributed.work import Work, in_order
from tensorpy.futures import Future


class Reducer(_C._distributed.Reducer):  # type: ignore[misc]
    """The gradients of parameters on their way to being the same in all processes of a group."""

    error: str
    hook_name: str
    has_rebuilt_buckets: bool

    # of the half in C
    expects: bool
    started: bool
    watches: bool
    is_static: bool
    carries: bool
    needs_buckets: bool
    tells: bool
    factor: float
    rounds: int
    first_times: tuple[int, int]
    times: RoundTimes
    last_order: list[int]

    def __new__(
        cls, parameters: Sequence[Tensor], *args: Any, gradient_as_bucket_view: bool = False, **options: Any
    ) -> Any:
        group: ProcessGroup = args[1]
        return super().__new__(cls, tuple(parameters), group._number, gradient_as_bucket_view)

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        group: ProcessGroup,
        sparse: Sequence[bool],
        caps: list[int],
        *,
        gradient_as_bucket_view: bool = False,
        find_unused_parameters: bool = False,
    ) -> None:
        self._parameters, self._names, self._group = list(parameters), list(names), group
        self._sparse, self._caps = list(sparse), caps
        self._finds_unused, self._keeps_views = find_unused_parameters, gradient_as_bucket_view
        self._hook: tuple[Any, Callable[[Any, GradBucket], Future[Any]]] | None = None
        self._events: dict[int, async_events.Event | None] = {}
        self._map: Tensor | None = None
        self._map_work: Work | None = None
        self._static_map: list[int] | None = None
        self._is_laid_out_by_order = False
        self._is_over = False
        self.rounds = 0
        self.times = RoundTimes()
        self.last_order = []
        self.error = self.hook_name = ""
        self.has_rebuilt_buckets = False
        self._on_host = all(p.device.type == "cpu" for p in parameters)
        self._lay_out(range(len(parameters) - 1, -1, -1))
        self._nodes, self._handles = [], []
        for i in range(len(parameters)):
            node, hook = self.node(i)
            self._nodes.append(node)
            self._handles.append(node.register_hook(hook))
        self._settle_settings()

    def remove_hooks(self) -> None:
        """Gradients are none of its business any more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._nodes.clear()

    # ---- buckets ----

    def _lay_out(self, order: Sequence[int]) -> None:
        shares = assign(self._parameters, list(order), self._sparse, self._caps)
        self._buckets = [Bucket(numbers, self._parameters, self._sparse[numbers[0]]) for numbers in shares]
        self.lay_out(tuple((b.flat, b.numbers, tuple(b.places) or (None,) * len(b.numbers)) for b in self._buckets))

    def _settle_settings(self) -> None:
        one = self._group._is_one()
        asks = self._hook is not None or self._group._asks
        self.carries = asks or (not one and (not self._on_host or any(self._sparse)))
        self.needs_buckets = not one or self._hook is not None or self._keeps_views
        self.factor = 1.0 if self._hook is not None else 1.0 / self._group.size()

    def divide_by(self, count: int) -> None:
        """How many processes have batches: by so many sums are divided."""
        if self._hook is None:
            self.factor = 1.0 / count

    @property
    def has_hook(self) -> bool:
        """Whether a function of the user's carries buckets."""
        return self._hook is not None

    def set_hook(self, state: Any, hook: Callable[[Any, GradBucket], Future[Any]]) -> None:
        """Has a function of the user's carry buckets."""
        self._hook = (state, hook)
        self.hook_name = getattr(hook, "__qualname__", repr(hook))
        self._settle_settings()

    def description(self) -> list[str]:
        """What has to be alike in all processes, line by line."""
        lines = [f"{len(self._parameters)} parameters that require a gradient"]
        for name, p, sparse in zip(self._names, self._parameters, self._sparse, strict=True):
            kind = "sparse gradients for " if sparse else ""
            lines.append(f"{kind}{name}: {p.dtype}{list(p.shape)}")
        lines.append(f"buckets of {', '.join(map(str, self._caps))} bytes")
        lines.append(f"buckets of the parameters {[list(b.numbers) for b in self._buckets]}")
        lines.append("find_unused_parameters" if self._finds_unused else "no find_unused_parameters")
        return lines

    def bucket_sizes(self) -> list[int]:
        """How many bytes each bucket has."""
        return [0 if b.flat is None else b.flat.nbytes for b in self._buckets]

    def bucket_members(self) -> list[tuple[int, ...]]:
        """Which parameters each bucket has."""
        return [b.numbers for b in self._buckets]

    # ---- a round ----

    def prepare(self, outputs: tuple[Tensor, ...] | None) -> None:
        """The next backward pass sums gradients."""
        if self.expects and self.started:
            self._refuse_unfinished()
        self.tells = bool(async_events.recording)
        if outputs is None:
            self.begin(None)
        else:
            mark = _C._profiler.enter("search_unused_parameters")
            self.begin(outputs)
            _C._profiler.leave(*mark)
        for bucket in self._buckets:
            bucket.carried = None
        self._map = self._map_work = None

    # by PyTorch's names, for programs that run forward and backward themselves

    def prepare_for_forward(self) -> None:
        """Nothing: a round begins at the end of forward."""

    def prepare_for_backward(self, outputs: Sequence[Tensor] = ()) -> None:
        """The next backward pass sums gradients.

        outputs: what forward returned, where parameters that it does not use are to be found; else nothing
        """
        self.prepare(tuple(outputs) or None)

    def _rebuild_buckets(self) -> bool:
        """False: buckets are laid out again at the end of a round."""
        return False

    def _delay_all_reduce(self) -> None:
        """The first pass of a static graph is over, and nothing was sent in it: it is now, and has come."""
        if self.watches and self.expects:
            self._is_over = True
            self.end_watch()
            self._finish()

    def _remove_autograd_hooks(self) -> None:
        self.remove_hooks()

    def _carry(self, b: int) -> None:
        bucket = self._buckets[b]
        if bucket.sparse:
            p = self._parameters[bucket.numbers[0]]
            p.grad = self._sum_sparse(p, p.grad)
            return
        assert bucket.flat is not None
        bucket.carried = self._begin(b, bucket.flat, bucket.places)

    def _tell(self, b: int) -> None:
        """A plain bucket begins while a profile records."""
        flat = self._buckets[b].flat
        assert flat is not None
        self._events[b] = begin_event(self._group, "all_reduce", [flat])

    def _begin(self, b: int, flat: Tensor, places: list[Tensor]) -> Any:
        if self._hook is None:
            work: Any = all_reduce(flat, group=self._group, async_op=True)
            return work.get_future() if self._group._asks else work
        state, hook = self._hook
        parameters = [self._parameters[i] for i in self._buckets[b].numbers]
        with in_order(), tp.no_grad():
            future = hook(state, GradBucket(b, flat, places, parameters, b == len(self._buckets) - 1))
        if not isinstance(future, Future):
            raise TypeError(f"a communication hook returns a Future, not {type(future).__name__}")
        return future

    def _sum_sparse(self, p: Tensor, grad: Tensor | None) -> Tensor:
        """The mean of sparse gradients: all have all of the others' rows, and add them."""
        indices, values = tp.zeros(1, 0, dtype=tp.int64), tp.zeros(0, *p.shape[1:], dtype=p.dtype)
        if grad is not None:
            if not grad.is_sparse:
                raise RuntimeError(f"a gradient that was to be sparse, of {p.dtype}{list(p.shape)}, is dense")
            grad = grad.coalesce()
            indices, values = grad.indices(), grad.values() * self.factor
        mine = tp.sparse_coo_tensor(indices, values, p.shape, is_coalesced=True)
        return sum_of_all(self._group, "DistributedDataParallel", mine)

    def _all_begun(self) -> None:
        """The last bucket is on its way: what is left is done when the pass is over."""
        if self._has_map():
            self._send_map(tp.tensor(self.was_used, dtype=tp.int32))
        if not self._is_over:
            _C._queue_callback(self._finish)

    def _has_map(self) -> bool:
        """Whether processes tell each other who had gradients: of a static graph they know after the first pass."""
        return bool(self._finds_unused and not self.is_static) or bool(self.watches)

    def _send_map(self, used: Tensor) -> None:
        self._map = used
        self._map_work = all_reduce(used, ReduceOp.MAX, self._group, async_op=True)

    def _await(self, b: int, flat: Tensor | None, carried: Any) -> None:
        if carried is None:
            self.wait(b, self._group._seconds)
            async_events.end(self._events.pop(b, None))
        elif isinstance(carried, Work):
            carried.wait()
        else:
            with in_order(), tp.no_grad():
                result = carried.wait()
            result = result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result
            if not isinstance(result, Tensor) or flat is None or result.numel() != flat.numel():
                raise RuntimeError("a communication hook's future has one tensor, as large as the bucket")
            if result is not flat:
                flat.copy_(result.reshape(-1))

    def _finish(self) -> None:
        backward = time_ns()
        self.expects = self.started = self._is_over = False
        for b, bucket in enumerate(self._buckets):
            self._await(b, bucket.flat, bucket.carried)
            bucket.carried = None
            self.settle(self._used_anywhere(bucket.numbers))
        self.times.note(self.rounds, *self.first_times, backward, time_ns())
        self._end_round()

    def _used_anywhere(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Those that some process had a gradient for: others stay as they are."""
        used: Any = self.was_used
        if (self._map is None and self._static_map is None) or all(used[i] for i in numbers):
            return numbers
        used = self._static_map
        if self._map is not None and self._map_work is not None:
            self._map_work.wait(None)
            used = self._map.tolist()
        return tuple(i for i in numbers if used[i])

    def _end_round(self) -> None:
        if self._map_work is not None and self._map is not None:
            self._map_work.wait(None)
            self._static_map = self._map.tolist() if self.is_static else None
        self._map = self._map_work = None
        self.rounds += 1
        self.last_order = list(self.order)
        self.forget()
        if not self._is_laid_out_by_order and (self.is_static or not self._finds_unused):
            self._is_laid_out_by_order = self.has_rebuilt_buckets = True
            self._lay_out_by_order()

    def _lay_out_by_order(self) -> None:
        """Buckets in the order in which gradients came, in the group's first process."""
        order = list(self.order)
        seen = set(order)
        order += [i for i in range(len(self._parameters) - 1, -1, -1) if i not in seen]
        if not self._group._is_one():
            said = tp.tensor(order, dtype=tp.int64)
            broadcast(said, group=self._group, group_src=0)
            order = said.tolist()
        if assign(self._parameters, order, self._sparse, self._caps) != [list(b.numbers) for b in self._buckets]:
            self._lay_out(order)

    def shadow(self) -> None:
        """A round of a process that has no more batches: it adds zeros."""
        flats = [None if b.flat is None else tp.zeros_like(b.flat) for b in self._buckets]
        carried: list[Any] = []
        for b, (bucket, flat) in enumerate(zip(self._buckets, flats, strict=True)):
            members = [self._parameters[i] for i in bucket.numbers]
            if flat is None:
                self._sum_sparse(members[0], None)
            carried.append(None if flat is None else self._begin(b, flat, places_in(flat, members)))
        if self._has_map():
            self._send_map(tp.zeros(len(self._parameters), dtype=tp.int32))
        for b, flat in enumerate(flats):
            if flat is not None:
                self._await(b, flat, carried[b])
        self._end_round()

    # ---- static graphs ----

    def set_static(self) -> None:
        """What a pass uses, and how often, is the same in each."""
        self.watches = True

    def end_watch(self) -> None:
        """The first pass is over, and nothing was sent in it."""
        if not self.watches or not self.expects:
            return
        self.is_static = True
        for i in range(len(self._parameters)):
            self.take(i)
        self.watches = False

    # ---- refusals ----

    def refuse(self, text: str, kind: type[Exception] = RuntimeError) -> NoReturn:
        """Raises an error, which `error` keeps for who asks later what went wrong."""
        self.error = text
        raise kind(text)

    def _refuse_twice(self, i: int) -> None:
        self.refuse(
            f"Expected to mark a variable ready only once: the gradient of {self._names[i]} came twice in one backward "
            "pass. A parameter that is used outside of the module's forward, or by several checkpoints of one pass, "
            "does that; where each pass does the same, static_graph=True is for it"
        )

    def _refuse_change(self, i: int) -> None:
        self.refuse(
            f"Your training graph has changed in this iteration: {self._names[i]} had another number of gradients in "
            "the first one, which static_graph=True rules out"
        )

    def _refuse_unfinished(self) -> None:
        late = [i for i, there in enumerate(self.is_there) if not there]
        self.expects = self.started = False
        if not late:
            self.refuse("the backward pass before this one did not end: its gradients are not averaged")
        rank, names = self._group.rank(), ", ".join(self._names[i] for i in late)
        advice = (
            "Since `find_unused_parameters=True` is enabled, it is outputs"
            if self._finds_unused
            else "Where a pass need not reach every parameter, passing the keyword argument "
            "`find_unused_parameters=True` is for it; else it may be outputs"
        )
        self.refuse(
            "Expected to have finished reduction in the prior iteration before starting a new one: some parameters "
            f"got no gradient. {advice} that the loss leaves out: all `forward` function outputs participate in "
            f"calculating loss. Parameters which did not receive grad for rank {rank}: {names}. Parameter indices "
            f"which did not receive grad for rank {rank}: {' '.join(map(str, late))}. To be told more, set the "
            "environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL"
        )


def verify(group: ProcessGroup, lines: list[str]) -> None:
    """RuntimeError in all processes where one of them is not as the others, which says what differs in which."""
    if group._is_one():
        return
    digest = hashlib.sha256("\n".join(lines).encode()).digest()
    rows = tp.empty(group.size(), 32, dtype=tp.uint8)
    all_gather(list(rows), tp.tensor(list(digest), dtype=tp.uint8), group)
    if bool((rows == rows[0]).all()):
        return
    said: list[Any] = [None] * group.size()
    all_gather_object(said, lines, group)
    differing = [r for r in range(1, group.size()) if said[r] != said[0]]
    texts = [f"rank {group._ranks[r]} has {_first_difference(said[r], said[0])}" for r in differing]
    raise RuntimeError(
        "DistributedDataParallel: the module is not the same in all processes: "
        + "; ".join(texts)
        + f", in rank {group._ranks[0]}"
    )


def _first_difference(theirs: list[str], ours: list[str]) -> str:
    for a, b in zip(theirs, ours, strict=False):
        if a != b:
            return f"{a}, not {b}"
    return f"{len(theirs)} lines, not {len(ours)}"
