"""What is known of a distributed tensor beside its part: mesh, placements, and the whole tensor's shape and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorpy.distributed.device_mesh import DeviceMesh
from tensorpy.distributed.tensor.placement_types import Placement, Replicate, Shard, part_sizes

Placements = tuple[Placement, ...]


@dataclass(frozen=True)
class Spec:
    """A distributed tensor without its elements.

    Arguments:
        mesh: the processes
        placements: what they have, for each dimension of the mesh
        shape: of the whole tensor
        stride: of the whole tensor, were it one
        dtype: of its elements
    """

    mesh: DeviceMesh
    placements: Placements
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.placements, self.shape, self.stride, self.dtype)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]  # pyright: ignore

    def size_before(self, dim: int, mesh_dim: int) -> int:
        """The size that this process has of a dimension when all mesh dimensions before one have cut it."""
        return box(self.shape, self.mesh, self.placements[:mesh_dim])[0][dim]


def box(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and the first element of it; nothing outside of the mesh."""
    place = mesh.get_coordinate()
    if place is None:
        return (0,) * len(shape), (0,) * len(shape)
    sizes, begins = list(shape), [0] * len(shape)
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            parts = part_sizes(sizes[placement.dim], mesh.shape[mesh_dim])
            begins[placement.dim] += sum(parts[: place[mesh_dim]])
            sizes[placement.dim] = parts[place[mesh_dim]]
    return tuple(sizes), tuple(begins)


def rows(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    found: list[int] = []
    step = 1
    for size in reversed(shape):
        found.insert(0, step)
        step *= max(size, 1)
    return tuple(found)


def normalized(placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int, name: str) -> Placements:
    """One placement for each dimension of the mesh, dimensions counted from the front; else the error of `name`."""
    given: Sequence[Placement] = [Replicate()] * mesh.ndim if placements is None else placements
    if isinstance(given, Placement) or not all(isinstance(each, Placement) for each in given):
        raise TypeError(f"{name}: placements is a list of Shard, Replicate and Partial, not {placements!r}")
    if len(given) != mesh.ndim:
        raise ValueError(
            f"{name}: `placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(given)}, and device_mesh.ndim: {mesh.ndim}."
        )
    found: list[Placement] = []
    for each in given:
        if isinstance(each, Shard):
            if not -ndim <= each.dim < ndim:
                raise IndexError(f"{name}: {each!r} names no dimension of a tensor of {ndim}")
            found.append(Shard(each.dim % ndim))
        else:
            found.append(each)
    return tuple(found)
