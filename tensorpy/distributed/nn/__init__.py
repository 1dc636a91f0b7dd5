"""Collectives that record gradients, under the names of torch.distributed.nn (functional.py)."""

from tensorpy.autograd import Function as Function
from tensorpy.distributed.distributed_c10d import ReduceOp as ReduceOp
from tensorpy.distributed.distributed_c10d import group as group
from tensorpy.distributed.nn import functional as functional
from tensorpy.distributed.nn.functional import all_gather as all_gather
from tensorpy.distributed.nn.functional import all_reduce as all_reduce
from tensorpy.distributed.nn.functional import all_to_all as all_to_all
from tensorpy.distributed.nn.functional import all_to_all_single as all_to_all_single
from tensorpy.distributed.nn.functional import broadcast as broadcast
from tensorpy.distributed.nn.functional import gather as gather
from tensorpy.distributed.nn.functional import reduce as reduce
from tensorpy.distributed.nn.functional import reduce_scatter as reduce_scatter
from tensorpy.distributed.nn.functional import scatter as scatter

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip
