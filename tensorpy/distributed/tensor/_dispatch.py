"""What an operator does on distributed tensors: placements are chosen, parts brought to them, the operator run there.

For each dimension of the mesh the way is taken that sends the fewest bytes (_rules.py has the ways). Shapes and dtypes
of the whole results are those that the operator has on Meta. All processes choose alike: they see the same placements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed._functional_operators import ops
from tensorpy.distributed.tensor import _random
from tensorpy.distributed.tensor._redistribute import redistribute_local
from tensorpy.distributed.tensor._rules import Call, Part, Rule, Way, has_tag, is_view, rule_of
from tensorpy.distributed.tensor._spec import Placements, Spec, box
from tensorpy.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from tensorpy.utils._python_dispatch import get_alias_info, return_and_correct_aliasing
from tensorpy.utils._pytree import tree_flatten, tree_map

if TYPE_CHECKING:
    from tensorpy.distributed.tensor._api import DTensor

_R = Replicate()
# Arguments that say the shape of a result: each process gives its part's.
_SHAPES = ("size", "input_sizes")

# ---- arguments ----


class _Arguments:
    """The arguments of a call: by name, and those that are tensors in order.

    Arguments:
        func: the overload
        args: by place
        kwargs: by name
    """

    def __init__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.func = func
        names = [each.name for each in get_alias_info(func).args]
        self.given = {**dict(zip(names, args, strict=False)), **kwargs}
        self.by_place = len(args)
        self.tensors: list[Any] = [leaf for leaf in tree_flatten(self.given)[0] if isinstance(leaf, Tensor)]
        whole = next(t for t in self.tensors if _is_distributed(t))
        self.mesh = whole._spec.mesh
        self.specs = [self._spec(tensor) for tensor in self.tensors]

    def _spec(self, tensor: Any) -> Spec:
        if _is_distributed(tensor):
            if tensor._spec.mesh != self.mesh:
                raise RuntimeError(
                    f"{self.func}: all tensors lie on one mesh, and these on {self.mesh} and {tensor._spec.mesh}"
                )
            return tensor._spec
        everywhere = (_R,) * self.mesh.ndim  # a constant of a formula, or a number
        return Spec(self.mesh, everywhere, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    def written(self) -> list[int]:
        """Which of `tensors` the operator writes."""
        writes = [each.name for each in get_alias_info(self.func).args if each.is_write]
        found = [leaf for name in writes for leaf in tree_flatten(self.given.get(name))[0]]
        return [i for i, t in enumerate(self.tensors) if any(t is each for each in found)]

    def run(self, tensors: Sequence[Any], changed: dict[str, Any], call: Any = None) -> Any:
        """Calls the operator on other tensors."""
        given = {**self.filled(tensors), **changed}
        by_place = list(given.values())[: self.by_place]
        by_name = dict(list(given.items())[self.by_place :])
        return (call or self.func)(*by_place, **by_name)

    def filled(self, tensors: Sequence[Any]) -> dict[str, Any]:
        """The arguments with other tensors."""
        rest = iter(tensors)
        return tree_map(lambda leaf: next(rest) if isinstance(leaf, Tensor) else leaf, self.given)


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
        if i in fixed and (old != new or any(out != new for out in way.outs)):
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


# ---- running ----


class _Plan:
    """The ways of a call for all dimensions of its mesh.

    Arguments:
        given: the arguments
        rule: the operator's rule
    """

    def __init__(self, given: _Arguments, rule: Rule) -> None:
        self.given = given
        func, mesh = given.func, given.mesh
        views = is_view(func) or func._opname == "_unsafe_view"
        in_place = given.written()
        metas, self.out = _on_meta(given, views and not in_place)
        self.outs = [leaf for leaf in tree_flatten(self.out)[0] if isinstance(leaf, Tensor)]
        call = Call(func, given.filled(metas), metas, self.outs, known={"views": self.outs})
        self.ways: list[Way] = []
        for mesh_dim in range(mesh.ndim):
            source = tuple(spec.placements[mesh_dim] for spec in given.specs)
            call.count = mesh.shape[mesh_dim]
            call.known["others"] = _counts_of_others(given.specs, mesh_dim)
            way = _choose(call, rule, source, in_place)
            if way is None:
                raise RuntimeError(
                    f"{func}: writes to a tensor of the placements {given.specs[in_place[0]].placements}, which the "
                    "result would not have"
                )
            if views and "size" in given.given:
                _check_view(func, source, way)
            self.ways.append(way)

    def placements_in(self, place: int) -> Placements:
        """Those of an argument."""
        return tuple(way.ins[place] for way in self.ways)

    def placements_out(self, place: int) -> Placements:
        """Those of a result."""
        return tuple(way.outs[place] for way in self.ways)

    def _shapes(self) -> dict[str, Any]:
        names = [name for name in _SHAPES if name in self.given.given]
        if not names or not self.outs:
            return {}
        local, _ = box(self.outs[0].shape, self.given.mesh, self.placements_out(0))
        return {names[0]: list(local)}

    def _other(self) -> Callable[..., Any] | None:
        return next((way.local for way in self.ways if way.local is not None), None)

    def _part(self, locals_: Sequence[Tensor]) -> Part:
        mesh, given = self.given.mesh, self.given

        def begin(name: str, dim: int) -> int:
            place = next(i for i, t in enumerate(given.tensors) if t is given.given[name])
            return box(given.specs[place].shape, mesh, self.placements_in(place))[1][dim]

        def total(tensor: Tensor) -> Tensor:
            for mesh_dim, way in enumerate(self.ways):
                if way.local is not None:
                    tensor = ops.wait_tensor(ops.all_reduce(tensor, "sum", mesh.get_group(mesh_dim).group_name))
            return tensor

        return Part(given.filled(locals_), begin, total)

    def run(self) -> Any:
        """Runs the operator on the parts; what is returned holds tensors of them."""
        given = self.given
        locals_ = [
            redistribute_local(_local(tensor), spec, self.placements_in(i))
            for i, (tensor, spec) in enumerate(zip(given.tensors, given.specs, strict=True))
        ]
        other = self._other()
        if other is not None:
            return other(self._part(locals_))
        return given.run(locals_, self._shapes())


def _counts_of_others(specs: Sequence[Spec], mesh_dim: int) -> dict[int, int]:
    """By dimension of a tensor: how many parts the other dimensions of the mesh make of it."""
    found: dict[int, int] = {}
    for other, count in enumerate(specs[0].mesh.shape):
        cut = {p.dim for p in (s.placements[other] for s in specs) if isinstance(p, Shard)}
        for dim in cut if other != mesh_dim else ():
            found[dim] = found.get(dim, 1) * count
    return found


def _wrapped(plan: _Plan, results: Any, make: Callable[[Tensor, Spec], Any]) -> Any:
    """The results as distributed tensors."""
    place = iter(range(len(plan.outs)))
    metas = iter(plan.outs)

    def wrap(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        meta, i = next(metas), next(place)
        placements = plan.placements_out(i)
        spec = Spec(plan.given.mesh, placements, tuple(meta.shape), tuple(meta.stride()), meta.dtype)
        return make(leaf, spec)

    return tree_map(wrap, results)


def _number(given: _Arguments) -> Any:
    """A number is read from the whole, which all processes have then."""
    (spec,) = given.specs
    return given.run([redistribute_local(_local(given.tensors[0]), spec, (_R,) * given.mesh.ndim)], {})


def dispatch(func: Any, args: Sequence[Any], kwargs: dict[str, Any], make: Callable[[Tensor, Spec], DTensor]) -> Any:
    """An operator on distributed tensors.

    Arguments:
        func: the overload
        args: its arguments by place
        kwargs: its arguments by name
        make: makes a distributed tensor of a part and what is known of it
    """
    given = _Arguments(func, args, kwargs)
    if func._opname == "_local_scalar_dense":
        return _number(given)
    if has_tag(func, "nondeterministic_seeded"):
        drawn = _random.draw(func, given.given, given.tensors, given.specs, make)
        if drawn is not None:
            return drawn
    base = func._opname
    name = base[:-1] if base.endswith("_") and not base.endswith("__") else base
    rule = rule_of(func, name)
    if rule is None:
        raise NotImplementedError(
            f"Operator {func} does not have a sharding strategy registered: it works on whole tensors, those of "
            "redistribute() and to_local(), or of full_tensor()"
        )
    plan = _Plan(given, rule)
    if plan.given.mesh.get_coordinate() is None:
        return _wrapped(plan, tree_map(_empty_part, plan.out), make)
    return return_and_correct_aliasing(func, args, kwargs, _wrapped(plan, plan.run(), make))


def _empty_part(leaf: Any) -> Any:
    """What a process outside of the mesh has."""
    return tp.empty(0, dtype=leaf.dtype) if isinstance(leaf, Tensor) else leaf
