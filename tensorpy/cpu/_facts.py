"""What the CPU is and which instructions it has, as the system says (/proc/cpuinfo and /sys, on Linux)."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

_X86 = """
    sse sse2 sse3 ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ne_convert fma3
    fma4 f16c bmi bmi2 popcnt lzcnt aes sha clflush clflushopt clwb avx512_f avx512_cd avx512_dq avx512_bw
    avx512_vl avx512_ifma avx512_vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512_vnni avx512_bf16
    avx512_fp16 avx512_vp2intersect avx512_4vnniw avx512_4fmaps avx10_1 avx10_2 amx_bf16 amx_tile amx_int8
    amx_fp16
""".split()
_LINUX = {"sse3": "pni", "fma3": "fma", "bmi": "bmi1", "lzcnt": "abm", "sha": "sha_ni", "neon": "asimd"}


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


@cache
def _said() -> tuple[dict[str, str], list[dict[str, str]]]:
    """What /proc/cpuinfo says of the first core, and of each."""
    blocks = [block.splitlines() for block in _text("/proc/cpuinfo").split("\n\n")]
    cores = [{k.strip(): v.strip() for k, _, v in (line.partition(":") for line in block)} for block in blocks if block]
    return (cores[0] if cores else {}), cores


@cache
def _flags() -> frozenset[str]:
    first, _ = _said()
    return frozenset((first.get("flags") or first.get("Features") or "").split())


def _has(name: str) -> bool:
    return not _flags().isdisjoint({_LINUX.get(name, name), name.replace("avx512_", "avx512")})


def _cache_size(level: str) -> int:
    """Bytes of the first core's cache: "1" of data, or "2"; 0: the system does not say."""
    for place in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        kind = _text(f"{place}/type").strip()
        if _text(f"{place}/level").strip() == level and kind != "Instruction":
            return int(_text(f"{place}/size").strip().removesuffix("K") or 0) * 1024
    return 0


def get_capabilities() -> dict[str, Any]:
    """What the CPU is: its name, its architecture, its cores and caches, and for each kind of instructions whether it
    has them ("avx2", "avx512_f", ... on x86-64; what the system lists elsewhere).

    Returns: a dict.

    Example:
        >>> tp.cpu.get_capabilities()["num_logical_cores"] >= 1
        True
    """
    first, cores = _said()
    machine = platform.machine()
    sockets = {core.get("physical id", "0") for core in cores}
    physical = {(core.get("physical id"), core.get("core id", core.get("processor"))) for core in cores}
    known = _X86 if machine in ("x86_64", "AMD64", "i686") else ["neon", *sorted(_flags())]
    return {
        "architecture": machine,
        "cpu_name": first.get("model name", platform.processor() or machine),
        "num_sockets": max(len(sockets), 1),
        "num_physical_cores": len(physical) or os.cpu_count() or 1,
        "num_logical_cores": os.cpu_count() or 1,
        "l1d_cache_size": _cache_size("1"),
        "l2_cache_size": _cache_size("2"),
    } | {name: _has(name) for name in known}


def _is_avx2_supported() -> bool:
    return _has("avx2") and _has("fma3")


def _is_avx512_supported() -> bool:
    return all(_has(f"avx512_{part}") for part in ("f", "vl", "bw", "dq")) and _has("fma3")


def _is_avx512_bf16_supported() -> bool:
    return _is_avx512_supported() and _has("avx512_bf16")


def _is_vnni_supported() -> bool:
    return _has("avx512_vnni")


def _is_amx_tile_supported() -> bool:
    return _has("amx_tile")


def _is_amx_fp16_supported() -> bool:
    return _is_amx_tile_supported() and _has("amx_fp16")


def _init_amx() -> bool:
    """Whether products may use tiles; the first that does asks the system for them."""
    return _has("amx_int8")
