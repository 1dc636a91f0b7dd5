"""The first home of torch.distributed.fsdp's names: the same objects."""

from tensorpy.distributed.fsdp import CPUOffloadPolicy as CPUOffloadPolicy
from tensorpy.distributed.fsdp import FSDPModule as FSDPModule
from tensorpy.distributed.fsdp import MixedPrecisionPolicy as MixedPrecisionPolicy
from tensorpy.distributed.fsdp import OffloadPolicy as OffloadPolicy
from tensorpy.distributed.fsdp import UnshardHandle as UnshardHandle
from tensorpy.distributed.fsdp import fully_shard as fully_shard
from tensorpy.distributed.fsdp import register_fsdp_forward_method as register_fsdp_forward_method
