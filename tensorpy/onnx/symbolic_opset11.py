"""How operators are written in an ONNX file: names only, nothing is written."""

from __future__ import annotations

from tensorpy._package.absent import absent

select = absent(__name__, "select")
squeeze = absent(__name__, "squeeze")
unsqueeze = absent(__name__, "unsqueeze")
