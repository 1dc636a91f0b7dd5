"""Forward mode: tensors with a tangent, which every operator hands on (Note [Tangents] in csrc/autograd/tangent.h).

with dual_level():
    dual = make_dual(x, direction)
    primal, tangent = unpack_dual(f(dual))
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.autograd.batches import batched, physical
from tensorpy.utils._contextlib import ContextDecorator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class _Current(threading.local):
    """The level that dual_level has opened in this thread; 0: none."""

    number = 0


_current = _Current()


def enter_dual_level() -> int:
    """Opens the level that tangents belong to, and gives its number. One at a time: what nests is tensorpy.func.jvp.

    Returns: int.

    Raises: RuntimeError inside of another level.

    Example:
        >>> import tensorpy.autograd.forward_ad as fw
        >>> level = fw.enter_dual_level()
        >>> fw.exit_dual_level(level=level)
    """
    if _current.number:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: leave the first level, or use tensorpy.func.jvp of "
            "a function that calls jvp"
        )
    _current.number = _C._forward_open()
    return _current.number


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: the tangents that belong to it are let go.

    Example:
        >>> import tensorpy.autograd.forward_ad as fw
        >>> level = fw.enter_dual_level()
        >>> fw.exit_dual_level(level=level)
    """
    if not _current.number:
        raise RuntimeError("Trying to exit a forward AD level, but none was entered in this thread")
    if level is not None and level != _current.number:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _C._forward_close(_current.number)
    _current.number = 0


class dual_level(ContextDecorator):
    """A context in which tensors may have tangents. What is left of them ends with it.

    Example:
        >>> import tensorpy.autograd.forward_ad as fw
        >>> with fw.dual_level():
        ...     y = fw.make_dual(tp.tensor([3.0]), tp.ones(1)) ** 2
        ...     print(fw.unpack_dual(y).tangent)
        tensor([6.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, kind: type | None, value: BaseException | None, where: TracebackType | None) -> None:
        exit_dual_level()


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None for a constant.

    Arguments:
        primal: the value

    Example:
        >>> import tensorpy.autograd.forward_ad as fw
        >>> with fw.dual_level():
        ...     y = fw.make_dual(tp.tensor([3.0]), tp.ones(1)) ** 2
        ...     print(fw.unpack_dual(y).tangent)
        tensor([6.])
    """

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> int:
    """`_current_level`: the level that is open in this thread; -1 for none, as PyTorch counts from 0."""
    if name == "_current_level":
        return _current.number - 1 if _current.number else -1
    raise AttributeError(f"module 'tensorpy.autograd.forward_ad' has no attribute '{name}'")


# ---- between batched and physical ----


def make(primal: Tensor, tangent: Tensor, number: int) -> Tensor:
    """A view of `primal` that has the tangent at a level. Inside vmap the tangent has all samples, and so has a batched
    primal; one that is not batched stays so if the level was opened in there (Note [Batched tangents] in
    csrc/batched/batched.h).
    """
    levels = _C._vmap_levels()
    if not levels:
        return _C._make_dual(primal, tangent, number)
    whole = physical(tangent, levels)
    if not _C._is_batched(primal) and levels[-1][0] < number:
        return _C._make_dual(primal, batched(whole, levels), number)
    return batched(_C._make_dual(physical(primal, levels), whole, number), levels)


def tangent_of(t: Tensor, number: int) -> Tensor | None:
    """None for a constant."""
    levels = _C._vmap_levels() if _C._is_batched(t) else ()
    found = _C._tangent(physical(t, levels), number)
    return None if found is None else batched(found, levels)


def _primal_of(t: Tensor, number: int) -> Tensor:
    levels = _C._vmap_levels() if _C._is_batched(t) else ()
    return batched(_C._primal(physical(t, levels), number), levels)


# ---- dual tensors ----


def check_smooth(name: str, t: Tensor) -> None:
    if not isinstance(t, Tensor):
        raise TypeError(f"make_dual(): {name} must be a Tensor, not {type(t).__name__}")
    if not (t.is_floating_point() or t.is_complex()):
        raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` with a tangent: of its shape and dtype, and kept as it is where it has its strides too.

    Arguments:
        tensor: the tensor
        level: the level of duals; None takes the innermost

    Returns: a tensor.

    Raises: RuntimeError outside of a level, ValueError for what is no float.

    Example:
        >>> import tensorpy.autograd.forward_ad as fw
        >>> with fw.dual_level():
        ...     y = fw.make_dual(tp.tensor([3.0]), tp.ones(1)) ** 2
        ...     print(fw.unpack_dual(y).tangent)
        tensor([6.])
    """
    number = _current.number if level is None else level
    if not number:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    check_smooth("primal", tensor)
    check_smooth("tangent", tangent)
    return make(tensor, tangent, number)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor as a constant, and its tangent: a named tuple (primal, tangent).

    Arguments:
        tensor: the tensor
        level: the level of duals; None takes the innermost

    Returns: a named tuple (primal, tangent).

    Example:
        >>> import tensorpy.autograd.forward_ad as fw
        >>> with fw.dual_level():
        ...     y = fw.make_dual(tp.tensor([3.0]), tp.ones(1)) ** 2
        ...     print(fw.unpack_dual(y).tangent)
        tensor([6.])
    """
    number = _current.number if level is None else level
    if not number:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(_primal_of(tensor, number), tangent_of(tensor, number))


class _set_fwd_grad_enabled(ContextDecorator):
    """Switches the computing of tangents on or off, at once and as a context."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.previous = _C._forward_enable(mode)

    def clone(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        _C._forward_enable(self.previous)


def _is_fwd_grad_enabled() -> bool:
    return _C._forward_enabled()


# ---- a Function's own ----


class Recording:
    """Stands for the class of a Function while its forward() runs: without tangents, and its context is kept."""

    with_setup: Any

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.ctx: Any = None
        self.with_setup = cls._has_setup_context()

    def forward(self, *args: Any) -> Any:
        if not self.with_setup:
            self.ctx = args[0]
        before = _C._forward_show(0)
        try:
            return self.cls.forward(*args)
        finally:
            _C._forward_show(before)

    def setup_context(self, ctx: Any, inputs: Any, output: Any) -> Any:
        self.ctx = ctx
        return self.cls.setup_context(ctx, inputs, output)


def _tangents_at(args: tuple[Any, ...], number: int) -> list[Tensor | None]:
    return [tangent_of(a, number) if isinstance(a, Tensor) else None for a in args]


def has_tangents(args: tuple[Any, ...]) -> bool:
    return _C._forward_enabled() and any(
        isinstance(a, Tensor) and tangent_of(a, number) is not None for number in _C._forward_levels() for a in args
    )


def apply_function(cls: Any, args: tuple[Any, ...]) -> Any:
    """What Function.apply() does where an argument has a tangent: forward(), and jvp() for each level."""
    levels = _C._forward_levels()
    tangents = [_tangents_at(args, number) for number in levels]
    recording = Recording(cls)
    outputs = _C._apply_function(recording, cls._backward_cls, recording.with_setup, *args)
    before = _C._forward_show(0)
    try:
        for i, number in enumerate(levels):
            _C._forward_show(i)
            if any(t is not None for t in tangents[i]):
                _put(cls, recording.ctx, args, outputs, tangents[i], number)
    finally:
        _C._forward_show(before)
        _C._forward_done(recording.ctx)
    return outputs


def _root(a: Any) -> Any:
    """What an argument is a view of, or itself."""
    return a._base if isinstance(a, Tensor) and a._is_view() else a


def _put(cls: Any, ctx: Any, args: Any, outputs: Any, tangents: list[Tensor | None], number: int) -> None:
    """The tangents of the outputs at one level."""
    given = [
        _C.zeros_like(a) if t is None and isinstance(a, Tensor) and (a.is_floating_point() or a.is_complex()) else t
        for a, t in zip(args, tangents, strict=True)
    ]
    moved = cls.jvp(ctx, *given)
    values = outputs if isinstance(outputs, tuple) else (outputs,)
    found = moved if isinstance(moved, tuple) else (moved,)
    if len(found) != len(values):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(values)} but got "
            f"{len(found)}): {cls.__name__}"
        )
    for place, (value, t) in enumerate(zip(values, found, strict=True)):
        if not (t is None or isinstance(t, Tensor)):
            got = type(t).__name__
            raise RuntimeError(f"expected Variable or None (got {got}) for grad output {place}: {cls.__name__}.jvp()")
        if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
            written = next((k for k, a in enumerate(args) if value is a), None)
            if written is not None and tangents[written] is not None and t is not tangents[written]:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If forward "
                    f"changes an input in place, jvp changes its tangent in place and returns that: {cls.__name__}"
                )
            viewed = not _C._transform(0) and value._is_view() and any(value._base is _root(a) for a in args)
            if viewed and written is None and t is not None and not t._is_view():
                raise RuntimeError(
                    "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning "
                    f"a view: {cls.__name__}"
                )
            _C._set_tangent(value, t, number, written is not None)


__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
