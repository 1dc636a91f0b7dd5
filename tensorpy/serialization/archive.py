"""The container: a zip file of records that are stored as they are, each at an address that a mapping can use.

The records are `data.pkl`, `data/<key>` with the bytes of one storage each, and a few that say how the rest is written.
A reader trusts nothing that the directory says: a record has to lie inside the file, apart from all others, and to be
as long as it is stored, so that all records together take no more memory than the file does.
"""

from __future__ import annotations

import io
import mmap as _mmap
import os
import struct
import zipfile
import zlib
from typing import IO, Any

from tensorpy import _C
from tensorpy.serialization.options import get_default_mmap_options
from tensorpy.utils.serialization import config

ALIGNMENT = 64
_LOCAL = struct.Struct("<4s5H3I2H")  # the header before a record
_ENCRYPTED = 1
_ZIP64_EXTRA = 20
_PADDING_ID = b"FB"  # an extra field that other readers skip


# ---- writing ----


class _Sink:
    """A file that is only written to: the archive counts its own bytes from where the file stands."""

    def __init__(self, file: Any) -> None:
        self.write, self.flush = file.write, getattr(file, "flush", lambda: None)


class Writer:
    """Writes records one after the other, each aligned."""

    zip: Any

    def __init__(self, file: Any, root: str) -> None:
        sink: Any = _Sink(file)
        self.zip = zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED)
        self.root = root
        self.sums: dict[str, int] = {}  # the checksum of each record

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *unused: object) -> None:
        self.zip.close()

    def record(self, name: str, data: Any) -> None:
        entry = zipfile.ZipInfo(f"{self.root}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
        size = memoryview(data).nbytes
        wide = _ZIP64_EXTRA if size * 1.05 > zipfile.ZIP64_LIMIT else 0
        here: int = getattr(self.zip, "fp").tell()  # noqa: B009
        start = here + _LOCAL.size + len(entry.filename.encode()) + 4 + wide
        padding = -start % config.save.storage_alignment
        entry.extra = _PADDING_ID + struct.pack("<H", padding) + b"Z" * padding
        with self.zip.open(entry, "w", force_zip64=bool(wide)) as place:
            place.write(data)
        self.sums[name] = entry.CRC

    def serialization_id(self) -> bytes:
        """Digits that differ where records do."""
        names, sums = zlib.crc32(repr(list(self.sums)).encode()), zlib.crc32(repr(self.sums).encode())
        return f"{names:020d}{sums:020d}".encode()

    def write_record(self, name: str, data: Any, size: int) -> None:
        """PyTorch's name for it: the first bytes of the data."""
        self.record(name, memoryview(data.encode() if isinstance(data, str) else data).cast("B")[:size])


# ---- reading ----


def is_archive(f: IO[bytes]) -> bool:
    """Whether a zip file begins here."""
    position = f.tell()
    start = f.read(4)
    f.seek(position)
    return start == b"PK\x03\x04"


class Reader:
    """The records of a file, by name. With `mapped` their memory is the file's, copied where it is written to, or
    written to the file, as the options say."""

    mapping: Any
    places: Any

    def __init__(self, file: IO[bytes], mapped: bool = False) -> None:
        self.file = file
        try:
            entries = zipfile.ZipFile(file).infolist()
            self.places = self._find(entries)
        except (RuntimeError, OSError):
            raise
        except Exception as error:
            raise _broken(f"failed finding central directory ({error})") from None
        shared = get_default_mmap_options() == _mmap.MAP_SHARED
        access = _mmap.ACCESS_WRITE if shared else _mmap.ACCESS_COPY
        self.mapping = _mmap.mmap(file.fileno(), 0, access=access) if mapped else None

    def _find(self, entries: list[zipfile.ZipInfo]) -> dict[str, tuple[int, int]]:
        """Where each record begins, and its length."""
        end = self.file.seek(0, os.SEEK_END)
        root = entries[0].filename.partition("/")[0] + "/" if entries else ""
        places: dict[str, tuple[int, int]] = {}
        for entry in sorted(entries, key=lambda e: e.header_offset, reverse=True):
            name, start = entry.filename, self._start(entry)
            if not name.startswith(root) or name[len(root) :] in places:
                raise _broken(f"record {name!r} is there twice, or apart from the others")
            if not 0 <= entry.file_size <= end - start:
                raise _broken(f"record {name!r} reaches into what follows it, or out of the file")
            places[name[len(root) :]] = start, entry.file_size
            end = entry.header_offset
        return places

    def _start(self, entry: zipfile.ZipInfo) -> int:
        """Where a record's bytes begin: after its own header, which has to tell of the same record."""
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise _broken(f"record {entry.filename!r} is compressed; records are stored as they are")
        if entry.flag_bits & _ENCRYPTED:
            raise _broken(f"record {entry.filename!r} is encrypted")
        self.file.seek(entry.header_offset)
        header = self.file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
            raise _broken(f"record {entry.filename!r} has no header")
        *_, name_length, extra_length = _LOCAL.unpack(header)
        name = entry.orig_filename.encode("utf-8" if entry.flag_bits & 0x800 else "cp437")
        if name_length != len(name) or self.file.read(name_length) != name:
            raise _broken(f"record {entry.filename!r} is called otherwise where it lies")
        return entry.header_offset + _LOCAL.size + name_length + extra_length

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def size(self, name: str) -> int:
        if name not in self.places:
            raise _broken(f"file not found: {name!r}")
        return self.places[name][1]

    # PyTorch's names

    def has_record(self, name: str) -> bool:
        return name in self

    def get_all_records(self) -> list[str]:
        return sorted(self.places, key=self.get_record_offset)

    def get_record_offset(self, name: str) -> int:
        return self.places[name][0]

    def get_record(self, name: str) -> bytes:
        return self.read(name)

    def read(self, name: str) -> bytes:
        size, (start, _) = self.size(name), self.places[name]
        self.file.seek(start)
        data = self.file.read(size)
        if len(data) != size:
            raise _broken(f"record {name!r} ends early")
        return data

    def storage(self, name: str) -> Any:
        """A record as a storage on the CPU."""
        size, (start, _) = self.size(name), self.places[name]
        if self.mapping is not None and size and start % ALIGNMENT == 0:
            return _C.frombuffer(self.mapping, dtype=_C.uint8, count=size, offset=start).untyped_storage()
        return fill(self.file, start, size, name)


def fill(file: IO[bytes], start: int, size: int, name: str) -> Any:
    """A storage with bytes of the file; the caller knows that the file is that long."""
    made: Any = _C.empty(size, dtype=_C.uint8, device="cpu")
    room = memoryview(made)
    file.seek(start)
    readinto: Any = getattr(file, "readinto", None)
    done = 0
    while done < size:
        if readinto:
            count = readinto(room[done:]) or 0
        else:
            part = file.read(min(size - done, io.DEFAULT_BUFFER_SIZE * 128))
            count = len(part)
            room[done : done + count] = part
        if not count:
            raise _broken(f"record {name!r} ends early")
        done += count
    return made.untyped_storage()


def _broken(what: str) -> RuntimeError:
    return RuntimeError(
        f"failed reading zip archive: {what}. The file is damaged, or was not saved by tensorpy or PyTorch."
    )
