"""The documentation's examples run and print what they say; its links and named notes lead somewhere."""

from __future__ import annotations

import doctest
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from opencl_programs import needs_device

from tensorpy.testing.samples.catalog import CATALOG

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


EXAMPLE = re.compile(r"```pycon\n.*?```", re.S)
YAML_BLOCK = re.compile(r"```yaml\n.*?```", re.S)


def run_examples(name: str, text: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files

    def unless_opencl(example: re.Match[str]) -> str:
        return "\n" * example[0].count("\n") if 'device="opencl"' in example[0] else example[0]

    text = YAML_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())  # an entry's `example:`
    run_examples(page.name, EXAMPLE.sub(unless_opencl, text))


@needs_device
@pytest.mark.parametrize("page", [p for p in PAGES if 'device="opencl"' in p.read_text()], ids=lambda p: p.name)
def test_examples_on_opencl(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in EXAMPLE.findall(page.read_text()):
        if 'device="opencl"' in example:
            run_examples(page.name, example)


@needs_device
def test_programs_on_opencl(capsys: pytest.CaptureFixture[str]) -> None:
    """The programs of docs/opencl.md are parts of one."""
    names: dict[str, object] = {}
    for program in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "opencl.md").read_text(), re.S):
        exec(program, names)
    assert float(capsys.readouterr().out) > 0


WALK = """
import importlib.util, sys
from functools import reduce
import tensorpy
for name in sys.argv[1:]:
    try:
        reduce(getattr, name.split("."), tensorpy)
    except AttributeError:
        is_module = name.rpartition(".")[0] in ("", "testing") and importlib.util.find_spec(f"tensorpy.{name}")
        if not is_module:
            print(name)
"""


def test_named_python_names_exist() -> None:
    """`tp.x.y` or `tensorpy.x.y` in a page's text is found after `import tensorpy` alone, or is a module to be imported
    (of `testing`, whose modules need pytest), or is an operator or device that the page itself adds.
    """
    named: dict[str, str] = {}
    for page in PAGES:
        text = page.read_text()
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        for name in set(re.findall(r"`(?:tp|tensorpy)\.([A-Za-z_][\w.]*\w)", prose)):
            first = name.partition(".")[0]
            if not re.search(rf'"{first}"|func: {first}\(', text):
                named[name] = page.name
    done = subprocess.run([sys.executable, "-c", WALK, *sorted(named)], capture_output=True, text=True, check=True)
    assert len(named) > 40 and [f"{named[name]}: tensorpy.{name}" for name in done.stdout.split()] == []


def test_what_is_missing_is_missing() -> None:
    """What docs/from_pytorch.md says to be elsewhere is not here; a name in brackets says which part of it is meant."""
    rows = (ROOT / "docs" / "from_pytorch.md").read_text().partition("| you use | here |")[2].partition("\n\n")[0]
    named = [re.sub(r"\(.*?\)", "", row.split("|")[1]) for row in rows.splitlines()[2:]]
    names = [name.removeprefix("torch.") for cell in named for name in re.findall(r"`([\w.]+)`", cell)]
    assert names
    assert [name for name in names if is_there(name)] == []


def is_there(name: str) -> bool:
    try:
        pkgutil.resolve_name(f"tensorpy.{name}")
    except (AttributeError, ModuleNotFoundError):
        return False
    return True


def test_links() -> None:
    """Every relative link of the documentation leads to a file."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_listings_are_files() -> None:
    """What docs/extending shows in C or Python is part of an example, which is built and run."""
    examples = [p for p in (ROOT / "examples").rglob("*.*") if p.suffix in (".c", ".h", ".py")]
    squeezed = {re.sub(r"\s+", " ", path.read_text()) for path in examples}
    for page in (ROOT / "docs" / "extending").glob("*.md"):
        for listing in re.findall(r"```(?:c|py|python)\n(.*?)```", page.read_text(), re.S):
            found = [text for text in squeezed if re.sub(r"\s+", " ", listing).strip() in text]
            assert found, f"{page.name}: no file under examples/ has\n{listing}"


def test_named_notes_exist() -> None:
    """A note that is referred to by name is written down somewhere."""
    files = [p for kind in ("*.[ch]", "*.inc") for p in (ROOT / "csrc").rglob(kind)]
    texts = {p: p.read_text() for p in files}
    written = {name for text in texts.values() for name in re.findall(r"Note \[([^\]]+)\]\n", text)}
    for page, text in texts.items():
        for name in re.findall(r"Note \[([^\]\n]+)\]", re.sub(r"\s*\n\s*\*?\s*", " ", text)):
            assert name in written, f"{page} refers to Note [{name}]"


def test_named_files_exist() -> None:
    """A file that a comment or a page names with its folder is there."""
    sources = [p for folder in ("csrc", "codegen", "tensorpy") for p in (ROOT / folder).rglob("*.*")]
    sources = [p for p in sources if p.suffix in (".c", ".h", ".py")]
    folders = "|".join(p.name for p in [*(ROOT / "csrc").iterdir(), *ROOT.iterdir()] if p.is_dir())
    name = re.compile(
        rf"(?<![\w./])(?:csrc/)?(?:{folders})/(?:[a-z_]\w*/)*[a-z_]\w*\.(?:c|h|py|yaml)\b"
    )  # generated ones begin upper case
    for page in [*sources, *(p for p in PAGES if p.parent.name != "tutorials")]:  # whose files the reader writes
        for found in name.findall(re.sub(r"```(?:yaml|c|python)\n.*?```", "", page.read_text(), flags=re.S)):
            places = [ROOT / top / found for top in ("", "csrc", "csrc/include", "tests")]
            assert any(p.exists() for p in places), f"{page.relative_to(ROOT)} names {found}, which is not there"


@pytest.fixture(scope="module")
def generated() -> dict[str, dict[str, str]]:
    """Documented name (`ops/<family>.c`) -> name -> text, of each file that the generator writes."""
    from codegen import stamp
    from codegen.__main__ import generate

    files = stamp.built(ROOT, stamp.digest(ROOT)) or generate(CATALOG)
    families = "|".join(CATALOG.families())
    found: dict[str, dict[str, str]] = {}
    for name, text in files.items():
        shown = re.sub(r"^seen/\w+/[\w/]+/", "seen/<folder>/<source>/", name)
        shown = re.sub(rf"^(ops/|python/of_)({families})\.c$", r"\1<family>.c", shown)
        found.setdefault(re.sub(r"_[0-9]+", "_<n>", shown), {})[name] = text
    return found


def pieces(block: str) -> list[re.Pattern[str]]:
    """What stands between lines of `...`; within a line `...` stands for a part of it."""
    parts = re.split(r"^\.\.\.\n", block, flags=re.M)
    return [re.compile(re.escape(part.strip("\n")).replace(r"\.\.\.", r"[^\n]*?")) for part in parts]


def test_generated_files_are_as_shown(generated: dict[str, dict[str, str]]) -> None:
    """docs/generated.md has a section or a row for each file, and each piece of code stands in the section's files."""
    page = (ROOT / "docs" / "generated.md").read_text()
    for name in generated:
        assert f"`{name}`" in page, f"docs/generated.md does not show {name}"
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        head, _, body = section.partition("\n")
        texts = [text for name in re.findall(r"`([^`]+)`", head) for text in generated[name].values()]
        for block in re.findall(r"```(?:c|python|text)\n(.*?)\n```", body, re.S):
            for piece in pieces(block):
                assert any(piece.search(text) for text in texts), f"{head} has no\n{piece.pattern}"


def test_architecture_is_complete(generated: dict[str, dict[str, str]]) -> None:
    """docs/architecture.md has a line for each folder, and for each file that the generator writes."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    folders = [*(p for p in (ROOT / "csrc").iterdir() if p.name != "include"), *(p.parent for p in ROOT.glob("*/*.py"))]
    for folder in {p for p in folders if p.is_dir() and not p.name.startswith(".")}:
        assert f"`{folder.relative_to(ROOT)}/`" in page, f"{folder} has no line"
    for name in generated:
        assert f"`{name}`" in page, f"{name} has no line"
    for emitter in (ROOT / "codegen").glob("emit_*.py"):
        assert f"`{emitter.name}`" in page, f"{emitter.name} has no line"


def test_sentences_begin_with_their_subject() -> None:
    """No comment and no docstring begins with a genitive, whose noun a reader has to guess."""
    found = []
    for folder in ("csrc", "codegen", "tensorpy"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".cl", ".inc", ".py") and "_vendor" not in path.parts:
                text = path.read_text()
                found += [
                    f"{path}: {m[0]}"
                    for m in re.finditer(r"(?:/\*\s*|\"\"\"\s*|^ \*\n \* )(?:Of|Whose) .*", text, re.M)
                ]
    assert not found
