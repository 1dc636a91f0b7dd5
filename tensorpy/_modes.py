"""Grad modes as context managers and decorators: no_grad, enable_grad, set_grad_enabled, inference_mode."""

from __future__ import annotations

from tensorpy import _C

TYPE_CHECKING = False
if TYPE_CHECKING:  # these modules would double the time of `import tensorpy`
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

IS_GENERATOR = 0x20  # inspect.CO_GENERATOR


class ContextDecorator:
    """A context manager that also decorates functions and generators, entering anew for each call or step."""

    def clone(self) -> ContextDecorator:
        return self.__class__()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, kind: Any, value: Any, where: TracebackType | None) -> None:
        raise NotImplementedError

    def __call__(self, function: F) -> F:
        import functools

        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & IS_GENERATOR:
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    def _wrap_generator(self, function: F) -> F:
        import functools

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            sent = None
            while True:
                with self.clone():
                    try:
                        value = generator.send(sent)
                    except StopIteration as stop:
                        return stop.value
                sent = yield value

        return wrapper  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


class _GradMode(ContextDecorator):
    enabled: bool

    def __init__(self) -> None:
        self.previous: list[bool] = []

    def __enter__(self) -> None:
        self.previous.append(_C.is_grad_enabled())
        _C._set_grad_enabled(self.enabled)

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        _C._set_grad_enabled(self.previous.pop())

    def __new__(cls, function: Any = None) -> Any:
        """`@no_grad` without parentheses decorates at once."""
        self = super().__new__(cls)
        if callable(function):
            self.__init__()  # type: ignore[misc]
            return self(function)
        return self


class no_grad(_GradMode):
    """Calls inside are not recorded for backward."""

    enabled = False


class enable_grad(_GradMode):
    """Calls inside are recorded for backward, also within no_grad."""

    enabled = True


class set_grad_enabled(ContextDecorator):
    """Switches recording on or off: at once, and back again if used as a context."""

    def __init__(self, mode: bool) -> None:
        self.previous = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        _C._set_grad_enabled(self.previous)
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        _C._set_grad_enabled(self.previous)


class inference_mode(ContextDecorator):
    """No recording, and what is made inside can never be recorded: cheaper than no_grad."""

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.__init__()  # type: ignore[misc]
            return self(mode)
        return self

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode is not False
        self.previous: list[tuple[bool, bool]] = []

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.previous.append((_C.is_inference_mode_enabled(), _C.is_grad_enabled()))
        _C._set_inference_mode(self.mode)
        _C._set_grad_enabled(not self.mode)

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        inference, grad = self.previous.pop()
        _C._set_inference_mode(inference)
        _C._set_grad_enabled(grad)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Whether operators must give the same bits from run to run: one that cannot (tagged `nondeterministic_bitwise`)
    raises RuntimeError, or warns under `warn_only`. The CPU's kernels always do."""
    if not isinstance(mode, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    _C._set_determinism((1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms is on, as an error or as a warning."""
    return _C._determinism() != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms is on with warn_only."""
    return _C._determinism() == 1
