"""Small calls whose story has to be torch's: memory of storages, order of names, batches of nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from side_by_side import Scenarios, compare

scenario = Scenarios()


@scenario
def a_tensor_takes_the_memory_of_a_storage(torch: Any) -> Any:
    x, y = torch.arange(6.0), torch.empty(0)
    y.set_(x.untyped_storage(), 1, (2, 2), (2, 1))
    seen = [y.tolist(), y.storage_offset()]
    y.fill_(7)
    y.set_(source=x.untyped_storage())
    seen += [y.tolist(), x.tolist()]
    whole = torch.empty(0, dtype=torch.int64).set_(torch.tensor([3, 4]).untyped_storage())
    return [*seen, whole.tolist(), y.set_().shape]


@scenario
def a_dict_of_parameters_sorts_what_promises_no_order(torch: Any) -> Any:
    one = torch.ones(1)
    p = torch.nn.ParameterDict({"b": one, "a": one})
    p.update({"d": one, "c": one})
    p.update([("f", one), ("e", one)])
    return [list(p), list(torch.nn.ParameterDict(torch.nn.ParameterDict([("b", one), ("a", one)])))]


@scenario
def operators_are_their_own_copies(torch: Any) -> Any:
    add = torch.ops.aten.add
    return [copy.deepcopy(add) is add, copy.deepcopy(add.Tensor) is add.Tensor]


@scenario
def instance_norms_know_the_dimensions_of_one_sample(torch: Any) -> Any:
    nn = torch.nn
    return [m(3)._get_no_batch_dim() for m in (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)]


@scenario
def attention_of_no_samples(torch: Any) -> Any:
    nn = torch.nn
    x, y = torch.ones(0, 3, 8), torch.ones(0, 4, 8)
    seen = [
        nn.TransformerEncoderLayer(8, 2, batch_first=True)(x),
        nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()(x),
        nn.TransformerDecoderLayer(8, 2, batch_first=True)(x, y),
        nn.Transformer(8, 2, batch_first=True)(x, y),
        *nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x),
    ]
    return [tuple(t.shape) for t in seen]


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)
