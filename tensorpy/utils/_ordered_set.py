"""A set that is walked in the order in which its elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any


class OrderedSet(MutableSet[Any]):
    """A set whose elements come in the order in which they were added; sets of the same elements are equal.

    Example:
        >>> from tensorpy.utils._ordered_set import OrderedSet
        >>> OrderedSet("cab") | OrderedSet("bd")
        OrderedSet(['c', 'a', 'b', 'd'])
    """

    __slots__ = ("_all",)

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._all = dict.fromkeys(elements)

    def __contains__(self, element: object) -> bool:
        return element in self._all

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._all)})"

    def add(self, value: Any) -> None:
        """Adds an element, behind the others if it is new."""
        self._all[value] = None

    def discard(self, value: Any) -> None:
        """Takes an element out, if it is there."""
        self._all.pop(value, None)

    def pop(self) -> Any:
        """Takes the last element out. KeyError if there is none."""
        return self._all.popitem()[0]

    def copy(self) -> OrderedSet:
        """A set of the same elements."""
        return OrderedSet(self)

    def update(self, *others: Iterable[Any]) -> None:
        """Adds the elements of others."""
        for other in others:
            self._all.update(dict.fromkeys(other))

    def union(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements of all."""
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements that all have."""
        theirs = [set(other) for other in others]
        return OrderedSet(element for element in self if all(element in other for other in theirs))

    def difference(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements that none of the others has."""
        theirs = set().union(*others)
        return OrderedSet(element for element in self if element not in theirs)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether another has all its elements."""
        theirs = set(other)
        return all(element in theirs for element in self)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether it has all elements of another."""
        return all(element in self for element in other)
