"""The checks between entries, and of an entry against what its keys mean. Every check reports and goes on.

Invariant: PyTorch's own native_functions.yaml passes, but for what KNOWN_EXCEPTIONS in tests/codegen/test_loader.py
lists. A check that PyTorch's file cannot pass holds for tensorpy's own keys only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .autogen import expand_autogen
from .errors import ErrorCollector, Location, suggest
from .loader import load_autocast, load_derivatives, load_native_functions, load_tags, sources_of
from .model import (
    TENSOR,
    Argument,
    AutocastEntry,
    DerivativeEntry,
    Formula,
    ListType,
    NativeFunction,
    NativeFunctionsGroup,
    OptionalType,
    Tag,
    Type,
    base_of,
    group_native_functions,
    is_tensor_like,
)
from .primitives import Primitive, check_needs, load_primitives
from .support import check_supported, check_supported_derivatives

_BACKENDS = "CPU OpenCL Meta CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3".split()
_LAYOUTS = ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Mkldnn")
_COMPOSITE = (
    "CompositeImplicitAutograd",
    "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
_LAYERS = (
    "Autograd AutogradOther AutogradFunctionality AutogradNestedTensor Autocast ADInplaceOrView BackendSelect Tracer "
    "Profiler Batched BatchedNestedTensor FuncTorchBatched FuncTorchBatchedDecomposition FuncTorchVmapMode VmapMode "
    "FuncTorchGradWrapper FuncTorchDynamicLayerBackMode FuncTorchDynamicLayerFrontMode Functionalize Conjugate "
    "Negative ZeroTensor Named Python PythonDispatcher PythonTLSSnapshot PreDispatch FPGA Vulkan Metal Quantized "
    "Sparse SparseCsr NestedTensor Mkldnn Dense CustomRNGKeyId"
).split()

DISPATCH_KEYS = frozenset(
    [layout + backend for layout in _LAYOUTS for backend in _BACKENDS]
    + [layer + backend for layer in ("Autograd", "Autocast") for backend in _BACKENDS]
    + list(_COMPOSITE)
    + _LAYERS
)
AUTOGRAD_KEYS = frozenset(key for key in DISPATCH_KEYS if key.startswith("Autograd"))

# Backends for which tensorpy makes kernels from `pointwise` and `reduction`.
_GENERATED = ("CPU", "OpenCL", "Meta", "Dense")
# A composite kernel is for every backend; these are the keys it answers for.
_COMPOSITE_ROLE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")


@dataclass(frozen=True, slots=True)
class Registry:
    """All that the YAML says, checked: what every emitter works from. `functions` holds the derived variants too."""

    functions: tuple[NativeFunction, ...]
    by_name: Mapping[str, NativeFunction]
    groups: tuple[NativeFunctionsGroup, ...]
    tags: Mapping[str, Tag]
    derivatives: tuple[DerivativeEntry, ...]
    autocast: tuple[AutocastEntry, ...]
    primitives: tuple[Primitive, ...] = ()


def load_registry(folder: Path) -> Registry:
    """Read a yaml/ folder; YamlErrors with every mistake of the first layer that has one: what the files say, what the
    operators are, what refers to them.

    Operators and derivatives stand in one file each, as PyTorch has them, or in a folder with a file per family. Only
    the tags and the operators must be there.
    """
    errors = ErrorCollector()
    tags = load_tags(folder / "tags.yaml", errors)
    whole = folder / "native_functions.yaml"
    entries = load_native_functions(sources_of(folder, "native_functions") or whole, tags, errors)
    primitives: tuple[Primitive, ...] = ()
    if (folder / "primitives.yaml").exists():
        primitives = load_primitives(folder / "primitives.yaml", errors)
    errors.raise_if_any()
    functions = expand_autogen(entries, errors)
    check_native_functions(functions, errors)
    check_supported(functions, errors)
    for function in entries:
        check_needs(function.prims, (p.name for p in primitives), function.at("prims"), errors)
    errors.raise_if_any()
    derivatives: list[DerivativeEntry] = []
    autocast: list[AutocastEntry] = []
    if files := sources_of(folder, "derivatives"):
        derivatives = load_derivatives(files, functions, errors)
        check_derivatives(derivatives, errors)
        check_supported_derivatives(derivatives, errors)
    if (folder / "autocast.yaml").exists():
        autocast = load_autocast(folder / "autocast.yaml", functions, errors)
        check_autocast(autocast, errors)
    errors.raise_if_any()
    by_name = {str(f.name): f for f in functions}
    groups = group_native_functions(functions)
    return Registry(tuple(functions), by_name, tuple(groups), tags, tuple(derivatives), tuple(autocast), primitives)


def check_native_functions(functions: Iterable[NativeFunction], errors: ErrorCollector) -> None:
    """`functions` holds the derived variants too, as expand_autogen gives them."""
    listed = list(functions)
    by_name = _check_names(listed, errors)
    seeded = {f.name.unqualified for f in listed if _generator(f) is not None}
    for function in listed:
        _check_schema(function, errors)
        _check_kind(function, errors)
        if function.autogenerated:
            continue
        _check_dispatch(function, errors)
        _check_structured(function, by_name, errors)
        _check_tags(function, seeded, errors)
        _check_python(function, errors)
        _check_roles(function, errors)
    _check_groups(listed, errors)


def _check_names(functions: list[NativeFunction], errors: ErrorCollector) -> dict[str, NativeFunction]:
    by_name: dict[str, NativeFunction] = {}
    by_c_name: dict[str, NativeFunction] = {}
    for function in functions:
        name = str(function.name)
        first = by_name.setdefault(name, function)
        if first is not function:
            if function.autogenerated and not first.autogenerated:
                where, other = function.at("autogen"), first.at("func")
            elif first.autogenerated and not function.autogenerated:
                where, other = first.at("autogen"), function.at("func")
            else:
                where, other = function.at("autogen" if function.autogenerated else "func"), first.at("func")
            fix = (
                "take it out of 'autogen'"
                if first.autogenerated or function.autogenerated
                else "give one an overload name"
            )
            errors.add(where, f"the operator {name} is declared twice; also in {other.seen_from(where)}", fix)
            continue
        same = by_c_name.setdefault(function.name.c_name, function)
        if same is not function:
            what = f"{name} and {same.name} get the same C name, {function.name.c_name}"
            errors.add(function.at("func"), what, "give one another overload name")
    return by_name


_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf)")
_INTEGER = re.compile(r"[+-]?\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")

# Names that stand for an int in PyTorch's schemas.
_INT_NAMES = ("Mean", "Sum")
_SCALAR_TYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex32 complex64 "
    "complex128 half float double byte char short int long"
).split()
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_LAYOUT_NAMES = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged")


def _is_int(text: str) -> bool:
    """Of 64 bits, as C takes it."""
    return _INTEGER.fullmatch(text) is not None and -(2**63) < int(text) < 2**63


def _default_fits(type_: Type, default: str) -> bool:
    if isinstance(type_, OptionalType):
        return default == "None" or _default_fits(type_.elem, default)
    if isinstance(type_, ListType):
        if default.startswith("["):
            inside = default[1:-1].strip()
            items = [item.strip() for item in inside.split(",")] if inside else []
            # PyTorch writes int[1] for "one or several", and [] for "not given".
            if type_.size not in (None, 1) and items and len(items) != type_.size:
                return False
            return all(_default_fits(type_.elem, item) for item in items)
        # One element stands for all of a list of fixed length.
        return type_.size is not None and _default_fits(type_.elem, default)
    match type_.name:
        case "int" | "SymInt":
            return _is_int(default) or default in _INT_NAMES
        case "DeviceIndex":
            return _is_int(default)
        case "float" | "SymFloat":
            return _NUMBER.fullmatch(default) is not None
        case "Scalar":
            if _INTEGER.fullmatch(default):
                return _is_int(default)
            return _NUMBER.fullmatch(default) is not None or default in ("True", "False")
        case "bool" | "SymBool":
            return default in ("True", "False")
        case "str":
            return default[0] in "\"'"
        case "ScalarType":
            return default in _SCALAR_TYPES
        case "MemoryFormat":
            return default in _MEMORY_FORMATS
        case "Layout":
            return default in _LAYOUT_NAMES
        case "Device":
            return default[0] in "\"'" or (_NAME.fullmatch(default) is not None and default != "None")
        case _:
            return False


def _default_example(type_: Type) -> str:
    if isinstance(type_, OptionalType):
        return "None"
    if isinstance(type_, ListType):
        item = _default_example(type_.elem)
        return "[]" if type_.size is None else f"{item} or [{','.join([item] * type_.size)}]"
    examples = {
        "float": "0.0",
        "SymFloat": "0.0",
        "Scalar": "1",
        "bool": "False",
        "SymBool": "False",
        "str": "'text'",
        "ScalarType": "long",
        "MemoryFormat": "contiguous_format",
        "Layout": "strided",
        "Device": "'cpu'",
    } | dict.fromkeys(("int", "SymInt", "DeviceIndex"), "0")
    return examples.get(type_.name, "")


def _where(function: NativeFunction) -> Location:
    return function.at("autogen" if function.autogenerated else "func")


def _check_schema(function: NativeFunction, errors: ErrorCollector) -> None:
    func = function.func
    where = _where(function)
    defaulted: Argument | None = None
    for argument in func.positional:
        if argument.default is not None:
            defaulted = argument
        elif defaulted is not None:
            what = f"{func.name}: argument '{argument.name}' has no default, but '{defaulted.name}' before it has one"
            errors.add(where, what, f"give '{argument.name}' a default, or move it behind '*' or to the front")
            break
    for argument in func.positional + func.kwarg_only:
        if argument.default is not None and not _default_fits(argument.type, argument.default):
            example = _default_example(argument.type)
            fix = f"write one such as '{argument.name}={example}'" if example else "take out the default"
            what = f"{func.name}: the default {argument.default} does not fit '{argument.type} {argument.name}'"
            errors.add(where, what, fix)
    if function.is_method:
        self_ = next((a for a in func.positional if a.name == "self"), None)
        at = function.at("variants")
        if self_ is None:
            what = f"{func.name} is a method, but has no positional argument 'self'"
            errors.add(at, what, "name the tensor whose method it is 'self', or write 'variants: function'")
        elif self_.type != TENSOR:
            what = f"{func.name} is a method, but its self is '{self_.type}'"
            errors.add(at, what, "make it 'Tensor self', or write 'variants: function'")


def _check_kind(function: NativeFunction, errors: ErrorCollector) -> None:
    func = function.func
    where = _where(function)
    if func.name.inplace:
        first = func.positional[0] if func.positional else None
        if first is None or first.name != "self" or not is_tensor_like(first.type):
            what = f"{func.name} is in-place by its name, but its first argument is not self"
            errors.add(where, what, "write 'Tensor(a!) self' first, or drop the underscore at the end of the name")
            return
        if not first.is_write:
            what = f"{func.name} is in-place by its name, but does not write self"
            errors.add(where, what, "write 'Tensor(a!) self', or drop the underscore at the end of the name")
            return
        written = first.annotation
        returned = [r for r in func.returns if r.type == TENSOR]
        if first.type == TENSOR and not any(r.annotation == written for r in returned):
            what = f"{func.name} is in-place, but does not return self"
            errors.add(where, what, f"end with '-> Tensor({written})'")
    if func.out and func.returns:
        outs = [a.annotation for a in func.out if not a.name.startswith("_scratch_")]
        returns = [r.annotation for r in func.returns]
        if returns != outs:
            fix = ", ".join(f"{a.type}".replace("Tensor", f"Tensor({a.annotation})", 1) for a in func.out)
            what = f"{func.name}: the returns do not match the out arguments"
            errors.add(where, what, f"end with '-> {fix}'" if len(outs) == 1 else f"end with '-> ({fix})'")
    if func.name.overload in ("out",) and func.kind == "functional":
        what = f"{func.name} is an out= variant by its name, but has no out argument"
        errors.add(where, what, "add '*, Tensor(a!) out' at the end of the arguments, or rename the overload")
    if func.kind == "functional":
        for result in func.returns:
            if result.is_write:
                what = f"{func.name} returns a written tensor, but writes no argument"
                errors.add(
                    where, what, "mark the argument that it writes, as 'Tensor(a!) self', or the return as 'Tensor'"
                )
    known = {s for a in func.arguments if a.annotation for s in (*a.annotation.before, *a.annotation.after)}
    for result in func.returns:
        if result.annotation is not None and not known.issuperset(result.annotation.before):
            what = f"{func.name}: the return aliases ({result.annotation}), which no argument has"
            errors.add(where, what, "give the argument that it is a view of the same annotation")


def _check_dispatch(function: NativeFunction, errors: ErrorCollector) -> None:
    keys = {kernel.key for kernel in function.dispatch}
    for kernel in function.dispatch:
        if kernel.key not in DISPATCH_KEYS:
            fix = suggest(kernel.key, sorted(DISPATCH_KEYS), "use a backend (CPU, OpenCL, Meta) or a Composite* key")
            errors.add(kernel.location, f"unknown dispatch key '{kernel.key}'", fix)
    where = function.at("dispatch")
    if keys.issuperset(_COMPOSITE_ROLE):
        what = f"{function.name} is CompositeImplicitAutograd and CompositeExplicitAutograd"
        errors.add(
            where, what, "keep Implicit if autograd comes from the operators it calls, Explicit if it has a formula"
        )
    elif "CompositeImplicitAutograd" in keys:
        dense = sorted(keys.intersection(_BACKENDS))
        explicit = keys.intersection(AUTOGRAD_KEYS)
        if dense and not explicit:
            what = f"{function.name} is CompositeImplicitAutograd and has a kernel of its own for {', '.join(dense)}"
            fix = "write CompositeExplicitAutograd and a derivative, or say how autograd goes by an Autograd key"
            errors.add(where, what, fix)


def _check_structured(function: NativeFunction, by_name: Mapping[str, NativeFunction], errors: ErrorCollector) -> None:
    if function.structured and function.kind not in ("out", "scratch"):
        what = f"{function.name} is structured, but has no out argument"
        errors.add(
            function.at("structured"), what, "put 'structured: True' on the out= variant; here, 'structured_delegate'"
        )
    if function.structured_inherits is not None and not function.structured:
        what = f"{function.name} has 'structured_inherits' without 'structured: True'"
        errors.add(function.at("structured_inherits"), what, "add 'structured: True', or take it out")
    if function.precomputed and not function.structured:
        what = f"{function.name} has 'precomputed' without 'structured: True'"
        errors.add(function.at("precomputed"), what, "add 'structured: True', or take it out")
    if function.structured_delegate is None:
        return
    where = function.at("structured_delegate")
    if function.structured:
        errors.add(where, f"{function.name} is structured and a delegate", "keep one of the two keys")
    target = by_name.get(str(function.structured_delegate))
    if target is None:
        fix = suggest(str(function.structured_delegate), by_name, "declare the out= variant first")
        errors.add(where, f"{function.name} delegates to {function.structured_delegate}, which is not declared", fix)
        return
    if not target.structured:
        what = f"{function.name} delegates to {target.name}, which is not structured"
        errors.add(where, what, f"add 'structured: True' to {target.name}")
    if target.func.signature() != function.func.signature():
        what = f"{function.name} delegates to {target.name}, whose arguments differ"
        errors.add(where, what, f"make both '{function.func.signature()}', besides out arguments")
    own = {kernel.key for kernel in target.dispatch}
    for kernel in function.dispatch:
        # A key that the structured kernel does not serve (a layout, mostly) is legitimate: PyTorch's abs has SparseCPU.
        if kernel.key in _BACKENDS or (kernel.key in own and kernel.key in _COMPOSITE):
            what = f"{function.name} delegates to {target.name} and has a kernel of its own for {kernel.key}"
            errors.add(kernel.location, what, f"take out this key: the kernel of {target.name} serves it")


def _generator(function: NativeFunction) -> Argument | None:
    return next((a for a in function.func.arguments if str(base_of(a.type)) == "Generator"), None)


def _check_tags(function: NativeFunction, seeded: set[str], errors: ErrorCollector) -> None:
    where = function.at("tags")
    if "core" in function.tags and function.kind in ("inplace", "out", "scratch"):
        what = f"{function.name} is {function.kind} and tagged 'core'"
        errors.add(where, what, "tag the functional variant: core operators write nothing")
    if "inplace_view" in function.tags and function.kind != "inplace":
        what = f"{function.name} is {function.kind} and tagged 'inplace_view'"
        errors.add(where, what, "take the tag out: only an in-place operator changes its self's view")
    tagged = "nondeterministic_seeded" in function.tags
    composite = not function.dispatch or any(kernel.key in _COMPOSITE for kernel in function.dispatch)
    # What drops values draws from the default generator, by PyTorch's schemas; a composite passes one on, or not.
    drops = "dropout" in function.name.base or any("dropout" in a.name for a in function.func.arguments)
    has_generator = _generator(function) is not None or function.name.unqualified in seeded
    if tagged and not (has_generator or composite or drops):
        what = f"{function.name} is tagged 'nondeterministic_seeded', but takes no Generator"
        errors.add(where, what, "add 'Generator? generator=None' behind '*', or take the tag out")
    if not tagged and _generator(function) is not None:
        what = f"{function.name} takes a Generator, but is not tagged 'nondeterministic_seeded'"
        errors.add(function.at("tags"), what, "add the tag 'nondeterministic_seeded'")


def _check_python(function: NativeFunction, errors: ErrorCollector) -> None:
    names = [a.name for a in function.func.arguments]
    for name in function.cpp_no_default_args:
        if name not in names:
            what = f"'cpp_no_default_args' names '{name}', which is no argument of {function.name}"
            errors.add(
                function.at("cpp_no_default_args"), what, suggest(name, names, f"name one of {', '.join(names)}")
            )
    if function.inplace_variants is not None and not any(
        item.split("(")[0].split(".")[0].endswith("_") for item in function.autogen
    ):
        what = f"{function.name} has 'inplace_variants', but 'autogen' derives no in-place variant"
        errors.add(function.at("inplace_variants"), what, f"add '{function.name.base}_' to 'autogen', or take it out")


def _check_roles(function: NativeFunction, errors: ErrorCollector) -> None:
    roles = [key for key in ("pointwise", "reduction", "composite") if getattr(function, key) is not None]
    if len(roles) > 1:
        what = f"{function.name} has both '{roles[0]}' and '{roles[1]}'"
        errors.add(function.at(roles[1]), what, "keep one: each says how the operator is computed")
    for role in roles[:1]:
        clash = _COMPOSITE_ROLE if role == "composite" else (*_GENERATED, *_COMPOSITE_ROLE)
        for kernel in function.dispatch:
            if kernel.key in clash:
                what = f"{function.name} has '{role}' and a kernel {kernel.name} for {kernel.key}"
                errors.add(kernel.location, what, f"take out this key, or '{role}', which makes that kernel")
        if function.structured_delegate is not None:
            what = f"{function.name} has '{role}' and delegates to {function.structured_delegate}"
            errors.add(function.at(role), what, f"put '{role}' on the operator it delegates to, or drop the delegate")
    if function.rounding is not None and (roles[:1] in (["pointwise"], ["reduction"]) or function.structured):
        what = f"{function.name} has 'rounding', and computes in one step"
        errors.add(function.at("rounding"), what, "take it out: 16-bit floats are computed in float32 there")
    for key in function.declines:
        if key not in (kernel.key for kernel in function.dispatch):
            what = f"{function.name} has 'declines: [{key}]', and no kernel for {key}"
            errors.add(function.at("declines"), what, "name a key of its 'dispatch'")
    if function.composite is not None:
        try:
            ast.parse(function.composite)
        except SyntaxError as error:
            what = f"the formula of {function.name} is not Python: {error.msg}"
            errors.add(function.at("composite"), what, "write a Python expression over operators and arguments")


def _check_groups(functions: list[NativeFunction], errors: ErrorCollector) -> None:
    seen: dict[tuple[str, str], NativeFunction] = {}
    for function in functions:
        first = seen.setdefault((function.func.signature(), function.kind), function)
        if first.name != function.name:
            what = f"{function.name} takes what {first.name} takes, and is {first.kind} too"
            errors.add(_where(function), what, "take one out, or change its arguments: no call can tell them apart")
    for group in group_native_functions(functions):
        functional = group.functional
        if functional is None:
            continue
        for variant in (group.inplace, group.out):
            if variant is None or variant.autogenerated:
                continue
            for mine, theirs in zip(variant.func.positional, functional.func.positional, strict=False):
                if mine.default is not None and theirs.default is not None and mine.default != theirs.default:
                    what = (
                        f"{variant.name}: '{mine.name}' has the default {mine.default}, in {functional.name} it has "
                        f"{theirs.default}"
                    )
                    errors.add(variant.at("func"), what, f"write '{mine.name}={theirs.default}' in both")
    _check_strays(functions, errors)


def _check_strays(functions: list[NativeFunction], errors: ErrorCollector) -> None:
    """An in-place or out= operator of which there is a functional one of the same name and overload, but with other
    arguments."""
    functional = {str(f.name): f for f in functions if f.kind == "functional"}

    def types(function: NativeFunction) -> list[str]:
        func = function.func
        return sorted(str(a.type) for a in (*func.positional, *func.without_tensor_options()))

    for function in functions:
        if function.kind == "inplace" and not function.autogenerated:
            name = str(function.name).replace(function.name.unqualified, function.name.base, 1)
        elif function.kind == "out" and function.name.overload == "out":
            name = function.name.unqualified
        elif function.kind == "out" and function.name.overload.endswith("_out"):
            name = str(function.name).removesuffix("_out")
        else:
            continue
        other = functional.get(name)
        # Names and order may differ: PyTorch's dropout takes `input`, its dropout_ `self`.
        if other is None or types(other) == types(function):
            continue
        if any(f.func.signature() == function.func.signature() for f in functional.values()):
            continue
        what = f"{function.name} has other arguments than {other.name}: {function.func.signature()}"
        errors.add(_where(function), what, f"make them those of '{other.func.signature()}'")


def check_derivatives(entries: Iterable[DerivativeEntry], errors: ErrorCollector) -> None:
    seen: dict[str, DerivativeEntry] = {}
    for entry in entries:
        name = str(entry.name.name)
        first = seen.setdefault(name, entry)
        if first is not entry:
            what = f"the derivative of {name} is given twice; first in {first.location.seen_from(entry.location)}"
            errors.add(entry.location, what, "join the two entries; what differs by key goes below 'dispatch'")
        if entry.name != entry.function.func:
            what = f"the schema of {name} is not the one in native_functions/: {entry.name}"
            errors.add(entry.location, what, f"write '{entry.function.func}'")
        if entry.function.kind in ("out", "scratch"):
            what = f"a derivative of the out= operator {name}"
            errors.add(entry.location, what, "take it out: out= variants are not differentiable")
        marks = entry.output_differentiability
        if marks is not None and len(marks) != len(entry.function.func.returns):
            count = len(entry.function.func.returns)
            what = f"'output_differentiability' of {name} has {len(marks)} items for {count} returns"
            errors.add(entry.location, what, "give one True or False for each return")
        if not (entry.formulas or entry.forward or entry.per_key or marks is not None):
            fix = "add 'self: formula', 'self: non_differentiable' or 'output_differentiability'"
            errors.add(entry.location, f"the derivative of {name} is empty", fix)
        _check_formulas(entry, entry.formulas, errors)
        for keyed in entry.per_key:
            if keyed.key not in AUTOGRAD_KEYS:
                fix = suggest(keyed.key, [*sorted(AUTOGRAD_KEYS), "Default"], "use 'Default' or an Autograd key")
                errors.add(entry.location, f"unknown autograd key '{keyed.key}' for {name}", fix)
            _check_formulas(entry, keyed.formulas, errors)


def _check_formulas(entry: DerivativeEntry, formulas: Iterable[Formula], errors: ErrorCollector) -> None:
    func = entry.function.func
    given: set[str] = set()
    tensors = [a.name for a in func.arguments if is_tensor_like(a.type)]
    for formula in formulas:
        for name in formula.names:
            argument = func.argument(name)
            if argument is None:
                fix = suggest(name, tensors, f"name a tensor argument: {', '.join(tensors)}")
                errors.add(formula.location, f"'{name}' is no argument of {func.name}", fix)
            elif not is_tensor_like(argument.type) and not formula.non_differentiable:
                what = f"a gradient for '{argument.type} {name}' of {func.name}, which is no tensor"
                errors.add(formula.location, what, f"take it out; gradients are for {', '.join(tensors) or 'tensors'}")
            elif name in given:
                errors.add(formula.location, f"two gradients for '{name}' of {func.name}", "take out one")
            given.add(name)


def check_autocast(entries: Iterable[AutocastEntry], errors: ErrorCollector) -> None:
    seen: dict[tuple[str | None, str], AutocastEntry] = {}
    for entry in entries:
        name = str(entry.function.name)
        first = seen.setdefault((entry.device, name), entry)
        if first is entry:
            continue
        place = first.location.seen_from(entry.location)
        if first.policy == entry.policy:
            what = f"{name} stands twice in '{entry.policy}'; first in {place}"
        else:
            what = f"{name} is in two policies, '{first.policy}' ({place}) and '{entry.policy}'"
        errors.add(entry.location, what, "keep one; what differs on one device goes below 'devices:'")
