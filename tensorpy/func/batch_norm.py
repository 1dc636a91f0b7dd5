"""Batch normalization without running statistics, which a transform could not write."""

from __future__ import annotations

from tensorpy.nn.modules.batchnorm import _BatchNorm
from tensorpy.nn.modules.module import Module

__all__ = ["replace_all_batch_norm_modules_"]


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Takes the running statistics from all batch normalizations of a module, which it returns.

    Arguments:
        root: the module

    Returns: the module.

    Example:
        >>> model = tp.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(2)))
        >>> model[0].track_running_stats
        False
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
