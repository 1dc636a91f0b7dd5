"""What a function that stands for an operator on Meta may ask: get_ctx, whose sizes depend on elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NoReturn

__all__ = ["DynamicSize", "FakeImplCtx", "get_ctx"]


class DynamicSize(RuntimeError):
    """A size that depends on elements is asked for, where sizes are numbers."""


class FakeImplCtx:
    """What get_ctx gives while the fake kernel of an operator runs.

    Arguments:
        _fake_mode: the mode, or None
        _op: the operator's name
    """

    def __init__(self, _fake_mode: Any, _op: Any) -> None:
        self._fake_mode, self._op = _fake_mode, _op

    def new_dynamic_size(self, *, min: Any = 0, max: Any = None) -> NoReturn:
        """A size that depends on elements. Sizes are numbers here, and no symbols: it is always a DynamicSize error, as
        in PyTorch for tensors on Meta, and within a FakeTensorMode its DynamicOutputShapeException."""
        if isinstance(min, int) and min < 0:
            raise ValueError(f"new_dynamic_size: sizes are no less than 0, and min is {min}")
        raise DynamicSize(
            f"{self._op} gives a tensor of a data-dependent shape, and tensors on Meta have no data; an operator with "
            "the tag dynamic_output_shape says so"
        )

    def create_unbacked_symint(self, *, min: Any = 2, max: Any = None) -> NoReturn:
        """The older name of new_dynamic_size."""
        self.new_dynamic_size(min=min, max=max)


_now: ContextVar[FakeImplCtx | None] = ContextVar("fake kernel", default=None)


def get_ctx() -> FakeImplCtx | None:
    """What the fake kernel that runs may ask.

    Returns: a FakeImplCtx, None outside of a fake kernel.

    Example:
        >>> @tp.library.custom_op("help_ctx::places", mutates_args=())
        ... def places(x: tp.Tensor) -> tp.Tensor:
        ...     return x.nonzero()
        >>> @places.register_fake
        ... def _(x):
        ...     return x.new_empty(tp.library.get_ctx().new_dynamic_size(), x.ndim, dtype=tp.int64)
        >>> places(tp.tensor([0.0, 2.0]))
        tensor([[1]])
        >>> places(tp.ones(2, device="meta"))
        Traceback (most recent call last):
        ...
        tensorpy._library.fake_impl.DynamicSize: help_ctx::places gives a tensor of a data-dependent shape, \
and tensors on Meta have no data; an operator with the tag dynamic_output_shape says so
    """
    return _now.get()


def told(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A fake kernel that can ask get_ctx."""

    @functools.wraps(fn)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        before = _now.set(FakeImplCtx(None, name))
        try:
            return fn(*args, **kwargs)
        finally:
            _now.reset(before)

    return kernel
