"""Loads changed files of a tensor of each layout, and calls the operators of the layout with what is loaded.

`python fuzz_files.py JOURNAL [PART/PARTS] [--seed=N] [--files=N] [LAYOUT...]` saves a tensor of a layout, and changes
the numbers of its records, the numbers of its program, or the program's opcodes. `load` gives data or an error; a
tensor that comes of it is looked at, and given to each operator that takes the good one alone or twice. Programs whose
opcodes are changed are loaded with weights_only=True, which allows no calls but of its own list; the others with both.
JOURNAL says what was running when a crash or a hang ended the program.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import pickle
import pickletools
import random
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_operators import EXPECTED, Ended, Watchdog, at_most, start
from fuzz_parts import LAYOUTS, NUMBERS, WHOLE, looks

import tensorpy as tp
from tensorpy.serialization.archive import Reader
from tensorpy.testing.harness import function_of
from tensorpy.testing.samples import TABLE

sys.path.insert(0, str(Path(__file__).parents[1] / "files"))
from unpickled import archive, mutations, number

FILES = 25  # of one layout
CALLED = 12  # operators of one tensor that was loaded, drawn

File = tuple[bytes, dict[str, bytes]]
Function = Callable[..., Any]


def masked(t: tp.Tensor) -> tp.Tensor:
    return tp.masked.masked_tensor(t, t > 2)


MADE: dict[str, Callable[[tp.Tensor], Any]] = {
    **LAYOUTS,
    "quantized": lambda t: tp.quantize_per_tensor(t, 0.25, 3, tp.quint8),
    "4 bits as a whole": lambda t: tp.quantize_per_tensor(t, 0.25, 3, tp.quint4x2),
    "masked": masked,
    "masked sparse": lambda t: tp.masked.masked_tensor(t.to_sparse(), (t != 0).to_sparse()),
}


def good(layout: str) -> Any:
    base = tp.arange(-2.0, 14.0).reshape(4, 4)
    return MADE[layout](base if layout != "jagged transposed" else base.reshape(2, 4, 2))


def file_of(value: Any) -> File:
    file = io.BytesIO()
    tp.save(value, file)
    file.seek(0)
    reader = Reader(file)
    return reader.read("data.pkl"), {name: reader.read(name) for name in reader.places if name != "data.pkl"}


# ---- changes ----


def other_record(data: bytes, draw: random.Random) -> bytes:
    """Wild numbers in some places; or fewer bytes, or more."""
    kind = draw.randrange(8)
    if kind == 0:
        return data[: draw.randrange(len(data) + 1)]
    if kind == 1:
        return data + bytes(draw.randrange(1, 20))
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        size = draw.choice((1, 4, 8, 8))
        if len(data) < size:
            continue
        at = draw.randrange(len(data) // size) * size
        if size == 4:
            wild = struct.pack("<f", np.float32(draw.choice(NUMBERS)))
        else:
            wild = (draw.choice(WHOLE) & (1 << 8 * size) - 1).to_bytes(size, "little")
        changed[at : at + size] = wild
    return bytes(changed)


def other_numbers(program: bytes, draw: random.Random) -> bytes:
    """Some of the program's integers are others; nothing else."""
    places = [(op.name, place) for op, _, place in pickletools.genops(program)]
    ends = [place for _, place in places[1:]] + [len(program)]
    integers = [i for i, (name, _) in enumerate(places) if name in ("BININT", "BININT1", "BININT2", "LONG1")]
    drawn = set(draw.sample(integers, min(len(integers), draw.choice((1, 1, 2, 4)))))
    return b"".join(
        number(draw.choice((*WHOLE, 4, 5, 16))) if i in drawn else program[place : ends[i]]
        for i, (_, place) in enumerate(places)
    )


def changed(file: File, draw: random.Random) -> Iterator[tuple[str, File, bool]]:
    """What was done, the file, and whether its program calls nothing that a good one does not."""
    program, records = file
    wild = mutations(program, draw)
    names = sorted(name for name in records if name.startswith("data/"))
    while True:
        kind = draw.randrange(3)
        if kind == 0 and names:
            name = draw.choice(names)
            yield f"record {name}", (program, records | {name: other_record(records[name], draw)}), True
        elif kind == 1:
            yield "numbers", (other_numbers(program, draw), records), True
        else:
            yield "opcodes", (next(wild), records), False


# ---- calls ----


def takes(function: Function, *given: Any) -> bool:
    try:
        with at_most():
            function(*given)
    except (*EXPECTED, Ended):
        return False
    return True


def operators(layout: str, tell: Callable[[], None]) -> list[tuple[str, Function, int]]:
    """Those that take a good tensor alone, or two of it."""
    found = []
    for name, info in sorted(TABLE.items()):
        for inplace in (False, True) if info.variant("inplace") else (False,):
            function = function_of(info, inplace)
            for times in (1, 2):
                if takes(function, *[good(layout) for _ in range(times)]):
                    found.append((f"{name}{'_' * inplace}", function, times))
                tell()
    return found


def tensors(found: Any) -> Iterator[tp.Tensor]:
    if isinstance(found, tp.Tensor):
        yield found
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from tensors(one)


def call(function: Function, t: tp.Tensor, times: int) -> None:
    with contextlib.suppress(*EXPECTED, Ended), at_most():
        looks(function(*[t] * times))


def run(journal: mmap.mmap, names: list[str], words: list[str]) -> list[str]:
    said = {w.partition("=")[0]: w.partition("=")[2] for w in words}
    files, seed = int(said.get("--files", FILES)), int(said.get("--seed", 0))
    failures: list[str] = []
    for layout in names:
        draw = random.Random(zlib.crc32(layout.encode()) + seed)
        journal[:] = layout.encode().ljust(256, b"\0")
        with Watchdog() as watchdog:
            known, sources, loaded = operators(layout, watchdog.tell), changed(file_of(good(layout)), draw), 0
            for i in range(files):
                what, file, harmless = next(sources)
                for weights_only in (True, False) if harmless else (True,):
                    told = f"{layout}: file {i} of seed {seed}, {what}, weights_only={weights_only}"
                    journal[:] = told.encode()[:250].ljust(256, b"\0")
                    try:
                        with at_most():
                            found = tp.load(archive(*file), weights_only=weights_only)
                    except (*EXPECTED, pickle.UnpicklingError, EOFError, Ended):
                        continue
                    except BaseException as error:
                        failures.append(f"{told}: {type(error).__name__}: {error}")
                        continue
                    for t in tensors(found):
                        loaded += 1
                        looks(t)
                        for name, function, times in draw.sample(known, min(len(known), CALLED)):
                            journal[:] = f"{told}, {name} of {times}".encode()[:250].ljust(256, b"\0")
                            try:
                                call(function, t, times)
                            except BaseException as error:
                                failures.append(f"{told}, {name}: {type(error).__name__}: {error}")
                            watchdog.tell()
            if not loaded or not known:
                failures.append(
                    f"{layout}: {len(known)} operators, and {loaded} tensors of the files: the test is in vain"
                )
    return failures


if __name__ == "__main__":
    sys.exit(start(run, sorted(MADE)))
