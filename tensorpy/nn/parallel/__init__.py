"""Wrappers that spread a module over devices or processes: of one of either they call the module; several are refused.

Programs and their state dictionaries (`module.weight`) stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorpy import distributed as _processes  # a module in this folder is called distributed, too
from tensorpy.nn.modules.module import Module
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


class DistributedDataParallel(Module):
    """Calls the module; gradients need no averaging over a group of one process, and a group of several is refused.

    Arguments:
        module: the module
        device_ids: at most one device, where the module is
        output_device: the device of the outputs; None takes that of the module
        dim: the dimension; a negative one counts from the last
        broadcast_buffers: is taken: there is one process
        init_sync: is taken: there is one process
        process_group: the processes that share gradients: one
        bucket_cap_mb: is taken: there is one process
        find_unused_parameters: is taken: there is one process

    Example:
        >>> nn.parallel.DistributedDataParallel.__name__
        'DistributedDataParallel'
    """

    device_ids: Any
    dim: int
    find_unused_parameters: bool
    module: Module
    output_device: Any

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: _processes.ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if _processes.get_world_size(process_group) > 1:  # an error without a group
            raise NotImplementedError(
                "DistributedDataParallel averages no gradients of several processes yet: average them after backward, "
                "distributed.all_reduce(p.grad, distributed.ReduceOp.AVG) for each parameter p"
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel: no parameter of the module requires a gradient")
        self.module, self.dim, self.device_ids = module, dim, device_ids
        self.output_device, self.find_unused_parameters = output_device, find_unused_parameters

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which gradients would not be averaged: they never are."""
        yield

    @contextmanager
    def join(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A context in which processes may have unlike numbers of batches: there is one process."""
        yield
