"""PyTorch's format before 1.6: objects that come back, here and in PyTorch, and files that nobody should trust."""

from __future__ import annotations

import io
import pickle
import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_serialization import Run, file_of, look, sample

import tensorpy as tp

OLD = {"_use_new_zipfile_serialization": False}


def old_file(obj: object, lib: Any = tp, **options: Any) -> io.BytesIO:
    return file_of(obj, lib, **OLD, **options)


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_mixture(protocol: int, weights_only: bool) -> None:
    loaded = tp.load(old_file(sample(tp), pickle_protocol=protocol), weights_only=weights_only)
    assert look(loaded) == look(sample(tp))
    loaded["column"].fill_(100)
    assert loaded["base"][:, 1].tolist() == [100.0] * 4 == loaded["transposed"][1].tolist()


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_torch_and_for_it(weights_only: bool) -> None:
    torch = pytest.importorskip("torch")
    assert look(tp.load(old_file(sample(torch), torch), weights_only=weights_only)) == look(sample(tp))
    known = {key: value for key, value in sample(tp).items() if key != "dtypes"}  # it has no name for uint16 and kin
    assert look(torch.load(old_file(known), weights_only=weights_only)) == look(known)


def test_whole_modules_of_torch() -> None:
    """They are written with the text of their classes, which PyTorch compares with the classes that are there."""
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh())
    ours = tp.load(old_file(theirs, torch), weights_only=False)
    assert type(ours) is tp.nn.Sequential
    assert tp.allclose(ours(tp.ones(2)), tp.tensor(theirs(torch.ones(2)).tolist()), atol=1e-6)
    with pytest.raises(pickle.UnpicklingError):
        tp.load(old_file(theirs, torch))


def test_paths_and_streams_of_several_objects(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    tp.save({"a": tp.ones(3)}, path, **OLD)
    assert tp.load(path)["a"].tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="mmap"):
        tp.load(path, mmap=True)
    with open(path, "wb") as file:
        for value in (tp.arange(3), tp.zeros(2), "end"):
            tp.save(value, file, **OLD)
    with open(path, "rb") as file:
        read = [tp.load(file) for _ in range(3)]
        assert read[0].tolist() == [0, 1, 2] and read[1].tolist() == [0.0, 0.0] and read[2] == "end"
        with pytest.raises(EOFError):
            tp.load(file)


def test_map_location() -> None:
    seen = []

    def where(storage: Any, location: str) -> Any:
        seen.append((storage.nbytes(), location))
        return storage

    assert tp.load(old_file(tp.ones(2)), map_location=where).tolist() == [1.0, 1.0] and seen == [(8, "cpu")]
    assert tp.load(old_file(tp.ones(2)), map_location="meta").device.type == "meta"
    if tp.opencl.is_available():
        moved = tp.load(old_file(tp.arange(3)), map_location="opencl")
        assert moved.device.type == "opencl" and moved.tolist() == [0, 1, 2]
        assert tp.load(old_file(moved)).device.type == "opencl"


def test_a_failed_save_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    tp.save(1, path, **OLD)
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        tp.save(lambda: 1, path, **OLD)
    assert tp.load(path) == 1


def test_files_that_are_refused() -> None:
    good = old_file(tp.ones(3)).getvalue()
    version = pickle.dumps(1001, protocol=2)
    bytes_of_it = good.index(struct.pack("<q", 3) + struct.pack("<f", 1))
    for file, words in (
        (good.replace(version, pickle.dumps(1000, protocol=2)), "protocol version"),
        (good.replace(b"little_endianq\x02\x88", b"little_endianq\x02\x89"), "big-endian"),
        (good[:-4], "8 are in the file"),
        (good[:bytes_of_it] + struct.pack("<q", 2**60) + good[bytes_of_it + 8 :], "12 bytes"),
        (good[:bytes_of_it], "elements of storage"),
    ):
        assert file != good
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match=words):
            tp.load(io.BytesIO(file))
    with pytest.raises(pickle.UnpicklingError):
        tp.load(old_file(Run()))


def test_a_storage_is_not_larger_than_the_file() -> None:
    """Its size stands in the pickle before any of its bytes."""
    good = old_file(tp.ones(1000)).getvalue()
    size = good.index(b"M\xe8\x03N")  # 1000, then the view that it is not
    with pytest.raises(pickle.UnpicklingError, match="elements of storage"):
        tp.load(io.BytesIO(good[:size] + b"J\xff\xff\xff\x7f" + good[size + 3 :]))


def test_parts_of_storages() -> None:
    """Files from before 0.4 have storages that are parts of others: (key, first, count) in the place of None."""
    entry = b"K\x04Nt"  # four elements, no view, the end of the tuple
    file = old_file(tp.arange(4.0).storage()).getvalue()
    assert entry in file
    part = tp.load(io.BytesIO(file.replace(entry, b"K\x04X\x01\x00\x00\x000K\x01K\x02\x87t")))
    assert part.tolist() == [1.0, 2.0]
    with pytest.raises(pickle.UnpicklingError, match="reaches out"):
        tp.load(io.BytesIO(file.replace(entry, b"K\x04X\x01\x00\x00\x000K\x03K\x02\x87t")))


@pytest.mark.parametrize("protocol", [2, 4])
def test_damaged_files_load_or_raise(protocol: int) -> None:
    base = tp.arange(12.0).reshape(3, 4)
    good = old_file([base, base[:, 1], tp.nn.Linear(2, 2).state_dict(), {"a": (1, 2.5, "b")}], pickle_protocol=protocol)
    numbers, outcomes = random.Random(0), Counter[str]()
    for i in range(1000):
        changed = bytearray(good.getvalue())
        for _ in range(numbers.choice((1, 1, 2, 8))):
            changed[numbers.randrange(len(changed))] = numbers.choice((0, 1, 0xFF, numbers.randrange(256)))
        del changed[numbers.randrange(len(changed)) if i % 5 == 0 else len(changed) :]
        try:
            repr(tp.load(io.BytesIO(changed)))
            outcomes["loaded"] += 1
        except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
            outcomes[type(error).__name__] += 1
    assert outcomes["loaded"] > 50 and outcomes["UnpicklingError"] > 50


@pytest.mark.parametrize("weights_only", [True, False])
def test_indices_of_a_sparse_tensor_are_there_when_they_are_checked(weights_only: bool) -> None:
    x = tp.eye(3)
    for kept in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((1, 1)), x.to_sparse_bsc((1, 1))):
        assert tp.equal(tp.load(old_file(kept), weights_only=weights_only).to_dense(), x)

    class Spoofed:
        def __reduce__(self) -> Any:
            parts = tp.tensor([[0, 7], [1, 1]]), tp.ones(2), tp.Size([3, 3])
            return tp._utils._rebuild_sparse_tensor, (tp.sparse_coo, parts)

    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="size is inconsistent with indices"):
        tp.load(old_file(Spoofed()), weights_only=weights_only)


@pytest.mark.parametrize("weights_only", [True, False])
def test_strings_of_python_2(weights_only: bool) -> None:
    file = old_file(["word", tp.ones(1)])
    data = file.getvalue().replace(b"X\x04\x00\x00\x00word", b"U\x04\xc3\xa4\xc3\xb6")
    assert tp.load(io.BytesIO(data), weights_only=weights_only)[0] == "äö"
    assert tp.load(io.BytesIO(data), weights_only=weights_only, encoding="latin1")[0] == "Ã¤Ã¶"
    loaded = tp.load(io.BytesIO(data), weights_only=weights_only, encoding="bytes")
    assert loaded[0] == "äö".encode() and loaded[1].tolist() == [1]
