"""Context managers that also decorate functions and generators: what no_grad, autocast and others are."""

from __future__ import annotations

import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
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

        if isinstance(function, type):
            what = "Decorating classes is deprecated and will be disabled in future versions: decorate their methods."
            warnings.warn(what, FutureWarning, stacklevel=2)
            function.__init__ = self(function.__init__)  # type: ignore[misc]
            return function  # pyright: ignore[reportReturnType]
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
            go_on, given = generator.send, None
            while True:
                with self.clone():
                    try:
                        value = go_on(given)
                    except StopIteration as stop:
                        return stop.value
                try:
                    go_on, given = generator.send, (yield value)
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:  # what the caller throws in is for the generator
                    go_on, given = generator.throw, error

        return wrapper  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
