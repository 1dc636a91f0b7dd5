"""MTIA devices under torch's name for them: there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy._package.absent import AbsentContext, AbsentDevice, AbsentMTIA, absent

_none = AbsentMTIA("MTIA", RuntimeError)

is_available: Callable[..., bool] = _none.is_available
device_count: Callable[..., int] = _none.device_count
is_initialized: Callable[..., bool] = _none.is_initialized
init: Callable[..., None] = _none.init
is_bf16_supported: Callable[..., bool] = _none.is_bf16_supported
current_device: Callable[..., int] = _none.current_device
set_device: Callable[..., None] = _none.set_device
get_device_properties: Callable[..., Any] = _none.get_device_properties
get_device_capability: Callable[..., Any] = _none.get_device_capability
synchronize: Callable[..., None] = _none.synchronize

empty_cache: Callable[..., None] = _none.empty_cache
memory_allocated: Callable[..., int] = _none.no_memory
max_memory_allocated: Callable[..., int] = _none.no_memory
memory_stats: Callable[..., dict[str, Any]] = _none.memory_stats
reset_peak_memory_stats: Callable[..., None] = _none.reset_memory
record_memory_history: Callable[..., None] = _none.record_memory_history
snapshot: Callable[..., dict[str, Any]] = _none.snapshot
graph_pool_handle: Callable[..., Any] = _none.graph_pool_handle

manual_seed: Callable[..., None] = _none.manual_seed
manual_seed_all: Callable[..., None] = _none.manual_seed
seed: Callable[..., None] = _none.seed
seed_all: Callable[..., None] = _none.seed
initial_seed: Callable[..., int] = _none.initial_seed
get_rng_state: Callable[..., Any] = _none.get_rng_state
get_rng_state_all: Callable[..., list[Any]] = _none.get_rng_state_all
set_rng_state: Callable[..., None] = _none.set_rng_state
set_rng_state_all: Callable[..., None] = _none.set_rng_state_all

current_stream: Callable[..., Any] = _none.current_stream
default_stream: Callable[..., Any] = _none.current_stream
stream: Callable[..., Any] = _none.stream
set_stream: Callable[..., Any] = _none.stream
Stream: Any = absent(__name__, "Stream")
Event: Any = absent(__name__, "Event")
MTIAGraph: Any = absent(__name__, "MTIAGraph")
graph: Any = absent(__name__, "graph")


class device(AbsentContext):
    """A context in which a device is the current one; `device(-1)` changes nothing.

    Example:
        >>> tp.mtia.device(0).__class__.__name__
        'device'
    """

    kind: AbsentDevice = _none
