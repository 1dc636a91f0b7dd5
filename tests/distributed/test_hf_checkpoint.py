"""Checkpoints as files of safetensors: what goes in comes out, in PyTorch and the library safetensors, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy.distributed import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")

DTYPES = [
    tp.bool, tp.uint8, tp.int8, tp.uint16, tp.int16, tp.uint32, tp.int32, tp.uint64, tp.int64, tp.float16, tp.bfloat16,
    tp.float32, tp.float64, tp.complex64, tp.float8_e5m2, tp.float8_e4m3fn,
]  # fmt: skip


def save(state: Any, folder: Any, **options: Any) -> None:
    checkpoint.save(state, storage_writer=checkpoint.HuggingFaceStorageWriter(folder, **options))


def load(state: Any, folder: Any) -> Any:
    checkpoint.load(state, storage_reader=checkpoint.HuggingFaceStorageReader(folder))
    return state


def several() -> dict[str, Any]:
    of_dtypes = {str(d): (tp.arange(7) % 3).to(d) for d in DTYPES}
    return {**of_dtypes, "turned": tp.arange(12.0).reshape(3, 4).t(), "one": tp.tensor(3), "none": tp.empty(0, 4)}


@pytest.mark.parametrize("options", [{}, {"save_distributed": True}, {"fqn_to_index_mapping": {}}])
def test_what_goes_in_comes_out(options: Any, tmp_path: Path) -> None:
    state = several()
    if "fqn_to_index_mapping" in options:
        options = {"fqn_to_index_mapping": {key: 1 + n % 3 for n, key in enumerate(state)}}
    save(state, tmp_path, **options)
    found = load({key: tp.zeros_like(t) for key, t in state.items()}, tmp_path)
    for key, t in state.items():
        assert found[key].dtype == t.dtype and found[key].tolist() == t.tolist(), key
    if not options.get("save_distributed"):
        index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
        assert all((tmp_path / index["weight_map"][key]).exists() for key in state)


def test_an_older_checkpoint_is_not_mixed_in(tmp_path: Path) -> None:
    save({"x": tp.ones(4), "y": tp.ones(4)}, tmp_path, fqn_to_index_mapping={"x": 1, "y": 2})
    (tmp_path / "other.safetensors.txt").touch()
    save({"x": tp.zeros(2)}, tmp_path)
    assert load({"x": tp.ones(2)}, tmp_path)["x"].tolist() == [0, 0]
    assert (tmp_path / "other.safetensors.txt").exists()


def test_files_go_both_ways(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    theirs = pytest.importorskip("torch.distributed.checkpoint")
    save({"x": tp.arange(6.0).reshape(2, 3), "y": tp.ones(3, dtype=tp.bfloat16)}, tmp_path / "ours")
    (file,) = (tmp_path / "ours").glob("*.safetensors")
    assert safetensors.load_file(file)["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    read = {"x": torch.zeros(2, 3), "y": torch.zeros(3, dtype=torch.bfloat16)}
    theirs.load(read, storage_reader=theirs.HuggingFaceStorageReader(tmp_path / "ours"), no_dist=True)
    assert read["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and read["y"].tolist() == [1, 1, 1]
    for distributed in (False, True):
        folder = tmp_path / f"theirs{distributed}"
        writer = theirs.HuggingFaceStorageWriter(str(folder), save_distributed=distributed)
        theirs.save({"x": torch.arange(6.0).reshape(3, 2), "k": torch.tensor(5)}, storage_writer=writer, no_dist=True)
        found = load({"x": tp.zeros(3, 2), "k": tp.tensor(0)}, folder)
        assert found["x"].tolist() == [[0, 1], [2, 3], [4, 5]] and found["k"].item() == 5


def parts(rank: int, size: int, folder: str) -> None:
    from tensorpy.distributed.tensor import Shard, distribute_tensor

    mesh = dist.init_device_mesh("cpu", (size,))
    whole = tp.arange(30.0).reshape(5, 6)
    state = {"rows": distribute_tensor(whole, mesh, [Shard(0)]), "columns": distribute_tensor(whole, mesh, [Shard(1)])}
    save(state, folder, save_distributed=True, enable_consolidation=True)
    dist.barrier()
    for place in (folder, folder + "/sharded"):
        found = load({"rows": tp.zeros(5, 6), "columns": distribute_tensor(tp.zeros(5, 6), mesh, [Shard(0)])}, place)
        assert tp.equal(found["rows"], whole) and tp.equal(found["columns"].full_tensor(), whole)


@needs_mpi
def test_parts_of_several_ranks(tmp_path: Path) -> None:
    world(parts, 2, where("file", tmp_path), str(tmp_path / "hugging"))
    with pytest.raises(RuntimeError, match=r"parts of '\w+' are missing"):
        (tmp_path / "hugging/sharded/shard-00001-model-00001-of-00001.safetensors").unlink()
        checkpoint.HuggingFaceStorageReader(tmp_path / "hugging/sharded").read_metadata()


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        file_of(b"[" * 100000),
        file_of([1]),
        file_of({"x": 3}),
        file_of({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234567"),
        file_of({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"12345678"),
        file_of({"x": {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}}, b"12345678"),
        file_of({"x": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]}}, b"12345678"),
        file_of({"x": {"dtype": "os.system", "shape": [2], "data_offsets": [0, 8]}}, b"12345678"),
        file_of({"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}, b"12345678"),
        file_of(
            {
                "__metadata__": {"DCP_SHARDING_INFO": '{"x": {"saved_offsets": [-4]}}'},
                "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            },
            b"12345678",
        ),
    ],
)
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model-00001-of-00001.safetensors").write_bytes(content)
    with pytest.raises(RuntimeError, match=r"model-00001-of-00001.safetensors: .* no file of safetensors, or damaged"):
        checkpoint.HuggingFaceStorageReader(tmp_path).read_metadata()


def test_what_is_no_tensor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(checkpoint.CheckpointException, match="no tensor"):
        save({"step": object()}, tmp_path)
