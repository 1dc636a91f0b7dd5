"""The reference of Python modules, from their docstrings and signatures."""

from __future__ import annotations

import ast
import importlib
import inspect
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import tensorpy
from tensorpy import _C
from tensorpy._as_torch.names import modules
from tensorpy._package.absent import Absent, AbsentClass
from tensorpy._package.names import NAMES

from .names import Names, Page, escaped, mentioned

FOLDER = "reference/python"

# The sections of the reference and their modules, each a page. A module of nn.modules has its names in nn.
SECTIONS = {
    "Tensors": """
        tensorpy Tensor functional linalg fft special signal.windows masked sparse nested random quasirandom array_api
        array_api.linalg array_api.fft
    """,
    "Networks": """
        nn nn.modules.module nn.modules.container nn.modules.linear nn.modules.conv nn.modules.pooling
        nn.modules.padding nn.modules.activation nn.modules.normalization nn.modules.batchnorm
        nn.modules.instancenorm nn.modules.dropout nn.modules.rnn nn.modules.transformer nn.modules.sparse
        nn.modules.loss nn.modules.distance nn.modules.upsampling nn.modules.pixelshuffle nn.modules.fold
        nn.modules.flatten nn.modules.adaptive nn.modules.lazy nn.parameter nn.functional nn.init nn.attention
        nn.attention.flex_attention nn.grad nn.parallel nn.utils nn.utils.parametrize nn.utils.parametrizations
        nn.utils.prune nn.utils.rnn nn.utils.stateless ao.quantization ao.nn.quantized ao.nn.quantized.dynamic ao.nn.qat
    """,
    "Training": """
        optim optim.lr_scheduler optim.swa_utils amp utils.data utils.checkpoint utils.tensorboard distributions
        distributions.transforms distributions.constraints distributions.kl
    """,
    "Gradients and graphs": """
        autograd autograd.forward_ad autograd.functional autograd.graph autograd.profiler func export
        export.dynamic_shapes export.exported_program export.graph_signature fx
        fx.experimental.proxy_tensor fx.passes.shape_prop
    """,
    "Looking inside": """
        dispatch profiler monitor utils.viz utils.benchmark utils.flop_counter testing testing.device overrides
    """,
    "Devices and libraries": """
        opencl accelerator backends library ops utils.extension utils.cpp_extension utils.backend_registration
        cpu cuda mps mtia xpu
    """,
    "Many processes": """
        distributed distributed.device_mesh distributed.tensor distributed.tensor.parallel distributed.fsdp
        distributed.checkpoint distributed.checkpoint.state_dict distributed.optim distributed.algorithms.join
        distributed.algorithms.model_averaging.averagers distributed.algorithms.ddp_comm_hooks.default_hooks
        distributed.algorithms.ddp_comm_hooks.powerSGD_hook
    """,
    "Files and processes": """
        serialization storage multiprocessing futures utils.dlpack hub onnx jit compiler types utils.hooks
        version torch_version
    """,
}


def _full(module: str) -> str:
    return "tensorpy" if module == "tensorpy" else f"tensorpy.{module}"


def _names_of(module: ModuleType, public: str) -> list[str]:
    """`__all__`, or what is defined in the module itself; and what comes from modules without pages that PyTorch's
    module of that name has, too."""
    if public == "tensorpy":
        return [name for name in NAMES if not name.startswith("_")]
    listed = getattr(module, "__all__", None)
    known = modules().get(f"torch.{public}", frozenset[str]())
    own = [n for n, v in vars(module).items() if _is_own(v, public)]
    there = [n for n in own if n in known or (listed is None and _is_within(vars(module)[n], module))]
    return [name for name in dict.fromkeys((*(listed or ()), *there)) if not name.startswith("_")]


def _is_within(value: object, module: ModuleType) -> bool:
    home = getattr(value, "__module__", None) or ""
    return home == module.__name__ or home.startswith(f"{module.__name__}._")


def _is_own(value: object, public: str) -> bool:
    home = (getattr(value, "__module__", None) or "").removeprefix("tensorpy.")
    is_a_thing = inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, _C._overridable)
    pages = [page for listed in SECTIONS.values() for page in listed.split() if f"{home}.".startswith(f"{page}.")]
    return is_a_thing and max(pages, key=len, default="") == public


def _shown(annotation: Any) -> str:
    if annotation in (inspect.Parameter.empty, Any, "Any"):
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("tensorpy._C.", "").replace("_C.", "").replace("typing.", "")


def _default(value: object) -> str:
    text = value.__name__ if inspect.isclass(value) or inspect.isroutine(value) else repr(value)
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return "..."
    return text if len(text) < 60 else "..."


def _signature(value: Any) -> str:
    """As in the source, without `Any`; nothing where Python does not know it."""
    try:
        signature = inspect.signature(inspect.unwrap(value))  # in the words of the source
    except (TypeError, ValueError):
        return "(*args)"
    parts = list[str]()
    starred = slashed = False
    for p in signature.parameters.values():
        if p.name in ("self", "cls") and not parts:
            continue
        if slashed and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
        slashed = p.kind is p.POSITIONAL_ONLY
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
        stars = "*" * (p.kind is p.VAR_POSITIONAL) + "**" * (p.kind is p.VAR_KEYWORD)
        text = stars + p.name
        hint = _shown(p.annotation)
        text += f": {hint}" if hint else ""
        if p.default is not p.empty:
            text += f" = {_default(p.default)}" if hint else f"={_default(p.default)}"
        parts.append(text)
    result = _shown(signature.return_annotation)
    if slashed:
        parts.append("/")
    return f"({', '.join(parts)})" + (f" -> {result}" if result and not inspect.isclass(value) else "")


def _doc(value: object) -> str:
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return escaped(text.partition("Schemas:\n")[0]) if text else ""


def _members(cls: type) -> Iterator[tuple[str, str, str]]:
    """Methods and properties of a class's own that say what they are for: directive with name, and text."""
    for name, value in vars(cls).items():
        if name.startswith("_") and name not in ("__call__", "__getitem__"):
            continue
        raw = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(value, property) and value.__doc__:
            yield "py:property", name, _doc(value)
        elif inspect.isroutine(raw) and raw.__doc__:
            yield "py:method", f"{name}{_signature(raw)}", _doc(raw)


def _bases(cls: type) -> str:
    bases = [b for b in cls.__bases__ if b is not object and not b.__name__.startswith("_")]
    return ", ".join(f"`{_public(b)}`" for b in bases)


def _public(cls: type) -> str:
    home = cls.__module__.removeprefix("tensorpy.")
    if home.startswith("nn.modules"):
        home = "nn"
    return cls.__name__ if not cls.__module__.startswith("tensorpy") else f"tensorpy.{home}.{cls.__name__}"


def _last(full: str) -> str:
    return full.rpartition(".")[2]


def _class(full: str, cls: type, names: Names) -> str:
    lines = [f"::::{{py:class}} {_last(full)}{_signature(cls)}\n", _doc(cls) + "\n"]
    bases = _bases(cls)
    if bases:
        lines.append(f"- Of {bases}")
    lines.append(mentioned(full) + "\n")
    for directive, head, text in _members(cls):
        names.add(f"{full}.{head.partition('(')[0]}")
        lines.append(f":::{{{directive}}} {head}\n\n{text}\n\n:::\n")
    return "\n".join([*lines, "::::\n"])


def _function(full: str, value: object) -> str:
    return f":::{{py:function}} {_last(full)}{_signature(value)}\n\n{_doc(value)}\n\n{mentioned(full)}\n\n:::\n"


def _is_name_only(value: object) -> bool:
    """It raises when it is used."""
    return isinstance(value, type) and issubclass(value, (Absent, AbsentClass))


def _entries(prefix: str, module: ModuleType, found: list[str], names: Names) -> Iterator[str]:
    elsewhere = []
    for name in sorted(found, key=str.lower):
        value = getattr(module, name, None)
        full = f"{prefix}.{name}"
        if value is None or isinstance(value, ModuleType) or _is_name_only(value):
            continue
        if full in names.roles:
            elsewhere.append(full)
        elif inspect.isclass(value):
            names.add(full)
            yield f"## {escaped(name)}\n\n" + _class(full, value, names)
        elif callable(value):
            names.add(full)
            yield f"## {escaped(name)}\n\n" + _function(full, value)
    if elsewhere:
        listed = ", ".join(f"`{full.removeprefix('tensorpy.')}`" for full in elsewhere)
        yield f"## Elsewhere in the reference\n\n{listed}\n"


def _page(module: str, names: Names) -> Page:
    full = _full(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = importlib.import_module(full)
    families = module.startswith("nn.modules")
    prefix = "tensorpy.nn" if families or module == "nn.parameter" else full
    names.add(full)
    found = _names_of(value, module)
    if module == "nn":
        found = ["factory_kwargs"]
    about = _doc(value)
    title = f"tensorpy.nn: {about[:1].lower()}{about[1:].rstrip('.')}" if families else full
    head = f"# {title}\n\n:::{{py:module}} {full}\n:::\n\n"
    if prefix != full:
        head += f":::{{py:currentmodule}} {prefix}\n:::\n\n"
    text = "\n".join(_entries(prefix, value, found, names))
    return Page(f"{FOLDER}/{module}.md", head + ("" if families else about + "\n\n") + text)


def _tensor(names: Names) -> Page:
    """What Tensor has beside its operators' methods."""
    full = "tensorpy.Tensor"
    names.add(full)
    cls = tensorpy.Tensor
    lines = [
        "# tensorpy.Tensor\n",
        ":::{py:currentmodule} tensorpy\n:::\n",
        "::::{py:class} Tensor(data)\n",
        "An array of numbers of one dtype on one device, which may record the operators that made it.\n",
    ]
    for name in sorted(set(dir(cls))):
        value = inspect.getattr_static(cls, name)
        doc = inspect.cleandoc(getattr(value, "__doc__", None) or "").partition("Schemas:\n")[0].strip()
        if name.startswith("_") or not doc or not names.add(f"{full}.{name}"):
            continue
        kind = "method" if inspect.isroutine(value) else "property"
        head = f"{name}{_signature(value)}" if kind == "method" else name
        lines.append(f":::{{py:{kind}}} {head}\n\n{escaped(doc)}\n\n:::\n")
    lines.append("::::\n\nMethods that are operators are with the [operators](../operators.md).\n")
    return Page(f"{FOLDER}/Tensor.md", "\n".join(lines))


def pages(names: Names) -> list[Page]:
    found, parts = [], ["# Python modules\n"]
    for section, listed in SECTIONS.items():
        modules = listed.split()
        found += [_tensor(names) if module == "Tensor" else _page(module, names) for module in modules]
        tree = "\n".join(f"/{FOLDER}/{module}" for module in modules)
        parts.append(f"## {section}\n\n```{{toctree}}\n:maxdepth: 1\n\n{tree}\n```\n")
    return [*found, Page(f"{FOLDER}.md", "\n".join(parts))]
