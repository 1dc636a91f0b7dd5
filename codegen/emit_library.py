"""The files of a library from outside (library.py): C on tensorpy's public headers, and its Python side.

<ns>_kernels.h    what the project's own C has to define, and C functions that call its operators
<ns>_library.c    declarations, kernels, the layers above them, registered
<ns>_pointwise.*, <ns>_reductions.*, <ns>_loops.*
                  programs, and the CPU's loops, compiled once per capability
ops.py, ops.pyi   the operators as functions of Python; reference.md; test_ops.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from . import emit_reduction_cpu
from .autograd_nodes import by_key, node_of
from .batching import batching_of
from .c_types import c_arguments, c_result, parameters, value_decl
from .catalog import Catalog, KernelSource, Operator, every_formula, structured_name
from .device_checks import device_check
from .each import boxed_arguments
from .emit_autocast import kernel_body
from .emit_backend import native_declarations
from .emit_batching import rules_of
from .emit_forward import emit_terms, forwards_of, roles_of
from .emit_layouts import formula_of, is_merged, passed_on, written_by
from .emit_library_nodes import emit_node
from .emit_library_python import emit_ops_py, emit_ops_pyi, emit_reference_md, emit_test_py
from .emit_pointwise_cpu import CAPABILITIES, emit_table, loops_text
from .emit_schema import empty_list, registered_by
from .errors import YamlError
from .formula import Result, schema_variables, used
from .formula_lower import Lowered
from .keys import DEVICE_IDS, DEVICES
from .layouts import PLACES, Place, layout_function, said
from .model import FunctionSchema
from .out_dtype import takes_castable
from .pointwise import check_declaration
from .primitives import NAMESPACE as PRIMITIVES
from .primitives import Primitive
from .rounding import prologue as rounding_prologue
from .rounding import rounds_once
from .tag_rules import prologue_lines as tag_lines
from .tag_rules import view_copy_call
from .text import GENERATED_OUTSIDE, c_string, lines

# The flags of ninja_file.py as targets of a function.
_TARGETS = {
    "avx2": "avx2,fma,f16c,bmi,bmi2",
    "avx512": "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,prefer-vector-width=512",
}
# Meta computes nothing that a cast would change.
_AUTOCAST_DEVICES = {name: key for name, key in zip(DEVICE_IDS, DEVICES, strict=True) if key != "Meta"}

# tensorpy_take_<name>, by the type's code.
_TAKERS = {
    "T": "tensor", "Tl": "tensors", "S": "scalar", "Sl": "scalars", "J": "int", "Jo": "opt_int", "Jl": "ints",
    "F": "float", "Fo": "opt_float", "Fl": "floats", "B": "bool", "Bo": "opt_bool", "Bl": "bools", "Z": "str",
    "D": "dtype", "L": "layout", "M": "memory_format", "V": "device", "G": "generator", "O": "storage",
}  # fmt: skip


def _banner(what: str) -> str:
    quiet = '#pragma GCC diagnostic ignored "-Wunused-parameter"\n'
    return f"{GENERATED_OUTSIDE} Do not edit.\n * {what} */\n{quiet}"


# ---- calling operators ----


def _pairs(schema: FunctionSchema, named: Callable[[int, str], str] = lambda i, name: name) -> str:
    """(type, name) of each parameter, as TENSORPY_KERNEL and TENSORPY_HANDLE take them."""
    return ", ".join(f"({a.c.decl.strip()}, {named(i, a.name_in_c)})" for i, a in enumerate(c_arguments(schema)))


def _qualified(op: Operator) -> str:
    return f"{op.prefix.removesuffix('_')}::{op.schema.name}"


def _value_handle(op: Operator) -> str:
    """A call that gives a number, or several types (boxed): TENSORPY_HANDLE is for tensors."""
    result = c_result(op.schema)
    arguments = c_arguments(op.schema)
    given = ", ".join(f"tensorpy_give_{_TAKERS[a.c.code]}({a.name_in_c})" for a in arguments) or "{TP_NONE, {NULL}}"
    found = (
        f"    static const tp_op *found;\n    tp_value args_[] = {{{given}}};\n"
        f"    if (!found && !(found = tp_find_op({c_string(_qualified(op))}))) return -1;\n"
    )
    if result.value is None:
        below = ", ".join(["tp_keyset ks", parameters(op.schema)])
        return (
            f"TENSORPY_INLINE int {op.call}({parameters(op.schema)}) {{\n"
            f"{found}    return tp_call(found, args_, results);\n}}\n"
            f"TENSORPY_INLINE int {op.call}_below({below}) {{\n"
            f"{found}    return tp_redispatch(found, ks, args_, results);\n}}\n"
        )
    member = {"scalar": "number"}.get(result.value.member, result.value.member)
    cast = "(tp_dtype)" if result.value.code == "D" else ""
    return (
        f"TENSORPY_INLINE int {op.call}({parameters(op.schema)}) {{\n"
        f"{found}    tp_value got_[1] = {{{{TP_NONE, {{NULL}}}}}};\n"
        f"    if (tp_call(found, args_, got_) < 0) return -1;\n"
        f"    *result = {cast}got_[0].{member};\n"
        f"    return 0;\n}}\n"
    )


def _nothing_handle(op: Operator) -> str:
    """A call without arguments: TENSORPY_HANDLE has one at least."""
    result, value = c_result(op.schema), "{{TP_NONE, {NULL}}}"
    return (
        f"TENSORPY_INLINE {result.decl}{op.call}(void) {{\n"
        f"    const tp_op *found = tp_find_op({c_string(_qualified(op))});\n"
        f"    tp_value args_[1] = {value}, got_[5] = {value};\n"
        f"    return TENSORPY_GOT({result.decl.strip()})(found ? tp_call(found, args_, got_) : -1, got_);\n}}\n"
    )


def handle(op: Operator) -> str:
    """The C function that calls an operator."""
    if c_result(op.schema).kind in ("value", "values"):
        return f"/* {op.schema} */\n{_value_handle(op)}"
    if not op.schema.arguments:
        return f"/* {op.schema} */\n{_nothing_handle(op)}"
    returned = c_result(op.schema).decl.strip()
    pairs = _pairs(op.schema, lambda i, name: f"p{i}")
    return f"/* {op.schema} */\nTENSORPY_HANDLE({returned}, {op.call}, {c_string(_qualified(op))}, {pairs})\n"


def _called(catalog: Catalog, text: str) -> Iterator[Operator]:
    """tensorpy's operators that C of the library calls, in the order of their names."""
    named = set(re.findall(r"\baten_\w+", text))
    for _, op in sorted(catalog.by_name.items()):
        if op.prefix == "aten_" and not named.isdisjoint((op.call, f"{op.call}_below")):
            yield op


def _primitives(catalog: Catalog) -> list[Primitive]:
    """Those that entries name, which the library's kernels may call."""
    named = {name for op in catalog for name in op.function.prims}
    return [p for p in catalog.primitives if p.name in named]


def _primitive(p: Primitive) -> str:
    """The C function that calls a primitive, of the name that it has in the tree."""
    returned = c_result(p.schema).decl.strip()
    pairs = ", ".join(f"({a.c.decl.strip()}, p{i})" for i, a in enumerate(c_arguments(p.schema)))
    qualified = c_string(f"{PRIMITIVES}::{p.name}")
    return f"/* {p.schema} */\nTENSORPY_HANDLE({returned}, tp_prim_{p.c}, {qualified}, {pairs})\n"


# ---- kernels ----


class _Parts:
    """Statements of each TENSORPY_LIBRARY_IMPL, and the functions that they register."""

    def __init__(self, ns: str) -> None:
        self.ns = ns
        self.by_key: dict[str, list[str]] = {}
        self.texts: dict[str, str] = {}

    def add(self, key: str, call: str) -> None:
        self.by_key.setdefault(key, []).append(f"if ({call} < 0) return -1;")

    def kernel(self, key: str, op: Operator, name: str, text: str) -> None:
        self.texts.setdefault(name, text)
        self.add(key, f"tp_impl(m, {c_string(str(op.schema.name))}, {name})")

    def text(self) -> str:
        out = list(self.texts.values())
        for key, statements in self.by_key.items():
            head = ""
            if key == "Dense":
                used = "".join(statements)
                for kind in ("pointwise", "reduction"):
                    if f"->{kind}(" in used:
                        head += f"    tp_{kind}_select((int)TENSORPY_GENERATED->capability());\n"
            body = head + lines([*statements, "return 0;"])
            out.append(f"TENSORPY_LIBRARY_IMPL({self.ns}, {key}, m) {{\n{body}}}\n")
        return "\n".join(out)


def _head(op: Operator, name: str, *, keyset: bool = False) -> str:
    result = c_result(op.schema)
    pairs = ("(tp_keyset, ks), " if keyset else "") + _pairs(op.schema)
    if result.kind == "value":
        pairs += f", ({value_decl(result).strip()} *, result)"
    if result.kind == "values":
        pairs += ", (tp_value *, results)"
    if not pairs:
        return f"TENSORPY_KERNEL_OF_NOTHING({result.decl.strip()}, {name})"
    return f"TENSORPY_KERNEL({result.decl.strip()}, {name}, {pairs.removeprefix(', ')})"


def _names(op: Operator) -> str:
    names = [a.name_in_c for a in c_arguments(op.schema)]
    last = {"value": ["result"], "values": ["results"]}.get(c_result(op.schema).kind, [])
    return ", ".join([*names, *last])


def _formula(op: Operator, catalog: Catalog) -> str:
    origin = op.function.origin
    assert origin.composite is not None
    location = origin.at("composite")
    result = Result.of_schema(op.schema)
    body = Lowered(schema_variables(op.schema), origin.composite, result, catalog, location).lines
    named = used(origin.composite, location)
    unused = [f"(void){a.name_in_c};" for a in c_arguments(op.schema) if a.name not in named]
    name = f"formula_{op.c}"
    rounded = rounding_prologue(op, name, keyset="") if rounds_once(op, catalog) else []
    before = [*unused, *tag_lines(op.function, composite=True), *rounded]
    return f"{_head(op, name)} {{\n{lines([*before, *body])}}}\n"


def _structured(op: Operator, source: KernelSource) -> tuple[str, str, str, str]:
    """Two functions on boxed arguments: (the meta function's name, its text, the kernel's, its text)."""
    stem = structured_name(op.group)
    outs = {a.name for a in op.schema.out}
    arguments = [(i, a) for i, a in enumerate(c_arguments(op.schema)) if a.name not in outs]
    taken = [f"tensorpy_take_{_TAKERS[a.c.code]}(&frame, {i})" for i, a in arguments]
    check = device_check(op.function, "-1")
    if check:
        every = enumerate(c_arguments(op.schema))
        tensors = [(i, a) for i, a in every if a.c.member in ("tensor", "tensors")]
        given = [f"{a.c.declare(a.name_in_c)} = tensorpy_take_{_TAKERS[a.c.code]}(&frame, {i});" for i, a in tensors]
        check = lines(given) + check
    frame = f"    const tensorpy_frame frame = {{0, args, NULL, 0, {len(op.schema.arguments)}}};\n"
    meta, kernel = f"boxed_{stem}_meta", f"boxed_{source.name}" if source.name else "NULL"
    head = "static int {}(tp_meta *m, tp_value *args) {{\n"
    texts = [head.format(meta) + frame + check + f"    return {stem}_meta({', '.join(['m', *taken])});\n}}\n", ""]
    if source.name:
        made = [f"TENSORPY_GENERATED->meta_out(m, {i})" for i in range(max(1, len(op.schema.returns)))]
        texts[1] = head.format(kernel) + frame + f"    return {source.name}({', '.join([*taken, *made])});\n}}\n"
    return meta, texts[0], kernel, texts[1]


def _variant_of(op: Operator, source: KernelSource) -> str:
    function = op.group.inplace if source.kind == "inplace" else op.group.functional
    assert function is not None
    return str(function.name)


def _kernel(op: Operator, source: KernelSource, catalog: Catalog, parts: _Parts) -> None:
    name = c_string(str(op.schema.name))
    match source.kind:
        case "pointwise":
            assert op.pointwise is not None
            if op.pointwise.expanded is not None:
                what = f"{name}: 'expanded' is for this tree's operators"
                raise YamlError(op.pointwise.location, what, "leave it out: an expanded tensor is refused")
            table, check = f"&tp_pointwise_{op.pointwise.c_name}", op.pointwise.check
            call = f"pointwise(m, {name}, {table})"
            if check is not None:
                call = f"pointwise_checked(m, {name}, {table}, {parts.ns}_check_{check})"
            parts.add("Dense", f"TENSORPY_GENERATED->{call}")
        case "reduction":
            assert op.reduction is not None
            parts.add("Dense", f"TENSORPY_GENERATED->reduction(m, {name}, &tp_reduction_{op.reduction.c_name})")
        case "structured":
            meta, meta_text, kernel, kernel_text = _structured(op, source)
            parts.texts.setdefault(meta, meta_text)
            if kernel_text:
                parts.texts.setdefault(kernel, kernel_text)
            parts.add(source.key, f"TENSORPY_GENERATED->structured(m, {name}, {meta}, {kernel})")
        case "functional" | "inplace":
            parts.add(source.key, f"TENSORPY_GENERATED->variant(m, {name}, {c_string(_variant_of(op, source))})")
        case "each":
            called, into = catalog.by_name[source.name], op.kind == "inplace"

            def boxed(code: str, given: str) -> str:
                return f"tensorpy_give_{_TAKERS[code]}({given})"

            cells = boxed_arguments(op.schema, called.schema, boxed)
            function = f"each_{'into' if into else 'new'}"
            call = f"TENSORPY_GENERATED->{function}({c_string(_qualified(called))}, args, {len(cells)})"
            body = lines([f"const tp_value args[] = {{{', '.join(cells)}}};", f"return {call};"])
            parts.kernel(source.key, op, f"each_{op.c}", f"{_head(op, f'each_{op.c}')} {{\n{body}}}\n")
        case "view_copy":
            call = view_copy_call(op.function, catalog.by_name[source.name].call)
            body = lines([f"return TENSORPY_GENERATED->{call};"])
            parts.kernel(source.key, op, f"copied_{op.c}", f"{_head(op, f'copied_{op.c}')} {{\n{body}}}\n")
        case "formula":
            parts.kernel(source.key, op, f"formula_{op.c}", _formula(op, catalog))
        case _:
            kernel = f"wrapped_{source.name}_{op.c}"
            before = [*tag_lines(op.function, composite=source.key.startswith("Composite"))]
            before += rounding_prologue(op, kernel, keyset="") if rounds_once(op, catalog) else []
            if source.key == "Batched":
                before = [_passed_by(op)]
            checked = source.key not in ("CompositeImplicitAutograd", "Batched")
            body = (device_check(op.function) if checked else "") + lines(
                [*before, f"return {source.name}({_names(op)});"]
            )
            text = f"{_head(op, kernel, keyset=source.key == 'Batched')} {{\n{body}}}\n"
            parts.kernel(source.key, op, kernel, text)


# ---- what is said beside the kernels ----


def _tangents(catalog: Catalog) -> dict[str, tuple[str, str]]:
    """By the operator's C name: its rule for forward mode, with what it stands on; and the rule's name."""
    found: dict[str, tuple[str, str]] = {}
    operators = {op.c: op for op in catalog}
    for name, forward in forwards_of(catalog).items():
        op = operators[name]
        if op.kind != "functional" or forward.kind in ("TWICE", "GEOMETRY", "INPLACE"):
            continue
        frame = f"&(const tensorpy_frame){{0, (tp_value *)args, NULL, 0, {len(op.schema.arguments)}}}"

        def taken(code: str, i: int, frame: str = frame) -> str:
            return f"tensorpy_take_{_TAKERS[code]}({frame}, {i})"

        functions, table = emit_terms(op, forward, catalog, taken) if forward.terms else ("", "")
        terms = f"forward_terms_{name}" if forward.terms else "NULL"
        cells = f"{c_string(roles_of(op, forward))}, {terms}, {len(forward.terms)}, TP_FORWARD_{forward.kind}"
        rule = f"static const tensorpy_tangents tangents_{name} = {{{cells}}};\n"
        found[name] = f"{functions}{table}{rule}", f"&tangents_{name}"
    return found


def _listed(name: str, words: Iterable[str]) -> str:
    return f"static const char *const {name}[] = {{{', '.join(map(c_string, words))}, NULL}};\n"


def _described(catalog: Catalog) -> tuple[str, list[str]]:
    """Structs of tensorpy/generated_api.h, and the statements that hand them over."""
    texts, statements, rules, tangents = [], [], rules_of(catalog), _tangents(catalog)
    for op in catalog:
        rule, fields = rules.get(op.c), {"size": "sizeof(tensorpy_entry_info)"}
        if op.function.is_method:
            fields["is_method"] = "1"
        if op.function.tags:
            texts.append(_listed(f"tags_{op.c}", op.function.tags))
            fields["tags"] = f"tags_{op.c}"
        if op.prims and op.pointwise is None and op.reduction is None:  # theirs come with the program
            texts.append(_listed(f"prims_{op.c}", op.prims))
            fields["prims"] = f"prims_{op.c}"
        if rule is not None:
            fields |= {
                "roles": c_string(rule.roles),
                "batching": f"TP_BATCH_{rule.kind}",
                "random": str(int(rule.random)),
            }
            if rule.other is not None:
                fields["batching_with"] = c_string(str(rule.other.schema.name))
        if op.kind == "out":
            fields["out_dtype"] = f"TENSORPY_OUT_{'CASTABLE' if takes_castable(op, catalog) else 'SAME'}"
            if op.function.origin.out_overlap is not None:
                fields["out_apart"] = "1"
        if empty := empty_list(op):
            fields["empty_list"] = f"TP_{empty}"
        if module := registered_by(op):
            fields["registered_by"] = c_string(module)
        if op.function.origin.warns is not None:
            fields["warns"] = c_string(op.function.origin.warns)
        if op.c in tangents:
            texts.append(tangents[op.c][0])
            fields["tangents"] = tangents[op.c][1]
        if len(fields) > 1:
            cells = ", ".join(f".{name} = {value}" for name, value in fields.items())
            texts.append(f"static const tensorpy_entry_info entry_{op.c} = {{{cells}}};\n")
            call = f"TENSORPY_GENERATED->describe(m, {c_string(str(op.schema.name))}, &entry_{op.c})"
            statements.append(f"if ({call} < 0) return -1;")
    return "".join(texts), statements


# ---- the layers above ----


def _batched(op: Operator, catalog: Catalog, parts: _Parts) -> None:
    """A formula at the key; what is not batched goes on below, as in the tree."""
    rule = batching_of(op, catalog)
    if rule is None or rule.formula is None:
        return
    name, location = f"batched_{op.c}", op.function.at("batching")
    result = Result.of_schema(op.schema)
    body = Lowered(schema_variables(op.schema), rule.formula, result, catalog, location).lines
    named = used(rule.formula, location)
    unused = [f"(void){a.name_in_c};" for a in c_arguments(op.schema) if a.name not in named]
    text = f"{_head(op, name, keyset=True)} {{\n{lines([*unused, _passed_by(op), *body])}}}\n"
    parts.kernel("Batched", op, name, text)


def _layout(op: Operator, catalog: Catalog, parts: _Parts) -> None:
    """What the entry says of tensors that are not strided memory."""
    for place in PLACES:
        text, functional = said(op, place), written_by(op, place, catalog)
        if text is not None:
            _at_place(op, place, text, catalog, parts)
        elif functional is not None:
            how = f"{int(is_merged(op, functional, place))}, {int(said(functional, place) == 'made')}"
            names = f"{c_string(str(op.schema.name))}, {c_string(str(functional.schema.name))}"
            parts.add(place.key, f"TENSORPY_GENERATED->layout_variant(m, {names}, {how})")


def _at_place(op: Operator, place: Place, text: str, catalog: Catalog, parts: _Parts) -> None:
    if text == "made":
        return  # it is about the out= variant
    name, called = f"{place.prefix}_{op.c}", layout_function(op, place)
    body = [_passed_by(op, place.key), f"return {called}({_names(op)});"]
    if text == "through":
        body = [f"return {op.call}_below({', '.join([f'ks & TP_BELOW({place.key})', _names(op)])});"]
    elif called is None:
        formula, location = formula_of(op, text), op.function.at(place.field)
        unused = [f"(void){a.name_in_c};" for a in c_arguments(op.schema) if a.name not in used(formula, location)]
        result = Result.of_schema(op.schema)
        lowered = Lowered(schema_variables(op.schema), formula, result, catalog, location).lines
        body = [*unused, _passed_by(op, place.key), *_refusals(op, formula, place), *lowered]
    parts.kernel(place.key, op, name, f"{_head(op, name, keyset=True)} {{\n{lines(body)}}}\n")


def _refusals(op: Operator, formula: str, place: Place) -> Iterator[str]:
    for a in passed_on(op, formula, place):
        several = "s" if a.c.member == "tensors" else ""
        given = f"{c_string(_qualified(op))}, {a.name_in_c}, TP_BIT({place.key})"
        yield f"if (tensorpy_refuse_layout{several}({given}) < 0) return {c_result(op.schema).failed};"


def _passed_by(op: Operator, key: str = "Batched") -> str:
    tensors = [a for a in c_arguments(op.schema) if a.c.member in ("tensor", "tensors")]
    tests = [f"tensorpy_{'any_has' if a.c.member == 'tensors' else 'has'}_key({a.name_in_c}, b__)" for a in tensors]
    below = f"{op.call}_below({', '.join([f'ks & TP_BELOW({key})', _names(op)])})"
    return f"const tp_keyset b__ = TP_BIT({key});\n    if (!({' || '.join(tests) or '(b__, 0)'})) return {below};"


def _autograd(op: Operator, catalog: Catalog, parts: _Parts) -> None:
    name, functional = c_string(str(op.schema.name)), op.group.functional
    if op.is_implicit or functional is None:
        return
    for key, alone in by_key(op) if op.kind == "functional" else ():
        if node_of(alone, catalog) is not None:
            kernel = f"autograd_{op.c}_{key}"
            parts.kernel(key, alone, kernel, emit_node(alone, catalog, _head(op, kernel, keyset=True)))
    if op.kind == "functional" and op.derivative is not None and node_of(op, catalog) is not None:
        head = _head(op, f"autograd_{op.c}", keyset=True)
        text = emit_node(op, catalog, head)
        for key in op.autograd_keys:
            parts.kernel(key, op, f"autograd_{op.c}", text)
    elif (op.kind in ("inplace", "out") and op.derivative is not None) or op.kind == "out":
        call = f"TENSORPY_GENERATED->record_variant(m, {name}, {c_string(str(functional.name))})"
        for key in ("Autograd", "ForwardAD") if op.kind == "inplace" else ("Autograd",):
            parts.add(key, call)


def _view(op: Operator, parts: _Parts) -> None:
    if not op.is_view or op.is_implicit:
        return
    annotation = op.schema.returns[0].annotation
    assert annotation is not None
    base = next(
        a.name_in_c
        for a in c_arguments(op.schema)
        if a.argument.annotation is not None and set(a.argument.annotation.before) & set(annotation.before)
    )
    body = [
        "tp_tensor *view__;",
        "{",
        "    tp_exclude_guard guard__ = tp_exclude(TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView));",
        f"    view__ = {op.call}_below(ks & TP_BELOW_ADINPLACEORVIEW, {_names(op)});",
        "}",
        f"return view__ ? tp_as_view({base}, view__) : NULL;",
    ]
    name = f"view_{op.c}"
    parts.kernel("ADInplaceOrView", op, name, f"{_head(op, name, keyset=True)} {{\n{lines(body)}}}\n")


def _autocast(op: Operator, parts: _Parts) -> None:
    def below(replaced: Mapping[str, str]) -> str:
        names = [replaced.get(a.name, a.name_in_c) for a in c_arguments(op.schema)]
        return f"{op.call}_below({', '.join(['ks & TP_BELOW_AUTOCAST', *names])})"

    for device, backend in _AUTOCAST_DEVICES.items():
        policy = op.autocast_on(backend)
        if policy is not None:
            name = f"autocast_{op.c}_{device.lower()}"
            body = kernel_body(op, policy, f"TP_DEVICE_{device}", below)
            parts.kernel(f"Autocast{backend}", op, name, f"{_head(op, name, keyset=True)} {{\n{lines(body)}}}\n")


# ---- the files ----


def _kernels_h(catalog: Catalog, ns: str) -> str:
    declared = native_declarations(catalog).values()
    checks = sorted({op.pointwise.check for op in catalog if op.pointwise is not None and op.pointwise.check})
    return "".join(
        [
            _banner(
                f"What the project's own C defines, and {ns}_<operator>(), which calls an operator of the library."
            ),
            '#pragma once\n\n#include "tensorpy/generated.h"\n\n',
            *(text.replace("struct tp_generator", "tp_generator") for text in declared),
            *(check_declaration(f"{ns}_check_{check}") for check in checks),
            "\n",
            *map(_primitive, _primitives(catalog)),
            *(handle(op) for op in catalog),
        ]
    )


def _library_c(catalog: Catalog, ns: str) -> str:
    parts = _Parts(ns)
    for op in catalog:
        for source in op.kernels:
            _kernel(op, source, catalog, parts)
        _autograd(op, catalog, parts)
        _view(op, parts)
        _autocast(op, parts)
        _batched(op, catalog, parts)
        _layout(op, catalog, parts)
    described, statements = _described(catalog)
    includes = [f'#include "{ns}_kernels.h"\n']
    includes += [f'#include "{ns}_pointwise.h"\n'] if catalog.pointwise() else []
    includes += [f'#include "{ns}_reductions.h"\n'] if catalog.reductions() else []
    fits = f"if (tensorpy_check_generated({c_string(ns)}) < 0) return -1;"
    defined = [f"if (tp_def(m, {c_string(str(op.schema))}) < 0) return -1;" for op in catalog]
    kernels = parts.text()
    return "".join(
        [
            _banner(f"The operators of {ns}: declared, computed, recorded, registered."),
            *includes,
            "\n/* ---- tensorpy's operators that are called here ---- */\n\n",
            *map(handle, _called(catalog, described + kernels)),
            "\n/* ---- what the YAML says ---- */\n\n",
            described,
            f"\nTENSORPY_LIBRARY({ns}, m) {{\n{lines([fits, *defined, *statements, 'return 0;'])}}}\n\n",
            kernels,
        ]
    )


def _loops(catalog: Catalog, ns: str) -> dict[str, str]:
    """One text, and a file for each capability that includes it."""
    pointwise, reductions = catalog.pointwise(), catalog.reductions()
    if not pointwise and not reductions:
        return {}
    head = [_banner("The CPU's loops; included once per capability."), '#include "tensorpy/generated.h"']
    text = [*head, '#include "tensorpy/loop.inc"', *loops_text(pointwise), *emit_reduction_cpu.kernels_text(reductions)]
    files = {f"{ns}_loops.inc": "\n".join(text) + "\n"}
    for capability in CAPABILITIES:
        target = _TARGETS.get(capability)
        body = f"#define TP_CAPABILITY {capability}\n"
        end = ""
        if target is not None:
            body = (
                "#if defined(__x86_64__)\n#if defined(__clang__)\n"
                f'#pragma clang attribute push(__attribute__((target("{target.rpartition(",prefer")[0] or target}"))), '
                "apply_to = function)\n"
                f'#else\n#pragma GCC target("{target}")\n#endif\n{body}'
            )
            end = "#if defined(__clang__)\n#pragma clang attribute pop\n#endif\n#endif\n"
        what = _banner(f"The loops for CPUs with {capability}." if target else "The loops for every CPU.")
        files[f"{ns}_loops_{capability}.c"] = f'{what}{body}#include "{ns}_loops.inc"\n{end}'
    return files


def generate_library(catalog: Catalog, ns: str) -> dict[str, str]:
    """File name -> text."""
    with every_formula(catalog) as checked:
        return _generate(checked, ns)


def _generate(catalog: Catalog, ns: str) -> dict[str, str]:
    files = {f"{ns}_kernels.h": _kernels_h(catalog, ns), f"{ns}_library.c": _library_c(catalog, ns)}
    files |= _loops(catalog, ns)
    if catalog.pointwise():
        files |= emit_table(catalog.pointwise(), f"{ns}_pointwise", types="tensorpy/expressions.h")
    if catalog.reductions():
        files |= emit_reduction_cpu.emit_table(catalog.reductions(), f"{ns}_reductions", types="tensorpy/expressions.h")
    files["ops.py"] = emit_ops_py(catalog, ns)
    files["ops.pyi"] = emit_ops_pyi(catalog)
    files["reference.md"] = emit_reference_md(catalog, ns)
    files["test_ops.py"] = emit_test_py(catalog, ns)
    return files


def sources(files: Iterable[str]) -> list[str]:
    """Those that are compiled."""
    return sorted(name for name in files if name.endswith(".c"))
