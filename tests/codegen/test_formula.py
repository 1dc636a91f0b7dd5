"""Formulas: what they lower to, what they refuse, what they need of their variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.autograd_nodes import check_gradients_given, nodes_of
from codegen.catalog import Catalog, build_catalog, every_formula
from codegen.emit_formula import emit_composite
from codegen.emit_functions import Kernels
from codegen.emit_inplace_or_view import emit_inplace_or_view
from codegen.emit_nodes import emit_nodes
from codegen.emit_variable_type import emit_variable_type
from codegen.errors import Location, YamlError, YamlErrors
from codegen.formula import Result, Slot, Variable, schema_variables, used
from codegen.formula_lower import Lowered
from codegen.loader import load_derivatives, load_native_functions

OPERATORS = """
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  dispatch: {CPU: add_cpu}
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  dispatch: {CPU: adds_cpu}
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  dispatch: {CPU: add__cpu}
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  dispatch: {CPU: add_out_cpu}
- func: rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  dispatch: {CPU: rsub_cpu}
- func: mul.Tensor(Tensor self, Tensor other) -> Tensor
  dispatch: {CPU: mul_cpu}
- func: mul.Scalar(Tensor self, Scalar other) -> Tensor
  dispatch: {CPU: muls_cpu}
- func: mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
  dispatch: {CPU: mul__cpu}
- func: neg(Tensor self) -> Tensor
  dispatch: {CPU: neg_cpu}
- func: conj_physical(Tensor self) -> Tensor
- func: exp(Tensor self) -> Tensor
  dispatch: {CPU: exp_cpu}
- func: reciprocal(Tensor self) -> Tensor
  dispatch: {CPU: reciprocal_cpu}
- func: gt.Scalar(Tensor self, Scalar other) -> Tensor
  dispatch: {CPU: gt_cpu}
- func: where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
  dispatch: {CPU: where_cpu}
- func: zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor
  dispatch: {CPU: zeros_like_cpu}
- func: clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
  dispatch: {CPU: clone_cpu}
- func: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
  dispatch: {CPU: expand_cpu}
- func: reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)
- func: sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
  dispatch: {CPU: sum_cpu}
- func: sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
  dispatch: {CPU: sumd_cpu}
- func: max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
  dispatch: {CPU: maxd_cpu}
- func: scaled(Tensor self, Tensor? weight, *, str mode='mean', int? dim=None) -> (Tensor, Tensor, Tensor)
  dispatch: {CPU: scaled_cpu}
- func: scaled_backward(Tensor grad, Tensor self, bool[2] output_mask) -> (Tensor, Tensor)
  dispatch: {CPU: scaled_backward_cpu}
- func: cat(Tensor[] tensors, int dim=0) -> Tensor
  dispatch: {CPU: cat_cpu}
- func: split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
  dispatch: {CPU: split_cpu}
- func: equal(Tensor self, Tensor other) -> bool
  dispatch: {CPU: equal_cpu}
- func: frob(Tensor self) -> Tensor
  dispatch: {CPU: frob_cpu}
- func: far::send(Tensor self, str mode) -> Tensor
  dispatch: {CPU: send_cpu}
"""

HERE = Location("derivatives.yaml", 7)

VARIABLES = {
    "grad": Variable("Tensor", "grads[0]"),
    "self": Variable("Tensor", "self"),
    "other": Variable("Tensor", "other"),
    "weight": Variable("Tensor?", "weight"),
    "alpha": Variable("Scalar", "alpha"),
    "dim": Variable("int", "dim"),
    "size": Variable("int[]", "size"),
    "end": Variable("int?", "end"),
    "keepdim": Variable("bool", "keepdim"),
    "mode": Variable("str", "mode"),
    "tensors": Variable("Tensor[]", "tensors"),
    "shapeless": Variable("Tensor", "", {"sizes": "node->shapeless_sizes", "dtype": "node->shapeless_dtype"}),
    "mask": Variable("bool[]", "mask", length=2),
}
GRADIENT = Result.of_slots([Slot("out[0]")])


def catalog_of(operators: str = OPERATORS, derivatives: str = "") -> Catalog:
    functions = load_native_functions(operators, None)
    entries = load_derivatives(derivatives, functions) if derivatives else []
    return build_catalog(functions, entries, [], {})


CATALOG = catalog_of()


def lower(text: str, result: Result = GRADIENT) -> str:
    return "\n".join(Lowered(VARIABLES, text, result, CATALOG, HERE).lines)


def calls(text: str) -> list[str]:
    """The operators that a text calls, in order."""
    names = {op.c for op in CATALOG}
    return [name for name in re.findall(r"\btp_(\w+)\(", text) if name in names]


# ---- lowering ----


def test_every_temporary_is_owned_and_checked() -> None:
    text = lower("grad * other.exp() + self")
    assert calls(text) == ["exp", "mul_Tensor", "add_Tensor"]
    made = re.findall(r"tp_autoref \*(t\d+) = tp_\w+\(", text)
    assert len(made) == 3
    for name in made:
        assert f"if (!{name}) return -1;" in text
    assert text.endswith(f"out[0] = tp_take({made[-1]});\nreturn 0;")


def test_a_variable_is_retained() -> None:
    assert "out[0] = tp_retain(grads[0]);" in lower("grad")


def test_no_gradient() -> None:
    assert lower("undefined()") == lower("None") == "return 0;"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self * 2", ["mul_Scalar"]),
        ("2 * self", ["mul_Scalar"]),
        ("self * other", ["mul_Tensor"]),
        ("1 - self", ["rsub_Scalar"]),
        ("2 / self", ["reciprocal", "mul_Scalar"]),
        ("-self", ["neg"]),
        ("self.sum(dim, True)", ["sum_dim_IntList"]),
        ("self.sum([0, 1])", ["sum_dim_IntList"]),
        ("self.sum()", ["sum"]),
        ("other.where(self > 0, grad)", ["gt_Scalar", "where_self"]),
    ],
)
def test_overloads(text: str, expected: list[str]) -> None:
    assert calls(lower(text)) == expected


def test_arguments_are_converted() -> None:
    assert "tp_mul_Scalar(self, TP_SCALAR_I(2))" in lower("self * 2")
    assert "tp_mul_Scalar(self, TP_SCALAR_F(0.5))" in lower("self * 0.5")
    assert "tp_sum_dim_IntList(self, TP_INTS(dim), keepdim, TP_FLOAT64)" in lower(
        "self.sum(dim, keepdim, dtype=float64)"
    )
    assert "tp_sum_dim_IntList(self, TP_NO_INTS, false, TP_NO_DTYPE)" in lower("self.sum(None)")


def test_conjugate_of_a_real_tensor_is_no_call() -> None:
    assert "? tp_conj_physical(other) : tp_retain(other)" in lower("grad * other.conj()")


def test_only_the_chosen_branch_is_computed() -> None:
    text = lower("grad if alpha == 1 else grad * alpha.conj()")
    assert re.search(r"if \(tp_scalar_equal\(alpha, TP_SCALAR_I\(1\)\)\) \{\n +t\d = tp_retain\(grads\[0\]\);", text)
    assert text.index("} else {") < text.index("tp_scalar_conj(alpha)")


def test_number_branches_are_an_expression() -> None:
    assert "(end.has ? end.value : 0)" in lower("self.sum(end if end is not None else 0)")


def test_short_circuit() -> None:
    text = lower("grad if dim > 0 and size[0] == 1 else -grad")
    assert re.search(r"bool b1 = \(dim > 0\);\nif \(b1\) \{\n.*tp_list_index\(size.size, 0\)", text)


def test_statements_and_branches() -> None:
    text = lower("x = grad * self\nif weight is not None:\n    y = x * weight\nelse:\n    y = x\n-y")
    assert calls(text) == ["mul_Tensor", "mul_Tensor", "neg"]
    assert re.search(r"\} else \{\n +t\d = tp_retain\(t1\);\n\}", text)  # x belongs to the outer block


def test_what_nobody_reads_behind_branches_is_not_joined() -> None:
    text = lower(
        "if keepdim:\n    none = dim > 0\n    y = -grad if none else grad\n"
        "else:\n    none = dim > 1\n    y = grad * 2 if none else grad\ny"
    )
    assert "bool v" not in text.replace("const bool v", "")


def test_early_return() -> None:
    text = lower("if mode == 'mean':\n    return grad * 2\ngrad")
    assert 'tp_str_equal(mode, "mean")' in text
    assert text.count("return 0;") == 2


def test_two_names_for_one_tensor() -> None:
    text = lower("if keepdim:\n    a = -grad\n    b = a\nelse:\n    a = grad\n    b = -self\na + b")
    assert text.count("= tp_retain(t1);") == 2  # neither takes what the other needs


def test_tuples() -> None:
    text = lower("values, _ = self.max(dim)\nvalues")
    assert "tp_tensor2 r1 = tp_max_dim(self, dim, false);" in text and "if (!r1.v[0]) return -1;" in text
    assert "tp_take(t2)" in lower("self.max(dim)[1]")
    two = Result.of_slots([Slot("out[0]"), Slot("out[1]")])
    text = lower("scaled_backward(grad, self, mask)", two)
    assert "if (!r1.v[0] && tp_error_pending()) return -1;" in text  # an output may be absent
    assert "out[1] = tp_take(t2);" in text
    assert lower("x = -grad\n(x, x)", two).count("tp_retain(t1)") == 2


def test_lists() -> None:
    many = Result.of_slots([Slot("out", "node->n")])
    text = lower("grad.split_with_sizes(size, dim)", many)
    assert "tp_autoseq *q1" in text and "tp_put_gradients(out, node->n, tp_tensor_seq_borrow(q1)) < 0" in text
    assert "(tp_tensor *const[]){self, other}, 2}" in lower("cat([self, other])")
    assert "tp_ints_join(a1, tp_ints_slice(size, 0, 1), TP_INTS((-1)))" in lower("self.reshape(size[:1] + [-1])")
    # A list that depends on a condition outlives the branch that made it.
    text = lower("self.reshape([1, dim] if keepdim else size)")
    assert text.startswith("int64_t a1[2];")


def test_metadata() -> None:
    assert "tp_expand(grads[0], node->shapeless_sizes, false)" in lower("grad.expand(shapeless.shape)")
    assert "tp_ints_numel(node->shapeless_sizes)" in lower("grad * shapeless.numel()")
    assert "tp_numel_of(self)" in lower("grad * self.numel()")


def test_an_operator_of_a_namespace() -> None:
    assert "= tp_far_send(self, mode);" in lower("grad * ops.far.send(self, mode)")
    assert set(used("ops.far.send(grad, mode)")) == {"grad", "mode"}
    with pytest.raises(YamlError, match="unknown operator 'far::sent'"):
        lower("ops.far.sent(self, mode)")


def test_inplace_on_own_tensor() -> None:
    text = lower("x = -grad\nx.mul_(other)\nx")
    assert "if (tp_mul__Tensor(t1, other) < 0) return -1;" in text


def test_values() -> None:
    assert "if (tp_equal(self, other, &v1) < 0) return -1;" in lower("grad if equal(self, other) else -grad")


def test_pointless_brackets_do_not_matter() -> None:
    assert lower("(grad * self)") == lower("grad*self") == lower("x = grad * self; x")


# ---- mistakes ----

MISTAKES = [
    ("grad * othr", 0, "unknown name 'othr'", "did you mean 'other'"),
    ("grad.mull(self)", 0, "unknown operator 'mull'", "did you mean 'mul'"),
    ("grad.mul('a')", 0, "no overload of 'mul' takes (Tensor, str)", "mul.Scalar(Tensor self, Scalar other)"),
    ("grad * weight", 0, "no overload of 'mul' takes (Tensor, Tensor?)", "tested for None first"),
    ("grad.sum(keepdims=True)", 0, "takes (Tensor, keepdims=bool)", "bool keepdim=False"),
    ("grad +", 0, "not Python syntax", "name = expression"),
    ("", 0, "an empty formula", "write an expression"),
    ("dim", 0, "the result is int, not Tensor?", "give a Tensor?"),
    ("x = grad * self\ngrad", 1, "'x' is assigned and never used", "take it out"),
    ("y = grad\n-grad * z\n", 2, "unknown name 'z'", "the formula knows"),
    ("grad if self else -grad", 0, "the tensor `self` as a condition", "where(condition, a, b)"),
    ("grad if self is None else -grad", 0, "`self` is never None here", "take the test out"),
    ("grad.mul_(self)", 0, "`mul_.Tensor` would write to the given 'grad'", "call `mul`"),
    ("x = grad * self\nx.neg()\nx", 2, "the result of `x.neg()` is lost", "assign it"),
    ("if keepdim:\n    x = grad\n-x", 3, "'x' is assigned in one branch only", "assign it in both"),
    ("a, b, c = self.max(dim)\na", 1, "3 names for 2 results", "write 2 names"),
    ("self = grad\nself", 1, "an assignment to 'self', which is given", "another name"),
    ("(grad, grad)", 0, "the result is tuple, not Tensor?", "give a Tensor?"),
    ("self.max(dim)[2]", 0, "item 2 of 2", "count from 0 to 1"),
    ("self[0]", 0, "an index into a tensor", "select(dim, index)"),
    ("grad.shap", 0, "a tensor has no `.shap`", "did you mean 'shape'"),
    ("[x for x in tensors]", 0, "is not part of a formula", "use calls"),
    ("if mode == 'mean':\n    grad\n", 1, "no result", "each branch"),
    ("grad if mode == 3 else -grad", 0, "compares str with int", "compare numbers"),
    ("grad if keepdim else dim", 0, "is Tensor and int", "same type"),
    ("grad.expand(weight.shape)", 0, "`weight` may be None", "is not None else undefined()"),
    ("x = grad\nx += self\nx", 2, "an augmented assignment", "x.add_"),
    ("if keepdim:\n    x = grad\nelse:\n    x = dim\nx", 1, "'x' is Tensor and int", "same type"),
    ("for i in size: grad", 0, "is not part of a formula", "`if`"),
    ("grad * [1, 'a']", 0, "a list of int, str", "make lists of tensors"),
]


@pytest.mark.parametrize(("text", "line", "what", "fix"), MISTAKES)
def test_mistakes(text: str, line: int, what: str, fix: str) -> None:
    with pytest.raises(YamlError) as caught:
        lower(text)
    error = caught.value
    assert what in error.what
    assert fix in error.fix
    assert error.location == Location("derivatives.yaml", 7 + (line if "\n" in text.strip() else 0))


# ---- used ----


def test_used() -> None:
    uses = used("x = grad.expand(self.shape) * other\nx if weight is not None and self.ndim > dim else x.sum(size[0])")
    assert uses["grad"].whole and uses["other"].whole and uses["dim"].whole
    assert not uses["self"].whole and uses["self"].parts == {"sizes"}
    assert not uses["weight"].whole and uses["weight"].parts == {"defined"}
    assert uses["size"].indices == {0} and not uses["size"].whole
    assert "sum" not in uses and "expand" not in uses
    uses = used("f(self.numel(), self.dtype, self.size(dim), grads[1], tensors.sizes(dim + 1), len(tensors))")
    assert uses["self"].parts == {"sizes", "dtype"} and not uses["self"].whole
    assert uses["grads"].indices == {1}
    assert uses["tensors"].sizes_along == {"dim + 1"} and uses["tensors"].parts == {"length"}
    assert used("self.shape * self.exp()")["self"].whole


# ---- composites ----


def composite(schema: str, text: str) -> str:
    body = "".join(f"    {line}\n" for line in text.splitlines())
    catalog = catalog_of(f"{OPERATORS}- func: {schema}\n  composite: |\n{body}")
    return emit_composite(catalog.by_name[schema.split("(")[0]], catalog)


def test_composite() -> None:
    text = composite("silu2(Tensor self, *, float? default=None) -> Tensor", "self * (-self).exp()")
    assert text.startswith("static tp_tensor *formula_silu2(tp_keyset ks, tp_tensor *self, tp_opt_float default_) {")
    assert "(void)ks;" in text and "(void)default_;" in text and "return tp_take(t3);" in text
    text = composite("twin(Tensor self) -> (Tensor, Tensor)", "(self, -self)")
    assert "return (tp_tensor2){{tp_retain(self), tp_take(t1)}};" in text
    text = composite("both(Tensor self) -> Tensor[]", "[self, self]")
    assert "return tp_tensor_seq_of(" in text
    text = composite("count(Tensor self) -> int", "self.numel() * 2")
    assert "*result = (tp_numel_of(self) * 2);" in text
    text = composite("twice_(Tensor(a!) self) -> Tensor(a!)", "self.mul_(self)\nself.add_(self)")
    assert "tp_mul__Tensor(self, self) < 0" in text and text.endswith("return 0;\n}\n")
    with pytest.raises(YamlError, match="return a tensor in every case"):
        composite("maybe(Tensor self, Tensor? weight) -> Tensor", "weight")


# ---- nodes and kernels ----

DERIVATIVES = """
- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  self: grad
  other: grad * alpha.conj()
- name: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  self: grad
- name: mul.Tensor(Tensor self, Tensor other) -> Tensor
  self: grad * other.conj()
  other: grad * self.conj()
- name: exp(Tensor self) -> Tensor
  self: grad * result
- name: sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
  self: grad.expand(self.shape)
- name: max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
  output_differentiability: [True, False]
  self: where(indices > 0, grad, grad_values * dim)
- name: scaled(Tensor self, Tensor? weight, *, str mode='mean', int? dim=None) -> (Tensor, Tensor, Tensor)
  self, weight: scaled_backward(grads[0] + grads[2], self, grad_input_mask)
- name: cat(Tensor[] tensors, int dim=0) -> Tensor
  tensors: grad.split_with_sizes(tensors.sizes(dim), dim)
- name: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
  self: grad
- name: split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
  self: cat(grads, dim)
"""


def function(text: str, name: str) -> str:
    """The definition of a C function."""
    found = re.search(rf"^[^\n]*\b{name}\([^\n]*\) \{{\n.*?^\}}", text, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[0]


@pytest.fixture(scope="module")
def derived() -> Catalog:
    return catalog_of(derivatives=DERIVATIVES)


def test_nodes(derived: Catalog) -> None:
    text = emit_nodes(derived)
    for name in ("AddBackward0", "AddBackward1", "MulBackward0", "SumBackward0", "MaxBackward0", "CatBackward0"):
        assert f"}} {name};" in text
    fields = re.search(r"typedef struct \{([^}]*)\} SumBackward0;", text)
    assert fields is not None and fields[1].split(";") == ["\n    tp_node base", "\n    tp_ints self_sizes", "\n"]
    assert "tp_saved_get(&node->other, &node->base)" in function(text, "MulBackward0_self")
    assert "tp_node_wants(base, 1) && MulBackward0_other" in function(text, "MulBackward0_apply")
    assert "tp_saved_ints_free(&node->self_sizes);" in function(text, "SumBackward0_free_copies")
    scaled = function(text, "ScaledBackward0_self_weight")
    assert "if (!grads[0] && !grads[2]) return 0;" in scaled
    assert "grads[2] ? tp_retain(grads[2]) : tp_zeros_for_input(&node->base, 2)" in scaled
    assert "const bool grad_input_mask[] = {tp_node_wants(&node->base, 0), tp_node_wants(&node->base, 1)};" in scaled
    assert "tp_gradients_of_list(&node->base, grads)" in function(text, "SplitWithSizesBackward0_self")


def test_autograd_kernels(derived: Catalog) -> None:
    kernels = Kernels()
    text = emit_variable_type(derived, kernels)
    row = '    {&ops[OP_mul_Tensor], (tp_fn)autograd_mul_Tensor, "autograd", "codegen/emit_variable_type.py"},\n'
    assert row in kernels.rows["Autograd"]
    hot = function(text, "autograd_mul_Tensor")
    assert "(tp_requires_grad(self) || tp_requires_grad(other)) && tp_grad_enabled()" in hot
    assert "redispatch_mul_Tensor(ks & TP_BELOW_AUTOGRAD, self, other)" in hot and "tp_node_new" not in hot
    record = function(text, "record_mul_Tensor")
    assert record.index("tp_save(&node->self, self)") < record.index("redispatch_mul_Tensor")
    assert "if (tp_node_wants(fn, 1)) {" in record
    inplace = function(text, "record_mul__Tensor")
    order = [
        "tp_check_inplace(self",
        "tp_save_before_write(&node->self, self",
        "redispatch_mul__Tensor",
        "tp_rebase_history(self, fn)",
    ]
    assert [inplace.index(part) for part in order] == sorted(inplace.index(part) for part in order)
    assert 'tp_out_no_grad("add.out")' in function(text, "autograd_add_out")
    assert 'tp_not_differentiable_node("frob", 1)' in function(text, "record_frob")
    assert "tp_save_output(&node->result, result0, 0)" in function(text, "record_exp")
    assert "tp_save(&node->result1, result1)" in function(text, "record_max_dim")  # has no history
    assert "tp_requires_grad" not in function(text, "autograd_equal")
    assert "bias" not in text and "autograd_conj" not in text and "autograd_reshape" not in text
    cat = function(text, "record_cat")
    assert "tp_node_new(&CatBackward0_type, (int)tensors.size)" in cat
    assert "node->tensors_sizes0 = tp_save_sizes_along(tensors, dim);" in cat


def test_versions_and_views(derived: Catalog) -> None:
    text = emit_inplace_or_view(derived, Kernels())
    assert "tp_note_write(self, " in function(text, "inplace_or_view_add__Tensor")
    assert "tp_note_write(out, " in function(text, "inplace_or_view_add_out")
    assert "return tp_as_view(self, got);" in function(text, "inplace_or_view_expand")
    assert "return tp_as_views(self, got);" in function(text, "inplace_or_view_split_with_sizes")
    assert "inplace_or_view_add_Tensor" not in text and "inplace_or_view_conj" not in text


def test_every_tensor_argument_is_named() -> None:
    catalog = catalog_of(
        derivatives="\n- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n  self: grad * other\n"
    )
    with pytest.raises(YamlErrors) as caught:
        check_gradients_given(catalog)
    assert "mul.Tensor has no formula for 'Tensor other'" in str(caught.value)


def test_a_pointwise_operator_has_a_gradient_or_says_why_not() -> None:
    """One that computes floats; what gives bools, or computes integers alone, is asked for none."""
    entry = "- func: {0}(Tensor self) -> Tensor\n  pointwise: {1}\n"
    texts = [
        entry.format("silent", "{float: self * self}"),
        entry.format("says", "{float: self * self}") + "  no_gradient: a test\n",
        entry.format("tells", "{promotion: always_bool, float: self > 0}"),
        entry.format("counts", "{int: self + 1}"),
    ]
    with pytest.raises(YamlErrors) as caught:
        check_gradients_given(catalog_of("".join(texts)))
    assert [e.what for e in caught.value.errors] == [
        "silent computes floats and has neither a derivative nor 'no_gradient'"
    ]


def test_a_node_keeps_what_its_entry_shows() -> None:
    entry = "\n- name: shift(Tensor self, int by, bool round=False) -> Tensor\n  self: grad\n  shows: "
    shift = "- func: shift(Tensor self, int by, bool round=False) -> Tensor\n  dispatch: {Dense: shift_dense}\n"
    (node,) = nodes_of(catalog_of(shift, entry + "by, self.shape\n"))
    assert [(k.name, k.saves_tensor) for k in node.kept] == [("self", False), ("by", False)]
    (node,) = nodes_of(catalog_of(shift, entry + "way\n"))
    with pytest.raises(YamlError, match="'shows' of shift names no argument: way"):
        _ = node.kept


def test_a_derivative_that_no_call_would_use_is_refused() -> None:
    """An operator made of others is differentiated by its parts."""
    catalog = catalog_of(
        "- func: twice(Tensor self) -> Tensor\n  composite: self + self\n",
        "\n- name: twice(Tensor self) -> Tensor\n  self: grad * 2\n",
    )
    with pytest.raises(YamlErrors) as caught:
        check_gradients_given(catalog)
    assert [e.what for e in caught.value.errors] == [
        "a derivative of twice, which is made of other operators: their derivatives hold"
    ]


def test_a_formula_of_what_writes_writes() -> None:
    """A result of another kind would be dropped, and self left as it was."""
    schema = "scale_(Tensor(a!) self, Tensor other) -> Tensor(a!)"
    writers = """
- func: mul_(Tensor(a!) self, Tensor other) -> Tensor(a!)
  dispatch: {CPU: mul__cpu}
- func: copy_(Tensor(a!) self, Tensor other) -> Tensor(a!)
  dispatch: {CPU: copy__cpu}
- func: neg_(Tensor(a!) self) -> Tensor(a!)
  dispatch: {CPU: neg__cpu}
- func: mul(Tensor self, Tensor other) -> Tensor
  dispatch: {CPU: mul_cpu}
"""
    catalog = catalog_of(f"{writers}- func: {schema}\n  composite: self.mul_(other)\n")
    op = catalog.by_name["scale_"]

    def written(text: str) -> str:
        variables, result = schema_variables(op.schema), Result.of_schema(op.schema)
        return "\n".join(Lowered(variables, text, result, catalog, HERE).lines)

    for text in ("self.mul_(other)", "self.mul_(other)\nself", "x = self * other\nself.copy_(x)"):
        assert written(text).endswith("return 0;")
    for text in ("self * other", "x = self * other\nx.neg_()", "other"):
        with pytest.raises(YamlError) as caught:
            written(text)
        assert "gives what it has written" in caught.value.what and "self.copy_(...)" in caught.value.fix


def test_mistakes_are_collected() -> None:
    catalog = catalog_of(
        derivatives="\n- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n  self: grad * othr\n  other: grd\n"
    )
    with pytest.raises(YamlErrors) as caught, every_formula(catalog) as checked:
        emit_nodes(checked)
    assert [(e.location.line, e.fix) for e in caught.value.errors] == [
        (3, "did you mean 'other'?"),
        (4, "did you mean 'grad'?"),
    ]


# ---- the tree's own derivatives ----


def test_every_schema_is_pytorch_s(torch_yaml: Callable[[str], Path]) -> None:
    text = torch_yaml("ATen/native/native_functions.yaml").read_text()
    theirs = {line.removeprefix("- func: ") for line in text.splitlines()}
    files = sorted(Path(__file__, "../../../yaml/derivatives").resolve().glob("*.yaml"))
    ours = [line for file in files for line in file.read_text().splitlines()]
    names = [line.removeprefix("- name: ") for line in ours if line.startswith("- name: ")]
    assert len(names) == len(set(names)) > 60
    assert [name for name in names if name not in theirs and not name.startswith(("_", "<op>"))] == []


def test_nodes_are_numbered_in_pytorch_s_order(torch_yaml: Callable[[str], Path]) -> None:
    """`grad_fn=<MaxBackward1>` is the second entry of max in the file: of those that both have, the same one."""
    theirs = re.findall(r"^- name: ([\w.]+)", torch_yaml("autograd/derivatives.yaml").read_text(), re.M)
    place = {name: i for i, name in reversed(list(enumerate(theirs)))}
    ours: dict[str, list[str]] = {}
    for file in sorted(Path(__file__, "../../../yaml/derivatives").resolve().glob("*.yaml")):
        for name in re.findall(r"^- name: ([\w.]+)", file.read_text(), re.M):
            if name in place and not name.split(".")[0].endswith("_"):
                ours.setdefault(name.split(".")[0], []).append(name)
    assert sum(len(names) > 1 for names in ours.values()) > 20
    for names in ours.values():
        assert names == sorted(names, key=place.__getitem__)
