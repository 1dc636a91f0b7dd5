"""Single behaviours of operators beside PyTorch's: results, classes of errors, the beginnings of messages."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

NAN = float("nan")


def outcome(t: Any, call: str, length: int = 40) -> Any:
    """What a call gives, as lists; or the class of its error and the beginning of the message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(call, {"t": t, "F": t.nn.functional, "NAN": NAN, "numpy": np})
        except Exception as error:
            name = type(error).__name__.removeprefix("_")
            return name, str(error)[:length]
    return repr(result).replace("tensorpy", "torch")


def compare(call: str, length: int = 40) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(tp, call, length) == outcome(torch, call, length)


# ---- values that are not finite ----


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("function", ["eigh", "eigvalsh"])
def test_eigenvalues_of_nan_are_lapacks(function: str, n: int) -> None:
    compare(f"t.linalg.{function}(t.full(({n}, {n}), NAN))", 60)
    compare(f"t.linalg.{function}(t.full((2, {n}, {n}), NAN))", 60)


# ---- arange and range ----


@pytest.mark.parametrize("dtype", ["None", "t.int64", "t.int32", "t.uint8", "t.float32", "t.float16"])
@pytest.mark.parametrize("function", ["arange", "range"])
def test_what_is_wrong_with_a_range_is_said_in_one_order(function: str, dtype: str) -> None:
    """Results, and of several things that are wrong the one that is named; integers of range with a step that is none
    to them end the process there."""
    ends, steps = ("0", "5", "-5", "2.5", "NAN", "1e30", "-t.inf"), ("0", "1", "-1", "0.5", "NAN", "t.inf", "1e30")
    for start, end, step in itertools.product(ends, ends, steps):
        if function == "range" and ((step == "0.5" and "int" in dtype) or "1e30" in (start, end)):
            continue
        compare(f"t.{function}({start}, {end}, {step}, dtype={dtype}).tolist()", 30)


# ---- products of batches ----


@pytest.mark.parametrize("dtype", ["t.float32", "t.float16", "t.int64"])
@pytest.mark.parametrize(
    "sizes", ["(2, 3, 4, 5), (2, 3, 5, 4)", "(3, 4), (2, 4, 5)", "(2, 3, 4), (2, 5, 4)", "(2, 3, 4), (3, 4, 5)"]
)
def test_batches_that_do_not_fit_are_named_first(sizes: str, dtype: str) -> None:
    given = f"*[t.ones(s, dtype={dtype}) for s in ({sizes})]"
    for call in (f"t.bmm({given})", f"t.baddbmm(t.ones(1, dtype={dtype}), {given})"):
        compare(call, 26)


# ---- masks of bytes ----


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
@pytest.mark.parametrize(
    "call",
    ["t.arange(4).index_put_(({m},), t.tensor(9))", "t.arange(4).index_put(({m},), t.arange(2))", "t.arange(4)[{m}]"],
)
def test_masks_of_bytes_stand_for_places_and_take_no_single_value(call: str, dtype: str) -> None:
    compare(call.format(m=f"t.tensor([1, 0, 1, 0], dtype=t.{dtype})"), 62)


def test_masked_fill_names_itself() -> None:
    for call in ("t.zeros(2).masked_fill(t.ones(2), 1)", "t.zeros(2).masked_fill_(t.ones(2), 1)"):
        compare(call, len("masked_fill_ only supports boolean masks, but got mask with dtype "))


# ---- places ----

INDEX_ERRORS = [
    "t.ones(3).index_add(0, t.tensor([0.0]), t.ones(1))", "t.ones(3).index_add(0, t.tensor([[0]]), t.ones(1))",
    "t.ones(3).index_add(0, t.tensor([0]), t.ones(1).double())", "t.ones(3).index_add(0, t.tensor([0]), t.ones(2))",
    "t.ones(3, 2).index_add(0, t.tensor([0]), t.ones(1, 3))", "t.ones(3, 2).index_add(0, t.tensor([0]), t.ones(1))",
    "t.ones(3).index_copy(0, t.tensor([0.0]), t.ones(1))", "t.ones(3).index_copy(0, t.tensor([[0]]), t.ones(1))",
    "t.ones(3).index_copy(0, t.tensor([0]), t.ones(1).double())", "t.ones(3).index_copy(0, t.tensor([0]), t.ones(2))",
    "t.ones(3, 2).index_copy(0, t.tensor([0]), t.ones(1))", "t.ones(3).index_copy(0, t.tensor([0, 1]), t.tensor(2.0))",
    "t.ones(3).index_reduce(0, t.tensor([0]), t.ones(1), 'sum')",
    "t.ones(3).index_reduce(0, t.tensor([0.0]), t.ones(1), 'mean')",
    "t.ones(3).index_reduce(0, t.tensor([[0]]), t.ones(1), 'mean')",
    "t.ones(3).index_reduce(0, t.tensor([0]), t.ones(2), 'mean')",
    "t.ones(3).index_reduce(0, t.tensor([0]), t.ones(1).double(), 'mean')",
    "t.ones(3).index_reduce(0, t.tensor(0), t.tensor(2.0), 'prod')",
    "t.ones(3, 2).index_reduce(0, t.tensor([0]), t.ones(1, 3), 'mean')",
    "t.ones(3, 2).index_reduce(0, t.tensor([0]), t.ones(1), 'mean')",
    "t.tensor(1.0).index_reduce(0, t.tensor(0), t.tensor(2.0), 'prod')",
    "t.ones(3).index_reduce(0, t.tensor([0]), t.ones(1), 'x')",
    "t.ones(3).index_fill(0, t.tensor([0.0]), 1)", "t.ones(3).index_fill(0, t.tensor([[0]]), 1)",
    "t.ones(3).index_fill(0, t.tensor([0]), 1j)", "t.ones(3).index_fill(0, t.tensor([0], dtype=t.int32), 1)",
    "t.ones(3).index_select(0, t.tensor([0.0]))", "t.tensor(3.0).index_select(0, t.tensor([0, 0]))",
]  # fmt: skip


@pytest.mark.parametrize("call", INDEX_ERRORS)
def test_what_an_index_has_to_be(call: str) -> None:
    compare(call, 200)


ASSIGNED = [
    "x.half(), 0, 1e5", "x.half(), slice(2), -1e10", "x.half(), t.tensor([True, False, True]), 1e5", "x, 0, 1e40",
    "x.half(), t.tensor([0]), 1e5", "x.bfloat16(), 0, 3.4e38", "x, 0, 'a'", "x, 0, None", "x, 7, 1.0",
    "x.expand(2, 3), t.tensor([0]), 4.0", "x[:1].expand(3), t.tensor([0]), 4.0", "x[:1].expand(3), 0, 2.0",
]  # fmt: skip


@pytest.mark.parametrize("call", ASSIGNED)
def test_what_is_assigned(call: str) -> None:
    torch = pytest.importorskip("torch")
    shown = []
    for t in (tp, torch):
        target, key, value = eval(f"({call})", {"t": t, "x": t.ones(3)})
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                target[key] = value
                shown.append((target.tolist(), [str(w.message)[:50] for w in seen]))
            except Exception as error:
                shown.append((type(error).__name__, str(error)[:50]))
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    "call", ["fill_(2)", "zero_()", "index_fill_(0, t.tensor([1]), 3.0)", "select(0, 5)", "add_(1)"]
)
def test_writes_to_expanded_tensors(call: str) -> None:
    compare(f"t.ones(1).expand(3).{call}", 40)


# ---- shapes ----


@pytest.mark.parametrize(
    "shapes", [((2,), (2, 1)), ((2, 1), (2,)), ((2, 2), (2,)), ((2,), (2, 2)), ((), (2,)), ((3,), (2,)), ((0,), (1,))]
)
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_soft_margin_losses_have_the_shape_of_the_scores(shapes: Any, reduction: str) -> None:
    compare(f"F.soft_margin_loss(t.ones({shapes[0]}), t.ones({shapes[1]}), reduction='{reduction}')", 100)


@pytest.mark.parametrize("given", ["ones(3)", "ones(0)", "ones(2, 2)", "tensor([True])", "tensor([-1])"])
def test_bincount_of_what_is_no_count(given: str) -> None:
    compare(f"t.bincount(t.{given})")


# ---- determinism ----

PUT = """
import {package} as t
t.use_deterministic_algorithms(True)
for accumulate in (False, True):
    try:
        print(t.zeros(4).put_(t.tensor([1, 1]), t.tensor([1.0, 2.0]), accumulate).tolist())
    except RuntimeError as error:
        print(str(error)[:44])
"""


def test_put_has_no_order_of_its_writes() -> None:
    pytest.importorskip("torch")
    ours, theirs = (
        subprocess.run([sys.executable, "-c", PUT.format(package=p)], capture_output=True, text=True, check=True).stdout
        for p in ("tensorpy", "torch")
    )
    assert ours == theirs and ours.startswith("put_ does not have a deterministic")


# ---- factors ----


@pytest.mark.parametrize("shapes", [((2, 3, 1), (3, 3)), ((3, 1), (2, 3, 3)), ((3, 2), (3, 3))])
def test_the_matrix_of_triangular_solve_is_broadcast(shapes: Any) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (t.triangular_solve(t.ones(shapes[0]), t.eye(3).expand(shapes[1])) for t in (tp, torch))
    assert [tuple(x.shape) for x in ours] == [tuple(x.shape) for x in theirs]
    assert ours[1].stride() == theirs[1].stride()


@pytest.mark.parametrize("pivots", ["tensor(1, dtype=t.int32)", "tensor([1], dtype=t.int32)", "tensor([1, 2])"])
def test_pivots_that_are_too_few(pivots: str) -> None:
    compare(f"t.lu_unpack(t.eye(2), t.{pivots})", 70)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 3, 0)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing(shape: Any, training: bool) -> None:
    c = shape[1]
    arguments = f"t.ones({shape}), t.ones({c}), t.zeros({c}), t.ones({c}), t.ones({c}), {training}, 0.1, 1e-5"
    compare(f"t.native_batch_norm({arguments})", 100)


def test_an_empty_batch_has_gradients() -> None:
    m = tp.nn.BatchNorm1d(3)
    m(tp.ones(0, 3)).sum().backward()
    assert m.weight.grad.tolist() == [0, 0, 0] and m.bias.grad.tolist() == [0, 0, 0]


# ---- under transforms ----

BATCHED = [
    "vmap(lambda a: t.linspace(a, 1, 3))(t.tensor([0.0, 1.0]))",
    "vmap(lambda a: t.linspace(0, a, 5))(t.tensor([3, 4]))",
    "vmap(lambda a, b: t.linspace(a, b, 4))(t.tensor([0, 1]), t.tensor([5.0, 1]))",
    "vmap(lambda a: t.linspace(0, a, 5, dtype=t.int64))(t.tensor([7, 9]))",
    "vmap(lambda a: t.linspace(a, 1, 1))(t.tensor([0.0, 1.0]))",
    "vmap(lambda a: t.logspace(a, 1, 3, base=2.0))(t.tensor([0.0, 1.0]))",
    "vmap(lambda a: t.logspace(0, a, 3, dtype=t.float64))(t.tensor([0.0, 1.0]))",
    "vmap(lambda a: t.nonzero_static(a, size=2))(t.tensor([[0.0, 1.0], [1, 1]]))",
    "vmap(lambda a: t.nonzero_static(a, size=5, fill_value=7))(t.tensor([[[0.0, 1.0], [1, 1]]]))",
]  # fmt: skip


@pytest.mark.parametrize("call", BATCHED)
def test_factories_of_batched_ends(call: str) -> None:
    compare("t.func." + call)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0)])
@pytest.mark.parametrize("size", [0, 1, 4])
def test_nonzero_static(shape: Any, size: int) -> None:
    given = f"(t.arange({tp.Size(shape).numel()}) % 3).reshape({shape})" if shape else "t.tensor(1.0)"
    compare(f"t.nonzero_static({given}, size={size})")


def test_functional_tensors_print_their_level() -> None:
    torch = pytest.importorskip("torch")
    shown = []
    for t in (tp, torch):
        t.func.functionalize(lambda x: shown.append(repr(x)) or x)(t.ones(2))
    assert shown[0] == shown[1]


def test_a_tangent_of_another_dtype() -> None:
    with tp.autograd.forward_ad.dual_level():
        dual = tp.autograd.forward_ad.make_dual(tp.ones(2), tp.full((2,), 3.0, dtype=tp.float64))
        assert tp.autograd.forward_ad.unpack_dual(dual * 2).tangent.tolist() == [6, 6]
        with pytest.raises(RuntimeError, match="complex forward gradient"):
            tp.autograd.forward_ad.make_dual(tp.ones(2), tp.ones(2, dtype=tp.complex64))


# ---- the beginnings of messages ----

MESSAGES = [
    "t.histc(t.ones(2), bins=0)", "t.histc(t.ones(2), min=2, max=1)", "t.mv(t.ones(2, 2), t.ones(3))",
    "t.matmul(t.ones(2, 2), t.ones(3))", "t.linalg.norm(t.ones(2, 2), 'x')", "t.cat([])",
    "t.where(t.tensor([1]), 1, 2)",
    "t.select(t.ones(3), 0, 5)", "t.ones(3).bincount()", "t.multinomial(t.ones(2, 2, 2), 1)",
]  # fmt: skip


@pytest.mark.parametrize("call", MESSAGES)
def test_messages_begin_as_pytorchs(call: str) -> None:
    compare(call, 45)


# ---- arguments at the edge of what is taken ----


@pytest.mark.parametrize(
    "call",
    [
        "t.cholesky_inverse(t.tensor([[2.0, 0.0], [1.0, 0.0]]))",
        "t.cholesky_inverse(t.stack([t.eye(2), t.zeros(2, 2)]))",
        "t.cholesky_inverse(t.empty(0, 0))",
        "F.feature_alpha_dropout(t.ones(3), 0.5)",
        "F.dropout2d(t.ones(3), 0.0)",
        "t.addcmul(t.ones(1, dtype=t.cfloat), 1j, t.ones(1), t.ones(1))",
        "t.linalg.lu_factor(t.ones(2, 2), pivot=False)",
        "t.tril_indices(2, 2, dtype=t.float32)",
        "t.triu_indices(2, 2, dtype=t.float32)",
        "t.tensor(1 + 2j).H.item()",
        "t.broadcast_shapes(1.5)",
        "F.max_unpool3d(t.ones(1, 3, 1, 1, 1), t.zeros(1, 3, 1, 1, 1, dtype=t.int64), [1, 1])",
        "F.max_unpool2d(t.ones(1, 1, 2, 2), t.zeros(1, 1, 2, 2, dtype=t.int64), (2,), stride=2)",
    ],
)
def test_edges_of_arguments(call: str) -> None:
    compare(call, 60)


@pytest.mark.parametrize(
    "call",
    [
        "t.norm(t.ones(2), 1j)",
        "t.linalg.vector_norm(t.ones(2), 1j)",
        "t.dist(t.ones(2), t.ones(2), 1j)",
        "t.std(t.ones(2), correction=1j)",
        "t.var_mean(t.ones(2), correction=1j)",
        "F.rrelu(t.ones(2), 1j)",
    ],
)
def test_a_complex_number_is_no_real_one(call: str) -> None:
    """Its imaginary part is not dropped."""
    compare(call, 50)


@pytest.mark.parametrize("call", [
    "t.gradient(t.tensor([1e6, 1e6 + 0.5, 1e6 + 1.75]), spacing=0.1)", "t.gradient(t.ones(4), spacing=0)",
    "t.gradient(t.tensor([1.0, 2, 4, 9]), spacing=1j, edge_order=2)", "t.gradient(t.tensor([1, 2, 4, 9]), spacing=2)",
    "t.arange(NAN, dtype=t.int64)", "t.arange(0, 5, 1e300, dtype=t.int64)", "t.arange(0, 5, 0.5, dtype=t.int64)",
])  # fmt: skip
def test_differences_and_steps(call: str) -> None:
    compare(call, 50)


def test_ends_beyond_the_dtype_are_refused() -> None:
    for call in ("t.arange(0, 2**63)", "t.arange(2**63, 2**63 + 2)", "t.arange(0, 5, 2**63)"):
        compare(call, 50)
    assert tp.arange(2**63, 2**63 + 2, dtype=tp.uint64).tolist() == [2**63, 2**63 + 1]
    with pytest.raises(RuntimeError, match="overflow"):
        tp.arange(0, 2**63, dtype=tp.uint64)


def test_one_unknown_size_is_inferred() -> None:
    with pytest.raises(RuntimeError, match="only one dimension can be inferred"):
        tp.ones(4).unflatten(0, (-1, -1))


def test_a_generators_state_of_another_size() -> None:
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        tp.set_rng_state(tp.zeros(10, dtype=tp.uint8))
    with pytest.raises(TypeError, match="RNG state must be"):
        tp.set_rng_state(tp.zeros(10))


@pytest.mark.parametrize("name", ["real", "imag"])
def test_parts_of_a_tensor_cannot_be_deleted(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"Tensor.{name} cannot be deleted"):
        delattr(tp.ones(2, dtype=tp.complex64), name)


def test_a_condition_of_bytes_is_said_to_be_old() -> None:
    tp.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="where received a uint8 condition tensor"):
            chosen = tp.where(tp.tensor([1, 0], dtype=tp.uint8), tp.ones(2), tp.zeros(2))
    finally:
        tp.set_warn_always(False)
    assert chosen.tolist() == [1, 0]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("function", ["unique", "unique_consecutive"])
def test_distinct_slices_have_pytorchs_strides(function: str, dim: int) -> None:
    compare(f"t.{function}(t.arange(30.0).reshape(2, 3, 5) % 3, dim={dim}).stride()")
    compare(f"t.{function}(t.arange(30.0).reshape(2, 3, 5) % 3, dim={dim})", 10**6)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_convolution_of_no_channels_gives_none(n: int) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for t in (tp, torch):
        x = t.ones(2, 0, *[5] * n, requires_grad=True)
        w, b = t.ones(8, 0, *[2] * n, requires_grad=True), t.ones(8, requires_grad=True)
        y = getattr(t.nn.functional, f"conv{n}d")(x, w, b, stride=2)
        y.sum().backward()
        found.append((tuple(y.shape), tuple(x.grad.shape), tuple(w.grad.shape), b.grad.tolist()))
    assert found[0] == found[1]
    compare(f"F.conv_transpose{n}d(t.ones(2, 0, *[5] * {n}), t.ones(0, 8, *[2] * {n}))")


# ---- expanded tensors ----


@pytest.mark.parametrize("value", ["5.0", "t.tensor(5.0)"])
@pytest.mark.parametrize("mask", ["t.tensor([True, False, True])", "t.tensor([[False], [True], [False]])"])
def test_masked_fill_of_an_expanded_tensor_fills_its_memory(mask: str, value: str) -> None:
    for shape in ("t.zeros(3, 1).expand(3, 3)", "t.zeros(3).expand(2, 3, 3)", "t.arange(3.0).expand(3, 3).t()"):
        compare(f"(x := {shape}, x.masked_fill_({mask}, {value}), x._base)", 60)
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors is deprecated"):
        tp.zeros(1).expand(2).masked_fill_(tp.tensor([False, True]), 1)


def test_masked_fill_of_an_expanded_tensor_has_a_gradient_for_its_value() -> None:
    value = tp.tensor(2.0, requires_grad=True)
    memory = tp.zeros(3, 1)
    with pytest.warns(UserWarning, match="expanded tensors"):
        memory.expand(3, 3).masked_fill_(tp.tensor([[False, True, True], [False] * 3, [True] * 3]), value)
    memory.sum().backward()
    assert memory.tolist() == [[2], [0], [2]] and value.grad is not None and value.grad.item() == 2


# ---- numbers that do not fit, dtypes that do not ----


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("value", ["65519.99", "65520", "-1e30", "1e39", "2**24 + 1"])
def test_fills_of_16_bit_floats_become_infinite_or_are_refused(dtype: str, value: str) -> None:
    for n in (1, 3):
        for call in ("t.full(({n},), {v}, dtype=t.{d})", "t.ones({n}, dtype=t.{d}).fill_({v})",
                     "t.full_like(t.ones({n}, dtype=t.{d}), {v})", "t.scalar_tensor({v}, dtype=t.{d})",
                     "t.ones({n}, 2, dtype=t.{d}).fill_diagonal_({v})", "t.ones({n}, dtype=t.{d}).fill_(t.tensor({v}))",
                     "t.ones({n}, dtype=t.{d}).index_fill(0, t.tensor([0]), {v})",
                     "t.ones({n}, dtype=t.{d}).scatter(0, t.tensor([0]), {v})",
                     "t.nn.functional.pad(t.ones({n}, dtype=t.{d}), (0, 1), value={v})"):  # fmt: skip
            compare(call.format(v=value, d=dtype, n=n) + ".tolist()", 20)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "complex64"])
def test_native_dropout_needs_a_dtype_for_its_scale(dtype: str) -> None:
    for train in (True, False, None):
        compare(f"t.native_dropout(t.ones(3, dtype=t.{dtype}), 0.0, {train})", 60)


@pytest.mark.parametrize("function", ["fftfreq", "rfftfreq"])
def test_frequencies_are_no_whole_numbers(function: str) -> None:
    for dtype in ("int64", "bool", "float64", "complex64"):
        compare(f"t.fft.{function}(5, dtype=t.{dtype})", 60)


# ---- powers of two ----


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_by_whole_numbers_leaves_its_dtype_only_with_the_result(dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = np.ldexp(np.linspace(1, 2, 64).astype(dtype), np.arange(-320, 320, 10))
    most = {"float16": 60, "float32": 300, "float64": 2200}[dtype]
    for power in range(-most, most, most // 15):
        made = tp.ldexp(tp.from_numpy(x), tp.tensor([power]))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(made.numpy(), np.ldexp(x, power))
    assert made.dtype == getattr(tp, dtype)
    compare(f"t.ldexp(t.tensor(1.5, dtype=t.{dtype}), t.tensor([1, 2]))")


# ---- segments ----


@pytest.mark.parametrize("reduce", ["max", "min", "sum", "mean", "prod"])
def test_gradients_of_segments_with_nan(reduce: str) -> None:
    def slopes(t: Any) -> Any:
        x = t.tensor([[1, 1], [NAN, 1], [3, NAN], [4, 1], [3, 2], [4, 3]], requires_grad=True)
        t.segment_reduce(x, reduce, lengths=t.tensor([1, 2, 3, 0]), axis=0, initial=1).sum().backward()
        return x.grad.numpy()

    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(slopes(tp), slopes(torch))


def test_tensors_of_nothing_are_joined_along_any_dimension() -> None:
    compare("t.cat([t.ones(0), t.ones(0)], 1)")
    compare("t.cat([t.ones(0), t.ones(2, 3)], 2)")


@pytest.mark.parametrize("left", ["numpy.array([1.0, 2.0, 4.0])", "numpy.float64(3)", "None", "'a'"])
def test_quotients_of_arrays_and_tensors(left: str) -> None:
    compare(f"{left} / t.tensor([2.0, 1.0, 4.0])", 28)


def test_functions_that_write_an_argument_take_out_too() -> None:
    x, out = tp.randn(2, 3, 4), [tp.empty(0) for _ in range(3)]
    mean, var = tp.zeros(3), tp.ones(3)
    made = tp._native_batch_norm_legit(x, None, None, mean, var, True, 0.1, 1e-5, out=out)
    assert all(a is b for a, b in zip(made, out, strict=True)) and mean.count_nonzero() == 3
    tp.testing.assert_close(out[0], tp.nn.functional.batch_norm(x, None, None, training=True))


# ---- zeros, neighbours, lists, outputs ----


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_of_equal_zeros_bounds_keep_that_of_the_input(dtype: str, n: int) -> None:
    for zero, bound in (("-0.0", "0.0"), ("0.0", "-0.0")):
        x = f"t.full(({n},), {zero}, dtype=t.{dtype})"
        for call in ("F.relu({x})", "F.relu({x}.requires_grad_()).detach()", "F.relu6({x})", "{x}.clamp_min({b})",
                     "{x}.clamp_max({b})", "{x}.clamp({b}, {b})", "{x}.clamp(t.tensor({b}), t.tensor({b}))",
                     "F.hardtanh({x}, {b}, 1.0)", "t.fmax({x}, -{x})", "t.fmin({x}, -{x})"):  # fmt: skip
            if dtype == "bfloat16" and "fm" in call:
                continue  # PyTorch gives the other's
            compare("t.signbit(" + call.format(x=x, b=bound) + ").tolist()", 400)
    for call in ("t.tensor([NAN]).clamp({b})", "t.tensor([1.0]).clamp(NAN)", "t.tensor([1.0]).clamp(max=NAN)",
                 "t.tensor([NAN]).clamp(0, 1)", "t.tensor([2.0]).clamp(0, NAN)",
                 "F.relu(t.tensor([NAN]))"):  # fmt: skip
        compare(call.format(b=0.0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nextafter_goes_by_the_steps_of_its_dtype(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    bits = [*range(0, 0x7C80 if dtype == "float16" else 0x8000, 37), 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7F, 0x80, 0x7F7F]
    for other in (0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), NAN, 6e-8):
        for sign in (0, -0x8000):
            steps = [
                t.nextafter(x, t.full_like(x, other)).view(t.int16).tolist()
                for t in (tp, torch)
                for x in [t.tensor([b + sign for b in bits], dtype=t.int16).view(getattr(t, dtype))]
            ]
            missing = [t != t for t in torch.tensor(steps[1], dtype=torch.int16).view(getattr(torch, dtype))]
            assert all(a == b or m for a, b, m in zip(*steps, missing, strict=True))


def test_lists_of_no_tensors() -> None:
    for call in ("t.atleast_1d([])", "t.atleast_2d(())", "t.atleast_3d()", "t.broadcast_tensors()", "t.meshgrid([])",
                 "t.hstack([])", "t.stack([])"):  # fmt: skip
        compare(call, 30)


@pytest.mark.parametrize("shape", ["(2, 3)", "(6, 1)", "(3,)", "(0,)", "(6,)", "(2, 3, 1)"])
def test_outputs_of_factories_are_resized_silently_and_ranges_keep_shapes(shape: str) -> None:
    torch = pytest.importorskip("torch")
    calls = ("t.linspace(0, 1, 6, out=o)", "t.logspace(0, 1, 6, out=o)", "t.arange(6, out=o)", "t.range(0, 5, out=o)",
             "t.linspace(t.tensor(0.0), 1, 6, out=o)", "t.zeros(6, out=o)", "t.full((6,), 2.0, out=o)",
             "t.eye(2, 3, out=o)", "t.randperm(6, out=o)")  # fmt: skip
    for call in calls:
        shown = []
        for t in (tp, torch):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                out = t.full(eval(shape), 7.0)
                given = out.t() if out.dim() == 2 else out
                made = eval(call, {"t": t, "o": given})
            assert made is given
            assert not any("was resized since" in str(w.message) for w in caught)
            shown.append((tuple(made.shape), made.stride(), [] if "perm" in call else made.tolist()))
        assert shown[0] == shown[1], call


def test_quantiles_between_infinities_and_of_a_number() -> None:
    for between in ("lower", "higher", "nearest", "linear", "midpoint"):
        levels = f"t.tensor([0.0, 0.5, 1.0]), interpolation='{between}'"
        compare(f"t.tensor([float('inf'), -float('inf'), 2, 7]).quantile({levels})")
    compare("t.quantile(t.tensor(2.5), 0.3, dim=1)", 60)
    compare("t.nanmean(t.ones(2), dtype=t.int32)", 40)
    compare("t.histogram(t.ones(3), t.tensor([]))", 0)


def test_the_product_of_one_matrix_is_a_copy() -> None:
    x = tp.ones(2, 2)
    assert tp.chain_matmul(x).data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="Tensor dimension is"):
        tp.chain_matmul(tp.ones(2))


def test_complex_values_without_an_imaginary_part_fill_what_is_masked() -> None:
    for dtype in ("bool", "int8", "float32", "complex64"):
        for value in ("1+0j", "1+1j"):
            compare(f"t.zeros(2, dtype=t.{dtype}).masked_fill(t.tensor([True, False]), t.tensor({value}))", 30)


@pytest.mark.parametrize(
    "call",
    ["x.split(2)", "x.split([2, 4])", "x.chunk(2)", "t.unsafe_split(x, 2)", "t.unsafe_chunk(x, 2)",
     "t.unsafe_split_with_sizes(x, [2, 4])"],
)  # fmt: skip
def test_the_nodes_of_parts(call: str) -> None:
    torch = pytest.importorskip("torch")
    shown = []
    for t in (tp, torch):
        x = t.arange(6.0).requires_grad_()
        parts = eval(call, {"t": t, "x": x})
        (parts[0].sum() * 2 + parts[-1].prod()).backward()
        saved = sorted(name for name in dir(parts[0].grad_fn) if name.startswith("_saved"))
        shown.append((parts[0].grad_fn.name(), saved, x.grad.tolist()))
    assert shown[0] == shown[1]


def test_parts_of_equal_size_in_batches_and_without_writes() -> None:
    x = tp.arange(12.0).reshape(3, 4)
    assert tp.equal(tp.func.vmap(lambda a: a.split(3)[1])(x), x[:, 3:])
    assert tp.equal(tp.func.vmap(lambda a: a.split(2)[1], in_dims=1)(x), x[2:].t())

    def doubled(a: tp.Tensor) -> tp.Tensor:
        whole = a.clone()
        first, second = whole.split(3)
        first.mul_(2)
        second.add_(1)
        return whole

    assert tp.equal(tp.func.functionalize(doubled)(tp.arange(5.0)), doubled(tp.arange(5.0)))
    assert tp.func.jvp(lambda a: a.split(2)[1], (x,), (x * 2,))[1].tolist() == (x[2:] * 2).tolist()


@pytest.mark.parametrize("view", ["z[0]", "z.transpose(0, 1)", "z.view(-1)", "z.diagonal()", "z.expand(2, 2, 3)"])
def test_a_leaf_that_is_a_view_is_not_written_through_its_views(view: str) -> None:
    torch = pytest.importorskip("torch")
    shown = []
    for t in (tp, torch):
        z = t.arange(6.0).reshape(2, 3).requires_grad_()
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            eval(view, {"z": z}).mul_(2)
        shown.append((z.is_leaf, z.tolist()))
    assert shown[0] == shown[1]


def test_fill_with_an_element_of_itself_and_with_what_does_not_fit() -> None:
    for t in (tp, pytest.importorskip("torch")):
        x = t.arange(1.0, 5.0)
        assert x.fill_(x[1]).tolist() == [2.0] * 4
    for value in ("300", "-1", "2.5", "1e5", "1+0j"):
        for dtype in ("int8", "uint8", "float16", "bool", "float32"):
            compare(f"t.zeros(2, dtype=t.{dtype}).fill_(t.tensor({value})).tolist()", 30)


def test_int_of_a_complex_number() -> None:
    for value in ("7+0j", "7.5+0j", "1+1j"):
        for function in ("int", "float", "complex"):
            compare(f"{function}(t.tensor({value}))", 40)


def test_booleans_are_no_ints_and_ints_no_booleans() -> None:
    for call in ("t.zeros([True])", "t.zeros((1, True))", "t.zeros(True)", "t.ones(2, 2).flip([True])",
                 "t.ones(2, 2).sum([True, 0])", "F.pad(t.ones(2), (True, 1))", "t.ones(4).tile([True, 2])",
                 "t.ones(2, 2).size(True)", "t.ones(2, 2).stride(True)", "t.ones(2).requires_grad_(1)",
                 "t.ones(2).requires_grad_(None)", "t.ones(2).requires_grad_(numpy.True_)"):  # fmt: skip
        compare(call, 30)
