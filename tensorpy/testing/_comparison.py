"""assert_close, and what it is made of: pairs of values, each of a class that knows how to compare two of a kind.

`originate_pairs` walks two containers and makes a pair of each two values in them: of the first class that takes them.
Test tools have classes of their own (`Pair`) beside those here. What is wrong is an `ErrorMeta`: the error's class, its
words, and at which item.
"""

from __future__ import annotations

import cmath
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._compile import TorchDynamoException
from tensorpy.testing._mismatch import Names, of_numbers, of_tensors

# (rtol, atol) that a dtype's rounding calls for; all other dtypes are compared exactly.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex32: (1e-3, 1e-5),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
    **dict.fromkeys((_C.quint8, _C.quint4x2, _C.quint2x4, _C.qint8, _C.qint32), (1.3e-6, 1e-5)),
}
Error = type[Exception]
Message = str | Callable[[str], str] | None


def default_tolerances(*inputs: Any, dtype_precisions: Mapping[Any, tuple[float, float]] | None = None) -> Any:
    """The largest of the dtypes' default (rtol, atol).

    Arguments:
        inputs: tensors or dtypes
        dtype_precisions: a table of (rtol, atol) for dtypes instead of the usual one

    Returns: two floats.

    Raises: TypeError for what is no tensor and no dtype.

    Example:
        >>> tp.testing.default_tolerances(tp.ones(1), tp.float16)
        (0.001, 1e-05)
    """
    for value in inputs:
        if not isinstance(value, (Tensor, _C.dtype)):
            raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(value)} instead.")
    table = dtype_precisions or _TOLERANCES
    pairs = [table.get(v.dtype if isinstance(v, Tensor) else v, (0.0, 0.0)) for v in inputs]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


class ErrorMeta(Exception):
    """What a comparison found: the class of the error that it becomes, its words, the way to the item."""

    def __init__(self, type: Error, msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__(f"{type.__name__}: {msg}")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: Message = None) -> Exception:
        """The error: with its own words, with others, or with what a function makes of its own."""
        if isinstance(msg, str):
            return self.type(msg)
        words = self.msg + (f"\n\nThe failure occurred for item {_item(self.id)}" if self.id else "")
        return self.type(words if msg is None else msg(words))


def _item(id: Iterable[Any]) -> str:
    return "".join(f"[{key!r}]" for key in id)


def get_tolerances(
    *inputs: Any, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """Those that are given, or the dtypes' where none is; one alone is an error."""
    if rtol is None and atol is None:
        tolerances: tuple[float, float] = default_tolerances(*inputs)
        return tolerances
    if rtol is None or atol is None:
        missing = "rtol" if rtol is None else "atol"
        words = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        raise ErrorMeta(ValueError, words, id=id)
    return rtol, atol


# ---- pairs ----


class UnsupportedInputs(Exception):
    """A pair's class does not take two values: the next one is asked."""


class Pair(ABC):
    """Two values of a kind. The constructor takes all options, and raises UnsupportedInputs for other kinds."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: Any) -> None:
        if not all(isinstance(value, cls) for value in inputs):
            raise UnsupportedInputs

    def _fail(self, type: Error, msg: str, *, id: tuple[Any, ...] = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    @abstractmethod
    def compare(self) -> None:
        """Raises ErrorMeta where the two are not alike."""

    def extra_repr(self) -> Sequence[Any]:
        """What a pair shows beside its values: names of attributes, or pairs of a name and a value."""
        return ()

    def __repr__(self) -> str:
        named = [(name, getattr(self, name)) if isinstance(name, str) else name for name in self.extra_repr()]
        shown = [("id", self.id), ("actual", self.actual), ("expected", self.expected), *named]
        return "\n".join((f"{type(self).__name__}(", *(f"    {name}={value!s}," for name, value in shown), ")"))


class ObjectPair(Pair):
    """Any two values, by `==`."""

    def compare(self) -> None:
        try:
            equal = bool(self.actual == self.expected)
        except Exception as error:
            words = f"{self.actual} == {self.expected} failed with:\n{error}."
            raise ErrorMeta(ValueError, words, id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Two values one of which is None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            raise UnsupportedInputs
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


def _numpys(name: str) -> tuple[type, ...]:
    """A class of NumPy's, if NumPy is loaded: without it there is no value of the class."""
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (getattr(numpy, name),)


class BooleanPair(Pair):
    """Two truth values, Python's or NumPy's."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (bool, *_numpys("bool_"))

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> Any:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: tuple[Any, ...]) -> bool:
        if not isinstance(bool_like, self._supported_types):
            raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)
        return bool(bool_like)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


def _difference(a: Any, b: Any) -> Any:
    try:
        return abs(a - b)
    except OverflowError:  # of an integer that no float holds
        return cmath.inf


class NumberPair(Pair):
    """Two numbers, Python's or NumPy's."""

    _TYPE_TO_DTYPE = {int: _C.int64, float: _C.float64, complex: _C.complex128}  # noqa: RUF012
    _NUMBER_TYPES = tuple(_TYPE_TO_DTYPE)

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = [self._dtype_of(value) for value in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    def _dtype_of(self, value: Any) -> Any:
        kind = next(k for k in type(value).__mro__ if k in self._TYPE_TO_DTYPE)
        return self._TYPE_TO_DTYPE[kind]

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (*self._NUMBER_TYPES, *_numpys("number"))

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> Any:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: tuple[Any, ...]) -> Any:
        if isinstance(number_like, _numpys("number")):
            number: Any = number_like
            return number.item()
        if not isinstance(number_like, self._NUMBER_TYPES):
            raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)
        return number_like

    def compare(self) -> None:
        a, b = self.actual, self.expected
        if self.check_dtype and type(a) is not type(b):
            self._fail(AssertionError, f"The (d)types do not match: {type(a)} != {type(b)}.")
        if a == b or (self.equal_nan and a != a and b != b):
            return
        gap = _difference(a, b)
        if not ((isinstance(gap, int) or cmath.isfinite(gap)) and gap <= self.atol + self.rtol * abs(b)):
            self._fail(AssertionError, of_numbers(a, b, gap, self.rtol, self.atol))

    def extra_repr(self) -> Sequence[Any]:
        return "rtol", "atol", "equal_nan", "check_dtype"


_COMPRESSED = {
    _C.sparse_csr: ("CSR", "crow_indices", "col_indices"),
    _C.sparse_csc: ("CSC", "ccol_indices", "row_indices"),
    _C.sparse_bsr: ("BSR", "crow_indices", "col_indices"),
    _C.sparse_bsc: ("BSC", "ccol_indices", "row_indices"),
}


class TensorLikePair(Pair):
    """Two tensors, or two values of related classes that tensors are made from."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...], allow_subclasses: bool) -> Any:
        a, b = type(actual), type(expected)
        if not (issubclass(a, b) or issubclass(b, a)) or (a is not b and not allow_subclasses):
            raise UnsupportedInputs
        tensors = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in tensors:
            self._check_supported(tensor, id=id)
        return tensors

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return _C.as_tensor(tensor_like)
        except Exception:
            raise UnsupportedInputs from None

    def _check_supported(self, tensor: Tensor, *, id: tuple[Any, ...]) -> None:
        if not (tensor.layout in (_C.strided, _C.sparse_coo, *_COMPRESSED) or tensor.is_nested):
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self) -> None:
        self._compare_attributes(self.actual, self.expected)
        if "meta" not in (self.actual.device.type, self.expected.device.type):
            self._compare_values(*self._equalize_attributes(self.actual, self.expected))

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        quantized = actual.is_quantized and expected.is_quantized
        strided = actual.layout is expected.layout is _C.strided and not (actual.is_nested or expected.is_nested)
        asked: list[tuple[bool, str, Callable[[Any], Any]]] = [
            (not actual.is_nested, "shape", lambda t: t.shape),
            (True, "is_quantized", lambda t: t.is_quantized),
            (quantized, "qscheme()", lambda t: t.qscheme()),
            (self.check_layout, "layout", lambda t: t.layout),
            (self.check_stride and strided, "stride()", lambda t: t.stride()),
            (self.check_device, "device", lambda t: t.device),
            (self.check_dtype, "dtype", lambda t: t.dtype),
        ]
        for checked, name, ask in asked:
            if checked and ask(actual) != ask(expected):
                words = f"The values for attribute '{name}' do not match: {ask(actual)} != {ask(expected)}."
                self._fail(AssertionError, words)

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """Both on the host where the devices differ, of one dtype, strided where the layouts differ."""
        both = actual, expected
        if actual.device != expected.device:
            both = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            dtypes = [_C.int64 if t.dtype in (_C.uint16, _C.uint32, _C.uint64) else t.dtype for t in both]
            common = _C.promote_types(*dtypes)
            both = both[0].to(common), both[1].to(common)
        if actual.layout is not expected.layout:
            first, second = (t if t.layout is _C.strided else t.to_dense() for t in both)
            return first, second
        return both

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        options: dict[str, Any] = {"rtol": self.rtol, "atol": self.atol, "equal_nan": self.equal_nan}
        if actual.is_quantized:
            name = "Quantized {}".format
            parts = actual.dequantize(), expected.dequantize()
            self._compare_regular_values_close(*parts, **options, identifier=lambda usual: name(usual.lower()))
        elif actual.layout is _C.sparse_coo:
            self._compare_coo(actual, expected, options)
        elif actual.layout in _COMPRESSED:
            self._compare_compressed(actual, expected, options)
        elif actual.is_nested:
            self._compare_nested(actual, expected, options)
        else:
            if actual.is_floating_point() and actual.dtype.itemsize == 1 and (self.rtol or self.atol):
                said = f"Rtol={self.rtol} and atol={self.atol} are not supported for bitwise comparison of low"
                self._fail(AssertionError, f"{said} dimensional floats. Please use rtol=0.0 and atol=0.0.")
            self._compare_regular_values_close(actual, expected, **options)

    def _compare_nested(self, actual: Any, expected: Any, options: dict[str, Any]) -> None:
        a, b = actual.unbind(), expected.unbind()
        if [t.shape for t in a] != [t.shape for t in b]:
            shapes = [[tuple(t.shape) for t in parts] for parts in (a, b)]
            self._fail(AssertionError, f"The shapes of the tensors inside do not match: {shapes[0]} != {shapes[1]}.")
        for one, other in zip(a, b, strict=True):
            self._compare_regular_values_close(one, other, **options)

    def _compare_numbers(self, kind: str, what: str, a: int, b: int) -> None:
        if a != b:
            self._fail(AssertionError, f"The number of {what} in sparse {kind} tensors does not match: {a} != {b}")

    def _compare_coo(self, actual: Any, expected: Any, options: dict[str, Any]) -> None:
        self._compare_numbers("COO", "sparse dimensions", actual.sparse_dim(), expected.sparse_dim())
        self._compare_numbers("COO", "specified values", actual._nnz(), expected._nnz())
        if actual.is_coalesced() != expected.is_coalesced():  # the order of one's values is not said
            actual, expected = actual.coalesce(), expected.coalesce()
            self._compare_numbers("COO", "specified values", actual._nnz(), expected._nnz())
        self._compare_regular_values_equal(actual._indices(), expected._indices(), identifier="Sparse COO indices")
        parts = actual._values(), expected._values()
        self._compare_regular_values_close(*parts, **options, identifier="Sparse COO values")

    def _compare_compressed(self, actual: Any, expected: Any, options: dict[str, Any]) -> None:
        kind, *names = _COMPRESSED[actual.layout]
        self._compare_numbers(kind, "specified values", actual._nnz(), expected._nnz())
        for name in names:
            parts = (getattr(t, name)().to(_C.int64) for t in (actual, expected))
            self._compare_regular_values_equal(*parts, identifier=f"Sparse {kind} {name}")
        parts = (t.values() for t in (actual, expected))
        self._compare_regular_values_close(*parts, **options, identifier=f"Sparse {kind} values")

    def _compare_regular_values_equal(
        self, actual: Tensor, expected: Tensor, *, equal_nan: bool = False, identifier: Names = None
    ) -> None:
        self._compare_regular_values_close(actual, expected, rtol=0, atol=0, equal_nan=equal_nan, identifier=identifier)

    def _compare_regular_values_close(
        self,
        actual: Tensor,
        expected: Tensor,
        *,
        rtol: float,
        atol: float,
        equal_nan: bool,
        identifier: Names = None,
    ) -> None:
        matches = _C.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if not bool(matches.all()):
            self._fail(AssertionError, of_tensors(actual, expected, matches, rtol, atol, identifier))

    def extra_repr(self) -> Sequence[Any]:
        return "rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride"


# ---- containers ----


def _parts(actual: Any, expected: Any, sequences: Any, mappings: Any, id: tuple[Any, ...]) -> list[Any] | None:
    """The keys of two containers that are walked together; None where the two are values."""
    if all(isinstance(value, sequences) and not isinstance(value, str) for value in (actual, expected)):
        if len(actual) != len(expected):
            words = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, words, id=id)
        return list(range(len(actual)))
    if not all(isinstance(value, mappings) for value in (actual, expected)):
        return None
    ours, theirs = set(actual.keys()), set(expected.keys())
    if ours != theirs:
        missing, added = _in_order(theirs - ours), _in_order(ours - theirs)
        words = (
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {added}"
        )
        raise ErrorMeta(AssertionError, words, id=id)
    return _in_order(ours)


def _in_order(keys: Iterable[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except (TypeError, RuntimeError):  # keys of several kinds, or tensors
        return list(keys)


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[Any],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple[Any, ...] = (),
    **options: Any,
) -> list[Pair]:
    """The pairs of two values, or of what two sequences or mappings hold.

    Arguments:
        actual: what came out
        expected: what is wanted
        pair_types: classes of pairs: the first that takes two values is taken
        sequence_types: the classes that are walked by number
        mapping_types: the classes that are walked by key
        id: the way to the two, for messages
        options: what all pairs are given

    Returns: a list of pairs.

    Raises: ErrorMeta where containers differ, or no class takes two values; RuntimeError where a class fails.
    """
    keys = _parts(actual, expected, sequence_types, mapping_types, id)
    if keys is not None:
        kinds: dict[str, Any] = {
            "pair_types": pair_types,
            "sequence_types": sequence_types,
            "mapping_types": mapping_types,
        }
        found = [originate_pairs(actual[k], expected[k], id=(*id, k), **kinds, **options) for k in keys]
        return [pair for pairs in found for pair in pairs]
    for kind in pair_types:
        try:
            return [kind(actual, expected, id=id, **options)]
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            values = [f"{type(value).__name__}(): {value}" for value in (actual, expected)]
            raise RuntimeError(
                f"Originating a {kind.__name__}() at item {_item(id)} with\n\n{values[0]}\n\nand\n\n{values[1]}\n\n"
                "resulted in the unexpected exception above."
            ) from error
    words = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise ErrorMeta(TypeError, words, id=id)


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[Any] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """What is wrong in two values, or in what two containers hold: one for each pair that is not alike.

    Arguments: those of originate_pairs.

    Returns: a list, empty where all is well.

    Raises: the error that an ErrorMeta becomes where there are no pairs; RuntimeError where a comparison fails.
    """
    __tracebackhide__ = True
    try:
        kinds: dict[str, Any] = {"sequence_types": sequence_types, "mapping_types": mapping_types}
        pairs = originate_pairs(actual, expected, pair_types=pair_types, **kinds, **options)
    except ErrorMeta as error:
        raise error.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            found.append(error.with_traceback(None))
        except TorchDynamoException:  # a whole graph ends here
            raise
        except Exception as error:
            raise RuntimeError(f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above.") from error
    return found


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """The pieces that are here of two tensors that several processes hold; other values as they are.

    Raises: AssertionError where the two are spread differently, TypeError where only one is spread.
    """
    module = sys.modules.get("tensorpy.distributed.tensor")  # where nothing imported it nothing is spread
    spread = [module is not None and isinstance(value, module.DTensor) for value in (actual, expected)]
    if not any(spread):
        return actual, expected
    if not all(spread):
        raise TypeError(
            "Comparing a DTensor to a non-DTensor is ambiguous: compare full_tensor(), or to_local() for the piece here"
        )
    for name, words in (("placements", "placements"), ("device_mesh", "device meshes")):
        a, b = getattr(actual, name), getattr(expected, name)
        if a != b:
            raise AssertionError(f"DTensor {words} do not match: {a} != {b}")
    return actual.to_local(), expected.to_local()


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Asserts that |actual - expected| <= atol + rtol * |expected| everywhere, for tensors, numbers, arrays, and
    sequences and mappings of them. Without tolerances, those of the dtypes are taken.

    Arguments:
        actual: what came out
        expected: what is wanted
        allow_subclasses: whether subclasses are equal to Tensor
        rtol: the relative tolerance
        atol: the absolute tolerance
        equal_nan: whether two NaN are equal
        check_device: whether devices are compared
        check_dtype: whether dtypes are compared
        check_layout: whether layouts are compared
        check_stride: whether strides are compared
        msg: a message, or a function of the usual one

    Example:
        >>> tp.testing.assert_close(tp.tensor([1.0]), tp.tensor([1.0 + 1e-7]))
    """
    __tracebackhide__ = True
    actual, expected = _unwrap_dtensor_for_comparison(actual, expected)
    found = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    if found:
        raise found[0].to_error(msg)
