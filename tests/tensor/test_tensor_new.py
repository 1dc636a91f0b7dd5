"""tensor(), as_tensor(), asarray(): what Python data becomes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensorpy as tp


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, tp.int64, ()),
        (3.5, tp.float32, ()),
        (True, tp.bool, ()),
        (1j, tp.complex64, ()),
        ([], tp.float32, (0,)),
        ([[], []], tp.float32, (2, 0)),
        ([1, 2], tp.int64, (2,)),
        ([1, 2.5], tp.float32, (2,)),
        ([True, 2], tp.int64, (2,)),
        ([True, False], tp.bool, (2,)),
        ([1, 2j], tp.complex64, (2,)),
        ((range(3), range(3)), tp.int64, (2, 3)),
        (np.float64(2), tp.float64, ()),
        ([np.float32(1), np.float32(2)], tp.float32, (2,)),
        ([1, np.float64(2)], tp.float64, (2,)),
        (np.arange(6, dtype="u2").reshape(2, 3), tp.uint16, (2, 3)),
        ([np.arange(3.0), np.arange(3.0)], tp.float64, (2, 3)),
        ([np.array(1), np.array(2.0)], tp.float64, (2,)),
        ([np.arange(3), [4, 5, 6]], tp.int64, (2, 3)),
    ],
)
def test_dtype_and_shape(data: object, dtype: tp.dtype, shape: tuple[int, ...]) -> None:
    t = tp.tensor(data)
    assert t.dtype == dtype
    assert t.shape == shape
    assert t.tolist() == np.array(data).tolist()


def test_lists_of_tensors() -> None:
    assert tp.tensor([tp.tensor(1), tp.tensor([2])]).tolist() == [1, 2]
    assert tp.tensor([tp.tensor([1, 2]), tp.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]


def nested(depth: int) -> object:
    data: object = 1
    for _ in range(depth):
        data = [data]
    return data


def recursive() -> list[object]:
    data: list[object] = []
    data.append(data)
    return data


class Broken:
    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> int:
        raise KeyError(i)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2], [1, 2, 3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 3\)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ([1, [2]], TypeError, "cannot be interpreted as an integer"),
        ("a", TypeError, r"new\(\): invalid data type 'str'"),
        (b"a", TypeError, r"new\(\): invalid data type 'bytes'"),
        (["a"], ValueError, "too many dimensions 'str'"),
        (10**30, ValueError, "Overflow when unpacking long long"),
        ([2**63], ValueError, "Overflow when unpacking long long"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([{}], RuntimeError, "Could not infer dtype of dict"),
        (nested(65), ValueError, "too many dimensions 'list'"),
        (recursive(), ValueError, "too many dimensions 'list'"),
        (Broken(), ValueError, "could not determine the shape of object type 'Broken'"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray"),
    ],
)
def test_bad_data(data: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tp.tensor(data)


@pytest.mark.parametrize(
    ("data", "dtype", "error"),
    [
        ([300], tp.uint8, RuntimeError),
        ([-129], tp.int8, RuntimeError),
        ([float("nan")], tp.int32, RuntimeError),
        ([1e30], tp.int64, RuntimeError),
        ([1j], tp.float32, TypeError),
        ([2**64], tp.uint64, OverflowError),
    ],
)
def test_values_that_do_not_fit(data: object, dtype: tp.dtype, error: type[Exception]) -> None:
    with pytest.raises(error):
        tp.tensor(data, dtype=dtype)


def test_integers_for_64_bits_without_a_sign() -> None:
    """Those with a sign wrap, as in PyTorch; what fits no 64 bits is refused."""
    values = [0, 3, True, 2**63, 2**64 - 1, -1, -(2**63)]
    assert tp.tensor(values, dtype=tp.uint64).tolist() == [int(value) % 2**64 for value in values]
    for value, error in ((2**64, OverflowError), (-(2**63) - 1, ValueError)):
        with pytest.raises(error):
            tp.tensor(value, dtype=tp.uint64)


def test_values_with_a_dtype() -> None:
    assert tp.tensor([2**63], dtype=tp.uint64).tolist() == [2**63]
    assert tp.tensor([1e300], dtype=tp.float32).tolist() == [float("inf")]
    assert tp.tensor([1.5, 0], dtype=tp.bool).tolist() == [True, False]
    assert tp.tensor([1.75], dtype=tp.int8).tolist() == [1]
    assert tp.tensor([10**30, 1.0]).tolist() == [pytest.approx(1e30), 1.0]


def test_a_list_that_changes_while_it_is_read() -> None:
    data: list[object] = []

    class Shrink:
        def __index__(self) -> int:
            data.clear()
            return 1

    data.extend([Shrink(), *range(1000)])
    with pytest.raises(RuntimeError, match="changed size"):
        tp.tensor(data, dtype=tp.int32)


def test_keywords() -> None:
    assert tp.tensor([1.0], requires_grad=True).requires_grad
    assert tp.tensor([1], device="meta").device.type == "meta"
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        tp.tensor([1], foo=1)
    with pytest.raises(TypeError, match="positional argument"):
        tp.tensor([1], tp.float32)
    with pytest.raises(RuntimeError, match="can require gradients"):
        tp.tensor([1], requires_grad=True)


def test_a_tensor_is_copied_with_a_warning() -> None:
    source = tp.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="copy construct"):
        copy = tp.tensor(source)
    assert not copy.requires_grad
    assert copy.data_ptr() != source.data_ptr()


def test_as_tensor_shares() -> None:
    array = np.arange(3.0)
    t = tp.as_tensor(array)
    t[0] = 7.0
    assert array[0] == 7.0
    assert tp.as_tensor(t) is t
    assert tp.as_tensor(t, dtype=tp.float32) is not t


def test_asarray() -> None:
    array = np.arange(3)
    assert tp.asarray(array).data_ptr() == array.ctypes.data
    assert tp.asarray(array, copy=True).data_ptr() != array.ctypes.data
    with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
        tp.asarray([1], copy=False)
    with pytest.raises(ValueError, match="can't alias tensor with dtype"):
        tp.asarray(array, copy=False, dtype=tp.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tp.asarray(bytearray(b"abcd"), dtype=tp.int16).tolist() == [25185, 25699]
    leaf = tp.tensor([1.0])
    assert tp.asarray(leaf, requires_grad=True).requires_grad
    assert not leaf.requires_grad


def test_to() -> None:
    t = tp.tensor([1.5, 2.5])
    assert t.to("cpu") is t
    assert t.to(tp.float32) is t
    assert t.to("cpu", tp.int64).tolist() == [1, 2]
    assert t.to(device="cpu", dtype=tp.float64).dtype == tp.float64
    assert t.to(tp.zeros([], dtype=tp.int8)).dtype == tp.int8
    assert t.to(other=tp.zeros([], dtype=tp.int8)).dtype == tp.int8
    assert t.to(tp.float32, copy=True) is not t
    assert t.to("meta").device.type == "meta"
    assert t.double().dtype == tp.float64
    assert t.type() == "tensorpy.FloatTensor"
    assert t.type("tensorpy.DoubleTensor").dtype == tp.float64
    with pytest.raises(RuntimeError):
        t.to(99)  # an index is one of a device that is not the CPU
    with pytest.raises(TypeError):
        t.to(3.5)


def test_numbers() -> None:
    assert float(tp.tensor(2.5)) == 2.5
    assert int(tp.tensor([3.75])) == 3
    assert complex(tp.tensor(1j)) == 1j
    assert [7, 8, 9][tp.tensor(1)] == 8
    assert bool(tp.tensor([2]))
    with pytest.raises(TypeError, match="only integer tensors"):
        [7][tp.tensor(0.0)]
    with pytest.raises(ValueError, match="only one element"):
        float(tp.tensor([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(tp.tensor([1, 2]))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "uint64", "float16", "float32", "complex128"])
def test_lists_of_numpy_scalars(dtype: str) -> None:
    array = np.arange(12).astype(dtype).reshape(3, 4)
    rows = [list(row) for row in array]
    made = tp.tensor(rows)
    assert made.dtype == getattr(tp, dtype)
    assert made.tolist() == array.tolist()
    assert tp.tensor(rows, dtype=tp.float64 if dtype != "complex128" else tp.complex64).tolist() == array.tolist()


def test_lists_of_numpy_scalars_and_numbers() -> None:
    mixed = [np.float32(0.5), np.int64(2), 3, np.float64(0.25), True, np.float32(1.5)]
    assert tp.tensor(mixed).tolist() == [0.5, 2.0, 3.0, 0.25, 1.0, 1.5]
    with pytest.raises(RuntimeError, match=r"Could not infer dtype of numpy\.datetime64"):
        tp.tensor([np.datetime64("2020-01-01")])


def test_sizes_make_an_empty_tensor_of_them() -> None:
    class Kind(tp.Tensor):
        pass

    assert tp.Tensor(tp.Size([2, 3])).shape == (2, 3) and tp.Tensor(tp.Size([])).shape == ()
    assert Kind(tp.Size([2, 1])).shape == (2, 1) and tp.Tensor((2, 3)).tolist() == [2.0, 3.0]


def test_the_old_constructors_make_tensors_on_the_cpu_alone() -> None:
    for call in (
        lambda: tp.Tensor([1.0], device="meta"),
        lambda: tp.FloatTensor([1.0], device="meta"),
        lambda: tp.ones(1).new(1, device="meta"),
    ):
        with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: meta"):
            call()
    assert tp.Tensor([1.0], device="cpu").tolist() == [1.0]
    with pytest.raises(TypeError, match="data must be a sequence \\(got float\\)"):
        tp.Tensor(1.5)
