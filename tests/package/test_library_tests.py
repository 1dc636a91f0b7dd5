"""testing._internal: what libraries' own tests import, run as unittest runs it."""

from __future__ import annotations

import functools
import os
import unittest
from collections import deque
from typing import Any

import numpy as np
import pytest

import tensorpy as tp
from tensorpy import __future__ as future
from tensorpy.testing._internal import common_device_type as on_devices
from tensorpy.testing._internal import common_dtype
from tensorpy.testing._internal import common_utils as common


def results(case: type) -> dict[str, bool | str]:
    """What becomes of each test of a class: whether it succeeds, or why it is skipped."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    done = unittest.TestResult()
    suite.run(done)
    bad = {test._testMethodName for test, _ in done.failures + done.errors}  # type: ignore[attr-defined]
    skipped = {test._testMethodName: why for test, why in done.skipped}  # type: ignore[attr-defined]
    names = unittest.defaultTestLoader.getTestCaseNames(case)
    return {name: skipped.get(name, name not in bad) for name in names}


def test_parametrized_tests_are_a_method_for_each_value() -> None:
    seen: list[Any] = []

    @common.instantiate_parametrized_tests
    class Case(common.TestCase):
        @common.parametrize("x", [1, 2.5, "a"])
        @common.parametrize("y,z", [(tp.float32, max), common.subtest((3, 4), name="named")])
        def test_both(self, x: Any, y: Any, z: Any) -> None:
            seen.append((x, y, z))

        @common.parametrize("x", [common.subtest(1, decorators=[unittest.skip("not this one")]), 2])
        def test_decorated(self, x: int) -> None:
            assert x == 2

        @common.decorateIf(unittest.expectedFailure, lambda arguments: arguments["x"] == 1)
        @common.parametrize("x", [1, 2], name_fn=lambda x: f"is_{x}")
        def test_under_a_condition(self, x: int) -> None:
            assert x == 2

        def test_plain(self) -> None: ...

    got = results(Case)
    assert all(value is True for name, value in got.items() if name != "test_decorated_x_1") and len(got) == 11
    assert got["test_decorated_x_1"] == "not this one" and len(seen) == 6
    assert {"test_plain", "test_under_a_condition_is_1", "test_both_x_2_5_float32_z0"} <= got.keys()
    assert "test_both_x_a_named" in got and not hasattr(Case, "test_both")


def test_two_decorators_do_not_give_one_argument() -> None:
    class Case(common.TestCase):
        @common.parametrize("x", [1])
        @common.parametrize("x", [2])
        def test_it(self, x: int) -> None: ...

    with pytest.raises(RuntimeError, match="two decorators give x"):
        common.instantiate_parametrized_tests(Case)


def test_tests_of_devices_are_a_class_for_the_cpu() -> None:
    seen: list[Any] = []
    scope: dict[str, Any] = {"__name__": __name__}

    class TestIt(common.TestCase):
        def setUp(self) -> None:
            super().setUp()
            self.begun = True

        @on_devices.dtypes(tp.float32, tp.int64)
        @on_devices.dtypesIfCUDA(tp.float64)
        @common.parametrize("n", [1, 2])
        def test_dtypes(self, device: str, dtype: tp.dtype, n: int) -> None:
            seen.append((device, dtype, n, self.begun))

        @on_devices.dtypes((tp.float32, tp.int64))
        def test_pairs(self, device: str, dtypes: Any) -> None:
            assert dtypes == (tp.float32, tp.int64)

        @on_devices.dtypes(tp.float32, tp.float64)
        @on_devices.toleranceOverride({tp.float32: on_devices.tol(atol=1e-1, rtol=0.0)})
        def test_tolerance(self, device: str, dtype: tp.dtype) -> None:
            x = tp.ones(2, dtype=dtype)
            (self.assertEqual if dtype == tp.float32 else self.assertNotEqual)(x, x + 0.05)

        @on_devices.onlyCUDA
        def test_elsewhere(self, device: str) -> None: ...

        @on_devices.onlyNativeDeviceTypes
        @on_devices.skipMeta
        @on_devices.skipCUDAIf(True, "no")
        def test_here(self, device: str) -> None: ...

        @on_devices.skipCPUIf(True, "not here")
        def test_skipped(self, device: str) -> None: ...

        @on_devices.expectedFailureCPU
        def test_expected(self, device: str) -> None:
            raise ValueError

        @on_devices.expectedFailureCPU
        def test_unexpected(self, device: str) -> None: ...

        @on_devices.largeTensorTest("1000TB")
        def test_large(self, device: str) -> None: ...

    scope["TestIt"] = TestIt
    on_devices.instantiate_device_type_tests(TestIt, scope, only_for="cpu")
    assert scope.keys() == {"__name__", "TestItCPU"}
    got = results(scope["TestItCPU"])
    names = ["test_dtypes_n_1_cpu_float32", "test_dtypes_n_2_cpu_int64", "test_pairs_cpu_float32_int64"]
    names += ["test_tolerance_cpu_float32", "test_tolerance_cpu_float64", "test_here_cpu", "test_expected_cpu"]
    assert [got[name] for name in names] == [True] * 7
    assert [got[f"test_{name}_cpu"] for name in ("elsewhere", "skipped")] == ["only on ('cuda',)", "not here"]
    assert "memory" in str(got["test_large_cpu"]) and got["test_unexpected_cpu"] is False and len(got) == 13
    assert ("cpu", tp.int64, 2, True) in seen and len(seen) == 4


def test_a_test_without_an_argument_for_its_device_is_one_of_each_device_all_the_same() -> None:
    class OfDevices(common.TestCase):
        def test_none(self) -> None:
            pass

        @on_devices.dtypes(tp.float32)
        def test_dtype(self, dtype: Any) -> None:
            assert dtype is tp.float32

        @on_devices.onlyCPU
        def test_device(self, device: str) -> None:
            assert device == "cpu"

    scope: dict[str, Any] = {}
    on_devices.instantiate_device_type_tests(OfDevices, scope, only_for="cpu")
    assert results(scope["OfDevicesCPU"]) == {
        "test_none_cpu": True,
        "test_dtype_cpu_float32": True,
        "test_device_cpu": True,
    }


def test_the_device_is_given_wherever_a_test_has_the_argument() -> None:
    class with_layouts(on_devices._TestParametrizer):
        def _parametrize_test(self, test: Any, generic_cls: type, device_cls: Any) -> Any:
            @functools.wraps(test)
            def called(self: Any, layout: str, device: str, size: int) -> Any:
                return test(self, layout, device, size, [layout])

            yield called, "strided", {"layout": "strided"}, lambda _: []

    class OfDevices(common.TestCase):
        @with_layouts()
        @common.parametrize("size", [1, 2])
        def test_behind(self, layout: str, device: str, size: int, samples: list[str]) -> None:
            assert (layout, device, samples) == ("strided", "cpu", ["strided"]) and size in (1, 2)

        @on_devices.deviceCountAtLeast(1)
        def test_all(self, devices: list[str]) -> None:
            assert devices == ["cpu"]

        def test_any(self, *arguments: Any) -> None:
            assert arguments == ("cpu",)

    scope: dict[str, Any] = {}
    on_devices.instantiate_device_type_tests(OfDevices, scope, only_for="cpu")
    names = ["test_behind_strided_size_1_cpu", "test_behind_strided_size_2_cpu", "test_all_cpu", "test_any_cpu"]
    assert results(scope["OfDevicesCPU"]) == dict.fromkeys(names, True)


def test_swapped_parameters_are_set_for_the_test_alone() -> None:
    seen: list[bool] = []

    @common.instantiate_parametrized_tests
    class Case(common.TestCase):
        @common.swap([True, False])
        def test_it(self) -> None:
            seen.append(future.get_swap_module_params_on_conversion())

    before = future.get_swap_module_params_on_conversion()
    assert results(Case) == {"test_it_swap_True": True, "test_it_swap_False": True}
    assert sorted(seen) == [False, True] and future.get_swap_module_params_on_conversion() == before


def test_what_the_case_takes_for_equal() -> None:
    case = common.TestCase()
    case.assertEqual(tp.tensor([3.0]), 3)
    case.assertEqual([tp.ones(2)], [np.ones(2, np.float32)])
    case.assertEqual(np.ones(2), np.ones(2))
    case.assertEqual(tp.ones(2), tp.ones(2, dtype=tp.float64), exact_dtype=False)
    case.assertEqualIgnoreType(tp.ones(2), tp.ones(2, dtype=tp.int64))
    case.assertEqual(tp.ones(2).storage(), tp.ones(2).storage())
    case.assertNotEqual(tp.ones(2).storage(), tp.zeros(2).storage())
    case.assertEqual(["a", deque([1])], ("a", [1]), atol=0, rtol=0)
    case.assertEqual(tp.ones(2).to_sparse(), tp.ones(2))
    case.assertEqual(tp.tensor([1.0, 2.0]).double(), np.array([1.0 + 1e-6, 2], np.float32), exact_dtype=False)
    case.assertNotEqual(tp.ones(2), np.ones(2))
    near_numbers = [(0.001, 0.0010004), (np.float32(0.001), 0.0010004), (0.001, np.float16(0.001)), (1j, 1j + 1e-6)]
    for number, near in near_numbers:
        case.assertEqual(number, near)  # numbers are as close as those of float32
        case.assertEqual(tp.tensor([number], dtype=tp.complex128), near)
        case.assertNotEqual(number, near + 1e-4)
    case.assertEqualBroadcasting(tp.ones(2, 3), 1.0)
    case.assertNotEqual(tp.ones(2), tp.zeros(2))
    case.assertNotEqual(3.0, "a")
    case.assertExpectedInline("a\n# b\nc", "a\nc", ignore_comments=True)
    case.compare_with_numpy(tp.sin, np.sin, tp.linspace(0, 1, 5))
    with case.assertWarnsOnceRegex(UserWarning, "hi"):
        __import__("warnings").warn("hi there", stacklevel=1)
    for first, second in ((tp.ones(2), tp.ones(2, dtype=tp.float64)), (tp.ones(2), None), (tp.ones(2), tp.ones(3))):
        with pytest.raises(AssertionError):
            case.assertEqual(first, second)
    apart = {"__torch_function__": tp._C._disabled_torch_function_impl}
    left, right = (type(name, (tp.Tensor,), apart) for name in ("Left", "Right"))
    case.assertEqual(tp.ones(2).as_subclass(left), tp.ones(2).as_subclass(right))
    case.assertNotEqual(tp.ones(2).as_subclass(left), tp.zeros(2).as_subclass(right))
    with pytest.raises(AssertionError):
        case.assertEqual(tp.ones(2).to_sparse(), tp.ones(2), exact_layout=True)


def test_helpers() -> None:
    assert common_dtype.floating_types_and(tp.float16) == (tp.float32, tp.float64, tp.float16)
    assert common_dtype.floating_types_and(tp.float32) == (tp.float32, tp.float64, tp.float32)
    with pytest.raises(RuntimeError, match="expected dtypes"):
        common_dtype.all_types_and(32)  # type: ignore[arg-type]
    assert common_dtype.get_all_math_dtypes("cpu")[-4:] == [tp.float32, tp.float64, tp.complex64, tp.complex128]
    assert len(common_dtype.get_all_dtypes()) == 12 and common_dtype.double_types() == (tp.float64, tp.complex128)
    x = common.noncontiguous_like(tp.arange(6.0).reshape(2, 3))
    assert not x.is_contiguous() and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    one = common.bytes_to_scalar([0, 0, 128, 63], tp.float32, "cpu")
    assert one.shape == () and one == 1 and common.dtype_name(tp.int8) == "int8"
    assert common.torch_to_numpy_dtype_dict[tp.float64] is np.float64
    with common.TemporaryFileName() as name, common.set_default_dtype(tp.float64):
        assert os.path.exists(name) and tp.ones(1).dtype == tp.float64
    assert not os.path.exists(name) and tp.ones(1).dtype == tp.float32
    with common.DeterministicGuard(True):
        assert tp.are_deterministic_algorithms_enabled()
    assert not tp.are_deterministic_algorithms_enabled()
    a = common.random_hermitian_pd_matrix(3, dtype=tp.complex128)
    assert bool((tp.linalg.eigvalsh(a) > 0).all())
    assert not common.is_iterable_of_tensors([]) and common.is_iterable_of_tensors([x])


def test_decorators_of_other_devices_leave_a_test_on_the_cpu_alone() -> None:
    ran = []

    class Case(common.TestCase):
        @on_devices.expectedFailureMPSPre14
        @on_devices.skipCUDAIfNoCudnn
        @on_devices.skipCUDAIfCudnnVersionLessThan(version=7600)
        @on_devices.skipCUDAIfRocmVersionLessThan((4, 1))
        def test_it(self, device: str) -> None:
            ran.append(device)

    made: dict[str, type] = {"Case": Case}
    on_devices.instantiate_device_type_tests(Case, made, only_for="cpu")
    assert results(made["CaseCPU"]) == {"test_it_cpu": True} and ran == ["cpu"]


def test_inherited_tests_are_expected_to_fail() -> None:
    class Base(common.TestCase):
        def test_it(self) -> None:
            raise ValueError

    @common.xfail_inherited_tests(["test_it"])
    class Case(Base): ...

    assert results(Case) == {"test_it": True} and results(Base) == {"test_it": False}


def test_tensors_that_log() -> None:
    from tensorpy.testing._internal import logging_tensor

    with logging_tensor.capture_logs() as lines:
        x = logging_tensor.LoggingTensor(tp.tensor([3.0]), requires_grad=True)
        logging_tensor.log_input("x", x)
        (x * x).unsqueeze(0).sum(dim=[1], keepdim=True)
        x.split(1)
    assert lines[:2] == ["$0: f32[1] = input('x')", "$1: f32[1] = tensorpy._ops.aten.mul.Tensor($0, $0)"]
    assert lines[3].endswith("sum.dim_IntList($2, ['1'], True)") and lines[4].startswith("['$4: f32[1]'] = ")
    assert str(x) == "LoggingTensor(tensor([3.]), requires_grad=True)"
    with logging_tensor.capture_logs_with_logging_tensor_mode() as lines:
        tp.ones(2) + 1
    assert len(lines) == 2 and lines[1].startswith("$1: f32[2] = ")


def test_decorators_of_ones_own_make_tests() -> None:
    """Each row: what is called, an ending, arguments, decorators; beside other decorators, with devices and without."""
    seen: list[Any] = []

    class sizes(common._TestParametrizer):
        def _parametrize_test(self, test: Any, generic_cls: type, device_cls: Any) -> Any:
            def called(self: Any, *args: Any, **options: Any) -> None:
                seen.append((generic_cls.__name__, getattr(device_cls, "device_type", None), test.__name__))
                test(self, *args, **options)

            for size in (1, 2):
                yield (
                    called,
                    f"size{size}",
                    {"size": size},
                    lambda given: [unittest.expectedFailure][: given["size"] - 1],
                )

    class Plain(common.TestCase):
        @common.parametrize("x", [3, 4])
        @sizes()
        def test_it(self, size: int, x: int) -> None:
            assert size == 1 and x > 2

    common.instantiate_parametrized_tests(Plain)
    assert set(results(Plain)) == {f"test_it_x_{x}_size{size}" for size in (1, 2) for x in (3, 4)}
    done = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Plain).run(done)
    assert len(done.expectedFailures) == 2 and done.wasSuccessful() and ("Plain", None, "test_it") in seen

    class OnDevice(common.TestCase):
        @on_devices.dtypes(tp.float32, tp.int64)
        @sizes()
        def test_it(self, device: str, size: int, dtype: tp.dtype) -> None:
            assert size == 1 and dtype in (tp.float32, tp.int64)

    scope: dict[str, Any] = {}
    on_devices.instantiate_device_type_tests(OnDevice, scope)
    done = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(scope["OnDeviceCPU"]).run(done)
    assert done.testsRun == 4 and len(done.expectedFailures) == 2 and done.wasSuccessful()
    assert ("OnDevice", "cpu", "test_it") in seen and hasattr(scope["OnDeviceCPU"], "test_it_size1_cpu_int64")


def test_descriptions_of_operators_say_which_tests_there_are() -> None:
    class Info:
        name, formatted_name = "add", "add_this"

        def supported_dtypes(self, kind: str) -> set[Any]:
            return {tp.float32, tp.int64}

        def supported_backward_dtypes(self, kind: str) -> set[Any]:
            return {tp.float32}

        def get_decorators(self, case: str, test: str, kind: str, dtype: Any, given: dict[str, Any]) -> list[Any]:
            assert given == ({"op": self} if dtype is None else {"op": self, "dtype": dtype})
            assert (case, kind) == ("Case", "cpu")
            return [unittest.skip("not whole numbers")] if dtype is tp.int64 else []

    which = on_devices.OpDTypes
    expected = {
        which.supported: {"_float32": True, "_int64": "not whole numbers"},
        which.supported_backward: {"_float32": True},
        which.any_one: {"_float32": True},
        which.none: {"": True},
    }
    for wanted, names in expected.items():

        class Case(common.TestCase):
            @on_devices.ops([Info()], dtypes=wanted, allowed_dtypes=(tp.float32, tp.int64))
            def test_op(self, device: str, op: Any, **given: Any) -> None:
                assert op.name == "add" and ("dtype" in given) == (given != {})

        scope: dict[str, Any] = {}
        on_devices.instantiate_device_type_tests(Case, scope)
        assert results(scope["CaseCPU"]) == {f"test_op_add_this_cpu{ending}": done for ending, done in names.items()}


def test_samples_come_after_a_seed_of_the_tests_own() -> None:
    drawn = []

    class Case(common.TestCase):
        def test_it(self) -> None:
            samples = common.TrackedInputIter((tp.rand(1).item() for _ in range(2)), "sample")
            drawn.append([*samples])
            assert common.get_tracked_input() == common.TrackedInput(1, drawn[-1][1], "sample")

        def test_only(self) -> None:
            assert [*common.TrackedInputIter("abc", "sample", restrict_to_index=1)] == ["b"]

    for _ in range(2):
        assert all(value is True for value in results(Case).values())
    assert drawn[0] == drawn[1] and drawn[0][0] == drawn[0][1]


def test_tests_are_tried_again_where_a_port_was_taken() -> None:
    tries = []

    @common.retry_on_connect_failures
    def test() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("bind: Address already in use")
        return "done"

    assert test() == "done" and len(tries) == 3
    with pytest.raises(RuntimeError, match="another"):
        common.retry_on_connect_failures(lambda: (_ for _ in ()).throw(RuntimeError("another")))()


def test_matrices_are_well_posed() -> None:
    for dtype in (tp.float32, tp.complex128):
        a = common.make_fullrank_matrices_with_distinct_singular_values(3, 4, 4, dtype=dtype, device="cpu")
        values = tp.linalg.svdvals(a)
        assert a.dtype == dtype and (values[..., :-1] - values[..., 1:] > 0.1).all() and (values > 0.4).all()
        b = common.random_well_conditioned_matrix(2, 4, 3, dtype=dtype, device="cpu")
        assert b.shape == (2, 4, 3) and ((tp.linalg.svdvals(b) - 1).abs() < 0.01).all()


def test_kernels_of_custom_operators_run_without_a_graph() -> None:
    @tp.library.custom_op("tools::total", mutates_args=())
    def total(x: tp.Tensor) -> tp.Tensor:
        return tp.tensor(x.numpy().sum())

    x = tp.ones(3, requires_grad=True)
    assert total(x).requires_grad and total(x).item() == 3
    with pytest.raises(RuntimeError, match="derivative for tools::total is not implemented"):
        total(x).backward()


def test_results_and_gradients_are_compared_together() -> None:
    x, case = tp.tensor([1.0, 2.0], requires_grad=True), common.TestCase()
    (result, constant), grads = common.outs_and_grads(lambda x: (x * x, 3), (x,), (x, 1))
    assert (result.tolist(), constant, grads[0].tolist(), len(grads), x.grad) == ([1, 4], 3, [2, 4], 1, None)
    common.compare_equal_outs_and_grads(case, lambda x: x * x, lambda x: x**2, (x,))
    with pytest.raises(AssertionError):
        common.compare_equal_outs_and_grads(case, lambda x: x * x, lambda x: x.detach() * x, (x,))
