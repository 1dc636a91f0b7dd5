"""`python -m benchmarks`: all families, one thread and two; a table, and a picture of the ratios.

--device NAME   the device to measure; an OpenCL device is compared with a plain OpenCL program
--family NAME   only one family (repeatable)
--threads N     only this number of threads (repeatable)
--save          also write the table to docs/performance.md and the picture to docs/performance.png (the CPU's), or
                the table into docs/opencl.md
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path

import tensorpy as tp

from .harness import Outcome, measure, table
from .libraries import set_threads, torch

HERE = Path(__file__).parent
FAMILIES = sorted({p.stem.removeprefix("bench_") for p in HERE.rglob("bench_*.py")})
DOCS = Path(__file__).parent.parent / "docs"


def cpu_name() -> str:
    """The kind of CPU, and what tensorpy's loops use of it: the name alone tells little in a virtual machine."""
    try:
        found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    name = found.group(1) if found else platform.processor()
    return f"{name} with {tp.backends.cpu.get_cpu_capability()}"


def families(device: str) -> dict[str, str]:
    """The module of each family that is measured on a device."""
    folder = "opencl" if device.startswith("opencl") else ""
    inside = f".{folder}" if folder else ""
    return {
        path.stem.removeprefix("bench_"): f"{inside}.{path.stem}" for path in sorted((HERE / folder).glob("bench_*.py"))
    }


def write_between(path: Path, text: str) -> None:
    """Replaces what a page has between its marks for the measured numbers."""
    page = path.read_text()
    head, rest = page.split("<!-- measured -->\n", 1)
    _, tail = rest.split("<!-- end of measured -->\n", 1)
    path.write_text(f"{head}<!-- measured -->\n{text}<!-- end of measured -->\n{tail}")


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """One bar per case: tensorpy's time over the better of the others; 1 is even, red has missed its bar."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [(o, o.ratio("best")) for o in outcomes if o.threads == 1]
    shown = [(o.case.name, ratio, o.missed) for o, ratio in rows if ratio is not None]
    figure, axes = plt.subplots(figsize=(8, 0.24 * len(shown) + 1), layout="constrained")
    colours = ["tab:red" if missed else "tab:green" for _, _, missed in shown]
    axes.barh([name for name, _, _ in shown], [ratio for _, ratio, _ in shown], color=colours)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="time of tensorpy / time of the better of NumPy and torch, one thread")
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.tick_params(labelsize=7)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--family", action="append", choices=FAMILIES)
    parser.add_argument("--threads", action="append", type=int)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    outcomes: list[Outcome] = []
    on_opencl = args.device.startswith("opencl")
    if on_opencl:  # PoCL's threads each stay on a CPU, for both sides, so that two of them never share one
        os.environ.setdefault("POCL_AFFINITY", "1")
    known = families(args.device)
    if unknown := sorted(set(args.family or ()) - set(known)):
        parser.error(f"{args.device} has no family {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    for threads in args.threads or ((2,) if on_opencl else (1, 2)):
        set_threads(threads)
        for family in args.family or known:
            for case in importlib.import_module(known[family], __package__).cases(args.device):
                outcome = measure(case, threads)
                object.__setattr__(outcome.case, "family", family)
                outcomes.append(outcome)
                print(table([outcome]).splitlines()[-1], flush=True)
    missed = [o for o in outcomes if o.missed]
    print(
        f"\n{len(outcomes)} cases on {cpu_name()}, {len(missed)} above a bar"
        + ("" if torch else " (torch is not installed)")
    )
    if args.save and on_opencl:
        name = tp.opencl.get_device_name(args.device)
        head = f"`make bench DEVICE={args.device}` on {name}; the smaller the ratio, the faster tensorpy.\n\n"
        write_between(DOCS / "opencl.md", head + table(outcomes))
    elif args.save:
        text = (
            f"# Performance\n\n`make bench` on {cpu_name()}; the smaller the ratio, the faster tensorpy.\n"
            "The errors of the math functions are in [accuracy](accuracy.md).\n\n"
            "![The ratios of the table, case by case](performance.png)\n\n"
            f"{table(outcomes)}"
        )
        (DOCS / "performance.md").write_text(text)
        draw(outcomes, DOCS / "performance.png")
    elif not on_opencl:
        path = Path("build/benchmarks.png")
        path.parent.mkdir(exist_ok=True)
        draw(outcomes, path)
        print(f"picture: {path}")


if __name__ == "__main__":
    main()
