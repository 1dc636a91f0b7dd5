"""Calls every operator that has a kernel for a layout with a tensor whose parts were written after it was made.

`python fuzz_parts.py JOURNAL [PART/PARTS] [--layout=NAME] [NAME...]` takes the samples of the table, makes some of
their tensors tensors of a layout, as far as the operator takes those, and writes wild numbers into one of the parts:
indices, where lines begin, offsets, lengths, shapes, scales, zero points, and integers of fewer bits than a byte has.
Each call, and the gradient of what it gives, returns or raises one of EXPECTED; a crash or a hang ends the program, and
JOURNAL says what was running.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import mmap
import pickle
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from fuzz_operators import EXPECTED, Ended, Watchdog, at_most, start

import tensorpy as tp
from tensorpy import _C
from tensorpy.masked import MaskedTensor
from tensorpy.testing.harness import arguments, function_of, to_tensor
from tensorpy.testing.samples import TABLE, OpInfo
from tensorpy.testing.samples.table import Array, OpSample

SAMPLES = 1  # of one operator and layout, those that it takes
TRIED = 6  # of one operator
WRITINGS = 4  # into one part
WHOLE = [0, 1, -1, 2, 3, 127, 10**4, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**62), 2**63 - 1, -(2**63)]
NUMBERS = [0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3e38]

Make = Callable[[tp.Tensor], tp.Tensor]


def blocks(layout: str) -> Make:
    def make(t: tp.Tensor) -> tp.Tensor:
        size = [2 if n % 2 == 0 else 1 for n in t.shape[-2:]]
        return t.to_sparse(layout=getattr(tp, layout), blocksize=size)

    return make


def disordered(t: tp.Tensor) -> tp.Tensor:
    made = t.to_sparse()
    indices, values = tp.cat([made.indices(), made.indices()[:, :2]], 1), tp.cat([made.values(), made.values()[:2]])
    return tp.sparse_coo_tensor(indices, values, t.shape)


def floats(t: tp.Tensor) -> tp.Tensor:
    return t.to(tp.float32)


def channels(dtype: tp.dtype, in_floats: bool) -> Make:
    def make(t: tp.Tensor) -> tp.Tensor:
        n = t.shape[0]
        at = tp.full((n,), 1.5) if in_floats else tp.ones(n, dtype=tp.int64)
        return tp.quantize_per_channel(floats(t), tp.full((n,), 0.125), at, 0, dtype)

    return make


def pieces(layout: tp.layout) -> Make:
    return lambda t: tp.nested.nested_tensor([p.clone() for p in t.unbind()] + [t[0][:1].clone()], layout=layout)


def narrowed(t: tp.Tensor) -> tp.Tensor:
    n, longest = t.shape[:2]
    return tp.nested.narrow(t, 1, tp.zeros(n, dtype=tp.int64), tp.full((n,), max(longest - 1, 1)), layout=tp.jagged)


def masked(layout: str) -> Make:
    def make(t: tp.Tensor) -> tp.Tensor:
        data, mask = LAYOUTS[layout](t), LAYOUTS[layout](tp.ones_like(t, dtype=tp.bool))
        return tp.masked.masked_tensor(data, mask)

    return make


def masked_strided(t: tp.Tensor) -> tp.Tensor:
    return tp.masked.masked_tensor(t, t > 0)


def transposed(t: tp.Tensor) -> tp.Tensor:
    return pieces(tp.jagged)(t).transpose(1, 2)


# Not among them: tensors that are quantized as a whole, whose bytes are all integers and whose scale is a number.
LAYOUTS: dict[str, Make] = {
    "coo": lambda t: t.to_sparse(),
    "coo in disorder": disordered,
    "coo hybrid": lambda t: t.to_sparse(1),
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "bsr": blocks("sparse_bsr"),
    "bsc": blocks("sparse_bsc"),
    "channels": channels(tp.qint8, False),
    "channels in floats": channels(tp.quint8, True),
    "4 bits": channels(tp.quint4x2, True),
    "nested": pieces(tp.strided),
    "jagged": pieces(tp.jagged),
    "jagged with lengths": narrowed,
    "jagged transposed": transposed,
    "masked": masked_strided,
    "masked coo": masked("coo"),
    "masked csr": masked("csr"),
}


def in_bytes(part: tp.Tensor) -> tp.Tensor:
    return part.view(tp.uint8) if part.dtype == tp.bool else part


def parts_of(t: tp.Tensor) -> dict[int, tp.Tensor]:
    """The memory of the parts by number; of some nested tensors one is left out. Those of a mask are four more."""
    if isinstance(t, MaskedTensor):
        pair = [parts_of(one) or {0: in_bytes(one.detach())} for one in (t._masked_data, t._masked_mask)]
        return {4 * i + number: part for i, parts in enumerate(pair) for number, part in parts.items()}
    found = {}
    for number in range(4):
        with contextlib.suppress(RuntimeError, IndexError):
            found[number] = in_bytes(_C._layout_part(t.detach(), number).detach())
    return found


def is_wild(part: tp.Tensor, number: int, layout: str) -> bool:
    """Whether a part says how others are read, and is not read itself."""
    if number == 0 and layout in ("channels", "channels in floats"):
        return False  # any byte is an integer
    if layout == "masked":
        return number == 4  # bytes of a mask that are no bools
    values = {"masked": 1, "coo": 1, "csr": 2, "csc": 2, "bsr": 2, "bsc": 2, "nested": 0, "jagged": 0}.get(
        layout.split()[0]
    )
    return number != values and part.numel() > 0


def writings(part: tp.Tensor, draw: random.Random) -> Iterator[np.ndarray[Any, Any]]:
    """Numbers out of any range, all of one kind or some among good ones, and the good ones in another order."""
    good = np.asarray(part.tolist()).reshape(tuple(part.shape))
    dtype = str(part.dtype).rpartition(".")[2]
    if part.dtype.is_floating_point:
        numbers: list[Any] = NUMBERS
    else:
        limits = np.iinfo(dtype)
        high = int(good.max())
        numbers = [n for n in (*WHOLE, high + 1, high - 1, -high) if limits.min <= n <= limits.max]
    good = good.astype(dtype)
    yield good.reshape(-1)[::-1].reshape(good.shape).copy()
    for kind in range(WRITINGS - 1):
        if kind % 3 == 0:
            yield np.full_like(good, draw.choice(numbers))
        elif kind % 3 == 1:
            some = good.copy()
            some.reshape(-1)[draw.randrange(good.size)] = draw.choice(numbers)
            yield some
        else:
            yield np.array([draw.choice(numbers) for _ in range(good.size)], dtype).reshape(good.shape)


def write(t: tp.Tensor, number: int, numbers: np.ndarray[Any, Any]) -> None:
    parts_of(t)[number].numpy()[...] = numbers


def results(found: Any) -> Iterator[tp.Tensor]:
    for r in found if isinstance(found, (list, tuple)) else [found]:
        if isinstance(r, tp.Tensor):
            yield r


def backward(found: Any) -> None:
    for r in results(found):
        if r.requires_grad:
            r.backward(tp.ones_like(r.detach()), retain_graph=True)


def looks(found: Any) -> None:
    """What a program does with a tensor: its elements, its text, a file of it."""
    for r in results(found):
        for look in (repr, lambda r: r.tolist(), lambda r: r.to_dense(), lambda r: r.clone(), pickle.dumps):
            with contextlib.suppress(*EXPECTED):
                look(r)


class Call:
    """An operator's sample, some of whose tensors are made tensors of a layout."""

    def __init__(self, info: OpInfo, sample: OpSample, layout: str, chosen: str, inplace: bool) -> None:
        self.info, self.sample, self.layout, self.chosen, self.inplace = info, sample, layout, chosen, inplace
        self.function = function_of(info, inplace)

    def made(self) -> tuple[list[Any], dict[str, Any], list[tp.Tensor]]:
        of_layout: list[tp.Tensor] = []
        count = 0

        def one(a: Array, place: str) -> tp.Tensor:
            nonlocal count
            count += 1
            t = to_tensor(a, place)
            wants_grad = t.dtype.is_floating_point and not self.inplace
            if not t.ndim or not t.numel() or (self.chosen == "first" and count > 1):
                return t.requires_grad_(wants_grad)
            t = LAYOUTS[self.layout](t)
            of_layout.append(t)
            return t.detach().requires_grad_(wants_grad) if not t.is_quantized else t

        args, kwargs = arguments(self.sample, "cpu", self.info, one)
        return args, kwargs, of_layout

    def is_taken(self) -> bool:
        try:
            args, kwargs, of_layout = self.made()
            if not of_layout or (self.chosen == "all" and len(of_layout) == 1):
                return False
            with at_most():
                self.function(*args, **kwargs)
        except (*EXPECTED, Ended):
            return False
        return True

    def wild(self, draw: random.Random) -> Iterator[tuple[str, Callable[[], None]]]:
        _, _, first = self.made()
        for which, t in enumerate(first):
            for number, part in parts_of(t).items():
                if not is_wild(part, number, self.layout):
                    continue
                for numbers in writings(part, draw):
                    for late in (False, True):
                        if late and draw.random() < 0.5:
                            continue
                        when = "after the call" if late else "before it"
                        place = f"{self.layout} of {self.chosen}{', in place' * self.inplace}"
                        what = f"{place}, part {number} {numbers.tolist()} {when}"
                        yield what, functools.partial(self.run, which, number, numbers, late)

    def run(self, which: int, number: int, numbers: np.ndarray[Any, Any], late: bool) -> None:
        args, kwargs, of_layout = self.made()
        if not late:
            write(of_layout[which], number, numbers)
        found = self.function(*args, **kwargs)
        if late:
            write(of_layout[which], number, numbers)
        looks(found)
        backward(found)


def taken(info: OpInfo, layout: str) -> Iterator[Call]:
    inplace = (False, True) if info.variant("inplace") else (False,)
    for chosen, in_place in itertools.product(("first", "all"), inplace):
        count = 0
        for sample in info.samples(info.main_dtype, TRIED):
            call = Call(info, sample, layout, chosen, in_place)
            if call.is_taken():
                yield call
                count += 1
                if count == SAMPLES:
                    break


def run(journal: mmap.mmap, names: list[str], words: list[str]) -> list[str]:
    layouts = [w.partition("=")[2] for w in words if w.startswith("--layout=")] or list(LAYOUTS)
    failures: list[str] = []
    verbose = len(names) == 1
    for name in names:
        info = TABLE[name]
        draw = random.Random(zlib.crc32(name.encode()))
        with Watchdog() as watchdog:
            for layout in layouts:
                journal[:] = f"{name}: {layout}".encode().ljust(256, b"\0")
                for call in taken(info, layout):
                    for what, one in call.wild(draw):
                        journal[:] = f"{name}: {what} of {call.sample}".encode()[:250].ljust(256, b"\0")
                        if verbose:
                            print(what, call.sample, flush=True)
                        try:
                            with at_most():
                                one()
                        except (*EXPECTED, Ended):
                            pass
                        except BaseException as error:
                            failures.append(f"{name}: {what} of {call.sample}: {type(error).__name__}: {error}")
                        watchdog.tell()
    return failures


if __name__ == "__main__":
    sys.exit(start(run, sorted(TABLE)))
