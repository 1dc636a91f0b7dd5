"""What layers with a fake-quantized weight have in common."""

from __future__ import annotations

from typing import Any

from tensorpy.ao.nn import intrinsic as nni


class FakeQuantizedWeight:
    """A layer, beside one of nn's, whose weight is fake-quantized at each call."""

    weight_fake_quant: Any
    _FLOAT_MODULE: Any

    def __init__(self, *arguments: Any, qconfig: Any = None, **more: Any) -> None:
        super().__init__(*arguments, **more)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    @classmethod
    def _checked(cls, mod: Any) -> Any:
        """The layer of a module of the right type."""
        if type(mod) not in cls._FLOAT_MODULE or not getattr(mod, "qconfig", None):
            names = [kind.__name__ for kind in cls._FLOAT_MODULE]
            raise AssertionError(f"qat.{cls.__name__}.from_float is of {names} with a qconfig, not of {type(mod)}")
        return mod[0] if isinstance(mod, nni._FusedModule) else mod
