"""What is recorded for backward: no_grad, enable_grad, set_grad_enabled, inference_mode.

Three of PyTorch's switches have nothing to switch here.
"""

from __future__ import annotations

from tensorpy import _C
from tensorpy.utils._contextlib import ContextDecorator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    from typing_extensions import Self

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _GradMode(ContextDecorator):
    enabled: bool
    previous: list[bool]

    if not TYPE_CHECKING:  # mypy would ask it, and not __new__, what the class may be called with

        def __init__(self):
            self.previous = []

    def __enter__(self) -> None:
        self.previous.append(_C.is_grad_enabled())
        _C._set_grad_enabled(self.enabled)

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        _C._set_grad_enabled(self.previous.pop())

    if TYPE_CHECKING:

        @overload
        def __new__(cls) -> Self: ...
        @overload
        def __new__(cls, function: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, function: Any = None) -> Any:
        """`@no_grad` without parentheses decorates at once."""
        self: Any = super().__new__(cls)
        if callable(function):
            self.__init__()
            return self(function)
        return self


class no_grad(_GradMode):
    """Calls inside are not recorded for backward.

    Arguments:
        function: the function to be wrapped

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> with tp.no_grad():
        ...     print((x * 2).requires_grad)
        False
    """

    enabled = False


class enable_grad(_GradMode):
    """Calls inside are recorded for backward, also within no_grad.

    Arguments:
        function: the function to be wrapped

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> with tp.no_grad():
        ...     with tp.enable_grad():
        ...         print((x * 2).requires_grad)
        True
    """

    enabled = True


class set_grad_enabled(ContextDecorator):
    """Switches recording on or off: at once, and back again if used as a context.

    Arguments:
        mode: whether calls are recorded

    Example:
        >>> x = tp.ones(2, requires_grad=True)
        >>> with tp.set_grad_enabled(False):
        ...     print((x * 2).requires_grad)
        False
    """

    previous: Any

    def __init__(self, mode: bool) -> None:
        self.previous = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """A context like this one, for another use."""
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        _C._set_grad_enabled(self.previous)
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        _C._set_grad_enabled(self.previous)


class inference_mode(ContextDecorator):
    """No recording, and what is made inside can never be recorded: cheaper than no_grad.

    Arguments:
        mode: whether it is on

    Example:
        >>> with tp.inference_mode():
        ...     print(tp.ones(2).is_inference())
        True
    """

    mode: bool
    previous: list[tuple[bool, bool]]

    if TYPE_CHECKING:

        @overload
        def __new__(cls, mode: bool = True) -> Self: ...
        @overload
        def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, mode: Any = True) -> Any:
        self: Any = super().__new__(cls)
        if callable(mode):
            self.__init__()
            return self(mode)
        return self

    if not TYPE_CHECKING:  # as above

        def __init__(self, mode=True):
            self.mode = mode is not False
            self.previous = []

    def clone(self) -> inference_mode:
        """A context like this one, for another use."""
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.previous.append((_C.is_inference_mode_enabled(), _C.is_grad_enabled()))
        _C._set_inference_mode(self.mode)
        _C._set_grad_enabled(not self.mode)

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        inference, grad = self.previous.pop()
        _C._set_inference_mode(inference)
        _C._set_grad_enabled(grad)


class _Switch:
    """A switch that takes effect where it is made, and as a context goes back at its end."""

    prev: Any
    mode = True  # what the class's switch is set to

    def __init__(self, mode: bool = True) -> None:
        kind = type(self)
        self.prev, kind.mode = kind.mode, bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        type(self).mode = self.prev


class set_multithreading_enabled(_Switch):
    """Whether backward may use a thread for each device: it runs on the calling thread here either way.

    Arguments:
        mode: whether it is on

    Example:
        >>> with tp.autograd.set_multithreading_enabled(False):
        ...     pass
    """


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled has said.

    Returns: bool.

    Example:
        >>> with tp.autograd.set_multithreading_enabled(False):
        ...     print(tp.autograd.is_multithreading_enabled())
        False
    """
    return set_multithreading_enabled.mode


class _force_original_view_tracking(_Switch):
    """Whether a view is made again by the calls that have made it: here each view knows its base and its geometry."""

    mode = False


def is_view_replay_enabled() -> bool:
    """Whether views are made again call by call; programs may say so, and nothing depends on it here.

    Returns: bool.

    Example:
        >>> tp.autograd.is_view_replay_enabled()
        False
    """
    return _force_original_view_tracking.mode


class _unsafe_preserve_version_counter(ContextDecorator):
    """Tensors have at its end the version that they had: what is written inside is not noticed."""

    def __init__(self, tensors: _C.Tensor | tuple[_C.Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)
        self.versions = tuple(t._version for t in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            _C._unsafe_set_version_counter(tensor, version)


class enforce_grad_layout_policy(_Switch):
    """Whether gradients get their parameters' strides when they are accumulated: here they keep their own.

    Arguments:
        mode: whether it is on

    Example:
        >>> with tp.autograd.enforce_grad_layout_policy(True):
        ...     pass
    """
