"""Storages: their bytes and parts, files, and memory that processes share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import storage as storages
from tensorpy.storage import shared
from tensorpy.utils.data import DataLoader, Dataset

# ---- bytes and parts ----


def test_bytes_of_a_storage() -> None:
    storage = tp.tensor([1, 256], dtype=tp.int16).untyped_storage()
    assert storage.tolist() == [1, 0, 0, 1] and len(storage) == storage.nbytes() == 4
    assert storage[0] == 1 and storage[-1] == 1 and storage.element_size() == 1 and storage.untyped() is storage
    with pytest.raises(IndexError):
        storage[4]
    copy = storage.clone().fill_(7)
    assert copy.tolist() == [7] * 4 and storage.tolist() == [1, 0, 0, 1]
    assert copy.copy_(storage).tolist() == [1, 0, 0, 1]


def test_a_part_is_the_same_memory() -> None:
    t = tp.arange(4, dtype=tp.uint8)
    part = t.untyped_storage()[1:3]
    row = tp.asarray(part, dtype=tp.uint8)
    row += 10
    assert t.tolist() == [0, 11, 12, 3] and part.tolist() == [11, 12] and t.untyped_storage()[2:2].nbytes() == 0
    with pytest.raises(TypeError, match="no step"):
        t.untyped_storage()[::2]
    with pytest.raises(RuntimeError, match="not resizable"):
        tp.asarray(part, dtype=tp.uint8).resize_(100)


def test_the_storage_of_a_dtype() -> None:
    t = tp.tensor([1.5, 2.5, 3.5])
    typed = t.storage()
    typed[1] = 7.0
    assert t.tolist() == [1.5, 7.0, 3.5] == typed.tolist() == list(typed) and typed[2] == 3.5 and len(typed) == 3
    assert (typed.nbytes(), typed.element_size(), typed.dtype, str(typed.device)) == (12, 4, tp.float32, "cpu")
    assert typed.clone().fill_(0).tolist() == [0.0] * 3
    assert typed.untyped() is t.untyped_storage() and typed.data_ptr() == t.data_ptr()


# ---- files ----


@pytest.mark.parametrize("shared", [False, True])
def test_a_file_as_memory(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(8)))
    storage = tp.UntypedStorage.from_file(str(path), shared=shared, nbytes=4)
    row = tp.asarray(storage, dtype=tp.uint8)
    assert row.tolist() == [0, 1, 2, 3]
    row[0] = 9
    assert path.read_bytes()[0] == (9 if shared else 0) and storage[0] == 9


def test_files_that_are_too_short_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"ab")
    with pytest.raises(RuntimeError, match="has 2 bytes, not 4"):
        tp.UntypedStorage.from_file(tmp_path / "short", nbytes=4)
    with pytest.raises(FileNotFoundError):
        tp.UntypedStorage.from_file(tmp_path / "nothing", nbytes=4)
    grown = tp.UntypedStorage.from_file(tmp_path / "short", shared=True, nbytes=4)
    assert grown.tolist() == [97, 98, 0, 0] and (tmp_path / "short").stat().st_size == 4


def test_safetensors(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    program = f"""
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, save, save_file
made = {{"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.ones(2, dtype=torch.bfloat16), "e": torch.zeros(0)}}
save_file(made, {str(tmp_path / "x")!r})
read = load_file({str(tmp_path / "x")!r})
same = all(torch.equal(read[k], v) and read[k].dtype == v.dtype for k, v in made.items())
print(same, load(save(made))["b"].tolist())
with safe_open({str(tmp_path / "x")!r}, "pt") as file:
    print(torch.equal(file.get_slice("a")[1:3], made["a"][1:3]))
"""
    done = subprocess.run([sys.executable, "-m", "tensorpy.run", "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["True [0, 1, 2, 3, 4]", "True"], done.stderr


# ---- memory that processes share ----


def in_processes(body: str, tmp_path: Path, *methods: str) -> list[str]:
    """What a program prints for each way to start processes; it defines child(...) and main(context)."""
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, tensorpy as tp, tensorpy.multiprocessing as mp\n"
        f"{body}\n"
        "if __name__ == '__main__':\n"
        "    main(mp.get_context(sys.argv[1]))\n"
    )
    lines = []
    for method in methods:
        done = subprocess.run([sys.executable, str(script), method], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.strip())
    return lines


def test_a_tensor_without_elements_has_no_address() -> None:
    t = tp.ones(3)
    assert t[3:].data_ptr() == t[:, None].expand(3, 0).data_ptr() == tp.empty(0, 4).data_ptr() == 0
    assert t[3:].untyped_storage().data_ptr() == t.data_ptr() != 0


def test_all_tensors_of_a_storage_follow_it() -> None:
    t = tp.arange(6.0)
    view, parameter = t[2:4], tp.nn.Parameter(t)
    assert not t.is_shared()
    assert t.share_memory_() is t and t.is_shared() and view.is_shared() and parameter.is_shared()
    t[2] = 20
    assert view.tolist() == [20.0, 3.0] and parameter.detach().tolist() == [0.0, 1.0, 20.0, 3.0, 4.0, 5.0]
    address = t.data_ptr()
    t.share_memory_()
    assert t.data_ptr() == address and tp.empty(0).is_shared()
    module = tp.nn.Linear(2, 2).share_memory()
    assert module.weight.is_shared() and module.bias.is_shared()


def test_shared_memory_is_one_for_all_processes(tmp_path: Path) -> None:
    body = """
def child(queue, t, small):
    t += 1
    small.mul_(3)
    queue.put((t.is_shared(), t.sum().item()))
def main(context):
    t, small = tp.zeros(50_000).share_memory_(), tp.ones(3).share_memory_()
    view = t[:2]
    queue = context.Queue()
    process = context.Process(target=child, args=(queue, t, small))
    process.start()
    print(queue.get(timeout=60), view.tolist(), small.tolist())
    process.join()
"""
    expected = "(True, 50000.0) [1.0, 1.0] [3.0, 3.0, 3.0]"
    assert in_processes(body, tmp_path, "fork", "spawn", "forkserver") == [expected] * 3


def test_what_is_sent_is_shared(tmp_path: Path) -> None:
    body = """
def child(queue, done):
    kept = [tp.full((100, 100), 2.0), tp.ones(2)]
    queue.put(kept)
    done.wait(60)
    print(kept[0][0, 0].item(), kept[1].tolist(), kept[0].is_shared(), kept[1].is_shared(), flush=True)
def main(context):
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=child, args=(queue, done))
    process.start()
    large, small = queue.get(timeout=60)
    large.fill_(5), small.fill_(5)
    done.set()
    process.join()
"""
    assert in_processes(body, tmp_path, "fork", "spawn") == ["5.0 [5.0, 5.0] True True"] * 2


class Images(Dataset[Any]):
    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> tuple[tp.Tensor, int]:
        return tp.full((64, 64), float(index)), index


def left_behind() -> set[str]:
    """The files of shared memory that have a name: those of other programs among them."""
    return {name for name in os.listdir(shared._FOLDER) if name.startswith("tensorpy-")}


def test_batches_come_through_shared_memory_and_leave_nothing() -> None:
    seen, before = [], left_behind()
    for images, indices in DataLoader(Images(), batch_size=4, num_workers=2):
        assert images.is_shared() and not indices.is_shared() and images[:, 3, 5].tolist() == indices.tolist()
        images += 1  # the batch is the receiver's
        seen += indices.tolist()
    assert seen == list(range(24))
    early = iter(DataLoader(Images(), batch_size=4, num_workers=2, prefetch_factor=3))
    next(early)
    del early
    assert left_behind() <= before


def no_space(descriptor: int, start: int, nbytes: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_memory_that_cannot_be_had_is_an_error(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = left_behind()
    monkeypatch.setattr(shared.os, "posix_fallocate", no_space)
    monkeypatch.setattr("tensorpy.storage.shared._strategy", strategy)
    t = tp.arange(3.0)
    with pytest.raises(RuntimeError, match="No space left"):
        t.share_memory_()
    with pytest.raises(RuntimeError, match="No space left"):
        ForkingPickler.dumps(t)
    assert t.tolist() == [0.0, 1.0, 2.0] and not t.is_shared() and left_behind() <= before


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system of memory")
def test_space_is_reserved() -> None:
    """More than there is of it would be a signal where it is written."""
    about = os.statvfs(shared._FOLDER)
    too_much = about.f_blocks * about.f_frsize + (1 << 30)
    with pytest.raises(RuntimeError, match="unable to allocate"):
        shared._new_shared(too_much)


class Full(Dataset[Any]):
    """In a worker the memory that processes share is full."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tp.Tensor:
        def no_memory(descriptor: int, start: int, nbytes: int) -> None:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith(shared._FOLDER):
                no_space(descriptor, start, nbytes)
            os.ftruncate(descriptor, nbytes)

        shared.os.posix_fallocate = no_memory
        return tp.full((100, 100), float(index))


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system of memory")
def test_a_loader_falls_back_to_files() -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    with pytest.warns(UserWarning, match="which is slower"):
        batches = [batch[:, 0, 0].tolist() for batch in DataLoader(Full(), batch_size=2, num_workers=1)]
    assert batches == [[0.0, 1.0], [2.0, 3.0]]
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("tensorpy-")]


# ---- memory that is outside ----


def views(t: tp.Tensor) -> list[Any]:
    """All ways to see a tensor's memory without the tensor."""

    class Interface:
        __array_interface__ = t.__array_interface__
        kept = t

    return [
        t.numpy(),
        np.asarray(Interface()),
        np.asarray(memoryview(t)),
        np.from_dlpack(t),
        tp.from_dlpack(t).numpy(),
        np.frombuffer(memoryview(t), dtype=np.float32),
    ]


@pytest.mark.parametrize("count", [3, 1000, 1 << 20])  # beside the struct, in a block of its own, mapped
@pytest.mark.parametrize("way", range(6))
def test_memory_that_was_lent_stays(count: int, way: int) -> None:
    t = tp.arange(float(count))
    seen = views(t)[way]
    t.share_memory_()
    t.fill_(-1)
    others = [tp.full((count,), 7.0) for _ in range(20)]  # would get the memory if it were free
    assert np.array_equal(seen, np.arange(float(count), dtype=np.float32)), others
    seen[:] = 5
    assert t[0] == -1 and others[0][0] == 7
    del t, others
    assert (seen == 5).all()


def test_memory_of_an_array_stays() -> None:
    array = np.arange(1000.0)
    t = tp.from_numpy(array)
    seen = t.numpy()
    t.share_memory_()
    del array
    others = [np.full(1000, 7.0) for _ in range(20)]
    assert seen.tolist() == [float(i) for i in range(1000)] and t.tolist() == seen.tolist(), others


# ---- as PyTorch's programs share ----


def test_pools_see_the_same_memory(tmp_path: Path) -> None:
    body = """
def fill(t):
    t.fill_(4)
    return t.add(1)
def main(context):
    for strategy in ("file_descriptor", "file_system"):
        mp.set_sharing_strategy(strategy)
        with context.Pool(2) as pool:
            tensors = [tp.zeros(2, 2) for _ in range(4)]
            results = pool.map(fill, tensors, 1)
            print([t.sum().item() for t in results], [t.sum().item() for t in tensors], end=" ")
"""
    assert in_processes(body, tmp_path, "fork", "spawn") == [" ".join([f"{[20.0] * 4} {[16.0] * 4}"] * 2)] * 2


def test_variables_and_parameters_are_shared(tmp_path: Path) -> None:
    body = """
def child(queue, answers, ready, changed, kind):
    t = queue.get()
    ready.set()
    changed.wait(60)
    seen = [t.data[0].item(), t.grad is None, not t._backward_hooks, type(t).__name__, t.requires_grad]
    t.data[:] = 1
    t._grad = tp.ones(3)
    answers.put(seen)
def main(context):
    for t in (tp.nn.Parameter(tp.zeros(3)), tp.zeros(3, requires_grad=True), tp.zeros(3)):
        queue, answers, ready, changed = context.Queue(), context.Queue(), context.Event(), context.Event()
        process = context.Process(target=child, args=(queue, answers, ready, changed, type(t)))
        process.start()
        if t.requires_grad:
            t.register_hook(lambda grad: grad)
        t._grad = tp.zeros(3)
        queue.put(t)
        ready.wait(60)
        t.data[0] = 1000
        t.grad.data[:] = 4
        changed.set()
        print(*answers.get(timeout=60), t.tolist(), t.grad.tolist(), end=" | ")
        process.join()
    try:
        context.SimpleQueue().put(tp.ones(2, requires_grad=True) * 2)
    except RuntimeError as error:
        print("requires_grad" in str(error))
"""
    ends = [("Parameter", True), ("Tensor", True), ("Tensor", False)]
    line = "".join(f"1000.0 True True {kind} {grad} {[1.0] * 3} {[4.0] * 3} | " for kind, grad in ends) + "True"
    assert in_processes(body, tmp_path, "fork", "spawn") == [line] * 2


def test_a_block_is_mapped_once(tmp_path: Path) -> None:
    body = """
def child(queue, back, received):
    for _ in range(3):
        back.put(queue.get())
    received.wait(60)
def main(context):
    t, queue, back, received = tp.zeros(3), context.Queue(), context.Queue(), context.Event()
    process = context.Process(target=child, args=(queue, back, received))
    process.start()
    for _ in range(3):
        queue.put(t)
    got = [back.get(timeout=60) for _ in range(3)]
    received.set()
    process.join()
    print(all(g.data_ptr() == t.data_ptr() for g in got))
"""
    assert in_processes(body, tmp_path, "fork", "spawn") == ["True"] * 2


# ---- names that programs use ----


def test_bytes_are_a_sequence() -> None:
    storage = tp.tensor([1, 2], dtype=tp.int16).untyped_storage()
    assert list(storage) == [1, 0, 2, 0] and storage.__sizeof__() >= len(storage)
    storage[0] = 7
    assert storage[0] == 7
    storage.byteswap(tp.int16)
    assert storage.tolist() == [0, 7, 0, 2]
    assert tp.UntypedStorage(3).nbytes() == 3 and tp.UntypedStorage([1, 2]).tolist() == [1, 2]


def test_storages_of_a_dtype_by_name() -> None:
    typed = tp.arange(3.0).storage()
    assert isinstance(typed, tp.FloatStorage) and not isinstance(typed, tp.ByteStorage)
    assert tp.FloatStorage([1, 2]).tolist() == [1.0, 2.0] and tp.FloatStorage.dtype is tp.float32
    assert len(tp.FloatStorage(np.int8(3))) == 3
    assert len(tp.ByteStorage(3)) == 3 and tp.TypedStorage([1, 2], dtype=tp.int32).dtype is tp.int32
    assert typed.pickle_storage_type() == "FloatStorage" and typed.type().endswith(".FloatStorage")
    names = storages._dtype_to_storage_type_map()
    assert storages._storage_type_to_dtype_map() == {name: dtype for dtype, name in names.items()}
    for name in names.values():
        assert getattr(tp, name).dtype is storages._storage_type_to_dtype_map()[name]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda s: tp.FloatStorage(device="cpu"), RuntimeError, "'device' cannot be specified"),
        (lambda s: tp.FloatStorage(dtype=tp.float32), RuntimeError, "'dtype' cannot be specified"),
        (lambda s: tp.FloatStorage(size=3), TypeError, "got an unexpected keyword"),
        (lambda s: tp.FloatStorage(0, 0), RuntimeError, "Too many positional arguments"),
        (lambda s: tp.FloatStorage("string"), TypeError, "invalid data type"),
        (lambda s: tp.FloatStorage(tp.tensor([])), TypeError, "Argument type not recognized"),
        (lambda s: tp.FloatStorage(0, wrap_storage=s.untyped()), RuntimeError, "No positional arguments"),
        (lambda s: tp.FloatStorage(wrap_storage=s), TypeError, "must be UntypedStorage"),
        (lambda s: tp.TypedStorage(wrap_storage=s.untyped()), RuntimeError, "Argument 'dtype' must be specified"),
        (lambda s: tp.TypedStorage(dtype=0), TypeError, "Argument 'dtype' must be torch.dtype"),
        (
            lambda s: tp.TypedStorage(wrap_storage=s.untyped(), dtype=tp.float32, device="cpu"),
            RuntimeError,
            "Argument 'device' should not be specified",
        ),
        (lambda s: s.fill_(s), RuntimeError, "cannot set item"),
        (lambda s: s["a"], RuntimeError, "can't index a"),
        (lambda s: s.untyped().resize_(2), RuntimeError, "a storage only grows"),
        (lambda s: tp.TypedStorage(3, device="meta")[0], NotImplementedError, "Not available for 'meta'"),
        (lambda s: tp.TypedStorage(3, device="meta").tolist(), NotImplementedError, "Not available for 'meta'"),
        (lambda s: tp.TypedStorage(3, device="meta").share_memory_(), RuntimeError, "only available on CPU"),
        (lambda s: tp.FloatStorage.from_buffer(bytearray(7), "native"), ValueError, "must be a multiple of element"),
        (lambda s: tp.FloatStorage.from_buffer(bytearray(8)), ValueError, "invalid byte_order"),
        (lambda s: tp.FloatStorage.from_buffer(bytearray(8), "big", 3), ValueError, "buffer has only 8 bytes"),
        (lambda s: tp.FloatStorage.from_buffer(bytearray(8), "big", 0, 9), ValueError, "offset must be non-negative"),
    ],
)
def test_what_storages_refuse(call: Callable[[tp.TypedStorage], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call(tp.FloatStorage([1, 2, 3]))


def test_storages_of_a_buffer() -> None:
    shorts = tp.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "big")
    assert shorts.tolist() == [258, 772] and isinstance(shorts, tp.ShortStorage)
    assert tp.IntStorage.from_buffer(bytearray([1, 2, 3, 4]), "little")[0] == 67305985
    assert tp.FloatStorage.from_buffer(bytearray([9, 0x40, 0x10, 0, 0]), "big", 1, 1).tolist() == [2.25]
    assert tp.BoolStorage.from_buffer(bytearray([0, 1, 2]), "big").tolist() == [False, True, True]
    assert tp.ByteStorage.from_buffer(b"ab").tolist() == [97, 98]


def test_storages_grow_and_are_filled_in_parts() -> None:
    for device in ("cpu", "meta"):
        storage = tp.TypedStorage([1, 2], device=device, dtype=tp.int32)
        storage.resize_(10)
        assert storage.size() == 10 and storage.get_device() == tp.empty(0, device=device).get_device()
    numbers = tp.LongStorage(6)
    numbers[:] = 0
    numbers[2:4] = 5
    assert numbers.tolist() == [0, 0, 5, 5, 0, 0] and numbers.float8_e5m2().dtype is tp.float8_e5m2


def test_a_tensor_of_a_storage_has_its_elements() -> None:
    x = tp.tensor([1.5, -2.0], dtype=tp.float64)
    assert tp.tensor(x.untyped_storage(), dtype=tp.float64).tolist() == [1.5, -2.0]
    assert tp.tensor(x.float().untyped_storage()).tolist() == [1.5, -2.0]


def test_a_tensor_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    assert tp.from_file(str(path), size=4).tolist() == [0.0, 1.0, 2.0, 3.0]
    shared = tp.from_file(path, shared=True, size=2, dtype=tp.int64)
    shared.fill_(7)
    assert np.fromfile(path, dtype=np.int64).tolist() == [7, 7]


def mapped(t: Any, path: Path) -> list[Any]:
    """What from_file of a library gives and refuses."""
    file, found = str(path / "two"), list[Any]()
    (path / "two").write_bytes(b"ab")
    for arguments, options in (
        ((str(path / "none"),), {"size": 3}), ((file,), {"size": 3}), ((file,), {}), ((file, None, None), {}),
        ((file,), {"size": 1, "dtype": t.int16}), ((file,), {"size": 1, "pin_memory": True}),
        ((str(path / "no" / "folder"), True), {"size": 1}), ((str(path / "grown"), True), {"size": 2}),
        ((str(path),), {"size": 1}),
    ):  # fmt: skip
        try:
            made = t.from_file(*arguments, **options)
            found.append((made.tolist(), str(made.dtype).partition(".")[2]))
        except RuntimeError as error:
            found.append(str(error))
    return [*found, (path / "grown").stat().st_size]


def test_files_are_mapped_as_in_torch(tmp_path: Path) -> None:
    assert mapped(tp, tmp_path) == mapped(pytest.importorskip("torch"), tmp_path)


def test_from_file_is_an_operator(tmp_path: Path) -> None:
    (tmp_path / "row").write_bytes(bytes(range(4)))
    with tp.dispatch.trace() as calls:
        row = tp.from_file(str(tmp_path / "row"), size=4, dtype=tp.uint8)
    assert [e.op for e in calls] == ["from_file"] * len(calls) and row.tolist() == [0, 1, 2, 3]
    if not tp.opencl.why_not_available():
        assert tp._C.from_file(str(tmp_path / "row"), size=4, dtype=tp.uint8, device="opencl").tolist() == [0, 1, 2, 3]
    row += 1  # a copy of the page: nothing reaches the file
    assert (tmp_path / "row").read_bytes() == bytes(range(4))
    out = tp.empty(0, dtype=tp.uint8)
    assert tp.ops.aten.from_file.out(str(tmp_path / "row"), size=2, out=out) is out and out.tolist() == [0, 1]


# ---- storages as arguments of operators ----


def taken(t: Any) -> list[Any]:
    """What set_ makes of storages in a library, and the errors."""
    storage, found = t.arange(6.0).untyped_storage(), list[Any]()
    x = t.zeros(2)
    for arguments in (
        (storage,), (storage, 2, (2, 2), (2, 1)), (storage, 1, [2]), (storage, 10, (0,)), (t.arange(3.0).storage(),),
        (t.arange(3.0).storage(), 1, (2,)), (storage, -1, (1,)), (storage, 0, (-1,)), (storage, 0, (1,), (1, 1)),
    ):  # fmt: skip
        try:
            found.append((x.set_(*arguments).tolist(), list(x.stride())))
        except RuntimeError as error:
            found.append(type(error).__name__)
    new = t.ops.aten.set.source_Storage(t.zeros(1), storage)
    out = t.empty(0)
    t.ops.aten.set.source_Storage_storage_offset_out(t.zeros(1), storage, 1, [3], out=out)
    t.zeros(1).set_(small := t.arange(2.0).untyped_storage(), 1, (3,))
    return [*found, new.tolist(), out.tolist(), small.nbytes()]


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_set_takes_storages_as_torch() -> None:
    assert taken(tp) == taken(pytest.importorskip("torch"))


def test_operators_take_storages_and_streams() -> None:
    seen = list[Any]()
    library = tp.library.Library("storages_of_tests", "DEF")
    library.define("look(Tensor x, Storage s, Stream? q=None) -> Tensor")
    library.impl("look", lambda x, s, q=None: seen.append((s, q)) or x.clone(), "CompositeExplicitAutograd")
    storage, look = tp.arange(3.0).untyped_storage(), tp.ops.storages_of_tests.look
    look(tp.zeros(1), storage)
    assert seen == [(storage, None)]
    for wrong in ((tp.zeros(1), 3), (tp.zeros(1), storage, 3), (tp.zeros(1), tp.zeros(1))):
        with pytest.raises((RuntimeError, TypeError), match=r"Storage|Stream"):
            look(*wrong)
    if not tp.opencl.why_not_available():
        stream = tp.opencl.Stream()
        look(tp.zeros(1), storage, stream)
        assert seen[1] == (storage, stream)


def test_layers_take_storages() -> None:
    storage = tp.arange(3.0).untyped_storage()
    functional = tp.func.functionalize(lambda t: t.clone().set_(storage, 1, (2,)) + 1)
    assert functional(tp.zeros(1)).tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError):
        tp.vmap(lambda t: t.set_(storage))(tp.zeros(2, 3))
    for other in (tp.zeros(2, dtype=tp.int64).storage(), 3):
        with pytest.raises((RuntimeError, TypeError), match="Storage"):
            tp.zeros(1).set_(other)


def test_old_types_take_storages() -> None:
    t = tp.tensor([1.0, 2.0])
    assert tp.FloatTensor(t.storage()).data_ptr() == tp.FloatTensor(t.untyped_storage()).data_ptr() == t.data_ptr()
    assert tp.IntTensor(t.untyped_storage()).shape == (2,)
    with pytest.raises(
        RuntimeError, match="Expected a Storage of type Double or an UntypedStorage, but got type Float"
    ):
        tp.DoubleTensor(t.storage())
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
        t.storage()[:1]


def test_storages_without_values() -> None:
    for storage in (tp.UntypedStorage(3, device="meta"), tp.FloatStorage(3), tp.UntypedStorage(0, device="meta")):
        if storage.device.type == "cpu":
            storage = tp.TypedStorage([1, 2, 3], dtype=tp.int16, device="meta")
        for call in (lambda s: s[0], lambda s: s.tolist()):
            with pytest.raises(NotImplementedError, match="Not available"):
                call(storage)
        with pytest.raises(NotImplementedError, match="Cannot copy out"):
            storage.cpu()
    meta = tp.TypedStorage([1, 2], dtype=tp.float32, device="meta")
    for share in (meta._share_fd_cpu_, meta._share_filename_cpu_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            share()
    with pytest.raises(NotImplementedError, match="Cannot copy out"):
        tp.FloatStorage([1, 2]).copy_(meta)


def test_a_storage_of_a_dtype_makes_tensors_of_that_alone() -> None:
    storage = tp.tensor([1.5, 2.5]).storage()
    made = tp.tensor(storage, dtype=tp.float32)
    made[0] = 9
    assert made.tolist() == [9, 2.5] and storage.tolist() == [1.5, 2.5] == tp.tensor(storage).tolist()
    for dtype in (tp.float64, tp.int32, tp.bool):
        with pytest.raises(RuntimeError, match="Expected a Storage of type"):
            tp.tensor(storage, dtype=dtype)
    assert tp.ones(1, dtype=tp.int16).storage_type() is tp.ShortStorage and storage._dtype is tp.FloatStorage._dtype
    assert tp.ones(2).set_(storage).storage()._cdata == storage._cdata


def test_storages_of_quantized_dtypes_hold_integers() -> None:
    storage = tp.QInt8Storage([1, -2, 3])
    storage[1] = -5
    assert storage.tolist() == [1, -5, 3] and storage.element_size() == 1 and isinstance(storage, tp.QInt8Storage)
    assert tp.QInt32Storage(4).nbytes() == 16 and tp.QUInt8Storage([255]).tolist() == [255]


def test_a_typed_storage_of_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")
    first, second = (tp.FloatStorage.from_file(path, True, 10) for _ in range(2))
    first[3] = 2.5
    assert second.tolist() == [0, 0, 0, 2.5, 0, 0, 0, 0, 0, 0]


# ---- late copies ----


def _is_late(*tensors: tp.Tensor) -> list[bool]:
    return [tp._C._is_cow_tensor(t) for t in tensors]


@pytest.mark.parametrize("count", [3, 1000, 100000])  # beside the storage, in a block of its own, a large one
def test_a_lazy_clone_copies_when_one_is_written_to(count: int) -> None:
    source = tp.arange(count).float()
    before, address = source.tolist(), tp._C._data_address(source)
    clone, other = source._lazy_clone(), tp._lazy_clone(source)
    assert _is_late(source, clone, other) == [True] * 3
    assert [tp._C._data_address(t) for t in (source, clone, other)] == [address] * 3
    (clone + other).sum()
    assert _is_late(source, clone, other) == [True] * 3 and clone.equal(other)
    clone.view(-1)[0] = 7
    assert _is_late(source, clone, other) == [True, False, True]
    assert clone[0] == 7 and source.tolist() == before == other.tolist()
    source.mul_(2)
    address = tp._C._data_address(other)
    other.zero_()  # the last one takes the memory over
    assert _is_late(source, other) == [False, False] and tp._C._data_address(other) == address
    again = other._lazy_clone()
    again.resize_(count + 5)
    assert _is_late(other, again) == [True, False] and again[:count].equal(other)


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: tp.add(t.clone(), 1, out=t),
        lambda t: t[1:].mul_(3),
        lambda t: t.data.fill_(5),
        lambda t: t.random_(5, 9),
        lambda t: t.apply_(lambda v: v + 1),
        lambda t: t.numpy().fill(9),
        lambda t: t.__array__().fill(9),
        lambda t: memoryview(t).__setitem__(0, 9.0),
        lambda t: tp.from_dlpack(t).fill_(9),
        lambda t: t.untyped_storage().fill_(1),
        lambda t: t.untyped_storage().__setitem__(0, 1),
        lambda t: t.share_memory_().fill_(9),
        lambda t: tp._foreach_add_([t], 1),
        lambda t: t.set_(t.untyped_storage(), 0, (3,), (1,)).neg_(),
        lambda t: tp.nn.init.ones_(t.requires_grad_()).requires_grad_(False),
        lambda t: t.set_(tp.zeros(300)),
    ],
)
def test_no_write_reaches_the_other(write: Callable[[tp.Tensor], object]) -> None:
    for writes_clone in (True, False):
        source = tp.arange(300).float() + 1
        before = source.tolist()
        clone = source._lazy_clone()
        first, second = (clone, source) if writes_clone else (source, clone)
        write(first)
        assert second.tolist() == before != first.tolist()


def test_an_address_ends_a_late_copy() -> None:
    source = tp.ones(200)
    clone = source._lazy_clone()
    assert clone.data_ptr() != tp._C._data_address(source) and _is_late(source, clone) == [True, False]
    clone = source._lazy_clone()
    assert clone.untyped_storage().data_ptr() != tp._C._data_address(source)
    lent = tp.ones(200)
    lent.numpy()  # who has the address may write at any time
    assert _is_late(lent._lazy_clone(), lent) == [False, False]


def test_gradients_of_late_copies() -> None:
    x = tp.rand(50, requires_grad=True)
    y = x._lazy_clone()
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.equal(2 * x)
    grad, w = tp.ones(50), tp.rand(50, requires_grad=True)
    late = grad._lazy_clone()
    (w.relu() + w + w.neg()).backward(late)
    (w * 2).backward(late)
    assert grad.equal(tp.ones(50)) and late.equal(grad) and w.grad is not None and w.grad.equal(tp.full((50,), 3.0))


@pytest.mark.parametrize("count", [3, 100000])
def test_compiled_calls_make_late_copies_too(count: int) -> None:
    @tp.compile
    def step(t: tp.Tensor) -> tp.Tensor:
        t.mul_(2).add_(1)
        return t.sum()

    for _ in range(8):  # a call is replayed after some
        source = tp.ones(count)
        clone = source._lazy_clone()
        step(clone)
        assert source.equal(tp.ones(count)) and clone.equal(tp.full((count,), 3.0))


def test_other_memory_is_cloned_at_once() -> None:
    with pytest.raises(NotImplementedError, match="layout sparse_coo"):
        tp._lazy_clone(tp.eye(3).to_sparse())
    meta = tp.ones(3, device="meta")._lazy_clone()
    assert meta.shape == (3,) and not tp.ones(0)._lazy_clone().numel()


def test_memory_of_others_is_not_resizable() -> None:
    foreign = tp.frombuffer(bytearray(8), dtype=tp.float32).untyped_storage()
    assert tp.ones(2).untyped_storage().resizable() and not foreign.resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        foreign.resize_(16)


CASTS = {name: method.dtype for name, method in vars(tp.UntypedStorage).items() if hasattr(method, "dtype")}


def test_a_storage_shows_its_bytes():
    assert repr(tp.tensor([1, 2], dtype=tp.uint8).untyped_storage()) == (
        " 1\n 2\n[tensorpy.storage.UntypedStorage(device=cpu) of size 2]"
    )
    meta = tp.ones(2, device="meta")
    assert str(meta.untyped_storage()) == "...\n[tensorpy.storage.UntypedStorage(device=meta) of size 8]"
    assert repr(meta.storage()) == "...\n[tensorpy.storage.TypedStorage(dtype=tensorpy.float32, device=meta) of size 2]"


@pytest.mark.parametrize("name, dtype", CASTS.items(), ids=list(CASTS))
def test_bytes_become_numbers_of_a_dtype(name, dtype):
    """In new memory, whatever the storage was of; a typed storage has the same ones."""
    assert hasattr(tp.TypedStorage, name) and len(CASTS) == 16
    bytes_ = tp.tensor([0, 1, 2], dtype=tp.uint8).untyped_storage()
    for made in (getattr(bytes_, name)(), bytes_.type(dtype)):
        assert made.dtype is dtype and made.tolist() == tp.tensor([0, 1, 2]).to(dtype).tolist()
        assert made.data_ptr() != bytes_.data_ptr()


def test_what_a_storage_tells():
    s = tp.ones(2).untyped_storage()
    assert s.type() == "tensorpy.storage.UntypedStorage" and not s.is_cuda and not s.is_hpu and s.get_device() == -1
    assert len(s.new()) == 0 and s.new().device == s.device
