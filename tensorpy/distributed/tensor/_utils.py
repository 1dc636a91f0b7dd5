"""Where a part lies in the whole, by PyTorch's name."""

from __future__ import annotations

from collections.abc import Sequence

from tensorpy.distributed.device_mesh import DeviceMesh
from tensorpy.distributed.tensor._spec import box
from tensorpy.distributed.tensor.placement_types import Placement


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and its first element in the whole.

    Arguments:
        global_shape: the whole's
        mesh: the processes
        placements: what they have, for each dimension of the mesh
    """
    return box(global_shape, mesh, placements)
