"""What the namespace says of itself."""

from __future__ import annotations

import tensorpy as tp
from tensorpy import dtype

from ._promotion import COMPLEX, KINDS, REAL


class ArrayNamespaceInfo:
    """The devices, dtypes and limits of the namespace.

    Example:
        >>> xp.__array_namespace_info__().default_device()
        device(type='cpu')
    """

    def capabilities(self) -> dict[str, bool | int]:
        """What the standard leaves open, and how many dimensions an array may have.

        Returns: a dict.

        Example:
            >>> xp.__array_namespace_info__().capabilities()["boolean indexing"]
            True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> tp.device:
        """The device of arrays for which none is said.

        Returns: a device.

        Example:
            >>> xp.__array_namespace_info__().default_device()
            device(type='cpu')
        """
        return tp.get_default_device()

    def devices(self) -> tuple[tp.device, ...]:
        """The devices that there are.

        Returns: a tuple of devices.

        Example:
            >>> xp.__array_namespace_info__().devices()[0]
            device(type='cpu')
        """
        found = [tp.device("cpu")]
        if tp.opencl.is_available():
            found += [tp.device("opencl", i) for i in range(tp.opencl.device_count())]
        return tuple(found)

    def default_dtypes(self, *, device: tp.device | str | None = None) -> dict[str, dtype]:
        """The dtypes of arrays for which none is said.

        Arguments:
            device: the device, all of which have the same

        Returns: a dict with "real floating", "complex floating", "integral" and "indexing".

        Example:
            >>> xp.__array_namespace_info__().default_dtypes()["integral"]
            tensorpy.int64
        """
        real = tp.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": COMPLEX[REAL.index(real)] if real in REAL else tp.complex64,
            "integral": tp.int64,
            "indexing": tp.int64,
        }

    def dtypes(
        self, *, device: tp.device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, dtype]:
        """The dtypes of the standard, by name.

        Arguments:
            device: the device, all of which have the same
            kind: a kind as isdtype() takes it, or several; None: all

        Returns: a dict.

        Raises: ValueError for a kind that the standard does not have.

        Example:
            >>> list(xp.__array_namespace_info__().dtypes(kind="real floating"))
            ['float32', 'float64']
        """
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for each in kinds:
            if each not in KINDS:
                raise ValueError(f"dtypes(): no kind is called {each!r}; there are {', '.join(KINDS)}")
        return {str(d).partition(".")[2]: d for each in kinds for d in KINDS[each]}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What the namespace says of itself.

    Returns: an ArrayNamespaceInfo.

    Example:
        >>> "int8" in xp.__array_namespace_info__().dtypes()
        True
    """
    return ArrayNamespaceInfo()
