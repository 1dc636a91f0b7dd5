"""Checkpoints of strangers: what `.metadata` and the files beside it say runs nothing, leaves the folder nowhere, and
makes nothing larger than they are."""

from __future__ import annotations

import io
import os
import pickle
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.distributed import checkpoint
from tensorpy.distributed.checkpoint import metadata as kinds
from tensorpy.distributed.checkpoint import metadata_file
from tensorpy.distributed.checkpoint.agreement import Ranks
from tensorpy.distributed.checkpoint.api import CheckpointException
from tensorpy.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from tensorpy.distributed.checkpoint.state_dict_loader import _load

# What a file may make of a load, and nothing else.
REFUSALS = (pickle.UnpicklingError, RuntimeError, OSError, ValueError)


def good() -> kinds.Metadata:
    """What a checkpoint of a tensor, a list and an object says."""
    properties, size = kinds.TensorProperties(dtype=tp.float32), tp.Size([2, 3])
    box = kinds.ChunkStorageMetadata(tp.Size([0, 0]), size)
    entries: dict[str, Any] = {
        "x": kinds.TensorStorageMetadata(properties, size, [box]), "l.0": kinds.BytesStorageMetadata(),
    }  # fmt: skip
    where = {
        kinds.MetadataIndex("x", [0, 0], 0): kinds._StorageInfo("__0_0.distcp", 0, 2000),
        kinds.MetadataIndex("l.0"): kinds._StorageInfo("__0_0.distcp", 2000, 100),
    }
    which = kinds.StorageMeta("a", "b")
    return kinds.Metadata(entries, {"x": ("x",), "l.0": ("l", 0)}, where, which, "1.0.0")


def test_what_is_written_is_read() -> None:
    assert metadata_file.load(metadata_file.dump(good())) == good()


def first(m: kinds.Metadata) -> Any:
    return m.storage_data[kinds.MetadataIndex("x", [0, 0])]


def _set(of: Callable[[kinds.Metadata], Any], **values: Any) -> Callable[[kinds.Metadata], None]:
    def change(m: kinds.Metadata) -> None:
        for name, value in values.items():
            object.__setattr__(of(m), name, value)

    return change


def _tensor(m: kinds.Metadata) -> Any:
    return m.state_dict_metadata["x"]


def _box(m: kinds.Metadata) -> Any:
    return _tensor(m).chunks[0]


def itself(m: kinds.Metadata) -> Any:
    return m


HUGE = 1 << 61
WRONG: dict[str, Callable[[kinds.Metadata], Any]] = {
    "no dtype": _set(lambda m: _tensor(m).properties, dtype=3),
    "a dtype that is a class": _set(lambda m: _tensor(m).properties, dtype=tp.Size),
    "a shape that is a tuple": _set(_tensor, size=(2, 3)),
    "a negative shape": _set(_tensor, size=tp.Size([-2, -3])),
    "a huge shape": _set(_tensor, size=tp.Size([HUGE, HUGE])),
    "more elements than bytes": lambda m: (
        _set(_tensor, size=tp.Size([1 << 20, 1 << 20]))(m),
        _set(_box, sizes=tp.Size([1 << 20, 1 << 20]))(m),
    ),
    "a shape of another length": _set(_tensor, size=tp.Size([2])),
    "no boxes": _set(_tensor, chunks=None),
    "a box that reaches out": _set(_box, sizes=tp.Size([2, 4])),
    "a box outside": _set(_box, offsets=tp.Size([2, 0])),
    "a box before the tensor": _set(_box, offsets=tp.Size([-1, 0])),
    "a box that is none": _set(_tensor, chunks=[3]),
    "a box of another file": _set(_box, offsets=tp.Size([1, 0]), sizes=tp.Size([1, 3])),
    "no keys": _set(itself, state_dict_metadata=None),
    "a key that is a number": lambda m: m.state_dict_metadata.update({3: kinds.BytesStorageMetadata()}),
    "a key of nothing": lambda m: m.state_dict_metadata.update(y=3),
    "nowhere": _set(itself, storage_data=None),
    "places of nothing": lambda m: m.storage_data.update({3: 4}),
    "a place that is none": lambda m: m.storage_data.update({kinds.MetadataIndex("x", [0, 0]): 4}),
    "a way that is none": _set(itself, planner_data={"x": 3}),
    "an empty way": _set(itself, planner_data={"x": ()}),
    "a far place in a list": _set(itself, planner_data={"l.0": ("l", 1 << 40)}),
    "a place before a list": _set(itself, planner_data={"l.0": ("l", -1)}),
    "a way that begins with a number": _set(itself, planner_data={"x": (0,)}),
    "a version that is none": _set(itself, version=[]),
    "another checkpoint": _set(itself, storage_meta=3),
    "an id that is none": _set(lambda m: m.storage_meta, save_id=4),
    "shared bytes": lambda m: _set(first, length=2001)(m),
    "bytes before the file": _set(first, offset=-1),
    "negative bytes": _set(first, length=-5),
    "a place that is true": _set(first, offset=True),
    "too few bytes": _set(first, length=23),
    **{
        f"the file {path!r}": _set(first, relative_path=path)
        for path in ("/etc/passwd", "../x", "a/../../x", "", "..", "..\\x", "C:\\x", "C:x", "a\0b", "\\\\host\\x", 3)
    },
}


@pytest.mark.parametrize("wrong", WRONG)
def test_metadata_that_cannot_be(wrong: str) -> None:
    metadata = good()
    WRONG[wrong](metadata)
    with pytest.raises(pickle.UnpicklingError, match="damaged"):
        metadata_file.load(metadata_file.dump(metadata))


class Runs:
    """A pickle of this calls something."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


ran: list[str] = []


@pytest.mark.parametrize(
    "value",
    [
        Runs(os.system, "touch ran"), Runs(eval, "ran.append('x')"), Runs(ran.append, "x"), Runs(getattr, "x", "upper"),
        Runs(kinds.MetadataIndex, "x"), Runs(__import__, "os"), Runs(io.open, "ran", "w"), Runs(kinds.Metadata, {}),
    ],
    ids=["system", "eval", "append", "getattr", "index", "import", "open", "call"],
)  # fmt: skip
@pytest.mark.parametrize("field", ["planner_data", "version", "storage_data", "itself"])
def test_metadata_runs_nothing(value: Any, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    metadata: Any = good()
    if field == "itself":
        metadata = value
    else:
        setattr(metadata, field, value)
    for data in (pickle.dumps(metadata), pickle.dumps(metadata, 2)):
        with pytest.raises(pickle.UnpicklingError):
            metadata_file.load(data.replace(b"tensorpy.distributed", b"torch.distributed"))
    assert not ran and not list(tmp_path.iterdir())


def stack(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


KINDS = "torch.distributed.checkpoint.metadata"


@pytest.mark.parametrize(
    "program",
    [
        stack(KINDS, "Metadata") + b")\x81}X\x09\x00\x00\x00__class__" + stack(KINDS, "StorageMeta") + b"sb.",
        stack(KINDS, "Metadata") + b")\x81}X\x08\x00\x00\x00__dict__}sb.",
        stack(KINDS, "Metadata") + b")\x81K\x01b.",
        stack(KINDS, "Metadata") + b")\x81.",
        stack(KINDS, "MetadataIndex") + b")\x81}X\x01\x00\x00\x00aK\x01sb.",
        stack(KINDS, "TensorProperties") + b")\x81}b.",
        stack(KINDS, "TensorProperties") + b")\x81(K\x01K\x02K\x03K\x04K\x05tb.",
        stack(KINDS, "_MEM_FORMAT_ENCODING") + b"K\x09\x85R.",
        stack(KINDS, "Metadata") + b"K\x01\x85\x81.",
        stack(KINDS, "Metadata") + b"}R.",
        b"}" + stack(KINDS, "MetadataIndex") + b")\x81K\x01s.",
        stack("pathlib", "PosixPath") + b"K\x01\x85R.",
        stack(KINDS, "Metadata") + b".",
        b"K\x01.",
        b"",
    ],
)
def test_programs_that_are_no_metadata(program: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError):
        metadata_file.load(b"\x80\x02" + program)


def everything_in(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = {}
    _load(made, checkpoint.FileSystemReader(folder), _EmptyStateDictLoadPlanner(), Ranks(None, False))
    return made


def test_damaged_files(tmp_path: Path) -> None:
    """Bytes that fell over, were cut off or added: an error of the kinds that a damaged file has, or what they say."""
    saved = {"x": tp.arange(40.0), "l": [tp.ones(2), 3], "n": {"a": "text"}}
    checkpoint.save(saved, checkpoint_id=tmp_path, no_dist=True)
    numbers = random.Random(5)
    whole = {p: p.read_bytes() for p in tmp_path.iterdir()}
    refused = 0
    for turn in range(600):
        path = numbers.choice(sorted(whole))
        data = bytearray(whole[path])
        if turn % 3 == 0:
            data = data[: numbers.randrange(len(data))]
        for _ in range(numbers.choice([1, 1, 4]) if turn % 3 else 0):
            data[numbers.randrange(len(data))] = numbers.randrange(256)
        path.write_bytes(data)
        try:
            everything_in(tmp_path)
        except CheckpointException as error:
            ((inner, _),) = error.failures.values()
            assert isinstance(inner, REFUSALS), repr(inner)
            refused += 1
        path.write_bytes(whole[path])
    assert refused > 200
    assert everything_in(tmp_path)["x"].tolist() == saved["x"].tolist()  # type: ignore[attr-defined]


def test_links_and_other_files(tmp_path: Path) -> None:
    """A part that is another tensor, or none."""
    checkpoint.save({"x": tp.ones(4), "n": 1}, checkpoint_id=tmp_path, no_dist=True)
    place = tmp_path / ".metadata"
    metadata = metadata_file.load(place.read_bytes())
    x, n = (kinds.MetadataIndex("x", [0]), kinds.MetadataIndex("n"))

    def fails(match: str, state: dict[str, Any] | None = None) -> None:
        place.write_bytes(metadata_file.dump(metadata))
        with pytest.raises(CheckpointException, match=match):
            checkpoint.load(state or {"x": tp.zeros(4)}, checkpoint_id=tmp_path, no_dist=True)

    where = dict(metadata.storage_data)
    metadata.storage_data = {x: where[n], n: where[x]}
    fails("'x' is no tensor of its shape")
    metadata.storage_data = where
    metadata.state_dict_metadata["x"].chunks[0].sizes = metadata.state_dict_metadata["x"].size = tp.Size([5])  # type: ignore[union-attr]
    fails("less than was said", {"x": tp.zeros(5)})
    where[x].length = 1 << 40
    where[n].offset = 1 << 50
    fails("it is damaged", {"x": tp.zeros(5)})
    where[n].offset, where[x].transform_descriptors = where[x].offset + (1 << 41), ["zstd"]
    fails("damaged|zstd", {"x": tp.zeros(5)})


def test_work_is_bounded() -> None:
    """A value that is spoken of over and over is not copied over and over."""
    deep = b"\x80\x02]q\x00" + b"(" + b"h\x00" * 50000 + b"e" + b"."
    with pytest.raises(pickle.UnpicklingError):
        metadata_file.load(deep)
    assert sys.getrecursionlimit() < 50000
    nested = b"\x80\x02" + b"]" * 200000 + b"a" * 199999 + b"."
    with pytest.raises(pickle.UnpicklingError):
        metadata_file.load(nested)
