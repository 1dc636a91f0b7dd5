"""DeviceMesh: the processes of a world as an array, with a group of processes along each dimension.

A mesh that is sliced or flattened out of another shares the root's list of ranks, and differs in the layout over it
(mesh_layout.py).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor
from tensorpy.distributed import groups
from tensorpy.distributed.detail import DebugLevel, get_debug_level
from tensorpy.distributed.distributed_c10d import init_process_group, is_initialized, new_group
from tensorpy.distributed.groups import ProcessGroup
from tensorpy.distributed.mesh_layout import Axis, Layout

__all__ = ["DeviceMesh", "init_device_mesh"]

Names = tuple[str, ...]


class _MeshEnv(threading.local):
    """The meshes whose contexts this thread is in."""

    def __init__(self) -> None:
        self.mesh_stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        """The innermost one."""
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]


_mesh_resources = _MeshEnv()


def _shape_and_ranks(mesh: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if mesh is None:
        raise TypeError("DeviceMesh: mesh says which ranks stand where")
    array = tp.as_tensor(mesh, device="cpu").detach()
    if array.numel() == 0 or array.is_floating_point() or array.is_complex() or array.dtype == tp.bool:
        raise ValueError(f"DeviceMesh: a mesh is an array of ranks, not {array.dtype}{list(array.shape)}")
    ranks = tuple(array.reshape(-1).tolist())
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"DeviceMesh: a rank stands in {array.tolist()} twice")
    return tuple(array.shape), ranks


class DeviceMesh:
    """The processes of a world as an array: those that differ in one dimension alone are a group.

    All processes of the world make the same meshes, in one order.

    Arguments:
        device_type: the type of the devices that tensors are to lie on
        mesh: an array of ranks of the world
        mesh_dim_names: a name for each dimension
        backend_override: for each dimension a backend and its options; None takes the world's

    Example:
        >>> mesh = tp.distributed.DeviceMesh("cpu", [[0]], mesh_dim_names=("replicas", "parts"))
        >>> mesh["parts"].size(), mesh.get_local_rank("replicas")
        (1, 0)
    """

    _groups: list[ProcessGroup] | None  # of its dimensions, empty outside of it; None: it has none

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Sequence[tuple[str | None, Any]] | None = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        shape, ranks = _shape_and_ranks(mesh)
        self._set_up(device_type, Layout.contiguous(shape), ranks, mesh_dim_names, None)
        if backend_override is not None and len(backend_override) != self.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, but got "
                f"{len(backend_override)} and {self.ndim}."
            )
        if _init_backend:
            self._check_world()
            backends = [backend for backend, _ in backend_override or [(None, None)] * self.ndim]
            self._groups = _make_groups(self._layout.axes, ranks, backends)
        self._rank = groups.get_rank() if _rank is None else _rank

    def _set_up(self, device_type: str, layout: Layout, ranks: Any, names: Any, root: DeviceMesh | None) -> None:
        self._device_type, self._layout, self._ranks = device_type, layout, ranks
        self._mesh_dim_names: Names | None = tuple(names) if names else None
        self._root = root
        self._flattened: dict[str, DeviceMesh] = {}
        self._groups = None
        if root is not None:
            self._rank = root._rank

    def _check_world(self) -> None:
        if not is_initialized():
            init_process_group()
        size = groups.get_world_size()
        if len(self._ranks) > size:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {size}, but found {len(self._ranks)} ranks!"
            )
        for rank in self._ranks:
            if not 0 <= rank < size:
                raise ValueError(f"DeviceMesh: there is no rank {rank} in a world of {size} processes")

    # ---- what it is ----

    @property
    def device_type(self) -> str:
        """The type of its devices."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> Names | None:
        """The names of its dimensions."""
        return self._mesh_dim_names

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self._layout.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes each dimension has."""
        return self._layout.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, in a dimension or in all."""
        return prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    @property
    def mesh(self) -> Tensor:
        """The ranks, as an array of int32: of a slice those of the part that this process is in."""
        parts = self._layout.meshes(self._ranks)
        mine = [part for part in parts if self._rank in part]
        if not mine and len(parts) > 1:
            raise RuntimeError(f"{self} has {len(parts)} parts, and rank {self._rank} is in none of them")
        return tp.tensor((mine or parts)[0], dtype=tp.int32, device="cpu").reshape(self.shape)

    def get_rank(self) -> int:
        """This process's rank in the world."""
        return groups.get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process stands in each dimension; None outside of the mesh."""
        mine = next((part for part in self._layout.meshes(self._ranks) if self._rank in part), None)
        if mine is None:
            return None
        place = mine.index(self._rank)
        found: list[int] = []
        for size in reversed(self.shape):
            found.insert(0, place % size)
            place //= size
        return tuple(found)

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self._rank in self._ranks

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands in a dimension.

        Arguments:
            mesh_dim: the dimension, by its number or name; the only one if nothing is said
        """
        return groups.get_rank(self.get_group(mesh_dim))

    def _number(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(f"{self} has {self.ndim} dimensions: mesh_dim says which one is meant")
            return 0
        return self._get_mesh_dim_by_name(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The processes that differ from this one in a dimension alone.

        Arguments:
            mesh_dim: the dimension, by its number or name; the only one if nothing is said
        """
        if self._groups is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        flattened = self._get_root_mesh()._flattened.get(mesh_dim) if isinstance(mesh_dim, str) else None
        if flattened is not None:
            return flattened.get_group()
        number = self._number(mesh_dim)
        if not -self.ndim <= number < self.ndim:
            raise IndexError(f"{self} has no dimension {number}")
        if not self._groups:
            raise RuntimeError(f"rank {self._rank} is not in {self}")
        return self._groups[number]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return [self.get_group(i) for i in range(self.ndim)]

    def __repr__(self) -> str:
        shape: Any = self.shape
        if self._mesh_dim_names:
            shape = f"({', '.join(f'{n}={size}' for n, size in zip(self._mesh_dim_names, shape, strict=True))})"
        strides = tuple(axis.stride() for axis in self._layout.axes)
        ranks = f", Mesh: {self.mesh.tolist()}" if get_debug_level() is DebugLevel.DETAIL else ""
        return f"DeviceMesh({shape}, '{self._device_type}', stride={strides}{ranks})"

    def _key(self) -> Any:
        return self._ranks, self._layout, self._device_type, self._mesh_dim_names

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _mesh_resources.mesh_stack.pop()

    # ---- meshes of it ----

    def _get_root_mesh(self) -> DeviceMesh:
        return self if self._root is None else self._root

    def _derived(self, axes: Sequence[Axis], names: Sequence[str], groups: list[ProcessGroup] | None) -> DeviceMesh:
        made = DeviceMesh.__new__(DeviceMesh)
        root = self._get_root_mesh()
        made._set_up(root._device_type, Layout(tuple(axes)), root._ranks, names, root)
        made._groups = groups
        return made

    def _get_mesh_dim_by_name(self, name: str) -> int:
        if not self._mesh_dim_names or name not in self._mesh_dim_names:
            raise KeyError(f"Mesh dimension '{name}' does not exist: the names are {self._mesh_dim_names}")
        return self._mesh_dim_names.index(name)

    def __getitem__(self, mesh_dim_names: str | Names) -> DeviceMesh:
        """The mesh of some of its dimensions: of each process that which it is in."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        flattened = self._flattened if self._root is None else {}
        valid = [*self._mesh_dim_names, *flattened]
        if any(name not in valid for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}.")
        axes: list[Axis] = []
        made: list[ProcessGroup] = []
        for name in names:
            own = name in self._mesh_dim_names
            source, number = (self, self._mesh_dim_names.index(name)) if own else (flattened[name], 0)
            if not own:
                warnings.warn(f"{name} is a flattened mesh: keep what _flatten() returned", stacklevel=2)
            axes.append(source._layout.axes[number])
            made += source._groups[number : number + 1] if source._groups else []
        layout = Layout(tuple(axes))
        if not layout.is_sorted():
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        if not layout.is_apart():
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        return self._derived(axes, names, None if self._groups is None else made)

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """A mesh of one dimension with all of its processes, which the root knows by a name.

        Arguments:
            mesh_dim_name: the name; those of its dimensions with _ between them if nothing is said
            backend_override: the backend, or it and its options
        """
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name, root = mesh_dim_name or "_".join(self._mesh_dim_names), self._get_root_mesh()
        if self.ndim == 1 and name in self._mesh_dim_names:
            return self
        axis = self._layout.flat()
        if name in (root._mesh_dim_names or ()):
            raise ValueError(f"{name} already exists for submesh of the {root}: another mesh_dim_name will do")
        known = root._flattened.get(name)
        if known is not None:
            if known._layout.axes != (axis,):
                raise ValueError(f"Flatten mesh with mesh_dim_name {name} has been created before, of another layout")
            return known
        backend = backend_override[0] if isinstance(backend_override, tuple) else backend_override
        made = None if self._groups is None else _make_groups((axis,), root._ranks, [backend])
        root._flattened[name] = self._derived((axis,), (name,), made)
        return root._flattened[name]

    def _unflatten(
        self,
        dim: int | str,
        mesh_sizes: Sequence[int],
        mesh_dim_names: Sequence[str],
        backend_override: dict[str, Any] | None = None,
    ) -> DeviceMesh:
        """A mesh with several dimensions in the place of one.

        Arguments:
            dim: the dimension, by its number or name
            mesh_sizes: how many processes each of the new ones has
            mesh_dim_names: their names
            backend_override: backends of some, by their names or numbers
        """
        names = self._mesh_dim_names or ()
        if isinstance(dim, str) and dim not in names:
            raise ValueError(f"dim {dim} specified in `_unflatten` is not in {names}")
        number = names.index(dim) if isinstance(dim, str) else dim
        if not 0 <= number < self.ndim:
            raise ValueError(f"dim {number} specified in `_unflatten` is out of range {self.ndim}")
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        axis = self._layout.axes[number]
        axes = axis.split(mesh_sizes) if prod(mesh_sizes) == axis.numel() and min(mesh_sizes, default=1) > 0 else None
        if axes is None:
            raise ValueError(f"a dimension of {axis.numel()} processes is not split into {tuple(mesh_sizes)}")
        backends = [backend for backend, _ in _overrides(backend_override, len(axes), tuple(mesh_dim_names))]
        made = self._groups
        if made is not None:
            new = _make_groups(axes, self._ranks, backends)
            made = [*made[:number], *new, *made[number + 1 :]]
        whole = [*self._layout.axes[:number], *axes, *self._layout.axes[number + 1 :]]
        return self._derived(whole, [*names[:number], *mesh_dim_names, *names[number + 1 :]], made)

    @staticmethod
    def _concatenate(device_mesh_list: list[DeviceMesh]) -> DeviceMesh:
        """A mesh with the dimensions of several, which have one root.

        Arguments:
            device_mesh_list: the meshes
        """
        first = device_mesh_list[0]
        if any(m._ranks != first._ranks for m in device_mesh_list):
            raise RuntimeError("Cannot concatenate DeviceMeshes derived from different device meshs")
        axes = [axis for m in device_mesh_list for axis in m._layout.axes]
        if not Layout(tuple(axes)).is_apart():
            raise RuntimeError(f"Cannot concatenate overlapping meshes: {device_mesh_list}")
        names = [name for m in device_mesh_list for name in m._mesh_dim_names or ()]
        parts = [m._groups for m in device_mesh_list]
        made = None if None in parts else [g for part in parts for g in part or []]
        return first._derived(axes, names, made)

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """The meshes of a dimension of all processes, not of this one alone.

        Arguments:
            mesh_dim_name: the dimension
        """
        number = self._get_mesh_dim_by_name(mesh_dim_name)
        made = []
        for ranks in Layout((self._layout.axes[number],)).meshes(self._ranks):
            part = DeviceMesh(
                self._device_type, ranks, mesh_dim_names=(mesh_dim_name,), _init_backend=False, _rank=self._rank
            )
            part._groups = self._groups[number : number + 1] if self._groups and self._rank in ranks else []
            made.append(part)
        return made

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """A mesh of groups that are there, one for each dimension.

        Arguments:
            group: the group, or a list of them
            device_type: the type of the devices that tensors are to lie on
            mesh: an array of ranks; of one group it is known
            mesh_dim_names: a name for each dimension
        """
        if isinstance(group, ProcessGroup):
            ranks = list(group._ranks)
            given = ranks if mesh is None else mesh.tolist() if isinstance(mesh, Tensor) else list(mesh)
            if given != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            several, mesh = [group], ranks
        else:
            several = list(group)
            if not several:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            if mesh_dim_names is None:
                raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if made.ndim != len(several):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {made.mesh.tolist()} and "
                f"{len(several)} ProcessGroups"
            )
        made._groups = several
        return made


def _make_groups(axes: Sequence[Axis], ranks: Sequence[int], backends: Sequence[str | None]) -> list[ProcessGroup]:
    """The groups along each axis that this process is in; all processes of the world call this."""
    mine, whole = [], groups.of(None)
    for axis, backend in zip(axes, backends, strict=True):
        if axis.numel() == whole.size() and backend is None:
            mine.append(whole)
            continue
        made = [new_group(part, backend=backend) for part in Layout((axis,)).meshes(ranks)]
        mine += [g for g in made if g is not groups.group.NON_GROUP_MEMBER]
    return mine


def _overrides(given: dict[Any, Any] | None, ndim: int, names: Names) -> list[tuple[str | None, Any]]:
    """Backends and options by dimension, from those by numbers or names."""
    left, made = dict(given or {}), []
    for number in range(ndim):
        name = names[number] if number < len(names) else None
        if name in left and number in left:
            raise RuntimeError(f"Found redundant dim index {number} and name {name} in backend_override")
        value: Any = left.pop(name) if name in left else left.pop(number, None)
        made.append(value if isinstance(value, tuple) else (value, None))
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(left)}, expected integers in range [0, {ndim}) or one "
            f"of {names}"
        )
    return made


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: dict[Any, Any] | None = None,
) -> DeviceMesh:
    """A mesh of the first processes of the world, in the order of their ranks; all of the world call this.

    Arguments:
        device_type: the type of the devices that tensors are to lie on, without a number
        mesh_shape: how many processes each dimension has
        mesh_dim_names: a name for each dimension
        backend_override: backends of some dimensions, by their names or numbers

    Returns: a DeviceMesh.

    Raises: RuntimeError for names that are not one for each dimension, or twice, and for a device type with an index.

    Example:
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("replicas", "parts"))
        >>> mesh.shape, mesh.mesh_dim_names
        ((1, 1), ('replicas', 'parts'))
    """
    shape, names = tuple(mesh_shape), tuple(mesh_dim_names or ())
    if len(set(names)) != len(names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {names}")
    if mesh_dim_names is not None and len(shape) != len(names):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! "
            f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}."
        )
    if device_type and not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}: device.type has none")
    if any(n < 1 for n in shape):
        raise RuntimeError(f"init_device_mesh: {shape} has a dimension without a process")
    ranks = tp.arange(prod(shape), device="cpu").reshape(shape)
    overrides = _overrides(backend_override, len(shape), names) if backend_override is not None else None
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=overrides)
