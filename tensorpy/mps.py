"""Apple's devices, of which tensorpy drives none: the names, and the answers that torch gives on another machine."""

from __future__ import annotations

from typing import Any

from tensorpy._package.absent import AbsentDevice, absent

_none = AbsentDevice("MPS", RuntimeError)

is_available = _none.is_available
device_count = _none.device_count
manual_seed = _none.manual_seed
seed = _none.seed
Event: Any = absent(__name__, "Event")
# Unlike their kin of CUDA these are errors in torch too.
get_rng_state = _none.get_rng_state
synchronize = _none.synchronize
set_per_process_memory_fraction = _none.set_per_process_memory_fraction
empty_cache = _none.init
current_allocated_memory = driver_allocated_memory = recommended_max_memory = _none.initial_seed
