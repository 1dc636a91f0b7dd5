"""Modules of PyTorch's that programs use though their names begin with an underscore, and switches without effect."""

from __future__ import annotations

import importlib
import inspect
import itertools
import operator
import os
import pickle
import pkgutil
import subprocess
import sys
from typing import Any

import pytest

import tensorpy as tp
from tensorpy import _linalg_utils as lu
from tensorpy import _prims_common as prims
from tensorpy.utils._config_module import Group


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__


# ---- dim_order ----

FORMS = [
    "t.ones(2, 3, 4, 5)",
    "t.ones(2, 3, 4, 5).to(memory_format=t.channels_last)",
    "t.ones(2, 3, 4, 5, 6).to(memory_format=t.channels_last_3d)",
    "t.ones(2, 3).t()",
    "t.ones(2, 1, 3).transpose(0, 2)",
    "t.ones(2, 1, 1, 5)",
    "t.ones(1, 3).expand(4, 3)",
    "t.ones(())",
    "t.ones(2, 3, 4).permute(2, 0, 1)",
]


@pytest.mark.parametrize("form", FORMS)
def test_dim_order_is_pytorchs(form: str) -> None:
    torch = pytest.importorskip("torch")
    for words in ("False", "True", "[t.contiguous_format, t.channels_last]", "3"):
        ours, theirs = (outcome(eval, f"{form}.dim_order(ambiguity_check={words})", {"t": t}) for t in (tp, torch))
        assert ours == theirs, words


def test_dim_order() -> None:
    x = tp.ones(2, 3, 4, 5)
    assert x.dim_order() == (0, 1, 2, 3)
    assert x.to(memory_format=tp.channels_last).dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="unique dim order"):
        tp.ones(1, 3).expand(4, 3).dim_order(ambiguity_check=True)


# ---- _prims_common ----

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (4, 1, 5)]


def test_strides_without_gaps() -> None:
    for shape in SHAPES:
        assert prims.make_contiguous_strides_for(shape) == tp.empty(shape).stride()
    assert prims.make_contiguous_strides_for((2, 3, 4), row_major=False) == (12, 1, 3)


def test_dtypes_and_dimensions_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    from torch import _prims_common as theirs

    for shape, row_major in itertools.product(SHAPES, (True, False)):
        assert prims.make_contiguous_strides_for(shape, row_major) == theirs.make_contiguous_strides_for(
            shape, row_major
        )
    for rank, dim, wrap in itertools.product(range(4), range(-4, 4), (True, False)):
        ours, wanted = (outcome(m.canonicalize_dim, rank, dim, wrap) for m in (prims, theirs))
        assert ours == wanted, (rank, dim, wrap)
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        ours, wanted = getattr(tp, name), getattr(torch, name)
        for question in ("is_boolean_dtype", "is_integer_dtype", "is_float_dtype", "is_complex_dtype", "is_grad_dtype"):
            assert getattr(prims, question)(ours) == getattr(theirs, question)(wanted), (question, name)
        assert prims.dtype_to_type(ours) is theirs.dtype_to_type(wanted)
    for kind in (bool, int, float, complex):
        assert str(prims.type_to_dtype(kind)).split(".")[1] == str(theirs.type_to_dtype(kind)).split(".")[1]


def test_what_tensors_say_is_compared_as_pytorch_does() -> None:
    torch = pytest.importorskip("torch")
    from torch import _prims_common as theirs

    def made(m: Any) -> list[Any]:
        complexes = m.ones(2, dtype=m.complex64)
        shapes = ((2, 3), (1, 3), (0, 3), (2, 1, 4, 4), (2, 3, 4, 4), (2, 3, 2, 4, 4), ())
        dense = [m.ones(shape) for shape in shapes]
        wide = [m.ones(2, 3, 4, 4).to(memory_format=m.channels_last)]
        wide += [m.ones(2, 3, 2, 4, 4).to(memory_format=m.channels_last_3d)]
        turned = [m.ones(3, 2).t(), m.ones(3, 1).t(), m.ones(3, 0).t(), m.ones(2, 3)._neg_view()]
        return [*dense, *wide, *turned, m.ones(2, 3, dtype=m.float64), m.ones(2, 3, device="meta"), complexes,
                complexes.conj(), 3]  # fmt: skip

    def message(function: Any, *args: Any, **options: Any) -> str:
        try:
            return str(function(*args, **options))
        except Exception as error:
            return f"{type(error).__name__}: {error}".replace("tensorpy", "torch")

    pairs = list(zip(made(tp), made(torch), strict=True))
    for (a, wanted_a), (b, wanted_b) in itertools.product(pairs, pairs):
        for check in ({}, {"check_strides": True}, {"check_sizes": False}, {"check_conj": False}):
            wanted = message(theirs.compare_tensor_meta, wanted_a, wanted_b, **check)
            assert message(prims.compare_tensor_meta, a, b, **check) == wanted, (a, b, check)
        if isinstance(a, tp.Tensor) and isinstance(b, tp.Tensor) and a.shape == b.shape:
            for name, cuda in itertools.product(("check_significant_strides", "check_all_strides"), (True, False)):
                ours, wanted = getattr(prims, name), getattr(theirs, name)
                assert ours(a, b, only_cuda=cuda) == wanted(wanted_a, wanted_b, only_cuda=cuda), (name, a, b)
    for ours, wanted in pairs[:-1]:
        found, expected = prims.suggest_memory_format(ours), theirs.suggest_memory_format(wanted)
        assert str(found).split(".")[1] == str(expected).split(".")[1]


# ---- _linalg_utils ----


def test_forms_of_matrices() -> None:
    a, x, y = tp.randn(4, 4), tp.randn(4, 2), tp.randn(4, 3)
    assert tp.allclose(lu.bform(x, a, y), x.mT @ a @ y, atol=1e-5)
    assert tp.allclose(lu.qform(None, x), x.mT @ x, atol=1e-5)
    q = lu.basis(x)
    assert q.shape == (4, 2) and tp.allclose(q.mT @ q, tp.eye(2), atol=1e-5)
    assert lu.matmul(None, x) is x
    assert lu.get_floating_dtype(tp.ones(2, dtype=tp.int64)) == tp.float32
    assert lu.get_floating_dtype(tp.ones(2, dtype=tp.float64)) == tp.float64
    assert not lu.is_sparse(a) and lu.is_sparse(a.to_sparse())
    assert tp.allclose(lu.matmul(a.to_sparse(), x), a @ x, atol=1e-5)


@pytest.mark.parametrize("name", ["symeig", "matrix_rank", "eig", "solve", "lstsq"])
def test_functions_that_are_gone_name_what_is_there(name: str) -> None:
    arguments = (tp.eye(2),) * (2 if name in ("solve", "lstsq") else 1)
    with pytest.raises(RuntimeError, match=r"removed.*torch.linalg"):
        getattr(lu, name)(*arguments)


# ---- switches ----


def test_flags_of_mkldnn() -> None:
    mkldnn = tp.backends.mkldnn
    before = mkldnn.enabled, mkldnn.deterministic, mkldnn.allow_tf32, mkldnn.fp32_precision
    with mkldnn.flags(enabled=False, deterministic=True):
        assert (mkldnn.enabled, mkldnn.deterministic) == (False, True)
        with mkldnn.flags(enabled=True):
            assert mkldnn.enabled
        assert not mkldnn.enabled
    assert before == (mkldnn.enabled, mkldnn.deterministic, mkldnn.allow_tf32, mkldnn.fp32_precision)
    with pytest.raises(ZeroDivisionError), mkldnn.flags(enabled=False):
        1 / 0  # noqa: B018
    assert before == (mkldnn.enabled, mkldnn.deterministic, mkldnn.allow_tf32, mkldnn.fp32_precision)


# ---- what programs set of the code generator, and take from layers ----


def test_settings_of_the_code_generator() -> None:
    from tensorpy._inductor import config
    from tensorpy._inductor.utils import fresh_inductor_cache

    with config.patch({"triton.cudagraphs": True}, epilogue_fusion=False), fresh_inductor_cache():
        assert config.triton.cudagraphs and not config.epilogue_fusion
    assert not config.triton.cudagraphs and config.epilogue_fusion
    x = tp.arange(4.0)
    assert tp._inductor.compile(tp.fx.symbolic_trace(lambda x: x * 2), [x])(x).equal(x * 2)
    for mode in tp._inductor.list_mode_options():
        assert tp.compile(lambda x: x * 2, options=tp._inductor.list_mode_options(mode))(x).equal(x * 2), mode
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        tp._inductor.list_mode_options("fast")
    with pytest.raises(RuntimeError, match="Unexpected type of attr max_autotune, got str, expected bool"):
        tp.compile(tp.neg, options={"max_autotune": "yes"})
    assert not tp._dynamo.utils.is_compile_supported("nothing") and tp._dynamo.utils.is_compile_supported("cpu")


SETTINGS = """
import importlib, operator, pickle, sys
import torch

found = {}
for module in ("_inductor", "_functorch", "_dynamo"):
    config = importlib.import_module(f"torch.{module}.config")
    found[module] = {whole: operator.attrgetter(whole)(config) for whole in config._config}
modes = torch._inductor.list_mode_options()
sys.stdout.buffer.write(pickle.dumps((found, modes)))
"""


@pytest.fixture(scope="module")
def settings() -> Any:
    """PyTorch's settings and modes in a process that changed none, and not those for its own CI."""
    pytest.importorskip("torch")
    plain = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run([sys.executable, "-c", SETTINGS], capture_output=True, timeout=300, env=plain)
    assert done.returncode == 0, done.stderr
    return pickle.loads(done.stdout)


def test_settings_are_pytorchs(settings: Any) -> None:
    from tensorpy._inductor import config

    found, modes = settings
    assert {k: v for k, v in modes.items() if k in config.MODES} == config.MODES
    for ours, name in ((config, "_inductor"), (tp._dynamo.config, "_dynamo")):
        plain = {k: v for k, v in vars(ours).items() if isinstance(v, (bool, int)) and k not in ("compile_threads",)}
        assert len(plain) > 15
        for setting, value in plain.items():
            assert found[name][setting] == value, setting


@pytest.mark.parametrize("name", ["_inductor", "_functorch"])
def test_names_of_settings_are_pytorchs(name: str, settings: Any) -> None:
    """Those of its private names are its own, as is what it says of the machine."""
    ours = importlib.import_module(f"tensorpy.{name}.config")
    theirs = {n: v for n, v in settings[0][name].items() if "_" not in (n[0], n.rpartition(".")[2][0])}
    assert len(theirs) > 50
    for whole, value in theirs.items():
        if whole != "TYPE_CHECKING" and "compile_threads" not in whole and "cutlass_dir" not in whole:
            assert operator.attrgetter(whole)(ours) == value, whole


@pytest.mark.parametrize("module", ["_inductor", "_functorch", "_dynamo", "compiler", "utils.serialization"])
def test_settings_that_are_not_there_are_errors(module: str) -> None:
    config = importlib.import_module(f"tensorpy.{module}.config")
    groups = [g for g in vars(config).values() if isinstance(g, Group)]
    assert len(groups) == {"_inductor": 18, "utils.serialization": 2}.get(module, 0)
    for place in (config, *groups):
        for use in (lambda p: p.nothing, lambda p: setattr(p, "nothing", 1)):
            with pytest.raises(AttributeError, match=rf"{place.__name__}\.nothing does not exist"):
                use(place)
    with pytest.raises(AttributeError), config.patch(nothing=1):
        pass


def test_compile_takes_any_setting() -> None:
    options = {"max_autotune_gemm_backends": "ATEN", "triton.cudagraph_skip_dynamic_graphs": True}
    assert tp.compile(tp.neg, options=options)(tp.ones(1)).item() == -1
    assert set(options) < set(tp._inductor.list_options())


def test_errors_of_the_code_generator() -> None:
    torch = pytest.importorskip("torch")
    from tensorpy._inductor import exc

    theirs = importlib.import_module(f"{torch.__name__}._inductor.exc")
    for name in exc.__all__:
        bases = [{c.__name__ for c in getattr(e, name).__mro__} for e in (exc, theirs)]
        assert bases[0] == bases[1] - {"ShortenTraceback"}, name


def test_backends_of_forward_and_backward() -> None:
    from tensorpy._dynamo.backends.common import aot_autograd, device_from_inputs
    from tensorpy._inductor.compile_fx import compile_fx

    graphs = []

    def kept(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    for backend in (aot_autograd(fw_compiler=kept, bw_compiler=kept), compile_fx):
        x = tp.randn(5, requires_grad=True)
        tp.compile(lambda x: (x.sin() * 2).sum(), backend=backend)(x).backward()
        assert x.grad is not None and tp.allclose(x.grad, x.detach().cos() * 2)
    assert len(graphs) == 2
    assert device_from_inputs([3, tp.ones(1, device="meta")]) == tp.device("meta")


def test_masks_and_projections_of_attention() -> None:
    torch = pytest.importorskip("torch")
    import torch.nn.functional as G

    import tensorpy.nn.functional as F

    q, w, b = (tp.randn(*s) for s in ((5, 2, 8), (24, 8), (24,)))
    hidden = tp.ones(5, 5, dtype=tp.bool).triu(1)
    tq, tw, tb, th = (torch.from_numpy(t.numpy()) for t in (q, w, b, hidden))
    ours, theirs = F._in_projection_packed(q, q, q + 1, w, b), G._in_projection_packed(tq, tq, tq + 1, tw, tb)
    ours += F._in_projection(q, q, q, *w.chunk(3), *b.chunk(3))
    theirs += G._in_projection(tq, tq, tq, *tw.chunk(3), *tb.chunk(3))
    for one, other in zip(ours, theirs, strict=True):
        assert tp.allclose(one, tp.from_numpy(other.numpy()), atol=1e-5)
    ours = F._canonical_mask(hidden, "mask", None, "other", q.dtype)
    assert ours.tolist() == G._canonical_mask(th, "mask", None, "other", tq.dtype).tolist()
    assert F._none_or_dtype(None) is None and F._none_or_dtype(q) is tp.float32
    with pytest.warns(UserWarning, match="mask and other"):
        F._canonical_mask(hidden, "mask", tp.float32, "other", q.dtype)


def test_options_of_printing_are_one_object() -> None:
    from tensorpy import _tensor_str

    x = tp.tensor([1.23456])
    with tp.printoptions(precision=2):
        assert _tensor_str.PRINT_OPTS.precision == 2
        _tensor_str.PRINT_OPTS.precision = 1
        assert str(x) == "tensor([1.2])"
    assert _tensor_str.PRINT_OPTS.precision == 4 and str(x) == "tensor([1.2346])"
    assert _tensor_str._tensor_str(x, 0) == "[1.2346]" and _tensor_str._str_intern(x) == str(x)
    assert _tensor_str._add_suffixes("tensor([1.]", ["dtype=x"], 7, True) == "tensor([1.],\n       dtype=x)"


def test_compilers_public_names() -> None:
    torch = pytest.importorskip("torch")
    import torch._dynamo.exc as theirs

    import tensorpy.compiler.config as config

    assert [name for name in torch.compiler.__all__ if not hasattr(tp.compiler, name)] == []
    for name, value in vars(config).items():
        if isinstance(value, (bool, int, str)) and not name.startswith("_"):
            assert getattr(torch.compiler.config, name) == value, name
    for name in config._ALIASES:
        assert hasattr(torch.compiler.config, name) and hasattr(config, name), name
    ours = tp._dynamo.exc
    for name in ours.__all__:
        if hasattr(theirs, name):
            bases = {base.__name__ for base in getattr(theirs, name).__mro__ if hasattr(ours, base.__name__)}
            assert {base.__name__ for base in getattr(ours, name).__mro__} >= bases, name


OPERANDS = (
    "t.ones(2, dtype=t.{})",
    "t.tensor(1, dtype=t.{})",
)
NUMBERS = ("2", "2.5", "True", "2j", "None")
OF_OPERANDS = "bool uint8 int64 float16 bfloat16 float32 float64 complex64".split()


@pytest.mark.parametrize("kind", prims.ELEMENTWISE_TYPE_PROMOTION_KIND, ids=lambda kind: kind.name)
def test_dtypes_of_pointwise_operators_are_pytorchs(kind: Any) -> None:
    torch = pytest.importorskip("torch")
    theirs = importlib.import_module("torch._prims_common")
    forms = [form.format(dtype) for form in OPERANDS for dtype in OF_OPERANDS] + list(NUMBERS)
    for pair in itertools.product(forms, forms):
        found = []
        for library, module in ((tp, prims), (torch, theirs)):
            operands = [eval(form, {"t": library}) for form in pair]
            which = getattr(module.ELEMENTWISE_TYPE_PROMOTION_KIND, kind.name)
            try:
                dtypes = module.elementwise_dtypes(*operands, type_promotion_kind=which)
            except (RuntimeError, ValueError):
                dtypes = ()
            found.append([str(dtype).rpartition(".")[2] for dtype in dtypes])
        assert found[0] == found[1], pair


# ---- the arguments of private functions ----


def private_functions(module: Any) -> dict[str, Any]:
    """Those that another package may take from a module, and the constructors of its private classes."""
    found = {n: v for n, v in vars(module).items() if n[:1] == "_" != n[1:2] and inspect.isfunction(v)}
    for name, value in vars(module).items():
        if name[:1] == "_" != name[1:2] and inspect.isclass(value) and "__init__" in vars(value):
            found[f"{name}.__init__"] = value.__init__
    return found


@pytest.mark.parametrize(
    "part", ["_functorch", "_tensor_str", "_utils", "autograd", "distributions", "fx", "nn", "serialization", "utils"]
)
def test_private_functions_take_arguments_by_pytorchs_names(part: str) -> None:
    """In its order, as far as they go; what is gathered by * or ** has no names."""
    torch = pytest.importorskip("torch")
    home, compared = importlib.import_module(f"tensorpy.{part}"), 0
    below = pkgutil.walk_packages(getattr(home, "__path__", []), f"{home.__name__}.")
    for name in [home.__name__, *(found.name for found in below)]:
        try:
            theirs = private_functions(importlib.import_module(name.replace("tensorpy", "torch", 1)))
        except ImportError:
            continue
        for function, ours in private_functions(importlib.import_module(name)).items():
            if function not in theirs:
                continue
            wanted = list(inspect.signature(theirs[function]).parameters)
            given = inspect.signature(ours).parameters.values()
            named = [
                p.name for p in itertools.takewhile(lambda p: p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD), given)
            ]
            assert named == wanted[: len(named)], f"{name}.{function}"
            compared += 1
    assert compared or part == "_tensor_str", torch.__version__
