"""Distributed tensors: one tensor of many processes, under the names of torch.distributed.tensor.

Placements (placement_types.py) say what the processes along each dimension of a mesh have of it; DTensor (_api.py) is
the tensor; _dispatch.py runs operators on parts, by the rules of _families.py; _redistribute.py sends what has to be
sent.
"""

from tensorpy.distributed.device_mesh import DeviceMesh as DeviceMesh
from tensorpy.distributed.device_mesh import init_device_mesh as init_device_mesh
from tensorpy.distributed.tensor._api import DTensor as DTensor
from tensorpy.distributed.tensor._api import distribute_module as distribute_module
from tensorpy.distributed.tensor._api import distribute_tensor as distribute_tensor
from tensorpy.distributed.tensor._api import empty as empty
from tensorpy.distributed.tensor._api import full as full
from tensorpy.distributed.tensor._api import ones as ones
from tensorpy.distributed.tensor._api import rand as rand
from tensorpy.distributed.tensor._api import randn as randn
from tensorpy.distributed.tensor._api import zeros as zeros
from tensorpy.distributed.tensor.placement_types import Partial as Partial
from tensorpy.distributed.tensor.placement_types import Placement as Placement
from tensorpy.distributed.tensor.placement_types import Replicate as Replicate
from tensorpy.distributed.tensor.placement_types import Shard as Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip
