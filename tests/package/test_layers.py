"""The modules of tensorpy/: they form no circle, lower layers know nothing of upper ones, imports stand at the top.

An import counts wherever it stands, inside functions too, and a name of the package (`tensorpy.vmap`) counts as the
module that has it, by the package's table of names. What only a type checker reads does not count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tensorpy._as_torch import names
from tensorpy._package.names import METHODS, MODULES, NAMES

PACKAGE = Path(__file__).resolve().parents[2] / "tensorpy"

# The layers, the lowest first. A name stands for the module and for all below it that have no entry of their own.
LAYERS = {
    "base: need nothing but the C half": """
        __future__ _compile _export _package _utils _utils_internal _prims _prims_common _vendor version torch_version
        types utils._contextlib utils._foreach_utils utils._layers utils._pytree utils.deterministic
        backends._entry_points nn.parameter _library.effects _library.fake_impl _library.function_schema
        _library.tags _library.utils utils.serialization utils._config_module utils._flop_formulas utils._ordered_set
    """,
    "tensors: what tensors and storages can do": """
        _dispatch _tensor _tensor_str _package.settings storage functional fft linalg special signal random quasirandom
        _VF _linalg_utils _lowrank accelerator opencl multiprocessing futures distributed dispatch utils.dlpack
    """,
    "gradients: what is done to functions of tensors": """
        autograd func.custom func.functionalize func.gradients func.jacobians func.axes func.rearrange func.vmap
        _vmap_internals amp cpu cuda distributed.algorithms distributed.reducer distributed.utils profiler sparse
        nested _lobpcg _subclasses.fake_tensor utils.weak utils._python_dispatch
        utils._swap utils.checkpoint utils.hooks
    """,
    "modules: what has parameters": "nn func _functorch overrides masked array_api",
    "programs: what is made of all of these": """
        ao monitor optim distributed.optim distributions fx serialization compiler _dynamo _inductor _logging ops _ops
        _higher_order_ops masked.maskedtensor.unary masked.maskedtensor.binary masked.maskedtensor.reductions
        backends._generated quantization nn.quantized nn.intrinsic nn.qat nn.quantizable utils.data utils.viz
    """,
    "tools: what looks at all of these, or stands for something else": """
        library _library _custom_op _custom_ops _decomp _subclasses distributed._functional_collectives
        _functorch.aot_autograd _functorch.compile_utils _functorch.compilers _functorch.fx_minifier
        _functorch.partitioners _dynamo.backends.common _inductor.decomposition
        _dynamo.test_case distributed.nn distributed.checkpoint distributed._composable distributed.fsdp
        distributed._tensor distributed.tensor distributed.timeline distributed.algorithms._checkpoint export
        _export.verifier testing backends utils jit _jit_internal onnx hub mps mtia xpu __config__ _as_torch run
        cuda.memory cuda.nccl cuda.streams
    """,
}

# What may be imported inside a function beside modules of the package, and why not at the top.
LATE = {
    "numpy setuptools torch": "optional: where it is not installed all else works",
    "fcntl": "not on every system",
    "multiprocessing": "only a process that it started needs it",
    "ast code difflib gzip importlib importlib.metadata inspect json pickle socket traceback": "slow and seldom used",
    "functools warnings weakref": "in what `import tensorpy` or a first `no_grad` loads, where a millisecond counts",
}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(p): p for p in sorted(PACKAGE.rglob("*.py")) if "_as_torch/path/" not in str(p)}


def module_of(dotted: str) -> str | None:
    """The deepest module that a name below `tensorpy` begins with; of the package's own names the one that has it."""
    parts = dotted.split(".")
    if not parts[0] or parts[0] not in FILES:
        return NAMES.get(parts[0])
    return next(m for n in range(len(parts), 0, -1) if (m := ".".join(parts[:n])) in FILES)


@dataclass(frozen=True)
class Edge:
    target: str
    line: int
    inside: str  # the name of the function, "" at the top


class Imports(ast.NodeVisitor):
    """The modules of the package that a module names, and other modules that it imports inside functions."""

    def __init__(self, module: str) -> None:
        path = FILES[module]
        self.module, self.inside = module, ""
        self.folder = module if path.name == "__init__.py" else module.rpartition(".")[0]
        self.known: dict[str, str] = {}  # a name of the module -> what it stands for, below `tensorpy`
        self.edges: set[Edge] = set()
        self.others: set[Edge] = set()
        tree = ast.parse(path.read_text())
        self.visit(tree)  # twice: a function may use what the module imports after it
        self.visit(tree)

    def add(self, dotted: str, node: ast.expr | ast.stmt) -> None:
        target = module_of(dotted)
        if target is not None and target != self.module:
            self.edges.add(Edge(target, node.lineno, self.inside))

    def visit_If(self, node: ast.If) -> None:
        for child in node.orelse if ast.unparse(node.test).endswith("TYPE_CHECKING") else [node.test, *node.body]:
            self.visit(child)
        if not ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.orelse:
                self.visit(child)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before, self.inside = self.inside, self.inside or node.name
        for child in (*node.decorator_list, node.args, *node.body):
            self.visit(child)
        self.inside = before

    def visit_arg(self, node: ast.arg) -> None:
        """Annotations are not run."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first, _, rest = alias.name.partition(".")
            if first != "tensorpy":
                self.others |= {Edge(alias.name, node.lineno, self.inside)} if self.inside else set()
                continue
            self.known[alias.asname or "tensorpy"] = rest if alias.asname else ""
            self.add(rest, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            above = self.folder.split(".")[: len(self.folder.split(".")) - node.level + 1]
            base = ".".join(["tensorpy", *above, *base.split(".")]).rstrip(".")
        first, _, rest = base.partition(".")
        if first != "tensorpy":
            self.others |= {Edge(base, node.lineno, self.inside)} if self.inside else set()
            return
        for alias in node.names:
            dotted = f"{rest}.{alias.name}".lstrip(".")
            self.known[alias.asname or alias.name] = dotted
            self.add(dotted, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path, value = [node.attr], node.value
        while isinstance(value, ast.Attribute):
            path, value = [value.attr, *path], value.value
        if isinstance(value, ast.Name) and value.id in self.known:
            self.add(".".join([self.known[value.id], *path]).lstrip("."), node)
        else:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """`importlib.import_module("tensorpy.x")` is an import as well."""
        for value in node.args:
            if isinstance(value, ast.Constant) and str(value.value).startswith("tensorpy."):
                if "import_module" in ast.unparse(node.func):
                    self.add(value.value.partition(".")[2], node)
        self.generic_visit(node)


@cache
def imports(module: str) -> Imports:
    return Imports(module)


def below(module: str) -> set[str]:
    """The modules that a module names. The package itself stands above all: its names are those of other modules."""
    table = {*NAMES.values(), *METHODS, *(MODULES & FILES.keys())} if module == "" else set()
    return {edge.target for edge in imports(module).edges} | table


def test_the_reader_sees_imports_of_every_kind() -> None:
    assert {"functional", "storage"} <= below("_tensor.methods")  # an attribute of the package; inside a function
    assert "testing.samples.table" in below("testing.samples.families")  # from .table import
    assert "autograd.grad_mode" in below("distributions.exp_family")  # tp.enable_grad, by the table of names
    assert "fx.graph" not in below("fx.node")  # under TYPE_CHECKING
    assert below("") > {"_linalg_utils", "nn", "_tensor"}
    assert sum(len(below(m)) for m in FILES) > 1000


def test_modules_form_no_circle() -> None:
    try:
        TopologicalSorter({module: below(module) for module in FILES}).prepare()
    except CycleError as error:
        pytest.fail("these name each other: " + " -> ".join(error.args[1]))


RANKS = {name: rank for rank, listed in enumerate(LAYERS.values()) for name in listed.split()}


def rank(module: str) -> int:
    parts = module.split(".")
    return next(RANKS[m] for n in range(len(parts), 0, -1) if (m := ".".join(parts[:n])) in RANKS)


def test_layers_name_modules_that_are_there() -> None:
    assert RANKS.keys() <= FILES.keys()
    assert len(RANKS) == sum(len(listed.split()) for listed in LAYERS.values())
    assert [m for m in FILES if m and not any(".".join(m.split(".")[:n]) in RANKS for n in range(1, 9))] == []


def test_lower_layers_do_not_know_upper_ones() -> None:
    wrong = [
        f"tensorpy/{module} names {edge.target} in line {edge.line}"
        for module in FILES
        if module
        for edge in imports(module).edges
        if rank(edge.target) > rank(module)
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_that_c_imports_are_there() -> None:
    """The C half names modules as text."""
    asked = {
        (source.name, module)
        for source in (PACKAGE.parent / "csrc").rglob("*.c")
        for module in re.findall(r'PyImport_ImportModule\("tensorpy\.([\w.]+)"\)', source.read_text())
    }
    assert len(asked) > 8
    assert {(source, module) for source, module in asked if module not in FILES and module != "_C"} == set()


# ---- imports inside functions ----


def folders_of(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts)))


@cache
def loaded_with(module: str) -> frozenset[str]:
    """All modules of the package that are there once a module is imported: what is imported at the top of any."""
    seen: set[str] = set()
    left = [module, "_tensor", "_package.names"]
    while left:
        here = left.pop()
        if here in seen:
            continue
        seen.add(here)
        left += [*folders_of(here), *(edge.target for edge in imports(here).edges if not edge.inside)]
    return frozenset(seen)


def test_imports_inside_functions_put_something_off() -> None:
    """A module that is loaded anyway is imported at the top; `__getattr__` of a module is what puts parts off."""
    wrong = []
    for module in FILES:
        lines = {edge.line for edge in imports(module).edges if not edge.inside}
        text = FILES[module].read_text().splitlines()
        for edge in imports(module).edges:
            is_import = text[edge.line - 1].lstrip().startswith(("from ", "import "))
            if not edge.inside or edge.inside == "__getattr__" or not is_import or edge.line in lines:
                continue
            if edge.target in loaded_with(module):
                wrong.append(f"tensorpy/{module}, line {edge.line}: {edge.target} is loaded with it")
    assert not wrong


def test_other_modules_inside_functions_are_optional_or_slow() -> None:
    late = {name for names in LATE for name in names.split()}
    found = {edge.target: f"{m}:{edge.line}" for m in FILES for edge in imports(m).others}
    assert {n: where for n, where in found.items() if n not in late} == {}
    assert late - found.keys() == set()
    assert all(
        name.partition(".")[0] in sys.stdlib_module_names or "optional" in LATE[names]
        for names in LATE
        for name in names.split()
    )


# ---- the rooms ----

OURS = {"dispatch": "tp.dispatch", "opencl": "tp.opencl", "run": "python -m tensorpy.run"}


def test_the_root_has_pythons_names_of_pytorch_only() -> None:
    """A module of our own lies in the package that it belongs to, but for three that users import."""
    theirs = {m.split(".")[1] for m in names.modules() if m.startswith("torch.")} | set(
        "_VF __config__ __future__ _compile _dynamo _higher_order_ops _linalg_utils _lobpcg _logging _lowrank _ops "
        "_custom_ops _jit_internal _prims _prims_common _tensor_str _utils _utils_internal _vmap_internals".split()
    )
    here = {p.stem for p in PACKAGE.glob("*.py")} - {"__init__"}
    assert here - theirs - {"ops"} == OURS.keys()


def test_each_room_says_what_it_owns() -> None:
    silent = [
        str(p.relative_to(PACKAGE))
        for p in PACKAGE.rglob("__init__.py")
        if "_as_torch/path/" not in str(p) and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not silent
