"""Storages: the memory of tensors, of which several tensors may each have a part.

The C half owns UntypedStorage; this package has what Python adds. `methods` has its bytes, parts and copies, `shared`
memory that several processes share and how it is sent, `files` memory that is a file, `typed` the storages of a dtype.
"""

from __future__ import annotations

from typing import Any

from tensorpy._C import UntypedStorage
from tensorpy.storage.files import storage_from_file as from_file  # noqa: F401
from tensorpy.storage.methods import (  # noqa: F401
    __copy__,
    __dlpack__,
    __dlpack_device__,
    __sizeof__,
    _item,
    _new,
    _set_item,
    _text,
    bytes_of,
    byteswap,
    clone,
    copy_,
    cpu,
    element_size,
    fill_,
    get_device,
    name_of_type,
    new,
    resize_,
    tolist,
    untyped,
)
from tensorpy.storage.shared import _new_shared, is_shared, share_memory_  # noqa: F401
from tensorpy.storage.typed import (  # noqa: F401
    TypedStorage,
    _dtype_to_storage_type_map,
    _storage_type_to_dtype_map,
    converted,
    of_one_dtype,
)

__all__ = ["TypedStorage", "UntypedStorage"]


TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ gives at first use

    class BFloat16Storage(TypedStorage): ...

    class BoolStorage(TypedStorage): ...

    class ByteStorage(TypedStorage): ...

    class CharStorage(TypedStorage): ...

    class ComplexDoubleStorage(TypedStorage): ...

    class ComplexFloatStorage(TypedStorage): ...

    class DoubleStorage(TypedStorage): ...

    class FloatStorage(TypedStorage): ...

    Storage = FloatStorage

    class HalfStorage(TypedStorage): ...

    class IntStorage(TypedStorage): ...

    class LongStorage(TypedStorage): ...

    class QInt32Storage(TypedStorage): ...

    class QInt8Storage(TypedStorage): ...

    class QUInt2x4Storage(TypedStorage): ...

    class QUInt4x2Storage(TypedStorage): ...

    class QUInt8Storage(TypedStorage): ...

    class ShortStorage(TypedStorage): ...
else:

    def __getattr__(name: str) -> Any:
        made = of_one_dtype(name)
        if made is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return made
