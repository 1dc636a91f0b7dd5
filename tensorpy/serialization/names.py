"""The words of the format: under which names a file speaks of tensors, dtypes and storages, and what these are here.

The names are PyTorch's, so that each side reads what the other has saved. One table serves writing and reading. The
table is data only: what it calls builds tensors, containers and numbers, and never compiles, imports, calls or looks up
an attribute that a file names. A test calls each name with wild values.
"""

from __future__ import annotations

import codecs
import copyreg
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from tensorpy import _C, _utils
from tensorpy._C import Tensor
from tensorpy._tensor.dtypes import STORAGES
from tensorpy._tensor.quantized import IN_A_BYTE, INTEGERS, SCHEMES, rebuild_of, unpacked
from tensorpy._utils import _rebuild_tensor
from tensorpy.backends._entry_points import device_of_a_file
from tensorpy.nn.parameter import Parameter
from tensorpy.serialization.account import Account
from tensorpy.storage.typed import TypedStorage

UNTYPED: Any = _C.UntypedStorage
LAYOUT = type(_C.strided)
_META = _C.device("meta")
_make_subclass: Any = getattr(Tensor, "_make_subclass")  # noqa: B009


class StorageType:
    """`FloatStorage` and its kin: says in a file which dtype the elements of a storage have."""

    def __init__(self, dtype: _C.dtype) -> None:
        self.dtype = dtype


class MetaStorage:
    """A storage on the Meta device, as a file names it: the dtype of its elements, and no memory."""

    _untyped_storage: Any = None

    def __init__(self, dtype: _C.dtype) -> None:
        self.dtype = dtype


class FakeStorage(MetaStorage):
    """A storage of a file that is loaded within a FakeTensorMode: its bytes stay in the file."""

    dtype: Any
    mode: Any
    location: str

    def __init__(self, dtype: Any, size: int, mode: Any, location: str) -> None:
        self.dtype, self.mode, self.location = dtype, mode, location
        self._untyped_storage = _C.empty(size, dtype=_C.uint8, device="meta").untyped_storage()


def typed(untyped: Any, dtype: _C.dtype) -> Any:
    """A storage with the dtype of its elements; `untyped` is None on the Meta device."""
    return MetaStorage(dtype) if untyped is None else TypedStorage(wrap_storage=untyped, dtype=dtype)


# ---- what a file calls to make tensors ----


def _ints(values: Any, what: str) -> tuple[int, ...]:
    if not isinstance(values, tuple) or not all(type(v) is int for v in values):
        raise TypeError(f"a tensor's {what} in the file is no tuple of ints")
    return tuple(values)


def _pending(metadata: Any) -> int:
    """Conjugation and negation that a view left for later, as _rebuild_tensor takes them."""
    given = metadata if isinstance(metadata, dict) else {}
    return bool(given.get("conj")) + 2 * bool(given.get("neg"))


def _tensor(storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, metadata: Any) -> Tensor:
    untyped = storage._untyped_storage if isinstance(storage, (TypedStorage, MetaStorage)) else storage
    if not isinstance(untyped, (UNTYPED, type(None))) or not isinstance(dtype, _C.dtype) or type(offset) is not int:
        raise TypeError("a tensor in the file has no storage, dtype or offset")
    device = _META if untyped is None else untyped.device
    sizes, strides = _ints(size, "size"), _ints(stride, "stride")
    grad = bool(requires_grad)
    made: Tensor = _rebuild_tensor(Tensor, untyped, dtype, sizes, strides, offset, device, grad, _pending(metadata))
    if isinstance(storage, FakeStorage):
        converter: Any = storage.mode.fake_tensor_converter
        made = converter.from_meta_and_device(storage.mode, made, storage.location)
    return made


def rebuild_tensor_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any = None, metadata: Any = None
) -> Tensor:
    """A view of a storage whose type tells the dtype."""
    return _tensor(storage, getattr(storage, "dtype", None), offset, size, stride, requires_grad, metadata)


def rebuild_tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    """A view of a storage in a dtype of its own."""
    return _tensor(storage, dtype, offset, size, stride, requires_grad, metadata)


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor on the Meta device."""
    return _tensor(None, dtype, 0, size, stride, requires_grad, None)


def rebuild_wrapper(
    cls: Any, dtype: Any, size: Any, stride: Any, offset: Any, layout: Any, device: Any, requires_grad: Any
) -> Tensor:
    """A tensor without elements of a class that answers for it; what it holds are its attributes."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError("a wrapper's class in the file is none of tensors")
    _of(dtype, _C.dtype)
    _of(device, _C.device)
    made: Any = getattr(Tensor, "_make_wrapper_subclass")  # noqa: B009
    place = {"storage_offset": _of(offset, int), "dtype": dtype, "device": device}
    sizes = _ints(_of(size, tuple, _C.Size), "size"), _ints(_of(stride, tuple), "stride")
    return made(cls, *sizes, **place, requires_grad=requires_grad is True)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any = None) -> Any:
    """A module's parameter."""
    if not isinstance(data, Tensor):
        raise TypeError("a parameter in the file has no tensor")
    return Parameter(data.detach(), bool(requires_grad))


def rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    """A parameter that has attributes."""
    return _with_state(rebuild_parameter(data, requires_grad, hooks), state)


class JaggedTensor:
    """What files of PyTorch call the class of jagged nested tensors."""


class DimRange:
    """What PyTorch's compiler notes of a dimension that differs; nothing is kept of it."""


def dim_range() -> DimRange:
    """A note of PyTorch's compiler."""
    return DimRange()


def rebuild_from_type(make: Any, cls: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or one that has attributes."""
    if make is rebuild_jagged and cls is JaggedTensor:  # whose attributes are its parts once more
        return make(*_of(args, tuple))
    if all(make is not each for each in _MAKERS) or not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError("a tensor's class in the file is none, or made by a function that makes no tensors")
    made = make(*_of(args, tuple))
    if type(made) is not cls:
        made = _make_subclass(cls, made.detach(), made.requires_grad)
    return _with_state(made, state)


def _with_state(tensor: Any, state: Any) -> Any:
    if type(tensor) not in (Tensor, Parameter) and hasattr(tensor, "__setstate__"):  # of a class that files may name
        tensor.__setstate__(state)
        return tensor
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if not isinstance(attributes, (dict, type(None))):
        raise TypeError("a tensor's attributes in the file are no dictionary")
    own = type(tensor) if type(tensor) in (Tensor, Parameter) else object  # else of a class that the program named
    set_attributes(tensor, own, attributes or {})
    set_slots(tensor, slots)
    return tensor


def set_slots(target: Any, values: Any) -> None:
    """What a file's object has in its class's __slots__, and in no other attribute."""
    if values is None:
        return
    declared = slots_of(type(target))
    for name, value in _of(values, dict).items():
        if type(name) is not str or name not in declared:
            raise TypeError(f"the file gives a {type(target).__name__} a slot that it does not have")
        setattr(target, name, value)


def slots_of(cls: type) -> list[str]:
    """The names in the __slots__ of a class and its bases."""
    find: Any = getattr(copyreg, "_slotnames")  # noqa: B009
    return list(find(cls))


def set_attributes(target: Any, cls: type, attributes: Any) -> None:
    """Attributes of a file's object: data beside what the class has, never in its place."""
    for name in _of(attributes, dict, OrderedDict):
        if type(name) is not str or hasattr(cls, name) or name.startswith("__"):
            raise TypeError(
                f"the file gives a {cls.__name__} an attribute that has the name of the class's own, or none"
            )
    target.__dict__.update(attributes)


_LAYOUTS = {f"torch.{name}": value for name, value in vars(_C).items() if isinstance(value, LAYOUT)}


def get_layout(name: Any) -> Any:
    """A layout by its name."""
    if _of(name, str) not in _LAYOUTS:
        raise RuntimeError(f"tensorpy has no layout {name}")
    return _LAYOUTS[name]


def rebuild_sparse_tensor(layout: Any, data: Any) -> Any:
    """A sparse tensor of its parts, which are checked."""
    from tensorpy.sparse._make import rebuild

    if not isinstance(layout, LAYOUT) or not isinstance(data, tuple) or not 3 <= len(data) <= 4:
        raise TypeError("a sparse tensor in the file has no layout or parts")
    count = 2 if layout is _C.sparse_coo else 3
    if not all(isinstance(part, Tensor) for part in data[:count]) or len(data) <= count:
        raise TypeError("a sparse tensor's indices or values in the file are no tensors")
    size = _ints(tuple(_of(data[count], tuple, list, _C.Size)), "size")
    return rebuild(layout, (*data[:count], size, *data[count + 1 :]))


def rebuild_nested(buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Any:
    """A nested tensor of pieces of a buffer, whose places are checked."""
    if any(type(t) is not Tensor for t in (buffer, sizes, strides, offsets)):
        raise TypeError("a nested tensor's parts in the file are no tensors")
    return _C._nested_view_from_buffer(buffer, sizes, strides, offsets)


def rebuild_jagged(parts: Any) -> Any:
    """A jagged nested tensor of its parts, which are checked."""
    if type(parts) is not dict or any(type(parts.get(n)) is not Tensor for n in ("values", "offsets")):
        raise TypeError("a nested tensor in the file has no values or offsets")
    lengths, ragged = parts.get("lengths"), parts.get("_ragged_idx", 1)
    if not (lengths is None or type(lengths) is Tensor) or type(ragged) is not int or not 0 < ragged < 64:
        raise TypeError("a nested tensor's lengths or dimension in the file are none")
    if any(t is not None and t.dtype not in (_C.int32, _C.int64) for t in (parts["offsets"], lengths)):
        raise TypeError("a nested tensor's offsets and lengths in the file are of int32 or int64")
    made = _C._nested_make(parts["values"].detach(), parts["offsets"], lengths, None, ragged, True)
    return made.requires_grad_(parts.get("requires_grad") is True)


def rebuild_quantized(
    storage: Any, offset: Any, size: Any, stride: Any, quantizer: Any, requires_grad: Any, hooks: Any = None
) -> Any:
    """A quantized tensor over a storage of integers; how they are read is checked as what a program gives."""
    dtype = getattr(storage, "dtype", None)
    if dtype not in INTEGERS or not isinstance(quantizer, tuple) or not quantizer or type(offset) is not int:
        raise TypeError("a quantized tensor in the file has no storage of a quantized dtype, or no quantizer")
    sizes, strides = _ints(size, "size"), _ints(stride, "stride")
    if dtype in IN_A_BYTE:
        integers = _unpacked(storage, offset, sizes, IN_A_BYTE[dtype])
    else:
        integers = _tensor(storage, INTEGERS[dtype], offset, sizes, strides, False, None)
    return rebuild_of(integers, dtype, quantizer)


def _unpacked(storage: Any, offset: int, sizes: tuple[int, ...], in_a_byte: int) -> Tensor:
    """Integers of which a byte has several, the first in its low bits."""
    count = 1
    for n in sizes:
        count *= n
    packed = _tensor(storage, _C.uint8, offset, (-(-count // in_a_byte),), (1,), False, None)
    return unpacked(packed, 8 // in_a_byte)[:count].reshape(sizes)


class ScriptObject:
    """An object of one of PyTorch's compiled classes, packed weights for one, as a file has it: the class's name and a
    state. Nothing is made of it until a module takes it out of a state dict."""

    kind: str
    state: Any

    def __init__(self, kind: str = "", state: Any = None) -> None:
        self.kind, self.state = kind, state

    def __getstate__(self) -> tuple[Any, str]:
        return self.state, self.kind

    def __setstate__(self, state: Any) -> None:
        given, kind = _of(state, tuple)
        self.kind, self.state = _of(kind, str), given

    def __repr__(self) -> str:
        return f"<ScriptObject of {self.kind}>"


_MAKERS = (rebuild_tensor_v2, rebuild_tensor_v3, rebuild_meta_tensor, rebuild_parameter, rebuild_wrapper)

# ---- plain values: what the constructor would take besides them, it does not get from a file ----


def _checked_set(account: Account, values: Any = ()) -> Any:
    made: set[Any] = set()
    made.update(account.key(made, v) for v in _of(values, list, tuple))
    return made


def _ordered_dict(account: Account, pairs: Any = ()) -> Any:
    made: OrderedDict[Any, Any] = OrderedDict()
    for pair in _of(pairs, list, tuple):
        key, value = _of(pair, list, tuple)
        made[account.key(made, key)] = value
    return made


def _counter(account: Account, counts: Any = None) -> Any:
    made: Counter[Any] = Counter()
    for key, count in _of({} if counts is None else counts, dict).items():
        made[account.key(made, key)] = count
    return made


def _bytearray(account: Account, data: Any = b"") -> Any:
    return bytearray(_of(data, bytes))


def _encode(account: Account, text: Any, encoding: Any) -> Any:
    if _of(encoding, str) != "latin1":
        raise ValueError(f"bytes in the file are written as {encoding!r}, not as latin1")
    return _of(text, str).encode("latin1")


def _complex(account: Account, real: Any, imag: Any) -> Any:
    return complex(_of(real, float), _of(imag, float))


def _size(account: Account, sizes: Any = ()) -> Any:
    return _C.Size(_ints(tuple(_of(sizes, tuple, list)), "size"))


def _device(account: Account, name: Any, index: Any = None) -> Any:
    return device_of_a_file(_of(name, str), *(() if index is None else (_of(index, int),)))


def _script_object(account: Account) -> ScriptObject:
    return ScriptObject()


def _sparse(account: Account, layout: Any, parts: Any) -> Any:
    """A sparse tensor, whose parts are read to be checked: a part may be a few bytes that are seen often."""
    for part in _of(parts, tuple):
        if isinstance(part, Tensor):
            account.pay_bytes(part.nbytes)
    return rebuild_sparse_tensor(layout, parts)


def _quantized(account: Account, storage: Any, *rest: Any) -> Any:
    """A quantized tensor, whose integers may be unpacked, and whose scales are read."""
    if isinstance(storage, TypedStorage):
        account.pay_bytes(2 * storage.nbytes())
    quantizer = rest[3] if len(rest) > 3 and isinstance(rest[3], tuple) else ()
    for part in quantizer:
        if isinstance(part, Tensor):
            account.pay_bytes(part.nbytes)
    return rebuild_quantized(storage, *rest)


def _nested(account: Account, *parts: Any) -> Any:
    """A nested tensor, whose tables are read, and whose pieces may be seen often."""
    size = 0
    if len(parts) == 4 and all(type(t) is Tensor for t in parts):
        table = parts[1].detach()
        size = (
            sum(max(0, n) for n in table.prod(1).tolist()) if table.ndim == 2 and not table.is_floating_point() else 0
        )
        account.pay_bytes(size * parts[0].itemsize + 3 * table.nbytes)
    return rebuild_nested(*parts)


def _jagged(account: Account, parts: Any) -> Any:
    """The same by its offsets."""
    for part in _of(parts, dict).values():
        if isinstance(part, Tensor):
            account.pay_bytes(part.nbytes)
    return rebuild_jagged(parts)


def shown(value: Any) -> str:
    """A value of a file for a message: its text, or its type, for the text of a nested value may never end."""
    if type(value) is int and value.bit_length() <= 64:
        return str(value)
    return repr(value[:100]) if type(value) is str else type(value).__name__


def _of(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError(f"a value in the file is {type(value).__name__}, not {kinds[0].__name__}")
    return value


# ---- the tables ----

_QUANTIZED_STORAGES = {
    "QUInt8": _C.quint8,
    "QInt8": _C.qint8,
    "QInt32": _C.qint32,
    "QUInt4x2": _C.quint4x2,
    "QUInt2x4": _C.quint2x4,
}
_TYPED = STORAGES | _QUANTIZED_STORAGES
STORAGE_TYPES = {dtype: StorageType(dtype) for dtype in _TYPED.values()}
_DTYPES = (
    *STORAGE_TYPES,
    _C.uint16,
    _C.uint32,
    _C.uint64,
    _C.complex32,
    _C.float8_e4m3fn,
    _C.float8_e5m2,
    _C.float8_e4m3fnuz,
    _C.float8_e5m2fnuz,
    _C.float8_e8m0fnu,
)

# What a file calls to make something.
FUNCTIONS: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): rebuild_tensor_v3,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter_with_state,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): rebuild_meta_tensor,
    ("torch._utils", "_rebuild_wrapper_subclass"): rebuild_wrapper,
    ("torch._utils", "_rebuild_sparse_tensor"): rebuild_sparse_tensor,
    ("torch._utils", "_rebuild_qtensor"): rebuild_quantized,
    ("torch._utils", "_rebuild_nested_tensor"): rebuild_nested,
    ("torch.nested._internal.nested_tensor", "_rebuild_njt"): rebuild_jagged,
    ("torch._dynamo.decorators", "_DimRange"): dim_range,
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild_from_type,
    ("torch.serialization", "_get_layout"): get_layout,
    ("torch", "ScriptObject"): ScriptObject,
}
# What a file only speaks of.
VALUES: dict[tuple[str, str], Any] = {
    ("torch", "Tensor"): Tensor,
    ("torch.nested._internal.nested_tensor", "NestedTensor"): JaggedTensor,
    ("torch", "Size"): _C.Size,
    ("torch", "device"): _C.device,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch.storage", "UntypedStorage"): UNTYPED,
    **{("torch", str(dtype).rpartition(".")[2]): dtype for dtype in _DTYPES},
    **{("torch", scheme.name): scheme for scheme in SCHEMES},
    **{("torch", f"{name}Storage"): STORAGE_TYPES[dtype] for name, dtype in _TYPED.items()},
}
# What a file may name of Python and PyTorch, to call it.
PYTHON: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
    ("builtins", "set"): set,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "complex"): complex,
    ("_codecs", "encode"): codecs.encode,
}
# What is called in the place of a name's value where a file is not trusted: a function of the file's account and plain
# values, which takes nothing else.
GUARDED: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (OrderedDict, _ordered_dict),
    (Counter, _counter),
    (set, _checked_set),
    (bytearray, _bytearray),
    (complex, _complex),
    (codecs.encode, _encode),
    (ScriptObject, _script_object),
    (_C.Size, _size),
    (_C.device, _device),
    (rebuild_sparse_tensor, _sparse),
    (rebuild_quantized, _quantized),
    (rebuild_nested, _nested),
    (rebuild_jagged, _jagged),
)
TABLE = FUNCTIONS | VALUES | PYTHON
NAMES = {id(value): name for name, value in (FUNCTIONS | VALUES).items()}
setattr(_utils, "_rebuild_sparse_tensor", rebuild_sparse_tensor)  # noqa: B010  # where PyTorch has it
