"""The table of operators on a device: every check of tensorpy.testing, which a backend outside the tree runs too.

These are the schema, alias and Meta checks that the tag `pt2_compliant_tag` stands for: here they hold for every
operator, tagged or not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from devices import declared, dtypes_of

import tensorpy as tp
from tensorpy.testing.device import REFUSING, Device, DeviceTests
from tensorpy.testing.device_checks import Run
from tensorpy.testing.harness import arguments, call, check_same, fresh, function_of, over, seed
from tensorpy.testing.samples import TABLE, OpInfo


class TestTable(DeviceTests):
    @classmethod
    def declared(cls, config: pytest.Config) -> Device:
        return declared(config.getoption("--device"), config.getoption("--dtypes"))

    def test_device(self, device_check: Run, request: pytest.FixtureRequest) -> None:
        """Of all the dtypes that there are, whichever the operators are asked for in this run."""
        name = request.config.getoption("--device")
        device_check(name, dtypes_of(name))


@contextlib.contextmanager
def may_refuse(info: OpInfo, device: str) -> Iterator[None]:
    """Skips the test where the device refuses what it declares to refuse."""
    try:
        yield
    except REFUSING as error:
        refusal = declared(device).refusal(info, "", info.main_dtype, str(error))
        if refusal is None:
            raise
        pytest.skip(refusal.reason)


# ---- methods ----


def method_of(info: OpInfo) -> str:
    return str(info.op.schema.name).partition(".")[0]


@over(lambda info: info.op.function.is_method and info.op.function.is_function)
def test_method(info: OpInfo, device: str) -> None:
    function, method = function_of(info), getattr(tp.Tensor, method_of(info))
    at = [a.name for a in info.op.schema.arguments].index("self")  # polygamma and where name another one first
    for sample in info.samples(info.main_dtype, 3):
        args, kwargs = arguments(sample, device, info)
        with may_refuse(info, device):
            expected = call(function, fresh(info, args), kwargs)
        if info.random:
            seed(kwargs)
        args = fresh(info, args)
        owner = args.pop(at)
        if not isinstance(owner, tp.Tensor):
            owner = tp.tensor(owner)  # a number stands in front
        got = call(method, [owner, *args], kwargs) if callable(method) else [getattr(owner, method_of(info))]
        for a, b in zip(got, expected, strict=True):
            check_same(info, a, b, f"{info.name}{sample}, as a method")


# ---- Meta ----


def knows_its_shape(kwargs: dict[str, Any], args: list[Any]) -> bool:
    """one_hot with a number of classes, repeat_interleave with an output_size, index without masks."""
    return bool(kwargs.get("output_size")) or any(isinstance(a, (int, list)) for a in args[1:])


@over()
def test_meta(info: OpInfo) -> None:
    function = function_of(info)
    for dtype in info.some_dtypes:
        for sample in info.some(dtype):
            args, kwargs = arguments(sample, "cpu", info)
            meta_args, meta_kwargs = arguments(sample, "meta", info)
            what = f"{info.name}{sample} on meta"
            if info.needs_values or info.tags & {"dynamic_output_shape", "data_dependent_output"}:
                try:
                    function(*meta_args, **meta_kwargs)
                except (RuntimeError, NotImplementedError):
                    continue
                assert knows_its_shape(kwargs, args), f"{what}: not refused"
            if not any(str(r.type).startswith("Tensor") for r in info.op.schema.returns):
                assert function(*meta_args, **meta_kwargs) == function(*args, **kwargs), what
                continue
            for m, c in zip(call(function, meta_args, meta_kwargs), call(function, args, kwargs), strict=True):
                assert m.device.type == "meta", what
                assert (m.shape, m.dtype, m.stride()) == (c.shape, c.dtype, c.stride()), (
                    f"{what}: {m.shape} {m.dtype} {m.stride()}, cpu: {c.shape} {c.dtype} {c.stride()}"
                )


# ---- what is kept between calls ----


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Kernels are built on OpenCL devices, so nothing is asked of others."""
    if "built" in metafunc.fixturenames:
        there = metafunc.config.getoption("--device").startswith("opencl")
        infos = [TABLE[name] for name in sorted(TABLE)] if there else []
        metafunc.parametrize("built", infos, ids=[info.name for info in infos])


def test_second_call_builds_nothing_on_opencl(built: OpInfo, device: str) -> None:
    """Neither a kernel nor a launch plan. The first call may still meet what the arguments are made of."""
    info, function = built, function_of(built)
    tp._C._opencl.await_builds()  # of kernels that compiled functions of other tests asked for: they count, too
    for sample in info.samples(info.main_dtype, 3):
        args, kwargs = arguments(sample, device, info)
        for _ in range(2):
            before = tp.opencl.cache_info()
            with may_refuse(info, device):
                call(function, fresh(info, args), kwargs)
        after = tp.opencl.cache_info()
        assert after["plan_misses"] == before["plan_misses"], f"{info.name}{sample} looks new in a second call"
        assert after["kernel_misses"] == before["kernel_misses"], f"{info.name}{sample} builds in a second call"
