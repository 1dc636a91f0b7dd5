"""Libraries of MPI of each binary interface, each under its own launcher and, where it can, from a store."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class Library(NamedTuple):
    path: str
    launchers: tuple[str, ...]
    options: tuple[str, ...]
    version: str


HYDRA = (f"{sys.prefix}/bin/mpiexec", "mpiexec.hydra", "mpiexec.mpich")
OF_OPEN_MPI = ("--oversubscribe", "--allow-run-as-root", "-x", "TENSORPY_MPI_LIBRARY")
LIBRARIES = {
    "standard": Library(f"{sys.prefix}/lib/libmpi_abi.so.1", HYDRA, (), r"MPICH Version: +5"),
    "mpich 5": Library(f"{sys.prefix}/lib/libmpi.so.12", HYDRA, (), r"MPICH Version: +5"),
    "mpich": Library("libmpich.so.12", HYDRA, (), r"MPICH Version: +\d"),
    "open mpi": Library("libmpi.so.40", ("mpirun.openmpi", "mpirun"), OF_OPEN_MPI, r"Open MPI v\d"),
}


def is_there(path: str) -> bool:
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True


def of(name: str) -> Library:
    library = LIBRARIES[name]
    if not is_there(library.path):
        pytest.skip(f"no {library.path}")
    return library


def run(library: Library, *command: str, launched: bool = True) -> subprocess.CompletedProcess[str]:
    launcher = next((found for name in library.launchers if (found := shutil.which(name))), None)
    if launched and launcher is None:
        pytest.skip(f"no {library.launchers[-1]}")
    drop = re.compile("RANK|WORLD_SIZE|PMI|OMPI")
    variables = {k: v for k, v in os.environ.items() if not drop.match(k)}
    start = [str(launcher), "-n", "2", *library.options] if launched else []
    return subprocess.run(
        [*start, sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=90,
        cwd=ROOT,
        env={**variables, "TENSORPY_MPI_LIBRARY": library.path},
    )


PROGRAM = """
import sys
import tensorpy as tp
from tensorpy import distributed as dist, nn
R, kinds = dist.ReduceOp, "bool uint8 int8 int16 uint16 int32 int64 float16 bfloat16 float32 float64 complex64".split()
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
for kind in kinds:
    for n in (1, 1000, 3_000_000):
        t = tp.full((n,), rank + 1).to(getattr(tp, kind))
        dist.all_reduce(t)
        assert bool((t == tp.tensor(3).to(t.dtype)).all()), (kind, n)
for op, answer in ((R.MAX, 2), (R.MIN, 1), (R.PRODUCT, 2), (R.BAND, 0), (R.BOR, 3), (R.BXOR, 3)):
    t = tp.full((5,), rank + 1)
    dist.all_reduce(t, op)
    assert t.tolist() == [answer] * 5, op
t = tp.tensor([float("nan"), -0.0 if rank else 0.0])
dist.all_reduce(t, R.MAX)
assert t[0].isnan() and not t[1].signbit()
got = tp.empty(2 * (rank + 1))
dist.all_to_all_single(got, tp.full((3,), float(rank)), [rank + 1] * 2, [1, 2])
assert got.tolist() == [0.0] * (rank + 1) + [1.0] * (rank + 1)
got = tp.empty(2)
dist.reduce_scatter_tensor(got, tp.arange(4.0))
assert got.tolist() == [4.0 * rank, 4.0 * rank + 2]
everyone = [None] * 2
dist.all_gather_object(everyone, "x" * (rank + 1))
assert everyone == ["x", "xx"]
t = tp.full((4,), float(rank))
if rank == 0:
    dist.send(t, 1)
else:
    assert dist.recv(t) == 0 and t.tolist() == [0.0] * 4
pair = dist.new_group([0, 1])
dist.all_reduce(t, group=pair)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
model(tp.full((2, 4), rank + 1.0)).sum().backward()
assert model.module.weight.grad.tolist() == [[3.0] * 4]
dist.destroy_process_group()
if "again" in sys.argv:
    dist.init_process_group()
    dist.barrier()  # the program ends in a world
print(f"good {rank} {tp._C._distributed.library()}\\n", end="", flush=True)
"""


@pytest.mark.parametrize("name", list(LIBRARIES))
@pytest.mark.parametrize("again", [(), ("again",)])
def test_a_launcher_starts_worlds(name: str, again: tuple[str, ...], tmp_path: Path) -> None:
    library, program = of(name), tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run(library, str(program), *again)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^good (\d)", "\n".join(sorted(done.stdout.splitlines())), re.M) == ["0", "1"]
    assert len(re.findall(library.version, done.stdout)) == 2 and Path(library.path).name in done.stdout


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_the_check_says_which_library_was_found(name: str) -> None:
    library = of(name)
    done = run(library, "-m", "tensorpy.distributed.check")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(rf"^library: {library.version}.*{Path(library.path).name}\)$", done.stdout, re.M)) == 1
    assert "2 processes on 1 machine(s)" in done.stdout and "as it should be" in done.stdout


@pytest.mark.parametrize("name", ["mpich 5", "mpich"])
def test_older_mpich_starts_from_a_store(name: str) -> None:
    done = run(of(name), "-m", "tensorpy.distributed.check", launched=False)
    assert done.returncode == 0 and "as it should be" in done.stdout, done.stderr


def test_who_cannot_start_a_library_says_so() -> None:
    library = of("open mpi")
    done = run(library, "-m", "tensorpy.distributed.check", launched=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.search(r"wrong: init_process_group: Open MPI v\d.* starts under its own mpirun alone", done.stderr)
    other = library._replace(path=LIBRARIES["standard"].path)
    if is_there(other.path):
        done = run(other, "-m", "tensorpy.distributed.check")
        assert done.returncode != 0
        assert re.search(r"Open MPI's mpirun started this process, and MPICH .* is of another MPI", done.stderr)


def test_a_library_of_no_mpi_is_named() -> None:
    done = run(LIBRARIES["mpich"]._replace(path="libm.so.6"), "-m", "tensorpy.distributed.check", launched=False)
    assert done.returncode == 1 and "libm.so.6 has no MPI_" in done.stdout
