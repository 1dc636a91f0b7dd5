"""What is asked of an operator on a device, one check after another, over the samples of the table.

A check takes an operator, a dtype and the device's name, and raises AssertionError where the device gives something
else than it should. Whatever else is raised is the operator refusing its arguments; `device.py` decides whether that
was declared. Checks that compare with the CPU are not run on the CPU itself.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorpy as tp
from tensorpy import _C, autograd

from .harness import (
    arguments,
    call,
    check_equal,
    check_same,
    each_argument,
    fresh,
    function_of,
    inputs_of,
    name_of,
    same_place,
    seed,
    strided,
    to_numpy,
    to_tensor,
)
from .samples import Array, OpInfo, OpSample
from .samples.table import FLOATING, LEAF_OF, round_to

When = Callable[[OpInfo], Any]
Run = Callable[[OpInfo, str, str], None]
Dtypes = Callable[[OpInfo], Sequence[str]]


@dataclass(frozen=True)
class Check:
    """`run(info, dtype, device)` for the operators that `when` holds for, in each of `dtypes`."""

    name: str
    run: Run
    when: When
    dtypes: Dtypes
    against_cpu: bool

    @property
    def doc(self) -> str:
        return (self.run.__doc__ or "").split("\n")[0]


CHECKS: dict[str, Check] = {}


def _each_class(info: OpInfo) -> Sequence[str]:
    return info.some_dtypes


def _main(info: OpInfo) -> Sequence[str]:
    return [info.main_dtype]


def _all(info: OpInfo) -> Sequence[str]:
    return info.dtypes


def check(
    name: str, when: When = lambda info: True, dtypes: Dtypes = _each_class, against_cpu: bool = False
) -> Callable[[Run], Run]:
    """Adds a check to the list."""

    def register(run: Run) -> Run:
        CHECKS[name] = Check(name, run, when, dtypes, against_cpu)
        return run

    return register


def refuses(action: Callable[[], Any], what: str) -> None:
    """The action raises the error of a tensor that does not fit."""
    try:
        action()
    except RuntimeError:
        return
    raise AssertionError(f"{what}: not refused")


# ---- values: NumPy's ----

REAL_OF = {"complex64": "float32", "complex128": "float64"}


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


def expected_values(info: OpInfo, sample: OpSample) -> list[np.ndarray[Any, Any]]:
    assert info.reference is not None
    args, kwargs = sample.map(lambda stand_in: stand_in.wide())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = info.reference(*args, **kwargs)
    return [np.asarray(r) for r in result] if isinstance(result, (list, tuple)) else [np.asarray(result)]


@check("reference", lambda info: info.reference, _all)
def reference(info: OpInfo, dtype: str, device: str) -> None:
    """The values are NumPy's: of every sample in the main dtype, of some in each other."""
    function = function_of(info)
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


# ---- values: the CPU's ----


def _arrays(sample: OpSample) -> list[Array]:
    found: list[Array] = []
    sample.map(lambda stand_in: found.append(stand_in) if isinstance(stand_in, Array) else None)
    return found


def _is_empty(sample: OpSample) -> bool:
    return any(not a.values.size for a in _arrays(sample))


def _is_broadcast(info: OpInfo, sample: OpSample) -> bool:
    return info.op.pointwise is not None and len({a.values.shape for a in _arrays(sample)}) > 1


def _attempt(info: OpInfo, sample: OpSample, device: str) -> list[tp.Tensor] | Exception:
    args, kwargs = arguments(sample, device, info)
    try:
        return call(function_of(info), fresh(info, args), kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return error


def like_the_cpu(info: OpInfo, sample: OpSample, device: str) -> None:
    """What the CPU refuses is refused by the device too."""
    expected, got = _attempt(info, sample, "cpu"), _attempt(info, sample, device)
    what = f"{info.name}{sample}"
    if isinstance(expected, Exception):
        assert isinstance(got, Exception), f"{what}: the CPU refuses it: {expected}"
        return
    if isinstance(got, Exception):
        raise got
    assert len(got) == len(expected), f"{what}: {len(got)} results"
    told = any(a.name == "device" for a in info.op.schema.arguments)  # or not told: then the result is on the CPU
    for g, e in zip(got, expected, strict=True):
        assert told or same_place(g, device) or g.ndim == 0, f"{what}: a result on {g.device}"
        check_same(info, g, e, what, exact=False, strides=True)


def _samples(info: OpInfo, dtype: str, wanted: Callable[[OpSample], bool]) -> Iterator[OpSample]:
    found = [s for s in info.samples(dtype) if wanted(s)]
    yield from found if dtype == info.main_dtype else found[:10]


@check("values", dtypes=_all, against_cpu=True)
def values(info: OpInfo, dtype: str, device: str) -> None:
    """Values, dtype, shape and strides are the CPU's."""
    for sample in _samples(info, dtype, lambda s: not _is_empty(s) and not _is_broadcast(info, s)):
        like_the_cpu(info, sample, device)


@check("zero-size", lambda info: any(_is_empty(s) for s in info.samples(info.main_dtype)), against_cpu=True)
def zero_size(info: OpInfo, dtype: str, device: str) -> None:
    """The same of samples in which a tensor has no elements."""
    for sample in _samples(info, dtype, _is_empty):
        like_the_cpu(info, sample, device)


@check("broadcast", lambda info: info.op.pointwise is not None and len(info.op.tensor_arguments) > 1, against_cpu=True)
def broadcast(info: OpInfo, dtype: str, device: str) -> None:
    """The same of pointwise samples whose tensors differ in shape."""
    for sample in _samples(info, dtype, lambda s: _is_broadcast(info, s) and not _is_empty(s)):
        like_the_cpu(info, sample, device)


# ---- layouts ----


@check("strided", lambda info: not info.dense)
def strided_arguments(info: OpInfo, dtype: str, device: str) -> None:
    """Every other element of something larger gives what the same values in order give."""
    function = function_of(info)
    for sample in info.some(dtype):
        plain = call(function, *arguments(sample, device, info))
        apart_ = call(function, *arguments(sample, device, info, strided))
        for a, b in zip(apart_, plain, strict=True):
            check_same(info, a, b, f"{info.name}{sample}, strided", exact=False)


def transposed(a: Array, device: str) -> tp.Tensor:
    """The first and the last dimension change places in memory."""
    if a.values.ndim < 2:
        return to_tensor(a, device)
    return to_tensor(Array(np.swapaxes(a.values, 0, -1), a.dtype), device).transpose(0, -1)


def apart(a: Array, device: str) -> tp.Tensor:
    """Every other element of every dimension of something larger, from its second row on."""
    if not a.values.size or not a.values.ndim:
        return to_tensor(a, device)
    wide = tp.zeros(tuple(2 * n + 1 for n in a.values.shape), dtype=getattr(tp, a.dtype), device=device)
    part = wide[tuple(slice(1, 2 * n + 1, 2) for n in a.values.shape)]
    return part.copy_(to_tensor(a, device))


def channels_last(a: Array, device: str) -> tp.Tensor:
    """The second dimension innermost in memory."""
    if a.values.ndim < 3:
        return to_tensor(a, device)
    return to_tensor(Array(np.moveaxis(a.values, 1, -1), a.dtype), device).movedim(-1, 1)


def expanded(a: Array, device: str) -> tp.Tensor:
    """One row for all; of places and flags, which may have to differ, the rows as they are."""
    if a.values.ndim < 1 or not a.values.size or a.dtype not in FLOATING:
        return to_tensor(a, device)
    return to_tensor(Array(a.values[:1], a.dtype), device).expand(a.values.shape)


def turned(a: Array, device: str) -> tp.Tensor:
    """Backwards in memory, where the source can say so (NumPy's negative strides); else turned by an index."""
    if not a.values.ndim or not a.values.size:
        return to_tensor(a, device)
    return to_tensor(Array(np.ascontiguousarray(a.values[::-1]), a.dtype), device).flip(0)


LAYOUTS = (transposed, apart, channels_last, expanded, turned)
STRICT = {"needs_exact_strides", "needs_contiguous_strides", "needs_fixed_stride_order"}


@check("layouts", lambda info: info.op.tensor_arguments and not info.dense and not info.tags & STRICT, _main)
def layouts(info: OpInfo, dtype: str, device: str) -> None:
    """Five more layouts, against the same values in order; the variant in place writes to what is laid out so."""
    for layout in LAYOUTS:
        for sample in info.samples(dtype, 5):
            one_layout(info, sample, layout, device)


REFUSED = (RuntimeError, TypeError, ValueError, IndexError)  # what an operator without a kernel for a layout may raise


@check("sparse", lambda info: info.op.tensor_arguments and not info.random and not info.unset, _main)
def sparse(info: OpInfo, dtype: str, device: str) -> None:
    """Sparse arguments, all of them, the first or the last, are refused, or give what dense ones give."""
    for sample in info.some(dtype):
        for layout, chosen in ((tp.sparse_coo, "all"), (tp.sparse_coo, "first"), (tp.sparse_coo, "last"),
                               (tp.sparse_csr, "all")):  # fmt: skip
            one_sparse(info, sample, layout, chosen, device)


Converted = tuple[list[Any], dict[str, Any], int]


def converted(
    info: OpInfo, sample: OpSample, device: str, chosen: str, convert: Callable[[tp.Tensor], tp.Tensor]
) -> Converted:
    """The arguments, of which all tensors, the first or the last are what `convert` makes of them; how many were."""
    tensors: list[tp.Tensor] = []

    def counted(a: Array, place: str) -> tp.Tensor:
        tensors.append(to_tensor(a, place))
        return tensors[-1]

    arguments(sample, device, info, counted)
    wanted = {"all": range(len(tensors)), "first": [0], "last": [len(tensors) - 1]}[chosen]
    number, made = -1, 0

    def one(a: Array, place: str) -> tp.Tensor:
        nonlocal number, made
        number += 1
        plain = to_tensor(a, place)
        other = convert(plain) if number in wanted else plain
        made += other is not plain
        return other

    args, kwargs = arguments(sample, device, info, one)
    return args, kwargs, made


def one_sparse(info: OpInfo, sample: OpSample, layout: tp.layout, chosen: str, device: str) -> None:
    def convert(plain: tp.Tensor) -> tp.Tensor:
        if not plain.ndim or (layout is tp.sparse_csr and plain.ndim != 2):
            return plain
        return plain.to_sparse(layout=layout)

    function = function_of(info)
    sparse_args, sparse_kwargs, made = converted(info, sample, device, chosen, convert)
    if not made:
        return
    try:
        found = call(function, sparse_args, sparse_kwargs)
    except REFUSED:
        return
    args, kwargs = arguments(sample, device, info)
    what = f"{info.name}{sample}, {layout} of {chosen}"
    for a, b in zip(found, call(function, args, kwargs), strict=True):
        if info.op.kind == "inplace" and a.shape != b.shape:
            continue  # a sparse tensor takes over the sizes of what is copied into it, as PyTorch's does
        check_same(info, a.to_dense() if isinstance(a, tp.Tensor) else a, b, what, exact=False)


def _gives_tensors(info: OpInfo) -> bool:
    """Not what a tensor is: the kind of its dtype, whether another is read as it is."""
    tensors = all(str(r.type).startswith("Tensor") for r in info.op.schema.returns)
    return tensors and not info.random and not info.unset


@check("quantized", lambda info: info.op.tensor_arguments and _gives_tensors(info), _main)
def quantized(info: OpInfo, dtype: str, device: str) -> None:
    """Quantized arguments, all of them, the first or the last, are refused, or give what their numbers give."""
    for sample in info.some(dtype) if dtype == "float32" else ():
        for chosen in ("all", "first", "last"):
            one_quantized(info, sample, chosen, device)


def one_quantized(info: OpInfo, sample: OpSample, chosen: str, device: str) -> None:
    def convert(plain: tp.Tensor) -> tp.Tensor:
        return tp.quantize_per_tensor(plain, 0.125, 3, tp.qint8) if plain.dtype is tp.float32 else plain

    function = function_of(info)
    args, kwargs, made = converted(info, sample, device, chosen, convert)
    if not made:
        return
    try:
        found = call(function, args, kwargs)
    except REFUSED:
        return
    plain_args, plain_kwargs, _ = converted(
        info, sample, device, chosen, lambda plain: convert(plain).dequantize() if plain.dtype is tp.float32 else plain
    )
    for a, b in zip(found, call(function, plain_args, plain_kwargs), strict=True):
        if not a.is_quantized:
            check_same(info, a, b, f"{info.name}{sample}, quantized {chosen}", exact=False)
            continue
        step = a.q_scale()
        least, most = (step * (limit - a.q_zero_point()) for limit in (-128, 127))
        kept = b.nan_to_num(nan=most).clamp(least, most)
        assert a.shape == b.shape, f"{info.name}{sample}: {tuple(a.shape)} of quantized tensors, {tuple(b.shape)}"
        assert tp.allclose(a.dequantize(), kept.to(tp.float32), rtol=0, atol=step), f"{info.name}{sample}, {chosen}"


def one_layout(info: OpInfo, sample: OpSample, layout: Callable[[Array, str], tp.Tensor], device: str) -> None:
    function = function_of(info)
    inplace = function_of(info, inplace=True) if info.variant("inplace") else None
    args, kwargs = arguments(sample, device, info, layout)
    plain, plain_kwargs = arguments(sample, device, info, lambda a, d: layout(a, d).contiguous().clone())
    what = f"{info.name}{sample}, {layout.__name__}"
    if info.op.kind != "inplace":
        try:
            expected = call(function, plain, plain_kwargs)
        except RuntimeError as refused:  # equal elements, which a matrix may not have everywhere
            if layout is not expanded:
                raise
            try:
                call(function, args, kwargs)
            except type(refused):
                return
            raise AssertionError(f"{what}: not refused, as its copy is: {refused}") from refused
        for a, b in zip(call(function, args, kwargs), expected, strict=True):
            check_same(info, a, b, what, exact=False)
    if inplace is None or layout is expanded or "inplace_view" in info.tags:
        return
    try:
        wanted = call(inplace, plain, plain_kwargs)[0]
    except RuntimeError:
        return  # the result does not fit: the check of in-place variants
    check_same(info, call(inplace, args, kwargs)[0], wanted, f"{what}, in place", exact=False)


# ---- bytes of bools ----

ODD_BYTES = np.array([2, 255, 128, 1, 254, 64], dtype=np.uint8)


def odd_bools(a: Array, device: str) -> tp.Tensor:
    """Bools whose bytes are whatever a view of other memory may hold: 0, and several that all mean true."""
    if a.dtype != "bool" or not a.values.size:
        return to_tensor(a, device)
    odd = np.resize(ODD_BYTES, a.values.shape)
    return _C.tensor(np.where(a.values, odd, 0).tolist(), dtype=tp.uint8).to(device=device).view(tp.bool)


def _takes_bools(info: OpInfo) -> Sequence[str]:
    """The dtypes with a sample among whose tensors one is of bools."""
    return [d for d in info.dtypes if any(a.dtype == "bool" for s in info.samples(d) for a in _arrays(s))]


@check("bool bytes", lambda info: info.name != "view.dtype", _takes_bools)
def bool_bytes(info: OpInfo, dtype: str, device: str) -> None:
    """Every byte of a bool that is not 0 is true: bytes of 1 and others give the same, the variant in place too."""
    functions = [function_of(info)] + ([function_of(info, inplace=True)] if info.variant("inplace") else [])
    for sample in info.some(dtype):
        if not any(a.dtype == "bool" for a in _arrays(sample)):
            continue
        for function in functions:
            results: list[Any] = []
            for make in (to_tensor, odd_bools):
                args, kwargs = arguments(sample, device, info, make)
                if function is not functions[0]:
                    args[0] = args[0].clone()
                try:
                    results.append(call(function, fresh(info, args), kwargs))
                except (RuntimeError, TypeError, ValueError, IndexError) as error:
                    results.append(type(error))
            what = f"{info.name}{sample}, bools of other bytes"
            if isinstance(results[0], type):
                assert results[0] is results[1], f"{what}: {results[1]}, expected {results[0]}"
                continue
            for got, expected in zip(results[1], results[0], strict=True):
                check_same(info, got, expected, what)


# ---- variants ----


@check("in-place", lambda info: info.variant("inplace"))
def inplace_variant(info: OpInfo, dtype: str, device: str) -> None:
    """It returns its argument with the functional operator's values and a new version, or leaves it alone."""
    function, inplace = function_of(info), function_of(info, inplace=True)
    variant = info.variant("inplace")
    assert variant is not None
    takes_dtype = any(a.name == "dtype" for a in variant.schema.arguments)
    reshapes = "inplace_view" in {str(tag) for tag in variant.function.tags}
    for sample in info.some(dtype):
        args, kwargs = arguments(sample, device, info)
        what = f"{info.name}{sample}, in place"
        expected = call(function, fresh(info, args), kwargs)[0]
        target = args[0].clone()
        version = target._version
        fits = reshapes or tuple(target.shape) == tuple(expected.shape)
        if takes_dtype and target.dtype != expected.dtype:
            continue  # in place it computes in the dtype of its argument
        parted = target.dtype.is_complex and not expected.dtype.is_complex  # an angle would not stand there
        parted = parted and info.op.pointwise is not None and info.op.pointwise.promotion == "complex_to_float"
        if not fits or parted or not _C.can_cast(expected.dtype, target.dtype):
            refuses(lambda: inplace(target, *args[1:], **kwargs), what)  # noqa: B023
            check_same(info, target, args[0], f"{what} is refused and so leaves its argument alone")
            continue
        result = inplace(target, *args[1:], **kwargs)
        assert result is target, f"{what} does not return its argument"
        if not info.random:  # dropout_ may have nothing to write
            raised = target._version - version
            writes = 0 if variant.function.manual_cpp_binding else 1  # detach_ is bound by hand, and writes nothing
            assert raised == writes or (reshapes and raised > writes), f"{what}: version {target._version}"
        check_same(info, target, expected.to(target.dtype), what)


def takes_out(info: OpInfo) -> bool:
    out = info.variant("out")
    if out is None or not out.function.variants or not info.op.function.is_function or info.op.kind == "inplace":
        return False
    return "out" in inspect.signature(function_of(info)).parameters


@check("out=", takes_out)
def out_variant(info: OpInfo, dtype: str, device: str) -> None:
    """The same into given tensors: of the right shape, of none, with strides; of the wrong dtype an error."""
    out_op = info.variant("out")
    assert out_op is not None
    function = function_of(info)
    single = len(out_op.schema.out) == 1 and str(out_op.schema.out[0].type) == "Tensor"
    # Then out's is the one; and what is drawn is drawn into out.
    takes_dtype = info.random or any(a.name == "dtype" for a in info.op.schema.arguments)
    names = {a.name for a in out_op.schema.arguments}
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
                # What names no device made its result on the CPU, and out= on this one.
                check_same(info, o, e, what, exact=e.device == o.device)
        wide = [tp.empty(tuple(2 * s + 2 for s in e.shape), dtype=e.dtype, device=device) for e in expected]
        views = [w[tuple(slice(1, 2 * s + 1, 2) for s in e.shape)] for w, e in zip(wide, expected, strict=True)]
        function(*args, **kwargs, out=views[0] if single else tuple(views))
        for o, e in zip(views, expected, strict=True):
            # Another layout may be reduced in another order.
            check_same(info, o, e, f"{what} with strides", exact=False)
        if single and info.op.tensor_arguments and not takes_dtype and not _C.can_cast(expected[0].dtype, tp.bool):
            before = tp.zeros(expected[0].shape, dtype=tp.bool, device=device)
            refuses(lambda: function(*args, **kwargs, out=before), f"{what} of bools")  # noqa: B023
        if single and not info.random:
            _in_part(functools.partial(function, **kwargs), args, expected[0], what)
        if single and info.op.tensor_arguments and not info.op.schema.is_factory:
            other = tp.empty(expected[0].numel() + 3, 2, dtype=expected[0].dtype, device=device)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                function(*args, **kwargs, out=other)
            told = [w for w in seen if str(w.message).startswith("An output with one or more elements was resized")]
            assert len(told) == 1, f"{what} of another size: {len(told)} warnings that it is resized"


def _in_part(function: Callable[..., Any], args: Sequence[Any], expected: tp.Tensor, what: str) -> None:
    """An out= that is a part of what is read, or that a part of it, is refused, and stays as it was."""
    for place, read in enumerate(args):
        if not isinstance(read, tp.Tensor) or read.dtype != expected.dtype or min(read.numel(), expected.numel()) < 2:
            continue
        memory = tp.empty(read.numel() + expected.numel(), dtype=read.dtype, device=read.device)
        given, out = memory[: read.numel()].view(read.shape), memory[1 : 1 + expected.numel()].view(expected.shape)
        given.copy_(read)
        before = memory.clone()
        others = [*args[:place], given, *args[place + 1 :]]
        refuses(lambda: function(*others, out=out), f"{what} that shares memory with argument {place} in part")  # noqa: B023
        assert tp.equal(memory.view(tp.uint8), before.view(tp.uint8)), f"{what} was refused, and is written"


# ---- what the schema says ----


@check("arguments", lambda info: info.op.kind != "inplace", _main)
def arguments_stay(info: OpInfo, dtype: str, device: str) -> None:
    """A functional operator changes nothing but what its schema says; others than views have memory of their own."""
    function = function_of(info)
    written = {a.name for a in info.op.schema.arguments if a.is_write}
    for sample in info.some(dtype):
        args, kwargs = arguments(sample, device, info)
        given = each_argument([*args, *kwargs.values()])
        before = [(to_numpy(a), a._version) for a in given]
        results = call(function, args, kwargs)
        for a, (content, version) in zip(given, before, strict=True):
            if written or info.writes:
                continue
            assert a._version == version, f"{info.name}{sample}: wrote to an argument"
            check_equal(a, content, (0.0, 0.0), f"{info.name}{sample}: changed an argument")
        if info.op.is_view or info.op.is_implicit:
            continue
        for r in results:
            for a in given:
                if r.numel() and a.numel():
                    assert r.data_ptr() != a.data_ptr(), f"{info.name}{sample}: shares memory with its argument"


@check("views", lambda info: info.op.is_view and not info.copies, _main)
def views(info: OpInfo, dtype: str, device: str) -> None:
    """A view shares memory and knows its base; a write through it raises the base's version."""
    function = function_of(info)
    for sample in info.some(dtype):
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


# ---- gradients ----


def _differentiated(info: OpInfo) -> Sequence[str]:
    return [d for d in ("float32", "float64", "complex128") if d in info.dtypes]


def _gradients(
    info: OpInfo, sample: OpSample, device: str, order: int, function: Callable[..., Any] | None = None
) -> list[tp.Tensor | None] | None:
    """The gradients of a weighted sum of the results, or of a weighted sum of these; None where there are none."""
    args, kwargs = arguments(sample, device, info)
    inputs, fill = inputs_of(info, args, kwargs)
    a, k = fill(inputs)
    results: Sequence[tp.Tensor | None] = call(function or function_of(info), fresh(info, a), k)
    if not any(t.numel() for t in inputs):
        return None
    for step in range(order):
        kept = [r for r in results if r is not None and r.requires_grad]
        if not kept:
            return None
        weights = [_weights(r, n, device) for n, r in enumerate(kept)]
        results = autograd.grad(kept, inputs, weights, create_graph=step + 1 < order, allow_unused=True)
    return list(results)


def _weights(r: tp.Tensor, n: int, device: str) -> tp.Tensor:
    drawn = np.random.RandomState(n).uniform(0.5, 1.5, tuple(r.shape))
    return _C.tensor(drawn.tolist(), dtype=r.dtype).reshape(r.shape).to(device=device)


def _gradientslike_the_cpus(info: OpInfo, dtype: str, device: str, order: int) -> None:
    for sample in info.samples(dtype, 6 if order == 1 else 3):
        try:
            expected = _gradients(info, sample, "cpu", order)
        except (RuntimeError, ValueError, TypeError):
            continue  # of a source that is larger than what is scattered
        if expected is None:
            continue
        got = _gradients(info, sample, device, order)
        what = f"{info.name}{sample}, derivative {order}"
        assert got is not None, f"{what}: there is none"
        for g, e in zip(got, expected, strict=True):
            assert (g is None) == (e is None), f"{what}: {g}, expected {e}"
            if g is not None and e is not None:
                rtol, atol = info.tolerance(dtype)
                check_equal(g, to_numpy(e), (20 * rtol, 20 * atol), what)


@check("gradient", lambda info: info.differentiable, _differentiated, against_cpu=True)
def gradient(info: OpInfo, dtype: str, device: str) -> None:
    """The gradients are the CPU's (whose own are compared with finite differences)."""
    _gradientslike_the_cpus(info, dtype, device, 1)


@check("2nd gradient", lambda i: i.differentiable and i.gradgradcheck, _differentiated, against_cpu=True)
def second_gradient(info: OpInfo, dtype: str, device: str) -> None:
    """The gradients of the gradients are the CPU's."""
    _gradientslike_the_cpus(info, dtype, device, 2)


# ---- autocast ----


BACKENDS = {"cpu": "CPU", "opencl": "OpenCL", "privateuseone": "PrivateUse1"}


def _cast(value: Any, to: tp.dtype) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, to) for v in value)
    casts = isinstance(value, tp.Tensor) and value.is_floating_point() and value.dtype != tp.float64
    return value.to(to) if casts else value


def under_policy(policy: str | None, info: OpInfo, args: list[Any], kwargs: dict[str, Any], low: tp.dtype) -> list[Any]:
    """What an operator gives without autocast, on arguments that are cast by hand."""
    there = [t for t in each_argument([*args, *kwargs.values()]) if t.is_floating_point() and t.dtype != tp.float64]
    if policy == "fp32_set_opt_dtype" and kwargs.get("dtype") is None and args[0].is_floating_point():
        names = [a.name for a in info.op.schema.arguments]
        positional = dict(zip(names, args, strict=False))
        if args[0].dtype != tp.float64 and positional.get("dtype") is None:
            positional.pop("dtype", None)
            return call(function_of(info), [], {**positional, **kwargs, "dtype": tp.float32})
    to = {"lower_precision_fp": low, "fp32": tp.float32, "fp32_append_dtype": tp.float32}.get(policy or "")
    if policy == "promote":
        to = tp.float32 if any(t.dtype == tp.float32 for t in there) else low
    if to is not None:
        args, kwargs = [_cast(a, to) for a in args], {k: _cast(v, to) for k, v in kwargs.items()}
    return call(function_of(info), args, kwargs)


@check("autocast", lambda info: info.op.autocast and "float32" in info.dtypes, lambda i: ["float32", "float16"])
def autocast(info: OpInfo, dtype: str, device: str) -> None:
    """Under autocast to bfloat16 an operator gives what it gives on arguments that are cast by its policy there."""
    function, kind = function_of(info), device.partition(":")[0]
    policy = info.op.autocast_on(BACKENDS.get(kind, "PrivateUse1"))
    if policy is None:
        return
    for sample in info.samples(dtype, 3):
        args, kwargs = arguments(sample, device, info)
        what = f"{info.name}{sample} under autocast, {policy}"
        if policy == "banned":
            try:
                with tp.autocast(kind, dtype=tp.bfloat16):
                    function(*args, **kwargs)
            except RuntimeError as error:
                assert "unsafe to autocast" in str(error), f"{what}: {error}"
                continue
            raise AssertionError(f"{what}: not refused")
        try:
            expected = under_policy(policy, info, fresh(info, args), dict(kwargs), tp.bfloat16)
        except (RuntimeError, TypeError, NotImplementedError):
            continue  # the dtype is none of the operator's
        with tp.autocast(kind, dtype=tp.bfloat16):
            got = call(function, fresh(info, args), kwargs)
        for g, e in zip(got, expected, strict=True):
            assert g.dtype == e.dtype, f"{what}: {g.dtype}, expected {e.dtype}"
            if not info.unset:
                check_equal(g, to_numpy(e), (2e-2, 2e-2), what)


# ---- random numbers ----


@check("random", lambda info: info.without_reference == "random", _main)
def random(info: OpInfo, dtype: str, device: str) -> None:
    """The same seed gives the same, what is drawn next differs."""
    function = function_of(info)
    inner = getattr(function, "__wrapped__", function)
    drew = differed = False
    for sample in info.samples(dtype):
        args, kwargs = arguments(sample, device, info)
        once, again = ([r.tolist() for r in call(function, fresh(info, args), kwargs)] for _ in range(2))
        assert once == again, f"{info.name}{sample}"
        seed(kwargs)
        first, second = ([r.tolist() for r in call(inner, fresh(info, args), kwargs)] for _ in range(2))
        drew, differed = True, differed or first != second
    assert drew and differed, f"{info.name} never draws another number"


# ---- inside of compiled functions ----

COMPILED = {"aot_eager": "noted", "tensorpy": "fused"}


def bits(t: tp.Tensor) -> bytes:
    """The bytes of the elements, in order."""
    plain = tp.empty(t.numel(), dtype=t.dtype, device=t.device).copy_(t.detach().reshape(-1))
    return bytes(plain.view(tp.uint8).cpu().numpy()) if plain.numel() else b""


def _outcome(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> list[tp.Tensor] | Exception:
    try:
        return call(function, args, kwargs)
    except Exception as error:
        return error


def _between_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """What it takes has been computed just before, and what it gives is read just after."""

    def run(*args: Any, **kwargs: Any) -> Any:
        copies = [a.clone() if isinstance(a, tp.Tensor) else a for a in args]
        result = function(*copies, **kwargs)
        after = [t.clone() for t in each_argument(result if isinstance(result, (list, tuple)) else [result])]
        return [*call(lambda: result, [], {}), *after, *each_argument(copies)]

    return run


def _same_outcome(info: OpInfo, got: Any, expected: Any, what: str) -> None:
    if isinstance(expected, Exception) or isinstance(got, Exception):
        assert type(got) is type(expected), f"{what}: {got!r}, expected {expected!r}"
        assert str(got) == str(expected), f"{what}: {got}, expected {expected}"
        return
    assert len(got) == len(expected), f"{what}: {len(got)} results"
    for g, e in zip(got, expected, strict=True):
        check_same(info, g, e, what, strides=True)
        assert g._version == e._version, f"{what}: version {g._version}, expected {e._version}"
        assert info.unset or bits(g) == bits(e), f"{what}: other bits"


@check("compiled")
def compiled(info: OpInfo, dtype: str, device: str) -> None:
    """A compiled function gives the same bits, strides, versions and errors, alone and between copies, in place too."""
    functions = [function_of(info)] + ([function_of(info, inplace=True)] if info.variant("inplace") else [])
    for sample in info.some(dtype) if dtype != info.main_dtype else info.samples(dtype):
        for function in (f for plain in functions for f in (plain, _between_copies(plain))):
            outcomes = {}
            for backend in ("eager", *COMPILED):
                ready = tp.compile(function, backend=backend, options={"smallest": 0})
                args, kwargs = arguments(sample, device, info)
                given = [a.clone() if isinstance(a, tp.Tensor) else a for a in args]
                tp.manual_seed(7)
                seed(kwargs)
                outcomes[backend] = _outcome(ready, given, kwargs)
            for backend, how in COMPILED.items():
                _same_outcome(info, outcomes[backend], outcomes["eager"], f"{info.name}{sample}, {how}")


def _one_real(info: OpInfo) -> Sequence[str]:
    return [d for d in ("float32", "complex128") if d in info.dtypes]


@check("compiled_gradient", lambda info: info.differentiable, _one_real)
def compiled_gradient(info: OpInfo, dtype: str, device: str) -> None:
    """The gradients of what a compiled function gives have the same bits and strides, alone and between copies."""

    def gradients(sample: OpSample, function: Callable[..., Any]) -> list[tp.Tensor | None] | Exception | None:
        tp.manual_seed(7)
        try:
            return _gradients(info, sample, device, 1, function)
        except Exception as error:
            return error

    for sample in info.samples(dtype, 3):
        for function in (function_of(info), _between_copies(function_of(info))):
            expected = gradients(sample, function)
            for backend, how in COMPILED.items():
                got = gradients(sample, tp.compile(function, backend=backend, options={"smallest": 0}))
                what = f"{info.name}{sample}, {how}"
                if isinstance(expected, Exception) or isinstance(got, Exception) or expected is None or got is None:
                    assert (type(got), str(got)) == (type(expected), str(expected)), f"{what}: {got}, not {expected}"
                    continue
                for g, e in zip(got, expected, strict=True):
                    assert (g is None) == (e is None), f"{what}: {g}, expected {e}"
                    if g is not None and e is not None:
                        check_same(info, g, e, what, strides=True)
                        assert bits(g) == bits(e), f"{what}: other bits"


__all__ = ["CHECKS", "LAYOUTS", "Check"]
