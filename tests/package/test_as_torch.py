"""`import torch` means tensorpy: python -m tensorpy.run, as_torch(), and what programs find behind the name."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import opencl
from tensorpy._as_torch import names
from tensorpy.torch_version import TorchVersion

ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TENSORPY_TORCH_DEVICE")}


def run(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """python -m tensorpy.run with arguments; `text` is its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "tensorpy.run", *arguments],
        input=text,
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **environment},
        timeout=120,
    )


def output(program: str, *options: str) -> str:
    """What a program prints, which has to end well."""
    done = run(*options, "-c", program)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- the runner ----


def test_a_script_gets_its_arguments_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7\n")
    script = tmp_path / "train.py"
    script.write_text("import sys, beside, torch\nprint(sys.argv, beside.value, __name__, torch.ones(2).tolist())\n")
    done = run(str(script), "--batch-size", "32")
    assert done.stdout.strip() == f"{[str(script), '--batch-size', '32']} 7 __main__ [1.0, 1.0]", done.stderr


def test_modules_commands_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys, torch\nprint(sys.argv[1:], torch.zeros(1).item())\n")
    done = subprocess.run(
        [sys.executable, "-m", "tensorpy.run", "-m", "program", "a"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    assert done.stdout.strip() == "['a'] 0.0", done.stderr
    assert run("-c", "import sys, torch; print(sys.argv)", "x").stdout.strip() == "['-c', 'x']"
    assert run(text="import sys, torch; print(sys.argv)").stdout.strip() == "['']"
    assert run("-", "y", text="import sys, torch; print(sys.argv)").stdout.strip() == "['-', 'y']"


def test_tracebacks_show_the_programs_own_lines(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text("import torch\ndef f():\n    return torch.ones(2) @ torch.ones(3)\nf()\n")
    done = run(str(script))
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0].startswith("Traceback") and lines[1] == f'  File "{script}", line 4, in <module>', done.stderr
    assert "tensorpy/run.py" not in done.stderr and "runpy" not in done.stderr


def test_exit_codes_and_mistakes() -> None:
    assert run("-c", "import sys; sys.exit(3)").returncode == 3
    for arguments, said in (
        (["nothing_here.py"], "can't open file"),
        (["-m"], "argument expected"),
        (["--device"], "--device takes a device"),
        (["--device", "cpu", "-c", "pass"], "the device is 'opencl'"),
        (["-x"], "unknown option"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert "--device opencl" in run("--help").stdout


def test_the_real_torch_is_not_replaced() -> None:
    program = (
        "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import tensorpy; tensorpy.as_torch()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 1 and "torch is imported already" in done.stderr


# ---- what programs find ----


def test_modules_are_tensorpys_own() -> None:
    assert (
        output(
            "import torch, tensorpy, torch.nn.functional as F, torch.optim.lr_scheduler\n"
            "from torch import nn\nfrom torch.utils.data import DataLoader\n"
            "import tensorpy.nn.functional as G\n"
            "print(torch is tensorpy, F is G, nn is tensorpy.nn, torch.Tensor is tensorpy.Tensor,\n"
            "      F.__spec__.name, DataLoader.__module__.split('.')[0])"
        )
        == "True True True True tensorpy.nn.functional torch"
    )


def test_names_are_printed_as_torchs() -> None:
    assert output(
        "import torch, importlib.metadata\n"
        "print(torch.float32, torch.ones(2, 3).shape, torch.ones(1).type(), torch.strided, torch.__name__)\n"
        "print(torch.__version__ >= (2, 0), torch.__version__.split('+')[0], importlib.metadata.version('torch'))"
    ).splitlines() == [
        "torch.float32 torch.Size([2, 3]) torch.FloatTensor torch.strided torch",
        f"True {names.VERSION} {names.VERSION}",
    ]
    assert str(tp.float32) == "tensorpy.float32"


def test_graphs_are_written_as_torchs() -> None:
    assert output(
        "import torch\n"
        "from torch.fx.experimental.proxy_tensor import make_fx\n"
        "print(make_fx(lambda x: x.sin().to(torch.float64))(torch.ones(2)).code.split(chr(10))[4].strip())\n"
        "def f(x): return torch.relu(x)\n"
        "f.__annotations__['x'] = torch.Tensor\n"
        "module = torch.fx.symbolic_trace(f)\n"
        "print(module.code.split(chr(10))[3].strip(), list(module.graph.nodes)[1].format_node())\n"
        "print(module.print_readable(print_output=False).split(chr(10))[0], module(torch.ones(1)))"
    ).splitlines() == [
        "sin = torch.ops.aten.sin.default(x_1);  x_1 = None",
        "def forward(self, x : torch.Tensor): "
        "%relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})",
        "class f(torch.nn.Module): tensor([1.])",
    ]


def test_named_results_are_torchs() -> None:
    assert output(
        "import torch, pickle\n"
        "r = torch.ones(2).max(0)\n"
        "print(r, type(r), type(r) is torch.return_types.max, type(pickle.loads(pickle.dumps(r))) is type(r))"
    ).splitlines() == [
        "torch.return_types.max(",
        "values=tensor(1.),",
        "indices=tensor(0)) <class 'torch.return_types.max'> True True",
    ]
    assert repr(tp.ones(2).max(0)).startswith("tensorpy.return_types.max(")


def test_names_of_functions_are_torchs() -> None:
    assert (
        output(
            "import torch\n"
            "from torch.overrides import resolve_name\n"
            "print(resolve_name(torch.add), resolve_name(torch.Tensor.add), resolve_name(print))"
        )
        == "torch.add torch.Tensor.add None"
    )


def test_opencl_is_an_accelerator_of_programs_that_were_given_it() -> None:
    program = "import torch; a = torch.accelerator; print(a.is_available(), a.device_count(), a.current_accelerator())"
    assert output(program) == "False 0 None"
    if opencl.is_available():
        assert output(program, "--device", "opencl").startswith("True") and tp.accelerator.is_available()


def test_versions_compare_by_their_numbers() -> None:
    version = TorchVersion("2.13.0+tensorpy0.1.0")
    assert version > "2.2" and version >= (2, 13) and version == "2.13.0" and version < "10.0"
    assert version != "2.12" and version != "x" and version.startswith("2.13")
    with pytest.raises(ValueError, match="not a version"):
        version < "x"  # noqa: B015


def test_what_is_missing_is_said_once_at_the_end() -> None:
    done = run("-c", "import torch\nprint(hasattr(torch, 'vmap'), hasattr(torch, 'saddmm'), hasattr(torch, 'rubbish'))")
    assert done.stdout.strip() == "True False False", done.stderr
    assert done.stderr.splitlines() == [
        "tensorpy: names of torch that were asked for and are not there:",
        "  torch.saddmm",
    ]


def test_what_tools_ask_of_any_object_is_no_name_of_torch() -> None:
    program = (
        "import torch\n"
        "for m in (torch, torch.nn): print(getattr(m, '_mock_name', 3), hasattr(m, '_wrapped'))\n"
        "torch._rubbish"
    )
    done = run("-c", program)
    assert done.stdout.split() == ["3", "False"] * 2, done.stderr
    assert done.stderr.splitlines()[-1:] == ["  torch._rubbish"]


def test_a_number_is_an_index_of_the_accelerator() -> None:
    """Which a program without --device has not."""
    program = "import torch\ntry: print({})\nexcept RuntimeError as error: print(error)"
    for call in ("torch.device(0)", "torch.zeros(2, device=0)", "torch.ones(2).to(0)", "torch.nn.Linear(2, 2).to(0)"):
        assert output(program.format(call)).startswith("Cannot access accelerator device when none is available: ")
    assert output(program.format("torch.zeros(2, device=-1)")).strip() == "Device index must not be negative"
    if opencl.is_available():
        assert output(program.format("torch.device(0)"), "--device", "opencl").strip() == "cuda:0"
        assert str(tp.device(0)) == "opencl:0"


def test_an_attribute_that_is_missing_is_an_error_with_the_nearest() -> None:
    done = run("-c", "import torch\ntorch.saddmm")
    assert "AttributeError: module 'torch' has no attribute 'saddmm': PyTorch has it, tensorpy does not" in done.stderr
    assert "the nearest that is there is 'addmm'" in done.stderr


def test_an_import_that_nothing_catches_gives_a_name_that_raises_when_used() -> None:
    program = (
        "from torch.distributed.fsdp import DataParallelMeshDims as Flat, ShardingStrategy\n"
        "from torch.distributed.tensor.experimental import context_parallel\n"
        "import torch.distributed.rpc as rpc\n"
        "from torch._inductor.utils import anything\n"
        "print(isinstance(3, Flat), issubclass(type('Mine', (Flat,), {}), Flat))\n"
        "for use in (lambda: Flat(3).forward(), lambda: context_parallel(3), lambda: anything()):\n"
        "    try: use()\n"
        "    except NotImplementedError as error: print(error)\n"
        "try: rpc.init_rpc\n"
        "except AttributeError as error: print(str(error)[:58])\n"
    )
    assert output(program).splitlines() == [
        "False True",
        "torch.distributed.fsdp.DataParallelMeshDims is a name only: tensorpy does not have what it stands for",
        "torch.distributed.tensor.experimental.context_parallel is a name only: tensorpy does not have what it "
        "stands for",
        "torch._inductor.utils.anything is a name only: tensorpy does not have what it stands for",
        "module 'torch.distributed.rpc' has no attribute 'init_rpc': "[:58],
    ]


def test_programs_ask_whether_a_mode_of_functions_is_on() -> None:
    program = (
        "import torch\n"
        "from torch.overrides import TorchFunctionMode\n"
        "on, found = torch._C._is_torch_function_mode_enabled, []\n"
        "class Mode(TorchFunctionMode):\n"
        "    def __torch_function__(self, f, types, args=(), kwargs=None):\n"
        "        found.append(on())\n"
        "        return f(*args, **(kwargs or {}))\n"
        "found.append(on())\n"
        "with Mode():\n"
        "    found.append(on())\n"
        "    torch.ones(2)\n"
        "    with torch._C.DisableTorchFunction(): found.append(on())\n"
        "    with torch._C.DisableTorchFunctionSubclass(): found.append(on())\n"
        "print(*found)\n"
    )
    assert output(program).split() == ["False", "True", "False", "False", "True"]


def test_a_module_that_tensorpy_loads_by_itself_stands_for_what_is_missing_too() -> None:
    program = (
        "import tensorpy.distributed.fsdp\n"
        "from torch.distributed.fsdp import DataParallelMeshDims\n"
        "print(isinstance(3, DataParallelMeshDims))\n"
    )
    assert output(program).split() == ["False"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="what catches an exception is known from Python 3.11 on")
def test_an_import_that_the_program_catches_is_an_error() -> None:
    program = (
        "import importlib.util\n"
        "for line in ('from torch.distributed.fsdp import DataParallelMeshDims', 'import torch.distributed.rpc',\n"
        "             'from torch.nn import Nonsense', 'import torch.nonsense'):\n"
        "    exec(f'try: {line}\\nexcept ImportError: print(True)\\nelse: print(False)')\n"
        "print(importlib.util.find_spec('torch.distributed.rpc'), importlib.util.find_spec('torch.nn') is not None)\n"
    )
    assert output(program).split() == ["True"] * 4 + ["None", "True"]
    assert "ImportError" in run("-c", "from torch.nn import Nonsense").stderr
    assert "ModuleNotFoundError" in run("-c", "import torch.nonsense").stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="what catches an exception is known from Python 3.11 on")
def test_warnings_of_tracers_from_the_package_may_be_left_out() -> None:
    program = (
        "import torch, warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    torch.jit.TracerWarning.ignore_lib_warnings()\n"
        "    for module in ('torch.nn', 'torch.jit', 'program'):\n"
        "        warnings.warn_explicit('traced', torch.jit.TracerWarning, 'file', 1, module)\n"
        "print(len(seen))\n"
    )
    assert output(program) == "2"


def test_what_tables_of_pytorchs_tests_ask_of_operators() -> None:
    program = (
        "import torch\n"
        "from torch._ops import DispatchKey\n"
        "from torch._export.utils import _is_cia_op\n"
        "aten = torch.ops.aten\n"
        "kinds = 'CPU', DispatchKey.CompositeImplicitAutograd, DispatchKey.CompositeExplicitAutograd\n"
        "for op in (aten.sin.default, aten.dropout.default, aten.stack.default):\n"
        "    print(*(int(op.has_kernel_for_dispatch_key(key)) for key in kinds), int(_is_cia_op(op)), end=' ')\n"
        "print(aten.sin.default._overloadpacket is aten.sin.default.overloadpacket is aten.sin)\n"
        "print(issubclass(torch.ScriptMethod, torch.ScriptFunction), isinstance(1, torch.Type))\n"
        "print({torch.ops.aten.cudnn_batch_norm.default: 1, aten._use_cudnn_ctc_loss.Tensor: 2} != {})\n"
        "print(torch._C._ConvBackend.Mkldnn == 8, torch._nnpack_available(), torch._C._get_autograd_fallback_mode())\n"
    )
    said = ["True", "True", "False", "True", "True", "False", "warn"]
    assert output(program).split() == [*"100001010010", *said]


def test_which_code_computes_a_convolution() -> None:
    """PyTorch's names for its own code: tensorpy has no other library's."""
    program = """
import torch
def named(x, w, dilation=1, transposed=False, groups=1):
    n = x.dim() - 2
    found = torch._C._select_conv_backend(x, w, None, [1] * n, [0] * n, [dilation] * n, transposed, [0] * n, groups)
    return torch._C._ConvBackend(found).name
r = torch.randn
print(named(r(2, 6, 7), r(12, 6, 3)), named(r(2, 6, 7, 8), r(6, 1, 3, 3), groups=6), named(r(2, 6, 7), r(12, 6, 3), 2))
print(named(r(2, 6, 7, 8, 9), r(6, 12, 3, 3, 3), 2, True), named(r(2, 6, 7, 8, 9), r(12, 6, 3, 3, 3)))
print(named(r(0, 6, 7), r(12, 6, 3)), named(r(2, 0, 7), r(12, 0, 3)))
try:
    named(r(2, 6, 7), r(12, 5, 3))
except RuntimeError as e:
    print("to have 5 channels" in str(e))
"""
    slow = ["Slow2d", "Slow2d", "SlowDilated2d", "SlowTranspose3d", "Slow3d"]
    assert output(program).split() == [*slow, "Empty", "Empty", "True"]


def test_parts_that_are_not_there_say_so_when_they_are_asked() -> None:
    program = """
import torch.distributed.rpc as rpc
from torch.distributed import autograd
print(rpc.is_available(), autograd.is_available())
"""
    assert output(program) == "False False"


def test_the_test_case_of_libraries_compares_what_containers_hold() -> None:
    program = """
import torch
from torch.testing._internal.common_utils import TestCase
case = TestCase()
state = {"dtype": torch.float32, "name": "adam", "lr": [0.1, 1], "p": torch.ones(2)}
case.assertEqual(state, {**state, "lr": [0.1 + 1e-12, 1], "p": torch.ones(2) + 1e-8})
changes = {"dtype": torch.float64}, {"name": "sgd"}, {"lr": [0.2, 1]}, {"lr": [0.1]}, {"p": torch.zeros(2)}, {"q": 1}
for changed in changes:
    try:
        case.assertEqual(state, {**state, **changed})
    except AssertionError:
        print("differs")
"""
    assert output(program).split() == ["differs"] * 6


def test_marks_for_a_compiler_leave_a_method_as_it_was() -> None:
    program = """
from torch._jit_internal import _copy_to_script_wrapper
print(_copy_to_script_wrapper(len) is len)
"""
    assert output(program) == "True"


def test_private_parts_are_attributes_too() -> None:
    """Those that PyTorch loads with torch, or with what compiles: programs set `torch._functorch.config.x`."""
    names = """
        _compile _custom_ops _dynamo.backends.registry _dynamo.config _export.wrappers _functorch.apis _functorch.config
        _functorch.vmap _inductor.config _inductor.utils _jit_internal _library.fake_impl _library.utils _lobpcg
        _tensor_str fx._compatibility jit.annotations nn.modules._functions testing._internal utils._foreach_utils
    """.split()
    program = "import torch, types\n" + "\n".join(f"assert isinstance(torch.{n}, types.ModuleType)" for n in names)
    assert (
        output(program + "\nprint(hasattr(torch.nn, '_nothing'), hasattr(torch._functorch, 'nothing'))")
        == "False False"
    )


def test_parts_are_attributes_before_they_are_imported() -> None:
    program = """
import torch
import torch.distributed
print(torch.distributed.fsdp.FSDPModule.__name__, hasattr(torch.distributed, "no_such_part"))
import torch.distributed._composable.fsdp as first, torch.distributed._tensor as tensor
print(first.FSDPModule is torch.distributed.fsdp.FSDPModule, tensor.DTensor is torch.distributed.tensor.DTensor)
"""
    assert output(program) == "FSDPModule False\nTrue True"


def test_names_of_modules_that_list_none_stand_for_themselves() -> None:
    """Of a module without a list of public names nobody knows which it has: an import goes on."""
    program = """
from torch.fx.experimental.accelerator_partitioner import Partitioner
from torch.fx.experimental.proxy_tensor import make_fx, no_such_name
try:
    no_such_name()
except NotImplementedError as error:
    print(error)
try:
    from torch.fx.experimental.proxy_tensor import no_such_name
except ImportError:
    print("caught")
import torch
print(hasattr(torch.fx.experimental.proxy_tensor, "no_such_name"))
"""
    said, *rest = output(program).splitlines()
    assert said.startswith("torch.fx.experimental.proxy_tensor.no_such_name is a name only")
    assert rest == ["caught", "False"]


def test_what_tests_of_compiled_programs_set_up() -> None:
    program = """
import torch, warnings
torch.jit.TracerWarning.ignore_lib_warnings()
torch._C._jit_set_emit_hooks(None, None)
torch._C._jit_clear_class_registry()
torch.jit._recursive.concrete_type_store = torch.jit._recursive.ConcreteTypeStore()
torch.jit._state._clear_class_state()
print(torch.jit._state._get_script_class(int), torch._C._jit_try_infer_type([1, 2]).type())
assert [s.overload_name for s in torch._C._jit_get_schemas_for_operator("aten::relu")] == ["", "out"]
assert torch._C._jit_get_schemas_for_operator("aten::none_such") == []
print(torch._dynamo.eval_frame.is_dynamo_supported())
"""
    assert output(program) == "None List[int]\nTrue"


def test_functions_of_pytorch_by_plain_name() -> None:
    """Tables of signatures name them all, those of other devices' libraries too."""
    program = """
import torch
plain = torch._C._VariableFunctions
print(plain.add is torch.add, plain.detach_(torch.ones(1)).item(), (plain.__and__(torch.tensor(3), 2)).item())
there = [hasattr(plain, name) for name in ("__len__", "__deepcopy__", "no_such_function", "is_tensor_like")]
print(plain.cudnn_convolution is plain.cudnn_convolution, any(there))
for name in (plain.cudnn_convolution, torch._C._nn.mkldnn_linear, torch.Tensor.to_mkldnn):
    try:
        name()
    except NotImplementedError as error:
        print(error)
"""
    first, second, *said = output(program).splitlines()
    assert first == "True 1.0 2" and second == "True False"
    assert len(said) == 3 and all("is a name only" in line for line in said)


def test_dtypes_that_are_not_there_can_be_compared() -> None:
    assert (
        output(
            "import torch\nprint(torch.float4_e2m1fn_x2, torch.ones(1).dtype == torch.float4_e2m1fn_x2,\n"
            "{torch.float32: 4, torch.quint8: 1}[torch.float32])"
        )
        == "torch.float4_e2m1fn_x2 False 4"
    )


def test_all_names_at_once() -> None:
    program = "from torch import *\nprint(ones(2).tolist(), FloatTensor([1]).dtype is float32)"
    assert output(program) == "[1.0, 1.0] True"


def test_dtypes_that_are_names_only_are_dtypes() -> None:
    program = "import torch\nprint(isinstance(torch.bits2x4, torch.dtype), torch.bits2x4 == torch.quint4x2)"
    assert output(program) == "True False"


# ---- processes that are started ----

CHILDREN = """
import multiprocessing, subprocess, sys, torch
def double(x):
    import torch as t
    return t is torch and t.__name__, (x * 2).tolist()
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.apply(double, (torch.ones(2),)))
    done = subprocess.run([sys.executable, "-c", "import torch; print(torch.ones(1).type())"], capture_output=True)
    print(done.stdout.decode().strip())
"""


def test_processes_that_it_starts_do_the_same(tmp_path: Path) -> None:
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    done = run(str(script))
    assert done.stdout.splitlines() == ["('torch', [2.0, 2.0])"] * 3 + ["torch.FloatTensor"], done.stderr


# ---- devices ----


def test_devices_of_torchs_are_names() -> None:
    cuda = tp.device("cuda:1")
    assert (cuda.type, cuda.index, str(cuda)) == ("cuda", 1, "cuda:1") and cuda == tp.device("cuda", 1)
    assert cuda != tp.device("cpu") and hash(cuda) == hash(tp.device("cuda:1")) and not tp.ones(1).is_cuda
    uses: list[Any] = [
        lambda: tp.ones(1, device="cuda"),
        lambda: tp.ones(1).to("cuda"),
        lambda: tp.ones(1).cuda(),
        lambda: tp.Generator("cuda"),
        lambda: tp.set_default_device("cuda"),
        lambda: cuda.__enter__(),
        lambda: tp.ops.aten.zeros([1], device="cuda"),
        lambda: tp.empty_like(tp.ones(1), device=cuda),
    ]
    for use in uses:
        with pytest.raises(AssertionError, match="tensorpy drives no cuda device"):
            use()
    with pytest.raises(RuntimeError, match="drives no mps device"):
        tp.ones(1, device="mps")
    with pytest.warns(UserWarning, match="there is no cuda device"), tp.autocast("cuda"):
        assert not tp.is_autocast_enabled("cuda")


@pytest.mark.skipif(not opencl.is_available(), reason="no OpenCL device")
def test_cuda_is_the_opencl_device_where_it_is_asked_for() -> None:
    program = """
import torch
assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(3, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
with torch.cuda.amp.autocast(dtype=torch.bfloat16):
    loss = model(torch.ones(4, 3, device="cuda:0")).float().square().mean()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
with torch.autocast("cuda"):
    half = torch.full((3,), 12.0, device="cuda", dtype=torch.float16)
    assert half.exp().dtype == torch.float32 and half.exp().isfinite().all() and half.softmax(0).dtype == torch.float32
print(loss.device, loss.is_cuda, model.weight.grad.device, device, torch.ones(1).to(0).device, loss.get_device())
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    y = torch.ones(3, device=device) * 2
torch.cuda.synchronize()
event = torch.cuda.Event(enable_timing=True); event.record(); event.synchronize()
torch.cuda.manual_seed_all(3); a = torch.rand(3, device="cuda")
torch.cuda.manual_seed(3); b = torch.rand(3, device="cuda")
state = torch.cuda.get_rng_state(); c = torch.rand(2, device="cuda"); torch.cuda.set_rng_state(state)
same = torch.equal(a, b), torch.equal(c, torch.rand(2, device="cuda"))
print(y.sum().item(), *same, torch.cuda.memory_allocated() > 0)
properties = torch.cuda.get_device_properties(0)
print(properties.total_memory > 0, torch.cuda.mem_get_info()[1] > 0, torch.accelerator.current_accelerator())
with torch.cuda.device(0):
    print(torch.cuda.current_device(), repr(y), torch.device("opencl") == torch.device("cuda"))
torch.save(y, "/dev/null")
"""
    assert output(program, "--device", "opencl").splitlines() == [
        "cuda:0 True cuda:0 cuda cuda:0 0",
        "6.0 True True True",
        "True True cuda",
        "0 tensor([2., 2., 2.], device='cuda:0') True",
    ]


# ---- notebooks ----


def test_the_magic_of_notebooks() -> None:
    program = """
import tensorpy
class Shell:
    def register_magic_function(self, function, kind, name):
        self.magic = function; print(kind, name)
shell = Shell()
tensorpy.load_ipython_extension(shell)
try: shell.magic("nonsense")
except ValueError as error: print(error)
shell.magic("as_torch")
import torch
print(torch is tensorpy)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout.splitlines() == ["line tensorpy", "usage: %tensorpy as_torch [--device opencl]", "True"], (
        done.stderr
    )


# ---- where types say they are from ----


def test_types_are_of_torch() -> None:
    told = output(
        "import torch\n"
        "from torch import nn\n"
        "types = torch.Tensor, torch.dtype, torch.device, torch.Size, nn.Parameter, nn.Linear, torch.optim.SGD\n"
        "print([t.__module__ for t in types], torch.Tensor)\n"
        "import pickle\n"
        "print(pickle.loads(pickle.dumps(torch.Tensor)) is torch.Tensor, pickle.loads(pickle.dumps(nn.ReLU())))"
    )
    modules = ["torch"] * 4 + ["torch.nn.parameter", "torch.nn.modules.linear", "torch.optim.sgd"]
    assert told.splitlines() == [f"{modules} <class 'torch.Tensor'>", "True ReLU()"]
    assert tp.Tensor.__module__ == "tensorpy"


def test_functions_are_of_torch() -> None:
    """Each public function pickles by the home that it names, and what plain tensorpy says stays."""
    program = """
import importlib, pickle, types, torch
import torch._C._nn
from tensorpy._as_torch import names
gelu = torch._C._nn.gelu
print([f.__module__ for f in (torch.abs, torch.fft.fft, gelu, torch.einsum, torch.nn.functional.cross_entropy)])
print(torch.typename(torch.abs), [f.__module__ for f in (torch.is_storage, torch.nn.init.uniform_, torch.pca_lowrank)])
print(torch.Tensor.real.__qualname__, torch.Tensor.is_leaf.__qualname__, torch.Tensor.add.__qualname__)
kinds = (types.FunctionType, types.BuiltinFunctionType, type(torch.einsum))
seen = set()
homes = "torch", "torch.nn.functional", "torch.nn.init", "torch.fft", "torch.linalg", "torch.special", "torch.func"
for home in homes:
    for name in sorted(names.modules()[home]):
        f = getattr(importlib.import_module(home), name, None)
        if isinstance(f, kinds):
            assert f.__module__.startswith("torch") and pickle.loads(pickle.dumps(f)) is f, (home, name)
            seen.add(f)
print(len(seen) > 900)
"""
    first, second, third, fourth = output(program).splitlines()
    assert first == "['torch', 'torch._C._fft', 'torch._C._nn', 'torch.functional', 'torch.nn.functional']"
    assert second == "torch.abs ['torch', 'torch.nn.init', 'torch._lowrank']"
    assert third == "TensorBase.real TensorBase.is_leaf TensorBase.add" and fourth == "True"
    plain = [f.__module__ for f in (tp.abs, tp.fft.fft, tp.einsum, tp.nn.functional.cross_entropy)]
    assert plain == ["tensorpy._C", "tensorpy._C._fft", "tensorpy.functional", "tensorpy.nn._loss"]


def test_hints_of_classes_are_found() -> None:
    told = output(
        "import typing, torch\n"
        "class Net(torch.nn.Module):\n    size: int\n"
        "print(typing.get_type_hints(Net)['size'], 'training' in typing.get_type_hints(torch.nn.Linear))"
    )
    assert told == "<class 'int'> True"


def test_private_names_that_libraries_use() -> None:
    told = output(
        "import torch\n"
        "print(torch._C._nn._parse_to('cpu', torch.float64)[:2], isinstance(3, torch.SymInt),\n"
        "      torch._C._are_functorch_transforms_active(), torch.profiler.kineto_available())\n"
        "isinstance(3, torch._dynamo.eval_frame.OptimizedModule)\n"
        "torch._assert_async(torch.tensor(1))\n"
        "x = torch.ones(1)\nw = torch._C._WeakTensorRef(x)\nheld = w.expired()\ndel x\nprint(held, w.expired())\n"
        "try:\n    torch._assert_async(torch.tensor(0), 'zero')\nexcept RuntimeError as error:\n    print(error)"
    )
    assert told.splitlines() == ["(device(type='cpu'), torch.float64) False False False", "False True", "zero"]


def test_the_names_that_pytorchs_tests_of_transforms_import() -> None:
    told = output(
        "import torch, torch._C._functorch as functorch\n"
        "from torch._C._functorch import reshape_dim_into\n"
        "from torch._functorch.eager_transforms import _as_tuple\n"
        "from torch._functorch.vmap import restore_vmap\n"
        "print(_as_tuple(1), _as_tuple((1,)), reshape_dim_into(0, 0, torch.ones(2, 3)).shape)\n"
        "functorch._set_vmap_fallback_enabled(False)\ntorch._C._debug_only_display_vmap_fallback_warnings(True)\n"
        "print(torch._C._functorch._is_vmap_fallback_enabled(),\n"
        "      torch._C._debug_only_are_vmap_fallback_warnings_enabled(), functorch.is_batchedtensor(torch.ones(1)))"
    )
    assert told.splitlines() == ["(1,) (1,) torch.Size([6])", "False True False"]


def test_what_torch_distributed_has_in_c() -> None:
    told = output(
        "import json, torch\n"
        "from torch._C._distributed_c10d import AllreduceOptions, ProcessGroup, ReduceOp, _dump_fr_trace_json\n"
        "import torch._C._distributed_c10d as c\n"
        "print(ReduceOp is torch.distributed.ReduceOp, ProcessGroup is torch.distributed.ProcessGroup,\n"
        "      json.loads(_dump_fr_trace_json())['entries'], hasattr(c, 'Nothing'), c.Reducer.__name__)\n"
        "from torch._C._distributed_c10d import _SymmetricMemory\n"
        "print(isinstance(3, _SymmetricMemory))"
    )
    assert told.splitlines() == ["True True [] False Reducer", "False"]


def test_modules_of_torch_distributed_that_programs_import() -> None:
    told = output(
        "import torch.distributed as dist\n"
        "from torch.distributed.constants import default_pg_timeout\n"
        "from torch.distributed.rendezvous import rendezvous, register_rendezvous_handler\n"
        "from torch.distributed.utils import _sync_module_states, _verify_param_shape_across_processes\n"
        "from torch.distributed._tensor.device_mesh import init_device_mesh\n"
        "from torch.distributed.tensor.device_mesh import DeviceMesh\n"
        "from torch.distributed.tensor.parallel.loss import loss_parallel\n"
        "from torch.distributed.nn import ReduceOp, group\n"
        "from torch.distributed.distributed_c10d import _NCCL_AVAILABLE, _GLOO_AVAILABLE\n"
        "from torch._utils import _get_available_device_type, _get_device_module\n"
        "import torch\n"
        "print(default_pg_timeout, DeviceMesh is dist.DeviceMesh)\n"
        "print(_NCCL_AVAILABLE, _GLOO_AVAILABLE == dist.is_gloo_available())\n"
        "print(next(dist.rendezvous('file:///tmp/none?rank=0&world_size=1'))[1:], callable(rendezvous))\n"
        "print(_get_available_device_type(), _get_device_module('cpu') is torch.cpu)\n"
    )
    assert told.splitlines() == ["0:30:00 True", "False True", "(0, 1) True", "None True"]


def test_modules_of_multiprocessing_hide_no_function() -> None:
    """torch.multiprocessing.spawn is a module to import and a function to call; other names are Python's."""
    told = output(
        "import torch.multiprocessing as mp, multiprocessing\n"
        "from torch.multiprocessing.spawn import ProcessRaisedException\n"
        "import torch.multiprocessing.spawn, torch.multiprocessing.pool\n"
        "print(type(mp.spawn).__name__, ProcessRaisedException is mp.ProcessRaisedException,\n"
        "      mp.pool.Pool is multiprocessing.pool.Pool, mp.Process is multiprocessing.Process)"
    )
    assert told == "function True True True"


def test_tensors_are_no_arrays_of_numpy() -> None:
    told = output(
        "import torch, numpy\nx = torch.ones(2)\nprint(hasattr(x, '__array_interface__'), numpy.asarray(x) + 1)"
    )
    assert told == "False [2. 2.]"


def test_operators_of_private_names() -> None:
    told = output(
        "import torch\n"
        "print(torch._softmax(torch.zeros(2), 0, False).tolist(), torch._segment_reduce is torch.segment_reduce)\n"
        "print(torch._weight_norm.__name__, hasattr(torch, '_foreach_zero'), hasattr(torch, '_foreach_zero_'))\n"
        "print(hasattr(torch, '_operators'), hasattr(torch, '_no_such_name'))\n"
        "with torch.utils._mode_utils.no_dispatch(), torch._C._DisableFuncTorch():\n    print(torch.ones(1).item())\n"
        "print(torch.utils._mode_utils.all_same_mode([1, 1]), torch.utils._mode_utils.all_same_mode([1, 2]))"
    )
    assert told.splitlines() == [
        "[0.5, 0.5] True",
        "_weight_norm False True",
        "False False",
        "1.0",
        "True False",
    ]


def test_functions_that_are_called_like_their_modules_stay() -> None:
    told = output(
        "from torch.autograd import gradcheck\nfrom torch.fx.annotate import annotate\nprint(gradcheck, annotate)"
    )
    assert told.startswith("<function gradcheck") and "<function annotate" in told


def test_what_pytorchs_harness_asks_of_builds_and_storages() -> None:
    told = output(
        "import torch\nfrom functorch.einops import rearrange\nfrom functorch.einops._parsing import AnonymousAxis\n"
        "x, y = torch.ones(2), torch.ones(2, dtype=torch.complex64)\n"
        "print(torch._C.has_lapack, torch._C.has_spectral)\n"
        "print(torch._C._overlaps([y, x], x.view(1, 2)), torch._C._is_alias_of([], x), torch._C._overlaps(x, y))\n"
        "torch._C._set_conj(y, True)\ntorch._C._set_neg(x, True)\nprint(y.is_conj(), x.sum().item(), x.is_neg())\n"
        "torch._C._set_neg(x, False)\nprint(x.is_neg(), rearrange(x, 'a -> 1 a').shape)"
    )
    assert told.splitlines() == ["True True", "True False False", "True -2.0 True", "False torch.Size([1, 2])"]


def test_what_a_package_calls_by_the_name_of_a_part_stays() -> None:
    program = """
import torch
from torch._higher_order_ops.cond import cond
import torch._higher_order_ops.scan, torch.nn.utils.weight_norm
from functorch.experimental.control_flow import cond as same
print(cond is same, callable(torch._higher_order_ops.scan), callable(torch.nn.utils.weight_norm))
"""
    assert output(program) == "True True True"


def test_references_are_the_operators() -> None:
    """PyTorch's table of operators (op_db) names its references, and what they are compared with, as it is loaded."""
    folder = importlib.util.find_spec("torch")
    if folder is None or folder.origin is None:
        pytest.skip("PyTorch is not installed")
    table = Path(folder.origin).parent / "testing" / "_internal"
    named = set()
    for file in (table / "common_methods_invocations.py", *(table / "opinfo" / "definitions").glob("*.py")):
        named |= set(re.findall(r'"_refs\.([\w.]+)"', file.read_text()))
    assert len(named) > 300
    program = f"""
import torch, torch._refs.nn.functional, torch._refs.special, torch._refs.linalg, torch._prims as prims
from torch._vendor.packaging import version
missing = []
for name in {sorted(named)}:
    found = torch._refs
    try:
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)
    except AttributeError:
        missing.append(name)
assert not missing, missing
x = torch.ones(2, 3)
assert torch._refs.add is torch.add and torch._refs.T(x).shape == (3, 2)
assert torch._refs._conversions.half(x).dtype == torch.half
assert prims.utils.is_float_dtype(torch.half) and version.parse("1.10") > version.parse("1.9")
assert torch.backends.python_native.available_dsls == []
function = torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) {{ return x; }}", y=1)
try:
    function(x)
except RuntimeError as error:
    assert "only supported on CUDA" in str(error)
else:
    raise AssertionError
"""
    done = run("-c", program)
    assert done.returncode == 0, done.stderr
