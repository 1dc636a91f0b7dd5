"""Checks a built wheel: its tag, size and YAML, and that it imports and works in an empty environment, fast enough.

`check_wheel.py WHEEL` runs it in a new environment of the Python that runs this; `--quick` leaves out the projects of
examples/.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

MAX_MEGABYTES = 10
MAX_INSTALLED = 21.5  # 1.1 of it docstrings, as they are mapped; the bytecode that pip makes of it is another 5
MAX_IMPORT_MS = 12
RUNS = 15
WITHOUT_TABLE = "not test_operator and not host_computed"
# Their packages, and which of their tests.
EXAMPLES = {
    "custom_operator": ("myops", ""),
    "operators_from_yaml": ("signals", ""),
    "backend_simulated": ("simulated", WITHOUT_TABLE),
}
# Backends without a package, and the variable that tells their tests where the library is.
DEVICES = {"backend": "MIRROR", "backend_opaque": "VAULT", "backend_cuda_shaped": "OCL"}

PROGRAM = """
import sys
import tensorpy as tp
a = tp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
(a @ a).sum().backward()
assert a.grad.tolist() == [[7.0, 11.0], [9.0, 13.0]], a.grad
print(f"works on {sys.implementation.cache_tag}:", a.grad.tolist())
"""


def import_overhead(python: Path, folder: Path) -> float:
    """Milliseconds that `import tensorpy` adds to a bare interpreter: the difference of the fastest runs.

    In a folder of its own, since the current one goes before what is installed.
    """
    timer = (
        "import subprocess, sys, time\nt = time.perf_counter()\n"
        "subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\nprint(time.perf_counter() - t)"
    )

    def fastest(code: str) -> float:
        runs = [
            subprocess.run([python, "-c", timer, code], capture_output=True, text=True, check=True, cwd=folder)
            for _ in range(RUNS)
        ]
        return min(float(run.stdout) for run in runs)

    return 1000 * (fastest("import tensorpy") - fastest("pass"))


def check_tag(wheel: Path) -> None:
    """Every library in it runs on the glibc that its name says."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from codegen.old_glibc import newer

    tag = re.search(r"-manylinux_(\d+)_(\d+)_\w+\.whl$", wheel.name)
    assert tag, f"{wheel.name} is for this system alone"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if re.search(r"\.so[.\d]*$", name)]
        assert any(re.search(r"\.libs/libgomp", name) for name in libraries), "libgomp is not in it"
        for name in libraries:
            found = newer(Path(archive.extract(name, folder)), f"{tag[1]}.{tag[2]}")
            found = [symbol for symbol in found if not re.match(r"(GOMP|omp)_", symbol)]
            assert not found, f"{name} needs {found}"


def check_size(wheel: Path) -> None:
    megabytes = wheel.stat().st_size / 1e6
    with zipfile.ZipFile(wheel) as archive:
        installed = sum(entry.file_size for entry in archive.infolist()) / 1e6
    print(f"{wheel.name}: {megabytes:.2f} MB (bar: {MAX_MEGABYTES}), installed {installed:.2f} (bar: {MAX_INSTALLED})")
    assert megabytes <= MAX_MEGABYTES and installed <= MAX_INSTALLED


def check_yaml(wheel: Path) -> None:
    """Outside projects use the tree's YAML: what the wheel has is what lies in the tree."""
    folder = Path(__file__).parent.parent / "yaml"
    ours = {f"tensorpy/yaml/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.yaml")}
    with zipfile.ZipFile(wheel) as archive:
        missing = ours - set(archive.namelist())
    assert not missing, f"not in the wheel: {sorted(missing)}"


def check_headers(wheel: Path) -> None:
    """The public headers, and the one that is generated for writers of backends."""
    folder = Path(__file__).parent.parent / "csrc" / "include"
    ours = {f"tensorpy/include/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.*")}
    ours.add("tensorpy/include/tensorpy/RegistrationMinimal.h")
    with zipfile.ZipFile(wheel) as archive:
        missing = ours - set(archive.namelist())
    assert not missing, f"not in the wheel: {sorted(missing)}"


def check_stubs(wheel: Path) -> None:
    """What editors and type checkers read: the mark of a typed package and every stub that the build has made."""
    folder = Path(__file__).parent.parent / "tensorpy"
    ours = {f"tensorpy/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.pyi")} | {"tensorpy/py.typed"}
    ours |= {f"tensorpy/{name}.pyi" for name in ("__init__", "_C", "return_types", "linalg", "fft", "special/__init__")}
    with zipfile.ZipFile(wheel) as archive:
        missing = ours - set(archive.namelist())
    assert not missing, f"not in the wheel: {sorted(missing)}"


def check_examples(python: Path, folder: Path) -> None:
    """Projects of their own, built and tested against the installed wheel; of the device's tests, all but the table."""
    needed = ["setuptools>=77", "pytest", "numpy", "pyyaml"]
    subprocess.run([python, "-m", "pip", "install", "-q", *needed], check=True)
    for name, (package, chosen) in EXAMPLES.items():
        project = folder / name
        shutil.copytree(Path(__file__).parent.parent / "examples" / name, project)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--no-build-isolation", f"./{name}"], check=True, cwd=folder
        )
        shutil.rmtree(project / package)  # the installed one is meant
        generated = [str(path) for path in project.glob("build/generated/test_*.py")]
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, ".", *generated]
        subprocess.run(command, check=True, cwd=project)


def check_declarations(python: Path, folder: Path) -> None:
    """The header of all operators is made of the installed YAML by who wants it."""
    command = [python, "-m", "tensorpy.codegen", "--file", "RegistrationDeclarations.h"]
    subprocess.run(command, check=True, cwd=folder)
    assert "aten::add.Tensor" in (folder / "RegistrationDeclarations.h").read_text()


def check_devices(python: Path, folder: Path) -> None:
    """Backends that are a few files of C, built with the flags that the installed package prints."""
    flags = subprocess.run([python, "-m", "tensorpy.utils.extension"], capture_output=True, text=True, check=True)
    has_opencl = "import sys, tensorpy; sys.exit(not tensorpy.opencl.is_available())"
    for name, variable in DEVICES.items():
        if variable == "OCL" and subprocess.run([python, "-c", has_opencl]).returncode != 0:
            print(f"{name}: there is no OpenCL device")
            continue
        project = folder / name
        shutil.copytree(Path(__file__).parent.parent / "examples" / name, project)
        sources = [path.name for path in project.glob("*.c")]
        compiler = shlex.split(os.environ.get("CC", "cc"))
        command = [*compiler, *shlex.split(flags.stdout), *sources, "-o", "device.so", "-lm", "-ldl"]
        subprocess.run(command, check=True, cwd=project)
        given = {**os.environ, variable: str(project / "device.so")}
        tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", WITHOUT_TABLE]
        subprocess.run(tests, check=True, cwd=project, env=given)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--quick", action="store_true", help="without the projects of examples/")
    options = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # it may name a tree, which would be tested in the wheel's place
    wheel = options.wheel.resolve()
    check_size(wheel)
    check_tag(wheel)
    check_yaml(wheel)
    check_headers(wheel)
    check_stubs(wheel)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin/python")
        subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
        subprocess.run([python, "-c", PROGRAM], check=True, cwd=folder)
        if not options.quick:
            check_examples(python, Path(folder))
            check_declarations(python, Path(folder))
            check_devices(python, Path(folder))
        milliseconds = import_overhead(python, Path(folder))
    print(
        f"import tensorpy: {milliseconds:.1f} ms over a bare interpreter (bar: {MAX_IMPORT_MS}; measured, not asserted)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
