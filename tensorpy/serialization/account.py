"""The account of a file: how much work and memory a program of its pickle may cause.

A pickle may refer to the same value with two bytes as often as it likes. Whatever costs more than the bytes that ask
for it is paid from an account whose balance is a multiple of the file's size: hashing and comparing keys, copying
values, reading the parts of sparse tensors, making tensors of lazy bits. An empty account ends the loading.
"""

from __future__ import annotations

from typing import Any

_PER_BYTE = 16  # units of work for a byte of the pickle
_FREE = 10_000  # units for the smallest file
_COPIES = 8  # how often the bytes of the storages may be read or copied
_WORD = 64  # bytes of a string or an integer that cost one unit
_DEEPEST = 100  # tuples in a key that lie in each other: hashing one goes down by recursion
_PLAIN_INT = 1 << 60  # integers below have hashes that differ


class Account:
    """What is left of a file's work (`work`) and of the bytes that may be made of its storages (`room`)."""

    room: Any
    work: Any

    def __init__(self, program: int, storages: int = 0) -> None:
        self.work, self.room = _PER_BYTE * program + _FREE, _COPIES * storages
        self.hashes: dict[int, tuple[Any, dict[int, int]]] = {}  # by a container's id: it, {hash: keys that have it}

    def pay(self, amount: int) -> None:
        """ValueError where nothing is left."""
        self.work -= amount
        if self.work < 0:
            raise ValueError("it copies or compares the same values over and over")

    def pay_bytes(self, count: int) -> None:
        """RuntimeError where the tensors of a file are much larger than what the file stores."""
        if count > self.room:
            raise RuntimeError("the file makes tensors that are much larger than what is stored")
        self.room -= count

    def copied(self, values: Any) -> Any:
        """The values, which a call is about to copy, two levels deep."""
        for value in values:
            if isinstance(value, _SIZED):
                self.pay(len(value))
                if isinstance(value, tuple):
                    self.pay(sum(len(part) for part in value if isinstance(part, _SIZED)))
        return values

    def key(self, container: Any, key: Any) -> Any:
        """The key, which Python is about to hash and to compare with those of the container that have the same hash."""
        kind = type(key)
        if kind is str or kind is bytes:
            self.pay(1 + len(key) // _WORD)
        elif kind is int and -_PLAIN_INT < key < _PLAIN_INT:
            self.pay(1)
        else:
            self._strange_key(container, key)
        return key

    def _strange_key(self, container: Any, key: Any) -> None:
        """Hashes of strings are drawn anew by each process; those of numbers and tuples a file can choose."""
        cost = self._visits(key)
        _, counts = self.hashes.setdefault(id(container), (container, {}))
        value = hash(key)
        others = counts.get(value, 0)
        counts[value] = others + 1
        self.pay(cost * others)

    def _visits(self, key: Any) -> int:
        """Pays for the parts of a key, as often as hashing visits them; no more is looked at than can be paid for."""
        waiting, cost = [(key, 0)], 0
        while waiting:
            part, depth = waiting.pop()
            if isinstance(part, (tuple, frozenset)):
                price = 1 + len(part)
                self.pay(price)
                waiting.extend((each, depth + 1) for each in part)
            else:
                price = 1 + _bytes_of(part) // _WORD
                self.pay(price)
            if depth > _DEEPEST:
                raise ValueError("a key is nested too deep")
            cost += price
        return cost


_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)


def _bytes_of(value: Any) -> int:
    if type(value) is int:
        return value.bit_length() // 8
    return len(value) if isinstance(value, (str, bytes)) else 0
