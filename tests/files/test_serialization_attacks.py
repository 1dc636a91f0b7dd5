"""Files from nobody knows whom: `load` gives data or an error, has no effect, and works as long as it."""

from __future__ import annotations

import io
import os
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from unpickled import archive, named, text

import tensorpy as tp
from tensorpy import fx, nn
from tensorpy.serialization import get_unsafe_globals_in_checkpoint, names, safe_globals

RECORDS = {"data/0": bytes(range(48)), "byteorder": b"little"}


def load(program: bytes, **options: Any) -> Any:
    return tp.load(archive(b"\x80\x02" + program + b".", RECORDS), **options)


def call(module: str, name: str, *arguments: Any) -> bytes:
    return named((module, name)) + pickle.dumps(arguments, 2)[2:-1] + b"R"


# ---- effects ----


def told(kind: str, seed: int) -> str:
    here = Path(__file__).parent
    run = [sys.executable, str(here / "unpickled.py"), kind, str(seed)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("kind", ["names", "programs", "mutations"])
def test_no_program_has_an_effect(kind: str) -> None:
    said = told(kind, 0)
    assert "EFFECT" not in said and "CHANGED" not in said, said[:3000]
    assert "'loaded'" in said and "'refused'" in said  # the programs come far enough to mean something


def test_an_effect_would_be_seen() -> None:
    assert "EFFECT ['open" in told("allowed", 0).replace('"', "'")


def node(*parts: Any) -> dict[str, Any]:
    return {"version": 1, "nodes": [parts], "specs": (None, None), "static": []}


EMPTY = ("tuple", []), ("dict", [])


@pytest.mark.parametrize(
    ("state", "constants"),
    [
        (node("placeholder", "x", ("unknown", "x=PWNED.append(1)"), *EMPTY), {}),
        (node("call_function", "x", ("operator", "os::system.__call__"), *EMPTY), {}),
        ({**node(), "nodes": []}, {"__class__.__base__.__base__.pwned": 1}),
    ],
)
def test_graphs_are_code_and_are_not_loaded(state: Any, constants: Any) -> None:
    program = call("tensorpy.fx.graph_module", "rebuild", state, constants, "G")
    with pytest.raises(
        pickle.UnpicklingError, match=r"(?s)Weights only load failed.*graph_module\.rebuild.*weights_only=False"
    ):
        load(program)
    assert not hasattr(nn.Module, "pwned") and not hasattr(object, "pwned")
    with pytest.raises((TypeError, AttributeError)):  # no graph that was saved looks like this
        load(program, weights_only=False)


def test_a_graph_module_is_loaded_by_who_trusts_it() -> None:
    module, file = fx.symbolic_trace(nn.Linear(2, 2)), io.BytesIO()
    tp.save(module, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        tp.load(file)
    file.seek(0)
    x = tp.ones(1, 2)
    assert tp.equal(tp.load(file, weights_only=False)(x), module(x))


def test_no_operator_is_an_attribute_of_a_module() -> None:
    from tensorpy.fx.node import overload

    assert overload("aten::add.Tensor") is tp.ops.aten.add.Tensor
    for name in ("os::system.__call__", "Any::x", "aten::add.__class__", "aten::__class__"):
        with pytest.raises(AttributeError):
            overload(name)


@pytest.mark.parametrize("attribute", ["__class__", "items", "grad", "backward", "__reduce_ex__", "to"])
def test_attributes_of_a_class_stay(attribute: str) -> None:
    state = b"}" + text(attribute) + named(("builtins", "set")) + b"s"
    for program in (
        call("collections", "OrderedDict") + state + b"b",
        named(("torch._utils", "_rebuild_parameter_with_state")) + b"(" + tensor() + b"\x89}" + state + b"tR",
    ):
        try:
            made = load(program)
        except pickle.UnpicklingError:
            continue
        assert not hasattr(type(made), attribute)


def test_a_file_imports_no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorpy.backends import _entry_points

    def imported(*unused: Any, **also: Any) -> Any:
        raise AssertionError("a file looked for a package")

    monkeypatch.setattr("importlib.metadata.entry_points", imported)
    monkeypatch.setattr(_entry_points, "_asked", set())
    with pytest.raises(RuntimeError):
        load(call("torch", "device", "strange"))
    with pytest.raises(RuntimeError, match="strange"):
        load(tensor(location="strange:0"))
    with pytest.raises(AssertionError):
        tp.device("strange")


# ---- the check ----


@pytest.mark.parametrize(
    "program",
    [
        text("os") + text("system") + b"\x93",
        text("os") + b"q\x00" + text("system") + b"q\x01h\x00h\x01\x93",
        text("os") + text("system") + text("other") + b"0\x93",
        text("other") + b"q\x050" + text("os") + text("system") + text("x") + text("y") + b"00\x93",
        named(("os", "system")),
        b"]" + named(("os", "system")) + b"0",
        named(("os", "system")) + b"]\x85R}b" + b"J",  # and damaged after it
    ],
)
def test_the_check_sees_what_the_loader_sees(program: bytes) -> None:
    file = archive(b"\x80\x04" + program + b".", RECORDS)
    assert get_unsafe_globals_in_checkpoint(file) == ["os.system"]
    with pytest.raises(pickle.UnpicklingError, match=r"os\.system"):
        tp.load(file)
    file.seek(0)
    with safe_globals([(os.system, "os.system")]):  # which no user's word allows
        assert get_unsafe_globals_in_checkpoint(file) == ["os.system"]
        with pytest.raises(pickle.UnpicklingError, match=r"os\.system whose module os is blocked"):
            tp.load(file)
    with safe_globals([(abs, "home.made")]):
        assert get_unsafe_globals_in_checkpoint(archive(b"\x80\x04" + named(("home", "made")) + b".", RECORDS)) == []


def test_the_check_wants_an_archive() -> None:
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        get_unsafe_globals_in_checkpoint(io.BytesIO(pickle.dumps(1)))


# ---- work and memory ----


def tensor(
    sizes: tuple[int, ...] = (3,), strides: tuple[int, ...] = (1,), location: str = "cpu", kind: str = "Float"
) -> bytes:
    count = 48 // names.STORAGES[kind].itemsize
    entry = (
        text("storage")
        + named(("torch", f"{kind}Storage"))
        + text("0")
        + text(location)
        + b"J"
        + struct.pack("<i", count)
    )
    place = pickle.dumps((0, sizes, strides, False, OrderedDict()), 2)
    assert place[2:3] == b"("
    return named(("torch._utils", "_rebuild_tensor_v2")) + b"((" + entry + b"tQ" + place[3:-1].rstrip(b".") + b"R"


SPARSE = call("torch.serialization", "_get_layout", "torch.sparse_coo")
DOUBLED = b")q\x00" + b"h\x00h\x00\x86q\x00" * 60  # a tuple of 2 ** 60 empty tuples


def comparisons(depth: int) -> bytes:
    """Two sets that are equal, not the same, and are found to be so by 2 ** depth comparisons."""
    one = b"(K\x01K\x02\x86\x91q%c"
    grown = b"(h%ch%c\x86\x91q%c"
    pairs = [b"\x80\x04", one % 1 + b"0", one % 2 + b"0"]
    pairs += [(grown % (a, a, a)) + b"0" for _ in range(depth) for a in (1, 2)]
    return b"".join(pairs) + b"}h\x01Ns" + b"h\x02Ns"


def colliding(count: int) -> bytes:
    """Integers with the same hash."""
    step = 2**61 - 1
    return (
        b"}("
        + b"".join(b"\x8a" + bytes([12]) + (5 + step * i).to_bytes(12, "little") + b"N" for i in range(1, count))
        + b"u"
    )


LONG = b"\x8b" + struct.pack("<i", 100_000) + b"\x01" * 100_000


@pytest.mark.parametrize(
    "program",
    [
        b"}" + DOUBLED + b"Ns",
        b"\x8f(" + DOUBLED + b"\x90",
        b"(" + DOUBLED + b"\x91",
        named(("builtins", "set")) + b"](" + DOUBLED + b"e\x85R",
        named(("collections", "OrderedDict")) + b"]" + DOUBLED + b"N\x86a\x85R",
        b"}" + b")" + b"\x85" * 100_000 + b"Ns",
        comparisons(40),
        colliding(20_000),
        LONG + b"q\x010}(" + b"h\x01N" * 50_000 + b"u",
        text("a" * 100_000) + b"q\x010}(" + b"h\x01N" * 50_000 + b"u",
        DOUBLED + b"Q",
        named(("torch.serialization", "_get_layout")) + DOUBLED + b"\x85R",
        named(("_codecs", "encode")) + text("a") + DOUBLED + b"\x86R",
        named(("torch", "Size")) + DOUBLED + b"\x85R",
        named(("torch", "device")) + DOUBLED + b"\x85R",
        named(("torch", "device")) + text("cpu") + DOUBLED + b"\x86R",
        DOUBLED + DOUBLED + b"\x93",
        # a row of 2 ** 40 elements over four bytes, where a few were expected
        named(("torch._tensor", "_rebuild_from_type_v2")) + b"(" + named(("torch._utils", "_rebuild_tensor_v2"))
        + named(("torch", "Tensor")) + tensor((2**40,), (0,)) + b"}tR",
        named(("torch._utils", "_rebuild_sparse_tensor")) + b"(" + SPARSE
        + b"(" + tensor((1, 2**40), (0, 0), kind="Long") + tensor((2**40,), (0,)) + b"K\x05\x85ttR",
        named(("torch._utils", "_rebuild_sparse_tensor")) + b"(" + SPARSE
        + b"(" + tensor((1, 1), (1, 1), kind="Long") + tensor((1,), (1,)) + tensor((2**40,), (0,)) + b"ttR",
    ],
)  # fmt: skip
def test_work_is_bounded_by_the_size_of_the_file(program: bytes) -> None:
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        load(program)


def test_no_record_is_read_more_often_than_it_is_there() -> None:
    """A header may claim a name of 64 KiB in each of many entries; the name in the directory is what is compared."""
    file = bytearray(archive(b"\x80\x02N.", RECORDS).getvalue())
    file[26:28] = b"\xff\xff"
    with pytest.raises(RuntimeError, match="called otherwise"):
        tp.load(io.BytesIO(bytes(file) + b""))


def test_many_keys_are_no_attack() -> None:
    many = {
        "numbers": {i: -i for i in range(5000)},
        "pairs": {(i, j): None for i in range(-40, 40) for j in range(-40, 40)},
        "floats": {i / 7: 1 for i in range(3000)},
        "large": {2**64 + i: 1 for i in range(3000)},
        "words": {f"layer.{i}.weight": i for i in range(3000)},
        "kinds": {t: str(t) for t in (tp.float32, tp.int64)},
        "sets": [{(i, str(i)) for i in range(100)} for _ in range(20)],
    }
    file = io.BytesIO()
    tp.save(many, file)
    file.seek(0)
    assert tp.load(file) == many
