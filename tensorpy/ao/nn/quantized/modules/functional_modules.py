"""Sums, products and joins as modules, so that what they give is observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tensorpy import _C, nn
from tensorpy._C import Tensor
from tensorpy.ao.nn.quantized import arithmetic
from tensorpy.ao.nn.quantized.modules.utils import load_range, save_range
from tensorpy.nn import functional as F

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class FXFloatFunctional(nn.Module):
    """The operations of FloatFunctional, which are not observed.

    Example:
        >>> tp.ao.nn.quantized.FXFloatFunctional().add(tp.ones(2), tp.ones(2))
        tensor([2., 2.])
    """

    def forward(self, x: Any) -> NoReturn:
        """Raises: the module's methods are called."""
        raise RuntimeError(f"{type(self).__name__} is not called itself: its methods are, like add(x, y)")

    def _seen(self, x: Tensor) -> Tensor:
        return x

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._seen(_C.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y, which is not observed: the integers stay."""
        return _C.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self._seen(_C.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y, which is not observed: the integers stay."""
        return _C.mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors one after the other."""
        return self._seen(_C.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y, and nothing below 0."""
        return self._seen(F.relu(_C.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self._seen(_C.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """Operations whose results are observed while a model is calibrated: it becomes a QFunctional.

    Example:
        >>> tp.ao.nn.quantized.FloatFunctional().add(tp.ones(2), tp.ones(2))
        tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Any = nn.Identity()

    def _seen(self, x: Tensor) -> Tensor:
        return self.activation_post_process(x)


class QFunctional(nn.Module):
    """Operations of quantized tensors, whose results have the scale and the zero point of the module.

    Example:
        >>> a = tp.quantize_per_tensor(tp.ones(2), 0.5, 0, tp.quint8)
        >>> tp.ao.nn.quantized.QFunctional().add(a, a).dequantize()
        tensor([2., 2.])
    """

    scale: float
    zero_point: int
    activation_post_process: Any

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        save_range(self, destination, prefix)

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        load_range(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Any) -> NoReturn:
        """Raises: the module's methods are called."""
        raise RuntimeError("QFunctional is not called itself: its methods are, like add(x, y)")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self.activation_post_process(arithmetic.add(x, y, self.scale, self.zero_point))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y, by another zero point."""
        return arithmetic.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self.activation_post_process(arithmetic.mul(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y, by another scale."""
        return arithmetic.mul_scalar(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors one after the other."""
        return self.activation_post_process(arithmetic.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y, and nothing below 0."""
        return self.activation_post_process(arithmetic.add_relu(x, y, self.scale, self.zero_point))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self.activation_post_process(arithmetic.matmul(x, y, self.scale, self.zero_point))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """Makes one of a FloatFunctional that has watched."""
        if type(mod) is not FloatFunctional:
            raise AssertionError(f"QFunctional.from_float is of a FloatFunctional, not of {type(mod)}")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
