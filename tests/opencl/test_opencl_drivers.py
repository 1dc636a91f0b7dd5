"""What drivers were seen to get wrong, on whichever driver a run is for: `make test DEVICE=opencl DRIVER=rusticl`.

Each test stands for a construct that a driver's compiler does not survive, or gives wrong numbers for; docs/opencl.md
has the drivers and what was seen.
"""

from __future__ import annotations

import numpy as np
import pytest
from opencl_programs import needs_device, output_of, run

import tensorpy as tp

BYTES = (tp.int8, tp.uint8)


def both(x: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    return x, x.to("opencl")


@needs_device
@pytest.mark.parametrize("draw", ["rand", "randn"])
def test_arguments_without_padding(draw: str) -> None:
    """A struct that is passed by value has the same size to all drivers."""
    drawn = []
    for device in ("cpu", "opencl"):
        tp.manual_seed(3)
        drawn.append(getattr(tp, draw)(1000, device=device).cpu())
    tp.testing.assert_close(drawn[1], drawn[0], rtol=1e-6, atol=1e-6)


@needs_device
@pytest.mark.parametrize("ndim", [2, 3, 4, 5])
def test_arguments_without_arrays_of_arrays(ndim: int) -> None:
    """The geometry of a walk over dimensions that do not merge."""
    x, y = both(tp.arange(3**ndim).reshape([3] * ndim).permute(list(range(ndim))[::-1]))
    assert (y + y.contiguous()).tolist() == (x + x.contiguous()).tolist()


@needs_device
@pytest.mark.parametrize("lines", [1, 2, 3, 7, 33])
def test_groups_that_do_not_fill_a_vector(lines: int) -> None:
    """A loop that ends by an element of memory, in fewer work-items than a vector has elements."""
    x, y = both(tp.tensor(np.random.default_rng(lines).standard_normal((lines, 37), np.float32)))
    for k in (1, 2, 20, 37):
        assert [t.tolist() for t in y.kthvalue(k, 1)] == [t.tolist() for t in x.kthvalue(k, 1)]
    assert y.median(1).values.tolist() == x.median(1).values.tolist()


@needs_device
@pytest.mark.parametrize("dtype", BYTES, ids=["int8", "uint8"])
def test_bytes(dtype: tp.dtype) -> None:
    """Shifts by a count that is chosen, keys with the sign turned, and structs that begin with one."""
    x, y = both(tp.tensor([100, 7, 3, 7, 101, 0, 1, 127], dtype=dtype))
    count, there = both(tp.tensor([1, 2, 0, 9, 7, 8, 1, 3], dtype=dtype))
    assert (y >> there).tolist() == (x >> count).tolist()
    assert (y - 50).relu().tolist() == (x - 50).relu().tolist()
    assert y.sort().values.tolist() == x.sort().values.tolist()
    assert y.kthvalue(3).values.item() == x.kthvalue(3).values.item()
    for name in ("cummax", "cummin"):
        assert [t.tolist() for t in getattr(y, name)(0)] == [t.tolist() for t in getattr(x, name)(0)]
    assert y.max(0).indices.item() == x.max(0).indices.item()


@needs_device
def test_functions_that_a_cpu_compiler_alone_has() -> None:
    """A driver that goes through an intermediate language is given none, or its translator ends the process."""
    x, y = both(tp.linspace(-3, 3, 35).reshape(5, 7))
    for name in ("softmax", "log_softmax"):
        tp.testing.assert_close(getattr(y, name)(1).cpu(), getattr(x, name)(1), rtol=1e-5, atol=1e-6)


@needs_device
def test_a_logarithm_of_what_a_float_cannot_hold() -> None:
    x, y = both(tp.tensor([-0.5, -4.9, -5.1, -10.0, -13.5, -14.5, -19.0, -29.0, -31.0, -100.0]))
    tp.testing.assert_close(tp.special.log_ndtr(y).cpu(), tp.special.log_ndtr(x), rtol=1e-5, atol=1e-6)


@needs_device
def test_a_phase_that_a_float_cannot_hold() -> None:
    """Airy's function oscillates ever faster to the left; the error is held against the height of the waves there."""
    x = -tp.cat([tp.linspace(0, 100, 2001), tp.logspace(2, 7, 200)])
    wave = (tp.special.airy_ai(x.to("opencl")).cpu() - tp.special.airy_ai(x)) * x.abs().clamp(1).pow(0.25)
    assert wave[x > -1e5].abs().max() < 2e-6
    assert wave.abs().max() < 1e-4
    assert not tp.special.airy_ai(tp.tensor([-1e26, -3e38], device="opencl")).isnan().any()


LONG = """
    import tensorpy as tp
    print(tp.ones(3, device="opencl").tolist())
"""


@needs_device
def test_a_device_that_ends_loops_early_is_refused() -> None:
    """Unless TENSORPY_OPENCL_DEVICE names it; other devices are tried and taken, or not doubted at all."""
    done = run(LONG, TENSORPY_OPENCL_DEVICE="")
    properties = tp.opencl.get_device_properties()
    if "llvmpipe" in properties.name:
        assert done.returncode != 0 and "llvmpipe" in done.stderr
        assert "ends the loops of a kernel before their end" in done.stderr and "TENSORPY_OPENCL_DEVICE" in done.stderr
    else:
        assert done.stdout.strip() == "[1.0, 1.0, 1.0]", done.stderr
    assert output_of(LONG, TENSORPY_OPENCL_DEVICE=properties.name.split()[0]) == "[1.0, 1.0, 1.0]"


@needs_device
def test_kernels_of_a_program_are_built_at_once() -> None:
    """Also without a cache: sorting has several kernels in one program."""
    program = """
        import tensorpy as tp
        x = tp.tensor([3, 1, 2, 1], device="opencl")
        x.sort(), x.mode()
        info = tp.opencl.cache_info()
        print(info["kernel_misses"] > info["built"] + info["from_disk"] > 0, info["from_disk"])
    """
    assert output_of(program, TENSORPY_OPENCL_CACHE="") == "True 0"
