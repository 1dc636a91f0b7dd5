"""Looking into the dispatcher: trace, explain, table, and guards for the thread's key sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


@dataclass(frozen=True)
class Event:
    """One layer that a call entered.

    `arguments` has (dtype, shape, device) per tensor argument, a list of these, or None for anything else. `depth`
    counts the layers above; the time includes the layers below. `passed_by` names the layers between the one above and
    this one that the arguments' key sets hold and the call did not enter: switched off (autocast), or without anything
    to do for this operator.

    Arguments:
        op: the operator's full name
        key: the layer's dispatch key
        arguments: what the call was given
        seconds: how long it took

    Example:
        >>> with tp.dispatch.trace() as t:
        ...     y = tp.ones(2) + 1
        >>> [(e.op, e.key) for e in t][-1]
        ('add.Scalar', 'CPU')
    """

    op: str
    key: str
    arguments: tuple[Any, ...]
    seconds: float
    depth: int
    passed_by: tuple[str, ...] = ()


class trace:
    """Collects every layer of every call of this thread: `with trace() as t: ...`, then `t.events`.

    With `primitives` also what the kernels call below the operators ("prim::scan.sum"), and on which device.

    Example:
        >>> with tp.dispatch.trace() as t:
        ...     y = tp.ones(2) + 1
        >>> [(e.op, e.key) for e in t][-1]
        ('add.Scalar', 'CPU')
    """

    def __init__(self, *, primitives: bool = False) -> None:
        self._raw: list[list[Any]] = []
        self._primitives = primitives

    def __enter__(self) -> trace:
        self._previous = _C._set_trace(self._raw, self._primitives, 0)
        return self

    def __exit__(self, *unused: Any) -> None:
        _C._set_trace(*self._previous)

    @property
    def events(self) -> list[Event]:
        """Every layer, in the order in which they were entered."""
        found: list[Event] = []
        above: list[tuple[str, int]] = []  # (operator, bit) of the layers that enclose the next one
        for op, key, arguments, seconds, depth, word in self._raw:
            del above[depth:]
            bit = _C._KEYS.get(key, 1)  # the lowest: Undefined, of a call without tensors
            ceiling = above[-1][1] if above and above[-1][0] == op else 1 << 64
            passed = tuple(
                n for n, b in sorted(_C._KEYS.items(), key=lambda i: -i[1]) if word & b and bit < b < ceiling
            )
            found.append(Event(op, key, arguments, seconds, depth, passed))
            above.append((op, bit))
        return found

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __str__(self) -> str:
        lines = []
        for e in self.events:
            lines += [f"{'  ' * e.depth}{e.op} [{key}] passed by" for key in e.passed_by]
            lines.append(f"{'  ' * e.depth}{e.op} [{e.key}] {e.seconds * 1e6:.1f} us")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = []
        for e in self.events:
            shapes = ", ".join(_described(a) for a in e.arguments)
            passed = f' title="passed by: {", ".join(e.passed_by)}"' if e.passed_by else ""
            cells = (f"{'&emsp;' * e.depth}{escape(e.op)}", e.key, escape(shapes), f"{e.seconds * 1e6:.1f}")
            rows.append(f"<tr{passed}>" + "".join(f'<td style="text-align:left">{c}</td>' for c in cells) + "</tr>")
        head = "".join(f'<th style="text-align:left">{c}</th>' for c in ("call", "layer", "tensors", "us"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _described(argument: Any) -> str:
    """A tensor argument of an event: "float32[2, 3]"; of a list all of them."""
    if isinstance(argument, list):
        return f"[{', '.join(map(_described, argument))}]"
    if argument is None:
        return "-"
    dtype, shape, _ = argument
    return f"{str(dtype).removeprefix('tensorpy.')}{list(shape)}"


@dataclass(frozen=True)
class Entry:
    """One line of an operator's table: which kernel a key leads to, where it was registered, and the file of the tree
    that it is written in or made from.

    Arguments:
        key: the dispatch key
        registered_as: the key that it was registered for
        source: the C function, or what makes the kernel
        kind: what stands there: "kernel", "fallback", "fallthrough"
        op: the operator's full name

    Example:
        >>> table = tp.dispatch.table("add.Tensor")
        >>> type(table).__name__
        'Table'
    """

    key: str
    registered_as: str
    source: str
    kind: str
    op: str = ""
    file: str = ""


class Table(list[Entry]):
    """Computed dispatch tables; prints as such, each operator under its name where there are several.

    Arguments:
        iterable: what is gone through

    Example:
        >>> table = tp.dispatch.table("add.Tensor")
        >>> type(table).__name__
        'Table'
    """

    def __str__(self) -> str:
        several = len({e.op for e in self}) > 1
        lines, above = [], ""
        for e in self:
            if several and e.op != above:
                lines.append(e.op)
            above = e.op
            lines.append(f"{e.key:24} {e.kind:12} {e.registered_as:24} {e.source:32} {e.file}".rstrip())
        return "\n".join(lines)


def overloads(name: str) -> list[str]:
    """The full names of an operator: "add.Tensor" and its like for "add"; a full name is the only one.

    Returns: a list of str.

    Raises: ValueError for an unknown operator.

    Example:
        >>> tp.dispatch.overloads("add")
        ['add.Tensor', 'add.out', 'add.Scalar', 'add.Scalar_out']
    """
    names = operators()
    if name in names or name.startswith("prim::"):
        return [name]
    found = [n for n in names if n.partition(".")[0] == name.removeprefix("aten::")]
    if not found:
        raise ValueError(f"there is no operator '{name}'; tensorpy.dispatch.operators() lists all")
    return found


def _only(name: str) -> str:
    found = overloads(name)
    if len(found) > 1:
        raise ValueError(f"'{name}' has several overloads: name one of {', '.join(found)}")
    return found[0]


def table(operator: str) -> Table:
    """The computed table of an operator ("add.Tensor"): per key the kernel and where it came from.

    A name without its overload ("add") gives the tables of all of them.

    Returns: a Table.

    Raises: ValueError for an unknown operator.

    Example:
        >>> table = tp.dispatch.table("add.Tensor")
        >>> type(table).__name__
        'Table'
    """
    return Table(
        Entry(key, registered_as, source, kind, op, file)
        for op in overloads(operator)
        for key, registered_as, source, kind, file in _C._dispatch_table(op)
    )


def backend_key(device_type: str) -> str:
    """The key of a device type's backend, "CPU" of "cpu": of a device from outside what its tensors carry.

    Arguments:
        device_type: the type of device: 'cpu', 'opencl', ...

    Returns: str.

    Example:
        >>> tp.dispatch.backend_key("cpu")
        'CPU'
    """
    carried = _C._tensor_keys(_C.empty(0, device=device_type))
    return next(name for name, bit in sorted(_C._KEYS.items(), key=lambda item: item[1]) if carried & bit)


def operators() -> list[str]:
    """The names of all operators, "add.Tensor" and so on.

    Returns: a list of str.

    Example:
        >>> "add.Tensor" in tp.dispatch.operators()
        True
    """
    return list(_C._operators())


def primitives() -> list[str]:
    """The names of what devices implement below the operators, "prim::scan.sum" and so on.

    Returns: a list of str.

    Example:
        >>> len(tp.dispatch.primitives()) > 50
        True
    """
    return list(_C._primitives())


def needs(operator: str) -> list[str]:
    """The primitives that an operator's kernel for dense backends calls: a device that has them all runs it itself.

    Without those that are optional it does so too, in parts.

    Returns: a list of str.

    Raises: ValueError for an unknown operator.

    Example:
        >>> tp.dispatch.needs("topk")
        ['prim::topk', 'prim::take']
    """
    return list(_C._operator_info(_only(operator))[3])


def is_optional(primitive: str) -> bool:
    """Whether a device may lack a primitive: operators compute in parts there what it computes as a whole.

    Arguments:
        primitive: its name

    Returns: bool.

    Example:
        >>> tp.dispatch.is_optional("prim::attention.forward"), tp.dispatch.is_optional("prim::map")
        (True, False)
    """
    return bool(_C._operator_info(primitive)[4])


KINDS = ("compute", "real", "bool", "int64", "float64")


@dataclass(frozen=True)
class Step:
    """One value of a program. `kind` is what the operation works in: one of KINDS, the first two as computed.

    a, b and c are the numbers of earlier steps, but for `input` (which input), `number`, `none` and `word` (which
    parameter, and which of its words), `constant` and `integer` (the constant's place) and `largest` (1: negative).
    `named`: the value is used several times.

    Example:
        >>> (program,) = tp.dispatch.program("square", tp.float32)
        >>> print(program)
            return (x0 * x0);
    """

    operation: str
    kind: str
    named: bool
    a: int
    b: int
    c: int


@dataclass(frozen=True)
class Program:
    """A scalar expression as the library holds it: its steps, the last of which is the result.

    The text is the body of a function in C and in OpenCL C, on the helpers of tensorpy/math.h: x0, x1 are the inputs,
    p0 the first parameter, n0 whether it is None, w0_1 whether it is its second word.

    Arguments:
        constants: the constants
        dtype: the dtype; None takes the usual one

    Example:
        >>> (program,) = tp.dispatch.program("square", tp.float32)
        >>> print(program)
            return (x0 * x0);
    """

    steps: tuple[Step, ...]
    constants: dict[int, float]
    dtype: Any
    text: str

    def __str__(self) -> str:
        return self.text.rstrip()


def programs() -> list[str]:
    """The operators that are given as scalar expressions: pointwise ones, and reductions.

    Returns: a list of str.

    Example:
        >>> len(tp.dispatch.programs()) > 100
        True
    """
    return sorted(_C._programs())


def program(operator: str, dtype: Any) -> list[Program]:
    """An operator's scalar expression in a dtype, as data; a reduction has four: start, step, join, finish.

    Returns: a list of Programs, one or four.

    Raises: ValueError for an operator that has none, NotImplementedError for a dtype that it does not take.

    Example:
        >>> (program,) = tp.dispatch.program("square", tp.float32)
        >>> print(program)
            return (x0 * x0);
    """
    made = []
    for steps, constants, result, text in _C._program(operator.removeprefix("aten::"), dtype):
        rows = tuple(Step(name, KINDS[kind], *rest) for name, kind, *rest in steps)
        made.append(Program(rows, constants, result, text))
    return made


def schema(operator: str) -> str:
    """The schema of an operator.

    Returns: str.

    Raises: ValueError for an unknown operator.

    Example:
        >>> tp.dispatch.schema("relu")
        'relu(Tensor self) -> Tensor'
    """
    return str(_C._operator_info(_only(operator))[0])


def tags(operator: str) -> list[str]:
    """The tags of an operator.

    Returns: a list of str.

    Raises: ValueError for an unknown operator.

    Example:
        >>> tp.dispatch.tags("add.Tensor")
        ['core', 'pointwise']
    """
    return list(_C._operator_info(_only(operator))[1])


def keys(tensor: Tensor) -> list[str]:
    """The dispatch keys that a tensor carries, highest first.

    Returns: a list of str.

    Example:
        >>> tp.dispatch.keys(tp.ones(2))
        ['AutocastCPU', 'AutogradCPU', 'ADInplaceOrView', 'CPU']
    """
    word = _C._tensor_keys(tensor)
    return [name for name, bit in sorted(_C._KEYS.items(), key=lambda item: -item[1]) if word & bit]


def below(key: str) -> int:
    """The keys under a layer, as a set: what its kernel, which is given the keys of a call (`with_keyset`), passes on.

    Arguments:
        key: the layer's key, "Tracer"

    Returns: int.

    Raises: ValueError for a name that is no key.

    Example:
        >>> def doubled(keys, x):
        ...     return tp.ops.aten.neg.default.redispatch(keys & tp.dispatch.below("Tracer"), x) * 2
        >>> tp.dispatch.below("Tracer") > tp.dispatch.below("AutogradCPU") > 0
        True
    """
    if key not in _C._KEYS:
        raise ValueError(f"there is no dispatch key {key!r}; tensorpy.dispatch.keys(tensor) shows those of a tensor")
    return _C._KEYS[key] - 1 | _C._KEYS["Trace"]


@dataclass(frozen=True)
class Layer:
    """What a call does at one key: the kernel there, or why none of this layer runs.

    Arguments:
        key: the dispatch key
        entered: whether the call enters it
        what: what it does
        primitives: the primitives that its kernel needs

    Example:
        >>> [layer.what for layer in tp.dispatch.layers("relu", 0)][:1]
        []
    """

    key: str
    entered: bool
    what: str
    primitives: tuple[tuple[str, str], ...] = ()  # what the kernel may call, each with what computes it here


def _written(e: Entry) -> str:
    return f"{e.source} in {e.file}" if e.file else e.source


def _kernel(e: Entry) -> str:
    what = f"{e.kind} {_written(e)}" + (f" (registered for {e.registered_as})" if e.registered_as != e.key else "")
    if e.source.startswith("opencl/runtime/fallback.c"):
        count = _C._host_calls("opencl").get(e.op, 0)
        what += f" ({count} calls so far)"
    return what


def _sources(primitive: str) -> dict[str, str]:
    """Which keys have the primitive, and what computes it there."""
    return {e.key: _written(e) for e in table(primitive) if e.kind != "fallback"}


def _missing(e: Entry) -> str:
    """Why a backend leaves an operator to the CPU."""
    missing = [p for p in needs(e.op) if e.key not in _sources(p)]
    return f"; {e.key} has no {', '.join(missing)}" if missing else ""


def _primitives_of(entries: dict[str, Entry], e: Entry) -> tuple[tuple[str, str], ...]:
    """What a backend's kernel may call, each with what computes it: there, or on the CPU that stands in for it."""
    host = e.kind == "fallback"
    kernel = entries.get("CPU", e) if host else e
    if kernel.registered_as != "Dense":
        return ()
    return tuple((p, _sources(p)[kernel.key] + (" on the CPU" if host else "")) for p in needs(e.op))


def layers(operator: str, keys: int) -> Iterator[Layer]:
    """Each layer that the call of an overload with these keys meets, highest first.

    Arguments:
        operator: the operator, or its name
        keys: the keys

    Returns: an iterator of Layers.

    Example:
        >>> [layer.what for layer in tp.dispatch.layers("relu", 0)][:1]
        []
    """
    include, exclude = _C._get_dispatch_sets()
    entries = {e.key: e for e in table(operator)}
    reached = ""  # what has ended the call, from above
    for name, bit in sorted(_C._KEYS.items(), key=lambda item: -item[1]):
        if not (keys | include) & bit or name == "Trace":
            continue
        backend = bit <= _C._KEYS["ZeroTensor"]
        entry = entries.get(name)
        if exclude & bit:
            why = "autocast is off" if name.startswith("Autocast") else "by a guard of this thread"
            yield Layer(name, False, f"excluded: {why}")
        elif reached:
            yield Layer(name, False, f"not reached: {reached}")
        elif entry is None:
            reached = "there is no kernel above" if backend else ""
            yield Layer(name, False, "no kernel" if backend else "passed by: nothing is registered for this layer")
        elif entry.kind == "fallthrough":
            yield Layer(name, False, "passed by: a fallthrough")
        else:
            if backend:
                reached = "a higher backend was chosen"
            elif entry.registered_as == "CompositeImplicitAutograd":
                reached = "the kernel above calls other operators"
            what = _kernel(entry) + (_missing(entry) if entry.kind == "fallback" else "")
            yield Layer(name, True, what, _primitives_of(entries, entry) if backend else ())
    if not reached and "Undefined" in entries:
        yield Layer("Undefined", True, _kernel(entries["Undefined"]))


def explain(operator: str, *args: Any, **kwargs: Any) -> str:
    """Which overload the call takes with these arguments, which kernel would run on each layer, and why.

    Below a kernel that is made of primitives stand those that it may call, each with what computes it on that device.
    Arguments that the call would refuse are refused here with the same words; nothing is computed.

    Arguments:
        operator: the operator, or its name

    Returns: str.

    Example:
        >>> calls = tp.dispatch.explain("relu", tp.ones(2))
    """
    name, keys = _C._resolve(operator.removeprefix("aten::"), *args, **kwargs)
    lines = [schema(name)]
    for layer in layers(name, keys):
        lines.append(f"  {layer.key:22} {layer.what}")
        lines += [f"    {primitive:20} {source}" for primitive, source in layer.primitives]
    return "\n".join(lines)


@contextmanager
def _sets(include: int, exclude: int) -> Iterator[None]:
    previous = _C._get_dispatch_sets()
    _C._set_dispatch_sets(previous[0] | include, previous[1] | exclude)
    try:
        yield
    finally:
        _C._set_dispatch_sets(*previous)


def _bits(names: tuple[str, ...]) -> int:
    word = 0
    for name in names:
        if name not in _C._KEYS:
            raise ValueError(f"unknown dispatch key '{name}'")
        word |= _C._KEYS[name]
    return word


def exclude(*keys: str) -> Any:
    """A context in which calls of this thread pass the named layers by.

    Returns: a context manager.

    Raises: ValueError for an unknown key.

    Example:
        >>> with tp.dispatch.exclude("AutogradCPU"):
        ...     print((tp.ones(2, requires_grad=True) * 2).requires_grad)
        False
    """
    return _sets(0, _bits(keys))


def include(*keys: str) -> Any:
    """A context in which calls of this thread enter the named layers, whatever their arguments.

    A backend is no such layer: the tensors say which one it is.

    Returns: a context manager.

    Raises: ValueError for an unknown key.

    Example:
        >>> with tp.dispatch.include("Tracer"):
        ...     y = tp.ones(2)
    """
    return _sets(_bits(keys), 0)
