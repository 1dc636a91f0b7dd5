"""Which of the CPU's kernels are in use."""

from __future__ import annotations

from tensorpy import _C


def get_cpu_capability() -> str:
    """The set of instructions that kernels are chosen for: "AVX512", "AVX2", or "DEFAULT" for every machine's."""
    name = _C._cpu_capability()
    return "DEFAULT" if name == "baseline" else name.upper()
