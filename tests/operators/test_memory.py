"""What a call may allocate: a pointwise operator its output and nothing else of that size, out= and in-place nothing,
backward no more than it has not yet freed, a training loop nothing that stays; and what happens where there is little.
"""

from __future__ import annotations

import gc
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from programs import run

import tensorpy as tp
from tensorpy.nn import functional as F

SIDE = 512
SMALL = 64 << 10  # what a call may take besides


def peak_of(action: Callable[[], Any]) -> int:
    """Bytes of large blocks that were live at once, beyond those before. The result is kept until the end."""
    action()
    gc.collect()
    tp._C._reset_peak_memory()
    before = tp._C._memory_stats()["peak_bytes"]
    result = action()
    peak = tp._C._memory_stats()["peak_bytes"] - before
    del result
    return peak


def grid(dtype: tp.dtype = tp.float32) -> tp.Tensor:
    return tp.ones(SIDE, SIDE, dtype=dtype)


NEW = {
    "contiguous": (lambda: (grid(), grid()), 4),
    "broadcast row": (lambda: (grid(), tp.ones(SIDE)), 4),
    "broadcast both": (lambda: (tp.ones(SIDE, 1), tp.ones(1, SIDE)), 4),
    "transposed": (lambda: (grid().t(), grid()), 4),
    "both transposed": (lambda: (grid().t(), grid().t()), 4),
    "strided": (lambda: (tp.ones(SIDE, 2 * SIDE)[:, ::2], grid()), 4),
    "promoted to float64": (lambda: (grid(), grid(tp.float64)), 8),
    "promoted from int64": (lambda: (grid(tp.int64), grid()), 4),
    "bfloat16 and float32": (lambda: (grid(tp.bfloat16), grid()), 4),
    "bfloat16": (lambda: (grid(tp.bfloat16), grid(tp.bfloat16)), 2),
    "number": (lambda: (grid(), 2.5), 4),
    "complex": (lambda: (grid(tp.complex64), grid()), 8),
}


ARITHMETIC = ("add", "mul", "pow")
OF_REAL_TENSORS = ("maximum", "atan2")
CASES = [
    (op, n) for op in ARITHMETIC + OF_REAL_TENSORS for n in NEW if op in ARITHMETIC or n not in ("number", "complex")
]


@pytest.mark.parametrize(("op", "name"), CASES)
def test_new_output(op: str, name: str) -> None:
    make, itemsize = NEW[name]
    a, b = make()
    function = getattr(tp, op)
    function(a, b)  # caches
    output = itemsize * SIDE * SIDE
    assert output <= peak_of(lambda: function(a, b)) <= output + SMALL


@pytest.mark.parametrize("op", ["exp", "neg", "sigmoid", "relu", "isnan", "abs", "round", "logical_not"])
@pytest.mark.parametrize("strided", [False, True])
def test_new_output_of_one(op: str, strided: bool) -> None:
    a = tp.ones(SIDE, 2 * SIDE)[:, ::2] if strided else grid()
    function = getattr(tp, op)
    result = function(a)
    assert peak_of(lambda: function(a)) <= result.numel() * result.element_size() + SMALL


@pytest.mark.parametrize("name", NEW)
def test_out_and_inplace(name: str) -> None:
    make, _ = NEW[name]
    a, b = make()
    out = tp.add(a, b)
    assert peak_of(lambda: tp.add(a, b, out=out)) <= SMALL
    if a.shape == out.shape and a.dtype == out.dtype:
        assert peak_of(lambda: a.add_(b)) <= SMALL
    assert peak_of(lambda: out.mul_(2)) <= SMALL


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "argmax", "var", "any", "prod", "logsumexp"])
def test_full_reductions(op: str) -> None:
    a = grid()
    assert peak_of(lambda: getattr(tp, op)(a, 1)) <= (2 * SIDE * SIDE if op == "logsumexp" else 0) * 4 + SMALL


def lots(*shape: int, dtype: tp.dtype = tp.bfloat16, step: int = 37) -> tp.Tensor:
    """As many elements as several pieces have, the same for all dtypes."""
    return (tp.arange(tp.Size(shape).numel()) * step % 251).reshape(shape).to(dtype) / 251


# Rows that are independent of each other: what is computed in float32 is widened for a piece of them at a time.
IN_PIECES: dict[str, tuple[tuple[int, ...], Callable[[tp.Tensor], Any]]] = {
    "softmax": ((16, 64, 1024), lambda x: x.softmax(-1)),
    "softmax of columns": ((4, 300, 1024), lambda x: x.softmax(1)),
    "log_softmax of the first": ((64, 32, 512), lambda x: x.log_softmax(0)),
    "cumsum": ((1024, 1024), lambda x: x.cumsum(1)),
    "cumprod of columns": ((1024, 1024), lambda x: x.cumprod(0)),
    "logcumsumexp": ((3, 1, 400, 1024), lambda x: x.logcumsumexp(-1)),
    "cummax": ((1024, 1024), lambda x: x.cummax(0)),
    "layer_norm": ((8, 128, 1024), lambda x: F.layer_norm(x, (1024,), x[0, 0], x[0, 1])),
    "layer_norm of two": ((1024, 32, 32), lambda x: F.layer_norm(x, (32, 32))),
    "rms_norm": ((8, 128, 1024), lambda x: F.rms_norm(x, (1024,), x[0, 0])),
    "nll_loss": ((1024, 1024), lambda x: F.nll_loss(x, tp.arange(1024), reduction="none")),
    "cross_entropy": ((1024, 1024), lambda x: F.cross_entropy(x, tp.arange(1024), reduction="none")),
    "matmul": ((4096, 256), lambda x: x @ x[:256]),
    "a batch": ((64, 128, 128), lambda x: x @ x.mT),
    "mv": ((1024, 1024), lambda x: x @ x[0]),
    "addmm": ((4096, 256), lambda x: tp.addmm(x, x, x[:256])),
    "max_pool2d": ((16, 16, 64, 64), lambda x: F.max_pool2d(x, 2, return_indices=True)),
    "avg_pool2d": ((16, 64, 32, 32), lambda x: F.avg_pool2d(x, 3, 1, 1)),
    "adaptive": ((1, 256, 64, 64), lambda x: F.adaptive_avg_pool2d(x, 8)),
    "max_pool3d": ((4, 16, 16, 32, 32), lambda x: F.max_pool3d(x, 2)),
}


def rows_apart(result: Any) -> tp.Tensor:
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", IN_PIECES)
@pytest.mark.parametrize("dtype", [tp.bfloat16, tp.float16])
def test_pieces(name: str, dtype: tp.dtype) -> None:
    """Results and gradients are those of float32, whatever the pieces."""
    shape, call = IN_PIECES[name]
    x = lots(*shape, dtype=dtype).requires_grad_()
    wide = x.detach().float().requires_grad_()
    result, wanted = rows_apart(call(x)), rows_apart(call(wide))
    tp.testing.assert_close(result.float(), wanted, rtol=0.02, atol=0.02)
    slope = lots(*result.shape, dtype=dtype, step=101)
    result.backward(slope)
    wanted.backward(slope.float())
    scale = float(wide.grad.abs().max())
    tp.testing.assert_close(x.grad.float() / scale, wide.grad / scale, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("name", IN_PIECES)
def test_pieces_take_little(name: str) -> None:
    shape, call = IN_PIECES[name]
    x = lots(*shape)
    result = call(x)
    own = sum(t.nbytes for t in (result if isinstance(result, tuple) else (result,)))
    own += x.nbytes if name == "cross_entropy" else 0  # the logarithms
    del result
    piece = 4 * 2**18
    assert peak_of(lambda: call(x)) <= own + 4.2 * piece + SMALL


def test_views_allocate_nothing() -> None:
    a = grid()
    for view in (lambda: a[1:, ::2], lambda: a.t(), lambda: a.reshape(-1), lambda: a.expand(8, SIDE, SIDE)):
        assert peak_of(view) == 0


# ---- autograd ----


def test_backward_frees_as_it_goes() -> None:
    """N nodes keep N saved tensors; while backward runs, each is freed after use, so the peak is that of forward plus
    the few gradients under way.
    """
    size, nodes = 4 * SIDE * SIDE, 20
    x = grid().requires_grad_()

    def forward() -> tp.Tensor:
        y = x
        for _ in range(nodes):
            y = y.exp()
        return y.sum()

    forward().backward()
    x.grad = None
    tp._C._reset_peak_memory()
    start = tp._C._memory_stats()["peak_bytes"]
    loss = forward()
    held = tp._C._memory_stats()["peak_bytes"] - start
    assert nodes * size <= held <= (nodes + 1) * size + SMALL
    seen: list[int] = []
    node = loss.grad_fn
    while node is not None:
        if "Exp" in type(node).__name__ or "Exp" in node.name():
            node.register_hook(lambda *_: seen.append(tp._C._memory_stats()["live_bytes"]))
        node = node.next_functions[0][0] if node.next_functions else None
    loss.backward()
    peak = tp._C._memory_stats()["peak_bytes"] - start
    assert peak <= held + 3 * size + SMALL
    assert len(seen) == nodes
    falls = [a - b for a, b in pairwise(seen)]
    assert sum(f >= size // 2 for f in falls) >= nodes - 3, falls
    del loss, node
    assert tp._C._memory_stats()["live_bytes"] - start <= 2 * size + (1 << 20)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_training_does_not_grow() -> None:
    tp.manual_seed(0)
    w1, b1 = tp.randn(16, 8).requires_grad_(), tp.zeros(16).requires_grad_()
    w2 = tp.randn(3, 16).requires_grad_()
    momenta = [tp.zeros_like(p) for p in (w1, b1, w2)]
    x, y = tp.randn(32, 8), tp.randint(0, 3, (32,))

    def step() -> None:
        rows = tp.randperm(32)[:16]
        hidden = tp.nn.functional.relu(tp.nn.functional.linear(x[rows], w1, b1))
        loss = tp.nn.functional.cross_entropy(tp.nn.functional.linear(hidden, w2), y[rows])
        loss.backward()
        with tp.no_grad():
            for p, m in zip((w1, b1, w2), momenta, strict=True):
                m.mul_(0.9).add_(p.grad)
                p.add_(m, alpha=-0.01)
                p.grad = None

    for _ in range(1000):
        step()
    gc.collect()
    before, resident = tp._C._memory_stats(), resident_bytes() if Path("/proc/self/statm").exists() else 0
    for _ in range(10_000):
        step()
    after = tp._C._memory_stats()
    assert (after["live_blocks"], after["live_bytes"]) == (before["live_blocks"], before["live_bytes"])
    if resident:
        assert resident_bytes() - resident < 2 << 20


# ---- little memory ----

LIMIT = """
import resource
def leave(megabytes):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)
"""


def test_no_room_for_threads():
    """libgomp would end the process; one thread computes."""
    run(
        LIMIT
        + textwrap.dedent("""
        tp.set_num_threads(1)
        x = tp.ones(1 << 19)
        tp.set_num_threads(16)
        leave(16)
        assert (x + 1).sum().item() == 1 << 20
    """)
    )


@pytest.mark.parametrize("megabytes", [8, 48, 64])
def test_no_room_for_blas(megabytes):
    """OpenBLAS would end the process when it is opened, or at its first product."""
    out = run(
        LIMIT
        + textwrap.dedent(f"""
        a = tp.ones(64, 64)
        leave({megabytes})
        try: a @ a
        except MemoryError as e: print(e)
    """)
    )
    assert "BLAS" in out


def test_no_room_for_another_threads_product():
    run(
        LIMIT
        + textwrap.dedent("""
        a = tp.ones(64, 64)
        a @ a
        def product():
            leave(16)
            try: a @ a
            except MemoryError as e: said.append(str(e))
        said = []
        t = threading.Thread(target=product); t.start(); t.join()
        assert "matrix product" in said[0], said
    """)
    )


@pytest.mark.parametrize(
    ("shapes", "call"),
    [
        ([(1, 1, 2**40)], lambda x: F.interpolate(x, scale_factor=2)),
        ([(1, 1, 2**40)], lambda x: F.interpolate(x, scale_factor=2, mode="linear")),
        ([(1, 1, 2**20, 2**20)], lambda x: F.interpolate(x, scale_factor=2, mode="bicubic")),
        ([(1, 1, 2**20, 2**20)], lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)),
        ([(1, 1, 2**40)], lambda x: F.pad(x, (2**39, 3), mode="reflect")),
        ([(1, 1, 2**40)], lambda x: F.pad(x, (2**39, 3), mode="circular")),
        ([(2**25,)], lambda x: tp.combinations(x, 2)),
        ([(1, 2**40), (400,)], lambda x, w: tp.stft(x, 400, window=w, return_complex=True)),
    ],
)
def test_meta_makes_no_table_as_large_as_its_sizes(shapes: Any, call: Callable[..., tp.Tensor]) -> None:
    """No host has room for one: what an operator reads at each place is not asked for where nothing is read."""
    inputs = [tp.empty(shape, device="meta", requires_grad=True) for shape in shapes]
    made = call(*inputs)
    assert made.is_meta and made.numel() > 2**32
    (grad,) = tp.autograd.grad(made, inputs[:1], tp.empty_like(made))
    assert grad.is_meta and grad.shape == inputs[0].shape
