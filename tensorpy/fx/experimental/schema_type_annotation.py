"""Types of nodes, from the annotations and schemas of what they call."""

from __future__ import annotations

import inspect
from typing import Any

from tensorpy._C import Tensor
from tensorpy.fx.interpreter import Transformer
from tensorpy.fx.operator_schemas import get_signature_for_torch_op, is_of_c
from tensorpy.nn import functional

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """`AnnotateTypesWithSchema(module).transform()`: calls, of functions and modules, and attributes have types."""

    annotate_functionals: bool
    annotate_modules: bool

    def __init__(
        self, module: Any, annotate_functionals: bool = True, annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(module)
        self.annotate_functionals, self.annotate_modules = annotate_functionals, annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def _typed(self, proxy: Any, kind: Any) -> Any:
        if kind is not inspect.Signature.empty and kind is not None and proxy.node.type is None:
            proxy.node.type = kind
        return proxy

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = super().call_function(target, args, kwargs)
        if not self.annotate_functionals:
            return made
        is_written_here = getattr(functional, target.__name__, None) is target and not is_of_c(target)
        if is_written_here and (hint := inspect.signature(target).return_annotation):
            return self._typed(made, Tensor if hint == "Tensor" else hint)
        kinds = {s.return_annotation for s in get_signature_for_torch_op(target) or ()}
        return self._typed(made, kinds.pop()) if len(kinds) == 1 else made

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = super().call_module(target, args, kwargs)
        module = self.fetch_attr(target)
        if not self.annotate_modules or not hasattr(type(module), "forward"):
            return made
        hint = inspect.signature(type(module).forward).return_annotation
        return self._typed(made, Tensor if hint == "Tensor" else hint)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = super().get_attr(target, args, kwargs)
        if not self.annotate_get_attrs:
            return made
        module = self.module
        *folders, name = target.split(".")
        for folder in folders:
            module = getattr(module, folder)
        kind = type(getattr(module, name, None))
        return self._typed(made, Tensor if issubclass(kind, Tensor) else kind)
