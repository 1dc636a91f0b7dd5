"""MTIA devices under torch's name for them: there is none."""

from __future__ import annotations

from typing import Any

from tensorpy._package.absent import AbsentContext, AbsentDevice, absent


class _NoMTIA(AbsentDevice):
    """MTIA's functions: to ask the driver is a RuntimeError, to open it or to keep a generator an AssertionError."""

    def init(self) -> None:
        """Opens the driver: an error."""
        raise AssertionError(str(self.needed()))

    def initial_seed(self) -> int:
        """The seed: an error."""
        raise AssertionError(str(self.needed()))

    def get_rng_state(self, device: Any = None) -> Any:
        """The state of a generator: an error."""
        raise AssertionError(str(self.needed()))

    def get_device_capability(self, device: Any = None) -> Any:
        """A device's generation: an error."""
        raise self.needed()

    def synchronize(self, device: Any = None) -> None:
        """Waits for a device: an error."""
        raise self.needed()

    def empty_cache(self) -> None:
        """Gives back what is kept of a device's memory: an error."""
        raise self.needed()

    def snapshot(self) -> dict[str, Any]:
        """What a device's memory holds: an error."""
        raise self.needed()

    def graph_pool_handle(self) -> Any:
        """A pool of memory for graphs: an error."""
        raise self.needed()

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Whether such devices have bfloat16: they would."""
        return True

    def record_memory_history(self, enabled: str | None = "all", stacks: str = "python", max_entries: int = 0) -> None:
        """Records nothing: there is no memory."""


_none = _NoMTIA("MTIA", RuntimeError)

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
