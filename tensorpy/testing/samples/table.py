"""What the table is made of, and what of it is derived from the YAML."""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .catalog import CATALOG

if TYPE_CHECKING:
    from codegen.catalog import Operator

LEAVES = {
    "bool": ("bool",),
    "uint": ("uint8", "uint16", "uint32", "uint64"),
    "sint": ("int8", "int16", "int32", "int64"),
    "float": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
}
LEAF_OF = {dtype: leaf for leaf, dtypes in LEAVES.items() for dtype in dtypes}
ALL_DTYPES = tuple(LEAF_OF)
FLOATS, COMPLEX = LEAVES["float"], LEAVES["complex"]
FLOATING = FLOATS + COMPLEX
REAL = tuple(d for d in ALL_DTYPES if d not in COMPLEX)
INTEGERS = LEAVES["uint"] + LEAVES["sint"]
NUMBERS = INTEGERS + FLOATING
WIDE_UNSIGNED = ("uint16", "uint32", "uint64")  # made, copied and indexed, but not computed with
ARITHMETIC = tuple(d for d in NUMBERS if d not in WIDE_UNSIGNED)

# How many samples of one operator and dtype the costly checks take; they are spread over all that there are.
LIMIT = 10

# (rtol, atol) per result dtype: a few units in the last place of the dtype.
TOLERANCES = {
    "float16": (2e-3, 1e-4),
    "bfloat16": (1.6e-2, 1e-4),
    "float32": (2e-6, 2e-6),
    "float64": (1e-12, 1e-12),
    "complex64": (5e-6, 5e-6),
    "complex128": (1e-12, 1e-12),
}


# (rtol, atol) of sums and products of several elements.
LOOSE = {"float32": (1e-5, 1e-5), "complex64": (2e-5, 2e-5), "float16": (5e-3, 1e-2), "bfloat16": (4e-2, 5e-2)}


class Plain:
    """What stands in a sample for an object of the library that runs it."""

    def wide(self) -> Any:
        """As references take it."""
        return None


@dataclass(frozen=True)
class Dtype(Plain):
    name: str

    def wide(self) -> str:
        return self.name


@dataclass(frozen=True)
class Device(Plain):
    """The device that the sample runs on."""


@dataclass(frozen=True)
class Seed(Plain):
    """A generator of its own."""

    value: int


@dataclass(frozen=True)
class Array(Plain):
    """Plain data for a tensor: `values` in a dtype of NumPy's, to be made a tensor of `dtype`."""

    values: np.ndarray
    dtype: str

    def wide(self) -> np.ndarray:
        """As references compute with it: floating values in double precision."""
        leaf = LEAF_OF[self.dtype]
        return self.values.astype({"float": np.float64, "complex": np.complex128}.get(leaf, self.values.dtype))


@dataclass(frozen=True)
class OpSample:
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def map(self, function: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments with `function` applied to each stand-in (Array, Dtype, ...), inside sequences too."""
        return [_map(a, function) for a in self.args], {k: _map(v, function) for k, v in self.kwargs.items()}

    def __str__(self) -> str:
        parts = [_text(a) for a in self.args] + [f"{k}={_text(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(parts)})"


def _map(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, Plain):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map(v, function) for v in value)
    return value


def _text(value: Any) -> str:
    if isinstance(value, Array):
        return f"{value.dtype}{list(value.values.shape)}"
    if isinstance(value, Dtype):
        return value.name
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(v) for v in value)}]"
    return repr(value)


def round_to(values: np.ndarray, dtype: str) -> np.ndarray:
    """The values that a dtype can hold (bfloat16 has no NumPy type: float32 with the low half cut off)."""
    if dtype == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    with np.errstate(all="ignore"):
        return values.astype(np.dtype("bool" if dtype == "bool" else dtype))


class Make:
    """Draws data: `make(2, 3)` or `make((2, 3))` in the dtype asked for, within the operator's domain."""

    def __init__(self, dtype: str, seed: int, low: float | None = None, high: float | None = None) -> None:
        self.dtype = dtype
        self.rng = np.random.RandomState(seed)
        self.low, self.high = low, high

    def __call__(
        self, *shape: Any, dtype: str | None = None, low: float | None = None, high: float | None = None
    ) -> Array:
        sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        dtype = dtype or self.dtype
        leaf = LEAF_OF[dtype]
        default = {"bool": (0, 2), "uint": (0, 10), "sint": (-9, 10), "float": (-4.0, 4.0), "complex": (-3.0, 3.0)}[
            leaf
        ]
        low = low if low is not None else self.low if self.low is not None else default[0]
        high = high if high is not None else self.high if self.high is not None else default[1]
        if leaf == "complex":
            values = self.rng.uniform(low, high, sizes) + 1j * self.rng.uniform(low, high, sizes)
        elif leaf == "float":
            values = self.rng.uniform(low, high, sizes)
        else:
            bottom = int(np.ceil(low)) if leaf == "sint" else max(int(np.ceil(low)), 0)
            values = self.rng.randint(bottom, max(int(np.ceil(high)), bottom + 1), sizes)
        return Array(round_to(np.asarray(values), dtype), dtype)

    @property
    def leaf(self) -> str:
        return LEAF_OF[self.dtype]

    @property
    def given(self) -> Dtype:
        """The dtype asked for, as an argument."""
        return Dtype(self.dtype)

    def array(self, values: Any, dtype: str | None = None) -> Array:
        """Given values; in int64 unless a dtype is named."""
        dtype = dtype or "int64"
        return Array(round_to(np.asarray(values), dtype), dtype)

    def own(self, values: Any) -> Array:
        """Given values in the dtype asked for."""
        return self.array(values, self.dtype)

    def distinct(self, *shape: int) -> Array:
        """Values that differ clearly, in random order: for maxima, sorting and their gradients."""
        n = int(np.prod(shape, dtype=int))
        values = self.rng.permutation(n).reshape(shape)
        return self.own(values * (1 if self.leaf in ("uint", "sint") else 0.37))

    def ties(self, *shape: int) -> Array:
        """Few values, so that many are equal."""
        return self.own(self.rng.randint(0, 3, shape))

    def index(self, size: int, *shape: int, negative: bool = False) -> Array:
        """Places in a dimension of `size`."""
        return self.array(self.rng.randint(-size if negative else 0, size, shape))

    def permutation(self, size: int) -> Array:
        return self.array(self.rng.permutation(size))

    def mask(self, *shape: int) -> Array:
        return self(*shape, dtype="bool")

    def with_nan(self, *shape: int) -> Array:
        """About a third of the values NaN, where the dtype has it."""
        made = self(*shape)
        if self.leaf != "float":
            return made
        return self.own(np.where(self.rng.uniform(size=shape) < 0.3, np.nan, made.values))


Samples = Callable[[Make], Iterator[Any]]


@dataclass
class OpInfo:
    """One operator of the table. `reference` takes the sample's arguments with arrays in double precision."""

    name: str
    op: Operator
    samples_of: Samples
    dtypes: tuple[str, ...]
    reference: Callable[..., Any] | None = None
    domain: tuple[float | None, float | None] = (None, None)
    gradcheck: bool = True
    gradgradcheck: bool = True
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    random: bool = False  # the same under the same seed
    unset: bool = False  # what the elements are is not said
    dense: bool = False  # takes no strides but a few
    constant: tuple[str, ...] = ()  # arguments that are not differentiated
    kept: Callable[..., tuple[Any, ...]] | None = None  # finite differences leave the domain: arguments back in it
    on_host: tuple[str, ...] = ()  # tensor arguments that stay on the CPU, whatever the device
    needs_values: bool = False  # of an argument, to know what the result is: refused on Meta
    copies: bool = False  # a view where it can be one
    writes: bool = False  # to an argument beside the first, where its schema does not say so (running statistics)
    without_reference: str = ""  # why NumPy cannot say the values
    family: str = ""  # the module of its samples, or what the YAML says it is

    @property
    def base(self) -> str:
        return self.op.schema.name.base

    def samples(self, dtype: str, limit: int | None = None) -> list[OpSample]:
        """All of them, or `limit` that are spread over all."""
        found = _drawn(self.name, dtype)
        if limit is None or len(found) <= limit:
            return found
        chosen = random.Random(self.name).sample(range(1, len(found)), limit - 1)
        return [found[i] for i in (0, *sorted(chosen))]

    def draw(self, dtype: str, number: int) -> list[OpSample]:
        """The samples with the numbers of another draw; the draw 0 is that of `samples`."""
        return _drawn(self.name, dtype, number)

    def some(self, dtype: str) -> list[OpSample]:
        """What the costly checks take."""
        return self.samples(dtype, LIMIT)

    @property
    def main_dtype(self) -> str:
        """The dtype whose samples are all run."""
        return next(d for d in ("float32", "int64", *self.dtypes) if d in self.dtypes)

    @property
    def some_dtypes(self) -> list[str]:
        """One dtype of each class."""
        chosen = [next((d for d in reversed(dtypes) if d in self.dtypes), None) for dtypes in LEAVES.values()]
        return [d for d in chosen if d]

    @property
    def tags(self) -> frozenset[str]:
        return frozenset(str(tag) for tag in self.op.function.tags)

    def tolerance(self, dtype: str) -> tuple[float, float]:
        return self.tolerances.get(dtype, TOLERANCES.get(dtype, (0.0, 0.0)))

    def variant(self, kind: str) -> Operator | None:
        """The in-place or out= operator of the same group."""
        entry = self.op.group.inplace if kind == "inplace" else self.op.group.out
        if entry is None:
            return None
        return next((o for o in CATALOG if o.function is entry), None)

    @property
    def differentiable(self) -> bool:
        return self.gradcheck and (self.op.is_implicit or self.op.derivative is not None)


def _sample(raw: Any) -> OpSample:
    if isinstance(raw, OpSample):
        return raw
    args = raw if isinstance(raw, tuple) else (raw,)
    if args and isinstance(args[-1], dict):
        return OpSample(args[:-1], args[-1])
    return OpSample(args)


@functools.cache
def _drawn(name: str, dtype: str, number: int = 0) -> list[OpSample]:
    info = TABLE[name]
    make = Make(dtype, (zlib.crc32(f"{name} {dtype}".encode()) & 0xFFFF) + number, *info.domain)
    drawn = [_sample(s) for s in info.samples_of(make)]
    for sample in drawn:
        sample.map(_freeze)
    return drawn


def _freeze(value: Any) -> None:
    """What is drawn once for all tests is not written to by any."""
    if isinstance(value, Array) and isinstance(value.values, np.ndarray):  # and no scalar, which nobody can change
        value.values.flags.writeable = False


TABLE: dict[str, OpInfo] = {}
GIVEN: dict[str, tuple[Samples, dict[str, Any]]] = {}
REFERENCES: dict[str, Callable[..., Any]] = {}
DOMAINS: dict[str, tuple[float | None, float | None]] = {}
NO_GRADCHECK: dict[str, str] = {}
OPTIONS: dict[str, dict[str, Any]] = {}


def samples(*names: str, **options: Any) -> Callable[[Samples], Samples]:
    """Registers the samples of operators. Options are OpInfo's fields: reference, dtypes, gradcheck, ..."""

    def register(function: Samples) -> Samples:
        for name in names:
            GIVEN[name] = (function, options)
        return function

    return register


MORE: dict[str, list[Samples]] = {}


def also(*names: str) -> Callable[[Samples], Samples]:
    """Further samples of operators that another module registers: sweeps over parameters."""

    def register(function: Samples) -> Samples:
        for name in names:
            MORE.setdefault(name, []).append(function)
        return function

    return register


def is_ours(op: Operator) -> bool:
    """Users do not call it: a helper, a backward, a variant that Python does not show."""
    return not op.function.variants or op.schema.name.base.startswith("_") or op.schema.name.base.endswith("_backward")
