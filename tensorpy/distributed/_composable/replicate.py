"""replicate: DistributedDataParallel in place, without a module around."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorpy.distributed._composable.contract import _State, contract
from tensorpy.nn import Module
from tensorpy.nn.parallel import DistributedDataParallel


class _ReplicateState(_State):
    """The DistributedDataParallel of a module."""

    _ddp: DistributedDataParallel


class DDP:
    """What a module has after replicate."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether backward averages gradients.

        Arguments:
            requires_gradient_sync: whether
        """
        replicate.state(self)._ddp.require_backward_grad_sync = requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """DistributedDataParallel.register_comm_hook."""
        replicate.state(self)._ddp.register_comm_hook(*args, **kwargs)


@contract(_ReplicateState)
def replicate(
    module: Module,
    ignored_modules: Iterable[Module] | None = None,
    device_mesh: Any = None,
    process_group: Any = None,
    **kwargs: Any,
) -> Module:
    """Averages a module's gradients over all processes, each of which has a copy: DistributedDataParallel in place.

    Arguments:
        module: the module, which is changed in place: it keeps its names
        ignored_modules: modules inside it whose gradients stay each process's own
        device_mesh: the processes, as a mesh of one dimension
        process_group: the processes; None takes all
        kwargs: options of DistributedDataParallel

    Example:
        >>> from tensorpy.distributed._composable import replicate
        >>> tp.distributed.init_process_group(rank=0, world_size=1)
        >>> net = replicate(nn.Linear(2, 2))
        >>> net(tp.ones(1, 2)).sum().backward()
        >>> tp.distributed.destroy_process_group()
    """
    left = {id(p) for each in ignored_modules or () for p in each.parameters()}
    names = [name for name, p in module.named_parameters() if id(p) in left]
    if names:
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
    ddp = DistributedDataParallel(module, process_group=process_group, device_mesh=device_mesh, **kwargs)
    replicate.state(module)._ddp = ddp
    module.register_forward_pre_hook(lambda _, args, kwargs: ddp._before(args, kwargs), with_kwargs=True)
    module.register_forward_hook(lambda _, args, output: ddp._after(output))
    kind = type(module)
    made: Any = type(f"DDP{kind.__name__}", (DDP, kind), {"__module__": kind.__module__})
    module.__class__ = made
    return module
