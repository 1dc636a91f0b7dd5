"""What FullyShardedDataParallel is told: strategies, dtypes, how states are made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class ShardingStrategy(Enum):
    """Whether parameters are cut, and whether they stay whole between forward and backward (SHARD_GRAD_OP).

    Example:
        >>> tp.distributed.fsdp.ShardingStrategy.FULL_SHARD.value
        1
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """Is taken: backward sends for the next module's parameters while it computes.

    Example:
        >>> tp.distributed.fsdp.BackwardPrefetch.BACKWARD_PRE.name
        'BACKWARD_PRE'
    """

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """Whether states have whole tensors, or the parts.

    Example:
        >>> tp.distributed.fsdp.StateDictType.FULL_STATE_DICT.value
        1
    """

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """What an optimizer's states are found by: parameters' names, or their numbers.

    Example:
        >>> [each.name for each in tp.distributed.fsdp.OptimStateKeyType]
        ['PARAM_NAME', 'PARAM_ID']
    """

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class MixedPrecision:
    """The dtypes to compute and to send in.

    Arguments:
        param_dtype: of parameters and inputs in forward and backward; None: as they are
        reduce_dtype: that gradients are summed in
        buffer_dtype: of buffers
        keep_low_precision_grads: is taken
        cast_forward_inputs: whether inputs are converted
        cast_root_forward_inputs: the same of the outermost module
        _module_classes_to_ignore: is taken

    Example:
        >>> tp.distributed.fsdp.MixedPrecision(param_dtype=tp.bfloat16).param_dtype
        tensorpy.bfloat16
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass
class CPUOffload:
    """Is taken: parts are on the host.

    Arguments:
        offload_params: whether

    Example:
        >>> tp.distributed.fsdp.CPUOffload().offload_params
        False
    """

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How states are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host

    Example:
        >>> tp.distributed.fsdp.StateDictConfig().offload_to_cpu
        False
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How whole states are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host
        rank0_only: whether the first process alone gets them

    Example:
        >>> tp.distributed.fsdp.FullStateDictConfig(rank0_only=True).rank0_only
        True
    """

    rank0_only: bool = False


class LocalStateDictConfig(StateDictConfig):
    """How states of parts are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host

    Example:
        >>> tp.distributed.fsdp.LocalStateDictConfig().offload_to_cpu
        False
    """


class OptimStateDictConfig(StateDictConfig):
    """How an optimizer's states are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host

    Example:
        >>> tp.distributed.fsdp.OptimStateDictConfig().offload_to_cpu
        False
    """


class FullOptimStateDictConfig(FullStateDictConfig, OptimStateDictConfig):
    """How an optimizer's whole states are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host
        rank0_only: whether the first process alone gets them

    Example:
        >>> tp.distributed.fsdp.FullOptimStateDictConfig().offload_to_cpu
        False
    """


class LocalOptimStateDictConfig(OptimStateDictConfig):
    """How an optimizer's states of parts are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host

    Example:
        >>> tp.distributed.fsdp.LocalOptimStateDictConfig().offload_to_cpu
        False
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """How states of parts are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host
        _use_dtensor: is taken: parts are DTensors

    Example:
        >>> tp.distributed.fsdp.ShardedStateDictConfig().offload_to_cpu
        False
    """

    _use_dtensor: bool = False


class ShardedOptimStateDictConfig(ShardedStateDictConfig, OptimStateDictConfig):
    """How an optimizer's states of parts are made.

    Arguments:
        offload_to_cpu: whether tensors come to the host
        _use_dtensor: is taken: parts are DTensors

    Example:
        >>> tp.distributed.fsdp.ShardedOptimStateDictConfig().offload_to_cpu
        False
    """


@dataclass
class StateDictSettings:
    """What a model's states are made by.

    Arguments:
        state_dict_type: whole tensors or parts
        state_dict_config: and how
        optim_state_dict_config: of its optimizer's

    Example:
        >>> settings = tp.distributed.fsdp.StateDictSettings(tp.distributed.fsdp.StateDictType.SHARDED_STATE_DICT)
        >>> settings.state_dict_config is None
        True
    """

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig | None = None
    optim_state_dict_config: StateDictConfig | None = None
