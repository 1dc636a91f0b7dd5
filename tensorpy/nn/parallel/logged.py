"""What a DistributedDataParallel tells a program that logs: its settings, its buckets, its times."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensorpy.nn.modules.batchnorm import SyncBatchNorm

if TYPE_CHECKING:
    from tensorpy.nn.parallel.distributed import DistributedDataParallel

_C_NAMES = {"float32": "float", "float64": "double"}
_OF_WORLDS = ("MASTER_ADDR", "MASTER_PORT", "TORCH_DISTRIBUTED_DEBUG", "CUDA_VISIBLE_DEVICES")
_OF_GLOO = ("GLOO_SOCKET_IFNAME", "GLOO_DEVICE_TRANSPORT")
_OF_NCCL = ("NCCL_TOPO_DUMP_FILE", "NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "TORCH_NCCL_ASYNC_ERROR_HANDLING")


def _variable(name: str) -> str:
    return os.environ.get(name, "N/A")


def _dump_DDP_relevant_env_vars() -> None:
    """Prints the variables of the environment that say how processes meet, one a line: env:NAME=value or N/A."""
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", *_OF_WORLDS, *_OF_GLOO, *_OF_NCCL)
    print("".join(f"env:{name}={_variable(name)}\n" for name in names))


def _listed(numbers: Any, between: str = ", ") -> str:
    return between.join(map(str, numbers))


def _of_buckets(ddp: DistributedDataParallel) -> dict[str, Any]:
    reducer = ddp.reducer
    sizes = _listed(reducer.bucket_sizes())
    said: dict[str, Any] = {
        "num_buckets_reduced": len(reducer.bucket_sizes()),
        "bucket_cap_bytes": ddp._caps[-1],
        "bucket_sizes": sizes,
        "unused_parameter_size": 0,
        "has_rebuilt_buckets": reducer.has_rebuilt_buckets,
    }
    if reducer.last_order:
        said["prev_iteration_grad_ready_order_indices"] = _listed(reducer.last_order)
    if reducer.has_rebuilt_buckets:
        members = reducer.bucket_members()
        said["rebuilt_bucket_sizes"] = sizes
        said["rebuilt_per_bucket_param_indices"] = _listed(_listed(each, " ") for each in members)
    return said


def data_of(ddp: DistributedDataParallel) -> dict[str, Any]:
    """The whole of it, by PyTorch's names."""
    parameters, reducer = [p for p in ddp._module_parameters if p.requires_grad], ddp.reducer
    names = {str(p.dtype).rpartition(".")[2] for p in parameters}
    return {
        "device_ids": _listed(ddp.device_ids or ()),
        "output_device": -1 if ddp.output_device is None else ddp.output_device,
        "dtypes": ", ".join(sorted(_C_NAMES.get(name, name) for name in names)),
        "is_multi_device_module": False,
        "has_sync_bn": any(isinstance(each, SyncBatchNorm) for each in ddp.module.modules()),
        **{name.lower(): _variable(name) for name in (*_OF_WORLDS, *_OF_GLOO)},
        "gloo_num_threads": 1,  # that move messages along
        "world_size": ddp.process_group.size(),
        "rank": ddp.process_group.rank(),
        "backend_name": ddp.process_group.name(),
        "module_name": type(ddp.module).__name__,
        "num_parameter_tensors": len(parameters),
        "total_parameter_size_bytes": sum(p.nbytes for p in parameters),
        "find_unused_parameters": ddp.find_unused_parameters,
        "gradient_as_bucket_view": ddp.gradient_as_bucket_view,
        "broadcast_buffers": ddp.forward_sync_buffers,
        "static_graph": ddp.static_graph,
        **_of_buckets(ddp),
        **reducer.times.said(),
        "iteration": reducer.times.iteration,
        **({"comm_hook": reducer.hook_name} if reducer.hook_name else {}),
        **({"has_error": True, "error": reducer.error} if reducer.error else {}),
    }
