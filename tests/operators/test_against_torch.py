"""PyTorch's own samples (op_db), for every operator that both have: values, dtypes and shapes."""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy.testing.harness import arguments, inputs_of, over
from tensorpy.testing.samples import TABLE, OpInfo

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # PyTorch's about op_db

torch = pytest.importorskip("torch")
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("PYTORCH_TESTING_DEVICE_ONLY_FOR", "cpu")
    op_db = pytest.importorskip("torch.testing._internal.common_methods_invocations").op_db
# For each sample it asks of every frame on the stack whether the frame is a test's of its own: half of our collection.
for place in ("common_utils", "opinfo.core"):
    importlib.import_module(f"torch.testing._internal.{place}").extract_test_fn = lambda: None

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex128)
ENOUGH = 8  # samples of our own
LIMIT = 40  # samples of one operator and dtype; they are spread over all that there are
TOLERANCES = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-7, 1e-9), torch.complex128: (1e-7, 1e-9)}

# Operators whose results are not determined by their arguments, or which take what tensorpy does not have.
SKIP = {
    "empty": "not set",
    "empty_like": "not set",
    "empty_strided": "not set",
    "new_empty": "not set",
    "new_empty_strided": "not set",
    "empty_permuted": "not set",
    "cov": "float32 weights of a float64 input, whose sums are rounded in another order",
    "linalg.pinv-singular": "of a product that its own function takes",
    "as_strided-partial_views": "reads outside of its argument",
    **dict.fromkeys(
        ("svd", "linalg.svd", "linalg.eig", "linalg.eigh"),
        "vectors are free up to a factor, which the two LAPACKs choose; test_linalg.py compares what is not",
    ),
}
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "pca_lowrank",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "svd_lowrank", "uniform",
    "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.feature_alpha_dropout-with_train", "nn.functional.fractional_max_pool3d", "nn.functional.rrelu",
    "nn.functional.multi_head_attention_forward",
}  # fmt: skip


def label(info: Any) -> str:
    return f"{info.name}-{info.variant_test_name}" if info.variant_test_name else info.name


def is_left_out(info: Any) -> bool:
    return any(name in SKIP or name in RANDOM for name in (info.name, label(info)))


def lambda_of(info: Any) -> Any:
    """Where op_db hands over the arguments in an order of its own: its function, with tensorpy for torch in it."""
    code = getattr(info.op, "__code__", None)
    if code is None or code.co_name != "<lambda>" or code.co_names[:1] != ("torch",):
        return None
    module: Any = tp
    for part in code.co_names[1:]:
        module = getattr(module, part, None)
    return FunctionType(code, {"torch": tp}, "op_db", info.op.__defaults__, info.op.__closure__) if module else None


def counterpart(info: Any) -> Any:
    """tensorpy's function of the same name, or its method where torch has a method only."""
    if own := lambda_of(info):
        return own
    module: Any = tp
    parts = info.name.removeprefix("torch.").split(".")
    try:
        for part in parts:
            module = getattr(module, part)
        if callable(module) and not isinstance(module, tp.dtype):
            return module
    except (AttributeError, ImportError):
        pass
    found = getattr(tp.Tensor, info.name, None)
    if found is None and info.name.startswith("_") and not info.name.startswith("__"):  # of private modules there
        private = [name for name in (info.name, info.name[1:]) if hasattr(tp.ops.aten, name)]
        found = getattr(tp.ops.aten, private[0]) if private else None
    return found if callable(found) else None


def variants() -> tuple[list[Any], list[str]]:
    covered, missing, names = [], [], set()
    for info in op_db:
        if is_left_out(info):
            continue
        if counterpart(info) is None:
            missing.append(label(info))
        elif label(info) not in names:
            names.add(label(info))
            covered.append(info)
    return covered, missing


COVERED, MISSING = variants()


class Skip(Exception):
    """A sample that tensorpy has no counterpart for (layouts, devices)."""


def convert(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized:
            raise Skip
        plain = value.detach().resolve_conj().resolve_neg()
        if plain.dtype == torch.bfloat16:
            return tp.from_numpy(plain.float().numpy().copy()).to(tp.bfloat16)
        flat = plain.contiguous().numpy().copy()
        base = tp.tensor(flat.tolist() if flat.size == 0 else flat, dtype=convert(plain.dtype)).reshape(flat.shape)
        if plain.is_contiguous() or plain.numel() == 0 or 0 in plain.stride():
            return base
        order = sorted(range(plain.dim()), key=lambda d: -plain.stride(d))
        back = [order.index(d) for d in range(plain.dim())]
        return base.permute(order).contiguous().permute(back)
    if isinstance(value, torch.dtype):
        return getattr(tp, str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return tp.device(str(value))
    if isinstance(value, (torch.Generator, torch.nn.Module)):
        raise Skip
    if isinstance(value, torch.memory_format):
        return getattr(tp, str(value).rpartition(".")[2])
    if isinstance(value, torch.layout):
        return getattr(tp, str(value).rpartition(".")[2])
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(convert(v) for v in value)
    if isinstance(value, torch.Size):
        return tuple(value)
    return value


def flatten(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [x for r in result for x in flatten(r)]
    if isinstance(result, dict):
        return [x for r in result.values() for x in flatten(r)]
    return [result]


def plain_array(t: Any) -> np.ndarray:
    t = t.detach()
    if t.layout not in (torch.strided, tp.strided):
        t = t.to_dense()
    if str(t.dtype).endswith("complex32"):
        t = t.to(torch.complex64 if isinstance(t, torch.Tensor) else tp.complex64)
    if str(t.dtype).endswith("bfloat16"):
        t = t.to(torch.float32 if isinstance(t, torch.Tensor) else tp.float32)
    if isinstance(t, torch.Tensor):
        return t.resolve_conj().resolve_neg().numpy()
    return t.resolve_conj().resolve_neg().numpy()


# How far PyTorch's results may be from the right ones, of the largest element: these are nearer, as SciPy has it.
ASTRAY = {
    "matrix_exp": 1e-6,
    **dict.fromkeys(("special.bessel_j0", "special.bessel_j1", "special.bessel_y1"), 1e-6),
}


def difference(got: Any, expected: Any, astray: float = 0) -> str | None:
    """What differs, or None."""
    a, b = flatten(got), flatten(expected)
    if len(a) != len(b):
        return f"{len(a)} results, expected {len(b)}"
    for x, y in zip(a, b, strict=True):
        if not isinstance(y, torch.Tensor):
            same = x == y or (isinstance(y, float) and x != x and y != y) or convert(y) == x
            if not same:
                return f"{x!r}, expected {y!r}"
            continue
        if not isinstance(x, tp.Tensor):
            return f"a {type(x).__name__}, expected a tensor"
        if tuple(x.shape) != tuple(y.shape):
            return f"shape {tuple(x.shape)}, expected {tuple(y.shape)}"
        if str(x.dtype).rpartition(".")[2] != str(y.dtype).rpartition(".")[2]:
            return f"{x.dtype}, expected {y.dtype}"
        if str(x.layout).rpartition(".")[2] != str(y.layout).rpartition(".")[2]:
            return f"{x.layout}, expected {y.layout}"
        if x.is_sparse and (x._nnz(), x.sparse_dim()) != (y._nnz(), y.sparse_dim()):
            return f"{x._nnz()} values of {x.sparse_dim()} dimensions, expected {y._nnz()} of {y.sparse_dim()}"
        rtol, atol = TOLERANCES.get(
            y.dtype, (1e-4, 1e-5) if y.dtype.is_floating_point or y.dtype.is_complex else (0, 0)
        )
        left, right = plain_array(x), plain_array(y)
        atol += astray * float(np.abs(right[np.isfinite(right)]).max(initial=0)) if astray else 0
        if not np.allclose(left, right, rtol=rtol, atol=atol, equal_nan=True):
            bad = ~np.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True)
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            return f"{np.count_nonzero(bad)} of {bad.size} values, first at {at}: {left[at]}, expected {right[at]}"
    return None


# Of equal elements it is not determined which one's place is reported: the elements there are compared instead. The
# number is the place of `dim` among the arguments behind the input.
TIES = {"argsort": 0, "kthvalue": 1, "median": 0, "mode": 0, "nanmedian": 0, "sort": 0, "topk": 1}


def elements_at(info: Any, sample: Any, result: Any, tensor: Any) -> Any:
    """The result with the elements at its indices in place of the indices themselves."""
    parts = list(result) if isinstance(result, tuple) else [result]
    if isinstance(result, tuple) or info.name == "argsort":
        place = TIES[info.name]
        dim = sample.kwargs.get("dim", sample.args[place] if len(sample.args) > place else -1)
        indices = parts[-1]
        wide = indices if indices.dim() == tensor.dim() else indices.unsqueeze(dim)
        parts[-1] = tensor.gather(dim, wide)
    return parts


def samples_of(info: Any, dtype: Any) -> list[Any]:
    found = list(info.sample_inputs("cpu", dtype))
    if len(found) > LIMIT:
        found = found[:: -(-len(found) // LIMIT)]
    return found


@pytest.mark.parametrize("info", COVERED, ids=label)
def test_op(info: Any) -> None:
    problems, ran = problems_of(info)
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    elif not ran:
        pytest.skip("no sample that both take")


def problems_of(info: Any) -> tuple[list[str], int]:
    """What differs, sample by sample, and how many samples ran."""
    function = counterpart(info)
    problems: list[str] = []
    ran = 0
    for dtype in DTYPES:
        if not info.supports_dtype(dtype, "cpu"):
            continue
        for sample in samples_of(info, dtype):
            if sample.kwargs.get("dropout_p"):
                continue  # random
            try:
                expected = info.op(sample.input, *sample.args, **sample.kwargs)
                args = [convert(sample.input), *(convert(a) for a in sample.args)]
                kwargs = {k: convert(v) for k, v in sample.kwargs.items()}
            except (Skip, AttributeError):
                continue
            except Exception:  # torch itself refuses the sample
                continue
            ran += 1
            try:
                got = function(*args, **kwargs)
                if info.name in TIES:
                    got = elements_at(info, sample, got, args[0])
                    expected = elements_at(info, sample, expected, sample.input)
                problem = difference(got, expected, ASTRAY.get(info.name, 0))
            except Exception as e:
                problem = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
            if problem:
                problems.append(
                    f"{str(dtype)[6:]} {sample.summary() if hasattr(sample, 'summary') else sample}: {problem}"[:600]
                )
                if len(problems) >= 8:
                    break
    return problems, ran


@pytest.mark.parametrize("info", [i for i in op_db if is_left_out(i) and SKIP.get(label(i)) != "not set"], ids=label)
def test_what_is_left_out_differs(info: Any) -> None:
    problems, _ = problems_of(info)
    assert problems


def test_what_is_left_out_is_there() -> None:
    assert SKIP.keys() | RANDOM <= {name for info in op_db for name in (info.name, label(info))}


# ---- our own samples ----


def ours(info: Any) -> int:
    """The samples of our overloads of the operator that an entry of op_db is about."""
    base = info.name.removeprefix("nn.functional.").replace(".", "_")
    base = {"cross_entropy": "cross_entropy_loss", "logsigmoid": "log_sigmoid"}.get(base, base)
    base = "im2col" if info.name == "nn.functional.unfold" else base
    return sum(len(i.samples(i.main_dtype)) for i in TABLE.values() if i.base == base)


def theirs(info: Any) -> int:
    dtype = torch.float32 if info.supports_dtype(torch.float32, "cpu") else torch.int64
    return len(list(info.sample_inputs("cpu", dtype)))


def test_own_table_has_no_fewer_samples() -> None:
    """Than op_db has, or than ENOUGH: op_db's own, which multiply sizes by options, all run above."""
    fewer = []
    for info in [*COVERED, *(i for i in op_db if is_left_out(i))]:
        have = ours(info)
        if have and have < min(theirs(info), ENOUGH):
            fewer.append(f"{label(info)}: {have} of {theirs(info)}")
    assert not fewer, "\n".join(fewer)


def test_what_is_not_covered(capsys: pytest.CaptureFixture[str]) -> None:
    """Not a check: the operators of op_db that tensorpy does not have, printed."""
    with capsys.disabled():
        print(f"\nop_db: {len(COVERED)} entries run, {len(MISSING)} are of operators that tensorpy does not have:")
        print(", ".join(sorted(MISSING)))
    assert COVERED


# ---- where a gradient arrives ----

# PyTorch gives a graph to what has no slope, or has none to give; here the results say that they have no gradient.
WITHOUT_A_SLOPE = {
    "randint_like": "integers that are drawn",
    "detach_copy": "what is detached",
    **dict.fromkeys(("linspace", "logspace", "bincount", "histogram"), "PyTorch's backward refuses"),
}


def in_torch(value: Any) -> Any:
    """An argument of ours in PyTorch; a tensor wants a gradient where ours does."""
    if isinstance(value, tp.Tensor):
        made = torch.tensor(value.tolist(), dtype=in_torch(value.dtype)).reshape(tuple(value.shape))
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, (tp.dtype, tp.memory_format, tp.layout)):
        return getattr(torch, str(value).rpartition(".")[2])
    if isinstance(value, tp.device):
        return torch.device("cpu")
    if isinstance(value, tp.Generator):
        return torch.Generator()
    return type(value)(in_torch(v) for v in value) if isinstance(value, (list, tuple)) else value


def overload_in(library: Any, info: OpInfo) -> Any:
    base, _, overload = info.name.partition(".")
    return getattr(getattr(library.ops.aten, base, None), overload or "default", None)


def has_overload(info: OpInfo) -> bool:
    try:
        return info.op.kind != "inplace" and info.base not in WITHOUT_A_SLOPE and bool(overload_in(torch, info))
    except (AttributeError, RuntimeError):
        return False


def wants_grad(result: Any) -> list[bool]:
    return [t.requires_grad for t in flatten(result) if isinstance(t, (tp.Tensor, torch.Tensor))]


@pytest.mark.filterwarnings("ignore")
@over(has_overload)
def test_a_gradient_arrives_where_it_does_in_pytorch(info: OpInfo) -> None:
    """In every dtype: a composite that writes through raw memory, say, would lose it without a word."""
    for dtype in info.dtypes:
        for sample in info.samples(dtype, 12):
            args, kwargs = arguments(sample, "cpu", info)
            inputs, fill = inputs_of(info, args, kwargs)
            args, kwargs = fill(inputs)
            try:
                given = [in_torch(a) for a in args], {k: in_torch(v) for k, v in kwargs.items()}
                expected = wants_grad(overload_in(torch, info)(*given[0], **given[1]))
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
                continue  # torch takes no such sample
            got = wants_grad(overload_in(tp, info)(*args, **kwargs))
            assert got == expected, f"{info.name}{sample}: {got}, in PyTorch {expected}"
