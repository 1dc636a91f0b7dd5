"""Communication hooks of DistributedDataParallel: how a bucket of gradients becomes the same in all processes."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from tensorpy.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from tensorpy.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from tensorpy.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from tensorpy.distributed.algorithms.ddp_comm_hooks import quantization_hooks as quantization

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _plain(hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _power(hook: Any, rank: int, model: Any, state: Any) -> None:
    model.register_comm_hook(powerSGD.PowerSGDState(state, matrix_approximation_rank=rank), hook)


class DDPCommHookType(Enum):
    """Hooks by names: `state` is a process group for all of them."""

    ALLREDUCE = partial(_plain, default.allreduce_hook)
    FP16_COMPRESS = partial(_plain, default.fp16_compress_hook)
    BF16_COMPRESS = partial(_plain, default.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = partial(_plain, quantization.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = partial(_plain, quantization.quantization_perchannel_hook)
    POWER_SGD = partial(_power, powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = partial(_power, powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = partial(_power, powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = partial(_power, powerSGD.batched_powerSGD_hook, 2)
    NOOP = partial(_plain, debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Has one of the hooks carry a DistributedDataParallel's gradients.

    Arguments:
        comm_hook_type: the hook
        model: the DistributedDataParallel
        state: the processes; None takes all
    """
    comm_hook_type.value(model=model, state=state)
