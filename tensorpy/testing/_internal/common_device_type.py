"""Tests that are written once and run for each device and for several dtypes."""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from tensorpy import _C, backends
from tensorpy._tensor.dtypes import finfo
from tensorpy.testing._internal.common_dtype import get_all_dtypes
from tensorpy.testing._internal.common_utils import TestCase
from tensorpy.testing._internal.parametrized import (
    Place,
    Variant,
    _TestParametrizer,
    bound,
    decorated,
    variants_of,
)

__all__ = [
    "CPUTestBase", "DeviceTypeTestBase", "OpDTypes", "_TestParametrizer", "deviceCountAtLeast", "disableMkldnn",
    "disablecuDNN", "dtypes", "dtypesIfCPU", "dtypesIfCUDA", "dtypesIfMPS", "dtypesIfXPU", "expectedFailure",
    "expectedFailureCPU", "expectedFailureCUDA", "expectedFailureMPS", "expectedFailureMeta", "expectedFailureXLA",
    "get_all_device_types", "get_desired_device_type_test_bases", "get_device_type_test_bases",
    "instantiate_device_type_tests", "largeTensorTest", "onlyAccelerator", "onlyCPU", "onlyCUDA", "onlyMPS",
    "onlyNativeDeviceTypes", "onlyNativeDeviceTypesAnd", "onlyOn", "onlyXPU", "ops", "precisionOverride", "skip",
    "skipCPUIf", "skipCPUIfNoFFT", "skipCPUIfNoLapack", "skipCPUIfNoMkl", "skipCUDAIf", "skipCUDAIfMiopen",
    "skipCUDAIfNoCusolver", "skipCUDAIfNoMagma", "skipCUDAIfRocm", "skipIf", "skipLazy", "skipMPS", "skipMPSIf",
    "skipMeta", "skipMetaIf", "skipXLA", "skipXPU", "skipXPUIf", "tol", "toleranceOverride", "xfail",
]  # fmt: skip

Function = Callable[..., Any]


class DeviceTypeTestBase(TestCase):
    """What the classes that `instantiate_device_type_tests` makes derive from."""

    device_type = "generic_device_type"

    @classmethod
    def get_primary_device(cls) -> str:
        """The device that tests are given."""
        return cls.device_type

    @classmethod
    def get_all_devices(cls) -> list[str]:
        """The devices of its kind."""
        return [cls.get_primary_device()]


class CPUTestBase(DeviceTypeTestBase):
    """The base of tests on the CPU."""

    device_type = "cpu"


def get_device_type_test_bases() -> list[type]:
    """The bases of tests on the devices that tests are made for."""
    return [CPUTestBase]


def get_desired_device_type_test_bases(
    except_for: Any = None,
    only_for: Any = None,
    include_lazy: bool = False,
    allow_mps: bool = False,
    allow_xpu: bool = False,
) -> list[type]:
    """Those of them that are wanted."""
    excepted, only = ((names,) if isinstance(names, str) else names for names in (except_for, only_for))
    bases = [(base, vars(base)["device_type"]) for base in get_device_type_test_bases()]
    return [base for base, kind in bases if kind not in (excepted or ()) and (only is None or kind in only)]


def get_all_device_types() -> list[str]:
    """The kinds of devices that tests are made for."""
    return ["cpu"]


# ---- which dtypes ----


class dtypes:
    """Runs a test once for each dtype, which it takes as `dtype`; of tuples it takes `dtypes`."""

    def __init__(self, *args: Any, device_type: str = "all") -> None:
        self.given = args
        self.device_type = device_type

    def __call__(self, test: Function) -> Function:
        vars(test)["_dtypes"] = {**getattr(test, "_dtypes", {}), self.device_type: self.given}
        return test


class _DtypesOn(dtypes):
    kind = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, device_type=self.kind)


class dtypesIfCPU(_DtypesOn):
    """dtypes that stand in place of those of `dtypes` on the CPU."""

    kind = "cpu"


class dtypesIfCUDA(_DtypesOn):
    """dtypes that stand in place of those of `dtypes` on "cuda"."""

    kind = "cuda"


class dtypesIfMPS(_DtypesOn):
    """dtypes that stand in place of those of `dtypes` on "mps"."""

    kind = "mps"


class dtypesIfXPU(_DtypesOn):
    """dtypes that stand in place of those of `dtypes` on "xpu"."""

    kind = "xpu"


def _dtypes_of(test: Function, device_type: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ending of the name and the arguments for each dtype."""
    known: dict[str, Any] = getattr(test, "_dtypes", {})
    listed = known.get(device_type, known.get("all"))
    if listed is None:
        yield "", {}
        return
    for one in listed:
        if isinstance(one, (tuple, list)):
            yield "_".join(str(each).rpartition(".")[2] for each in one), {"dtypes": tuple(one)}
        else:
            yield str(one).rpartition(".")[2], {"dtype": one}


# ---- how exact ----


class tol(NamedTuple):
    """An absolute and a relative tolerance."""

    atol: float
    rtol: float


class toleranceOverride:
    """The tolerances of a test's comparisons: {dtype: tol(atol, rtol)}."""

    def __init__(self, d: dict[_C.dtype, tol]) -> None:
        self.tolerances = d

    def __call__(self, test: Function) -> Function:
        vars(test)["_tolerances"] = {**getattr(test, "_tolerances", {}), **self.tolerances}
        return test


class precisionOverride(toleranceOverride):
    """The absolute tolerances of a test's comparisons: {dtype: atol}."""

    def __init__(self, d: dict[_C.dtype, float]) -> None:
        super().__init__({key: tol(atol, 0.0) for key, atol in d.items()})


def _exact(method: Function, tolerance: tol) -> Function:
    @functools.wraps(method)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        before = self.precision, self.rel_tol
        self.precision, self.rel_tol = tolerance
        try:
            return method(self, *args, **options)
        finally:
            self.precision, self.rel_tol = before

    return run


# ---- which devices ----


def _wrap(test: Function, check: Callable[[Any], str | None]) -> Function:
    """A test that is skipped where a function of the case gives a reason."""

    @functools.wraps(test)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        if (reason := check(self)) is not None:
            raise unittest.SkipTest(reason)
        return test(self, *args, **options)

    return run


class onlyOn:
    """Runs a test on one kind of devices, or on several, alone."""

    def __init__(self, device_type: str | Iterable[str]) -> None:
        self.kinds = (device_type,) if isinstance(device_type, str) else tuple(device_type)

    def __call__(self, test: Function) -> Function:
        return _wrap(test, lambda case: None if case.device_type in self.kinds else f"only on {self.kinds}")


def onlyCPU(fn: Function) -> Function:
    """Runs a test on the CPU alone."""
    return onlyOn("cpu")(fn)


def onlyCUDA(fn: Function) -> Function:
    """Runs a test on "cuda" alone."""
    return onlyOn("cuda")(fn)


def onlyMPS(fn: Function) -> Function:
    """Runs a test on "mps" alone."""
    return onlyOn("mps")(fn)


def onlyXPU(fn: Function) -> Function:
    """Runs a test on "xpu" alone."""
    return onlyOn("xpu")(fn)


def onlyAccelerator(fn: Function) -> Function:
    """Runs a test on devices that are not the CPU."""
    return _wrap(fn, lambda case: "only on accelerators" if case.device_type in ("cpu", "meta") else None)


def onlyNativeDeviceTypes(fn: Function) -> Function:
    """Runs a test on the devices of the tree alone."""
    return onlyOn(("cpu", "cuda", "opencl", "meta"))(fn)


def onlyNativeDeviceTypesAnd(devices: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Runs a test on the devices of the tree and on those that are given."""
    return onlyOn(("cpu", "cuda", "opencl", "meta", *devices))


class skipIf:
    """Skips a test on a kind of devices (None: on all) under a condition: a bool, or an attribute of the case."""

    def __init__(self, dep: Any, reason: str, device_type: str | None = None) -> None:
        self.dep, self.reason, self.device_type = dep, reason, device_type

    def __call__(self, test: Any) -> Any:
        def check(case: Any) -> str | None:
            on = self.device_type is None or self.device_type == case.device_type
            dep = getattr(case, self.dep, True) if isinstance(self.dep, str) else self.dep
            return self.reason if on and dep else None

        if isinstance(test, type):
            for key, value in list(vars(test).items()):
                if key.startswith("test") and callable(value):
                    setattr(test, key, _wrap(value, check))
            return test
        return _wrap(test, check)


def _skip_on(kind: str) -> Any:
    class skip(skipIf):
        def __init__(self, dep: Any, reason: str) -> None:
            super().__init__(dep, reason, kind)

    return skip


skipCPUIf, skipCUDAIf, skipMPSIf = _skip_on("cpu"), _skip_on("cuda"), _skip_on("mps")
skipMetaIf, skipXPUIf, skipXLAIf, skipLazyIf = (_skip_on(k) for k in ("meta", "xpu", "xla", "lazy"))


def _skipped(kind: str) -> Callable[[Any], Any]:
    return lambda test: skipIf(True, f"not on {kind}", kind)(test)


skipMeta, skipXLA, skipMPS, skipXPU = (_skipped(kind) for kind in ("meta", "xla", "mps", "xpu"))
skipLazy, skipHPU = _skipped("lazy"), _skipped("hpu")
skipCUDAIfRocm = skipCUDAIfNotRocm = skipCUDAIfNoCudnn = skipCUDAIfNoCusparseGeneric = _skipped("cuda")
skipCUDAIfMiopen = skipCUDAIfNoMiopen = skipCUDAIfNotMiopenSuggestNHWC = skipCUDAIfRocm
skipCUDAIfNoMagma = skipCUDAIfNoCusolver = skipCUDAIfRocm


def _skipped_below(version: Any = None) -> Callable[[Any], Any]:
    """A decorator that asks for a version of what belongs to CUDA, which is not here in any."""
    return skipCUDAIfRocm


skipCUDAIfVersionLessThan = skipCUDAIfRocmVersionLessThan = skipCUDAIfCudnnVersionLessThan = _skipped_below


def skipCPUIfNoLapack(fn: Any) -> Any:
    """Skips a test on the CPU where there is no LAPACK."""
    return skipIf(not getattr(_C, "has_lapack", True), "no LAPACK", "cpu")(fn)


def skipCPUIfNoFFT(fn: Any) -> Any:
    """FFTs are there always: the test itself."""
    return fn


has_cusolver = has_hipsolver = False
skipCPUIfNoMklSparse = skipCPUIfNoMkldnn = _skipped("cpu")
skipCUDAIfNoMagmaAndNoCusolver = skipCUDAIfNoMagmaAndNoLinalgsolver = _skipped("cuda")
e4m3_type, e5m2_type = _C.float8_e4m3fn, _C.float8_e5m2
E4M3_MAX_POS, E5M2_MAX_POS = finfo(e4m3_type).max, finfo(e5m2_type).max


class SkipSpec(NamedTuple):
    """An operator whose test is skipped, or expected to fail."""

    op_name: str
    variant_name: str
    device_type: str | None
    dtypes: Any
    decorator: Any


def _spec(decorator: Any) -> Callable[..., SkipSpec]:
    return lambda op, variant="", *, device_type=None, dtypes=None: SkipSpec(
        op, variant, device_type, dtypes, decorator
    )


skip, xfail = _spec(unittest.skip("Skipped!")), _spec(unittest.expectedFailure)


def skipCPUIfNoMkl(fn: Any) -> Any:
    """Skips a test on the CPU: there is no MKL."""
    return skipIf(not backends.mkl.is_available(), "no MKL", "cpu")(fn)


class expectedFailure:
    """Has a test succeed on a kind of devices when it fails, and fail when it succeeds."""

    def __init__(self, device_type: str | None) -> None:
        self.device_type = device_type

    def __call__(self, test: Function) -> Function:
        @functools.wraps(test)
        def run(self_: Any, *args: Any, **options: Any) -> Any:
            if self.device_type is not None and self_.device_type != self.device_type:
                return test(self_, *args, **options)
            try:
                test(self_, *args, **options)
            except Exception:
                return None
            self_.fail("the test was expected to fail and did not")

        return run


expectedFailureCPU, expectedFailureCUDA = expectedFailure("cpu"), expectedFailure("cuda")
expectedFailureMeta, expectedFailureXLA = expectedFailure("meta"), expectedFailure("xla")
expectedFailureXPU, expectedFailureHPU = expectedFailure("xpu"), expectedFailure("hpu")
expectedFailureMPS = expectedFailureMPSPre14 = expectedFailureMPSPre15 = expectedFailure("mps")


class deviceCountAtLeast:
    """Skips a test where there are fewer devices of the kind; the test takes the list of them."""

    def __init__(self, num_required_devices: int) -> None:
        self.count = num_required_devices

    def __call__(self, test: Function) -> Function:
        def check(case: Any) -> str | None:
            return None if len(case.get_all_devices()) >= self.count else f"fewer than {self.count} devices"

        return _wrap(test, check)


def largeTensorTest(size: str | int, device: str | None = None, **options: Any) -> Callable[[Function], Function]:
    """Skips a test that wants more memory than half of what is free: "12GB", or bytes."""
    units = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
    wanted = size if isinstance(size, int) else float(size[:-2]) * units[size[-2:].upper()]

    def check(case: Any) -> str | None:
        try:
            with open("/proc/meminfo") as file:
                free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
        except (OSError, StopIteration):
            return "free memory is not known"
        return None if wanted < free / 2 else f"wants {size} of memory"

    return lambda test: _wrap(test, check)


def disablecuDNN(fn: Function) -> Function:
    """cuDNN is not here: the test itself."""
    return fn


disableMkldnn = disablecuDNN


# ---- the classes ----


def _dtype_test_suffix(dtypes: Any) -> str:
    """The ending of a test's name for a dtype or several: "_float32"."""
    several = dtypes if isinstance(dtypes, (list, tuple)) else (dtypes,)
    return "".join(f"_{str(each).rpartition('.')[2]}" for each in several if each is not None)


def _update_param_kwargs(param_kwargs: dict[str, Any], name: str, value: Any) -> None:
    """Sets an argument of a test: by its plural where there are several values, not at all where there is none."""
    param_kwargs.pop(name, None)
    param_kwargs.pop(f"{name}s", None)
    if value is not None:
        param_kwargs[f"{name}s" if isinstance(value, (list, tuple)) else name] = value


def _endings(variant: Variant, test: Function, kind: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """The dtypes that a variant runs with: those that it brings, or those that are noted on the test."""
    if "dtype" in variant.arguments:
        return [(_dtype_test_suffix(variant.arguments["dtype"])[1:], {})]
    return _dtypes_of(test, kind)


def _called_on_device(test: Function) -> Callable[[Any, Function], Any]:
    """What calls a test's method of a case with the device, or with all of a kind, wherever the test has the argument.

    A test without one is a test of each device's class all the same; one of any arguments is given the device first.
    """
    named = inspect.signature(test).parameters
    if "device" in named:
        return lambda case, method: method(case, device=case.get_primary_device())
    if "devices" in named:
        return lambda case, method: method(case, devices=case.get_all_devices())
    if any(one.kind == one.VAR_POSITIONAL for one in named.values()):
        return lambda case, method: method(case, case.get_primary_device())
    return lambda case, method: method(case)


def _methods(key: str, test: Function, place: Place) -> Iterator[tuple[str, Function]]:
    kind = place.device.device_type
    called = _called_on_device(test)
    for variant in variants_of(test, place):
        for ending, arguments in _endings(variant, test, kind):
            name = "_".join(part for part in (key, variant.name, kind, ending) if part)
            own = {k: v for k, v in arguments.items() if k not in variant.arguments}
            whole = {**variant.arguments, **own}
            method = bound(test, decorated(test, variant._replace(arguments=whole), whole))

            def run(self: Any, method: Function = method) -> Any:
                return called(self, method)

            vars(run).update(vars(method))  # what decorators note, as unittest's do
            run.__name__, run.__doc__ = name, test.__doc__
            if (tolerance := getattr(method, "_tolerances", {}).get(whole.get("dtype"))) is not None:
                run = _exact(run, tolerance)
            yield name, run


def instantiate_device_type_tests(
    generic_test_class: type,
    scope: dict[str, Any],
    except_for: str | Iterable[str] | None = None,
    only_for: str | Iterable[str] | None = None,
    include_lazy: bool = False,
    allow_mps: bool = False,
    allow_xpu: bool = False,
) -> None:
    """Puts a class for each device into a module in place of one whose tests take a device.

    The class of `TestX` for the CPU is `TestXCPU`. Its `test_y_cpu` calls `test_y(self, "cpu")`; with `dtypes` there is
    a `test_y_cpu_float32` for each.

    Arguments:
        generic_test_class: the class
        scope: the module's globals()
        except_for: devices that it is not made for
        only_for: those that it is made for alone
        include_lazy, allow_mps, allow_xpu: devices that are not here
    """
    scope.pop(generic_test_class.__name__, None)
    for base in get_desired_device_type_test_bases(except_for, only_for):
        kind: str = vars(base)["device_type"]
        name = generic_test_class.__name__ + kind.upper()
        generic = [c for c in generic_test_class.__mro__ if c not in TestCase.__mro__]
        tests = {k: v for c in reversed(generic) for k, v in vars(c).items() if k.startswith("test") and callable(v)}
        made = type(name, (generic_test_class, base), dict.fromkeys(tests))
        for key, test in tests.items():
            for ending, method in _methods(key, test, Place(generic_test_class, base)):
                if getattr(made, ending, None) is not None:
                    raise RuntimeError(f"two tests of {name} are called {ending}")
                setattr(made, ending, method)
        made.__module__ = scope.get("__name__", made.__module__)
        scope[name] = made


class OpDTypes(Enum):
    """Which of the dtypes of an operator's description a test runs with."""

    supported = 0
    unsupported = 1
    supported_backward = 2
    unsupported_backward = 3
    any_one = 4
    none = 5
    any_common_cpu_cuda_one = 6


ANY_DTYPE_ORDER = (
    _C.float32, _C.float64, _C.complex64, _C.complex128, _C.float16, _C.bfloat16, _C.int64, _C.int32, _C.int16,
    _C.int8, _C.uint8, _C.bool,
)  # fmt: skip


class ops(_TestParametrizer):
    """Runs a test for each of a list of descriptions of operators, with the dtypes that are wanted of it.

    op_list: the descriptions: each has a name and dtypes, PyTorch's OpInfo also decorators for a test.
    dtypes: which ones (OpDTypes), or those themselves. allowed_dtypes: the only ones.
    """

    def __init__(
        self, op_list: Iterable[Any], *, dtypes: Any = OpDTypes.supported, allowed_dtypes: Any = None, **options: Any
    ) -> None:
        self.op_list, self.dtypes = list(op_list), OpDTypes.supported if dtypes is None else dtypes
        self.allowed = None if allowed_dtypes is None else set(allowed_dtypes)

    def _dtypes_for(self, op: Any, kind: str) -> Iterable[Any]:
        if not isinstance(self.dtypes, OpDTypes):
            return list(self.dtypes)
        if self.dtypes is OpDTypes.none:
            return [None]
        forward = getattr(op, "supported_dtypes", lambda _: getattr(op, "dtypes", (None,)))(kind)
        if self.dtypes in (OpDTypes.any_one, OpDTypes.any_common_cpu_cuda_one):
            return [next(each for each in (*ANY_DTYPE_ORDER, None) if each is None or each in forward)]
        backward = self.dtypes in (OpDTypes.supported_backward, OpDTypes.unsupported_backward)
        found = op.supported_backward_dtypes(kind) if backward else forward
        if self.dtypes in (OpDTypes.supported, OpDTypes.supported_backward):
            return [*found]
        return [each for each in get_all_dtypes() if each not in found]

    def _parametrize_test(self, test: Any, generic_cls: type, device_cls: Any) -> Iterator[Any]:
        kind = device_cls.device_type
        for op in self.op_list:
            decorators = getattr(op, "get_decorators", lambda *place: ())
            for each in self._dtypes_for(op, kind):
                if each is None or self.allowed is None or each in self.allowed:
                    named = functools.partial(decorators, generic_cls.__name__, test.__name__, kind, each)
                    given = {"op": op} if self.dtypes is OpDTypes.none else {"op": op, "dtype": each}
                    yield test, getattr(op, "formatted_name", op.name), given, named
