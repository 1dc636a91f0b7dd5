"""The OpenBLAS that tensorpy uses, called from C's side of ctypes: what a matrix product costs without any library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from tensorpy.backends._blas import locate

ROW_MAJOR, NO_TRANS = 101, 111


def sgemm(a: np.ndarray, b: np.ndarray, threads: int) -> Callable[[], object] | None:
    """a @ b into one output, by cblas_sgemm with its arguments made beforehand; None without the library. Leaves the
    library on one thread, as tensorpy keeps it.
    """
    path = locate()
    if path is None:
        return None
    library = ctypes.CDLL(path)
    function, set_threads = library.scipy_cblas_sgemm, library.scipy_openblas_set_num_threads
    function.restype = set_threads.restype = None
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), np.float32)
    pointer, integer, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
    arguments = (
        *(integer(v) for v in (ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k)),
        *(real(1), pointer(a.ctypes.data), integer(k), pointer(b.ctypes.data), integer(n)),
        *(real(0), pointer(out.ctypes.data), integer(n)),
    )
    keep = (a, b, out)
    if threads == 1:
        return lambda: (function(*arguments), keep)
    return lambda: (set_threads(threads), function(*arguments), set_threads(1), keep)
