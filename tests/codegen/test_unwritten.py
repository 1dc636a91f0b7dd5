"""C functions that the YAML leaves to somebody and nobody has written: each form of entry that asks for one says its
file and how it begins, in the tree and in a project of its own, before a compiler or a loader is asked.
"""

import shutil
from pathlib import Path

import pytest

from codegen import __main__ as generator
from codegen.errors import YamlErrors
from codegen.library import load_library
from codegen.sources import check_library_sources, check_sources
from tensorpy.utils.extension import Extension, generate, load, load_yaml

YAML = Path(__file__, "../../../yaml").resolve()
HEAD = "- func: {0}(Tensor self, Scalar by=1) -> Tensor\n  no_gradient: a test\n"
KERNEL = HEAD + "  dispatch:\n    CPU: {0}_cpu\n"
GIVEN = "(tp_tensor *self, const tp_scalar *by);"
CPU = "tp_tensor *{0}_cpu" + GIVEN
OUT = "- func: {0}.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n"
VALUES = "(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);"
# Entries of an operator {0}, and what has to be written for it.
FORMS = {
    "backend": (KERNEL, [CPU]),
    "backends": (HEAD + "  dispatch:\n    CPU, OpenCL: {0}_both\n", ["tp_tensor *{0}_both" + GIVEN]),
    "device_outside": (KERNEL + "    PrivateUse1: {0}_device\n", [CPU, "tp_tensor *{0}_device" + GIVEN]),
    "alias": (HEAD + "  dispatch:\n    CompositeExplicitAutograd: {0}_any\n", ["tp_tensor *{0}_any" + GIVEN]),
    "layout_key": (KERNEL + "    SparseCPU: {0}_sparse\n", [CPU, "tp_tensor *{0}_sparse" + GIVEN]),
    "layer": (KERNEL + "    Batched: {0}_batched\n", [CPU, "tp_tensor *{0}_batched" + GIVEN]),
    "nothing": ("- func: {0}(Tensor self, Scalar by=1) -> Tensor\n", ["tp_tensor *{0}_composite" + GIVEN]),
    "method": (KERNEL + "  variants: method\n", [CPU]),
    "autogen": (KERNEL + "  autogen: {0}_, {0}.out\n", [CPU]),
    "variant": (OUT + "  dispatch:\n    CPU: {0}_cpu\n", ["int {0}_cpu(tp_tensor *self, tp_tensor *out);"]),
    "structured": (
        "- func: {0}(Tensor self) -> Tensor\n  structured_delegate: {0}.out\n  no_gradient: a test\n"
        + (OUT + "  structured: True\n  dispatch:\n    CPU: {0}_cpu\n"),
        ["int {0}_meta(tp_meta *m, tp_tensor *self);", "int {0}_cpu(tp_tensor *self, tp_tensor *out);"],
    ),
    "several_types": (
        "- func: {0}(Tensor self) -> (Tensor, int)\n  no_gradient: a test\n  dispatch:\n    CPU: {0}_cpu\n",
        ["int {0}_cpu(tp_tensor *self, tp_value *results);"],
    ),
    "checked": (HEAD + "  pointwise:\n    float: self / by\n    check: by\n", ["int {prefix}_check_by" + VALUES]),
    "layouts": (KERNEL + "  layouts: {0}_layout\n", [CPU, "tp_tensor *{0}_layout" + GIVEN]),
    "inplace_layouts": (
        KERNEL + "  autogen: {0}_\n  layouts: values\n  inplace_layouts: {0}__layout\n",
        [CPU, "int {0}__layout" + GIVEN],
    ),
    "quantized": (KERNEL + "  quantized: {0}_quantized\n", [CPU, "tp_tensor *{0}_quantized" + GIVEN]),
    "nested": (KERNEL + "  nested: {0}_nested\n", [CPU, "tp_tensor *{0}_nested" + GIVEN]),
}


def written(folder: Path, operators: str) -> Path:
    folder.mkdir()
    (folder / "native_functions.yaml").write_text(operators)
    (folder / "derivatives.yaml").write_text("")
    shutil.copy(YAML / "tags.yaml", folder)
    return folder


@pytest.fixture
def yaml(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return written(tmp_path / "yaml", request.param)


def declared(error: YamlErrors | ValueError) -> list[str]:
    return [line.strip() for line in str(error).splitlines() if line.endswith(");")]


def of_each_form(prefix: str) -> tuple[str, list[str]]:
    """The entries of all forms, and what they ask for."""
    entries = "".join(entry.format(name) for name, (entry, _) in FORMS.items())
    return entries, [line.format(name, prefix=prefix) for name, (_, lines) in FORMS.items() for line in lines]


def test_every_form_outside(tmp_path: Path) -> None:
    entries, lines = of_each_form("mine")
    with pytest.raises(YamlErrors, match="none of the sources has the function") as error:
        check_library_sources(load_library(written(tmp_path / "yaml", entries), "mine"), "mine", [])
    assert sorted(declared(error.value)) == sorted(lines)


def test_every_form_in_the_tree(tmp_path: Path) -> None:
    """With what only the tree may say: primitives, and what is done with an expanded tensor in place."""
    entries, lines = of_each_form("tp")
    folder = written(tmp_path / "yaml", entries + HEAD.format("wide") + EXPANDED)
    (folder / "primitives.yaml").write_text(PRIMITIVE)
    (tmp_path / "csrc").mkdir()
    with pytest.raises(YamlErrors, match="no C file of csrc/ has the function") as error:
        check_sources(generator.load_catalog(folder), tmp_path / "csrc")
    lines += ["int tp_expanded_by" + GIVEN, "int mix_two_cpu(tp_tensor *out, tp_tensor *a);"]
    assert sorted(declared(error.value)) == sorted(lines)


EXPANDED = "  autogen: wide_\n  pointwise:\n    float: self / by\n    expanded: by\n"
PRIMITIVE = "- func: mix.two(Tensor(a!) out, Tensor a) -> ()\n  backends: [CPU]\n  doc: Mixes.\n"
TWO = "".join(
    f"- func: {name}(Tensor self) -> Tensor\n  no_gradient: a test\n  dispatch:\n    CPU: {name}_cpu\n"
    for name in ("first", "second")
)
SECOND = "tp_tensor *second_cpu(tp_tensor *self);"
FIRST = "tp_tensor *first_cpu(tp_tensor *self) { return self; }\n"


@pytest.mark.parametrize("yaml", [TWO], indirect=True)
def test_a_package(yaml: Path, tmp_path: Path) -> None:
    """setup.py, where what generate() wrote meets the project's own files; a file that those include is theirs, too."""
    source, included = tmp_path / "kernels.c", tmp_path / "second.inc"
    source.write_text('#include "mine_kernels.h"\n' + FIRST)
    generated = generate("mine", yaml, tmp_path / "gen")
    given = {"include_dirs": [str(tmp_path / "gen")]}
    with pytest.raises(ValueError, match="has the function second_cpu") as error:
        Extension("mine._ops", [*generated, str(source)], **given)
    assert f"{yaml}/native_functions.yaml:8: " in str(error.value) and f"write in {source}:" in str(error.value)
    assert declared(error.value) == [SECOND]
    Extension("mine._ops", [*generated, str(source)], extra_objects=["second.o"], **given)
    included.write_text("#define KERNEL(n) tp_tensor *n##_cpu(tp_tensor *self) { return self; }\nKERNEL(second)\n")
    source.write_text(source.read_text() + '#include "second.inc"\n')
    Extension("mine._ops", [*generated, str(source)], **given)


def test_a_notebook(tmp_path: Path) -> None:
    source = tmp_path / "kernels.c"
    source.write_text('#include "unwritten_kernels.h"\n' + FIRST)
    with pytest.raises(ValueError, match=f"write in {source}") as error:
        load_yaml("unwritten", TWO, sources=[source], build_directory=tmp_path)
    assert declared(error.value) == [SECOND]
    folder = tmp_path / "yaml"
    folder.mkdir()
    (folder / "native_functions.yaml").write_text(TWO)
    sources = [*generate("unwritten", folder, tmp_path / "gen"), source]
    with pytest.raises(ValueError, match="has the function second_cpu"):
        load("unwritten", sources, extra_include_paths=[tmp_path / "gen"], build_directory=tmp_path)


@pytest.mark.parametrize("yaml", [TWO], indirect=True)
def test_a_build_of_its_own(
    yaml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m tensorpy.codegen --library`: what is left to C is listed, and looked for where --sources says."""
    out, source = tmp_path / "gen", tmp_path / "kernels.c"
    command = ["codegen", "--library", "mine", "--yaml", str(yaml), "--out", str(out)]
    monkeypatch.setattr("sys.argv", command)
    assert generator.main() == 0
    assert "mine_kernels.h declares" in (printed := capsys.readouterr().out) and "    second_cpu\n" in printed
    source.write_text('#include "mine_kernels.h"\n' + FIRST)
    monkeypatch.setattr("sys.argv", [*command, "--sources", str(source)])
    assert generator.main() == 1
    assert SECOND in capsys.readouterr().err
    source.write_text(source.read_text() + FIRST.replace("first", "second"))
    assert generator.main() == 0
