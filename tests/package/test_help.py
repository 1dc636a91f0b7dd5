"""What help() says of every public name: a sentence, each parameter, and an example, which is run.

The public names are those that the site's reference has (docs/site/modules.py), the package's own and Tensor's. A class
is asked as it is called; of its methods a sentence and their parameters are asked, which the class may have named.
"""

from __future__ import annotations

import contextlib
import doctest
import enum
import importlib
import inspect
import pydoc
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from codegen.help_text import DIMS
from docs.site.modules import SECTIONS, _is_name_only, _names_of
from tensorpy.testing.harness import arguments, function_of
from tensorpy.testing.samples import TABLE, OpInfo

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Names without a meaning of their own: an exception or a type hint is not called by users, tags and aliases are values.
UNCALLED = (BaseException, types.ModuleType)


def modules() -> Iterator[tuple[str, Any]]:
    for name in (name for listed in SECTIONS.values() for name in listed.split() if name not in ("tensorpy", "Tensor")):
        with warnings.catch_warnings(), contextlib.suppress(ImportError):  # utils.tensorboard needs a package
            warnings.simplefilter("ignore")
            yield name, importlib.import_module(f"tensorpy.{name}")


def functions_of(module: Any) -> list[str]:
    """Functions of nn.functional are written in several modules."""
    homes = {name: getattr(getattr(module, name), "__module__", None) or "" for name in dir(module)}
    return [name for name, home in homes.items() if not home.startswith("tensorpy.") or home.startswith("tensorpy.nn")]


def is_asked(value: Any) -> bool:
    if _is_name_only(value) or isinstance(value, UNCALLED) or not callable(value):
        return False
    if inspect.isclass(value) and issubclass(value, UNCALLED):
        return False
    home = getattr(value, "__module__", None) or "tensorpy"
    return home.partition(".")[0] == "tensorpy" and not isinstance(value, types.GenericAlias)


def names() -> Iterator[tuple[str, Any]]:
    yield from ((f"tensorpy.{name}", getattr(tp, name)) for name in tp.__all__)
    yield from ((f"Tensor.{name}", getattr(tp.Tensor, name)) for name in dir(tp.Tensor) if not name.startswith("_"))
    for prefix, module in modules():
        listed = functions_of(module) if prefix == "nn.functional" else _names_of(module, prefix)
        yield from ((f"{prefix}.{name}", getattr(module, name, None)) for name in listed if not name.startswith("_"))


def public() -> dict[str, Any]:
    """Each thing once, by the first name that it has."""
    found: dict[int, tuple[str, Any]] = {}
    for name, value in names():
        if is_asked(value):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


PUBLIC = public()


def text_of(value: Any) -> str:
    """Without the schemas; of a class its own, not that of the class that it is made from."""
    own = inspect.isclass(value) and value.__doc__ is None
    return "" if own else (inspect.getdoc(value) or "").partition("Schemas:\n")[0]


def parameters(value: Any) -> list[str]:
    if inspect.isclass(value) and issubclass(value, enum.Enum):  # nobody makes a value of it
        return []
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # a type of C without a signature
        return []
    given = [p.name for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    return [name for name in given if name not in ("self", "cls") and not name.startswith("_")]


def unnamed(value: Any, text: str) -> list[str]:
    """Parameters that the text does not name, and those that it names with nothing but their types."""
    bare = re.findall(r"^    (\w+) \([^)]*\)$", text, re.MULTILINE)
    return bare + [name for name in parameters(value) if not re.search(rf"\b{re.escape(name.rstrip('_'))}_?\b", text)]


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s|\n\n", text.strip())[0]


def check(found: dict[str, object], what: str) -> None:
    listed = "\n".join(f"    {name}: {why}" if why else f"    {name}" for name, why in found.items())
    assert not found, f"{len(found)} without {what}:\n{listed}"


def test_every_name_says_what_it_is() -> None:
    assert len(PUBLIC) > 1500
    silent = {name: "" for name, value in PUBLIC.items() if len(first_sentence(text_of(value))) < 8}
    check(dict(silent), "a first sentence")


def test_help_shows_it() -> None:
    """help() looks past what a type does for its attributes, where inspect.getdoc does not."""

    def letters(text: str) -> str:
        return re.sub(r"[\s|]", "", text)

    hidden = {
        name: ""
        for name, value in PUBLIC.items()
        if letters(first_sentence(text_of(value))) not in letters(pydoc.plain(pydoc.render_doc(value)))
    }
    check(dict(hidden), "a sentence that help() shows")


def test_every_parameter_is_told() -> None:
    check({n: missing for n, v in PUBLIC.items() if (missing := unnamed(v, text_of(v)))}, "words on these parameters")


def gives_none(value: Any) -> bool:
    """Or never comes back: it raises."""
    try:
        return inspect.signature(value).return_annotation in (None, "None", "NoReturn")
    except (TypeError, ValueError):  # a function in C without a signature
        return False


def test_every_function_says_what_comes_back() -> None:
    """Of a class a call gives an object of it; of any other name help() says so."""
    asked = {name: value for name, value in PUBLIC.items() if not inspect.isclass(value) and not gives_none(value)}
    assert len(asked) > 1500
    check({name: "" for name, value in asked.items() if "Returns: " not in text_of(value)}, "what comes back")


def test_an_optimizer_that_was_made_leaves_the_help_of_its_step() -> None:
    """Whose class then has a step with hooks around it."""
    for kind in (tp.optim.SGD, tp.optim.Adam, tp.optim.LBFGS, tp.optim.Adafactor):
        kind([tp.nn.Parameter(tp.ones(1))])
        assert "Moves the parameters" in (inspect.getdoc(vars(kind)["step"]) or ""), kind


def test_every_layer_says_what_goes_in_and_what_comes_out() -> None:
    """What computes: not containers, nor the bases of layers."""
    forward = tp.nn.Module.forward
    layers = {
        n: v for n, v in PUBLIC.items() if n.startswith("nn.modules.") and getattr(v, "forward", forward) != forward
    }
    assert len(layers) > 150
    check({n: "" for n, v in layers.items() if not re.search(r"\boutputs?\b", text_of(v))}, "its output")


def test_every_name_has_an_example() -> None:
    check({name: "" for name, value in PUBLIC.items() if ">>> " not in text_of(value)}, "an example")


def test_few_examples_are_only_shown() -> None:
    """Those of calls that compile, load another's library, need another process, or change the process for good."""
    shown = {name: "" for name, value in PUBLIC.items() if "doctest: +SKIP" in text_of(value)}
    assert len(shown) <= 33, sorted(shown)


def methods() -> Iterator[tuple[str, type, Callable[..., Any]]]:
    for name, value in PUBLIC.items():
        if inspect.isclass(value):
            for own, method in list(vars(value).items()):
                raw = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
                is_field = own in vars(value).get("__annotations__", ())
                if not own.startswith("_") and inspect.isroutine(raw) and callable(raw) and not is_field:
                    yield f"{name}.{own}", value, raw


def test_functions_of_the_package_that_it_does_not_export_say_what_they_do() -> None:
    """Gradients' functions and their kin: dir() has them, and so an editor does."""
    found = {name: value for name in dir(tp) if not name.startswith("_") and is_asked(value := getattr(tp, name))}
    check({n: "" for n, v in found.items() if re.match("$|Arguments:", text_of(v))}, "a first sentence")
    check({n: missing for n, v in found.items() if (missing := unnamed(v, text_of(v)))}, "words on these")


def test_every_method_says_what_it_does() -> None:
    silent = {name: "" for name, _, method in methods() if not (inspect.getdoc(method) or "").strip()}
    silent = {
        name: ""
        for name, cls, method in methods()
        if name in silent and not (inspect.getdoc(getattr(cls, method.__name__, None)) or "").strip()
    }
    check(dict(silent), "a sentence")


def test_every_method_says_what_comes_back() -> None:
    """By the type in its signature, which help() shows, or in words; a subclass's own method by those of the base."""
    silent = []
    for name, cls, method in methods():
        annotation = getattr(inspect.unwrap(method), "__annotations__", {}).get("return", "Any")
        text = inspect.getdoc(method) or inspect.getdoc(getattr(cls, method.__name__, None)) or ""
        if annotation in ("Any", Any, "object", object) and not re.search("^Returns: ", text, re.MULTILINE):
            silent.append(name)
    check(dict.fromkeys(silent, ""), "what comes back")


class Checker(doctest.OutputChecker):
    """Numbers may differ in the last digit that is shown: libraries of math functions do."""

    NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]\d+)?")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        if re.sub(r"\s+", " ", self.NUMBER.sub("#", want)) != re.sub(r"\s+", " ", self.NUMBER.sub("#", got)):
            return False
        pairs = zip(self.NUMBER.findall(want), self.NUMBER.findall(got), strict=True)
        return all(abs(float(a) - float(b)) <= 2e-4 * max(1.0, abs(float(a))) for a, b in pairs)


EXAMPLES = {text: name for name, value in reversed(PUBLIC.items()) if ">>> " in (text := text_of(value))}


@contextlib.contextmanager
def world_of_one(text: str) -> Iterator[None]:
    """What examples of messages stand in, but for those that begin or end a world."""
    if not EXAMPLES[text].startswith("distributed.") or "init_process_group(" in text:
        yield
        return
    tp.distributed.init_process_group(store=tp.distributed.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        tp.distributed.destroy_process_group()


@pytest.mark.parametrize("text", EXAMPLES, ids=EXAMPLES.values())
def test_examples(text: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"tp": tp, "nn": tp.nn, "F": tp.nn.functional, "xp": tp.array_api}
    test = doctest.DocTestParser().get_doctest(text, given, EXAMPLES[text], None, 0)
    assert test.examples
    tp.manual_seed(0)
    said: list[str] = []
    with warnings.catch_warnings(), world_of_one(text):
        warnings.simplefilter("ignore")
        failed = doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(test, out=said.append).failed
    assert failed == 0, "".join(said)


def dims_of(info: OpInfo) -> list[int]:
    return [i for i, a in enumerate(info.op.schema.arguments) if a.name in DIMS and str(a.type) == "int"]


def broadcasts(info: OpInfo) -> bool:
    return info.op.pointwise is not None and len(info.op.pointwise.inputs) > 1


RAISED = [
    info
    for info in TABLE.values()
    if not info.name.startswith("_") and info.op.kind == "functional" and (dims_of(info) or broadcasts(info))
]


@pytest.mark.parametrize("info", RAISED, ids=lambda info: info.name)
def test_what_is_raised_is_said(info: OpInfo) -> None:
    """Of dimensions out of range, and of shapes that do not broadcast."""
    names = [a.name for a in info.op.schema.arguments]
    says = function_of(info).__doc__ or ""
    for sample in info.samples(info.main_dtype, 1):
        for i in dims_of(info):
            args, kwargs = arguments(sample, "cpu", info)
            args, kwargs = args[:i], {**dict(zip(names[i:], args[i:], strict=False)), **kwargs, names[i]: 77}
            with pytest.raises((IndexError, RuntimeError)) as raised, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function_of(info)(*args, **kwargs)
            if "Schemas:" in says:
                assert f"{raised.type.__name__} for a dim" in says
        args, kwargs = arguments(sample, "cpu", info)
        if not broadcasts(info) or sum(isinstance(a, tp.Tensor) for a in args) < 2:
            continue
        sizes = iter((7, 5, 7))
        args = [a.flatten()[:1].repeat(next(sizes)) if isinstance(a, tp.Tensor) else a for a in args]
        with pytest.raises(RuntimeError):
            function_of(info)(*args, **kwargs)
        assert "RuntimeError for shapes that do not broadcast" in says


SHOW = """
import sys
sys.path.insert(0, sys.argv[1])
import tensorpy as tp
assert tp.__file__.startswith(sys.argv[1]), tp.__file__
shown = [getattr(tp._C, name).__doc__ for name in dir(tp._C)]
shown += [getattr(tp.Tensor, name).__doc__ for name in dir(tp.Tensor)]
assert tp.add(tp.ones(1), 1).item() == 2
print(tp.Tensor.exp.__doc__ is not None)
"""


def test_a_damaged_file_of_docstrings_gives_none(tmp_path: Path) -> None:
    """Cut short, of another build, with places outside of the text or another size: tensorpy works without."""
    package, folder = Path(tp.__file__).parent, tmp_path / "tensorpy"
    folder.mkdir()
    for path in package.iterdir():
        if path.name not in ("_C.help", "__pycache__"):
            (folder / path.name).symlink_to(path)
    whole = (package / "_C.help").read_bytes()
    head = whole.index(b"\n") + 1
    count, size = int(whole[head - 18 : head - 10]), int(whole[head - 9 : head - 1])
    text = head + 8 * count
    places = whole[head:text]
    assert len(whole) == text + size
    damaged = {
        whole: True,
        whole[: len(whole) // 2]: False,
        whole[:text]: False,
        whole[:head]: False,
        whole[: head // 2]: False,
        b"": False,
        whole[:-1]: False,
        whole[:-1] + b"!": False,
        whole + b"\0": False,
        whole.replace(whole[14:18], b"0000", 1): False,
        whole[: head - 9] + b"%8d\n" % (size - 1) + whole[head:]: False,
        whole[: head - 9] + b"%8d\n" % (size + 1) + whole[head:]: False,
        whole[: head - 9] + b"99999999\n" + whole[head:]: False,
        whole[: head - 9] + b"~~~~~~~~\n" + whole[head:]: False,
        whole[:head] + b"~" * len(places) + whole[text:]: False,
        whole[:head] + b"f" * len(places) + whole[text:]: False,
        whole[:head] + places[:-8] + b"%08x" % size + whole[text:]: False,
    }
    for content, is_there in damaged.items():
        (folder / "_C.help").write_bytes(content)
        done = subprocess.run([sys.executable, "-c", SHOW, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
        assert done.stdout == f"{is_there}\n", (content[:80], done.stderr)
