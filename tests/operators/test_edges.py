"""Numbers and shapes at the edge, each as PyTorch 2.13 has it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from opencl_programs import ROOT

import tensorpy as tp
import tensorpy.nn.functional as F
from codegen.out_dtype import takes_castable
from tensorpy.testing.checks import bits
from tensorpy.testing.harness import function_of
from tensorpy.testing.samples import TABLE
from tensorpy.testing.samples.catalog import CATALOG

INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
NUMBERS = [
    3e9, -3e9, 1e20, -1e20, math.nan, math.inf, -math.inf, 4e4, 7e4, 256.0, 300.7, -1.0, -1.9, -300.2, 2.0**31,
    -(2.0**31), 2.0**31 - 128, 2.0**63, -(2.0**63), 0.0, -0.0, 127.9, 128.0, -129.0,
]  # fmt: skip


def cut(number: float, bits: int, signed: bool) -> int:
    """What x86 converts a float to, and what is left of it in a dtype."""
    wide = 64 if bits == 64 else 32
    fits = math.isfinite(number) and -(2 ** (wide - 1)) <= int(number) < 2 ** (wide - 1)
    left = (int(number) if fits else -(2 ** (wide - 1))) % 2**bits
    return left - 2**bits if signed and left >= 2 ** (bits - 1) else left


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("of", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["one", "row", "strided"])
def test_floats_become_integers(of: str, to: str, layout: str) -> None:
    """Alone and in rows that are computed by vectors, finite or not."""
    dtype, bits = getattr(tp, to), int(to.lstrip("uint"))
    held = tp.tensor(NUMBERS, dtype=getattr(tp, of))
    expected = [cut(v, bits, to.startswith("i")) for v in held.double().tolist()]
    if layout == "one":
        assert [v.to(dtype).item() for v in held] == expected
    elif layout == "row":
        assert held.repeat(9).to(dtype).tolist() == expected * 9
    else:
        assert held[:, None].expand(-1, 3).clone()[:, 1].to(dtype).tolist() == expected


@pytest.mark.parametrize("n", [2, 15, 100])
@pytest.mark.parametrize("dim", [0, 1])
def test_log_softmax_of_large_numbers(n: int, dim: int) -> None:
    """The largest is taken away before the logarithm is."""
    x = tp.arange(n).double().neg()
    expected = x.log_softmax(0)
    rows = (x + 2.0**24).float().repeat(3, 1)
    assert rows[0, 1] - rows[0, 0] == -1
    got = rows.log_softmax(1) if dim else rows.t().contiguous().log_softmax(0).t()
    for row in got:
        tp.testing.assert_close(row.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.complex64, tp.complex128])
@pytest.mark.parametrize("at", [0, 2])
def test_cholesky_of_nan(upper: bool, dtype: tp.dtype, at: int) -> None:
    """The minor that a NaN is in is not positive."""
    a = tp.eye(4, dtype=dtype).repeat(2, 1, 1)
    a[1, at, at] = math.nan
    assert tp.linalg.cholesky_ex(a, upper=upper).info.tolist() == [0, at + 1]
    with pytest.raises(tp.linalg.LinAlgError):
        tp.linalg.cholesky(a, upper=upper)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (-math.inf, math.inf, "from is out of bounds"),
        (0.0, math.inf, "to is out of bounds"),
        (math.nan, 1.0, "from is out of bounds"),
        (0.0, math.nan, "to is out of bounds"),
        (-3e38, 3e38, "uniform_ expects to-from <= std::numeric_limits<Float>::max"),
        (0.0, 1e39, "to is out of bounds"),
    ],
)
def test_uniform_needs_a_range_that_the_dtype_has(low: float, high: float, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        tp.empty(2).uniform_(low, high)
    if abs(low) < 1e38 and abs(high) < 1e40:
        tp.empty(2, dtype=tp.float64).uniform_(low, high)


@pytest.mark.parametrize("sizes", [(0,), (0, 1), (1, 0), (0, 0), (1, 1, 0)])
def test_convolution_with_a_kernel_of_nothing(sizes: tuple[int, ...]) -> None:
    n = len(sizes)
    x, w = tp.ones(1, 1, *[3] * n), tp.ones(1, 1, *sizes)
    for name in (f"conv{n}d", f"conv_transpose{n}d"):
        with pytest.raises(RuntimeError, match="kernel size should be greater than zero"):
            getattr(F, name)(x, w)


ORDERS = ("sort", "sort of columns", "argsort", "topk", "topk of columns", "kthvalue", "mode", "median", "cat")
FACTORS = ("linalg_lu", "qr", "complex", "max.dim", "min.dim", "poisson", "tril", "triu", "softmax", "gather")


MEMBERS = ("isin", "unique", "unique of rows", "layer_norm", "linalg_lstsq", "linalg_householder_product")


@pytest.mark.parametrize("names", [ORDERS, FACTORS, MEMBERS], ids=["orders", "others", "members"])
def test_a_tensor_is_swapped_while_operators_read_it(names: tuple[str, ...]) -> None:
    """swapping.py in a process of its own, which a read out of bounds ends."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *sys.path])}
    program = [sys.executable, str(ROOT / "tests/operators/swapping.py"), *names]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, f"at {done.stdout.splitlines()[-1:]}: exit {done.returncode}\n{done.stderr[-2000:]}"


def half_programs() -> list[tuple[str, int]]:
    """The pointwise operators of half, with the number of their inputs, whose out= may be of another dtype."""
    found = []
    for name, info in TABLE.items():
        required = [str(a.type) for a in info.op.schema.arguments if a.default is None]
        computes = info.op.pointwise and info.op.kind == "functional" and "float16" in info.dtypes
        out = info.op.group.out
        if not computes or out is None or not out.variants or not takes_castable(info.op, CATALOG):
            continue
        if set(required) == {"Tensor"}:
            found.append((name, len(required)))
    return found


@pytest.mark.parametrize(("name", "n"), half_programs())
def test_a_wider_out_holds_the_rounded_result(name: str, n: int) -> None:
    """The dtype of out= has no part in what is computed."""
    function = function_of(TABLE[name])
    x = tp.tensor([65504.0, 1.0009765625, 3.3e-6, -7.1], dtype=tp.half)
    expected, out = function(*[x] * n), tp.empty(0, dtype=tp.float64)
    function(*[x] * n, out=out)
    tp.testing.assert_close(out, expected.double(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("expanded", [1, 3, 5])
def test_gradient_of_as_strided_over_shared_elements(expanded: int) -> None:
    """What a base has in several places gets its gradient once."""
    x = tp.arange(5.0, dtype=tp.float64).requires_grad_()
    weight = tp.arange(expanded * 5.0, dtype=tp.float64).reshape(expanded, 5)
    function = lambda a: a.expand(expanded, 5).as_strided([expanded, 5], [0, 1], 0) * weight  # noqa: E731
    (grad,) = tp.autograd.grad(function(x).sum(), x)
    assert grad.tolist() == weight.sum(0).tolist()
    assert tp.autograd.gradcheck(function, x) and tp.autograd.gradgradcheck(function, x)


def test_an_index_into_an_empty_table() -> None:
    with pytest.raises(RuntimeError, match="Index 0 of input takes value 0 which is not in the valid range"):
        F.embedding_bag(tp.tensor([[0, 1]]), tp.empty(0, 3))
    assert F.embedding_bag(tp.tensor([[0, 1]]), tp.empty(2, 0)).shape == (1, 0)


WRITERS = {
    "scatter_": lambda x, i, s: x.scatter_(0, i, s),
    "scatter_add_": lambda x, i, s: x.scatter_add_(0, i, s),
    "scatter_reduce_": lambda x, i, s: x.scatter_reduce_(0, i, s, "sum"),
    "index_copy_": lambda x, i, s: x.index_copy_(0, i, s),
    "index_add_": lambda x, i, s: x.index_add_(0, i, s),
    "index_add_ scaled": lambda x, i, s: x.index_add_(0, i, s, alpha=2),
    "index_put_": lambda x, i, s: x.index_put_((i,), s),
    "put_": lambda x, i, s: x.put_(i, s),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_is_not_read(name: str) -> None:
    """A source or an index in the memory that is written is refused; one beside it is not."""
    call, x = WRITERS[name], tp.arange(8)
    index = tp.tensor([0, 1, 2])
    for source in (x[1:4], x[:3]):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer"):
            call(x, index, source)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer"):
        call(x, x[:3], tp.arange(3))
    call(x[4:], index, x[:3])


@pytest.mark.parametrize("name", ["elu_", "leaky_relu_"])
def test_a_negative_slope_in_place_has_no_gradient(name: str) -> None:
    x = tp.tensor([-1.0, 1.0], requires_grad=True)
    y = getattr(F, name)(x.clone(), -2.0)
    with pytest.raises(RuntimeError, match="backward calculation is triggered with a negative slope"):
        y.sum().backward()
    getattr(F, name)(x.clone(), 2.0).sum().backward()
    (expected,) = tp.autograd.grad(getattr(F, name.rstrip("_"))(x, 2.0).sum(), x)
    tp.testing.assert_close(x.grad, expected)


def test_matrix_power_zero_has_a_gradient() -> None:
    a = tp.rand(2, 3, 3, requires_grad=True)
    power = tp.matrix_power(a, 0)
    power.sum().backward()
    assert a.grad.tolist() == tp.zeros(2, 3, 3).tolist() and power[1].tolist() == tp.eye(3).tolist()


def test_cholesky_differentiates_without_symmetry() -> None:
    """Numbers are PyTorch's for a tangent and a gradient that no Hermitian matrix has."""
    a = tp.tensor([[2.0, 0.5 + 0.2j], [0.5 - 0.2j, 3.0]], dtype=tp.complex128, requires_grad=True)
    factor = tp.linalg.cholesky(a)
    (factor * tp.tensor([[1.0, 2.0], [3 + 1j, 4.0]])).sum().abs().backward()
    assert abs(a.grad[0, 0].item() - (0.1387110732947319 + 0.012096728207031655j)) < 1e-12
    b, t = tp.tensor([[2.0, 0.5], [0.5, 3.0]]), tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    _, moved = tp.func.jvp(tp.linalg.cholesky, (b,), (t,))
    assert abs(moved[1, 0].item() - 2.0329) < 1e-4


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", [tp.float64, tp.complex128], ids=str)
def test_eigh_has_a_hermitian_gradient(uplo: str, dtype: tp.dtype) -> None:
    """Of vectors, values and both, as in PyTorch: which triangle is read does not show in it."""
    a = tp.tensor([[2.0, 0.5, 0.1], [0.25, 3.0, 0.7], [0.4, 0.6, 5.0]], dtype=dtype)
    weights = tp.arange(9.0).reshape(3, 3)
    for loss in (
        lambda values, vectors: (vectors.abs() * weights).sum(),
        lambda values, vectors: (values * weights[1]).sum(),
        lambda values, vectors: (vectors.abs() * weights).sum() + values.square().sum(),
    ):
        grad = tp.func.grad(lambda x, loss=loss: loss(*tp.linalg.eigh(x, UPLO=uplo)))(a)
        tp.testing.assert_close(grad, grad.mH)


def test_std_of_nothing_has_no_tangent() -> None:
    for shape, dim in (((0,), 0), ((0, 2), 0), ((1,), 0)):
        x = tp.ones(shape)
        value, tangent = tp.func.jvp(lambda a: a.std(dim), (x,), (tp.ones_like(x),))  # noqa: B023
        assert tangent.isnan().all() and value.isnan().all()


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand", "randn", "arange"])
def test_a_factory_into_out_takes_requires_grad(name: str) -> None:
    out = tp.empty(2)
    made = getattr(tp, name)(2, out=out, requires_grad=True)
    assert made is out and out.requires_grad
    plain = tp.empty(2)
    assert not getattr(tp, name)(2, out=plain).requires_grad


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_resized_as_floats_are(mode: str, antialias: bool, align: bool) -> None:
    """Within one of the floats' result, in the memory format of the image."""
    tp.manual_seed(0)
    image = tp.randint(30, 220, (2, 3, 20, 17), dtype=tp.uint8)
    for given in (image, image.contiguous(memory_format=tp.channels_last)):
        for cut in (given, given[:, :, 2:-2, 1:-1]):
            options = {"mode": mode, "antialias": antialias, "align_corners": align}
            got = F.interpolate(cut, size=(11, 23), **options)
            smooth = F.interpolate(cut.float(), size=(11, 23), **options)
            assert got.dtype == tp.uint8 and (got.float() - smooth).abs().max() <= 1
            last = given is not image
            for result in (got, smooth):
                assert result.is_contiguous(memory_format=tp.channels_last if last else tp.contiguous_format)
    with pytest.raises(NotImplementedError, match="not implemented for"):
        F.interpolate(image.int(), size=(11, 23), mode=mode, antialias=antialias)


@pytest.mark.parametrize("name", ["upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d"])
def test_places_beyond_all_integers_are_at_the_end(name: str) -> None:
    """A scale may put an output where no integer counts the elements: it takes the last one."""
    x, more = tp.tensor([[[5.0, 6.0, 7.0]]]), (False,) if "linear" in name else ()
    resize = getattr(tp.ops.aten, name)
    first = 5.0 if name == "upsample_nearest1d" else 7.0
    for scale in (1e-30, 1e-18, 1e-300):
        assert resize(x, [3], *more, scale).flatten().tolist() == [first, 7.0, 7.0]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_a_scale_that_gives_no_size(mode: str) -> None:
    for scale in (1e30, tp.inf, tp.nan, -1.0, 0.0):
        with pytest.raises(RuntimeError, match=r"without overflow|greater than 0"):
            F.interpolate(tp.ones(1, 1, 4, 4), scale_factor=scale, mode=mode)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, **o: F.gelu(x, "tanh", **o),
        lambda x, **o: F.softplus(x, 2.0, **o),
        lambda x, **o: F.softshrink(x, 0.3, **o),
        lambda x, **o: F.hardshrink(x, 0.3, **o),
        F.logsigmoid,
        lambda x, **o: F.avg_pool2d(x, 2, **o),
        lambda x, **o: F.avg_pool3d(x, 2, **o),
    ],
    ids=["gelu", "softplus", "softshrink", "hardshrink", "logsigmoid", "avg_pool2d", "avg_pool3d"],
)
def test_functional_operators_write_into_out(call: Callable[..., tp.Tensor]) -> None:
    x, out = tp.randn(2, 2, 4, 4), tp.empty(0)
    assert call(x, out=out) is out
    tp.testing.assert_close(out, call(x), rtol=0, atol=0)


def test_bfloat16_members_and_numbers_as_indices() -> None:
    x = tp.tensor([1.0, 2.0, 3.0], dtype=tp.bfloat16)
    assert tp.isin(x, tp.tensor([2.0], dtype=tp.bfloat16)).tolist() == [False, True, False]
    for dtype in (tp.int8, tp.int16):
        assert x[tp.tensor(1, dtype=dtype)].item() == 2.0
        with pytest.raises(IndexError, match="tensors used as indices must be"):
            x[tp.tensor([1], dtype=dtype)]


ONE, TWO, LONG = tp.ones(1), tp.ones(2, 2), tp.ones(1, dtype=tp.int64)
OPENINGS: list[tuple[str, Callable[[], object]]] = [
    ("heaviside is not yet implemented for tensors with different dtypes", lambda: tp.heaviside(ONE, LONG)),
    ("vector . matrix @ vector expected, got 1, 1, 1", lambda: tp.mv(ONE, ONE)),
    (r"be: \[2, 2\] but got: \[2, 3\]", lambda: tp.bmm(tp.ones(2, 2, 2), tp.ones(2, 3, 3))),
    ("renorm: input needs at least 2 dimensions, got 1 dimensions", lambda: ONE.renorm(2, 0, 1.0)),
    ("Low precision dtypes not supported. Got .* not implemented for 'Half'", lambda: tp.linalg.inv(TWO.half())),
    ("boundary and sorter must have the same size", lambda: tp.searchsorted(ONE, 1.0, sorter=LONG.expand(2))),
    ("sorter must be a tensor of long dtype", lambda: tp.searchsorted(ONE, 1.0, sorter=ONE)),
    ("Input dtypes must be the same, got: input", lambda: tp.baddbmm(TWO[None].long(), TWO[None], TWO[None])),
    ("self and mat2 must have the same dtype, but got Long and Float", lambda: tp.addmm(TWO.long(), TWO, TWO)),
    ("self and mat2 must have the same dtype, but got Half and Float", lambda: F.linear(TWO, TWO, TWO[0].half())),
    ("mat1 and mat2 must have the same dtype, but got Double and Float", lambda: F.linear(TWO.double(), TWO, TWO[0])),
    ("dot : expected both vectors to have same dtype, but found Float and Long", lambda: tp.dot(ONE, LONG)),
    ("inconsistent tensor size, expected tensor .1. and src .2.", lambda: tp.dot(ONE, tp.ones(2))),
    (r"inner\(\) the last dimension must match on both input tensors but got shapes \[", lambda: tp.inner(TWO, ONE)),
    ("Expected both inputs to be Half, Float or Double tensors but got", lambda: tp.complex(LONG, LONG)),
    ("Expected both inputs to be Half, Float or Double tensors but got", lambda: tp.polar(LONG, LONG)),
    (
        "Expected object of scalar type Float but got scalar type Double for second argument",
        lambda: tp.polar(tp.ones(2), tp.ones(2, dtype=tp.float64)),
    ),
    ("operation's result requires dtype", lambda: ONE.float_power_(2)),
    (r"minor of order 1 is not positive-definite", lambda: tp.linalg.cholesky(tp.zeros(2, 2))),
    ("diagonal element 1 is zero, the inversion could not be completed", lambda: tp.linalg.inv(tp.zeros(2, 2))),
    (r"^Integer division.+is no longer supported.+", lambda: tp.addcdiv(LONG, LONG, LONG)),
    (r"Negative strides are not supported at the moment, got strides: \[-1\]", lambda: ONE.as_strided((1,), (-1,))),
    ("^rfft expects a real input tensor", lambda: tp.fft.rfft(ONE * 1j)),
    ("^ihfft expects a real input tensor", lambda: tp.fft.ihfft(ONE * 1j)),
    ("^rfftn expects a real-valued input tensor", lambda: tp.fft.rfft2(TWO * 1j)),
    ("sections to have dtype of long, but got Float", lambda: tp.tensor_split(ONE, ONE)),
    ("pool height 5 too large relative to input height 4", lambda: F.fractional_max_pool2d(tp.ones(1, 4, 4), 5, 1)),
    ("pool time 5 too large relative to input time 4", lambda: F.fractional_max_pool3d(tp.ones(1, 4, 4, 4), 5, 1)),
    ("stride should not be zero", lambda: F.max_pool2d(tp.ones(1, 4, 4), 2, 0)),
    ("scalar type Long", lambda: tp.sort(ONE, out=(tp.ones(1), tp.ones(1)))),
    ("Only Tensors of floating point and complex dtype can", lambda: tp.ones(1, dtype=tp.int64, requires_grad=True)),
    ("nonzero does not support the out kwarg", lambda: tp.nonzero(ONE, as_tuple=True, out=tp.empty(0))),
    ("Expected idx >= 0 && idx < num_embeddings", lambda: F.embedding_bag(LONG[None], tp.ones(1, 1))),
    (
        "have the same type as",
        lambda: F.embedding_bag(LONG[None], TWO, per_sample_weights=ONE[None].double(), mode="sum"),
    ),
]


@pytest.mark.parametrize(("opening", "call"), OPENINGS, ids=[str(i) for i in range(len(OPENINGS))])
def test_messages_hold_the_words_that_programs_match(opening: str, call: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match=opening):
        call()


def test_messages_of_buffers_and_lists() -> None:
    with pytest.raises(ValueError, match=r"buffer length \(5 bytes\) after offset \(1 bytes\) must be"):
        tp.frombuffer(bytearray(6), dtype=tp.int32, offset=1)
    with pytest.raises(ValueError, match=r"requested buffer length \(3 \* 4 bytes\) after offset \(0 bytes\) must"):
        tp.frombuffer(bytearray(8), dtype=tp.int32, count=3)
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        tp.hstack(ONE)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_a_place_that_is_not_finite_has_no_sample(mode: str, bad: float) -> None:
    """Its sample is NaN, and the image gets no gradient from it; in volumes and of the nearest it lies outside."""
    grid = tp.tensor([[bad, 0.0], [0.5, bad], [0.1, 0.1]]).reshape(1, 1, 3, 2)
    image = tp.arange(1.0, 10).reshape(1, 1, 3, 3).requires_grad_()
    sampled = F.grid_sample(image, grid, mode=mode, align_corners=False)
    assert sampled.isnan().flatten().tolist() == [True, True, False]
    sampled.sum().backward()
    (alone,) = tp.autograd.grad(F.grid_sample(image, grid[:, :, 2:], mode=mode, align_corners=False).sum(), image)
    assert image.grad.tolist() == alone.tolist()
    nearest = F.grid_sample(image, grid, mode="nearest", align_corners=False)
    volume = F.grid_sample(image[:, :, None], tp.tensor([bad, 0, 0]).reshape(1, 1, 1, 1, 3), align_corners=False)
    assert nearest[0, 0, 0, :2].tolist() == [0.0, 0.0] and volume.item() == 0.0


LAYOUTS: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "rows": lambda x: x.expand(9, 64),
    "columns": lambda x: x.unsqueeze(1).expand(64, 33),
    "middle": lambda x: x.reshape(8, 1, 8).expand(8, 20, 8),
    "both": lambda x: x.reshape(4, 1, 16).expand(30, 4, 5, 16),
    "steps": lambda x: x[::2].expand(40, 32),
    "turned": lambda x: x.reshape(8, 8).t().expand(20, 8, 8),
}


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_that_come_again_are_converted(layout: str) -> None:
    """From each dtype to each: what is laid out once for all rows has the size that it is stored in."""
    names = ("bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
    dtypes = [getattr(tp, name) for name in names]
    numbers = tp.arange(64) % 61
    for source in dtypes:
        x = LAYOUTS[layout](numbers.to(source))
        whole = x.contiguous()
        for target in dtypes:
            assert bits(x.to(target).contiguous()) == bits(whole.to(target)), (source, target)
            assert bits(tp.zeros(x.shape, dtype=target).copy_(x)) == bits(whole.to(target)), (source, target)
