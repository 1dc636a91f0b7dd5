"""The program of docs/distributed.md does what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ranks import free_port, needs_mpi

ROOT = Path(__file__).resolve().parents[2]


@needs_mpi
def test_the_program_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "distributed.md").read_text()
    (program,) = re.findall(r"```python\n(# two\.py\n.*?)```", page, re.S)
    (expected,) = re.findall(r"# prints (.*)", program)
    path = tmp_path / "two.py"
    path.write_text(program.replace("29511", str(free_port())))
    variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**variables, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == expected + "\n", done.stderr


@needs_mpi
def test_the_training_program_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "distributed.md").read_text()
    (program,) = re.findall(r"```python\n(# train\.py\n.*?)```", page, re.S)
    (command,) = re.findall(r"^    python (-m tensorpy\S+ --nproc-per-node 2) train\.py$", page, re.M)
    path = tmp_path / "train.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, *command.split(), str(path)], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    said = re.findall(r"rank \d of 2: learned", done.stdout)  # two processes write: their lines may run into each other
    assert sorted(said) == [f"rank {r} of 2: learned" for r in range(2)], done.stderr


@needs_mpi
def test_the_tensor_in_parts_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "distributed.md").read_text()
    (program,) = re.findall(r"```python\n(# parts\.py\n.*?)```", page, re.S)
    (expected,) = re.findall(r"the first prints `(.*?)`, and both `True`", page)
    path = tmp_path / "parts.py"
    path.write_text(program)
    command = ("-m", "tensorpy.distributed.run", "--nproc-per-node", "2")
    done = subprocess.run([sys.executable, *command, str(path)], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert expected in done.stdout and done.stdout.count("True") == 2, done.stdout + done.stderr


def checked(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return subprocess.run(
        [sys.executable, "-m", "tensorpy.distributed.check", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**variables, **environment},
    )


@needs_mpi
def test_the_check_measures_each_pair() -> None:
    done = checked("--ranks", "3")
    assert done.returncode == 0, done.stderr
    assert re.search(r"library: \S+", done.stdout) and "3 processes on 1 machine(s)" in done.stdout
    pairs = re.findall(r"^ +(\d) +(\d) +[\d.]+ us +[\d.]+ GB/s$", done.stdout, re.M)
    assert pairs == [("0", "1"), ("0", "2"), ("1", "2")]
    assert "as it should be" in done.stdout and "WRONG" not in done.stdout


def test_the_check_says_what_is_missing() -> None:
    done = checked(TENSORPY_MPI_LIBRARY="/nowhere/libmpi_abi.so.1")
    assert done.returncode == 1 and "`pip install mpich` brings one" in done.stdout


@needs_mpi
def test_the_check_says_who_is_missing() -> None:
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    done = checked(**variables)
    assert done.returncode == 1 and "wrong: init_process_group: MASTER_PORT" in done.stderr
