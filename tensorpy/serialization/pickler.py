"""Writing: the pickle of an object, in the format's words, and the storages that it speaks of."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._tensor.quantized import IN_A_BYTE, quantizer_of
from tensorpy._utils import bytes_tensor
from tensorpy.serialization import names
from tensorpy.serialization.location import location_tag
from tensorpy.serialization.options import _serialization_tls
from tensorpy.storage.typed import TypedStorage


class _Reference:
    """A storage as a tensor of a dtype sees it; None: as bytes."""

    def __init__(self, storage: Any, dtype: Any, location: str | None = None) -> None:
        self.storage, self.dtype, self.location = storage, dtype, location


def _no_hooks() -> OrderedDict[Any, Any]:
    return OrderedDict()


_NO_GETSTATE = getattr(object, "__getstate__", None)


def _state(tensor: Tensor) -> Any:
    """What hangs on a tensor: its attributes, with slots (attributes, slots), or what its class makes of it."""
    own: Any = getattr(type(tensor), "__getstate__", None)
    if own is not _NO_GETSTATE:
        return own(tensor)
    slots = {name: getattr(tensor, name) for name in names.slots_of(type(tensor)) if hasattr(tensor, name)}
    return (tensor.__dict__, slots) if slots else tensor.__dict__


_Base: Any = getattr(pickle, "_Pickler")  # noqa: B009


class Pickler(_Base):  # type: ignore[misc]
    """The pickler in Python: the one in C insists on finding each name where it says."""

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[int, tuple[str, Any]] = {}  # by identity: {id: (key, storage)}
        self.dtypes: dict[str, Any] = {}  # what a storage was first seen as

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, names.UNTYPED):
            obj = _Reference(obj, None)
        elif isinstance(obj, TypedStorage):
            obj = _Reference(obj.untyped(), obj.dtype if obj.dtype in names.STORAGE_TYPES else None)
        if not isinstance(obj, _Reference):
            return None
        storage = obj.storage
        key, _ = self.storages.setdefault(id(storage), (str(len(self.storages)), storage))
        kind: Any = names.UNTYPED if obj.dtype is None else names.STORAGE_TYPES[obj.dtype]
        location = obj.location or location_tag(storage)
        return "storage", kind, key, location, storage.nbytes() // (obj.dtype.itemsize if obj.dtype else 1)

    def reducer_override(self, obj: Any) -> Any:
        if id(obj) in names.NAMES:
            return names.NAMES[id(obj)][1]  # a global; save_global knows the rest
        if type(obj) is _C.Size:
            return _C.Size, (tuple(obj),)
        if isinstance(obj, names.LAYOUT):
            return names.get_layout, (f"torch.{obj.__reduce__()}",)
        if isinstance(obj, Tensor) and obj.is_quantized:
            return names.rebuild_quantized, self._quantized(obj)
        if isinstance(obj, Tensor) and obj.is_nested:
            return self._nested(obj)
        if isinstance(obj, Tensor) and obj.layout is not _C.strided and not _C._is_wrapper(obj):
            reduced: Any = obj.__reduce_ex__(2)
            return names.rebuild_sparse_tensor, reduced[1][:2]
        if isinstance(obj, Tensor) and type(obj).__reduce_ex__ is Tensor.__reduce_ex__:
            return self._tensor(obj)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if id(obj) not in names.NAMES:
            super().save_global(obj, name)
            return
        module, name = names.NAMES[id(obj)]
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def _tensor(self, tensor: Tensor) -> Any:
        attributes = _state(tensor)
        if type(tensor) is names.Parameter:
            data = tensor.data, tensor.requires_grad, _no_hooks()
            if attributes:
                return names.rebuild_parameter_with_state, (*data, attributes)
            return names.rebuild_parameter, data
        make, arguments = self._plain(tensor)
        if _serialization_tls.materialize_fake_tensors and hasattr(tensor, "fake_device"):
            return make, arguments
        if type(tensor) is Tensor and not attributes:
            return make, arguments
        return names.rebuild_from_type, (make, type(tensor), arguments, attributes)

    def _nested(self, tensor: Any) -> Any:
        if _serialization_tls.skip_data:
            raise RuntimeError("Cannot serialize nested tensor under skip_data context manager")
        plain = tensor.detach()
        if plain.layout is _C.strided:
            plain = plain.contiguous()
            tables = plain._nested_tensor_size(), plain._nested_tensor_strides(), plain._nested_tensor_storage_offsets()
            return names.rebuild_nested, (plain.values(), *tables)
        *parts, _, ragged, _, grad = tensor.__reduce_ex__(2)[1]
        kinds = dict(zip(("values", "offsets", "lengths"), parts, strict=True))
        return names.rebuild_jagged, ({**kinds, "_ragged_idx": ragged, "requires_grad": grad},)

    def _plain(self, tensor: Tensor) -> Any:
        if tensor.device.type == "meta":
            size, stride = tuple(tensor.shape), tensor.stride()
            return names.rebuild_meta_tensor, (tensor.dtype, size, stride, tensor.requires_grad)
        if tensor._is_zerotensor():
            raise RuntimeError("ZeroTensor is not serializable: clone() gives a tensor with elements")
        if _C._is_wrapper(tensor):
            described = type(tensor), tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
            return names.rebuild_wrapper, (*described, _C.strided, tensor.device, tensor.requires_grad)
        plain = tensor.detach()
        if any(s < 0 for s in plain.stride()):  # from NumPy; PyTorch would refuse the file
            plain = plain.clone(memory_format=_C.contiguous_format)
        storage, dtype = plain.untyped_storage(), self._first_dtype(plain)
        place = plain.storage_offset(), tuple(plain.shape), plain.stride(), tensor.requires_grad
        hooks = _no_hooks()
        pending = {name: True for name, is_so in (("conj", plain.is_conj()), ("neg", plain.is_neg())) if is_so}
        metadata = (pending,) if pending else ()
        location = str(tensor.device) if hasattr(tensor, "fake_device") else None
        if dtype is None:
            return names.rebuild_tensor_v3, (_Reference(storage, None, location), *place, hooks, plain.dtype, *metadata)
        return names.rebuild_tensor_v2, (_Reference(storage, dtype, location), *place, hooks, *metadata)

    def _quantized(self, tensor: Tensor) -> Any:
        """The integers as a storage of the tensor's dtype, and how they are read."""
        dtype, plain = tensor.dtype, _C._layout_part(tensor, 0)
        if dtype in IN_A_BYTE:
            plain, strides = tensor.int_repr(), _C.empty(tensor.shape, device="meta").stride()
        else:
            strides = plain.stride()
        place = plain.storage_offset(), tuple(tensor.shape), strides
        return _Reference(plain.untyped_storage(), dtype), *place, quantizer_of(tensor), False, _no_hooks()

    def _first_dtype(self, tensor: Tensor) -> Any:
        """The tensor's dtype where the storage's type can tell it; None where the tensor itself has to."""
        storage, dtype = tensor.untyped_storage(), tensor.dtype
        if dtype not in names.STORAGE_TYPES or storage.nbytes() % dtype.itemsize:
            return None
        key, _ = self.storages.setdefault(id(storage), (str(len(self.storages)), storage))
        return dtype if self.dtypes.setdefault(key, dtype) is dtype else None


def content_of(storage: Any) -> memoryview:
    """The bytes of a storage, on the CPU; zeros where save() leaves them out."""
    if _serialization_tls.skip_data:
        return memoryview(bytes(storage.nbytes()))
    content: Any = bytes_tensor(storage).cpu()
    return memoryview(content)


def dump(obj: Any, protocol: int) -> tuple[bytes, list[tuple[str, Any]]]:
    """The pickle, and each storage with its key."""
    file = io.BytesIO()
    pickler = Pickler(file, protocol)
    pickler.dump(obj)
    return file.getvalue(), list(pickler.storages.values())
