"""The sampler of one of several processes, under the name of a module of its own."""

from __future__ import annotations

from tensorpy.utils.data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
