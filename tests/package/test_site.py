"""The site that `make docs` builds: what has to be in it, and that its sources hang together. Sphinx itself checks the
rest, with warnings as errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import links, pictures
from docs.site.__main__ import write_sources
from docs.site.names import Names, Page, escaped, mentioned
from tensorpy._package.names import MODULES
from tensorpy.testing.samples.catalog import CATALOG

ROOT = Path(__file__).parents[2]
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    pytest.importorskip("tensorboard", reason="the reference has utils.tensorboard, which needs it")
    folder = tmp_path_factory.mktemp("site")
    write_sources(folder)
    return {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.md")}


def test_each_page_is_in_the_tree_of_contents(sources: dict[str, str]) -> None:
    listed = {"index.md"}
    for path, text in sources.items():
        for tree in TREE.findall(text):
            for entry in (line for line in tree.splitlines() if line and not line.startswith(":")):
                base = "" if entry.startswith("/") else os.path.dirname(path)
                listed.add(os.path.normpath(os.path.join(base, entry.lstrip("/"))) + ".md")
    assert listed == sources.keys()
    assert {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")} <= sources.keys()


def test_each_operator_has_an_entry(sources: dict[str, str]) -> None:
    shown = {line for text in sources.values() for line in text.splitlines()}
    missing = {str(op.schema) for op in CATALOG if op.function.variants and op.kind != "out"} - shown
    assert not missing
    for entry in ("py:function} tensorpy.linalg.svd(", "py:function} tensorpy.nn.functional.gelu(", "py:method} tens"):
        assert any(entry in line for line in shown)


def test_each_module_has_a_page(sources: dict[str, str]) -> None:
    pages = {path.removeprefix("reference/python/") for path in sources}
    elsewhere = {"codegen", "quantization"}  # the second is ao.quantization by its old name
    assert [m for m in MODULES - elsewhere if not any(p.startswith(f"{m}.") for p in pages)] == []


def test_each_link_of_a_name_has_its_target(sources: dict[str, str]) -> None:
    """A role that finds nothing is no warning for Sphinx."""
    named, defined, module = set(), set(), ""
    for text in sources.values():
        owner = ""
        for directive, head in re.findall(r"^:{3,}\{([\w:]+)\} ([^\n(]+)", text, re.M):
            if directive in ("py:module", "py:currentmodule"):
                module, owner = head, ""
                defined.add(head)
            elif head.startswith("tensorpy.") or directive == "capi":
                defined.add(head)
            elif directive in ("py:class", "py:function"):
                defined.add(f"{module}.{head}")
                owner = f"{module}.{head}" if directive == "py:class" else ""
            else:
                defined.add(f"{owner}.{head.split(' ')[0]}")
        named |= set(re.findall(r"\{(?:py:obj|capi)\}`[^`<]*<([\w.]+)>`", text))
    assert len(named) > 1000
    assert named - defined == set()


def test_guide_and_reference_lead_to_each_other(sources: dict[str, str]) -> None:
    assert "{py:obj}`utils.viz.graph(y)`" in sources["programs.md"].replace(" <tensorpy.utils.viz.graph>", "")
    assert "[Autograd](../../autograd.md)" in sources["reference/python/utils.viz.md"]
    assert "{capi}`tp_impl_boxed <tp_impl_boxed>`" in sources["extending/device_in_an_evening.md"]


def test_code_spans_are_links_where_they_name_something() -> None:
    names = Names()
    for name in ("tensorpy.add", "tensorpy.nn.Linear"):
        assert names.add(name)
    assert not names.add("tensorpy.add")
    kept = "[`tp.add`](x.md)\n\n```python\n`tp.add`\n```\n"
    text = f"# `tp.add`\n\n`tp.add(a, b)`, `nn.Linear`, `with tp.add() as x:`, `add`, {kept}"
    linked = "{py:obj}`tp.add(a, b) <tensorpy.add>`, {py:obj}`nn.Linear <tensorpy.nn.Linear>`"
    scope = "{py:obj}`with tp.add() as x: <tensorpy.add>`"
    assert names.links(text) == f"# `tp.add`\n\n{linked}, {scope}, `add`, {kept}"
    names.collect_mentions([Page("guide/one.md", "# One\n\n```pycon\n>>> tp.add(1)\n```\n")])
    assert names.text(Page("a/b.md", mentioned("tensorpy.add"))) == "- In the guide: [One](../guide/one.md)"
    assert names.text(Page("a/b.md", mentioned("tensorpy.nn.Linear"))) == ""


def test_docstrings_are_text() -> None:
    assert escaped("a * b of `x_y`, [0] <T>\nand") == "a \\* b of `x_y`, \\[0\\] \\<T\\>\nand"
    assert escaped("Does:\n\n    x = 1\n    y = 2") == "Does:\n\n```text\nx = 1\ny = 2\n```"


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="#here"></a><a href="b.html#there"></a><a href="c.html">'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#here"></a><a href="https://x.org/y">')
    assert list(links.broken(tmp_path)) == ["a.html: b.html has no #there", "a.html: c.html is not there"]
    assert links.main([str(tmp_path)]) == 1
    (tmp_path / "a.html").write_text('<p id="here">')
    assert links.main([str(tmp_path)]) == 0


@pytest.mark.parametrize("name", pictures.SAME)
def test_pictures_are_as_drawn(name: str) -> None:
    """In a process of its own: what a plan joins depends on which threads a process has."""
    saved = (ROOT / "docs" / "pictures" / name).read_text()
    program = "import sys; from docs.site import pictures; print(pictures.SAME[sys.argv[1]]().rstrip())"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    words = [sys.executable, "-c", program, name]
    drawn = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert drawn.stdout == saved, "draw them anew: make pictures"
