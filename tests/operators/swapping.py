"""Calls operators on a tensor that another thread makes another one all the time: set_, .data = and resize_.

`python swapping.py [PART/PARTS] [NAME...]`. Each operator of the table that takes one tensor gets one that is
large enough for its loops to give the host lock up. What it returns or raises is its own matter, as long as the process
lives: the last line that is printed names the operator at hand.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import tensorpy as tp
from tensorpy.testing.harness import function_of
from tensorpy.testing.samples import TABLE, OpInfo

SECONDS = {True: 0.4, False: 0.06}  # of one operator: named below, of the table
WIDE = (400, 500)  # large enough for loops without the host lock
WIDER = (400, 1000)  # and for several pieces


def on_one(info: OpInfo) -> Callable[[tp.Tensor], Any] | None:
    """The operator as a function of one tensor, or None."""
    required = [a for a in info.op.schema.arguments if a.default is None]
    tensors = [a for a in required if str(a.type) == "Tensor"]
    fixed: dict[str, Any] = {"int": 1, "SymInt": 1, "float": 0.5, "Scalar": 1, "bool": False}
    if info.op.kind != "functional" or not tensors or len(tensors) > 2:
        return None
    if any(str(a.type) not in ("Tensor", "Tensor[]", "int[]", *fixed) for a in required):
        return None
    function = function_of(info)

    def call(x: tp.Tensor) -> Any:
        index = [a.name in ("index", "indices") for a in required]
        values: list[Any] = []
        for a, is_index in zip(required, index, strict=True):
            kind = str(a.type)
            if kind == "Tensor":
                values.append(INDEX if is_index else x)
            elif kind == "Tensor[]":
                values.append([x, x, x])
            elif kind == "int[]":
                values.append([1])
            else:
                values.append(fixed[kind])
        return function(*values)

    return call


INDEX = tp.arange(400)[:, None].expand(WIDE).contiguous()
NAMED: dict[str, Callable[[tp.Tensor], Any]] = {
    "cat": lambda x: tp.cat([x, x, x]),
    "cat of columns": lambda x: tp.cat([x, x, x], 1),
    "stack": lambda x: tp.stack([x, x]),
    "sort": lambda x: x.sort(),
    "sort of columns": lambda x: x.sort(0, descending=True),
    "argsort": lambda x: x.argsort(),
    "topk": lambda x: x.topk(5),
    "topk of columns": lambda x: x.topk(100, 0),
    "kthvalue": lambda x: x.kthvalue(7),
    "kthvalue of columns": lambda x: x.kthvalue(7, 0),
    "mode": lambda x: x.mode(),
    "median": lambda x: x.median(),
    "median of rows": lambda x: x.median(1),
    "nanmedian": lambda x: x.nanmedian(0),
    "quantile": lambda x: x.quantile(0.5, 1),
    "unique": lambda x: x.unique(return_inverse=True),
    "unique of rows": lambda x: x.unique(dim=0),
    "isin": lambda x: tp.isin(x, x),
    "searchsorted": lambda x: tp.searchsorted(x, x),
    "gather": lambda x: x.gather(0, INDEX),
    "index_select": lambda x: x.index_select(0, INDEX[0]),
    "take": lambda x: x.take(INDEX),
    "index": lambda x: x[INDEX[0], INDEX[1]],
    "mask": lambda x: x[x > 0],
    "matmul": lambda x: x @ x.t(),
    "where": lambda x: tp.where(x > 0, x, x),
    "scatter": lambda x: tp.zeros(WIDE).scatter(0, INDEX, x),
    "index_add": lambda x: tp.zeros(WIDE).index_add(0, INDEX[0], x),
    "softmax": lambda x: x.softmax(1),
    "layer_norm": lambda x: tp.nn.functional.layer_norm(x, x.shape[1:]),
    "conv1d": lambda x: tp.nn.functional.conv1d(x[None], tp.ones(4, 400, 3)),
    "cdist": lambda x: tp.cdist(x[:50], x[:50]),
    "cumsum": lambda x: x.cumsum(0),
    "svd": lambda x: tp.linalg.qr(x),
}


# Calls of 16-bit floats that are cut into pieces, on as many elements as several pieces have.
HALF: dict[str, Callable[[tp.Tensor], Any]] = {
    "softmax in pieces": lambda x: x.softmax(1),
    "log_softmax in pieces": lambda x: x.log_softmax(0),
    "cumsum in pieces": lambda x: x.cumsum(1),
    "cummax in pieces": lambda x: x.cummax(0),
    "layer_norm in pieces": lambda x: tp.nn.functional.layer_norm(x, x.shape[1:]),
    "rms_norm in pieces": lambda x: tp.nn.functional.rms_norm(x, x.shape[1:], x[0]),
    "matmul in pieces": lambda x: x @ x[:, :50],
    "a batch in pieces": lambda x: tp.bmm(x.view(40, 10, -1), x.view(40, 10, -1).mT),
    "max_pool1d in pieces": lambda x: tp.nn.functional.max_pool1d(x[None], 3),
    "avg_pool1d in pieces": lambda x: tp.nn.functional.avg_pool1d(x[None], 3),
    "nll_loss": lambda x: tp.nn.functional.nll_loss(x, INDEX[:, 0]),
    "softmax into it": lambda x: tp.softmax(tp.ones(WIDER, dtype=tp.bfloat16), 1, out=x),
    "matmul into it": lambda x: tp.mm(tp.ones(400, 8, dtype=tp.bfloat16), tp.ones(8, 1000, dtype=tp.bfloat16), out=x),
}


def swap_all_the_time(x: tp.Tensor, done: threading.Event) -> None:
    size = x.shape
    whole = tp.rand(size).to(x.dtype)
    others = (whole[:3, :2], whole, whole[0, :7], whole.t(), whole.view(-1), whole[:0, 0], whole[::2], whole)
    while not done.is_set():
        for other in others:
            x.set_(whole)
            time.sleep(2e-4)
            x.set_(other)
            time.sleep(2e-4)
            x.data = other
        x.set_(tp.rand(size).to(x.dtype))
        x.resize_(4, 5)
        time.sleep(1e-4)
        x.resize_(size)


def main() -> int:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    tp.set_num_threads(2)
    sys.setswitchinterval(1e-5)
    part, _, parts = next((a for a in sys.argv[1:] if "/" in a), "0/1").partition("/")
    calls = NAMED | HALF | {name: call for name, info in TABLE.items() if (call := on_one(info))}
    named = [a for a in sys.argv[1:] if "/" not in a] or sorted(calls)[int(part) :: int(parts)]
    done, given = threading.Event(), {False: tp.rand(WIDE), True: tp.rand(WIDER).bfloat16()}
    swappers = [threading.Thread(target=swap_all_the_time, args=(x, done)) for x in given.values()]
    for swapper in swappers:
        swapper.start()
    for name in named:
        print(name, flush=True)
        end = time.monotonic() + SECONDS[name in NAMED or name in HALF]
        while time.monotonic() < end:
            try:
                calls[name](given[name in HALF])
            except (RuntimeError, IndexError, ValueError, TypeError, MemoryError):
                pass
    assert all(swapper.is_alive() for swapper in swappers)
    done.set()
    for swapper in swappers:
        swapper.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
