"""Ways to read a tensor's values inside a compiled function that is to run as a whole.

What the program decides by, and what leaves it, is an error with the line; what is only computed with is none. A
backend of the program's is given no graph of either."""

from __future__ import annotations

import copy
import io
import math
import operator
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy._dynamo import exc
from tensorpy.testing.harness import arguments, function_of, over
from tensorpy.testing.samples import OpInfo

Read = Callable[[tp.Tensor], Any]

# What the program goes one way or the other by.
DECIDES: dict[str, Read] = {
    "if": lambda y: 1 if y.sum() else 2,
    "not": lambda y: not y.sum(),
    "bool": lambda y: bool(y.sum()),
    "and": lambda y: y[0] and y[1],
    "while": lambda y: next(iter(lambda: bool(y.sum() > 0), False), None),
    "is_nonzero": lambda y: 1 if tp.is_nonzero(y.sum()) else 2,
    "is_nonzero as a method": lambda y: y.sum().is_nonzero(),
    "== in if": lambda y: 1 if y.sum() == 3 else 2,
    "in": lambda y: 1.0 in y,
    "in a list": lambda y: y.sum() in [1.0, 2.0],
    "max": lambda y: max(y[0], y[1]),
    "sorted": lambda y: sorted(y),
    "any": lambda y: any(y),
    "filter": lambda y: list(filter(None, y)),
    "count": lambda y: [1.0].count(y.sum()),  # type: ignore[arg-type]
    "equal": lambda y: tp.equal(y, y + 1),
    "allclose": lambda y: tp.allclose(y, y + 1),
    "_check": lambda y: tp._check(bool(y.sum() > 0)),
    "a check of values": lambda y: tp.distributions.Normal(y, y, validate_args=True),
    "assert_close": lambda y: tp.testing.assert_close(y, y + 0),
}
# Values that leave the program's tensors.
LEAVES: dict[str, Read] = {
    "tolist": lambda y: y.tolist(),
    "numpy": lambda y: y.numpy(),
    "asarray": lambda y: np.asarray(y),
    "np.array": lambda y: np.array(y),
    "data_ptr": lambda y: y.data_ptr(),
    "dlpack": lambda y: tp.utils.dlpack.to_dlpack(y),
    "bytes": lambda y: bytes(y.byte()),
    "repr": repr,
    "str": str,
    "print": lambda y: print(y, file=io.StringIO()),
    "an f-string": lambda y: f"{y}",
    "format": lambda y: "{}".format(y),  # noqa: UP032
    "%": lambda y: "%s" % y,  # noqa: UP031
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "save": lambda y: tp.save(y, io.BytesIO()),
    "sizes of a split": lambda y: y.split(y.int().tolist()),
}
# Numbers that are computed with: no break of what is followed, but of a graph.
NUMBERS: dict[str, Read] = {
    "item": lambda y: y + y.sum().item(),
    "int": lambda y: int(y.sum()),
    "float": lambda y: y * float(y.sum()),
    "complex": lambda y: complex(y.sum()),
    "index": lambda y: operator.index(y.sum().int()),
    "range": lambda y: list(range(y.sum().int())),
    "math": lambda y: math.sqrt(y.sum()),
    "a spec of an f-string": lambda y: f"{y.sum():.3f}",
    "%f": lambda y: "%f" % y.sum(),  # noqa: UP031
    "a size": lambda y: tp.zeros(int(y.sum())),
    "arange": lambda y: tp.arange(y.sum().item()),
    "tensor": lambda y: tp.tensor([y.sum(), 1.0]),
    "a slice": lambda y: y[: y.sum().int()],
    "storage": lambda y: y.untyped_storage()[0],
}
# What kernels need of their arguments is none of the program's business.
KERNELS: dict[str, Read] = {
    "nonzero": lambda y: y.nonzero(),
    "where": lambda y: tp.where(y > 0),
    "a mask": lambda y: y[y > 0] * 2,
    "a mask that is written by": lambda y: y.clone().masked_fill_(y > 0, 2.0),
    "masked_select": lambda y: y.masked_select(y > 0),
    "unique": lambda y: y.unique(),
    "bincount": lambda y: y.int().bincount(),
    "repeat_interleave": lambda y: tp.repeat_interleave(y, y.int()),
    "multinomial": lambda y: tp.multinomial(y.abs(), 1),
    "inv": lambda y: tp.linalg.inv(y.outer(y) + 5 * tp.eye(3)),
    "_assert_async": lambda y: tp._assert_async(y.sum() > 0, "positive"),
    "normal": lambda y: tp.normal(y, y.abs()),
    "iteration": lambda y: [row + 1 for row in y],
    "clip_grad_norm_": lambda y: tp.nn.utils.clip_grad_norm_([tp.nn.Parameter(y)], 1.0),
}
LINE = re.compile(r"\(.*test_compile_reads\.py:\d+\)$")


def reading(read: Read) -> Callable[[tp.Tensor], tp.Tensor]:
    def function(x: tp.Tensor) -> tp.Tensor:
        y = x + 1
        read(y)
        return y * 2

    return function


def backend(graph: Any, inputs: Any) -> Any:
    return graph.forward


@pytest.mark.parametrize("name", [*DECIDES, *LEAVES])
@pytest.mark.parametrize(
    "how", [{}, {"backend": "aot_eager"}, {"backend": backend}], ids=["follow", "one by one", "graph"]
)
def test_a_break(name: str, how: Any) -> None:
    function = reading((DECIDES | LEAVES)[name])
    x = tp.zeros(3)
    whole = tp.compile(function, fullgraph=True, **how)
    for _ in range(2):
        with pytest.raises(exc.Unsupported) as error:
            whole(x)
        assert LINE.search(str(error.value)) or name in ("deepcopy", "assert_close"), error.value
    assert tp.compile(function, **how)(x).equal(tp.full((3,), 2.0))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_computed_with(name: str) -> None:
    function = reading(NUMBERS[name])
    assert tp.compile(function, fullgraph=True)(tp.zeros(3)).equal(tp.full((3,), 2.0))
    with pytest.raises(exc.Unsupported, match="item"):
        tp.compile(function, fullgraph=True, backend=backend)(tp.zeros(3))


@pytest.mark.parametrize("name", KERNELS)
def test_what_a_kernel_needs_is_no_break(name: str) -> None:
    for how in ({}, {"backend": "aot_eager"}, {"backend": backend}):
        whole = tp.compile(reading(KERNELS[name]), fullgraph=True, **how)
        for _ in range(2):
            assert whole(tp.zeros(3)).equal(tp.full((3,), 2.0))


def test_an_error_that_the_program_takes() -> None:
    """The function does not run as a whole, whatever becomes of the error."""

    def takes(x: tp.Tensor) -> tp.Tensor:
        try:
            return x * 2 if (x + 1).sum() > 0 else x
        except Exception:
            return x * 3

    whole = tp.compile(takes, fullgraph=True)
    for _ in range(2):
        with pytest.raises(
            exc.Unsupported, match=rf"decides what the program does \(.*:{takes.__code__.co_firstlineno + 2}"
        ):
            whole(tp.ones(3))
    assert tp.compile(takes)(tp.ones(3)).equal(tp.full((3,), 2.0))
    assert tp.compile(lambda x: x + 1, fullgraph=True)(tp.ones(3)).equal(tp.full((3,), 2.0))


def test_what_is_printed_is_in_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    """A graph has no values: text that is made of them would be that of the first call."""

    def says(x: tp.Tensor) -> tuple[tp.Tensor, str]:
        y = x + 1
        print(y)
        return y, f"{y}"

    for how in ({}, {"backend": backend}):
        compiled = tp.compile(says, **how)
        for value in (1.0, 2.0):
            assert compiled(tp.full((1,), value))[1] == capsys.readouterr().out.strip() == f"tensor([{value + 1:.0f}.])"


@over(lambda info: bool(info.tags & {"dynamic_output_shape", "data_dependent_output"}) or info.name == "is_nonzero")
def test_operators_that_need_values(info: OpInfo) -> None:
    """By what they give: a bool is a decision, a number or a tensor none."""
    decides = str(info.op.schema.returns[0].type) == "bool" if info.op.schema.returns else False
    function = function_of(info)
    for sample in info.samples(info.main_dtype, 2):
        args, kwargs = arguments(sample, "cpu", info)
        if not args or not isinstance(args[0], tp.Tensor) or not args[0].numel():
            continue

        def program(first: tp.Tensor, rest: Any = args[1:], kwargs: Any = kwargs) -> Any:
            return function(first.clone(), *rest, **kwargs)

        whole = tp.compile(program, fullgraph=True)
        if decides:
            with pytest.raises(exc.Unsupported, match="a value decides what the program does"):
                whole(args[0])
        else:
            assert str(whole(args[0])) == str(program(args[0]))


def test_the_line_of_a_program_that_runs_as_pytorchs(tmp_path: Path) -> None:
    """The library's modules have PyTorch's names there, and are not the program."""
    program = tmp_path / "checks.py"
    program.write_text(
        "import torch\n"
        "def checks(x):\n"
        "    return torch.distributions.Normal(x + 1, x + 1).mean\n"
        "try:\n"
        "    torch.compile(checks, fullgraph=True)(torch.ones(3))\n"
        "except torch._dynamo.exc.Unsupported as error:\n"
        "    print(error)\n"
    )
    run = [sys.executable, "-m", "tensorpy.run", str(program)]
    done = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "TORCH_LOGS": "+dynamo,graph_breaks"})
    assert done.stdout.strip().endswith("checks.py:3)"), done.stdout + done.stderr
