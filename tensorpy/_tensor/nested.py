"""What Python shows of nested tensors: sizes, text, and what files have of them."""

from __future__ import annotations

import itertools
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor

_numbers = itertools.count(1)


class NestedInt(int):
    """The size of a dimension that differs from piece to piece: equal to that of tensors with the same offsets.

    As a number it is -1, which `view` takes for the dimension that differs; n times it is -n, and equal to n times it.
    """

    number: int

    def __repr__(self) -> str:
        return f"j{self.number}" if int(self) == -1 else f"{-int(self)}*j{self.number}"

    __str__ = __repr__

    def __mul__(self, other: int) -> NestedInt:
        if isinstance(other, NestedInt) or not isinstance(other, int):
            return NotImplemented
        if other < 1:
            raise RuntimeError(f"a size that differs from piece to piece is multiplied by 1 or more, not by {other}")
        return _nested_int_of(int(self) * other, self.number)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and self.number == other.number and int(self) == int(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __gt__(self, other: int) -> bool:
        return other < 2

    def __ge__(self, other: int) -> bool:
        return self == other or other < 3

    def __hash__(self) -> int:
        return hash(("nested", self.number, int(self)))


def _nested_int_of(times: int, number: int) -> NestedInt:
    made = NestedInt(times)
    made.number = number
    return made


def values_of(t: Tensor) -> Tensor:
    """All values as they lie, without history."""
    return _C._layout_part(t.detach(), 0)


def offsets_of(t: Tensor) -> Tensor:
    return _C._layout_part(t.detach(), 1)


def lengths_of(t: Tensor) -> Tensor | None:
    plain = t.detach()
    return _C._layout_part(plain, 2) if _C._layout_fact(plain, 2) & 1 else None


def ragged_of(t: Tensor) -> int:
    """The dimension whose sizes differ."""
    return _C._layout_fact(t.detach(), 0)


ragged_idx_of = ragged_of


def stride_of(t: Tensor, dim: int | None = None) -> Any:
    """Strides of a jagged tensor's values, and before them what the differing size makes the one between pieces."""
    within = values_of(t).stride()
    strides = (_nested_int(t) * max(within[ragged_of(t) - 1], 1), *within)
    return strides if dim is None else strides[dim]


strides_of = stride_of


def min_seqlen_of(t: Tensor) -> int:
    """The length of the shortest piece, as it was given or as it is."""
    return _C._nested_longest(t.detach(), False, True)


def max_seqlen_of(t: Tensor) -> int:
    """The length of the longest piece, as it was given or as it is."""
    return _C._nested_longest(t.detach(), True, True)


def _given(t: Tensor, largest: bool) -> int | None:
    said = _C._nested_longest(t.detach(), largest, False)
    return said if said >= 0 else None


def maybe_min_seqlen_of(t: Tensor) -> int | None:
    """The length of the shortest piece, where somebody has given it."""
    return _given(t, False)


def maybe_max_seqlen_of(t: Tensor) -> int | None:
    """The length of the longest piece, where somebody has given it."""
    return _given(t, True)


def min_seqlen_tensor_of(t: Tensor) -> Tensor | None:
    """A tensor without elements whose first size is the length of the shortest piece, where somebody has given it."""
    return _C._nested_get_min_seqlen(t) if _given(t, False) is not None else None


def max_seqlen_tensor_of(t: Tensor) -> Tensor | None:
    """A tensor without elements whose first size is the length of the longest piece, where somebody has given it."""
    return _C._nested_get_max_seqlen(t) if _given(t, True) is not None else None


def _nested_int(t: Tensor) -> NestedInt:
    lengths = lengths_of(t)
    source: Any = offsets_of(t) if lengths is None else lengths
    made = getattr(source, "_nested_int", None)
    if made is None:
        made = _nested_int_of(-1, next(_numbers))
        source._nested_int = made
    return made


def _sizes(t: Tensor) -> list[int | None]:
    """One for each dimension; None where the pieces differ."""
    count = offsets_of(t).numel() - 1
    if _C._layout_fact(t.detach(), 2) & 2:
        columns = t.detach()._nested_tensor_size().t().tolist()
        return [count, *(c[0] if len(set(c)) == 1 else None for c in columns)]
    sizes: list[int | None] = list(values_of(t).shape)
    sizes[ragged_of(t) - 1] = None
    lengths = t.detach()._nested_tensor_size()[:, ragged_of(t) - 1].tolist()
    if t.layout is _C.strided and len(set(lengths)) == 1:
        sizes[ragged_of(t) - 1] = lengths[0]
    return [count, *sizes]


def size_of(t: Tensor, dim: int | None = None) -> Any:
    """`shape`, or the size of one dimension."""
    if t.layout is _C.jagged:
        shape = [_nested_int(t) if s is None else s for s in _sizes(t)]
        return tuple(shape) if dim is None else shape[dim]
    if dim is None:
        raise RuntimeError("a nested tensor has no shape: size(dim), and unbind() for the sizes of its tensors")
    size = _sizes(t)[dim]
    if size is None:
        raise RuntimeError(f"Given dimension {dim % t.ndim} is irregular and does not have a size.")
    return size


def text(t: Tensor, suffixes: list[str]) -> str:
    """What repr() shows."""
    shown = "".join(f", {s}" for s in suffixes)
    if t.layout is _C.jagged:
        sizes = f"({', '.join(map(str, size_of(t)))})"
        return f"NestedTensor(size={sizes}, offsets={offsets_of(t)}{shown}, contiguous={t.is_contiguous()})"
    pieces = ",\n".join("\n".join(f"  {line}" for line in str(p).split("\n")) for p in t.detach().unbind())
    return f"nested_tensor([\n{pieces}\n]{shown})"


def reduced(t: Tensor) -> Any:
    """What pickle writes of a nested tensor."""
    parts = [values_of(t), offsets_of(t), lengths_of(t)]
    plain = t.detach()
    shapes = _C._layout_part(plain, 3) if _C._layout_fact(plain, 2) & 2 else None
    return rebuild, (*parts, shapes, ragged_of(t), t.layout is _C.jagged, t.requires_grad)


def copied(t: Tensor) -> Tensor:
    """What deepcopy makes of a leaf."""
    return t.detach().clone().requires_grad_(t.requires_grad)


def rebuild(
    values: Tensor, offsets: Tensor, lengths: Any, shapes: Any, ragged: int, jagged: bool, requires_grad: bool = False
) -> Tensor:
    """From its parts, which are checked as what a program gives."""
    return _C._nested_make(values, offsets, lengths, shapes, ragged, jagged).requires_grad_(bool(requires_grad))
