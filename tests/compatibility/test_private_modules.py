"""Modules of PyTorch's that programs use though their names begin with an underscore, and switches without effect."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import _linalg_utils as lu
from tensorpy import _prims_common as prims


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__


# ---- dim_order ----

FORMS = [
    "t.ones(2, 3, 4, 5)",
    "t.ones(2, 3, 4, 5).to(memory_format=t.channels_last)",
    "t.ones(2, 3, 4, 5, 6).to(memory_format=t.channels_last_3d)",
    "t.ones(2, 3).t()",
    "t.ones(2, 1, 3).transpose(0, 2)",
    "t.ones(2, 1, 1, 5)",
    "t.ones(1, 3).expand(4, 3)",
    "t.ones(())",
    "t.ones(2, 3, 4).permute(2, 0, 1)",
]


@pytest.mark.parametrize("form", FORMS)
def test_dim_order_is_pytorchs(form: str) -> None:
    torch = pytest.importorskip("torch")
    for words in ("False", "True", "[t.contiguous_format, t.channels_last]", "3"):
        ours, theirs = (outcome(eval, f"{form}.dim_order(ambiguity_check={words})", {"t": t}) for t in (tp, torch))
        assert ours == theirs, words


def test_dim_order() -> None:
    x = tp.ones(2, 3, 4, 5)
    assert x.dim_order() == (0, 1, 2, 3)
    assert x.to(memory_format=tp.channels_last).dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="unique dim order"):
        tp.ones(1, 3).expand(4, 3).dim_order(ambiguity_check=True)


# ---- _prims_common ----

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (4, 1, 5)]


def test_strides_without_gaps() -> None:
    for shape in SHAPES:
        assert prims.make_contiguous_strides_for(shape) == tp.empty(shape).stride()
    assert prims.make_contiguous_strides_for((2, 3, 4), row_major=False) == (12, 1, 3)


def test_dtypes_and_dimensions_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    from torch import _prims_common as theirs

    for shape, row_major in itertools.product(SHAPES, (True, False)):
        assert prims.make_contiguous_strides_for(shape, row_major) == theirs.make_contiguous_strides_for(
            shape, row_major
        )
    for rank, dim, wrap in itertools.product(range(4), range(-4, 4), (True, False)):
        ours, wanted = (outcome(m.canonicalize_dim, rank, dim, wrap) for m in (prims, theirs))
        assert ours == wanted, (rank, dim, wrap)
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        ours, wanted = getattr(tp, name), getattr(torch, name)
        for question in ("is_boolean_dtype", "is_integer_dtype", "is_float_dtype", "is_complex_dtype", "is_grad_dtype"):
            assert getattr(prims, question)(ours) == getattr(theirs, question)(wanted), (question, name)
        assert prims.dtype_to_type(ours) is theirs.dtype_to_type(wanted)
    for kind in (bool, int, float, complex):
        assert str(prims.type_to_dtype(kind)).split(".")[1] == str(theirs.type_to_dtype(kind)).split(".")[1]


# ---- _linalg_utils ----


def test_forms_of_matrices() -> None:
    a, x, y = tp.randn(4, 4), tp.randn(4, 2), tp.randn(4, 3)
    assert tp.allclose(lu.bform(x, a, y), x.mT @ a @ y, atol=1e-5)
    assert tp.allclose(lu.qform(None, x), x.mT @ x, atol=1e-5)
    q = lu.basis(x)
    assert q.shape == (4, 2) and tp.allclose(q.mT @ q, tp.eye(2), atol=1e-5)
    assert lu.matmul(None, x) is x
    assert lu.get_floating_dtype(tp.ones(2, dtype=tp.int64)) == tp.float32
    assert lu.get_floating_dtype(tp.ones(2, dtype=tp.float64)) == tp.float64
    assert not lu.is_sparse(a) and lu.is_sparse(a.to_sparse())
    assert tp.allclose(lu.matmul(a.to_sparse(), x), a @ x, atol=1e-5)


@pytest.mark.parametrize("name", ["symeig", "matrix_rank", "eig", "solve", "lstsq"])
def test_functions_that_are_gone_name_what_is_there(name: str) -> None:
    arguments = (tp.eye(2),) * (2 if name in ("solve", "lstsq") else 1)
    with pytest.raises(RuntimeError, match=r"removed.*torch.linalg"):
        getattr(lu, name)(*arguments)


# ---- switches ----


def test_flags_of_mkldnn() -> None:
    mkldnn = tp.backends.mkldnn
    before = mkldnn.enabled, mkldnn.deterministic, mkldnn.allow_tf32, mkldnn.fp32_precision
    with mkldnn.flags(enabled=False, deterministic=True):
        assert (mkldnn.enabled, mkldnn.deterministic) == (False, True)
        with mkldnn.flags(enabled=True):
            assert mkldnn.enabled
        assert not mkldnn.enabled
    assert before == (mkldnn.enabled, mkldnn.deterministic, mkldnn.allow_tf32, mkldnn.fp32_precision)
    with pytest.raises(ZeroDivisionError), mkldnn.flags(enabled=False):
        1 / 0  # noqa: B018
    assert before == (mkldnn.enabled, mkldnn.deterministic, mkldnn.allow_tf32, mkldnn.fp32_precision)
