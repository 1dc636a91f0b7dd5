"""The plain OpenCL program (plain.c), compiled when it is first asked for, with its buffers and kernels as objects."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tensorpy as tp

HERE = Path(__file__).parent
CLBLAST = "libclblast.so.1"


class _Program(ctypes.Structure):
    _fields_ = (("kernel", ctypes.c_void_p), ("buffers", ctypes.c_void_p * 8), ("n", ctypes.c_int))


@functools.cache
def library() -> ctypes.CDLL:
    """The program, on the device that tensorpy has chosen."""
    folder = Path(tempfile.mkdtemp(prefix="plain_opencl"))
    compiled = folder / "plain.so"
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{HERE.parent.parent / 'csrc'}", "-o", str(compiled)]
    subprocess.run([*command, str(HERE / "plain.c"), "-ldl"], check=True)
    made = ctypes.CDLL(str(compiled))
    made.plain_buffer.restype = ctypes.c_void_p
    opener = os.environ.get("TENSORPY_OPENCL_LIBRARY") or "libOpenCL.so.1"
    if made.plain_open(opener.encode(), tp.opencl.get_device_name().encode()):
        raise RuntimeError("the plain OpenCL program cannot open the device")
    return made


class Buffer:
    """Memory of the device, filled with ones of float32."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.handle = ctypes.c_void_p(library().plain_buffer(ctypes.c_size_t(nbytes)))
        if not self.handle:
            raise MemoryError(f"the plain OpenCL program gets no {nbytes} bytes")

    def __del__(self) -> None:
        library().plain_release(self.handle)

    def copy_from(self, other: Buffer) -> None:
        """The driver's own copy; waits for it."""
        _check(library().plain_copy(self.handle, other.handle, ctypes.c_size_t(self.nbytes)))


class Program:
    """A kernel with its buffers."""

    def __init__(self, source: str, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers  # kept alive
        self.program = _Program()
        handles = (ctypes.c_void_p * len(buffers))(*(b.handle for b in buffers))
        made = library().plain_program_make(ctypes.byref(self.program), source.encode(), b"run", handles, len(buffers))
        _check(made)

    def run(self, items: int, local: int = 0, times: int = 1) -> None:
        """Enqueues it so many times and waits; local 0 leaves the size of groups to the driver."""
        size = ctypes.c_size_t
        _check(library().plain_run(ctypes.byref(self.program), size(items), size(local), times))


def clblast(n: int) -> Sequence[Buffer] | None:
    """Three buffers for CLBlast's product of n x n matrices; None where it is not installed or fails."""
    buffers = [Buffer(4 * n * n) for _ in range(3)]
    return buffers if sgemm(buffers, n) == 0 else None


def sgemm(buffers: Sequence[Buffer], n: int) -> int:
    """CLBlast's product; 0, or what it failed with."""
    a, b, c = (buffer.handle for buffer in buffers)
    return int(library().plain_clblast_sgemm(CLBLAST.encode(), a, b, c, ctypes.c_size_t(n)))


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"OpenCL: {status}")
