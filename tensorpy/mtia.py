"""MTIA devices under torch's name for them: there is none."""

from __future__ import annotations

from typing import Any

from tensorpy._package.absent import AbsentContext, AbsentMTIA, absent

_none = AbsentMTIA("MTIA", RuntimeError)

is_available = _none.is_available
device_count = _none.device_count
is_initialized = _none.is_initialized
init = _none.init
is_bf16_supported = _none.is_bf16_supported
current_device = _none.current_device
set_device = _none.set_device
get_device_properties = _none.get_device_properties
get_device_capability = _none.get_device_capability
synchronize = _none.synchronize

empty_cache = _none.empty_cache
memory_allocated = max_memory_allocated = _none.no_memory
memory_stats = _none.memory_stats
reset_peak_memory_stats = _none.reset_memory
record_memory_history = _none.record_memory_history
snapshot = _none.snapshot
graph_pool_handle = _none.graph_pool_handle

manual_seed = manual_seed_all = _none.manual_seed
seed = seed_all = _none.seed
initial_seed = _none.initial_seed
get_rng_state = _none.get_rng_state
get_rng_state_all = _none.get_rng_state_all
set_rng_state = _none.set_rng_state
set_rng_state_all = _none.set_rng_state_all

current_stream = default_stream = _none.current_stream
stream = set_stream = _none.stream
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

    kind = _none
