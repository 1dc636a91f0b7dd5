"""How operators are written in an ONNX file: names only, nothing is written."""

from __future__ import annotations

from typing import Any

from tensorpy._package.absent import absent

select: Any = absent(__name__, "select")
squeeze: Any = absent(__name__, "squeeze")
unsqueeze: Any = absent(__name__, "unsqueeze")
