"""Random calls of every operator, on tensorpy and on PyTorch; a program, so that a crash or a hang kills only itself.

    python differential.py [--seed=N] [--calls=N | --seconds=N] [--device=cpu] [--repeat=SEED:CALL] [NAME...]

A call begins as a sample of the table; its schema says what may be done to it: other layouts (transposed, every other
element, expanded, overlapping, channels last, an offset), more dimensions, none, sizes of 0 and 1, a second dtype,
numbers at the ends of their dtype, infinities, NaN, other dims, flags and numbers; into `out=` (fresh, of strides, an
input itself) and in place. Where PyTorch takes it, tensorpy takes it too and gives the same dtype, shape and values,
and for pointwise operators and views the same strides; where both refuse, the class of the error is the same.

Each call is drawn from its own seed, SEED:CALL, which a finding names.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tensorpy as tp
from tensorpy.testing.samples import TABLE, Array, OpInfo
from tensorpy.testing.samples.table import LEAF_OF, Dtype, Plain

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
LARGEST = 4096  # elements of a tensor
SECONDS = 60  # of one call, before it counts as hanging

# ---- what is called ----


def names_of(op: Any) -> tuple[str, str]:
    base, _, overload = str(op.schema.name).partition(".")
    return base, overload or "default"


def function_in(library: Any, op: Any) -> Any:
    """The overload as a function of one of the two libraries, or None."""
    base, overload = names_of(op)
    packet = getattr(library.ops.aten, base, None)
    return getattr(packet, overload, None) if packet is not None else None


# Where PyTorch itself is at odds with its own documentation, or gives what memory held before.
ASTRAY = {
    "addbmm": "in place it changes its argument's shape",
    "binary_cross_entropy": "into out= it leaves sums of other elements",
    "gelu": "into a strided out= it writes as if that were dense",
    "pixel_unshuffle": "of nothing it gives the argument's shape",
    "convolution": "of no channels it gives no channels",
    "addmv": "of nothing it gives the argument's shape",
    "take_along_dim": "reads what lies behind a dimension of one place",
    "isin": "takes bfloat16 where a number comes first",
    "conv1d": "the same",
    "conv2d": "the same",
    "conv3d": "the same",
    "view_copy": "takes what view refuses",
    "view_as_complex_copy": "gives complex numbers of 16-bit parts, a dtype that is not here",
    "cholesky_inverse": "a diagonal that is not real is taken for another matrix",
    "gradient": "does not look at how many coordinates there are",
    "multi_margin_loss": "of no rows it gives what memory held",
    "ctc_loss": "misreads targets with strides, and reads labels out of range",
    "hinge_embedding_loss": "keeps integers, rounding the margin",
    "linalg_lstsq": "without columns, gels alone says that nothing is left over",
}


def is_compared(info: OpInfo) -> bool:
    """Whether PyTorch has the operator, and its arguments say what it gives."""
    undetermined = info.random or info.unset or info.writes or info.without_reference == "random"
    # Halves of operators, which PyTorch's own callers prepare the arguments of; results that nobody asked for.
    private = info.base.startswith(("_", "native_", "unique_")) or info.base.endswith(("_backward", "_forward"))
    if undetermined or private or info.op.kind == "inplace" or info.base in ASTRAY:
        return False
    try:
        return function_in(torch, info.op) is not None
    except (AttributeError, RuntimeError):
        return False


# ---- arguments ----


@dataclass(frozen=True)
class Strided:
    """A tensor: what lies in memory, and how it is walked."""

    memory: np.ndarray
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __str__(self) -> str:
        return (
            f"{self.dtype}{list(self.sizes)} strides {list(self.strides)} offset {self.offset}: {self.memory.tolist()}"
        )

    def in_torch(self) -> torch.Tensor:
        flat = torch.from_numpy(self.memory.copy()).to(getattr(torch, self.dtype))
        return flat.as_strided(self.sizes, self.strides, self.offset)

    def in_tensorpy(self, device: str) -> tp.Tensor:
        flat = tp.from_numpy(self.memory.copy()).to(getattr(tp, self.dtype)).to(device=device)
        return flat.as_strided(self.sizes, self.strides, self.offset)


@dataclass
class Call:
    info: OpInfo
    dtype: str
    args: list[Any]
    kwargs: dict[str, Any]
    how: str = "functional"  # or "inplace", "out"
    out: str = ""  # "fresh", "strided", "input"
    notes: list[str] = field(default_factory=list)

    @property
    def op(self) -> Any:
        return self.info.op if self.how == "functional" else self.info.variant(self.how)

    def __str__(self) -> str:
        given = [str(a) for a in self.args] + [f"{k}={v}" for k, v in self.kwargs.items()]
        name = ".".join(names_of(self.op))
        return f"{name}({', '.join(given)}){' out: ' + self.out if self.out else ''}"


def contiguous_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


REPEATING = ("expanded", "overlapping")


def laid_out(rng: random.Random, values: np.ndarray, dtype: str, may_repeat: bool) -> Strided:
    """The values in one of several layouts; an expanded or overlapping one repeats some of them."""
    sizes = tuple(values.shape)
    plain = Strided(values.reshape(-1), dtype, sizes, contiguous_strides(sizes))
    kind = rng.choice(["plain", "plain", "order", "steps", "channels", "offset", *(REPEATING if may_repeat else ())])
    if not values.size or not sizes or kind == "plain":
        return plain
    if kind == "offset":
        return Strided(np.concatenate([values.reshape(-1)[:1], values.reshape(-1)]), dtype, sizes, plain.strides, 1)
    if kind == "expanded":
        d = rng.randrange(len(sizes))
        kept = values.take([0], axis=d)
        strides = list(contiguous_strides(kept.shape))
        strides[d] = 0
        return Strided(kept.reshape(-1), dtype, sizes, tuple(strides))
    if kind == "overlapping":
        strides = tuple(rng.randint(0, 2) for _ in sizes)
        reach = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1
        return Strided(np.resize(values.reshape(-1), reach), dtype, sizes, strides)
    order = list(range(len(sizes)))
    if kind == "channels" and len(sizes) >= 3:
        order = [0, *range(2, len(sizes)), 1]
    else:
        rng.shuffle(order)
    step = 2 if kind == "steps" else 1
    memory = np.repeat(values.transpose(order).reshape(-1), step)
    steps = contiguous_strides(tuple(sizes[d] for d in order))
    strides = [0] * len(sizes)
    for d, s in zip(order, steps, strict=True):
        strides[d] = s * step
    return Strided(memory, dtype, sizes, tuple(strides))


SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-30, 0.5, 2.5)


def with_special(rng: random.Random, values: np.ndarray, dtype: str) -> np.ndarray:
    """Some elements replaced by numbers at the ends of the dtype."""
    leaf, made = LEAF_OF[dtype], values.copy()
    flat = made.reshape(-1)
    for _ in range(min(3, flat.size)):
        at = rng.randrange(flat.size)
        if leaf == "float":
            flat[at] = rng.choice(SPECIAL)
        elif leaf in ("uint", "sint"):
            limits = np.iinfo(made.dtype)
            flat[at] = rng.choice([limits.min + 1, limits.max, 0, 1])  # the least has no absolute value
    return flat.reshape(made.shape)


# Where PyTorch's kernels do not follow a limit or a NaN's sign.
ODD_AT_THE_ENDS = {"polygamma", "special_polygamma", "special_zeta", "signbit", "copysign", "logit", "gcd", "lcm"}
# What PyTorch checks in Python or not at all.
UNCHECKED = {"interpolation_mode", "padding_mode", "reduction", "margin", "label_smoothing", "beta", "delta"}


class Drawing:
    """One call from its seed."""

    def __init__(self, seed: str, infos: list[OpInfo]) -> None:
        self.rng = random.Random(seed)
        self.info = self.rng.choice(infos)
        self.special = self.rng.random() < 0.25 and self.info.base not in ODD_AT_THE_ENDS

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def call(self) -> Call | None:
        dtypes = [d for d in self.info.dtypes if d in DTYPES]
        if not dtypes:
            return None
        dtype = self.rng.choice(dtypes)
        sample = self.rng.choice(self.info.samples(dtype))
        self.sizes = self.changed_sizes(sample)
        self.leading = self.rng.randint(1, 3) if self.info.op.pointwise is not None and self.chance(0.1) else 0
        self.other = self.rng.choice(DTYPES) if self.chance(0.1) else None
        args, kwargs = sample.map(self.plain)
        kinds = {a.name: str(a.type) for a in self.info.op.schema.arguments}
        names = list(kinds)
        args = [a if n in UNCHECKED else self.changed(a, kinds[n]) for a, n in zip(args, names, strict=False)]
        kwargs = {k: v if k in UNCHECKED else self.changed(v, kinds.get(k, "")) for k, v in kwargs.items()}
        call = Call(self.info, dtype, args, kwargs)
        self.choose_variant(call)
        return call

    def changed_sizes(self, sample: Any) -> dict[int, int]:
        """A size that becomes another wherever it occurs."""
        found: set[int] = set()
        sample.map(lambda v: found.update(v.values.shape) if isinstance(v, Array) else None)
        if not found or not self.chance(0.2):
            return {}
        return {self.rng.choice(sorted(found)): self.rng.choice([0, 1, 2, 5])}

    def plain(self, value: Plain) -> Any:
        if not isinstance(value, Array):
            return value
        values, dtype = value.values, value.dtype
        shape = tuple(self.sizes.get(n, n) for n in values.shape)
        if shape != values.shape:
            values = np.resize(values, shape) if values.size else np.zeros(shape, values.dtype)
        if self.leading and values.ndim + self.leading <= 7:
            values = values.reshape((1,) * self.leading + values.shape)
        own = dtype in DTYPES and LEAF_OF[dtype] == LEAF_OF[self.info.main_dtype]
        if self.other and own and self.chance(0.5):
            dtype = self.other
            with np.errstate(all="ignore"):
                values = np.real(values) if LEAF_OF[dtype] != "complex" else values
                values = np.nan_to_num(values).astype("float32" if dtype == "bfloat16" else dtype)
        if self.special and self.info.op.pointwise is not None and values.size:
            values = with_special(self.rng, values, dtype)
        # PyTorch's *_scatter, medians and their like write to copies that repeat as their argument does.
        only_read = self.info.op.pointwise is not None or self.info.op.reduction is not None
        return laid_out(self.rng, np.asarray(values), dtype, only_read or self.info.family == "products")

    def changed(self, value: Any, kind: str) -> Any:
        """Now and then another number, flag or dimension, as the schema's type allows."""
        if isinstance(value, (Strided, Plain, str)) or value is None or not self.chance(0.08):
            return value
        if isinstance(value, bool):
            return not value
        if isinstance(value, int) and kind.startswith(("int", "SymInt")):
            return value + self.rng.choice([-1, 1, -2, 2])
        if isinstance(value, float):
            return self.rng.choice([0.0, 1.0, -1.0, 0.5, 3.0])
        if isinstance(value, (list, tuple)) and value and all(type(v) is int for v in value):
            at = self.rng.randrange(len(value))
            return type(value)(v + self.rng.choice([-1, 1]) if i == at else v for i, v in enumerate(value))
        return value

    def choose_variant(self, call: Call) -> None:
        overlaps = isinstance(call.args[0], Strided) and 0 in call.args[0].strides if call.args else False
        if self.info.variant("inplace") and self.chance(0.15) and not overlaps:
            call.how = "inplace"
        elif self.info.variant("out") and self.chance(0.2) and self.one_out():
            call.how = "out"
            call.out = self.rng.choice(["fresh", "strided", "input"]) if self.info.op.pointwise else "dense"
            names = {a.name for a in call.op.schema.arguments}
            call.kwargs = {k: v for k, v in call.kwargs.items() if k in names}

    def one_out(self) -> bool:
        out = self.info.variant("out")
        return out is not None and [str(a.type) for a in out.schema.out] == ["Tensor"]


# ---- running it ----


def converted(value: Any, library: Any, device: str) -> Any:
    if isinstance(value, Strided):
        return value.in_torch() if library is torch else value.in_tensorpy(device)
    if isinstance(value, Dtype):
        return getattr(library, value.name)
    if isinstance(value, Plain):
        return library.device("cpu" if library is torch else device)
    if isinstance(value, (list, tuple)):
        return type(value)(converted(v, library, device) for v in value)
    return value


def tensors_of(result: Any) -> list[Any]:
    if isinstance(result, (torch.Tensor, tp.Tensor)):
        return [result]
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in tensors_of(r)]
    return [] if result is None else [result]


def outcome(call: Call, library: Any, device: str, like: Any = None) -> list[Any] | Exception:
    """What the call gives, or its error. `like` is what out= has to hold."""
    args = [converted(a, library, device) for a in call.args]
    kwargs = {k: converted(v, library, device) for k, v in call.kwargs.items()}
    if call.how == "inplace":
        args[0] = args[0].clone()
    if call.how == "out":
        name = call.op.schema.out[0].name
        kwargs[name] = out_for(call, library, device, args, like)
    try:
        return tensors_of(function_in(library, call.op)(*args, **kwargs))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError, MemoryError) as error:
        return error


def out_for(call: Call, library: Any, device: str, args: list[Any], like: Any) -> Any:
    dtype, sizes = getattr(library, str(like.dtype).rpartition(".")[2]), tuple(like.shape)
    made = {"device": device} if library is tp else {}
    if call.out == "input" and isinstance(args[0], library.Tensor):
        same = args[0].dtype == dtype and tuple(args[0].shape) == sizes and args[0].is_contiguous()
        if same:
            return args[0]
    if call.out == "strided" and sizes:
        return library.zeros(*[2 * n for n in sizes], dtype=dtype, **made)[tuple(slice(0, 2 * n, 2) for n in sizes)]
    return library.empty(*([0] if call.out == "fresh" else [sizes]), dtype=dtype, **made)


# ---- comparing ----

# Of equal elements it is not determined whose place is reported.
PLACES = {"argsort", "sort", "topk", "kthvalue", "median", "nanmedian", "mode", "msort"}
WITH_PIVOTS = {"lu_solve", "linalg_lu_solve", "linalg_ldl_solve", "lu_unpack"}
# Vectors are free up to a factor, by-products are each library's own: the result that holds the values.
VALUES = {"embedding_bag": 0, "linalg_svd": 1, "svd": 1, "linalg_eigh": 0, "linalg_eig": 0}
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 4e-5, "float64": 1e-9, "complex128": 1e-9}


def array_of(t: Any) -> np.ndarray:
    t = t.detach()
    if isinstance(t, torch.Tensor):
        t = t.resolve_conj().resolve_neg()
        return (t.float() if t.dtype == torch.bfloat16 else t).numpy()
    t = t.cpu()
    return (t.float() if t.dtype == tp.bfloat16 else t).resolve_conj().resolve_neg().numpy()


def strides_that_matter(t: Any) -> list[int]:
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() > 1 else []


OWN_LAYOUT = {"log_sigmoid", "conj_physical", "masked_fill", "pow"}


def promises_strides(call: Call) -> bool:
    """PyTorch does where a new result is laid out like its inputs, which are all laid out alike, and of views."""
    if call.how != "functional" or call.info.copies or call.info.base in OWN_LAYOUT:
        return False
    layouts = {(a.sizes, a.strides) for a in call.args if isinstance(a, Strided)}
    dense = all(sorted(st for n, st in zip(*at, strict=True) if n > 1)[:1] in ([], [1]) for at in layouts)
    dense &= all(a.memory.size == np.prod(a.sizes) for a in call.args if isinstance(a, Strided))
    return call.info.op.is_view or (call.info.op.pointwise is not None and len(layouts) == 1 and dense)


def coarsest_of(call: Call) -> float:
    """An operator may round in the dtype of any of its arguments, of integers in float32."""
    if call.info.base.startswith(("special_bessel_", "special_airy_")):
        return 1e-5  # which PyTorch's are off by, as SciPy has them
    own = 0.0 if call.info.op.pointwise is not None else TOLERANCE["float32"]
    return max((TOLERANCE.get(a.dtype, own) for a in call.args if isinstance(a, Strided)), default=0.0)


def scale_of(call: Call) -> float:
    """The largest number among the arguments, from which a difference of nearly equal ones keeps an error."""
    found = [np.abs(a.memory[np.isfinite(a.memory)]) for a in call.args if isinstance(a, Strided) and a.memory.size]
    return max((float(f.max()) for f in found if f.size), default=1.0)


def steps_of(call: Call) -> int:
    """By how much integers may differ: PyTorch's kernels resize bytes by sums that differ by one."""
    return int(call.info.base.startswith("upsample_") or call.info.base.startswith("_upsample_"))


def differ(
    got: Any, expected: Any, check_strides: bool, magnitude: float, coarsest: float, steps: int = 0
) -> str | None:
    if not isinstance(expected, torch.Tensor):
        same = got == expected or (got != got and expected != expected)
        return None if same else f"{got!r}, expected {expected!r}"
    dtype = str(expected.dtype).rpartition(".")[2]
    if str(got.dtype).rpartition(".")[2] != dtype:
        return f"{got.dtype}, expected {dtype}"
    if tuple(got.shape) != tuple(expected.shape):
        return f"shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
    if check_strides and strides_that_matter(got) != strides_that_matter(expected):
        return f"strides {tuple(got.stride())}, expected {tuple(expected.stride())}"
    a, e = array_of(got), array_of(expected)
    rtol = max(TOLERANCE.get(dtype, 0.0), coarsest)
    if dtype not in TOLERANCE:
        bad = np.abs(a.astype(np.int64) - e.astype(np.int64)) > 1 if steps and dtype == "uint8" else a != e
    else:
        with np.errstate(all="ignore"):
            finite = np.abs(e[np.isfinite(e)])
            scale = max(float(finite.max()) if finite.size else 0.0, magnitude)
            bad = ~np.isclose(a, e, rtol=rtol, atol=rtol * min(max(scale, 1e-6), 1e30), equal_nan=True)
    if dtype in ("float16", "bfloat16"):
        bad &= np.isfinite(e) & np.isfinite(a)  # PyTorch rounds to 16 bits on the way, and may leave their range
    if np.iscomplexobj(e):
        bad &= ~(np.isinf(e) & np.isinf(a))  # one part is infinite, the other may be anything
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(np.atleast_1d(bad))[0])
    return f"at {at}: {np.atleast_1d(a)[at]!r}, expected {np.atleast_1d(e)[at]!r}"


def is_number(a: Strided) -> bool:
    return LEAF_OF[a.dtype] in ("float", "complex")


def same_class(got: Exception, expected: Exception) -> bool:
    """NotImplementedError is a RuntimeError, and which of the two it is says nothing to who calls; for a place out of
    range PyTorch raises both RuntimeError and IndexError, as its loops go.
    """
    if "is missing value for argument" in str(expected):
        return True
    if isinstance(got, NotImplementedError) or type(got) is type(expected):
        return True
    if {type(got), type(expected)} == {IndexError, RuntimeError}:
        return any("out of" in str(e) or "Dimension" in str(e) for e in (got, expected))
    return isinstance(got, RuntimeError) and isinstance(expected, RuntimeError)


def strided_of(value: Any) -> Iterator[Strided]:
    if isinstance(value, Strided):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from strided_of(v)


def is_stricter(error: Exception, call: Call) -> bool:
    """A dtype without a kernel, and what PyTorch leaves unchecked here and there: dims, places in what is empty, and
    the dtypes of arguments that are not promoted.
    """
    given = list(strided_of(call.args))
    empty = any(0 in a.sizes for a in given)
    mixed = call.info.op.pointwise is None and len({a.dtype for a in given}) > 1
    mixed &= any(word in str(error) for word in ("same", "to have dtype"))
    singular = isinstance(error, tp.linalg.LinAlgError)  # as the rounding of a pivot goes
    at_home = "on the CPU" in str(error)  # an argument that stays there
    return isinstance(error, (NotImplementedError, IndexError)) or empty or mixed or singular or at_home


def is_regular(t: torch.Tensor) -> bool:
    """Of a matrix that is nearly singular a result may be what rounding leaves of nothing."""
    if t.dim() < 2 or t.numel() == 0 or not bool(t.isfinite().all()):
        return True
    values = torch.linalg.svdvals(t.to(torch.complex128))
    return bool((values[..., -1] > 1e-5 * values[..., 0]).all())


def is_determined(call: Call) -> bool:
    """Places in what is not sorted, and several values for one place, are each library's own."""
    tensors = [a.in_torch() for a in strided_of([*call.args, *call.kwargs.values()])]
    if call.info.base in ("searchsorted", "bucketize"):
        bounds = tensors[0 if call.info.base == "searchsorted" else -1]
        return bounds.dim() == 0 or bool((bounds.double().diff(dim=-1) >= 0).all())
    if call.info.base in ("index_put", "index_copy", "put", "scatter"):
        places = next((t for t in tensors if t.dtype == torch.int64), None)
        return places is None or len(places.unique()) == places.numel()
    if call.info.family.startswith("linalg") and not all(is_regular(t) for t in tensors):
        return False
    if call.info.base in WITH_PIVOTS:  # out of range they make PyTorch write past its memory
        pivots = next(t for t in tensors if t.dtype == torch.int32)
        fits = any(t.dim() > 1 and min(t.shape[-2:]) == pivots.shape[-1] for t in tensors if t is not pivots)
        return fits and bool(((pivots.abs() >= 1) & (pivots.abs() <= pivots.size(-1))).all())
    return True


def problem_of(call: Call, device: str) -> str | None:
    """What differs, or None."""
    like = None
    if not is_determined(call):
        return None
    if (
        call.info.op.pointwise is None
        and len({a.dtype for a in call.args if isinstance(a, Strided) and is_number(a)}) > 1
    ):
        return None  # nothing is promoted, and which of the dtypes the result has is each kernel's own affair
    if call.how == "out":
        functional = Call(call.info, call.dtype, call.args, call.kwargs)
        results = outcome(functional, torch, "cpu")
        if isinstance(results, Exception) or len(results) != 1 or not isinstance(results[0], torch.Tensor):
            return None
        like = results[0]
        if like.dtype == torch.complex32:
            return None  # a dtype that is not here
    expected, got = outcome(call, torch, "cpu", like), outcome(call, tp, device, like)
    if isinstance(expected, Exception):
        if isinstance(got, Exception) and not same_class(got, expected):
            return f"{type(got).__name__} ({got}), expected {type(expected).__name__} ({str(expected)[:200]})"
        return None
    if any(isinstance(e, torch.Tensor) and e.dtype == torch.complex32 for e in expected):
        return None
    if isinstance(got, Exception):
        return None if is_stricter(got, call) else f"refused: {type(got).__name__}: {got}"
    if call.how == "inplace" and tuple(expected[0].shape) != call.args[0].sizes:
        return None  # PyTorch gave its argument another shape
    if "_polynomial_" in call.info.base and any(np.isnan(a.memory).any() for a in call.args if isinstance(a, Strided)):
        return None  # what PyTorch gives there is what its registers held
    if call.info.base in PLACES:
        expected, got = expected[:1], got[:1]
        if call.info.base == "argsort":
            return None
    if call.info.base in VALUES:
        at = VALUES[call.info.base]
        expected, got = expected[at : at + 1], got[at : at + 1]
    if len(got) != len(expected):
        return f"{len(got)} results, expected {len(expected)}"
    promised = promises_strides(call)
    for g, e in zip(got, expected, strict=True):
        if problem := differ(g, e, promised, scale_of(call), coarsest_of(call), steps_of(call)):
            return problem
    return None


# ---- the program ----


def drawings(options: argparse.Namespace) -> Iterator[str]:
    if options.repeat:
        yield options.repeat
        return
    end = time.monotonic() + options.seconds if options.seconds else None
    number = 0
    while (time.monotonic() < end) if end else (number < options.calls):
        yield f"{options.seed}:{number}"
        number += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", default="", metavar="SEED:CALL")
    parser.add_argument("--journal", default="", help="a file that holds the call at hand")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tp.opencl.fallback, tp.opencl.check_indices = "allow", "sync"
    infos = [i for n, i in sorted(TABLE.items()) if is_compared(i) and (not options.names or i.base in options.names)]
    found = compared = 0
    for seed in drawings(options):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        call = Drawing(seed, infos).call()
        if call is None:
            continue
        if options.journal:
            Path(options.journal).write_text(f"--repeat={seed}")
        if options.repeat:
            print(call, flush=True)
        compared += 1
        if problem := problem_of(call, options.device):
            found += 1
            print(f"--repeat={seed} {problem}\n    {str(call)[:600]}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{compared} calls, {found} differ; seed {options.seed}, on {options.device}")
    return 3 if found else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main())
