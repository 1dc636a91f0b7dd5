"""Every operator of the table against NumPy, and its variants, layouts, devices and gradients against each other.

These are the schema, alias and Meta checks that the tag `pt2_compliant_tag` stands for: here they hold for every
operator, tagged or not.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from harness import (
    arguments,
    call,
    check_equal,
    check_same,
    each_argument,
    fresh,
    function_of,
    name_of,
    over,
    seed,
    strided,
    to_numpy,
)

import tensorpy as tp
from samples import OpInfo, OpSample
from samples.table import LEAF_OF, round_to

REAL_OF = {"complex64": "float32", "complex128": "float64"}


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
    args, kwargs = sample.map(lambda stand_in: stand_in.wide())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = info.reference(*args, **kwargs)
    return [np.asarray(r) for r in result] if isinstance(result, (list, tuple)) else [np.asarray(result)]


@over(lambda info: info.reference)
def test_values(info: OpInfo, device: str) -> None:
    """Every sample in one dtype, some in each other."""
    function = function_of(info)
    for dtype in info.dtypes:
        for sample in info.samples(dtype) if dtype == info.main_dtype else info.some(dtype):
            args, kwargs = arguments(sample, device, info)
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
                elif e.dtype.kind in "iu":
                    e = round_to(e, result)  # as it overflows
                check_equal(g, e, info.tolerance(result), what)


# ---- layouts (more of them in test_layouts.py) ----


@over(lambda info: not info.dense)
def test_strided_arguments(info: OpInfo, device: str) -> None:
    function = function_of(info)
    for dtype in info.some_dtypes:
        for sample in info.some(dtype):
            plain = call(function, *arguments(sample, device, info))
            apart = call(function, *arguments(sample, device, info, strided))
            for a, b in zip(apart, plain, strict=True):
                check_same(info, a, b, f"{info.name}{sample}, strided", exact=False)


# ---- variants ----


def method_of(info: OpInfo) -> str:
    return str(info.op.schema.name).partition(".")[0]


@over(lambda info: info.op.function.is_method and info.op.function.is_function)
def test_method(info: OpInfo, device: str) -> None:
    function, method = function_of(info), getattr(tp.Tensor, method_of(info))
    at = [a.name for a in info.op.schema.arguments].index("self")  # polygamma and where name another one first
    for sample in info.samples(info.main_dtype, 3):
        args, kwargs = arguments(sample, device, info)
        expected = call(function, fresh(info, args), kwargs)
        if info.random:
            seed(kwargs)
        args = fresh(info, args)
        owner = args.pop(at)
        if not isinstance(owner, tp.Tensor):
            owner = tp.tensor(owner)  # a number stands in front
        got = call(method, [owner, *args], kwargs) if callable(method) else [getattr(owner, method_of(info))]
        for a, b in zip(got, expected, strict=True):
            check_same(info, a, b, f"{info.name}{sample}, as a method")


@over(lambda info: info.variant("inplace"))
def test_inplace(info: OpInfo, device: str) -> None:
    function, inplace = function_of(info), function_of(info, inplace=True)
    variant = info.variant("inplace")
    assert variant is not None
    takes_dtype = any(a.name == "dtype" for a in variant.schema.arguments)
    for dtype in info.some_dtypes:
        for sample in info.some(dtype):
            args, kwargs = arguments(sample, device, info)
            what = f"{info.name}{sample}, in place"
            expected = call(function, fresh(info, args), kwargs)[0]
            target = args[0].clone()
            version = target._version
            reshapes = "inplace_view" in {str(tag) for tag in variant.function.tags}
            fits = reshapes or tuple(target.shape) == tuple(expected.shape)
            if takes_dtype and target.dtype != expected.dtype:
                continue  # in place it computes in the dtype of its argument
            if not fits or not tp.can_cast(expected.dtype, target.dtype):
                with pytest.raises(RuntimeError):
                    inplace(target, *args[1:], **kwargs)
                check_same(info, target, args[0], f"{what} is refused and so leaves its argument alone")
                continue
            result = inplace(target, *args[1:], **kwargs)
            assert result is target, f"{what} does not return its argument"
            if not info.random:  # dropout_ may have nothing to write
                raised = target._version - version
                assert raised == 1 or (reshapes and raised > 0), f"{what}: version {target._version}"
            check_same(info, target, expected.to(target.dtype), what)


def takes_out(info: OpInfo) -> bool:
    if info.variant("out") is None or not info.op.function.is_function or info.op.kind == "inplace":
        return False
    return "out" in inspect.signature(function_of(info)).parameters


@over(takes_out)
def test_out(info: OpInfo, device: str) -> None:
    out_op = info.variant("out")
    assert out_op is not None
    function = function_of(info)
    single = len(out_op.schema.out) == 1 and str(out_op.schema.out[0].type) == "Tensor"
    takes_dtype = any(a.name == "dtype" for a in info.op.schema.arguments)  # then out's is the one
    names = {a.name for a in out_op.schema.arguments}
    for dtype in info.some_dtypes:
        for sample in info.samples(dtype, 3):
            args, kwargs = arguments(sample, device, info)
            what = f"{info.name}{sample}, out="
            expected = call(function, args, kwargs)
            kwargs = {k: v for k, v in kwargs.items() if k in names}  # a factory's dtype is that of out
            for exact in (True, False):
                outs = [tp.empty(e.shape if exact else (0,), dtype=e.dtype, device=device) for e in expected]
                result = function(*args, **kwargs, out=outs[0] if single else tuple(outs))
                assert not single or result is outs[0], f"{what} does not return out"
                for o, e in zip(outs, expected, strict=True):
                    check_same(info, o, e, what)
            wide = [tp.empty(tuple(2 * s + 2 for s in e.shape), dtype=e.dtype, device=device) for e in expected]
            views = [w[tuple(slice(1, 2 * s + 1, 2) for s in e.shape)] for w, e in zip(wide, expected, strict=True)]
            function(*args, **kwargs, out=views[0] if single else tuple(views))
            for o, e in zip(views, expected, strict=True):
                # Another layout may be reduced in another order.
                check_same(info, o, e, f"{what} with strides", exact=False)
            if single and info.op.tensor_arguments and not takes_dtype and not tp.can_cast(expected[0].dtype, tp.bool):
                before = tp.zeros(expected[0].shape, dtype=tp.bool, device=device)
                with pytest.raises(RuntimeError):
                    function(*args, **kwargs, out=before)


# ---- Meta ----


def knows_its_shape(kwargs: dict[str, Any], args: list[Any]) -> bool:
    """one_hot with a number of classes, repeat_interleave with an output_size, index without masks."""
    return bool(kwargs.get("output_size")) or any(isinstance(a, (int, list)) for a in args[1:])


@over()
def test_meta(info: OpInfo) -> None:
    function = function_of(info)
    for dtype in info.some_dtypes:
        for sample in info.some(dtype):
            args, kwargs = arguments(sample, "cpu", info)
            meta_args, meta_kwargs = arguments(sample, "meta", info)
            what = f"{info.name}{sample} on meta"
            if info.needs_values or info.tags & {"dynamic_output_shape", "data_dependent_output"}:
                try:
                    function(*meta_args, **meta_kwargs)
                except (RuntimeError, NotImplementedError):
                    continue
                assert knows_its_shape(kwargs, args), f"{what}: not refused"
            if not any(str(r.type).startswith("Tensor") for r in info.op.schema.returns):
                assert function(*meta_args, **meta_kwargs) == function(*args, **kwargs), what
                continue
            for m, c in zip(call(function, meta_args, meta_kwargs), call(function, args, kwargs), strict=True):
                assert m.device.type == "meta", what
                assert (m.shape, m.dtype, m.stride()) == (c.shape, c.dtype, c.stride()), (
                    f"{what}: {m.shape} {m.dtype} {m.stride()}, cpu: {c.shape} {c.dtype} {c.stride()}"
                )


# ---- schema facts ----


@over(lambda info: info.op.kind != "inplace")
def test_arguments_stay_as_they_are(info: OpInfo, device: str) -> None:
    """A functional operator changes nothing but what its schema says; others than views have memory of their own."""
    function = function_of(info)
    written = {a.name for a in info.op.schema.arguments if a.is_write}
    for sample in info.some(info.main_dtype):
        args, kwargs = arguments(sample, device, info)
        given = each_argument([*args, *kwargs.values()])
        before = [(to_numpy(a), a._version) for a in given]
        results = call(function, args, kwargs)
        for a, (values, version) in zip(given, before, strict=True):
            if written or info.writes:
                continue
            assert a._version == version, f"{info.name}{sample}: wrote to an argument"
            check_equal(a, values, (0.0, 0.0), f"{info.name}{sample}: changed an argument")
        if info.op.is_view or info.op.is_implicit:
            continue
        for r in results:
            for a in given:
                if r.numel() and a.numel():
                    assert r.data_ptr() != a.data_ptr(), f"{info.name}{sample}: shares memory with its argument"


@over(lambda info: info.op.is_view and not info.copies)
def test_views(info: OpInfo, device: str) -> None:
    """A view shares memory and knows its base; a write through it raises the base's version."""
    function = function_of(info)
    for sample in info.some(info.main_dtype):
        args, kwargs = arguments(sample, device, info)
        for r in call(function, args, kwargs):
            if not r.numel() or r is args[0]:
                continue
            if info.base != "detach":
                assert r._base is args[0], f"{info.name}{sample}: _base is not the argument"
            version = args[0]._version
            if r.numel() <= args[0].numel():
                r.zero_()
                assert args[0]._version > version, f"{info.name}{sample}: a write through the view raises no version"
            if r.numel() == args[0].numel() and r.dtype == args[0].dtype:
                assert not to_numpy(args[0]).any(), f"{info.name}{sample}: does not share memory"
