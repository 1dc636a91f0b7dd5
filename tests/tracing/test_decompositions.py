"""Tables of decompositions: composite kernels as what make_fx records in operators' places."""

from __future__ import annotations

from typing import Any

import pytest

import tensorpy as tp
from tensorpy._decomp import (
    CompositeDecomposition,
    core_aten_decompositions,
    decomposition_table,
    get_decompositions,
    register_decomposition,
)  # fmt: skip
from tensorpy.fx.experimental.proxy_tensor import make_fx

aten = tp.ops.aten
F = tp.nn.functional

PROGRAMS: dict[str, Any] = {
    "stack": lambda x: tp.stack([x, x * 2]).sum(0),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "views": lambda x: x.transpose(1, 2).reshape(-1).unsqueeze(0).expand(2, -1),
    "norms": lambda x: F.layer_norm(x, x.shape[-1:]) + x.norm(),
    "losses": lambda x: F.mse_loss(x, x * 2) + F.smooth_l1_loss(x, x + 1),
    "writes": lambda x: x.clone().add_(1).clamp_(0, 2),
    "a gradient": lambda x: tp.autograd.grad(tp.stack([y := x.detach().requires_grad_(), y]).sin().sum(), y)[0],
    "draws": lambda x: F.dropout(x, 0.5) + tp.rand(2),
}


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_decomposed_computes_the_same(name: str, mode: str) -> None:
    f, x = PROGRAMS[name], tp.rand(2, 3, 4, 2)
    module = make_fx(f, decomposition_table=core_aten_decompositions(), tracing_mode=mode)(x)
    given = tp.rand(2, 3, 4, 2)
    tp.manual_seed(1)
    expected = f(given)
    tp.manual_seed(1)
    tp.testing.assert_close(module(given), expected)
    called = {node.target for node in module.graph.nodes if node.op == "call_function"}
    assert aten.stack.default not in called
    assert not [node for node in module.graph.nodes if node.op == "get_attr"]  # no result became a constant


def test_a_kernel_that_calls_no_operator_is_no_decomposition() -> None:
    assert aten.transpose.int in decomposition_table
    module = make_fx(lambda x: x.transpose(0, 1) + 1, decomposition_table=decomposition_table)(tp.ones(2, 3))
    assert [node.name for node in module.graph.nodes] == ["x_1", "transpose", "add", "output"]
    assert module(tp.zeros(3, 4)).shape == (4, 3)


def test_tables_come_of_the_dispatcher() -> None:
    for op in decomposition_table:
        rows = {row.key: row.registered_as for row in tp.dispatch.table(op.name().partition("::")[2])}
        assert rows["CPU"] == "CompositeExplicitAutograd" and not op._schema.is_mutable
    core = core_aten_decompositions()
    assert not [op for op in core if tp.Tag.core in op.tags]
    assert aten.linear.default in core and aten.stack.default in core and aten.add.Tensor not in core


def test_operators_and_overloads_are_asked_for() -> None:
    found = get_decompositions([aten.stack, aten.add])
    assert set(found) == {aten.stack.default}
    assert isinstance(found[aten.stack.default], CompositeDecomposition)
    assert set(get_decompositions([aten.stack.default], "pre_autograd")) == set()
    with pytest.raises(AssertionError, match="post_autograd"):
        get_decompositions([aten.stack], "late")


def test_a_program_registers_its_own() -> None:
    table: dict[Any, Any] = {aten.stack.default: CompositeDecomposition(aten.stack.default)}

    @register_decomposition([aten.silu.default, aten.stack], table)
    def silu(x: Any) -> Any:
        return x * x.sigmoid()

    assert table[aten.silu.default] is silu is table[aten.stack.default]
    module = make_fx(F.silu, decomposition_table=table)(tp.ones(2))
    assert [node.name for node in module.graph.nodes][1:] == ["sigmoid", "mul", "output"]
    with pytest.raises(RuntimeError, match=r"duplicate registrations for aten.silu.default"):
        register_decomposition(aten.silu.default, table)(silu)


def test_a_function_gets_sizes_that_are_symbols() -> None:
    seen = []

    def view(x: Any, size: Any) -> Any:
        seen.append(str(size))
        return NotImplemented

    table = {aten.view.default: view}
    f = lambda x: x.view(x.shape[0] * x.shape[1])  # noqa: E731
    module = make_fx(f, decomposition_table=table, tracing_mode="symbolic")(tp.ones(3, 4))
    assert seen == ["[s0*s1]"] and module(tp.ones(2, 5)).shape == (10,)
