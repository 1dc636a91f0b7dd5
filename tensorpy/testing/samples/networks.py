"""Samples of the operators of networks: pooling, norms, losses, images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .table import LEAVES, Make, samples

REAL = LEAVES["float"]
WIDE = ("float32", "float64")
LOOSE = {"float32": (1e-4, 1e-5), "float16": (1e-2, 1e-2), "bfloat16": (5e-2, 5e-2)}

# ---- pooling ----


def _sizes(value: Any, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value) * n if len(value) == 1 else list(value)


def _windows(
    sizes: tuple[int, ...], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> list[list[range]]:
    """Along each dimension, the places (some outside) that each window covers."""
    n = len(sizes)
    k, p, d = _sizes(kernel, n), _sizes(padding, n), _sizes(dilation, n)
    s = _sizes(stride, n) if stride else k
    found = []
    for i, size in enumerate(sizes):
        room = size + 2 * p[i] - d[i] * (k[i] - 1) - 1
        count = (-(-room // s[i]) if ceil else room // s[i]) + 1
        if ceil and (count - 1) * s[i] >= size + p[i]:
            count -= 1
        starts = [j * s[i] - p[i] for j in range(count)]
        found.append([range(a, min(a + d[i] * (k[i] - 1) + 1, size + p[i]), d[i]) for a in starts])
    return found


def _parts(sizes: tuple[int, ...], wanted: Any) -> list[list[range]]:
    """The windows of adaptive pooling."""
    counts = _sizes(wanted, len(sizes))
    return [[range(i * n // c, -(-(i + 1) * n // c)) for i in range(c)] for n, c in zip(sizes, counts, strict=True)]


def _pool(x: np.ndarray, windows: list[list[range]], reduce: Callable[[np.ndarray, list[range]], Any]) -> np.ndarray:
    """reduce(the planes, a window) for each window of the last dimensions."""
    shape = (*x.shape[: -len(windows)], *map(len, windows))
    if not x.size:
        return np.zeros(shape)
    return np.stack([reduce(x, list(w)) for w in itertools.product(*windows)], -1).reshape(shape)


def _inside(x: np.ndarray, window: list[range]) -> np.ndarray:
    n = len(window)
    places = [[i for i in r if 0 <= i < size] for r, size in zip(window, x.shape[-n:], strict=True)]
    return x[(..., *np.ix_(*places))].reshape(*x.shape[:-n], -1)


def _place(x: np.ndarray, window: list[range]) -> np.ndarray:
    n = len(window)
    flat = np.arange(int(np.prod(x.shape[-n:]))).reshape(x.shape[-n:])
    return _inside(flat, window)[np.argmax(_inside(x, window), -1)]


def _largest(x: np.ndarray, window: list[range]) -> np.ndarray:
    return _inside(x, window).max(-1)


def _max_pool(n: int) -> Callable[..., Any]:
    def reference(
        x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        windows = _windows(x.shape[-n:], kernel, stride, padding, dilation, ceil_mode)
        return _pool(x, windows, _largest), _pool(x, windows, _place)

    return reference


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


def _avg_pool(n: int) -> Callable[..., Any]:
    def reference(
        x: Any,
        kernel: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        def mean(planes: np.ndarray, window: list[range]) -> np.ndarray:
            inside = _inside(planes, window)
            count = int(np.prod([len(r) for r in window])) if count_include_pad else inside.shape[-1]
            return inside.sum(-1) / (divisor_override or count)

        return _pool(x, _windows(x.shape[-n:], kernel, stride, padding, 1, ceil_mode), mean)

    return reference


def _pool_samples(n: int) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        shape = (2, 7, 6, 5)[: n + 1]
        yield make.distinct(*shape), [2] * n
        yield make.distinct(3, *shape), [3] * n, [2] * n, [1] * n
        yield make.distinct(*shape), [2] * n, [1] * n, [0] * n, {"ceil_mode": True}
        yield make.distinct(0, *shape), [2] * n

    return generate


for _n in (1, 3):
    samples(f"max_pool{_n}d", reference=_first(_max_pool(_n)), dtypes=(*REAL, "int64"))(_pool_samples(_n))
    samples(f"max_pool{_n}d_with_indices", reference=_max_pool(_n), dtypes=REAL)(_pool_samples(_n))
    samples(f"avg_pool{_n}d", reference=_avg_pool(_n), dtypes=WIDE)(_pool_samples(_n))


def _adaptive_samples(n: int) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        shape = (2, 7, 6, 5)[: n + 1]
        yield make.distinct(*shape), [3] * n
        yield make.distinct(2, *shape), [1] * n
        yield make.distinct(*shape), [9] * n

    return generate


def _adaptive(n: int, *reductions: Any) -> Callable[..., Any]:
    def reference(x: Any, wanted: Any) -> Any:
        found = [_pool(x, _parts(x.shape[-n:], wanted), reduce) for reduce in reductions]
        return found if len(found) > 1 else found[0]

    return reference


def _mean(x: np.ndarray, window: list[range]) -> np.ndarray:
    return _inside(x, window).mean(-1)


for _n in (1, 2, 3):
    samples(f"adaptive_max_pool{_n}d", reference=_adaptive(_n, _largest, _place), dtypes=REAL)(_adaptive_samples(_n))
    if _n != 2:
        samples(f"adaptive_avg_pool{_n}d", reference=_adaptive(_n, _mean), dtypes=WIDE)(_adaptive_samples(_n))


# ---- norms ----


def _standardised(x: np.ndarray, axes: tuple[int, ...], eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean, rstd = x.mean(axes, keepdims=True), 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _per_channel(x: np.ndarray, w: Any, otherwise: float) -> Any:
    return otherwise if w is None else np.reshape(w, (1, -1) + (1,) * (x.ndim - 2))


def _batch_norm(x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float) -> Any:
    axes = (0, *range(2, x.ndim))
    if training:
        normal, m, r = _standardised(x, axes, eps)
        kept = m.reshape(-1), r.reshape(-1)
    else:
        normal = (x - _per_channel(x, mean, 0)) / np.sqrt(_per_channel(x, var, 1) + eps)
        kept = np.zeros(0), np.zeros(0)
    return normal * _per_channel(x, w, 1) + _per_channel(x, b, 0), *kept


# The statistics that the native forms give as well are not differentiated: operators/test_norm.py has gradients.
@samples(
    "native_batch_norm", reference=_batch_norm, dtypes=WIDE, tolerances=LOOSE, gradcheck=False,
    constant=("running_mean", "running_var"),
)  # fmt: skip
def native_batch_norm(make: Make) -> Iterator[Any]:
    yield make(4, 3, 5), make(3), make(3), None, None, True, 0.1, 1e-5
    yield make(4, 3), None, None, None, None, True, 0.1, 1e-3
    yield make(2, 3, 2, 2), make(3), None, make(3), make(3, low=0.5, high=2), False, 0.1, 1e-5


def _group_norm(x: Any, w: Any, b: Any, n: int, c: int, rest: int, groups: int, eps: float) -> Any:
    normal, mean, rstd = _standardised(x.reshape(n, groups, -1), (2,), eps)
    rows = normal.reshape(n, c, rest)
    out = rows * _per_channel(rows, w, 1) + _per_channel(rows, b, 0)
    return out.reshape(x.shape), mean.reshape(n, groups), rstd.reshape(n, groups)


@samples("native_group_norm", reference=_group_norm, dtypes=WIDE, tolerances=LOOSE, gradcheck=False)
def native_group_norm(make: Make) -> Iterator[Any]:
    yield make(2, 6, 5), make(6), make(6), 2, 6, 5, 3, 1e-5
    yield make(2, 4, 2, 3), None, None, 2, 4, 6, 2, 1e-3


def _instance_norm(x: Any, w: Any, b: Any, mean: Any, var: Any, use_input_stats: bool, *rest: Any) -> Any:
    normal = _standardised(x, tuple(range(2, x.ndim)), rest[1])[0]
    return normal * _per_channel(x, w, 1) + _per_channel(x, b, 0)


@samples("instance_norm", reference=_instance_norm, dtypes=WIDE, tolerances=LOOSE)
def instance_norm(make: Make) -> Iterator[Any]:
    yield make(2, 3, 5), make(3), make(3), None, None, True, 0.1, 1e-5, False
    yield make(2, 3, 2, 2), None, None, None, None, True, 0.1, 1e-3, False


# ---- losses ----


def _reduced(loss: np.ndarray, reduction: int) -> Any:
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


@samples(
    "soft_margin_loss",
    reference=lambda x, t, reduction=1: _reduced(np.log1p(np.exp(-t * x)), reduction),
    dtypes=WIDE,
    tolerances=LOOSE,
)
@samples(
    "hinge_embedding_loss",
    reference=lambda x, t, margin=1.0, reduction=1: _reduced(
        np.where(t != 1, np.maximum(margin - x, 0), 0) + np.where(t != -1, x, 0), reduction
    ),
    dtypes=WIDE,
    tolerances=LOOSE,
)
def signed_loss(make: Make) -> Iterator[Any]:
    for reduction in (0, 1, 2):
        signs = make.array(np.where(np.arange(12).reshape(3, 4) % 3 == 0, 1, -1), make.dtype)
        yield make(3, 4), signs, {"reduction": reduction}


def _ranking(a: Any, b: Any, t: Any, margin: float = 0.0, reduction: int = 1) -> Any:
    return _reduced(np.maximum(-t * (a - b) + margin, 0), reduction)


@samples("margin_ranking_loss", reference=_ranking, dtypes=WIDE, tolerances=LOOSE)
def margin_ranking_loss(make: Make) -> Iterator[Any]:
    for reduction in (0, 1, 2):
        yield make(5), make(5), make.array([1, -1, 1, 1, -1], make.dtype), {"margin": 0.3, "reduction": reduction}


def _cosine_loss(a: Any, b: Any, t: Any, margin: float = 0.0, reduction: int = 1) -> Any:
    cos = (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
    return _reduced(np.where(t == 1, 1 - cos, np.where(t == -1, np.maximum(cos - margin, 0), 0)), reduction)


@samples("cosine_embedding_loss", reference=_cosine_loss, dtypes=WIDE, tolerances=LOOSE)
def cosine_embedding_loss(make: Make) -> Iterator[Any]:
    for reduction in (0, 1, 2):
        yield make(3, 4), make(3, 4), make.array([1, -1, 1], make.dtype), {"margin": 0.1, "reduction": reduction}


def _distance(a: Any, b: Any, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return (np.abs(a - b + eps) ** p).sum(-1, keepdims=keepdim) ** (1 / p)


@samples("pairwise_distance", reference=_distance, dtypes=WIDE, tolerances=LOOSE)
def pairwise_distance(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(4), 3.0
    yield make(4), make(4), 2.0, 1e-3, True


def _triplet(a: Any, p: Any, n: Any, margin: float = 1.0, swap: bool = False, reduction: int = 1) -> Any:
    far = np.minimum(_distance(a, n), _distance(p, n)) if swap else _distance(a, n)
    return _reduced(np.maximum(_distance(a, p) - far + margin, 0), reduction)


@samples("triplet_margin_loss", reference=_triplet, dtypes=WIDE, tolerances=LOOSE)
def triplet_margin_loss(make: Make) -> Iterator[Any]:
    for reduction in (0, 1, 2):
        yield make(3, 4), make(3, 4), make(3, 4), {"reduction": reduction, "margin": 9.0}
        yield make(3, 4), make(3, 4), make(3, 4), {"reduction": reduction, "swap": True, "margin": 9.0}


def _poisson(x: Any, t: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        with np.errstate(all="ignore"):
            more = t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t)
        loss = loss + np.where(t > 1, more, 0)
    return _reduced(loss, reduction)


@samples("poisson_nll_loss", reference=_poisson, dtypes=WIDE, tolerances=LOOSE, gradcheck=False)
def poisson_nll_loss(make: Make) -> Iterator[Any]:
    counts = make.array([[0, 1, 2], [3, 5, 9]], make.dtype)
    for reduction in (0, 1, 2):
        yield make(2, 3), counts, True, False, 1e-8, reduction
        yield make(2, 3, low=0.5, high=4), counts, False, True, 1e-8, reduction


def _nll2d(x: Any, t: Any, w: Any, reduction: int, ignore_index: int) -> Any:
    weight = np.ones(x.shape[1]) if w is None else w
    counts = t != ignore_index
    at = np.where(counts, t, 0)
    factor = weight[at] * counts
    loss = -np.take_along_axis(x, at[:, None], 1)[:, 0] * factor
    if reduction == 0:
        return loss, np.zeros(())
    return (loss.sum() / factor.sum() if reduction == 1 else loss.sum()), factor.sum()


@samples("nll_loss2d_forward", reference=_nll2d, dtypes=WIDE, tolerances=LOOSE, gradcheck=False, constant=("weight",))
def nll_loss2d_forward(make: Make) -> Iterator[Any]:
    target = make.array([[[0, 2], [1, 1]], [[2, 2], [0, 1]]])
    for reduction in (0, 1, 2):
        yield make(2, 3, 2, 2), target, None, reduction, 1
        yield make(2, 3, 2, 2), target, make.array([0.5, 1, 2], make.dtype), reduction, -100


# ---- activations and dropouts ----


@samples(
    "log_sigmoid_forward",
    gradcheck=False,  # its buffer has no gradient
    reference=lambda x: (-np.logaddexp(0, -x), np.exp(-np.abs(x))),
    dtypes=WIDE,
)
def log_sigmoid_forward(make: Make) -> Iterator[Any]:
    yield make(3, 4)


def _glu(x: Any, dim: int = -1) -> Any:
    a, b = np.split(x, 2, dim)
    return a / (1 + np.exp(-b))


@samples("glu", reference=_glu, dtypes=WIDE, tolerances=LOOSE)
def glu(make: Make) -> Iterator[Any]:
    yield make(3, 4)
    yield make(4, 3), 0
    yield make(2, 0)


def _prelu(x: Any, w: Any) -> Any:
    return np.where(x > 0, x, x * (np.reshape(w, -1)[0] if np.size(w) == 1 else _per_channel(x, w, 1)))


@samples("prelu", reference=_prelu, dtypes=REAL)
def prelu(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(4)
    yield make(2, 3, 2), make(1)
    yield make(5), make(1)


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


@samples("special_softmax", reference=_softmax, dtypes=WIDE, tolerances=LOOSE)
@samples("special_log_softmax", reference=lambda x, dim: np.log(_softmax(x, dim)), dtypes=WIDE, tolerances=LOOSE)
def special_softmax(make: Make) -> Iterator[Any]:
    yield make(3, 4), 1
    yield make(3, 4), 0


@samples(
    "alpha_dropout",
    "feature_alpha_dropout",
    "feature_dropout",
    reference=lambda x, p, train: x if not train else x * 0,
    dtypes=WIDE,
    gradcheck=False,
)
def certain_dropout(make: Make) -> Iterator[Any]:
    """What is not drawn; tests/random/test_random.py has the rest."""
    yield make(3, 4), 0.5, False
    yield make(3, 4), 1.0, True


# ---- images ----


def _im2col(x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding])
    windows = _windows(x.shape[-2:], kernel, stride, padding, dilation, False)
    columns = [
        padded[(..., *np.ix_([i + padding[0] for i in a], [i + padding[1] for i in b]))]
        for a, b in itertools.product(*windows)
    ]
    stacked = np.stack(columns, -1)
    return stacked.reshape(*x.shape[:-3], -1, len(columns))


@samples("im2col", reference=_im2col, dtypes=(*WIDE, "complex128", "bfloat16"))
def im2col(make: Make) -> Iterator[Any]:
    yield make(2, 3, 5, 6), [2, 2], [1, 1], [0, 0], [1, 1]
    yield make(2, 6, 7), [3, 2], [2, 1], [1, 2], [2, 1]


def _col2im(columns: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    channels = columns.shape[-2] // (kernel[0] * kernel[1])
    lead = columns.shape[:-2]
    out = np.zeros((*lead, channels, *size), columns.dtype)
    windows = itertools.product(*_windows(tuple(size), kernel, stride, padding, dilation, False))
    for at, (rows, cols) in enumerate(windows):
        block = columns[..., at].reshape(*lead, channels, *kernel)
        for (a, y), (b, x) in itertools.product(enumerate(rows), enumerate(cols)):
            if 0 <= y < size[0] and 0 <= x < size[1]:
                out[..., y, x] += block[..., a, b]
    return out


@samples("col2im", reference=_col2im, dtypes=(*WIDE, "complex128"))
def col2im(make: Make) -> Iterator[Any]:
    yield make(2, 12, 20), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]
    yield make(12, 20), [6, 7], [3, 2], [2, 1], [1, 2], [2, 1]


def _pixel_shuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    parts = np.moveaxis(x.reshape(*lead, c // (r * r), r, r, h, w), -3, -1)
    return np.swapaxes(parts, -4, -3).reshape(*lead, c // (r * r), h * r, w * r)


def _pixel_unshuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    parts = np.moveaxis(x.reshape(*lead, c, h // r, r, w // r, r), (-3, -1), (-4, -3))
    return parts.reshape(*lead, c * r * r, h // r, w // r)


@samples("pixel_shuffle", reference=_pixel_shuffle)
def pixel_shuffle(make: Make) -> Iterator[Any]:
    yield make(2, 8, 2, 3), 2
    yield make(9, 1, 2), 3


@samples("pixel_unshuffle", reference=_pixel_unshuffle)
def pixel_unshuffle(make: Make) -> Iterator[Any]:
    yield make(2, 2, 4, 6), 2
    yield make(1, 3, 6), 3


@samples(
    "channel_shuffle",
    reference=lambda x, g: np.swapaxes(x.reshape(x.shape[0], g, -1, *x.shape[2:]), 1, 2).reshape(x.shape),
)
def channel_shuffle(make: Make) -> Iterator[Any]:
    yield make(2, 6, 3), 2
    yield make(1, 6, 2, 2), 3


def _nearest(x: Any, size: Any) -> Any:
    for axis, n in zip(range(2, x.ndim), size, strict=True):
        x = np.take(x, np.arange(n) * x.shape[axis] // n, axis)
    return x


def _linear(x: Any, size: Any, align_corners: bool) -> Any:
    for axis, n in zip(range(2, x.ndim), size, strict=True):
        m = x.shape[axis]
        if align_corners:
            at = np.arange(n) * ((m - 1) / (n - 1) if n > 1 else 0)
        else:
            at = np.maximum((np.arange(n) + 0.5) * (m / n) - 0.5, 0)
        low = np.minimum(at.astype(int), m - 1)
        high = np.minimum(low + 1, m - 1)
        w = (at - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        x = np.take(x, low, axis) * (1 - w) + np.take(x, high, axis) * w
    return x


def _cubic(x: Any, size: Any, align_corners: bool) -> Any:
    """Keys' kernel with a = -0.75 over four neighbours; the border is repeated."""

    def kernel(d: Any) -> Any:
        d = np.abs(d)
        near = 1.25 * d**3 - 2.25 * d**2 + 1
        return np.where(d <= 1, near, np.where(d < 2, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4), 0))

    for axis, n in zip(range(2, x.ndim), size, strict=True):
        m = x.shape[axis]
        step = ((m - 1) / (n - 1) if n > 1 else 0) if align_corners else m / n
        at = np.arange(n) * step if align_corners else (np.arange(n) + 0.5) * step - 0.5
        low, total = np.floor(at).astype(int), np.zeros(())
        for k in range(-1, 3):
            weight = kernel(at - (low + k)).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
            total = total + np.take(x, np.clip(low + k, 0, m - 1), axis) * weight
        x = total
    return x


def _resize_samples(n: int, vec: bool, smooth: bool) -> Callable[[Make], Iterator[Any]]:
    def generate(make: Make) -> Iterator[Any]:
        for size in ([5, 7, 3][:n], [2, 3, 4][:n]):
            for align in (False, True) if smooth else (None,):
                args = () if align is None else (align,)
                yield (make(2, 2, *(3, 4, 5)[:n]), size, *args, *((None,) if vec else ()))

    return generate


def _without_factors(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: reference(*args[:-1])


for _n in (1, 2, 3):
    _smooth = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")[_n - 1]
    samples(f"upsample_nearest{_n}d", reference=_nearest, dtypes=WIDE)(_resize_samples(_n, False, False))
    samples(f"upsample_nearest{_n}d.vec", reference=_without_factors(_nearest), dtypes=WIDE)(
        _resize_samples(_n, True, False)
    )
    samples(_smooth, reference=_linear, dtypes=WIDE, tolerances=LOOSE)(_resize_samples(_n, False, True))
    samples(f"{_smooth}.vec", reference=_without_factors(_linear), dtypes=WIDE, tolerances=LOOSE)(
        _resize_samples(_n, True, True)
    )
samples("upsample_bicubic2d", reference=_cubic, dtypes=WIDE, tolerances=LOOSE)(_resize_samples(2, False, True))
samples("upsample_bicubic2d.vec", reference=_without_factors(_cubic), dtypes=WIDE, tolerances=LOOSE)(
    _resize_samples(2, True, True)
)


@samples(
    "rrelu", reference=lambda x, lower=1 / 8, upper=1 / 3: np.where(x > 0, x, x * (lower + upper) / 2), dtypes=REAL
)
def rrelu(make: Make) -> Iterator[Any]:
    """Without training nothing is drawn; tests/random/test_random.py has the rest."""
    yield make(3, 4)
    yield make(2, 3), 0.2, 0.4


# ---- distances of many, norms of slices, bilinear forms ----


def _norm(x: np.ndarray, p: float, axis: Any, keepdims: bool = False) -> Any:
    size = np.abs(x)
    if p == np.inf:
        return size.max(axis, keepdims=keepdims)
    if p == 0:
        return (size != 0).sum(axis, keepdims=keepdims).astype(x.dtype)
    return (size**p).sum(axis, keepdims=keepdims) ** (1 / p)


@samples("cdist", reference=lambda a, b, p=2, mode=None: _norm(a[..., :, None, :] - b[..., None, :, :], p, -1),
         dtypes=WIDE, tolerances={"float32": (1e-4, 1e-4), "float64": (1e-9, 1e-9)})  # fmt: skip
def cdist(make: Make) -> Iterator[Any]:
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        yield make(3, 4), make(5, 4), p
    yield make(2, 3, 4), make(2, 5, 4)
    yield make(3, 4), make(5, 4), 2.0, 1
    yield make(27, 3), make(2, 3)
    yield make(27, 3), make(2, 3), 2.0, 2


@samples(
    "pdist",
    reference=lambda x, p=2: np.array([_norm(x[i] - x[j], p, -1) for i in range(len(x)) for j in range(i + 1, len(x))]),
    dtypes=WIDE,
    tolerances=LOOSE,
)
def pdist(make: Make) -> Iterator[Any]:
    for p, rows in itertools.product((1.0, 2.0, 3.0, float("inf")), (4, 2)):
        yield make(rows, 3), p


def _except(v: np.ndarray, p: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return _norm(v, p, None)
    return _norm(v, p, tuple(d for d in range(v.ndim) if d != dim % v.ndim), True)


@samples("norm_except_dim", reference=_except, dtypes=WIDE, tolerances=LOOSE)
def norm_except_dim(make: Make) -> Iterator[Any]:
    for shape, p, dim in (((3, 4), 2, 0), ((3, 4), 2, 1), ((2, 3, 4), 1, 1), ((2, 3), 2, -1), ((4,), 2, 0)):
        yield make(shape), p, dim


@samples("_weight_norm", reference=lambda v, g, dim=0: v * (g / _except(v, 2, dim)), dtypes=WIDE, tolerances=LOOSE)
def weight_norm(make: Make) -> Iterator[Any]:
    yield make(3, 4), make(3, 1)
    yield make(2, 3, 4), make(1, 3, 1), 1


@samples(
    "bilinear",
    reference=lambda a, b, w, bias=None: np.einsum("...i,kij,...j->...k", a, w, b) + (0 if bias is None else bias),
    dtypes=WIDE,
    tolerances=LOOSE,
)
def bilinear(make: Make) -> Iterator[Any]:
    yield make(2, 3), make(2, 4), make(5, 3, 4)
    yield make(2, 6, 3), make(2, 6, 4), make(5, 3, 4), make(5)
    for shape, biased in itertools.product(((), (4,), (2, 1)), (False, True)):
        yield make(*shape, 3), make(*shape, 2), make(4, 3, 2), make(4) if biased else None
