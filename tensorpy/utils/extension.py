"""Building libraries in C or C++ that bring operators, kernels or devices (tensorpy/library.h).

In a project's setup.py:

    from setuptools import setup
    from tensorpy.utils.extension import Extension

    setup(name="myops", packages=["myops"], ext_modules=[Extension("myops._ops", ["scale.c"])])

in its myops/__init__.py:

    from tensorpy.utils.extension import load_installed

    load_installed("myops._ops")

and in a notebook `load_inline("myops", "#include ...")`. `python -m tensorpy.utils.extension` prints the compiler's
flags for everything else.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import shlex
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tensorpy import backends, ops

__all__ = [
    "Extension",
    "compile_flags",
    "generate",
    "include_paths",
    "load",
    "load_inline",
    "load_installed",
    "load_yaml",
]

# The last three keep what tensorpy/math.h promises of NaN, infinities and rounding, and let its loops be vectors.
_FLAGS = ["-O3", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
# A call of a function that no header declares would be found missing only when the library is loaded, and a status that
# is returned for a tensor (tp_fail for tp_fail_null) crashes. C++ refuses both.
_C_FLAGS = ["-Werror=implicit-function-declaration", "-Werror=int-conversion"]
_loaded: dict[str, str] = {}  # what load() has loaded under a name
# By the file that generate() wrote: refuses sources that lack a C function which its YAML names.
_checks: dict[Path, Callable[[Sequence[Path], Sequence[Path]], None]] = {}


def include_paths() -> list[str]:
    """The folders to give the compiler (-I) for "tensorpy/library.h", and for the headers that are generated.

    Returns: a list of str.

    Example:
        >>> len(tp.utils.extension.include_paths()) > 0
        True
    """
    generated = str(Path(backends.__file__).resolve().parents[1] / "include")
    return list(dict.fromkeys([backends.include(), generated]))


def compile_flags(language: str = "c") -> list[str]:
    """What builds a library from its sources in "c" or "c++", but the sources and `-o`.

    Arguments:
        language: the language

    Returns: a list of str.

    Example:
        >>> isinstance(tp.utils.extension.compile_flags(), list)
        True
    """
    link = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    return [*_FLAGS, *(_C_FLAGS if language == "c" else ()), *link, *(f"-I{path}" for path in include_paths())]


def _language(sources: Sequence[str | os.PathLike[str]]) -> str:
    """That of the compiler for all of them."""
    return "c++" if any(os.fspath(source).endswith((".cpp", ".cc", ".cxx")) for source in sources) else "c"


def Extension(name: str, sources: Sequence[str], **kwargs: Any) -> Any:
    """A setuptools Extension with tensorpy's headers and flags; arguments are setuptools.Extension's.

    A C function that generate()'s YAML names and none of the sources has is a ValueError, which says how it begins.

    Arguments:
        name: the name
        sources: the C and C++ files

    Returns: a setuptools.Extension.

    Example:
        >>> tp.utils.extension.Extension("mine", ["mine.c"]).name
        'mine'
    """
    from setuptools import Extension  # type: ignore[import-untyped]

    if not kwargs.get("extra_objects") and not kwargs.get("libraries"):  # which may have functions, too
        _check_written(
            [Path(source) for source in sources], [Path(folder) for folder in kwargs.get("include_dirs", ())]
        )
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), *include_paths()]
    own = [*_FLAGS, *(_C_FLAGS if _language(sources) == "c" else ())]
    kwargs["extra_compile_args"] = [*own, *kwargs.get("extra_compile_args", ())]
    kwargs["libraries"] = [*kwargs.get("libraries", ()), "m"]
    return Extension(name, list(sources), **kwargs)


def generate(
    namespace: str, yaml: str | os.PathLike[str] = "yaml", out: str | os.PathLike[str] = "build/generated"
) -> list[str]:
    """Writes what the operators of a project's own YAML need, and gives the C files of it, for Extension's sources.

        Extension("myops._ops", [*generate("myops"), "kernels.c"], include_dirs=["build/generated"])

    docs/extending/operators_from_yaml.md says what else lies there. Mistakes in the YAML are all in one ValueError.

    Arguments:
        namespace: the namespace of its operators
        yaml: the folder of its YAML
        out: the folder that it writes into

    Returns: a list of str.

    Raises: ValueError for a mistake in the YAML: where, and how to mend it.

    Example:
        >>> tp.utils.extension.generate("mine", "yaml", "gen")  # doctest: +SKIP
    """
    # In the tree the generator lies beside the package; another clone may be the one that is installed.
    beside = importlib.util.find_spec("codegen")
    in_tree = beside is not None and Path(beside.origin or "").parent.parent == Path(__file__).resolve().parents[2]
    codegen = importlib.import_module("codegen" if in_tree else "tensorpy.codegen")
    library = importlib.import_module(f"{codegen.__name__}.__main__")
    errors = importlib.import_module(f"{codegen.__name__}.errors")
    try:
        catalog = library.load_library(Path(yaml), namespace)
        files = library.generate_library(catalog, namespace)
    except (errors.YamlError, errors.YamlErrors) as error:
        raise ValueError(str(error)) from None
    library.write_changed(Path(out), files)

    def check(sources: Sequence[Path], folders: Sequence[Path]) -> None:
        try:
            library.check_library_sources(catalog, namespace, sources, folders)
        except errors.YamlErrors as error:
            raise ValueError(str(error)) from None

    written = [Path(out, name) for name in sorted(files) if name.endswith(".c")]
    _checks.update({path.resolve(): check for path in written})
    return [os.fspath(path) for path in written]


def _check_written(sources: Sequence[Path], folders: Sequence[Path]) -> None:
    """ValueError for C functions that generate()'s YAML names and no source has: a loader would find one missing."""
    checks = {_checks[path] for source in sources if (path := source.resolve()) in _checks}
    if all(source.is_file() for source in sources):  # another tool may write some later
        for check in checks:
            check(sources, folders)


def load_installed(name: str) -> None:
    """Loads the library that Extension(name, ...) built into a package: "myops._ops".

    Example:
        >>> tp.utils.extension.load_installed("mine")  # doctest: +SKIP
    """
    package, _, leaf = name.rpartition(".")
    spec = importlib.util.find_spec(package) if package else None
    folders = list(spec.submodule_search_locations or []) if spec else sys.path
    for folder in folders:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = Path(folder, leaf + suffix)
            if path.is_file():
                return ops.load_library(path)
    raise ImportError(f"there is no library {name}: {leaf} is not in {folders}")


def _cache() -> Path:
    """The folder of what load() built: the user's own, closed to others."""
    base = os.environ.get("TENSORPY_EXTENSIONS_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tensorpy", "extensions"
    )
    folder = Path(base)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RuntimeError(f"{folder} is another user's, or open to others: set TENSORPY_EXTENSIONS_DIR")
    return folder


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise ValueError(f"{name!r} is no name of a library")


def _compiler(sources: Sequence[Path]) -> list[str]:
    name, fallback = ("CXX", "c++") if _language(sources) == "c++" else ("CC", "cc")
    return shlex.split(os.environ.get(name) or fallback)


def _key(command: Sequence[str], sources: Sequence[Path]) -> str:
    """A digest of all that the library depends on: the sources, the command, and tensorpy's headers."""
    key = hashlib.sha256("\0".join([sysconfig.get_platform(), *command]).encode())
    headers = sorted(path for folder in include_paths() for path in Path(folder).rglob("*.h"))
    for path in [*sources, *headers]:
        key.update(f"\0{path.name}\0".encode())
        key.update(path.read_bytes())
    return key.hexdigest()[:24]


def _build(name: str, command: Sequence[str], target: Path, verbose: bool) -> None:
    """Into a file of its own, which then takes the library's name: two processes may build it at once."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=name)
    os.close(handle)
    try:
        if verbose:
            print(shlex.join(command))
        done = subprocess.run([*command, "-o", temporary], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{name} does not compile:\n{done.stderr.strip()}")
        if verbose and done.stderr:
            print(done.stderr.strip())
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)


def load(
    name: str,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    extra_cflags: Sequence[str] = (),
    extra_ldflags: Sequence[str] = (),
    extra_include_paths: Sequence[str | os.PathLike[str]] = (),
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> str:
    """Compiles sources into a library, unless that has been done before, and loads it; gives its path.

    Loading another version under the same name takes the one before out, so a cell of a notebook may run again.

    Arguments:
        name: the name
        sources: the C and C++ files
        extra_cflags: further flags of the compiler
        extra_ldflags: further flags of the linker
        extra_include_paths: further folders of headers
        build_directory: where it is built; None takes a folder of the user's cache
        verbose: whether the commands are printed

    Returns: str.

    Raises: ValueError for no sources, OSError where the compiler fails.

    Example:
        >>> mine = tp.utils.extension.load("mine", ["mine.c"])  # doctest: +SKIP
    """
    given = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    paths = [Path(source).resolve() for source in given]
    _check_name(name)
    if not paths:
        raise ValueError("load: there are no sources")
    if not extra_ldflags:  # they may name objects and libraries that have functions, too
        _check_written(paths, [Path(path) for path in extra_include_paths])
    includes = [f"-I{os.fspath(Path(path).resolve())}" for path in extra_include_paths]
    sources_of_command = [os.fspath(path) for path in paths]
    command = [
        *_compiler(paths),
        *compile_flags(_language(paths)),
        *extra_cflags,
        *includes,
        *sources_of_command,
        *extra_ldflags,
        "-lm",
    ]
    folder = _cache() if build_directory is None else Path(build_directory)
    target = folder / f"{name}-{_key(command, paths)}.so"
    if not target.exists():
        _build(name, command, target, verbose)
    path = os.fspath(target)
    before = _loaded.pop(name, path)
    if before != path and before in ops.loaded_libraries:  # it may have been taken out by hand
        ops.unload_library(before)
    ops.load_library(path)
    _loaded[name] = path
    return path


def _put(path: Path, text: str) -> None:
    """A file that is named after its text: whoever comes second finds it whole."""
    if path.exists():
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(temporary, path)


def load_inline(name: str, source: str, *, language: str = "c", verbose: bool = False, **kwargs: Any) -> str:
    """The same from the text of a file in "c" or "c++"; `#include "tensorpy/library.h"` may be left out.

    Arguments:
        name: the name
        source: the source
        language: the language
        verbose: whether the commands are printed

    Returns: str.

    Raises: ValueError for an unknown language, OSError where the compiler fails.

    Example:
        >>> mine = tp.utils.extension.load_inline("mine", text)  # doctest: +SKIP
    """
    _check_name(name)
    if language not in ("c", "c++"):
        raise ValueError(f"load_inline: the language is 'c' or 'c++', not {language!r}")
    if "tensorpy/library.h" not in source:
        source = f'#include "tensorpy/library.h"\n#line 1 "{name}"\n{source}'
    suffix = ".c" if language == "c" else ".cpp"
    folder = Path(kwargs.get("build_directory") or _cache())
    path = folder / f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:24]}{suffix}"
    _put(path, source)
    return load(name, path, verbose=verbose, **kwargs)


def load_yaml(
    namespace: str,
    native_functions: str,
    derivatives: str = "",
    *,
    sources: Sequence[str | os.PathLike[str]] = (),
    verbose: bool = False,
    **kwargs: Any,
) -> str:
    """The same for operators that are declared in YAML: the texts of native_functions.yaml and derivatives.yaml.

    `sources` have the kernels in C that the YAML names, if any; `#include "<namespace>_kernels.h"` declares them. One
    that they have not is a ValueError, which says how it begins.

    Arguments:
        namespace: the namespace of its operators
        sources: the C and C++ files
        verbose: whether the commands are printed

    Returns: str.

    Raises: ValueError for a mistake in the YAML, OSError where the compiler fails.

    Example:
        >>> mine = tp.utils.extension.load_yaml("mine", "yaml", ["mine.c"])  # doctest: +SKIP
    """
    _check_name(namespace)
    key = hashlib.sha256("\0".join([namespace, native_functions, derivatives]).encode()).hexdigest()[:24]
    folder = Path(kwargs.get("build_directory") or _cache()) / f"{namespace}-{key}"
    folder.mkdir(exist_ok=True)
    _put(folder / "native_functions.yaml", native_functions)
    _put(folder / "derivatives.yaml", derivatives)
    generated = generate(namespace, folder, folder / "generated")
    includes = [folder / "generated", *kwargs.pop("extra_include_paths", ())]
    return load(namespace, [*generated, *sources], extra_include_paths=includes, verbose=verbose, **kwargs)


if __name__ == "__main__":
    print(shlex.join(compile_flags()))
