"""Where the processes of a mesh stand among those of its root: walks over a list of ranks, as a tensor's over memory.

An axis is a walk: pairs of a size and a stride, the innermost last, none of size 1. A flattened axis may have several
pairs, as its steps need not be alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

Pair = tuple[int, int]


def _merged(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The same walk in as few pairs as will do."""
    made: list[Pair] = []
    for size, stride in pairs:
        if size == 1:
            continue
        if made and made[-1][1] == size * stride:
            made[-1] = (made[-1][0] * size, stride)
        else:
            made.append((size, stride))
    return tuple(made)


@dataclass(frozen=True)
class Axis:
    """One dimension of a mesh."""

    pairs: tuple[Pair, ...]

    @staticmethod
    def of(pairs: Sequence[Pair]) -> Axis:
        """The axis of a walk."""
        return Axis(_merged(pairs))

    def numel(self) -> int:
        """How many steps it has."""
        return prod(size for size, _ in self.pairs)

    def stride(self) -> int | tuple[int, ...]:
        """As it is printed: a number, or one for each pair."""
        return self.pairs[0][1] if len(self.pairs) == 1 else tuple(stride for _, stride in self.pairs)

    def offsets(self) -> list[int]:
        """Where its steps stand, from the first one on."""
        found = [0]
        for size, stride in self.pairs:
            found = [at + stride * i for at in found for i in range(size)]
        return found

    def split(self, sizes: Sequence[int]) -> list[Axis] | None:
        """Axes of these sizes that walk as it does; None where there are none."""
        left = list(self.pairs)
        made: list[Axis] = []
        for wanted in reversed(sizes):
            taken: list[Pair] = []
            while wanted > 1:
                if not left:
                    return None
                size, stride = left.pop()
                if wanted % size == 0:
                    taken.insert(0, (size, stride))
                    wanted //= size
                elif size % wanted == 0:
                    taken.insert(0, (wanted, stride))
                    left.append((size // wanted, stride * wanted))
                    wanted = 1
                else:
                    return None
            made.insert(0, Axis.of(taken))
        return made


@dataclass(frozen=True)
class Layout:
    """The dimensions of a mesh."""

    axes: tuple[Axis, ...]

    @staticmethod
    def contiguous(shape: Sequence[int]) -> Layout:
        """That of a root: each rank after the other."""
        return Layout(tuple(Axis.of([(n, prod(shape[i + 1 :]))]) for i, n in enumerate(shape)))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes each dimension has."""
        return tuple(axis.numel() for axis in self.axes)

    def flat(self) -> Axis:
        """All dimensions as one."""
        return Axis.of([pair for axis in self.axes for pair in axis.pairs])

    def _pairs(self) -> list[Pair]:
        return [pair for axis in self.axes for pair in axis.pairs]

    def is_sorted(self) -> bool:
        """Whether the root's order of dimensions is kept."""
        strides = [stride for _, stride in self._pairs()]
        return strides == sorted(strides, reverse=True)

    def is_apart(self) -> bool:
        """Whether no rank comes twice."""
        pairs = sorted(((stride, size) for size, stride in self._pairs()), reverse=True)
        return all(outer % (inner * count) == 0 for (outer, _), (inner, count) in pairwise(pairs))

    def meshes(self, ranks: Sequence[int]) -> list[list[int]]:
        """The root's ranks in parts that are laid out so, each in the order of its walk."""
        offsets, seen, made = Layout((self.flat(),)).axes[0].offsets(), set(), []
        for begin in range(len(ranks)):
            if begin not in seen:
                places = [begin + offset for offset in offsets]
                seen.update(places)
                made.append([ranks[place] for place in places])
        return made
