"""Layers whose parameters are cut by rule, under the names of torch.distributed.tensor.parallel."""

from tensorpy.distributed.tensor._loss_rules import loss_parallel as loss_parallel
from tensorpy.distributed.tensor.parallel.api import parallelize_module as parallelize_module
from tensorpy.distributed.tensor.parallel.style import ColwiseParallel as ColwiseParallel
from tensorpy.distributed.tensor.parallel.style import ParallelStyle as ParallelStyle
from tensorpy.distributed.tensor.parallel.style import PrepareModuleInput as PrepareModuleInput
from tensorpy.distributed.tensor.parallel.style import PrepareModuleInputOutput as PrepareModuleInputOutput
from tensorpy.distributed.tensor.parallel.style import PrepareModuleOutput as PrepareModuleOutput
from tensorpy.distributed.tensor.parallel.style import RowwiseParallel as RowwiseParallel
from tensorpy.distributed.tensor.parallel.style import SequenceParallel as SequenceParallel

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip
