"""Graphs whose calls all give their arguments alike."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import tensorpy
from tensorpy.fx.interpreter import Transformer
from tensorpy.fx.node import Node, map_aggregate
from tensorpy.fx.operator_schemas import create_type_hint, normalize_function, normalize_module
from tensorpy.fx.proxy import Proxy

__all__ = ["NormalizeArgs", "NormalizeOperators"]


def _type_of(value: Any) -> Any:
    """The type of a node's argument: of another node's result what it says, or None."""
    return value.type if isinstance(value, Node) else type(value)


class NormalizeArgs(Transformer):
    """`NormalizeArgs(module).transform()` gives each argument by its name, defaults as well."""

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs
        self.node_map: dict[Proxy, Node] = {}

    def run_node(self, n: Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_function":
            arg_types = tuple(map(create_type_hint, map_aggregate(n.args, _type_of)))
            kwarg_types = {name: create_type_hint(map_aggregate(value, _type_of)) for name, value in n.kwargs.items()}
            out = self.call_function(n.target, args, kwargs, arg_types, kwarg_types)
        else:
            out = super().run_node(n)
        if n.op != "output" and isinstance(out, Proxy):
            self.node_map[out] = n
            out.node.meta, out.node.type = n.meta, n.type
        return out

    def call_function(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], arg_types: Any = None, kwarg_types: Any = None
    ) -> Any:
        if target is getattr:
            return super().call_function(target, args, kwargs)
        named = normalize_function(target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs)
        args, kwargs = (args, kwargs) if named is None else named
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *((args, kwargs) if named is None else named))


class NormalizeOperators(Transformer):
    """`NormalizeOperators(module).transform()` calls functions of tensorpy in the place of Python's operators."""

    binary_magic_method_remap: ClassVar[dict[Any, Any]] = {
        getattr(operator, name): getattr(tensorpy, function)
        for name, function in {
            "mul": "mul", "add": "add", "sub": "sub", "truediv": "div", "floordiv": "floor_divide",
            "mod": "remainder", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
        }.items()
    }  # fmt: skip

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target in self.binary_magic_method_remap and len(args) == 2:
            return super().call_function(self.binary_magic_method_remap[target], args, kwargs)
        return super().call_function(target, args, kwargs)
