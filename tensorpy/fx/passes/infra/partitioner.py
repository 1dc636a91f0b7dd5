"""Cuts a graph into parts that somebody computes (`operator_support`), as large as they can be without a circle."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tensorpy.fx.node import Node, target_name
from tensorpy.fx.passes.operator_support import OperatorSupportBase
from tensorpy.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Nodes that are computed together; `nodes` is a dictionary of them."""

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """One more node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """One node less."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """`propose_partitions()` says which nodes go together, `partition_and_fuse()` makes modules of them.

    Nodes that compute nothing (`non_compute_ops`, by name) do not make a partition alone, nor does a single node unless
    `allows_single_node_partition`, or its name is among `allowed_single_node_partition_ops`.
    """

    graph_module: Any
    operator_support: OperatorSupportBase
    non_compute_ops: list[str]
    allowed_single_node_partition_ops: list[str]

    def __init__(
        self,
        graph_module: Any,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self._of: dict[Node, Partition] = {}

    def propose_partitions(self) -> list[Partition]:
        """The partitions; each node is in one of them at most."""
        modules = dict(self.graph_module.named_modules())
        nodes = list(self.graph_module.graph.nodes)
        order = {node: i for i, node in enumerate(nodes)}
        self._of = {}
        parts: list[Partition] = []
        for node in reversed(nodes):
            if not self.operator_support.is_node_supported(modules, node) or node.op in ("placeholder", "output"):
                continue
            own = self._of[node] = Partition(len(parts), [node])
            parts.append(own)
            near = {id(part): part for user in node.users if (part := self._of.get(user))}
            others = list(near.values()) if self.skip_horizontal_fusion else [p for p in parts[:-1] if p.nodes]
            for other in sorted(others, key=lambda part: min(order[n] for n in part.nodes)):
                own = self._merged(own, other)
        self._follow_getitems(nodes)
        for part in parts:
            part.nodes = {n: order[n] for n in sorted(part.nodes, key=order.__getitem__)}
        return [part for part in parts if part.nodes and self._is_worth_it(part)]

    def _merged(self, a: Partition, b: Partition) -> Partition:
        """Both as one, unless the way from a node of them to another leads through nodes outside."""
        if a is b:
            return a
        inside = {**a.nodes, **b.nodes}
        waiting = [user for node in inside for user in node.users if user not in inside]
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node in inside:
                return a
            if node in seen:
                continue
            seen.add(node)
            part = self._of.get(node)
            for each in (node,) if part is None else part.nodes:
                seen.add(each)
                waiting += [user for user in each.users if user not in seen]
        if len(a.nodes) < len(b.nodes):
            a, b = b, a
        a.nodes.update(b.nodes)
        self._of.update(dict.fromkeys(b.nodes, a))
        b.nodes = {}
        return a

    def _follow_getitems(self, nodes: list[Node]) -> None:
        """An item of a tuple is taken where the tuple is made."""
        for node in nodes:
            for user in node.users:
                if user.op == "call_function" and target_name(user.target) == "operator.getitem":
                    here, there = self._of.get(node), self._of.get(user)
                    if here is there or (here is None and there is None):
                        continue
                    if there is not None:
                        there.remove_node(user)
                        del self._of[user]
                    if here is not None:
                        here.add_node(user)
                        self._of[user] = here

    def _is_worth_it(self, part: Partition) -> bool:
        names = [target_name(node.target) for node in part.nodes if node.op == "call_function"]
        plain = {name.replace("tensorpy.ops.", "torch.ops.") for name in self.non_compute_ops}
        counted = [
            name for name in names
            if name != "operator.getitem" and name.replace("tensorpy.ops.", "torch.ops.") not in plain
            and name not in self.non_compute_ops
        ]  # fmt: skip
        if self.allows_single_node_partition:
            return True
        allowed = any(name in self.allowed_single_node_partition_ops for name in counted)
        return len(counted) + sum(node.op != "call_function" for node in part.nodes) > 1 or allowed

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> Any:
        """The graph module with a call of a module in the place of each partition."""
        return fuse_by_partitions(self.graph_module, [part.nodes for part in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Takes what computes nothing away from both ends of each partition."""
        for part in partitions:
            for given in (operator.attrgetter("all_input_nodes"), lambda node: list(node.users)):
                self._take_ends(part, given)

    def _take_ends(self, part: Partition, given: Any) -> None:
        found = True
        while found:
            ends = [n for n in part.nodes if self._computes_nothing(n) and not any(m in part.nodes for m in given(n))]
            for node in ends:
                part.remove_node(node)
            found = bool(ends)

    def _computes_nothing(self, node: Node) -> bool:
        name = target_name(node.target)
        return node.op == "call_function" and name in {
            *self.non_compute_ops, *(each.replace("torch.ops.", "tensorpy.ops.") for each in self.non_compute_ops)
        }  # fmt: skip

    def partition_and_fuse(self, prefix: str = "fused_") -> Any:
        """The module of what `propose_partitions` gives."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
