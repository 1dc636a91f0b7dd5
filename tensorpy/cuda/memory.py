"""What cuda says of memory by the module that programs import it from, and what only a driver could say."""

from __future__ import annotations

from typing import Any, NoReturn

from tensorpy import cuda as _cuda
from tensorpy._package.absent import absent

_SHARED = """
    empty_cache max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached
    memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary host_memory_stats
    host_memory_stats_as_nested_dict reset_accumulated_host_memory_stats reset_accumulated_memory_stats
    reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats reset_peak_memory_stats
    set_per_process_memory_fraction
"""


def __getattr__(name: str) -> Any:
    if name in _SHARED.split():
        return getattr(_cuda, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _missing(*args: Any, **options: Any) -> NoReturn:
    raise AttributeError("CUDA's allocator is not here: it has no history, no snapshot and no settings")


_record_memory_history = _dump_snapshot = _snapshot = _save_memory_usage = _save_segment_usage = _missing
get_allocator_backend = change_current_allocator = _missing


def get_per_process_memory_fraction(device: Any = None) -> float:
    """How much of a device's memory the process may have: an error, as there is no device.

    Arguments:
        device: the device

    Returns: float.

    Raises: AssertionError, always.

    Example:
        >>> tp.cuda.memory.get_per_process_memory_fraction()
        Traceback (most recent call last):
        ...
        AssertionError: Torch not compiled with CUDA enabled: there is no memory of its own to share
    """
    raise AssertionError("Torch not compiled with CUDA enabled: there is no memory of its own to share")


CUDAPluggableAllocator: Any = absent(__name__, "CUDAPluggableAllocator")
MemPool: Any = absent(__name__, "MemPool")
use_mem_pool: Any = absent(__name__, "use_mem_pool")
caching_allocator_alloc: Any = absent(__name__, "caching_allocator_alloc")
caching_allocator_delete: Any = absent(__name__, "caching_allocator_delete")
