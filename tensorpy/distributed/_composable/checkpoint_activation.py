"""checkpoint: a module whose forward runs again in backward, in place of what it would keep."""

from __future__ import annotations

from typing import Any

from tensorpy.distributed._composable.contract import contract
from tensorpy.nn import Module
from tensorpy.utils.checkpoint import checkpoint as _checkpoint


class _Recomputed:
    """What a module's class gets in front. All of a call runs again: what fully_shard adds to it gathers parameters."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        said = self.__dict__["_checkpoint_options"]
        return _checkpoint(super().__call__, *args, use_reentrant=False, **said, **kwargs)  # type: ignore[misc]  # pyright: ignore


@contract()
def checkpoint(module: Module, **kwargs: Any) -> Module:
    """Has a module's forward keep its inputs alone: backward runs it again.

    Arguments:
        module: the module, which is changed in place
        kwargs: options of tensorpy.utils.checkpoint.checkpoint, but for use_reentrant

    Example:
        >>> from tensorpy.distributed._composable import checkpoint
        >>> net = checkpoint(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> net(tp.ones(1, 2)).sum().backward()
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError("checkpoint: a module in place is run again without reentrance: use_reentrant=False")
    kind = type(module)
    module.__dict__["_checkpoint_options"] = kwargs
    made: Any = type(kind.__name__, (_Recomputed, kind), {"__module__": kind.__module__})
    module.__class__ = made
    return module
