"""Quantized tensors: PyTorch's integers, results, printed forms and classes of errors; gradients of fake quantization;
copies, files both ways. What is said of all libraries is an expression, computed in each."""

from __future__ import annotations

import copy
import io
import pickle
import re
from typing import Any

import pytest

import tensorpy as tp
from tensorpy.testing import assert_close

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def names(library: Any) -> dict[str, Any]:
    """What the expressions speak of."""
    x = library.arange(24.0).reshape(2, 3, 4) / 7 - 1
    scales, zero_points = library.tensor([0.1, 0.05, 0.3]), library.tensor([0, 3, 7])
    floats = library.tensor([0.5, 1.0, 2.25])
    return {
        "T": library,
        "F": library.nn.functional,
        "x": x,
        "q": library.quantize_per_tensor(x, 0.05, 30, library.quint8),
        "s": library.quantize_per_tensor(x, 0.03, -3, library.qint8),
        "w": library.quantize_per_tensor(x, 1e-3, 5, library.qint32),
        "c": library.quantize_per_channel(x, scales, zero_points, 1, library.qint8),
        "f": library.quantize_per_channel(x, scales, floats, 1, library.quint8),
        "n": library.quantize_per_channel(x, scales, floats, 1, library.quint4x2),
        "m": library.quantize_per_channel(x, scales, floats, 1, library.quint2x4),
        "o": library.quantize_per_tensor(x[0, :, :3], 0.3, 1, library.quint2x4),
        "p": library.quantize_per_tensor(x[None], 0.05, 30, library.quint8),
        "nan": NAN,
        "inf": INF,
    }


def shown(value: Any) -> Any:
    """A value as what both libraries have: nested lists, numbers and words; a quantized tensor with its quantizer."""
    if type(value).__module__.split(".")[0] in ("torch", "tensorpy") and hasattr(value, "is_quantized"):
        if not value.is_quantized:
            return word(value.dtype), value.tolist()
        scheme = word(value.qscheme())
        how: Any = (value.q_scale(), value.q_zero_point()) if scheme == "per_tensor_affine" else ()
        if not how:
            how = (value.q_per_channel_scales().tolist(), value.q_per_channel_zero_points().tolist())
            how = (*how, value.q_per_channel_axis())
        return word(value.dtype), scheme, how, tuple(value.shape), value.int_repr().tolist()
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value if isinstance(value, (int, float, bool)) else word(value)


def word(value: Any) -> str:
    return str(value).rpartition(".")[2]


ALIKE = """
q
s
w
c
f
n
m
o
[v.dequantize() for v in (q, s, w, c, f, n, m, o)]
[T.quint2x4.itemsize, m.stride(), m.element_size(), m.is_quantized, m.detach(), m.view(2, 3, 4), m == m]
[T.quantize_per_tensor(x.flatten()[:k], 0.3, 1, T.quint2x4).int_repr() for k in range(6)]
[(v.is_quantized, v.layout, v.dtype, v.stride(), v.element_size(), v.is_floating_point()) for v in (q, s, w, c)]
[q.t() if False else q.transpose(0, 2), q.permute(1, 2, 0), q.transpose(0, 1)[1], q[..., 1:3], q[:, ::2]]
[q.view(6, 4), q.reshape(4, 6), q.flatten(), q[0].t(), q.unsqueeze(1), q[:1].squeeze(0), q[:1].squeeze()]
[q.expand(2, 2, 3, 4), q.unfold(2, 2, 1), q.as_strided([2, 2], [12, 4], 1), q.diagonal(0, 0, 1)]
[q.transpose(0, 2).contiguous(), q.transpose(0, 2).clone(), q.transpose(0, 2).stride()]
[c[:, 1:], c[0], c[:, 1], c.unsqueeze(0), c.unsqueeze(3), c[:1].squeeze(0), c.view(2, 3, 2, 2), c[0, :, 1:2]]
c[:, :1].squeeze(1)
[c.clone(), c.contiguous(), c.detach(), f.detach(), n.detach(), f.view(2, 3, 4)]
[list(q), q.split(2, 1), q.chunk(2), q.unbind(1), list(c.unbind(0)), c.split(2, 1), q.split([1, 2], 1)]
[q.flip(0), q.index_select(1, T.tensor([2, 0])), q[T.tensor([1, 0, 1])], q[q > 0.3], q.repeat(2, 1, 1)]
[q.max(), q.min(), *q.max(1), *q.min(2), *q.sort(), *q.topk(2)]
[q == q, q != s, q < 0.5, q >= x, q.le(1), q.gt(s)]
[T.relu(q), T.relu(s), F.relu(w), q.clamp(0, 0.3), s.clamp(-0.5, 0.5), F.hardtanh(q), q.clamp(min=0.2)]
[T.sigmoid(q), T.sigmoid(s), T.tanh(q), T.tanh(s), F.hardsigmoid(q)]
[F.leaky_relu(q, 0.1), F.threshold(q, 0.1, 0.5), F.leaky_relu(s)]
[T.cat([q, q]), T.cat([q, T.quantize_per_tensor(x, 0.1, 3, T.quint8)], 1), T.stack([q, q], 1), T.stack([s, s])]
[q.mean(1), q.mean(), s.mean(2)]
[F.max_pool2d(p, 2, 1), F.avg_pool2d(p, (2, 2), 1), F.adaptive_avg_pool2d(p, 1), F.adaptive_avg_pool2d(p, (2, 3))]
[F.interpolate(p, scale_factor=2, mode="nearest"), F.max_pool2d(p, 2, 2, 1, ceil_mode=True), F.avg_pool2d(p, 3, 1, 1)]
[q.masked_fill(q > 0.2, 0.4), q.clone().copy_(x * 2), q.clone().fill_(0.7), q.clone().copy_(q + 0 if False else q)]
[q.clone().copy_(T.quantize_per_tensor(x, 0.2, 1, T.quint8)), c.clone().copy_(x / 2), F.relu(q.clone(), inplace=True)]
[q.equal(q.clone()), q.equal(s), q.equal(x), c.equal(c.clone()), c.equal(q), q[0, 0, 0].item(), float(s[1, 1, 1])]
[q.to("cpu") is q, q.to(T.quint8) is q, q.detach(), q.data, bool(q[0, 0, 0]), int(q[1, 2, 3]), q.is_contiguous()]
[T.quantize_per_tensor(x, T.tensor(0.1), T.tensor(3), T.quint8)]
T.quantize_per_tensor([x, x[0]], T.tensor([0.1, 0.2]), T.tensor([3, 4]), T.qint8)
[T.quantize_per_tensor_dynamic(x, T.quint8, False), T.quantize_per_tensor_dynamic(x, T.qint8, True)]
[T.quantize_per_tensor_dynamic(x * 1e-6, T.quint8, False), T.quantize_per_tensor_dynamic(-x.abs(), T.qint8, False)]
[T.quantize_per_tensor_dynamic(x * 0, T.quint8, False), T._choose_qparams_per_tensor(x, True)]
[T._choose_qparams_per_tensor(x * 3), T.quantize_per_tensor(T.ones(0, 2), 0.5, 1, T.quint8)]
[T._make_per_tensor_quantized_tensor(T.arange(3, dtype=T.int8), 0.5, 1)]
[T._make_per_channel_quantized_tensor(T.ones(2, 3, dtype=T.uint8), T.tensor([0.5, 0.1]), T.tensor([0, 2]), 0)]
T._empty_affine_quantized([2, 3], scale=0.5, zero_point=3, dtype=T.qint32).shape
T.empty_like(q).q_scale()
T.quantize_per_tensor(T.tensor([nan, inf, -inf, 1e30, -1e30]), 0.1, 3, T.quint8)
T.quantize_per_tensor(T.tensor([nan, inf, -inf, 1e30, -1e30] * 8), 0.1, 3, T.qint8)
T.quantize_per_tensor(T.tensor([inf, -inf, 1e30, -1e30, 2147483520.0]), 1.0, 3, T.qint32)
[T.ones(2).dequantize(), T.arange(3).dequantize(), T.dequantize([q, c])[1], q.storage_offset(), q[1].storage_offset()]
[T.promote_types(T.quint8, T.quint8), T.quint4x2.itemsize, T.qint32.itemsize, q.qscheme(), T.per_tensor_symmetric]
T.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 7)
T.fake_quantize_per_tensor_affine(x, T.tensor(0.1), T.tensor(3), 0, 7)
T.fake_quantize_per_tensor_affine(T.tensor([0.05, 0.15, 0.25, -0.05, 0.35]), 0.1, 0, -128, 127)
T.fake_quantize_per_channel_affine(x, T.tensor([0.1, 0.2, 0.3]), T.tensor([1, 2, 3], dtype=T.int32), 1, 0, 7)
[T.fake_quantize_per_tensor_affine(x.double(), 0.1, 3, 0, 7), T.fake_quantize_per_tensor_affine(x.half(), 0.1, 3, 0, 7)]
"""
# The class of error is PyTorch's; None: PyTorch gives a result, here it is RuntimeError.
REFUSED = """
T.quantize_per_tensor(x, 0.1, 300, T.quint8)
T.quantize_per_tensor(x, 0.1, -1, T.quint8)
T.quantize_per_tensor(x, 0.1, 2**40, T.qint32)
T.quantize_per_tensor(x, 0.1, 0, T.float32)
T.quantize_per_tensor(x.double(), 0.1, 0, T.quint8)
T.quantize_per_tensor(x.int(), 0.1, 0, T.quint8)
T.quantize_per_tensor_dynamic(x, T.qint32, True)
T.quantize_per_tensor_dynamic(T.ones(0), T.quint8, False)
T.quantize_per_channel(x, T.tensor([0.1, 0.2]), T.tensor([0, 1]), 1, T.qint8)
T.quantize_per_channel(x, T.tensor([0.1, 0.2]), T.tensor([0, 1]), 3, T.qint8)
T.quantize_per_channel(x, T.tensor([0.1, 0.2]), T.tensor([0, 1]), -1, T.qint8)
T.quantize_per_channel(x, T.tensor([0.1, 0.2]), T.tensor([0, 1, 2]), 0, T.qint8)
T.quantize_per_channel(x, T.tensor([0.1, 0.2]), T.tensor([0, 1000]), 0, T.qint8)
T.quantize_per_channel(x, T.tensor([[0.1, 0.2]]), T.tensor([0, 1]), 0, T.qint8)
T.quantize_per_channel(x, T.tensor([1, 2]), T.tensor([0, 1]), 0, T.qint8)
T._make_per_tensor_quantized_tensor(T.arange(3), 0.5, 1)
T._empty_affine_quantized([2, 3], scale=0.1, zero_point=3, dtype=T.float32)
q + q
q + 1
q.sin()
q.sum()
q.argmax()
x.copy_(q)
q.float()
q.half()
q.numpy()
q.tolist()
q.requires_grad_()
T.ones(2).to(T.quint8)
T.zeros(2, dtype=T.quint8)
T.tensor([1], dtype=T.quint8)
T.arange(3, dtype=T.quint8)
T.ones(3).sum(dtype=T.quint8)
T.promote_types(T.quint8, T.float32)
T.result_type(q, x)
T.finfo(T.quint8)
T.cat([q, x])
T.cat([c, c])
T.cat([q, s])
T.mm(q[0], q[0].t())
q.q_per_channel_scales()
c.q_scale()
c.transpose(0, 1)
c.permute(1, 0, 2)
c.expand(2, 2, 3, 4)
x.int_repr()
x.q_scale()
x.q_zero_point()
x.qscheme()
T.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 7)
T.fake_quantize_per_tensor_affine(x, 0.1, 3, 7, 0)
T.fake_quantize_per_channel_affine(x, T.tensor([0.1, 0.2]), T.tensor([1, 2]), 1, 0, 7)
T.fake_quantize_per_channel_affine(x, T.tensor([0.1, 0.2]), T.tensor([1, 2]), 5, 0, 7)
"""
# Refused here; PyTorch makes a tensor of it that is no good.
REFUSED_HERE = """
T.quantize_per_tensor(x, 0.0, 0, T.quint8)
T.quantize_per_tensor(x, nan, 0, T.quint8)
T.quantize_per_tensor(x, inf, 0, T.quint8)
T.quantize_per_tensor(x, 1e-60, 0, T.quint8)
T.quantize_per_channel(x, T.tensor([0.1, 0.0]), T.tensor([0, 1]), 0, T.qint8)
T.quantize_per_channel(x, T.tensor([0.1, nan]), T.tensor([0, 1]), 0, T.qint8)
T._make_per_tensor_quantized_tensor(T.arange(3, dtype=T.uint8), inf, 1)
T._empty_affine_quantized([2, 3], scale=nan, zero_point=3, dtype=T.quint8)
T.quantize_per_tensor_dynamic(T.tensor([1.0, nan]), T.quint8, False)
T.empty(2, dtype=T.quint8)
T.ones(3).view(T.quint8)
T.ones(3).to(q)
T.ones(3).type_as(q)
c.flatten()
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", lines(ALIKE))
def test_results_are_pytorchs_to_the_bit(expression: str, torch: Any) -> None:
    ours, theirs = (shown(eval(expression, names(library))) for library in (tp, torch))
    assert str(ours) == str(theirs)  # NaN too


def error_of(expression: str, library: Any) -> type[Exception] | None:
    try:
        eval(expression, names(library))
    except Exception as error:
        return type(error)
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", lines(REFUSED))
def test_errors_are_of_pytorchs_class(expression: str, torch: Any) -> None:
    theirs = error_of(expression, torch)
    assert theirs is not None
    allowed = {theirs, RuntimeError} if theirs is NotImplementedError else {theirs, NotImplementedError}
    assert error_of(expression, tp) in allowed


@pytest.mark.parametrize("expression", lines(REFUSED_HERE))
def test_what_has_no_scale_or_no_integers_is_refused(expression: str) -> None:
    assert error_of(expression, tp) is RuntimeError


@pytest.mark.parametrize("name", ["q", "s", "w", "c", "f", "n"])
def test_printed_forms_are_pytorchs(name: str, torch: Any) -> None:
    ours, theirs = (re.sub(r"\s+", " ", str(names(library)[name])) for library in (tp, torch))
    assert ours.replace("tensorpy.", "torch.") == theirs


def test_random_numbers_become_pytorchs_integers(torch: Any) -> None:
    source = torch.Generator().manual_seed(tp.initial_seed() % 2**31)
    for _ in range(60):
        x = torch.randn(257, generator=source) * 10 ** float(torch.randint(-3, 4, (), generator=source))
        scale = 10 ** float(torch.randn((), generator=source))
        zero_point = int(torch.randint(0, 128, (), generator=source))
        mine = tp.from_numpy(x.numpy())
        for dtype in ("quint8", "qint8", "qint32"):
            theirs = torch.quantize_per_tensor(x, scale, zero_point, getattr(torch, dtype))
            ours = tp.quantize_per_tensor(mine, scale, zero_point, getattr(tp, dtype))
            assert ours.int_repr().tolist() == theirs.int_repr().tolist()
            assert ours.dequantize().tolist() == theirs.dequantize().tolist()
            scales = torch.rand(257, generator=source) + 0.01
            zeros = torch.randint(0, 128, (257,), generator=source)
            theirs = torch.quantize_per_channel(x, scales, zeros, 0, getattr(torch, dtype))
            both = tp.from_numpy(scales.numpy()), tp.from_numpy(zeros.numpy())
            ours = tp.quantize_per_channel(mine, *both, 0, getattr(tp, dtype))
            assert ours.int_repr().tolist() == theirs.int_repr().tolist()
            assert ours.dequantize().tolist() == theirs.dequantize().tolist()


# ---- views ----


def test_views_share_integers() -> None:
    q = names(tp)["q"]
    q[0].copy_(tp.zeros(3, 4))
    assert (q.int_repr()[0] == 30).all() and (q.int_repr()[1] != 30).any()
    alias = q.detach()
    q.fill_(1.0)
    assert alias.equal(q) and alias.untyped_storage().data_ptr() == q.untyped_storage().data_ptr() == q.data_ptr()
    assert q[1].data_ptr() == q.data_ptr() + 12


def test_writing_keeps_dtypes_apart() -> None:
    q, s = names(tp)["q"], names(tp)["s"]
    for write in (lambda: q.copy_(s), lambda: q.copy_(names(tp)["c"]), lambda: q.copy_(tp.ones(5))):
        with pytest.raises(RuntimeError):
            write()


def test_no_gradient_goes_through_integers() -> None:
    x = tp.ones(2, requires_grad=True)
    assert not tp.quantize_per_tensor(x, 0.5, 0, tp.quint8).requires_grad


# ---- copies and files ----


def test_copies_and_pickles() -> None:
    for name, tensor in names(tp).items():
        if isinstance(tensor, tp.Tensor) and tensor.is_quantized:
            for made in (copy.deepcopy(tensor), copy.copy(tensor), pickle.loads(pickle.dumps(tensor))):
                assert made.equal(tensor) and made.dtype is tensor.dtype, name
    assert pickle.loads(pickle.dumps(tp.per_channel_affine)) is tp.per_channel_affine
    assert copy.deepcopy(tp.qint8) is tp.qint8


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["q", "s", "w", "c", "f", "n"])
def test_files_go_both_ways(name: str, torch: Any) -> None:
    for source, target in ((tp, torch), (torch, tp)):
        tensor, file = names(source)[name], io.BytesIO()
        part = tensor[1] if name not in "fn" else tensor  # views that PyTorch has not
        source.save({"whole": tensor, "part": part}, file)
        file.seek(0)
        read = target.load(file, weights_only=target is tp)
        for key, wanted in (("whole", tensor), ("part", part)):
            if name in "fn" and target is torch:  # it reads float zero points as whole numbers
                assert read[key].int_repr().tolist() == wanted.int_repr().tolist()
            else:
                assert shown(read[key]) == shown(wanted)


@pytest.mark.parametrize(
    "quantizer",
    [
        (),
        (tp.per_tensor_affine,),
        (tp.per_tensor_affine, NAN, 0),
        (tp.per_tensor_affine, 0.0, 0),
        (tp.per_tensor_affine, 0.5, 300),
        (tp.per_tensor_affine, "0.5", 0),
        (tp.per_channel_affine, tp.ones(2), tp.zeros(3), 0),
        (tp.per_channel_affine, tp.ones(3), tp.zeros(3), 0),
        (tp.per_channel_affine, tp.ones(2), tp.zeros(2), 7),
        (tp.per_channel_affine, tp.ones(2) * INF, tp.zeros(2), 0),
        (tp.per_channel_affine, tp.ones(2), tp.full((2,), 1000), 0),
        (tp.per_channel_affine, 1, 2, 0),
        (tp.per_tensor_symmetric, 0.5, 0),
        ("per_tensor_affine", 0.5, 0),
    ],
)
def test_what_a_file_says_of_integers_is_checked(quantizer: Any) -> None:
    from tensorpy._tensor.quantized import rebuild_of

    with pytest.raises((RuntimeError, TypeError, ValueError)):
        rebuild_of(tp.zeros(2, 3, dtype=tp.uint8), tp.quint8, quantizer)


# ---- fake quantization ----


@pytest.mark.parametrize("by_channel", [False, True])
def test_gradients_pass_where_numbers_are_in_range(by_channel: bool, torch: Any) -> None:
    def gradient(library: Any) -> Any:
        x = (names(library)["x"] * 2).requires_grad_()
        if by_channel:
            scale, zero_point = library.tensor([0.1, 0.2, 0.3]), library.tensor([1, 2, 3], dtype=library.int32)
            y = library.fake_quantize_per_channel_affine(x, scale, zero_point, 1, 0, 7)
        else:
            y = library.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 7)
        (y * names(library)["x"]).sum().backward()
        return x.grad.tolist()

    assert gradient(tp) == gradient(torch)


def test_fake_quantization_is_quantizing_and_reading() -> None:
    x = names(tp)["x"]
    assert_close(
        tp.fake_quantize_per_tensor_affine(x, 0.05, 30, 0, 255),
        tp.quantize_per_tensor(x, 0.05, 30, tp.quint8).dequantize(),
        rtol=0,
        atol=0,
    )


@pytest.mark.parametrize(
    "text",
    [
        "F.avg_pool3d(q[None], 2)",
        "F.avg_pool3d(q[None], 3, 2, 1, count_include_pad=False)",
        "F.adaptive_avg_pool3d(q[None], (2, 3, 5))",
        "F.interpolate(q, scale_factor=2, mode='bilinear', align_corners=True)",
        "F.interpolate(q[None], scale_factor=2)",
        "F.interpolate(q, size=(5, 7), mode='nearest-exact')",
        "F.interpolate(q[None], size=(3, 5, 7), mode='nearest-exact')",
        "F.grid_sample(q, grid, align_corners=True)",
        "library.std(q, dim=(2, 3))",
        "library.prelu(q, library.quantize_per_tensor(library.tensor([0.2]), 0.01, 0, library.quint8))",
        "F.pad(q[0], (1, 2), mode='reflect')",
        "F.pad(q, (1, 2, 2, 1), mode='reflect')",
        "F.pad(q, (1, 1))",
    ],
)
def test_images_and_volumes_as_pytorch_has_them(text: str, torch: Any) -> None:
    found = []
    for library in (tp, torch):
        numbers = library.sin(library.arange(288.0)).reshape(2, 4, 6, 6)
        q = library.quantize_per_tensor(numbers, 0.05, 10, library.quint8)
        grid = library.linspace(-1, 1, 36).reshape(2, 3, 3, 2)
        found.append(eval(text, {"F": library.nn.functional, "library": library, "q": q, "grid": grid}))
    own, theirs = found
    assert (own.shape, own.q_scale(), own.q_zero_point()) == (theirs.shape, theirs.q_scale(), theirs.q_zero_point())
    apart = own.int_repr().int() - tp.tensor(theirs.int_repr().int().numpy())
    assert int(apart.abs().max()) <= ("bilinear" in text or "grid" in text)


@pytest.mark.parametrize("dtype", ["quint4x2", "quint2x4"])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_packed_channels_have_zero_points_in_floats(dtype: str, kind: str) -> None:
    at = tp.zeros(3, dtype=getattr(tp, kind))
    with pytest.raises(NotImplementedError, match="zero points in whole numbers"):
        tp.quantize_per_channel(tp.ones(3, 3), tp.ones(3), at, 0, getattr(tp, dtype))
    assert tp.quantize_per_channel(tp.ones(3, 3), tp.ones(3), at.float(), 0, getattr(tp, dtype)).dequantize().sum() == 9


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("dtype", [tp.quint8, tp.qint8, tp.qint32])
def test_elements_are_set_by_index(dtype: Any, channels: bool) -> None:
    """What is written is quantized as the tensor is; aliases and views see it."""
    x = tp.arange(6.0).reshape(2, 3)
    writes: list[tuple[Any, Any]] = [
        (0, 11.0), ((0, 1), 2.5), (slice(None), tp.full((2, 3), 1.5)), ((0,), tp.ones(3)), (tp.tensor([0]), 1.0),
        (x > 2, 0.5), (tp.tensor([1]), tp.ones(1, 3)), (..., 3), ((slice(None), [0, 2]), 2.0), (0, [1.0, 2.0, 3.0]),
    ]  # fmt: skip
    for key, value in writes:
        if channels:
            q = tp.quantize_per_channel(x, tp.tensor([0.5, 0.25]), tp.tensor([3, 5]), 0, dtype)
        else:
            q = tp.quantize_per_tensor(x, 0.5, 3, dtype)
        alias, dense = q.detach(), x.clone()
        q[key] = value
        dense[key] = value
        assert q.dequantize().equal(dense) and alias.dequantize().equal(dense), (key, q)
    q = tp.quantize_per_tensor(x, 0.5, 3, dtype)
    q[:1] = q[1:]
    assert q.dequantize()[0].tolist() == [3, 4, 5]
    with pytest.raises(RuntimeError, match="accumulate"):
        q.index_put_((tp.tensor([0]),), tp.tensor(1.0), accumulate=True)


def test_resize() -> None:
    q = tp.quantize_per_tensor(tp.arange(6.0).reshape(2, 3), 0.5, 1, tp.quint8)
    alias = q.detach()
    assert q.resize_(2, 2) is q and q.int_repr().tolist() == [[1, 3], [5, 7]] and q.q_scale() == 0.5
    assert alias.shape == (2, 3) and alias.int_repr().tolist() == [[1, 3, 5], [7, 9, 11]]
    alias.fill_(0.0)
    assert q.dequantize().tolist() == [[0.0, 0.0], [0.0, 0.0]]  # of one memory
    assert alias[1].resize_(2).shape == (2,) and q.resize_(4, 4).shape == (4, 4)
    assert alias.resize_as_(tp.ones(3, 2)).shape == (3, 2)
    assert tp.ones(2).resize_as_(alias).shape == (3, 2)
    with pytest.raises(RuntimeError):
        q.resize_(1, 1, 2, 2, memory_format=tp.channels_last)
    with pytest.raises(RuntimeError):
        q.resize_(-1)
    channels = tp.quantize_per_channel(tp.ones(2, 3), tp.ones(2), tp.zeros(2, dtype=tp.int64), 0, tp.quint8)
    with pytest.raises(RuntimeError, match="per-tensor"):
        channels.resize_(3, 2)


def test_choose_qparams_optimized() -> None:
    x = tp.tensor([0.0, 1.0, 2.0, 3.0, 40.0])
    assert tp.choose_qparams_optimized(x, 4, 200, 0.16, 2) == (tp.tensor([3.0]), tp.tensor([0.0]))
    greatest, least = tp.choose_qparams_optimized(tp.linspace(-1, 1, 1000) ** 5, 1000, 200, 0.8, 2)
    assert greatest.dtype is tp.float32 and greatest.shape == least.shape == (1,)
    assert abs(float(greatest) - 0.9) < 0.02 and abs(float(least) + 0.49) < 0.02  # what PyTorch finds
    for numel, bins, ratio, bits in (
        (6, 200, 0.16, 8),
        (0, 200, 0.16, 8),
        (5, 0, 0.16, 8),
        (5, 2, 2.0, 8),
        (5, 2, 0.1, 0),
    ):
        with pytest.raises(RuntimeError):
            tp.choose_qparams_optimized(x, numel, bins, ratio, bits)
    with pytest.raises(RuntimeError):
        tp.choose_qparams_optimized(x.double(), 5, 200, 0.16, 8)


def test_operators_that_write_and_pool() -> None:
    ops = tp.ops.quantized
    a = tp.quantize_per_tensor(tp.arange(12.0).reshape(3, 4) - 6, 0.1, 70, tp.quint8)
    for name in ("add", "add_relu", "mul", "mul_relu"):
        out = tp._empty_affine_quantized([3, 4], scale=0.4, zero_point=30, dtype=tp.quint8)
        assert getattr(ops, f"{name}_out")(a, a, out) is out and out.equal(getattr(ops, name)(a, a, 0.4, 30))
    for name in ("add_scalar", "add_scalar_relu", "mul_scalar", "mul_scalar_relu"):
        out = a.clone()
        assert getattr(ops, f"{name}_out")(a, 1.5, out) is out and out.equal(getattr(ops, name)(a, 1.5))
    for name in ("cat", "cat_relu"):
        out = tp._empty_affine_quantized([6, 4], scale=0.4, zero_point=30, dtype=tp.quint8)
        assert getattr(ops, f"{name}_out")([a, a], 0, out).equal(getattr(ops, name)([a, a], 0, 0.4, 30))
    channels = tp.quantize_per_channel(tp.ones(3, 4), tp.ones(3), tp.zeros(3, dtype=tp.int64), 0, tp.quint8)
    with pytest.raises(RuntimeError, match="supported by cat"):
        ops.cat([channels, a], 0, 0.1, 0)
    numbers = a.dequantize()
    assert ops.clamp(a, -0.5, 0.7).equal(a.clamp(-0.5, 0.7)) and ops.threshold(a, 0.3, 0.5).equal(
        tp.threshold(a, 0.3, 0.5)
    )
    assert ops.dropout(a, 0.1, 70).equal(a)
    signals, images = a.reshape(1, 3, 4), a.reshape(1, 1, 3, 4)
    pooled = tp.nn.functional.max_pool1d(signals.dequantize(), 2, 1, 0, 1, False)
    assert ops.max_pool1d(signals, [2], [1], [0], [1], False).dequantize().equal(pooled)
    assert ops.max_pool2d(images, [2, 2], [1, 1], [0, 0], [1, 1], False).shape == (1, 1, 2, 3)
    means = tp.nn.functional.adaptive_avg_pool1d(signals, 2).dequantize()
    assert (means - tp.nn.functional.adaptive_avg_pool1d(numbers.reshape(1, 3, 4), 2)).abs().max() <= 0.1
    limits = {tp.quint8: (0, 255), tp.qint8: (-128, 127), tp.qint32: (-(2**31), 2**31 - 1)}
    assert all((tp.iinfo(d).min, tp.iinfo(d).max) == ends for d, ends in limits.items())
