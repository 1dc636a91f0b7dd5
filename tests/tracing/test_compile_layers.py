"""Compiled functions and what stands above the kernels: hooks, autocast, vmap, forward mode, subclasses, modes,
operators from outside, switches. In the function or around the call, in each mode: what the function itself gives.

Devices from outside run the checks of tensorpy.testing, "compiled" among them (tests/outside/).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wrapped import Recorder, Wrapped, unwrapped

import tensorpy as tp
from tensorpy import nn
from tensorpy.autograd import forward_ad
from tensorpy.fx.experimental.proxy_tensor import make_fx
from tensorpy.testing.checks import bits
from tensorpy.utils.checkpoint import checkpoint

Function = Callable[..., Any]
HOW: dict[str, dict[str, Any]] = {
    "followed": {"options": {"smallest": 0}},
    "one by one": {"backend": "aot_eager", "options": {"smallest": 0}},
    "replayed": {"mode": "reduce-overhead"},
    "graphs": {"backend": lambda graph, inputs: graph.forward},
}
CALLS = 14  # the fourth is replayed, the eighth is an audit


def chain(x: tp.Tensor) -> tp.Tensor:
    return ((x * 2 + 1).sigmoid() * x).softmax(-1)


def shown(value: Any) -> Any:
    if isinstance(value, Wrapped):
        return "wrapped", shown(value.inner)
    if isinstance(value, tp.Tensor):
        known = value.dtype, tuple(value.shape), str(value.device), value.requires_grad
        return *known, bits(value.detach().to("cpu")) if value.layout == tp.strided else value.to_dense().tolist()
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    return value


# ---- inside of the function ----


def hooks(x: tp.Tensor) -> Any:
    seen: list[tp.Tensor] = []
    leaf = x.detach().clone().requires_grad_()
    y = chain(leaf)
    y.register_hook(lambda grad: grad * 2)
    y.register_hook(lambda grad: seen.append(grad.sum()))
    y.square().sum().backward()
    return leaf.grad, seen[0]


def saved_hooks(x: tp.Tensor) -> Any:
    leaf = x.detach().clone().requires_grad_()
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
        y = chain(leaf)
    return tp.autograd.grad(y.square().sum(), leaf)


def casts(x: tp.Tensor) -> Any:
    with tp.autocast("cpu", dtype=tp.bfloat16):
        y = chain(x @ x.mT)
        with tp.autocast("cpu", enabled=False):
            z = y.float() @ x
    return y, z


def mapped(x: tp.Tensor) -> Any:
    return tp.vmap(chain)(x), tp.vmap(tp.func.grad(lambda r: chain(r).square().sum()))(x), tp.func.jacrev(chain)(x[0])


def forward_mode(x: tp.Tensor) -> Any:
    with forward_ad.dual_level():
        dual = chain(forward_ad.make_dual(x, tp.ones_like(x)))
        parts = forward_ad.unpack_dual(dual)
    return parts.primal, parts.tangent, tp.func.jvp(chain, (x,), (x,))


def subclass(x: tp.Tensor) -> Any:
    y = chain(Wrapped(x))  # type: ignore[no-untyped-call]
    return y, unwrapped(y) + 1


def mode(x: tp.Tensor) -> Any:
    with Recorder() as recorder:
        y = chain(x)
    return y + 1, recorder.names


def function_mode(x: tp.Tensor) -> Any:
    class Doubling(tp.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result + result if func is tp.Tensor.sigmoid else result

    with Doubling():
        return chain(x)


def checkpointed(x: tp.Tensor) -> Any:
    leaf = x.detach().clone().requires_grad_()
    return tp.autograd.grad(checkpoint(chain, leaf, use_reentrant=False).square().sum(), leaf)


class Twice(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:  # type: ignore[override]
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:  # type: ignore[override]
        return grad * 2 + ctx.saved_tensors[0] * 0


def own_function(x: tp.Tensor) -> Any:
    leaf = x.detach().clone().requires_grad_()
    return tp.autograd.grad(chain(Twice.apply(chain(leaf))).square().sum(), leaf)


def sparse(x: tp.Tensor) -> Any:
    return (chain(x).to_sparse() * 2).to_dense() + 1


def meta(x: tp.Tensor) -> Any:
    return chain(x.to("meta")).shape, chain(x)


@tp.library.custom_op("test_compile_layers::shifted", mutates_args=())
def shifted(x: tp.Tensor) -> tp.Tensor:
    return tp.from_numpy(x.detach().numpy() + 1)


@tp.library.custom_op("test_compile_layers::shift", mutates_args=("x",))
def shift(x: tp.Tensor) -> None:
    x.detach().numpy()[:] += 1


shifted.register_autograd(lambda ctx, grad: grad * 3)


def operators_from_outside(x: tp.Tensor) -> Any:
    leaf = x.detach().clone().requires_grad_()
    y = chain(shifted(chain(leaf)))
    made = x + 1
    shift(made)
    return y, chain(made), tp.autograd.grad(y.square().sum(), leaf)


INSIDE = [
    hooks, saved_hooks, casts, mapped, forward_mode, subclass, mode, function_mode, checkpointed, own_function, sparse,
    meta, operators_from_outside,
]  # fmt: skip


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("function", INSIDE)
def test_inside(function: Function, how: str) -> None:
    fast = tp.compile(function, **HOW[how])
    for call in range(CALLS):
        x = tp.randn(40, 24, generator=tp.Generator().manual_seed(call))
        assert shown(fast(x)) == shown(function(x)), call


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("bad", ["index", "shape", "own"])
def test_errors_that_the_function_catches(bad: str, how: str) -> None:
    """What it does then depends on values: other arguments do not fail."""

    def function(x: tp.Tensor, index: tp.Tensor) -> tp.Tensor:
        y = x * 2
        try:
            if bad == "index":
                z = y.index_select(0, index)
            elif bad == "shape":
                z = y + y[:, : int(index[0]) + 1]
            else:
                z = tp.linalg.cholesky(y[:2, :2] * 0 + tp.eye(2) * (3.0 - index[0]))
            y = y + z.sum()
        except RuntimeError:
            y = y - 1
        except IndexError:
            y = y - 2
        return y

    fast = tp.compile(function, **HOW[how])
    for call in range(3 * CALLS):
        x = tp.full((4, 6), float(call))
        index = tp.tensor([9 if call // 5 % 2 == 0 else 1])
        assert shown(fast(x, index)) == shown(function(x, index)), call


# ---- around the call ----


@contextlib.contextmanager
def default_dtype() -> Iterator[None]:
    tp.set_default_dtype(tp.float64)
    yield
    tp.set_default_dtype(tp.float32)


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    tp.use_deterministic_algorithms(True)
    yield
    tp.use_deterministic_algorithms(False)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    before = tp.get_num_threads()
    tp.set_num_threads(1)
    yield
    tp.set_num_threads(before)


@contextlib.contextmanager
def packed() -> Iterator[None]:
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
        yield


AROUND: dict[str, Callable[[], Any]] = {
    "autocast": lambda: tp.autocast("cpu", dtype=tp.bfloat16),
    "no_grad": tp.no_grad,
    "inference_mode": tp.inference_mode,
    "anomaly": tp.autograd.detect_anomaly,
    "default dtype": default_dtype,
    "deterministic": deterministic,
    "one thread": one_thread,
    "device": lambda: tp.device("meta"),
    "saved hooks": packed,
    "a mode": Recorder,
    "exact attention": lambda: nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH),
}


def put(x: tp.Tensor) -> Any:
    """Which of two values stays is open: an error where that is asked for."""
    try:
        return x.clone().put_(tp.arange(3), x.flatten()[:3])
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("how", HOW)
def test_determinism(how: str) -> None:
    """The mode without the filling of memory, which makes tensors otherwise."""
    fast = tp.compile(put, **HOW[how])
    tp.utils.deterministic.fill_uninitialized_memory = False
    try:
        for call in range(3 * CALLS):
            tp.use_deterministic_algorithms(bool(call // 5 % 2))
            x = tp.full((3, 3), float(call))
            assert shown(fast(x)) == shown(put(x)), call
    finally:
        tp.use_deterministic_algorithms(False)
        tp.utils.deterministic.fill_uninitialized_memory = True


def layers(x: tp.Tensor, w: tp.Tensor) -> Any:
    y = chain(x @ w + tp.zeros_like(x[0, 0]))
    heads = y.reshape(1, 2, -1, 12)
    made = nn.functional.scaled_dot_product_attention(heads, heads, heads)
    return y, made, w.square().sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", AROUND)
def test_around(name: str, how: str) -> None:
    """The setting comes when calls are replayed, goes, and comes again."""
    fast = tp.compile(layers, **HOW[how])
    w = tp.randn(24, 24, generator=tp.Generator().manual_seed(1)).requires_grad_()
    for call in range(3 * CALLS):
        x = tp.randn(40, 24, generator=tp.Generator().manual_seed(call))
        with AROUND[name]() if call // 5 % 2 else contextlib.nullcontext():
            assert shown(fast(x, w)) == shown(layers(x, w)), call


TRANSFORMED: dict[str, Callable[[Function, tp.Tensor], Any]] = {
    "vmap": lambda f, x: tp.vmap(f)(x),
    "grad": lambda f, x: tp.func.grad(lambda x: f(x).square().sum())(x),
    "jvp": lambda f, x: tp.func.jvp(f, (x,), (x,)),
    "vmap of jvp": lambda f, x: tp.vmap(lambda r: tp.func.jvp(f, (r,), (r,))[1])(x),
    "a wrapper": lambda f, x: f(Wrapped(x)),
    "a functional call": lambda f, x: tp.func.functionalize(f)(x),
    "make_fx": lambda f, x: make_fx(f)(x)(x),
    "float64": lambda f, x: f(x.double()),
    "a checkpoint": lambda f, x: tp.autograd.grad(
        checkpoint(f, y := x.clone().requires_grad_(), use_reentrant=False).square().sum(), y
    ),
    "meta": lambda f, x: f(x.to("meta")).shape,
    "sparse": lambda f, x: tp.autograd.grad(f(y := x.clone().requires_grad_()).square().sum(), y, create_graph=True),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed(name: str, how: str) -> None:
    """A compiled function is called with what a transform gives it, and with plain tensors between."""
    fast, transform = tp.compile(chain, **HOW[how]), TRANSFORMED[name]
    for call in range(3 * CALLS):
        x = tp.randn(40, 24, generator=tp.Generator().manual_seed(call))
        if call // 5 % 2:
            assert shown(transform(fast, x)) == shown(transform(chain, x)), call
        else:
            assert shown(fast(x)) == shown(chain(x)), call
