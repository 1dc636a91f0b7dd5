"""Every door checks what it takes, before anything changes: capsules, buffers, states, keys, what hooks return."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opencl_programs import needs_device

import tensorpy as tp
from tensorpy import _C
from tensorpy.testing.harness import arguments, call, check_same, fresh, function_of, over, to_tensor
from tensorpy.testing.samples import Array, OpInfo, OpSample

# ---- DLPack: a producer may say anything ----


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
MEMORY = (ctypes.c_float * 64)(*range(64))
KEPT: list[Any] = []


def ints(values: Any) -> int | None:
    if values is None:
        return None
    array = (ctypes.c_int64 * max(1, len(values)))(*values)
    KEPT.append(array)
    return ctypes.addressof(array)


def capsule(shape: Any = (2, 3), strides: Any = None, flags: int | None = None, major: int = 1, **fields: Any) -> Any:
    managed = Managed() if flags is None else Versioned(major=major, flags=flags)
    t = managed.tensor
    t.data, t.ndim, t.code, t.bits, t.lanes = ctypes.addressof(MEMORY), len(shape or ()), 2, 32, 1
    t.device[0] = fields.pop("device", 1)
    t.shape, t.strides = ints(shape), ints(strides)
    for name, value in fields.items():
        setattr(t, name, value)
    KEPT.append(managed)
    return new_capsule(ctypes.addressof(managed), b"dltensor" if flags is None else b"dltensor_versioned", None)


@pytest.mark.parametrize(
    ("expected", "make"),
    [
        ("no shape", lambda: capsule(None, ndim=2)),
        ("no memory", lambda: capsule(data=None)),
        ("negative dimension -1", lambda: capsule((-1,))),
        ("overflowed", lambda: capsule((2**62, 2**62))),
        ("overflowed", lambda: capsule((2**40,), (2**40,))),
        ("end of all memory", lambda: capsule((2,), (2**63 - 1,))),
        ("end of all memory", lambda: capsule((2,), (-(2**63) + 1,))),
        ("end of all memory", lambda: capsule((2**61,))),
        ("end of all memory", lambda: capsule(byte_offset=2**64 - 8)),
        ("not aligned", lambda: capsule(byte_offset=2)),
        ("4 lanes", lambda: capsule(lanes=4)),
        ("0 lanes", lambda: capsule(lanes=0)),
        ("type code 9", lambda: capsule(code=9)),
        ("7 bits", lambda: capsule(bits=7)),
        ("device type 2", lambda: capsule(device=2)),
        ("65 dimensions", lambda: capsule((1,) * 65)),
        ("-1 dimensions", lambda: capsule(ndim=-1)),
        ("version 2", lambda: capsule(flags=0, major=2)),
        ("invalid capsule", lambda: new_capsule(ctypes.addressof(MEMORY), b"else", None)),
    ],
)
def test_capsules_that_say_what_cannot_be(expected: str, make: Callable[[], Any]) -> None:
    with pytest.raises((BufferError, RuntimeError), match=expected):
        tp.from_dlpack(make())


def test_capsules_that_are_right() -> None:
    assert tp.from_dlpack(capsule()).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert tp.from_dlpack(capsule((3,), (-1,), byte_offset=8)).tolist() == [2.0, 1.0, 0.0]
    assert tp.from_dlpack(capsule((3,), (0,))).tolist() == [0.0] * 3
    assert tp.from_dlpack(capsule(())).item() == 0.0
    assert tp.from_dlpack(capsule((0, 3), data=None)).shape == (0, 3)
    assert tp.from_dlpack(capsule((2, 0), (-5, 3))).shape == (2, 0)


def test_read_only_memory_is_copied() -> None:
    there = np.arange(3.0)
    there.flags.writeable = False
    tp.from_dlpack(there).fill_(7)
    assert there.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(BufferError, match="read-only"):
        tp.from_dlpack(capsule(flags=1), copy=False)
    taken = tp.from_dlpack(capsule(flags=1))
    taken.zero_()
    assert MEMORY[5] == 5.0


# ---- negative strides, which come from NumPy and DLPack ----

LOOKS_AT_STRIDES = {"as_strided", "as_strided_copy", "set_.source_Tensor_storage_offset"}
LOOKS_AT_STRIDES |= {"view.dtype", "view_copy.dtype", "view_as_complex", "view_as_complex_copy"}


def backwards(a: Array, device: str) -> tp.Tensor:
    t = to_tensor(a, device)
    if not t.dim() or t.dtype == tp.bfloat16:
        return t
    turn = (slice(None, None, -1),) * t.dim()
    return tp.from_dlpack(np.ascontiguousarray(t.numpy()[turn])[turn])


@over(lambda info: not info.unset and info.name not in LOOKS_AT_STRIDES)
def test_every_operator_takes_negative_strides(info: OpInfo) -> None:
    function = function_of(info)
    for sample in info.samples(info.main_dtype, 3):
        args, kwargs = arguments(sample, "cpu", info)
        turned, turned_kwargs = arguments(sample, "cpu", info, make=backwards)
        expected = call(function, fresh(info, args), kwargs)
        for a, b in zip(call(function, turned, turned_kwargs), expected, strict=True):
            check_same(info, a, b, f"{info.name}{sample} with negative strides", exact=False)


# ---- bools of any bytes, which come from views and from memory of others ----

LOOKS_AT_BYTES = {"view.dtype", "view_copy.dtype"}
TRUE_BYTES = np.array([2, 128, 255, 1, 64, 3, 254], np.uint8)


def of_any_bytes(a: Array, device: str) -> tp.Tensor:
    t = to_tensor(a, device)
    if t.dtype != tp.bool:
        return t
    octets = np.resize(TRUE_BYTES, t.numel()).reshape(t.shape) * (t.cpu().numpy() != 0)
    return tp.from_numpy(np.array(octets, np.uint8)).to(device).view(tp.bool)


def samples_with_bools(info: OpInfo) -> list[OpSample]:
    """Also of the operator's other dtypes: a mask goes with each of them."""
    samples = [s for dtype in {info.main_dtype, *({"bool"} & set(info.dtypes))} for s in info.samples(dtype, 8)]

    def has_bools(sample: OpSample) -> bool:
        found: list[Any] = []
        sample.map(found.append)
        return any(isinstance(a, Array) and a.dtype == "bool" for a in found)

    return [s for s in samples if has_bools(s)]


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=needs_device)])
@over(lambda info: not info.unset and info.name not in LOOKS_AT_BYTES and samples_with_bools(info))
def test_every_operator_takes_bools_of_any_bytes(info: OpInfo, device: str) -> None:
    function = function_of(info)
    for sample in samples_with_bools(info):
        odd, odd_kwargs = arguments(sample, device, info, make=of_any_bytes)
        plain, kwargs = arguments(sample, device, info)
        expected = call(function, plain, kwargs)
        for a, b in zip(call(function, odd, odd_kwargs), expected, strict=True):
            check_same(info, a, b, f"{info.name}{sample} with bools of any bytes")


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=needs_device)])
@pytest.mark.parametrize("name", ["mm", "bmm", "mv", "dot", "matmul", "addmm"])
def test_products_of_bools_of_any_bytes(name: str, device: str) -> None:
    """Beyond the table: PyTorch has no products of bools."""

    def product(a: np.ndarray, b: np.ndarray) -> list[Any]:
        x, y = (tp.from_numpy(m).to(device).view(tp.bool) for m in (a, b))
        match name:
            case "bmm":
                return tp.bmm(x[None], y[None]).tolist()
            case "mv":
                return tp.mv(x, y[:, 0]).tolist()
            case "dot":
                return tp.dot(x[0], y[:, 0]).tolist()
            case "addmm":
                return tp.addmm(x[:, :3], x, y).tolist()
        return getattr(tp, name)(x, y).tolist()

    octets = np.random.RandomState(0).choice(np.array([0, 0, 0, 1, 2, 64, 128, 254], np.uint8), (2, 3, 5))
    a, b = octets[0], np.ascontiguousarray(octets[1].T)
    assert product(a, b) == product(*((m != 0).astype(np.uint8) for m in (a, b)))


# ---- the dispatcher's keys ----


@pytest.mark.parametrize("key", sorted(_C._KEYS))
def test_including_a_key_gives_the_same_or_is_refused(key: str) -> None:
    def work() -> list[Any]:
        x = tp.tensor([[3.0, 1.0], [2.0, 5.0]], requires_grad=True)
        y = (x * 2 + tp.ones(2)).softmax(1).sort().values.sum()
        y.backward()
        made = tp.zeros(2).add_(1)
        return [y.item(), x.grad.tolist(), made.tolist(), tp.cat([made, made]).tolist(), (x @ x).tolist()]

    expected = work()
    if _C._KEYS[key] <= _C._KEYS["ZeroTensor"]:
        with pytest.raises(ValueError, match="a backend cannot be included"), tp.dispatch.include(key):
            work()
    else:
        with tp.dispatch.include(key):
            assert work() == expected
    assert work() == expected


def test_bits_that_are_no_keys() -> None:
    with pytest.raises(ValueError, match="no dispatch keys"):
        _C._set_dispatch_sets(1 << 63, 0)


# ---- states ----


@pytest.mark.parametrize(
    "state",
    [
        lambda: tp.empty(16, dtype=tp.uint8, device="meta"),
        pytest.param(lambda: tp.empty(16, dtype=tp.uint8, device="opencl"), marks=needs_device),
        lambda: tp.empty(16, dtype=tp.int8),
        lambda: tp.empty(32, dtype=tp.uint8)[::2],
        lambda: tp.empty(1, dtype=tp.uint8).expand(16),
        lambda: None,
        lambda: b"0123456789abcdef",
    ],
)
def test_states_of_generators(state: Callable[[], Any]) -> None:
    before = tp.get_rng_state().tolist()
    for setter in (tp.set_rng_state, tp.default_generator.set_state, tp.Generator().set_state):
        with pytest.raises(TypeError, match="16 contiguous uint8 on the CPU"):
            setter(state())
    assert tp.get_rng_state().tolist() == before


@pytest.mark.parametrize("size", [0, 15, 17])
def test_states_of_another_size(size: int) -> None:
    before = tp.get_rng_state().tolist()
    for setter in (tp.set_rng_state, tp.default_generator.set_state, tp.Generator().set_state):
        with pytest.raises(RuntimeError, match=f"expected 16 bytes, got {size}"):
            setter(tp.empty(size, dtype=tp.uint8))
    assert tp.get_rng_state().tolist() == before


# ---- gradients that come from outside ----

WRONG = {
    "dtype": lambda g: g.to(tp.float64),
    "integers": lambda g: g.to(tp.int64),
    "complex": lambda g: g.to(tp.complex64),
    "half": lambda g: g.half(),
    "meta": lambda g: g.to("meta"),
    "size": lambda g: g[:1],
    "a number": lambda g: g.sum(),
    "no tensor": lambda g: 3,
}


def through_a_hook(change: Any) -> None:
    x = tp.ones(2, requires_grad=True)
    x.register_hook(change)
    (x * 2).sum().backward()


def through_a_result(change: Any) -> None:
    y = tp.ones(2, requires_grad=True) * 2
    y.retain_grad()
    y.register_hook(change)
    y.sum().backward()


def before_a_node(change: Any) -> None:
    y = tp.ones(2, requires_grad=True) * 2
    y.grad_fn.register_prehook(lambda grads: (change(grads[0]),))
    y.sum().backward()


def after_a_node(change: Any) -> None:
    y = tp.ones(2, requires_grad=True).exp()
    y.grad_fn.register_hook(lambda inputs, outputs: (change(inputs[0]),))
    y.sum().backward()


def after_accumulation(change: Any) -> None:
    x = tp.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda t: change(t.grad))
    (x * 2).sum().backward()


def after_a_module(change: Any) -> None:
    m = tp.nn.Linear(2, 2)
    m.register_full_backward_hook(lambda module, inputs, outputs: (change(inputs[0]),))
    m(tp.ones(2, 2, requires_grad=True)).sum().backward()


def before_a_module(change: Any) -> None:
    m = tp.nn.Linear(2, 2)
    m.register_full_backward_pre_hook(lambda module, outputs: (change(outputs[0]),))
    m(tp.ones(2, 2, requires_grad=True)).sum().backward()


HOOKS = [
    through_a_hook,
    through_a_result,
    before_a_node,
    after_a_node,
    after_accumulation,
    after_a_module,
    before_a_module,
]


@pytest.mark.parametrize("way", HOOKS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("name", WRONG)
def test_what_a_hook_returns_has_the_gradients_kind(way: Any, name: str) -> None:
    with pytest.raises(TypeError if name == "no tensor" else RuntimeError, match="hook"):
        way(WRONG[name])


class Returning(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tp.Tensor, change: Any) -> tp.Tensor:
        ctx.change = change
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: tp.Tensor) -> Any:
        return ctx.change(grad), None


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_what_a_function_returns_fits_its_argument(name: str, inner: bool) -> None:
    """A floating dtype is cast and one number broadcast, as PyTorch does; all else is refused."""
    x = tp.ones(2, requires_grad=True)
    result = Returning.apply(x.exp() if inner else x, WRONG[name]).sum()
    if name in ("dtype", "half", "integers"):
        result.backward()
        assert (x.grad.dtype, x.grad.device, x.grad.shape) == (x.dtype, x.device, x.shape)
        return
    with pytest.raises(RuntimeError):
        result.backward()
    assert x.grad is None


@pytest.mark.parametrize("name", WRONG)
def test_a_gradient_that_is_given(name: str) -> None:
    x = tp.ones(2, requires_grad=True)
    for way in ((x * 2).backward, lambda g: tp.autograd.grad(x * 2, x, g), x.backward):
        if name in ("dtype", "half", "integers"):
            way(WRONG[name](tp.ones(2)))
        else:
            with pytest.raises((RuntimeError, TypeError)):
                way(WRONG[name](tp.ones(2)))
    assert x.grad is None or (x.grad.dtype, x.grad.device, x.grad.shape) == (x.dtype, x.device, x.shape)


@needs_device
def test_one_number_may_come_from_another_device() -> None:
    x = tp.tensor(2.0, requires_grad=True)
    (tp.ones(3, device="opencl") * x).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.item() == 3.0


# ---- the environment ----


def test_a_capability_that_is_none_is_said_to_be() -> None:
    def said(capability: str) -> str:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TENSORPY_CPU_CAPABILITY": capability}
        command = [sys.executable, "-c", "import tensorpy as tp; assert (tp.ones(2) + 1).tolist() == [2.0, 2.0]"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "TENSORPY_CPU_CAPABILITY is 'avx1024', which is none of baseline, avx2 and avx512" in said("avx1024")
    assert said("") == ""
    for level in ("baseline", "avx2"):
        left_out = f"{level}, of which this build has no loops (TENSORPY_CAPABILITIES={level} compiles them); using avx"
        assert not (warned := said(level)) or left_out in warned


# ---- everything that is written by hand ----


def test_wrong_arguments_of_functions_written_by_hand() -> None:
    """In a process of its own, as it may crash: fuzz_python.py names the call."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "tests/tensor/fuzz_python.py", "--calls=20000"],
        capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
