"""tensorpy.export: programs as graphs whose parameters are inputs, run with other sizes beside the modules."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import nn
from tensorpy._dynamo.exc import UserError
from tensorpy._export.verifier import SpecViolationError
from tensorpy.export import Dim, ExportedProgram, export
from tensorpy.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from tensorpy.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions


class Norm(nn.Module):
    """Writes buffers where it trains."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        return self.norm(self.conv(x)).relu().flatten(1)


class Mixed(nn.Module):
    """Has parameters twice, a constant, a buffer that it puts another tensor in, and writes an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tp.ones(2))
        self.same, self.constant = self.weight, tp.tensor([1.0, 2.0])
        self.register_buffer("count", tp.zeros(2), persistent=False)

    def forward(self, x: tp.Tensor, *, scale: int = 2, more: Any = ()) -> dict[str, Any]:
        self.count = self.count + 1
        x.add_(1)
        return {
            "y": x * self.count * self.same * scale + self.constant,
            "rows": x.shape[0],
            "more": [m * 2 for m in more],
        }


def layer() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)


b, s = Dim("b"), Dim("s")
PROGRAMS: dict[str, tuple[Callable[[], Any], Any, Any, Any]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)), (3, 4), {0: b}, (9, 4)),
    "convolution": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2)), (2, 1, 8, 8), {0: b}, (5, 1, 8, 8)),
    "norm": (Norm, (2, 3, 8, 8), {0: b}, (5, 3, 8, 8)),
    "norm, not training": (lambda: Norm().eval(), (2, 3, 8, 8), {0: b}, (5, 3, 8, 8)),
    "transformer": (layer, (2, 5, 8), {0: b, 1: s}, (3, 7, 8)),
    "transformer, not training": (lambda: layer().eval(), (2, 5, 8), {0: b, 1: s}, (3, 7, 8)),
    "lstm": (lambda: nn.LSTM(4, 3, batch_first=True), (2, 5, 4), None, (2, 5, 4)),
    "gru": (lambda: nn.GRU(4, 3), (5, 2, 4), None, (5, 2, 4)),
}


def _spoil_operator(program: Any) -> None:
    next(n for n in program.graph.nodes if n.target is tp.ops.aten.add.Tensor).target = tp.ops.aten.add_.Tensor


def _spoil_branch(program: Any) -> None:
    for node in program.graph_module.true_graph_0.graph.nodes:
        node.target = tp.ops.aten.add_.Tensor if node.target is tp.ops.aten.add.Tensor else node.target


def _spoil_function(program: Any) -> None:
    next(n for n in program.graph.nodes if n.target is tp.ops.aten.add.Tensor).target = tp.add


def _spoil_parameter(program: Any) -> None:
    del program.state_dict["p"]


def _spoil_type(program: Any) -> None:
    program.state_dict["p"] = tp.ones(2)


def _spoil_buffer(program: Any) -> None:
    program.state_dict["free"] = tp.ones(2)


def _spoil_constant(program: Any) -> None:
    del program.constants["c"]


def _spoil_name(program: Any) -> None:
    program.graph_signature.input_specs[-1].arg.name = "other"


def _spoil_inputs(program: Any) -> None:
    program.graph_signature.input_specs.pop()


def _spoil_outputs(program: Any) -> None:
    program.graph_signature.output_specs.pop()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_spoil_operator, "not functional"),
        (_spoil_branch, "not functional"),
        (_spoil_function, "not an allowed operator"),
        (_spoil_parameter, "p is not in the state dict"),
        (_spoil_type, "not an instance of torch.nn.Parameter"),
        (_spoil_buffer, "is in the state dict"),
        (_spoil_constant, "constants dictionary"),
        (_spoil_name, "its signature has other"),
        (_spoil_inputs, "Number of input nodes"),
        (_spoil_outputs, "Number of output nodes"),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_what_is_no_program_is_said(spoil: Callable[[Any], None], message: str) -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p, self.c = nn.Parameter(tp.ones(2)), tp.ones(2)
            self.register_buffer("free", tp.ones(2), persistent=False)

        def forward(self, x: tp.Tensor) -> tp.Tensor:
            y = x + self.p * self.free * self.c
            return tp.cond(y.sum() > 2, lambda y: y + 1, lambda y: y - 1, (y,))

    program = export(Program(), (tp.ones(2),))
    program.validate()
    program = program.run_decompositions({})
    program.validate()
    spoil(program)
    with pytest.raises(SpecViolationError, match=message):
        program.validate()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("decomposed", [False, True])
def test_a_module_of_the_program_does_what_the_module_does(name: str, decomposed: bool) -> None:
    tp.manual_seed(0)
    make, shape, said, other = PROGRAMS[name]
    module = make()
    program = export(module, (tp.randn(shape),), dynamic_shapes=None if said is None else (said,))
    program = program.run_decompositions() if decomposed else program
    program.validate()
    reference, x = copy.deepcopy(module), tp.randn(other)
    ours, theirs = program.module()(x), reference(x)
    tp.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    for (ours_name, ours_buffer), (theirs_name, buffer) in zip(
        sorted(program.named_buffers()), sorted(reference.named_buffers()), strict=True
    ):
        assert ours_name == theirs_name
        tp.testing.assert_close(ours_buffer, buffer)
    if decomposed:
        assert not [node for node in program.graph.nodes if "!" in getattr(node.target, "_schema", "")]
        assert not module.training or tp.ops.aten.native_batch_norm.default not in {
            n.target for n in program.graph.nodes
        }


def exported(**options: Any) -> tuple[Mixed, ExportedProgram]:
    module = Mixed()
    return module, export(module, (tp.zeros(2),), {"scale": 3, "more": [tp.ones(1)]}, **options)


def test_the_signature_says_what_inputs_are() -> None:
    module, program = exported()
    assert str(program.graph_signature) == (
        "\n# inputs\n"
        "p_weight: PARAMETER target='weight'\n"
        "b_count: BUFFER target='count' persistent=False\n"
        "c_constant: CONSTANT_TENSOR target='constant'\n"
        "x: USER_INPUT\nscale: USER_INPUT\nmore_0: USER_INPUT\n"
        "\n# outputs\n"
        "add_1: USER_OUTPUT\n: USER_OUTPUT\nmul_3: USER_OUTPUT\n"
    )
    signature = program.graph_signature
    assert signature.parameters == ("weight",) and signature.buffers == signature.non_persistent_buffers == ("count",)
    assert signature.lifted_tensor_constants == ("constant",) and signature.user_inputs == ("x", 3, "more_0")
    assert signature.user_outputs == ("add_1", 2, "mul_3") and not signature.buffers_to_mutate
    assert list(program.state_dict) == ["weight", "same"] and set(program.constants) == {"count", "constant"}
    assert [p is module.weight for p in program.parameters()] == [True]
    assert program.module_call_graph[0].signature.forward_arg_names == ["x", "scale", "more"]


def test_what_a_program_writes_is_an_output_of_its_decompositions() -> None:
    _, program = exported()
    made = program.run_decompositions()
    assert made.graph_signature.buffers_to_mutate.keys() == {"add"}
    assert list(made.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    for each in (program, made):
        x = tp.zeros(2)
        module = each.module()
        before = module.count.clone()
        result = module(x, scale=3, more=[tp.ones(1)])
        assert x.tolist() == [1.0, 1.0] and module.count.tolist() == (before + 1).tolist()
        assert result["rows"] == 2 and result["more"][0].tolist() == [2.0]
        assert result["y"].tolist() == (3 * module.count + tp.tensor([1.0, 2.0])).tolist()


def test_a_program_trains() -> None:
    module = nn.Linear(3, 1)
    made = export(module, (tp.ones(2, 3),), dynamic_shapes=({0: Dim.AUTO},)).module()
    made(tp.ones(4, 3)).sum().backward()
    assert module.weight.grad is not None and module.weight.grad.tolist() == [[4.0, 4.0, 4.0]]
    with pytest.raises(NotImplementedError, match="other mode"):
        made.eval()


class Sum(nn.Module):
    def forward(self, x: tp.Tensor, y: tp.Tensor) -> Any:
        return x + y, x.shape[0]


class Branch(nn.Module):
    def forward(self, x: tp.Tensor) -> tp.Tensor:
        return x * 2 if x.shape[0] > 4 else x


class Joined(nn.Module):
    def forward(self, x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        return tp.cat([x, x, y[:1]]) + y


def test_sizes_that_vary() -> None:
    pair = (tp.ones(4, 3), tp.ones(4, 3))
    program = export(Sum(), pair, dynamic_shapes={"x": {0: b}, "y": {0: b}})
    assert repr(program.range_constraints) == "{s0: VR[2, int_oo]}"
    assert program.module()(tp.ones(6, 3), tp.ones(6, 3))[1] == 6
    assert [spec.arg.name for spec in program.graph_signature.output_specs] == ["add", "sym_size_int"]
    ranged = export(Branch(), (tp.ones(8, 3),), dynamic_shapes=({0: Dim("n", min=5, max=9)},))
    assert repr(ranged.range_constraints) == "{s0: VR[5, 9]}"
    derived = export(Joined(), (tp.ones(4, 3), tp.ones(9, 3)), dynamic_shapes=({0: b}, {0: 2 * b + 1}))
    assert derived.module()(tp.ones(3, 3), tp.ones(7, 3)).shape == (7, 3)
    for args, why in (
        ((tp.ones(3, 3), tp.ones(8, 3)), r"y.size\(\)\[0\] == 2\*x.size\(\)\[0\] \+ 1"),
        ((tp.ones(3, 4), tp.ones(7, 3)), r"x.size\(\)\[1\] == 3"),
        ((tp.ones(3), tp.ones(7, 3)), "more than"),
    ):
        with pytest.raises(AssertionError, match=f"Guard failed: .*{why}"):
            derived.module()(*args)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 9"):
        ranged.module()(tp.ones(10, 3))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] >= 5"):
        ranged.module()(tp.ones(4, 3))
    automatic = export(Branch(), (tp.ones(8, 3),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)).module()
    assert automatic(tp.ones(5, 6)).tolist() == [[2.0] * 6] * 5
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] > 4"):
        automatic(tp.ones(3, 3))
    assert (
        automatic.training and export(Branch(), (tp.ones(8, 3),)).module(check_guards=False)(tp.ones(3, 3)).sum() == 18
    )


PAIR = (tp.ones(4, 3), tp.ones(4, 3))
VIOLATIONS: dict[str, tuple[Callable[[], object], str]] = {
    "a number": (lambda: export(Sum(), PAIR, dynamic_shapes=({0: b}, None)), r"\(b\)! x.size.* for 4 alone.*b = 4"),
    "two names": (lambda: export(Sum(), PAIR, dynamic_shapes=({0: b}, {0: s})), r"\(b, s\)! .*s = b"),
    "a guard": (lambda: export(Branch(), (tp.ones(8),), dynamic_shapes=({0: b},)), r"x.size\(\)\[0\] > 4.*test_export"),
    "dynamic": (lambda: export(Sum(), PAIR, dynamic_shapes=({0: Dim.DYNAMIC}, None)), "for 4 alone"),
    "one": (lambda: export(Branch(), (tp.ones(1),), dynamic_shapes=({0: b},)), "is 1 in the example"),
    "range": (lambda: export(Branch(), (tp.ones(8),), dynamic_shapes=({0: Dim("n", max=5)},)), "8 is not in the range"),
    "alike": (
        lambda: export(Sum(), (tp.ones(4), tp.ones(5)), dynamic_shapes=({0: b}, {0: b})),
        "is 4 in x.* and 5 in y",
    ),
    "derived": (lambda: export(Sum(), (tp.ones(4), tp.ones(9)), dynamic_shapes=({0: b}, {0: 2 * b})), "9 is no 2"),
    "names": (lambda: export(Branch(), (tp.ones(8),), dynamic_shapes={"z": None}), r"\['x'\]"),
    "count": (lambda: export(Branch(), (tp.ones(8),), dynamic_shapes=(None, None)), "each of the arguments"),
    "dimension": (lambda: export(Branch(), (tp.ones(8),), dynamic_shapes=({3: b},)), "no dimension 3"),
    "kind": (lambda: export(Branch(), (tp.ones(8),), dynamic_shapes=({0: "b"},)), "a Dim, an int or None"),
    "size": (lambda: export(Branch(), (tp.ones(8),), dynamic_shapes=({0: 7},)), "the size 8, not 7"),
    "args": (lambda: export(Branch(), tp.ones(8)), "a tuple of arguments"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_what_cannot_be_exported_as_it_was_said(name: str) -> None:
    call, why = VIOLATIONS[name]
    with pytest.raises(UserError, match=why):
        call()


class ByValue(nn.Module):
    def forward(self, x: tp.Tensor) -> tp.Tensor:
        return -x if x.sum() > 0 else x


def test_other_errors() -> None:
    with pytest.raises(GuardOnDataDependentSymNode, match=r"test_export\.py:\d+"):
        export(ByValue(), (tp.ones(2),))
    with pytest.raises(ValueError, match="Expected `mod`"):
        export(lambda x: x, (tp.ones(1),))
    program = export(Sum(), PAIR)
    with pytest.raises(RuntimeError, match=r"module\(\)"):
        program(*PAIR)
    with pytest.raises(ValueError, match="exported for arguments like"):
        program.module()(PAIR[0])
    with pytest.raises(AssertionError, match="scale == 3"):
        exported()[1].module()(tp.zeros(2), scale=4, more=[tp.ones(1)])
    for wrong in (lambda: Dim("1"), lambda: Dim("b", min=3, max=2)):
        with pytest.raises(ValueError, match=r"Dim\("):
            wrong()
    with pytest.raises(TypeError, match="whole number"):
        b * 0.5
    with pytest.raises(TypeError, match="no range"):
        Dim.STATIC(max=3)


def test_names_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    names = ("InputKind", "OutputKind")
    for name in names:
        ours, theirs = (getattr(lib.export.graph_signature, name) for lib in (tp, torch))
        assert [kind.name for kind in ours] == [kind.name for kind in theirs]
    program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
    ours = export(nn.Linear(2, 3), (tp.ones(1, 2),))
    assert str(ours.graph_signature).strip() == str(program.graph_signature).strip()
    assert [(n.op, n.name) for n in ours.graph.nodes] == [(n.op, n.name) for n in program.graph.nodes]


def test_exported_code_knows_that_it_is() -> None:
    """Programs ask, and leave out what graphs cannot hold."""

    class Asks(nn.Module):
        def forward(self, x: tp.Tensor) -> tp.Tensor:
            asked.append((tp.compiler.is_exporting(), tp.compiler.is_compiling()))
            return x + 1

    asked: list[tuple[bool, bool]] = []
    export(Asks(), (tp.ones(2),))
    Asks()(tp.ones(2))
    assert set(asked[:-1]) == {(True, True)} and asked[-1] == (False, False)


# ---- what nodes come from ----


class Sourced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.pool = nn.MaxPool1d(3)

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        y = self.pool(self.layers(self.layers[0](x)))
        y = nn.functional.relu(y) + tp.add(x, 1)
        return nn.functional.softmax(y, -1).sum() * 2


def sources(graph: Any, key: str) -> list[Any]:
    return [node.meta.get(key) for node in graph.nodes if node.op == "call_function"]


def test_nodes_say_which_function_the_program_called() -> None:
    graph = tp.export.export(Sourced(), (tp.ones(3, 3),)).graph
    assert sources(graph, "source_fn_stack") == [None] * len(sources(graph, "torch_fn"))
    builtin, method = "builtin_function_or_method", "method_descriptor"
    assert dict.fromkeys(sources(graph, "torch_fn")) == dict.fromkeys([
        ("linear_1", f"{builtin}.linear"), ("linear_2", f"{builtin}.linear"), ("relu_1", "function.relu"),
        ("max_pool1d_1", "function.max_pool1d"), ("relu_2", "function.relu"), ("add_1", f"{builtin}.add"),
        ("add_2", f"{method}.add"), ("softmax_1", "function.softmax"), ("sum_1", f"{method}.sum"),
        ("mul_1", f"{method}.mul"),
    ])  # fmt: skip


@pytest.mark.parametrize(
    "graph_of",
    [
        lambda program, x: tp.export.export(program, (x,), strict=True).graph,
        lambda program, x: tp.export.export(program, (x,), strict=True).run_decompositions().graph,
        lambda program, x: tp.export.export(program, (x,), strict=True).module().graph,
        lambda program, x: tp._dynamo.export(program, aten_graph=True)(x)[0].graph,
    ],
)
def test_nodes_say_which_module_or_function_they_come_from(graph_of: Callable[..., Any]) -> None:
    graph = graph_of(Sourced(), tp.ones(3, 3))
    found = {stack[-1] for stack in sources(graph, "source_fn_stack") if stack}
    assert found >= {
        ("linear", nn.Linear), ("linear_1", nn.Linear), ("relu", nn.ReLU), ("max_pool1d", nn.MaxPool1d),
        ("relu_1", nn.functional.relu), ("add", tp.add), ("add_1", operator.add),
        ("softmax", nn.functional.softmax), ("sum_1", "sum"), ("mul", operator.mul),
    }  # fmt: skip
    parts = get_source_partitions(graph, [nn.Linear, nn.ReLU, nn.functional.softmax])
    first, second = parts[nn.Linear]
    assert {kind: len(found) for kind, found in parts.items()} == {nn.Linear: 2, nn.ReLU: 1, nn.functional.softmax: 1}
    assert check_subgraphs_connected(first, second) and check_subgraphs_connected(second, parts[nn.ReLU][0])
    assert not check_subgraphs_connected(first, parts[nn.ReLU][0])


def test_partitions_by_the_name_of_a_function() -> None:
    graph = tp.export.export(Sourced(), (tp.ones(3, 3),)).module().graph
    parts = get_source_partitions(graph, ["linear", "relu"])
    assert {kind: len(found) for kind, found in parts.items()} == {"linear": 2, "relu": 2}
