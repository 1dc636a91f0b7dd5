"""Switches and questions of torch's that have one answer here, and older ways to say what has another name."""

from __future__ import annotations

import warnings
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._C import dtype as _dtype
from tensorpy._package import precision as precisions
from tensorpy._tensor import torch_function, typed

# What tensorpy raises where memory runs out; programs catch it by this name.
OutOfMemoryError = MemoryError

has_mkl = False
has_lapack = True
has_openmp = True
legacy_contiguous_format = _C.contiguous_format

_PRECISIONS = ("highest", "high", "medium")
_warn_always = False


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was told: "highest" at first.

    Returns: str.

    Raises: RuntimeError where a setting of `fp32_precision` says otherwise.

    Example:
        >>> tp.get_float32_matmul_precision()
        'highest'
    """
    return precisions.get_matmul()


def set_float32_matmul_precision(precision: str) -> None:
    """Says how exact products of float32 must be: kept, and without effect, as they are always exact to float32.

    Arguments:
        precision: 'highest', 'high' or 'medium'; products are float32's here in each

    Example:
        >>> tp.set_float32_matmul_precision("highest")
    """
    if precision not in _PRECISIONS:
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium': nothing is changed", stacklevel=2)
    else:
        precisions.put_matmul(precision)


_warns_only = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Whether operators must give the same bits from run to run: one that cannot (tagged `nondeterministic_bitwise`)
    raises RuntimeError, or warns under `warn_only`. The CPU's kernels always do.

    Arguments:
        mode: whether they are

    Example:
        >>> tp.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    if not isinstance(warn_only, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'warn_only' must be bool, not {type(warn_only).__name__}"
        )
    global _warns_only
    _warns_only = warn_only
    _C._set_determinism((1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms is on, as an error or as a warning.

    Returns: bool.

    Example:
        >>> tp.are_deterministic_algorithms_enabled()
        False
    """
    return _C._determinism() != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms is on with warn_only.

    Returns: bool.

    Example:
        >>> tp.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _warns_only


def get_deterministic_debug_mode() -> int:
    """What use_deterministic_algorithms is set to: 0 for off, 1 for a warning, 2 for an error.

    Returns: int.

    Example:
        >>> tp.get_deterministic_debug_mode()
        0
    """
    if not are_deterministic_algorithms_enabled():
        return 0
    return 1 if is_deterministic_algorithms_warn_only_enabled() else 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by a number, or "default", "warn" or "error".

    Arguments:
        debug_mode: 0 or 'default', 1 or 'warn', 2 or 'error'

    Example:
        >>> tp.set_deterministic_debug_mode("default")
    """
    modes = {"default": 0, "warn": 1, "error": 2}
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be a str or an int, but got {type(debug_mode)}")
    mode = modes.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        choices = "one of `default`, `warn`, `error`" if isinstance(debug_mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {choices}, but got {debug_mode}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def set_default_tensor_type(t: Any, /) -> None:
    """set_default_dtype by a type of tensors, FloatTensor or another of floating point, or by its name.

    Arguments:
        t: a type of tensors, or its name

    Example:
        >>> tp.set_default_tensor_type(tp.FloatTensor)
    """
    chosen = typed.named(t) if isinstance(t, str) else t
    if not isinstance(chosen, typed.TensorType):
        raise TypeError(f"set_default_tensor_type: expected a type of tensors or its name, not {t!r}")
    if chosen.missing is not None or (isinstance(t, str) and ".cuda." in t):
        missing = chosen.missing or "CUDA"
        raise TypeError(f"type {t} not available: Torch not compiled with {missing} enabled")
    if not chosen.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C.set_default_dtype(chosen.dtype)


def get_num_interop_threads() -> int:
    """How many calls run beside each other of themselves: one.

    Returns: int.

    Example:
        >>> tp.get_num_interop_threads() >= 1
        True
    """
    return 1


def set_num_interop_threads(num: int, /) -> None:
    """Nothing but a check: calls run where they are made.

    Arguments:
        num: the number

    Example:
        >>> tp.set_num_interop_threads(2)  # doctest: +SKIP
    """
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def set_flush_denormal(mode: bool, /) -> bool:
    """Whether the treatment of denormal numbers could be set: it cannot, they are kept.

    Arguments:
        mode: whether they are

    Returns: bool.

    Example:
        >>> tp.set_flush_denormal(False)
        True
    """
    return not mode


def is_warn_always_enabled() -> bool:
    """What set_warn_always was told.

    Returns: bool.

    Example:
        >>> tp.is_warn_always_enabled()
        False
    """
    return _warn_always


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that come once in a process come at each call; Python's filters say which are shown.

    Arguments:
        b: whether it is on

    Example:
        >>> tp.set_warn_always(False)
    """
    global _warn_always
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _C._set_warn_always(b)
    _warn_always = b


def is_storage(obj: object, /) -> bool:
    """Whether obj is a storage.

    Returns: bool.

    Example:
        >>> tp.is_storage(tp.ones(2).untyped_storage())
        True
    """
    from tensorpy.storage import TypedStorage

    return isinstance(obj, (_C.UntypedStorage, TypedStorage))


def typename(obj: Any, /) -> str:
    """The name of a tensor's type, of a class or function, or of the class of another object, with its module.

    Arguments:
        obj: the object

    Returns: str.

    Example:
        >>> tp.typename(tp.ones(2))
        'tensorpy.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None) or ""
    return named.__qualname__ if module in ("", "builtins") else f"{module}.{named.__qualname__}"


def compiled_with_cxx11_abi() -> bool:
    """Whether C++ libraries of today's ABI can be used beside it: there is no C++ in it, so they can.

    Returns: bool.

    Example:
        >>> tp.compiled_with_cxx11_abi()
        True
    """
    return True


def get_device_module(device: Any = None) -> Any:
    """The module of a device type: tensorpy.cpu, tensorpy.opencl.

    Returns: a module.

    Raises: RuntimeError where the device type has none.

    Example:
        >>> tp.get_device_module("cpu").__name__
        'tensorpy.cpu'
    """
    import importlib

    kind = _C.device("cpu" if device is None else device).type
    try:
        return importlib.import_module(f"tensorpy.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"there is no module of the device type '{kind}'") from None


def is_vulkan_available() -> bool:
    """Whether there is a Vulkan device: tensorpy drives none.

    Returns: bool.

    Example:
        >>> tp.is_vulkan_available()
        False
    """
    return False


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu") by its older name.

    Returns: bool.

    Example:
        >>> tp.is_autocast_cpu_enabled()
        False
    """
    return _C._autocast_get("cpu")[0]


def get_autocast_cpu_dtype() -> _dtype:
    """get_autocast_dtype("cpu") by its older name.

    Returns: a dtype.

    Example:
        >>> tp.get_autocast_cpu_dtype()
        tensorpy.bfloat16
    """
    return _C._autocast_get("cpu")[1]


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled) by its older name.

    Example:
        >>> tp.set_autocast_cpu_enabled(False)
    """
    _C._autocast_set("cpu", enabled, *_C._autocast_get("cpu")[1:])


def set_autocast_cpu_dtype(dtype: _dtype) -> None:
    """set_autocast_dtype("cpu", dtype) by its older name.

    Example:
        >>> tp.set_autocast_cpu_dtype(tp.bfloat16)
    """
    enabled, _, cache = _C._autocast_get("cpu")
    _C._autocast_set("cpu", enabled, dtype, cache)


def get_autocast_gpu_dtype() -> _dtype:
    """What autocast casts to on an NVIDIA device, if there were one.

    Returns: a dtype.

    Example:
        >>> tp.get_autocast_gpu_dtype()
        tensorpy.float16
    """
    return _C.float16


def _assert(condition: Any, message: str) -> None:
    """An assert that stays under `python -O`."""
    if not condition:
        raise AssertionError(message)


torch_function.make_overridable(__name__, ("_assert",))
