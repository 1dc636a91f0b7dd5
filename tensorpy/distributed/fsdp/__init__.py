"""fully_shard and FullyShardedDataParallel: models that no process has whole, as torch.distributed.fsdp names them."""

from tensorpy.distributed.fsdp import wrap as wrap
from tensorpy.distributed.fsdp._fully_shard import FSDPModule as FSDPModule
from tensorpy.distributed.fsdp._fully_shard import UnshardHandle as UnshardHandle
from tensorpy.distributed.fsdp._fully_shard import fully_shard as fully_shard
from tensorpy.distributed.fsdp._fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from tensorpy.distributed.fsdp._policy import CPUOffloadPolicy as CPUOffloadPolicy
from tensorpy.distributed.fsdp._policy import MixedPrecisionPolicy as MixedPrecisionPolicy
from tensorpy.distributed.fsdp._policy import OffloadPolicy as OffloadPolicy
from tensorpy.distributed.fsdp.api import BackwardPrefetch as BackwardPrefetch
from tensorpy.distributed.fsdp.api import CPUOffload as CPUOffload
from tensorpy.distributed.fsdp.api import FullOptimStateDictConfig as FullOptimStateDictConfig
from tensorpy.distributed.fsdp.api import FullStateDictConfig as FullStateDictConfig
from tensorpy.distributed.fsdp.api import LocalOptimStateDictConfig as LocalOptimStateDictConfig
from tensorpy.distributed.fsdp.api import LocalStateDictConfig as LocalStateDictConfig
from tensorpy.distributed.fsdp.api import MixedPrecision as MixedPrecision
from tensorpy.distributed.fsdp.api import OptimStateDictConfig as OptimStateDictConfig
from tensorpy.distributed.fsdp.api import OptimStateKeyType as OptimStateKeyType
from tensorpy.distributed.fsdp.api import ShardedStateDictConfig as ShardedStateDictConfig
from tensorpy.distributed.fsdp.api import ShardingStrategy as ShardingStrategy
from tensorpy.distributed.fsdp.api import StateDictConfig as StateDictConfig
from tensorpy.distributed.fsdp.api import StateDictSettings as StateDictSettings
from tensorpy.distributed.fsdp.api import StateDictType as StateDictType
from tensorpy.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel
from tensorpy.distributed.fsdp.fully_sharded_data_parallel import (
    ShardedOptimStateDictConfig as ShardedOptimStateDictConfig,
)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "FullyShardedDataParallel", "LocalOptimStateDictConfig", "LocalStateDictConfig",
    "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType", "UnshardHandle", "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip
