"""The functions of torch.cuda over OpenCL's devices, where programs call those "cuda"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorpy import _C, opencl
from tensorpy._C import Tensor
from tensorpy._package.absent import AbsentDevice


@dataclass(frozen=True)
class DeviceProperties:
    """What a device says of itself under torch.cuda's names; bytes."""

    name: str
    total_memory: int
    multi_processor_count: int
    major: int = 8  # the generation from which programs use what OpenCL's devices have too
    minor: int = 0
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048


class OpenCLDevice(AbsentDevice):
    """The device called "cuda": OpenCL's functions, and nothing where CUDA has what OpenCL has not."""

    def __init__(self) -> None:
        super().__init__("CUDA")

    is_available: Any = staticmethod(opencl.is_available)
    device_count: Any = staticmethod(opencl.device_count)
    current_device: Any = staticmethod(opencl.current_device)
    get_device_name: Any = staticmethod(opencl.get_device_name)
    synchronize: Any = staticmethod(opencl.synchronize)
    empty_cache: Any = staticmethod(opencl.empty_cache)
    reset_memory: Any = staticmethod(opencl.reset_peak_memory_stats)
    current_stream: Any = staticmethod(opencl.current_stream)
    default_stream: Any = staticmethod(opencl.default_stream)
    stream: Any = staticmethod(opencl.stream)
    memory_allocated: Any = staticmethod(opencl.memory_allocated)
    max_memory_allocated: Any = staticmethod(opencl.max_memory_allocated)
    memory_reserved: Any = staticmethod(opencl.memory_reserved)

    set_stream: Any = staticmethod(opencl.set_stream)

    def is_initialized(self) -> bool:
        return True

    def init(self) -> None:
        pass

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return including_emulation

    def set_device(self, device: Any) -> None:
        if not isinstance(device, int) or device >= 0:
            opencl.set_device(device)

    def get_device_properties(self, device: Any = None) -> Any:
        found = opencl.get_device_properties(device)
        return DeviceProperties(found.name, found.total_memory, found.multi_processor_count)

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return (DeviceProperties.major, DeviceProperties.minor)

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        return False

    def memory_stats(self, device: Any = None) -> dict[str, Any]:
        """The counters under the names that programs look for."""
        stats = opencl.memory_stats(device)
        return {
            "allocated_bytes.all.current": stats["allocated"],
            "allocated_bytes.all.peak": stats["peak"],
            "reserved_bytes.all.current": stats["reserved"],
            "reserved_bytes.all.peak": stats["reserved"],
            "num_alloc_retries": stats["retries"],
            "num_ooms": 0,
        }

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        return opencl.memory_summary(device)

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """The free and the total memory, of what tensorpy may take."""
        total, stats = opencl.get_device_properties(device).total_memory, opencl.memory_stats(device)
        total = stats["limit"] or total
        return (total - stats["allocated"], total)

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        total = opencl.get_device_properties(device).total_memory
        opencl.set_memory_limit(int(total * fraction), device)

    def _generator(self, device: Any = None) -> Any:
        return _C._default_generator("cuda" if device is None else device)

    def manual_seed(self, seed: int) -> None:
        for index in range(opencl.device_count()):
            opencl.manual_seed(seed, index)

    def seed(self) -> None:
        self.manual_seed(_C.default_generator.seed())

    def initial_seed(self) -> int:
        return int(self._generator().initial_seed())

    def get_rng_state(self, device: Any = None) -> Tensor:
        state: Tensor = self._generator(device).get_state()
        return state

    def get_rng_state_all(self) -> list[Tensor]:
        return [self.get_rng_state(index) for index in range(opencl.device_count())]

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        self._generator(device).set_state(new_state)

    def set_rng_state_all(self, new_states: Any) -> None:
        for index, state in enumerate(new_states):
            self.set_rng_state(state, index)
