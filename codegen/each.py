"""`each`: an operator over lists of tensors, which calls another operator for place i of every list.

The list operator's arguments are those of the called one: under their own names where these are the same, else in its
order; a list stands for one of its items. What the called operator takes beside them has its default. The in-place
variant calls the in-place variant, or the operator that the entry names after the comma.

`foreach` on an entry makes one entry for each of its names, which takes the place of <op> in the entry's texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import yaml

from .c_types import c_arguments
from .errors import YamlError
from .model import FunctionSchema, NativeFunction, NativeFunctionsGroup, group_native_functions

PLACE = "<op>"


def _filled(node: yaml.Node, name: str) -> yaml.Node:
    """The node with the name in the place of <op>; lines stay."""
    if isinstance(node, yaml.ScalarNode):
        text = node.value.replace(PLACE, name)
        return yaml.ScalarNode(node.tag, text, node.start_mark, node.end_mark, node.style)
    if isinstance(node, yaml.SequenceNode):
        return yaml.SequenceNode(node.tag, [_filled(n, name) for n in node.value], node.start_mark, node.end_mark)
    assert isinstance(node, yaml.MappingNode)
    pairs = [(key, _filled(value, name)) for key, value in node.value if key.value != "foreach"]
    return yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


def instances(node: yaml.Node) -> Iterator[yaml.Node]:
    """The entries that an entry stands for: itself, unless it has `foreach`."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    names = next((value.value for key, value in pairs if key.value == "foreach"), None)
    if isinstance(names, str) and names.strip():
        yield from (_filled(node, name.strip()) for name in names.split(","))
    else:
        yield node


def groups_by_name(functions: list[NativeFunction]) -> dict[str, NativeFunctionsGroup]:
    return {str(member.name): group for group in group_native_functions(functions) for member in group.members()}


def called_by(function: NativeFunction, groups: Mapping[str, NativeFunctionsGroup]) -> FunctionSchema:
    """The operator that is called for each place."""
    names, where = function.origin.each, function.origin.at("each")
    name = names[-1] if function.kind == "inplace" else names[0]
    group = groups.get(name)
    if group is None:
        raise YamlError(where, f"'each' names the unknown operator {name}", "declare it in native_functions/ first")
    if function.kind == "inplace":
        if group.inplace is None:
            what = f"{function.name} is in place, and {name} has no in-place variant"
            raise YamlError(where, what, "name one after a comma, as in 'each: maximum, clamp_min_.Tensor'")
        return group.inplace.func
    return next(member for member in group.members() if str(member.name) == name).func


def _default(default: str | None, type_: str) -> str:
    if default is None or default == "None":
        return "{.tag = TP_NONE}"
    if default in ("True", "False"):
        return f"{{.tag = TP_BOOL_, .b = {default.lower()}}}"
    assert type_ == "Scalar", (default, type_)
    return f"{{.tag = TP_SCALAR, .scalar = TP_SCALAR_I({default})}}"


def _boxed(code: str, name: str) -> str:
    return f"tp_box_{code}({name})"


def boxed_arguments(
    schema: FunctionSchema, called: FunctionSchema, boxed: Callable[[str, str], str] = _boxed
) -> list[str]:
    """The called operator's arguments, with the lists in the place of their items, as tp_value in C."""
    own = {a.name: a for a in c_arguments(schema)}
    wanted = c_arguments(called)
    left = [a for a in own.values() if a.name not in {w.name for w in wanted}]
    out = []
    for w in wanted:
        a = own.get(w.name) or (left.pop(0) if left else None)
        out.append(boxed(a.c.code, a.name_in_c) if a else _default(w.argument.default, str(w.type)))
    return out
