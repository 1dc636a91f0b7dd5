"""parallelize_module: a plan says which submodules are cut how."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from tensorpy.distributed.device_mesh import DeviceMesh, _mesh_resources
from tensorpy.distributed.tensor.parallel.style import ParallelStyle
from tensorpy.nn import Module


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Cuts the parameters of a module and of those inside it by a plan, in place.

    Arguments:
        module: the module
        device_mesh: the processes, of one dimension; those of the mesh whose context this is in, if nothing is said
        parallelize_plan: a style for the module, or styles by names of submodules; `*` stands for any part of a name
        src_data_rank: whose parameters they are, by its rank in the mesh; None: each process cuts its own

    Returns: the module.

    Raises: ValueError for a mesh of several dimensions, TypeError for what is no plan.

    Example:
        >>> from tensorpy.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        >>> mesh = tp.distributed.init_device_mesh("cpu", (1,))
        >>> net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> net = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        >>> net(tp.ones(1, 2)).shape
        tensorpy.Size([1, 2])
    """
    mesh = _mesh_resources.get_current_mesh() if device_mesh is None else device_mesh
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module: expects a mesh of one dimension, a slice of {mesh}")
    if parallelize_plan is None:
        warnings.warn("parallelize_module: no parallelize_plan is given, and nothing is done", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        found = _named(module, path.split(".") if path else [])
        if not found:
            warnings.warn(f"parallelize_module: no submodule is named {path!r}", stacklevel=2)
        for each in found:
            parallelize_module(each, mesh, style, src_data_rank=src_data_rank)
    return module


def _named(module: Any, path: list[str]) -> list[Module]:
    """The submodules at the end of a path."""
    if not path:
        return [module]
    children = [child for name, child in module.named_children() if fnmatch(name, path[0])]
    return [found for child in children for found in _named(child, path[1:])]
