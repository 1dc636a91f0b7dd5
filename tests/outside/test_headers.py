"""The public headers (csrc/include/tensorpy): each stands alone, in C and C++, and every name of them is described."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from codegen.c_api import FIRST, PAGE, page, table
from codegen.c_headers import HEADERS, Declaration, public_headers, read_header, read_headers

ROOT = Path(__file__).resolve().parents[2]
SAVED = ROOT / "tests" / "compatibility" / "headers-v1"  # those of the first version

# Parts of math.h are included by it.
ALONE = sorted(p.name for p in (HEADERS / "tensorpy").glob("*.h") if "(part of math.h)" not in p.read_text())
COMPILERS = {
    "C11": "cc -x c -std=c11",
    "gnu17": "cc -x c -std=gnu17",
    "C++14": "c++ -x c++ -std=c++14",
    "C++17": "c++ -x c++ -std=c++17",
    "C++20": "c++ -x c++ -std=c++20",
}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{HEADERS}"]


def compile_text(tmp_path: Path, compiler: str, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = COMPILERS[compiler].split()
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    (tmp_path / "text").write_text(text)
    return subprocess.run(
        [*command, *WARNINGS, "text", *flags], cwd=tmp_path, capture_output=True, text=True
    )  # fmt: skip


def is_for(compiler: str, header: str) -> bool:
    return not compiler.startswith("C++") or "C, not C++" not in (HEADERS / "tensorpy" / header).read_text()


@pytest.mark.parametrize(("compiler", "header"), [(c, h) for c in COMPILERS for h in ALONE if is_for(c, h)])
def test_each_stands_alone(tmp_path: Path, header: str, compiler: str) -> None:
    flags = ["-fsyntax-only"]
    if header in ("math.h", "half.h", "philox.h"):  # many functions, and numbers that C++ writes so since 2017
        flags += ["-Wno-unused-function", *(["-std=gnu++14", "-Wno-pedantic"] if compiler == "C++14" else [])]
    done = compile_text(tmp_path, compiler, f'#include "tensorpy/{header}"\n' * 2, *flags)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["C11", "C++17"])
def test_math_is_linked_and_right(tmp_path: Path, compiler: str) -> None:
    text = """
#include "tensorpy/math.h"
int main(void) {
    tp_c64 z = tp_exp_c64(tp_log_c64(2.0f));
    int right = tp_abs_f64(tp_lgamma_f64(5.0) - 3.1780538303479458) < 1e-12 && tp_abs_f32(__real__(z) - 2.0f) < 1e-6f;
    return !(right && tp_lgamma_f32(1.0f) == 0.0f && tp_gcd_i32(12, 18) == 6 && tp_maximum_bool(0, 1));
}
"""
    done = compile_text(tmp_path, compiler, text, "-Wno-unused-function", "-O1", "-o", "program", "-lm")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "program"]).returncode == 0


# ---- words ----


def described() -> list[Declaration]:
    """All declarations; those that call through the table with its words."""
    headers = read_headers()
    members = table(headers)
    found = [d for header in headers for d in header.declarations]
    return [members.get(d.name, d) if not d.comment else d for d in found]


def test_every_name_is_described() -> None:
    missing = [d.where for d in described() if not re.search(r"\w", d.comment)]
    assert not missing, "no comment says what these are: " + ", ".join(missing)


def test_what_came_later_says_since_when() -> None:
    """A name that the first headers do not have names the version that brought it, and no other does."""
    first = {
        (d.parent, d.name)
        for name in public_headers(SAVED)
        for d in read_header(SAVED / "tensorpy" / name).declarations
    }
    version = re.search(r"VERSION (\d+)\n(?s:.*)MINOR (\d+)\n", (HEADERS / "tensorpy" / "api.h").read_text())
    assert version
    for d in described():
        if (d.parent, d.name) in first:
            assert d.since is None, f"{d.where} has been there since {FIRST}"
        elif d.name != "TENSORPY_API_MINOR":
            assert d.since, f"{d.where} is new: its comment, section or file says 'Since {version[1]}.{version[2]}.'"
            assert tuple(map(int, d.since.split("."))) <= (int(version[1]), int(version[2])), f"{d.where}: {d.since}?"


def test_the_table_is_called_by_functions_of_its_types(tmp_path: Path) -> None:
    """library.h has a function for every member, and the compiler finds it of the member's type."""
    names = table(read_headers())
    library = {d.name: d for d in read_header(HEADERS / "tensorpy" / "library.h").declarations}
    assert names.keys() <= library.keys(), f"library.h lacks {names.keys() - library.keys()}"
    checks = [
        f"static __typeof__(((tensorpy_api *)0)->{member.name}) check_{member.name} __attribute__((unused)) = {name};"
        for name, member in names.items()
        if library[name].kind == "function" and name not in ("tp_view_of", "tp_geometry_of")  # by value
    ]
    assert len(checks) > 45
    text = "\n".join(['#include "tensorpy/library.h"', *checks, ""])
    done = compile_text(tmp_path, "C11", text, "-Wno-unused-variable", "-fsyntax-only")
    assert done.returncode == 0, done.stderr
    wrong = compile_text(tmp_path, "C11", text.replace("= tp_num_threads", "= tp_itemsize"), "-fsyntax-only")
    assert wrong.returncode != 0


def test_the_reference_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "docs/extending/c_api.md is not what the headers say: make c-api"


# ---- the parser ----

HEADER = """/* things.h: things. */
#ifndef TENSORPY_THINGS_H
#define TENSORPY_THINGS_H

/* ---- some: with words, since 0.8 ---- */

/* A thing of
 * two lines. Since 0.7 */
typedef struct {
    int a, b; /* two
               * numbers */
    /* A function. */
    void *(*f)(int x, void (*g)(int));
    union {
        int c;
    };
    const char *undescribed;
} tp_thing;
/* Not of the next. */

typedef enum { TP_ONE, TP_TWO } tp_count; /* behind it */

#define TP_LOCAL 1
#undef TP_LOCAL
/* Of two. */
#ifdef __cplusplus
#define TP_EITHER(x) x{}
#else
#define TP_EITHER(x) (x)
#endif
/* Doubles. */
static inline int tp_twice(int x) {
    if (x) { /* not a comment of its own */
        return '{' + 2 * x;
    }
    return 0;
}
#ifdef __cplusplus
extern "C" {
#endif
TENSORPY_INLINE tp_thing *tp_bare(void) { return 0; }
const char *tp_elsewhere(const tp_thing *thing, int i); /* has its body elsewhere */
#ifdef __cplusplus
}
#endif
#endif
"""


def test_the_parser(tmp_path: Path) -> None:
    (tmp_path / "things.h").write_text(HEADER)
    header = read_header(tmp_path / "things.h")
    assert header.about == "things.h: things."
    found = {(d.parent + "." if d.parent else "") + d.name: d for d in header.declarations}
    assert {name: (d.kind, d.comment) for name, d in found.items()} == {
        "tp_thing": ("type", "A thing of\ntwo lines. Since 0.7"),
        "tp_thing.a": ("member", "two\nnumbers"),
        "tp_thing.b": ("member", "two\nnumbers"),
        "tp_thing.f": ("member", "A function."),
        "tp_thing.undescribed": ("member", ""),
        "tp_count": ("type", "behind it"),
        "TP_EITHER": ("macro", "Of two."),
        "tp_twice": ("function", "Doubles."),
        "tp_bare": ("function", ""),
        "tp_elsewhere": ("function", "has its body elsewhere"),
    }
    assert [found[name].since for name in ("tp_thing", "tp_thing.f", "tp_count")] == ["0.7", "0.7", "0.8"]
    assert found["tp_twice"].text == "int tp_twice(int x);" and found["tp_count"].section.startswith("some: with")
