"""Module, Parameter and the containers."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import warnings
from collections import OrderedDict
from typing import Any

import pytest
from side_by_side import Scenarios, compare, error_of, fill, filled, linear

import tensorpy as tp
from tensorpy import nn

scenario = Scenarios()


def net(t: Any) -> Any:
    """A module with modules, a shared one, buffers of both kinds, and a parameter of its own."""

    class Net(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = linear(t)
            self.second = t.nn.Sequential(linear(t, 3, 2), t.nn.ReLU())
            self.again = self.first
            self.scale = t.nn.Parameter(filled(t, 1))
            self.register_buffer("seen", t.zeros(2))
            self.register_buffer("hidden", t.ones(1), persistent=False)
            self.register_buffer("nothing", None)
            self.register_parameter("none", None)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x)) * self.scale

    return Net()


# ---- what a module consists of ----


@scenario
def names(t: Any) -> Any:
    m = net(t)
    return [
        [n for n, _ in m.named_parameters()],
        [n for n, _ in m.named_parameters(remove_duplicate=False)],
        [n for n, _ in m.named_parameters(prefix="p", recurse=False)],
        [n for n, _ in m.named_buffers()],
        [n for n, _ in m.named_modules(prefix="p")],
        [n for n, _ in m.named_modules(remove_duplicate=False)],
        [n for n, _ in m.named_children()],
        list(m.state_dict()),
        list(m.state_dict(prefix="x.")),
        list(m.state_dict()._metadata.items()),
        len(list(m.modules())), len(list(m.parameters())), len(list(m.buffers())), len(list(m.children())),
        sorted(set(dir(m)) - set(dir(t.nn.Module))),
        repr(m),
    ]  # fmt: skip


@scenario
def attributes(t: Any) -> Any:
    m, p = t.nn.Module(), t.nn.Parameter(filled(t, 2))
    told = [error_of(lambda: m.nope)]
    m.a = 3
    m.a = p
    told += [list(m._parameters), "a" in m.__dict__]
    told += [error_of(lambda: setattr(m, "a", filled(t, 2)))]
    m.a = None
    told += [m.a, list(m._parameters)]
    told += [error_of(lambda: setattr(m, "a", t.nn.ReLU()))]
    del m.a
    m.a = linear(t)
    told += [list(m._modules), list(m._parameters)]
    told += [error_of(lambda: setattr(m, "a", 3))]
    m.b = t.nn.Buffer(filled(t, 2))
    m.c = t.nn.Buffer(filled(t, 2), persistent=False)
    told += [list(m._buffers), list(m.state_dict()), m._non_persistent_buffers_set]
    m.b = filled(t, 1)
    m.d = filled(t, 1)
    told += [list(m._buffers), "d" in m.__dict__, error_of(lambda: setattr(m, "b", 3))]
    del m.c, m.a, m.d
    told += [list(m._buffers), list(m._modules), m._non_persistent_buffers_set, error_of(lambda: delattr(m, "zz"))]
    told += [isinstance(p, t.nn.Parameter), isinstance(m.b, t.nn.Buffer), isinstance(filled(t, 1), t.nn.Parameter)]
    return told


@scenario
def refusals(t: Any) -> Any:
    m, p = t.nn.Module(), t.nn.Parameter(filled(t, 2))

    def early(value: Any) -> Any:
        class Early(t.nn.Module):
            def __init__(self) -> None:
                self.value = value

        return Early

    calls = [
        lambda: m.register_buffer(3, None), lambda: m.register_buffer("", None), lambda: m.register_buffer("a.b", None),
        lambda: m.register_buffer("training", None), lambda: m.register_buffer("x", 3),
        lambda: m.register_parameter("x", 3), lambda: m.register_parameter("x", p * 2),
        lambda: m.register_parameter("a.b", p), lambda: m.add_module("x", 3), lambda: m.add_module(3, m),
        lambda: m.add_module("", m), lambda: m.add_module("a.b", m), lambda: m.add_module("training", m),
        lambda: m(1), lambda: m.train(3), lambda: t.nn.Module(3), early(p), early(t.nn.ReLU()), m.get_extra_state,
        lambda: m.get_submodule("a.b"), lambda: m.get_parameter("q"), lambda: m.get_parameter("training"),
        lambda: m.get_buffer("q"), lambda: m.set_submodule("", m), lambda: m.set_submodule("a", 3),
        lambda: m.set_submodule("a.b", t.nn.ReLU()), lambda: m.set_submodule("a", t.nn.ReLU(), strict=True),
        lambda: m.to(t.int64), lambda: m.load_state_dict(3), lambda: t.nn.Parameter("x"),
    ]  # fmt: skip
    return [error_of(call) for call in calls]


@scenario
def paths(t: Any) -> Any:
    m = net(t)
    told = [repr(m.get_submodule("second.0")), m.get_submodule("") is m, m.get_parameter("first.bias")]
    told += [m.get_buffer("seen"), error_of(lambda: m.get_buffer("scale")), error_of(lambda: m.get_submodule("scale"))]
    m.set_submodule("second.1", t.nn.Tanh())
    m.set_submodule("third", t.nn.Tanh())
    return [*told, repr(m)]


@scenario
def moving(t: Any) -> Any:
    m = net(t)
    weight = m.first.weight
    m(filled(t, 1, 3)).sum().backward()
    grad = weight.grad
    told = [m.double() is m, m.first.weight is weight, str(weight.dtype), str(weight.grad.dtype), str(m.seen.dtype)]
    told += [weight.grad is grad, str(grad.dtype)]
    told += [str(m.half().scale.dtype), str(m.bfloat16().scale.dtype), str(m.float().hidden.dtype)]
    told += [str(m.to(t.float64).scale.dtype), str(m.to("cpu", t.float32).scale.dtype), m.first is m.again]
    told += [str(m.to(filled(t, 1).double()).scale.dtype), str(m.to(dtype=t.float32, device="cpu").scale.dtype)]
    told += [str(m.type(t.float64).scale.dtype), m.cpu() is m]
    m.to("meta")
    told += [str(m.first.weight.device), m.first.weight.requires_grad, isinstance(m.scale, t.nn.Parameter)]
    told += [error_of(lambda: m.to("cpu")), str(m.to_empty(device="cpu").seen.device), m.first is m.again]
    told += [error_of(lambda: m.to("cpu", "cpu")), error_of(lambda: m.to(nonsense=1))]
    conv = t.nn.Conv2d(2, 2, 3).to(memory_format=t.channels_last)
    return [*told, conv.weight.is_contiguous(memory_format=t.channels_last)]


@scenario
def switches(t: Any) -> Any:
    m = net(t)
    told = [m.training, m.eval() is m, m.first.training, m.train().second[1].training]
    m.requires_grad_(False)
    told += [[p.requires_grad for p in m.parameters()], m.requires_grad_() is m]
    m(filled(t, 1, 3)).sum().backward()
    told += [m.first.bias.grad]
    m.zero_grad(set_to_none=False)
    told += [m.first.bias.grad]
    m.zero_grad()
    names = []
    m.apply(lambda module: names.append(type(module).__name__))
    return [*told, m.first.bias.grad, names]


# ---- state ----


@scenario
def loading(t: Any) -> Any:
    m, other = net(t), net(t)
    with t.no_grad():
        for p in other.parameters():
            p.mul_(2)
    told = [str(m.load_state_dict(other.state_dict())), m.first.weight, m.first is m.again]
    state = OrderedDict(other.state_dict())
    del state["scale"]
    state["more"] = filled(t, 1)
    told += [error_of(lambda: m.load_state_dict(state)), str(m.load_state_dict(state, strict=False))]
    state = {**other.state_dict(), "first.weight": filled(t, 1)}
    told += [
        error_of(lambda: m.load_state_dict(state, strict=False)),
        error_of(lambda: m.load_state_dict({"scale": 3})),
    ]
    before, given = m.scale, other.state_dict()
    m.load_state_dict(given, assign=True)
    told += [m.scale is before, isinstance(m.scale, t.nn.Parameter), m.scale.requires_grad]
    told += [m.scale.data_ptr() == given["scale"].data_ptr(), m.seen is given["seen"]]
    kept = m.state_dict(keep_vars=True)
    told += [kept["scale"] is m.scale, m.state_dict()["scale"].requires_grad]
    return told


@scenario
def what_loading_says(t: Any) -> Any:
    m = linear(t)
    try:
        m.load_state_dict({"weight": filled(t, 2, 2), "more": filled(t, 1), "deep.er": filled(t, 1)})
    except RuntimeError as error:
        return str(error).replace("torch", "tensorpy").splitlines()


@scenario
def extra_state(t: Any) -> Any:
    class Counting(t.nn.Linear):
        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    m, other = Counting(2, 2), Counting(2, 2)
    m.count, other.count = 3, 0
    other.load_state_dict(m.state_dict())
    told = [list(m.state_dict()), other.count]
    told += [error_of(lambda: other.load_state_dict(linear(t, 2, 2).state_dict()))]
    told += [error_of(lambda: linear(t, 2, 2).load_state_dict(m.state_dict()))]
    return told


@scenario
def versions(t: Any) -> Any:
    """A state of version 1 of batch norm has no count of batches."""
    m = t.nn.BatchNorm1d(2)
    state = m.state_dict()
    del state["num_batches_tracked"]
    told = [error_of(lambda: m.load_state_dict(state))]
    state._metadata[""]["version"] = 1
    return [*told, str(m.load_state_dict(state)), state._metadata]


@scenario
def state_hooks(t: Any) -> Any:
    m, told = linear(t), []
    m.register_state_dict_pre_hook(lambda module, prefix, keep: told.append(["pre", prefix, keep]))
    handle = m.register_state_dict_post_hook(lambda module, state, prefix, local: state.update(extra=local))
    m.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: state.pop(prefix + "extra", None))
    m.register_load_state_dict_post_hook(lambda module, keys: told.append(["post", list(keys)]))
    state = m.state_dict()
    told.append(list(state))
    told.append(str(m.load_state_dict(state)))
    handle.remove()
    told.append(list(m.state_dict()))
    m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    told.append(str(m.load_state_dict({})))
    return told


@scenario
def copies(t: Any) -> Any:
    m = net(t)
    m.register_forward_hook(_double)
    told = []
    for other in (copy.deepcopy(m.second), pickle.loads(pickle.dumps(m.second)), copy.copy(m.second)):
        told += [repr(other), other[0].weight, other[0].weight is m.second[0].weight]
        told += [type(other[0].weight).__name__, other[0].weight.is_leaf]
    deep = copy.deepcopy(m)
    told += [deep.first is deep.again, deep.first is m.first, deep(filled(t, 1, 3)), deep.second is m.second]
    with_grad = linear(t)
    with_grad(filled(t, 1, 3)).sum().backward()
    return [*told, copy.deepcopy(with_grad).weight.grad, copy.copy(with_grad).weight is with_grad.weight]


def _double(module: Any, args: Any, output: Any) -> Any:
    return output * 2


# ---- hooks ----


@scenario
def forward_hooks(t: Any) -> Any:
    m, told, x = linear(t), [], filled(t, 1, 3)
    pre = m.register_forward_pre_hook(lambda module, args: told.append("pre 1"))
    m.register_forward_pre_hook(lambda module, args: args[0] * 2, prepend=True)
    m.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"input": kwargs["input"] * 3} if kwargs else kwargs), with_kwargs=True
    )
    m.register_forward_hook(lambda module, args, output: told.append(["hook", len(args)]))
    m.register_forward_hook(lambda module, args, kwargs, output: output + len(kwargs), with_kwargs=True, prepend=True)
    told.append(m(x))
    pre.remove()
    with m.register_forward_hook(lambda module, args, output: output * 0):
        told.append(m(x))
    told.append(m(x))
    bare = t.nn.Linear(3, 2)
    bare.load_state_dict(m.state_dict())
    bare.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"input": kwargs["input"] * 3}), with_kwargs=True
    )
    told.append(bare(input=x))
    bare.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    return [*told, error_of(lambda: bare(input=x))]


@scenario
def hooks_that_are_always_called(t: Any) -> Any:
    class Failing(t.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    m, told = Failing(), []
    m.register_forward_hook(lambda module, args, output: told.append("never"))
    m.register_forward_hook(lambda module, args, output: told.append(["always", output]), always_call=True)
    m.register_forward_hook(lambda module, args, output: 1 / 0, always_call=True)
    return [error_of(lambda: m(1)), *told]


@scenario
def full_backward_hooks(t: Any) -> Any:
    m, told = linear(t), []
    x = filled(t, 2, 3).requires_grad_()
    m.register_full_backward_hook(lambda module, gi, go: told.append([gi[0].clone(), go[0].clone()]))
    m.register_full_backward_pre_hook(lambda module, go: (go[0] * 2,))
    m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 10,), prepend=True)
    m(x).sum().backward()
    told += [x.grad, m.weight.grad, m.bias.grad]
    other = linear(t)  # whose input gets no gradient
    other.register_full_backward_hook(lambda module, gi, go: told.append([gi, go]))
    other(filled(t, 2, 3)).sum().backward()
    told += [other.weight.grad]
    told += [error_of(lambda: other.register_backward_hook(lambda *a: None))]
    bad = linear(t)
    bad.register_full_backward_hook(lambda module, gi, go: (gi[0], gi[0]))
    told += [error_of(lambda: bad(x).sum().backward())]
    return told


@scenario
def backward_hooks_of_several_results(t: Any) -> Any:
    class Two(t.nn.Module):
        def forward(self, x: Any, y: Any, n: int) -> Any:
            return x * n, (x + y).sum(), n

    m, told = Two(), []
    m.register_full_backward_hook(lambda module, gi, go: told.append([gi, go]))
    x, y = filled(t, 2).requires_grad_(), filled(t, 2).requires_grad_()
    first, second, n = m(x, y, 3)
    second.backward(retain_graph=True)
    (first.sum() + second).backward()
    return [*told, x.grad, y.grad, n]


@scenario
def the_older_backward_hook(t: Any) -> Any:
    m, told = t.nn.ReLU(), []
    m.register_backward_hook(lambda module, gi, go: told.append([gi, go]))
    m(filled(t, 2).requires_grad_()).sum().backward()
    return [*told, error_of(lambda: m.register_full_backward_hook(lambda *a: None))]


@scenario
def what_the_older_backward_hook_misses(t: Any) -> Any:
    told = []

    def warned(forward: Any, *args: Any) -> None:
        module = type("Any", (t.nn.Module,), {"forward": lambda self, *given: forward(*given)})()
        module.register_backward_hook(lambda *a: None)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", FutureWarning)
            module(*args)
        told.append([str(w.message).partition(" is deprecated")[0] for w in seen])

    a, b = (filled(t, 2).requires_grad_() for _ in range(2))
    warned(lambda pair: (pair[0].clone(), pair[1].clone()), [a, b])
    warned(lambda x, y: [x.clone(), y.clone()], a, b)
    warned(lambda x, y: (x.clone(), y.clone()), a, b)
    warned(lambda x: x.clone().clone(), a)
    warned(lambda x: {"one": x * 2}, a)
    warned(lambda x: x.unbind(), a)
    warned(lambda x, y: x * y, a * 2, b * 2)
    warned(lambda x, y: x * y, a * 2, b.detach())
    warned(lambda x: x * 2, a.detach())
    return told


@scenario
def hooks_of_all_modules(t: Any) -> Any:
    g, told = t.nn.modules.module, []

    def name(label: str) -> Any:
        return lambda module, *rest: told.append(f"{label} {type(module).__name__}")

    handles = [
        g.register_module_forward_pre_hook(name("pre")),
        g.register_module_forward_hook(name("hook")),
        g.register_module_full_backward_pre_hook(name("backward pre")),
        g.register_module_full_backward_hook(name("backward")),
        g.register_module_parameter_registration_hook(lambda m, n, p: told.append(["parameter", n])),
        g.register_module_buffer_registration_hook(lambda m, n, p: told.append(["buffer", n])),
        g.register_module_module_registration_hook(lambda m, n, p: told.append(["module", n])),
    ]
    m = t.nn.Sequential(linear(t), t.nn.BatchNorm1d(2))
    m(filled(t, 2, 3).requires_grad_()).sum().backward()
    for handle in handles:
        handle.remove()
    count = len(told)
    t.nn.Sequential(linear(t))(filled(t, 1, 3))
    return [*told, len(told) == count]


# ---- containers ----


@scenario
def sequential(t: Any) -> Any:
    a, b, c = t.nn.ReLU(), t.nn.Tanh(), t.nn.Sigmoid()
    s = t.nn.Sequential(a, b)
    told = [repr(s.append(c)), repr(s[1:]), s[-1] is c, len(s), repr(s.insert(0, t.nn.SiLU())), repr(s.pop(0))]
    told += [repr(s + t.nn.Sequential(a)), repr(s * 2), repr(2 * s), repr(s.extend([a]))]
    s[0] = b
    del s[1], s[-1:]
    told += [repr(s), [type(m).__name__ for m in s], s(filled(t, 2).double())]
    s += t.nn.Sequential(a)
    s *= 2
    named = t.nn.Sequential(OrderedDict(first=a, second=b))
    told += [repr(s), repr(named), repr(named[:1]), named.first is a]
    del named[0]
    told += [repr(named), list(named.state_dict()), len(named)]
    calls = [
        lambda: s[9], lambda: s + 3, lambda: s * 0, lambda: s * "a", lambda: s.insert(99, a), lambda: s.insert(0, 3),
        lambda: s.append(3), lambda: s["0"],
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def module_list(t: Any) -> Any:
    make = t.nn.ReLU
    m = t.nn.ModuleList([make(), t.nn.Tanh()])
    m.append(make()).extend([make(), linear(t)])
    m.insert(1, t.nn.Sigmoid())
    told = [repr(m), len(m), repr(m[-1]), repr(m[1:3]), repr(m + t.nn.ModuleList([make()])), list(m.state_dict())]
    m[0] = t.nn.Tanh()
    del m[1], m[-2:]
    told += [repr(m.pop(0)), repr(m)]
    m += [make()]
    calls = [lambda: m[9], lambda: m["0"], lambda: m(3), lambda: m.extend(3), lambda: m.__delitem__(9)]
    return [*told, repr(m), repr(t.nn.ModuleList()), *(error_of(call) for call in calls)]


@scenario
def module_dict(t: Any) -> Any:
    m = t.nn.ModuleDict({"a": linear(t), "b": t.nn.ReLU()})
    m.update([["c", t.nn.Tanh()]])
    m["d"] = t.nn.Sigmoid()
    told = [repr(m), list(m), list(m.keys()), len(m.values()), len(m.items()), "a" in m, list(m.state_dict())]
    del m["b"]
    told += [repr(m.pop("a")), len(m)]
    calls = [lambda: m["z"], lambda: m.pop("z"), lambda: m.update(3), lambda: m.update([1]), lambda: m({})]
    calls += [lambda: m.update([[1, 2, 3]])]
    told += [error_of(call) for call in calls]
    m.clear()
    return [*told, repr(m)]


@scenario
def parameter_containers(t: Any) -> Any:
    p = t.nn.ParameterList([filled(t, 2), t.nn.Parameter(filled(t, 2, 3)), 3])
    p.append(filled(t, 1)).extend([filled(t, 2)])
    p[0] = filled(t, 3)
    told = [repr(p), len(p), [n for n, _ in p.named_parameters()], repr(p[1:3]), p[-1], list(p.state_dict())]
    p += [filled(t, 1)]
    told += [error_of(lambda: p(1)), error_of(lambda: p.extend(3)), error_of(lambda: p[99]), len(p), next(iter(p))]
    d = t.nn.ParameterDict({"a": filled(t, 2)})
    d["b"] = t.nn.Parameter(filled(t, 1))
    d.update({"c": filled(t, 1)})
    told += [list(d), list(reversed(d)), d["a"], d.get("z"), d.get("z", 2), d.setdefault("b"), "a" in d, len(d)]
    told += [
        list((d | t.nn.ParameterDict({"z": filled(t, 1)})).keys()),
        list(d.state_dict()),
        d.popitem()[0],
        d.pop("a"),
    ]
    told += [error_of(lambda: d["z"]), list(d.items()), error_of(lambda: d(1)), error_of(lambda: d.__setitem__(3, 3))]
    return told


@scenario
def bases(t: Any) -> Any:
    """Classes that others are made of, made themselves."""
    c = t.nn.Container(a=linear(t), b=t.nn.ReLU())
    told = [repr(c), list(c.state_dict()), error_of(lambda: c(filled(t, 1)))]
    r = fill(t, t.nn.RNNBase("LSTM", 3, 4, num_layers=2, bidirectional=True, proj_size=2))
    told += [repr(r), list(r.state_dict()), [list(w.shape) for row in r.all_weights for w in row], r.mode]
    told += [error_of(lambda: t.nn.RNNBase("X", 3, 4)), error_of(lambda: t.nn.RNNBase("GRU", 3, 4, proj_size=2))]
    cell = t.nn.RNNCellBase(3, 4, True, 2)
    told += [repr(cell), list(cell.state_dict()), list(cell.weight_hh.shape)]
    return [*told, repr(t.nn.DataParallel(linear(t))), t.nn.DataParallel(linear(t))(filled(t, 2, 3))]


# ---- layers with more than a forward ----


@scenario
def parts_of_layers(t: Any) -> Any:
    """Subclasses write the parts of a layer anew, under PyTorch's names."""
    told: list[Any] = []

    class Encoder(t.nn.TransformerEncoderLayer):
        def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
            told.append([x, attn_mask, key_padding_mask, is_causal])
            return super()._sa_block(x, attn_mask, key_padding_mask, is_causal=is_causal)

        def _ff_block(self, x: Any) -> Any:
            return super()._ff_block(x) * 2

    class Decoder(t.nn.TransformerDecoderLayer):
        def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
            return x + 1

        def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
            told.append([x, mem, attn_mask])
            return super()._mha_block(x, mem, attn_mask, key_padding_mask, is_causal)

        def _ff_block(self, x: Any) -> Any:
            return super()._ff_block(x) - 1

    x, mask = filled(t, 3, 2, 4).sin(), t.nn.Transformer.generate_square_subsequent_mask(3)
    for norm_first in (False, True):
        encoder = fill(t, Encoder(4, 2, 6, dropout=0.0, norm_first=norm_first))
        decoder = fill(t, Decoder(4, 2, 6, dropout=0.0, norm_first=norm_first))
        told += [encoder(x, src_mask=mask), decoder(x, x.cos(), memory_mask=mask)]
    return told


@scenario
def stacks_of_layers(t: Any) -> Any:
    told = []
    layer = fill(t, t.nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True))
    m = t.nn.TransformerEncoder(layer, 2, norm=t.nn.LayerNorm(4), enable_nested_tensor=False)
    x, mask = filled(t, 2, 3, 4).sin(), t.nn.Transformer.generate_square_subsequent_mask(3)
    hidden = t.tensor([[False, False, True], [False, False, False]])
    for module in (m, m.eval()):
        told += [module(x), module(x, mask=mask), module(x, mask=mask, is_causal=True)]
        told += [module(x, src_key_padding_mask=hidden)[:, :2]]
    decoder = t.nn.TransformerDecoder(fill(t, t.nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0)), 2)
    memory = filled(t, 5, 2, 4).cos()
    told += [decoder(x.transpose(0, 1), memory), decoder(x.transpose(0, 1), memory, tgt_mask=mask)]
    told += [
        decoder(x.transpose(0, 1), memory, tgt_mask=mask, tgt_is_causal=True, memory_key_padding_mask=t.zeros(2, 5))
    ]
    return [*told, repr(decoder), list(decoder.state_dict()), mask]


@scenario
def tables_and_clusters(t: Any) -> Any:
    rows = filled(t, 5, 3)
    e = t.nn.Embedding.from_pretrained(rows, padding_idx=1)
    b = t.nn.EmbeddingBag.from_pretrained(rows, mode="sum", freeze=False)
    told = [repr(e), e.weight, e(t.tensor([[0, 4]])), repr(b), b.weight, b(t.tensor([[0, 4]]))]
    m = fill(t, t.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6]))
    x = filled(t, 6, 4).sin() * 3
    told += [m.log_prob(x), m.predict(x), m(x[0], t.tensor(7)), repr(m)]
    calls = [
        lambda: m(x, t.tensor([0, 1])), lambda: m(x[:1], t.tensor([10])), lambda: t.nn.Embedding(3, 2, padding_idx=3),
        lambda: t.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [6, 3]), lambda: t.nn.Embedding.from_pretrained(rows[0]),
    ]  # fmt: skip
    return [*told, *(error_of(call) for call in calls)]


@scenario
def synchronised_norms(t: Any) -> Any:
    m = t.nn.SyncBatchNorm.convert_sync_batchnorm(
        t.nn.Sequential(t.nn.BatchNorm2d(2), t.nn.Sequential(t.nn.BatchNorm1d(3)))
    )
    return [repr(m), list(m.state_dict()), error_of(lambda: t.nn.SyncBatchNorm(2)(filled(t, 2)))]


# ---- parameters ----


@scenario
def parameters(t: Any) -> Any:
    p = t.nn.Parameter(filled(t, 2))
    told = [repr(p), str(p), p.is_leaf, p.requires_grad, type(p * 2).__name__, type(p.data).__name__, p.grad]
    told += [repr(t.nn.Parameter(filled(t, 1), requires_grad=False)), t.nn.Parameter().shape[0]]
    told += [type(copy.deepcopy(p)).__name__, type(pickle.loads(pickle.dumps(p))).__name__, type(p.detach()).__name__]
    again = t.nn.Parameter(p)
    told += [again.data_ptr() == p.data_ptr(), type(p.clone()).__name__, type(p[0]).__name__, type(-p).__name__]
    p.note = "kept"
    told += [pickle.loads(pickle.dumps(p)).note, isinstance(p, t.Tensor), error_of(lambda: t.nn.Parameter(3))]
    return told


@scenario
def uninitialized(t: Any) -> Any:
    u = t.nn.UninitializedParameter(dtype=t.float64)
    told = [repr(u), u.requires_grad, str(u.dtype), error_of(lambda: u.shape), error_of(lambda: u * 2)]
    told += [error_of(lambda: u.sum()), repr(copy.deepcopy(u)), repr(pickle.loads(pickle.dumps(u)))]
    u.materialize((2, 3))
    told += [type(u).__name__, tuple(u.shape), str(u.dtype), u.requires_grad]
    b = t.nn.UninitializedBuffer()
    told += [repr(b), isinstance(b, t.nn.Buffer)]
    b.materialize((2,))
    return [*told, tuple(b.shape), b.requires_grad]


@scenario
def lazy_modules(t: Any) -> Any:
    m = t.nn.Sequential(t.nn.LazyLinear(4), t.nn.LazyConv1d(2, 1, bias=False))
    told = [repr(m), list(m.state_dict()), repr(copy.deepcopy(m)), m[0].has_uninitialized_params()]
    other = copy.deepcopy(m)
    m(filled(t, 2, 1, 3))
    told += [repr(m), [tuple(p.shape) for p in m.parameters()], m[0].in_features]
    other.load_state_dict(m.state_dict())
    told += [tuple(other[0].weight.shape), type(other[0]).__name__]
    other(filled(t, 2, 1, 3))
    told += [type(other[0]).__name__, error_of(lambda: t.nn.LazyConv2d(2, 3)(filled(t, 2, 3)))]
    return told


@pytest.mark.parametrize("tell", scenario, ids=lambda s: s.__name__)
def test_scenario(tell: Any) -> None:
    compare(tell)


# ---- without torch to compare with ----


def test_a_network_learns() -> None:
    """The bar of a module that works: its parameters are found, get gradients, and fit a line."""
    tp.manual_seed(0)
    x = tp.linspace(-1, 1, 64).unsqueeze(1)
    y = 3 * x - 0.5
    m = nn.Linear(1, 1)
    for _ in range(200):
        m.zero_grad()
        nn.functional.mse_loss(m(x), y).backward()
        with tp.no_grad():
            for p in m.parameters():
                p -= 0.3 * p.grad
    assert abs(m.weight.item() - 3) < 1e-3 and abs(m.bias.item() + 0.5) < 1e-3


def test_results_of_parameters_are_plain() -> None:
    p = nn.Parameter(tp.ones(2, 2))
    assert {type(r) for r in (p + 1, p @ p, p[0], p.T, p.sum(), p.to(tp.float64), tp.stack([p, p]))} == {tp.Tensor}


def test_state_dict_of_a_closed_file() -> None:
    """A state dictionary pickles with its metadata."""
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    file = io.BytesIO()
    pickle.dump(m.state_dict(), file)
    file.seek(0)
    state = pickle.load(file)
    assert state._metadata["1"] == {"version": 2}
    assert str(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).load_state_dict(state)) == (
        "<All keys matched successfully>"
    )


def test_nn_is_imported_at_first_use() -> None:
    """`import tensorpy` alone loads neither the modules nor what they need."""
    import subprocess
    import sys

    code = (
        "import sys, tensorpy; assert not [m for m in sys.modules if m.startswith('tensorpy.nn')]; tensorpy.nn.Linear"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- what C does for Module (csrc/python/nn_module.c) ----


class Doubled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tp.ones(2))
        self.register_buffer("running", tp.zeros(2))
        self.inner = nn.Linear(2, 2)

    def forward(self, x: tp.Tensor, scale: float = 2.0) -> tp.Tensor:
        return x * self.weight * scale


def test_attributes_are_found_as_in_python() -> None:
    m = Doubled()
    for name in ("weight", "running", "inner"):
        assert getattr(m, name) is nn.Module.__getattr__(m, name)
    m.__dict__["weight"] = 3  # an attribute goes before a parameter, as Python has it
    assert m.weight == 3
    del m.__dict__["weight"]
    for other in (dict, OrderedDict):
        m._parameters = other(m._parameters)
        assert m.weight is m._parameters["weight"]
    with pytest.raises(AttributeError, match="'Doubled' object has no attribute 'nothing'"):
        m.nothing  # noqa: B018
    assert not hasattr(Doubled.__new__(Doubled), "weight")  # before __init__

    class Table(dict):  # type: ignore[type-arg]
        def __getitem__(self, name: str) -> Any:
            return f"the item {name}"

    m._parameters = Table(m._parameters)
    assert m.weight == "the item weight"


def test_a_class_with_its_own_getattr_is_asked() -> None:
    class Wrapping(Doubled):
        def __getattr__(self, name: str) -> Any:
            return "asked" if name == "weight" and "inner" in self._modules else super().__getattr__(name)

    class Below(Wrapping):
        pass

    class Strict(Doubled):
        def __getattribute__(self, name: str) -> Any:
            return "all" if name == "everything" else super().__getattribute__(name)

    assert Wrapping().weight == Below().weight == "asked" and isinstance(Below().inner, nn.Linear)
    assert Strict().everything == "all" and Strict().weight.shape == (2,)


def test_a_property_that_fails_is_looked_up_like_any_name() -> None:
    class WithProperty(nn.Module):
        @property
        def broken(self) -> int:
            raise AttributeError("inside")

        @property
        def wrong(self) -> int:
            raise ValueError("inside")

    with pytest.raises(AttributeError, match="no attribute 'broken'"):
        WithProperty().broken  # noqa: B018
    with pytest.raises(ValueError, match="inside"):
        WithProperty().wrong  # noqa: B018


def test_methods_put_into_classes_later_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    m, x, seen = Doubled(), tp.ones(2), []
    original, of_names = nn.Module.__call__, nn.Module.__getattr__

    def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        seen.append(type(self).__name__)
        return original(self, *args, **kwargs)

    def of_name(self: nn.Module, name: str) -> Any:
        seen.append(name)
        return of_names(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(nn.Module, "__call__", call)
        patch.setattr(nn.Module, "__getattr__", of_name)
        assert m(x).tolist() == [2.0, 2.0]
        assert seen == ["Doubled", "weight"]

        class Later(Doubled):
            pass

        seen.clear()
        Later()(x)
        assert seen[-2:] == ["Later", "weight"]
    seen.clear()
    assert m(x).tolist() == [2.0, 2.0] and not seen
    monkeypatch.setattr(Doubled, "forward", lambda self, x: "patched")
    assert m(x) == "patched"
    m.forward = lambda x: "own"  # type: ignore[method-assign]
    assert m(x) == "own"


def test_calls_with_and_without_hooks() -> None:
    m, x = Doubled(), tp.ones(2)
    assert m(x, 3.0).tolist() == m(x, scale=3.0).tolist() == [3.0, 3.0]
    handle = m.register_forward_hook(lambda module, args, out: out + 1)
    assert m(x).tolist() == [3.0, 3.0]
    handle.remove()
    everywhere = nn.modules.module.register_module_forward_pre_hook(lambda module, args: (args[0] * 10,))
    assert m(x).tolist() == [20.0, 20.0]
    everywhere.remove()
    assert m(x).tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(x)
    with pytest.raises(TypeError, match="positional argument"):
        m()
    many = type("Many", (nn.Module,), {"forward": lambda self, *args, **kwargs: (len(args), kwargs)})()
    assert many(*range(20), a=1) == (20, {"a": 1}) and many(*range(20)) == (20, {})


def test_calls_and_names_leak_nothing() -> None:
    import sys

    m, x = Doubled(), tp.ones(2)
    before = sys.getrefcount(m.weight), sys.getrefcount(m.__dict__), sys.getrefcount(x)
    for _ in range(50):
        m(x)
        m(x, scale=1.0)
        getattr(m, "nothing", None)
    assert (sys.getrefcount(m.weight), sys.getrefcount(m.__dict__), sys.getrefcount(x)) == before


def test_tables_of_global_hooks_are_replaced() -> None:
    """By PyTorch's names: programs that clean up assign empty ones."""
    module: Any = nn.modules.module
    met: list[str] = []
    module.register_module_forward_pre_hook(lambda layer, args: met.append("before"))
    handle = module.register_module_forward_hook(lambda layer, args, output: met.append("after"))
    assert len(module._global_forward_pre_hooks) == 1 and handle.id in module._global_forward_hooks
    nn.ReLU()(tp.ones(1))
    assert met == ["before", "after"]
    kept = OrderedDict(module._global_forward_hooks)
    module._global_forward_hooks, module._global_forward_pre_hooks = kept, OrderedDict()
    nn.ReLU()(tp.ones(1))
    assert met == ["before", "after", "after"]
    handle.remove()
    nn.ReLU()(tp.ones(1))
    assert met == ["before", "after", "after"] and not module._global_forward_hooks


def test_a_hook_of_states_is_of_one_kind() -> None:
    layer = nn.Linear(1, 1)

    def hook(layer: Any, state: Any, prefix: str, local: Any) -> None:
        state["more"] = 1

    layer.register_state_dict_post_hook(hook)
    layer.register_state_dict_post_hook(hook).remove()
    assert "more" in layer.state_dict()
    with pytest.raises(RuntimeError, match="previously registered via register_state_dict_post_hook"):
        layer._register_state_dict_hook(hook)


def test_loading_leaves_no_cycles() -> None:
    """What is in a cycle, a state_dict's tensors among it, stays until the collector looks for it."""
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for assign in (False, True):
        state = {name: t.clone() for name, t in module.state_dict().items()}
        gc.collect()
        module.load_state_dict(state, assign=assign)
        assert gc.collect() == 0
