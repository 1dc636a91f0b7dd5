"""Short names of dtypes, as logs of calls have them: f32, i64."""

from __future__ import annotations

import re

from tensorpy import _C


def _short(dtype: _C.dtype) -> str:
    name = str(dtype).rpartition(".")[2]
    kind, rest = re.fullmatch(r"([a-z]+)(.*)", name).groups()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    letter = {"bool": "b8", "bfloat": "bf", "uint": "u", "complex": "c"}.get(kind, kind[0])
    return letter + rest.replace("_", "")


_ALL = {value for value in vars(_C).values() if isinstance(value, _C.dtype)}
dtype_abbrs = {dtype: _short(dtype) for dtype in sorted(_ALL, key=str)}
