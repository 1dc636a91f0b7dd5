"""Names that programs ask torch for and that need no device, compiler or net: they answer as torch does without one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp

LIBRARIES = [tp]
if importlib.util.find_spec("torch"):
    import torch

    LIBRARIES.append(torch)
same = pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)


def outcome(lib, text):
    """What an expression gives, or the class of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(text, {"m": lib})
        except Exception as error:
            return type(error)


ANSWERS = {
    "m.cuda.is_available()": False,
    "m.cuda.device_count()": 0,
    "m.cuda.current_device()": AssertionError,
    "m.cuda.get_device_name(0)": AssertionError,
    "m.cuda.get_device_capability()": AssertionError,
    "m.cuda.get_device_properties(0)": AssertionError,
    "m.cuda.synchronize()": AssertionError,
    "m.cuda.mem_get_info()": AssertionError,
    "m.cuda.get_rng_state()": AssertionError,
    "m.cuda.current_stream()": AssertionError,
    "m.cuda.get_rng_state_all()": [],
    "m.cuda.set_rng_state_all([])": None,
    "m.cuda.manual_seed(1)": None,
    "m.cuda.manual_seed_all(1)": None,
    "m.cuda.empty_cache()": None,
    "m.cuda.memory_allocated() + m.cuda.max_memory_allocated()": 0,
    "m.cuda.memory_reserved() + m.cuda.max_memory_reserved()": 0,
    "dict(m.cuda.memory_stats())": {},
    "m.cuda.is_bf16_supported()": False,
    "m.cuda.is_initialized()": False,
    "m.cuda.set_device(-1)": None,
    "m.cuda.device(-1).__enter__()": None,
    "m.cuda.stream(None).__enter__()": None,
    "m.cuda.amp.GradScaler().is_enabled()": False,
    "m.cuda.FloatTensor(1)": TypeError,
    "isinstance(m.ones(1), m.cuda.FloatTensor)": False,
    "m.ones(1).cuda()": AssertionError,
    "m.ones(1).xpu()": AssertionError,
    "m.ones(1).is_mps, m.ones(1).is_xpu": (False, False),
    "m.xpu.is_available(), m.xpu.device_count()": (False, 0),
    "m.xpu.current_device()": AssertionError,
    "m.xpu.empty_cache(), m.xpu.memory_allocated(), m.xpu.manual_seed_all(1)": (None, 0, None),
    "m.mtia.is_available(), m.mtia.device_count(), m.mtia.seed(), m.mtia.memory_stats()": (False, 0, None, {}),
    "m.mtia.is_bf16_supported(), m.mtia.memory_allocated(), m.mtia.get_rng_state_all()": (True, 0, []),
    "m.mtia.init()": AssertionError,
    "m.mtia.current_device()": RuntimeError,
    "m.mtia.empty_cache()": RuntimeError,
    "m.cuda.memory.empty_cache(), m.cuda.memory.memory_allocated(), m.cuda.memory.memory_reserved()": (None, 0, 0),
    "m.cuda.memory.mem_get_info()": AssertionError,
    "m.cuda.memory.get_per_process_memory_fraction()": AssertionError,
    "m.cuda.memory._record_memory_history()": AttributeError,
    "m.cuda.memory._dump_snapshot()": AttributeError,
    "m.cuda.nccl.version()": AttributeError,
    "m.cuda.nccl.is_available([m.ones(1)])": False,
    "m.cuda.streams.Stream is m.cuda.Stream, m.cuda.streams.Event is m.cuda.Event": (True, True),
    "str(m.onnx.OperatorExportTypes.ONNX), int(m.onnx.TrainingMode.TRAINING)": ("OperatorExportTypes.ONNX", 2),
    "repr(m.onnx.TensorProtoDataType.BFLOAT16)": "<TensorProtoDataType.BFLOAT16: 16>",
    "m.mps.is_available(), m.mps.device_count(), m.mps.manual_seed(1)": (False, 0, None),
    "m.mps.synchronize()": RuntimeError,
    "m.mps.empty_cache()": RuntimeError,
    "m.mps.current_allocated_memory()": RuntimeError,
    "m.cpu.is_available(), m.cpu.device_count(), m.cpu.current_device()": (True, 1, "cpu"),
    "m.get_device_module('cpu') is m.cpu": True,
    "m.version.cuda, m.version.hip, m.version.debug": (None, None, False),
    "m.backends.cudnn.is_available(), m.backends.cudnn.version()": (False, None),
    "m.backends.cudnn.enabled, m.backends.cudnn.benchmark, m.backends.cudnn.deterministic": (True, False, False),
    "m.backends.cudnn.is_acceptable(m.ones(1))": False,
    "m.backends.cuda.is_built(), m.backends.cuda.flash_sdp_enabled()": (False, True),
    "m.backends.mps.is_available(), m.backends.mps.is_built()": (False, False),
    "m.backends.openmp.is_available(), m.backends.opt_einsum.enabled": (True, False),
    "m.get_float32_matmul_precision(), m.backends.cuda.matmul.allow_tf32": ("highest", False),
    "m.set_float32_matmul_precision('fine'), m.get_float32_matmul_precision()": (None, "highest"),
    "m.set_num_interop_threads(0)": RuntimeError,
    "m.set_deterministic_debug_mode('loud')": RuntimeError,
    "m.set_default_tensor_type(m.LongTensor)": TypeError,
    "m.set_default_tensor_type('torch.cuda.FloatTensor')": TypeError,
    "m.is_storage(3), m.is_storage(m.ones(1).untyped_storage())": (False, True),
    "m.typename(3), m.typename([])": ("int", "list"),
    "m.compiled_with_cxx11_abi()": True,
    "m.is_autocast_cpu_enabled(), m.get_autocast_cpu_dtype() == m.bfloat16": (False, True),
    "m._assert(False, 'no')": AssertionError,
    "m.jit.is_scripting(), m.jit.is_tracing(), m.jit.annotate(int, 3)": (False, False, 3),
    "issubclass(m.optim.lr_scheduler._LRScheduler, m.optim.lr_scheduler.LRScheduler)": True,
    "issubclass(m.jit.ScriptModule, m.nn.Module)": True,
    "m.compiler.is_compiling()": False,
    "isinstance(m.nn.Linear(1, 1), m.fx.GraphModule)": False,
    "m.hub.HASH_REGEX.search('resnet18-5c106cde.pth').group(1)": "5c106cde",
    "m.onnx.is_in_onnx_export()": False,
    "m.distributed.is_available(), m.distributed.is_initialized()": (True, False),
    "m.distributed.get_rank()": ValueError,
    "m.distributed.barrier()": ValueError,
    "m.LongTensor(2, 3).shape, m.LongTensor(m.Size([2, 3])).shape, m.LongTensor(size=(4,)).shape": (
        (2, 3),
        (2, 3),
        (4,),
    ),
    "m.LongTensor().shape, m.LongTensor([]).dtype == m.int64": ((0,), True),
    "m.LongTensor([2, 3]).tolist(), m.LongTensor((2, 3)).tolist(), m.LongTensor(range(2)).tolist()": (
        [2, 3],
        [2, 3],
        [0, 1],
    ),
    "m.FloatTensor([[1, 2], [3]])": ValueError,
    "m.LongTensor([1.5]).tolist()": [1],
    "m.LongTensor(m.ones(2))": TypeError,
    "m.LongTensor(2.5)": TypeError,
    "m.LongTensor(None)": TypeError,
    "m.LongTensor('a')": TypeError,
    "m.LongTensor({1: 2})": TypeError,
    "m.LongTensor(True)": TypeError,
    "m.LongTensor(-1)": RuntimeError,
    "m.LongTensor(3, device='meta')": RuntimeError,
    "m.LongTensor(3, dtype=m.int64)": TypeError,
    "m.BoolTensor([1, 0]).tolist(), m.BFloat16Tensor([1]).dtype == m.bfloat16": ([True, False], True),
    "isinstance(m.ones(1), m.FloatTensor), isinstance(m.ones(1), m.LongTensor)": (True, False),
    "isinstance(m.nn.Parameter(m.ones(1)), m.FloatTensor), isinstance(3, m.LongTensor)": (True, False),
    "isinstance(m.ones(1, device='meta'), m.FloatTensor)": False,
    "m.FloatTensor.dtype == m.float32, m.FloatTensor.is_cuda, m.FloatTensor.__name__": (True, False, "FloatTensor"),
    "m.ones(1).type(m.LongTensor).dtype == m.int64, m.ones(1).type('torch.LongTensor').tolist()": (True, [1]),
    "m.ones(1).type() == m.typename(m.ones(1)) == m.__name__ + '.FloatTensor'": True,
    "m.ones(1).type(m.ones(1))": TypeError,
    "m.ones(1, dtype=m.int32).new(2, 3).dtype == m.int32, m.ones(1).new([1, 2]).tolist()": (True, [1.0, 2.0]),
    "m.ones(1).new().shape, m.ones(1).new(m.Size([2])).shape": ((0,), (2,)),
    "m.ones(1).new(m.ones(2).long())": TypeError,
    "m.ones(1).new(3, device='meta')": RuntimeError,
    "m.zeros(2, 3).resize_as_(m.ones(4)).shape": (4,),
}


@same
@pytest.mark.parametrize("text", ANSWERS)
def test_answers_as_torch_does(lib, text):
    expected, got = ANSWERS[text], outcome(lib, text)
    if isinstance(expected, type):
        assert isinstance(got, type) and issubclass(got, expected)
    else:
        assert got == expected


@same
def test_the_elements_of_another_tensor_are_shared(lib):
    t = lib.ones(2)
    lib.FloatTensor(t)[0] = 5
    t.new(t)[1] = 6
    assert t.tolist() == [5.0, 6.0]


@same
def test_an_array_of_numpys_becomes_a_typed_tensor(lib):
    np = pytest.importorskip("numpy")
    assert lib.LongTensor(np.array([1.0, 2.0])).tolist() == [1, 2]
    assert lib.FloatTensor(np.int64(3)).shape == (3,)


@same
def test_the_default_type_is_the_default_dtype(lib):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lib.set_default_tensor_type(f"{lib.__name__}.DoubleTensor")
            assert lib.get_default_dtype() == lib.float64
            lib.set_default_tensor_type(lib.FloatTensor)
        assert lib.get_default_dtype() == lib.float32
    finally:
        lib.set_default_dtype(lib.float32)


@same
def test_a_precision_below_the_highest_allows_tf32(lib):
    try:
        lib.set_float32_matmul_precision("high")
        assert lib.get_float32_matmul_precision() == "high"
        assert lib.backends.cuda.matmul.allow_tf32
    finally:
        lib.set_float32_matmul_precision("highest")
    assert not lib.backends.cuda.matmul.allow_tf32


def test_tf32_is_another_name_of_a_precision():
    """torch raises where a program uses both names."""
    matmul = tp.backends.cuda.matmul
    for allow, precision in ((True, "high"), (False, "highest")):
        matmul.allow_tf32 = allow
        assert tp.get_float32_matmul_precision() == precision


@same
@pytest.mark.parametrize("kind", ["linalg", "blas"])
def test_a_preferred_library_is_set_to_itself(lib, kind):
    preferred = getattr(lib.backends.cuda, f"preferred_{kind}_library")
    before = preferred()
    preferred("default")
    assert preferred(before) == before == preferred()
    with pytest.raises(RuntimeError, match="Choose from: default"):
        preferred("another")


@same
def test_signatures_of_functions_name_the_tensors(lib):
    F = lib.nn.functional
    for function in (F.relu, F.dropout, F.mse_loss, F.cross_entropy, F.layer_norm):
        found = inspect.signature(function).parameters.values()
        assert any(p.annotation is lib.Tensor for p in found), function


@same
def test_switches_are_kept(lib):
    cudnn = lib.backends.cudnn
    with cudnn.flags(enabled=True, benchmark=True):
        with cudnn.flags(enabled=True, deterministic=True):
            assert cudnn.deterministic and not cudnn.benchmark
        assert cudnn.benchmark and not cudnn.deterministic


def test_switches_are_assigned():
    """torch's own helpers of tests, where something imported them, forbid it there."""
    cudnn = tp.backends.cudnn
    try:
        cudnn.benchmark = True
        assert cudnn.benchmark
    finally:
        cudnn.benchmark = False


@same
def test_debug_mode_is_the_switch_of_deterministic_algorithms(lib):
    try:
        lib.set_deterministic_debug_mode("warn")
        assert lib.get_deterministic_debug_mode() == 1
        assert lib.is_deterministic_algorithms_warn_only_enabled()
    finally:
        lib.set_deterministic_debug_mode(0)
    assert not lib.are_deterministic_algorithms_enabled()


@same
def test_mixed_precision_for_a_device_that_is_not_there_changes_nothing(lib):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        context = lib.cuda.amp.autocast()
    assert any(issubclass(w.category, UserWarning) for w in told)
    with context:
        assert (lib.ones(2, 2) @ lib.ones(2, 2)).dtype == lib.float32


@same
def test_mixed_precision_of_the_cpu(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = lib.cpu.amp.autocast()
    with context:
        assert (lib.ones(2, 2) @ lib.ones(2, 2)).dtype == lib.bfloat16


@same
def test_a_group_of_one_process(lib, monkeypatch, tmp_path):
    dist = lib.distributed
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/{lib.__name__}", rank=0, world_size=1)
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
        t, other = lib.tensor([1.0, 2.0]), lib.zeros(2)
        assert dist.all_reduce(t, op=dist.ReduceOp.MAX) is None and t.tolist() == [1.0, 2.0]
        work = dist.all_reduce(t, async_op=True)
        assert work.wait() and work.is_completed()
        dist.broadcast(t, 0)
        dist.all_gather([other], t)
        assert other.tolist() == [1.0, 2.0]
        objects = [None]
        dist.all_gather_object(objects, {"a": 1})
        assert objects == [{"a": 1}]
        dist.all_gather_into_tensor(other, t + 1)
        assert other.tolist() == [2.0, 3.0]
        dist.all_to_all_single(other, t)
        assert other.tolist() == [1.0, 2.0]
        dist.barrier()
        for wrong in (lambda: dist.broadcast(t, 1), lambda: dist.send(t, 0), lambda: dist.init_process_group("gloo")):
            with pytest.raises((RuntimeError, ValueError)):
                wrong()
        assert dist.get_rank(dist.new_group([0])) == 0
        world = dist.group.WORLD
        assert (dist.get_global_rank(world, 0), dist.get_group_rank(world, 0)) == (0, 0)
        assert dist.get_process_group_ranks(None) == [0] and dist.is_backend_available("gloo")
        assert dist.get_node_local_rank(fallback_rank=0) == 0
        mine, every = dist.new_subgroups(1)
        assert dist.get_world_size(mine) == len(every) == 1
        if lib is tp:  # torch answers for ranks that its default group does not have
            with pytest.raises(ValueError):
                dist.get_global_rank(world, 1)
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ValueError, match="RANK"):
        dist.init_process_group("gloo")


@same
def test_wrappers_of_a_module_call_it(lib, tmp_path):
    linear, x = lib.nn.Linear(2, 1), lib.ones(3, 2)
    wrapped = lib.nn.DataParallel(linear)
    assert wrapped.module is linear and lib.equal(wrapped(x), linear(x))
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    if lib is tp:  # torch's wants a device that is no CPU
        parallel = importlib.import_module("tensorpy.nn.parallel.data_parallel")
        assert lib.equal(parallel.data_parallel(linear, x), linear(x))
    with pytest.raises(ValueError):
        lib.nn.parallel.DistributedDataParallel(linear)
    lib.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        ddp = lib.nn.parallel.DistributedDataParallel(linear)
        with ddp.no_sync():
            ddp(x).sum().backward()
        assert linear.weight.grad.tolist() == [[3.0, 3.0]]
        assert list(ddp.state_dict()) == ["module.weight", "module.bias"]
        with pytest.raises(RuntimeError):
            lib.nn.parallel.DistributedDataParallel(lib.nn.ReLU())
        sampler = importlib.import_module(f"{lib.__name__}.utils.data.distributed").DistributedSampler
        assert list(sampler(range(3), shuffle=False)) == [0, 1, 2]
    finally:
        lib.distributed.destroy_process_group()
    with pytest.raises(ValueError):
        sampler(range(3))


SPAWNING = """
import tensorpy as tp
import tensorpy.multiprocessing as mp

def add(index, queue, tensor):
    if index == 2:
        raise ValueError("two")
    queue.put((tensor + index).tolist())

if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(add, (queue, tp.ones(2)), nprocs=2)
    print(sorted([queue.get(), queue.get()]))
    try:
        mp.spawn(add, (queue, tp.ones(2)), nprocs=3)
    except mp.ProcessRaisedException as error:
        print(error.error_index, "ValueError: two" in str(error))
"""


def test_processes_are_spawned(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SPAWNING)
    folder = str(Path(tp.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": folder},
    )
    assert done.stdout == "[[1.0, 1.0], [2.0, 2.0]]\n2 True\n"


def test_what_would_be_compiled_runs_as_it_is():
    def function(x):
        return x + 1

    linear = tp.nn.Linear(1, 1)
    for decorate in (tp.jit.script, tp.jit.export, tp.jit.unused, tp.jit.ignore, tp.jit.ignore(drop=True)):
        assert decorate(function) is function
    assert tp.jit.trace(linear, tp.ones(1)) is linear


@pytest.mark.parametrize(
    "name",
    "cuda.Stream cuda.Event hub.load onnx.export".split(),
)
def test_what_is_a_name_only_says_so_when_called(name):
    module, _, last = name.rpartition(".")
    value = getattr(getattr(tp, module), last)
    assert not isinstance(3, value)
    with pytest.raises(NotImplementedError, match=f"tensorpy.{name} is a name only"):
        value()


def test_the_accelerator_is_opencls_if_there_is_one():
    assert tp.accelerator.is_available() == tp.opencl.is_available()
    assert tp.accelerator.device_count() == tp.opencl.device_count()
    assert (tp.accelerator.current_accelerator() is None) == (not tp.opencl.is_available())


def test_show_says_what_computes():
    assert tp.__config__.show().startswith(f"tensorpy {tp.version.__version__}")
    assert str(tp.get_num_threads()) in tp.__config__.parallel_info()
    assert tp.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")


@same
@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("amp.autocast_mode", "autocast custom_fwd custom_bwd"),
        ("autograd.grad_mode", "no_grad enable_grad set_grad_enabled inference_mode"),
        ("nn.utils.convert_parameters", "parameters_to_vector vector_to_parameters"),
        ("nn.parallel.distributed", "DistributedDataParallel"),
        ("utils.data._utils.collate", "default_collate default_convert"),
        ("types", "Number Device FileLike Storage"),
    ],
)
def test_names_are_where_programs_look(lib, module, names):
    found = importlib.import_module(f"{lib.__name__}.{module}")
    home = {"types": None}.get(module, importlib.import_module(f"{lib.__name__}.{module.split('.')[0]}"))
    for name in names.split():
        assert getattr(found, name) is getattr(home, name, getattr(found, name))


@same
def test_switches_without_an_effect_are_contexts(lib):
    for switch in (lib.autograd.set_multithreading_enabled, lib.autograd.enforce_grad_layout_policy):
        x = lib.ones(2, requires_grad=True)
        with switch(False):
            x.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]


AT_ONCE = "_C _package _package.names _tensor _tensor.methods _tensor.torch_function"  # what importing tensorpy runs


def test_all_else_is_imported_at_first_use():
    code = """
import sys
import tensorpy
print(*sorted(n[len("tensorpy."):] for n, m in sys.modules.items() if n.startswith("tensorpy.") and m.__spec__))
import tensorpy.cuda.amp, tensorpy.backends.cudnn
from tensorpy import LongTensor, mps, xpu
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == AT_ONCE.split()


# ---- one table of the package's names: tensorpy/_package/names.py ----


def run(text: str) -> str:
    """What a program prints that knows nothing of this process."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_star_import_gives_all_names_and_hides_none_of_pythons() -> None:
    taken = run(
        "import builtins, random\n"
        "before = dict(globals())\n"
        "from tensorpy import *\n"
        "import tensorpy\n"
        "assert builtins.all(name in globals() for name in tensorpy.__all__)\n"
        "assert random.randint(1, 1) == 1\n"
        "print(*[n for n in vars(builtins) if n in globals() and n not in before])"
    )
    known = "all any bool compile complex float int max min pow range round sum abs"
    assert set(taken.split()) <= set(known.split()), taken


@pytest.mark.parametrize("name", sorted({*tp._NAMES, *tp._MODULES}))
def test_each_name_is_imported_alone(name: str) -> None:
    """By `from tensorpy import name`, whatever was imported before."""
    if name in tp._MODULES:
        assert importlib.import_module(f"tensorpy.{name}") is getattr(tp, name)
    else:
        assert getattr(importlib.import_module(f"tensorpy.{tp._NAMES[name]}"), name) is getattr(tp, name)


def test_names_come_in_any_order() -> None:
    """Each first in a process of its own would take a minute: three orders."""
    for seed in range(3):
        run(
            "import random, tensorpy\n"
            "names = sorted({*tensorpy._NAMES, *tensorpy._MODULES})\n"
            f"random.Random({seed}).shuffle(names)\n"
            "[getattr(tensorpy, name) for name in names]"
        )


def test_modules_give_what_they_list() -> None:
    """`from module import *` of every module of the package that lists its names."""
    run(
        "import importlib, pkgutil, tensorpy, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "for found in pkgutil.walk_packages(tensorpy.__path__, 'tensorpy.'):\n"
        "    if '._as_torch.path' in found.name or found.name.endswith('__main__'): continue\n"
        "    try: module = importlib.import_module(found.name)\n"
        "    except ImportError as error:\n"
        "        assert error.name and not error.name.startswith('tensorpy'), (found.name, error)\n"
        "        continue\n"
        "    missing = [n for n in getattr(module, '__all__', ()) if not hasattr(module, n)]\n"
        "    assert not missing, (found.name, missing)"
    )


def test_the_stub_has_the_packages_names() -> None:
    """What an editor knows is what is there."""
    import ast

    tree = ast.parse((Path(tp.__file__).parent / "__init__.pyi").read_text())
    imported = {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    stub = imported | {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}  # type: ignore[union-attr]
    here = set(run("import tensorpy; print(*[n for n in dir(tensorpy) if not n.startswith('_')])").split())
    assert here - stub <= {"codegen"} and {n for n in stub if n and not hasattr(tp, n)} <= {"Number"}


def test_functions_of_sizes_are_those_of_numbers() -> None:
    torch = pytest.importorskip("torch")
    calls = [
        ("sym_max", (2, 3.0)), ("sym_max", (3, 2.0)), ("sym_min", (2, 3.0)), ("sym_max", (2, 3)), ("sym_int", (-2.7,)),
        ("sym_float", (3,)), ("sym_not", (True,)), ("sym_ite", (True, 1, 2)), ("sym_sqrt", (4,)),
        ("sym_sum", ([1, 2],)),
        ("sym_int", ("a",)), ("sym_max", ("a", 1)), ("sym_ite", (1, 2, 3)), ("sym_ite", (True, 1, 2.0)),
        ("sym_sqrt", (-1,)), ("sym_fresh_size", (4,)),
    ]  # fmt: skip

    def outcome(library: Any, name: str, given: Any) -> Any:
        try:
            return repr(getattr(library, name)(*given))
        except (ValueError, AssertionError) as error:
            return type(error)

    for name, given in calls:
        assert outcome(tp, name, given) == outcome(torch, name, given), (name, given)


def test_functions_make_their_tensors_on_a_device() -> None:
    from tensorpy.utils._device import set_device

    @set_device("meta")
    def some() -> Any:
        yield tp.ones(1)
        yield tp.ones(2)

    assert [t.device.type for t in some()] == ["meta", "meta"] and tp.ones(1).device.type == "cpu"
    assert set_device("meta")(lambda: tp.ones(1))().device.type == "meta"
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        set_device("meta")(type("Some", (), {}))


def test_calls_as_text() -> None:
    render = tp._utils.render_call
    assert render(tp.add, [tp.ones(2), 3], {"alpha": 2}) == "torch.add(tensor([...], size=(2,)), 3, alpha=2)"
    assert render(tp.Tensor.sin, [tp.ones(1, dtype=tp.float64)], {}).endswith(
        "(tensor([...], size=(1,), dtype=tensorpy.float64))"
    )
    assert render(tp.nn.functional.relu, [(1,), [None], {"a": "b"}], {}).endswith("relu((1,), [None], {'a': 'b'})")


def test_memory_that_others_take_over_is_a_function_of_the_package() -> None:
    assert tp.to_dlpack is tp.utils.dlpack.to_dlpack and tp.from_dlpack(tp.to_dlpack(tp.ones(2))).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="must be Tensor"):
        tp.to_dlpack(3)  # type: ignore[arg-type]
