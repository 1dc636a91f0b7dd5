"""finfo and iinfo: the limits of dtypes; the words that types have for them; what counts as an int."""

from __future__ import annotations

from typing import Any

from tensorpy import _C
from tensorpy._C import dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import TypeIs

# mantissa bits and largest exponent of each floating type (IEEE 754; bfloat16 is the upper half of a binary32)
_FORMATS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}
# eps, min, max and smallest normal number of the 8-bit formats, as PyTorch gives them
_FLOAT8 = {
    "float8_e4m3fn": (2.0**-3, -448.0, 448.0, 2.0**-6),
    "float8_e4m3fnuz": (2.0**-3, -240.0, 240.0, 2.0**-7),
    "float8_e5m2": (2.0**-2, -57344.0, 57344.0, 2.0**-14),
    "float8_e5m2fnuz": (2.0**-3, -57344.0, 57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**-127, 2.0**127, 2.0**-127),
}

# What a dtype is called in the names of types: FloatTensor, FloatStorage.
STORAGES = {
    "Float": _C.float32,
    "Double": _C.float64,
    "Half": _C.float16,
    "BFloat16": _C.bfloat16,
    "Byte": _C.uint8,
    "Char": _C.int8,
    "Short": _C.int16,
    "Int": _C.int32,
    "Long": _C.int64,
    "Bool": _C.bool,
    "ComplexFloat": _C.complex64,
    "ComplexDouble": _C.complex128,
}


def is_whole(value: object) -> TypeIs[int]:
    """Whether a value stands for one int: whatever has `__index__`, but for tensors and arrays."""
    return hasattr(value, "__index__") and not hasattr(value, "__len__")


class finfo:
    """Limits of a floating dtype (of the parts of a complex one).

    Attributes: bits, eps (distance from 1 to the next number), max, min, tiny and smallest_normal, resolution
    (10 ** -digits), dtype (its name).

    Arguments:
        type: a dtype of floats or complex numbers; None takes the default dtype

    Raises: TypeError for a dtype of integers or bool.

    Example:
        >>> tp.finfo(tp.float32).max
        3.4028234663852886e+38
    """

    bits: Any
    dtype: Any
    eps: Any
    max: Any
    min: Any
    resolution: Any
    smallest_normal: Any
    tiny: Any

    def __init__(self, type: dtype | None = None) -> None:
        type = _C.get_default_dtype() if type is None else type
        if not isinstance(type, dtype) or not (type.is_floating_point or type.is_complex):
            raise TypeError(
                f"tensorpy.finfo() requires a floating point input type, not {type}. Use tensorpy.iinfo for integers"
            )
        real = type.to_real()
        if real.name in _FLOAT8:
            self.bits, self.resolution, self.dtype = 8, 1.0, real.name
            self.eps, self.min, self.max, self.tiny = _FLOAT8[real.name]
            self.smallest_normal = self.tiny
            return
        mantissa, exponent = _FORMATS[real.name]
        self.bits = real.itemsize * 8
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = 10.0 ** -int(mantissa * 0.30103)
        self.dtype = real.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("finfo", self.dtype))


# Whether integers of quantized dtypes are signed.
_QUANTIZED = {_C.qint8: True, _C.qint32: True, _C.quint8: False, _C.quint4x2: False, _C.quint2x4: False}


class iinfo:
    """Limits of an integer dtype: bits, min, max, dtype (its name).

    Arguments:
        type: a dtype of integers

    Raises: TypeError for a dtype of floats.

    Example:
        >>> tp.iinfo(tp.int8).max
        127
    """

    bits: Any
    dtype: Any
    max: Any

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype) or type.is_floating_point or type.is_complex or type is _C.bool:
            raise TypeError(
                f"tensorpy.iinfo() requires an integer input type, not {type}. Use tensorpy.finfo for floats"
            )
        self.bits = type.itemsize * 8
        signed = _QUANTIZED[type] if type in _QUANTIZED else type.is_signed
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - signed) - 1
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"  # as PyTorch prints it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("iinfo", self.dtype))
