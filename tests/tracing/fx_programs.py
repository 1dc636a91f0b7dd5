"""Programs that are traced by tensorpy and by PyTorch: the same text, with either as `torch`."""

from __future__ import annotations

import math
import operator
from typing import Any


def scaled(x: Any, n: Any) -> Any:
    return x * n


def programs(torch: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Names -> (a function or module, its arguments)."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.scale = nn.Parameter(torch.linspace(1.0, 2.0, 4))
            self.register_buffer("shift", torch.full((1,), 0.25))
            self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
            self.table = torch.ones(3)

        def forward(self, x: Any, flag: bool = True) -> Any:
            y = F.relu(self.conv(x), inplace=True) + self.shift
            y = y * self.scale.view(1, -1, 1, 1)
            n = y.shape[0]
            y = self.layers(y.reshape(n, -1, 3)) + self.table
            y += 1
            y = y[:, None, ..., 1:2]
            return {"a": torch.cat([y, -y], dim=1), "b": (y.sum(-1), [n, y > 0])}

    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Block()
            self.second = nn.ModuleList([nn.Linear(1, 2), nn.Linear(2, 1)])

        def forward(self, x: Any) -> Any:
            y = self.first(x)["a"]
            for layer in self.second:
                y = layer(y)
            return self.second[0](y)

    def unpack(x: Any) -> Any:
        a, b = x.chunk(2, 1)
        (c,) = (a @ b.transpose(0, 1),)
        return c

    def signs(x: Any, y: Any) -> Any:
        return abs(1 - x) ** 2 / y // 2 % 3, x @ y, ~(x > y) & (x <= y) | (x == y) ^ (x != y)

    def keywords(x: Any, *, k: float = 2.0) -> Any:
        return torch.clamp(x, min=0.25, max=k), torch.add(x, 1, alpha=2), x.mean(dim=-1, keepdim=True)

    def starred(*args: Any, **kwargs: Any) -> Any:
        return args[0] + args[1]

    def makes(x: Any) -> Any:
        table = torch.ones(4, 3)
        return (
            torch.zeros((x.shape[0], 3)) + x, table[x.long().abs() % 4], table.view(x.shape[0], -1),
            x.to(torch.float64), torch.arange(x.shape[0]), x * math.inf, x.new_full((1,), 3),
        )  # fmt: skip

    def attributes(x: Any) -> Any:
        return x.T, x.shape, x.mT.contiguous().dtype, getattr(x, "ndim")  # noqa: B009

    def constants(x: Any) -> Any:
        return x.sum((0, 1)), {"none": None, "slice": slice(1, 2)}, 1j, x.to(torch.device("cpu"))

    def names(input: Any, lambda_: Any, x_1: Any, x: Any) -> Any:
        return x_1 + x, operator.add(input, lambda_), x_1.relu().relu().sum(), x.relu()

    def listed(x: Any) -> Any:
        return torch.einsum("ij,kj->ik", [x, x]) + torch.einsum("ij,kj->ik", x, x)

    def calls_math(x: Any) -> Any:
        return x * math.sqrt(x.shape[0])

    x, image = torch.linspace(-2.0, 2.0, 8).reshape(4, 2), torch.linspace(-1.0, 1.0, 75).reshape(1, 3, 5, 5)
    square = torch.linspace(-2.0, 2.0, 9).reshape(3, 3)
    return {
        "block": (Block(), (image,)),
        "nested": (Nested(), (image,)),
        "unpack": (unpack, (x,)),
        "signs": (signs, (square, square + 3)),
        "keywords": (keywords, (x,)),
        "starred": (starred, (x, x)),
        "makes": (makes, (torch.linspace(-2.0, 2.0, 12).reshape(4, 3),)),
        "attributes": (attributes, (x,)),
        "constants": (constants, (x,)),
        "names": (names, (x, x, x, x)),
        "calls_math": (calls_math, (x,)),
        "listed": (listed, (x,)),
    }


def graphs(torch: Any, fx: Any) -> dict[str, Any]:
    """Graphs that are built by hand."""

    def every_kind() -> Any:
        graph = fx.Graph()
        x, device = graph.placeholder("x"), graph.placeholder("device", default_value=3)
        a = graph.call_function(operator.iadd, (x, 1))
        b = graph.call_function(torch.ops.aten.add.Tensor, (a, x))
        c = graph.call_module("layers.0.ConvBN", (b,))
        d = graph.get_attr("a.bWeight_3")
        e = graph.call_method("__getitem__", (d, 0))
        graph.call_method("relu_2", (e,))
        graph.call_method("relu_2", (e,))
        graph.call_function(getattr, (device, "foo"))
        graph.call_function(math.floor, (device,))
        graph.call_function(min, (x, 1))
        graph.call_function(torch.nn.functional.relu, (x,), {"inplace": True})
        graph.call_function(operator.getitem, (x, (slice(None), slice(1, x, 2))))
        graph.call_function(torch.sub, (1, 2))
        graph.create_node("call_function", torch.sub, (1, 2), {}, "x_5")
        graph.create_node("call_function", torch.sub, (1, 2), {}, "x_5")
        values = (
            math.inf,
            math.nan,
            1e-5,
            's"q',
            True,
            None,
            1 + 2j,
            torch.float32,
            torch.device("cpu"),
            torch.strided,
        )
        graph.output((c, *values))
        return graph

    def by_proxies() -> Any:
        graph = fx.Graph()
        tracer = fx.proxy.GraphAppendingTracer(graph)
        x = fx.Proxy(graph.placeholder("x", torch.Tensor), tracer=tracer)
        y = fx.Proxy(graph.placeholder("y", int, 2))
        z = torch.einsum("ij,jk->ik", x, x).reshape(y, -1) * 2
        graph.output(z.node, torch.Tensor)
        return graph

    def replaced() -> Any:
        gm = fx.symbolic_trace(lambda x, w: torch.relu(x + w) + torch.relu(w + w) + torch.relu(x))
        fx.replace_pattern(gm, lambda x, w: torch.relu(x + w), lambda x, w: torch.sigmoid(x) * w)
        return gm.graph

    def replaced_by_one_twice() -> Any:
        def pattern(x: Any, y: Any) -> Any:
            z = x - y
            return torch.sigmoid(z), torch.relu(z), z

        def replacement(x: Any, y: Any) -> Any:
            z = torch.abs(y)
            return z, z, torch.exp(x)

        gm = fx.symbolic_trace(lambda x, y: operator.mul(*pattern(x, y)[:2]))
        fx.replace_pattern(gm, pattern, replacement)
        return gm.graph

    def transformed() -> Any:
        class Negates(fx.Transformer):
            def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
                return super().call_function(torch.neg if target is torch.sigmoid else target, args, kwargs)

            def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
                return super().call_method("tanh" if target == "sigmoid" else target, args, kwargs)

        gm = fx.symbolic_trace(lambda x, n=2: torch.sigmoid(x * n).sigmoid())
        return Negates(gm).transform().graph

    def changed() -> Any:
        gm = fx.symbolic_trace(lambda x: (torch.relu(x) + 1, torch.sin(x))[0])
        (relu,) = gm.graph.find_nodes(op="call_function", target=torch.relu)
        with gm.graph.inserting_after(relu):
            new = gm.graph.call_function(torch.neg, (relu,))
        relu.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
        with gm.graph.inserting_before():
            gm.graph.placeholder("first")
        gm.graph.eliminate_dead_code()
        gm.graph.lint()
        return gm.graph

    return {f.__name__: f() for f in (every_kind, by_proxies, replaced, replaced_by_one_twice, transformed, changed)}
