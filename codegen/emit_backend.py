"""The kernels of a family's operators, wrapped to the dispatcher's calling convention.

NativeFunctions.h declares the C functions that the tree must define: kernels, meta functions and composites.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .c_types import CArgument, c_arguments, c_result, call_arguments, has_optional_outputs, parameters
from .catalog import Catalog, KernelSource, Operator, structured_name
from .device_checks import device_check
from .each import boxed_arguments
from .emit_formula import emit_composite
from .emit_functions import YAML, Kernels, op_of
from .emit_schema import boxed_frame, result_from_boxed
from .emit_variable_type import layers_off
from .errors import YamlError
from .layouts import PLACES, layout_function
from .model import Argument, FunctionSchema, NativeFunction, is_tensor_like
from .out_dtype import takes_castable
from .rounding import prologue as rounding_prologue
from .rounding import rounds_once
from .tag_rules import prologue, view_copy_body
from .text import banner, c_string


def _forward_names(schema: FunctionSchema) -> list[str]:
    """The arguments that are not out=, as C names."""
    outs = {a.name for a in schema.out}
    return [a.name_in_c for a in c_arguments(schema) if a.name not in outs]


def _output_names(schema: FunctionSchema) -> list[str]:
    if schema.kind == "out":
        return [a.name for a in schema.out]
    return ["self"] if schema.kind == "inplace" else []


def _functional_parameters(op: Operator, leading: Sequence[str] = (), trailing: Sequence[str] = ()) -> str:
    outs = {a.name for a in op.schema.out}
    own = [a.c.declare(a.name_in_c) for a in c_arguments(op.schema) if a.name not in outs]
    return ", ".join([*leading, *own, *trailing])


def _variant(op: Operator, catalog: Catalog) -> str:
    """What a kernel is told of where its result goes."""
    if op.kind == "functional":
        return "TP_VARIANT_NEW"
    if op.kind == "inplace":
        return "TP_VARIANT_INPLACE"
    return "TP_VARIANT_OUT_CAST" if takes_castable(op, catalog) else "TP_VARIANT_OUT"


def _output_count(op: Operator) -> int:
    return max(1, len(op.schema.returns))


# ---- wrappers ----


def _write_checks(op: Operator) -> str:
    """Nothing is written to read-only memory: before the operator computes, in whichever mode."""
    if "inplace_view" in op.function.tags:
        return ""
    lines = []
    refuse = f"{c_string(str(op.schema.name))}) < 0) return {c_result(op.schema).failed};"
    for a in c_arguments(op.schema):
        if not a.argument.is_write:
            continue
        if a.c.member == "tensors":
            each = f"{a.name_in_c}.data[i]"
            lines.append(f"    for (int64_t i = 0; i < {a.name_in_c}.size; i++)\n")
            lines.append(f"        if ({each} && tp_check_writable({each}, {refuse}\n")
        else:
            given = f"{a.name_in_c} && " if a.argument.is_optional else ""
            lines.append(f"    if ({given}tp_check_writable({a.name_in_c}, {refuse}\n")
    return "".join(lines)


def _wrapper(op: Operator, kind: str, body: str, *, composite: bool = False) -> str:
    unused = "    (void)ks;\n" + _write_checks(op) + prologue(op.function, composite=composite)
    return (
        f"static {c_result(op.schema).decl}{kind}_{op.c}({parameters(op.schema, keyset=True)}) {{\n{unused}{body}}}\n"
    )


def _pointwise(op: Operator, catalog: Catalog) -> str:
    assert op.pointwise is not None
    names = {a.name: a for a in c_arguments(op.schema)}
    operands = []
    for name in (i.name for i in op.pointwise.inputs):
        a = names[name]
        operands.append(f"{{{a.name_in_c}, NULL}}" if a.c.member == "tensor" else f"{{NULL, {a.name_in_c}}}")
    params = [f"tp_box_{names[name].c.code}({names[name].name_in_c})" for name in (p.name for p in op.pointwise.params)]
    body = f"    const tp_operand inputs[] = {{{', '.join(operands)}}};\n"
    if params:
        body += f"    const tp_value params[] = {{{', '.join(params)}}};\n"
    passed = "params" if params else "NULL"
    table = f"&tp_pointwise_{op.pointwise.c_name}"
    if op.pointwise.check is not None:
        check = f"tp_check_{op.pointwise.check}({table}, inputs, {passed})"
        body += f"    if ({check} < 0) return {c_result(op.schema).failed};\n"
    if op.pointwise.expanded is not None and op.kind == "inplace":
        call = f"tp_expanded_{op.pointwise.expanded}({call_arguments(op.schema)})"
        body += f"    if (tp_unlikely(tp_overlaps_itself(self))) return {call};\n"
    if op.pointwise.cases:
        table = f"tp_pointwise_case_of({table}, inputs)"
    if op.kind == "functional":
        body += f"    return tp_pointwise_new({table}, inputs, {passed});\n"
    else:
        target = _output_names(op.schema)[0]
        body += f"    return tp_pointwise_into({table}, inputs, {passed}, {target}, {_variant(op, catalog)});\n"
    return _wrapper(op, "pointwise", body)


def _reduction(op: Operator) -> str:
    assert op.reduction is not None
    names = {a.name: a.name_in_c for a in c_arguments(op.schema)}
    if any(a.name == "dim" and a.c.member == "i" for a in c_arguments(op.schema)):
        names["dim"] = f"TP_INTS({names['dim']})"
    absent = {"dim": "TP_NO_INTS", "keepdim": "false", "dtype": "TP_NO_DTYPE"}
    rest = ", ".join(names.get(name, nothing) for name, nothing in absent.items())
    table = f"&tp_reduction_{op.reduction.c_name}"
    if op.kind == "functional":
        body = f"    return tp_reduction_new({table}, {names['self']}, {rest});\n"
    else:
        body = f"    return tp_reduction_into({table}, {names['self']}, {rest}, {_output_names(op.schema)[0]});\n"
    return _wrapper(op, "reduction", body)


def _next(op: Operator, wrapper: str) -> str:
    """Statements that ask the next kernel, since this wrapper's has declined: Note [Declining] in dispatch/op.h."""
    return (
        f"{boxed_frame(op.schema)}"
        f"    if (tp_call_next({op_of(op)}, (tp_fn){wrapper}, ks, args, results) < 0) "
        f"return {c_result(op.schema).failed};\n{result_from_boxed(c_result(op.schema))}"
    )


def _structured(op: Operator, source: KernelSource, catalog: Catalog) -> str:
    stem = structured_name(op.group)
    wrapper = f"structured_{source.name}_{op.c}"
    forward = _forward_names(op.schema)
    n = _output_count(op)
    outs = _output_names(op.schema)
    given = f", .given = {{{', '.join(outs)}}}" if outs else ""
    variant = _variant(op, catalog)
    body = f"    tp_meta m = {{.op = {op_of(op)}, .variant = {variant}, .noutputs = {n}{given}}};\n"
    inputs = ", ".join(
        a.name_in_c
        for a in c_arguments(op.schema)
        if a.c.member == "tensor" and a.name not in {o.name for o in op.schema.out}
    )
    if outs and inputs:
        body += (
            f"    tp_tensor *const inputs[] = {{{inputs}}};\n    tp_meta_set_inputs(&m, inputs, TP_COUNTOF(inputs));\n"
        )
    body += (
        f"    if ({stem}_meta({', '.join(['&m', *forward])}) < 0) return tp_meta_discard(&m), "
        f"{c_result(op.schema).failed};\n"
    )
    if source.name:
        outputs = [f"m.out[{i}]" for i in range(n)]
        call = f"{source.name}({', '.join([*forward, *outputs])})"
        declined = f"        if (tp_take_decline()) {{\n{_next(op, wrapper)}        }}\n" if source.declines else ""
        body += (
            f"    if ({call} < 0) {{\n        tp_meta_discard(&m);\n{declined}"
            f"        return {c_result(op.schema).failed};\n    }}\n"
        )
    match c_result(op.schema).kind:
        case "status":
            body += "    return tp_meta_commit(&m);\n"
        case "tensor":
            body += "    return m.out[0];\n"
        case _:
            items = ", ".join(f"m.out[{i}]" for i in range(n))
            body += f"    return ({c_result(op.schema).decl.strip()}){{{{{items}}}}};\n"
    return _wrapper(op, f"structured_{source.name}", device_check(op.function) + body)


def _direct(op: Operator, source: KernelSource, catalog: Catalog) -> str:
    call = f"{source.name}({call_arguments(op.schema)})"
    composite = source.key.startswith("Composite")
    check = "" if source.key == "CompositeImplicitAutograd" else device_check(op.function)
    if rounds_once(op, catalog):
        lines = rounding_prologue(op, f"direct_{source.name}_{op.c}")
        check += "".join(f"    {line}\n" for line in lines)
    body = f"    return {call};\n"
    if source.declines:
        result = c_result(op.schema)
        body = f"    {result.decl}made = {call};\n"
        body += f"    if (tp_likely(!({result.is_error('made')})) || !tp_take_decline()) return made;\n"
        body += _next(op, f"direct_{source.name}_{op.c}")
    return _wrapper(op, "direct_" + source.name, check + body, composite=composite)


def _each(op: Operator, catalog: Catalog, source: KernelSource) -> str:
    args = boxed_arguments(op.schema, catalog.by_name[source.name].schema)
    call = "tp_each_into" if op.kind == "inplace" else "tp_each_new"
    return (
        f"static {c_result(op.schema).decl}each_{op.c}({parameters(op.schema, keyset=True)}) {{\n"
        f"    (void)ks;\n    const tp_value args[] = {{{', '.join(args)}}};\n"
        f"    return {call}({c_string(source.name)}, args, {len(args)});\n}}\n"
    )


def _view_copy(op: Operator, catalog: Catalog, source: KernelSource) -> str:
    return _wrapper(op, "view_copy", view_copy_body(op.function, catalog.by_name[source.name].schema.name))


def _from_functional(op: Operator, catalog: Catalog) -> str:
    """out= or in-place through the functional variant."""
    functional = op.group.functional
    assert functional is not None
    wanted = [a.name for a in functional.func.arguments]
    names = {a.name: a.name_in_c for a in c_arguments(op.schema)}
    nothing = {"dtype": "out->dtype", "layout": "TP_STRIDED", "device": "out->device", "pin_memory": "-1"}
    kept = op.is_implicit and op.kind == "inplace"
    given = {**names, "self": "before"} if kept else names
    args = ", ".join(given.get(name, nothing.get(name, "")) for name in wanted)
    result = c_result(functional.func)
    outs = [names.get(name, name) for name in _output_names(op.schema)]
    recorded = "_recorded" if op.is_implicit else ""
    into_out = "tp_cast_into_out" if takes_castable(op, catalog) else "tp_copy_into_out"
    copy = f"tp_copy_into_self{recorded}" if op.kind == "inplace" else _into_made(functional) or into_out
    apart = op.kind == "out" and op.function.origin.out_overlap is not None
    checks = _overlap_checks(outs, functional.func.arguments) if apart else []
    body = "" if op.kind == "inplace" or apart else _whole_checks(op, outs)
    if kept:
        read = [a.name_in_c for a in c_arguments(op.schema) if a.c.member == "tensor"]
        body += f"    tp_tensor *const read[] = {{{', '.join(read)}}};\n"
        body += (
            f"    tp_autoref *before = tp_unwritten({names['self']}, read, {len(read)});\n    if (!before) return -1;\n"
        )
    if result.kind == "tensor":
        body += f"    tp_autoref *made = tp_{functional.name.c_name}({args});\n"
        if checks:
            body += f"    if (!made || tp_fit_out({outs[0]}, made) < 0) return -1;\n" + "".join(checks)
        body += f"    return made ? {copy}({outs[0]}, made) : -1;\n"
    elif result.kind == "seq":
        body += f"    tp_autoseq *made = tp_{functional.name.c_name}({args});\n"
        body += f"    return made ? {into_out}_list({outs[0]}, made) : -1;\n"
    else:
        body += "".join(checks)
        failed = "if (!made.v[0]) return tp_no_result();"
        if has_optional_outputs(functional.func):
            failed = "if (!made.v[0] && tp_error_pending() != TP_NoError) return -1;"
        body += f"    {result.decl}made = tp_{functional.name.c_name}({args});\n    {failed}\n"
        body += f"    tp_tensor *const outs[] = {{{', '.join(outs)}}};\n"
        body += f"    return {into_out}s_steal(outs, made.v, {result.count});\n"
    return _wrapper(op, "variant", body)


def _into_made(functional: NativeFunction) -> str:
    """How what is made of numbers goes into an output; of tensors: ""."""
    if functional.origin.out_size == "counted":
        return "tp_counted_into_out"
    if functional.func.is_factory and any(prim.startswith("range.") for prim in functional.prims):
        return "tp_range_into_out"
    return "tp_made_into_out" if not any(is_tensor_like(a.type) for a in functional.func.arguments) else ""


def _whole_checks(op: Operator, outs: Sequence[str]) -> str:
    """The lines that refuse an output which shares a part of its memory with an input."""
    inputs = [a for a in c_arguments(op.schema) if not a.argument.is_write]
    tensors = [a.name_in_c for a in inputs if a.c.member == "tensor"]
    lists = [a.name_in_c for a in inputs if a.c.member == "tensors"]
    if any(a.c.member == "tensors" for a in c_arguments(op.schema) if a.argument.is_write):
        return ""
    read = f"    tp_tensor *const read[] = {{{', '.join(tensors)}}};\n" if tensors else ""
    given = [("read", str(len(tensors)))] if tensors else []
    given += [(f"{name}.data", f"{name}.size") for name in lists]
    checks = [f"    if (tp_check_out_whole({out}, {data}, {n}) < 0) return -1;\n" for out in outs for data, n in given]
    return read + "".join(checks)


def _overlap_checks(outs: Sequence[str], inputs: Iterable[Argument]) -> list[str]:
    """The lines that refuse an output which shares memory with an input."""
    checks = {"Tensor": "tp_check_out_apart", "Tensor[]": "tp_check_out_apart_of"}
    return [
        f"    if ({checks[str(a.type)]}({out}, {a.name}) < 0) return -1;\n"
        for out in outs
        for a in inputs
        if str(a.type) in checks
    ]


def _copied(a: CArgument, failed: str) -> str:
    """A copy of what an operator is going to write; what is no self has no gradient."""
    made = f"made_{a.name}"
    if a.c.member == "tensors":
        return f"    tp_autoseq *{made} = tp_clone_list({a.name_in_c});\n    if (!{made}) return {failed};\n"
    plain = a.name_in_c
    lines = ""
    if a.name != "self":
        plain = f"plain_{a.name}"
        lines = f"    tp_autoref *{plain} = tp_detach({a.name_in_c});\n    if (!{plain}) return {failed};\n"
    return f"{lines}    tp_autoref *{made} = tp_clone({plain}, TP_NO_FORMAT);\n    if (!{made}) return {failed};\n"


def _as_argument(a: CArgument) -> str:
    return f"tp_tensor_seq_borrow(made_{a.name})" if a.c.member == "tensors" else f"made_{a.name}"


def _call_of_writing(op: Operator, replaced: Mapping[str, str]) -> str:
    origin = op.function.origin
    return f"tp_{origin.name.c_name}({call_arguments(origin.func, replaced=replaced)})"


def _own_results(op: Operator, call: str, failed: str) -> tuple[str, list[str]]:
    """The call of the variant that writes, and the references to what it gives beside what it writes."""
    result = c_result(op.function.origin.func)
    match result.kind:
        case "status":
            return f"    if ({call} < 0) return {failed};\n", []
        case "tensor":
            return f"    tp_autoref *own = {call};\n    if (!own) return {failed};\n", ["own"]
        case "tensors":
            names = [f"own{i}" for i in range(result.count)]
            lines = "".join(f"    tp_autoref *{name} = own.v[{i}];\n" for i, name in enumerate(names))
            return f"    {result.decl}own = {call};\n{lines}    if (!own0) return {failed};\n", names
        case _:
            raise YamlError(
                op.function.location,
                f"{op.schema.name} cannot be derived: {op.function.origin.name} gives a list, or no tensors",
                "give it an entry of its own",
            )


def _functional_of_writing(op: Operator) -> str:
    """Copies are written; what was written and is not returned anyway is returned after the rest."""
    origin, result = op.function.origin.func, c_result(op.schema)
    written = [a for a in c_arguments(origin) if a.argument.is_write]
    call, own = _own_results(op, _call_of_writing(op, {a.name: _as_argument(a) for a in written}), result.failed)
    body = "".join(_copied(a, result.failed) for a in written) + call
    gave = [f"tp_take({name})" for name in own] + [f"tp_take(made_{a.name})" for a in written]
    if result.kind in ("tensor", "seq"):
        return body + f"    return {gave[0]};\n"
    if result.kind == "tensors":
        return body + f"    return ({result.decl.strip()}){{{{{', '.join(gave)}}}}};\n"
    lists = [False] * len(own) + [a.c.member == "tensors" for a in written]
    for i, (value, is_list) in enumerate(zip(gave, lists, strict=True)):
        tag = "TP_TENSOR_SEQ, .seq" if is_list else "TP_TENSOR, .tensor"
        body += f"    results[{i}] = (tp_value){{.tag = {tag} = {value}}};\n"
    return body + "    return 0;\n"


def _out_of_writing(op: Operator) -> str:
    """What the variant that writes gives goes into `out`, or `out` is what it writes in the place of self; of the rest
    that an in-place one writes copies are written, as in PyTorch."""
    origin = op.function.origin
    outs = [a.name for a in op.schema.out]
    if origin.kind == "mutable":
        call, own = _own_results(op, _call_of_writing(op, {}), "-1")
        if len(own) == 1:
            return call + f"    return tp_copy_into_out({outs[0]}, own);\n"
        taken = ", ".join(f"tp_take({name})" for name in own)
        return (
            f"{call}    tp_tensor *const outs[] = {{{', '.join(outs)}}}, *made[] = {{{taken}}};\n"
            f"    return tp_copy_into_outs_steal(outs, made, {len(own)});\n"
        )
    first, *rest = (a for a in c_arguments(origin.func) if a.argument.is_write)
    body = _whole_checks(op, outs) + "".join(_copied(a, "-1") for a in rest)
    replaced = {a.name: _as_argument(a) for a in rest}
    reads = any(is_tensor_like(a.type) and not a.is_write for a in origin.func.arguments)
    # self gets another memory, or out may be what is read
    if "inplace_view" in origin.tags or (reads and first.c.member == "tensor"):
        call = _call_of_writing(op, replaced | {first.name: _as_argument(first)})
        body += _copied(first, "-1")
        return body + f"    return {call} < 0 ? -1 : tp_copy_into_out({outs[0]}, {_as_argument(first)});\n"
    copy = "tp_copy_list" if first.c.member == "tensors" else "tp_copy_into_out"
    call = _call_of_writing(op, replaced | {first.name: outs[0]})
    return body + f"    if ({copy}({outs[0]}, {first.name_in_c}) < 0) return -1;\n    return {call};\n"


def _from_writing(op: Operator) -> str:
    return _wrapper(op, "variant", _functional_of_writing(op) if op.kind == "functional" else _out_of_writing(op))


def _emit_kernel(op: Operator, source: KernelSource, catalog: Catalog) -> tuple[str, str, str]:
    """The wrapper's text, its name, and what the dispatch table shows as the kernel's origin."""
    match source.kind:
        case "pointwise":
            return _pointwise(op, catalog), f"pointwise_{op.c}", "pointwise"
        case "reduction":
            return _reduction(op), f"reduction_{op.c}", "reduction"
        case "structured":
            return (
                _structured(op, source, catalog),
                f"structured_{source.name}_{op.c}",
                source.name or f"{structured_name(op.group)}_meta",
            )
        case "functional":
            return _from_functional(op, catalog), f"variant_{op.c}", "from the functional variant"
        case "writing":
            return _from_writing(op), f"variant_{op.c}", f"from {op.function.origin.name}"
        case "formula":
            text = emit_composite(op, catalog)
            return text, f"formula_{op.c}", "formula"
        case "each":
            return _each(op, catalog, source), f"each_{op.c}", f"{source.name} of each place"
        case "view_copy":
            return _view_copy(op, catalog, source), f"view_copy_{op.c}", f"a copy of what {source.name} gives"
        case _:
            return _direct(op, source, catalog), f"direct_{source.name}_{op.c}", source.name


def emit_kernels(catalog: Catalog, kernels: Kernels) -> str:
    """Each wrapper once, for however many keys."""
    texts: dict[str, str] = {}
    for op in catalog:
        for source in op.kernels:
            if source.key == "Batched":  # emit_batching.py
                continue
            text, name, origin = _emit_kernel(op, source, catalog)
            texts[name] = text
            kernels.add(source.key, op, name, origin)
    return "".join(texts.values())


def native_declarations(operators: Iterable[Operator]) -> dict[str, str]:
    """By its name: what C function the tree must define."""
    found: dict[str, str] = {}
    for op in operators:
        for source in op.kernels:
            schema = f"/* {op.schema} */\n"
            if source.kind == "direct":
                text = f"{schema}{c_result(op.schema).decl}{source.name}({parameters(op.schema)});\n"
                found.setdefault(source.name, text)
            elif source.kind == "structured":
                meta = structured_name(op.group) + "_meta"
                text = f"{schema}int {meta}({_functional_parameters(op, leading=['tp_meta *m'])});\n"
                found.setdefault(meta, text)
                if source.name:
                    n = _output_count(op)
                    outs = [f"tp_tensor *out{i}" if n > 1 else "tp_tensor *out" for i in range(n)]
                    text = f"int {source.name}({_functional_parameters(op, trailing=outs)});\n"
                    found.setdefault(source.name, text)
        for name in filter(None, (layout_function(op, place) for place in PLACES)):
            text = f"/* {op.schema} */\n{c_result(op.schema).decl}{name}({parameters(op.schema)});\n"
            found.setdefault(name, text)
    return found


def native_functions_h(declarations: Iterable[str]) -> str:
    what = "The C functions that the tree defines: kernels, meta functions, composites."
    includes = '#pragma once\n\n#include "Functions.h"\n#include "native/common/meta.h"\n\n'
    return "".join([banner("emit_backend.py", YAML, what), includes, *declarations])


def emit_native_functions_h(catalog: Catalog) -> str:
    return native_functions_h(native_declarations(catalog).values())


# ---- BackendSelect ----


def _is_factory(op: Operator) -> bool:
    return not op.tensor_arguments


def emit_backend_select(catalog: Catalog, kernels: Kernels) -> str:
    """Operators without tensors: their device argument picks the backend."""
    out = []
    for op in catalog:
        if not _is_factory(op):
            continue
        device = next((a.name_in_c for a in c_arguments(op.schema) if a.c.member == "device"), "TP_CPU")
        keys = f"(ks & TP_BELOW(BackendSelect)) | tp_keys_selected({device})"
        guard = "" if op.is_implicit else f"    tp_exclude_guard guard = tp_exclude({layers_off(op)});\n"
        out.append(
            f"static {c_result(op.schema).decl}select_{op.c}({parameters(op.schema, keyset=True)}) {{\n{guard}"
            f"    return redispatch_{op.c}({call_arguments(op.schema, keyset=keys)});\n}}\n"
        )
        kernels.add("BackendSelect", op, f"select_{op.c}", "BackendSelect", "codegen/emit_backend.py")
    return "".join(out)
