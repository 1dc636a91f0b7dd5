"""torchrun: programs as several processes, their output, signals, restarts, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ranks import free_port, needs_mpi

from tensorpy.distributed import run

ROOT = Path(__file__).resolve().parents[2]
AS_TENSORPY = (sys.executable, "-m", "tensorpy.distributed.run")
AS_TORCH = (sys.executable, "-m", "tensorpy.run", "torchrun")

SUM = """
import os, sys
import tensorpy as tp
from tensorpy import distributed as dist
dist.init_process_group()
t = tp.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(t)
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RESTART_COUNT")
said = (t.item(), *(os.environ[n] for n in names), *sys.argv[1:], dist.is_torchelastic_launched())
sys.stdout.write(" ".join(map(str, said)) + "\\n")  # at once: others write, too
dist.destroy_process_group()
"""


def start(program: str, folder: Path, *options: str, by: Any = AS_TENSORPY, **more: str) -> subprocess.Popen[str]:
    path = folder / "program.py"
    path.write_text(program)
    variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return subprocess.Popen(
        [*by, *options, str(path), "an", "--argument"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**variables, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **more},
    )


def ran(process: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def processes_of(folder: Path) -> list[int]:
    """Those whose command line names a file of the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@needs_mpi
@pytest.mark.parametrize("options", [("--standalone",), ("--nnodes=1",), ("--nnodes", "1:1", "--rdzv-backend=c10d")])
def test_processes_know_who_they_are(options: tuple[str, ...], tmp_path: Path) -> None:
    status, out, err = ran(start(SUM, tmp_path, *options, "--nproc-per-node", "3"))
    assert status == 0, err
    assert sorted(out.splitlines()) == [f"6.0 {r} {r} 3 3 0 0 an --argument True" for r in range(3)]
    assert not list(tmp_path.glob("torchrun_*"))


@needs_mpi
def test_two_nodes(tmp_path: Path) -> None:
    port = str(free_port())
    for options in (
        lambda n: ("--node-rank", n, "--master-port", port),
        lambda n: ("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"),
    ):
        nodes = [start(SUM, tmp_path, "--nnodes=2", "--nproc-per-node", str(1 + n), *options(str(n))) for n in range(2)]
        lines = []
        for node in nodes:
            status, out, err = ran(node)
            assert status == 0, err
            lines += out.splitlines()
        assert sorted(line.split()[1] for line in lines) == ["0", "1", "2"]
        assert all(line.startswith("6.0 ") and line.split()[3] == "3" for line in lines)


def test_a_node_that_does_not_come_is_named(tmp_path: Path) -> None:
    options = ("--nnodes=2", "--node-rank=0", f"--master-port={free_port()}", "--rdzv-conf", "join_timeout=1")
    status, _, err = ran(start(SUM, tmp_path, *options))
    assert status == 1 and "1 of 2 nodes came in 1 s; missing: 1" in err


@needs_mpi
def test_programs_for_torch(tmp_path: Path) -> None:
    program = SUM.replace("import tensorpy as tp", "import torch as tp").replace("tensorpy import", "torch import")
    status, out, err = ran(start(program, tmp_path, "--nproc-per-node=2", by=AS_TORCH))
    assert status == 0 and len(out.splitlines()) == 2, err
    by = (sys.executable, "-m", "tensorpy.run", "-m", "torch.distributed.launch")
    status, out, err = ran(start(program, tmp_path, "--nproc-per-node=2", by=by))
    assert status == 0 and "--local-rank=1 an --argument" in out, err


FAILS = """
import os, sys, time
from tensorpy.distributed.elastic.multiprocessing.errors import record

@record
def main():
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if os.environ["RANK"] == "1" and (first or "always" in os.environ):
        raise ValueError("no such file: data")
    if first:
        time.sleep(60)
    sys.stdout.write("fine " + os.environ["RANK"] + "\\n")

main()
"""


def test_all_start_again_after_one_has_failed(tmp_path: Path) -> None:
    began = time.monotonic()
    status, out, err = ran(start(FAILS, tmp_path, "--nproc-per-node=3", "--max-restarts=2"))
    assert status == 0 and sorted(out.split()) == ["0", "1", "2", *["fine"] * 3], err
    assert re.search(
        r"rank 1 \(local rank 1, pid \d+, host \S+\) exited with 1 after .*: ValueError: no such file", err
    )
    assert "all processes start again: 1 of at most 2 times" in err and time.monotonic() - began < 30
    status, out, err = ran(start(FAILS, tmp_path, "--nproc-per-node=2", "--max-restarts=1", always="1"))
    assert status == 1 and err.count("ValueError: no such file: data (") == 2
    assert not processes_of(tmp_path)


@needs_mpi
def test_messages_go_on_after_a_restart(tmp_path: Path) -> None:
    program = SUM.replace(
        "dist.all_reduce(t)",
        "dist.all_reduce(t)\nimport signal\nif os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    os.kill(os.getpid(), signal.SIGKILL) if dist.get_rank() == 1 else dist.barrier()",
    )
    status, out, err = ran(start(program, tmp_path, "--nproc-per-node=3", "--max-restarts=1"))
    assert status == 0 and "was ended by SIGKILL" in err, err
    assert sorted(out.splitlines()) == [f"6.0 {r} {r} 3 3 0 1 an --argument True" for r in range(3)]


WAITS = """
import signal, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", __file__])
if "deaf" in sys.argv[0]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write("ready\\n")
time.sleep(100)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_signals_reach_the_processes(name: str, tmp_path: Path) -> None:
    process = start(WAITS, tmp_path, "--nproc-per-node=2", "--shutdown-timeout=3")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    process.send_signal(getattr(signal, name))
    process.wait(20)
    if name == "SIGKILL":  # its own processes go with it; what they started is theirs
        end = time.monotonic() + 5
        while len(processes_of(tmp_path)) > 2 and time.monotonic() < end:
            time.sleep(0.05)
        left = processes_of(tmp_path)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert len(left) == 2
        return
    assert process.returncode == 128 + getattr(signal, name)
    assert not processes_of(tmp_path)


SPEAKS = """
import os, sys
sys.stdout.write("out " + os.environ["RANK"] + "\\n")
sys.stderr.write("err " + os.environ["RANK"] + "\\n")
"""


def test_output_goes_where_it_is_asked_to(tmp_path: Path) -> None:
    logs = tmp_path / "logs"

    def files(pattern: str) -> list[str]:
        return sorted(path.read_text() for path in logs.glob(f"*/attempt_0/{pattern}"))

    status, out, err = ran(start(SPEAKS, tmp_path, "--nproc-per-node=2", f"--log-dir={logs}", "-r", "3"))
    assert status == 0 and not out and not err
    assert files("*/stdout.log") == ["out 0\n", "out 1\n"] and files("1/stderr.log") == ["err 1\n"]
    status, out, err = ran(start(SPEAKS, tmp_path, "--nproc-per-node=2", f"--log-dir={logs}", "-t", "0:1,1:2"))
    assert out.splitlines() == ["[default0]:out 0", "out 1"] or out.splitlines() == ["out 1", "[default0]:out 0"]
    assert sorted(err.splitlines()) == ["[default1]:err 1", "err 0"]
    status, out, err = ran(start(SPEAKS, tmp_path, "--nproc-per-node=2", "--local-ranks-filter=1"))
    assert (out, err) == ("out 1\n", "err 1\n")


def test_kinds_of_programs(tmp_path: Path) -> None:
    for options in (("--run-path",), ()):
        status, out, err = ran(start("print(__name__)", tmp_path, *options))
        assert (status, out) == (0, "__main__\n"), err
    done = subprocess.run(
        [*AS_TENSORPY, "--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == "0 of 1\n", done.stderr
    done = subprocess.run([*AS_TENSORPY, "-m", "timeit", "-n1", "-r1"], capture_output=True, text=True, cwd=ROOT)
    assert "1 loop" in done.stdout, done.stderr
    status, out, _ = ran(start(SPEAKS, tmp_path, PET_NPROC_PER_NODE="2"))
    assert sorted(out.split()) == ["0", "1", "out", "out"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nproc-per-node", "many"], "Unsupported nproc_per_node value: many"),
        (["--nproc-per-node", "gpu"], "there are no such devices"),
        (["--nnodes", "2:1"], 'not in "MIN:MAX" format'),
        (["--nnodes", "2"], "--node-rank says which"),
        (["--nnodes", "2", "--node-rank", "2"], "there are 2 machines"),
        (["--nnodes", "2", "--rdzv-backend", "c10d"], "--rdzv-endpoint host:port"),
        (["-r", "7"], "says no streams"),
        (["--rdzv-conf", "fast"], "key=value"),
        (["--signals-to-handle", "SIGSOON"], "there is no SIGSOON"),
        (["--no-python", "-m"], "at the same time"),
        (["--virtual-local-rank"], "CUDA"),
    ],
)
def test_what_makes_no_sense_is_said(options: list[str], said: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as end:
        run.main([*options, "program.py"])
    assert end.value.code == 2 and said in capsys.readouterr().err
