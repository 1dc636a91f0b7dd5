"""OpenCLSources.c: the sources of csrc/opencl/kernels and the math helpers as text inside the library.

Comments, blank lines and indentation are left out, since the driver parses the text at run time. The math helpers,
which take longer to parse than most kernels, are in the library once: which files include them is noted, and program.c
puts them in front of these. Two thirds of them are special functions, which are left out with TP_ELEMENTARY defined.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from .text import banner, c_string

_INCLUDE = re.compile(r'^#include "((?:tensorpy|prim|opencl/kernels)/[\w.]+)"$', re.M)
_MATH = '#include "tensorpy/math.h"\n'
_SPECIAL = ("math_special.inc", "math_gamma.inc", "math_bessel.inc", "math_polynomial.inc")
_IN_FRONT = ("built_ins.cl", "types.cl", "common.cl")
_FUNCTION = re.compile(r"^TP_(?:FN|SLOW) \w+ TP_M\((\w+)\)", re.M)
_COMMENT = re.compile(r"/\*.*?\*/", re.S)


def flatten(path: Path, csrc: Path, *, special: bool = True) -> str:
    """A file with the headers that it shares with C code put in their place; those of special functions only with
    `special`.
    """

    def there(name: str) -> Path:
        return csrc / "include" / name if name.startswith("tensorpy/") else csrc / name

    def included(name: str) -> str:
        if there(name).name in _SPECIAL and not special:
            return ""
        content = flatten(there(name), csrc, special=special)
        return f"#ifndef TP_ELEMENTARY\n{content}#endif\n" if there(name).name in _SPECIAL else content

    text = path.read_text().replace(_MATH, "") if path.suffix == ".cl" else path.read_text()
    return _INCLUDE.sub(lambda m: included(m.group(1)), text)


def _strip(text: str) -> list[str]:
    return [line.strip() for line in _COMMENT.sub("", text).splitlines() if line.strip()]


def special_functions(csrc: Path) -> list[str]:
    """The names of the helpers that programs with TP_ELEMENTARY are without: lgamma for tp_lgamma_f32."""
    texts = [(csrc / "include" / "tensorpy" / name).read_text() for name in _SPECIAL]
    return sorted({name for text in texts for name in _FUNCTION.findall(text)})


def emit(csrc: Path, only: Collection[str] | None = None, *, special: bool = True) -> dict[str, str]:
    """Every .cl file of csrc/opencl/kernels by its name, and the math helpers as math.h. `only`: these files and what
    is in front of all; without `special` functions no program may call one.
    """
    texts, with_math = {}, set()
    for path in sorted((csrc / "opencl" / "kernels").glob("*.cl")):
        if only is not None and path.name not in only and path.name not in _IN_FRONT:
            continue
        if _MATH in path.read_text():
            with_math.add(path.name)
        texts[path.name] = flatten(path, csrc)
    texts["math.h"] = flatten(csrc / "include" / "tensorpy" / "math.h", csrc, special=special)
    out = [
        banner("emit_opencl_sources.py", "the .cl files of csrc/opencl/kernels", "The sources of OpenCL kernels."),
        '#include "opencl/runtime/program.h"\n\n#include <string.h>\n\n',
        "static const struct {\n    const char *name, *text;\n    bool math;\n} sources[] = {\n",
    ]
    for name, text in texts.items():
        lines = "\n".join(f"     {c_string(line + chr(10))}" for line in _strip(text))
        out.append(f"    {{{c_string(name)},\n{lines}, {'true' if name in with_math else 'false'}}},\n")
    out.append(
        "};\n\nconst char *tp_cl_source(const char *name) {\n"
        "    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)\n"
        "        if (strcmp(sources[i].name, name) == 0) return sources[i].text;\n"
        "    return NULL;\n}\n"
        "const char *const tp_cl_special_functions[] = {\n"
        + "".join(f"    {c_string(name)},\n" for name in special_functions(csrc))
        + "    NULL,\n};\n"
        "bool tp_cl_source_includes_math(const char *name) {\n"
        "    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)\n"
        "        if (strcmp(sources[i].name, name) == 0) return sources[i].math;\n"
        "    return false;\n}\n"
    )
    return {"OpenCLSources.c": "".join(out)}
