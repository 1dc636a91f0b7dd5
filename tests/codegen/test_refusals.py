"""What the generator reads is done, or refused with file, line and fix: never a traceback, whatever stands there."""

from __future__ import annotations

import random
import re
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from codegen import __main__ as generator
from codegen.errors import YamlError, YamlErrors
from codegen.sources import check_sources

YAML = Path(__file__, "../../../yaml").resolve()
REFUSED = (YamlError, YamlErrors)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A yaml/ folder of its own, without a tree of C files beside it."""
    monkeypatch.setattr(generator, "CSRC", tmp_path / "no csrc")
    for name in ("tags", "primitives"):
        shutil.copy(YAML / f"{name}.yaml", tmp_path)
    return tmp_path


def generate(folder: Path, operators: str, derivatives: str = "") -> dict[str, str]:
    (folder / "native_functions.yaml").write_text(operators)
    (folder / "derivatives.yaml").write_text(derivatives)
    return generator.generate(generator.load_catalog(folder))


def mistakes(error: YamlError | YamlErrors) -> tuple[YamlError, ...]:
    found = error.errors if isinstance(error, YamlErrors) else (error,)
    assert found and all(e.what and e.fix and e.location.file and e.location.line > 0 for e in found), found
    return found


# ---- PyTorch's own file ----


def entries_of(text: str) -> list[int]:
    """The lines in which entries begin, from 0, and the end."""
    lines = text.splitlines()
    return [i for i, line in enumerate(lines) if line.startswith("- func:")] + [len(lines)]


def test_every_entry_of_pytorch_is_done_or_refused(folder: Path, torch_yaml: Callable[[str], Path]) -> None:
    """What is refused is taken out until the rest generates; a layer that fails keeps the next from speaking."""
    shutil.copy(torch_yaml("ATen/native/tags.yaml"), folder / "tags.yaml")
    lines = torch_yaml("ATen/native/native_functions.yaml").read_text().splitlines()
    starts = entries_of("\n".join(lines))
    left = set(range(len(starts) - 1))
    for _ in range(12):
        kept = [line if bisect_right(starts, i) - 1 in left else "" for i, line in enumerate(lines)]
        try:
            files = generate(folder, "\n".join(kept) + "\n")
            break
        except REFUSED as error:
            named = {bisect_right(starts, e.location.line - 1) - 1 for e in mistakes(error)}
            assert named & left, error
            left -= named
    assert len(left) > 1900 and files["Functions.h"].count("\n/* ") > 2000


def test_each_entry_of_pytorch_alone(folder: Path, torch_yaml: Callable[[str], Path]) -> None:
    shutil.copy(torch_yaml("ATen/native/tags.yaml"), folder / "tags.yaml")
    lines = torch_yaml("ATen/native/native_functions.yaml").read_text().splitlines()
    starts = entries_of("\n".join(lines))
    for start, end in pairwise(starts):
        (folder / "native_functions.yaml").write_text("\n".join(lines[start:end]) + "\n")
        try:
            generator.load_catalog(folder)
        except REFUSED as error:
            mistakes(error)


# ---- our own entries, changed by chance ----

SOME = (
    "add mul sub div pow eq mean sum where clone conj conj_physical abs sgn cat sort cummax cumsum prod "
    "max_pool2d_with_indices linspace empty_permuted embedding rand native_dropout bernoulli nll_loss_forward "
    "index_put gelu clamp permute_copy to topk native_layer_norm searchsorted is_floating_point result_type isin median"
).split()
TYPES = (
    "Tensor Tensor? Tensor[] Tensor?[] int int? int[] int[2] SymInt float? Scalar Scalar[] bool? bool[3] str str[] "
    "Device ScalarType DeviceIndex Dimname Dimname[] SymBool Layout MemoryFormat Generator? Storage Stream QScheme "
    "Tensor(a!) Tensor(a) Tensor(a!)[] float[] int[]?"
).split()
TYPE = re.compile(r"\b(?:Tensor|int|Scalar|float|bool|str|ScalarType|SymInt|Device)(?:\([a-z!]+\))?\??(?:\[\d?\])?\??")
WORD = re.compile(r"[A-Za-z_]\w*|[^\w\s]|\d+")


def entries(kind: str, mark: str) -> Iterator[tuple[str, str]]:
    """(base name, text) of each entry of the tree's files."""
    for path in sorted((YAML / kind).glob("*.yaml")):
        text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.M)
        for entry in re.split(rf"^(?=- {mark}:)", text, flags=re.M):
            if found := re.match(r"- \w+: (\w+)", entry):
                yield found[1].rstrip("_"), entry


def change(text: str, words: list[str], chance: random.Random) -> str:
    kind = chance.randrange(8)
    lines = text.split("\n")
    i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
    if kind == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 1:
        del lines[i]
    elif kind == 2:
        lines[i] = " " * chance.randrange(4) + lines[i].strip()
    if kind < 3:
        return "\n".join(lines)
    types = list(TYPE.finditer(text))
    if kind < 5 and types:
        at = chance.choice(types)
        return text[: at.start()] + chance.choice(TYPES) + text[at.end() :]
    if kind == 5:
        place = chance.randrange(len(text))
        return text[:place] + chr(chance.choice([chance.randrange(32, 127), 0, 0x3BB, 9, 10])) + text[place + 1 :]
    at = chance.choice(list(WORD.finditer(text)))
    return text[: at.start()] + chance.choice(["", *words]) + text[at.end() if kind == 6 else at.start() :]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_changed_entries_are_done_or_refused(folder: Path) -> None:
    operators = list(entries("native_functions", "func"))
    derivatives = list(entries("derivatives", "name"))
    words = sorted({word for _, text in operators + derivatives for word in WORD.findall(text)})
    names = set(SOME)
    while True:  # with all that they call
        chosen = [(name, text) for name, text in operators if name in names]
        formulas = [(name, text) for name, text in derivatives if name in names]
        try:
            generate(folder, "".join(text for _, text in chosen), "".join(text for _, text in formulas))
            break
        except REFUSED as error:
            missing = set(re.findall(r"unknown operator '(\w+)'|no view (\w+)", str(error)))
            assert missing, error
            names |= {name.rstrip("_") for found in missing for name in found if name}
    chance = random.Random(20261122)
    done = 0
    for _ in range(100):
        name = chance.choice(SOME)
        own = [text for other, text in operators if other == name]
        gradients = [text for other, text in derivatives if other == name]
        changed = chance.choice(gradients if gradients and chance.random() < 0.3 else own)
        new = change(changed, words, chance)
        given = "".join(new if text is changed else text for _, text in chosen)
        given_gradients = "".join(new if text is changed else text for _, text in formulas)
        try:
            generate(folder, given, given_gradients)
            done += 1
        except REFUSED as error:
            mistakes(error)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} from:\n{new}") from error
    assert 10 < done < 90


# ---- one by one ----

PLAIN = "- func: f(Tensor self) -> Tensor\n"
DISPATCH = PLAIN + "  dispatch:\n"


@pytest.mark.parametrize(
    ("text", "line", "what", "fix"),
    [
        ("- func: f(Dimname self) -> Tensor\n", 1, "nothing takes a 'Dimname'", "c_types.py"),
        ("- func: f(Tensor self, str[] x) -> Tensor\n", 1, "nothing takes a 'str[]'", "c_types.py"),
        ("- func: f(Tensor self, QScheme x) -> Tensor\n", 1, "nothing takes a 'QScheme'", "c_types.py"),
        ("- func: f(Tensor self) -> str\n", 1, "nothing returns (str)", "return Tensors"),
        ("- func: f(Tensor self) -> Device\n", 1, "nothing returns (Device)", "return"),
        ("- func: f(Tensor self) -> Tensor?\n", 1, "nothing returns (Tensor?)", "return"),
        ("- func: f(Tensor self) -> (str, Tensor)\n", 1, "nothing returns (str, Tensor)", "return"),
        (
            "- func: f(Tensor self, Layout x=strided) -> Tensor\n",
            1,
            "cannot have the default strided",
            "take the default",
        ),
        (f"- func: f(Tensor self, int x={2**63}) -> Tensor\n", 1, "does not fit 'int x'", "x=0"),
        (f"- func: f(Tensor self, Scalar x=-{2**64}) -> Tensor\n", 1, "does not fit 'Scalar x'", "write one"),
        (f"- func: f(Tensor self, int[2] x=[1, {2**63}]) -> Tensor\n", 1, "does not fit 'int[2] x'", "write one"),
        ("- func: lambda(Tensor self) -> Tensor\n", 1, "'lambda' is a word of Python", "name it 'lambda_of'"),
        (DISPATCH + "    CPU: f::g\n", 3, "'f::g', is no name of a C function", "letters"),
        (DISPATCH + "    CPU: switch\n", 3, "'switch', is a word of C", "name it 'switch_kernel'"),
        (DISPATCH + "    CPU: malloc\n", 3, "'malloc', is a function of the C library", "name it 'malloc_kernel'"),
        (DISPATCH + "    FuncTorchBatched: f_batched\n", 3, "tensorpy has no key 'FuncTorchBatched'", "did you mean"),
        (DISPATCH + "    Sparse: a\n    SparseCUDA: b\n", 4, "both stand for Sparse", "write one 'Sparse:'"),
        (
            "- func: f(Tensor self, Tensor(a!) x) -> Tensor\n  pointwise: {number: self}\n",
            2,
            "has 'pointwise'",
            "functional",
        ),
    ],
)
def test_what_is_refused(folder: Path, text: str, line: int, what: str, fix: str) -> None:
    with pytest.raises(REFUSED) as caught:
        generate(folder, text)
    (error,) = mistakes(caught.value)
    assert error.location.line == line and what in error.what and fix in error.fix, error


@pytest.mark.parametrize(
    ("formula", "what"),
    [
        ("", "the derivative of f is empty"),
        ("  self: grad\n  result: self_p\n", "not linear in the tangents"),
        ("  self: grad\n  result: self_t + self_p\n", "not linear in the tangents"),
        (
            "  dispatch:\n    Default:\n      self: grad\n    AutogradCPU:\n      self: grad\n      result: self_t\n",
            "a tangent of f for AutogradCPU alone",
        ),
    ],
)
def test_derivatives_that_are_refused(folder: Path, formula: str, what: str) -> None:
    with pytest.raises(REFUSED) as caught:
        generate(folder, DISPATCH + "    CPU: f_cpu\n", "- name: f(Tensor self) -> Tensor\n" + formula)
    (error,) = mistakes(caught.value)
    assert what in error.what and Path(error.location.file).name == "derivatives.yaml"


def test_keys_of_backends_that_are_not_here_make_nothing(folder: Path) -> None:
    entry = (
        DISPATCH
        + "    CPU: f_cpu\n    CUDA, MPS: f_gpu\n    AutogradXPU: f_xpu\n    QuantizedCPU, QuantizedCUDA: f_q\n"
    )
    text = generate(folder, entry)["ops/native_functions.c"]
    assert "f_gpu" not in text and "f_xpu" not in text
    assert '(tp_fn)direct_f_q_f, "f_q"' in text and "{TP_KEY_Quantized, kernels_Quantized," in text
    catalog = generator.load_catalog(folder)
    assert catalog.by_name["f"].function.kernel("MPS") == "f_gpu"  # the model keeps it


def test_a_delegate_has_kernels_for_layouts(folder: Path) -> None:
    text = generate(
        folder,
        "- func: f(Tensor self) -> Tensor\n  structured_delegate: f.out\n  dispatch:\n    SparseCPU: f_sparse\n"
        "- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True\n"
        "  dispatch:\n    CPU: f_cpu\n",
    )["ops/native_functions.c"]
    assert "static const tp_kernel_entry kernels_Sparse[] = {\n    {&ops[OP_f], (tp_fn)direct_f_sparse_f," in text


def test_words_of_c_may_name_arguments(folder: Path) -> None:
    text = generate(folder, "- func: f(Tensor self, int switch, bool bool) -> Tensor\n")["Functions.h"]
    assert "tp_f(tp_tensor *self, int64_t switch_, bool bool_);" in text


def test_a_kernel_that_no_c_file_has(folder: Path) -> None:
    """Said before anything is compiled, with the name that it may have been meant to be."""
    csrc = folder / "csrc"
    (csrc / "native").mkdir(parents=True)
    (folder / "primitives.yaml").write_text("[]")
    (csrc / "native/f.c").write_text("#define BOTH(n) void n##_cpu(void) {} void n##_meta(void) {}\nBOTH(f)\n")
    (folder / "native_functions.yaml").write_text(DISPATCH + "    CPU: f_cpu\n    Meta: f_mta\n")
    with pytest.raises(YamlErrors) as caught:
        check_sources(generator.load_catalog(folder), csrc)
    (error,) = mistakes(caught.value)
    assert error.location.line == 4 and "has the function f_mta, which f needs" in error.what
    assert error.fix.endswith("        /* f(Tensor self) -> Tensor */\n        tp_tensor *f_mta(tp_tensor *self);")
    (folder / "native_functions.yaml").write_text(DISPATCH + "    CPU: f_cpu\n    Meta: f_meta\n")
    check_sources(generator.load_catalog(folder), csrc)


def test_every_kernel_of_the_tree_is_there() -> None:
    check_sources(generator.load_catalog(YAML), YAML.parent / "csrc")


@pytest.mark.parametrize(
    ("batching", "what"),
    [
        ("'lines, shared: nobody'", "'nobody' is no argument of f"),
        ("lines of code", "lines of code"),
        ("self.nothing()", "nothing"),
    ],
)
def test_batching_that_is_refused(folder: Path, batching: str, what: str) -> None:
    """A word with arguments that are not there, or what is no formula."""
    operators = f"- func: f(Tensor self, int dim) -> Tensor\n  dispatch:\n    CPU: f_cpu\n  batching: {batching}\n"
    with pytest.raises(REFUSED) as error:
        generate(folder, operators)
    assert any(what in m.what for m in mistakes(error.value)), mistakes(error.value)


ALL_AT_ONCE = """\
- func: f(Tensor self, Tensor other) -> Tensor
  composite: |
    a = self + othr
    b = a * 2
    if self.ndim > 2:
        c = self.bar
    else:
        c = undefind(3)
    b + c
- func: g(Tensor self) -> Tensor
  composite: sel * 3
"""


def test_all_mistakes_of_formulas_at_once(folder: Path) -> None:
    """One of each statement, of every formula; `b = a * 2` and the result have none of their own."""
    with pytest.raises(REFUSED) as error:
        generate(folder, ALL_AT_ONCE)
    found = [(m.location.line, m.what) for m in mistakes(error.value)]
    assert [line for line, _ in found] == [3, 6, 8, 11], found
    assert all(name in what for name, (_, what) in zip(("othr", "bar", "undefind", "sel"), found, strict=True)), found


def test_all_mistakes_of_scalar_expressions_at_once(folder: Path) -> None:
    text = "- func: {}(Tensor self) -> Tensor\n  no_gradient: a test\n  pointwise:\n    all: |\n{}"
    first = text.format("f", "      u = slef * 2\n      v = foo(self)\n      u + v + bar\n")
    with pytest.raises(REFUSED) as error:
        generate(folder, first + text.format("g", "      self * baz\n"))
    found = [m.what for m in mistakes(error.value)]
    assert len(found) == 3, found
    assert all(f"'{name}'" in what for name, what in zip(("slef", "foo", "baz"), found, strict=True)), found
