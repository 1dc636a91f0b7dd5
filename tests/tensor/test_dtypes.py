"""Dtypes as a class: casts between all of them, promotion of all pairs, operators that only move bytes, and what
PyTorch says of complex32, the 8-bit floats and the wide unsigned integers."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
WIDE = ("uint16", "uint32", "uint64")
STORED = ("complex32", *FLOAT8)
DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", *STORED),
)


def theirs(name: str) -> Any:
    return getattr(torch, name)


def ours(name: str) -> Any:
    return getattr(tp, name)


def from_torch(t: Any, device: Any = None) -> tp.Tensor:
    """The same bytes."""
    if t.dtype == torch.bool:
        return tp.from_numpy(t.numpy().copy()).to(device or "cpu")
    raw = tp.from_numpy(t.contiguous().reshape(-1).view(torch.uint8).numpy().copy())
    return raw.view(ours(str(t.dtype)[6:])).reshape(tuple(t.shape)).to(device or "cpu")


def raw(t: Any) -> np.ndarray:
    module = torch if isinstance(t, torch.Tensor) else tp
    flat = t.cpu().contiguous().reshape(-1)
    return np.asarray((flat.to(module.uint8) if t.dtype == module.bool else flat.view(module.uint8)).numpy())


def codes(name: str) -> Any:
    """Every number of a dtype of 8 or 16 bits."""
    wide = torch.arange(256 if theirs(name).itemsize == 1 else 65536, dtype=torch.int32)
    return wide.to(torch.uint8 if theirs(name).itemsize == 1 else torch.int16).view(theirs(name))


def halfway() -> Any:
    """The numbers of the 8-bit floats, those in the middle of two, and their neighbours; binary16; bounds; any bits."""
    parts = [torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16).float()]
    for name in FLOAT8:
        known = codes(name).float()
        known = known[known.isfinite()].unique()
        for exact in (known, (known[1:].double() + known[:-1].double()).div(2).float()):
            parts += [exact, *(torch.nextafter(exact, torch.tensor(end)) for end in (np.inf, -np.inf))]
    parts.append(torch.tensor([448, 464, 465, 480, 57344, 61440, 65536, 240, 248, 256, 1e9, 3e38, np.inf, np.nan]))
    parts.append(torch.tensor([1e-45, 1e-40, 2.0**-127, 2.0**-128, 0.0]))
    bits = torch.randint(-(2**31), 2**31 - 1, (20000,), generator=torch.Generator().manual_seed(0))
    some = torch.cat(parts)
    return torch.cat([some, -some, bits.to(torch.int32).view(torch.float32)])


def numbers(name: str) -> Any:
    dtype = theirs(name)
    if name == "bool":
        return torch.tensor([True, False])
    if dtype.is_complex:
        parts = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}[name]
        x = numbers(parts)
        return torch.view_as_complex(torch.stack([x, x.flip(0)], 1))
    if dtype.itemsize <= 2:
        return codes(name)
    if dtype.is_floating_point:
        return halfway().to(dtype)
    wide = torch.randint(-(2**62), 2**62, (2000,), generator=torch.Generator().manual_seed(0))
    return torch.cat([wide, wide >> 20, wide >> 40, wide >> 50, torch.arange(-1000, 1000)]).to(dtype)


def is_nan(name: str, bits: np.ndarray) -> np.ndarray:
    t = torch.from_numpy(bits.copy())
    if not theirs(name).is_floating_point and not theirs(name).is_complex:
        return np.zeros(len(bits) // theirs(name).itemsize, bool)
    wide = torch.complex128 if theirs(name).is_complex else torch.float64
    return np.asarray(torch.isnan(t.view(theirs(name)).to(wide)).numpy())


@pytest.mark.parametrize("source", DTYPES)
def test_casts(source: str) -> None:
    """Every number of 8 and 16 bits, and all that is halfway, to every dtype: PyTorch's bits, but for NaN."""
    given = numbers(source)
    x, undefined = from_torch(given), is_nan(source, raw(given))
    for target in DTYPES:
        expected, got = raw(given.to(theirs(target))), raw(x.to(ours(target)))
        size = max(theirs(target).itemsize, 1)
        differs = (expected != got).reshape(-1, size).any(1)
        if theirs(target).is_floating_point or theirs(target).is_complex:
            differs &= ~(is_nan(target, expected) & is_nan(target, got))
        else:
            differs &= ~undefined  # C++ leaves open what a NaN is as an integer,
        if (
            target == "uint32" and source != "bool"
        ):  # and what does not fit: in PyTorch that depends on how many there are
            wide = given.to(torch.complex128).real
            differs &= ((wide >= -(2**31)) & (wide < 2**32)).numpy()
        at = np.flatnonzero(differs)
        assert not len(at), f"{target}: {given[int(at[0])]}, {len(at)} of {len(differs)}"


@pytest.mark.parametrize("source", DTYPES)
def test_casts_of_strided_tensors(source: str) -> None:
    x = from_torch(numbers(source)[:600])
    n = x.numel() // 6 * 6
    table = x[:n].reshape(6, -1)
    for target in DTYPES:
        assert np.array_equal(raw(table.t()[::2].to(ours(target))), raw(table.to(ours(target)).t()[::2]))


def said(call: Callable[[], Any]) -> Any:
    try:
        return str(call()).rpartition(".")[2]
    except RuntimeError as e:
        return f"RuntimeError: {e}"


def test_promotion_of_all_pairs() -> None:
    """The dtype, or the error to the letter."""
    for a in DTYPES:
        for b in DTYPES:
            expected = said(lambda a=a, b=b: torch.promote_types(theirs(a), theirs(b)))
            assert said(lambda a=a, b=b: tp.promote_types(ours(a), ours(b))) == expected, (a, b)
            assert tp.can_cast(ours(a), ours(b)) == torch.can_cast(theirs(a), theirs(b)), (a, b)


@pytest.mark.parametrize("name", DTYPES)
def test_result_type_with_numbers(name: str) -> None:
    """Of a tensor with dimensions, and of one without, and a number."""
    for shape in ((2,), ()):
        for number in (True, 1, 1.5, 1j):
            if name in FLOAT8 and number == 1j:
                continue  # below
            a = said(lambda s=shape, n=number: torch.result_type(torch.zeros(s, dtype=theirs(name)), n))
            b = said(lambda s=shape, n=number: tp.result_type(tp.zeros(s, dtype=ours(name)), n))
            assert a == b, (shape, number)


def test_float8_has_no_complex_type() -> None:
    with pytest.raises(RuntimeError):
        tp.result_type(tp.zeros(2, dtype=tp.float8_e5m2), 1j)


@pytest.mark.parametrize("name", [*DTYPES])
def test_properties(name: str) -> None:
    a, b = theirs(name), ours(name)
    assert (a.itemsize, a.is_floating_point, a.is_complex) == (b.itemsize, b.is_floating_point, b.is_complex)
    assert a.is_signed == b.is_signed
    assert str(a)[6:] == str(b).rpartition(".")[2]
    assert str(a.to_real())[6:] == str(b.to_real()).rpartition(".")[2]
    assert torch.zeros(1, dtype=a).type()[6:] == tp.zeros(1, dtype=b).type().partition(".")[2]
    info = (torch.finfo, tp.finfo) if a.is_floating_point or a.is_complex else (torch.iinfo, tp.iinfo)
    if name != "bool":
        assert repr(info[0](a)) == repr(info[1](b))
        for limit in ("bits", "min", "max", *(("eps", "tiny", "smallest_normal") if info[1] is tp.finfo else ())):
            assert getattr(info[0](a), limit) == getattr(info[1](b), limit), limit


def test_names() -> None:
    assert tp.chalf is tp.complex32
    assert tp.ones(2).chalf().dtype is tp.complex32


# ---- operators that only move bytes ----

MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "clone": lambda m, x: x.clone(),
    "transposed": lambda m, x: x.t().contiguous(),
    "expanded": lambda m, x: x[:1].expand(5, x.shape[1]).contiguous(),
    "cat": lambda m, x: m.cat([x, x.flip(1)]),
    "stack": lambda m, x: m.stack([x, x], 1),
    "flip": lambda m, x: x.flip(0, 1),
    "roll": lambda m, x: x.roll(3, 1),
    "rot90": lambda m, x: m.rot90(x),
    "repeat": lambda m, x: x.repeat(2, 1),
    "tile": lambda m, x: m.tile(x, (1, 2)),
    "repeat_interleave": lambda m, x: x.repeat_interleave(2, 0),
    "index": lambda m, x: x[m.tensor([1, 0, -1])],
    "mask": lambda m, x: x[m.tensor([True, False] * (x.shape[0] // 2))],
    "masked_select": lambda m, x: x.masked_select(m.tensor([True, False] * (x.shape[0] // 2)).reshape(-1, 1)),
    "index_select": lambda m, x: x.index_select(1, m.tensor([2, 0])),
    "gather": lambda m, x: x.gather(1, m.tensor([[0, 2]] * x.shape[0])),
    "take": lambda m, x: x.take(m.tensor([5, 0, -1])),
    "take_along_dim": lambda m, x: x.take_along_dim(m.tensor([[1], [0]] * (x.shape[0] // 2)), 1),
    "scatter": lambda m, x: x.scatter(1, m.tensor([[0, 2]] * x.shape[0]), x[:, 1:3].contiguous()),
    "index_put_": lambda m, x: x.clone().index_put_((m.tensor([0, 1]),), x[2].clone()),
    "index_copy": lambda m, x: x.index_copy(0, m.tensor([1, 0]), x[2:4]),
    "setitem": lambda m, x: assigned(x),
    "where": lambda m, x: m.where(m.tensor([[True], [False]] * (x.shape[0] // 2)), x, x.flip(1)),
    "masked_scatter": lambda m, x: x.masked_scatter(m.tensor([[True], [False]] * (x.shape[0] // 2)), x.flip(0)),
    "narrow_copy": lambda m, x: x.narrow_copy(1, 1, 2),
    "unfold": lambda m, x: x.unfold(1, 2, 1).contiguous(),
    "diagonal": lambda m, x: x.diagonal().clone(),
    "diag_embed": lambda m, x: m.diag_embed(x),
    "tril": lambda m, x: x.tril(),
    "triu": lambda m, x: x.triu(1),
    "split": lambda m, x: m.cat(x.split(2, 1), 0) if x.shape[1] % 2 == 0 else x,
    "as_strided": lambda m, x: x.as_strided((2, 3), (1, 2)).clone(),
    "block_diag": lambda m, x: m.block_diag(x, x),
    "select_scatter": lambda m, x: x.select_scatter(x[0], 0, 1),
    "slice_scatter": lambda m, x: x.slice_scatter(x[:2], 0, 2, 4),
    "pixel_shuffle": lambda m, x: m.nn.functional.pixel_shuffle(x[:4, :4].reshape(1, 4, 2, 2), 2),
    "zeros_like": lambda m, x: m.zeros_like(x),
}


NEW_ZEROS = ("diag_embed", "tril", "triu", "block_diag", "zeros_like")


def assigned(x: Any) -> Any:
    y = x.clone()
    y[1:3, ::2] = x[:2, 1::2]
    return y


@pytest.mark.parametrize("move", MOVES)
def test_bytes_are_moved(move: str, device: str) -> None:
    """Every dtype moves as the unsigned integer of its size does, payloads of NaN too."""
    for name in DTYPES[1:]:
        size = theirs(name).itemsize
        bits = np.random.default_rng(0).integers(0, 256, size=(6 * 8 * size,), dtype=np.uint8)
        if name == "float8_e8m0fnu" and move in NEW_ZEROS:
            continue  # has no zero
        x = tp.from_numpy(bits).view(ours(name)).reshape(6, 8).to(device)
        plain = tp.from_numpy(bits).view(tp.uint8).reshape(6, 8, size)
        places = tp.arange(48).reshape(6, 8)
        moved = MOVES[move](tp, places)
        if move in NEW_ZEROS:
            places = places + 1  # zero is a new element
            moved = MOVES[move](tp, places)
            expected = tp.cat([tp.zeros(1, size, dtype=tp.uint8), plain.reshape(48, size)])[moved.reshape(-1)]
        else:
            expected = plain.reshape(48, size)[moved.reshape(-1)]
        with tp.device(device):
            got = MOVES[move](tp, x)
        assert got.dtype is ours(name)
        assert np.array_equal(raw(got), expected.reshape(-1).numpy()), name


@pytest.mark.parametrize("name", (*STORED, *WIDE))
def test_files(name: str) -> None:
    """A file of either side is the other's."""
    t = numbers(name)[:24].reshape(4, 6)
    theirs_file, ours_file = io.BytesIO(), io.BytesIO()
    torch.save({"x": t, "y": t[1:, ::2]}, theirs_file)
    x = from_torch(t)
    tp.save({"x": x, "y": x[1:, ::2]}, ours_file)
    for file in (theirs_file, ours_file):
        file.seek(0)
        a = tp.load(file)
        file.seek(0)
        b = torch.load(file)
        for key in ("x", "y"):
            assert a[key].dtype is ours(name) and b[key].dtype == theirs(name)
            assert np.array_equal(raw(a[key]), raw(t if key == "x" else t[1:, ::2]))
            assert np.array_equal(raw(b[key]), raw(a[key]))


@pytest.mark.parametrize("name", (*STORED, *WIDE))
def test_exchange(name: str) -> None:
    """DLPack both ways without a copy; NumPy has what it has."""
    t = numbers(name)[:24]
    x = from_torch(t)
    there = torch.from_dlpack(x)
    assert there.dtype == theirs(name) and there.data_ptr() == x.data_ptr()
    back = tp.from_dlpack(t)
    assert back.dtype is ours(name) and back.data_ptr() == t.data_ptr() and np.array_equal(raw(back), raw(t))
    if name in WIDE:
        assert x.numpy().dtype == name and tp.from_numpy(x.numpy()).dtype is ours(name)
    else:
        with pytest.raises(TypeError, match="unsupported ScalarType"):
            x.numpy()


@pytest.mark.parametrize("name", (*STORED, *WIDE))
def test_creation_and_printing(name: str) -> None:
    for call in (
        lambda m, d: m.tensor([1, 2, 4], dtype=d),
        lambda m, d: m.full((2,), 2, dtype=d),
        lambda m, d: m.ones(2, 2, dtype=d),
        lambda m, d: m.tensor([1.0, 0.5, 3.0]).to(d).clone(),
        lambda m, d: m.empty(3, dtype=d).fill_(4),
        lambda m, d: m.empty(3, dtype=d).copy_(m.arange(1, 4)),
        lambda m, d: m.tensor(2, dtype=d),
        lambda m, d: m.tensor([1, 2, 4], dtype=d).tolist(),
        lambda m, d: m.tensor(2, dtype=d).item(),
        lambda m, d: m.tensor([[1, 2], [4, 8]], dtype=d).view(m.uint8),
        lambda m, d: m.ones(3, dtype=d) == m.ones(3, dtype=d),
        lambda m, d: m.ones(3, dtype=d) != 1,
        lambda m, d: m.ones(3, dtype=d).any(),
        lambda m, d: m.isnan(m.ones(3, dtype=d)),
    ):
        printed = [
            repr(call(m, d)).replace("tensorpy.", "torch.") for m, d in ((tp, ours(name)), (torch, theirs(name)))
        ]
        assert "".join(printed[0].split()) == "".join(printed[1].split())  # lines break by the module's name


@pytest.mark.parametrize("name", ["float16", "bfloat16", "complex32", *FLOAT8[:4]])
def test_what_is_filled_in(name: str, device: str) -> None:
    """Any number of the dtype, also where elements are moved as integers: in strided tensors and broadcast masks."""
    for value in (-0.5, float("-inf"), float("nan"), 3, *([1.5 - 2j] if name == "complex32" else [])):
        x = tp.ones(4, 6).to(ours(name)).to(device)[:, ::2]
        mask = tp.tensor([True, False, True], device=device)
        for got in (x.masked_fill(mask, value), tp.where(~mask, x, value), tp.where(mask, value, x)):
            expected = tp.tensor([value, 1, value]).to(ours(name)).expand(4, 3)
            assert got.dtype is ours(name)
            assert np.array_equal(raw(got), raw(expected)), value


# ---- arithmetic ----


def complex_pair(m: Any, seed: int) -> Any:
    parts = np.random.default_rng(seed).standard_normal((5, 4, 2)).astype(np.float16)
    return m.view_as_complex(m.from_numpy(parts))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x, y: x + y,
        lambda m, x, y: x - 2 * y,
        lambda m, x, y: x * y,
        lambda m, x, y: x * 1.5j,
        lambda m, x, y: x.abs(),
        lambda m, x, y: -x,
        lambda m, x, y: x.sgn(),
        lambda m, x, y: x.conj() + y,
        lambda m, x, y: x.real + y.imag,
        lambda m, x, y: x == y,
        lambda m, x, y: x != x.clone(),
        lambda m, x, y: x.isfinite(),
        lambda m, x, y: x.any(0),
        lambda m, x, y: x.count_nonzero(),
        lambda m, x, y: x.nonzero(),
        lambda m, x, y: m.where(x == y, x, y),
        lambda m, x, y: x.masked_fill(x == x, 2),
        lambda m, x, y: x.tril(),
        lambda m, x, y: x.index_add(0, m.tensor([0, 0]), y[:2]),
        lambda m, x, y: x.index_put((m.tensor([0, 0]),), y[0], accumulate=True),
        lambda m, x, y: x.index_fill(0, m.tensor([1]), 2),
        lambda m, x, y: m.view_as_real(x),
        lambda m, x, y: x.view(m.float16),
        lambda m, x, y: x + m.ones(4),
        lambda m, x, y: x + m.ones(4, dtype=m.float16),
        lambda m, x, y: x + m.ones(4, dtype=m.float64),
        lambda m, x, y: m.ones(4, dtype=m.float16) + 1j,
        lambda m, x, y: m.addcmul(x, x, y),
        lambda m, x, y: m.allclose(x, x),
        lambda m, x, y: m.nn.functional.pad(x, (1, 2)),
        lambda m, x, y: x.double(),
        lambda m, x, y: x.to(m.int32),
    ],
)
def test_complex32(call: Callable[[Any, Any, Any], Any]) -> None:
    """Computed in complex64 and rounded once."""
    expected = call(torch, complex_pair(torch, 0), complex_pair(torch, 1))
    got = call(tp, complex_pair(tp, 0), complex_pair(tp, 1))
    if isinstance(expected, bool):
        assert got is expected
        return
    assert str(got.dtype).rpartition(".")[2] == str(expected.dtype)[6:]
    wide = (torch.complex64, tp.complex64)
    a, b = expected.resolve_conj().resolve_neg().to(wide[0]).numpy(), got.resolve_conj().to(wide[1]).numpy()
    np.testing.assert_allclose(b, a, rtol=2e-3, atol=2e-3)


def test_complex32_has_gradients() -> None:
    x = complex_pair(tp, 0).requires_grad_()
    (x * complex_pair(tp, 1)).abs().float().sum().backward()
    assert x.grad is not None and x.grad.dtype is tp.complex32
    wide = complex_pair(tp, 0).cfloat().requires_grad_()
    (wide * complex_pair(tp, 1).cfloat()).abs().sum().backward()
    assert wide.grad is not None
    assert (x.grad.cfloat() - wide.grad).abs().max().item() < 1e-2


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_refuses_arithmetic(name: str, device: str) -> None:
    """With PyTorch's class of error, on every device: no kernel reads an 8-bit float as another dtype."""
    x = tp.ones(2, 2).to(ours(name)).to(device)
    for call in (
        lambda: x + x, lambda: x - 1, lambda: x / x, lambda: x < x, lambda: x.exp(), lambda: x.sum(), lambda: x.mean(),
        lambda: x.max(), lambda: x.prod(), lambda: x.std(), lambda: x.clone().normal_(), lambda: x.clone().random_(),
        lambda: x.scatter_add(0, tp.zeros(1, 2, dtype=tp.int64, device=device), x), lambda: x.norm(),
        lambda: x.softmax(0), lambda: x.histc(), lambda: tp.arange(3, dtype=ours(name), device=device),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="not implemented"):
            call()


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_products(name: str) -> None:
    """Elementwise products are computed in float32 and rounded, as in PyTorch."""
    x = codes(name)
    x = x[x.float().isfinite()]
    y = x[torch.arange(len(x) - 1, -1, -1)]
    expected, got = raw(x * y), raw(from_torch(x) * from_torch(y))
    at = (expected != got) & ~(is_nan(name, expected) & is_nan(name, got))
    assert not at.any()


@pytest.mark.parametrize("name", FLOAT8[:4])
def test_float8_matrices(name: str) -> None:
    """Products and sums at places are computed in float32 and rounded, as in PyTorch."""
    rng = np.random.default_rng(0)
    parts = [rng.integers(-4, 5, shape).astype("float32") for shape in ((5, 7), (7, 3), (5, 3), (7,))]
    a, b, c, v = (torch.from_numpy(x).to(theirs(name)) for x in parts)
    x, y, z, w = (from_torch(t) for t in (a, b, c, v))
    assert np.array_equal(raw(x @ y), raw(a @ b))
    assert np.array_equal(raw(tp.addmm(z, x, y)), raw(torch.addmm(c, a, b)))
    assert np.array_equal(raw(tp.nn.functional.linear(x, y.t())), raw(torch.nn.functional.linear(a, b.t())))
    places = (tp.tensor([0, 2]),), (torch.tensor([0, 2]),)
    assert np.array_equal(
        raw(z.index_put(places[0], z[1:3], accumulate=True)), raw(c.index_put(places[1], c[1:3], accumulate=True))
    )
    assert np.array_equal(raw(w.conj_physical()), raw(v.conj_physical()))


# ---- unsigned integers ----


@pytest.mark.parametrize("name", WIDE)
def test_wide_unsigned_arithmetic(name: str, device: str) -> None:
    """Modulo 2**n, as NumPy has it; PyTorch has these for some operators only, and they agree there."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, np.iinfo(name).max, 64, dtype=name, endpoint=True) for _ in range(2))
    b[:8] = np.maximum(b[:8] % 5, 1)
    x, y = tp.from_numpy(a).to(device), tp.from_numpy(b).to(device)
    for call in (
        lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p // q, lambda p, q: p % q,
        lambda p, q: p & q, lambda p, q: p | q, lambda p, q: p ^ q, lambda p, q: ~p, lambda p, q: p == q,
        lambda p, q: p < q, lambda p, q: p >= q, lambda p, q: p.max(), lambda p, q: p.min(), lambda p, q: p.argmax(),
    ):  # fmt: skip
        got = call(x, y).cpu()
        assert np.array_equal(np.asarray(got.numpy()), np.asarray(call(a, b)))
    assert np.array_equal(np.asarray(x.sort().values.cpu().numpy()), np.sort(a))


def test_only_floating_dtypes_are_parts_of_complex_ones():
    for dtype in (tp.bool, tp.uint8, tp.int64, tp.uint32, tp.float8_e5m2):
        with pytest.raises(RuntimeError, match=r"^Unknown Complex ScalarType for "):
            dtype.to_complex()
    for dtype, parts in ((tp.float64, tp.float64), (tp.bfloat16, tp.float32), (tp.complex64, tp.float32)):
        assert dtype.to_complex().to_real() is parts
