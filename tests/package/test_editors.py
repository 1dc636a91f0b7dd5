"""What editors and type checkers know of an installed tensorpy: typical programs pass, typical mistakes are seen.

Both kinds of install are made here as pip leaves them: a copy of the package, and the files of an editable one. Without
mypy and pyright they are skipped; `make lint` installs both and runs them.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import tensorpy as tp

PACKAGE = Path(tp.__file__).parent
ROOT = Path(__file__).resolve().parent.parent.parent
TYPING = ROOT / "tests" / "typing"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TOOLS = ("mypy", "pyright")


# Modules whose functions are asked for their types, and names whose types are not known: they refuse, or are kernels.
TYPED = "nn.functional nn.init nn.utils autograd.functional utils.data sparse masked overrides library func amp"
UNTYPED = {"sparse.solve", "sparse.spsolve", "library.fallthrough_kernel"}


class Wheel:
    """Takes what setuptools would write into an editable wheel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def writestr(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


def install(kind: str, folder: Path) -> None:
    """Into a site-packages."""
    if kind == "copy":
        shutil.copytree(
            PACKAGE, folder / "tensorpy", ignore=shutil.ignore_patterns("*.so*", "__pycache__", "samples", "include")
        )
    else:
        setup = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
        setup["WithPath"](lambda *given: None)(Wheel(folder), [], {})


@pytest.fixture(scope="module", params=["copy", "editable"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has tensorpy and nothing else."""
    folder = tmp_path_factory.mktemp(request.param) / "environment"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    install(request.param, site)
    return folder / "bin" / "python"


Found = list[tuple[str, int, str]]  # (file, line, message)
Checked = Callable[[str], tuple[Found, str]]
# What examples import beside tensorpy is not installed here, so that its types are unknown.
UNKNOWN = ("MissingImports", "MissingModuleSource", "UnknownMemberType", "UnknownVariableType", "UnknownArgumentType")
STRICT = "# pyright: strict\n"
EXAMPLE = f"# pyright: strict, {', '.join(f'report{rule}=false' for rule in UNKNOWN)}\n"


@pytest.fixture(scope="module")
def checked(python: Path) -> Checked:
    """What a checker, in its strict mode, says of all programs: reading the package is most of its time.

    A file says at its end how it is checked, so that its lines are those of the original.
    """
    folder = python.parents[2] / "programs"
    folder.mkdir()
    for name in ("programs.py", "mistakes.py"):
        (folder / name).write_text((TYPING / name).read_text() + STRICT)
    for path in EXAMPLES:
        (folder / path.name).write_text(path.read_text() + EXAMPLE)
    (folder / "names.py").write_text(asked_types())

    @functools.cache
    def check(tool: str) -> tuple[Found, str]:
        pytest.importorskip(tool)
        options = ["--pythonpath", str(python)]
        if tool == "mypy":
            options = ["--config-file", "", "--python-executable", str(python), "--hide-error-context"]
            options += ["--strict", "--ignore-missing-imports"]
            options += sorted(path.name for path in folder.glob("*.py") if path.name != "names.py")
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [sys.executable, "-m", tool, *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=alone)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error: (.*)", done.stdout)
        assert bool(found) == bool(done.returncode), done.stdout
        return [(name, int(line), message) for name, line, message in found], done.stdout

    return check


@pytest.mark.parametrize("tool", TOOLS)
def test_typical_programs_pass_and_typical_mistakes_are_seen(tool: str, checked: Checked) -> None:
    found, _ = checked(tool)
    assert [f for f in found if f[0] == "programs.py"] == []
    seen = {line for name, line, _ in found if name == "mistakes.py"}
    lines = enumerate((TYPING / "mistakes.py").read_text().splitlines(), 1)
    wrong = {number: line.strip() for number, line in lines if "  # wrong: " in line}
    assert len(wrong) > 50
    missed = [wrong[number] for number in sorted(wrong.keys() - seen)]
    assert not missed, f"{tool} says nothing of: {missed}"


@pytest.mark.parametrize("tool", TOOLS)
def test_examples_use_what_is_there(tool: str, checked: Checked) -> None:
    """In the strict modes."""
    names = {path.name for path in EXAMPLES}
    assert [f for f in checked(tool)[0] if f[0] in names] == []


def asked_types() -> str:
    """A program in which each public function is asked for its type."""
    names = {f"tp.{name}" for name in tp.__all__ if callable(getattr(tp, name))}
    for module in TYPED.split():
        found = importlib.import_module(f"tensorpy.{module}")
        public = getattr(found, "__all__", None) or [n for n in dir(found) if not n.startswith("_")]
        own = (n for n in public if (getattr(getattr(found, n), "__module__", "") or "").startswith("tensorpy"))
        names |= {f"tp.{module}.{n}" for n in own if callable(getattr(found, n)) and f"{module}.{n}" not in UNTYPED}
    imports = "".join(f"import tensorpy.{module}\n" for module in TYPED.split())
    asked = "".join(f"reveal_type({name})\n" for name in sorted(names))
    return f"import tensorpy as tp\n{imports}{asked}"


def test_every_function_has_a_type(checked: Checked) -> None:
    """A name that is Any is called with whatever a program gives, and what it gives is Any."""
    _, said = checked("pyright")
    types = dict(re.findall(r'Type of "([^"]+)" is "(.*)"', said))
    assert len(types) > 0.9 * asked_types().count("reveal_type") > 900, said[:2000]
    assert [name for name, type_ in types.items() if type_ in ("Any", "Unknown", "(...) -> Any")] == []


def test_the_types_of_public_names_are_known(python: Path, tmp_path: Path) -> None:
    """Of names that are exported; the rest has bases or aliases that a checker would have to infer."""
    pytest.importorskip("pyright")
    if not list(python.parents[1].glob("lib/python*/site-packages/tensorpy")):
        pytest.skip("pyright looks for the py.typed of an installed package")
    command = [sys.executable, "-m", "pyright", "--verifytypes", "tensorpy", "--ignoreexternal", "--outputjson"]
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PATH": path})
    found = json.loads(done.stdout)["typeCompleteness"]
    assert found["completenessScore"] >= 0.97, found["exportedSymbolCounts"]


def test_the_programs_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = runpy.run_path(str(TYPING / "programs.py"))
    losses = programs["train"]()
    assert len(losses) == 3 and losses[1] < losses[0]
    assert len(programs["named"](tp.randn(4, 4))) == 5
    assert programs["modules_of_operators"](tp.randn(8)).shape == ()
    assert programs["shapes"](tp.rand(4, 3)).dim() == 2
    assert programs["transforms"]().shape == ()
    grad, per_row = programs["derivatives"](lambda x: (x**2).sum(), tp.ones(3, 2))
    assert tp.equal(grad, per_row)
    x = tp.ones(2, requires_grad=True)
    programs["Cube"].apply(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]
    model = tp.nn.Linear(2, 2)
    optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
    programs["half_precision"](model, tp.ones(3, 2), optimizer)
    programs["files"](model, optimizer, tmp_path / "x.pt")
    programs["average"](model, tp.nn.Linear(2, 2))
    programs["hooks"](model, tp.ones(3, 2, requires_grad=True))
    assert len(list(programs["draws"](2))) == 2 and programs["words"](tp.tensor([[1, 2]])).shape == ()
    assert programs["batches"](tp.ones(9, 2), tp.ones(9)) == 8 and isinstance(programs["sums"](tp.randn(2, 3)), float)
