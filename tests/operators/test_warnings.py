"""Where PyTorch warns, the same class is raised as a warning here, with words that programs match."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy
import pytest

import tensorpy as tp

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

F = "torch.nn.functional."
ONE = "torch.ones(2, 2)"
# A call, the warning's class, and the words.
CALLS: list[tuple[str, type[Warning], str]] = [
    (f"{F}softmax({ONE})", UserWarning, "Implicit dimension choice for softmax has been deprecated"),
    (f"{F}softmin({ONE})", UserWarning, "Implicit dimension choice for softmin has been deprecated"),
    (f"torch.nn.LogSoftmax()({ONE})", UserWarning, "Implicit dimension choice for log_softmax"),
    (f"{F}mse_loss(torch.ones(2, 1), torch.ones(2))", UserWarning, "^Using a target size .* that is different"),
    (f"{F}kl_div({ONE}, {ONE})", UserWarning, "^reduction: 'mean' divides the total loss by both"),
    (f"{F}l1_loss({ONE}, {ONE}, size_average=True)", UserWarning, "please use reduction='mean' instead"),
    (f"{F}upsample(torch.ones(1, 1, 2, 2), scale_factor=2)", UserWarning, "Use `nn.functional.interpolate` instead"),
    (f"{F}grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 2))", UserWarning, "^Default grid_sample"),
    (f"{F}affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2))", UserWarning, "changed to align_corners=False since 1.3.0"),
    (f"{F}dropout2d({ONE})", UserWarning, "Received a 2-D input to dropout2d, which is deprecated"),
    (f"{F}dropout2d(torch.ones(1, 2, 3))", UserWarning, "assuming that channel-wise 1D dropout behavior is desired"),
    ("torch.cpu.amp.autocast()", FutureWarning, "^`torch.cpu.amp.autocast.*Please use `torch.amp.autocast..cpu"),
    ("torch.cuda.amp.autocast(enabled=False)", FutureWarning, "^`torch.cuda.amp.autocast.*use `torch.amp.autocast"),
    ("torch.nn.Linear(2, 2).to(torch.cfloat)", UserWarning, "^Complex modules are a new feature"),
    ("torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))", FutureWarning, "^`torch.nn.utils.weight_norm` is deprecated"),
    ("torch.nn.utils.clip_grad_norm(torch.ones(2), 1)", FutureWarning, "^`torch.nn.utils.clip_grad_norm` is now"),
    ("torch.nn.Transformer(8, 2)", UserWarning, "use_nested_tensor is False because .*batch_first was not True"),
    (
        "torch.add(torch.ones(3), 1, out=torch.empty(2))",
        UserWarning,
        "^An output with one or more elements was resized",
    ),
    ("torch.sum(torch.ones(3, 3), 0, out=torch.empty(2))", UserWarning, "^An output with one or more elements was res"),
    ("torch.mm(torch.eye(3), torch.eye(3), out=torch.empty(2))", UserWarning, "^An output with one or more elements"),
    ("torch.max(torch.eye(3), 0, out=(torch.empty(2), torch.empty(0).long()))", UserWarning, "^An output with one or"),
    ("torch.ones(4).resize(2, 2)", UserWarning, "^non-inplace resize is deprecated"),
    ("torch.ones(4).resize_as(torch.ones(2, 2))", UserWarning, "^non-inplace resize_as is deprecated"),
    ("torch.meshgrid(torch.ones(2), torch.ones(2))", UserWarning, "^torch.meshgrid: in an upcoming release"),
    ("torch.range(0, 3)", UserWarning, "^torch.range is deprecated"),
    (f"torch.chain_matmul({ONE}, {ONE})", UserWarning, "^torch.chain_matmul is deprecated"),
    ("torch.lu(torch.eye(2))", UserWarning, "^torch.lu is deprecated in favor of torch.linalg.lu_factor"),
    (
        "torch.stft(torch.ones(8), 4, return_complex=False)",
        UserWarning,
        "^stft with return_complex=False is deprecated",
    ),
    ("torch.std(torch.ones(1))", UserWarning, "^std\\(\\): degrees of freedom is <= 0"),
    ("torch.var_mean(torch.ones(1))", UserWarning, "^var_mean\\(\\): degrees of freedom is <= 0"),
    ("torch.ones(2)[torch.ones(2).byte()]", UserWarning, "^indexing with dtype torch.uint8 is now deprecated"),
    ("(torch.ones(2, requires_grad=True) * 2).grad", UserWarning, "^The .grad attribute of a Tensor that"),
    ("torch.ones((), requires_grad=True).exp().backward(create_graph=True)", UserWarning, "create a reference cycle"),
    ("torch.stft(torch.ones(8), 4, return_complex=True)", UserWarning, "^A window was not provided"),
    ("torch.ones(8).stft(4, return_complex=True)", UserWarning, "^A window was not provided"),
    ("torch.istft(torch.ones(3, 9, dtype=torch.cfloat), 4)", UserWarning, "^A window was not provided"),
    ("torch.arange(5, out=torch.empty(3))", UserWarning, "^The number of elements in the out tensor of shape .3. is 3"),
    ("torch.arange(0, out=torch.empty(2))", UserWarning, "which does not match the computed number of elements 0"),
    ("torch.fft.fftfreq(5, out=torch.empty(3))", UserWarning, "which does not match the computed number of elements 5"),
    (
        "torch.fft.rfftfreq(9, out=torch.empty(7))",
        UserWarning,
        "which does not match the computed number of elements 5",
    ),
    (
        f"{F}conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), padding='same')",
        UserWarning,
        "^Using padding='same'",
    ),
    (f"{F}conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 4), padding='same')", UserWarning, "^Using padding='same'"),
    ("torch.cov(torch.ones(4, 1))", UserWarning, "^cov\\(\\): degrees of freedom is <= 0"),
    ("torch.corrcoef(torch.ones(4, 1))", UserWarning, "^cov\\(\\): degrees of freedom is <= 0"),
    ("torch.searchsorted(torch.ones(4), torch.ones(4, 4).t())", UserWarning, "input value tensor is non-contiguous"),
    ("torch.bucketize(torch.ones(4, 4).t(), torch.ones(4))", UserWarning, "input value tensor is non-contiguous"),
    ("torch.searchsorted(torch.ones(8)[::2], torch.ones(4))", UserWarning, "boundary tensor is non-contiguous"),
    (
        f"{F}affine_grid(torch.ones(1, 2, 3), (1, 2, 2, 1), align_corners=True)",
        UserWarning,
        "^Since version 1.3.0, affine_grid behavior has changed for unit-size grids",
    ),
    *(
        (
            f"torch.{name}([numpy.ones(2), numpy.ones(2)])",
            UserWarning,
            "^Creating a tensor from a list of numpy.ndarrays",
        )
        for name in ("tensor", "as_tensor", "Tensor", "ones(1).new_tensor")
    ),
]


@pytest.mark.parametrize(("call", "category", "words"), CALLS, ids=[call for call, *_ in CALLS])
def test_a_warning_has_the_words(call: str, category: type[Warning], words: str) -> None:
    for library in (tp, torch):
        if library is None:
            continue
        values: dict[str, Any] = {"torch": library, "numpy": numpy}
        before = library.is_warn_always_enabled()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            library.set_warn_always(True)
            try:
                exec(call, values)
            finally:
                library.set_warn_always(before)
        found = [str(w.message) for w in seen if issubclass(w.category, category)]
        assert any(re.search(words, text) for text in found), f"{library.__name__}: {found}"


@pytest.mark.parametrize(
    "call", ["linspace(0, 1, 4, out=o)", "zeros(4, out=o)", "arange(6, out=o)", "range(0, 3, out=o)"]
)
def test_what_is_resized_without_a_warning(call: str) -> None:
    for library in filter(None, (tp, torch)):
        out = library.empty(2, 3)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            eval(f"library.{call}", {"library": library, "o": out})
        assert not [w for w in seen if "out" in str(w.message).split()], library.__name__


def test_a_list_of_arrays_warns_once_and_may_be_an_error() -> None:
    arrays = [numpy.ones(2), numpy.ones(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tp.set_warn_always(True)
        try:
            with pytest.raises(UserWarning, match="list of numpy"):
                tp.tensor(arrays)
        finally:
            tp.set_warn_always(False)
        tp.tensor(arrays)
        assert tp.tensor([numpy.float32(1)]).tolist() == [1]
