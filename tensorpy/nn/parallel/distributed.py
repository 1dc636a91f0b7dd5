"""DistributedDataParallel, where PyTorch has it."""

from __future__ import annotations

from tensorpy.nn.parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
