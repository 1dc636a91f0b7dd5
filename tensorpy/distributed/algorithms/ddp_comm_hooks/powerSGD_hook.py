"""PowerSGD (Vogels, Karimireddy, Jaggi 2019, arXiv 1905.13727): gradients travel as products of two thin matrices.

A gradient M of n x m becomes P Q^T, with P of n x r and Q of m x r: one step of power iteration per batch, P = M Q and,
P made orthonormal, Q = M^T P, each averaged over the processes. What the product lacks of M is added to the next
batch's gradient. All matrices of a bucket travel together, and with them, uncompressed, what compression would not make
smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from tensorpy.distributed.buckets import GradBucket
from tensorpy.distributed.collectives import all_reduce
from tensorpy.futures import Future

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What the hooks keep from batch to batch.

    Arguments:
        process_group: the processes; None takes all
        matrix_approximation_rank: r, how many columns the thin matrices have
        start_powerSGD_iter: so many batches are averaged uncompressed at first
        min_compression_rate: what would not become smaller by more than this factor is not compressed
        use_error_feedback: what was lost in one batch is added to the next
        warm_start: a batch begins with the matrices of the one before
        orthogonalization_epsilon: is added to columns' lengths before they are divided by them
        random_seed: of the first matrices, the same in all processes
        compression_stats_logging_frequency: is taken
        batch_tensors_with_same_shape: is taken: all of a bucket travel together anyway

    Raises: ValueError for a start_powerSGD_iter below 2 with use_error_feedback or warm_start.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
        >>> state = power.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
        >>> net.register_comm_hook(state, power.powerSGD_hook)
        >>> net(tp.ones(2, 8)).sum().backward()
        >>> net.module.weight.grad.shape
        tensorpy.Size([8, 8])
    """

    process_group: Any
    matrix_approximation_rank: int
    start_powerSGD_iter: int
    min_compression_rate: float
    use_error_feedback: bool
    warm_start: bool
    orthogonalization_epsilon: float
    compression_stats_logging_frequency: int
    batch_tensors_with_same_shape: bool
    rng: tp.Generator
    iter: int
    total_numel_before_compression: int
    total_numel_after_compression: int
    next_stats_report: int

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled: buckets are laid "
                "out anew after the first batch, and what is kept would not fit"
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = tp.Generator().manual_seed(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.next_stats_report = 0

    def __getstate__(self) -> dict[str, Any]:
        """All but the processes, which another program has others of."""
        kept = {name: value for name, value in self.__dict__.items() if name not in ("process_group", "rng")}
        return {**kept, "rng": self.rng.get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.process_group = None
        self.rng = tp.Generator()
        self.rng.set_state(state["rng"])

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts a batch when its last bucket goes.

        Arguments:
            bucket: the bucket
        """
        self.iter += bucket.is_last()

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times smaller messages were, and the elements before and after compression."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0, before, after)


def _orthogonalize(matrices: Tensor, epsilon: float) -> None:
    """Makes the columns orthonormal, one after the other; a column of zeros stays one."""
    for i in range(matrices.shape[1]):
        column = matrices[:, i : i + 1]
        length = tp.linalg.vector_norm(column) + epsilon
        column /= tp.where(length == 0, tp.ones_like(length), length)
        rest = matrices[:, i + 1 :]
        if rest.shape[1]:
            rest -= column @ (column.t() @ rest)


def _thin(memory: Tensor, rows: Sequence[int], columns: Sequence[int]) -> list[Tensor]:
    """Parts of a flat tensor as matrices."""
    made, begin = [], 0
    for n, r in zip(rows, columns, strict=True):
        made.append(memory[begin : begin + n * r].view(n, r))
        begin += n * r
    return made


def _memories(state: PowerSGDState, index: int, like: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """The memory of the thin matrices: that of the batch before, or a new one with random numbers in the second."""
    p, q = state.p_memory_dict.get(index), state.q_memory_dict.get(index)
    if state.warm_start and p is not None and q is not None and (p.numel(), q.numel()) == (rows, columns):
        return p, q
    p, q = like.new_empty(rows), like.new_empty(columns)
    q.copy_(tp.randn(columns, generator=state.rng))
    state.p_memory_dict[index], state.q_memory_dict[index] = p, q
    return p, q


def _approximate(state: PowerSGDState, index: int, matrices: list[Tensor], others: list[Tensor]) -> Future[None]:
    """Averages matrices by way of thin ones, and the others as they are; all in place."""
    group = groups.of(state.process_group)
    like = (matrices or others)[0]
    ranks = [min(*m.shape, state.matrix_approximation_rank) for m in matrices]
    rows, columns = [m.shape[0] for m in matrices], [m.shape[1] for m in matrices]
    sizes = [sum(n * r for n, r in zip(lengths, ranks, strict=True)) for lengths in (rows, columns)]
    p_memory, q_memory = _memories(state, index, like, *sizes)
    ps, qs = _thin(p_memory, rows, ranks), _thin(q_memory, columns, ranks)
    for m, p, q in zip(matrices, ps, qs, strict=True):
        _orthogonalize(q, state.orthogonalization_epsilon)
        tp.matmul(m, q, out=p)
    first = tp.cat([p_memory, *(t.reshape(-1) for t in others)])
    work = all_reduce(first, group=group, async_op=True)
    assert work is not None

    def finish(_: Future[Any]) -> None:
        p_memory.copy_(first[: p_memory.numel()])  # its columns' lengths do not matter: no division
        begin = p_memory.numel()
        for t in others:
            t.copy_(first[begin : begin + t.numel()].reshape(t.shape) / group.size())
            begin += t.numel()
        for m, p, q in zip(matrices, ps, qs, strict=True):
            _orthogonalize(p, state.orthogonalization_epsilon)
            tp.matmul(m.t(), p, out=q)
        all_reduce(q_memory, group=group)
        q_memory.div_(group.size())
        for m, p, q in zip(matrices, ps, qs, strict=True):
            tp.matmul(p, q.t(), out=m)

    return work.get_future().then(finish)


def _begin(state: PowerSGDState, index: int, flat: Tensor) -> Tensor | None:
    """Adds what was lost in the batch before; a copy of the sum, to see later what is lost in this one."""
    if not state.use_error_feedback:
        return None
    if index in state.error_dict:
        flat.add_(state.error_dict[index])
    return flat.clone()


def _end(state: PowerSGDState, index: int, flat: Tensor, whole: Tensor | None) -> None:
    if whole is not None:
        state.error_dict[index] = whole - flat
    if not state.warm_start:
        state.p_memory_dict.clear()
        state.q_memory_dict.clear()


def _plain_at_first(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor] | None:
    """The plain mean, in the steps before gradients are approximated."""
    if state.iter >= state.start_powerSGD_iter:
        return None
    state.maybe_increase_iter(bucket)
    return allreduce_hook(state.process_group, bucket)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients, each matrix of them approximated by one of low rank.

    Arguments:
        state: the state
        bucket: the gradients

    Returns: a Future of a tensor.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
        >>> state = power.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
        >>> net.register_comm_hook(state, power.powerSGD_hook)
        >>> net(tp.ones(2, 8)).sum().backward()
        >>> net.module.weight.grad.shape
        tensorpy.Size([8, 8])
    """
    if plain := _plain_at_first(state, bucket):
        return plain
    flat, index = bucket.buffer(), bucket.index()
    whole = _begin(state, index, flat)
    matrices, others = [], []
    for grad in bucket.gradients():
        matrix = grad.view(grad.shape[0], -1) if grad.dim() and grad.is_contiguous() and grad.numel() else None
        n, m = matrix.shape if matrix is not None else (grad.numel(), 1)
        thin = (n + m) * min(n, m, state.matrix_approximation_rank)
        smaller = matrix is not None and thin * state.min_compression_rate < n * m
        state.total_numel_before_compression += n * m
        state.total_numel_after_compression += thin if smaller else n * m
        if matrix is not None and smaller:
            matrices.append(matrix)
        else:
            others.append(grad)

    def finish(future: Future[None]) -> Tensor:
        future.value()
        _end(state, index, flat, whole)
        return flat

    state.maybe_increase_iter(bucket)
    return _approximate(state, index, matrices, others).then(finish)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean of a bucket's gradients, all of them as one square matrix: fewer steps, and less exact.

    Arguments:
        state: the state
        bucket: the gradients

    Returns: a Future of a tensor.

    Example:
        >>> from tensorpy.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
        >>> state = power.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
        >>> net.register_comm_hook(state, power.batched_powerSGD_hook)
        >>> net(tp.ones(2, 8)).sum().backward()
        >>> net.module.weight.grad.shape
        tensorpy.Size([8, 8])
    """
    if plain := _plain_at_first(state, bucket):
        return plain
    flat, index = bucket.buffer(), bucket.index()
    side = math.isqrt(max(flat.numel() - 1, 0)) + 1
    state.total_numel_before_compression += flat.numel()
    state.total_numel_after_compression += 2 * side * state.matrix_approximation_rank
    square = flat.new_zeros(side * side)
    square[: flat.numel()] = flat
    whole = _begin(state, index, square)

    def finish(future: Future[None]) -> Tensor:
        future.value()
        _end(state, index, square, whole)
        flat.copy_(square[: flat.numel()])
        return flat

    state.maybe_increase_iter(bucket)
    return _approximate(state, index, [square.view(side, side)], []).then(finish)
