"""Which nodes somebody computes: what divides a graph asks it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from tensorpy.fx.node import Node
from tensorpy.fx.passes.tools_common import get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

Submodules = Mapping[str, Any]
IsNodeSupported = Callable[[Submodules, Node], bool]


class OperatorSupportBase(ABC):
    """Says of a node whether it is computed."""

    @abstractmethod
    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether the node is computed; `submodules` are the graph module's by path."""


class OperatorSupport(OperatorSupportBase):
    """By a table: names of targets (`tools_common.get_node_target`), each with None, or with the arguments' dtypes: a
    pair of a tuple of tuples (one for each positional argument) and a dictionary of tuples."""

    _support_dict: Mapping[str, Any] = {}

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = {} if support_dict is None else support_dict

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        if node.op not in ("call_module", "call_function", "call_method"):
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        args, kwargs = wanted
        pairs = [(node.args[i], dtypes) for i, dtypes in enumerate(args) if i < len(node.args)]
        pairs += [(node.kwargs[name], dtypes) for name, dtypes in kwargs.items() if name in node.kwargs]
        return all(not isinstance(given, Node) or not dtypes or _dtype_of(given) in dtypes for given, dtypes in pairs)


def _dtype_of(node: Node) -> Any:
    meta: Any = node.meta.get("tensor_meta")
    return meta.dtype if hasattr(meta, "dtype") else node.meta.get("dtype")


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Makes one of a function of (submodules, node)."""

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
            return is_node_supported(submodules, node)

    return Support()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of these compute."""
    return create_op_support(lambda submods, node: all(each.is_node_supported(submods, node) for each in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What one of these computes."""
    return create_op_support(lambda submods, node: any(each.is_node_supported(submods, node) for each in op_support))


class OpSupports:
    """Conditions for `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Nothing that takes a tensor of a dtype."""
        return create_op_support(lambda submods, node: all(_dtype_of(n) != dtype for n in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """No node of these names."""
        return create_op_support(lambda submods, node: node.name not in disallow_set)
