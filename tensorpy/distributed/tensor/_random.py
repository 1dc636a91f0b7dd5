"""Random numbers of distributed tensors: those of the whole tensor, of which each process keeps its part.

Element i of a draw depends on the generator's seed and position and on i, so all processes draw alike from generators
that stand alike. The first draw on a mesh gives all of its processes the state of the first one's generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorpy as tp
from tensorpy._C import Tensor, default_generator
from tensorpy.distributed import collectives
from tensorpy.distributed.device_mesh import DeviceMesh
from tensorpy.distributed.tensor._spec import Placements, Spec, box
from tensorpy.distributed.tensor.placement_types import Partial, Replicate
from tensorpy.utils._python_dispatch import get_alias_info


def agree(mesh: DeviceMesh) -> None:
    """Once for each mesh: the first process's generator is all processes'."""
    if getattr(mesh, "_has_drawn", False) or mesh.get_coordinate() is None:
        return
    state = default_generator.get_state()
    for mesh_dim in range(mesh.ndim):
        collectives.broadcast(state, group=mesh.get_group(mesh_dim), group_src=0)
    default_generator.set_state(state)
    mesh._has_drawn = True  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def cut(whole: Tensor, mesh: DeviceMesh, placements: Placements) -> Tensor:
    """This process's part, with memory of its own."""
    sizes, begins = box(whole.shape, mesh, placements)
    if sizes == tuple(whole.shape):
        return whole
    if mesh.get_coordinate() is None:
        return whole.new_empty(0)
    part = whole
    for dim, (size, begin) in enumerate(zip(sizes, begins, strict=True)):
        part = part.narrow(dim, begin, size)
    return part.clone(memory_format=tp.contiguous_format)


def _whole_like(spec: Spec, tensor: Any) -> Tensor:
    return tp.empty(spec.shape, dtype=spec.dtype, device=tensor._local_tensor.device)


def _without_partial(placements: Placements) -> Placements:
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


def _drop(func: Any, given: dict[str, Any], tensor: Any, spec: Spec, make: Callable[[Tensor, Spec], Any]) -> Any:
    """Dropout, which returns what is kept, too: that is drawn for the whole tensor, and scales this process's part."""
    rest = list(given.values())[1:]
    scale, kept = func(tp.ones(spec.shape, dtype=spec.dtype, device=tensor._local_tensor.device), *rest)
    local = tensor._local_tensor * cut(scale, spec.mesh, spec.placements)
    mask = cut(kept, spec.mesh, spec.placements)
    return make(local, spec), make(mask, Spec(spec.mesh, spec.placements, spec.shape, spec.stride, mask.dtype))


def draw(
    func: Any, given: dict[str, Any], tensors: Sequence[Any], specs: Sequence[Spec], make: Callable[[Tensor, Spec], Any]
) -> Any:
    """An operator that draws numbers for each element of one tensor; None: it is none of these.

    Arguments:
        func: the overload
        given: its arguments by name
        tensors: those that are tensors
        specs: what is known of them
        make: makes a distributed tensor
    """
    if len(tensors) != 1 or tensors[0] is not next(iter(given.values())):
        return None
    (tensor,), (spec,) = tensors, specs
    name, rest = func._opname, dict(list(given.items())[1:])
    if any(isinstance(p, Partial) for p in spec.placements) and not name.endswith("_like"):
        raise RuntimeError(f"{func}: numbers are drawn for elements, not for parts of sums: {spec.placements}")
    agree(spec.mesh)
    if len(get_alias_info(func).outs) == 2:
        return _drop(func, given, tensor, spec, make)
    if name.endswith("_"):
        whole = func(_whole_like(spec, tensor), **rest)
        tensor._local_tensor.copy_(cut(whole, spec.mesh, spec.placements))
        return tensor
    if name.endswith("_like"):
        placements = _without_partial(spec.placements)
        whole = func(_whole_like(spec, tensor), **rest)
        made = Spec(spec.mesh, placements, tuple(whole.shape), tuple(whole.stride()), whole.dtype)
        return make(cut(whole, spec.mesh, placements), made)
    return None
