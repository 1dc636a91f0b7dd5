"""ops/<family>.c: all the glue of one family's operators, in the order of a call. Families.c: the list of them.

An operator that is added or changed rewrites its family's file alone: a file declares just the functions that it calls,
and numbers its operators for itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .catalog import Catalog
from .emit_autocast import emit_autocast
from .emit_backend import emit_backend_select, emit_kernels, native_declarations
from .emit_batching import emit_batched, emit_rules
from .emit_forward import emit_forward
from .emit_functional import emit_functional
from .emit_functions import YAML, Kernels, declaration, emit_entries, emit_numbers
from .emit_inplace_or_view import emit_inplace_or_view
from .emit_layouts import emit_layouts
from .emit_nodes import emit_nodes
from .emit_schema import emit_infos
from .emit_variable_type import emit_variable_type
from .text import banner

_HEAD = """#include "Primitives.h"
#include "autocast/autocast.h"
#include "autograd/each.h"
#include "autograd/formula.h"
#include "autograd/node.h"
#include "batched/lift.h"
#include "batched/rule.h"
#include "core/scalar_math.h"
#include "dispatch/boxing.h"
#include "dispatch/entry.h"
#include "dispatch/generated.h"
#include "forward/rule.h"
#include "functionalize/rule.h"
#include "iter/iter.h"
#include "prim/devices.h"
#include "native/common/meta.h"
#include "native/layout/layout.h"
#include "native/pointwise/pointwise.h"
#include "native/pointwise/pointwise_checks.h"
#include "native/reduction/reduction.h"
#include "native/common/rounding.h"
#include "native/common/tags.h"
#include "native/common/variants.h"

"""


def _called(catalog: Catalog, body: str) -> str:
    """Declarations of the operators that the body names, and of the family's own."""
    names = {*re.findall(r"\btp_(\w+)\(", body), *(op.c for op in catalog)}
    return "".join(declaration(op) for op in catalog.by_name.values() if op.c in names)


def _tables(catalog: Catalog) -> str:
    """Declarations of the tables that the pointwise and reduction drivers work from."""
    pointwise = (f"extern tp_pointwise tp_pointwise_{op.c_name};\n" for op in catalog.pointwise())
    reductions = (f"extern tp_reduction_op tp_reduction_{op.c_name};\n" for op in catalog.reductions())
    return "".join([*pointwise, *reductions])


def emit_family(name: str, catalog: Catalog, files: Mapping[str, str]) -> str:
    """`files`: which of the tree defines a C function."""
    kernels = Kernels(files)
    batching, forward, functional = emit_rules(catalog), emit_forward(catalog), emit_functional(catalog)
    sections = {
        "the operators and their types": emit_numbers(catalog),
        "calls": emit_entries(catalog),
        "how they are batched": batching.text(),
        "their tangents": forward.text(),
        "what they are without writes": functional.text(),
        "what the operators are": emit_infos(catalog, batching, forward, functional),
        "factories: the device argument picks the backend": emit_backend_select(catalog, kernels),
        "the batched layer": emit_batched(catalog, kernels),
        "operators of layouts": emit_layouts(catalog, kernels),
        "the autocast layer": emit_autocast(catalog, kernels),
        "backward nodes": emit_nodes(catalog),
        "the autograd layer": emit_variable_type(catalog, kernels),
        "versions of written tensors, and what views view": emit_inplace_or_view(catalog, kernels),
        "kernels": emit_kernels(catalog, kernels),
    }
    body = "".join(f"/* ---- {title} ---- */\n\n{text}\n" for title, text in sections.items() if text)
    return "".join(
        [
            banner(
                "emit_family.py", f"{YAML}{name}.yaml, yaml/derivatives/ and autocast.yaml", f"The operators of {name}."
            ),
            _HEAD,
            "/* ---- what is called here ---- */\n\n",
            _called(catalog, body),
            "".join(native_declarations(catalog).values()),
            _tables(catalog) + "\n",
            body,
            "/* ---- registration ---- */\n\n",
            kernels.text(),
            f"const tp_family tp_family_{name} = {{ops, infos, OP_COUNT, kernels, TP_COUNTOF(kernels)}};\n",
        ]
    )


def emit_families(catalog: Catalog) -> str:
    names = list(catalog.families())
    return "".join(
        [
            banner("emit_family.py", YAML, "The families of operators, as they are registered."),
            '#include "dispatch/generated.h"\n\n',
            *(f"extern const tp_family tp_family_{name};\n" for name in names),
            "\nconst tp_family *const tp_families[] = {\n",
            *(f"    &tp_family_{name},\n" for name in names),
            "    NULL,\n};\n",
        ]
    )
