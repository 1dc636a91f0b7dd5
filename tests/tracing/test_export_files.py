"""Files of exported programs: what is read is what was written, and a file is data whatever is written into it."""

from __future__ import annotations

import builtins
import copy
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from test_export import PROGRAMS, Mixed, exported

import tensorpy as tp
from tensorpy import nn
from tensorpy.export import Dim, ExportedProgram, export, load, register_dataclass, save
from tensorpy.serialization.archive import Reader, Writer


def written(program: ExportedProgram, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    save(program, file, **options)
    file.seek(0)
    return file


def loaded(program: ExportedProgram) -> ExportedProgram:
    return load(written(program))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("decomposed", [False, True])
def test_a_program_of_a_file_does_what_the_program_does(name: str, decomposed: bool) -> None:
    make, shape, said, other = PROGRAMS[name]
    program = export(make(), (tp.randn(shape),), dynamic_shapes=None if said is None else (said,))
    program = program.run_decompositions() if decomposed else program
    again = loaded(program)
    assert str(again) == str(program) and str(loaded(again)) == str(program)
    x = tp.randn(other)
    tp.testing.assert_close(again.module()(x), program.module()(x))
    if not decomposed:
        tp.testing.assert_close(again.run_decompositions().module()(x), program.module()(x), rtol=1e-5, atol=1e-6)


def test_a_file_has_the_signature_the_tensors_and_the_inputs() -> None:
    _, program = exported()
    for each in (program, program.run_decompositions()):
        again = loaded(each)
        assert again.graph_signature == each.graph_signature and again.dialect == each.dialect
        tp.testing.assert_close(again.state_dict, each.state_dict)
        tp.testing.assert_close(again.constants, each.constants)
        assert isinstance(again.state_dict["weight"], nn.Parameter)
        assert again.call_spec == each.call_spec and again.module_call_graph == each.module_call_graph
        args, kwargs = again.example_inputs
        assert args[0].tolist() == [0.0, 0.0] and kwargs["scale"] == 3
        with pytest.raises(AssertionError, match="scale == 3"):
            again.module()(tp.zeros(2), scale=4, more=[tp.ones(1)])


class Sizes(nn.Module):
    def forward(self, x: tp.Tensor, y: tp.Tensor) -> Any:
        rows = x.shape[0]
        if rows > 3 and x.shape[1] > 3:
            return x.flatten()[: x.shape[1] // 2 - 1], y[: max(rows, 3)].sum() * (rows / 2), rows % 3
        return x, y.sum(), 0


def test_sizes_and_guards_are_in_the_file() -> None:
    b = Dim("b", min=4, max=64)
    program = export(Sizes(), (tp.ones(8, 4), tp.ones(17)), dynamic_shapes=({0: b, 1: Dim.AUTO}, {0: 2 * b + 1}))
    again = loaded(program)
    assert again.range_constraints == program.range_constraints
    assert [str(g.condition) for g in again._traced.env.guards] == [
        str(g.condition) for g in program._traced.env.guards
    ]
    for shape in ((12, 5), (10, 6), (2, 2), (9, 5), (200, 5)):
        results = []
        for each in (program, again):
            try:
                results.append(each.module()(tp.ones(shape), tp.ones(shape[0] * 2 + 1)))
            except (AssertionError, ValueError, RuntimeError) as error:
                results.append(str(error))
        assert str(results[0]) == str(results[1])


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: tp.Tensor) -> Any:
        return tp.cond(x.sum() > 0, lambda x: self.layer(x), lambda x: x - 1, (x,))


def test_control_flow_has_its_graphs() -> None:
    module = Branches()
    program = export(module, (tp.ones(2, 3),))
    for each in (program, program.run_decompositions(), loaded(program), loaded(program.run_decompositions())):
        assert tp.ops.higher_order.cond in {node.target for node in each.graph.nodes}
        for x in (tp.ones(2, 3), -tp.ones(2, 3)):
            tp.testing.assert_close(each.module()(x), module(x))


@dataclass
class Pair:
    a: tp.Tensor
    b: tp.Tensor


register_dataclass(Pair, serialized_type_name="test_export_files.Pair")


class Swap(nn.Module):
    def forward(self, pair: Pair, *, dtype: Any = None) -> Pair:
        return Pair(pair.b.to(tp.float64) + float("inf"), pair.a[..., ::2])


def test_a_dataclass_is_found_by_the_name_that_the_process_gave_it() -> None:
    program = export(Swap(), (Pair(tp.ones(4), tp.zeros(2)),), dynamic_shapes=([{0: Dim.AUTO}, None],))
    assert program.graph_signature.user_inputs == ("pair_a", "pair_b")
    made = loaded(program).module()(Pair(tp.ones(4), tp.zeros(2)))
    assert isinstance(made, Pair) and made.b.tolist() == [1.0, 1.0] and made.a.dtype == tp.float64
    with pytest.raises(AssertionError, match="Only dataclasses"):
        register_dataclass(int)


def test_extra_files_and_paths(tmp_path: Path) -> None:
    program = export(nn.ReLU(), (tp.ones(2),))
    path = tmp_path / "program.pt2"
    save(program, path, extra_files={"a": "text", "b": b"\x41"})
    extra: dict[str, Any] = {"a": "", "b": ""}
    assert load(str(path), extra_files=extra).module()(tp.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert extra == {"a": "text", "b": "A"}
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram', got 'int'"):
        save(1, path)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="no zip file"):
        load(io.BytesIO(b"import os"))


# ---- files that mean harm ----

CANARY = "canary_of_test_export_files"
CODE = f"__import__('builtins').setattr(__import__('builtins'), '{CANARY}', 1)"
HOSTILE: list[Any] = [
    None, True, -1, 2**80, 1.5, float("nan"), "", "x", CODE, f"x): {CODE} #", f"x\n{CODE}", "__class__", "forward",
    "_modules", "os.system", "__init__.__globals__", "aten::from_file", "prim::copy", "aten::__class__", "lambda",
    [], {}, [[]], {"operator": "os::system"}, {"operator": "aten::from_file"}, {"function": "eval"}, {"node": "x"},
    {"control": "__class__"}, {"dtype": "__class__"}, {"value": CODE}, {"device": CODE}, {"tuple": [CODE]},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    made = copy.copy(value)
    made[path[0]] = changed(value[path[0]], path[1:], other)
    return made


def parts() -> tuple[Any, bytes]:
    b = Dim("b", min=2, max=9)
    module = nn.Sequential(nn.Linear(2, 2), Guarded(), nn.BatchNorm1d(2))
    file = written(export(module, (tp.ones(4, 2),), dynamic_shapes=({0: b},)))
    reader = Reader(file)
    return json.loads(reader.read("program.json")), reader.read("tensors.pt")


class Guarded(nn.Module):
    def forward(self, x: tp.Tensor) -> tp.Tensor:
        y = x.reshape(-1)[: x.shape[0] ** 2] if x.shape[0] < 10 else x
        return tp.cond(y.sum() > 0, lambda x: x * 2, lambda x: x - x.shape[1], (x,))


def of(said: Any, tensors: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with Writer(file, "program") as writer:
        writer.record("program.json", said if isinstance(said, bytes) else json.dumps(said).encode())
        writer.record("tensors.pt", tensors)
    file.seek(0)
    return file


def run(file: io.BytesIO) -> bool:
    """Whether a file is loaded; its program is run then, which may fail, and nothing else happens."""
    repr(tp.ones(2))  # which loads a module at first
    modules, names = set(sys.modules), set(vars(builtins))
    try:
        program = load(file)
    except RuntimeError as error:
        assert "load()" in str(error) or "zip" in str(error), error
        return False
    finally:
        assert set(vars(builtins)) == names and set(sys.modules) == modules
    try:
        program.module()(tp.ones(4, 2))
        str(program)
    except Exception as error:
        assert not isinstance(error, (SyntaxError, NameError)), error
    assert set(vars(builtins)) == names and not hasattr(builtins, CANARY)
    return True


def test_every_part_of_a_file_may_mean_harm() -> None:
    said, tensors = parts()
    assert run(of(said, tensors))
    every = list(places(said))
    refused = 0
    generator = tp.Generator().manual_seed(0)
    for path in every:
        other = HOSTILE[int(tp.randint(len(HOSTILE), (), generator=generator))]
        refused += not run(of(changed(said, path, other), tensors))
    assert refused > len(every) * 0.8


@pytest.mark.parametrize("other", HOSTILE, ids=lambda value: str(value)[:30])
def test_names_and_targets_may_mean_harm(other: Any) -> None:
    said, tensors = parts()
    rows = said["graph"]["nodes"]
    call = next(i for i, row in enumerate(rows) if row["op"] == "call_function")
    for path in [
        ("graph", "nodes", 0, "name"), ("graph", "nodes", call, "name"), ("graph", "nodes", call, "target"),
        ("graph", "nodes", call, "op"), ("graph", "nodes", call, "args"), ("inputs", 0, 2), ("in_spec",), ("modules",),
    ]:  # fmt: skip
        if (other == "x" and path[-1] == "name") or (type(other) is list and path[-1] in ("modules", "args")):
            continue  # these may be there
        assert not run(of(changed(said, path, other), tensors)), path
    for kept in ("state", "constants"):
        data = tp.load(io.BytesIO(tensors), weights_only=True)
        data[kept] = other
        again = io.BytesIO()
        tp.save(data, again)
        assert not run(of(said, again.getvalue())) or (kept == "constants" and other == {}), kept


def test_tensors_are_read_as_data() -> None:
    said, _ = parts()

    class Harm:
        def __reduce__(self) -> Any:
            return exec, (CODE,)

    file = io.BytesIO()
    tp.save({"state": {}, "constants": {}, "example": [Harm()]}, file)
    assert not run(of(said, file.getvalue()))


def test_the_container_may_be_damaged() -> None:
    data = written(export(nn.Linear(2, 2), (tp.ones(4, 2),))).getvalue()
    generator = tp.Generator().manual_seed(0)
    for _ in range(300):
        broken = bytearray(data)
        place = int(tp.randint(len(data), (), generator=generator))
        broken[place] = int(tp.randint(256, (), generator=generator))
        run(io.BytesIO(bytes(broken)))
        run(io.BytesIO(data[:place]))
    inflated = io.BytesIO()
    with zipfile.ZipFile(inflated, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("program/program.json", " " * 10_000_000)
    assert not run(inflated)


def test_work_is_bounded() -> None:
    said, tensors = parts()
    assert not run(of(b"[" * 100_000, tensors))
    power = [[1, [["symbol", said["environment"]["symbols"][0][0]]]]]
    for _ in range(40):
        power = [[1, [["pow", power, [[9, []]]]]]]
    guard = [["gt", power, [[1, []]]], ""]
    assert not run(of(changed(said, ("environment", "guards"), [guard]), tensors))


def test_what_cannot_be_written_is_said() -> None:
    program = export(Mixed(), (tp.zeros(2),), {"scale": 3, "more": [tp.ones(1)]})
    node = next(n for n in program.graph.nodes if n.op == "call_function")
    node.target = print
    with pytest.raises(TypeError, match="is no operator"):
        save(program, io.BytesIO())
