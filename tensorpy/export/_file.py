"""Files of exported programs: a zip of records that a reader takes as data.

`program.json` says what the graph is; `tensors.pt` has the parameters, buffers, constants and example inputs, as `save`
writes tensors; `extra/` has what a caller adds. Nothing in a file is run, imported or looked for in modules: operators
are found in the dispatcher's table, functions in a table of those that a recorder writes, containers among those that
the process has registered. What does not fit is refused before there is a program.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from typing import IO, Any

import tensorpy
from tensorpy.export._read import made_of
from tensorpy.export._written import described
from tensorpy.export.exported_program import ExportedProgram
from tensorpy.serialization.archive import Reader, Writer, is_archive
from tensorpy.utils._pytree import tree_flatten


@contextlib.contextmanager
def _opened(f: Any, mode: str) -> Iterator[IO[bytes]]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, mode) as file:
            yield file
    else:
        yield f


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Writes a program to a file, which load() reads.

    Arguments:
        ep: the program
        f: a path, or a file to write to
        extra_files: texts or bytes that are kept with it, by name
        opset_version: is taken
        pickle_protocol: is taken

    Raises: TypeError for what is no program, or where it calls or holds what files cannot.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> tp.export.save(tp.export.export(nn.ReLU(), (tp.ones(2),)), file, extra_files={"note": "v1"})
        >>> file.seek(0)
        0
        >>> tp.export.load(file).module()(tp.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    t = ep._traced
    text = json.dumps(described(ep))
    tensors = io.BytesIO()
    example = tree_flatten(t.example_inputs)[0]
    tensorpy.save({"state": dict(t.state), "constants": t.constants, "example": example}, tensors)
    with _opened(f, "wb") as file, Writer(file, "program") as writer:
        writer.record("program.json", text.encode())
        writer.record("tensors.pt", tensors.getbuffer())
        for name, data in (extra_files or {}).items():
            writer.record(f"extra/{name}", data.encode() if isinstance(data, str) else data)
        writer.record(".data/serialization_id", writer.serialization_id())


def load(
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """The program of a file that save() wrote.

    A file is data: nothing in it is run or imported, and operators are those that the process has.

    Arguments:
        f: a path, or a file to read from, which can be sought in
        extra_files: a dict whose values become the texts that were kept under its keys
        expected_opset_version: is taken

    Returns: an ExportedProgram.

    Raises: RuntimeError for files that are damaged, or name what there is not.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> tp.export.save(tp.export.export(nn.ReLU(), (tp.ones(2),)), file, extra_files={"note": "v1"})
        >>> extra = {"note": ""}
        >>> program = tp.export.load(file, extra_files=extra)
        >>> extra["note"]
        'v1'
    """
    with _opened(f, "rb") as file:
        file.seek(0)
        if not is_archive(file):
            raise RuntimeError("load(): the file is no zip file, so no exported program")
        reader = Reader(file)
        try:
            said = json.loads(reader.read("program.json").decode())
            tensors = tensorpy.load(io.BytesIO(reader.read("tensors.pt")), weights_only=True)
            made = made_of(said, tensors)
        except Exception as why:
            raise RuntimeError(f"load(): the file is no exported program that can be loaded: {why}") from why
        if extra_files is not None:
            extra_files.update({name: reader.read(f"extra/{name}").decode() for name in extra_files})
    return made
