"""What programs call "cuda": the OpenCL device where tensorpy.run was told so, otherwise nothing.

Without a device `is_available()` is False, seeds and caches are nothing to care for, and what needs a device raises
AssertionError, as torch does where there is none.
"""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._package import parts
from tensorpy._package.absent import AbsentContext, AbsentDevice, absent
from tensorpy._package.settings import OutOfMemoryError
from tensorpy._tensor.typed import on_absent_device
from tensorpy.cuda import amp, nvtx

_driven = _C.device("cuda").type == _C.device("opencl").type  # Note: as_torch() loads this module anew after it is
if _driven:
    from tensorpy import opencl as _opencl
    from tensorpy.cuda._driver import OpenCLDevice

    _device: AbsentDevice = OpenCLDevice()
    Stream: Any = _opencl.Stream
    Event: Any = _opencl.Event
else:
    _device = AbsentDevice("CUDA")
    Stream = absent(__name__, "Stream")
    Event = absent(__name__, "Event")

is_available = _device.is_available
device_count = _device.device_count
is_initialized = _device.is_initialized
init = _device.init
is_bf16_supported = _device.is_bf16_supported
is_tf32_supported = _device.is_tf32_supported
current_device = _device.current_device
set_device = _device.set_device
get_device_name = _device.get_device_name
get_device_properties = _device.get_device_properties
get_device_capability = _device.get_device_capability
get_arch_list = _device.get_arch_list
can_device_access_peer = _device.can_device_access_peer
synchronize = _device.synchronize
ipc_collect = _device.init

empty_cache = _device.empty_cache
memory_allocated = _device.memory_allocated
max_memory_allocated = _device.max_memory_allocated
memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = _device.memory_reserved
memory_stats = _device.memory_stats
memory_summary = _device.memory_summary
mem_get_info = _device.mem_get_info
reset_peak_memory_stats = reset_accumulated_memory_stats = _device.reset_memory
reset_max_memory_allocated = reset_max_memory_cached = _device.reset_memory
set_per_process_memory_fraction = _device.set_per_process_memory_fraction

reset_peak_host_memory_stats = reset_accumulated_host_memory_stats = _device.reset_memory
memory_stats_as_nested_dict = host_memory_stats = host_memory_stats_as_nested_dict = _device.memory_stats

manual_seed = manual_seed_all = _device.manual_seed
seed = seed_all = _device.seed
initial_seed = _device.initial_seed
get_rng_state = _device.get_rng_state
get_rng_state_all = _device.get_rng_state_all
set_rng_state = _device.set_rng_state
set_rng_state_all = _device.set_rng_state_all
default_generators: tuple[Any, ...] = ()

current_stream = _device.current_stream
default_stream = _device.default_stream
stream = _device.stream
set_stream = _device.set_stream
StreamContext: Any = absent(__name__, "StreamContext")
ExternalStream: Any = absent(__name__, "ExternalStream")
CUDAGraph: Any = absent(__name__, "CUDAGraph")
graph: Any = absent(__name__, "graph")
make_graphed_callables: Any = absent(__name__, "make_graphed_callables")


class device(AbsentContext):
    """A context in which a device is the current one; `device(-1)` and None change nothing.

    Arguments:
        device: a device, its number, or None

    Example:
        >>> with tp.cuda.device(-1):
        ...     pass
    """

    kind = _device


class device_of(device):
    """A context in which a tensor's device is the current one; a tensor elsewhere changes nothing.

    Arguments:
        obj: a tensor

    Example:
        >>> with tp.cuda.device_of(tp.ones(1)):
        ...     pass
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.is_cuda else -1)


def is_current_stream_capturing() -> bool:
    """Whether calls are being recorded into a graph: there is none.

    Returns: bool.

    Example:
        >>> tp.cuda.is_current_stream_capturing()
        False
    """
    return False


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use
    BFloat16Tensor: Any
    BoolTensor: Any
    ByteTensor: Any
    CharTensor: Any
    DoubleTensor: Any
    FloatTensor: Any
    HalfTensor: Any
    IntTensor: Any
    LongTensor: Any
    ShortTensor: Any
else:
    _part = parts(__name__, ("memory", "nccl", "streams"))

    def __getattr__(name: str) -> Any:
        """FloatTensor and its like: types that no tensor has."""
        if name.endswith("Tensor") and not _driven:
            return on_absent_device(name, "CUDA")
        if name in ("memory", "nccl", "streams"):
            return _part(name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = ["OutOfMemoryError", "amp", "nvtx"]


# ---- figures and switches of NVIDIA's own tools: there are none to ask ----

has_half: Any
has_magma: Any
has_half, has_magma = True, False
CudaError: Any
DeferredCudaCallError: Any
CudaError, DeferredCudaCallError = (
    type("CudaError", (RuntimeError,), {}),
    type("DeferredCudaCallError", (Exception,), {}),
)


def _unknown(device: Any = None) -> int:
    """A figure that NVIDIA's management library would know: an error.

    Arguments:
        device: is taken

    Returns: nothing.

    Raises: AssertionError always.

    Example:
        >>> tp.cuda.utilization()
        Traceback (most recent call last):
            ...
        AssertionError: Torch not compiled with CUDA enabled: tensorpy has no such device
    """
    raise _device.needed()


utilization = temperature = power_draw = clock_rate = memory_usage = device_memory_used = _unknown
current_blas_handle = cudart = list_gpu_processes = get_per_process_memory_fraction = _unknown


def get_allocator_backend() -> str:
    """Which allocator there is: the one of its own.

    Returns: str.

    Example:
        >>> tp.cuda.get_allocator_backend()
        'native'
    """
    return "native"


def memory_snapshot(mempool_id: Any = None) -> list[Any]:
    """The allocator's segments: none are told.

    Arguments:
        mempool_id: is taken

    Returns: an empty list.

    Example:
        >>> tp.cuda.memory_snapshot()
        []
    """
    return []


def get_gencode_flags() -> str:
    """The compiler's flags for the generations that kernels are built for: none.

    Returns: str.

    Example:
        >>> tp.cuda.get_gencode_flags()
        ''
    """
    return ""


_sync_debug = 0


def _compile_kernel(kernel_source: str, kernel_name: str, *args: Any, **options: Any) -> Any:
    """A kernel of its source: an error, as there is no compiler for CUDA; library.opencl_kernel builds one for OpenCL.

    Arguments:
        kernel_source: the source
        kernel_name: the function's name

    Raises: AssertionError, always.

    Example:
        >>> tp.cuda._compile_kernel("", "k")
        Traceback (most recent call last):
        ...
        AssertionError: Torch not compiled with CUDA enabled: library.opencl_kernel builds kernels for OpenCL
    """
    raise AssertionError("Torch not compiled with CUDA enabled: library.opencl_kernel builds kernels for OpenCL")


def get_sync_debug_mode() -> int:
    """What was set: calls that wait for a device are not told of.

    Returns: int.

    Example:
        >>> tp.cuda.get_sync_debug_mode()
        0
    """
    return _sync_debug


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Sets it: 0, 1, 2, or "default", "warn", "error".

    Arguments:
        debug_mode: what is kept, and changes nothing

    Example:
        >>> tp.cuda.set_sync_debug_mode("default")
    """
    global _sync_debug
    names = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str) and debug_mode not in names:
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
    _sync_debug = names[debug_mode] if isinstance(debug_mode, str) else int(debug_mode)
