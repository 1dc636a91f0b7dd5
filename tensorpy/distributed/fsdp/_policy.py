"""How fully_shard computes and sends: dtypes, and where parts lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes that modules compute and gradients travel in; parts and the optimizer's steps keep theirs.

    Arguments:
        param_dtype: parameters are sent and computed with in this; None: as they are
        reduce_dtype: gradients are sent in this; None: as they come
        output_dtype: what forward returns is made this; None: stays
        cast_forward_inputs: whether floating inputs are made param_dtype

    Example:
        >>> policy = tp.distributed.fsdp.MixedPrecisionPolicy(param_dtype=tp.bfloat16)
        >>> net = tp.distributed.fsdp.fully_shard(nn.Linear(2, 2), mp_policy=policy)
        >>> net.weight.dtype, net(tp.ones(1, 2)).dtype
        (tensorpy.float32, tensorpy.bfloat16)
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts lie where the mesh says.

    Example:
        >>> net = tp.distributed.fsdp.fully_shard(nn.Linear(2, 2), offload_policy=tp.distributed.fsdp.OffloadPolicy())
        >>> isinstance(net, tp.distributed.fsdp.FSDPModule)
        True
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts lie on the host, as all of a mesh of hosts does.

    Arguments:
        pin_memory: whether the memory is pinned

    Example:
        >>> tp.distributed.fsdp.CPUOffloadPolicy().pin_memory
        True
    """

    pin_memory: bool = True
