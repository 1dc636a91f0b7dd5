"""The folders of csrc/: which may know which, and that what is called across them goes through the table."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from codegen.__main__ import load_catalog

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"

# The folders that one may include headers of, beside its own and include/: docs/architecture.md.
KERNELS = {"core", "iter", "prim", "dispatch"}
MAY_KNOW = {
    "include": set(),
    "core": set(),
    "iter": {"core"},
    "dispatch": {"core"},
    "prim": {"core", "iter", "dispatch"},
    "native": KERNELS,
    "cpu": KERNELS,
    "opencl": KERNELS,
    "autograd": KERNELS,
    "conjugate": KERNELS,
    # What takes nested tensors apart; rules of what numbers are dimensions; the history of what is written.
    "nested": KERNELS | {"native", "batched", "autograd"},
    "batched": KERNELS | {"autograd"},  # tangents have batches
    "functionalize": KERNELS | {"batched"},  # its values are computed with the batches that were open outside
    "forward": KERNELS | {"autograd", "batched"},
    "autocast": KERNELS | {"autograd"},
    "plan": KERNELS,
    "distributed": {"core"},
    "embed": KERNELS | {"plan", "cpu", "opencl"},
    "outside": {p.name for p in CSRC.iterdir()} - {"python", "distributed", "embed"},
    "python": {p.name for p in CSRC.iterdir()},
}


def sources(folder: str) -> list[Path]:
    return [p for p in sorted((CSRC / folder).rglob("*")) if p.suffix in (".c", ".h", ".cl", ".inc")]


def code_of(path: Path) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)


def test_every_folder_is_here() -> None:
    assert {p.name for p in CSRC.iterdir() if p.is_dir()} == MAY_KNOW.keys()


@pytest.mark.parametrize("folder", MAY_KNOW)
def test_edges_go_one_way(folder: str) -> None:
    wrong = []
    for path in sources(folder):
        known = {"tensorpy", folder} | MAY_KNOW[folder]
        wrong += [
            f"{path.relative_to(ROOT)} includes {name}"
            for name in re.findall(r'#include "([^"]+)"', path.read_text())
            if "/" in name and name.partition("/")[0] not in known
        ]
    assert not wrong


@pytest.mark.parametrize("folder", ["core", "iter", "dispatch", "prim", "native"])
def test_no_name_of_a_backend_above_the_backends(folder: str) -> None:
    found = [(p.name, name) for p in sources(folder) for name in re.findall(r"\btp_(?:cpu|cl)_\w+", code_of(p))]
    assert not found


# The files of native/ that name a type of device, and why: none of them computes another way for it.
NAMES_DEVICES = {
    "copy.c": "copies between the host and a device, at once or in its stream",
    "index.c": "refuses indices that are neither with the tensor nor on the host, as PyTorch",
    "pin.c": "pins the host's memory for a device",
    "pointwise.c": "a tensor of one number on the host goes with any device",
    "shape.c": "tensor_split refuses sections that are not on the host, as PyTorch",
    "upsample.c": "resizes the planes piece by piece where pieces stay in the host's cache",
}


def test_no_operator_chooses_by_device() -> None:
    """What only some backends take, their kernel declines; what has no values, tp_has_values says."""
    found = {p.name for p in sources("native") if re.search(r"\bTP_(DEVICE|KEY)_(?!TYPE)\w+", code_of(p))}
    assert found == NAMES_DEVICES.keys()


@pytest.mark.parametrize("folder", ["cpu", "opencl"])
def test_backends_call_no_kernel_of_all_devices(folder: str) -> None:
    """A kernel that leaves a call to the one for all devices declines: Note [Declining] in dispatch/op.h."""
    general = {k.name for op in load_catalog(ROOT / "yaml") for k in op.kernels if k.key.startswith(("Dense", "Comp"))}
    defined = {name for p in sources("native") for name in re.findall(r"^\S.*?\b(\w+)\(", code_of(p), re.M)}
    general = {name for name in general if name} & defined
    assert len(general) > 300
    called = {(p.name, name) for p in sources(folder) for name in re.findall(r"\b(\w+)\(", code_of(p))}
    assert not [(file, name) for file, name in called if name in general]


OBJECTS = ROOT / "build" / "release" / "obj"


def symbols(objects: list[Path], which: str) -> dict[str, set[str]]:
    """The global symbols that each object file defines, or leaves to others."""
    text = subprocess.run(["nm", "-A", "-g", which, *objects], capture_output=True, text=True, check=True).stdout
    found: dict[str, set[str]] = {str(path): set() for path in objects}
    for line in text.splitlines():
        path, _, entry = line.partition(":")
        found[path].add(entry.split()[-1])
    return found


@pytest.mark.skipif(not OBJECTS.is_dir() or not shutil.which("nm"), reason="the C half was not built in this checkout")
def test_files_form_no_circle() -> None:
    """A file's functions call those of files below it: as the linker sees it, inline functions of headers included."""
    objects = [p for p in OBJECTS.rglob("*.o") if (CSRC / p.relative_to(OBJECTS).with_suffix(".c")).exists()]
    assert len(objects) > 250
    home = {name: path for path, names in symbols(objects, "--defined-only").items() for name in names}
    needs = symbols(objects, "--undefined-only")
    below = {path: {home[n] for n in names if home.get(n, path) != path} for path, names in needs.items()}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail("these call each other: " + " -> ".join(str(Path(p).relative_to(OBJECTS)) for p in error.args[1]))


def test_files_of_tests_have_names_of_their_own() -> None:
    """pytest imports them by name, so that two of one name are not collected together."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))


def test_a_source_folder_that_is_not_built_says_so(tmp_path: Path) -> None:
    (tmp_path / "csrc").mkdir()
    (tmp_path / "tensorpy").mkdir()
    shutil.copy(ROOT / "tensorpy" / "__init__.py", tmp_path / "tensorpy")
    command = [sys.executable, "-S", "-c", "import tensorpy"]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path / 'tensorpy'} is tensorpy's source"), done.stderr
    assert "make native" in last and "circular" not in last
