"""PyTorch's own samples of sparse layouts (op_db, generate_simple_inputs): results, patterns, gradients, errors.

What PyTorch refuses may be computed here: then it is what dense arguments give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")
against = pytest.importorskip("test_against_torch")
testing = pytest.importorskip("torch.testing._internal.common_utils")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

COMPRESSED = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
LAYOUTS = ("sparse_coo", *COMPRESSED)
DTYPES = ("float32", "int64", "bool", "complex128")
ENOUGH = 24  # samples of one operator, layout and dtype; they are spread over all that there are
SHOWN = 8

# What falls short, and why: an operator, or an operator and a layout.
SHORT: dict[str, str] = {}
WITHOUT_GRADIENT = ("zeros_like", "randn_like")

SPARSE = [
    (info, layout)
    for info, layout in product(against.op_db, LAYOUTS)
    if getattr(info, "supports_sparse" + layout.removeprefix("sparse").removesuffix("_coo"))
]


# ---- PyTorch's tensors here ----


def convert(value: Any) -> Any:
    """An argument in tensorpy; a tensor wants a gradient where PyTorch's does."""
    if not isinstance(value, torch.Tensor):
        if type(value) in (list, tuple):
            return type(value)(convert(v) for v in value)
        return against.convert(value)
    made = of_parts(value.detach()) if value.layout is not torch.strided else against.convert(value)
    return made.requires_grad_() if value.requires_grad else made


def of_parts(value: Any) -> Any:
    size = tuple(value.shape)
    if value.is_sparse:
        parts = (against.convert(part) for part in (value._indices(), value._values()))
        return tp.sparse_coo_tensor(*parts, size, is_coalesced=value.is_coalesced())
    return tp.sparse_compressed_tensor(
        *(against.convert(part) for part in parts_of(value)), size, layout=against.convert(value.layout)
    )


def parts_of(t: Any) -> tuple[Any, ...]:
    """All of them, of a tensor of either library."""
    t = t.detach()
    if t.is_sparse:
        return t._indices(), t._values()
    if str(t.layout).endswith(("csr", "bsr")):
        return t.crow_indices(), t.col_indices(), t.values()
    return t.ccol_indices(), t.row_indices(), t.values()


def difference(ours: Any, theirs: Any) -> str | None:
    """What differs, or None: as `against` has it, and the parts."""
    if isinstance(theirs, torch.Tensor) and isinstance(ours, tp.Tensor) and theirs.layout is not torch.strided:
        if against.convert(theirs.layout) is not ours.layout:
            return f"{ours.layout}, expected {theirs.layout}"
        if theirs.is_sparse and ours.is_coalesced() != theirs.is_coalesced():
            if theirs.is_coalesced():
                return "is not coalesced"
            theirs = theirs.coalesce()
        if (ours.sparse_dim(), ours.dense_dim(), ours._nnz()) != (
            theirs.sparse_dim(), theirs.dense_dim(), theirs._nnz(),
        ):  # fmt: skip
            return f"{ours._nnz()} values of {ours.sparse_dim()} + {ours.dense_dim()} dimensions, expected {theirs}"
        if tuple(ours.shape) != tuple(theirs.shape):
            return f"shape {tuple(ours.shape)}, expected {tuple(theirs.shape)}"
        return against.difference(parts_of(ours), parts_of(theirs))
    return against.difference(ours, theirs)  # type: ignore[no-any-return]


# ---- samples ----


@cache
def simple(layout: str, dtype: str) -> list[Any]:
    """Sparse tensors: hybrid, in batches, of nothing, with parts that have strides."""
    given = testing.TestCase().generate_simple_inputs(
        getattr(torch, layout), device="cpu", dtype=getattr(torch, dtype), enable_zero_sized=True
    )
    return list(given)


@dataclass
class Sample:
    input: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def map(self, function: Any) -> tuple[list[Any], dict[str, Any]]:
        given = [function(self.input), *(function(a) for a in self.args)]
        return given, {k: function(v) for k, v in self.kwargs.items()}

    def __str__(self) -> str:
        return str((self.input, *self.args, self.kwargs)).replace("\n", "")


def samples_of(info: Any, layout: str, dtype: str) -> list[Sample]:
    """op_db's own, or simple tensors with the numbers and flags of its dense ones."""
    torch.manual_seed(0)
    if info.name.startswith("masked."):
        given = getattr(info, f"sample_inputs_sparse_{'coo' if layout == 'sparse_coo' else 'csr'}_func")
        found = [Sample(s.input, s.args, s.kwargs) for s in given(info, "cpu", getattr(torch, dtype), False)]
    elif info.name in ("mul", "sum") or info.name.endswith("_like"):
        given = info.sample_inputs_sparse(getattr(torch, layout), "cpu", getattr(torch, dtype))
        found = [Sample(s.input, s.args, s.kwargs) for s in given]
    else:
        found = [Sample(x, *more) for x, more in product(simple(layout, dtype), plain_of(info, dtype))]
    return found[:: -(-len(found) // ENOUGH)] if len(found) > ENOUGH else found


def plain_of(info: Any, dtype: str) -> list[Any]:
    """What dense samples have beside their tensors."""
    found = {}
    for s in info.sample_inputs("cpu", getattr(torch, dtype)):
        if not any(isinstance(v, torch.Tensor) for v in (*s.args, *s.kwargs.values())):
            found.setdefault(repr((s.args, s.kwargs)), (s.args, s.kwargs))
    return list(found.values()) or [((), {})]


# ---- comparing ----


def outcome(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return error


def dense(value: Any) -> Any:
    return value.to_dense() if isinstance(value, torch.Tensor) and value.layout is not torch.strided else value


def is_sound(value: Any) -> bool:
    """Whether a result's parts fit each other: sums of lines without values have too many values in PyTorch."""
    if not isinstance(value, torch.Tensor) or value.layout is torch.strided or value.is_sparse:
        return True
    _, places, values = parts_of(value)
    return values.shape[: places.dim()] == places.shape and 0 not in value.shape


def problem_of(info: Any, sample: Sample) -> str | None:
    args, kwargs = sample.map(convert)
    theirs = outcome(info.op, *sample.map(lambda v: v))
    ours = outcome(against.counterpart(info), args, kwargs)
    if not isinstance(theirs, Exception):
        if isinstance(ours, Exception):
            return f"{type(ours).__name__}: {ours}"
        if info.name == "randn_like":
            ours, theirs = (lib.zeros_like(t) for lib, t in ((tp, ours), (torch, theirs)))
        return difference(ours, theirs) if is_sound(theirs) else None
    if isinstance(ours, Exception):
        allowed = (type(theirs), NotImplementedError)
        same = isinstance(ours, allowed) or isinstance(theirs, NotImplementedError)
        return None if same else f"{type(ours).__name__}: {ours}, expected {type(theirs).__name__}: {theirs}"
    expected = outcome(info.op, *sample.map(dense))
    if isinstance(expected, Exception) or info.name == "randn_like":
        return None
    return against.difference(ours.to_dense(), dense(expected))  # type: ignore[no-any-return]


def problems(info: Any, layout: str) -> Iterator[str]:
    for dtype in DTYPES:
        if info.supports_dtype(getattr(torch, dtype), "cpu"):
            for sample in samples_of(info, layout, dtype):
                found = problem_of(info, sample)
                if found:
                    yield f"{dtype} {str(sample)[:400]}: {found}"[:900]


def ids(value: Any) -> str:
    return value if isinstance(value, str) else against.label(value)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("info", "layout"), SPARSE, ids=ids)
def test_op(info: Any, layout: str) -> None:
    found = [text for text, _ in zip(problems(info, layout), range(SHOWN), strict=False)]
    short = SHORT.get(against.label(info)) or SHORT.get(f"{against.label(info)} {layout}")
    if short:
        assert found, "is no longer short"
        return
    if found:
        pytest.fail("\n".join(found), pytrace=False)


# ---- gradients ----


def weighted(library: Any, result: Any) -> Any:
    """A number that each element of a result has a share of."""
    plain = result if result.layout is library.strided else result.to_dense()
    plain = library.view_as_real(plain) if plain.is_complex() else plain
    return (plain * library.linspace(0.5, 1.5, plain.numel(), dtype=plain.dtype).reshape(plain.shape)).sum()


def gradients(library: Any, function: Any, given: tuple[list[Any], dict[str, Any]]) -> Any:
    """Of all arguments that want one; None where there is none."""
    args, kwargs = given
    result = function(*args, **kwargs)
    if not result.requires_grad:
        return None
    weighted(library, result).backward()
    return [a.grad for a in args if isinstance(a, library.Tensor)]


def wanting(value: Any) -> Any:
    floats = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return value.detach().clone().requires_grad_() if floats else value


def gradient_problem(info: Any, sample: Sample) -> str | None:
    given = sample.map(wanting)
    sample_in_tensorpy = tuple(Sample(given[0][0], tuple(given[0][1:]), given[1]).map(convert))
    theirs = outcome(gradients, [torch, info.op, given], {})
    if theirs is None or isinstance(theirs, Exception):
        return None
    ours = outcome(gradients, [tp, against.counterpart(info), sample_in_tensorpy], {})
    if ours is None or isinstance(ours, Exception):
        return f"{type(ours).__name__}: {ours}"
    for got, expected, leaf in zip(ours, theirs, sample_in_tensorpy[0], strict=False):
        if (got is None) != (expected is None):
            return f"a gradient {got}, expected {expected}"
        if got is None:
            continue
        if got.layout is not leaf.layout:
            return f"a gradient of {got.layout}"
        pattern = torch.ones_like(expected.to_dense()) if leaf.layout is tp.strided else None
        if pattern is None:  # a dense gradient of PyTorch's has elements where ours has no place
            there = tp._C._layout_like(leaf.detach(), tp.ones_like(leaf.detach()._values())).to_dense() != 0
            pattern = torch.from_numpy(there.numpy())
        found = against.difference(got.to_dense(), expected.to_dense() * pattern)
        if found:
            return f"gradient: {found}"
    return None


@pytest.mark.parametrize(
    ("info", "layout"), [(i, layout) for i, layout in SPARSE if i.name not in WITHOUT_GRADIENT], ids=ids
)
def test_gradients(info: Any, layout: str) -> None:
    found = []
    for dtype in ("float64", "complex128"):
        if info.supports_autograd and info.supports_dtype(getattr(torch, dtype), "cpu"):
            for sample in samples_of(info, layout, dtype)[::3]:
                text = gradient_problem(info, sample)
                found += [f"{dtype} {str(sample)[:400]}: {text}"[:900]] if text else []
    if found:
        pytest.fail("\n".join(found[:SHOWN]), pytrace=False)


@pytest.mark.parametrize("known", [False, True])
def test_sums_have_each_element_once(known: bool) -> None:
    """Of elements that were not said to be in order, too: the sum has what that of PyTorch has."""
    theirs = [torch.sparse_coo_tensor([list(range(n))], [1.0] * n, (4,), is_coalesced=known) for n in (1, 3, 2)]
    ours = [of_parts(each) for each in theirs]
    total, expected = ours[0] + ours[1] + ours[2], theirs[0] + theirs[1] + theirs[2]
    assert total._nnz() == expected._nnz() == 3 and total.is_coalesced() == expected.is_coalesced() == known
    assert total._values().tolist() == expected._values().tolist() == [3.0, 2.0, 1.0]
