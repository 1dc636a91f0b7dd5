"""autocast, its settings of this thread, and autograd.Function under it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._C import dtype as _dtype
from tensorpy.utils._contextlib import ContextDecorator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DTYPES = (_C.bfloat16, _C.float16, _C.float32)


class autocast(ContextDecorator):
    """Runs operators in a lower precision where that is safe; a context manager and a decorator.

    device_type: "cpu", ...; dtype: bfloat16 (the CPU's default) or float16; enabled: False switches it off inside;
    cache_enabled: whether the cast of a weight is kept until the outermost region ends.

    Raises: ValueError for a device_type that is no str.

    Example:
        >>> with tp.autocast("cpu"):
        ...     print((tp.ones(2, 2) @ tp.ones(2, 2)).dtype)
        tensorpy.bfloat16
    """

    cache_enabled: Any
    dtype: Any
    enabled: Any

    def __init__(
        self, device_type: str, dtype: _dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device_type = device_type
        self.given_dtype = dtype
        self.enabled = enabled and is_autocast_available(device_type)
        if enabled and not self.enabled:
            warnings.warn(f"there is no {device_type} device: autocast for it does nothing", stacklevel=2)
        self.given_cache = cache_enabled
        self.previous: list[tuple[bool, _dtype, bool]] = []
        _, current_dtype, current_cache = _C._autocast_get(device_type)
        self.dtype = current_dtype if dtype is None else dtype
        self.known_dtype = self.dtype if self.dtype in _DTYPES else current_dtype
        if self.enabled and self.dtype is not self.known_dtype:
            warnings.warn(f"there is no autocast to {self.dtype}, only to 16-bit floats: it does nothing", stacklevel=2)
            self.enabled = False
        self.cache_enabled = current_cache if cache_enabled is None else cache_enabled

    def clone(self) -> autocast:
        """A context like this one, for another use."""
        return autocast(self.device_type, self.given_dtype, self.enabled, self.given_cache)

    def __enter__(self) -> autocast:
        self.previous.append(_C._autocast_get(self.device_type))
        _C._autocast_set(self.device_type, self.enabled, self.known_dtype, self.cache_enabled)
        _C._autocast_enter()
        return self

    def __exit__(self, *unused: Any) -> None:
        _C._autocast_leave()
        _C._autocast_set(self.device_type, *self.previous.pop())


def is_autocast_available(device_type: str) -> bool:
    """Whether a device type has an autocast layer: every one has that tensorpy drives.

    Arguments:
        device_type: the type of device: 'cpu', 'opencl', ...

    Returns: bool.

    Example:
        >>> tp.amp.is_autocast_available("cpu")
        True
    """
    return _C._autocast_available(device_type)


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether autocast is on for a device type in this thread.

    Arguments:
        device_type: the type of device: 'cpu', 'opencl', ...

    Returns: bool.

    Example:
        >>> tp.is_autocast_enabled("cpu")
        False
    """
    return _C._autocast_get(device_type)[0]


def get_autocast_dtype(device_type: str) -> _dtype:
    """The dtype that autocast casts to.

    Arguments:
        device_type: the type of device: 'cpu', 'opencl', ...

    Returns: a dtype.

    Raises: RuntimeError for an unknown device type.

    Example:
        >>> tp.get_autocast_dtype("cpu")
        tensorpy.bfloat16
    """
    return _C._autocast_get(device_type)[1]


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept.

    Returns: bool.

    Example:
        >>> tp.is_autocast_cache_enabled()
        True
    """
    return _C._autocast_get("cpu")[2]


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switches autocast on or off for a device type in this thread.

    Arguments:
        device_type: the type of device: 'cpu', 'opencl', ...
        enabled: whether it is on

    Example:
        >>> tp.set_autocast_enabled("cpu", False)
    """
    _C._autocast_set(device_type, enabled, *_C._autocast_get(device_type)[1:])


def set_autocast_dtype(device_type: str, dtype: _dtype) -> None:
    """Sets the dtype that autocast casts to.

    Arguments:
        device_type: the type of device: 'cpu', 'opencl', ...
        dtype: the dtype

    Example:
        >>> tp.set_autocast_dtype("cpu", tp.bfloat16)
    """
    enabled, _, cache = _C._autocast_get(device_type)
    _C._autocast_set(device_type, enabled, dtype, cache)


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Says whether casts of weights are kept.

    Arguments:
        enabled: whether it is on

    Example:
        >>> tp.set_autocast_cache_enabled(True)
    """
    on, dtype, _ = _C._autocast_get("cpu")
    _C._autocast_set("cpu", on, dtype, enabled)


# ---- autograd.Function under autocast ----


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Floating tensors of a device, but float64, as a dtype; inside of sequences and mappings too."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype != _C.float64
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return {key: _cast(v, device_type, dtype) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorates `forward`: it runs under the autocast there is, or with cast_inputs without autocast on arguments of
    that dtype.

    Arguments:
        fwd: the method forward
        device_type: the type of device: 'cpu', 'opencl', ...

    Returns: the method, or without one a decorator.

    Example:
        >>> class Twice(tp.autograd.Function):
        ...     @staticmethod
        ...     @tp.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @tp.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> Twice.apply(tp.ones(2))
        tensor([2., 2.])
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates `backward`: it runs under the autocast that `forward` ran under.

    Arguments:
        bwd: the method backward
        device_type: the type of device: 'cpu', 'opencl', ...

    Returns: the method, or without one a decorator.

    Example:
        >>> class Twice(tp.autograd.Function):
        ...     @staticmethod
        ...     @tp.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @tp.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> Twice.apply(tp.ones(2))
        tensor([2., 2.])
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return backward
