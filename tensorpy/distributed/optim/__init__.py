"""Optimizers of several processes: states that are spread over them, and steps that they take on their own."""

from __future__ import annotations

from tensorpy.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from tensorpy.distributed.optim.utils import as_functional_optim
from tensorpy.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "as_functional_optim"]
