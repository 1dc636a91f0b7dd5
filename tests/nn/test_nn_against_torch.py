"""Every module of the table against torch's: repr, state, signature, values, gradients."""

from __future__ import annotations

import inspect
import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nn_cases import CASES, Case, Made

import tensorpy as tp
from tensorpy import nn

torch = pytest.importorskip("torch")


def to_torch(value: Any) -> Any:
    return torch.from_numpy(np.array(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def to_tensorpy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    return tp.from_numpy(np.array(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return [] if value is None else [value]


def assert_same(got: Any, expected: Any, what: str) -> None:
    got, expected = flat(got), flat(expected)
    assert len(got) == len(expected), what
    for g, e in zip(got, expected, strict=True):
        assert tuple(g.shape) == tuple(e.shape), what
        assert str(g.dtype).partition(".")[2] == str(e.dtype).partition(".")[2], what
        np.testing.assert_allclose(g.detach().numpy(), e.detach().numpy(), 1e-6, 1e-9, err_msg=what)


def argument(value: Any, library: Any, convert: Any) -> Any:
    return value.of(library) if isinstance(value, Made) else convert(value)


def pair(case: Case) -> tuple[Any, Any]:
    """The module of each side, in double precision and with the same parameters."""
    made = []
    for library, convert in ((torch.nn, to_torch), (nn, to_tensorpy)):
        args = [argument(a, library, convert) for a in case.args]
        options = {k: argument(v, library, convert) for k, v in case.options.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.append(getattr(library, case.name)(*args, **options))
    return made[0].double(), made[1].double()


def share_state(theirs: Any, ours: Any) -> None:
    ours.load_state_dict({name: to_tensorpy(value) for name, value in theirs.state_dict().items()})


def inputs_of(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [make(rng) for make in case.inputs]


def called(module: Any, case: Case, arrays: Any, convert: Any) -> tuple[Any, Any]:
    inputs = [convert(a) for a in arrays]
    for t in inputs:
        if t.is_floating_point():
            t.requires_grad_()
    options = {k: convert(v) for k, v in case.call.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module(*inputs, **options), inputs


def backward(result: Any) -> None:
    """From a weighted sum of all results, so that each element has a gradient of its own."""
    total = 0
    for t in flat(result):
        if t.requires_grad:
            weights = np.cos(np.arange(t.numel(), dtype=np.float64)).reshape(tuple(t.shape))
            mine = to_torch(weights) if isinstance(t, torch.Tensor) else to_tensorpy(weights)
            total = total + (t * mine).sum()
    total.backward()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module(case: Case) -> None:
    theirs, ours = pair(case)
    assert repr(ours) == repr(theirs).replace("torch.", "tensorpy.")
    assert list(ours.state_dict()) == list(theirs.state_dict())
    arrays = inputs_of(case)
    if case.name.startswith("Lazy"):
        called(theirs, case, arrays, to_torch)
        called(ours, case, arrays, to_tensorpy)
        assert type(ours) is getattr(nn, type(theirs).__name__) and repr(ours) == repr(theirs)
    share_state(theirs, ours)
    expected, their_inputs = called(theirs, case, arrays, to_torch)
    got, our_inputs = called(ours, case, arrays, to_tensorpy)
    if case.random:
        assert [tuple(t.shape) for t in flat(got)] == [tuple(t.shape) for t in flat(expected)]
        return
    assert_same(got, expected, "forward")
    assert ours.state_dict()._metadata == theirs.state_dict()._metadata
    for (name, g), (_, e) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        assert_same(g, e, name)
    if not case.grad or not any(t.requires_grad for t in flat(expected)):
        return
    backward(expected)
    backward(got)
    for i, (g, e) in enumerate(zip(our_inputs, their_inputs, strict=True)):
        assert_same(g.grad, e.grad, f"gradient of input {i}")
    for (name, g), (other, e) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == other
        assert_same(g.grad, e.grad, f"gradient of {name}")


@pytest.mark.parametrize("case", [c for c in CASES if not c.random], ids=str)
def test_module_in_evaluation(case: Case) -> None:
    theirs, ours = pair(case)
    arrays = inputs_of(case)
    for module, convert in ((theirs, to_torch), (ours, to_tensorpy)):
        called(module, case, arrays, convert)
    share_state(theirs, ours)
    expected, _ = called(theirs.eval(), case, arrays, to_torch)
    got, _ = called(ours.eval(), case, arrays, to_tensorpy)
    assert_same(got, expected, "forward")


NAMES = sorted({case.name for case in CASES})


def parameters_of(function: Any) -> list[tuple[str, Any]]:
    """Names and defaults, without self and annotations."""
    found = list(inspect.signature(function).parameters.values())
    return [(p.name, str(p.default).replace("torch", "tensorpy").partition(" at 0x")[0], p.kind) for p in found[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name: str) -> None:
    theirs, ours = getattr(torch.nn, name), getattr(nn, name)
    if name not in ("RNN", "LSTM", "GRU") and "Conv" not in name:
        assert parameters_of(ours.__init__) == parameters_of(theirs.__init__)
    assert [p[0] for p in parameters_of(ours.forward)] == [p[0] for p in parameters_of(theirs.forward)]


@pytest.mark.parametrize("module", ["modules.utils", "utils.stateless"])
def test_helpers_that_libraries_import_take_the_same(module: str) -> None:
    """Functions that begin with "_", where both have them: names, order and kinds of parameters."""
    theirs, ours = import_module(f"torch.nn.{module}"), import_module(f"tensorpy.nn.{module}")
    names = [n for n, f in vars(theirs).items() if inspect.isfunction(f) and f.__module__ == theirs.__name__]
    for name in names:
        if name.startswith("_") and inspect.isfunction(mine := getattr(ours, name, None)):
            wanted, given = (list(inspect.signature(f).parameters.values()) for f in (getattr(theirs, name), mine))
            assert [(p.name, p.kind) for p in given] == [(p.name, p.kind) for p in wanted], name


def test_a_maker_of_tuples_is_called_as_asked() -> None:
    maker = import_module("tensorpy.nn.modules.utils")._ntuple
    assert maker(7, "_septuple").__name__ == "_septuple" and maker(2)(3) == (3, 3) and maker(2).__name__ == "parse"


# Not called by themselves: bases, containers, kinds of tensors, and what is one way over several devices. For each the
# file that compares it.
ELSEWHERE = {
    "Buffer": "test_nn_module.py",
    "Container": "test_nn_module.py",
    "DataParallel": "test_nn_module.py",
    "LinearCrossEntropyOptions": "../nn_cases.py",
    "Module": "test_nn_module.py",
    "ModuleDict": "test_nn_module.py",
    "ModuleList": "test_nn_module.py",
    "Parameter": "test_nn_module.py",
    "ParameterDict": "test_nn_module.py",
    "ParameterList": "test_nn_module.py",
    "RNNBase": "test_nn_module.py",
    "RNNCellBase": "test_nn_module.py",
    "SyncBatchNorm": "test_nn_module.py",
    "UninitializedBuffer": "test_nn_module.py",
    "UninitializedParameter": "test_nn_module.py",
}


def test_every_class_of_torch_has_a_case() -> None:
    """One that torch has and neither the table nor the file that is named has fails here."""
    theirs = {n for n in dir(torch.nn) if isinstance(getattr(torch.nn, n), type) and n[0] != "_"}
    assert set(NAMES) | set(ELSEWHERE) == theirs
    for name, file in ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text()
        assert re.search(rf"\bnn\.{name}\(", text), name


# What is the same for all modules, what changes no number, and what the data of a case cannot show.
SET_ELSEWHERE = {"args", "kwargs", "device", "dtype", "inplace", "reduce", "size_average"}
NOT_SET = {
    ("Embedding", "sparse"),  # the gradients' layout, of which test_sparse.py is
    ("EmbeddingBag", "sparse"),
    *((f"{lazy}ConvTranspose{d}d", "padding_mode") for lazy in ("", "Lazy") for d in (1, 2, 3)),  # zeros or an error
    ("Hardtanh", "max_value"),  # older names, of which the constructor warns
    ("Hardtanh", "min_value"),
    ("Transformer", "custom_decoder"),
    ("Transformer", "custom_encoder"),
    ("MultiheadAttention", "dropout"),  # random
}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_a_value(name: str) -> None:
    """Other than its default."""
    function = getattr(torch.nn, name)
    parameters = inspect.signature(function.__init__).parameters
    given: set[str] = set()
    for case in (c for c in CASES if c.name == name):
        bound = inspect.signature(function).bind(*case.args, **case.options).arguments
        plain = (bool, int, float, str, type(None))
        given |= {
            k for k, v in bound.items() if k in parameters and not (type(v) in plain and v == parameters[k].default)
        }
        given |= set(bound.get("kwargs", ()))
    assert {p for p in set(parameters) - given - SET_ELSEWHERE - {"self"} if (name, p) not in NOT_SET} == set()
