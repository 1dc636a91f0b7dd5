"""Wrappers that spread a module over devices or processes: DataParallel calls it, on the device that it is on.

Programs and their state dictionaries (`module.weight`) stay as they are.
"""

from __future__ import annotations

from typing import Any

from tensorpy.nn.modules.module import Module
from tensorpy.nn.parallel.distributed import DistributedDataParallel
from tensorpy.nn.parallel.functions import gather, parallel_apply, replicate, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "gather", "parallel_apply", "replicate", "scatter"]


class DataParallel(Module):
    """Calls the module, on the device that it is on.

    Arguments:
        module: the module
        device_ids: at most one device, where the module is
        output_device: the device of the outputs; None takes that of the module
        dim: the dimension; a negative one counts from the last

    Example:
        >>> nn.DataParallel(nn.Linear(2, 3))(tp.ones(4, 2)).shape
        tensorpy.Size([4, 3])
    """

    dim: int
    module: Module
    output_device: Any

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim, self.output_device = module, dim, output_device
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
