"""Operators that PyTorch's layers and decompositions call by name, beside torch's: values, dtypes, gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.testing.samples.table import CATALOG

torch = pytest.importorskip("torch")

Call = Callable[[Any], tuple[Any, ...]]
CALLS: list[tuple[str, Call]] = []


def x(t: Any, *shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    """The same numbers in both libraries."""
    values = np.random.RandomState(seed + sum(shape)).uniform(-2, 2, shape)
    return t.tensor((values * 5 if "int" in dtype else values).tolist(), dtype=getattr(t, dtype)).reshape(shape)


def mask(t: Any, *shape: int) -> Any:
    return x(t, *shape, seed=3) > 0


def call(*names: str) -> Callable[[Call], Call]:
    def register(function: Call) -> Call:
        CALLS.extend((name, function) for name in names)
        return function

    return register


for name in ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"):
    call(f"_cast_{name}")(lambda t: (x(t, 3, 2).abs() * 3,))
call("_conj_physical")(lambda t: (x(t, 3) + 1j * x(t, 3, seed=1),))
call("infinitely_differentiable_gelu_backward")(lambda t: (x(t, 3), x(t, 3, seed=1)))
call("_is_all_true", "_is_any_true")(lambda t: (mask(t, 3, 2),))
call("_add_relu.Tensor")(lambda t: (x(t, 3, 2), x(t, 3, 2, seed=1), {"alpha": 2}))
call("_add_relu.Scalar")(lambda t: (x(t, 3, 2), 0.5))
call("_add_relu_.Tensor")(lambda t: (x(t, 3, 2), x(t, 3, 2, seed=1)))
call("glu_jvp")(lambda t: (t.nn.functional.glu(x(t, 4, 3), 0), x(t, 4, 3), x(t, 4, 3, seed=1), 0))
call("glu_backward_jvp")(
    lambda t: (
        t.ops.aten.glu_backward.default(x(t, 2, 3), x(t, 4, 3, seed=1), 0),
        x(t, 2, 3),
        x(t, 4, 3, seed=1),
        x(t, 2, 3, seed=2),
        x(t, 4, 3, seed=3),
        0,
    )
)

# ---- batch_norm ----


def norm_arguments(t: Any, *rest: Any, statistics: bool = True) -> tuple[Any, ...]:
    running = (x(t, 3, seed=4), x(t, 3, seed=5).abs()) if statistics else ()
    return (x(t, 4, 3, 2), x(t, 3), x(t, 3, seed=1), *running, *rest)


call("_native_batch_norm_legit", "_native_batch_norm_legit_functional")(lambda t: norm_arguments(t, True, 0.1, 1e-5))
call("_native_batch_norm_legit", "_native_batch_norm_legit_functional")(lambda t: norm_arguments(t, False, 0.1, 1e-5))
call("_native_batch_norm_legit.no_stats")(lambda t: norm_arguments(t, True, 0.1, 1e-5, statistics=False))
call("_batch_norm_with_update")(lambda t: norm_arguments(t, 0.1, 1e-5))
call("_batch_norm_no_update")(lambda t: norm_arguments(t, 0.1, 1e-5))
call("batch_norm_update_stats")(lambda t: (x(t, 4, 3, 2), x(t, 3), x(t, 3, seed=1).abs(), 0.2))
call("batch_norm_backward")(
    lambda t: (
        x(t, 4, 3, 2),
        x(t, 4, 3, 2, seed=1),
        x(t, 3),
        x(t, 3, seed=2),
        x(t, 3, seed=3).abs() + 1,
        x(t, 3, seed=4),
        x(t, 3, seed=5).abs() + 1,
        True,
        1e-5,
        [True, True, True],
        t.zeros(0, dtype=t.uint8),
    )
)


def empty(t: Any) -> Any:
    return t.zeros(0, dtype=t.float64)


for training in (True, False):
    call("_native_batch_norm_legit.out")(
        lambda t, on=training: norm_arguments(
            t, on, 0.1, 1e-5, {"out": empty(t), "save_mean": empty(t), "save_invstd": empty(t)}
        )
    )
call("_batch_norm_with_update.out")(
    lambda t: norm_arguments(
        t,
        0.1,
        1e-5,
        {"out": empty(t), "save_mean": empty(t), "save_invstd": empty(t), "reserve": t.zeros(0, dtype=t.uint8)},
    )
)
call("_fused_rms_norm")(lambda t: (x(t, 4, 3, 2), [3, 2], x(t, 3, 2, seed=1), None))
call("_fused_rms_norm")(lambda t: (x(t, 4, 3), [3], None, 0.1))

# ---- distances, norms, products ----

for power in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
    call("_cdist_forward")(lambda t, p=power: (x(t, 4, 3), x(t, 5, 3, seed=1), p, None))
    call("_pdist_forward")(lambda t, p=power: (x(t, 4, 3), p))
    call("_cdist_backward")(
        lambda t, p=power: (
            x(t, 4, 5),
            x(t, 4, 3),
            x(t, 5, 3, seed=1),
            p,
            t.cdist(x(t, 4, 3), x(t, 5, 3, seed=1), p=p),
        )
    )
    call("_pdist_backward")(lambda t, p=power: (x(t, 6), x(t, 4, 3), p, t.nn.functional.pdist(x(t, 4, 3), p)))
call("_euclidean_dist")(lambda t: (x(t, 4, 3), x(t, 5, 3, seed=1)))
call("_weight_norm_interface")(lambda t: (x(t, 4, 3), x(t, 4, 1, seed=1), 0))
call("_weight_norm_interface")(lambda t: (x(t, 4, 3), x(t, 1, 3, seed=1), 1))
call("_weight_norm_interface_backward", "_weight_norm_differentiable_backward")(
    lambda t: (x(t, 4, 3), x(t, 4, 3, seed=1), x(t, 4, 1), x(t, 4, 3, seed=1).norm(dim=1, keepdim=True), 0)
)
call("frobenius_norm.dim")(lambda t: (x(t, 4, 3), [1], True))
call("linalg__powsum")(lambda t: (x(t, 4, 3), 3, [0], True))
call("linalg__powsum")(lambda t: (x(t, 4, 3), 2))
call("_int_mm")(lambda t: (x(t, 4, 3, dtype="int8"), x(t, 3, 5, dtype="int8")))
call("_compute_linear_combination")(lambda t: (x(t, 4, 3, 2), x(t, 5, 4)))
call("_addmm_activation")(lambda t: (x(t, 5), x(t, 4, 3), x(t, 3, 5), {"beta": 2, "alpha": 0.5}))
call("_addmm_activation")(lambda t: (x(t, 5), x(t, 4, 3), x(t, 3, 5), {"use_gelu": True}))
call("_cholesky_solve_helper")(lambda t: (x(t, 3, 2), t.eye(3, dtype=t.float64) * 2 + t.ones(3, 3).tril(), False))

# ---- extremes, scans, softmax, indices ----

call("_aminmax")(lambda t: (x(t, 4, 3),))
call("_aminmax.dim")(lambda t: (x(t, 4, 3), 1, True))
call("_logcumsumexp")(lambda t: (x(t, 4, 3), 1))
call("_masked_softmax")(lambda t: (x(t, 2, 2, 3, 4), t.zeros(2, 2, 3, 4, dtype=t.bool), 3, 2))
call("_masked_softmax")(lambda t: (x(t, 3, 4), mask(t, 3, 4), 1))
call("_masked_softmax_backward")(lambda t: (x(t, 3, 4), x(t, 3, 4, seed=1).softmax(1), mask(t, 3, 4), 1))
call("native_channel_shuffle")(lambda t: (x(t, 2, 6, 3), 3))
call("_stack")(lambda t: ([x(t, 2, 3), x(t, 2, 3, seed=1)], 1))
call("trace_backward")(lambda t: (t.tensor(2.5), [3, 4]))
call("index_select_backward")(lambda t: (x(t, 2, 4), [2, 3], 1, t.tensor([0, 2, 2, 1])))
call("gather_backward")(lambda t: (x(t, 2, 2), x(t, 2, 3), 1, t.tensor([[0, 2], [1, 1]]), False))
call("embedding_backward")(lambda t: (x(t, 4, 3), t.tensor([0, 2, 2, 1]), 5, 1, False, False))
call("_unsafe_index.Tensor")(lambda t: (x(t, 4, 3), [None, t.tensor([0, 2])]))
call("_unsafe_index_put")(lambda t: (x(t, 4, 3), [t.tensor([0, 0])], x(t, 2, 3), True))
call("_index_put_impl_")(lambda t: (x(t, 4, 3), [t.tensor([0, 0])], x(t, 2, 3), True))
call("_unsafe_masked_index")(lambda t: (x(t, 4, 3), t.tensor([[True], [False]]), [t.tensor([1, 99])], -1.5))
call("_unsafe_masked_index")(lambda t: (x(t, 4, 3), mask(t, 4, 2), [None, t.tensor([1, -99])], 0.5))
call("_unsafe_masked_index_put_accumulate")(
    lambda t: (x(t, 4, 3), t.tensor([[True], [False], [True]]), [t.tensor([1, 99, 1])], x(t, 3, 3))
)
call("_conj_copy")(lambda t: (x(t, 3) + 1j * x(t, 3, seed=1),))
call("_neg_view_copy")(lambda t: (x(t, 3),))
call("_reshape_copy")(lambda t: (x(t, 4, 3), [3, 4]))
call("_chunk_cat")(lambda t: ([x(t, 5, 2), x(t, 3, 4)], 0, 2))
call("_chunk_cat")(lambda t: ([x(t, 2, 3), x(t, 2, 1, 3)], 1, 3))
call("flatten_dense_tensors")(lambda t: ([x(t, 2, 3), x(t, 4)],))
call("unflatten_dense_tensors")(lambda t: (x(t, 10), [x(t, 2, 3), x(t, 4)]))
call("pad_sequence")(lambda t: ([x(t, 2, 3), x(t, 4, 3), x(t, 1, 3)], True, -1.0))
call("pad_sequence")(lambda t: ([x(t, 2), x(t, 4)], False, 0.5, "left"))
for dtype in ("float32", "float64", "float16", "bfloat16", "int8", "int64", "bool", "uint8"):
    call("hash_tensor")(
        lambda t, d=dtype: (x(t, 4, 3, dtype="int64" if "int" in d else "float64").abs().to(getattr(t, d)),)
    )
call("hash_tensor")(lambda t: (x(t, 4, 3), [1], {"keepdim": True}))
call("hash_tensor")(lambda t: (x(t, 0, 3), [1]))
call("frexp.Tensor")(lambda t: (x(t, 4),))

nan = float("nan")
LENGTHS, BATCHED = [1, 0, 3, 1], [[1, 2], [3, 0]]


def with_nan(t: Any) -> Any:
    return t.tensor([[2.0, 2, nan, 0, 0], [0, 1, 3, nan, 3]], dtype=t.float64)


def bounds(t: Any) -> Any:
    return t.tensor([[0, 3, 5], [0, 2, 5]])


for how in ("sum", "mean", "max", "min", "prod"):
    call("segment_reduce")(lambda t, h=how: (x(t, 5, 2), h, {"lengths": t.tensor(LENGTHS)}))
    call("segment_reduce")(lambda t, h=how: (x(t, 5), h, {"lengths": t.tensor(LENGTHS), "initial": 0.5}))
    call("segment_reduce")(lambda t, h=how: (x(t, 2, 3), h, {"lengths": t.tensor(BATCHED), "axis": 1, "unsafe": True}))
    call("segment_reduce")(lambda t, h=how: (x(t, 5, 2), h, {"offsets": t.tensor([0, 1, 1, 5])}))
    call("segment_reduce")(lambda t, h=how: (x(t, 5, 2), h, {"offsets": t.tensor([1, 2, 4]), "unsafe": True}))
    call("segment_reduce")(lambda t, h=how: (x(t, 5, 2), h, {"lengths": t.tensor([1, 2]), "unsafe": True}))

for how in ("sum", "mean", "max", "min", "prod"):
    call("_segment_reduce_backward")(
        lambda t, h=how: (
            x(t, 4, 2, seed=1),
            t.segment_reduce(x(t, 5, 2), h, lengths=t.tensor(LENGTHS), initial=0.5),
            x(t, 5, 2),
            h,
            {"lengths": t.tensor(LENGTHS), "initial": 0.5},
        )
    )
    call("_segment_reduce_backward")(
        lambda t, h=how: (
            x(t, 2, 2, seed=1),
            t.segment_reduce(with_nan(t), h, offsets=bounds(t), axis=1),
            with_nan(t),
            h,
            {"offsets": bounds(t), "axis": 1},
        )
    )

# ---- losses and their gradients ----

for reduction in (0, 1, 2):
    for p in (1, 2):
        call("multi_margin_loss_backward")(
            lambda t, r=reduction, p=p: (
                x(t, *((3,) if r == 0 else ()), seed=7),
                x(t, 3, 4),
                t.tensor([1, 0, 3]),
                p,
                0.75,
                x(t, 4, seed=2).abs(),
                r,
            )
        )
    call("multilabel_margin_loss_forward.output")(
        lambda t, r=reduction: (
            x(t, 2, 3),
            t.tensor([[1, -1, 0], [2, 0, -1]]),
            r,
            {"output": t.zeros(0, dtype=t.float64), "is_target": t.zeros(0, dtype=t.float64)},
        )
    )
    call("multilabel_margin_loss_backward")(
        lambda t, r=reduction: (
            x(t, *((2,) if r == 0 else ()), seed=7),
            x(t, 2, 3),
            t.tensor([[1, -1, 0], [2, 0, -1]]),
            r,
            t.tensor([[0.0, 1, 0], [1, 0, 1]], dtype=t.float64),
        )
    )
call("multi_margin_loss_backward")(lambda t: (x(t, seed=7), x(t, 4), t.tensor(2), 1, 1))
call("adaptive_avg_pool3d_backward.grad_input")(
    lambda t: (x(t, 2, 3, 2, 3, 2), x(t, 2, 3, 4, 5, 4), {"grad_input": t.zeros(0, dtype=t.float64)})
)

# ---- convolutions ----

call("_convolution")(
    lambda t: (x(t, 2, 3, 6), x(t, 4, 3, 3), x(t, 4), [2], [1], [1], False, [0], 1, False, False, False, False)
)
call("_convolution.deprecated")(
    lambda t: (x(t, 2, 3, 6), x(t, 4, 3, 3), x(t, 4), [1], [0], [2], False, [0], 1, False, False, False)
)
for shape in ((6,), (6, 5), (6, 5, 4)):
    call("_convolution_mode")(
        lambda t, s=shape: (x(t, 2, 3, *s), x(t, 4, 3, *[3] * len(s)), x(t, 4), [1], "same", [1] * len(s), 1)
    )
call("conv_tbc")(lambda t: (x(t, 5, 2, 3), x(t, 3, 3, 4), x(t, 4), 1))
call("conv_tbc_backward")(lambda t: (x(t, 5, 2, 4), x(t, 5, 2, 3), x(t, 3, 3, 4), x(t, 4), 1))
call("thnn_conv2d")(lambda t: (x(t, 2, 3, 6, 5), x(t, 4, 3, 3, 2), [3, 2], x(t, 4), [2, 1], [1, 0]))
call("_slow_conv2d_forward")(lambda t: (x(t, 2, 3, 6, 5), x(t, 4, 3, 3, 2), [3, 2], x(t, 4), [2, 1], [1, 0]))
call("_slow_conv2d_backward.output_mask")(
    lambda t: (x(t, 2, 4, 4, 4), x(t, 2, 3, 6, 5), x(t, 4, 3, 3, 2), [3, 2], [1, 1], [0, 0], [True, True, True])
)
call("_slow_conv2d_backward.grad_input")(
    lambda t: (
        x(t, 2, 4, 4, 4),
        x(t, 2, 3, 6, 5),
        x(t, 4, 3, 3, 2),
        [3, 2],
        [1, 1],
        [0, 0],
        {"grad_input": empty(t), "grad_weight": empty(t), "grad_bias": empty(t)},
    )
)
call("slow_conv3d", "slow_conv3d_forward")(
    lambda t: (x(t, 2, 3, 4, 5, 4), x(t, 4, 3, 2, 3, 2), [2, 3, 2], x(t, 4), [1, 2, 1], [0, 1, 0])
)
call("slow_conv_dilated2d")(lambda t: (x(t, 2, 3, 6, 5), x(t, 4, 3, 2, 2), [2, 2], x(t, 4), [1, 1], [1, 0], [2, 1]))
call("slow_conv_dilated3d")(
    lambda t: (x(t, 2, 3, 4, 5, 4), x(t, 4, 3, 2, 2, 2), [2, 2, 2], x(t, 4), [1, 1, 1], [0, 0, 0], [1, 2, 1])
)
call("slow_conv_transpose2d")(lambda t: (x(t, 2, 3, 4, 4), x(t, 3, 4, 3, 3), [3, 3], x(t, 4), [2, 2], [1, 1], [1, 1]))
call("slow_conv_transpose3d")(
    lambda t: (x(t, 2, 3, 3, 3, 3), x(t, 3, 4, 2, 2, 2), [2, 2, 2], x(t, 4), [2, 2, 2], [0, 0, 0], [0, 0, 0])
)

# ---- images, ranges, Python's operators ----

for kind in ("bilinear", "bicubic", "lanczos"):
    for size, align in (([3, 4], False), ([9, 2], True)):
        call(f"_upsample_{kind}2d_aa")(lambda t, s=size, a=align: (x(t, 2, 3, 7, 6), s, a))
        call(f"_upsample_{kind}2d_aa.vec")(lambda t, a=align: (x(t, 2, 3, 7, 6), None, a, [0.5, 1.5]))
        call(f"_upsample_{kind}2d_aa_backward")(lambda t, s=size, a=align: (x(t, 2, 3, *s), s, [2, 3, 7, 6], a))
for name in ("and", "or", "xor", "lshift", "rshift"):
    for dtype in ("int64", "int8"):
        call(f"__{name}__.Tensor", f"__i{name}__.Tensor")(
            lambda t, d=dtype: (x(t, 3, 2, dtype=d), x(t, 3, 2, dtype=d, seed=1))
        )
        call(f"__{name}__.Scalar", f"__i{name}__.Scalar")(lambda t, d=dtype: (x(t, 3, 2, dtype=d), 6))
call("_reshape_alias", "_reshape_alias_copy")(lambda t: (x(t, 3, 4), [4, 3], [3, 1]))
for training in (False, True):
    call("rrelu_with_noise_backward")(
        lambda t, on=training: (x(t, 3, 4), x(t, 3, 4, seed=1), x(t, 3, 4, seed=2), 0.1, 0.4, on, False)
    )


def attention(t: Any, **options: Any) -> tuple[Any, ...]:
    """An `attn_mask` of bools, or of numbers; a dropout keeps what it is told to."""
    if "attn_mask" in options:
        options["attn_mask"] = mask(t, 3, 5) if options["attn_mask"] else x(t, 3, 5, seed=3)
    if "dropout_p" in options:
        options["dropout_mask"] = mask(t, 2, 3, 5)
    return x(t, 2, 3, 4), x(t, 2, 5, 4, seed=1), x(t, 2, 5, 4, seed=2), options


call("rrelu_with_noise", "rrelu_with_noise_")(lambda t: (x(t, 3, 4), x(t, 3, 4, seed=1), 0.1, 0.4, False))
for options in (
    {"scale": None},
    {"is_causal": True},
    {"attn_mask": True},
    {"attn_mask": False},
    {"scale": 0.5},
    {"dropout_p": 0.25},
):
    call("_scaled_dot_product_attention_math")(lambda t, o=options: attention(t, **o))
call("_scaled_dot_product_attention_math")(
    lambda t: (x(t, 2, 4, 3, 2), x(t, 2, 2, 5, 2, seed=1), x(t, 2, 2, 5, 2, seed=2), {"enable_gqa": True})
)
call("_foreach_powsum.Scalar")(lambda t: ([x(t, 3, 4), x(t, 2)], 3))
call("range.out")(lambda t: (1, 4, 0.5, {"out": t.zeros(7)}))
for end, step in ((4, 1), (5, 2), (-3, -2)):
    call("range.out")(lambda t, e=end, s=step: (1, e, s, {"out": t.zeros(0, dtype=t.int64)}))
call("range.out_")(lambda t: (1, 4, {"out": t.zeros(4, dtype=t.int64)}))


def test_rrelu_with_noise_says_what_it_drew() -> None:
    """The slopes are drawn for what is not above 0; the gradient is theirs, in place as well."""
    given = x(tp, 40, 5)
    for call_it in (tp.ops.aten.rrelu_with_noise, tp.ops.aten.rrelu_with_noise_):
        leaf, noise = given.clone().requires_grad_(), tp.zeros(40, 5, dtype=tp.float64)
        made = call_it(leaf * 1, noise, 0.1, 0.4, True)
        made.sum().backward()
        assert (noise[given > 0] == 1).all() and ((noise >= 0.1) & (noise <= 0.4))[given <= 0].all()
        assert noise.unique().numel() > 20
        tp.testing.assert_close(made, given * noise)
        tp.testing.assert_close(leaf.grad, noise)
    with pytest.raises(RuntimeError, match="noise tensor shape must match self tensor shape"):
        tp.ops.aten.rrelu_with_noise(given, noise[0], 0.1, 0.4, True)


def test_rms_norm_backward() -> None:
    """torch has a kernel for it on CUDA only."""
    given, weight, grad = x(tp, 4, 3, 2).requires_grad_(), x(tp, 3, 2, seed=1).requires_grad_(), x(tp, 4, 3, 2, seed=2)
    made, rstd = tp.ops.aten._fused_rms_norm(given, [3, 2], weight, 0.1)
    wanted = tp.autograd.grad(made, (given, weight), grad)
    backward = tp.ops.aten._fused_rms_norm_backward
    tp.testing.assert_close(backward(grad, given, [3, 2], rstd, weight, [True, True]), wanted)
    assert backward(grad, given, [3, 2], rstd, weight, [False, False]) == (None, None)


# ---- shapes as tensors, copies, steps of kernels ----

call("_shape_as_tensor")(lambda t: (x(t, 4, 3, 0),))
call("_shape_as_tensor")(lambda t: (x(t),))
call("_reshape_from_tensor")(lambda t: (x(t, 4, 3), t.tensor([2, -1])))
call("slice_inverse")(lambda t: (x(t, 4, 3)[:, 1:], x(t, 4, 3), 1, 1))
call("_cummax_helper", "_cummin_helper")(lambda t: (x(t, 4, 3), x(t, 4, 3, seed=1), t.zeros(4, 3, dtype=t.int64), 1))
call("_trilinear")(lambda t: (x(t, 4, 3), x(t, 4, 3, seed=1), x(t, 4, 3, seed=2), [], [], [], [1]))
call("_trilinear")(lambda t: (x(t, 2, 3), x(t, 3, 4), x(t, 2, 4), [2], [0], [1], [1, 2], 0))
call("_trilinear")(lambda t: (x(t, 2, 3), x(t, 5, 3, 4), x(t, 2, 4), [1, 3], [0], [1, 2], [2, 3]))
call("lift", "lift_fresh", "lift_fresh_copy")(lambda t: (x(t, 4, 3),))
call("_to_cpu")(lambda t: ([x(t, 4, 3), x(t, 2)],))
for biases in (False, True):
    call("_thnn_differentiable_lstm_cell_backward")(
        lambda t, b=biases: (
            x(t, 4, 3),
            x(t, 4, 3, seed=1) if b else None,
            x(t, 4, 12),
            x(t, 4, 12, seed=1),
            *((x(t, 12), x(t, 12, seed=1)) if b else (None, None)),
            x(t, 4, 3, seed=2),
            x(t, 4, 3, seed=3),
        )
    )
    call("_thnn_differentiable_gru_cell_backward")(
        lambda t, b=biases: (
            x(t, 4, 3),
            x(t, 4, 9),
            x(t, 4, 9, seed=1),
            x(t, 4, 3, seed=2),
            *((x(t, 9), x(t, 9, seed=1)) if b else (None, None)),
        )
    )
call("_functional_assert_scalar")(lambda t: (1, "no", x(t, 2)))
call("_functional_assert_async.msg")(lambda t: (t.tensor(True), "no", x(t, 2)))
call("_functional_sym_constrain_range")(lambda t: (5, 3, 8, x(t, 2)))
call("_functional_sym_constrain_range_for_size")(lambda t: (5, 3, 8, x(t, 2)))

# ---- what operators that write give when they write copies ----

for factor, tracked, found in ((4.0, 1, 0.0), (4.0, 0, 0.0), (4.0, 1, 1.0), (3e38, 1, 0.0)):
    call("_amp_update_scale", "_amp_update_scale_")(
        lambda t, f=factor, n=tracked, i=found: (t.tensor(f), t.tensor(n).int(), t.tensor(i), 2.0, 0.5, 2)
    )
call("_amp_update_scale.out")(
    lambda t: (t.tensor(4.0), t.tensor(1).int(), t.tensor(0.0), 2.0, 0.5, 2, {"out": t.zeros(0)}),
)
call("_amp_foreach_non_finite_check_and_unscale")(
    lambda t: ([x(t, 2, 3), t.tensor([1.0, nan]).double()], t.tensor(0.0), t.tensor(0.5))
)
call("_foreach_copy")(lambda t: ([x(t, 2, 3), x(t, 4)], [x(t, 2, 3, seed=1), x(t, 4, seed=1)]))
call("_foreach_zero")(lambda t: ([x(t, 2, 3), x(t, 4)],))
call("embedding_renorm")(lambda t: (x(t, 4, 3), t.tensor([0, 2]), 0.5, 2.0))
call("embedding_renorm.out")(lambda t: (x(t, 4, 3), t.tensor([0, 2]), 0.5, 2.0, {"out": empty(t)}))
call("resize")(lambda t: (x(t, 4, 3), [2, 3]))
call("resize_as")(lambda t: (x(t, 4, 3), x(t, 2, 3)))
call("resize_as.out")(lambda t: (x(t, 4, 3), x(t, 2, 3), {"out": empty(t)}))
call("set")(lambda t: (x(t, 4, 3),))
call("set.source_Tensor")(lambda t: (x(t, 4, 3), x(t, 2, 2)))
call("set.source_Tensor_out")(lambda t: (x(t, 4, 3), x(t, 2, 2), {"out": empty(t)}))
call("_batch_norm_with_update_functional")(lambda t: norm_arguments(t, 0.1, 1e-5))
call("rrelu_with_noise_functional")(lambda t: (x(t, 3, 4), x(t, 3, 4, seed=1), 0.1, 0.4, False))
call("rrelu_with_noise.out")(lambda t: (x(t, 3, 4), x(t, 3, 4, seed=1), 0.1, 0.4, False, None, {"out": empty(t)}))


def some(t: Any, seed: int) -> list[Any]:
    return [x(t, 2, 3, seed=seed).abs(), x(t, 4, seed=seed).abs()]


def steps(t: Any) -> list[Any]:
    return [t.tensor(3.0), t.tensor(3.0)]


for rate in (0.1, None):
    overload = "" if rate else ".tensor_lr"
    for kind in ("adam", "adamw"):
        call(f"_fused_{kind}{overload}", f"_fused_{kind}_{overload}")(
            lambda t, r=rate: (
                *(some(t, seed) for seed in range(4)),
                [],
                steps(t),
                {
                    "lr": r or t.tensor(0.1),
                    **{"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": False},
                    "maximize": False,
                },
            )
        )
    call(f"_fused_sgd{overload}", f"_fused_sgd_{overload}")(
        lambda t, r=rate: (
            *(some(t, seed) for seed in range(3)),
            {
                "lr": r or t.tensor(0.1),
                **{"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "maximize": True},
                "is_first_step": False,
            },
        )
    )
call("_fused_adagrad", "_fused_adagrad_")(
    lambda t: (
        *(some(t, seed) for seed in range(3)),
        steps(t),
        {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.1, "eps": 1e-10, "maximize": False},
    )
)


def test_lists_that_are_written_into_others() -> None:
    """What would be written in the place of the first list is `out`; nothing else is written."""
    for t in (tp, torch):
        first, rest, out = some(t, 0), [some(t, seed) for seed in (1, 2)], some(t, 3)
        options = {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "maximize": True}
        t.ops.aten._fused_sgd.out(first, *rest, lr=0.1, is_first_step=False, out=out, **options)
        wanted = [some(t, seed) for seed in (0, 1, 2)]
        t.ops.aten._fused_sgd_(*wanted, lr=0.1, is_first_step=False, **options)
        assert all(a.equal(b) for a, b in zip(out, wanted[0], strict=True))
        for seed, found in enumerate((first, *rest)):
            assert all(a.equal(b) for a, b in zip(found, some(t, seed), strict=True))
        t.ops.aten._foreach_zero.out(first, out=out)
        assert not any(a.any() for a in out) and all(a.any() for a in first)


for training in (True, False):
    call("_batch_norm_impl_index")(lambda t, on=training: norm_arguments(t, on, 0.1, 1e-5, False))
call("_batch_norm_impl_index_backward")(
    lambda t: (
        0,
        x(t, 4, 3, 2),
        x(t, 4, 3, 2, seed=1),
        *(x(t, 3, seed=seed).abs() + 1 for seed in range(5)),
        True,
        1e-5,
        [True, True, True],
        t.zeros(0, dtype=t.uint8),
    )
)

for first in (False, True):
    call("_pack_padded_sequence")(
        lambda t, b=first: (x(t, *((3, 5) if b else (5, 3)), 2), t.tensor([4, 2, 2] if b else [5, 5, 1]), b)
    )
    call("_pack_padded_sequence_backward")(
        lambda t, b=first: (x(t, 8, 2), [3, 4, 2] if b else [4, 3, 2], t.tensor([3, 3, 1, 1]), b)
    )
    call("_pad_packed_sequence")(lambda t, b=first: (x(t, 8, 2), t.tensor([3, 3, 1, 1]), b, -1.5, 5 if b else 0))

call("_dim_arange")(lambda t: (x(t, 2, 5), 1))
for mode in range(4):
    call("_pad_enum")(lambda t, m=mode: (x(t, 2, 3, 4), [1, 2], m))
call("_pad_enum")(lambda t: (x(t, 4, 3), [1, 2], 3, 2.5))
for on in (False, True):
    for dtype in ("float32", "float64", "bfloat16"):
        call("_autocast_to_reduced_precision")(
            lambda t, on=on, d=dtype: (x(t, 3).to(getattr(t, d)), True, on, t.float16, t.bfloat16)
        )
        call("_autocast_to_full_precision")(lambda t, on=on, d=dtype: (x(t, 3).to(getattr(t, d)), False, on))

ASSERTIONS: list[tuple[str, Call]] = [
    ("_assert_scalar", lambda t: (0, "no such number")),
    ("_assert_scalar", lambda t: (2.5, "fine")),
    ("_functional_assert_scalar", lambda t: (0.0, "no such number", x(t, 2))),
    ("_functional_assert_async.msg", lambda t: (t.tensor(0), "not so", x(t, 2))),
    ("_assert_tensor_metadata", lambda t: (x(t, 2, 3), [2, 3], [3, 1], t.float64)),
    ("_assert_tensor_metadata", lambda t: (x(t, 2, 3), [2, 4])),
    ("_assert_tensor_metadata", lambda t: (x(t, 2, 3), None, [2, 4])),
    ("_assert_tensor_metadata", lambda t: (x(t, 2, 3), None, None, t.int32)),
    ("_assert_tensor_metadata", lambda t: (x(t, 2, 3), {"device": "meta"})),
    *(
        (name, lambda t, n=n, low=low, high=high: (n, {"min": low, "max": high}))
        for name in ("sym_constrain_range", "sym_constrain_range_for_size")
        for n, low, high in (
            (5, 3, 8),
            (5, 6, 8),
            (5, 8, 3),
            (-1, None, None),
            (0, None, 1),
            (5, None, 3),
            (5, 6, None),
        )
    ),
    ("_functional_sym_constrain_range", lambda t: (5, 6, 8, x(t, 2))),
    ("_pack_padded_sequence", lambda t: (x(t, 5, 3), t.tensor([5, 4, 0]), False)),
    ("_pack_padded_sequence", lambda t: (x(t, 5, 3), t.tensor([3, 4, 1]), False)),
    ("_pack_padded_sequence", lambda t: (x(t, 5, 3), t.tensor([3, 1]), False)),
    ("_pack_padded_sequence", lambda t: (x(t, 0, 3), t.tensor([3, 1, 1]), False)),
    ("_pad_packed_sequence", lambda t: (x(t, 8, 2), t.tensor([3, 3, 1, 1]), False, 0.0, 3)),
    ("_resize_output_", lambda t: (t.ones(2, 3, device="meta"), [3], t.device("cpu"))),
    ("_reshape_from_tensor", lambda t: (x(t, 4, 3), t.tensor([4.0, 3]))),
    ("_reshape_from_tensor", lambda t: (x(t, 4, 3), t.tensor([[4, 3]]))),
]


@pytest.mark.parametrize(("name", "make"), ASSERTIONS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(ASSERTIONS)])
def test_assertions(name: str, make: Call) -> None:
    """The class of the error, and how its message begins."""
    found = []
    for t in (tp, torch):
        given = make(t)
        keywords = given[-1] if isinstance(given[-1], dict) else {}
        try:
            operator(t, name)(*given[: len(given) - bool(keywords)], **keywords)
        except RuntimeError as error:
            found.append(str(error)[:14])
        else:
            found.append("")
    assert bool(found[0]) == bool(found[1])
    assert found[0] == found[1] or name == "_reshape_from_tensor"


def test_grid_sampler_for_the_cpu() -> None:
    """Of float32 alone in torch."""
    for name, grads in (
        ("_grid_sampler_2d_cpu_fallback", ()),
        ("_grid_sampler_2d_cpu_fallback_backward", (2, 3, 3, 2)),
    ):
        found = []
        for t in (tp, torch):
            given = [x(t, *shape).float() / 2 for shape in (grads, (2, 3, 4, 5), (2, 3, 2, 2)) if shape]
            found.append(tensors_in(operator(t, name)(*given, 0, 1, False)))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-5, 1e-6)


def test_printing(capfd: Any) -> None:
    tp.ops.aten._print("a word")
    assert capfd.readouterr().out == "a word\n"


def test_which_attention_is_chosen() -> None:
    for shapes, options in (
        (((2, 3, 5, 4),) * 3, {}),
        (((2, 3, 5, 4),) * 3, {"is_causal": True}),
        (((2, 3, 5, 4),) * 3, {"dropout_p": 0.5}),
        (((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)), {}),
        (((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)), {}),
        (((3, 5, 4),) * 3, {}),
        (((2, 3, 0, 4),) * 3, {}),
        (((2, 4, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)), {"enable_gqa": True}),
        (((2, 4, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)), {}),
    ):
        found = [t.ops.aten._fused_sdp_choice(*(t.zeros(shape) for shape in shapes), **options) for t in (tp, torch)]
        assert found[0] == found[1], (shapes, options)


def test_flash_attention_backward() -> None:
    given = [x(tp, 2, 3, 5, 4, seed=i).float() for i in range(4)]
    options = {"is_causal": True, "scale": 0.5}
    forward = tp.ops.aten._scaled_dot_product_flash_attention_for_cpu(*given[:3], 0.0, True, scale=0.5)
    back = tp.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    found = back(given[3], *given[:3], *forward, 0.0, True, scale=0.5)
    leaves = [t.clone().requires_grad_() for t in given[:3]]
    tp.nn.functional.scaled_dot_product_attention(*leaves, **options).backward(given[3])
    tp.testing.assert_close(list(found), [leaf.grad for leaf in leaves])


@pytest.mark.parametrize(
    ("one", "other"),
    [((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((4,), (2, 4, 5))],
)
def test_backward_of_products(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    """torch has kernels for these with nested tensors only."""
    a, b = x(tp, *one).requires_grad_(), x(tp, *other, seed=1).requires_grad_()
    made = tp.matmul(a, b)
    grad = x(tp, *made.shape, seed=2)
    tp.testing.assert_close(tp.ops.aten.matmul_backward(grad, a, b, [True, True]), tp.autograd.grad(made, (a, b), grad))
    if len(other) == 2:
        weight, bias = b.detach().t().contiguous().requires_grad_(), x(tp, other[1], seed=3).requires_grad_()
        made = tp.nn.functional.linear(a, weight, bias)
        wanted = tp.autograd.grad(made, (a, weight, bias), grad)
        tp.testing.assert_close(tp.ops.aten.linear_backward(a, grad, weight, [True] * 3), wanted)
        assert tp.ops.aten.linear_backward(a, grad, weight, [False] * 3) == (None, None, None)


@pytest.mark.parametrize("dtype", [tp.bool, tp.int64, tp.float16])
def test_the_slope_of_a_dropout_is_floating(dtype: tp.dtype) -> None:
    slope = tp.ops.aten.native_dropout_backward(tp.ones(3, dtype=dtype), tp.tensor([True, False, True]), 1.5)
    assert slope.tolist() == [1.5, 0, 1.5] and slope.dtype == (dtype if dtype.is_floating_point else tp.float32)


def test_steps_that_only_other_backends_have() -> None:
    """torch's CPU has no kernels for these."""
    whole = x(tp, 4, 3)
    aten = tp.ops.aten
    tp.testing.assert_close(aten.native_norm(whole, 3), whole.norm(3))
    tp.testing.assert_close(aten.native_norm.ScalarOpt_dim_dtype(whole, 2, [0], True, None), whole.norm(2, 0, True))
    tp.testing.assert_close(
        aten.native_norm.ScalarOpt_dim_dtype(whole.float(), 2, [0], False, tp.float64),
        whole.float().double().norm(2, 0),
    )
    thinned, kept = aten._fused_dropout(tp.ones(1000), 0.75)
    assert kept.dtype == tp.uint8 and 650 < kept.sum() < 850
    tp.testing.assert_close(thinned, kept / 0.75)
    assert aten._resize_output_(tp.zeros(2, 3), [3], tp.device("cpu")).shape == (3,)
    image, kernel = x(tp, 2, 3, 6, 5), x(tp, 4, 3, 3, 2)
    rest = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    wanted = tp.nn.functional.conv2d(image, kernel)
    tp.testing.assert_close(aten.convolution_overrideable(image, kernel, None, *rest), wanted)
    found = aten.convolution_backward_overrideable(wanted, image, kernel, *rest, [True] * 3)
    tp.testing.assert_close(found, aten.convolution_backward(wanted, image, kernel, [4], *rest, [True] * 3))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_products_in_another_dtype(dtype: str) -> None:
    """torch has kernels for these on CUDA only."""
    a, b, c = (x(tp, *shape).to(getattr(tp, dtype)) for shape in ((2, 3, 4), (2, 4, 5), (2, 3, 5)))
    wide, aten = tp.float32, tp.ops.aten
    exact = a.float() @ b.float()
    found = {
        aten.mm.dtype(a[0], b[0], wide): exact[0],
        aten.bmm.dtype(a, b, wide): exact,
        aten.addmm.dtype(c[0], a[0], b[0], wide, beta=2, alpha=0.5): 2 * c[0].float() + 0.5 * exact[0],
        aten.baddbmm.dtype(c, a, b, wide, beta=2, alpha=0.5): 2 * c.float() + 0.5 * exact,
    }
    for got, wanted in found.items():
        assert got.dtype == wide
        tp.testing.assert_close(got, wanted)


def test_batch_norm_of_two_parts() -> None:
    """The steps of a batch_norm over several devices, on the halves of a batch."""
    whole, weight, bias, grad = x(tp, 6, 3, 4), x(tp, 3), x(tp, 3, seed=1), x(tp, 6, 3, 4, seed=2)
    mean, var = tp.zeros(3, dtype=tp.float64), tp.ones(3, dtype=tp.float64)
    wanted_mean, wanted_var = mean.clone(), var.clone()
    leaf, scale, shift = (value.clone().requires_grad_() for value in (whole, weight, bias))
    wanted = tp.nn.functional.batch_norm(leaf, wanted_mean, wanted_var, scale, shift, True, 0.2, 1e-5)
    wanted.backward(grad)

    parts, grads = (whole[:2], whole[2:]), (grad[:2], grad[2:])
    found = [tp.batch_norm_stats(part, 1e-5) for part in parts]
    counts = tp.tensor([8, 16])
    joined, invstd = tp.batch_norm_gather_stats_with_counts(
        whole, tp.stack([m for m, _ in found]), tp.stack([s for _, s in found]), mean, var, 0.2, 1e-5, counts
    )
    tp.testing.assert_close(mean, wanted_mean)
    tp.testing.assert_close(var, wanted_var)
    made = [tp.batch_norm_elemt(part, weight, bias, joined, invstd, 1e-5) for part in parts]
    tp.testing.assert_close(tp.cat(made), wanted.detach())
    sums = [
        tp.batch_norm_backward_reduce(g, part, joined, invstd, weight, True, True, True)
        for g, part in zip(grads, parts, strict=True)
    ]
    dy, dy_xmu, to_weight, to_bias = (sum(both) for both in zip(*sums, strict=True))
    tp.testing.assert_close(to_weight, scale.grad)
    tp.testing.assert_close(to_bias, shift.grad)
    to_input = [
        tp.batch_norm_backward_elemt(g, part, joined, invstd, weight, dy, dy_xmu, counts)
        for g, part in zip(grads, parts, strict=True)
    ]
    tp.testing.assert_close(tp.cat(to_input), leaf.grad)
    same_counts = tp.batch_norm_gather_stats(whole, joined.expand(2, 3), invstd.expand(2, 3), None, None, 0.2, 1e-5, 12)
    tp.testing.assert_close(list(same_counts), [joined, invstd])


def test_hash_tensor_has_no_tangent() -> None:
    """And does not refuse what has one."""
    given = x(tp, 3).float()
    hashed, tangent = tp.func.jvp(lambda t: tp.hash_tensor(t * 2), (given,), (given,))
    assert hashed == tp.hash_tensor(given * 2) and tangent == 0


# ---- comparing ----


def operator(t: Any, name: str) -> Any:
    found = t.ops.aten
    for part in name.split("."):
        found = getattr(found, part)
    return found if "." in name else found.default


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in tensors_in(item)]
    return [value] if isinstance(value, (tp.Tensor, torch.Tensor)) else []


def run(t: Any, name: str, make: Call, grad: bool) -> tuple[list[Any], list[Any]]:
    """The results, and the tensors among the arguments, which require gradients if asked for."""
    given = make(t)
    keywords = given[-1] if isinstance(given[-1], dict) else {}
    args = given[: len(given) - bool(keywords)]
    leaves = tensors_in(args)
    for leaf in leaves:
        leaf.requires_grad_(grad and leaf.dtype == t.float64)
    return tensors_in(operator(t, name)(*args, **keywords)), leaves


def gradients(t: Any, results: list[Any], leaves: list[Any]) -> list[Any]:
    """Of a weighted sum of all results."""
    total = sum((r * x(t, *r.shape, seed=9)).sum() for r in results if r.requires_grad)
    if not isinstance(total, (tp.Tensor, torch.Tensor)):
        return []
    found = t.autograd.grad(total, [leaf for leaf in leaves if leaf.requires_grad], allow_unused=True)
    return [t.zeros(()) if g is None or not g.any() else g for g in found]


def same(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        a, b = (value.detach().resolve_conj().resolve_neg() for value in (a, b))
        if str(a.dtype).rpartition(".")[2] == "bfloat16":
            a, b = a.float(), b.float()
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-9)


parameters = pytest.mark.parametrize(("name", "make"), CALLS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CALLS)])


@parameters
def test_values(name: str, make: Call) -> None:
    """And what is written to arguments."""
    ours, theirs = run(tp, name, make, False), run(torch, name, make, False)
    same(ours[0] + ours[1], theirs[0] + theirs[1])


WRITING = {str(op.schema.name) for op in CATALOG if any(argument.is_write for argument in op.schema.arguments)}


@pytest.mark.parametrize(
    ("name", "make"), [pytest.param(n, m, id=f"{n}-{i}") for i, (n, m) in enumerate(CALLS) if n not in WRITING]
)
def test_gradients(name: str, make: Call) -> None:
    """Where torch has any, and nothing is written."""
    try:
        theirs = gradients(torch, *run(torch, name, make, True))
    except RuntimeError as error:
        pytest.skip(f"torch has none: {error}")
    if not theirs:
        pytest.skip("torch has none")
    same(gradients(tp, *run(tp, name, make, True)), theirs)


def masked_calls() -> dict[str, tuple[Any, ...]]:
    """Arguments of operators that leave out results which a mask does not name."""
    x, rows = tp.ones(2, 3), tp.ones(2, 4)
    image, mean, norm = tp.ones(2, 4, 5, 5), tp.zeros(2, 1), tp.ones(2, 1)
    kernel = tp.ones(3, 4, 3, 3)
    return {
        "linear_backward": (x, rows, tp.ones(4, 3)),
        "native_layer_norm_backward": (x, x, [3], mean, norm, tp.ones(3), tp.zeros(3)),
        "native_group_norm_backward": (image, image, tp.zeros(2, 2), tp.ones(2, 2), tp.ones(4), 2, 4, 25, 2),
        "convolution_backward": (
            *(tp.ones(2, 3, 3, 3), image, kernel),
            *([3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        ),
    }


@pytest.mark.parametrize("name", masked_calls())
def test_results_that_a_mask_leaves_out(name: str) -> None:
    """They are None; with out= their tensors stay as they are."""
    packet, args = getattr(tp.ops.aten, name), masked_calls()[name]
    whole = packet.default(*args, [True] * 3)
    for mask in itertools.product((True, False), repeat=3):
        got = packet.default(*args, list(mask))
        outs = {f"out{i}": tp.full((0,), 7.0) for i in range(3)}
        packet.out(*args, list(mask), **outs)
        for wanted, all_, one, out in zip(mask, whole, got, outs.values(), strict=True):
            assert (one is None or not one.numel()) if not wanted else tp.equal(one, all_)
            assert tp.equal(out, all_) if wanted else out.shape == (0,)
