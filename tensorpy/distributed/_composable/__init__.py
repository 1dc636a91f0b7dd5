"""What changes a module in place, one after another: checkpoint, fully_shard, replicate."""

from tensorpy.distributed._composable.checkpoint_activation import checkpoint as checkpoint
from tensorpy.distributed._composable.contract import contract as contract
from tensorpy.distributed._composable.replicate import replicate as replicate
from tensorpy.distributed.fsdp import fully_shard as fully_shard
