"""Indexing against NumPy, read and write, and the errors."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

import tensorpy as tp


def pair(shape: list[int]) -> tuple[np.ndarray, tp.Tensor]:
    array = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    return array, tp.tensor(array)


def random_slice(rng: random.Random, n: int) -> slice:
    def bound() -> int | None:
        return rng.choice([None, rng.randint(-n - 2, n + 2)])

    return slice(bound(), bound(), rng.choice([None, 1, 2, 3]))


def random_basic(rng: random.Random, shape: list[int]) -> tuple[Any, ...]:
    key: list[Any] = []
    used = 0
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(["int", "slice", "slice", "none", "ellipsis"])
        if kind == "none":
            key.append(None)
        elif kind == "ellipsis":
            if ... not in key:
                key.append(...)
        elif used < len(shape) and ... not in key:
            key.append(rng.randrange(-shape[used], shape[used]) if kind == "int" else random_slice(rng, shape[used]))
            used += 1
    return tuple(key)


@pytest.mark.parametrize("seed", range(300))
@pytest.mark.parametrize("grad", [False, True])
def test_basic(seed: int, grad: bool) -> None:
    """With a gradient the views are chained, without they are one; both are NumPy's."""
    rng = random.Random(seed)
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    array, t = pair(shape)
    key = random_basic(rng, shape)
    assert_same_view(array, t.requires_grad_() if grad else t, key)


def assert_same_view(array: np.ndarray, t: tp.Tensor, key: Any) -> None:
    wanted, got = array[key], t[key]
    assert got.shape == wanted.shape
    assert got.tolist() == wanted.tolist()
    assert got._base is t
    if not t.requires_grad:
        changed = array.copy()
        changed[key] = -1
        t[key] = -1
        assert t.tolist() == changed.tolist()


def random_advanced(rng: random.Random, shape: list[int]) -> tuple[Any, ...]:
    """Neighbouring index arrays, so that NumPy's rule for the place of the new dimensions is ours."""
    start = rng.randrange(len(shape))
    stop = rng.randint(start + 1, len(shape))
    key: list[Any] = [slice(None)] * start
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    if rng.random() < 0.4:
        key.append(numbers.random(shape[start:stop]) < 0.5)
    else:
        places = [rng.randint(1, 3) for _ in range(rng.randint(1, 2))]
        for d in range(start, stop):
            own = [n if rng.random() < 0.7 else 1 for n in places]
            key.append(numbers.integers(-shape[d], shape[d], size=own))
    if stop < len(shape) and rng.random() < 0.5:
        key.append(random_slice(rng, shape[stop]))
    return tuple(key)


@pytest.mark.parametrize("seed", range(400))
def test_advanced(seed: int) -> None:
    rng = random.Random(seed)
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    array, t = pair(shape)
    if rng.random() < 0.3:
        array, t, shape = array.T, t.T, shape[::-1]
    key = random_advanced(rng, shape)
    kinds = [lambda k: k, lambda k: tp.tensor(k), lambda k: k.tolist()]
    as_given = tuple(rng.choice(kinds)(k) if isinstance(k, np.ndarray) else k for k in key)
    wanted = array[key]
    got = t[as_given]
    assert got.shape == wanted.shape
    assert got.tolist() == wanted.tolist()
    values = np.random.default_rng(seed).random(wanted.shape).astype(np.float32)
    changed, written = array.copy(), t.clone()
    changed[key] = values
    written[as_given] = tp.tensor(values)
    if not any(isinstance(k, np.ndarray) and k.dtype != bool for k in key):
        assert written.tolist() == changed.tolist()
    changed[key] = 5
    written[as_given] = 5
    assert written.tolist() == changed.tolist()


def test_scalars_of_other_kinds() -> None:
    array, t = pair([3, 4])
    assert t[np.int64(1)].tolist() == array[1].tolist()
    assert t[tp.tensor(1)].tolist() == array[1].tolist()
    assert t[tp.tensor(1) : tp.tensor(2)].tolist() == array[1:2].tolist()
    assert t[True].shape == (1, 3, 4)
    assert t[False].shape == (0, 3, 4)
    assert t[None, ..., None].shape == (1, 3, 4, 1)
    assert t[range(2)].tolist() == array[:2].tolist()
    assert t[[]].shape == (0, 4)


def test_separated_indices_come_first() -> None:
    array, t = pair([2, 3, 4])
    assert t[[0, 1], :, [1, 2]].tolist() == array[[0, 1], :, [1, 2]].tolist()
    assert t[0, :, [1, 2]].shape == (3, 2)  # an int selects first, as in PyTorch


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (1.0, IndexError, "only integers, slices"),
        ("a", TypeError, "invalid data type 'str'"),
        (2**70, ValueError, "Overflow when unpacking long long"),
        ([0, 2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        ([0.5], IndexError, "tensors used as indices must be long, int, byte or bool"),
        (([0, 1], [0, 1, 2]), IndexError, r"could not be broadcast together with shapes \[2\], \[3\]"),
        ([True, False, True], IndexError, r"shape of the mask \[3\] at index 0 does not match"),
        ((None,) * 200, IndexError, "too many indices"),
    ],
)
def test_errors(key: Any, error: type[Exception], text: str) -> None:
    _, t = pair([2, 3])
    with pytest.raises(error, match=text):
        t[key]
    with pytest.raises(error, match=text):
        t[key] = 1


def test_without_dimensions() -> None:
    t = tp.tensor(3.0)
    assert t[()].item() == 3.0
    assert t[None].shape == (1,)
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        t[0]
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(t)
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(t)


def test_values() -> None:
    t = tp.zeros([2, 3])
    t[0] = [1, 2, 3]
    t[:, 1:2] = np.array([[7], [8]])
    t[1, 0] = tp.tensor([5.0])
    assert t.tolist() == [[1, 7, 3], [5, 8, 0]]
    t[t > 4] = 0
    assert t.tolist() == [[1, 0, 3], [0, 0, 0]]
    t[0] = tp.ones([1, 1, 3])
    assert t[0].tolist() == [1, 1, 1]
    whole = tp.zeros([3], dtype=tp.int64)
    whole[0] = 1.75
    assert whole.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (0, "a", TypeError),
        (0, None, TypeError),
        (0, 1j, RuntimeError),
        ([0], tp.ones([2], dtype=tp.float64), RuntimeError),
        ([0], tp.ones([2]), RuntimeError),
        (0, tp.ones([2]), RuntimeError),
        (tp.ones([2, 3]) > 0, tp.ones([2], dtype=tp.int64), RuntimeError),
    ],
)
def test_values_that_do_not_fit(key: Any, value: Any, error: type[Exception]) -> None:
    t = tp.zeros([2, 3])
    with pytest.raises(error):
        t[key] = value
    assert t.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_shape_that_does_not_fit_is_told_before_a_dtype() -> None:
    """As in PyTorch: an empty list, of floats, is first of all too short."""
    t = tp.arange(4)
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[0\]"):
        t[t > -1] = tp.tensor([])
    with pytest.raises(RuntimeError, match="got Long for the destination and Float for the source"):
        t[t > -1] = tp.ones(4)


def test_lists_that_stand_for_tuples() -> None:
    """As PyTorch 2.13 has it, with its warning; NumPy takes a list of lists for one array."""
    array, t = pair([2, 3, 4])
    for key in ([[0, 1], [1, 0]], [slice(0, 1), 0], [None, 0], [...], [tp.tensor(0), tp.tensor([1, 2])], [[0, 1]]):
        with pytest.warns(UserWarning, match="non-tuple sequence"):
            got = t[key]
        plain = tuple(np.array(k) if isinstance(k, tp.Tensor) else k for k in key)
        assert got.tolist() == array[plain].tolist()
        written, changed = t.clone(), array.copy()
        with pytest.warns(UserWarning, match="non-tuple sequence"):
            written[key] = 7
        changed[plain] = 7
        assert written.tolist() == changed.tolist()
    assert t[[0, 1]].tolist() == array.tolist()
    assert t[[True, False]].tolist() == array[[True, False]].tolist()


def test_one_value_through_masks_takes_any_dtype() -> None:
    t = tp.arange(6).view(2, 3)
    t[tp.tensor([True, False])] = tp.tensor([1.5])
    t[t == 4] = tp.tensor(9.0)
    assert t.tolist() == [[1, 1, 1], [3, 9, 5]]
    t[True] = tp.tensor([2.5])
    t[False] = 7
    assert t.tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.raises(RuntimeError, match="dtypes match"):
        t[tp.tensor([0])] = tp.tensor([1.5])
    with pytest.raises(RuntimeError, match="dtypes match"):
        t[tp.tensor([True, False])] = tp.tensor([1.5, 2.5, 3.5])


def test_index_put_of_a_copy() -> None:
    t = tp.zeros(3, requires_grad=True)
    got = t.index_put((tp.tensor([0, 0]),), tp.tensor([1.0, 2.0]), accumulate=True)
    assert got.tolist() == [3.0, 0.0, 0.0] and t.tolist() == [0.0, 0.0, 0.0]
    got.sum().backward()
    assert t.grad.tolist() == [1.0, 1.0, 1.0]
    t.grad = None
    tp.index_put(t, [tp.tensor([1])], tp.tensor([1.0])).sum().backward()
    assert t.grad.tolist() == [1.0, 0.0, 1.0]


def test_where_of_a_condition() -> None:
    condition = tp.tensor([[True, False], [True, True]])
    assert [x.tolist() for x in tp.where(condition)] == [[0, 1, 1], [0, 0, 1]]
    assert tp.where(tp.tensor(True))[0].tolist() == [0]


def test_deleting_is_refused() -> None:
    with pytest.raises(TypeError, match="does not support deleting"):
        del tp.zeros([2])[0]


def test_contains_and_iteration() -> None:
    t = tp.tensor([[1, 2], [3, 4]])
    assert 3 in t
    assert 5 not in t
    assert [row.tolist() for row in t] == [[1, 2], [3, 4]]
    assert [row.tolist() for row in reversed(t)] == [[3, 4], [1, 2]]
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in t  # noqa: B015


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_sums_of_16_bits_are_rounded_once(dtype: tp.dtype) -> None:
    """As those of index_add and scatter_add."""
    zeros, index, one = tp.zeros(3, dtype=dtype), tp.zeros(3000, dtype=tp.int64), tp.ones(3000, dtype=dtype)
    expected = zeros.index_add(0, index, one)
    assert expected[0] == tp.tensor(3000.0).to(dtype)
    assert zeros.index_put((index,), one, accumulate=True).equal(expected)
    assert zeros.put(index, one, accumulate=True).equal(expected)
    for single in (zeros.index_put((index,), one), zeros.put(index, one)):
        assert single.tolist() == [1, 0, 0]


def test_accumulate_adds_repeats() -> None:
    t = tp.zeros([3])
    t.index_put_((tp.tensor([0, 0, 2]),), tp.tensor([1.0, 2.0, 3.0]), accumulate=True)
    assert t.tolist() == [3.0, 0.0, 3.0]


@pytest.mark.parametrize("seed", range(30))
def test_nonzero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 2, size=rng.integers(0, 5, size=rng.integers(1, 4)))
    t = tp.tensor(array)
    assert t.nonzero().tolist() == np.argwhere(array).tolist()
    assert [c.tolist() for c in t.nonzero_numpy()] == [c.tolist() for c in array.nonzero()]


def test_gradients() -> None:
    t = tp.ones([3, 2], requires_grad=True)
    (t[[0, 0, 2]] * tp.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert t.grad.tolist() == [[4, 6], [0, 0], [5, 6]]
    t.grad = None
    (t[1:, 0] * 3).sum().backward()
    assert t.grad.tolist() == [[0, 0], [3, 0], [3, 0]]
    assert t[1, 0].grad_fn.name() == "SelectBackward0"
    assert t[:, :].grad_fn.name() == "AliasBackward0"


def test_meta() -> None:
    t = tp.zeros([4, 5], device="meta")
    assert t[1:, None, 2].shape == (3, 1)
    assert t[[0, 1, 2]].shape == (3, 5)


@pytest.mark.parametrize("dtype", [tp.int8, tp.int16, tp.float32, tp.int64, tp.complex128])
def test_masks_of_any_bytes(dtype: tp.dtype) -> None:
    """A view of other memory as bools may have any bytes: none of them moves the end of a result."""
    octets = np.random.RandomState(3).choice(np.array([0, 1, 2, 128, 255], np.uint8), 1003)
    odd, plain = tp.from_numpy(octets).view(tp.bool), tp.from_numpy(octets != 0)
    t = tp.arange(1003).to(dtype)
    for take in (lambda m: t[m], lambda m: t.masked_select(m), lambda m: tp.zeros_like(t).masked_scatter(m, t)):
        assert take(odd).tolist() == take(plain).tolist()
    assert odd.nonzero().tolist() == plain.nonzero().tolist()
    assert odd.sum().item() == plain.sum().item() == np.count_nonzero(octets)
    with pytest.raises(RuntimeError, match="Number of elements of source"):
        tp.zeros_like(t).masked_scatter_(odd, t[:5])


def test_a_mask_writes_a_number_into_memory_of_several_elements() -> None:
    for write in (lambda t: t.__setitem__(t == 0, 3.0), lambda t: t.index_put_((t == 0,), tp.tensor(3.0))):
        t = tp.tensor(0.0).expand(2)
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            write(t)
        assert t.tolist() == [3, 3]


@pytest.mark.parametrize("key", [0, slice(None), ..., None, slice(0, 1)])
def test_a_number_goes_to_memory_of_several_elements_one_at_a_time(key: Any) -> None:
    t = tp.zeros(1).expand(3, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        t[key] = 5
    assert t.tolist() == [[0, 0, 0]] * 3
    t[0, 0] = 5
    assert t.tolist() == [[5, 5, 5]] * 3


def test_masks_of_meta_tensors_may_be_written_through() -> None:
    x = tp.empty(3, 2, device="meta")
    for mask in (x > 0, x[:, 0] > 0):
        x[mask] = 1.0
        x[mask] = tp.ones(2, device="meta")
        made = x.index_put((mask,), tp.ones((), device="meta"), accumulate=True)
        assert made.shape == (3, 2) and made.device.type == "meta"
    with pytest.raises(RuntimeError, match="dtypes match"):
        x.index_put_((x > 0,), tp.ones(2, dtype=tp.int64, device="meta"))


def test_a_row_is_filled_with_one_of_its_elements():
    x = tp.arange(9.0).view(3, 3)
    x[1] = x[1][2]
    assert x.tolist() == [[0.0, 1.0, 2.0], [5.0, 5.0, 5.0], [6.0, 7.0, 8.0]]
    a, b = tp.zeros(2, 2), tp.tensor(3.0, requires_grad=True)
    a[0] = b
    a.sum().backward()
    assert b.grad is not None and b.grad.item() == 2.0


WRITES = {
    "a row into all": (lambda t: t[:], lambda t: t[1]),
    "a row into its own": (lambda t: t[None], lambda t: t[2]),
    "a column into all": (lambda t: t[...], lambda t: t[:, :1]),
    "part of the line": (lambda t: t[:], lambda t: t.view(-1)[1:4]),
    "backwards": (lambda t: t[1:], lambda t: t[:1]),
    "one element": (lambda t: t[:], lambda t: t[2, 2]),
}


@pytest.mark.parametrize("to, of", WRITES.values(), ids=WRITES)
def test_a_broadcast_value_may_lie_where_it_is_written(to: Any, of: Any) -> None:
    """t[:] = t[0]: the value is what was there before the assignment."""
    t = tp.arange(9.0).view(3, 3)
    expected = t.clone()
    to(expected)[:] = of(t).clone()
    to(t)[:] = of(t)
    assert t.tolist() == expected.tolist() and t._version == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("place", range(4))
def test_a_result_lies_as_what_it_is_taken_of(order: tuple[int, ...], place: int) -> None:
    """Dimensions without an index keep their order in memory; an index stands where it did."""
    x = tp.zeros(2, 3, 4, 5).permute(order)
    key: list[Any] = [slice(None)] * 4
    key[place] = [1, 0]
    found = x[tuple(key)]
    rest = [d for d in range(4) if d != place]
    by_memory = sorted(rest, key=lambda d: x.stride(d))
    assert sorted(rest, key=lambda d: found.stride(d)) == by_memory
    assert found.tolist() == np.asarray(x)[tuple(key)].tolist()


def test_images_stay_channels_last() -> None:
    x = tp.randn(4, 3, 5, 6).to(memory_format=tp.channels_last)
    assert x[[2, 0]].is_contiguous(memory_format=tp.channels_last)
    assert x[tp.tensor([True, False, True, False])].is_contiguous(memory_format=tp.channels_last)
    assert x.to("meta")[[2, 0]].stride() == x[[2, 0]].stride()
