"""fully_shard: models that no process has whole, under the names of torch.distributed.fsdp."""

from __future__ import annotations

from typing import Any

from tensorpy.distributed.fsdp._fully_shard import FSDPModule as FSDPModule
from tensorpy.distributed.fsdp._fully_shard import UnshardHandle as UnshardHandle
from tensorpy.distributed.fsdp._fully_shard import fully_shard as fully_shard
from tensorpy.distributed.fsdp._fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from tensorpy.distributed.fsdp._policy import CPUOffloadPolicy as CPUOffloadPolicy
from tensorpy.distributed.fsdp._policy import MixedPrecisionPolicy as MixedPrecisionPolicy
from tensorpy.distributed.fsdp._policy import OffloadPolicy as OffloadPolicy

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("FullyShardedDataParallel", "FSDP"):
        raise AttributeError(f"{name} is not here: fully_shard(module) does what it does, in place")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
