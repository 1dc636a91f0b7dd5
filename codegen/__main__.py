"""`python -m codegen --yaml yaml --out build/gen`: the YAML in, C files and Python artefacts out.

A file is written only if its text changed, so that the build recompiles only what it must. `--file` writes one of them:
`python -m tensorpy.codegen --file RegistrationDeclarations.h` makes that header of the YAML that is installed. `--only`
makes a small library of a build's objects, for C programs that run saved plans (only.py).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from . import beside, emit_opencl_sources, emit_reduction_cpu, emit_seen, scalar_program
from .autograd_nodes import check_gradients_given
from .by_hand import load_by_hand
from .catalog import Catalog, build_catalog, every_formula
from .check import load_registry
from .decompositions import check_decompositions
from .emit_backend import emit_native_functions_h
from .emit_declarations import emit_reference, emit_registration_declarations, emit_registration_minimal
from .emit_family import emit_families, emit_family
from .emit_functions import emit_functions_h
from .emit_help import emit_help
from .emit_library import generate_library
from .emit_pointwise_cpu import emit as emit_pointwise
from .emit_pointwise_cpu import emit_table
from .emit_primitives import emit_primitive_kernels_h, emit_primitives_c, emit_primitives_h
from .emit_python import (
    emit_python_calls,
    emit_python_family,
    emit_python_lists,
    emit_return_types,
    emit_return_types_h,
    python_families,
)
from .emit_schema import emit_signatures
from .emit_stubs import MODULES, emit_module_stub, emit_return_types_stub, emit_stubs
from .errors import YamlError, YamlErrors
from .functional import check_inverses
from .library import load_library
from .only import OnlyError, write_only
from .out_dtype import check_out_dtypes
from .sources import check_library_sources, check_sources, files_of_kernels, functions_to_write

POINTWISE_SHARDS = 24
ABOVE = Path(__file__).resolve().parent.parent  # the tree, or the installed package
CSRC = ABOVE / "csrc"  # not there where only the generator is installed

EMITTERS: Mapping[str, Callable[[Catalog], str]] = {
    "Functions.h": emit_functions_h,
    "NativeFunctions.h": emit_native_functions_h,
    "Signatures.c": emit_signatures,
    "Families.c": emit_families,
    "python/Calls.c": emit_python_calls,
    "python/Lists.c": emit_python_lists,
    "python/ReturnTypes.c": emit_return_types,
    "return_types.h": emit_return_types_h,
    "RegistrationDeclarations.h": emit_registration_declarations,
    "RegistrationMinimal.h": emit_registration_minimal,
    "reference.md": emit_reference,
    "_C.help": emit_help,
    "_C.pyi": emit_stubs,
    "return_types.pyi": emit_return_types_stub,
}


def load_catalog(folder: Path) -> Catalog:
    registry = load_registry(folder)
    catalog = build_catalog(
        registry.functions, registry.derivatives, registry.autocast, registry.tags, registry.primitives
    )
    by_hand = folder / "by_hand.yaml"
    if by_hand.exists():
        catalog = replace(catalog, by_hand=load_by_hand(by_hand))
    check_gradients_given(catalog)
    with every_formula(catalog) as checked:
        check_decompositions(checked)
    check_out_dtypes(catalog)
    check_inverses(catalog)
    return catalog


def generate(catalog: Catalog, *, fork: bool = False) -> dict[str, str]:
    """File name -> text. `fork`: a second process writes a half of it, where there is a core for it."""
    with every_formula(catalog) as checked:
        if not (fork and beside.can_fork()):
            return _others(checked) | _families(checked)
        families = beside.begin(partial(_checked_families, catalog))
        return _others(checked) | families()


def _checked_families(catalog: Catalog) -> dict[str, str]:
    """Mistakes are raised: the list of the process that waits is another's."""
    with every_formula(catalog) as checked:
        return _families(checked)


def _families(catalog: Catalog) -> dict[str, str]:
    """What each family's operators are compiled as; half of the work."""
    written_in = files_of_kernels(catalog, CSRC)
    return {f"ops/{name}.c": emit_family(name, family, written_in) for name, family in catalog.families().items()}


def _others(catalog: Catalog) -> dict[str, str]:
    written_in = files_of_kernels(catalog, CSRC)
    files = {name: emitter(catalog) for name, emitter in EMITTERS.items()}
    files |= {f"{module}.pyi": emit_module_stub(catalog, module) for module in MODULES}
    functions = python_families(catalog)
    files |= {f"python/of_{name}.c": emit_python_family(name, functions[name]) for name in catalog.families()}
    files["Primitives.h"] = emit_primitives_h(catalog.primitives)
    files["PrimitiveKernels.h"] = emit_primitive_kernels_h(catalog.primitives)
    files["Primitives.c"] = emit_primitives_c(catalog.primitives, written_in)
    pointwise = catalog.pointwise()
    files |= {f"cpu/{name}": text for name, text in emit_pointwise(pointwise, POINTWISE_SHARDS).items()}
    files |= emit_table(pointwise)
    files |= scalar_program.emit()
    if CSRC.is_dir():
        files |= emit_opencl_sources.emit(CSRC)
        files |= emit_seen.emit(catalog, CSRC)
    reductions = catalog.reductions()
    files |= {f"cpu/{name}": text for name, text in emit_reduction_cpu.emit(reductions).items()}
    files |= emit_reduction_cpu.emit_table(reductions)
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


def write_file(name: str, yaml: Path, out: Path) -> int:
    """One of the files that need nothing but the YAML, into a folder."""
    with every_formula(load_catalog(yaml)) as checked:
        text = EMITTERS[name](checked)
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text(text)
    print(f"codegen: wrote {out / name}")
    return 0


def write_library(namespace: str, yaml: Path, out: Path, sources: Sequence[Path] = ()) -> int:
    """`sources` are the project's own, in which what the YAML leaves to C is looked for."""
    catalog = load_library(yaml, namespace)
    files = generate_library(catalog, namespace)
    changed = write_changed(out, files)
    print(f"codegen: {len(files)} files for {namespace}, {changed} changed")
    if sources:
        check_library_sources(catalog, namespace, sources, [out])
    elif changed and (left := functions_to_write(catalog, namespace)):
        print(f"codegen: the project's own C has to have what {namespace}_kernels.h declares, which --sources checks:")
        print(*(f"    {name}" for name in left), sep="\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="codegen", description=__doc__)
    parser.add_argument("--library", metavar="NAMESPACE", help="the YAML is a project's own: a library from outside")
    parser.add_argument(
        "--sources", metavar="FILE", type=Path, nargs="+", default=[], help="with --library: the project's own C files"
    )
    parser.add_argument("--file", metavar="NAME", choices=EMITTERS, help=f"only this one: {', '.join(EMITTERS)}")
    parser.add_argument(
        "--only", metavar="PLAN", type=Path, nargs="+", help="libtensorpy_only.a, with what these saved plans call"
    )
    parser.add_argument("--device", choices=("cpu", "opencl"), default="cpu", help="with --only: what runs the plans")
    parser.add_argument("--build", type=Path, default=Path("build/release"), help="with --only: whose objects it takes")
    parser.add_argument("--yaml", type=Path, help="folder of native_functions/ and the others")
    parser.add_argument("--out", type=Path, help="folder to write to; build/gen, or with --file the current one")
    args = parser.parse_args()
    out = args.out or Path("." if args.file else "build/only" if args.only else "build/gen")
    yaml = args.yaml or (Path("yaml") if args.library else ABOVE / "yaml")
    try:
        if args.file is not None:
            return write_file(args.file, yaml, out)
        if args.library is not None:
            return write_library(args.library, yaml, out, args.sources)
        catalog = load_catalog(yaml)
        if args.only is not None:
            print(f"codegen: wrote {write_only(args.only, catalog, CSRC, args.build, out, args.device)}")
            return 0
        if CSRC.is_dir():
            check_sources(catalog, CSRC)
        files = generate(catalog, fork=True)
    except (YamlError, YamlErrors, OnlyError) as error:
        print(error, file=sys.stderr)
        return 1
    changed = write_changed(out, files)
    print(f"codegen: {len(files)} files, {changed} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
