"""The first home of torch.distributed.tensor's names: the same objects."""

from tensorpy.distributed import tensor as _tensor
from tensorpy.distributed.tensor import *  # noqa: F403
from tensorpy.distributed.tensor import DeviceMesh as DeviceMesh
from tensorpy.distributed.tensor import init_device_mesh as init_device_mesh

__all__ = _tensor.__all__
