"""Rules of losses: rows of scores, and classes where loss_parallel asks for it, whose scores no process has all of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.tensor._rules import SUM, Call, Part, Way, _divides, _lines
from tensorpy.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

_R = Replicate()
_NONE, _MEAN, _ADD_UP = 0, 1, 2

# ---- whether classes are cut ----

_asked: list[None] = []


def is_by_class() -> bool:
    """Whether a program is inside of loss_parallel."""
    return bool(_asked)


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Inside of it cross entropy over scores that are cut by class sends a few numbers for each row, not the scores.

    The scores are a DTensor, their classes cut along one dimension of the mesh. Targets are numbers of classes; a plain
    tensor of them is the same in all processes. Backward stands inside, too.

    Returns: a context manager.

    Example:
        >>> from tensorpy import distributed as dist
        >>> from tensorpy.distributed.tensor import Shard, distribute_tensor
        >>> from tensorpy.distributed.tensor.parallel import loss_parallel
        >>> dist.init_process_group(rank=0, world_size=1)
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> scores = distribute_tensor(tp.zeros(3, 4), mesh, [Shard(1)]).requires_grad_()
        >>> with loss_parallel():
        ...     loss = tp.nn.functional.cross_entropy(scores, tp.tensor([0, 3, 1]))
        ...     loss.backward()
        >>> loss.placements, scores.grad.placements
        ((Replicate(),), (Shard(dim=1),))
        >>> dist.destroy_process_group()
    """
    _asked.append(None)
    try:
        yield
    finally:
        _asked.pop()


# ---- log_softmax ----


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (tp.float16, tp.bfloat16) else tensor


def _log_softmax_here(part: Part) -> Tensor:
    """This process's classes, with the maximum and the sum of all."""
    given, dim = part.given["self"], part.given["dim"] % len(part.shape("self"))
    x = _wide(given)
    has_some = x.shape[dim] > 0
    one = [1 if d == dim else n for d, n in enumerate(x.shape)]
    top = part.total(x.amax(dim, True) if has_some else x.new_full(one, -float("inf")), "self", dim, "max")
    top = top.masked_fill(top.isinf(), 0)
    x = x - top
    return (x - part.total(x.exp().sum(dim, True), "self", dim).log()).to(given.dtype)


def _log_softmax_gradient_here(part: Part) -> Tensor:
    grad, out, dim = part.given["grad_output"], part.given["output"], part.given["dim"] % len(part.shape("output"))
    total = part.total(_wide(grad).sum(dim, True), "output", dim)
    return (_wide(grad) - _wide(out).exp() * total).to(part.given["input_dtype"])


def log_softmax(call: Call) -> Iterator[Way]:
    """Lines; parts of lines inside of loss_parallel."""
    yield from _lines(call)
    if is_by_class() and call.ins[0].ndim and not call.given.get("half_to_float"):
        dim = call.given["dim"] % call.ins[0].ndim
        local = _log_softmax_here if "self" in call.given else _log_softmax_gradient_here
        yield Way((Shard(dim),), (Shard(dim),) * len(call.ins), local)


# ---- nll_loss ----


def _targets_here(part: Part) -> tuple[Tensor, Tensor, Tensor]:
    """The targets among this process's classes, which rows have none of these, and the weights of rows."""
    scores, target, weight = part.given["self"], part.given["target"], part.given["weight"]
    ignored = target == part.given["ignore_index"]
    own = target - part.begin("self", 1)
    away = (own < 0) | (own >= scores.shape[1]) | ignored
    of_rows = scores.new_ones(target.shape) if weight is None else weight[target.masked_fill(ignored, 0)]
    return own.masked_fill(away, 0).unsqueeze(1), away, of_rows.masked_fill(ignored, 0)


def _losses_here(part: Part) -> tuple[Tensor, Tensor]:
    """This process's share of the loss: of a mean, the sum over the weight of all processes."""
    g = dict(part.given)
    kind, scores = g["reduction"], g["self"]
    if scores.shape[1] == part.shape("self")[1]:
        g["reduction"] = _ADD_UP if kind == _MEAN else kind
        loss, weight = tp.ops.aten.nll_loss_forward.default(*g.values())
    else:
        own, away, of_rows = _targets_here(part)
        picked = scores.gather(1, own).squeeze(1).masked_fill(away, 0) if scores.shape[1] else scores.sum(1)
        losses = -part.total(picked, "self", 1) * of_rows
        loss, weight = (losses, of_rows.new_zeros(())) if kind == _NONE else (losses.sum(), of_rows.sum())
    if kind != _NONE:
        weight = part.total(weight, "target", 0)
    return (loss / weight if kind == _MEAN else loss), weight


def losses(call: Call) -> Iterator[Way]:
    """Rows of scores; their sum is still to be added up, the weight of all is not."""
    if call.ins[0].ndim != 2:
        return
    weights = [_R] * (len(call.ins) - 2)
    to: Placement = Shard(0) if call.given["reduction"] == _NONE else SUM
    yield Way((to, _R), (Shard(0), Shard(0), *weights), None if to == Shard(0) else _losses_here)
    if is_by_class():
        yield Way((_R, _R), (Shard(1), _R, *weights), _losses_here)


def _loss_gradients_here(part: Part) -> Tensor:
    """Those of this process's classes."""
    g = part.given
    scores, grad = g["self"], g["grad_output"]
    if not scores.shape[1]:
        return tp.zeros_like(scores)
    own, away, of_rows = _targets_here(part)
    each = (grad / g["total_weight"] if g["reduction"] == _MEAN else grad) * of_rows
    return tp.zeros_like(scores).scatter(1, own, -each.masked_fill(away, 0).unsqueeze(1))


def loss_gradients(call: Call) -> Iterator[Way]:
    """Rows of scores, and classes."""
    if call.given["self"].ndim != 2:
        return
    by_row = Shard(0) if call.given["reduction"] == _NONE else _R
    rest = [_R] * (len(call.ins) - 3)
    yield call.same(Shard(0), by_row, Shard(0), Shard(0), *rest)
    if is_by_class():
        yield Way((Shard(1),), (_R, Shard(1), _R, *rest), _loss_gradients_here)


# ---- losses by element ----


def mean_losses(call: Call) -> Iterator[Way]:
    """A loss by element, with or without its mean or sum."""
    kind = call.given.get("reduction", _MEAN)
    if any(t.shape != call.ins[0].shape for t in call.ins):
        return
    for dim in range(call.ins[0].ndim):
        if kind == _NONE:
            yield call.same(Shard(dim), *[Shard(dim)] * len(call.ins))
        elif kind == _ADD_UP or _divides(call, dim):
            yield call.same(SUM if kind == _ADD_UP else Partial("avg"), *[Shard(dim)] * len(call.ins))
