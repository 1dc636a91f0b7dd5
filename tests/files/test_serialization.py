"""save and load: files that come back as they were, here and in PyTorch, and files that nobody should trust."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn, optim
from tensorpy.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from tensorpy.serialization.archive import Reader, Writer

DTYPES = (
    "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


def file_of(obj: object, lib: Any = tp, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    lib.save(obj, file, **options)
    file.seek(0)
    return file


def rewound(file: io.BytesIO) -> io.BytesIO:
    file.seek(0)
    return file


def again(obj: object, **options: Any) -> Any:
    return tp.load(file_of(obj), **options)


def bits(tensor: Any) -> list:
    """The elements as bytes; both libraries have these names."""
    flat = tensor.detach().contiguous().flatten()
    return flat.view(tp.uint8 if isinstance(tensor, tp.Tensor) else __import__("torch").uint8).tolist()


def look(value: Any) -> Any:
    """What can be compared between tensorpy and PyTorch."""
    if hasattr(value, "storage_offset"):
        place = tuple(value.shape), value.stride(), value.storage_offset(), len(value.untyped_storage())
        dtype = str(value.dtype).rpartition(".")[2]
        return type(value).__name__, dtype, place, value.requires_grad, bits(value), sorted(value.__dict__)
    if isinstance(value, dict):
        return [(k, look(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(look, value)]
    return repr(value).replace("tensorpy.", "").replace("torch.", "")


def sample(lib: Any) -> Any:
    """The same object in either library."""
    base = lib.arange(24, dtype=lib.float32).reshape(4, 6)
    named = lib.ones(2)
    named.label = "x"
    parameter = lib.nn.Parameter(lib.ones(2, 3), requires_grad=False)
    return {
        "base": base,
        "column": base[:, 1],
        "step": base[1::2, ::3],
        "transposed": base.T,
        "expanded": lib.ones(1).expand(3, 2),
        "scalar": lib.tensor(2.5),
        "empty": lib.empty(0, 3),
        "leaf": lib.ones(2, requires_grad=True),
        "parameter": parameter,
        "named": named,
        "dtypes": [lib.tensor([0, 1, 2]).to(getattr(lib, name)) for name in DTYPES],
        "complex": lib.tensor([1 + 2j]),
        "plain": [None, True, 3, -70000, 2**70, 1.5, "é", b"\xff\x00", bytearray(b"a"), 1j, (1, (2, 3), 4, 5), {1}],
        "words": [lib.float32, lib.device("cpu"), lib.Size([2, 3]), lib.strided],
        ("a", 1): OrderedDict(b=Counter("aab")),
    }


# ---- there and back ----


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name: str) -> None:
    t = tp.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(tp, name))
    assert look(again(t)) == look(t)
    assert look(again(t, weights_only=False)) == look(t)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_mixture(protocol: int) -> None:
    mixture = sample(tp)
    for weights_only in (True, False):
        loaded = tp.load(file_of(mixture, pickle_protocol=protocol), weights_only=weights_only)
        assert look(loaded) == look(mixture)
        loaded["column"].fill_(100)
        assert loaded["base"][:, 1].tolist() == [100.0] * 4 == loaded["transposed"][1].tolist()
        assert loaded["named"].label == "x"
    with pytest.raises(ValueError, match="protocol"):
        tp.save(mixture, io.BytesIO(), pickle_protocol=9)


def test_dtypes_that_share_a_storage() -> None:
    x = tp.ones(4)
    a, b, c = again([x, x.view(tp.int32), x.view(tp.float64)[1:]])
    a.zero_()
    assert b.tolist() == [0] * 4 and c.tolist() == [0.0] and c.storage_offset() == 1


def test_negative_strides_are_laid_out_anew() -> None:
    np = pytest.importorskip("numpy")
    t = tp.from_numpy(np.arange(6.0)[::-1])
    assert again(t).tolist() == t.tolist() and again(t).stride() == (1,)


def test_the_same_object_stays_the_same() -> None:
    t = tp.ones(2)
    cyclic: list = [t, t]
    cyclic.append(cyclic)
    loaded = again(cyclic)
    assert loaded[0] is loaded[1] and loaded[2] is loaded
    storage, view = again([t.untyped_storage(), t])
    assert view.untyped_storage() is storage and isinstance(storage, tp.UntypedStorage)


def test_networks_optimizers_and_schedules_go_on() -> None:
    def parts() -> tuple:
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        optimizer = optim.AdamW(model.parameters(), lr=0.1)
        return model, optimizer, optim.lr_scheduler.StepLR(optimizer, 2)

    def steps(model: Any, optimizer: Any, schedule: Any) -> list:
        for i in range(3):
            optimizer.zero_grad()
            model(tp.arange(6.0).reshape(2, 3) + i).square().sum().backward()
            optimizer.step()
            schedule.step()
        return [p.tolist() for p in model.state_dict().values()]

    first, second = parts(), parts()
    steps(*first)
    states = again([part.state_dict() for part in first])
    for part, state in zip(second, states, strict=True):
        part.load_state_dict(state)
    assert states[0]._metadata == first[0].state_dict()._metadata
    assert steps(*first) == steps(*second)


def test_whole_modules() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.LazyLinear(2))
    loaded = again(model, weights_only=False)
    assert repr(loaded) == repr(model) and tp.equal(loaded[0].weight, model[0].weight)
    linear = nn.Linear(2, 3)
    assert tp.equal(again(linear, weights_only=False)(tp.ones(2)), linear(tp.ones(2)))
    with pytest.raises(pickle.UnpicklingError, match=r"tensorpy\.nn\.modules\.linear\.Linear.*add_safe_globals"):
        again(linear)
    with safe_globals([nn.Linear]):
        assert tp.equal(again(linear).weight, linear.weight)


def test_states_of_generators() -> None:
    tp.manual_seed(3)
    state = again(tp.get_rng_state())
    expected = tp.rand(3)
    tp.set_rng_state(state)
    assert tp.equal(tp.rand(3), expected)


def test_files_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    tp.save([tp.ones(3)], path)
    assert {name.partition("/")[0] for name in zipfile.ZipFile(path).namelist()} == {"model"}
    with open(path, "rb") as file:
        assert tp.load(str(path))[0].tolist() == tp.load(file)[0].tolist() == [1.0] * 3
    later = io.BytesIO(b"abc")
    later.seek(3)
    tp.save(tp.ones(2), later)
    later.seek(3)
    assert tp.load(later).tolist() == [1.0, 1.0]

    class Reads:
        """What has no readinto."""

        def __init__(self, file: Any) -> None:
            self.seek, self.tell, self.read = file.seek, file.tell, file.read
            self.seekable = file.seekable

    assert tp.load(Reads(file_of(tp.arange(3)))).tolist() == [0, 1, 2]
    with pytest.raises(FileNotFoundError):
        tp.load(tmp_path / "none.pt")
    with pytest.raises(RuntimeError, match="Parent directory"):
        tp.save(1, tmp_path / "none" / "model.pt")
    for wrong in (tp.load, lambda f: tp.save(1, f)):
        with pytest.raises(AttributeError):
            wrong(3)


def test_a_failed_save_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    tp.save(1, path)
    with pytest.raises(Exception, match="pickle"):
        tp.save([tp.ones(2), lambda: 0], path)
    assert tp.load(path) == 1


def test_mapped_files(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    big = tp.arange(1000.0)
    tp.save({"big": big, "tail": big[990:], "empty": tp.empty(0)}, path)
    before = path.read_bytes()
    loaded = tp.load(path, mmap=True)
    assert tp.equal(loaded["big"], big) and loaded["empty"].shape == (0,)
    loaded["tail"].zero_()
    assert loaded["big"][995].item() == 0 and path.read_bytes() == before
    assert loaded["big"].data_ptr() % 64 == 0
    with pytest.raises(ValueError, match="file path"):
        tp.load(file_of(big), mmap=True)


# ---- devices ----


def test_map_location(device: str) -> None:
    x = tp.arange(4.0)
    for where in (device, tp.device(device), {"cpu": device}):
        a, b = again([x, x[1:]], map_location=where)
        assert a.device.type == device.partition(":")[0]
        a[1] = 9
        assert b.tolist() == [9.0, 2.0, 3.0]
    loaded = again([x.to(device=device)[1:]])[0]
    assert loaded.device.type == device.partition(":")[0] and loaded.tolist() == [1.0, 2.0, 3.0]
    assert again(x.to(device=device), map_location="cpu").device.type == "cpu"


def test_map_location_by_function() -> None:
    seen = []

    def where(storage: Any, location: str) -> Any:
        seen.append((type(storage), storage.nbytes(), location))
        return storage if len(seen) == 1 else None

    assert again([tp.ones(2), tp.ones(3)], map_location=where)[1].tolist() == [1.0] * 3
    assert seen == [(tp.UntypedStorage, 8, "cpu"), (tp.UntypedStorage, 12, "cpu")]
    for wrong, error in (
        (3, TypeError),
        ("foo", RuntimeError),
        (lambda storage, location: 3, TypeError),
        (lambda storage, location: {}[location], KeyError),
    ):
        with pytest.raises(error):
            again(tp.ones(2), map_location=wrong)
    with pytest.raises(RuntimeError):
        again(tp.ones(2), map_location=lambda storage, location: tp.empty(0).untyped_storage())


def test_meta() -> None:
    kept, mapped = again(tp.empty(2, 3, device="meta")), again(tp.ones(2, 3), map_location="meta")
    assert kept.device.type == mapped.device.type == "meta" and kept.shape == mapped.shape == (2, 3)


@pytest.mark.parametrize("name", ["cuda", "opencl:77"])
def test_a_device_that_is_not_there(name: str) -> None:
    saved = len(name).to_bytes(4, "little") + name.encode()
    file = edited(file_of(tp.ones(2)), lambda program: program.replace(b"\x03\x00\x00\x00cpu", saved))
    with pytest.raises(RuntimeError, match="map_location"):
        tp.load(file)
    for where in ("cpu", {name: "cpu"}, lambda storage, location: storage):
        file.seek(0)
        assert tp.load(file, map_location=where).tolist() == [1.0, 1.0]


# ---- PyTorch ----


def test_files_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for weights_only in (True, False):
        loaded = tp.load(file_of(sample(torch), torch), weights_only=weights_only)
        assert look(loaded) == look(sample(torch)) == look(sample(tp))
    lazy = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert tp.load(file_of(lazy, torch)).tolist() == lazy.tolist()
    assert tp.load(file_of(lazy.imag, torch)).tolist() == lazy.imag.tolist()
    assert tp.load(file_of(torch.empty(2, device="meta"), torch)).device.type == "meta"


def test_files_for_torch() -> None:
    torch = pytest.importorskip("torch")
    for weights_only in (True, False):
        loaded = torch.load(file_of(sample(tp)), weights_only=weights_only)
        assert look(loaded) == look(sample(tp))
        loaded["column"].fill_(100)
        assert loaded["base"][:, 1].tolist() == [100.0] * 4
    x = tp.ones(4)
    a, b = torch.load(file_of([x, x.view(tp.int32)]))
    a.zero_()
    assert b.tolist() == [0] * 4 and b.dtype == torch.int32


def test_networks_of_torch_and_for_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def parts(lib: Any) -> tuple:
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.LSTM(4, 2))
        optimizer = lib.optim.Adam(model.parameters(), lr=0.1)
        model[1](model[0](lib.ones(2, 3))).sum().backward()
        optimizer.step()
        return model, optimizer, lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)

    for writer, reader in ((torch, tp), (tp, torch)):
        written, path = parts(writer), tmp_path / f"{writer.__name__}.pt"
        writer.save([part.state_dict() for part in written], path)
        model, optimizer, schedule = read = parts(reader)
        for part, state in zip(read, reader.load(path, mmap=True), strict=True):
            part.load_state_dict(state)
        assert look(model.state_dict()) == look(written[0].state_dict())
        assert look(optimizer.state_dict()["state"]) == look(written[1].state_dict()["state"])
        assert schedule.state_dict()["T_max"] == 5


def test_whole_modules_of_torch() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.GELU(), torch.nn.LayerNorm(4)).eval()
    ours = tp.load(file_of(theirs, torch), weights_only=False)
    assert type(ours) is nn.Sequential
    assert tp.allclose(ours(tp.ones(2)), tp.tensor(theirs(torch.ones(2)).tolist()), atol=1e-5)


# ---- settings ----


def test_skip_data_leaves_room() -> None:
    file = io.BytesIO()
    with tp.serialization.skip_data():
        tp.save({"a": tp.ones(3)}, file)
    assert tp.load(rewound(file))["a"].tolist() == [0.0, 0.0, 0.0]
    with tp.serialization._open_zipfile_reader(rewound(file)) as archive:
        place = archive.get_record_offset("data/0")
    file.seek(place)
    file.write(struct.pack("<3f", 1, 2, 3))
    assert tp.load(rewound(file))["a"].tolist() == [1.0, 2.0, 3.0]


def test_fake_tensors_and_files() -> None:
    from tensorpy._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    base = tp.arange(6.0)
    file = file_of({"row": base[:2], "all": base.view(2, 3)})
    with FakeTensorMode() as mode:
        fake = tp.load(file)
    assert all(type(t) is FakeTensor and t.device.type == "cpu" for t in fake.values())
    assert fake["all"].shape == (2, 3) and fake["all"].untyped_storage() is fake["row"].untyped_storage()
    file = io.BytesIO()
    with tp.serialization.skip_data(materialize_fake_tensors=True):
        tp.save(mode.from_tensor(base), file)
    loaded = tp.load(rewound(file))
    assert type(loaded) is tp.Tensor and loaded.shape == (6,) and loaded.device.type == "cpu"


def test_settings_of_load_and_save(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorpy.utils.serialization import config

    with config.patch({"save.storage_alignment": 2048}):
        file = file_of(tp.ones(3))
    assert config.save.storage_alignment == 64 and tp.load(file).tolist() == [1.0, 1.0, 1.0]
    with tp.serialization._open_zipfile_reader(rewound(file)) as archive:
        assert archive.get_record_offset("data/0") % 2048 == 0 and archive.get_record(".storage_alignment") == b"2048"
        assert archive.get_record(".data/serialization_id").isdigit()
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert type(tp.load(file_of(Kept()))) is Kept
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError):
        tp.load(file_of(Kept()), weights_only=False)


# ---- globals ----


class Run:
    """What would run something if a pickle were run."""

    def __reduce__(self) -> Any:
        return os.system, ("exit 3",)


class Kept:
    def __init__(self) -> None:
        self.value = tp.ones(2)


def test_nothing_runs_that_was_not_allowed() -> None:
    for protocol in (2, 4):
        file = file_of(Run(), pickle_protocol=protocol)
        with pytest.raises(pickle.UnpicklingError, match=r"system whose module \w+ is blocked"):
            tp.load(file)
        assert tp.serialization.get_unsafe_globals_in_checkpoint(file_of(Run(), pickle_protocol=protocol)) == [
            f"{os.system.__module__}.system"
        ]
    assert again(Run(), weights_only=False) == 3 << 8
    with pytest.raises(RuntimeError, match="pickle_module"):
        tp.load(file_of(1), weights_only=True, pickle_module=pickle)


def test_safe_globals() -> None:
    with pytest.raises(pickle.UnpicklingError, match="Kept"):
        again(Kept())
    try:
        add_safe_globals([Kept])
        assert get_safe_globals() == [Kept] and again(Kept(), pickle_module=None).value.tolist() == [1.0, 1.0]
        with safe_globals([(Counter, "some.name")]):
            assert (Counter, "some.name") in get_safe_globals()
        assert get_safe_globals() == [Kept]
    finally:
        clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        again(Kept())
    with pytest.raises(TypeError):
        add_safe_globals([3])


# ---- files that nobody should trust ----


def edited(file: io.BytesIO, change: Any, **others: bytes) -> io.BytesIO:
    """The file with another pickle, and other records."""
    reader, made = Reader(file), io.BytesIO()
    with Writer(made, "archive") as writer:
        for name in reader.places:
            data = reader.read(name)
            writer.record(name, change(data) if name == "data.pkl" else others.get(name.replace("/", "_"), data))
    made.seek(0)
    return made


def program(text: bytes) -> io.BytesIO:
    return edited(file_of(0), lambda old: b"\x80\x02" + text + b".")


def nested(depth: int) -> bytes:
    """A tuple of the same tuple twice, of ...: 2 ** depth leaves in some bytes."""
    return b")q\x00" + b"h\x00h\x00\x86q\x00" * depth


@pytest.mark.parametrize(
    "text",
    [
        b"ctorch\nTensor\nJ\x00\x00\x00\x7f\x85R",
        b"ctorch\nTensor\n\x81",
        b"c__builtin__\nbytearray\nJ\x00\x00\x00\x7f\x85R",
        b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf16\x86R",
        b"ccollections\nOrderedDict\nJ\x00\x00\x00\x7f\x85R",
        b"ccollections\nCounter\nX\x01\x00\x00\x00a\x85R",
        b"c__builtin__\neval\nX\x01\x00\x00\x001\x85R",
        b"ctorch.os\nsystem\n",
        b"ctensorpy\nload\n",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nTensor\nctorch\nTensor\nJ\x00\x00\x00\x7f\x85}tR",
        b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\nJ\xff\xff\xff\xff\x85K\x01\x85\x89tR",
        b"}" + nested(60) + b"K\x01s",
        b"c__builtin__\nset\n](" + nested(60) + b"e\x85R",
        b"}" + b")" + b"\x85" * 200_000 + b"K\x01s",
        b"(((",
        b"X\xff\xff\xff\x7fa",
        b"\x8b\xff\xff\xff\x7fa",
        b"K\x01}b",
        b"h\x05",
        b"(q\x00",
        b"X\x01\x00\x00\x00aQ",
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x05\x00\x00\x00../..X\x03\x00\x00\x00cpuK\x02tQ",
        b"i__builtin__\neval\n",
        b"\x93",
        b"K",
        b"",
    ],
)
def test_programs_that_are_refused(text: bytes) -> None:
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        tp.load(program(text))


def test_deep_values_are_only_deep() -> None:
    value = tp.load(program(b"]" * 100_000 + b"a" * 99_999))
    depth = 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 99_999


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"K\x03\x85", b"K\x04\x85"),  # more elements than there are
        (b"K\x03\x85", b"J\xff\xff\xff\xff\x85"),
        (b"K\x01\x85", b"K\x02\x85"),  # strides
        (b"K\x01\x85", b"J\xff\xff\xff\xff\x85"),
        (b"K\x01\x85", b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01\x85"),
        (b"QK\x00", b"QK\x01"),  # the offset
        (b"QK\x00", b"QJ\xff\xff\xff\xff"),
        (b"QK\x00", b"Q\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x70"),
        (b"K\x03tq", b"K\x04tq"),  # the storage
        (b"FloatStorage", b"DoubleStorage"),
        (b"X\x01\x00\x00\x000q", b"X\x01\x00\x00\x009q"),
    ],
)
def test_tensors_that_reach_out_of_their_storage(old: bytes, new: bytes) -> None:
    file = file_of(tp.arange(3.0))
    assert old in Reader(file).read("data.pkl")
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        tp.load(edited(file, lambda program: program.replace(old, new)))


def test_a_lazy_bit_does_not_multiply_memory() -> None:
    tail = b"ccollections\nOrderedDict\n)R}X\x04\x00\x00\x00conj\x88stR"
    text = (
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nComplexFloatStorage\nX\x01\x00\x00\x000"
        b"X\x03\x00\x00\x00cpuK\x01tQK\x00J\x00\x00\x00\x7f\x85K\x00\x85\x89" + tail
    )
    file = edited(file_of(tp.tensor([1j])), lambda old: b"\x80\x02" + text + b".")
    read = tp.load(file)
    assert read.shape == (0x7F000000,) and read.stride() == (0,) and read.is_conj()
    assert read.untyped_storage().nbytes() == 8 and read[5].item() == -1j


def test_a_program_does_not_multiply_values() -> None:
    large = b"](" + b"K\x01" * 1000 + b"eq\x00"
    once = b"ctorch\nSize\nq\x01" + large + b"\x85R"
    assert tp.load(program(once)) == tp.Size([1] * 1000)
    with pytest.raises(pickle.UnpicklingError, match="over and over"):
        tp.load(program(b"0".join([once, *[b"h\x01h\x00\x85R"] * 1000])))


def test_archives_that_are_refused(tmp_path: Path) -> None:
    good = file_of(tp.ones(3)).getvalue()

    def archive(compression: int = zipfile.ZIP_STORED, *more: str) -> io.BytesIO:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", compression) as target, zipfile.ZipFile(io.BytesIO(good)) as source:
            for name in source.namelist():
                target.writestr(name, source.read(name))
            for name in more:
                target.writestr(name, b"x")
        made.seek(0)
        return made

    assert tp.load(archive()).tolist() == [1.0] * 3
    for file, words in (
        (archive(zipfile.ZIP_DEFLATED), "compressed"),
        (archive(zipfile.ZIP_STORED, "archive/constants.pkl"), "TorchScript"),
        (archive(zipfile.ZIP_STORED, "elsewhere/data/0"), "apart"),
        (edited(file_of(tp.ones(3, dtype=tp.uint16)), bytes, byteorder=b"big"), "big-endian"),
        (io.BytesIO(good[:100]), "central directory"),
        (io.BytesIO(good.replace(b"archive/data/0", b"archive/data/1", 1)), "called otherwise"),
    ):
        with pytest.raises(RuntimeError, match=words):
            tp.load(file)
    with pytest.raises(EOFError):
        tp.load(io.BytesIO())
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.save has not written"):
        tp.load(io.BytesIO(pickle.dumps([1])))
    with pytest.raises(pickle.UnpicklingError):
        tp.load(io.BytesIO(b"some text"))


@pytest.mark.parametrize("name", ["float32", "complex64", "complex128", "int16", "uint8", "bfloat16"])
@pytest.mark.parametrize("says", [True, False])
def test_big_endian_files(name: str, says: bool) -> None:
    t = tp.arange(6).to(getattr(tp, name))
    storage = t.clone().untyped_storage()
    storage.byteswap(t.dtype)
    file = file_of(t, _disable_byteorder_record=not says)
    swapped = edited(file, bytes, data_0=bytes(storage.tolist()), byteorder=b"big")
    before = tp.serialization.get_default_load_endianness()
    try:
        if not says:
            tp.serialization.set_default_load_endianness(tp.serialization.LoadEndianness.BIG)
        assert tp.equal(tp.load(swapped), t)
    finally:
        tp.serialization.set_default_load_endianness(before)
    with pytest.raises(ValueError, match="Unknown endianness"):
        tp.load(edited(file_of(t), bytes, byteorder=b"middle"))


def test_records_do_not_overlap() -> None:
    """Many records over the same bytes would be more memory than the file has."""
    file = file_of([tp.ones(100), tp.ones(100)]).getvalue()
    entries = {entry.filename: entry.header_offset for entry in zipfile.ZipFile(io.BytesIO(file)).infolist()}
    first, second = (entries[f"archive/data/{key}"].to_bytes(4, "little") for key in "01")
    head, tail = file[: file.index(b"PK\x01\x02")], file[file.index(b"PK\x01\x02") :]
    assert tail.count(second) == 1
    with pytest.raises(RuntimeError):
        tp.load(io.BytesIO(head + tail.replace(second, first)))


def mutations(file: bytes, count: int) -> Any:
    """Files cut short and files with some bytes changed; half of the changes are in the pickle and the directory."""
    numbers = random.Random(0)
    directory, end = file.index(b"PK\x01\x02"), file.index(b".format_version")
    for i in range(count):
        if i % 5 == 0:
            yield file[: numbers.randrange(len(file))]
            continue
        changed = bytearray(file)
        for _ in range(numbers.choice((1, 1, 2, 8))):
            low, high = numbers.choice(((0, len(file)), (0, end), (directory, len(file))))
            changed[numbers.randrange(low, high)] = numbers.choice((0, 1, 0xFF, numbers.randrange(256)))
        yield bytes(changed)


@pytest.mark.parametrize("protocol", [2, 4])
def test_damaged_files_load_or_raise(protocol: int, tmp_path: Path) -> None:
    base = tp.arange(12.0).reshape(3, 4)
    state = nn.Linear(2, 2).state_dict()
    good = file_of([base, base[:, 1], state, {"a": (1, 2.5, "b")}], pickle_protocol=protocol).getvalue()
    outcomes, path = Counter[str](), tmp_path / "damaged.pt"
    for i, bad in enumerate(mutations(good, 1000)):
        try:
            if i % 10 == 0:
                path.write_bytes(bad)
                value = tp.load(path, mmap=True)
            else:
                value = tp.load(io.BytesIO(bad))
            repr(value)
            outcomes["loaded"] += 1
        except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
            outcomes[type(error).__name__] += 1
        except ValueError as error:
            assert "Unknown endianness" in str(error)  # PyTorch's class for a damaged record of the order
    assert outcomes["loaded"] > 50 and outcomes["RuntimeError"] > 50 and outcomes["UnpicklingError"] > 50


# ---- storages of a dtype, what subclasses have, records ----


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("archive", [True, False])
def test_storages_of_a_dtype_come_back_as_such(archive: bool, weights_only: bool) -> None:
    x = tp.arange(4.0)
    kept = {"x": x, "two": (x.storage(), x[2:].storage()), "raw": x.untyped_storage()}
    loaded = again(kept, weights_only=weights_only) if archive else tp.load(
        file_of(kept, _use_new_zipfile_serialization=False), weights_only=weights_only
    )  # fmt: skip
    assert all(
        type(s) is tp.TypedStorage and s.dtype is tp.float32 and s.tolist() == [0, 1, 2, 3] for s in loaded["two"]
    )
    assert len({s._cdata for s in loaded["two"]}) == 1
    loaded["two"][0].fill_(7)
    assert loaded["x"].tolist() == [7] * 4 and loaded["raw"].nbytes() == 16


class Slotted(tp.Tensor):
    __slots__ = ("inner",)


class Stated(tp.Tensor):
    def __getstate__(self) -> Any:
        return "mine", self.inner, self.__dict__

    def __setstate__(self, state: Any) -> None:
        word, self.inner, self.__dict__ = state
        assert word == "mine"


@pytest.mark.parametrize("cls", [Slotted, Stated])
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_a_subclass_has_in_slots_or_makes_of_its_state(cls: Any, weights_only: bool) -> None:
    t = tp.ones(2).as_subclass(cls)
    t.inner, t.word = tp.zeros(3), "foo"
    with safe_globals([cls]):
        loaded = again(t, weights_only=weights_only)
    assert type(loaded) is cls and loaded.word == "foo" and loaded.inner.tolist() == [0, 0, 0]


def test_a_copy_has_the_slots() -> None:
    import copy

    t = tp.ones(2).as_subclass(Slotted)
    assert not hasattr(copy.deepcopy(t), "inner")
    t.inner = [tp.zeros(1)]
    copied = copy.deepcopy(t)
    assert copied.inner[0].tolist() == [0] and copied.inner[0] is not t.inner[0]


class WithSlots:
    __slots__ = ("a", "b")


def test_slots_of_an_object_that_a_file_may_name() -> None:
    kept = WithSlots()
    kept.a = 3
    file = file_of(kept)
    with safe_globals([WithSlots]):
        loaded = tp.load(file)
        assert loaded.a == 3 and not hasattr(loaded, "b")
    program = file.getvalue().replace(b"\x01\x00\x00\x00a", b"\x01\x00\x00\x00c")  # no slot of this name
    with safe_globals([WithSlots]), pytest.raises(pickle.UnpicklingError):
        tp.load(io.BytesIO(program))


def test_no_word_of_the_user_lets_a_file_name_the_system() -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    with safe_globals([os.system]), pytest.raises(pickle.UnpicklingError, match=r"posix\.system whose module posix"):
        tp.load(file_of(Evil()))


def test_records_by_the_names_of_pytorch(tmp_path: Path) -> None:
    for place in (io.BytesIO(), str(tmp_path / "a.pt")):
        with tp.serialization._open_zipfile_writer(place) as archive:
            archive.write_record("a/b", b"12345", 3)
        if isinstance(place, io.BytesIO):
            place.seek(0)
        with tp.serialization._open_zipfile_reader(place) as reader:
            assert reader.get_all_records() == ["a/b"] and reader.has_record("a/b") and not reader.has_record("b")
            assert reader.get_record("a/b") == b"123" and reader.get_record_offset("a/b") % 64 == 0


def test_what_is_written_to_a_mapped_tensor_goes_to_the_file_if_asked(tmp_path: Path) -> None:
    import mmap

    path = tmp_path / "a.pt"
    tp.save(tp.ones(300), path)
    for flags, after in ((mmap.MAP_PRIVATE, 1), (mmap.MAP_SHARED, 5)):
        with tp.serialization.set_default_mmap_options(flags):
            assert tp.serialization.get_default_mmap_options() == flags
            tp.load(path, mmap=True).fill_(5)
        assert tp.load(path)[0] == after
    with pytest.raises(ValueError, match=r"expected mmap\.MAP_PRIVATE or"):
        tp.serialization.set_default_mmap_options(1 << 20)
