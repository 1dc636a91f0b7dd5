"""DeviceMesh: processes as an array, its slices and groups, beside PyTorch's, and at 1, 2 and 4 ranks."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from ranks import needs_mpi, where, world

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy.distributed.device_mesh import DeviceMesh, _mesh_resources, init_device_mesh
from tensorpy.nn.parallel import DistributedDataParallel as DDP

RANK, SIZE = 5, 8
NAMES = ("a", "b", "c", "d")


def grid(shape: tuple[int, ...]) -> Any:
    """A mesh without groups, of the first ranks."""
    count = tp.arange(tp.Size(shape).numel()).reshape(shape)
    return DeviceMesh("cpu", count, mesh_dim_names=NAMES[: len(shape)], _init_backend=False, _rank=RANK)


def shapes() -> list[tuple[int, ...]]:
    sizes = [1, 2, 3, 4, 6, 8]
    every = (s for n in (1, 2, 3, 4) for s in itertools.product(sizes, repeat=n))
    return [s for s in every if RANK < tp.Size(s).numel() <= SIZE]


def described(mesh: Any) -> Any:
    return [str(mesh), list(mesh.shape), mesh.mesh.tolist(), list(mesh.get_coordinate() or ()), mesh.ndim, mesh.size()]


def explore(make: Any) -> list[Any]:
    """What meshes, slices, flattened and split ones and errors are, by a function that makes meshes."""
    found: list[Any] = []

    def say(what: Any) -> None:
        try:
            found.append(described(what()))
        except (KeyError, RuntimeError, ValueError) as error:
            found.append(type(error).__name__)

    rng = random.Random(3)
    for shape in shapes():
        mesh = make(shape)
        names = NAMES[: len(shape)]
        say(lambda mesh=mesh: mesh)
        for count in range(1, len(names) + 1):
            for chosen in itertools.permutations(names, count):
                say(lambda mesh=mesh, chosen=chosen: mesh[chosen])
        for count in range(1, len(names) + 1):
            for chosen in itertools.combinations(names, count):
                say(lambda mesh=mesh, chosen=chosen: mesh[chosen]._flatten("_" + "".join(chosen)))
                say(lambda mesh=mesh, chosen=chosen: mesh["_" + "".join(chosen)])
                say(lambda mesh=mesh, chosen=chosen, last=names[-1]: mesh["_" + "".join(chosen), last])
        say(lambda mesh=mesh, names=names: mesh[names[0]]._flatten(names[-1]))
        for _ in range(6):
            dim = rng.randrange(len(shape))
            outer = rng.choice([1, 2, 3, 4, shape[dim]])
            sizes = (outer, max(shape[dim] // outer, 1))
            say(lambda mesh=mesh, dim=dim, sizes=sizes: mesh._unflatten(dim, sizes, ("p", "q")))
            say(lambda mesh=mesh, sizes=sizes: mesh["_" + "".join(NAMES[: mesh.ndim])]._unflatten(0, sizes, ("p", "q")))
        if len(names) > 1:
            say(lambda mesh=mesh, names=names: type(mesh)._concatenate([mesh[names[-1]], mesh[names[0]]]))
            say(lambda mesh=mesh, names=names: type(mesh)._concatenate([mesh[names[0]], mesh[names[:2]]]))
            for part in mesh._get_all_submeshes(names[0]):
                say(lambda part=part: part)
    return found


THEIRS = """
import json, sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.distributed.device_mesh import DeviceMesh
sys.path[:0] = [{folder!r}]
import test_device_mesh as t
dist.init_process_group("fake", rank=t.RANK, world_size=t.SIZE, store=FakeStore())
def grid(shape):
    count = torch.arange(torch.Size(shape).numel()).reshape(shape)
    return DeviceMesh("cpu", count, mesh_dim_names=t.NAMES[: len(shape)])
print(json.dumps(t.explore(grid)))
"""


def test_layouts_are_those_of_pytorch() -> None:
    pytest.importorskip("torch")
    import json

    program = THEIRS.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = json.loads(json.dumps(explore(grid)))
    assert len(ours) == len(theirs) > 500
    assert sum(isinstance(each, str) for each in ours) < len(ours) / 2
    for mine, yours in zip(ours, theirs, strict=True):
        assert mine == yours


def test_what_is_no_mesh() -> None:
    for given, error in (
        (None, TypeError), ([], ValueError), ([[0, 1], [2]], ValueError), ([0, 0], ValueError), ([0.5], ValueError)
    ):  # fmt: skip
        with pytest.raises(error):
            DeviceMesh("cpu", given, _init_backend=False, _rank=0)
    mesh = grid((2, 4))
    nameless = DeviceMesh("cpu", [[0, 2], [5, 7]], _init_backend=False, _rank=3)
    assert nameless.get_coordinate() is None and not nameless._is_current_rank_part_of_mesh()
    for call, error in (
        (lambda: mesh["z"], KeyError),
        (lambda: mesh["b", "a"], KeyError),
        (lambda: nameless["a"], RuntimeError),
        (lambda: nameless._flatten(), RuntimeError),
        (lambda: mesh.get_group("a"), RuntimeError),
        (lambda: mesh._unflatten(2, (1,), ("x",)), ValueError),
        (lambda: mesh._unflatten("z", (1,), ("x",)), ValueError),
        (lambda: mesh._unflatten(1, (3, 1), ("x", "y")), ValueError),
        (lambda: mesh._unflatten(1, (-2, -2), ("x", "y")), ValueError),
        (lambda: mesh._unflatten(1, (4,), ("x", "y")), RuntimeError),
        (lambda: init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a")), RuntimeError),
        (lambda: init_device_mesh("cpu", (1, 1), mesh_dim_names=("a",)), RuntimeError),
        (lambda: init_device_mesh("cpu:0", (1,)), RuntimeError),
        (lambda: init_device_mesh("cpu", (-1, 1)), RuntimeError),
        (lambda: init_device_mesh("cpu", (1,), backend_override={"z": "gloo"}), RuntimeError),
        (lambda: _mesh_resources.get_current_mesh(), RuntimeError),
    ):
        with pytest.raises(error):
            call()
    assert mesh == grid((2, 4)) and hash(mesh) == hash(grid((2, 4))) and mesh != nameless
    with mesh as inside, mesh["a"]:
        assert inside is mesh and _mesh_resources.get_current_mesh() == mesh["a"]


def test_a_world_of_one() -> None:
    dist.init_process_group(rank=0, world_size=1)
    try:
        mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        assert str(mesh) == "DeviceMesh((dp=1, tp=1), 'cpu', stride=((), ()))"
        assert mesh.get_group("dp").size() == 1 and mesh["tp"].get_local_rank() == 0
        assert mesh._flatten("all").get_group() is mesh.get_group("all")
        with pytest.raises(RuntimeError, match="bigger than default world size 1, but found 2"):
            init_device_mesh("cpu", (2,))
        with pytest.raises(ValueError, match="no rank 3 in a world of 1"):
            DeviceMesh("cpu", [3])
    finally:
        dist.destroy_process_group()


def total(group: Any, value: float) -> float:
    t = tp.tensor([value])
    dist.all_reduce(t, group=group)
    return t.item()


def groups_along(rank: int, size: int) -> None:
    for shape in ((size,), (2, size // 2), (size // 2, 2), (1, size), (size // 2, 2, 1)):
        names = NAMES[: len(shape)]
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=names)
        array, place = mesh.mesh, mesh.get_coordinate()
        assert place is not None and array[place].item() == rank == mesh.get_rank()
        for dim, name in enumerate(names):
            along = array[tuple(slice(None) if d == dim else at for d, at in enumerate(place))]
            group = mesh.get_group(name)
            assert dist.get_process_group_ranks(group) == along.tolist()
            assert mesh.get_local_rank(dim) == place[dim] == mesh[name].get_local_rank()
            assert mesh[name].get_group() is group is mesh.get_group(dim)
            assert mesh[name].mesh.tolist() == along.tolist()
            assert total(group, float(rank)) == along.sum().item()
        assert mesh.get_all_groups() == [mesh.get_group(n) for n in names]
        flat = mesh._flatten("whole") if len(shape) > 1 else mesh
        assert total(flat.get_group(), 1.0) == size
        assert mesh["whole" if len(shape) > 1 else "a"].size() == size
    parted = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("w",))._unflatten(0, (2, -(-size // 2)), ("x", "y"))
    assert total(parted.get_group("x"), 1.0) == 2 and total(parted.get_group("y"), 1.0) == size // 2
    again = DeviceMesh.from_group(
        [parted.get_group("x"), parted.get_group("y")], "cpu", parted.mesh, mesh_dim_names=("x", "y")
    )
    assert again.get_group("x") is parted.get_group("x") and again["y"].get_group() is parted.get_group("y")
    whole = DeviceMesh.from_group(dist.group.WORLD, "cpu")
    assert whole.get_group() is dist.group.WORLD and whole.mesh.tolist() == list(range(size))
    with pytest.raises(ValueError, match="Invalid mesh"):
        DeviceMesh.from_group(dist.group.WORLD, "cpu", [size])
    for groups, mesh in (([], None), ([dist.group.WORLD] * 2, None), ([dist.group.WORLD], [[0], [1]])):
        with pytest.raises(ValueError):
            DeviceMesh.from_group(groups, "cpu", mesh, mesh_dim_names=("x",))
    # a mesh of some of the world, of which the others hear
    part = DeviceMesh("cpu", [[0, size - 1]])
    assert part.get_coordinate() == {0: (0, 0), size - 1: (0, 1)}.get(rank)
    if part.get_coordinate() is None:
        with pytest.raises(RuntimeError, match=f"rank {rank} is not in"):
            part.get_group(1)
    else:
        assert total(part.get_group(1), 1.0) == 2
    # averages along one dimension alone
    mesh = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicas", "rest"))
    model = DDP(nn.Linear(2, 1), device_mesh=mesh["replicas"])
    model(tp.full((1, 2), float(rank))).sum().backward()
    members = mesh["replicas"].mesh.tolist()
    assert model.module.weight.grad.tolist() == [[sum(members) / 2] * 2]
    with pytest.raises(RuntimeError, match="Only 1D device mesh is supported"):
        DDP(nn.Linear(2, 1), device_mesh=mesh)


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_groups_along_dimensions(size: int, tmp_path: Path) -> None:
    world(groups_along, size, where("file", tmp_path))
