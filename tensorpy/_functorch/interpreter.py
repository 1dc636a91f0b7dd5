"""torch._C._functorch: the transforms that a thread is inside of, by their places, and the tensors of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy.func.vmap import Forward, opened, transformed


class TransformType(Enum):
    """What a transform does to its function.

    Example:
        >>> tp._functorch.interpreter.TransformType.Vmap.name
        'Vmap'
    """

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


class Interpreter:
    """A transform that the thread is inside of, for the rules of operators.

    Arguments:
        level: its place, the outermost is 1

    Example:
        >>> tp.vmap(lambda x: x * tp._functorch.interpreter.Interpreter(1).level())(tp.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, level: int) -> None:
        self._level = level

    def level(self) -> int:
        """Its place.

        Returns: the place, the outermost is 1.
        """
        return self._level

    def key(self) -> TransformType:
        """What it does.

        Returns: the kind of transform.
        """
        of = opened.transforms[self._level - 1]
        if isinstance(of, int):
            return TransformType.Vmap
        return TransformType.Jvp if isinstance(of, Forward) else TransformType.Grad

    @contextmanager
    def lower(self) -> Iterator[None]:
        """A scope below the transform: operators go to those around it.

        Returns: the context.
        """
        taken = opened.transforms[self._level - 1 :]
        del opened.transforms[self._level - 1 :]
        before = _C._vmap_show(sum(isinstance(of, int) for of in opened.transforms))
        try:
            yield
        finally:
            _C._vmap_show(before)
            opened.transforms += taken


def peek_interpreter_stack() -> Interpreter | None:
    """The transform that the thread is innermost in; None outside of all."""
    return next((Interpreter(n) for n in range(len(opened.transforms), 0, -1) if opened.transforms[n - 1] != ()), None)


class _Switches:
    fallback = True  # no operator runs sample by sample here, so there is nothing that this turns off
    warns = False


def _is_vmap_fallback_enabled() -> bool:
    return _Switches.fallback


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    _Switches.fallback = bool(enabled)


def _is_vmap_fallback_warning_enabled() -> bool:
    return _Switches.warns


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    _Switches.warns = bool(enabled)


# ---- places ----


def get_dynamic_layer_stack_depth() -> int:
    """How many transforms the thread is inside of."""
    return len(opened.transforms)


def maybe_current_level() -> int | None:
    """The place of the innermost, or None outside of all."""
    return len(opened.transforms) or None


def current_level() -> int:
    """The place of the innermost."""
    if not opened.transforms:
        raise RuntimeError("current_level(): the thread is inside of no transform")
    return len(opened.transforms)


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    opened.transforms.append(_C._vmap_open(batch_size, randomness))
    _C._transform(1, False)
    return len(opened.transforms)


def _vmap_decrement_nesting() -> int:
    if not opened.transforms or not isinstance(opened.transforms[-1], int):
        raise RuntimeError("_vmap_decrement_nesting(): the innermost transform is no vmap")
    _C._vmap_close(opened.transforms.pop())
    _C._transform(-1, False)
    return len(opened.transforms) + 1


def _number(level: int) -> int:
    number = opened.transforms[level - 1] if 0 < level <= len(opened.transforms) else None
    if not isinstance(number, int):
        raise RuntimeError(f"the transform at level {level} is no vmap")
    return number


def _size(number: int) -> int:
    return next(size for found, size, _ in _C._vmap_levels() if found == number)


# ---- tensors ----


def _add_batch_dim(t: Tensor, dim: int, level: int) -> Tensor:
    return _C._vmap_add(t, dim, _number(level))


def _remove_batch_dim(t: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    return _C._vmap_remove(t, _number(level), batch_size).movedim(0, out_dim)


def _wrap_for_grad(t: Tensor, level: int) -> Tensor:
    """A tensor as the transform at a level sees it: the same, what is differentiated has no wrapper."""
    return t


_unwrap_for_grad = _wrap_for_grad


def is_batchedtensor(t: Tensor) -> bool:
    """Whether a vmap has mapped a tensor."""
    return _C._is_batched(t)


def is_gradtrackingtensor(t: Tensor) -> bool:
    """Whether the innermost transform that a tensor belongs to differentiates."""
    found = transformed(t)
    return found is not None and found[1] == "grad"


def is_functorch_wrapped_tensor(t: Tensor) -> bool:
    """Whether a tensor belongs to any transform."""
    return transformed(t) is not None


def maybe_get_level(t: Tensor) -> int:
    """The place of the innermost transform that a tensor belongs to; -1 for none."""
    found = transformed(t)
    return -1 if found is None else found[0]


def maybe_get_bdim(t: Tensor) -> int:
    """Where the batch of a tensor is; -1 for a tensor without."""
    return 0 if _C._is_batched(t) else -1


def dlevel(t: Tensor) -> int:
    """The place of the innermost transform that a tensor belongs to; -1 for none, and for one that has ended."""
    return maybe_get_level(t)


def get_unwrapped(t: Tensor) -> Tensor:
    """A tensor without its innermost transform."""
    if _C._is_batched(t):
        number = _C._batch_number(t)
        return _C._vmap_remove(t, number, _size(number))
    found = transformed(t)
    if found is None:
        raise RuntimeError("get_unwrapped(): the tensor belongs to no transform")
    return found[2]


# ---- shapes ----


def _wrapped(dim: int, count: int) -> int:
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def reshape_dim_into(src: int, dst: int, x: Tensor) -> Tensor:
    """Without dimension src, whose indices are in front of those of dimension dst of what is left."""
    src, dst = _wrapped(src, x.dim()), _wrapped(dst, x.dim() - 1)
    shape = list(x.shape)
    size = shape.pop(src)
    shape[dst] *= size
    return x.movedim(src, dst).reshape(shape)


def reshape_dim_outof(src: int, size1: int, x: Tensor) -> Tensor:
    """With dimension src as two, the first of them of the size size1."""
    src = _wrapped(src, x.dim())
    shape = list(x.shape)
    if size1 <= 0 or shape[src] % size1:
        raise RuntimeError(f"reshape_dim_outof(): {shape[src]} elements are not {size1} equal parts")
    shape[src : src + 1] = [size1, shape[src] // size1]
    return x.reshape(shape)
