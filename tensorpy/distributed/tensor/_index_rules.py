"""Rules of rows and elements that are taken from tensors, or put into them, by numbers of places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.tensor._rules import _LINEAR_REDUCTIONS, SUM, Call, Part, Way
from tensorpy.distributed.tensor.placement_types import Placement, Replicate, Shard

_R = Replicate()

# ---- tables ----


def _rows_here(part: Part) -> Tensor:
    """The rows of a table that this process has, zeros for the others."""
    weight, indices = part.given["weight"], part.given["indices"]
    own = indices - part.begin("weight", 0)
    away = (own < 0) | (own >= weight.shape[0])
    if not weight.shape[0]:
        return weight.new_zeros((*indices.shape, weight.shape[1]))
    return tp.embedding(weight, own.masked_fill(away, 0)).masked_fill(away.unsqueeze(-1), 0)


def tables(call: Call) -> Iterator[Way]:
    indices = call.ins[1]
    for place in range(indices.ndim):
        yield call.same(Shard(place), _R, Shard(place))
    yield call.same(Shard(indices.ndim), Shard(1), _R)
    yield Way((SUM,), (Shard(0), _R), _rows_here)


def table_gradients(call: Call) -> Iterator[Way]:
    indices = call.ins[1]
    if not call.given.get("scale_grad_by_freq"):
        for place in range(indices.ndim):
            yield call.same(SUM, Shard(place), Shard(place))
    yield call.same(Shard(1), Shard(indices.ndim), _R)
    for partial in _LINEAR_REDUCTIONS:
        yield call.same(partial, partial, _R)


def bags(call: Call) -> Iterator[Way]:
    """Columns of a table: what is added up are rows."""
    table = "weight" if "weight" in call.given else "grad"
    ins: list[Placement] = [_R] * len(call.ins)
    for name in (table, "maximum_indices"):
        place = call.place(name)
        if place is not None and call.ins[place].ndim == 2:
            ins[place] = Shard(1)
    if call.given.get("per_sample_weights") is None:
        yield Way(tuple(Shard(1) if t.ndim == 2 else _R for t in call.outs), tuple(ins))


# ---- one dimension by an index ----


def _partials(call: Call, *which: str) -> Iterator[Way]:
    """Elements move: they are added up later, the index is the same in all processes."""
    for partial in call.known.get("partials", ()):
        ins = [partial if any(t is call.given.get(name) for name in which) else _R for t in call.ins]
        if partial in _LINEAR_REDUCTIONS or len(which) == 1:
            yield call.same(partial, *ins)


def selections(call: Call) -> Iterator[Way]:
    """index_select: parts of the index, or of a dimension that it does not choose from."""
    ndim = call.ins[0].ndim
    if not ndim or not call.ins[1].ndim:
        return
    dim = call.given["dim"] % ndim
    for place in range(ndim):
        if place != dim:
            yield call.same(Shard(place), Shard(place), _R)
    yield call.same(Shard(dim), _R, Shard(0))
    yield from _partials(call, "self")


def slots(call: Call) -> Iterator[Way]:
    """index_add and its kin: dimensions that the index does not choose from; what is added is added up later."""
    ndim, source = call.ins[0].ndim, call.given.get("source")
    if not ndim or (source is not None and source.ndim != ndim):
        return
    dim = call.given["dim"] % ndim

    def ins(own: Placement, index: Placement, other: Placement) -> list[Placement]:
        given = {"self": own, "index": index, "source": other}
        return [next((p for n, p in given.items() if t is call.given.get(n)), _R) for t in call.ins]

    for place in range(ndim):
        if place != dim:
            yield call.same(Shard(place), *ins(Shard(place), _R, Shard(place)))
    if call.name == "index_add":
        yield call.same(SUM, *ins(SUM, Shard(0), Shard(dim)))
        yield from _partials(call, "self", "source")


def written_along(call: Call) -> Iterator[Way]:
    """slice_scatter and select_scatter: the other dimensions."""
    ndim = call.ins[0].ndim
    dim, kept = call.given.get("dim", 0) % ndim, call.ins[1].ndim == ndim
    for place in range(ndim):
        if place != dim:
            yield call.same(Shard(place), Shard(place), Shard(place - (place > dim and not kept)))


def _along_dim(call: Call) -> Iterator[Way]:
    """Lines along the dimension that is chosen from."""
    ndim = call.ins[0].ndim
    if ndim and all(t.ndim == ndim for t in call.ins):
        dim = call.given["dim"] % ndim
        for place in range(ndim):
            if place != dim and all(t.shape[place] == call.ins[0].shape[place] for t in call.ins):
                yield call.same(Shard(place), *[Shard(place)] * len(call.ins))


def gathers(call: Call) -> Iterator[Way]:
    """Lines; and what each place of the index takes from a whole tensor."""
    yield from _along_dim(call)
    if call.ins[0].ndim and call.ins[1].ndim:
        dim = call.given["dim"] % call.ins[0].ndim
        yield call.same(Shard(dim), _R, Shard(dim))
    yield from _partials(call, "self")


def scatters(call: Call) -> Iterator[Way]:
    """Lines; what is added may be added up later."""
    yield from _along_dim(call)
    if call.name == "scatter_add" and call.ins[0].ndim and call.ins[1].ndim:
        to = Shard(call.given["dim"] % call.ins[0].ndim)
        same = call.ins[1].shape == call.ins[2].shape
        if same:
            yield call.same(SUM, SUM, to, to)
        yield from _partials(call, "self", "src")


# ---- several dimensions by indices ----


class _Geometry:
    """Where the dimensions of a tensor go that is indexed by a list.

    Arguments:
        ndim: the tensor's
        indices: an index or None for each dimension from the first on
    """

    def __init__(self, ndim: int, indices: list[Any]) -> None:
        chosen = [d for d, index in enumerate(indices) if isinstance(index, Tensor)]
        given = [indices[d] for d in chosen]
        self.shape = tp.broadcast_shapes(*[index.shape for index in given])
        together = chosen == list(range(chosen[0], chosen[0] + len(chosen)))
        # Those that are chosen come out before what follows them, or first where others lie between them.
        self.begin = chosen[0] if together else 0
        rest = [d for d in range(ndim) if d not in chosen]
        self.kept = {d: n if n < self.begin else n + len(self.shape) for n, d in enumerate(rest)}

    def cut(self, index: Tensor, place: int) -> Placement:
        """A dimension of what the indices are broadcast to, in one of them."""
        own = place - len(self.shape) + index.ndim
        return Shard(own) if own >= 0 and index.shape[own] == self.shape[place] else _R


def _cuts(call: Call, value: Tensor | None) -> Iterator[tuple[Placement, Placement, list[Placement]]]:
    """Placements of what is indexed, of the values (or the result) and of the indices."""
    given = list(call.given["indices"])
    indices = [index for index in given if isinstance(index, Tensor)]
    if not indices or any(index.dtype in (tp.bool, tp.uint8) for index in indices):
        return
    of = call.outs[0] if call.name != "index" else call.ins[0]
    geometry = _Geometry(of.ndim, given)
    whole = len(geometry.shape) + len(geometry.kept)

    def of_value(place: int, size: int) -> Placement:
        if value is None:
            return Shard(place)
        own = place - whole + value.ndim
        return Shard(own) if own >= 0 and value.shape[own] == size else _R

    for dim, place in geometry.kept.items():
        yield Shard(dim), of_value(place, of.shape[dim]), [_R] * len(indices)
    for place, size in enumerate(geometry.shape):
        cut = [geometry.cut(index, place) for index in indices]
        if any(isinstance(each, Shard) for each in cut):
            yield _R, of_value(geometry.begin + place, size), cut


def indexed(call: Call) -> Iterator[Way]:
    """tensor[indices]: parts of the indices, or of dimensions without one."""
    for own, out, cut in _cuts(call, None):
        yield Way((out,), (own, *cut))
    yield from _partials(call, "self")


def index_gradients(call: Call) -> Iterator[Way]:
    """The gradient of tensor[indices]; of parts of the indices it is still to be added up."""
    for own, grad, cut in _cuts(call, None):
        yield Way((own if isinstance(own, Shard) else SUM,), (grad, *cut))
    for partial in _LINEAR_REDUCTIONS:
        yield Way((partial,), (partial, *[_R] * (len(call.ins) - 1)))


def placed(call: Call) -> Iterator[Way]:
    """tensor[indices] = values: dimensions without an index; parts of the indices where values are added."""
    value = call.given["values"]
    for own, of_value, cut in _cuts(call, value):
        if isinstance(own, Shard):
            yield Way((own,), (own, *cut, of_value))
        elif call.given.get("accumulate") and isinstance(of_value, Shard):
            yield Way((SUM,), (SUM, *cut, of_value))
