"""A TestCase that compares tensors, and what libraries' tests import beside it: switches, decorators, files."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import io
import os
import platform
import random
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor, as_tensor, tensor
from tensorpy._package.settings import (
    are_deterministic_algorithms_enabled,
    is_deterministic_algorithms_warn_only_enabled,
    use_deterministic_algorithms,
)
from tensorpy.autograd.gradcheck import gradcheck, gradgradcheck
from tensorpy.random import manual_seed
from tensorpy.storage import TypedStorage
from tensorpy.testing import make_tensor
from tensorpy.testing._comparison import (
    BooleanPair,
    NonePair,
    NumberPair,
    TensorLikePair,
    _numpys,
    default_tolerances,
    not_close_error_metas,
)
from tensorpy.testing._internal.helpers import (
    LazyVal,
    ProfilingMode,
    SwapTensorsGuard,
    TrackedInput,
    TrackedInputIter,
    clear_tracked_input,
    compare_equal_outs_and_grads,
    enable_profiling_mode,
    enable_profiling_mode_for_profiling_tests,
    extract_test_fn,
    find_library_location,
    first_sample,
    get_tensors_from,
    get_tracked_input,
    make_fullrank_matrices_with_distinct_singular_values,
    mock_wrapper,
    outs_and_grads,
    random_well_conditioned_matrix,
    retry_on_connect_failures,
    set_warn_always_context,
    skip_but_pass_in_sandcastle,
    skip_but_pass_in_sandcastle_if,
    skipIfNoCuteDSL,
    skipIfNoTritonDSL,
    to_gpu,
    wrapSwapTensorsTest,
)
from tensorpy.testing._internal.parametrized import (
    Variant,
    _TestParametrizer,
    decorateIf,
    instantiate_parametrized_tests,
    parametrize,
    reparametrize,
    subtest,
)
from tensorpy.testing._utils import freeze_rng_state

__all__ = [
    "DeterministicGuard", "LazyVal", "ProfilingMode", "SwapTensorsGuard", "TemporaryDirectoryName",
    "TemporaryFileName", "TestCase", "TrackedInput", "TrackedInputIter", "_TestParametrizer", "bytes_to_scalar",
    "clear_tracked_input", "compare_equal_outs_and_grads", "decorateIf", "dtype_name", "enable_profiling_mode",
    "enable_profiling_mode_for_profiling_tests", "extract_test_fn", "find_free_port", "find_library_location",
    "first_sample", "freeze_rng_state", "get_tensors_from", "get_tracked_input", "gradcheck", "gradgradcheck",
    "instantiate_parametrized_tests", "is_iterable", "is_iterable_of_tensors", "iter_indices", "load_tests",
    "make_fullrank_matrices_with_distinct_singular_values", "make_tensor", "markDynamoStrictTest", "mock_wrapper",
    "noncontiguous_like", "numpy_to_torch_dtype", "numpy_to_torch_dtype_dict", "outs_and_grads", "parametrize",
    "raise_on_run_directly", "random_well_conditioned_matrix", "reparametrize", "retry_on_connect_failures",
    "run_tests", "set_default_dtype", "set_warn_always_context", "skipIfCrossRef", "skipIfNoCuteDSL",
    "skipIfNoLapack", "skipIfNoSciPy", "skipIfNoTritonDSL", "skipIfRocm", "skipIfTorchDynamo",
    "skipIfTorchInductor", "skip_but_pass_in_sandcastle", "skip_but_pass_in_sandcastle_if", "slowTest", "subtest",
    "suppress_warnings", "swap", "to_gpu", "torch_to_numpy_dtype_dict", "unMarkDynamoStrictTest",
    "wrapDeterministicFlagAPITest", "wrapSwapTensorsTest", "xfailIfTorchDynamo",
]  # fmt: skip

Function = Callable[..., Any]

# ---- what there is ----

IS_WINDOWS, IS_LINUX, IS_MACOS = (sys.platform == name for name in ("win32", "linux", "darwin"))
IS_X86 = platform.machine() in ("x86_64", "AMD64", "i386")
IS_ARM64 = platform.machine() in ("arm64", "aarch64")
IS_PPC, IS_S390X = platform.machine() == "ppc64le", platform.machine() == "s390x"
IS_FBCODE = IS_SANDCASTLE = IS_JETSON = IS_REMOTE_GPU = IN_RE_WORKER = False
IS_CI = bool(os.getenv("CI"))
IS_FILESYSTEM_UTF8_ENCODING = sys.getfilesystemencoding() == "utf-8"

TEST_WITH_ROCM = TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_UBSAN = TEST_WITH_CROSSREF = TEST_WITH_MTIA = False
TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = TEST_WITH_AOT_EAGER = TEST_CUDA_MEM_LEAK_CHECK = False
TEST_CUDA = TEST_MULTIGPU = TEST_CUDNN = TEST_MPS = TEST_XPU = TEST_HPU = TEST_PRIVATEUSE1 = TEST_ACCELERATOR = False
TEST_MKL = TEST_ONEDNN = TEST_SKIP_FAST = TEST_SKIP_CUDAGRAPH = TEST_CUDA_GRAPH = TEST_MULTIACCELERATOR = False
TEST_WITH_SLOW = os.getenv("PYTORCH_TEST_WITH_SLOW", "0") == "1"
TEST_WITH_SLOW_GRADCHECK = os.getenv("PYTORCH_TEST_WITH_SLOW_GRADCHECK", "0") == "1"
NO_MULTIPROCESSING_SPAWN = False
GRADCHECK_NONDET_TOL = 0.0
SEED = 1234
TEST_BAILOUTS = USE_PYTEST = PRINT_REPRO_ON_FAILURE = TEST_WITH_MIOPEN_SUGGEST_NHWC = TEST_WITH_DEV_DBG_ASAN = False
GRAPH_EXECUTOR, OPINFO_SAMPLE_INPUT_INDEX, FILE_SCHEMA, MACOS_VERSION = ProfilingMode.LEGACY, None, "file://", -1.0
dtype2prec_DONTUSE = {_C.float32: 1e-5, _C.float64: 1e-5, _C.float16: 1e-2, _C.bfloat16: 1e-1}
NATIVE_DEVICES = ("cpu", "cuda", "xpu", "meta", "mps", "mtia")


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


TEST_NUMPY, TEST_SCIPY, TEST_NUMBA = (_is_installed(name) for name in ("numpy", "scipy", "numba"))
TEST_DILL, TEST_LIBROSA, TEST_OPT_EINSUM = (_is_installed(name) for name in ("dill", "librosa", "opt_einsum"))
TEST_WITH_TV = _is_installed("torchvision")

_NAMES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


def _dtypes_of_numpy() -> dict[Any, _C.dtype]:
    import numpy

    return {numpy.bool_ if name == "bool" else getattr(numpy, name): getattr(_C, name) for name in _NAMES}


numpy_to_torch_dtype_dict: dict[Any, _C.dtype] = _dtypes_of_numpy() if TEST_NUMPY else {}
torch_to_numpy_dtype_dict: dict[_C.dtype, Any] = {ours: theirs for theirs, ours in numpy_to_torch_dtype_dict.items()}


def numpy_to_torch_dtype(np_dtype: Any) -> _C.dtype:
    """The dtype that a dtype of NumPy's is."""
    import numpy

    return numpy_to_torch_dtype_dict[numpy.dtype(np_dtype).type]


# ---- decorators ----


def _itself(fn: Any) -> Any:
    """A mark that means nothing here."""
    return fn


def _marks(*args: Any, **options: Any) -> Any:
    """A mark that means nothing here, with arguments or without."""
    return args[0] if len(args) == 1 and callable(args[0]) and not options else _itself


skipIfTorchDynamo = skipIfTorchInductor = xfailIfTorchDynamo = markDynamoStrictTest = unMarkDynamoStrictTest = _marks
skipIfCrossRef = skipIfRocm = skipIfXpu = skipIfMPS = skipIfHpu = skipIfRocmArch = skipIfRocmVersionLessThan = _marks
skipIfLegacyJitExecutor = skipRocmIfTorchInductor = runWithoutCompiledAutograd = serialTest = _marks
skipCUDAMemoryLeakCheckIf = skipCUDANonDefaultStreamIf = xfailIfS390X = xfailIfACL = skipIfNNModuleInlined = _marks
skipIfFreeThreaded = skipIfSlowGradcheckEnv = setBlasBackendsToDefaultFinally = skipIfWindowsXPU = _marks
setLinalgBackendsToDefaultFinally = setSdpaBackendsToDefaultFinally = _marks

skipIfNoSciPy = unittest.skipIf(not TEST_SCIPY, "needs scipy")
skipIfNoDill = unittest.skipIf(not TEST_DILL, "needs dill")
skipIfCompiledWithoutNumpy = unittest.skipIf(not TEST_NUMPY, "needs numpy")
skipIfNoLapack = unittest.skipIf(not getattr(_C, "has_lapack", True), "needs LAPACK")
skipIfWindows = unittest.skipIf(IS_WINDOWS, "not on Windows")
skipIfNoXNNPACK = unittest.skip("XNNPACK is not here")
runOnRocm = requires_cuda = requires_cuda_p2p_access = skipIfNotMiopenSuggestNHWC = unittest.skip("CUDA is not here")
requires_mkl = requires_onednn = unittest.skip("MKL is not here")


def slowTest(fn: Function) -> Function:
    """Runs a test only where PYTORCH_TEST_WITH_SLOW is 1."""
    return unittest.skipUnless(TEST_WITH_SLOW, "a slow test: PYTORCH_TEST_WITH_SLOW=1 runs it")(fn)


def slowTestIf(condition: bool) -> Callable[[Function], Function]:
    """`slowTest` under a condition."""
    return slowTest if condition else _itself


def xfailIf(condition: bool) -> Callable[[Function], Function]:
    """Has a test be expected to fail under a condition."""
    return unittest.expectedFailure if condition else _itself


def suppress_warnings(fn: Function) -> Function:
    """Runs a test without its warnings."""

    @functools.wraps(fn)
    def run(*args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **options)

    return run


def skip_exception_type(exc_type: type[BaseException]) -> Any:
    """A context that skips the test where an exception of a class comes."""

    @contextmanager
    def context() -> Iterator[None]:
        try:
            yield
        except exc_type as error:
            raise unittest.SkipTest(f"not here: {error}") from error

    return context()


# ---- contexts ----


@contextmanager
def set_default_dtype(dtype: _C.dtype) -> Iterator[None]:
    """A context with another default dtype."""
    before = _C.get_default_dtype()
    _C.set_default_dtype(dtype)
    try:
        yield
    finally:
        _C.set_default_dtype(before)


class DeterministicGuard:
    """A context in which deterministic algorithms are asked for, or not."""

    def __init__(self, deterministic: bool, *, warn_only: bool = False, fill_uninitialized_memory: bool = True) -> None:
        self.wanted = deterministic, warn_only

    def __enter__(self) -> None:
        self.before = are_deterministic_algorithms_enabled(), is_deterministic_algorithms_warn_only_enabled()
        use_deterministic_algorithms(self.wanted[0], warn_only=self.wanted[1])

    def __exit__(self, *error: object) -> None:
        use_deterministic_algorithms(self.before[0], warn_only=self.before[1])


def wrapDeterministicFlagAPITest(fn: Function) -> Function:
    """A test after which the switch of deterministic algorithms is as it was before."""

    @functools.wraps(fn)
    def run(*args: Any, **options: Any) -> Any:
        with DeterministicGuard(are_deterministic_algorithms_enabled()):
            return fn(*args, **options)

    return run


class swap(parametrize):
    """Runs a test with parameters swapped on conversion, and without: the values that are given."""

    def __init__(self, swap_values: Iterable[bool]) -> None:
        super().__init__("", ())
        self.given = list(swap_values)

    def _variants(self, test: Any, place: Any) -> Iterator[Variant]:
        for value in self.given:
            yield Variant(f"swap_{value}", {}, (wrapSwapTensorsTest(value),))


@contextmanager
def TemporaryFileName(*args: Any, **options: Any) -> Iterator[str]:
    """A context with the name of an empty file that is gone after it."""
    file = tempfile.NamedTemporaryFile(*args, **{**options, "delete": False})
    file.close()
    try:
        yield file.name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.name)


@contextmanager
def TemporaryDirectoryName(suffix: str | None = None) -> Iterator[str]:
    """A context with the name of an empty folder that is gone after it."""
    with tempfile.TemporaryDirectory(suffix=suffix) as name:
        yield name


@contextmanager
def set_cwd(path: str) -> Iterator[None]:
    """A context in another folder."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def disable_gc() -> Iterator[None]:
    """A context without the garbage collector."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


# ---- values ----


def dtype_name(dtype: _C.dtype) -> str:
    """The name of a dtype without the package's."""
    return str(dtype).rpartition(".")[2]


def is_iterable(obj: Any) -> bool:
    """Whether `iter` takes an object."""
    try:
        iter(obj)
    except TypeError:
        return False
    return True


def is_iterable_of_tensors(iterable: Any, include_empty: bool = False) -> bool:
    """Whether an object holds tensors alone."""
    if isinstance(iterable, Tensor) or not is_iterable(iterable):
        return False
    items = list(iterable)
    return all(isinstance(item, Tensor) for item in items) and (bool(items) or include_empty)


def iter_indices(tensor: Tensor) -> Iterable[Any]:
    """The indices of a tensor's elements."""
    return range(tensor.size(0)) if tensor.dim() == 1 else product(*(range(n) for n in tensor.size()))


def noncontiguous_like(t: Tensor) -> Tensor:
    """A tensor with the values of another one, whose elements do not lie side by side."""
    if not t.is_contiguous():
        return t
    wide = t.new_empty((*t.shape, 2)).fill_(t.new_tensor(0).item())
    made = wide.select(-1, 0)
    made.copy_(t.detach())
    return made.requires_grad_(t.requires_grad)


def bytes_to_scalar(byte_list: list[int], dtype: _C.dtype, device: Any) -> Tensor:
    """A tensor of one element: the number of a dtype that bytes stand for, the lowest first."""
    bytes_ = _C.tensor([int(each) for each in byte_list], dtype=_C.uint8, device=device)
    return bytes_.ne(0).any() if dtype is _C.bool else bytes_.view(dtype).view(())


class BytesIOContext(io.BytesIO):
    """Bytes in memory that a block which ends leaves open."""

    def __exit__(self, *error: object) -> None: ...


def _of_rank(*shape: int, dtype: Any = None, device: Any = None) -> Tensor:
    return _C.randn(*shape, dtype=dtype, device=device)


def random_symmetric_matrix(n: int, *batch: int, dtype: Any = None, device: Any = None) -> Tensor:
    """Random matrices that are equal to their transpose."""
    a = _of_rank(*batch, n, n, dtype=dtype, device=device)
    return (a + a.mT).div_(2)


def random_hermitian_matrix(n: int, *batch: int, dtype: Any = None, device: Any = None) -> Tensor:
    """Random matrices that are equal to the conjugate of their transpose."""
    a = _of_rank(*batch, n, n, dtype=dtype, device=device)
    return (a + a.mH).div_(2)


def random_symmetric_pd_matrix(n: int, *batch: int, dtype: Any = None, device: Any = None) -> Tensor:
    """Random symmetric matrices whose eigenvalues are positive."""
    a = _of_rank(*batch, n, n, dtype=dtype, device=device)
    return a @ a.mT + _C.eye(n, dtype=dtype, device=device) * 1e-5


def random_hermitian_pd_matrix(n: int, *batch: int, dtype: Any = None, device: Any = None) -> Tensor:
    """Random Hermitian matrices whose eigenvalues are positive."""
    a = _of_rank(*batch, n, n, dtype=dtype, device=device)
    return a @ a.mH + _C.eye(n, dtype=dtype, device=device)


def find_free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])


def set_rng_seed(seed: int | None = None) -> None:
    """Seeds the generators of the package, of Python and of NumPy."""
    seed = SEED if seed is None else seed
    manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


# ---- the case ----


class TensorOrArrayPair(TensorLikePair):
    """Two tensors of whatever classes."""

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...], allow_subclasses: bool) -> Any:
        self._check_inputs_isinstance(actual, expected, cls=Tensor)
        self._check_supported(actual, id=id)
        self._check_supported(expected, id=id)
        return actual, expected


class TestCase(unittest.TestCase):
    """assertEqual of tensors, and of containers of them, is assert_close; of other things unittest's.

    precision, rel_tol: tolerances that comparisons have at least. exact_dtype: whether dtypes have to be equal.
    """

    precision: float = 0.0
    rel_tol: float = 0.0
    exact_dtype = True
    maxDiff = None

    def setUp(self) -> None:
        """Seeds the generators."""
        set_rng_seed()

    def assertEqual(
        self,
        first: Any,
        second: Any,
        msg: Any = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        **options: Any,
    ) -> None:
        """first and second are equal; tensors and numbers as far as rounding goes."""
        x, y = first, second
        each = {"atol": atol, "rtol": rtol, **options}
        if isinstance(x, dict) and isinstance(y, dict):
            super().assertEqual(x.keys(), y.keys(), msg)
            for key in x:
                self.assertEqual(x[key], y[key], msg, **each)
        elif _is_sequence(x) and _is_sequence(y):
            super().assertEqual(len(x), len(y), msg)
            for a, b in zip(x, y, strict=True):
                self.assertEqual(a, b, msg, **each)
        elif isinstance(x, TypedStorage) and isinstance(y, TypedStorage):
            rows = [tensor(v._untyped_storage).view(v.dtype) for v in (x, y)]
            self.assertEqual(rows[0], rows[1], msg, **each)
        elif any(isinstance(v, (Tensor, float, complex)) or _is_array(v) for v in (x, y)):
            if isinstance(x, str) or isinstance(y, str) or x is None or y is None:
                self.fail(self._formatMessage(msg, f"{x!r} != {y!r}"))
            self._compare(x, y, msg, atol, rtol, options)
        elif (atol is not None or rtol is not None) and isinstance(x, int) and isinstance(y, int):
            bound = (atol or 0.0) + (rtol or 0.0) * abs(y)
            self.assertLessEqual(abs(x - y), bound, msg)
        else:
            super().assertEqual(x, y, msg)

    def _compare(self, x: Any, y: Any, msg: Any, atol: float | None, rtol: float | None, options: Any) -> None:
        numbers = _as_numbers(x, y)
        exact = numbers is None and all(isinstance(v, Tensor) or _is_array(v) for v in (x, y))
        exact = exact and options.get("exact_dtype", self.exact_dtype)
        layouts = {getattr(v, "layout", _C.strided) for v in (x, y)}
        known = {
            "equal_nan": options.get("equal_nan", True),
            "check_device": options.get("exact_device", False),
            "check_dtype": exact,
            "check_stride": options.get("exact_stride", False),
            "check_layout": options.get("exact_layout", False),
        }
        if len(layouts) > 1 and not known["check_layout"]:
            x, y = (v.to_dense() if isinstance(v, Tensor) and v.layout != _C.strided else v for v in (x, y))
        x, y = (x, y) if numbers is None else numbers
        x, y = (as_tensor(v) if _is_array(v) else v for v in (x, y))
        x, y = (v if not isinstance(o, Tensor) or isinstance(v, Tensor) else as_tensor(v, dtype=o.dtype)
                for v, o in ((x, y), (y, x)))  # fmt: skip
        for a, b in ((x, y), (y, x)):  # a tensor of one element may stand for a number
            if isinstance(a, Tensor) and isinstance(b, Tensor) and a.ndim == 0 and b.numel() == 1 and not exact:
                x, y = (v.reshape(()) for v in (x, y))
                break
        if (atol is None) != (rtol is None):
            atol, rtol = atol or 0.0, rtol or 0.0
        if numbers is not None and atol is None and any(isinstance(v, (float, complex)) for v in numbers):
            rtol, atol = default_tolerances(_C.float32)
        if self.precision or self.rel_tol:
            if atol is None or rtol is None:
                rtol, atol = default_tolerances(*(v if isinstance(v, Tensor) else as_tensor(v) for v in (x, y)))
            atol, rtol = max(atol or 0.0, self.precision), max(rtol or 0.0, self.rel_tol)
        text: Any = msg if msg is None or callable(msg) else lambda own: f"{own}\n{msg}"
        pairs = (NonePair, BooleanPair, NumberPair, TensorOrArrayPair, TensorLikePair)
        for wrong in not_close_error_metas(x, y, pair_types=pairs, atol=atol, rtol=rtol, **known):
            raise wrong.to_error(text)

    def assertNotEqual(
        self,
        first: Any,
        second: Any,
        msg: Any = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        **options: Any,
    ) -> None:
        """first and second are not what assertEqual takes for equal."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(first, second, msg, atol=atol, rtol=rtol, **options)

    def assertEqualIgnoreType(self, *args: Any, **options: Any) -> None:
        """assertEqual without the dtypes."""
        self.assertEqual(*args, exact_dtype=False, **options)

    def assertEqualBroadcasting(self, x: Tensor, y: Any, *args: Any, **options: Any) -> None:
        """Each element of x is equal to y."""
        if not isinstance(y, Tensor):
            y = as_tensor(y, dtype=x.dtype, device=x.device)
        self.assertEqual(x, y.expand_as(x), *args, **options)

    def assertEqualTypeString(self, x: Tensor, y: Tensor) -> None:
        """x and y are of one device, dtype and type."""
        self.assertEqual((x.device, x.dtype, x.is_sparse), (y.device, y.dtype, y.is_sparse))

    def assertObjectIn(self, obj: Any, iterable: Iterable[Any]) -> None:
        """An object itself is among others."""
        if not any(each is obj for each in iterable):
            self.fail("the object is not among those that were given")

    def assertNotWarn(self, callable: Function, msg: str = "") -> None:
        """A call warns of nothing."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            callable()
        self.assertTrue(len(seen) == 0, msg)

    @contextmanager
    def assertWarnsOnceRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        """A block warns once, and so that the pattern is found in it."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
        self.assertTrue(len(seen) > 0, "no warning")
        self.assertTrue(any(issubclass(w.category, category) for w in seen))
        self.assertTrue(any(re.search(regex, str(w.message)) for w in seen), [str(w.message) for w in seen])

    def assertGreaterAlmostEqual(
        self, first: Any, second: Any, places: int | None = None, msg: Any = None, delta: Any = None
    ) -> None:
        """first is greater than second, or almost equal to it."""
        if not first > second:
            self.assertAlmostEqual(first, second, places, msg, delta)

    def assertExpectedInline(self, actual: Any, expect: str, skip: int = 0, **options: Any) -> None:
        """What is printed of a value is the test's text; without comments or empty lines if options say so."""
        actual = str(actual)
        lines = actual.splitlines()
        if options.get("ignore_comments"):
            lines = [line for line in lines if not line.lstrip().startswith("#")]
        if options.get("ignore_empty_lines"):
            lines = [line for line in lines if line.strip()]
        text = "\n".join(lines) if options else actual
        self.assertMultiLineEqual(expect, text)

    def assertExpectedRaisesInline(
        self, exc_type: type[BaseException], callable: Function, expect: str, *args: Any, **options: Any
    ) -> None:
        """A call raises, and the message is the one that is written in the test."""
        with self.assertRaises(exc_type) as caught:
            callable(*args, **options)
        self.assertExpectedInline(str(caught.exception), expect)

    def check_nondeterministic_alert(self, fn: Function, caller_name: str, should_alert: bool = True) -> None:
        """What runs in no fixed order says so where deterministic algorithms are asked for."""
        with DeterministicGuard(True):
            if should_alert:
                with self.assertRaisesRegex(RuntimeError, f"{caller_name} does not have a deterministic"):
                    fn()
            else:
                fn()

    def compare_with_numpy(
        self,
        torch_fn: Function,
        np_fn: Function,
        tensor_like: Any,
        device: Any = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        """A function gives of a tensor what one of NumPy's gives of the array."""
        import numpy

        if isinstance(tensor_like, Tensor):
            ours = tensor_like
            theirs = ours.detach().float().numpy() if ours.dtype == _C.bfloat16 else ours.detach().numpy()
        else:
            ours = _C.tensor(tensor_like, device=device, dtype=dtype)
            theirs = numpy.array(tensor_like, dtype=torch_to_numpy_dtype_dict.get(dtype, dtype))
        got, wanted = torch_fn(ours), np_fn(theirs)
        if isinstance(wanted, numpy.ndarray):
            wanted = _C.from_numpy(numpy.ascontiguousarray(wanted))
        self.assertEqual(got, wanted, **{"exact_dtype": False, **options})

    def safeToDense(self, t: Tensor) -> Tensor:
        """A sparse tensor's dense form; a dense one itself."""
        return t if t.layout == _C.strided else t.to_dense()

    @staticmethod
    def run_process_no_exception(code: str, env: Any = None) -> tuple[bytes, bytes]:
        """What a program prints to stdout and stderr. AssertionError if it fails."""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout, done.stderr


def _as_numbers(x: Any, y: Any) -> tuple[Any, Any] | None:
    """Two numbers, or a number and what holds one element, as Python's numbers; None: what is given is otherwise."""
    numbers = (int, float, complex, *_numpys("number"))
    if not any(isinstance(v, numbers) for v in (x, y)):
        return None
    held = [v.item() if _holds_one(v) else v for v in (x, y)]
    return (held[0], held[1]) if all(isinstance(v, numbers) for v in held) else None


def _holds_one(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.layout == _C.strided and value.numel() == 1
    return _is_array(value) and value.size == 1


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def xfail_inherited_tests(tests: Iterable[str]) -> Callable[[type], type]:
    """Expects tests of a class that it has from its bases to fail."""

    def decorate(cls: type) -> type:
        for name in tests:
            inherited = getattr(cls, name)
            method = functools.wraps(inherited)(lambda self, inherited=inherited, **options: inherited(self, **options))
            setattr(cls, name, unittest.expectedFailure(method))
        return cls

    return decorate


class NoTest:
    """In place of a TestCase whose tests cannot run."""


def load_tests(loader: Any, tests: Any, pattern: Any) -> Any:
    """The tests as unittest found them."""
    return tests


def raise_on_run_directly(file_to_call: str) -> None:
    """RuntimeError: the file's tests are run by another one."""
    raise RuntimeError(f"this file has no tests of its own to run: run {file_to_call}")


def run_tests(argv: list[str] | None = None) -> None:
    """unittest.main of the program."""
    unittest.main(argv=argv)
