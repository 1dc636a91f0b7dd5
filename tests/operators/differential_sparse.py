"""Random calls of the operators that take sparse tensors, on tensorpy and on PyTorch; as differential.py, a program.

    python differential_sparse.py [--seed=N] [--calls=N | --seconds=N] [--repeat=SEED:CALL] [NAME...]

A call begins as a sample of the table. Some elements of its tensors become zeros, and some of the tensors, the first
most of all, tensors of a layout: coordinates with dense dimensions, in disorder and more than once, or lines, or
blocks. Where PyTorch takes it, tensorpy takes it too and gives the same layout, dtype, shape and elements; where both
refuse, the class of the error is the same. What PyTorch refuses may be computed here, in which case test_table.py's
check `sparse` compares it with what dense tensors give.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from differential import (
    DTYPES,
    SECONDS,
    TOLERANCE,
    differ,
    drawings,
    function_in,
    is_compared,
    names_of,
    same_class,
    tensors_of,
)

import tensorpy as tp
from codegen.layouts import said
from tensorpy.testing.samples import TABLE, Array, OpInfo
from tensorpy.testing.samples.table import Dtype, Plain

# Where PyTorch's result is not what its documentation says, or depends on what memory held.
ASTRAY = {
    "empty_like": "not set",
    "new_empty": "not set",
}


def takes_layouts(info: OpInfo) -> bool:
    return said(info.op) is not None and info.base not in ASTRAY and is_compared(info)


@dataclass(frozen=True)
class Sparse:
    """A tensor of a layout: PyTorch's, and how tensorpy's is made of its parts."""

    made: torch.Tensor

    def in_tensorpy(self) -> Any:
        t, size = self.made, tuple(self.made.shape)
        if t.is_sparse:
            parts = (taken(part) for part in (t._indices(), t._values()))
            return tp.sparse_coo_tensor(*parts, size, is_coalesced=t.is_coalesced())
        rows = t.layout in (torch.sparse_csr, torch.sparse_bsr)
        lines = (t.crow_indices(), t.col_indices()) if rows else (t.ccol_indices(), t.row_indices())
        layout = getattr(tp, str(t.layout).rpartition(".")[2])
        return tp.sparse_compressed_tensor(*(taken(part) for part in (*lines, t.values())), size, layout=layout)

    def __str__(self) -> str:
        return str(self.made).replace("\n", "")


def taken(t: torch.Tensor) -> Any:
    if t.dtype == torch.bfloat16:
        return tp.from_numpy(t.float().numpy().copy()).to(tp.bfloat16)
    return tp.from_numpy(t.contiguous().numpy().copy()).reshape(tuple(t.shape))


def is_right(call: Any) -> bool:
    """PyTorch repeats only one of the dimensions of a product that is larger than its sparse argument, and of the dense
    ones only one at all. Its triangular_solve makes all of a result nan where a diagonal of a sparse matrix has a zero.
    """
    sparse = next((a.made for a in call.args if isinstance(a, Sparse)), None)
    if sparse is None or call.info.base == "triangular_solve":
        return sparse is None or bool(sparse.to_dense().diagonal(0, -2, -1).ne(0).all())
    if call.info.base != "mul":
        return True
    tensors = [a.made if isinstance(a, Sparse) else a for a in call.args]
    sizes = [tuple(a.shape) for a in tensors if isinstance(a, torch.Tensor)]
    if sparse.dense_dim() == 0:
        return not fits(sizes) or torch.broadcast_shapes(*sizes) == sparse.shape
    return all(size in ((), tuple(sparse.shape)) for size in sizes)


def fits(sizes: list[tuple[int, ...]]) -> bool:
    try:
        torch.broadcast_shapes(*sizes)
    except RuntimeError:
        return False
    return True


@dataclass
class Call:
    info: OpInfo
    args: list[Any]
    kwargs: dict[str, Any]
    coarsest: float

    def __str__(self) -> str:
        given = [str(a) for a in self.args] + [f"{k}={v}" for k, v in self.kwargs.items()]
        return f"{'.'.join(names_of(self.info.op))}({', '.join(given)})".replace("\n", "")


class Drawing:
    """One call from its seed."""

    def __init__(self, seed: str, infos: list[OpInfo]) -> None:
        self.rng = random.Random(seed)
        self.info = self.rng.choice(infos)

    def call(self) -> Call | None:
        dtypes = [d for d in self.info.dtypes if d in DTYPES]
        if not dtypes:
            return None
        dtype = self.rng.choice(dtypes)
        sample = self.rng.choice(self.info.samples(dtype))
        self.layout = self.rng.choice(("coo", "coo", "csr", "csc", "bsr", "bsc"))
        self.first = True
        args, kwargs = sample.map(self.value)
        return Call(self.info, args, kwargs, TOLERANCE.get(dtype, 0.0))

    def value(self, value: Any) -> Any:
        if not isinstance(value, Array):
            return value
        values = np.array(value.values)
        plain = torch.from_numpy(values).to(getattr(torch, value.dtype))
        turned = self.rng.random() < (0.95 if self.first else 0.5)
        self.first = False
        if not turned or plain.numel() == 0 or plain.dim() == 0:
            return plain
        zeros = torch.tensor([self.rng.random() < 0.5 for _ in range(plain.numel())]).reshape(plain.shape)
        return self.of_layout(plain.masked_fill(zeros, 0))

    def of_layout(self, plain: torch.Tensor) -> Any:
        if self.layout == "coo" or plain.dim() < 2:
            made = plain.to_sparse(self.rng.randint(1, plain.dim()) if self.rng.random() < 0.3 else plain.dim())
            return Sparse(self.in_disorder(made) if self.rng.random() < 0.4 else made)
        layout = getattr(torch, f"sparse_{self.layout}")
        blocks = tuple(self.rng.choice([n for n in range(1, size + 1) if size % n == 0]) for size in plain.shape[-2:])
        try:
            return Sparse(plain.to_sparse(layout=layout, blocksize=blocks if self.layout[0] == "b" else None))
        except RuntimeError:  # matrices of a batch that have other numbers of values
            return plain

    def in_disorder(self, t: torch.Tensor) -> torch.Tensor:
        """The same values in another order, and some places twice, the second time with zeros."""
        n = t._nnz()
        order = torch.tensor(
            [*self.rng.sample(range(n), n), *self.rng.choices(range(n), k=min(n, 2))], dtype=torch.int64
        )
        values = t._values()[order].clone()
        values[n:] = 0
        return torch.sparse_coo_tensor(t._indices()[:, order], values, t.shape)


def converted(value: Any, library: Any) -> Any:
    if isinstance(value, Sparse):
        return value.made if library is torch else value.in_tensorpy()
    if isinstance(value, torch.Tensor):
        return value if library is torch else taken(value)
    if isinstance(value, Dtype):
        return getattr(library, value.name)
    if isinstance(value, Plain):
        return library.device("cpu")
    if isinstance(value, (list, tuple)):
        return type(value)(converted(v, library) for v in value)
    return value


def outcome(call: Call, library: Any) -> list[Any] | Exception:
    args = [converted(a, library) for a in call.args]
    kwargs = {k: converted(v, library) for k, v in call.kwargs.items()}
    try:
        return tensors_of(function_in(library, call.info.op)(*args, **kwargs))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError, MemoryError) as error:
        return error


def is_sound(t: Any) -> bool:
    """Whether a result of PyTorch's has as many values as its lines say; what is written into columns may have not."""
    if not isinstance(t, torch.Tensor) or layout_of(t) in ("strided", "sparse_coo"):
        return True
    borders = t.crow_indices() if layout_of(t) in ("sparse_csr", "sparse_bsr") else t.ccol_indices()
    return bool((borders[..., -1] == t._nnz()).all())


def layout_of(t: Any) -> str:
    return str(t.layout).rpartition(".")[2]


def problem_of(call: Call) -> str | None:
    """What differs, or None."""
    expected, got = outcome(call, torch), outcome(call, tp)
    if isinstance(expected, Exception):
        if (
            isinstance(got, Exception)
            and not same_class(got, expected)
            and not isinstance(expected, NotImplementedError)
        ):
            return f"{type(got).__name__} ({got}), expected {type(expected).__name__} ({str(expected)[:200]})"
        return None
    if not all(is_sound(e) for e in expected):
        return None
    if isinstance(got, Exception):
        return f"refused: {type(got).__name__}: {got}"
    if len(got) != len(expected):
        return f"{len(got)} results, expected {len(expected)}"
    for g, e in zip(got, expected, strict=True):
        if isinstance(e, torch.Tensor):
            if layout_of(g) != layout_of(e):
                return f"{g.layout}, expected {e.layout}"
            g, e = (t if layout_of(t) == "strided" else t.to_dense() for t in (g, e))
        if problem := differ(g, e, False, 1.0, call.coarsest):
            return problem
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--repeat", default="", metavar="SEED:CALL")
    parser.add_argument("--journal", default="", help="a file that holds the call at hand")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    infos = [i for n, i in sorted(TABLE.items()) if takes_layouts(i) and (not options.names or i.base in options.names)]
    found = compared = 0
    for seed in drawings(options):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        call = Drawing(seed, infos).call()
        if call is None or not is_right(call):
            continue
        if options.journal:
            Path(options.journal).write_text(f"--repeat={seed}")
        if options.repeat:
            print(call, flush=True)
        compared += 1
        if problem := problem_of(call):
            found += 1
            print(f"--repeat={seed} {problem}\n    {str(call)[:900]}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{compared} sparse calls of {len(infos)} operators, {found} differ; seed {options.seed}")
    return 3 if found else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main())
