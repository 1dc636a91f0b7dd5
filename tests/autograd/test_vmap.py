"""vmap: every operator of the table against a loop, and what vmap itself does."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from batching import Call, check, check_nested, nested_ways
from growth import check_no_growth
from wrapped import Wrapped

import tensorpy as tp
from codegen.batching import batching_of
from tensorpy import _C, func, vmap
from tensorpy.testing import assert_close
from tensorpy.testing.harness import arguments, fresh, function_of, inputs_of, over, seed
from tensorpy.testing.samples import TABLE, OpInfo
from tensorpy.testing.samples.catalog import CATALOG
from tensorpy.utils._pytree import tree_flatten

# ---- the table ----

# What is refused beside what has no batch by its nature (batching.may_refuse), and why.
REFUSED = {
    "narrow.Tensor": "where it starts is a number",
    "nonzero_numpy": "as many results as there are elements that are not zero",
    "resize_": "a sample has no more memory than its elements",
    "set_": "the memory of a batched tensor is another's",
    "set_.source_Tensor": "the memory of a batched tensor is another's",
    "set_.source_Tensor_storage_offset": "the memory of a batched tensor is another's",
    "tensor_split.tensor_indices_or_sections": "where it splits are numbers",
    "where": "as many results as there are elements that are not zero",
}

# What is called for each sample in turn, with one warning: always, or where one of these arguments is batched.
LOOPS = {
    "_as_strided_backward": "",
    "_as_strided_part": "",
    "_compressed": "",
    "_convolution_int8": "",
    "_coo": "",
    "_coo_dot": "",
    "_coo_mm": "",
    "_csr_extreme": "",
    "_csr_mm": "",
    "_ctc_loss": "",
    "_ctc_loss_backward": "",
    "_embedding_bag": "",
    "_embedding_bag_dense_backward": "",
    "_embedding_bag_forward_only": "",
    "_embedding_bag_per_sample_weights_backward": "",
    "_empty_per_channel_affine_quantized": "",
    "_fake_quantize_learnable_per_channel_affine": "",
    "_fake_quantize_learnable_per_tensor_affine": "",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": "",
    "_fill_mem_eff_dropout_mask_": "",
    "_fused_moving_avg_obs_fq_helper": "",
    "_grouped_mm": "",
    "_index_backward": "",
    "_layout_like": "",
    "_layout_part": "",
    "_layout_values": "",
    "_make_per_channel_quantized_tensor": "",
    "_make_per_tensor_quantized_tensor": "",
    "_nested_make": "",
    "_philox_key_fold_in": "",
    "_philox_key_split": "",
    "_philox_normal": "",
    "_philox_normal_": "",
    "_philox_uniform": "",
    "_philox_uniform_": "",
    "_product_int8": "",
    "_quantized": "",
    "_quantized_channels": "",
    "_quantized_like": "",
    "_quantized_linear": "",
    "_quantized_linear_dynamic": "",
    "_quantized_same": "",
    "_recurrent_layer": "",
    "_recurrent_layer_backward": "",
    "_requantized": "",
    "_scaled_dot_product_fused_attention_overrideable_backward": "",
    "_scaled_grouped_mm": "",
    "_scaled_grouped_mm_v2": "",
    "_scaled_mm": "",
    "_scaled_mm_v2": "",
    "_segment_reduce_backward": "",
    "_sobol_engine_draw": "",
    "_sobol_engine_ff_": "",
    "_sobol_engine_initialize_state_": "",
    "_sobol_engine_scramble_": "",
    "_weight_int4pack_mm_for_cpu": "",
    "_weight_int8pack_mm": "",
    "argwhere": "",
    "bincount": "",
    "ctc_loss.Tensor": "input_lengths target_lengths",
    "dequantize.self": "",
    "embedding_renorm": "",  # this and the next four: what an in-place operator gives a copy
    "embedding_renorm_": "",
    "empty_quantized": "",
    "fake_quantize_per_channel_affine_cachemask": "",
    "fake_quantize_per_tensor_affine_cachemask": "",
    "fill.Tensor": "",  # the functional form of fill_.Tensor, which has a rule: for func.functionalize only
    "fractional_max_pool2d": "",
    "fractional_max_pool3d": "",
    "int_repr": "",
    "isin.Scalar_Tensor": "",
    "isin.Tensor_Tensor": "test_elements",
    "linalg_ldl_solve": "",
    "masked_scatter": "",
    "masked_scatter_": "",
    "put": "",
    "put_": "",
    "q_per_channel_scales": "",
    "q_per_channel_zero_points": "",
    "quantize_per_channel": "",
    "quantize_per_tensor": "",
    "quantize_per_tensor.tensor_qparams": "",
    "quantize_per_tensor.tensors": "",
    "quantize_per_tensor_dynamic": "",
    "quantized_batch_norm": "",
    "quantized_max_pool1d": "",
    "quantized_max_pool2d": "",
    "quantized_max_pool3d": "",
    "randperm": "",
    "randperm.generator": "",
    "repeat_interleave.Tensor": "",
    "resize": "",
    "resize_as": "",
    "segment_reduce": "",
    "set": "",
    "set.source_Tensor": "",
}


@over()
def test_operator(info: OpInfo, device: str) -> None:
    """Each tensor batched alone, and all of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap: there is no batching rule")
        for sample in info.samples(info.main_dtype, 6):
            call = Call(info, sample, device)
            for places in call.choices():
                check(call, places, info.name in REFUSED)


@over(lambda info: info.op.tensor_arguments)
def test_operator_in_two(info: OpInfo, device: str) -> None:
    """Under two vmaps, each of which batches all tensors or some. What one refuses test_operator knows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap: there is no batching rule")
        for sample in info.samples(info.main_dtype, 2):
            call = Call(info, sample, device)
            for outer, inner in nested_ways(call) if call.at else ():
                check_nested(call, outer, inner)


def wave(t: tp.Tensor) -> tp.Tensor:
    """Fixed numbers of both signs."""
    return tp.arange(1.0, t.numel() + 1, dtype=t.dtype, device=t.device).view(t.shape).cos()


def total(results: Any) -> tp.Tensor | None:
    """The sum of those of floats, each element with a factor of its own; None where none are."""
    floats = [x for x in tree_flatten(results)[0] if isinstance(x, tp.Tensor) and x.is_floating_point()]
    sums = [(x.to_dense() * wave(x)).sum() for x in floats]
    return sum(sums[1:], sums[0]) if sums else None


def gradient_of(function: Callable[..., Any], inputs: tuple[tp.Tensor, ...]) -> Callable[..., Any]:
    return func.grad(function, argnums=tuple(range(len(inputs))))


def tangent_of(function: Callable[..., Any], inputs: tuple[tp.Tensor, ...]) -> Callable[..., Any]:
    along = tuple(map(wave, inputs))
    return lambda *given: (func.jvp(function, given, along)[1],)


def curvature_of(function: Callable[..., Any], inputs: tuple[tp.Tensor, ...]) -> Callable[..., Any]:
    gradient, along = gradient_of(function, inputs), tuple(map(wave, inputs))
    return lambda *given: func.jvp(gradient, given, along)[1]


def check_derivative(info: OpInfo, derivative: Callable[..., Any], device: str) -> None:
    """An operator that vmap makes of others is differentiated as these are: with all that is differentiable batched,
    each sample is as one alone."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap: there is no batching rule")
        for sample in info.samples("float64", 3):
            args, kwargs = arguments(sample, device, info)
            inputs, fill = inputs_of(info, args, kwargs)
            inputs = tuple(t.detach() for t in inputs)

            def one(*given: tp.Tensor, fill=fill, inputs=inputs) -> Any:
                args, kwargs = fill(given)
                args = info.kept(*args) if info.kept else args
                if info.random:
                    seed(kwargs)
                found = total(function_of(info)(*fresh(info, args), **kwargs))
                return sum((t.sum() for t in given), 0) * 0 if found is None else found

            if not inputs or any(t.is_complex() or t.layout is not tp.strided for t in inputs):
                continue
            derived = derivative(one, inputs)
            expected = derived(*inputs)
            try:
                got = vmap(derived, randomness="same")(*[tp.stack([t, t]) for t in inputs])
            except RuntimeError as error:
                assert info.name in REFUSED or "vmap: " in str(error), f"{info.name}{sample}: {error}"
                continue
            for each, whole in zip(expected, got, strict=True):
                assert_close(whole, tp.stack([each, each]), msg=lambda m, s=sample: f"{info.name}{s}: {m}")


@pytest.mark.parametrize("derivative", [gradient_of, tangent_of])
@over(lambda info: info.differentiable and "float64" in info.dtypes)
def test_derivative_of_each_sample(info: OpInfo, derivative: Callable[..., Any], device: str) -> None:
    check_derivative(info, derivative, device)


@over(lambda info: info.differentiable and info.gradgradcheck and "float64" in info.dtypes)
def test_second_derivative_of_each_sample(info: OpInfo, device: str) -> None:
    check_derivative(info, curvature_of, device)


def test_refused_are_refused() -> None:
    """The list has nothing that works."""
    for name in REFUSED:
        info = TABLE[name]
        calls = [Call(info, sample, "cpu") for sample in info.samples(info.main_dtype, 6)]
        assert not all(check(c, places, True) for c in calls for places in c.choices()), name


def test_most_checks_compare() -> None:
    """The class test is no empty one: of the operators with tensors it compares results of most."""
    names = [name for name in sorted(TABLE) if TABLE[name].op.tensor_arguments]
    done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            info = TABLE[name]
            call = Call(info, info.samples(info.main_dtype, 1)[0], "cpu")
            done += any(check(call, places, name in REFUSED) for places in call.choices())
    assert done > 0.9 * len(names), f"{done} of {len(names)}"


def test_what_loops_is_listed() -> None:
    found = {}
    for op in CATALOG:
        rule = batching_of(op, CATALOG)
        shared = (
            []
            if rule is None
            else [a.name for a, role in zip(op.schema.arguments, rule.roles, strict=False) if role == "U"]
        )
        if "collective" in op.function.tags:
            continue  # messages along the first dimension, or of lists, go for each sample
        if rule is not None and (rule.kind == "LOOP" or shared):
            found[str(op.schema.name)] = " ".join(shared)
    assert found == LOOPS


def test_a_loop_warns_once() -> None:
    program = (
        "import warnings, tensorpy as tp\n"
        "warnings.simplefilter('always')\n"
        "x = tp.tensor([[1., 2.], [3., 4.]])\n"
        "for _ in range(3): tp.vmap(tp.masked_scatter)(x, x > 2, x)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.count("no batching rule for masked_scatter") == 1


@pytest.mark.parametrize("name", ["argwhere", "bincount", "repeat_interleave"])
def test_what_depends_on_values_has_one_shape(name: str) -> None:
    """For all samples, then, as with PyTorch's; else it is refused, and so is what depends on them by its nature."""
    op = getattr(tp, name)
    x = tp.tensor([[0, 1, 2], [2, 0, 1]])
    assert tp.vmap(op)(x).equal(tp.stack([op(t) for t in x]))
    nested = tp.vmap(tp.vmap(op))(x.expand(3, 2, 3))
    assert nested.equal(tp.stack([op(t) for t in x]).expand_as(nested))
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        tp.vmap(op)(tp.tensor([[0, 1, 2], [5, 0, 0]]))
    with pytest.raises(RuntimeError, match="dynamic shape"):
        tp.vmap(tp.nonzero)(x)


def test_lengths_of_each_sample() -> None:
    """ctc_loss's, which it reads; where all samples share them their rule is the one of its parts."""
    scores = tp.arange(80.0).sin().reshape(2, 5, 2, 4).log_softmax(-1)
    targets = (tp.arange(12).reshape(2, 2, 3) * 5) % 3 + 1
    inputs, lengths = tp.tensor([[5, 4], [3, 5]]), tp.tensor([[3, 2], [1, 2]])

    def gradient(*args: tp.Tensor) -> tp.Tensor:
        return func.grad(tp.nn.functional.ctc_loss)(*args)

    for f in (tp.nn.functional.ctc_loss, gradient):
        for own, own_lengths in [(0, 0), (None, 0), (0, None), (None, None)]:
            given = scores, targets, inputs if own == 0 else inputs[0], lengths if own_lengths == 0 else lengths[0]
            found = tp.vmap(f, in_dims=(0, 0, own, own_lengths))(*given)
            expected = [
                f(scores[b], targets[b], inputs[b * (own == 0)], lengths[b * (own_lengths == 0)]) for b in range(2)
            ]
            tp.testing.assert_close(found, tp.stack(expected))


def test_resize_within_a_sample() -> None:
    x = tp.arange(12.0).reshape(2, 6)
    for size in [(6,), (2, 3), (4,), (2, 1, 2), (0, 5), ()]:
        for resize in (lambda t, s=size: t.resize_(s), lambda t, s=size: t.resize_as_(tp.zeros(s))):
            assert tp.vmap(resize)(x.clone()).equal(tp.stack([resize(t) for t in x.clone()]))
    written = x.clone()
    tp.vmap(lambda t: t.view(6).resize_(2, 2).fill_(-1.0))(written)
    assert written.tolist() == [[-1.0] * 4 + [4.0, 5.0], [-1.0] * 4 + [10.0, 11.0]]
    with pytest.raises(RuntimeError, match="beyond what a contiguous sample has"):
        tp.vmap(lambda t: t.resize_(7))(x.clone())
    with pytest.raises(RuntimeError, match="beyond what a contiguous sample has"):
        tp.vmap(lambda t: t.resize_(1), in_dims=1)(x.clone())


def test_indices_of_each_sample_are_checked() -> None:
    """Where a write along a dimension is made of one with an index for each element, which asks less."""
    x, places = tp.zeros(2, 5, 4), tp.tensor([[0, 1, 4], [3, 3, 2]])
    for wrong in (tp.ones(3, 2), tp.ones(2, 4)):
        for write in (tp.index_add, tp.index_copy):
            with pytest.raises(RuntimeError, match="must match self tensor shape"):
                vmap(lambda a, i, s=wrong, w=write: w(a, 0, i, s))(x, places)
    for bad in (places + 1, places - 1):
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            vmap(lambda a, i: a.index_add(0, i, tp.ones(3, 4)))(x, bad)
    with pytest.raises(IndexError, match="supposed to be a vector"):
        vmap(lambda a, i: a.index_fill(0, i.unsqueeze(0), 1))(x, places)
    from_end = vmap(lambda a, i: a.index_fill(0, i, 1))
    assert from_end(x, places - 5).equal(from_end(x, places))


@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("frequent", [False, True], ids=["plain", "by frequency"])
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)], ids=str)
def test_tables_of_each_sample(padding: int, frequent: bool, dims: tuple[int | None, int | None]) -> None:
    """The gradient, which a padding has none of, and the tangent, which it has."""
    table = tp.arange(24.0).reshape(2, 4, 3).sin()
    places = tp.tensor([[[0, 2, 2], [3, 2, 0]], [[1, 1, 2], [0, 0, 0]]])
    given = [t if dim == 0 else t[0] for t, dim in zip((table, places), dims, strict=True)]

    def gradient(w: tp.Tensor, i: tp.Tensor) -> tp.Tensor:
        return func.grad(lambda w: tp.embedding(w, i, padding, frequent).square().sum())(w)

    def tangent(w: tp.Tensor, i: tp.Tensor) -> tp.Tensor:
        return func.jvp(lambda w: tp.embedding(w, i, padding, frequent), (w,), (w.cos(),))[1]

    for derivative in (gradient, tangent):
        rows = [[t[b] if dim == 0 else t for t, dim in zip(given, dims, strict=True)] for b in range(2)]
        assert_close(vmap(derivative, dims)(*given), tp.stack([derivative(*row) for row in rows]))
    with pytest.raises(IndexError):
        vmap(tp.embedding)(table, places + 3)


def test_what_is_nothing_is_left_out() -> None:
    x, nothing = tp.arange(12.0).reshape(2, 2, 3), tp.zeros(2, 0, dtype=tp.float64)
    for dims in ((0, 0), (0, None), (None, 0)):
        given = [t if dim == 0 else t[0] for t, dim in zip((nothing, x), dims, strict=True)]
        for dim in (0, 1, -1):
            wanted = tp.cat([x[0], x[0]], dim).double() if dims[1] is None else tp.cat([x, x], dim % 2 + 1).double()
            got = vmap(lambda n, a, d=dim: tp.cat([n, a, n, a], d), dims)(*given)
            assert got.equal(wanted.expand(got.shape))
    assert vmap(lambda n: tp.cat([n, n]))(nothing).shape == (2, 0)


def test_factors_of_whole_numbers_are_whole() -> None:
    """As outside: 1.6 of integers is 1."""
    c, a, b = tp.arange(8).reshape(2, 4), tp.arange(6).reshape(2, 3), tp.arange(12).reshape(3, 4)
    three, two = (tp.stack([t, t + 1]) for t in (a, b))
    calls: dict[str, tuple[tp.Tensor, ...]] = {
        "addmm": (c, a, b),
        "addmv": (tp.arange(2), a, tp.arange(3)),
        "baddbmm": (tp.stack([c, c]), three, two),
        "addbmm": (c, three, two),
        "index_add": (c, 0, tp.tensor([1]), c[:1]),
    }
    for name, (self, *rest) in calls.items():
        factors = {"alpha": 2.2} if name == "index_add" else {"alpha": 2.2, "beta": 1.6}
        for method in (getattr(tp.Tensor, name), lambda x, *r, n=name, **k: getattr(x.clone(), n + "_")(*r, **k)):
            wanted = tp.stack([method(self, *rest, **factors), method(self + 1, *rest, **factors)])
            assert vmap(lambda x, m=method, r=rest, k=factors: m(x, *r, **k))(tp.stack([self, self + 1])).equal(wanted)


def test_running_statistics_of_what_all_share() -> None:
    """The statistics of an input that is no batch are one for all samples, whichever of them are written to."""
    x = tp.arange(24.0).reshape(2, 3, 4).sin()
    for shared in ("mean", "var"):
        mean, var = tp.zeros(3), tp.ones(3)
        many = tp.stack([mean, mean + 1]) if shared == "var" else tp.stack([var, var + 1])

        def norm(t: tp.Tensor, m: Any = mean, v: Any = var, s: str = shared) -> tp.Tensor:
            return tp.nn.functional.batch_norm(x, *((t, v) if s == "var" else (m, t)), training=True)

        wanted_mean, wanted_var = tp.zeros(3), tp.ones(3)
        wanted = tp.nn.functional.batch_norm(x, wanted_mean, wanted_var, training=True)
        assert_close(vmap(norm)(many), tp.stack([wanted, wanted]))
        kept, of_each = (wanted_var, wanted_mean) if shared == "var" else (wanted_mean, wanted_var)
        assert_close(var if shared == "var" else mean, kept)
        assert_close(many, tp.stack([of_each, of_each + 0.9]))


# ---- arguments and results ----

X = tp.arange(12.0).reshape(3, 4)


def test_dims() -> None:
    assert_close(vmap(lambda a: a.sum(), in_dims=1)(X), X.sum(0))
    assert_close(vmap(lambda a: a * 2, out_dims=-1)(X), X.t() * 2)
    assert_close(vmap(lambda a, b: a @ b, in_dims=(0, None))(X, tp.ones(4)), X.sum(1))
    nested = vmap(lambda d: {"sum": d["a"] + d["b"][0], "one": d["b"][0]}, in_dims=({"a": 0, "b": (1,)},))
    out = nested({"a": X, "b": (X.t(),)})
    assert_close(out["sum"], 2 * X)
    assert vmap(lambda a: (a, 3), out_dims=(0, None))(X)[1] == 3
    assert_close(vmap(lambda a: tp.ones(2))(X), tp.ones(3, 2))  # what no sample changes is repeated
    assert_close(vmap(lambda a, k: a * k, in_dims=(0, None))(X, 2), X * 2)


def test_nested() -> None:
    y = tp.arange(5.0)
    outer = vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))(tp.arange(3.0), y)
    assert_close(outer, tp.arange(3.0)[:, None] * y)
    three = vmap(vmap(vmap(lambda a: a.exp())))(X.reshape(3, 2, 2))
    assert_close(three, X.reshape(3, 2, 2).exp())
    mixed = vmap(lambda row: vmap(lambda v: v + row.sum())(row))(X)
    assert_close(mixed, X + X.sum(1, keepdim=True))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_chunks(chunk: int) -> None:
    assert_close(vmap(lambda a, b: (a * b).sum(), in_dims=(0, 1), chunk_size=chunk)(X, X.t()), (X * X).sum(1))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: vmap(lambda a: a)(), ValueError, "got no inputs"),
        (lambda: vmap(lambda a: a, in_dims=None)(X), ValueError, "expected `in_dims` to be int"),
        (lambda: vmap(lambda a: a, in_dims=(0, 0))(X), ValueError, "not compatible with the structure of `inputs`"),
        (lambda: vmap(lambda a: a, in_dims=(None,))(X), ValueError, "at least one Tensor"),
        (lambda: vmap(lambda a: a, in_dims=2)(X), ValueError, "dimensionality 2"),
        (lambda: vmap(lambda a: a)(3), ValueError, "cannot vmap over non-Tensor"),
        (lambda: vmap(lambda a, b: a + b)(X, tp.ones(2)), ValueError, r"mapped dimension, got sizes \[3, 2\]"),
        (lambda: vmap(lambda a: 3)(X), ValueError, "must only return Tensors"),
        (lambda: vmap(lambda a: a, out_dims=None)(X), ValueError, "can not return a BatchedTensor"),
        (lambda: vmap(lambda a: a, out_dims=(0, 0))(X), ValueError, "not compatible with the structure of `outputs`"),
        (lambda: vmap(lambda a: a, out_dims=4)(X), IndexError, "out of range"),
        (lambda: vmap(lambda a: a, randomness="some")(X), RuntimeError, "Only allowed values for randomness"),
        (lambda: vmap(lambda a: a, chunk_size=0)(X), ValueError, "chunk_size"),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


# ---- values, writes, random numbers ----


@pytest.mark.parametrize(
    "body",
    [
        lambda a: a.sum().item(),
        lambda a: a if a.sum() > 0 else -a,
        lambda a: tp.ones(3) * float(a[0]),
        lambda a: tp.ones(3)[int(a[0].long())],
        lambda a: tp.tensor(a.tolist()),
        lambda a: tp.from_numpy(a.numpy()),
        lambda a: tp.full((2,), a[0]),
        lambda a: a[a > 0],
        lambda a: a.nonzero(),
        lambda a: tp.tensor(a.data_ptr()),
        lambda a: tp.from_dlpack(a),
        lambda a: a.untyped_storage(),
        lambda a: tp.equal(a, a),
        lambda a: memoryview(a),
        lambda a: __import__("pickle").dumps(a),
        lambda a: tp.tensor(range(10)[a[0].long()]),
    ],
)
def test_one_value_is_refused(body: Callable[[tp.Tensor], Any]) -> None:
    with pytest.raises((RuntimeError, TypeError, BufferError)):
        vmap(body)(X)
    assert _C._vmap_levels() == ()


def test_writes() -> None:
    y = X.clone()
    vmap(lambda a: a.add_(1))(y)
    assert_close(y, X + 1)
    vmap(lambda a, b: a[1:].copy_(b), in_dims=(0, None))(y, tp.zeros(3))
    assert float(y[:, 1:].sum()) == 0
    shared = tp.zeros(4)
    with pytest.raises(RuntimeError, match=r"inplace arithmetic\(self, \*extra_args\) is not possible .*'self'"):
        vmap(lambda a: shared.add_(a))(X)
    with pytest.raises(RuntimeError, match="out="):
        vmap(lambda a: tp.add(a, a, out=tp.empty(4)))(X)


def test_geometry_in_place() -> None:
    assert vmap(lambda a: a.clone().unsqueeze_(0).transpose_(0, 1).squeeze_(1).unsqueeze_(-1))(X).shape == (3, 4, 1)


def test_randomness() -> None:
    with pytest.raises(RuntimeError, match="randomness='different'"):
        vmap(lambda a: a + tp.randn(4))(X)
    draws: list[Callable[[tp.Tensor], tp.Tensor]] = [
        lambda a: tp.rand(50),
        lambda a: tp.randn_like(tp.zeros(50)),
        lambda a: tp.randperm(50),
        lambda a: tp.nn.functional.dropout(tp.ones(50) + 0 * a[0]),
        lambda a: (tp.zeros(50) + 0 * a[0]).uniform_(),
        lambda a: tp.bernoulli(tp.full((50,), 0.5)),
        lambda a: tp.multinomial(tp.ones(60), 50),
        lambda a: tp.normal(tp.zeros(50), 1.0),
    ]
    for draw in draws:
        different, same = vmap(draw, randomness="different")(X), vmap(draw, randomness="same")(X)
        assert not different[0].equal(different[1])
        assert same[0].equal(same[1]) and same[1].equal(same[2])
    both = vmap(vmap(lambda a: tp.rand(9), randomness="same"), randomness="different")(X)
    assert both[0, 0].equal(both[0, 3]) and not both[0, 0].equal(both[1, 0])


CHANNELS = tp.ones(2, 50, 3)
DROPOUTS: dict[str, Callable[[tp.Tensor, float], tp.Tensor]] = {
    "dropout": lambda a, p: tp.nn.functional.dropout(a, p),
    "dropout1d": lambda a, p: tp.nn.functional.dropout1d(a, p),
    "alpha_dropout": lambda a, p: tp.nn.functional.alpha_dropout(a, p, True),
    "feature_alpha_dropout": lambda a, p: tp.nn.functional.feature_alpha_dropout(a, p, True),
}


@pytest.mark.parametrize("name", DROPOUTS)
@pytest.mark.parametrize("batched", [True, False], ids=["batched", "shared"])
def test_dropouts_draw_for_each_sample(name: str, batched: bool) -> None:
    dim = 0 if batched else None
    given = CHANNELS.expand(3, 2, 50, 3) if batched else CHANNELS

    def drop(a: tp.Tensor, _: tp.Tensor) -> tp.Tensor:
        return DROPOUTS[name](a, 0.5)

    different = vmap(drop, (dim, 0), randomness="different")(given, X)
    same = vmap(drop, (dim, 0), randomness="same")(given, X)
    assert not different[0].equal(different[1]) and same[0].equal(same[1])
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(drop, (dim, 0))(given, X)


@pytest.mark.parametrize("name", DROPOUTS)
def test_a_certain_dropout_draws_nothing(name: str) -> None:
    for p in (0.0, 1.0):
        state = tp.get_rng_state()
        dropped = vmap(lambda a, p=p: DROPOUTS[name](a, p))(CHANNELS.expand(3, 2, 50, 3))
        assert dropped.equal(tp.full((3, 2, 50, 3), 1.0 - p)) and tp.get_rng_state().equal(state)


def test_windows_are_made_inside() -> None:
    windows = tp.signal.windows
    made = vmap(lambda a: a * windows.exponential(4, tau=3.0) + windows.hamming(4))(X)
    assert made.equal(X * windows.exponential(4, tau=3.0) + windows.hamming(4))


@pytest.mark.parametrize("batched", [(0, None), (None, 0), (0, 0), (-1, 0)], ids=str)
@pytest.mark.parametrize("offset", [None, 0, 2])
def test_as_strided_scatter_writes_into_each_sample(batched: tuple[int | None, int | None], offset: int | None) -> None:
    """A loop over samples would count the offset from the first one's memory."""
    whole, part = tp.arange(18.0).reshape(3, 2, 3), -tp.arange(1.0, 7.0).reshape(3, 2)
    given = whole if batched[0] == 0 else whole.movedim(0, -1).contiguous() if batched[0] else whole[0].clone()

    def put(a: tp.Tensor, b: tp.Tensor) -> tp.Tensor:
        size = a.stride(1)
        return a.as_strided_scatter(b, (2,), (2 * size,), offset if offset is None else offset * size)

    got = vmap(put, batched)(given, part if batched[1] == 0 else part[0])
    for k in range(3):
        sample = whole[0 if batched[0] is None else k].clone()
        assert got[k].equal(put(sample, part[0 if batched[1] is None else k]))


def test_promotion_of_numbers() -> None:
    """A sample without dimensions yields to one with some, though its batch has a dimension."""
    for left in (tp.int64, tp.float64, tp.float32, tp.bool):
        for right in (tp.int32, tp.float32, tp.uint8):
            a, b = tp.ones(3, dtype=left), tp.ones(3, 2, dtype=right)
            assert vmap(tp.add)(a, b).dtype == tp.add(a[0], b[0]).dtype
            assert vmap(tp.add)(a, tp.ones(3, dtype=right)).dtype == tp.add(a[0], tp.ones((), dtype=right)).dtype
            assert vmap(tp.add, in_dims=(0, None))(a, b[0, 0]).dtype == tp.add(a[0], b[0, 0]).dtype


# ---- levels ----


def test_an_error_leaves_no_level() -> None:
    def fail(a: tp.Tensor) -> tp.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        vmap(vmap(fail))(X)
    assert _C._vmap_levels() == ()
    assert not _C._get_dispatch_sets()[0]


def test_a_tensor_that_leaves() -> None:
    kept: list[tp.Tensor] = []
    vmap(lambda a: (kept.append(a), a)[1])(X)
    with pytest.raises(RuntimeError, match="after that has ended"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="after that has ended"):
        vmap(lambda a: a + kept[0])(X)
    assert "BatchedTensor" in repr(kept[0])


def test_threads() -> None:
    """Each thread has levels of its own."""
    wrong: list[Any] = []
    inside = threading.Barrier(4)

    def work(n: int) -> None:
        def body(a: tp.Tensor) -> tp.Tensor:
            inside.wait()
            return (a * n).sum()

        for _ in range(20):
            if not vmap(body)(X).equal((X * n).sum(1)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_too_many_levels() -> None:
    def deeper(n: int) -> Callable[[tp.Tensor], tp.Tensor]:
        return vmap(deeper(n - 1)) if n else lambda a: a * 2

    assert deeper(30)(tp.ones((1,) * 30)).numel() == 1
    with pytest.raises(RuntimeError, match="nested"):
        deeper(40)(tp.ones((1,) * 40))
    assert _C._vmap_levels() == ()


def test_nothing_is_kept() -> None:
    def once() -> None:
        func.grad(lambda a: vmap(func.grad(lambda r: (r**3).sum()))(a).sum())(X)
        func.hessian(lambda a: a.sin().prod())(X[0])
        with pytest.raises(RuntimeError):
            vmap(lambda a: a.item())(X)

    check_no_growth(once, "vmap beside func.grad")


def test_no_cycle_keeps_the_arguments() -> None:
    y = tp.ones(3, 4)
    gone = weakref.ref(y)
    vmap(lambda a: a * 2)(y)
    del y
    assert gone() is None


# ---- rules of a program's own ----


class Square(tp.autograd.Function):
    @staticmethod
    def forward(x: tp.Tensor) -> tp.Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
        return 2 * grad * ctx.saved_tensors[0]


class SampleBySample(Square):
    generate_vmap_rule = True


class AtOnce(Square):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: tp.Tensor) -> Any:
        assert info.batch_size == 3 and in_dims == (0,)
        return AtOnce.apply(x), 0


def test_functions() -> None:
    with pytest.raises(RuntimeError, match="generate_vmap_rule"):
        vmap(Square.apply)(X)
    for function in (SampleBySample, AtOnce):
        assert_close(vmap(function.apply)(X), X * X)
        assert_close(vmap(func.grad(lambda a, f=function: f.apply(a).sum()))(X), 2 * X)


def test_operators_of_a_library() -> None:
    @tp.library.custom_op("test_vmap::twice", mutates_args=())
    def twice(x: tp.Tensor) -> tp.Tensor:
        return x * 2

    with pytest.warns(UserWarning, match="no batching rule for test_vmap::twice"):
        assert_close(vmap(twice)(X), X * 2)
    seen = []

    @twice.register_vmap
    def _(info: Any, in_dims: Any, x: tp.Tensor) -> Any:
        seen.append(in_dims)
        return twice(x), 0

    assert_close(vmap(twice)(X), X * 2)
    assert seen == [(0,)]


# ---- levels as operators ----


def test_batches_are_put_on_levels_and_taken_off() -> None:
    x = tp.arange(6.0).reshape(2, 3).requires_grad_()

    def of_level(row: tp.Tensor) -> tp.Tensor:
        level = _C._vmap_levels()[-1][0]
        batched = tp._add_batch_dim(x, 1, level)  # three samples of two
        assert batched.shape == (2,) and _C._batch_number(batched) == level
        taken_off = tp._remove_batch_dim(batched * batched, level, 3, -1)
        assert taken_off.shape == (2, 3) and not _C._is_batched(taken_off)
        assert tp._remove_batch_dim(taken_off, level, 4, 0).shape == (4, 2, 3), "one without a batch is expanded"
        with pytest.raises(IndexError, match="Dimension out of range"):
            tp._remove_batch_dim(batched, level, 3, 2)
        return taken_off.sum() + row

    assert tp.vmap(of_level)(tp.ones(3)).tolist() == [56.0] * 3
    (of_vmap,) = tp.autograd.grad(tp.vmap(of_level)(tp.ones(3)).sum(), x)
    assert of_vmap.tolist() == (6 * x).tolist()
    with pytest.raises(RuntimeError, match="no vmap of level 7 is open"):
        tp._add_batch_dim(x, 0, 7)
    with pytest.raises(IndexError, match="Dimension out of range"):
        tp._add_batch_dim(x, 5, 1)
    assert tp._remove_batch_dim(x, 1, 4, 0).shape == (4, 2, 3)


def test_a_level_inside_of_another() -> None:
    x = tp.arange(24.0).reshape(2, 3, 4)

    def outer(row: tp.Tensor) -> tp.Tensor:
        first = _C._vmap_levels()[-1][0]

        def inner(element: tp.Tensor) -> tp.Tensor:
            second = _C._vmap_levels()[-1][0]
            batched = tp._add_batch_dim(tp._add_batch_dim(x, 0, first), 0, second)
            assert batched.shape == (4,)
            return batched.sum() + element

        return tp.vmap(inner)(row)

    assert tp.vmap(outer)(tp.zeros(2, 3)).tolist() == x.sum(-1).tolist()


def test_a_batch_in_as_many_parts_as_are_asked_for() -> None:
    from tensorpy._functorch.apis import chunk_vmap

    sizes = []

    def seen(x: tp.Tensor) -> tp.Tensor:
        sizes.append(tp.func.debug_unwrap(x).shape[0])
        return x.sin()

    x = tp.rand(10, 3)
    assert tp.equal(chunk_vmap(seen, chunks=3)(x), x.sin()) and sizes == [4, 4, 2]


def test_rows_of_a_jacobian_one_by_one_are_no_batch() -> None:
    class Looks(tp.autograd.Function):
        @staticmethod
        def forward(x: tp.Tensor) -> tp.Tensor:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad: tp.Tensor) -> tp.Tensor:
            return grad * 2 * len(grad.nonzero())

    x = tp.rand(2, 3)
    assert tp.equal(func.jacrev(Looks.apply, chunk_size=1)(x), 2 * tp.eye(6).reshape(2, 3, 2, 3))
    assert func.jacrev(lambda x: x[:0], chunk_size=1)(x).shape == (0, 3, 2, 3)
    with pytest.raises(RuntimeError, match=r"vmap: We do not support batching .* dynamic shape\."):
        func.jacrev(Looks.apply, chunk_size=2)(x)


# ---- gradients inside: an operator is differentiated by its own formula, whatever computes the batch ----

OF_MATRICES = {
    "cholesky_inverse": tp.cholesky_inverse,
    "cholesky_solve": lambda a: tp.cholesky_solve(tp.ones(3, 2, dtype=tp.float64), a),
    "qr": lambda a: tp.linalg.qr(a)[1],
    "inv": tp.linalg.inv,
    "det": tp.linalg.det,
    "slogdet": lambda a: tp.linalg.slogdet(a)[1],
    "solve": lambda a: tp.linalg.solve(a, tp.ones(3, 2, dtype=tp.float64)),
    "pinv": lambda a: tp.linalg.pinv(a, rtol=tp.tensor(1e-9, dtype=tp.float64)),
    "pinv, hermitian": lambda a: tp.linalg.pinv(a, hermitian=True),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_matrices_that_no_formula_is_about(name: str) -> None:
    """Elements that an operator does not read get the same gradient, and change the same, in a batch as alone."""
    function = OF_MATRICES[name]
    tp.manual_seed(0)
    a, t = (tp.randn(2, 3, 3, dtype=tp.float64) for _ in range(2))

    def gradient(x: Any) -> Any:
        return func.grad(lambda y: function(y).sum())(x)

    def change(x: Any, y: Any) -> Any:
        return func.jvp(function, (x,), (y,))[1]

    assert_close(vmap(gradient)(a), tp.stack([gradient(x) for x in a]))
    assert_close(vmap(change)(a, t), tp.stack([change(x, y) for x, y in zip(a, t, strict=True)]))
    assert_close(vmap(change, (None, 0))(a[0], t), tp.stack([change(a[0], y) for y in t]))


@pytest.mark.parametrize("size", (0, 1))
def test_windows_of_one_element(size: int) -> None:
    out, back = func.vjp(lambda x: x.unfold(0, size, 1), tp.tensor(3.0))
    (got,) = vmap(back)(tp.stack([tp.ones_like(out), 2 * tp.ones_like(out)]))
    assert got.tolist() == [size, 2.0 * size]


def test_levels_of_samples() -> None:
    x, q = tp.arange(12.0).reshape(3, 4), tp.tensor([0.1, 0.2, 0.3])
    for function in (tp.quantile, tp.nanquantile):
        assert_close(vmap(function)(x, q), tp.stack([function(*each) for each in zip(x, q, strict=True)]))
        with pytest.raises(RuntimeError, match="range \\[0, 1\\]"):
            vmap(function)(x, q + 0.8)


def test_a_view_without_a_rule_is_no_loop() -> None:
    """A loop would stack copies, and a write through the view reach nobody; what is copied anyway is stacked."""
    lib = tp.library.Library("vmapped_views", "DEF")
    lib.define("rest(Tensor(a) x) -> Tensor(a)")
    lib.impl("rest", lambda x: x[1:], "CompositeExplicitAutograd")
    lib.define("parts(Tensor(a -> *) x) -> Tensor(a)[]")
    lib.impl("parts", lambda x: [x[1:], x[:1]], "CompositeExplicitAutograd")
    lib.define("copied(Tensor(a) x) -> Tensor(a)")
    lib.impl("copied", lambda x: x.clone(), "CompositeExplicitAutograd")
    x = tp.arange(24.0).reshape(2, 3, 4)
    views = tp.ops.vmapped_views
    for call in (views.rest, views.parts):
        for times in (
            tp.vmap(call),
            tp.vmap(tp.vmap(call)),
            tp.vmap(tp.func.grad(lambda y, call=call: call(y)[0].sum())),
        ):
            with pytest.raises(RuntimeError, match="gives a view and has no batching rule"):
                times(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tp.vmap(views.copied)(x).equal(x)
    lib._destroy()


@pytest.mark.parametrize("twice", [lambda x: x + x.mT, lambda x: x.mT + x.flip(0) + x.flip(0).mT])
def test_gradients_that_share_memory_are_added_elsewhere(twice: Any) -> None:
    """A gradient that a view passed on, and the gradient that it was made of, come to one tensor."""
    x, seeds = tp.rand(3, 3, requires_grad=True), tp.rand(4, 3, 3)
    y = twice(x)
    want = tp.stack([tp.autograd.grad(y, x, seed, retain_graph=True)[0] for seed in seeds])

    def gradient(seed: tp.Tensor) -> Any:
        return tp.autograd.grad(y, x, seed, retain_graph=True)[0]

    assert tp.allclose(tp.vmap(gradient)(seeds), want)
    kept = seeds.clone()
    assert tp.allclose(gradient(Wrapped(seeds[0])).inner, want[0]) and tp.equal(seeds, kept)
