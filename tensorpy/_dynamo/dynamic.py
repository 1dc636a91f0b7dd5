"""Which sizes of a call's arguments are symbols in its graph, and whether the graph is for other sizes.

Sizes are numbers in the first graph of a function. One that differs at a later recording is a symbol there
(`Seen`), and so are those that the program marked (`mark_dynamic`), or all of them (`dynamic=True`). Where the program
branches on a symbol, or makes a number of it, the graph is for the sizes that answer alike (symbolic_shapes.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorpy._C import Tensor
from tensorpy._package.symbols import Expr, SymInt, number
from tensorpy._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from tensorpy.fx.experimental.proxy_tensor import SizeChecks, expressions_of
from tensorpy.fx.experimental.symbolic_shapes import ConstraintViolationError
from tensorpy.fx.graph import Graph
from tensorpy.fx.graph_module import GraphModule
from tensorpy.nn import Parameter

from . import config

# What marks leave in a tensor, under PyTorch's names: dimensions, and (least, greatest) by dimension.
MUST_VARY, MAY_VARY, STAYS, RANGES = (
    "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices", "_dynamo_dynamic_range",
)  # fmt: skip


def marked(leaf: Any, mark: str) -> Any:
    """The dimensions that a program has marked so."""
    return getattr(leaf, mark, ()) if isinstance(leaf, Tensor) else ()


class Seen:
    """What the arguments of a function were when graphs of it were recorded: by name sizes and ints, None for those
    that differed.

    Arguments:
        dynamic: compile()'s word

    Example:
        >>> from tensorpy._dynamo.dynamic import Seen
        >>> seen = Seen(None)
        >>> [seen.symbols([("x", tp.ones(size, 3))]) for size in (4, 5)]
        [[None], [{0: {'key': ('x', 0)}}]]
    """

    def __init__(self, dynamic: bool | None) -> None:
        self.dynamic = dynamic
        self.values: dict[str, Any] = {}

    def symbols(self, named: Iterable[tuple[str, Any]]) -> list[Any]:
        """Takes the arguments of a recording, and says which of their numbers are symbols.

        Arguments:
            named: names and arguments

        Returns: for each argument None, or what ShapeEnv.create_symbol takes: for a tensor by dimension.
        """
        return [self._of(name, leaf) or None for name, leaf in named]

    def _of(self, name: str, leaf: Any) -> dict[Any, Any]:
        if type(leaf) is int:
            (differs,) = self._take(name, [leaf])
            is_one = (differs or self._by_default()) and leaf not in (0, 1) and not config.specialize_int
            return {"key": (name,), "low": -float("inf")} if is_one else {}
        if type(leaf) not in (Tensor, Parameter):
            return {}
        varies = self._take(name, list(leaf.shape))
        sizes = {dim: self._of_size(name, leaf, dim, varies[dim]) for dim, size in enumerate(leaf.shape) if size > 1}
        return {dim: options for dim, options in sizes.items() if options is not None}

    def _of_size(self, name: str, leaf: Tensor, dim: int, varies: bool) -> dict[str, Any] | None:
        if dim in marked(leaf, MUST_VARY):
            low, high = dict(marked(leaf, RANGES)).get(dim, (None, None))
            limits = {"low": max(low or 2, 2), "high": float("inf") if high is None else high}
            return {"key": (name, dim), **limits}
        if dim in marked(leaf, STAYS) or (type(leaf) is Parameter and config.force_parameter_static_shapes):
            return None
        if varies or dim in marked(leaf, MAY_VARY):
            return {"key": (name, dim)}
        return {} if self._by_default() else None

    def _by_default(self) -> bool:
        return self.dynamic is True or (self.dynamic is None and not config.assume_static_by_default)

    def _take(self, name: str, values: list[int]) -> list[bool]:
        """Which of these numbers have differed."""
        before = self.values.get(name, values)
        if len(before) != len(values):
            before = [None] * len(values)
        now = [a if a == b else None for a, b in zip(before, values, strict=True)]
        self.values[name] = now
        return [value is None and self.dynamic is None and config.automatic_dynamic_shapes for value in now]


def without_sizes(kind: Any, symbols: Any) -> Any:
    """What a graph depends on of an argument, without the numbers that are symbols.

    Arguments:
        kind: what it depends on where all are numbers (graphs.py)
        symbols: which are symbols, as Seen.symbols says it

    Returns: a tuple.
    """
    if symbols is None:
        return kind
    if kind[0] is int:
        return (int,)
    of_class, dtype, shape, _, *others = kind
    return of_class, dtype, tuple(None if dim in symbols else size for dim, size in enumerate(shape)), *others


def difference(name: str, now: Any, before: Any) -> str:
    """In which way an argument is not of the recorded kind.

    Arguments:
        name: its name
        now: its kind, without symbols
        before: the recorded one

    Returns: str.
    """
    if now[0] is not before[0]:
        return f"{name} is of another class"
    if not isinstance(now[0], type) or not issubclass(now[0], Tensor):
        return f"{name} is {now[-1]}, not {before[-1]}" if len(now) > 1 and now[0] is not float else f"{name} differs"
    if now[1] != before[1]:
        return f"{name} is of {now[1]}, not {before[1]}"
    if len(now[2]) != len(before[2]):
        return f"{name} has {len(now[2])} dimensions, not {len(before[2])}"
    for dim, (size, old) in enumerate(zip(now[2], before[2], strict=True)):
        if size != old:
            return f"size {dim} of {name} is {size}, not {old}"
    return f"strides, device, requires_grad or identity of {name} differ"


def symbolic(mode: FakeTensorMode, leaf: Any, name: str, symbols: Any) -> Any:
    """An argument as a recording with symbols sees it.

    Arguments:
        mode: the mode of its fake tensors
        leaf: the argument
        name: its name
        symbols: which of its numbers are symbols, as Seen.symbols says it

    Returns: a fake tensor, a SymInt, or what is no such thing as it is.
    """
    env = mode.shape_env
    if isinstance(leaf, Tensor):
        return mode.from_tensor(leaf, source=name, symbolic_context=symbols or {})
    return leaf if symbols is None else number(env, env.create_symbol(leaf, name, **symbols))


def new_symbols(env: Any, leaf: Any, known: set[str]) -> list[Any]:
    """The symbols that an argument brings, which are inputs of the graph before it.

    Arguments:
        env: the shape environment
        leaf: a fake tensor, or a SymInt, which is one itself
        known: the symbols so far; grows

    Returns: a list of SymInt.
    """
    made = []
    for expr in expressions_of(env, [leaf])[0] if isinstance(leaf, FakeTensor) else ():
        if expr is not None and (name := expr.symbol()) is not None and name not in known:
            known.add(name)
            made.append(SymInt(env, expr))
    return made


class Sizes:
    """The symbols of a graph: what they are in a call, and whether the graph is for it.

    Arguments:
        env: the shape environment of the recording
        fakes: what it sees for the arguments
        leaves: the arguments

    Example:
        >>> from tensorpy._dynamo.dynamic import Sizes
        >>> Sizes.__name__
        'Sizes'
    """

    module: GraphModule
    checks: SizeChecks

    def __init__(self, env: Any, fakes: list[Any], leaves: list[Any]) -> None:
        self.env, self.fakes = env, fakes
        numbers = (Expr.of(fake) if type(fake) is int else None for fake in fakes)
        self.expected = [b or a for a, b in zip(expressions_of(env, fakes), numbers, strict=True)]
        self.strides = [
            [(env.read(step), before) for step, before in zip(Tensor.stride(fake), leaf.stride(), strict=True)]
            if isinstance(fake, FakeTensor)
            else []
            for fake, leaf in zip(fakes, leaves, strict=True)
        ]
        self.examples: list[Any] = []  # of the graph's inputs: a SymInt where it is a symbol

    def keep(self, module: GraphModule) -> None:
        """The recording has ended.

        Arguments:
            module: its graph, which the backend may change
        """
        kept = Graph()
        nodes: dict[Any, Any] = {}
        kept.output(kept.graph_copy(module.graph, nodes))
        self.module = GraphModule(module, kept)
        self.checks = SizeChecks(self.env, self.expected, self.module)
        self.examples = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]

    def of(self, leaves: list[Any]) -> dict[str, int]:
        """The symbols' numbers in a call.

        Arguments:
            leaves: its arguments

        Returns: dict.

        Raises: ValueError where the graph is not for it.
        """
        found = self.checks.values(leaves)
        for place, (exprs, leaf) in enumerate(zip(self.strides, leaves, strict=True)):
            for dim, (expr, step) in enumerate(exprs):
                if expr is not None and expr.symbols() <= found.keys():
                    step = expr.evaluate(found.__getitem__)
                if step != leaf.stride(dim):
                    raise ValueError(f"stride {dim} of argument {place} is another one, {leaf.stride(dim)}")
        return found

    def check(self, inputs: list[Any], found: dict[str, int]) -> None:
        """An error where operators of the graph fail for these sizes, or give other ones than what was read of theirs.

        Arguments:
            inputs: the graph's
            found: the symbols' numbers

        Raises: ValueError.
        """
        if not self.checks.check(self.module, tuple(inputs), {}, found):
            raise ValueError("an operator fails")

    def examples_of(self, inputs: list[Any]) -> list[Any]:
        """The inputs that a backend is shown: the call's, with SymInts in the place of symbols' numbers.

        Arguments:
            inputs: the call's

        Returns: a list.
        """
        return [e if isinstance(e, SymInt) else one for e, one in zip(self.examples, inputs, strict=True)]

    def check_marks(self, named: Iterable[tuple[str, Any]]) -> None:
        """An error where a size has turned out to be a number that the program said would vary.

        Arguments:
            named: names and arguments

        Raises: ConstraintViolationError.
        """
        if config.allow_ignore_mark_dynamic:
            return
        numbers = self.env.specialised()
        for name, leaf in named:
            for dim in marked(leaf, MUST_VARY):
                if (reason := numbers.get(f"{name}.size()[{dim}]")) is not None:
                    raise ConstraintViolationError(
                        f"Constraints violated ({name}.size()[{dim}])! mark_dynamic() says that it varies, but the "
                        f"function is for the number {leaf.shape[dim]}: {reason}. maybe_mark_dynamic() is for sizes "
                        "that may be numbers"
                    )


__all__ = ["MAY_VARY", "MUST_VARY", "RANGES", "STAYS", "Seen", "Sizes", "difference", "marked"]
__all__ += ["new_symbols", "symbolic", "without_sizes"]
