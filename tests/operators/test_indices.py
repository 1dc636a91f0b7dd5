"""Integer tensors that say where to read and write, and numbers at the ends of dtypes: wild ones end in an error or a
result."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import fuzz_indices
import fuzz_parts
import pytest
from opencl_programs import ROOT, needs_device

import tensorpy as tp
from tensorpy.testing.samples import TABLE
from tensorpy.testing.samples.table import FLOATING, INTEGERS

PARTS = 4


def fuzz(tmp_path: Path, *options: str, program: str = "fuzz_indices.py") -> None:
    journal = tmp_path / "journal"
    journal.write_bytes(b"\0" * 256)
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests/operators" / program), str(journal), *options]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *sys.path])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=environment)
    last = journal.read_bytes().rstrip(b"\0").decode()
    assert done.returncode == 0, f"at {last}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-1500:]}"


def skip_on_other_days(part: int, parts: int, request: pytest.FixtureRequest) -> None:
    """What takes minutes as a whole has a part of it in a sampled run."""
    if request.config.getoption("--part") and part != int(time.time()) // (24 * 3600) % parts:
        pytest.skip("another day's part")


@pytest.mark.parametrize("part", range(PARTS))
def test_wild_parts_of_layouts(part: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    skip_on_other_days(part, PARTS, request)
    fuzz(tmp_path, f"{part}/{PARTS}", program="fuzz_parts.py")


@pytest.mark.parametrize("part", range(3 * PARTS))
def test_numbers_at_the_ends_of_dtypes(part: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """No count, size or place in memory comes of a number that none can be made of. As many minutes."""
    skip_on_other_days(part, 3 * PARTS, request)
    fuzz(tmp_path, f"{part}/{3 * PARTS}", program="fuzz_numbers.py")


@pytest.mark.parametrize("part", range(PARTS))
def test_changed_files_of_layouts(part: int, tmp_path: Path) -> None:
    fuzz(tmp_path, f"{part}/{PARTS}", program="fuzz_files.py")


def test_wild_parts_are_drawn_for_every_layout() -> None:
    """A layout of which no operator takes a sample would be drawn in vain."""
    for layout in fuzz_parts.LAYOUTS:
        taken = [call for name in ("neg", "clone", "t", "view") for call in fuzz_parts.taken(TABLE[name], layout)]
        assert any(True for call in taken for _ in call.wild(random.Random(0))), layout


@pytest.mark.parametrize("part", range(PARTS))
def test_wild_numbers(part: int, tmp_path: Path) -> None:
    fuzz(tmp_path, f"{part}/{PARTS}")


def test_every_integer_tensor_is_drawn() -> None:
    """An argument's name that only ever stands for integers, where an operator computes with floats, is an index in
    every operator, so each operator that has one has a sample with it."""
    drawn: dict[str, set[str]] = {}
    kinds: dict[str, set[bool]] = {}
    for name, info in TABLE.items():
        drawn[name] = {fuzz_indices.argument_at(info, place) for _, place, _ in fuzz_indices.places(info)}
        if info.main_dtype in FLOATING:
            for sample in info.samples(info.main_dtype):
                for place, array in fuzz_indices.arrays(sample):
                    kinds.setdefault(fuzz_indices.argument_at(info, place), set()).add(array.dtype in INTEGERS)
    names = {name for name, kind in kinds.items() if kind == {True}}
    assert {"index", "indices", "pivots", "offsets", "batch_sizes", "input_lengths", "target_lengths"} <= names | {
        a for given in drawn.values() for a in given
    }
    missing = [
        f"{name}: {a.name}"
        for name, info in TABLE.items()
        for a in info.op.schema.arguments
        if a.name in names and str(a.type).startswith("Tensor") and a.default is None and a.name not in drawn[name]
    ]
    assert not missing


# ---- what reaches LAPACK, on each device ----

MATRIX = [[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 6.0]]
WRONG = [[0, 2, 3], [4, 2, 3], [-1, 2, 3], [1, 2, 30_000_000], [-(2**31), 2, 3], [2**31 - 1, 2, 3]]


@pytest.mark.parametrize("pivots", WRONG)
def test_pivots_of_no_factorization(pivots: list[int], device: str) -> None:
    a, b = tp.tensor(MATRIX, device=device), tp.ones(3, 1, device=device)
    lu, _ = tp.linalg.lu_factor(a)
    wild = tp.tensor(pivots, dtype=tp.int32, device=device)
    side = "greater" if min(pivots) < 1 else "smaller"
    for call in (
        lambda: tp.linalg.lu_solve(lu, wild, b),
        lambda: tp.linalg.lu_solve(lu, wild, b, adjoint=True),
        lambda: tp.linalg.lu_solve(lu, wild, b.mT, left=False),
        lambda: tp.linalg.lu_solve(lu.expand(2, 3, 3), wild.expand(2, 3), b),
    ):
        with pytest.raises(RuntimeError, match=f"{side} or equal"):
            call()
    with pytest.raises(RuntimeError, match=r"between 1 and LU.size\(-2\)"):
        tp.lu_unpack(lu, wild)
    with pytest.raises(RuntimeError, match="ldl_solve: pivot"):
        tp.linalg.ldl_solve(lu, wild, b)


@pytest.mark.parametrize("pivots", [[-2, -2, -3], [1, 2, -3], [-3, 2, 3], [1, -2, 3], [-1, -4, 3]])
def test_blocks_of_no_factorization(pivots: list[int], device: str) -> None:
    """A block of two rows has two pivots below zero."""
    with pytest.raises(RuntimeError, match="ldl_solve: pivot"):
        tp.linalg.ldl_solve(
            tp.tensor(MATRIX, device=device),
            tp.tensor(pivots, dtype=tp.int32, device=device),
            tp.ones(3, 1, device=device),
        )


def test_blocks_of_two_rows_are_solved(device: str) -> None:
    a = tp.tensor(
        [[0.0, 1.0, 2.0, 0.5], [1.0, 0.0, 3.0, 1.0], [2.0, 3.0, 0.0, 4.0], [0.5, 1.0, 4.0, 0.0]], device=device
    )
    b = tp.tensor([[1.0], [2.0], [3.0], [4.0]], device=device)
    ld, pivots = tp.linalg.ldl_factor(a)
    assert min(pivots.tolist()) < 0
    tp.testing.assert_close(a @ tp.linalg.ldl_solve(ld, pivots, b), b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [(3,), ()])
def test_an_index_without_dimensions_and_a_source_without_elements(sizes: tuple[int, ...], device: str) -> None:
    index, source = tp.tensor(0, device=device), tp.zeros(0, device=device)
    for call in (
        lambda x: x.scatter_(0, index, source),
        lambda x: x.scatter_add_(0, index, source),
        lambda x: x.scatter_(0, index, source, reduce="multiply"),
        lambda x: x.scatter_reduce_(0, index, source, "sum"),
        lambda x: x.index_add_(0, index, source),
        lambda x: x.index_copy_(0, index, source),
        lambda x: x.index_reduce_(0, index, source, "mean"),
        lambda x: x.put_(index, source),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call(tp.zeros(sizes, device=device))


def test_an_index_out_of_range_where_nothing_is_read(device: str) -> None:
    x, index = tp.zeros(3, 0, device=device), tp.tensor([99], device=device)
    for call in (
        lambda: x.index_select(0, index),
        lambda: x.index_select(1, index - 99),
        lambda: tp.nn.functional.embedding(index, x),
    ):
        with pytest.raises(RuntimeError, match="out of bounds"):
            call()
            tp.ones(1, device=device).tolist()  # a device may say so later
    assert x.index_select(0, index - 98).shape == (1, 0)


def test_one_number_is_copied_to_an_index(device: str) -> None:
    five = tp.tensor(5.0, device=device)
    for index in (tp.tensor(1, device=device), tp.tensor([1], device=device)):
        assert tp.zeros(3, device=device).index_copy_(0, index, five).tolist() == [0.0, 5.0, 0.0]


@needs_device
def test_wild_numbers_on_opencl(tmp_path: Path) -> None:
    fuzz(
        tmp_path, "--device=opencl", "scatter.src", "index_add", "linalg_lu_solve", "linalg_ldl_solve", "take", "gather"
    )
