"""A GradScaler whose processes go on together: one that finds an infinity tells the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tensorpy.amp.grad_scaler import GradScaler
from tensorpy.distributed import collectives
from tensorpy.distributed.reduce_op import ReduceOp
from tensorpy.distributed.tensor import DTensor

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A GradScaler for gradients that lie in parts.

    Arguments:
        device: the type of device
        init_scale: the first factor
        backoff_factor: what it is multiplied by where a gradient is not finite
        growth_factor: what it is multiplied by after growth_interval steps
        growth_interval: how many steps without infinities
        enabled: whether anything is done
        process_group: the processes; None takes all

    Example:
        >>> tp.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler("cpu", init_scale=4.0).get_scale()
        4.0
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group

    process_group: Any

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> dict[Any, Any]:
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        parts = [SimpleNamespace(grad=g._local_tensor if isinstance(g, DTensor) else g) for g in grads]
        own = SimpleNamespace(param_groups=[{"params": parts}])  # each process scales its parts
        for found in super()._unscale_grads_(own, inv_scale, found_inf, allow_fp16).values():
            found_inf.add_(found.to(found_inf.device))
        collectives.all_reduce(found_inf, ReduceOp.MAX, self.process_group)
        return {found_inf.device: found_inf}
