"""What becomes of the keys of PyTorch's grammar (docs/dispatcher.md has a table), asked of a library that says them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import tensorpy as tp
from codegen import __main__ as generator
from codegen.errors import ErrorCollector
from codegen.loader import _FunctionReader
from codegen.model import NativeFunction
from tensorpy import ops
from tensorpy.utils.extension import generate, load

ROOT = Path(__file__).resolve().parent.parent.parent

YAML = """
- func: ramp(Tensor self, int dim) -> Tensor
  structured_delegate: ramp.out
  category_override: dummy
  cpp_no_default_args: [dim]
- func: ramp.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  precomputed:
  - dim -> int dim
  device_guard: True
  use_const_ref_for_mutable_tensors: True
  ufunc_inner_loop:
    Generic: ramp (AllAndComplex)
  dispatch:
    CPU: ramp_cpu
- func: by_hand(Tensor self) -> Tensor
  manual_kernel_registration: True
  dispatch:
    CPU: is_not_defined
- func: both(Tensor self) -> Tensor
  dispatch:
    CPU: both_cpu
    MPS: both_mps
    CompositeImplicitAutograd: both_composite
- func: keyed(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: keyed_explicit
- func: only_keyed(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: keyed_explicit
- func: partly(Tensor self) -> Tensor
  structured_delegate: partly.out
  dispatch:
    CompositeExplicitAutograd: keyed_explicit
- func: partly.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: partly_cpu
"""
DERIVATIVES = """
- name: keyed(Tensor self) -> Tensor
  dispatch:
    Default:
      self: grad * 2
    AutogradMeta:
      self: grad.unsqueeze(0).squeeze(0) * result.exp()
    AutogradCPU:
      self: grad * 5 * self
    AutogradCUDA:
      self: grad * 7
- name: only_keyed(Tensor self) -> Tensor
  dispatch:
    AutogradMeta:
      self: grad * 3
"""
KERNELS = """
#include "grammar_keys_kernels.h"

TENSORPY_HANDLE(tp_tensor *, call_add, "aten::add.Tensor", (tp_tensor *, self), (tp_tensor *, other),
                (const tp_scalar *, alpha))
TENSORPY_HANDLE(tp_tensor *, call_neg, "aten::neg", (tp_tensor *, self))

static int same(tp_meta *m, tp_tensor *self) {
    return tp_meta_output(m, 0, tp_sizes(self), TP_NO_INTS, tp_dtype_of(self), tp_device_of(self));
}
static int fill(tp_tensor *out, double by) {
    double *p = tp_view_of(out).data;
    for (int64_t i = 0; i < tp_numel_of(out); i++) p[i] = by * (double)i;
    return 0;
}
int ramp_meta(tp_meta *m, tp_tensor *self, int64_t dim) { return same(m, self); }
int ramp_cpu(tp_tensor *self, int64_t dim, tp_tensor *out) { return fill(out, (double)dim); }
int partly_meta(tp_meta *m, tp_tensor *self) { return same(m, self); }
int partly_cpu(tp_tensor *self, tp_tensor *out) { return fill(out, 10); }
tp_tensor *both_cpu(tp_tensor *self) { return call_neg(self); }
tp_tensor *both_composite(tp_tensor *self) { return call_add(self, self, TP_SCALAR_I(1)); }
tp_tensor *keyed_explicit(tp_tensor *self) { return call_add(self, self, TP_SCALAR_I(1)); }
TENSORPY_KERNEL(tp_tensor *, registered_by_hand, (tp_tensor *, self)) { return call_neg(self); }
TENSORPY_LIBRARY_IMPL(grammar_keys, CPU, m) { return tp_impl(m, "by_hand", registered_by_hand); }
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("grammar_keys")
    yaml, out = folder / "yaml", folder / "out"
    yaml.mkdir()
    (yaml / "native_functions.yaml").write_text(YAML)
    (yaml / "derivatives.yaml").write_text(DERIVATIVES)
    (folder / "kernels.c").write_text(KERNELS)
    sources = generate("grammar_keys", yaml, out)
    path = load("grammar_keys", [*sources, folder / "kernels.c"], extra_cflags=[f"-I{out}"], build_directory=folder)
    yield ops.grammar_keys
    ops.unload_library(path)


def leaf(device: str = "cpu") -> tp.Tensor:
    return tp.tensor([1.0, 2.0, 3.0], dtype=tp.float64, device=device, requires_grad=True)


def test_keys_that_make_nothing_change_nothing(mine: Any) -> None:
    assert mine.ramp(leaf().detach(), 2).tolist() == [0.0, 2.0, 4.0]
    assert mine.ramp(tp.ones(3, device="meta"), 2).shape == (3,)


def test_a_kernel_that_is_registered_by_hand(mine: Any) -> None:
    """The generator registers none, nor declares the C function that the entry names."""
    assert mine.by_hand(leaf().detach()).tolist() == [-1.0, -2.0, -3.0]
    (entry,) = [e for e in tp.dispatch.table("grammar_keys::by_hand") if e.key == "CPU"]
    assert "registered_by_hand" in str(entry.source)


def test_a_composite_that_a_backend_has_a_kernel_of_its_own_for(mine: Any) -> None:
    """There it runs, and has no gradient; elsewhere the parts are differentiated."""
    x = leaf()
    y = mine.both(x)
    assert y.tolist() == [-1.0, -2.0, -3.0]
    with pytest.raises(RuntimeError, match="grammar_keys::both"):
        y.sum().backward()
    there = leaf("meta")
    result = mine.both(there)
    assert "Add" in str(result.grad_fn)
    if tp.opencl.is_available():
        z = leaf("opencl")
        assert mine.both(z).tolist() == [2.0, 4.0, 6.0]
        mine.both(z).sum().backward()
        assert z.grad is not None and z.grad.tolist() == [2.0, 2.0, 2.0]


def test_gradients_of_an_autograd_key(mine: Any) -> None:
    """A key's own formula holds for its backend, Default's for the others."""
    x = leaf()
    mine.keyed(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [5.0, 10.0, 15.0]
    assert "KeyedBackwardAutogradCPU0" in str(mine.keyed(x).grad_fn)
    assert "KeyedBackwardAutogradMeta0" in str(mine.keyed(leaf("meta")).grad_fn)
    if tp.opencl.is_available():
        z = leaf("opencl")
        mine.keyed(z).sum().backward()
        assert z.grad is not None and z.grad.tolist() == [2.0, 2.0, 2.0]
        assert "KeyedBackward0" in str(mine.keyed(z).grad_fn)


def test_a_key_alone_has_a_gradient(mine: Any) -> None:
    assert "OnlyKeyedBackwardAutogradMeta0" in str(mine.only_keyed(leaf("meta")).grad_fn)
    with pytest.raises(RuntimeError, match="only_keyed"):
        mine.only_keyed(leaf()).sum().backward()


def test_a_delegate_with_a_composite_for_other_backends(mine: Any) -> None:
    x = leaf().detach()
    assert mine.partly(x).tolist() == [0.0, 10.0, 20.0]
    if tp.opencl.is_available():
        assert mine.partly(x.to("opencl")).tolist() == [2.0, 4.0, 6.0]


def test_the_page_names_every_key() -> None:
    """Each key that the loader reads is in the model, and has a row of the table."""
    text = (ROOT / "docs" / "dispatcher.md").read_text()
    rows = set(re.findall(r"`(\w+)", "".join(re.findall(r"^\| ([^|]+) \|", text, flags=re.M))))
    known = {f.name for f in fields(NativeFunction)}
    for key in _FunctionReader(_document(), None).readers:
        assert key in known and key in rows, key


def _document() -> Any:
    from codegen.loader import Document

    return Document("a: b\n", ErrorCollector())


TREE = """
- func: f(Tensor self) -> Tensor
  dispatch:
    Dense: f_dense
- func: g(Tensor self) -> Tensor
  dispatch:
    CPU: g_cpu
    CompositeImplicitAutograd: g_composite
"""
TREE_DERIVATIVES = """
- name: f(Tensor self) -> Tensor
  dispatch:
    Default:
      self: f(grad)
    AutogradCPU:
      self: f(f(grad))
"""


def test_autograd_keys_of_the_tree(tmp_path: Path) -> None:
    """The C of a family with both: a node and a kernel for the key, registered there; it compiles."""
    shutil.copy(ROOT / "yaml" / "tags.yaml", tmp_path / "tags.yaml")
    (tmp_path / "native_functions").mkdir()
    (tmp_path / "derivatives").mkdir()
    (tmp_path / "native_functions" / "mine.yaml").write_text(TREE)
    (tmp_path / "derivatives" / "mine.yaml").write_text(TREE_DERIVATIVES)
    (tmp_path / "primitives.yaml").write_text("[]\n")
    files = generator.generate(generator.load_catalog(tmp_path))
    text = files["ops/mine.c"]
    registered = {
        key: set(re.findall(r"autograd_\w+", body))
        for key, body in re.findall(r"kernels_(Autograd\w*)\[\] = \{\n(.*?)\};", text, flags=re.S)
    }
    assert registered["Autograd"] == {"autograd_f"}
    assert registered["AutogradCPU"] == {"autograd_f_AutogradCPU", "autograd_g"}
    assert "FBackwardAutogradCPU0" in text
    generator.write_changed(tmp_path / "gen", files)
    compiler = shlex.split(os.environ.get("CC", "cc"))
    includes = [f"-I{ROOT / 'csrc'}", f"-I{ROOT / 'csrc' / 'include'}", f"-I{tmp_path / 'gen'}"]
    command = [*compiler, "-std=gnu11", "-fsyntax-only", *includes, str(tmp_path / "gen" / "ops" / "mine.c")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
