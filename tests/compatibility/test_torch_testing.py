"""PyTorch's own test tools, which its tests import, run on tensorpy: its modules from the wheel, with and without ours.

A module of PyTorch's test tools that tensorpy has too may come from either: the programs here load the rest from the
installed torch and let `import torch` mean tensorpy.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp

ROOT = Path(__file__).resolve().parents[2]
OURS = sorted(
    p.stem for p in (ROOT / "tensorpy/testing/_internal").glob("*.py") if p.stem not in ("__init__", "parametrized")
)

FROM_THE_WHEEL = """
import importlib.abc, importlib.util, os, sys
ROOT, KEPT = {root!r}, {kept!r}

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if not name.startswith("torch.testing._internal.") or name.rpartition(".")[2] in KEPT:
            return None
        base = os.path.join(ROOT, *name.split(".")[1:])
        for file, parts in ((base + ".py", None), (os.path.join(base, "__init__.py"), [base])):
            if os.path.exists(file):
                return importlib.util.spec_from_file_location(name, file, submodule_search_locations=parts)

import tensorpy
tensorpy.as_torch()
sys.meta_path.insert(0, Finder())
"""

IMPORTS_ALL = """
import importlib, json, warnings
warnings.simplefilter("ignore")
failed = {{}}
for name in {names!r}:
    try:
        importlib.import_module("torch.testing._internal." + name)
    except ImportError as error:  # of a package that is not installed, or of one that there is no build for here
        if (error.name or "torch").startswith(("torch", "tensorpy")):
            failed[name] = repr(error)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed))
"""

# Calls of functions on other machines are not here (torch.distributed.rpc), nor modules of settings that programs
# declare, nor groups of processes that only seem to send.
NOT_HERE = (
    "distributed.ddp_under_dist_autograd_test", "distributed.rpc", "distributed.nn.api", "distributed.fake_pg",
    "fake_config_module",
)  # fmt: skip


def wheel() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    return Path(spec.origin).parent


def run(program: str, kept: tuple[str, ...] = ()) -> str:
    """What a program writes that has PyTorch's test tools on tensorpy."""
    text = FROM_THE_WHEEL.format(root=str(wheel()), kept=kept) + program
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def names() -> list[str]:
    base = wheel() / "testing/_internal"
    files = [
        *base.glob("*.py"),
        *(f for part in ("opinfo", "optests", "distributed") for f in (base / part).rglob("*.py")),
    ]
    found = {".".join(f.relative_to(base).with_suffix("").parts).removesuffix(".__init__") for f in files}
    return sorted(n for n in found if n != "__init__" and "._" not in n and not n.startswith(NOT_HERE))


@pytest.mark.parametrize("kept", [(), tuple(OURS)], ids=["wheels", "ours"])
def test_every_module_imports(kept: tuple[str, ...]) -> None:
    """Each that imports on torch itself imports on tensorpy."""
    program = IMPORTS_ALL.format(names=names())
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    elsewhere = json.loads(done.stdout.splitlines()[-1])
    assert len(elsewhere) < 5, elsewhere
    failed = json.loads(run(program, kept).splitlines()[-1])
    assert {name: why for name, why in failed.items() if name not in elsewhere} == {}


# ---- what they are made of ----


def outcome(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[str, str]:
    """The error that a call raises: its class, and its words up to where ours say more."""
    try:
        function(*args, **options)
    except Exception as error:
        return type(error).__name__, re.sub(r": got \S+, expected \S+|tensorpy\.", "", str(error).replace("torch.", ""))
    return "", ""


VALUES = """
    None|True|False|0|1|1.0|1.5|float("nan")|2j|"a"|b"a"|[1, 2]|(1, 2)|[1, 3]|{"a": 1}|{"a": 2}|{"b": 1}
    {1: 1, "a": 2}|t.tensor(1)|t.tensor(2)|t.tensor(1.0)|t.tensor([1.0])|t.tensor([1.0, 2.0])|t.tensor([1.0, 2.5])
    t.tensor([1, 2])|t.tensor([1, 4], dtype=t.uint8)|t.tensor([1, 2], dtype=t.uint8)|t.tensor([True, False])
    t.tensor([1.0, float("nan")])|t.tensor([[1.0, 2.0]])|t.tensor([1.0, 2.0], dtype=t.float64)
    t.tensor([1.0, 2.5], dtype=t.float64)|t.tensor([1 + 1j, 2.0])|t.tensor([1 + 1j, 3.0])
    t.tensor([1.0, 2.0]).to(t.float8_e5m2)|t.empty(2, device="meta")|t.eye(2).to_sparse()|t.ones(2, 2).to_sparse()
    (t.eye(2) * 2).to_sparse()|t.eye(2).to_sparse_csr()|t.eye(2)|(t.eye(2) * 2).to_sparse_csr()
    t.ones(2, 2).to_sparse_csr()|t.nn.Parameter(t.tensor([1.0, 2.0]))
    t.quantize_per_tensor(t.ones(2), 0.5, 0, t.quint8)|t.quantize_per_tensor(t.zeros(2), 0.5, 0, t.quint8)
    np.array([1.0, 2.0])|np.array([1.0, 3.0])|np.float64(1.5)|np.int64(1)|np.bool_(True)|[t.tensor(1.0), 2]
    [t.tensor(1.5), 2]|[[1, 2], [3]]|[[1, 2], [4]]|{"a": [1, {"b": t.tensor(2.0)}]}|{"a": [1, {"b": t.tensor(3.0)}]}
    object
"""


OPTIONS: list[dict[str, Any]] = [
    {},
    {"rtol": 0, "atol": 0},
    {"check_dtype": False, "check_layout": False},
    {"equal_nan": True, "check_device": False},
    {"allow_subclasses": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_assert_close_says_what_pytorchs_says(options: dict[str, Any]) -> None:
    """Each two of many values, with and without tolerances and checks."""
    torch, np = pytest.importorskip("torch"), pytest.importorskip("numpy")
    texts = [text.strip() for line in VALUES.strip().splitlines() for text in line.split("|")]
    ours, theirs = ([eval(text, {"t": lib, "np": np}) for text in texts] for lib in (tp, torch))
    wrong = []
    for (i, first), (j, second) in itertools.product(enumerate(texts), repeat=2):
        here = outcome(tp.testing.assert_close, ours[i], ours[j], **options)
        there = outcome(torch.testing.assert_close, theirs[i], theirs[j], **options)
        if there[0] == "RuntimeError" or "'<' not supported" in there[1]:  # what PyTorch's did not expect
            continue
        if here[0] != there[0] or (here[0] == "AssertionError" and here[1] != there[1]):
            wrong.append((first, second, here, there))
    assert wrong == []


def test_pairs_of_ones_own() -> None:
    """A test tool adds a class of pairs, and containers that are walked."""
    from tensorpy.testing import _comparison as c

    class Names(c.Pair):
        def __init__(self, actual: Any, expected: Any, *, fold: bool = False, **rest: Any) -> None:
            self._check_inputs_isinstance(actual, expected, cls=str)
            super().__init__(actual, expected, **rest)
            self.fold = fold

        def compare(self) -> None:
            a, b = (n.lower() if self.fold else n for n in (self.actual, self.expected))
            if a != b:
                self._fail(ValueError, f"{a} is not {b}")

        def extra_repr(self) -> tuple[str, ...]:
            return ("fold",)

    layers = (tp.nn.Sequential(tp.nn.ReLU()), {"a": ["x", "Y"]})
    kinds: dict[str, Any] = {"pair_types": (Names, c.ObjectPair), "mapping_types": (dict,)}
    assert c.not_close_error_metas(layers, layers, **kinds) == []
    assert c.not_close_error_metas(["a", {"k": "B"}], ["A", {"k": "b"}], fold=True, **kinds) == []
    found = c.not_close_error_metas(["a", {"k": "B"}, 3], ["A", {"k": "b"}, 4], **kinds)
    assert [(e.id, e.type) for e in found] == [((0,), ValueError), ((1, "k"), ValueError), ((2,), AssertionError)]
    assert (
        str(found[1].to_error(lambda words: f"<{words}>")) == "<B is not b\n\nThe failure occurred for item [1]['k']>"
    )
    assert "fold=True" in repr(Names("a", "b", fold=True, id=(1,)))
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        c.not_close_error_metas(1, 2, pair_types=(Names,))


SWITCHES = """
    backends.fp32_precision backends.cudnn.fp32_precision backends.cudnn.conv.fp32_precision
    backends.cudnn.rnn.fp32_precision backends.cuda.matmul.fp32_precision backends.mkldnn.conv.fp32_precision
    backends.mkldnn.rnn.fp32_precision backends.mkldnn.matmul.fp32_precision backends.cuda.matmul.allow_tf32
    backends.cudnn.allow_tf32
""".split()


def test_precisions_are_inherited_as_pytorchs() -> None:
    """Any row of settings, read after each: those of a kind of operator, of a backend, of all, and the older ones."""
    torch = pytest.importorskip("torch")
    draw = random.Random(7)

    def read(lib: Any) -> list[Any]:
        asked = [lambda n=n: eval(f"lib.{n}", {"lib": lib}) for n in SWITCHES] + [lib.get_float32_matmul_precision]
        return [outcome(ask) and (type(e).__name__ if (e := raised(ask)) else ask()) for ask in asked]

    def raised(ask: Callable[[], Any]) -> Exception | None:
        try:
            ask()
        except Exception as error:
            return error
        return None

    steps = [
        f"lib.{n} = {v!r}"
        for n in SWITCHES
        for v in ((True, False) if "allow" in n else ("none", "ieee", "tf32", "bf16"))
    ]
    steps += [f"lib.set_float32_matmul_precision({v!r})" for v in ("highest", "high", "medium")]
    reset = [f"lib.{n} = 'none'" for n in SWITCHES if "allow" not in n]
    reset = ["lib.set_float32_matmul_precision('highest')", "lib.backends.cudnn.allow_tf32 = True", *reset]
    # PyTorch's table of samples freezes the switches of the process that reads it.
    with warnings.catch_warnings(), getattr(torch.backends, "__allow_nonbracketed_mutation")():
        warnings.simplefilter("ignore")
        try:
            for step in [*reset, *draw.choices(steps, k=300)]:
                errors = [outcome(exec, step, {"lib": lib})[0] for lib in (tp, torch)]
                assert errors[0] == errors[1] and read(tp) == read(torch), step
        finally:
            for step in reset:
                for lib in (tp, torch):
                    exec(step, {"lib": lib})


def test_views_among_operators_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    wrong, seen = [], 0
    for whole in torch._C._dispatch_get_all_op_names():
        name, _, overload = whole.removeprefix("aten::").partition(".")
        ours, theirs = (getattr(lib.ops.aten, name, None) for lib in (tp, torch))
        ours, theirs = (getattr(packet, overload or "default", None) for packet in (ours, theirs))
        if whole.startswith("aten::") and ours is not None and theirs is not None:
            seen += 1
            wrong += [whole] if ours.is_view != theirs.is_view else []
    assert wrong == [] and seen > 2000
