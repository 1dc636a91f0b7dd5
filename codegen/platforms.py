"""Where the C half does not build, said before a compiler does hundreds of times; docs/deployment.md has the why."""

from __future__ import annotations

import platform
import struct
import sys
import sysconfig
from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """What a module is built for."""

    system: str = "linux"  # as sys.platform has it
    triple: str = "x86_64-linux-gnu"  # as the compiler has it
    implementation: str = "CPython"
    free_threaded: bool = False
    little_endian: bool = True
    bits: int = 64


def this_platform(triple: str) -> Platform:
    return Platform(
        system=sys.platform,
        triple=triple,
        implementation=platform.python_implementation(),
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        little_endian=sys.byteorder == "little",
        bits=8 * struct.calcsize("P"),
    )


def why_not(where: Platform) -> str | None:
    """Why tensorpy cannot be built for it; None if it can."""
    if where.free_threaded:
        return "free-threaded builds of CPython are not supported: tensorpy needs the interpreter's lock"
    if where.implementation != "CPython":
        return f"{where.implementation} is not supported: the extension module is written for CPython"
    if where.system == "win32":
        return "Windows is not supported: build and run tensorpy in WSL, which is Linux"
    if where.system == "darwin":
        return "macOS is not supported: the C half is written for Linux's interfaces and links as ELF does"
    if not where.system.startswith("linux"):
        return f"{where.system} is not supported: the C half is written for Linux"
    if "musl" in where.triple:
        return "musl is not supported: the C half is written for glibc"
    if where.bits != 64 or not where.little_endian:
        return "only 64-bit little-endian machines are supported"
    return None
