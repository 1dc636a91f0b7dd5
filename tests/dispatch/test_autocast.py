"""Autocast: policies, nesting, threads, the cast cache, gradients."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import tensorpy as tp


def matrices() -> tuple[tp.Tensor, tp.Tensor]:
    return tp.ones(3, 3), tp.ones(3, 3)


def test_lower_precision_inside_only() -> None:
    a, b = matrices()
    with tp.autocast("cpu"):
        assert (a @ b).dtype is tp.bfloat16
        assert (a + b).dtype is tp.float32
    assert (a @ b).dtype is tp.float32


def test_float16_and_disabled_regions() -> None:
    a, b = matrices()
    with tp.autocast("cpu", dtype=tp.float16):
        assert a.mm(b).dtype is tp.float16
        with tp.autocast("cpu", enabled=False):
            assert a.mm(b).dtype is tp.float32
        assert a.mm(b).dtype is tp.float16


def test_the_state_can_be_asked_for_and_set() -> None:
    assert not tp.is_autocast_enabled("cpu") and tp.is_autocast_cache_enabled()
    with tp.autocast("cpu", dtype=tp.float16, cache_enabled=False):
        assert tp.is_autocast_enabled("cpu") and not tp.is_autocast_cache_enabled()
        assert tp.get_autocast_dtype("cpu") == tp.float16
        tp.set_autocast_dtype("cpu", tp.bfloat16)
        assert tp.mm(tp.ones(1, 1), tp.ones(1, 1)).dtype == tp.bfloat16
        tp.set_autocast_enabled("cpu", False)
        assert tp.mm(tp.ones(1, 1), tp.ones(1, 1)).dtype == tp.float32
        tp.set_autocast_cache_enabled(True)
        assert tp.is_autocast_cache_enabled()
    assert not tp.is_autocast_enabled("cpu") and tp.is_autocast_cache_enabled()


def test_float64_and_integers_are_left_alone() -> None:
    with tp.autocast("cpu"):
        assert tp.ones(2, 2, dtype=tp.float64).mm(tp.ones(2, 2, dtype=tp.float64)).dtype is tp.float64
        assert tp.ones(2, 2, dtype=tp.int64).mm(tp.ones(2, 2, dtype=tp.int64)).dtype is tp.int64


def test_gradient_has_the_leafs_dtype() -> None:
    w, x = tp.ones(3, 3, requires_grad=True), tp.ones(3, 3)
    with tp.autocast("cpu"):
        loss = x.mm(w).sum()
    loss.backward()
    assert w.grad.dtype is tp.float32 and w.grad.tolist() == [[3.0] * 3] * 3


def casts(t: tp.dispatch.trace) -> int:
    return sum(e.op == "_to_copy" and e.key == "AutogradCPU" for e in t)


def test_weight_is_cast_once() -> None:
    w, x = tp.ones(3, 3, requires_grad=True), tp.ones(3, 3, dtype=tp.bfloat16)
    with tp.autocast("cpu"), tp.dispatch.trace() as t:
        x.mm(w)
        x.mm(w)
    assert casts(t) == 1
    with tp.autocast("cpu", cache_enabled=False), tp.dispatch.trace() as t:
        x.mm(w)
        x.mm(w)
    assert casts(t) == 2


def test_changed_weight_is_cast_again() -> None:
    w, x = tp.ones(3, 3, requires_grad=True), tp.ones(3, 3, dtype=tp.bfloat16)
    with tp.autocast("cpu"):
        before = x.mm(w).sum().item()
        with tp.no_grad():
            w.mul_(2)
        assert x.mm(w).sum().item() == 2 * before


def test_decorator_and_threads() -> None:
    a, b = matrices()

    @tp.autocast("cpu")
    def product() -> tp.dtype:
        return a.mm(b).dtype

    assert product() is tp.bfloat16
    seen: list[tp.dtype] = []
    with tp.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(a.mm(b).dtype))
        thread.start()
        thread.join()
    assert seen == [tp.float32]


def test_bad_arguments() -> None:
    with pytest.raises(RuntimeError, match="bfloat16, float16 or float32"):
        tp.set_autocast_dtype("cpu", tp.int64)
    with pytest.raises(ValueError, match="device_type"):
        tp.autocast(3)
    with pytest.raises(RuntimeError):
        tp.autocast("nowhere")


# Calls whose result's dtype under autocast is compared with torch's; t is bfloat16, f is float32, w a weight.
CALLS = {
    "mm": lambda m, f, t: m.mm(f, t),
    "bmm": lambda m, f, t: m.bmm(f.reshape(1, 4, 4), t.reshape(1, 4, 4)),
    "matmul": lambda m, f, t: f @ t,
    "addmm": lambda m, f, t: m.addmm(f, t, f),
    "add": lambda m, f, t: f + t,
    "mul": lambda m, f, t: t * t,
    "exp": lambda m, f, t: t.exp(),
    "sum": lambda m, f, t: t.sum(),
    "prod": lambda m, f, t: t.prod(),
    "prod.dim": lambda m, f, t: t.prod(0),
    "trace": lambda m, f, t: t.trace(),
    "linear": lambda m, f, t: m.nn.functional.linear(f, f),
    "conv1d": lambda m, f, t: m.nn.functional.conv1d(f.reshape(1, 4, 4), t.reshape(4, 4, 1)),
    "conv2d": lambda m, f, t: m.nn.functional.conv2d(f.reshape(1, 1, 4, 4), f.reshape(4, 1, 2, 2)),
    "softmax": lambda m, f, t: m.nn.functional.softmax(t, 0),
    "log_softmax": lambda m, f, t: m.nn.functional.log_softmax(t, 0),
    "layer_norm": lambda m, f, t: m.nn.functional.layer_norm(t, (4,)),
    "group_norm": lambda m, f, t: m.nn.functional.group_norm(t.reshape(1, 4, 4), 2),
    "gelu": lambda m, f, t: m.nn.functional.gelu(t),
    "prelu": lambda m, f, t: m.nn.functional.prelu(f, m.ones(1)),
    "mse_loss": lambda m, f, t: m.nn.functional.mse_loss(t, t),
    "l1_loss": lambda m, f, t: m.nn.functional.l1_loss(t, t),
    "smooth_l1_loss": lambda m, f, t: m.nn.functional.smooth_l1_loss(t, t),
    "huber_loss": lambda m, f, t: m.nn.functional.huber_loss(t, t),
    "kl_div": lambda m, f, t: m.nn.functional.kl_div(t, t, reduction="sum"),
    "binary_cross_entropy": lambda m, f, t: m.nn.functional.binary_cross_entropy(t.sigmoid(), t.sigmoid()),
    "bce_with_logits": lambda m, f, t: m.nn.functional.binary_cross_entropy_with_logits(t, t),
    "cross_entropy": lambda m, f, t: m.nn.functional.cross_entropy(t, m.tensor([0, 1, 2, 3])),
    "nll_loss": lambda m, f, t: m.nn.functional.nll_loss(t, m.tensor([0, 1, 2, 3])),
    "poisson_nll_loss": lambda m, f, t: m.nn.functional.poisson_nll_loss(t, t),
    "soft_margin_loss": lambda m, f, t: m.nn.functional.soft_margin_loss(t, t),
    "hinge_embedding_loss": lambda m, f, t: m.nn.functional.hinge_embedding_loss(t, t),
    "triplet_margin_loss": lambda m, f, t: m.nn.functional.triplet_margin_loss(t, t, t),
    "avg_pool2d": lambda m, f, t: m.nn.functional.avg_pool2d(t.reshape(1, 4, 4), 2),
    "avg_pool3d": lambda m, f, t: m.nn.functional.avg_pool3d(t.reshape(1, 1, 4, 4), 1),
    "max_pool2d": lambda m, f, t: m.nn.functional.max_pool2d(t.reshape(1, 4, 4), 2),
    "max_pool3d": lambda m, f, t: m.nn.functional.max_pool3d(t.reshape(1, 1, 4, 4), 1),
    "reflection_pad1d": lambda m, f, t: m.nn.functional.pad(t, [1, 1], "reflect"),
    "replication_pad2d": lambda m, f, t: m.nn.functional.pad(t.reshape(1, 4, 4), [1, 1, 1, 1], "replicate"),
    "constant_pad": lambda m, f, t: m.nn.functional.pad(t, [1, 1]),
    "cat": lambda m, f, t: m.cat([f, t]),
    "stack": lambda m, f, t: m.stack([f, t]),
    "index_copy": lambda m, f, t: t.index_copy(0, m.tensor([0, 1, 2, 3]), f),
    "attention": lambda m, f, t: m.nn.functional.scaled_dot_product_attention(f, f, f),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dtypes_are_torchs(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for module in (tp, torch):
        full = module.linspace(0.1, 1, 16).reshape(4, 4)
        low = full.to(getattr(module, dtype))
        with module.autocast("cpu", dtype=getattr(module, dtype)):
            results.append(str(CALLS[name](module, full, low).dtype).rpartition(".")[2])
    assert results[0] == results[1]


@pytest.mark.parametrize(("key", "backend"), [("AutocastCPU", "CPU"), ("AutocastCUDA", "OpenCL")])
def test_lists_are_complete(key: str, backend: str) -> None:
    """Every operator that torch casts there, and that tensorpy has, has a policy; PyTorch's CUDA stands for devices."""
    torch = pytest.importorskip("torch")
    from tensorpy.testing.samples.table import CATALOG

    theirs = {n.removeprefix("aten::") for n in torch._C._dispatch_get_registrations_for_dispatch_key(key)}
    ours = {str(op.schema.name) for op in CATALOG}
    cast = {str(op.schema.name) for op in CATALOG if op.autocast_on(backend)}
    assert theirs & ours == cast


# PyTorch's documentation of autocast for CUDA, one operator of each of its sections and some that the CPU's lists lack.
ON_A_DEVICE = {
    "exp": (lambda m, t: t.exp(), "float32"),
    "log": (lambda m, t: t.log(), "float32"),
    "pow": (lambda m, t: t**2.0, "float32"),
    "sum": (lambda m, t: t.sum(), "float32"),
    "sum of a dimension": (lambda m, t: t.sum(0), "float32"),
    "sum, asked for a dtype": (lambda m, t: t.sum(dtype=m.float16), "float16"),
    "prod": (lambda m, t: t.prod(), "float32"),
    "softmax": (lambda m, t: m.nn.functional.softmax(t, 0), "float32"),
    "log_softmax": (lambda m, t: t.log_softmax(0), "float32"),
    "layer_norm": (lambda m, t: m.nn.functional.layer_norm(t, (4,)), "float32"),
    "norm": (lambda m, t: t.norm(), "float32"),
    "cumsum": (lambda m, t: t.cumsum(0), "float32"),
    "mm": (lambda m, t: t.float() @ t.float(), "float16"),
    "mv": (lambda m, t: t.float().mv(t[0].float()), "float16"),
    "einsum": (lambda m, t: m.einsum("ij,jk->ik", t.float(), t.float()), "float16"),
    "addcmul": (lambda m, t: m.addcmul(t, t, t.float()), "float32"),
    "dot": (lambda m, t: m.dot(t[0], t[0].float()), "float32"),
    "mean": (lambda m, t: t.mean(), "float16"),
    "sigmoid": (lambda m, t: t.sigmoid(), "float16"),
    "cat": (lambda m, t: m.cat([t, t.float()]), "float32"),
}


@pytest.mark.parametrize("name", ON_A_DEVICE)
def test_devices_have_lists_of_their_own(name: str) -> None:
    if not tp.opencl.is_available():
        pytest.skip("no OpenCL device")
    function, expected = ON_A_DEVICE[name]
    t = tp.linspace(0.1, 1, 16).reshape(4, 4).to(tp.float16).to("opencl")
    with tp.autocast("opencl", dtype=tp.float16):
        assert str(function(tp, t).dtype) == f"tensorpy.{expected}"


def test_exp_of_a_half_does_not_overflow_on_a_device() -> None:
    if not tp.opencl.is_available():
        pytest.skip("no OpenCL device")
    with tp.autocast("opencl"):
        assert tp.tensor([12.0], dtype=tp.float16, device="opencl").exp().item() == pytest.approx(162754.79)


def test_what_is_banned_says_so() -> None:
    if not tp.opencl.is_available():
        pytest.skip("no OpenCL device")
    p = tp.full((3,), 0.5, device="opencl")
    with tp.autocast("opencl"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        tp.nn.functional.binary_cross_entropy(p, p)
    with tp.autocast("opencl"), tp.autocast("opencl", enabled=False):
        assert tp.nn.functional.binary_cross_entropy(p, p).item() == pytest.approx(0.6931472)


@pytest.mark.parametrize("dtype", [tp.int64, tp.float64, tp.complex64])
def test_a_dtype_that_autocast_does_not_know_switches_it_off(dtype: Any) -> None:
    with pytest.warns(UserWarning, match="no autocast to"):
        region = tp.autocast("cpu", dtype=dtype)
    with region:
        assert not tp.is_autocast_enabled("cpu")
        assert (tp.ones(2, 2) @ tp.ones(2, 2)).dtype == tp.float32
