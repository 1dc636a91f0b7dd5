"""Lists of dtypes by kind, under the names that tests import."""

from __future__ import annotations

from tensorpy import _C
from tensorpy._C import dtype

__all__ = [
    "all_types", "all_types_and", "all_types_and_complex", "all_types_and_complex_and", "all_types_and_half",
    "all_types_complex_float8_and", "complex_types", "complex_types_and", "custom_types", "double_types",
    "empty_types", "float8_types", "float8_types_and", "float_to_corresponding_complex_type_map",
    "floating_and_complex_types",
    "floating_and_complex_types_and", "floating_types", "floating_types_and", "floating_types_and_half",
    "get_all_complex_dtypes", "get_all_dtypes", "get_all_fp_dtypes", "get_all_int_dtypes", "get_all_math_dtypes",
    "get_all_qint_dtypes", "highest_precision_complex", "highest_precision_float", "integral_types",
    "integral_types_and",
]  # fmt: skip


class _dispatch_dtypes(tuple[dtype, ...]):
    """Dtypes as the functions here give them; what is added to one is one."""

    __slots__ = ()

    def __add__(self, more: tuple[dtype, ...]) -> _dispatch_dtypes:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return _dispatch_dtypes(tuple(self) + tuple(more))


Dtypes = _dispatch_dtypes

_FLOATING = Dtypes((_C.float32, _C.float64))
_INTEGRAL = Dtypes((_C.uint8, _C.int8, _C.int16, _C.int32, _C.int64))
_COMPLEX = Dtypes((_C.complex64, _C.complex128))
_FLOAT8 = Dtypes((_C.float8_e4m3fn, _C.float8_e4m3fnuz, _C.float8_e5m2, _C.float8_e5m2fnuz))


def _and(kind: Dtypes, more: tuple[dtype, ...]) -> Dtypes:
    if not all(isinstance(each, dtype) for each in more):
        raise RuntimeError(f"expected dtypes, got {more}")
    return kind + more


def empty_types() -> Dtypes:
    """No dtype."""
    return Dtypes()


def custom_types(*dtypes: dtype) -> Dtypes:
    """Those that are given."""
    return _and(Dtypes(), dtypes)


def floating_types() -> Dtypes:
    """float32, float64."""
    return _FLOATING


def floating_types_and(*dtypes: dtype) -> Dtypes:
    """float32, float64 and those that are given."""
    return _and(_FLOATING, dtypes)


def floating_types_and_half() -> Dtypes:
    """float32, float64, float16."""
    return _and(_FLOATING, (_C.float16,))


def floating_and_complex_types() -> Dtypes:
    """float32, float64 and the complex dtypes of them."""
    return _FLOATING + _COMPLEX


def floating_and_complex_types_and(*dtypes: dtype) -> Dtypes:
    """float32, float64, the complex dtypes of them and those that are given."""
    return _and(floating_and_complex_types(), dtypes)


def double_types() -> Dtypes:
    """float64, complex128."""
    return Dtypes((_C.float64, _C.complex128))


def integral_types() -> Dtypes:
    """uint8 and the signed integers."""
    return _INTEGRAL


def integral_types_and(*dtypes: dtype) -> Dtypes:
    """uint8, the signed integers and those that are given."""
    return _and(_INTEGRAL, dtypes)


def all_types() -> Dtypes:
    """Floating and integral types."""
    return _FLOATING + _INTEGRAL


def all_types_and(*dtypes: dtype) -> Dtypes:
    """Floating, integral types and those that are given."""
    return _and(all_types(), dtypes)


def all_types_and_half() -> Dtypes:
    """Floating, integral types and float16."""
    return all_types_and(_C.float16)


def complex_types() -> Dtypes:
    """complex64, complex128."""
    return _COMPLEX


def complex_types_and(*dtypes: dtype) -> Dtypes:
    """complex64, complex128 and those that are given."""
    return _and(_COMPLEX, dtypes)


def all_types_and_complex() -> Dtypes:
    """Floating, integral and complex types."""
    return all_types() + _COMPLEX


def all_types_and_complex_and(*dtypes: dtype) -> Dtypes:
    """Floating, integral, complex types and those that are given."""
    return _and(all_types_and_complex(), dtypes)


def float8_types() -> Dtypes:
    """The four of eight bits that have no scale."""
    return _FLOAT8


def float8_types_and(*dtypes: dtype) -> Dtypes:
    """The four of eight bits that have no scale, and those that are given."""
    return _and(_FLOAT8, dtypes)


def get_all_int_dtypes() -> list[dtype]:
    """A list of the integral types."""
    return list(_INTEGRAL)


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[dtype]:
    """A list of the floating types."""
    return [*_FLOATING, *[_C.float16] * include_half, *[_C.bfloat16] * include_bfloat16]


def get_all_complex_dtypes(include_complex32: bool = False) -> list[dtype]:
    """A list of the complex types."""
    return [*[_C.complex32] * include_complex32, *_COMPLEX]


def get_all_dtypes(
    include_half: bool = True,
    include_bfloat16: bool = True,
    include_bool: bool = True,
    include_complex: bool = True,
    include_complex32: bool = False,
    include_qint: bool = False,
) -> list[dtype]:
    """A list of integral, floating, bool, complex and quantized types."""
    numbers = get_all_int_dtypes() + get_all_fp_dtypes(include_half, include_bfloat16)
    complex_numbers = get_all_complex_dtypes(include_complex32) if include_complex else []
    return numbers + [_C.bool] * include_bool + complex_numbers + (get_all_qint_dtypes() if include_qint else [])


def get_all_math_dtypes(device: str) -> list[dtype]:
    """A list of integral, floating and complex types, float16 among them on CUDA."""
    return get_all_int_dtypes() + get_all_fp_dtypes(device.startswith("cuda"), False) + get_all_complex_dtypes()


float_to_corresponding_complex_type_map = {
    _C.float16: _C.complex32,
    _C.float32: _C.complex64,
    _C.float64: _C.complex128,
}


def get_all_qint_dtypes() -> list[dtype]:
    """A list of the quantized types."""
    return [_C.qint8, _C.quint8, _C.qint32, _C.quint4x2, _C.quint2x4]


def all_types_complex_float8_and(*dtypes: dtype) -> Dtypes:
    """All of integers and floats, complex ones, those of 8 bits, and those that are given."""
    return _and(all_types_and_complex() + _FLOAT8, dtypes)


def highest_precision_float(device: object) -> dtype:
    """The most exact floating dtype of a device."""
    return _C.float64


def highest_precision_complex(device: object) -> dtype:
    """The most exact complex dtype of a device."""
    return _C.complex128
