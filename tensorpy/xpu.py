"""Intel's devices under torch's name for them: there is none, such a device is one of tensorpy.opencl's."""

from __future__ import annotations

from typing import Any

from tensorpy._package.absent import AbsentContext, AbsentDevice, absent

_none = AbsentDevice("XPU")

is_available = _none.is_available
device_count = _none.device_count
is_initialized = _none.is_initialized
init = _none.init
is_bf16_supported = _none.is_bf16_supported
is_tf32_supported = _none.is_tf32_supported
current_device = _none.current_device
set_device = _none.set_device
get_device_name = _none.get_device_name
get_device_properties = _none.get_device_properties
get_device_capability = _none.get_device_capability
get_arch_list = _none.get_arch_list
can_device_access_peer = _none.can_device_access_peer
synchronize = _none.synchronize

empty_cache = _none.empty_cache
memory_allocated = max_memory_allocated = _none.no_memory
memory_reserved = max_memory_reserved = _none.no_memory
memory_stats = _none.memory_stats
mem_get_info = _none.mem_get_info
reset_peak_memory_stats = reset_accumulated_memory_stats = _none.reset_memory
set_per_process_memory_fraction = _none.set_per_process_memory_fraction

manual_seed = manual_seed_all = _none.manual_seed
seed = seed_all = _none.seed
initial_seed = _none.initial_seed
get_rng_state = _none.get_rng_state
get_rng_state_all = _none.get_rng_state_all
set_rng_state = _none.set_rng_state
set_rng_state_all = _none.set_rng_state_all
default_generators: tuple[Any, ...] = ()

current_stream = _none.current_stream
stream = set_stream = _none.stream
is_current_stream_capturing = _none.is_current_stream_capturing
Stream: Any = absent(__name__, "Stream")
Event: Any = absent(__name__, "Event")


class device(AbsentContext):
    """A context in which a device is the current one; `device(-1)` changes nothing.

    Example:
        >>> tp.xpu.device(0).__class__.__name__
        'device'
    """

    kind = _none


class device_of(device):
    """A context in which a tensor's device is the current one; a tensor elsewhere changes nothing.

    Arguments:
        obj: the object

    Example:
        >>> tp.xpu.device_of(tp.ones(2)).__class__.__name__
        'device_of'
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)
