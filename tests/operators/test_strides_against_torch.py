"""The layout of results and gradients against torch's, over op_db's samples: contiguous, transposed, channels last.

Where sizes are one, and in tensors of one element or none, strides say nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorpy as tp
import tensorpy.nn.functional as F

torch = pytest.importorskip("torch")
pytest.importorskip("torch.testing._internal.common_methods_invocations")

from test_against_torch import COVERED, Skip, convert, counterpart, flatten, label  # noqa: E402

SAMPLES = 8  # of an entry, in each layout
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def transposed(t: Any) -> Any:
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.dim() > 1 else t


def channels_last(t: Any) -> Any:
    return t.contiguous(memory_format=FORMATS[t.dim()]) if t.dim() in FORMATS else t


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda t: t.contiguous(),
    "transposed": transposed,
    "channels last": channels_last,
}


def laid_out(value: Any, layout: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise Skip
        made = layout(value.detach())
        return made.requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(laid_out(v, layout) for v in value)
    return value


def same_in_ours(value: Any) -> Any:
    """A tensor of ours with the same strides."""
    if isinstance(value, torch.Tensor):
        made = convert(value.detach())
        return made.requires_grad_(value.requires_grad)
    return type(value)(same_in_ours(v) for v in value) if type(value) in (list, tuple) else convert(value)


def leaves(value: Any, kind: Any) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from leaves(v, kind)


def strides(t: Any) -> list[int] | None:
    if t is None:
        return None
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() > 1 else []


def seen(t: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """The strides of results, and of the gradients of inputs for gradients that are laid out like the results."""
    results = [r for r in flatten(function(*args, **kwargs)) if isinstance(r, t.Tensor)]
    told = [(f"result {i}", strides(r)) for i, r in enumerate(results)]
    inputs = [x for x in leaves([args, list(kwargs.values())], t.Tensor) if x.requires_grad]
    outs = [r for r in results if r.requires_grad]
    if not inputs or not outs:
        return told
    for name, gradients in (
        ("gradient", [t.ones_like(r) for r in outs]),
        ("gradient of the sum", [t.ones((), dtype=r.dtype).expand(r.shape) for r in outs]),
    ):
        found = t.autograd.grad(outs, inputs, gradients, allow_unused=True, retain_graph=True)
        told += [(f"{name} by {i}", strides(g)) for i, g in enumerate(found)]
    return told


def problems_of(info: Any, layout: str) -> list[str]:
    function, problems = counterpart(info), []
    samples = list(info.sample_inputs("cpu", torch.float32, requires_grad=info.supports_autograd))
    for sample in samples[:: max(1, -(-len(samples) // SAMPLES))]:
        try:
            given = laid_out([sample.input, *sample.args], LAYOUTS[layout])
            named = {k: laid_out(v, LAYOUTS[layout]) for k, v in sample.kwargs.items()}
            expected = seen(torch, info.op, given, named)
            ours = [same_in_ours(v) for v in given]
            got = seen(tp, function, ours, {k: same_in_ours(v) for k, v in named.items()})
        except Exception:  # what one of them refuses is test_against_torch.py's
            continue
        sizes = [tuple(x.shape) for x in leaves(given, torch.Tensor)]
        for (what, mine), (_, theirs) in zip(got, expected, strict=False):
            if mine != theirs and mine is not None and theirs is not None:
                problems.append(f"{sizes} {sample.args} {sample.kwargs}: {what} {mine}, expected {theirs}"[:400])
    return problems


# Why a layout is another one than PyTorch's.
OTHERWISE: dict[str, str] = {
    **dict.fromkeys(
        (
            "cholesky",
            "cholesky_inverse",
            "cholesky_solve",
            "linalg.cholesky",
            "linalg.cholesky_ex",
            "linalg.householder_product",
            "linalg.lstsq",
            "linalg.lstsq-grad_oriented",
            "linalg.pinv",
            "linalg.pinv-hermitian",
            "linalg.qr",
            "linalg.solve",
            "linalg.solve_ex",
            "ormqr",
            "pinverse",
            "qr",
            "triangular_solve",
        ),
        "what LAPACK returns lies by columns, here by rows where it is copied anyhow",
    ),
    **dict.fromkeys(
        (
            "fft.fft",
            "fft.fft2",
            "fft.fftn",
            "fft.hfft",
            "fft.hfft2",
            "fft.hfftn",
            "fft.ifft",
            "fft.ifft2",
            "fft.ifftn",
            "fft.ihfft",
            "fft.ihfft2",
            "fft.ihfftn",
            "fft.irfft",
            "fft.irfft2",
            "fft.irfftn",
            "fft.rfft",
            "fft.rfft2",
            "fft.rfftn",
        ),
        "a transform along a dimension that is not the last leaves rows as they were",
    ),
    **dict.fromkeys(
        (
            "nn.functional.adaptive_avg_pool3d",
            "nn.functional.adaptive_max_pool3d",
            "nn.functional.avg_pool3d",
            "nn.functional.interpolate-area",
            "nn.functional.interpolate-bicubic",
            "nn.functional.interpolate-nearest",
            "nn.functional.interpolate-nearest-exact",
            "nn.functional.pad-circular",
            "nn.functional.upsample_nearest",
            "stack",
        ),
        "channels stay last, where PyTorch's kernel of this operator loses them",
    ),
    **dict.fromkeys(
        (
            "nn.functional.adaptive_avg_pool1d",
            "nn.functional.avg_pool1d",
            "nn.functional.conv1d",
            "nn.functional.conv_transpose1d",
        ),
        "signals are pooled and convolved as they lie in memory",
    ),
    **dict.fromkeys(
        (
            "index_add",
            "index_copy",
            "index_reduce-amax",
            "index_reduce-amin",
            "index_reduce-mean",
            "index_reduce-prod",
            "masked_fill",
            "masked_scatter",
            "masked_select",
            "nn.functional.poisson_nll_loss",
            "nn.functional.rms_norm",
            "renorm",
            "resize_as_",
            "scatter",
            "scatter_add",
            "scatter_reduce-amax",
            "scatter_reduce-amin",
            "scatter_reduce-mean",
            "scatter_reduce-prod",
            "scatter_reduce-sum",
            "take",
        ),
        "the copy that is written into lies as its original does, in PyTorch in rows",
    ),
    **dict.fromkeys(
        (
            "angle",
            "atanh",
            "complex",
            "fmax",
            "fmin",
            "ldexp",
            "logaddexp2",
            "masked.amax",
            "masked.amin",
            "masked.norm",
            "max-reduction_no_dim",
            "median",
            "min-reduction_no_dim",
            "mvlgamma-mvlgamma_p_1",
            "mvlgamma-mvlgamma_p_3",
            "mvlgamma-mvlgamma_p_5",
            "nanmedian",
            "nn.functional.binary_cross_entropy_with_logits",
            "nn.functional.huber_loss",
            "nn.functional.linear_cross_entropy-chunked",
            "nn.functional.linear_cross_entropy-chunked_none",
            "nn.functional.mse_loss",
            "nn.functional.multi_margin_loss",
            "nn.functional.nll_loss",
            "nn.functional.smooth_l1_loss",
            "nn.functional.soft_margin_loss",
            "polar",
            "prod",
            "sgn",
            "special.xlog1py",
            "xlogy",
        ),
        "a gradient lies as the input does, in PyTorch in rows or as another argument does",
    ),
    **dict.fromkeys(
        (
            "conj_physical",
            "nn.functional.channel_shuffle",
            "nn.functional.linear",
            "nn.functional.pixel_shuffle",
            "nn.functional.pixel_unshuffle",
            "rot90",
            "view_as_complex",
        ),
        "the gradient of a sum is not copied before something needs it",
    ),
    **dict.fromkeys(
        (
            "__rmatmul__",
            "addbmm",
            "addmv",
            "cdist",
            "einsum",
            "matmul",
            "nn.functional.bilinear",
            "nn.functional.conv2d",
            "nn.functional.conv3d",
            "nn.functional.conv_transpose2d",
            "nn.functional.conv_transpose3d",
            "nn.functional.scaled_dot_product_attention",
            "tensordot",
        ),
        "products are computed in another order, or transposed, and so are their gradients",
    ),
    **dict.fromkeys(
        (
            "block_diag",
            "unsafe_chunk",
            "unsafe_split",
        ),
        "parts are copies, or a gradient is a part of another tensor",
    ),
}


FLOATS = [i for i in COVERED if i.supports_dtype(torch.float32, "cpu")]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("info", [i for i in FLOATS if label(i) not in OTHERWISE], ids=label)
def test_strides(info: Any, layout: str) -> None:
    problems = problems_of(info, layout)
    assert not problems, "\n".join(problems[:6])


@pytest.mark.parametrize("info", [i for i in FLOATS if label(i) in OTHERWISE], ids=label)
def test_what_is_listed_still_differs(info: Any) -> None:
    """So that the list does not outlive its reasons."""
    assert any(problems_of(info, layout) for layout in LAYOUTS), "lies as in PyTorch: take it off the list"


def test_the_list_names_what_there_is() -> None:
    assert not set(OTHERWISE) - {label(i) for i in FLOATS}


@pytest.mark.parametrize("shape", [(1, 1, 1, 4), (2, 3, 5, 6), (3, 4, 4), (1, 2, 4, 1)])
@pytest.mark.parametrize("kernel", [1, (1, 2), (2, 1)])
def test_windows_share_no_memory(shape: tuple[int, ...], kernel: Any) -> None:
    """Windows of one row or column could be a view whose elements overlap: no in-place operator would take it."""
    for stride in (1, (1, 2), 2):
        image = tp.arange(float(math.prod(shape))).view(shape)
        try:
            expected = torch.nn.functional.unfold(torch.from_numpy(image.numpy()), kernel, stride=stride)
        except RuntimeError:  # the kernel is larger than the image
            continue
        columns = F.unfold(image, kernel, stride=stride)
        assert columns.stride() == expected.stride()
        assert columns.add_(1).tolist() == expected.add_(1).tolist()
