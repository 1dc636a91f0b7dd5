"""Sparse tensors: products, merged coordinates, steps of a sparse embedding; against PyTorch and SciPy."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import tensorpy as tp

from .harness import Case
from .libraries import torch, training_step

try:
    import scipy.sparse as scipy_sparse
except ImportError:
    scipy_sparse = None

LIBRARIES = {"tensorpy": tp} if torch is None else {"tensorpy": tp, "torch": torch}
ROWS, EACH, WIDTH = 100_000, 10, 64


def cases(device: str) -> Iterator[Case]:
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
    rng = np.random.default_rng(0)
    yield spmm(rng)
    for name, size in (("3,000 x 3,000", 3000), ("1,000,000 x 1,000,000", 10**6)):
        calls = {lib: partial(coo(lib, rng, size, 10_000_000).coalesce) for lib in LIBRARIES}
        yield Case(f"coalesce 10M of {name}", calls, {"torch": 0.5})
    for merged in (False, True):
        yield Case(
            f"1M {'merged' if merged else 'unordered'} values by a vector", by_vector(rng, merged), {"torch": 0.7}
        )
    index = rng.integers(0, 10**6, 4096)
    for optimizer in ("SparseAdam", "SGD"):
        calls = {lib: embedding_step(library, optimizer, index) for lib, library in LIBRARIES.items()}
        yield Case(f"{optimizer} of an embedding of 1M x 64, 4096 indices", calls, {"torch": 0.7})


def spmm(rng: np.random.Generator) -> Case:
    begins = np.arange(0, EACH * ROWS + 1, EACH)
    columns = np.sort(rng.integers(0, ROWS, (ROWS, EACH)), 1).ravel()
    values, dense = rng.random(EACH * ROWS, np.float32), rng.random((ROWS, WIDTH), np.float32)
    calls: dict[str, Callable[[], object]] = {}
    for lib, library in LIBRARIES.items():
        parts = (library.from_numpy(part) for part in (begins, columns, values))
        calls[lib] = partial(
            operator.matmul, library.sparse_csr_tensor(*parts, (ROWS, ROWS)), library.from_numpy(dense)
        )
    if scipy_sparse is not None:
        calls["scipy"] = partial(
            operator.matmul, scipy_sparse.csr_matrix((values, columns, begins), (ROWS, ROWS)), dense
        )
    return Case(f"CSR of {ROWS:,} rows of {EACH} by {WIDTH} columns", calls, {"torch": 0.8, "scipy": 0.8})


def coo(lib: str, rng: np.random.Generator, size: int, count: int) -> Any:
    library = LIBRARIES[lib]
    indices, values = rng.integers(0, size, (2, count)), rng.random(count, np.float32)
    return library.sparse_coo_tensor(library.from_numpy(indices), library.from_numpy(values), (size, size))


def by_vector(rng: np.random.Generator, merged: bool) -> dict[str, Callable[[], object]]:
    calls: dict[str, Callable[[], object]] = {}
    vector = rng.random(ROWS, np.float32)
    for lib, library in LIBRARIES.items():
        matrix = coo(lib, rng, ROWS, 1_000_000)
        matrix = matrix.coalesce() if merged else matrix
        calls[lib] = partial(operator.matmul, matrix, library.from_numpy(vector))
    return calls


def embedding_step(library: Any, optimizer: str, index: Any) -> Callable[[], object]:
    table, places = library.nn.Embedding(10**6, 64, sparse=True), library.from_numpy(index)
    return training_step(
        table, getattr(library.optim, optimizer)(table.parameters(), lr=1e-3), lambda t: t(places).square().sum()
    )
