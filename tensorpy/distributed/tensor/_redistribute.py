"""From one list of placements to another: which messages, in which order.

A tensor dimension that several mesh dimensions cut is cut by the first of them first. So parts are put together from
the last mesh dimension on, and cut from the first one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed.tensor._spec import Placements, Spec
from tensorpy.distributed.tensor.placement_types import (
    NormPartial,
    Partial,
    Placement,
    Replicate,
    Shard,
    part_sizes,
)
from tensorpy.ops import _c10d_functional as ops

# ---- one dimension of the mesh ----


class _Line:
    """The processes along one dimension of a mesh.

    Arguments:
        spec: the tensor
        mesh_dim: the dimension
    """

    def __init__(self, spec: Spec, mesh_dim: int) -> None:
        place = spec.mesh.get_coordinate()
        assert place is not None
        self.place, self.count = place[mesh_dim], spec.mesh.shape[mesh_dim]
        self.group = spec.mesh.get_group(mesh_dim).group_name

    def _padded(self, parts: Sequence[Tensor], dim: int) -> Tensor:
        """Parts of unlike sizes one after another, all as large as the first, along the first dimension."""
        size = parts[0].shape[dim]
        return tp.cat([_longer(part.movedim(dim, 0), size) for part in parts])

    def gather(self, local: Tensor, dim: int, size: int) -> Tensor:
        """Shard to Replicate; `size` is the whole's."""
        sizes = part_sizes(size, self.count)
        sent = _longer(local.movedim(dim, 0), sizes[0]).contiguous()
        got = ops.wait_tensor(ops.all_gather_into_tensor(sent, self.count, self.group))
        if size != sizes[0] * self.count:
            got = tp.cat([part[:n] for part, n in zip(got.split(max(sizes[0], 1)), sizes, strict=False)])
        return got.movedim(0, dim).contiguous()

    def cut(self, local: Tensor, placement: Shard) -> Tensor:
        """Replicate to Shard."""
        return placement._parts(local, self.count)[self.place].clone(memory_format=tp.contiguous_format)

    def reduce(self, local: Tensor, placement: Partial) -> Tensor:
        """Partial to Replicate."""
        order = placement.order if isinstance(placement, NormPartial) else None
        given = local if order is None else local**order
        got = ops.wait_tensor(ops.all_reduce(given.contiguous(), placement.reduce_op, self.group))
        return got if order is None else got ** (1.0 / order)

    def scatter(self, local: Tensor, placement: Partial, to: Shard) -> Tensor:
        """Partial to Shard."""
        if isinstance(placement, NormPartial):
            return self.cut(self.reduce(local, placement), to)
        parts = to._parts(local, self.count)
        sent = self._padded(parts, to.dim)
        got = ops.wait_tensor(ops.reduce_scatter_tensor(sent, placement.reduce_op, self.count, self.group))
        return got[: parts[self.place].shape[to.dim]].movedim(0, to.dim).contiguous()

    def exchange(self, local: Tensor, source: Shard, to: Shard, size: int) -> Tensor:
        """Shard to Shard of another dimension; `size` is the whole's along the source's."""
        parts = to._parts(local, self.count)
        shapes = [list(parts[self.place].shape) for _ in range(self.count)]
        for shape, n in zip(shapes, part_sizes(size, self.count), strict=True):
            shape[source.dim] = n
        counts = [tp.Size(shape).numel() for shape in shapes]
        sent = tp.cat([part.reshape(-1) for part in parts])
        got = ops.wait_tensor(ops.all_to_all_single(sent, counts, [part.numel() for part in parts], self.group))
        return tp.cat([e.view(s) for e, s in zip(got.split(counts), shapes, strict=True)], source.dim)

    def part(self, local: Tensor, to: Partial) -> Tensor:
        """Replicate to Partial: one process has the numbers, where they are added or multiplied."""
        if self.place == 0 or to.reduce_op not in ("sum", "product"):
            return local
        return tp.zeros_like(local) if to.reduce_op == "sum" else tp.ones_like(local)


def _longer(tensor: Tensor, size: int) -> Tensor:
    """With rows of zeros behind it, up to a size."""
    missing = size - tensor.shape[0]
    return tp.cat([tensor, tensor.new_zeros((missing, *tensor.shape[1:]))]) if missing else tensor


def _step(local: Tensor, spec: Spec, mesh_dim: int, to: Placement) -> Tensor:
    """Changes one placement."""
    line, source = _Line(spec, mesh_dim), spec.placements[mesh_dim]
    if isinstance(source, Shard):
        size = spec.size_before(source.dim, mesh_dim)
        if isinstance(to, Shard):
            return line.exchange(local, source, to, size)
        local = line.gather(local, source.dim, size)
    elif isinstance(source, Partial):
        if isinstance(to, Shard):
            return line.scatter(local, source, to)
        local = line.reduce(local, source)
    if isinstance(to, Shard):
        return line.cut(local, to)
    return line.part(local, to) if isinstance(to, Partial) else local


# ---- all dimensions ----


def _cut_dims(*placements: Placement) -> set[int]:
    return {each.dim for each in placements if isinstance(each, Shard)}


def _changing(source: Placements, to: Placements) -> list[int]:
    """The mesh dimensions that change, and those that cut again what an earlier one cuts otherwise."""
    found: list[int] = []
    touched: set[int] = set()
    for mesh_dim, (old, new) in enumerate(zip(source, to, strict=True)):
        if old != new or _cut_dims(old) & touched:
            found.append(mesh_dim)
            touched |= _cut_dims(old, new)
    return found


def _is_direct(source: Placements, to: Placements, mesh_dim: int) -> bool:
    """Whether no other mesh dimension cuts what this one does, so that one message changes it."""
    mine = _cut_dims(source[mesh_dim], to[mesh_dim])
    others = [(old, new) for m, (old, new) in enumerate(zip(source, to, strict=True)) if m != mesh_dim]
    return not any(mine & _cut_dims(old, new) for old, new in others)


def _with(spec: Spec, mesh_dim: int, placement: Placement) -> Spec:
    changed = (*spec.placements[:mesh_dim], placement, *spec.placements[mesh_dim + 1 :])
    return Spec(spec.mesh, changed, spec.shape, spec.stride, spec.dtype)


def redistribute_local(local: Tensor, spec: Spec, to: Placements) -> Tensor:
    """This process's part under other placements.

    Arguments:
        local: its part
        spec: the tensor, with the placements that it has
        to: those that it gets
    """
    if spec.placements == to or spec.mesh.get_coordinate() is None:
        return local
    changing = _changing(spec.placements, to)
    direct = {m for m in changing if _is_direct(spec.placements, to, m)}
    now: Any = spec
    for mesh_dim in reversed(changing):
        source = now.placements[mesh_dim]
        if not isinstance(source, Replicate) and (mesh_dim not in direct or isinstance(to[mesh_dim], Replicate)):
            local = _step(local, now, mesh_dim, Replicate())
            now = _with(now, mesh_dim, Replicate())
    for mesh_dim in changing:
        if now.placements[mesh_dim] != to[mesh_dim]:
            local = _step(local, now, mesh_dim, to[mesh_dim])
            now = _with(now, mesh_dim, to[mesh_dim])
    return local
