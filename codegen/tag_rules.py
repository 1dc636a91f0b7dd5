"""What the tags of yaml/tags.yaml, and `warns`, add to a kernel's wrapper, and the operators that are made for a tag.

nondeterministic_bitwise   refused (or warned of) under use_deterministic_algorithms
needs_contiguous_strides   tensor arguments that are only read arrive contiguous
dynamic_output_shape, data_dependent_output
                           a composite refuses Meta tensors; for others the missing Meta kernel says why
view_copy                  the body: the view's, then a copy of what it gives
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .c_types import c_arguments, c_result, call_arguments
from .errors import Location, YamlError, suggest
from .model import NativeFunction, OperatorName
from .text import c_string, c_warning

NEEDS_VALUES = ("dynamic_output_shape", "data_dependent_output")


def view_of(function: NativeFunction, by_name: Mapping[str, NativeFunction], location: Location) -> OperatorName:
    """The view that an operator tagged view_copy copies: its name without `_copy`, the same overload and arguments."""
    name = str(function.name).replace("_copy", "", 1)
    view = by_name.get(name)
    if view is None:
        others = [other for other in by_name if other != str(function.name)]
        fix = suggest(name, others, f"declare {name}, or take the tag out")
        raise YamlError(location, f"{function.name} is tagged 'view_copy', and there is no view {name}", fix)
    mine, theirs = ([str(a.type) for a in f.func.arguments] for f in (function, view))
    if mine != theirs:
        what = f"{function.name} takes ({', '.join(mine)}), its view {name} takes ({', '.join(theirs)})"
        raise YamlError(location, what, "give both the same arguments")
    return view.name


def view_copy_call(function: NativeFunction, view: str) -> str:
    """The copies of what the C function `view` gives."""
    copied = "copies_of_views_steal" if c_result(function.func).kind == "seq" else "copy_of_view_steal"
    return f"{copied}({view}({call_arguments(function.func)}))"


def view_copy_body(function: NativeFunction, view: OperatorName) -> str:
    return f"    return tp_{view_copy_call(function, f'tp_{view.c_name}')};\n"


def prologue(function: NativeFunction, *, composite: bool) -> str:
    """Statements before the kernel's own. Parameters stand for themselves and may be replaced."""
    return "".join(f"    {line}\n" for line in prologue_lines(function, composite=composite))


def prologue_lines(function: NativeFunction, *, composite: bool) -> Iterator[str]:
    failed = c_result(function.func).failed
    read = [a for a in c_arguments(function.func) if a.c.member == "tensor" and not a.argument.is_write]
    name = c_string(str(function.name))
    if "nondeterministic_bitwise" in function.tags:
        yield f"if (tp_check_determinism({name}) < 0) return {failed};"
    if function.origin.warns is not None:
        yield c_warning(function.origin.warns, failed)
    if composite and not function.dispatch:
        for tag in NEEDS_VALUES:
            if tag in function.tags:
                for a in read:
                    yield f"if (tp_refuse_meta({a.name_in_c}, {name}, {c_string(tag)}) < 0) return {failed};"
    if "needs_contiguous_strides" in function.tags:
        for a in read:
            c = a.name_in_c
            yield f"tp_autoref *dense_{c} = {c} ? tp_contiguous({c}, TP_CONTIGUOUS_FORMAT) : NULL;"
            yield f"if ({c} && !dense_{c}) return {failed};"
            yield f"{c} = dense_{c};"
