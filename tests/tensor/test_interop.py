"""NumPy, buffers, DLPack, pickle: memory that is shared, and who keeps it alive."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tensorpy as tp

DTYPES = "bool u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16".split()


def sample(dtype: str) -> np.ndarray:
    return np.arange(-6, 6).reshape(3, 4).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_ways_without_a_copy(dtype: str) -> None:
    array = sample(dtype)
    for view in (array, array.T, array[::-1, ::-2], array[1:, ::2], array[:0], array[0, 0, ...]):
        t = tp.from_numpy(view)
        assert t.tolist() == view.tolist()
        assert t.data_ptr() == view.ctypes.data or view.size == 0
        back = t.numpy()
        assert back.dtype == view.dtype
        assert np.array_equal(back, view)
        assert np.shares_memory(back, array) or view.size == 0
        assert np.array_equal(np.asarray(t), view)
        assert np.array_equal(np.from_dlpack(t), view) or dtype == "bool"


def test_import_loads_no_numpy() -> None:
    code = "import sys, tensorpy as tp; t = tp.tensor([[1.0]]); repr(t); t[0]; memoryview(t); "
    code += "assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("keep", ["array", "tensor", "view", "second"])
def test_lifetimes(keep: str) -> None:
    array = np.arange(1000.0)
    tensor = tp.from_numpy(array)
    view = tensor[10:20]
    second = view.numpy()
    alive = {"array": array, "tensor": tensor, "view": view, "second": second}[keep]
    del array, tensor, view, second
    gc.collect()
    np.random.rand(1000)
    first = alive[0]
    assert float(first) == (10.0 if keep in ("view", "second") else 0.0)


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.array([None]), TypeError, "can't convert np.ndarray of type numpy.object_"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
        (np.arange(3, dtype=">i4"), ValueError, "byte order"),
        (np.zeros(3, dtype=[("a", "i1"), ("b", "f4")])["b"], ValueError, "strides not a multiple"),
        ([1, 2], TypeError, r"expected np.ndarray \(got list\)"),
    ],
)
def test_arrays_that_are_refused(array: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tp.from_numpy(array)


def test_readonly_arrays_warn() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        tp.from_numpy(array)


def test_tensors_that_are_refused() -> None:
    leaf = tp.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        leaf.numpy()
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(leaf)
    with pytest.raises(BufferError):
        memoryview(leaf)
    with pytest.raises(BufferError):
        leaf.__dlpack__()
    with pytest.raises(TypeError, match="BFloat16"):
        tp.tensor([1.0], dtype=tp.bfloat16).numpy()
    with pytest.raises(TypeError, match="meta device type tensor"):
        tp.tensor([1.0], device="meta").numpy()
    assert leaf.numpy(force=True).tolist() == [1.0]


def test_array_protocol() -> None:
    t = tp.tensor([1, 2])
    assert t.__array__(np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(t, copy=True), np.asarray(t))
    assert t.__array_interface__["data"][0] == t.data_ptr()
    assert isinstance(np.sqrt(tp.tensor([4.0])), tp.Tensor)


def test_memoryview() -> None:
    t = tp.tensor([[1, 2], [3, 4]])
    view = memoryview(t)
    assert view.format == np.dtype(np.int64).char
    assert view.shape == (2, 2)
    view[0, 1] = 9
    assert t.tolist() == [[1, 9], [3, 4]]
    assert memoryview(t.t()).tolist() == [[1, 3], [9, 4]]
    assert bytes(memoryview(tp.tensor([1, 2], dtype=tp.uint8))) == b"\1\2"
    del t
    assert view[1, 1] == 4


def test_frombuffer() -> None:
    data = bytearray(b"12345678")
    t = tp.frombuffer(data, dtype=tp.uint8, count=3, offset=2)
    assert t.tolist() == [51, 52, 53]
    t[0] = 0
    assert data[2] == 0
    with pytest.raises(BufferError):
        data.extend(b"more")
    for arguments in ({"offset": 8}, {"offset": -1}, {"count": 9}, {"count": 0}):
        with pytest.raises(ValueError):
            tp.frombuffer(data, dtype=tp.uint8, **arguments)
    with pytest.raises(ValueError, match="multiple of element size"):
        tp.frombuffer(bytearray(7), dtype=tp.int32)


class Producer:
    """An object with an older __dlpack__, or none but a capsule."""

    def __init__(self, owner: object, versioned: bool) -> None:
        self.owner, self.versioned = owner, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **keywords: object) -> object:
        if keywords and not self.versioned:
            raise TypeError("no keywords before version 1")
        return self.owner.__dlpack__(**keywords)  # type: ignore[attr-defined]


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack(versioned: bool) -> None:
    for t in (tp.tensor([[1.5, 2.0]]), tp.tensor([True, False]), tp.tensor([1.0], dtype=tp.bfloat16), tp.tensor(1j)):
        other = tp.from_dlpack(Producer(t, versioned))
        assert other.tolist() == t.tolist()
        assert other.dtype == t.dtype
        assert other.data_ptr() == t.data_ptr()
        capsule = t.__dlpack__(max_version=(1, 0) if versioned else None)
        assert tp.from_dlpack(capsule).tolist() == t.tolist()
        with pytest.raises(RuntimeError, match="only once"):
            tp.from_dlpack(capsule)
    unused = t.__dlpack__()
    del unused
    kept = tp.from_dlpack(np.arange(5)[::-1])
    gc.collect()
    assert kept.tolist() == [4, 3, 2, 1, 0]


def test_dlpack_keeps_strides() -> None:
    for t in (tp.ones(16)[::3][:1], tp.ones(3, 4).t(), tp.ones(2, 3).expand(4, 2, 3), tp.ones(0, 3)):
        assert tp.from_dlpack(t).stride() == t.stride()
    assert tp.utils.dlpack.DLDeviceType(tp.ones(1).__dlpack_device__()[0]).name == "kDLCPU"


def test_dlpack_copy_and_readonly() -> None:
    t = tp.tensor([1, 2])
    assert tp.from_dlpack(t, copy=True).data_ptr() != t.data_ptr()
    array = np.arange(3)
    array.flags.writeable = False
    tp.from_dlpack(array).add_(1)
    assert array.tolist() == [0, 1, 2]


class Named(tp.Tensor):
    pass


def test_comparisons_with_arrays() -> None:
    t, array = tp.tensor([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        for left, right in ((t, array), (array, t)):
            got = compare(left, right)
            assert isinstance(got, tp.Tensor)
            assert got.tolist() == compare(np.asarray(left), np.asarray(right)).tolist()


def test_pickle_and_copy() -> None:
    base = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    pair = pickle.loads(pickle.dumps((base, base.t(), base[1])))
    pair[0][1, 0] = 9
    assert pair[1].tolist() == [[1.0, 9.0], [2.0, 4.0]]
    assert pair[2].tolist() == [9.0, 4.0]
    assert base[1, 0].item() == 3.0
    twins = copy.deepcopy([base, base[0]])
    twins[0][0, 0] = 7
    assert twins[1][0].item() == 7.0
    assert copy.copy(base).data_ptr() == base.data_ptr()
    assert pickle.loads(pickle.dumps(tp.tensor([1.0], requires_grad=True))).requires_grad
    assert pickle.loads(pickle.dumps(tp.zeros([2, 3], device="meta"))).shape == (2, 3)


def test_pickle_and_copy_move_with_the_device(device: str) -> None:
    """On any device: shared memory stays shared, gradients and places come along."""
    base = tp.arange(12.0).reshape(3, 4).to(device=device)
    row, empty = base.t()[1:], tp.empty(0, device=device)
    for one, other, none in (pickle.loads(pickle.dumps((base, row, empty))), copy.deepcopy((base, row, empty))):
        assert (one.device, other.device, none.device) == (base.device,) * 3
        assert one.tolist() == base.tolist() and other.tolist() == row.tolist() and none.tolist() == []
        other.zero_()
        assert one.tolist() == [[0.0, 0, 0, 0], [4, 0, 0, 0], [8, 0, 0, 0]]
    assert base.sum().item() == 66
    leaf = tp.ones(2, device=device, requires_grad=True)
    (leaf * 3).sum().backward()
    again = copy.deepcopy(leaf)
    assert again.requires_grad and again.grad.device == base.device and again.grad.tolist() == [3.0, 3.0]


def test_subclasses_keep_type_and_attributes() -> None:
    named = Named([1.0, 2.0])
    named.label = "x"
    for other in (pickle.loads(pickle.dumps(named)), copy.deepcopy(named), copy.copy(named)):
        assert type(other) is Named
        assert other.label == "x"
        assert other.tolist() == [1.0, 2.0]


class Deeper(Named):
    pass


def test_results_are_of_the_subclass() -> None:
    x, plain = tp.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Named), tp.ones(2, 2)
    assert type(x) is Named and repr(x).startswith("Named([[1., 2.]")
    made = (
        x + 1, 1 - x, plain * x, x @ plain, -x, ~(x > 1), x == plain, x[0], x[:, 1], x[x > 1], x.T, x.mT, x.data,
        x.real, x.to(tp.float64), x.long(), x.view(4), x.sum(), x.detach(), x.clone(), *x.split(1), *x.max(1), *x,
        tp.add(plain, x), tp.cat([plain, x]), tp.mul(2, x), tp.ones_like(x), tp.ops.aten.exp.default(x),
        tp.nn.functional.relu(x),
    )  # fmt: skip
    assert [type(t) for t in made] == [Named] * len(made)
    assert type(x.max(1)) is tp.return_types.max
    assert type(plain + plain) is tp.Tensor and type(x.as_subclass(tp.Tensor)) is tp.Tensor
    out = tp.empty(2, 2)
    assert tp.add(x, x, out=out) is out and type(out) is tp.Tensor
    assert x.add_(1) is x and plain.add_(x) is plain and type(plain) is tp.Tensor
    deeper = Deeper([1.0, 2.0])
    assert type(x + deeper) is Deeper and type(deeper + x) is Deeper and type(tp.add(x, deeper)) is Deeper


class KeptToItself(tp.Tensor):
    __torch_function__ = tp._C._disabled_torch_function_impl


def test_a_subclass_may_keep_to_itself() -> None:
    x, named = tp.ones(2, 2).as_subclass(KeptToItself), Named([1.0, 2.0])
    made = (x + 1, 1 - x, x @ x, -x, x[0], x.T, x.data, x.detach(), x.long(), *x.split(1), tp.cat([x, x]), *x.max(1))
    assert [type(t) for t in made] == [tp.Tensor] * len(made)
    assert type(x) is KeptToItself and x.add_(1) is x
    assert type(x + named) is Named and type(named + x) is Named and type(tp.add(x, named)) is Named
    assert type(copy.copy(x)) is type(copy.deepcopy(x)) is type(pickle.loads(pickle.dumps(x))) is KeptToItself
    impl = tp._C._disabled_torch_function_impl
    assert impl(tp.add, (KeptToItself,), (x, x), {"alpha": 2}).tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_subclasses_and_gradients() -> None:
    leaf = tp.Tensor._make_subclass(Named, tp.ones(2), True)
    assert type(leaf) is Named and leaf.requires_grad and leaf.is_leaf
    result = (leaf * 3).sum()
    assert type(result) is Named
    result.backward()
    assert leaf.grad.tolist() == [3.0, 3.0]
    x = tp.ones(2, requires_grad=True)
    (x.as_subclass(Named) * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    for wrong in (int, 3):
        with pytest.raises(TypeError, match="subclass of Tensor"):
            x.as_subclass(wrong)


def test_deepcopy_of_a_result_is_refused() -> None:
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(tp.tensor([1.0], requires_grad=True) * 2)


def test_storage() -> None:
    t = tp.tensor([1, 2, 3])
    storage = t[1:].untyped_storage()
    assert storage.nbytes() == 24
    assert storage.data_ptr() == t.data_ptr()
    assert storage is t.untyped_storage()


def test_numpy_of_what_needs_a_gradient_where_none_is_recorded() -> None:
    leaf = tp.ones(2, requires_grad=True)
    with tp.no_grad():
        assert leaf.numpy().tolist() == (leaf * 1).numpy().tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="requires grad"):
        leaf.numpy()


def test_the_stream_of_the_cpu() -> None:
    """What is called has been done: it is always ready, and has no events."""
    stream = tp.Stream(device="cpu")
    assert (stream.device, stream.stream_id, stream.device_index) == (tp.device("cpu"), 0, -1)
    assert stream.query() and stream == tp.Stream(tp.device("cpu"))
    stream.synchronize()
    with stream as entered:
        assert entered is stream and (tp.ones(1) + 1).item() == 2
    with pytest.raises(NotImplementedError, match="cpu"):
        stream.record_event()


def test_without_an_accelerator_a_stream_is_the_cpu_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorpy.accelerator.streams.types", list)
    assert tp.Stream().device == tp.device("cpu")


def test_streams_and_capsules_of_the_cpu() -> None:
    t = tp.arange(3.0)
    for stream in (0, 1, 10):
        with pytest.raises(AssertionError, match="stream should be None on cpu"):
            t.__dlpack__(stream=stream)
    for strange in ("x", 1.5):
        with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
            t.__dlpack__(stream=strange)
    shared = tp.asarray(tp.utils.dlpack.to_dlpack(t))
    assert shared.data_ptr() == t.data_ptr()
    copy = tp.asarray(tp.utils.dlpack.to_dlpack(t), copy=True)
    assert tp.equal(copy, t) and copy.data_ptr() != t.data_ptr()
    with pytest.raises(ValueError, match=r"\(3 \* 4 bytes\) after offset \(0 bytes\)"):
        tp.frombuffer(bytearray(8), dtype=tp.float32, count=3)
    with pytest.raises(ValueError, match=r"\(7 bytes\) after offset \(0 bytes\) must be a multiple"):
        tp.frombuffer(bytearray(7), dtype=tp.float32)


def test_tensors_that_are_no_strided_memory_are_not_packed() -> None:
    with pytest.raises(BufferError, match="strided"):
        tp.sparse_coo_tensor([[0]], [1.0], (2,)).__dlpack__()
    with pytest.raises(BufferError, match="types are not supported by dlpack"):
        tp.quantize_per_tensor(tp.randn(2), 0.1, 0, tp.qint8).__dlpack__()
    with pytest.raises(BufferError, match="Unsupported device_type: 16"):
        tp.ones(2).__dlpack__(max_version=(1, 0), dl_device=(16, 0))


def test_arrays_of_64_bits_have_numpys_own_types() -> None:
    for dtype, kind in ((tp.int64, np.int64), (tp.uint64, np.uint64)):
        t = tp.ones(2, dtype=dtype)
        assert type(t.numpy()[0]) is kind and t.numpy().dtype is np.dtype(kind)
        assert repr(np.array([tp.tensor(1), tp.tensor(2)])) == "array([1, 2])"
        assert tp.from_numpy(np.ones(2, np.longlong)).dtype is tp.int64
