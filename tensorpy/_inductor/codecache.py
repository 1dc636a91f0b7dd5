"""Code in C++ that PyTorch's code generator would compile: there is none."""

from __future__ import annotations

from typing import Any, NoReturn

from tensorpy._inductor.exc import InvalidCxxCompiler


class CppCodeCache:
    """Libraries of generated code: none is made."""

    @classmethod
    def load(cls, source_code: str, *args: Any, **options: Any) -> NoReturn:
        """InvalidCxxCompiler."""
        raise InvalidCxxCompiler
