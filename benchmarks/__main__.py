"""`python -m benchmarks`: all families, one thread and two; a table, and a picture of the ratios.

--device NAME   the device to measure
--family NAME   only one family (repeatable)
--threads N     only this number of threads (repeatable)
--save          also write the table to docs/performance.md and the picture to docs/performance.png
"""

from __future__ import annotations

import argparse
import importlib
import platform
import re
from collections.abc import Sequence
from pathlib import Path

from .harness import Outcome, measure, table
from .libraries import set_threads, torch

FAMILIES = sorted(p.stem.removeprefix("bench_") for p in Path(__file__).parent.glob("bench_*.py"))
DOCS = Path(__file__).parent.parent / "docs"


def cpu_name() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found.group(1) if found else platform.processor()


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """One bar per case: tensorpy's time over the better of the others; 1 is even."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [(o, o.ratio("best")) for o in outcomes if o.threads == 1]
    shown = [(o.case.name, ratio) for o, ratio in rows if ratio is not None]
    figure, axes = plt.subplots(figsize=(8, 0.24 * len(shown) + 1), layout="constrained")
    colours = ["tab:green" if ratio <= 1 else "tab:red" for _, ratio in shown]
    axes.barh([name for name, _ in shown], [ratio for _, ratio in shown], color=colours)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="time of tensorpy / time of the better of NumPy and torch, one thread")
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
    for threads in args.threads or (1, 2):
        set_threads(threads)
        for family in args.family or FAMILIES:
            for case in importlib.import_module(f".bench_{family}", __package__).cases(args.device):
                outcome = measure(case, threads)
                object.__setattr__(outcome.case, "family", family)
                outcomes.append(outcome)
                print(table([outcome]).splitlines()[-1], flush=True)
    missed = [o for o in outcomes if o.missed]
    print(
        f"\n{len(outcomes)} cases on {cpu_name()}, {len(missed)} above a bar"
        + ("" if torch else " (torch is not installed)")
    )
    if args.save:
        text = (
            f"# Performance\n\n`make bench` on {cpu_name()}; the smaller the ratio, the faster tensorpy.\n\n"
            f"{table(outcomes)}"
        )
        (DOCS / "performance.md").write_text(text)
        draw(outcomes, DOCS / "performance.png")
    else:
        path = Path("build/benchmarks.png")
        path.parent.mkdir(exist_ok=True)
        draw(outcomes, path)
        print(f"picture: {path}")


if __name__ == "__main__":
    main()
