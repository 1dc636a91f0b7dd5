"""`python -m codegen --yaml yaml --out build/gen`: the YAML in, C files and Python artefacts out.

A file is written only if its text changed, so that the build recompiles only what it must.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from . import emit_opencl_sources, emit_pointwise_opencl, emit_reduction_cpu, emit_reduction_opencl
from .autograd_nodes import check_gradients_given
from .catalog import Catalog, build_catalog
from .check import load_registry
from .decompositions import check_decompositions
from .emit_autocast import emit_autocast
from .emit_backend import (
    emit_backend_select,
    emit_native_functions_h,
    emit_register,
    emit_register_everything,
    registered_keys,
)
from .emit_declarations import emit_reference, emit_registration_declarations, emit_registration_minimal
from .emit_functions import emit_functions_c, emit_functions_h, emit_redispatch_h
from .emit_inplace_or_view import emit_inplace_or_view
from .emit_nodes import emit_nodes_c, emit_nodes_h
from .emit_pointwise_cpu import emit as emit_pointwise
from .emit_pointwise_cpu import emit_table
from .emit_primitives import emit_primitive_kernels_h, emit_primitives_c, emit_primitives_h
from .emit_python import (
    emit_python_functions,
    emit_python_methods,
    emit_python_ops,
    emit_return_types,
    emit_return_types_h,
)
from .emit_schema import emit_boxed_adaptors, emit_boxed_adaptors_h, emit_register_schema
from .emit_stubs import emit_stubs
from .emit_variable_type import emit_variable_type
from .errors import YamlError, YamlErrors

LAYERS = (
    "tp_register_BackendSelect",
    "tp_register_VariableType",
    "tp_register_ADInplaceOrViewType",
    "tp_register_AutocastType",
)
POINTWISE_SHARDS = 8
CSRC = Path(__file__).resolve().parent.parent / "csrc"  # not there where only the generator is installed

EMITTERS: Mapping[str, Callable[[Catalog], str]] = {
    "Functions.h": emit_functions_h,
    "Redispatch.h": emit_redispatch_h,
    "Functions.c": emit_functions_c,
    "RegisterSchema.c": emit_register_schema,
    "BoxedAdaptors.h": emit_boxed_adaptors_h,
    "BoxedAdaptors.c": emit_boxed_adaptors,
    "NativeFunctions.h": emit_native_functions_h,
    "RegisterBackendSelect.c": emit_backend_select,
    "AutogradNodes.h": emit_nodes_h,
    "AutogradNodes.c": emit_nodes_c,
    "VariableType.c": emit_variable_type,
    "ADInplaceOrViewType.c": emit_inplace_or_view,
    "AutocastType.c": emit_autocast,
    "python_functions.c": emit_python_functions,
    "python_methods.c": emit_python_methods,
    "python_ops.c": emit_python_ops,
    "return_types.h": emit_return_types_h,
    "return_types.c": emit_return_types,
    "RegistrationDeclarations.h": emit_registration_declarations,
    "RegistrationMinimal.h": emit_registration_minimal,
    "reference.md": emit_reference,
    "_C.pyi": emit_stubs,
}


def load_catalog(folder: Path) -> Catalog:
    registry = load_registry(folder)
    catalog = build_catalog(
        registry.functions, registry.derivatives, registry.autocast, registry.tags, registry.primitives
    )
    check_gradients_given(catalog)
    check_decompositions(catalog)
    return catalog


def generate(catalog: Catalog) -> dict[str, str]:
    """File name -> text."""
    files = {name: emitter(catalog) for name, emitter in EMITTERS.items()}
    for key in registered_keys(catalog):
        files[f"Register{key}.c"] = emit_register(catalog, key)
    files["RegisterEverything.c"] = emit_register_everything(catalog, LAYERS)
    files["Primitives.h"] = emit_primitives_h(catalog.primitives)
    files["PrimitiveKernels.h"] = emit_primitive_kernels_h(catalog.primitives)
    files["Primitives.c"] = emit_primitives_c(catalog.primitives)
    pointwise = catalog.pointwise()
    files |= {f"cpu/{name}": text for name, text in emit_pointwise(pointwise, POINTWISE_SHARDS).items()}
    files |= emit_table(pointwise)
    files |= emit_pointwise_opencl.emit(pointwise)
    if CSRC.is_dir():
        files |= emit_opencl_sources.emit(CSRC)
    reductions = catalog.reductions()
    files |= {f"cpu/{name}": text for name, text in emit_reduction_cpu.emit(reductions).items()}
    files |= emit_reduction_cpu.emit_table(reductions)
    files |= emit_reduction_opencl.emit(reductions)
    return files


def write_changed(folder: Path, files: Mapping[str, str]) -> int:
    """Writes what differs, removes what is no longer made; returns how many files changed."""
    changed = 0
    for name, text in files.items():
        path = folder / name
        if path.exists() and path.read_text() == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        changed += 1
    for path in folder.rglob("*.[ch]"):
        if str(path.relative_to(folder)) not in files:
            path.unlink()
            changed += 1
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(prog="codegen", description=__doc__)
    parser.add_argument("--yaml", type=Path, default=Path("yaml"), help="folder of native_functions/ and the others")
    parser.add_argument("--out", type=Path, default=Path("build/gen"), help="folder to write to")
    args = parser.parse_args()
    try:
        files = generate(load_catalog(args.yaml))
    except (YamlError, YamlErrors) as error:
        print(error, file=sys.stderr)
        return 1
    changed = write_changed(args.out, files)
    print(f"codegen: {len(files)} files, {changed} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
