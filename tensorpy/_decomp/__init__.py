"""Decompositions: functions that run in operators' places, for `make_fx(decomposition_table=)`.

Those of operators whose kernel is a composite come of the dispatcher: the kernel is called, and what it calls is
recorded; where it calls no operator, as that of a view, the operator is. Nothing is listed here: an operator that gets
a composite kernel, and writes to no argument, has a decomposition. Programs register others, which stand before these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._library.tags import Tag
from tensorpy.fx.node import overload
from tensorpy.utils._pytree import tree_leaves

__all__ = [
    "core_aten_decompositions", "decomposition_table", "get_decompositions", "global_decomposition_table", "meta_table",
    "pre_autograd_decomposition_table", "register_decomposition",
]  # fmt: skip

_SEEDED = "nondeterministic_seeded"
_F = TypeVar("_F", bound=Callable[..., Any])
_BACKENDS = tuple(key for key in _C._KEYS if f"Autograd{key}" in _C._KEYS)


class CompositeDecomposition:
    """The composite kernel of an operator: its parts are called as if the program called them.

    Arguments:
        op: the operator's overload

    Example:
        >>> from tensorpy._decomp import CompositeDecomposition
        >>> CompositeDecomposition(tp.ops.aten.stack.default)([tp.zeros(2), tp.ones(2)])
        tensor([[0., 0.],
                [1., 1.]])
    """

    is_derived = True  # the recorder may decline it where its parts are for some sizes alone

    def __init__(self, op: Any) -> None:
        self.op = op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        keys = _C._tensor_keys(tensors[0]) if tensors else _C._KEYS["CPU"]
        backend = next((_C._KEYS[name] for name in _BACKENDS if keys & _C._KEYS[name]), None)
        return NotImplemented if backend is None else self.op.redispatch(backend, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<the composite kernel of {self.op}>"


@cache
def _kind(name: str) -> str:
    """How the kernel of dense tensors is registered."""
    return next((row[1] for row in _C._dispatch_table(name) if row[0] == "CPU"), "")


def _composites(kinds: Sequence[str]) -> dict[Any, Callable[..., Any]]:
    found = (overload(name) for name in _C._operators() if "::" not in name and _kind(name) in kinds)
    return {op: CompositeDecomposition(op) for op in found if not op._schema.is_mutable and _SEEDED not in op.tags}


decomposition_table: dict[Any, Callable[..., Any]] = _composites(["CompositeExplicitAutograd"])
pre_autograd_decomposition_table: dict[Any, Callable[..., Any]] = {}
meta_table: dict[Any, Callable[..., Any]] = {}
global_decomposition_table: dict[str, dict[Any, Callable[..., Any]]] = {
    "post_autograd": decomposition_table,
    "pre_autograd": pre_autograd_decomposition_table,
    "meta": meta_table,
}


def _overloads(op: Any) -> list[Any]:
    """An operator's overloads; an overload by itself."""
    return [getattr(op, name) for name in op.overloads()] if hasattr(op, "overloads") else [op]


def _table(kind: str) -> dict[Any, Callable[..., Any]]:
    if kind not in global_decomposition_table:
        raise AssertionError(f"a decomposition's type is one of {[*global_decomposition_table]}, not {kind!r}")
    return global_decomposition_table[kind]


def register_decomposition(
    aten_op: Any, registry: dict[Any, Any] | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[_F], _F]:
    """Registers a function that runs in an operator's place: `@register_decomposition(tp.ops.aten.silu)`.

    Arguments:
        aten_op: an overload, an operator (all its overloads), or several of these
        registry: the table; that of the type if None
        type: 'post_autograd', 'pre_autograd' or 'meta'
        unsafe: is taken

    Returns: what takes the function and gives it back.

    Raises: RuntimeError for an overload that has one, unless it is that of its composite kernel.

    Example:
        >>> from tensorpy._decomp import get_decompositions, register_decomposition
        >>> table = {}
        >>> @register_decomposition(tp.ops.aten.silu.default, table)
        ... def silu(x):
        ...     return x * x.sigmoid()
        >>> len(table)
        1
    """
    chosen = _table(type) if registry is None else registry

    def register(function: _F) -> _F:
        for op in aten_op if isinstance(aten_op, Iterable) and not hasattr(aten_op, "overloads") else [aten_op]:
            for each in _overloads(op):
                if not getattr(chosen.get(each), "is_derived", each not in chosen):
                    raise RuntimeError(f"duplicate registrations for {each}")
                chosen[each] = function
        return function

    return register


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable[..., Any]]:
    """The decompositions of operators, as `make_fx` takes them.

    Arguments:
        aten_ops: overloads, or operators (all their overloads); those that have none are left out
        type: 'post_autograd', 'pre_autograd' or 'meta'

    Returns: a dictionary by overload.

    Raises: AssertionError for an unknown type.

    Example:
        >>> from tensorpy._decomp import get_decompositions
        >>> from tensorpy.fx.experimental.proxy_tensor import make_fx
        >>> table = get_decompositions([tp.ops.aten.stack])
        >>> module = make_fx(lambda x: tp.stack([x, x]), decomposition_table=table)(tp.ones(2))
        >>> [node.name for node in module.graph.nodes]
        ['x_1', 'unsqueeze', 'unsqueeze_1', 'cat', 'output']
    """
    table = _table(type)
    return {each: table[each] for op in aten_ops for each in _overloads(op) if each in table}


def core_aten_decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions of all operators that have one and are not tagged `core`, those of composites that are always
    recorded as their parts among them.

    Returns: a dictionary by overload.

    Example:
        >>> from tensorpy._decomp import core_aten_decompositions
        >>> table = core_aten_decompositions()
        >>> tp.ops.aten.stack.default in table, tp.ops.aten.cat.default in table
        (True, False)
    """
    found = {**_composites(["CompositeImplicitAutograd"]), **decomposition_table}
    return {op: function for op, function in found.items() if Tag.core not in op.tags}
