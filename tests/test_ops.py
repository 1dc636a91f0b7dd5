"""Every operator of the table against NumPy, and its variants, layouts, devices and gradients against each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from samples import TABLE, Array, OpInfo, OpSample
from samples.table import LEAF_OF, LEAVES, round_to
from tensorpy.autograd import gradcheck, gradgradcheck

NAMES = sorted(TABLE)
REAL_OF = {"complex64": "float32", "complex128": "float64"}
NUMPY_DTYPE = {"bfloat16": "float32"}


@pytest.fixture(params=NAMES)
def info(request: pytest.FixtureRequest) -> OpInfo:
    return TABLE[request.param]


# ---- between the table's plain data and tensors ----


def to_tensor(a: Array, device: str, noncontiguous: bool = False) -> tp.Tensor:
    dtype = getattr(tp, a.dtype)
    if not a.values.size:
        return tp.empty(a.values.shape, dtype=dtype, device=device)
    if noncontiguous and a.values.ndim:
        return tp.tensor(np.repeat(a.values, 2, -1).tolist(), dtype=dtype).to(device=device)[..., ::2]
    return tp.tensor(a.values.tolist(), dtype=dtype).to(device=device)


def to_numpy(t: tp.Tensor) -> np.ndarray:
    t = t.detach().to(device="cpu")
    return np.array(t.tolist(), dtype=NUMPY_DTYPE.get(name_of(t.dtype), name_of(t.dtype))).reshape(t.shape)


def name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def function_of(info: OpInfo, inplace: bool = False) -> Callable[..., Any]:
    """The operator as a user calls it: a function, or the method where there is none."""
    op = info.variant("inplace") if inplace else info.op
    assert op is not None
    name = str(op.schema.name).partition(".")[0]
    module = tp
    if op.function.python_module:
        module = getattr(tp._C, "_" + op.function.python_module)
        name = name if hasattr(module, name) else name.removeprefix(op.function.python_module + "_")
    if hasattr(module, name) and (op.function.is_function or module is not tp):
        return getattr(module, name)
    found = getattr(tp.Tensor, name)
    return found if callable(found) else lambda t: getattr(t, name)


def arguments(sample: OpSample, device: str, **options: bool) -> tuple[list[Any], dict[str, Any]]:
    return sample.map(lambda a: to_tensor(a, device, **options))


def call(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> list[tp.Tensor]:
    result = function(*args, **kwargs)
    return [result] if isinstance(result, tp.Tensor) else [r for r in result if isinstance(r, tp.Tensor)]


def check_equal(got: tp.Tensor, expected: np.ndarray, tolerance: tuple[float, float], what: str) -> None:
    assert tuple(got.shape) == expected.shape, f"{what}: shape {tuple(got.shape)}, expected {expected.shape}"
    actual = to_numpy(got)
    rtol, atol = tolerance
    wide = np.complex128 if np.iscomplexobj(actual) or np.iscomplexobj(expected) else np.float64
    if actual.dtype.kind in "biu" and expected.dtype.kind in "biu":
        good = actual == expected
    else:
        good = np.isclose(actual.astype(wide), expected.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
    if not good.all():
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0])
        a, e = np.atleast_1d(actual)[at], np.atleast_1d(expected)[at]
        pytest.fail(f"{what}: {np.count_nonzero(~good)} of {good.size} differ, first at {at}: {a!r}, expected {e!r}")


def check_same(got: tp.Tensor, expected: tp.Tensor, what: str, exact: bool = True) -> None:
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}, expected {expected.dtype}"
    rtol, atol = (
        (0.0, 0.0) if exact else ((1e-6, 1e-6) if expected.dtype not in (tp.float16, tp.bfloat16) else (1e-2, 1e-2))
    )
    check_equal(got, to_numpy(expected), (rtol, atol), what)


# ---- values ----


def expected_dtype(info: OpInfo, dtype: str) -> str | None:
    """What the promotion of a pointwise operator says, for arguments of one dtype."""
    if info.op.pointwise is None:
        return None
    leaf = LEAF_OF[dtype]
    match info.op.pointwise.promotion:
        case "always_bool":
            return "bool"
        case "int_to_float":
            return dtype if leaf in ("float", "complex") else "float32"
        case "complex_to_float":
            return REAL_OF.get(dtype, dtype)
        case _:
            return None


def expected_values(info: OpInfo, sample: OpSample) -> list[np.ndarray]:
    assert info.reference is not None
    args, kwargs = sample.map(Array.wide)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = info.reference(*args, **kwargs)
    return [np.asarray(r) for r in result] if isinstance(result, (list, tuple)) else [np.asarray(result)]


def test_values(info: OpInfo, device: str) -> None:
    if info.reference is None:
        pytest.skip("NumPy has no word for it")
    function = function_of(info)
    for dtype in info.dtypes:
        for sample in info.samples(dtype):
            args, kwargs = arguments(sample, device)
            what = f"{info.name}{sample}"
            got, expected = call(function, args, kwargs), expected_values(info, sample)
            assert len(got) == len(expected), f"{what}: {len(got)} results"
            wanted = expected_dtype(info, dtype)
            if wanted:
                assert name_of(got[0].dtype) == wanted, f"{what}: {got[0].dtype}, expected {wanted}"
            for g, e in zip(got, expected, strict=True):
                result = name_of(g.dtype)
                if result == "bool":
                    e = e.astype(bool)
                elif LEAF_OF[result] == "float" and e.dtype.kind in "fc":
                    e = round_to(e.real if e.dtype.kind == "c" else e, result)
                check_equal(g, e, info.tolerance(result), what)


# ---- layouts ----


def test_strided_arguments(info: OpInfo, device: str) -> None:
    function = function_of(info)
    for dtype in some_dtypes(info):
        for sample in info.samples(dtype):
            if info.base.removesuffix("_copy") in ("view_as_complex", "view"):
                continue  # needs dense elements
            plain = call(function, *arguments(sample, device))
            strided = call(function, *arguments(sample, device, noncontiguous=True))
            for a, b in zip(strided, plain, strict=True):
                check_same(a, b, f"{info.name}{sample}, strided", exact=False)


def some_dtypes(info: OpInfo) -> list[str]:
    """One dtype of each class."""
    chosen = [next((d for d in reversed(dtypes) if d in info.dtypes), None) for dtypes in LEAVES.values()]
    return [d for d in chosen if d]


# ---- variants ----


def test_method(info: OpInfo, device: str) -> None:
    if not (info.op.function.is_method and info.op.function.is_function):
        pytest.skip("no function and method both")
    dtype = some_dtypes(info)[-1]
    function, method = function_of(info), getattr(tp.Tensor, info.base)
    for sample in info.samples(dtype, 3):
        args, kwargs = arguments(sample, device)
        if not isinstance(args[0], tp.Tensor):
            continue
        if not callable(method):
            continue
        for a, b in zip(call(method, args, kwargs), call(function, args, kwargs), strict=True):
            check_same(a, b, f"{info.name}{sample}, as a method")


def test_inplace(info: OpInfo, device: str) -> None:
    if info.variant("inplace") is None or info.random:
        pytest.skip("no in-place variant")
    function, inplace = function_of(info), function_of(info, inplace=True)
    for dtype in some_dtypes(info):
        for sample in info.samples(dtype):
            args, kwargs = arguments(sample, device)
            what = f"{info.name}{sample}, in place"
            expected = call(function, args, kwargs)[0]
            target = args[0].clone()
            version = target._version
            reshapes = "inplace_view" in {str(tag) for tag in info.variant("inplace").function.tags}
            fits = reshapes or tuple(target.shape) == tuple(expected.shape)
            if not fits or not tp.can_cast(expected.dtype, target.dtype):
                with pytest.raises(RuntimeError):
                    inplace(target, *args[1:], **kwargs)
                check_same(target, args[0], f"{what} is refused and so leaves its argument alone")
                continue
            result = inplace(target, *args[1:], **kwargs)
            assert result is target, f"{what} does not return its argument"
            assert target._version == version + 1, f"{what}: version {target._version}"
            check_same(target, expected.to(target.dtype), what)


def test_out(info: OpInfo, device: str) -> None:
    out_op = info.variant("out")
    if out_op is None or info.random or not info.op.function.is_function:
        pytest.skip("no out= variant")
    function = function_of(info)
    single = len(out_op.schema.out) == 1 and str(out_op.schema.out[0].type) == "Tensor"
    takes_dtype = any(a.name == "dtype" for a in out_op.schema.arguments)  # then out's is the one
    for dtype in some_dtypes(info):
        for sample in info.samples(dtype, 3):
            args, kwargs = arguments(sample, device)
            what = f"{info.name}{sample}, out="
            expected = call(function, args, kwargs)
            for exact in (True, False):
                outs = [tp.empty(e.shape if exact else (0,), dtype=e.dtype, device=device) for e in expected]
                result = function(*args, **kwargs, out=outs[0] if single else tuple(outs))
                assert not single or result is outs[0], f"{what} does not return out"
                for o, e in zip(outs, expected, strict=True):
                    check_same(o, e, what)
            wide = [tp.empty(tuple(2 * s + 2 for s in e.shape), dtype=e.dtype, device=device) for e in expected]
            views = [w[tuple(slice(1, 2 * s + 1, 2) for s in e.shape)] for w, e in zip(wide, expected, strict=True)]
            function(*args, **kwargs, out=views[0] if single else tuple(views))
            for o, e in zip(views, expected, strict=True):
                # Another layout may be reduced in another order.
                check_equal(o, to_numpy(e), info.tolerance(name_of(e.dtype)), f"{what} with strides")
            if single and not takes_dtype and not tp.can_cast(expected[0].dtype, tp.bool):
                before = tp.zeros(expected[0].shape, dtype=tp.bool, device=device)
                with pytest.raises(RuntimeError):
                    function(*args, **kwargs, out=before)


# ---- Meta ----


def test_meta(info: OpInfo) -> None:
    tags = {str(t) for t in info.op.function.tags}
    function = function_of(info)
    for dtype in some_dtypes(info):
        for sample in info.samples(dtype):
            args, kwargs = arguments(sample, "cpu")
            meta_args, meta_kwargs = arguments(sample, "meta")
            what = f"{info.name}{sample} on meta"
            if tags & {"dynamic_output_shape", "data_dependent_output"}:
                with pytest.raises((RuntimeError, NotImplementedError)):
                    function(*meta_args, **meta_kwargs)
                continue
            for m, c in zip(call(function, meta_args, meta_kwargs), call(function, args, kwargs), strict=True):
                assert m.device.type == "meta", what
                assert (m.shape, m.dtype, m.stride()) == (c.shape, c.dtype, c.stride()), (
                    f"{what}: {m.shape} {m.dtype} {m.stride()}, cpu: {c.shape} {c.dtype} {c.stride()}"
                )


# ---- schema facts ----


def test_arguments_stay_as_they_are(info: OpInfo, device: str) -> None:
    """A functional operator changes nothing; a view shares memory and knows its base, others have memory of their
    own.
    """
    dtype = some_dtypes(info)[-1]
    function = function_of(info)
    for sample in info.samples(dtype):
        args, kwargs = arguments(sample, device)
        before = [(to_numpy(a), a._version) if isinstance(a, tp.Tensor) else None for a in args]
        results = call(function, args, kwargs)
        for a, b in zip(args, before, strict=True):
            if b is not None:
                assert a._version == b[1], f"{info.name}{sample}: wrote to an argument"
                check_equal(a, b[0], (0.0, 0.0), f"{info.name}{sample}: changed an argument")
        if info.op.is_view or not isinstance(args[0], tp.Tensor) or not args[0].numel():
            continue
        for r in results:
            if r.numel() and not info.op.is_implicit:
                assert r.data_ptr() != args[0].data_ptr(), f"{info.name}{sample}: shares memory with its argument"


def test_views(info: OpInfo, device: str) -> None:
    if not info.op.is_view or info.op.is_implicit:
        pytest.skip("no view")
    dtype = some_dtypes(info)[-1]
    function = function_of(info)
    for sample in info.samples(dtype):
        args, kwargs = arguments(sample, device)
        for r in call(function, args, kwargs):
            if not r.numel():
                continue
            if info.base != "detach":
                assert r._base is args[0], f"{info.name}{sample}: _base is not the argument"
            version = args[0]._version
            r.zero_()
            assert args[0]._version == version + 1, f"{info.name}{sample}: a write through the view raises no version"
            if r.numel() == args[0].numel():
                assert not to_numpy(args[0]).any(), f"{info.name}{sample}: does not share memory"


# ---- gradients ----


def gradient_inputs(
    args: list[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], Callable[..., tuple[list[Any], dict[str, Any]]]]:
    """The floating tensors among the arguments, and how to put others in their place."""
    flat: list[tp.Tensor] = []

    def collect(value: Any) -> Any:
        if isinstance(value, tp.Tensor) and (value.is_floating_point() or value.is_complex()):
            flat.append(value.detach().clone().requires_grad_())
            return ("input", len(flat) - 1)
        if isinstance(value, (list, tuple)):
            return [collect(v) for v in value] if isinstance(value, list) else tuple(collect(v) for v in value)
        return value

    shape = [collect(a) for a in args], {k: collect(v) for k, v in kwargs.items()}

    def fill(value: Any, inputs: tuple[Any, ...]) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[0] == "input":
            return inputs[value[1]]
        if isinstance(value, (list, tuple)):
            return type(value)(fill(v, inputs) for v in value)
        return value

    return tuple(flat), lambda inputs: (
        [fill(a, inputs) for a in shape[0]],
        {k: fill(v, inputs) for k, v in shape[1].items()},
    )


@pytest.mark.parametrize("order", [1, 2])
def test_gradient(info: OpInfo, order: int, device: str) -> None:
    if device != "cpu":
        pytest.skip("gradients are checked on the CPU")
    dtypes = [d for d in ("float64", "complex128") if d in info.dtypes]
    if not info.differentiable or not dtypes or (order == 2 and not info.gradgradcheck):
        pytest.skip("no gradient to check")
    function = function_of(info)
    for dtype in dtypes:
        for sample in info.samples(dtype, 3 if order == 1 else 2):
            args, kwargs = arguments(sample, device)
            inputs, fill = gradient_inputs(args, kwargs)
            if not inputs or all(not t.numel() for t in inputs):
                continue

            def f(*given: Any, fill=fill) -> list[tp.Tensor]:
                a, k = fill(given)
                return call(function, a, k)

            if not any(r.requires_grad for r in f(*inputs)):
                continue
            try:
                check = gradcheck if order == 1 else gradgradcheck
                check(f, inputs, atol=1e-5 if order == 1 else 1e-4)
            except (RuntimeError, NotImplementedError) as e:
                pytest.fail(f"{info.name}{sample}, derivative {order}: {e}")
