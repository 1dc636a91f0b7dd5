"""ReductionOpenCL.c: the reductions that the YAML gives as expressions, as OpenCL C around which reduce.cl is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .reduction import ReductionOp
from .scalar_ir import Block, Kind
from .scalar_lower import OPENCL, DtypeInfo, Lowering
from .text import banner, c_string


def _function(result: str, name: str, arguments: str, block: Block, lowering: Lowering) -> str:
    body = " ".join(lowering.statements(block))
    return f"static inline {result} {name}({arguments}) {{ {body} }}\n"


def _functions(op: ReductionOp, dtype: DtypeInfo) -> str:
    lowering = Lowering(dtype, OPENCL)
    e = op.expressions[dtype.leaf]
    element = f"tp_{dtype.suffix}"
    value = lowering.type_name(Kind.B if op.promotion == "always_bool" else Kind.T)
    return (
        _function(value, "of_start", "void", e.start, lowering)
        + _function(value, "of_step", f"{value} acc, {element} x", e.step, lowering)
        + _function(value, "of_join", f"{value} a, {value} b", e.join, lowering)
        + _function(value, "of_finish", f"{value} acc, {element} count", e.finish, lowering)
    )


def _table(op: ReductionOp) -> Iterator[str]:
    yield f"static const char *const {op.c_name}_cl[TP_NUM_DTYPES] = {{\n"
    for dtype in op.dtypes:
        yield f"    [{dtype.enumerator}] = {c_string(_functions(op, dtype))},\n"
    yield "};\n\n"


def emit(ops: Sequence[ReductionOp]) -> dict[str, str]:
    out = [
        banner("emit_reduction_opencl.py", "yaml/native_functions/", "Reductions as OpenCL C."),
        '#include "opencl/reduce.h"\n\n',
    ]
    for op in ops:
        out += _table(op)
    out.append("const char *const *const tp_cl_reduction_table[] = {\n")
    out += [f"    {op.c_name}_cl,\n" for op in ops]
    out.append("    NULL,\n};\n")
    return {"ReductionOpenCL.c": "".join(out)}
