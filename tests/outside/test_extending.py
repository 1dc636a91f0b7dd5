"""Libraries in C and C++ (tensorpy/library.h): what is loaded, what is refused, and the example under examples/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from opencl_programs import needs_device

import tensorpy as tp
from tensorpy.utils import extension

ROOT = Path(__file__).parents[2]
LIBRARIES = ROOT / "tests" / "libraries"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENSORPY_EXTENSIONS_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


CPP = pytest.param("c++", marks=pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler"))


def load(name: str, source: str, language: str = "c") -> str:
    return extension.load_inline(name, source, language=language, extra_cflags=["-Wall", "-Werror", "-Wextra"])


TWICE = """
TENSORPY_HANDLE(tp_tensor *, add, "aten::add.Tensor", (tp_tensor *, a), (tp_tensor *, b), (const tp_scalar *, alpha))
TENSORPY_KERNEL(tp_tensor *, twice, (tp_tensor *, x)) {
    tp_scalar one;
    one.kind = TP_SCALAR_INT;
    one.i = 1;
    return add(x, x, &one);
}
TENSORPY_LIBRARY(NAMESPACE, m) { return tp_def(m, "twice(Tensor x) -> Tensor"); }
TENSORPY_LIBRARY_IMPL(NAMESPACE, CompositeImplicitAutograd, m) { return tp_impl(m, "twice", twice); }
"""


@pytest.mark.parametrize("language", ["c", CPP])
def test_a_composite_with_a_handle(language: str) -> None:
    name = f"twice_{'c' if language == 'c' else 'cpp'}"
    load(name, TWICE.replace("NAMESPACE", name), language)
    x = tp.ones(2, requires_grad=True)
    y = getattr(tp.ops, name).twice(x)
    y.sum().backward()
    assert y.tolist() == [2, 2] and x.grad is not None and x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("language", ["c", CPP])
def test_every_type_arrives(language: str, capfd: pytest.CaptureFixture[str]) -> None:
    source = (LIBRARIES / "all_types.c").read_text()
    extension.load_inline("all_types", source, language=language)
    x = tp.ones(3)
    f = tp.ops.all_types.f
    some = f(x, x, [x, x], 2.5, 7, 8, 1.5, 2.5, True, False, [1, 2], [0.5], [True], "word", tp.int64, tp.strided,
             tp.channels_last, tp.device("cpu"))  # fmt: skip
    assert some == (7, 1.5, True)
    none = f(x, None, [], 1, -7, None, -1.5, None, False, None, [], [], [], "", None, None, None, None)
    assert none == (-7, -1.5, False)
    first, second = capfd.readouterr().out.splitlines()
    assert first == "1 3 1 2 2.5 7 1 8 1.5 1 2.5 1 0 2 0.5 1 word 8 0 2 0 -1"
    assert second == "1 3 0 0 1 -7 0 0 -1.5 0 0 0 -1 0 -1 0  -1 -1 -1 -1 -1"


SHELL = """
#include "tensorpy/library.h"
TENSORPY_KERNEL(tp_tensor *, same, (tp_tensor *, x)) { return tp_retain(x); }
TENSORPY_KERNEL(tp_tensor *, nothing, (tp_tensor *, x)) { return NULL; }
TENSORPY_KERNEL(tp_tensor *, of_int, (int64_t, x)) { return NULL; }
TENSORPY_KERNEL(int, status, (tp_tensor *, x)) { return 0; }
TENSORPY_KERNEL(tp_tensor2, two, (tp_tensor *, x)) { tp_tensor2 r = {{tp_retain(x), tp_retain(x)}}; return r; }
TENSORPY_KERNEL(tp_tensor *, of_two, (tp_tensor *, x), (tp_tensor *, y)) { return tp_retain(x); }
static int boxed(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) { return 0; }
"""
# What a library's parts do, and what the error says.
REFUSED = {
    "a schema": ("DEF", 'tp_def(m, "f(Tensor) -> Tensor")', "an argument has no name"),
    "no schema": ("DEF", "tp_def(m, NULL)", "the schema is NULL"),
    "twice": ("DEF", 'tp_def(m, "f(int x) -> int") + tp_def(m, "f(int x) -> int")', "is declared already, at"),
    "an impl in a def": ("DEF", 'tp_impl(m, "f", same)', "there is no operator"),
    "no operator": ("CPU", 'tp_impl(m, "g", same)', "there is no operator refused::g: load the library"),
    "another namespace": ("CPU", 'tp_impl(m, "aten::neg", same)', "aten::neg is not of the namespace 'refused'"),
    "no key": ("Nowhere", 'tp_impl(m, "f", same)', "there is no dispatch key 'Nowhere'"),
    "argument": ("CPU", 'tp_impl(m, "f", of_int)', "argument 'x' of refused::f is tp_tensor * in C, not int64_t"),
    "result": ("CPU", 'tp_impl(m, "f", status)', "what it returns of refused::f is tp_tensor * in C, not int"),
    "results": ("CPU", 'tp_impl(m, "f", two)', "is tp_tensor * in C, not tp_tensor2"),
    "too many": ("CPU", 'tp_impl(m, "f", of_two)', "what follows the arguments of refused::f is nothing in C"),
    "a second": ("CPU", 'tp_impl(m, "f", same) + tp_impl(m, "f", nothing)', "a kernel for CPU, registered from same"),
    "a fallback": ("CPU", "tp_fallback(m, boxed, NULL, NULL)", "a fallback is for all namespaces"),
    "no word": ("CPU", "-1", "this part of the library failed and set no error"),
    "a word, and success": ("CPU", 'tp_fail(TP_ValueError, "in truth") + 1', "in truth"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_library_that_fails_leaves_nothing(case: str) -> None:
    key, call, problem = REFUSED[case]
    declares = "0" if key == "DEF" else 'tp_def(m, "f(Tensor x) -> Tensor")'
    part = "TENSORPY_LIBRARY_FRAGMENT(refused, m)" if key == "DEF" else f"TENSORPY_LIBRARY_IMPL(refused, {key}, m)"
    source = f"{SHELL}TENSORPY_LIBRARY(refused, m) {{ return {declares}; }}\n{part} {{ return {call}; }}\n"
    before = tp._C._operators()
    with pytest.raises((RuntimeError, ValueError, TypeError), match=r"\.c:") as error:
        extension.load_inline("refused", source)
    assert problem in str(error.value)
    assert tp._C._operators() == before
    extension.load_inline("accepted", SHELL + "TENSORPY_LIBRARY(refused, m) { return 0; }")
    tp.ops.unload_library(extension._loaded.pop("accepted"))


def test_no_library(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot be opened"):
        tp.ops.load_library(tmp_path / "nothing.so")
    beside = Path(tp.__file__).parent / "lib"
    tp.ops.load_library(beside / "libtorchbind_test.so")
    with pytest.raises(OSError, match="cannot be opened"):
        tp.ops.load_library(beside / "nothing.so")
    (tmp_path / "empty.c").write_text("int nothing;")
    with pytest.raises(RuntimeError, match="is no library of tensorpy: it has no tensorpy_library_entry"):
        extension.load("empty", tmp_path / "empty.c")
    with pytest.raises(RuntimeError, match="has no parts"):
        extension.load_inline("no_parts", '#include "tensorpy/library.h"\n')
    with pytest.raises(RuntimeError, match="no library is loaded from"):
        tp.ops.unload_library(tmp_path / "nothing.so")


def test_another_version_is_refused() -> None:
    newer = """
#include "tensorpy/api.h"
static tensorpy_module module = {sizeof module, sizeof(tensorpy_api) + 8, TENSORPY_API_VERSION, NULL};
__attribute__((visibility("default"))) const tensorpy_module *TENSORPY_ENTRY(const tensorpy_api *api) {
    (void)api; /* tensorpy/library.h */
    return &module;
}
"""
    with pytest.raises(
        RuntimeError,
        match=r"was built for version 1 of tensorpy's API, with a table of \d+ bytes; this tensorpy \(\d+\.\d+",
    ):
        load("newer", newer)


def test_what_kernels_return() -> None:
    """A kernel that gives nothing, or says that it failed, without an error of its own."""
    kernels = "".join(
        f'if (tp_def(m, "{name}(Tensor x) -> Tensor") < 0) return -1;' for name in ("nothing", "boxed", "same")
    )
    source = f"""{SHELL}
TENSORPY_LIBRARY(returns, m) {{ {kernels} return 0; }}
TENSORPY_LIBRARY_IMPL(returns, CPU, m) {{
    return tp_impl(m, "nothing", nothing) < 0 || tp_impl_boxed(m, "boxed", boxed, NULL, NULL) < 0 ? -1 : 0;
}}
"""
    extension.load_inline("returns", source)
    x = tp.ones(2)
    with pytest.raises(RuntimeError, match=r"returns::nothing: its kernel nothing at .*c:\d+ failed and set no error"):
        tp.ops.returns.nothing(x)
    with pytest.raises(RuntimeError, match=r"returns::boxed: its kernel boxed at .*c:\d+ gave no results"):
        tp.ops.returns.boxed(x)
    with pytest.raises(NotImplementedError, match="returns::same"):
        tp.ops.returns.same(x)


def test_kernels_for_operators_of_tensorpy() -> None:
    """One for a key of its own, until the library is taken out."""
    path = load("negatives", """
TENSORPY_KERNEL(tp_tensor *, negatives, (tp_tensor *, self)) { return tp_retain(self); }
TENSORPY_LIBRARY_IMPL(aten, CPU, m) { return tp_impl(m, "neg", negatives); }
""")  # fmt: skip
    assert tp.neg(tp.ones(1)).item() == 1
    tp.ops.unload_library(path)
    assert tp.neg(tp.ones(1)).item() == -1


def test_a_record_keeps_what_it_saves() -> None:
    """Saved inputs and outputs, the check of versions, gradients that are not asked for, backward's own failures."""
    load("squares", (LIBRARIES / "squares.c").read_text())
    a, b = tp.tensor([2.0], requires_grad=True), tp.tensor([3.0], requires_grad=True)
    product = tp.ops.squares.product
    product(a, b).backward()
    assert a.grad is not None and b.grad is not None and (a.grad.item(), b.grad.item()) == (3, 2)
    (only,) = tp.autograd.grad(product(a, b.detach()), a)
    assert only.item() == 3
    changed = b.detach().clone()
    result = product(a, changed)
    changed.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()
    result = product(a, b)
    result.backward()
    with pytest.raises(RuntimeError, match="backward"):
        result.backward()
    with pytest.raises(RuntimeError, match="the backward of ProductBackward failed and set no error"):
        tp.ops.squares.failing(a, b).backward()


def test_a_library_is_taken_out_under_calls() -> None:
    """Threads call an operator while its library comes and goes: a result, or that there is no kernel."""
    source = TWICE.replace("NAMESPACE", "comes")
    path = load("comes", source)
    stop = threading.Event()
    wrong: list[BaseException] = []
    held = tp.ops.comes.twice.default

    def call() -> None:
        x = tp.ones(4)
        while not stop.is_set():
            try:
                assert held(x).tolist() == [2, 2, 2, 2]
            except NotImplementedError:
                pass
            except BaseException as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        tp.ops.unload_library(path)
        tp.ops.load_library(path)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    assert tp.ops.comes.twice(tp.ones(1)).item() == 2


def test_another_version_of_a_cell(cache: Path) -> None:
    """load_inline under the same name takes the one before out; the same text is not built again."""
    source = TWICE.replace("NAMESPACE", "cell")
    first = load("cell", source)
    assert load("cell", source) == first and tp.ops.cell.twice(tp.ones(1)).item() == 2
    other = source.replace("one.i = 1", "one.i = 4").replace("twice(Tensor x)", "twice(Tensor x, int n=0)")
    second = load("cell", other.replace("twice, (tp_tensor *, x)", "twice, (tp_tensor *, x), (int64_t, n)"))
    assert second != first and tp.ops.cell.twice(tp.ones(1)).item() == 5
    assert second in tp.ops.loaded_libraries and first not in tp.ops.loaded_libraries
    assert cache.stat().st_mode & 0o77 == 0


def test_a_version_after_the_one_before_was_taken_out_by_hand(cache: Path) -> None:
    source = TWICE.replace("NAMESPACE", "byhand")
    tp.ops.unload_library(load("byhand", source))
    load("byhand", source.replace("one.i = 1", "one.i = 4"))
    assert tp.ops.byhand.twice(tp.ones(1)).item() == 5


def test_a_call_of_what_is_not_declared_is_an_error_of_the_compiler(cache: Path) -> None:
    source = TWICE.replace("NAMESPACE", "misspelt") + "int f(void) { return no_such_function(); }"
    with pytest.raises(RuntimeError, match=r"implicit declaration of function .*no_such_function"):
        extension.load_inline("misspelt", source)


def test_a_status_for_a_tensor_is_an_error_of_the_compiler(cache: Path) -> None:
    source = TWICE.replace("NAMESPACE", "status") + "tp_tensor *f(void) { return tp_decline(); }"
    with pytest.raises(RuntimeError, match=r"returning .int. from a function with return type"):
        extension.load_inline("status", source)


def test_too_many_devices_for_streams() -> None:
    """Each thread has a current stream of each device, in memory that is scarce."""
    members = "stream_new stream_query stream_synchronize event_record event_release event_query event_synchronize "
    members += "event_wait event_elapsed record_stream allocate release copy_from_host copy_to_host"
    filled = "".join(f"*(void **)&b->{member} = (void *)(uintptr_t)&none; " for member in members.split())
    source = f"""
        static char none;
        static int many(void) {{ return 17; }}
        TENSORPY_BACKEND(crowd, b) {{ {filled} b->device_count = many; }}"""
    with pytest.raises(RuntimeError, match="crowd has streams, and 17 devices: at most 16 then"):
        extension.load_inline("crowd", source)


def test_a_handle_outlives_its_library(cache: Path) -> None:
    """An operator that is taken out and declared again is the same: in handles of C, in Python, in what was pickled."""
    declared = """
        TENSORPY_LIBRARY(again, m) { return tp_def(m, "f(Tensor self) -> Tensor"); }
        TENSORPY_KERNEL(tp_tensor *, f, (tp_tensor *, self)) { return tp_retain(self); }
        TENSORPY_LIBRARY_IMPL(again, CPU, m) { return tp_impl(m, "f", f); }"""
    caller = """
        TENSORPY_HANDLE(tp_tensor *, f, "again::f", (tp_tensor *, self))
        TENSORPY_LIBRARY(calls_again, m) { return tp_def(m, "g(Tensor self) -> Tensor"); }
        TENSORPY_KERNEL(tp_tensor *, g, (tp_tensor *, self)) { return f(self); }
        TENSORPY_LIBRARY_IMPL(calls_again, CompositeImplicitAutograd, m) { return tp_impl(m, "g", g); }"""
    x = tp.ones(2, requires_grad=True)
    extension.load_inline("calls_again", caller)
    with pytest.raises(RuntimeError, match="there is no operator again::f"):
        tp.ops.calls_again.g(x)
    path = extension.load_inline("again", declared)
    kept = tp.ops.again.f.default
    assert tp.ops.calls_again.g(x.detach()).tolist() == [1, 1]
    for _ in range(3):
        tp.ops.unload_library(path)
        with pytest.raises(NotImplementedError, match="again::f"):
            tp.ops.calls_again.g(x.detach())
        tp.ops.load_library(path)
        assert tp.ops.calls_again.g(x.detach()).tolist() == kept(x.detach()).tolist() == [1, 1]
    entry = next(e for e in tp.dispatch.table("again::f") if e.key == "AutogradCPU")
    assert entry.source == "no derivative is registered"


def test_what_does_not_compile(cache: Path) -> None:
    with pytest.raises(RuntimeError, match=r"wrong does not compile:\n(.|\n)*no_such_name"):
        load("wrong", "int f(void) { return no_such_name; }")
    assert not list(cache.glob("*.so"))
    cache.chmod(0o777)
    with pytest.raises(RuntimeError, match="open to others"):
        load("wrong", "")
    with pytest.raises(ValueError, match="no name of a library"):
        load("../wrong", "")


@pytest.mark.parametrize(
    ("name", "tests"),
    [("custom_operator", []), ("operators_from_yaml", ["test_signals.py", "build/generated/test_ops.py"])],
)
def test_the_examples(name: str, tests: list[str], tmp_path: Path) -> None:
    """They are built by their setup.py and pass their own tests."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / name, project)
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(Path(tp.__file__).parents[1])])}
    built = subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=project, env=given)
    assert built.returncode == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *tests], cwd=project, env=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def run_example(path: str, **given: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(tp.__file__).parents[1]), **given}
    done = subprocess.run([sys.executable, ROOT / "examples" / path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not Path("/usr/include/dnnl.h").exists(), reason="oneDNN's header is not installed")
def test_a_layout_of_another_library() -> None:
    """examples/layout_onednn: its own tests, and the results of a network."""
    folder = ROOT / "examples" / "layout_onednn"
    environment = {**os.environ, "PYTHONPATH": str(Path(tp.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "test_packed.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    found = re.match(r"largest difference (\S+) of (\S+)\n", run_example("layout_onednn/resnet.py"))
    assert found and float(found[1]) < 1e-4 * float(found[2])


def test_the_layer_in_c() -> None:
    """It sees forward and backward, in all threads that include its key, and goes without a trace."""
    assert int(run_example("counting_layer/counting.py").split()[0]) >= 15
    sys.path.insert(0, str(ROOT / "examples" / "counting_layer"))
    try:
        from counting import counted  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    before = str(tp.dispatch.table("add.Tensor"))
    for _ in range(2):
        with counted() as taken:
            tp.ones(2).add(1)
            assert taken() == 4  # ones, of empty and fill_; add
        assert str(tp.dispatch.table("add.Tensor")) == before
    with pytest.raises(AttributeError):
        tp.ops.counting.taken()


@needs_device
def test_the_operator_over_an_opencl_kernel() -> None:
    assert run_example("axpy.py") == "tensor([1., 3., 5., 7.], device='opencl:0')\n"
