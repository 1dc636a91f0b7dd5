"""PyTorch's format before 1.6, read and written: pickles one after the other, then the bytes of each storage.

The pickles are a number that marks the format, its version, facts about the machine, the object, and the keys of its
storages in the order in which they follow: the number of their elements in eight bytes, then these. Who reads the
object meets its storages before their bytes, so it is looked through for their sizes first, without a call: a storage
has its bytes when something is made of it and checked. What an archive promises
holds here too: nothing is called that was not allowed, and nothing larger than the file is made.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from collections.abc import Callable, Iterator
from typing import Any

from tensorpy import _C
from tensorpy._utils import bytes_tensor
from tensorpy.serialization import names
from tensorpy.serialization.account import Account
from tensorpy.serialization.location import Restore
from tensorpy.serialization.pickler import Pickler
from tensorpy.serialization.unpickler import Unpickler, persistent_entries

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
_START = pickle.dumps(MAGIC, protocol=2)
Run = Callable[[bytes, Callable[[Any], Any]], Any]  # runs a pickle


class _Pickler(Pickler):
    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.counts: dict[str, int] = {}  # the elements of each storage, as the object first speaks of them

    def persistent_id(self, obj: Any) -> Any:
        entry = super().persistent_id(obj)
        if entry is None:
            return None
        self.counts.setdefault(entry[2], entry[4])
        return *entry, None


def parts(obj: Any, protocol: int) -> Iterator[Any]:
    """What a file of an object and its storages is made of, one after the other; the object is read at once."""
    program = io.BytesIO()
    pickler = _Pickler(program, protocol)
    pickler.dump(obj)
    return _parts(program.getvalue(), pickler, protocol)


def _parts(program: bytes, pickler: _Pickler, protocol: int) -> Iterator[Any]:
    sizes = {"short": 2, "int": 4, "long": 4}
    storages = sorted(pickler.storages.values(), key=lambda pair: pair[0])
    yield _START
    yield pickle.dumps(VERSION, protocol=protocol)
    yield pickle.dumps({"protocol_version": VERSION, "little_endian": True, "type_sizes": sizes}, protocol=protocol)
    yield program
    yield pickle.dumps([key for key, _ in storages], protocol=protocol)
    for key, storage in storages:
        content: Any = bytes_tensor(storage).cpu()
        yield struct.pack("<q", pickler.counts[key])
        yield memoryview(content)


def is_legacy(start: bytes) -> bool:
    return start.startswith(_START)


def _damaged(why: object) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(f"the file is damaged: {why}")


class _Storages:
    """The storages of a file, each made when the object first speaks of it."""

    def __init__(self, program: int, room: int, restore: Restore, trusted: bool) -> None:
        self.left, self.restore, self.trusted = room, restore, trusted
        self.account = Account(program, room)
        self.made: dict[str, tuple[Any, Any, int]] = {}  # as read, as restored, the size of an element
        self.parts: dict[Any, Any] = {}  # storages of parts of others
        self.contents: dict[str, memoryview] = {}  # of storages whose bytes were found

    def load(self, entry: Any) -> Any:
        """What ("storage", type, key, location, length, view) stands for, or ("module", class, file, its text)."""
        if self.trusted and isinstance(entry, tuple) and len(entry) == 4 and entry[0] == "module":
            return entry[1]
        if isinstance(entry, tuple):  # strings of Python 2 may have been left as bytes
            entry = tuple(e.decode("ascii", "replace") if type(e) is bytes else e for e in entry)
        if not isinstance(entry, tuple) or len(entry) != 6 or entry[0] != "storage":
            raise _damaged(f"it speaks of {names.shown(entry)} where a storage should be")
        _, kind, key, location, count, view = entry
        untyped = kind is names.UNTYPED
        if not (untyped or isinstance(kind, names.StorageType)) or not (type(key) is type(location) is str):
            raise _damaged("a storage has no type, key or location")
        itemsize = 1 if untyped else kind.dtype.itemsize
        if key not in self.made:
            if type(count) is not int or not 0 <= count * itemsize <= self.left:
                raise _damaged(f"it has no {count} elements of storage {key}")
            self.left -= count * itemsize
            empty = _C.empty(count * itemsize, dtype=_C.uint8).untyped_storage()
            if content := self.contents.get(key):
                self._copy(empty, content)
            self.made[key] = empty, self.restore(empty, location), itemsize
        restored = self.made[key][1]
        if view is not None and restored is not None:
            restored = self._part(restored, view, itemsize)
        return restored if untyped else names.typed(restored, kind.dtype)

    def _part(self, storage: Any, view: Any, itemsize: int) -> Any:
        """The storage of some elements of another one, (key, first, count), which files from before 0.4 have."""
        if not isinstance(view, tuple) or len(view) != 3 or not (type(view[1]) is type(view[2]) is int):
            raise _damaged("the view of a storage is no key, place and length")
        key, first, count = view
        if not 0 <= first <= first + count <= storage.nbytes() // itemsize or count < 1:
            raise _damaged("the view of a storage reaches out of it")
        if key not in self.parts:
            row: Any = bytes_tensor(storage)
            part = _C.frombuffer(memoryview(row), dtype=_C.uint8, count=count * itemsize, offset=first * itemsize)
            self.parts[key] = part.untyped_storage()
        return self.parts[key]

    @staticmethod
    def _copy(storage: Any, content: memoryview) -> None:
        if len(content) == storage.nbytes():  # else the file is damaged, which fill() tells
            room: Any = bytes_tensor(storage)
            memoryview(room)[:] = content

    def find(self, data: bytes, place: int, keys: list[Any], program: bytes) -> None:
        """Notes where the bytes of each storage are, by the sizes of elements that the object speaks of."""
        sizes: dict[Any, int] = {}
        for entry in persistent_entries(program):
            if isinstance(entry, tuple) and len(entry) == 6 and type(entry[2]) in (str, bytes):
                key = entry[2].decode("ascii", "replace") if type(entry[2]) is bytes else entry[2]
                dtype = getattr(entry[1], "dtype", _C.uint8)
                sizes.setdefault(key, dtype.itemsize if isinstance(dtype, _C.dtype) else 1)
        for key in keys:
            if type(key) is not str or key not in sizes or len(data) < place + 8:
                return
            start = place + 8
            place = start + struct.unpack_from("<q", data, place)[0] * sizes[key]
            if not start <= place <= len(data):
                return
            self.contents[key] = memoryview(data)[start:place]

    def fill(self, data: bytes, place: int, key: Any) -> int:
        """The bytes of a storage, from this place of the file on, unless it has them; where they end."""
        if type(key) is not str or key not in self.made or len(data) < place + 8:
            raise _damaged(f"the bytes of storage {names.shown(key)} are not to be found")
        empty, restored, itemsize = self.made.pop(key)
        start, size = place + 8, struct.unpack_from("<q", data, place)[0] * itemsize
        if size != empty.nbytes() or len(data) < start + size:
            raise _damaged(f"storage {key} has {empty.nbytes()} bytes, {min(size, len(data) - start)} are in the file")
        if size and len(self.contents.get(key, b"")) == size:
            return start + size
        self._copy(empty, memoryview(data)[start : start + size])
        if size and restored is not None and restored is not empty:
            bytes_tensor(restored).copy_(bytes_tensor(empty))
        return start + size


def _end(data: bytes, start: int) -> int:
    """Where the pickle that begins here ends; nothing of it is run."""
    file = io.BytesIO(data)
    file.seek(start)
    try:
        for _ in pickletools.genops(file):
            pass
    except ValueError as error:
        raise _damaged(error) from error
    return file.tell()


def _no_storage(entry: Any) -> Any:
    raise _damaged(f"it speaks of {names.shown(entry)} outside of the object")


def read(data: bytes, restore: Restore, run: Run | None, encoding: str = "utf-8") -> tuple[Any, int]:
    """The object in a file's bytes, and where it ends. `run` runs its pickle; None: what may be called is limited, and
    strings that Python 2 wrote are of an encoding."""
    ends = [0]
    for _ in range(5):
        ends.append(_end(data, ends[-1]))
    version, written_on = (Unpickler(data, _no_storage, start).load() for start in ends[1:3])
    if type(version) is not int or version != VERSION:
        raise RuntimeError(f"Invalid protocol version: {names.shown(version)}")
    if not isinstance(written_on, dict) or not written_on.get("little_endian", True):
        raise RuntimeError("the file was written on a big-endian machine, which is not read")
    keys = Unpickler(data, _no_storage, ends[4]).load()
    if not isinstance(keys, list):
        raise _damaged("it has no list of storages")
    storages = _Storages(ends[4] - ends[3], len(data) - ends[5], restore, run is not None)
    program = data[ends[3] : ends[4]]
    storages.find(data, ends[5], keys, program)
    if run is None:
        machine = Unpickler(program, storages.load, account=storages.account)
        machine.encoding = encoding
        obj = machine.load()
    else:
        obj = run(program, storages.load)
    place = ends[5]
    for key in keys:
        place = storages.fill(data, place, key)
    if storages.made:
        raise _damaged(f"the bytes of storage {next(iter(storages.made))} are missing")
    return obj, place
