"""Along one dimension of a mesh: under which placements of its arguments an operator's results have which.

A rule gives ways: the placements of the tensors that come in and of those that go out, when every process runs the
operator on its part. That all have everything is a way of each operator that has a rule, and stands first. Here are the
rules of elements, reductions, views, lines and products; _network_rules.py, _index_rules.py and _loss_rules.py have
others, _families.py says which operator has which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.tensor._spec import rows
from tensorpy.distributed.tensor.placement_types import (
    NormPartial,
    Partial,
    Placement,
    Replicate,
    Shard,
    part_sizes,
)
from tensorpy.utils._python_dispatch import get_alias_info

SUM = Partial("sum")
_LINEAR_REDUCTIONS = (SUM, Partial("avg"))
_R = Replicate()


@dataclass(frozen=True)
class Way:
    """Placements that fit each other.

    Arguments:
        outs: of the results that are tensors
        ins: of the arguments that are tensors
        local: what runs instead of the operator: it gets a Part
    """

    outs: tuple[Placement, ...]
    ins: tuple[Placement, ...]
    local: Callable[..., Any] | None = None


@dataclass
class Call:
    """A call of an operator on distributed tensors.

    Arguments:
        func: the overload
        given: its arguments by name
        ins: the whole arguments that are tensors, on Meta
        outs: the whole results that are tensors, on Meta
        count: how many processes there are along the dimension of the mesh
    """

    func: Any
    given: dict[str, Any]
    ins: list[Tensor]
    outs: list[Tensor]
    count: int = 1
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The operator's name without overload, and without the mark of one that writes to its argument."""
        base = self.func._opname
        return base[:-1] if base.endswith("_") and not base.endswith("__") else base

    def same(self, outs: Placement, *ins: Placement) -> Way:
        """The same placement for all results."""
        return Way((outs,) * len(self.outs), ins)

    def place(self, name: str) -> int | None:
        """Which of `ins` an argument is; None: it is none."""
        return next((i for i, t in enumerate(self.ins) if t is self.given.get(name)), None)


@dataclass
class Part:
    """What a process that runs something else than the operator knows.

    Arguments:
        given: its arguments by name, tensors as its parts
        shape: the whole's shape, by the name of the argument
        begin: the first element of a part along a dimension, by the name of the argument
        total: reduces a tensor over the processes that cut a dimension of an argument
    """

    given: dict[str, Any]
    shape: Callable[[str], tuple[int, ...]]
    begin: Callable[[str, int], int]
    total: Callable[..., Tensor]


def has_tag(func: Any, tag: str) -> bool:
    """Whether the entry of an operator has a tag."""
    return tag in func.tags


def is_view(func: Any) -> bool:
    """Whether the schema says that results share the first argument's elements, and writes none."""
    info = get_alias_info(func)
    return bool(info.outs) and all(o.alias and not o.is_write for o in info.outs)


# ---- element by element ----

# Whose result of a sum is the sum of results: in all arguments together, or in one with the others fixed.
_ADDS = {"add", "sub", "rsub", "clone", "detach", "_to_copy", "copy", "neg", "positive", "alias", "lift_fresh"}
_SCALES = {"mul": None, "div": 0, "true_divide": 0}
_COPIES = {"clone", "detach", "_to_copy", "copy", "alias", "lift_fresh"}
_FILLS = {"fill", "zero", "zeros_like", "ones_like", "empty_like", "full_like"}


def _aligned(call: Call, dim: int) -> tuple[Placement, ...]:
    """Dimension `dim` of the broadcast result, in each argument."""
    ndim = call.outs[0].ndim if call.outs else 0
    found: list[Placement] = []
    for tensor in call.ins:
        own = dim - ndim + tensor.ndim
        found.append(Shard(own) if own >= 0 and tensor.shape[own] == call.outs[0].shape[dim] else _R)
    return tuple(found)


def _is_plain_sum(call: Call) -> bool:
    """Whether no number is added that each process would add, and none is cut to an integer."""
    if call.name in ("add", "sub", "rsub") and call.func._overloadname.startswith("Scalar"):
        return False
    kinds = [t.is_floating_point() or t.is_complex() for t in (*call.outs, *call.ins)]
    return (kinds[0] or not any(kinds)) and all(t.dtype != tp.bool for t in (*call.outs, *call.ins))


def _linear(call: Call) -> Iterator[Way]:
    if call.name in _ADDS and _is_plain_sum(call):
        for partial in _LINEAR_REDUCTIONS:
            yield call.same(partial, *[partial] * len(call.ins))
    if call.name in _SCALES and not call.given.get("rounding_mode"):
        only = _SCALES[call.name]
        for place in range(len(call.ins)) if only is None else [only]:
            for partial in _LINEAR_REDUCTIONS:
                yield call.same(partial, *[partial if i == place else _R for i in range(len(call.ins))])
    if call.name in _COPIES and all(t.dtype == call.ins[0].dtype for t in (*call.outs, *call.ins)):
        yield from _of_any_partial(call)


def _of_any_partial(call: Call) -> Iterator[Way]:
    """Elements move, and are not changed: each reduction may come later."""
    for partial in call.known.get("partials", ()):
        yield call.same(partial, *[partial] * len(call.ins))


def _elements(call: Call) -> Iterator[Way]:
    for dim in range(call.outs[0].ndim):
        ins = _aligned(call, dim)
        if any(isinstance(each, Shard) for each in ins):
            yield call.same(Shard(dim), *ins)
    yield from _linear(call)


def _new_like(call: Call) -> Iterator[Way]:
    """Results of the same shape, whatever the elements are."""
    for dim in range(call.ins[0].ndim):
        yield call.same(Shard(dim), Shard(dim), *[_R] * (len(call.ins) - 1))
    if call.name == "zero":
        yield from _of_any_partial(call)
    elif call.name != "fill":
        for partial in call.known.get("partials", ()):
            yield call.same(_R, partial)


def _new(call: Call) -> Iterator[Way]:
    """Results of a shape that is given."""
    for dim in range(call.ins[0].ndim):
        yield call.same(_R, Shard(dim))
    for partial in call.known.get("partials", ()):
        yield call.same(_R, partial)


# ---- reductions ----

_LATER = {
    "sum": "sum", "nansum": "sum", "mean": "avg", "prod": "product", "amax": "max", "max": "max", "amin": "min",
    "min": "min",
}  # fmt: skip


def _reduced_dims(call: Call) -> set[int]:
    dims, ndim = call.given.get("dim"), call.ins[0].ndim
    if dims is None or dims == [] or dims == ():
        return set(range(ndim))
    return {d % max(ndim, 1) for d in (dims if isinstance(dims, (list, tuple)) else [dims])}


def _later(call: Call) -> Partial | None:
    """The reduction that makes the parts' results the whole's."""
    if call.name == "linalg_vector_norm":
        return NormPartial.of(float(call.given.get("ord", 2)))
    kind = _LATER.get(call.name)
    if kind is None or len(call.outs) != 1 or call.outs[0].dtype in (tp.bool,):
        return None
    return Partial(kind)


def _divides(call: Call, dim: int) -> bool:
    """Whether all parts of a dimension have the same size."""
    return not call.ins[0].shape[dim] % (call.count * call.known["others"].get(dim, 1))


def _is_fair(call: Call, dim: int, later: Partial) -> bool:
    """Whether parts of a dimension may be reduced before the whole: those of means are alike, those of extremes not
    empty."""
    if later.reduce_op == "avg":
        return _divides(call, dim)
    if later.reduce_op in ("sum", "product"):
        return True
    size, others = call.ins[0].shape[dim], call.known["others"].get(dim, 1)
    return size > 0 and (_divides(call, dim) or (others == 1 and part_sizes(size, call.count)[-1] > 0))


def _reductions(call: Call) -> Iterator[Way]:
    dims, later = _reduced_dims(call), _later(call)
    kept = -1
    for dim in range(call.ins[0].ndim):
        if dim not in dims:
            kept += 1
            yield call.same(Shard(dim if call.given.get("keepdim") else kept), Shard(dim))
        else:
            kept += bool(call.given.get("keepdim"))
            if later is not None and _is_fair(call, dim, later):
                yield call.same(later, Shard(dim))
    if later == SUM or later == Partial("avg"):
        for partial in _LINEAR_REDUCTIONS:
            yield call.same(partial, partial)
    elif later is not None:
        yield call.same(later, later)


# ---- views ----


def _cut_of(call: Call, dim: int, out: Tensor) -> int | None:
    """The dimension of a view that is cut where dimension `dim` of a tensor in rows is; None: none is."""
    size, step = call.ins[0].shape[dim], rows(call.ins[0].shape)[dim]
    others = call.known["others"].get(dim, 1)
    if size < 2 or (others > 1 and not _divides(call, dim)):
        return None
    mine = [step * n for n in part_sizes(size, call.count)]
    for place, (theirs, stride) in enumerate(zip(out.shape, out.stride(), strict=True)):
        if theirs > 1 and stride * theirs == step * size:
            parts = [stride * n for n in part_sizes(theirs, call.count)]
            return place if parts == mine and not (others > 1 and theirs % (call.count * others)) else None
    return None


def _squeezed_here(part: Part) -> Tensor:
    """Without the dimensions that the whole has one element in: a part may have one in others."""
    shape, dims = part.shape("self"), part.given.get("dim", range(len(part.shape("self"))))
    given = [dims] if isinstance(dims, int) else dims
    return part.given["self"].squeeze(tuple(d for d in given if shape[d] == 1))


def _views(call: Call) -> Iterator[Way]:
    seen, local = call.known["views"], _squeezed_here if call.name == "squeeze" else None
    ndim = call.ins[0].ndim
    divided = call.given.get("dim", 0) % ndim if "split_sizes" in call.given else None  # sizes of the whole
    for dim in range(ndim):
        places = {_cut_of(call, dim, out) for out in seen if dim != divided}
        if len(places) == 1 and (place := places.pop()) is not None:
            yield Way((Shard(place),) * len(call.outs), (Shard(dim),), local)
    yield from _of_any_partial(call)


def _back_to_whole(call: Call) -> Iterator[Way]:
    """Gradients of a view along one dimension."""
    whole, dim = call.outs[0].ndim, call.given["dim"]
    for place in range(whole):
        if place != dim % whole:
            own = place - (call.name == "select_backward" and place > dim % whole)
            yield call.same(Shard(place), Shard(own))
    yield from _of_any_partial(call)


def _joined(call: Call) -> Iterator[Way]:
    ndim, new = call.outs[0].ndim, call.name == "stack"
    dim = call.given.get("dim", 0) % ndim
    for place in range(ndim):
        if place != dim and all(t.ndim == ndim - new for t in call.ins):
            yield call.same(Shard(place), *[Shard(place - (new and place > dim))] * len(call.ins))
    yield from _of_any_partial(call)


# ---- along lines ----


def _lines(call: Call) -> Iterator[Way]:
    """Each line along a dimension is computed by itself."""
    ndim, dims = call.ins[0].ndim, call.given.get("dims", call.given.get("dim", -1))
    along = [dim % max(ndim, 1) for dim in (dims if isinstance(dims, (list, tuple)) else [dims])]
    for place in range(ndim):
        if place not in along and all(t.shape[place] == call.ins[0].shape[place] for t in call.ins):
            yield call.same(Shard(place), *[Shard(place)] * len(call.ins))


def _along(call: Call) -> Iterator[Way]:
    """The same, of results that may have no such dimension."""
    whole = call.ins[0].ndim
    if "dim" not in call.given or not whole:
        return
    dim, kept = call.given["dim"] % whole, call.outs[0].ndim == whole
    for place in range(whole):
        if place != dim:
            yield call.same(Shard(place - (place > dim and not kept)), Shard(place))


# ---- products ----

_PRODUCTS = {"mm": ("mk", "kn", "mn"), "bmm": ("bmk", "bkn", "bmn"), "mv": ("mk", "k", "m"), "dot": ("k", "k", "")}
_ADDED = {"addmm": "mm", "baddbmm": "bmm", "addmv": "mv"}


def _of_letter(letter: str, labels: str) -> Placement:
    return Shard(labels.index(letter)) if letter in labels else _R


def _added(call: Call, out: Placement) -> Placement:
    """The placement of what is added to a product, which is broadcast."""
    tensor, ndim = call.ins[0], call.outs[0].ndim
    if not isinstance(out, Shard):
        return out
    own = out.dim - ndim + tensor.ndim
    return Shard(own) if own >= 0 and tensor.shape[own] == call.outs[0].shape[out.dim] else _R


def _products(call: Call) -> Iterator[Way]:
    a, b, out = _PRODUCTS[_ADDED.get(call.name, call.name)]
    added = call.name in _ADDED
    for letter in dict.fromkeys(a + b):
        to = _of_letter(letter, out) if letter in out else SUM
        before = [_added(call, to)] if added else []
        yield call.same(to, *before, _of_letter(letter, a), _of_letter(letter, b))
    for partial in _LINEAR_REDUCTIONS:
        before = [partial] if added else []
        yield call.same(partial, *before, partial, _R)
        yield call.same(partial, *before, _R, partial)
