"""What is not here: devices of a kind that tensorpy does not drive, and parts of torch that it does not have.

A program that names one in passing, in an import, an isinstance or a question whether there is one, gets its answer. To
use one is an error that says what is missing.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tensorpy._C import Tensor


class Absent:
    """A function or class that is not here: it may be imported, subclassed and asked for; a call is an error."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        name = f"{cls.__module__}.{cls.__qualname__}"
        raise NotImplementedError(f"{name} is a name only: tensorpy does not have what it stands for")


def absent(module: str, name: str) -> Any:
    """A name of a module's that raises when it is called."""
    return type(name, (Absent,), {"__module__": module, "__doc__": "A name only: a call is an error."})


class AbsentClass:
    """A class that is not here: it may be subclassed and asked for, and have instances, of which every use is an error.

    Programs make such instances while they are imported (`layout=Replicate()`), for what they may never do.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        kind = type(self)
        raise NotImplementedError(
            f"{kind.__module__}.{kind.__qualname__} is a name only: tensorpy does not have what it stands for"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__getattr__("call")


def absent_class(module: str, name: str) -> Any:
    """A class of a module's whose instances raise when they are used."""
    return type(name, (AbsentClass,), {"__module__": module, "__doc__": "A name only: to use an instance is an error."})


class AbsentDevice:
    """The functions of a device type of which there is no device.

    Seeds go nowhere, nothing is allocated, there is no generator's state to keep; what needs a device raises `error`.
    """

    error: type[Exception]
    name: str

    def __init__(self, name: str, error: type[Exception] = AssertionError) -> None:
        self.name, self.error = name, error

    def needed(self) -> Exception:
        """The error of a call that needs a device."""
        return self.error(f"Torch not compiled with {self.name} enabled: tensorpy has no such device")

    def is_available(self) -> bool:
        """Whether there is a device: there is none."""
        return False

    def device_count(self) -> int:
        """How many devices there are: none."""
        return 0

    def is_initialized(self) -> bool:
        """Whether the driver is open: there is none."""
        return False

    def init(self) -> None:
        """Opens the driver: an error."""
        raise self.needed()

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Whether there is a device with bfloat16: there is none."""
        return False

    def is_tf32_supported(self) -> bool:
        """Whether there is a device with TF32: there is none."""
        return False

    def current_device(self) -> int:
        """The current device's index: an error."""
        raise self.needed()

    def set_device(self, device: Any) -> None:
        """Makes a device the current one: an error, but for a negative index, which stands for none."""
        if not isinstance(device, int) or device >= 0:
            raise self.needed()

    def get_device_name(self, device: Any = None) -> str:
        """A device's name: an error."""
        raise self.needed()

    def get_device_properties(self, device: Any = None) -> Any:
        """What the driver says of a device: an error."""
        raise self.needed()

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """A device's generation: an error."""
        raise self.needed()

    def get_arch_list(self) -> list[str]:
        """The generations that kernels are built for: none."""
        return []

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Whether a device sees another's memory: an error."""
        raise self.needed()

    def synchronize(self, device: Any = None) -> None:
        """Waits for a device: an error."""
        raise self.needed()

    def empty_cache(self) -> None:
        """Gives cached memory back: there is none."""

    def no_memory(self, device: Any = None) -> int:
        """Bytes of memory in use, now or at most: 0."""
        return 0

    memory_allocated = max_memory_allocated = memory_reserved = no_memory

    def memory_stats(self, device: Any = None) -> dict[str, Any]:
        """The allocator's counters: there are none."""
        return {}

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """The allocator's counters as a text: an error."""
        raise self.needed()

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """A device's free and total memory: an error."""
        raise self.needed()

    def reset_memory(self, device: Any = None) -> None:
        """Sets counters of memory back: there are none."""

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Limits the memory in use: an error."""
        raise self.needed()

    def manual_seed(self, seed: int) -> None:
        """Seeds the device's generator: there is none."""

    def seed(self) -> None:
        """Seeds the device's generator from the system: there is none."""

    def initial_seed(self) -> int:
        """The seed of the device's generator: an error."""
        raise self.needed()

    def get_rng_state(self, device: Any = None) -> Tensor:
        """The state of the device's generator: an error."""
        raise self.needed()

    def get_rng_state_all(self) -> list[Tensor]:
        """The states of all the devices' generators: none."""
        return []

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        """Takes the device's generator back to a state: there is none."""

    def set_rng_state_all(self, new_states: Any) -> None:
        """Takes all the devices' generators back to states: there are none."""

    def current_stream(self, device: Any = None) -> Any:
        """The stream that calls go to: an error."""
        raise self.needed()

    default_stream = current_stream

    def stream(self, stream: Any) -> Any:
        """A context in which calls go to a stream; None, the only one that can be given, changes nothing."""
        if stream is not None:
            raise self.needed()
        return nullcontext()

    def is_current_stream_capturing(self) -> bool:
        """Whether calls go into a graph of the device's: there is none."""
        return False

    def set_stream(self, stream: Any) -> None:
        """Makes a stream the current one; None, the only one that can be given, changes nothing."""
        self.stream(stream)


class AbsentMTIA(AbsentDevice):
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


class AbsentContext:
    """A context in which a device is the current one: a negative index stands for none and changes nothing."""

    kind: AbsentDevice

    def __init__(self, device: Any) -> None:
        index = getattr(device, "index", device)
        self.idx = -1 if index is None else index
        self.previous: list[int] = []

    def __enter__(self) -> None:
        self.previous.append(self.kind.current_device() if self.kind.is_available() else -1)
        self.kind.set_device(self.idx)

    def __exit__(self, *unused: object) -> None:
        self.kind.set_device(self.previous.pop())
