"""What an operator does on distributed tensors: placements are chosen, parts brought to them, the operator run there.

For each dimension of the mesh the way is taken that sends the fewest bytes (_families.py has the rules). Shapes and
dtypes of the whole results are those that the operator has on Meta. All processes choose alike: they see the same
placements.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.tensor import _random
from tensorpy.distributed.tensor._families import VIEWS, Rule, rule_of
from tensorpy.distributed.tensor._loss_rules import is_by_class
from tensorpy.distributed.tensor._redistribute import redistribute_local
from tensorpy.distributed.tensor._rules import Call, Part, Way, has_tag, is_view
from tensorpy.distributed.tensor._spec import Placements, Spec, box
from tensorpy.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from tensorpy.ops import _c10d_functional as ops
from tensorpy.utils._python_dispatch import get_alias_info, return_and_correct_aliasing
from tensorpy.utils._pytree import tree_flatten, tree_map

_R = Replicate()
# Arguments that say the shape of a result: each process gives its part's.
_SHAPES = ("size", "input_sizes", "input_size")
# Arguments that are written though the schema does not say so.
_KEPT = ("running_mean", "running_var")

# ---- arguments ----


@functools.cache
def _names(func: Any) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The arguments of an operator, those that it writes, and its name without the mark of one that writes."""
    found = get_alias_info(func).args
    base = func._opname
    plain = base[:-1] if base.endswith("_") and not base.endswith("__") else base
    return tuple(a.name for a in found), tuple(a.name for a in found if a.is_write), plain


def _tensors_of(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    return [each for each in value if isinstance(each, Tensor)] if isinstance(value, (list, tuple)) else []


class _Arguments:
    """The arguments of a call: by name, and those that are tensors in order.

    Arguments:
        func: the overload
        args: by place
        kwargs: by name
    """

    def __init__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.func = func
        self.given = {**dict(zip(_names(func)[0], args, strict=False)), **kwargs}
        self.by_place = len(args)
        self.tensors: list[Any] = [leaf for value in self.given.values() for leaf in _tensors_of(value)]
        whole = next(t for t in self.tensors if _is_distributed(t))
        self.mesh = whole._spec.mesh
        self.specs = [self._spec(tensor) for tensor in self.tensors]

    def _spec(self, tensor: Any) -> Spec:
        if _is_distributed(tensor):
            spec: Spec = tensor._spec
            if spec.mesh is not self.mesh and spec.mesh != self.mesh:
                raise RuntimeError(
                    f"{self.func}: all tensors lie on one mesh, and these on {self.mesh} and {spec.mesh}"
                )
            return spec
        everywhere = (_R,) * self.mesh.ndim  # a constant of a formula, or a number
        return Spec(self.mesh, everywhere, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    def written(self) -> list[int]:
        """Which of `tensors` the operator writes."""
        names = _names(self.func)[1] + (_KEPT if self.given.get("training") else ())
        found = [leaf for name in names for leaf in _tensors_of(self.given.get(name))]
        return [i for i, t in enumerate(self.tensors) if any(t is each for each in found)]

    def key(self) -> Any:
        """What the placements of results depend on; None where that is nothing that could be looked up."""
        specs = iter(self.specs)
        found: list[Any] = [self.func, self.by_place, tp.get_default_dtype(), is_by_class(), _is_asked_view()]
        for name, value in self.given.items():
            if isinstance(value, Tensor):
                found.append((name, next(specs)))
            elif isinstance(value, (list, tuple)):
                several = tuple(next(specs) if isinstance(each, Tensor) else (type(each), each) for each in value)
                found.append((name, several))
            else:
                found.append((name, type(value), value))
        made = tuple(found)
        try:
            hash(made)
        except TypeError:
            return None
        return made

    def run(self, tensors: Sequence[Any], changed: dict[str, Any], func: Any = None) -> Any:
        """Calls the operator, or another with its arguments, on other tensors."""
        given = {**self.filled(tensors), **changed}
        by_place = list(given.values())[: self.by_place]
        by_name = dict(list(given.items())[self.by_place :])
        return (func or self.func)(*by_place, **by_name)

    def filled(self, tensors: Sequence[Any]) -> dict[str, Any]:
        """The arguments with other tensors."""
        rest = iter(tensors)

        def other(value: Any) -> Any:
            if isinstance(value, Tensor):
                return next(rest)
            if isinstance(value, (list, tuple)):
                return [next(rest) if isinstance(each, Tensor) else each for each in value]
            return value

        return {name: other(value) for name, value in self.given.items()}


def _is_distributed(value: Any) -> bool:
    return isinstance(value, Tensor) and hasattr(value, "_spec")


def _local(tensor: Any) -> Tensor:
    return tensor._local_tensor if _is_distributed(tensor) else tensor


def _on_meta(given: _Arguments, in_rows: bool) -> tuple[list[Tensor], Any]:
    """The whole arguments on Meta, and what the operator makes of them."""
    metas = [
        tp.empty(s.shape, dtype=s.dtype, device="meta")
        if in_rows
        else tp.empty_strided(s.shape, s.stride, dtype=s.dtype, device="meta")
        for s in given.specs
    ]
    changed = {"device": "meta"} if given.given.get("device") is not None else {}
    return metas, given.run(metas, changed)


# ---- choosing ----


def _cost(source: Placement, to: Placement, elements: int) -> float:
    """How much is sent, in elements; a little for what is only computed."""
    if source == to:
        return 0.0
    if isinstance(source, Replicate):
        return 0.1
    if isinstance(source, Shard):  # as PyTorch counts: results that all have serve whatever comes next
        return (1.0 if isinstance(to, Replicate) else 2.0) + elements
    return 2.0 + elements * (1.0 if isinstance(to, Shard) else 2.0)


def _may_be(call: Call, source: Placements, way: Way, fixed: Sequence[int]) -> bool:
    for i, (old, new) in enumerate(zip(source, way.ins, strict=True)):
        if i in fixed and (old != new or (call.known["returned"] and any(out != new for out in way.outs))):
            return False
        if old != new and isinstance(new, Shard) and call.ins[i].shape[new.dim] < call.count:
            return False
        if old != new and isinstance(new, Partial) and not isinstance(old, Replicate):
            return False
    return True


def _choose(call: Call, rule: Rule, source: Placements, fixed: Sequence[int]) -> Way | None:
    """The way that sends least; the first of several; None without one."""
    call.known["partials"] = [p for p in dict.fromkeys(source) if isinstance(p, Partial)]
    whole = Way((_R,) * len(call.outs), (_R,) * len(call.ins))
    best: tuple[float, Way] | None = None
    for way in (whole, *rule(call)):
        if not _may_be(call, source, way, fixed):
            continue
        cost = sum(_cost(old, new, tensor.numel()) for old, new, tensor in zip(source, way.ins, call.ins, strict=True))
        if best is None or cost < best[0]:
            best = cost, way
    return None if best is None else best[1]


def _check_view(func: Any, source: Placements, way: Way) -> None:
    """A view in other sizes copies nothing: what it cannot keep apart is not sent without a word."""
    for old, new in zip(source, way.ins, strict=True):
        if isinstance(old, Shard) and old != new:
            raise RuntimeError(
                f"{func}: the result has no dimension that is cut as dimension {old.dim} is; redistribute() before"
            )


replicating: list[None] = []  # whether plain tensors stand beside distributed ones
_called: list[bool] = []  # whether programs' calls that are under way ask for a view


@functools.cache
def _asks_view(name: str) -> bool:
    found = getattr(tp.ops.aten, name, None)
    return found is not None and any(is_view(getattr(found, overload)) for overload in found.overloads())


@contextlib.contextmanager
def called(name: str) -> Iterator[None]:
    """Inside of it operators are steps of a function that a program calls."""
    _called.append(_asks_view(name))
    try:
        yield
    finally:
        _called.pop()


def _is_asked_view() -> bool:
    """Whether a program itself asks for the view: what an operator or a gradient does on its way may send."""
    return bool(_called) and _called[0]


# ---- plans ----


def _counts_of_others(specs: Sequence[Spec], mesh_dim: int) -> dict[int, int]:
    """By dimension of a tensor: how many parts the other dimensions of the mesh make of it."""
    found: dict[int, int] = {}
    for other, count in enumerate(specs[0].mesh.shape):
        cut = {p.dim for p in (s.placements[other] for s in specs) if isinstance(p, Shard)}
        for dim in cut if other != mesh_dim else ():
            found[dim] = found.get(dim, 1) * count
    return found


def _seen(given: _Arguments, metas: list[Tensor], outs: list[Tensor]) -> list[Tensor]:
    """The results as views of whole tensors: those that a copy of a view was made from."""
    if not has_tag(given.func, "view_copy"):
        return outs
    of = getattr(tp.ops.aten, given.func._opname.removesuffix("_copy"))
    made = tree_flatten(given.run(metas, {}, getattr(of, given.func._overloadname)))[0]
    return [leaf for leaf in made if isinstance(leaf, Tensor)]


def _ways(given: _Arguments, rule: Rule, metas: list[Tensor], outs: list[Tensor]) -> list[Way]:
    """That of each dimension of the mesh."""
    func, mesh, in_place = given.func, given.mesh, given.written()
    known = {"views": _seen(given, metas, outs), "returned": any(out.is_write for out in get_alias_info(func).outs)}
    call = Call(func, given.filled(metas), metas, outs, known=known)
    found: list[Way] = []
    for mesh_dim in range(mesh.ndim):
        source = tuple(spec.placements[mesh_dim] for spec in given.specs)
        call.count = mesh.shape[mesh_dim]
        call.known["others"] = _counts_of_others(given.specs, mesh_dim)
        way = _choose(call, rule, source, in_place)
        if way is None:
            raise RuntimeError(
                f"{func}: writes to a tensor of the placements {given.specs[in_place[0]].placements}, which the result "
                "would not have"
            )
        if rule is VIEWS and "size" in given.given and _is_asked_view() and outs[0].numel() == metas[0].numel():
            _check_view(func, source, way)
        found.append(way)
    return found


class _Plan:
    """What a call does, for all calls with the same placements, shapes and arguments.

    Arguments:
        given: the arguments
        rule: the operator's rule
    """

    def __init__(self, given: _Arguments, rule: Rule) -> None:
        metas, out = _on_meta(given, rule is VIEWS)
        outs = [leaf for leaf in tree_flatten(out)[0] if isinstance(leaf, Tensor)]
        self.ways = _ways(given, rule, metas, outs)
        self.ins: list[Placements] = [tuple(way.ins[i] for way in self.ways) for i in range(len(metas))]
        self.outs = [
            Spec(given.mesh, tuple(way.outs[i] for way in self.ways), tuple(o.shape), tuple(o.stride()), o.dtype)
            for i, o in enumerate(outs)
        ]
        self.parts = [box(spec.shape, spec.mesh, spec.placements)[0] for spec in self.outs]
        self.other = next((way.local for way in self.ways if way.local is not None), None)
        self.is_outside = given.mesh.get_coordinate() is None  # then there is nothing to compute
        self.changed: dict[str, Any] = {}
        for name in _SHAPES:
            if name in given.given and self.outs:
                self.changed[name] = list(self.parts[0])
                break

    def run(self, given: _Arguments, make: Callable[[Tensor, Spec], Any]) -> Any:
        """Brings parts to their placements, and runs the operator on them."""
        locals_ = [
            redistribute_local(_local(tensor), spec, to)
            for tensor, spec, to in zip(given.tensors, given.specs, self.ins, strict=True)
        ]
        out = given.run(locals_, self.changed) if self.other is None else self.other(self._part(given, locals_))
        specs = iter(zip(self.outs, self.parts, strict=True))

        def made(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            spec, shape = next(specs)
            if tuple(leaf.shape) != shape:
                raise RuntimeError(
                    f"{given.func}: the part of {list(spec.shape)} under {spec.placements} is {list(shape)}, and the "
                    f"operator made {list(leaf.shape)} of parts; redistribute() before"
                )
            return make(leaf, spec)

        return made(out) if isinstance(out, Tensor) else tree_map(made, out)

    def _part(self, given: _Arguments, locals_: Sequence[Tensor]) -> Part:
        mesh = given.mesh

        def place(name: str) -> int:
            return next(i for i, t in enumerate(given.tensors) if t is given.given[name])

        def begin(name: str, dim: int) -> int:
            at = place(name)
            return box(given.specs[at].shape, mesh, self.ins[at])[1][dim]

        def total(tensor: Tensor, name: str, dim: int, op: str = "sum") -> Tensor:
            for mesh_dim, placement in enumerate(self.ins[place(name)]):
                if placement == Shard(dim):
                    tensor = ops.wait_tensor(ops.all_reduce(tensor, op, mesh.get_group(mesh_dim).group_name))
            return tensor

        return Part(given.filled(locals_), lambda name: given.specs[place(name)].shape, begin, total)


_MOST_PLANS = 4096


def _plan_of(given: _Arguments) -> _Plan:
    """Plans are kept by their mesh: they name its groups."""
    plans: dict[Any, _Plan] = given.mesh.__dict__.setdefault("_plans", {})
    key = given.key()
    plan = None if key is None else plans.get(key)
    if plan is None:
        rule = rule_of(given.func, _names(given.func)[2])
        if rule is None:
            raise NotImplementedError(
                f"Operator {given.func} does not have a sharding strategy registered: it works on whole tensors, those "
                "of redistribute() and to_local(), or of full_tensor()"
            )
        plan = _Plan(given, rule)
        if key is not None:
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            plans[key] = plan
    return plan


# ---- calls ----


def _read(given: _Arguments) -> Any:
    """What is no tensor is read from whole tensors, which all processes have then."""
    everywhere = (_R,) * given.mesh.ndim
    pairs = zip(given.tensors, given.specs, strict=True)
    return given.run([redistribute_local(_local(tensor), spec, everywhere) for tensor, spec in pairs], {})


def _asks_elements(func: Any, given: _Arguments) -> bool:
    """Whether elements say the shape of the result, or what an index of bools chooses: Meta cannot tell."""
    indices = _tensors_of(given.given.get("indices"))
    if any(index.dtype in (tp.bool, tp.uint8) for index in indices):
        return has_tag(func, "dynamic_output_shape") or rule_of(func, _names(func)[2]) is not None
    return has_tag(func, "dynamic_output_shape") and not indices


def _made_whole(func: Any, given: _Arguments, make: Callable[[Tensor, Spec], Tensor]) -> Any:
    """Each process makes all of the results."""
    mesh = given.mesh
    everywhere = (_R,) * mesh.ndim
    for i in given.written():
        if given.specs[i].placements != everywhere:
            raise RuntimeError(
                f"{func}: writes to a tensor of the placements {given.specs[i].placements}, and places are known of "
                "whole tensors only; redistribute() before"
            )

    def made(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        return make(leaf, Spec(mesh, everywhere, tuple(leaf.shape), tuple(leaf.stride()), leaf.dtype))

    return tree_map(made, _read(given))


def dispatch(func: Any, args: Sequence[Any], kwargs: dict[str, Any], make: Callable[[Tensor, Spec], Tensor]) -> Any:
    """An operator on distributed tensors.

    Arguments:
        func: the overload
        args: its arguments by place
        kwargs: its arguments by name
        make: makes a distributed tensor of a part and what is known of it
    """
    given = _Arguments(func, args, kwargs)
    if has_tag(func, "data_dependent_output"):
        return _read(given)
    if _asks_elements(func, given) and given.mesh.get_coordinate() is not None:
        out = _made_whole(func, given, make)
        return return_and_correct_aliasing(func, args, kwargs, out) if _names(func)[1] else out
    if has_tag(func, "nondeterministic_seeded"):
        drawn = _random.draw(func, given.given, given.tensors, given.specs, make)
        if drawn is not None:
            return drawn
        _random.agree(given.mesh)
    plan = _plan_of(given)
    if plan.is_outside:
        made = [make(tp.zeros(0 if spec.shape else (), dtype=spec.dtype), spec) for spec in plan.outs]
        return made[0] if len(made) == 1 else made
    out = plan.run(given, make)
    return return_and_correct_aliasing(func, args, kwargs, out) if _names(func)[1] else out
