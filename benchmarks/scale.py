"""How DistributedDataParallel scales, on paper: the model of docs/distributed.md, and SimGrid's simulation beside it.

    python -m benchmarks.scale              # the model's table
    python -m benchmarks.scale --simulate   # all-reduces of 25 MiB by SimGrid's smpirun, where it is installed
                                            # (apt install libsimgrid-dev), with one rank on each host

An all-reduce of S bytes among n ranks takes, by R. Rabenseifner's algorithm (Optimization of Collective Reduction
Operations, ICCS 2004), 2 log2(n) messages of latency a, in which each rank sends and receives 2 (n - 1) / n S bytes and
adds (n - 1) / n S. Networks are counted at 85 % of what their names say.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ADDS = 1 / 8e9  # seconds that a byte's sum takes
USED = 0.85  # of a network's bandwidth
BUCKET, FIRST = 25 << 20, 1 << 20  # bytes of DistributedDataParallel's buckets
BACKWARD = 2 / 3  # of a step
JITTER = 0.02  # of a step, as the standard deviation of one rank's


@dataclass(frozen=True)
class Network:
    name: str
    bits: float  # per second
    latency: float  # seconds


@dataclass(frozen=True)
class Model:
    name: str
    size: float  # bytes of gradients
    step: float  # seconds of a step of one process alone


NETWORKS = (
    Network("1 GbE", 1e9, 60e-6),
    Network("10 GbE", 10e9, 35e-6),
    Network("25 GbE", 25e9, 30e-6),
    Network("100 Gb RDMA", 100e9, 5e-6),
)
MODELS = (Model("ResNet-50", 102e6, 1.0), Model("GPT-2 124M", 498e6, 4.0))
RANKS = (8, 64, 512, 4096)


def all_reduce(n: int, size: float, network: Network) -> float:
    """Seconds of an all-reduce of `size` bytes among n ranks, one on each host."""
    if n == 1:
        return 0.0
    share = (n - 1) / n * size
    return 2 * math.log2(n) * network.latency + 2 * share * 8 / (network.bits * USED) + share * ADDS


def step(n: int, model: Model, network: Network) -> float:
    """Seconds of a step: each bucket goes when its gradients are there and the bucket before it is done."""
    begin, done, sent = model.step * (1 - BACKWARD), 0.0, 0.0
    size: float = FIRST
    while sent < model.size:
        size = min(size, model.size - sent)
        sent += size
        there = begin + model.step * BACKWARD * sent / model.size
        done = max(done, there) + all_reduce(n, size, network)
        size = BUCKET
    return max(done, model.step) + JITTER * model.step * math.sqrt(2 * math.log(n))


def efficiency(n: int, model: Model, network: Network) -> float:
    """What of n times one process's speed is left."""
    return model.step / step(n, model, network)


def table() -> str:
    lines = [f"efficiency at {', '.join(map(str, RANKS))} ranks"]
    for model in MODELS:
        for network in NETWORKS:
            found = " / ".join(f"{efficiency(n, model, network):.0%}" for n in RANKS)
            lines.append(f"{model.name}, {model.size / 1e6:.0f} MB, {model.step:g} s, {network.name:12} {found}")
    return "\n".join(lines)


# ---- SimGrid ----

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="hosts" prefix="host" suffix="" radical="0-{last}" speed="8Gf" bw="{bandwidth}Bps" lat="{latency}s"/>
</platform>
"""
PROGRAM = """#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {{
    MPI_Init(&argc, &argv);
    int n = {elements}, rank;
    float *from = SMPI_SHARED_MALLOC(n * sizeof *from), *to = SMPI_SHARED_MALLOC(n * sizeof *to);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (!rank) printf("seconds %.9f\\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}}
"""


def simulate(n: int, size: int, network: Network, algorithm: str = "rab") -> float:
    """Seconds of an all-reduce by SimGrid, with contention."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        # A message passes two links of a cluster: the latency is shared between them.
        text = PLATFORM.format(last=n - 1, bandwidth=network.bits / 8, latency=network.latency / 2)
        (where / "platform.xml").write_text(text)
        (where / "program.c").write_text(PROGRAM.format(elements=size // 4))
        (where / "hosts").write_text("".join(f"host{i}\n" for i in range(n)))
        subprocess.run(["smpicc", "-O1", "program.c", "-o", "program"], cwd=where, check=True, capture_output=True)
        command = ["smpirun", "-np", str(n), "-platform", "platform.xml", "-hostfile", "hosts"]
        done = subprocess.run(
            [*command, f"--cfg=smpi/allreduce:{algorithm}", "./program"],
            cwd=where, check=True, capture_output=True, text=True,
        )  # fmt: skip
        (found,) = re.findall(r"seconds (\S+)", done.stdout)
        return float(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulate", action="store_true", help="beside the model, what SimGrid says")
    if not parser.parse_args().simulate:
        print(table())
        return
    if not shutil.which("smpirun"):
        parser.error("smpirun is not installed: apt install libsimgrid-dev")
    for network in (NETWORKS[0], NETWORKS[2]):
        for n in (8, 16, 64, 256):
            model, found = all_reduce(n, BUCKET, network), simulate(n, BUCKET, network)
            print(
                f"{network.name}, {n:3} ranks: model {model * 1e3:7.1f} ms, SimGrid {found * 1e3:7.1f} ms", flush=True
            )


if __name__ == "__main__":
    main()
