"""Kernels in OpenCL C that functions run: what opencl_op is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorpy import _C


class OpenCLKernel:
    """A kernel in OpenCL C: `kernel[items](tensor, number, ...)` runs it over so many work-items.

    A tensor is two parameters of the kernel: its buffer, and the offset of its first element, a long. An int is a long,
    a float a float, a bool an int. `items` is a number or up to three of them; `kernel[items, group]` gives the size of
    the work-groups too, as tuples. One dimension is rounded up to whole groups, so a kernel looks at its index.

    Arguments:
        name: the operator's name with its namespace: 'mine::op'
        source: the OpenCL C

    Example:
        >>> kernel = tp.library.opencl_kernel("f", "__kernel void f(__global float *x) { x[0] = 1; }")
        >>> type(kernel).__name__
        'OpenCLKernel'
    """

    name: str
    source: str

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        nested = isinstance(grid, tuple) and len(grid) == 2 and all(isinstance(part, tuple) for part in grid)
        items, group = grid if nested else (grid, ())
        sizes = items if isinstance(items, tuple) else (items,)
        return lambda *args: _C._opencl.run_source(self.name, self.source, sizes, group, args)

    def __repr__(self) -> str:
        return f"<OpenCLKernel {self.name}>"


def opencl_kernel(name: str, source: str) -> OpenCLKernel:
    """The kernel `name` of a source in OpenCL C, built at its first run and kept, in memory and on disk.

    Returns: an OpenCLKernel.

    Example:
        >>> kernel = tp.library.opencl_kernel("f", "__kernel void f(__global float *x) { x[get_global_id(0)] *= 2; }")
    """
    return OpenCLKernel(name, source)
