"""Where a call falls off: some 3,300 calls beside torch, and those that take longer by a factor.

    python -m benchmarks.cliffs [--threads N] [--above 1.3] [--only TEXT] [--seconds 0.05]

`make bench` measures what people do often, against bars. This looks for what nobody thought of: every function by every
dtype, along every dimension and with gaps between elements, at sizes that fit the second level of the cache. Each call
is timed in turns with torch's, and the best time of each counts, which noise of the machine cannot make smaller; a call
that is as fast as torch's after three turns is left. What is printed is `ratio, tensorpy's and torch's microseconds,
the call`, slowest first. A line there is a kernel to look at, and to measure by itself before that.
"""

from __future__ import annotations

import argparse
import operator
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorpy as tp

from .libraries import torch

FLOATS = ("float32", "float64", "bfloat16", "float16")
DTYPES = (*FLOATS, "int64", "int32", "int16", "uint8", "bool", "complex64")

UNARY = """
    abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor
    frac i0 isfinite isinf isnan isneginf isreal lgamma log log10 log1p log2 logit logical_not bitwise_not
    nan_to_num neg positive rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan
    tanh trunc
""".split()
SPECIAL = """
    bessel_j0 bessel_j1 bessel_y0 entr erfcx i0e i1 i1e log_ndtr ndtr ndtri modified_bessel_k0 spherical_bessel_j0
    airy_ai
""".split()
BINARY = """
    add sub mul div floor_divide remainder fmod pow atan2 maximum minimum fmax fmin hypot eq lt bitwise_and
    bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or gcd lcm copysign nextafter
    xlogy logaddexp logaddexp2 heaviside float_power ldexp
""".split()
REDUCING = """
    sum mean prod amax amin argmax argmin any all std var logsumexp nansum nanmean median nanmedian mode cumsum
    cumprod cummax cummin logcumsumexp norm count_nonzero aminmax sort argsort softmax log_softmax max min
    unique_consecutive diff
""".split()
# Of a positive definite matrix.
MATRIX = """
    inv det slogdet svdvals qr svd pinv matrix_rank eigvalsh eigh cholesky lu lu_factor matrix_exp cond
""".split()
FOURIER = """
    fft ifft rfft fft2 ifft2 rfft2 fftn hfft ihfft
""".split()
ACTIVATIONS = """
    relu relu6 elu selu celu gelu silu mish hardswish hardsigmoid hardtanh leaky_relu softplus softsign tanhshrink
    logsigmoid softshrink hardshrink glu normalize
""".split()
LOSSES = """
    mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy_with_logits soft_margin_loss
    poisson_nll_loss hinge_embedding_loss multilabel_soft_margin_loss cosine_similarity pairwise_distance
""".split()


# Expressions of a module m and of tensors: x of 500 x 600, i of as many places, r and c of 300 rows and columns, and k,
# a mask.
MOVING = """
    m.gather(x, 0, i)
    m.gather(x, 1, i)
    m.scatter(x, 0, i, x)
    m.scatter_add(x, 0, i, x)
    m.scatter_add(x, 1, i, x)
    m.scatter_reduce(x, 0, i, x, 'amax')
    m.index_select(x, 0, r)
    m.index_select(x, 1, c)
    x[r]
    x[r, c]
    x[:, c]
    x[k]
    x.masked_fill(k, 1)
    m.nonzero(x)
    m.where(k, x, x)
    x.masked_scatter(k, x)
    x.index_put((r, c), x[0, 0])
    x.index_add(0, r, x[:300])
    x.index_copy(0, r, x[:300])
    x.index_fill(0, r, 1)
    m.take(x, i)
    x.put(i, x)
    m.unique(x)
    m.isin(x, x[0, :50])
    m.topk(x, 5)
    m.topk(x, 5, dim=0)
    m.kthvalue(x, 5)
    m.cat([x, x], 0)
    m.cat([x, x], 1)
    m.stack([x, x], -1)
    m.roll(x, (3, 5), (0, 1))
    m.rot90(x)
    x.repeat(2, 2)
    x.repeat_interleave(2, 1)
    m.tril(x)
    m.flip(x, (0,))
    m.flip(x, (1,))
    x.t().contiguous()
    x[::2, ::2].contiguous()
    x.view(50, 10, 60, 10).permute(2, 0, 3, 1).contiguous()
    m.kron(x[:20, :20], x[:20, :20])
    m.outer(x[0], x[1])
    m.diag_embed(x[:50, :50])
    m.searchsorted(x.flatten()[:1000].sort().values, x)
    m.bucketize(x, x.flatten()[:30].sort().values)
    m.histc(x, 50)
    x.clamp(0, 1)
    m.lerp(x, x, 0.3)
    m.addcmul(x, x, x)
    m.addcdiv(x, x, x)
    m.dist(x, x)
    m.equal(x, x.clone())
    m.allclose(x, x.clone())
    x[:50].tolist()
    m.quantile(x, 0.3)
    m.quantile(x, 0.3, dim=1)
    m.cdist(x[:100], x[:100])
    m.cov(x[:100])
    m.corrcoef(x[:100])
    m.vander(x[0])
    m.trapezoid(x)
    m.renorm(x, 2, 0, 1.0)
""".split("\n")[1:-1]
MAKING = """
    m.rand(300000)
    m.randn(300000)
    m.randint(0, 100, (300000,))
    m.randperm(100000)
    m.full((300000,), 0.3).bernoulli()
    m.empty(300000).exponential_()
    m.empty(300000).cauchy_()
    m.empty(300000).geometric_(0.3)
    m.empty(300000).log_normal_()
    m.poisson(m.full((100000,), 3.0))
    m.multinomial(m.ones(1000), 500)
    m.multinomial(m.ones(1000), 50000, replacement=True)
    m.arange(300000)
    m.linspace(0, 1, 300000)
    m.eye(500)
    m.zeros(300000)
    m.full((300000,), 2.0)
    m.tril_indices(300, 300)
    F.dropout(m.ones(300000))
    m.tensor([1.0] * 10000)
    m._standard_gamma(m.ones(50000))
    m.binomial(m.full((50000,), 10.0), m.full((50000,), 0.3))
    m.hann_window(10000)
""".split("\n")[1:-1]
# Expressions of tensors that want gradients, whose shapes _layers has.
LAYERS = """
    F.max_pool2d(a, 2)
    F.max_pool2d(a, 3, 2, 1)
    F.avg_pool2d(a, 2)
    F.avg_pool2d(a, 3, 1, 1)
    F.adaptive_avg_pool2d(a, 7)
    F.adaptive_max_pool2d(a, 7)
    F.lp_pool2d(a, 2, 2)
    F.max_pool1d(s, 3)
    F.avg_pool1d(s, 3)
    F.max_pool3d(v, 2)
    F.avg_pool3d(v, 2)
    F.interpolate(a, scale_factor=2)
    F.interpolate(a, scale_factor=2, mode='bilinear')
    F.interpolate(a, scale_factor=2, mode='bicubic')
    F.interpolate(a, size=(17, 19), mode='bilinear')
    F.interpolate(a, size=(17, 19), mode='area')
    F.interpolate(a, size=(17, 19), mode='bilinear', antialias=True)
    F.interpolate(s, size=300, mode='linear')
    F.interpolate(v, scale_factor=2, mode='trilinear')
    F.pixel_shuffle(a, 2)
    F.unfold(a, 3)
    F.fold(F.unfold(a, 3), (32, 32), 3)
    F.pad(a, (2, 3, 1, 2))
    F.pad(a, (2, 3, 1, 2), mode='reflect')
    F.pad(a, (2, 3, 1, 2), mode='replicate')
    F.pad(a, (2, 3, 1, 2), mode='circular')
    F.grid_sample(a, u, align_corners=False)
    F.grid_sample(a, u, mode='bicubic', align_corners=False)
    F.conv2d(a, w, b, 1, 1)
    F.conv2d(a, w, b, 2, 1)
    F.conv2d(a, w, b, 1, 2, 2)
    F.conv2d(a, wd, None, 1, 1, 1, 16)
    F.conv2d(a, w[:, :4], None, 1, 1, 1, 4)
    F.conv2d(a, w[:, :, :1, :1].contiguous())
    F.conv_transpose2d(a, wt, None, 2, 1)
    F.conv1d(s, w1, None, 1, 2)
    F.conv3d(v, w3, None, 1, 1)
    F.batch_norm(a, None, None, g, g, True)
    F.group_norm(a, 4, g, g)
    F.instance_norm(a)
    F.layer_norm(x, (600,))
    F.layer_norm(f, (16,), g, g)
    F.rms_norm(f, (16,), g)
    F.local_response_norm(a, 5)
    F.softmax(f, -1)
    F.linear(f, f[:64])
    F.normalize(f)
    F.cross_entropy(x, t)
    F.cross_entropy(x, t, label_smoothing=0.1)
    F.nll_loss(x, t)
    F.multi_margin_loss(x, t)
    F.triplet_margin_loss(x, y, y + 1)
    F.scaled_dot_product_attention(q, q, q)
    F.scaled_dot_product_attention(q, q, q, is_causal=True)
    m.einsum('bhqd,bhkd->bhqk', q, q)
    x @ y.t()
    x @ y[0]
    F.embedding(i[0], x)
    F.embedding_bag(i[:5, :100], x)
""".split("\n")[1:-1]

Case = tuple[str, Callable[..., Any], list[Any]]
_random = np.random.default_rng(0)


def _array(shape: tuple[int, ...], dtype: str = "float32", low: float = 0.05, high: float = 0.95) -> np.ndarray:
    if dtype == "bool":
        return _random.random(shape) > 0.5
    if dtype.startswith(("int", "uint")):
        return _random.integers(0 if dtype == "uint8" else -50, 50, shape).astype(dtype)
    part = _random.random(shape) * (high - low) + low
    if dtype.startswith("complex"):
        return (part + 1j * _random.random(shape)).astype(dtype)
    return part.astype("float32" if dtype in ("bfloat16", "float16") else dtype)


def _given(m: Any, array: np.ndarray, dtype: str | None = None) -> Any:
    made = m.from_numpy(array.copy())
    return made.to(getattr(m, dtype)) if dtype in ("bfloat16", "float16") else made


def _both(*arrays: tuple[np.ndarray, str | None]) -> list[list[Any]]:
    return [[_given(m, array, dtype) for array, dtype in arrays] for m in (tp, torch)]


def _function(name: str, *rest: Any, **named: Any) -> Callable[..., Any]:
    return lambda m, *tensors: operator.attrgetter(name)(m)(*tensors, *rest, **named)


def _elementwise() -> Iterator[Case]:
    n = (300_000,)
    for dtype in DTYPES:
        x, y = (_array(n, dtype), dtype), (_array(n, dtype), dtype)
        for name in UNARY:
            yield f"{name} {dtype}", _function(name), _both(x)
        for name in BINARY:
            yield f"{name} {dtype}", _function(name), _both(x, y)
    for dtype in ("float32", "float64"):
        for name in SPECIAL:
            yield f"special.{name} {dtype}", _function(f"special.{name}"), _both((_array(n, dtype), dtype))
    whole, row, column, turned = ((_array(s), None) for s in ((500, 600), (600,), (500, 1), (600, 500)))
    for name in BINARY:
        yield f"{name} by a row", _function(name), _both(whole, row)
        yield f"{name} by a column", _function(name), _both(whole, column)
        yield f"{name} by a transpose", lambda m, a, b, name=name: getattr(m, name)(a, b.t()), _both(whole, turned)
        yield f"{name} by a number", _function(name, 2), _both(whole)


def _reductions() -> Iterator[Case]:
    shapes = {"500x600": (500, 600), "40x30x50x8": (40, 30, 50, 8), "3000x7": (3000, 7), "1250x64": (1250, 64)}
    for name in REDUCING:
        for dtype in DTYPES:
            x = _array((500, 600), dtype), dtype
            yield f"{name} {dtype}", _function(name), _both(x)
            for dim in (0, 1):
                yield f"{name} {dtype} dim={dim}", _function(name, dim=dim), _both(x)
        for title, shape in shapes.items():
            for dim in range(1, len(shape)):
                yield f"{name} {title} dim={dim}", _function(name, dim=dim), _both((_array(shape), None))


def _with_gaps() -> Iterator[Case]:
    def every_second(name: str, *rest: Any) -> Callable[..., Any]:
        call = _function(name, *rest)
        return lambda m, *tensors: call(m, *(t[:, ::2] for t in tensors))

    for dtype in ("float32", "bfloat16", "int64", "uint8", "bool"):
        x, y = (_array((500, 1200), dtype), dtype), (_array((500, 1200), dtype), dtype)
        for name in UNARY:
            yield f"{name} {dtype} with gaps", every_second(name), _both(x)
        for name in BINARY:
            yield f"{name} {dtype} with gaps", every_second(name), _both(x, y)
        for name in REDUCING:
            for dim in (0, 1):
                yield f"{name} {dtype} with gaps dim={dim}", every_second(name, dim), _both(x)


def _places(shape: tuple[int, ...], n: int) -> tuple[np.ndarray, None]:
    return _random.integers(0, n, shape), None


def _written(text: str, names: str) -> Callable[..., Any]:
    code = compile(text.strip(), text.strip(), "eval")

    def run(m: Any, *tensors: Any) -> Any:
        return eval(code, {"m": m, "F": m.nn.functional, **dict(zip(names, tensors, strict=True))})

    return run


def _moves() -> Iterator[Case]:
    indices = _places((500, 600), 500), _places((300,), 500), _places((300,), 600), (_array((500, 600), "bool"), None)
    for dtype in ("float32", "int64", "uint8", "bfloat16", "complex64"):
        x = _array((500, 600), dtype), dtype
        for text in MOVING:
            yield f"{text.strip()}  # {dtype}", _written(text, "xirck"), _both(x, *indices)
        for other in DTYPES:
            text = f"x.to(m.{other})"
            yield f"{text.strip()}  # {dtype}", _written(text, "x"), _both(x)


def _factories() -> Iterator[Case]:
    for text in MAKING:
        yield text.strip(), _written(text, ""), _both()


def _matrices() -> Iterator[Case]:
    for dtype in ("float32", "float64", "complex64"):
        for shape in ((100, 100), (64, 8, 8)):
            a = _array(shape, dtype, -1, 1)
            x = (a @ np.conj(np.swapaxes(a, -1, -2)) + 2 * np.eye(shape[-1], dtype=dtype)).astype(dtype), None
            for name in MATRIX:
                yield f"linalg.{name} {dtype} {shape}", _function(f"linalg.{name}"), _both(x)
            yield f"matmul {dtype} {shape}", _function("matmul"), _both(x, x)
            yield f"linalg.solve {dtype} {shape}", _function("linalg.solve"), _both(x, x)
    for shape in ((64, 1024), (128, 128), (1000, 97), (30, 1000)):
        for dtype in ("float32", "complex64", "float64"):
            for name in FOURIER:
                if not (dtype == "complex64" and name in ("rfft", "rfft2", "ihfft")):
                    yield f"fft.{name} {dtype} {shape}", _function(f"fft.{name}"), _both((_array(shape, dtype), None))


def _with_gradient(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(m: Any, *tensors: Any) -> Any:
        leaves = [t.detach().requires_grad_() if t.is_floating_point() else t for t in tensors]
        call(m, *leaves).sum().backward()
        return leaves[0].grad

    return run


def _layers() -> Iterator[Case]:
    for dtype in FLOATS[:3]:
        x, y = (_array((500, 600), dtype, -1, 1), dtype), (_array((500, 600), dtype), dtype)
        for name in ACTIVATIONS + LOSSES:
            call = _function(f"nn.functional.{name}")
            given = _both(x, y) if name in LOSSES else _both(x)
            yield f"F.{name} {dtype}", call, given
            yield f"F.{name} {dtype} backward", _with_gradient(call), given
    shapes = {
        "a": (8, 16, 32, 32), "v": (2, 8, 12, 12, 12), "s": (8, 32, 200), "x": (500, 600), "y": (500, 600),
        "f": (5000, 16), "w": (32, 16, 3, 3), "w1": (64, 32, 5), "w3": (16, 8, 3, 3, 3), "wt": (16, 32, 3, 3),
        "wd": (16, 1, 3, 3), "b": (32,), "g": (16,), "u": (8, 20, 20, 2), "q": (4, 4, 64, 32),
    }  # fmt: skip
    names = [*shapes, "t", "i"]
    given = _both(*((_array(s, low=-1), None) for s in shapes.values()), _places((500,), 600), _places((500, 600), 500))
    for text in LAYERS:
        call = _written(text, names)
        yield text.strip(), call, given
        yield f"{text.strip()}  # backward", _with_gradient(call), given


def cases() -> Iterator[Case]:
    for family in (_elementwise, _reductions, _with_gaps, _moves, _factories, _matrices, _layers):
        yield from family()


def _time(call: Callable[..., Any], m: Any, tensors: list[Any], times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        call(m, *tensors)
    return (time.perf_counter() - begin) / times


def measure(call: Callable[..., Any], given: list[list[Any]], seconds: float) -> tuple[float, float] | None:
    """The best seconds of tensorpy and of torch; None where one of them refuses the call."""
    both = list(zip((tp, torch), given, strict=True))
    try:
        once = [max(_time(call, m, tensors, 2), 1e-7) for m, tensors in both]
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError):
        return None
    times = max(1, min(200, int(seconds / 10 / max(once))))
    best = [float("inf"), float("inf")]
    for turn in range(max(4, int(seconds / max(once)))):
        for k, (m, tensors) in enumerate(both):
            best[k] = min(best[k], _time(call, m, tensors, times))
        if turn >= 2 and (best[0] <= best[1] or turn >= 20):
            break
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cliffs", description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--above", type=float, default=1.3, help="the least ratio that is told of")
    parser.add_argument("--only", default="", help="calls whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.05, help="how long a turn of a call may take")
    options = parser.parse_args()
    if torch is None:
        raise SystemExit("there is no torch to compare with")
    tp.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    found, count = [], 0
    for name, call, given in cases():
        if options.only not in name or (best := measure(call, given, options.seconds)) is None:
            continue
        count += 1
        if best[0] > options.above * best[1]:
            found.append((best[0] / best[1], *best, name))
    for ratio, own, other, name in sorted(found, reverse=True):
        print(f"{ratio:6.2f} {own * 1e6:10.1f} {other * 1e6:10.1f}  {name}")
    print(f"{len(found)} of {count} calls take more than {options.above} of torch's time on {options.threads} threads")


if __name__ == "__main__":
    main()
