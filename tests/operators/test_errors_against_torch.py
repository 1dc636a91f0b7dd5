"""Bad calls of operators, modules and optimizers: what fails by PyTorch's samples fails here with the same class, and
words that its message has too. Tensors that share memory there share it here."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")
against = pytest.importorskip("test_against_torch")


class Shared:
    """torch's values as tensorpy's, a tensor for each: a storage is one tensor, and what lies in it are its views."""

    def __init__(self) -> None:
        self.storages: dict[int, Any] = {}
        self.tensors: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self.tensors:
                self.tensors[id(value)] = (self.tensor(value.detach()), value)
            return self.tensors[id(value)][0]
        if type(value) in (list, tuple):
            return type(value)(self(v) for v in value)
        if type(value) is dict:
            return {k: self(v) for k, v in value.items()}
        return against.convert(value)

    def tensor(self, value: Any) -> Any:
        if value.device.type == "meta":
            return tp.empty(tuple(value.shape), dtype=against.convert(value.dtype), device="meta")
        if value.is_sparse:
            return self.tensor(value.to_dense()).to_sparse()
        storage = value.untyped_storage()
        key = storage._cdata
        if key not in self.storages:
            whole = torch.empty(0, dtype=value.dtype).set_(storage)
            self.storages[key] = (against.convert(whole), storage)
        base = self.storages[key][0]
        if base.dtype != against.convert(value.dtype):
            base = base.view(against.convert(value.dtype))
        return base.as_strided(tuple(value.shape), value.stride(), value.storage_offset())


def check_words(raised: Any, wanted: str, *names: tuple[str, str]) -> None:
    """That an error's text has the words. `names`: what is called otherwise here, and PyTorch's word for it."""
    text = str(raised.value)
    for ours, theirs in (("tensorpy", "torch"), *names):
        text = text.replace(ours, theirs)
    assert re.search(wanted, text), f"{text}\nis not of the kind of\n{wanted}"


def _cases() -> Iterator[Any]:
    for info in against.COVERED:
        if info.error_inputs_func is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from (
                pytest.param(info, error, id=f"{against.label(info)}-{i}")
                for i, error in enumerate(info.error_inputs("cpu"))
            )


@pytest.mark.parametrize(("info", "error"), _cases())
@pytest.mark.filterwarnings("ignore")
def test_bad_input(info: Any, error: Any) -> None:
    sample, convert = error.sample_input, Shared()
    function = against.counterpart(info)

    def call(**more: Any) -> Any:
        return function(convert(sample.input), *convert(list(sample.args)), **(convert(dict(sample.kwargs)) | more))

    if error.error_type is Exception and not raises_in_torch(info, sample):
        pytest.skip("no error in PyTorch on the CPU")
    with pytest.raises(error.error_type) as raised:
        call()
    # A dtype is named as C names it there.
    check_words(raised, error.error_regex, ("dtype float32", "dtype float"), ("got float64", "got double"))


def raises_in_torch(info: Any, sample: Any) -> bool:
    try:
        info(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return True
    return False


# ---- modules ----


def _module_cases() -> Iterator[Any]:
    common = pytest.importorskip("torch.testing._internal.common_modules")
    for info in common.module_db:
        if info.module_error_inputs_func is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = info.module_error_inputs_func(info, "cpu", torch.float32, False, True)
        yield from (pytest.param(info, error, id=f"{info.name}-{i}") for i, error in enumerate(errors))


@pytest.mark.parametrize(("info", "error"), _module_cases())
@pytest.mark.filterwarnings("ignore")
def test_bad_module(info: Any, error: Any) -> None:
    given, convert = error.module_error_input, Shared()
    made, called = given.constructor_input, given.forward_input
    with pytest.raises(error.error_type) as raised:
        module = getattr(tp.nn, info.module_cls.__name__)(*convert(tuple(made.args)), **convert(dict(made.kwargs)))
        if error.error_on.name == "FORWARD_ERROR":
            module(*convert(tuple(called.args)), **convert(dict(called.kwargs)))
    check_words(raised, error.error_regex)


# ---- optimizers ----


def _optimizer_cases() -> Iterator[Any]:
    common = pytest.importorskip("torch.testing._internal.common_optimizers")
    for info in common.optim_db:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = info.optim_error_inputs_func("cpu", torch.float32)
        for error in errors:
            yield pytest.param(info.optim_cls.__name__, error, id=f"{info.name}-{error.optimizer_error_input.desc}")


@pytest.mark.parametrize(("name", "error"), _optimizer_cases())
@pytest.mark.filterwarnings("error::UserWarning")
def test_bad_settings(name: str, error: Any) -> None:
    given, convert = error.optimizer_error_input, Shared()
    with pytest.raises(error.error_type) as raised:
        optimizer = getattr(tp.optim, name)(convert(given.params), **convert(given.kwargs))
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = tp.ones_like(p)
        optimizer.step(lambda: 1)
    check_words(raised, error.error_regex)
