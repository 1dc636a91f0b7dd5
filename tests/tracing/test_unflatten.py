"""tensorpy.export.unflatten: modules of a program, which do together and alone what the modules did."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
from test_export import PROGRAMS, Mixed

import tensorpy as tp
from tensorpy import nn
from tensorpy.export import FlatArgsAdapter, UnflattenedModule, export, load, save, unflatten


def names_of(module: nn.Module) -> list[str]:
    return [name for name, _ in module.named_modules()]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("decomposed", [False, True])
def test_modules_have_the_names_and_do_the_same(name: str, decomposed: bool) -> None:
    tp.manual_seed(0)
    make, shape, said, other = PROGRAMS[name]
    module = make()
    program = export(module, (tp.randn(shape),), dynamic_shapes=None if said is None else (said,))
    program = program.run_decompositions() if decomposed else program
    file = io.BytesIO()
    save(program, file)
    reference, x = copy.deepcopy(module), tp.randn(other)
    expected = reference(x)
    for made in (copy.deepcopy(unflatten(program)), unflatten(load(file))):
        assert names_of(made) == names_of(module) and list(made.state_dict()) == list(module.state_dict())
        tp.testing.assert_close(made(x), expected, rtol=1e-5, atol=1e-6)
        for (_, ours), (_, theirs) in zip(made.named_buffers(), reference.named_buffers(), strict=True):
            tp.testing.assert_close(ours, theirs)


class Twice(nn.Module):
    """Calls a layer twice, another with one more branch the second time; uses a weight of a module that it calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.grows = nn.Linear(3, 3), Grows()
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.layer.weight
        self.never = nn.Linear(1, 1)

    def forward(self, x: tp.Tensor) -> Any:
        a, (b, c) = self.layer(x), self.grows(x, 1)
        d, e = self.grows(self.layer(a), 2)
        return a + b, self.tied(c) @ self.layer.weight, d - e, nn.functional.linear(x, self.grows.inner.weight)


class Grows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: tp.Tensor, times: int) -> Any:
        for _ in range(times):
            x = self.inner(x).relu()
        return x, x * times


def test_calls_and_weights_that_are_shared() -> None:
    module, x = Twice(), tp.randn(2, 3)
    made = unflatten(export(module, (tp.ones(2, 3),)))
    tp.testing.assert_close(made(x), module(x))
    calls = [node.target for node in made.graph.nodes if node.op == "call_module"]
    assert calls == ["layer", "grows", "layer", "grows@1", "tied"]
    assert dict(made.named_parameters()).keys() == dict(module.named_parameters()).keys()
    assert made.layer.weight is made.tied.weight and made.layer.weight is not module.layer.weight
    tp.testing.assert_close(made.layer(x), module.layer(x))
    tp.testing.assert_close(made.grows.inner(x), module.grows.inner(x))
    with pytest.raises(RuntimeError, match="never called"):
        made.never(tp.ones(1, 1))
    made.layer = nn.Identity()
    module.layer.forward = lambda x: x  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match=r"layer\.weight"):
        made(x)  # the program itself uses the weight of what was taken out


def test_a_module_may_be_another() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
    made, x = unflatten(export(module, (tp.ones(1, 2),))), tp.randn(4, 2)[:1]
    made.get_submodule("1").add_module("0", nn.Tanh())
    tp.testing.assert_close(made(x), module[1][1](module[0](x).tanh()))


def test_arguments_and_what_is_written() -> None:
    module = Mixed()
    for program in (p := export(module, (tp.zeros(2),), {"scale": 3, "more": [tp.ones(1)]}), p.run_decompositions()):
        made, x = unflatten(program), tp.zeros(2)
        assert isinstance(made, UnflattenedModule)
        before = made.count.clone()
        result = made(x, scale=3, more=[tp.ones(1)])
        assert result["rows"] == 2 and result["more"][0].tolist() == [2.0]
        assert x.tolist() == [1.0, 1.0] and made.count.tolist() == (before + 1).tolist()
        with pytest.raises(TypeError, match="no flat args adapter"):
            made(x)
        with pytest.raises(AssertionError, match="scale == 3"):
            made(x, scale=2, more=[tp.ones(1)])


def test_an_adapter_takes_other_arguments() -> None:
    class Adapter(FlatArgsAdapter):
        def adapt(
            self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: Any = None, obj: Any = None
        ) -> list[Any]:
            return [*input_args[:1], *[tp.ones(2)] * (target_spec.num_leaves - 1)]

    class Sum(nn.Module):
        def forward(self, x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
            return x + y

    made = unflatten(export(Sum(), (tp.ones(2), tp.ones(2))), Adapter())
    assert made(tp.zeros(2)).tolist() == [1.0, 1.0]
    with pytest.raises(NotImplementedError):
        unflatten(export(Sum(), (tp.ones(2), tp.ones(2))), FlatArgsAdapter())(tp.zeros(2))
    with pytest.raises(TypeError, match="ExportedProgram"):
        unflatten(made)  # type: ignore[arg-type]


class Named(nn.Module):
    """Modules and tensors of several names, buffers that are written, and what is no part of the state."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.b.weight = self.a.weight
        self.again, self.plain = self.a, tp.ones(2)
        self.register_buffer("count", tp.ones(2))
        self.register_buffer("free", tp.ones(1), persistent=False)

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        self.count.add_(1)
        return self.again(self.b(self.a(x))) + self.count + self.plain + self.free


def test_every_name_of_a_tensor_or_module_is_there() -> None:
    module = Named()
    program = export(module, (tp.ones(1, 2),))
    assert list(program.state_dict) == [
        "a.weight", "a.bias", "b.weight", "b.bias", "again.weight", "again.bias", "count",
    ]  # fmt: skip
    assert sorted(program.constants) == ["free", "plain"]
    made, own = unflatten(program), program.module()
    names = [name for name, _ in module.named_modules(remove_duplicate=False)]
    assert [name for name, _ in made.named_modules(remove_duplicate=False)] == names
    assert made.again is made.a and made.b.weight is made.a.weight
    for other in (made, own):
        assert other.state_dict().keys() == module.state_dict().keys()
        assert "free" in dict(other.named_buffers()) and "plain" not in dict(other.named_buffers())
    assert all(node.meta.get("val") is not None for node in made.graph.nodes if node.op != "output")


def test_what_modules_write_the_program_does_not_see() -> None:
    module, x = Named(), tp.ones(1, 2)
    program = export(module, (x,))
    made, own = unflatten(program), program.module()
    expected = copy.deepcopy(module)(x)
    tp.testing.assert_close(own(x), expected)
    assert program.state_dict["count"] is own.count and made.count.tolist() == [1, 1]
    tp.testing.assert_close(made(x), expected)
    assert made.count.tolist() == [2, 2] and program.state_dict["count"].tolist() == [2, 2]
    made.a.weight.data.zero_()
    assert bool((program.state_dict["a.weight"] != 0).any())
