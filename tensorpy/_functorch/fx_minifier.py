"""minifier: a small graph that still fails, of a large one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorpy._C import Tensor
from tensorpy._functorch.compile_utils import get_outputs, get_placeholders
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.fx.interpreter import Interpreter
from tensorpy.fx.node import Node

__all__ = ["minifier"]

_Trial = tuple[Graph, list[Any]]


class _Values(Interpreter):
    """Notes in each node what it gave."""

    def run_node(self, n: Node) -> Any:
        n.meta["concrete_value"] = value = super().run_node(n)
        return value


def _without_end(graph: Graph, inputs: list[Any], size: int) -> Iterator[_Trial]:
    """The graph up to a node, which it returns: each `size`-th."""
    for i, last in enumerate(graph.nodes):
        if i % size or last.op in ("placeholder", "output"):
            continue
        shorter = copy.deepcopy(graph)
        nodes = list(shorter.nodes)
        for node in reversed(nodes[i + 1 :]):
            shorter.erase_node(node)
        shorter.output((nodes[i],))
        yield shorter, inputs


def _without_results(graph: Graph, inputs: list[Any], size: int) -> Iterator[_Trial]:
    """The graph without some of what it returns."""
    results = get_outputs(graph)
    for i in range(0, len(results) if len(results) > 1 else 0, size):
        fewer = copy.deepcopy(graph)
        (output,) = (node for node in fewer.nodes if node.op == "output")
        found = get_outputs(fewer)
        output.args = (tuple(found[:i] + found[i + size :]),)
        yield fewer, inputs


def _without_unused(graph: Graph, inputs: list[Any], size: int) -> Iterator[_Trial]:
    """The graph without nodes that nobody uses, and without such inputs."""
    smaller = copy.deepcopy(graph)
    for node in reversed(list(smaller.nodes)):
        if not node.users and node.op not in ("placeholder", "output"):
            smaller.erase_node(node)
    pairs = list(zip(get_placeholders(smaller), inputs, strict=True))
    for node, _ in pairs:
        if not node.users:
            smaller.erase_node(node)
    yield smaller, [value for node, value in pairs if node.users]


def _with_inputs(graph: Graph, inputs: list[Any], size: int) -> Iterator[_Trial]:
    """The graph with some nodes as inputs, which are given what the nodes gave."""
    nodes = list(graph.nodes)
    for start in range(0, len(nodes), size):
        changed = copy.deepcopy(graph)
        for node in list(changed.nodes)[start : start + size]:
            if node.op not in ("placeholder", "output") and isinstance(node.meta.get("concrete_value"), Tensor):
                with changed.inserting_before(node):
                    made = changed.placeholder(node.name)
                made.meta = dict(node.meta)
                node.replace_all_uses_with(made)
                changed.erase_node(node)
        if get_placeholders(changed)[len(inputs) :]:
            known = dict(zip((node.name for node in get_placeholders(graph)), inputs, strict=True))
            given = [known.get(node.name, node.meta.get("concrete_value")) for node in get_placeholders(changed)]
            yield next(_without_unused(changed, given, size))


_STRATEGIES = (_without_end, _without_results, _without_unused, _with_inputs)


def _work(graph: Graph) -> tuple[int, int]:
    """What a smaller graph has less of: calls, then nodes and results."""
    calls = sum(node.op not in ("placeholder", "output") for node in graph.nodes)
    return calls, len(graph.nodes) + len(get_outputs(graph))


def minifier(
    fail_f: GraphModule,
    inps: Sequence[Any],
    module_fails: Callable[[GraphModule, Sequence[Any]], Any],
    dump_state: Callable[[GraphModule, Sequence[Any]], Any] | None = None,
    *,
    skip_sanity: bool = False,
    max_granularity: int | None = None,
) -> tuple[GraphModule, list[Any]]:
    """A small graph that still fails: without its end, some results, or unused nodes, and with nodes as inputs.

    Arguments:
        fail_f: the module of the graph that fails
        inps: its arguments
        module_fails: what tells of a module and arguments whether they fail
        dump_state: called with each smaller module and its arguments
        skip_sanity: whether not to ask first whether `fail_f` fails
        max_granularity: how many nodes are tried at once at most, a power of two; None tries half of them first

    Returns: the smaller module and its arguments.

    Raises: RuntimeError if `fail_f` does not fail, or the granularity is no power of two.

    Example:
        >>> from tensorpy._functorch.fx_minifier import minifier
        >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
        >>> module = make_fx(lambda x: (x + 1).sin().cos())(tp.ones(2))
        >>> has_sin = lambda gm, _: tp.ops.aten.sin.default in [node.target for node in gm.graph.nodes]
        >>> len(minifier(module, [tp.ones(2)], has_sin)[0].graph.nodes)
        3
    """
    if max_granularity is not None and (max_granularity < 1 or max_granularity & (max_granularity - 1)):
        raise RuntimeError(f"max_granularity {max_granularity} not power of two")

    def fails(graph: Graph, inputs: list[Any]) -> bool:
        module = GraphModule(fail_f, copy.deepcopy(graph))
        module.graph.lint()
        return bool(module_fails(module, inputs))

    graph, inputs = fail_f.graph, list(inps)
    _Values(fail_f).run(*inputs)
    if not skip_sanity and not fails(graph, inputs):
        raise RuntimeError("Input graph did not fail the tester")
    size = max_granularity or 1 << max(len(graph.nodes).bit_length() - 1, 0)
    while size:
        trials = (t for strategy in _STRATEGIES for t in strategy(graph, inputs, size) if _work(t[0]) < _work(graph))
        found = next((t for t in trials if fails(*t)), None)
        if found is None:
            size //= 2
            continue
        graph, inputs = found
        if dump_state is not None:
            dump_state(GraphModule(fail_f, graph), inputs)
    return GraphModule(fail_f, graph), inputs
