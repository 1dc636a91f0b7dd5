"""What tags change in the generated text, and the mistakes that they lead to."""

from __future__ import annotations

import pytest

from codegen.__main__ import load_catalog
from codegen.decompositions import Decompositions
from codegen.emit_backend import emit_kernels
from codegen.emit_functions import Kernels
from codegen.errors import YamlError, YamlErrors
from codegen.out_dtype import takes_castable

TAGS = """
- tag: nondeterministic_bitwise
  desc: a
- tag: needs_contiguous_strides
  desc: b
- tag: dynamic_output_shape
  desc: c
- tag: view_copy
  desc: d
- tag: core
  desc: e
"""
VIEW = """
- func: turn(Tensor(a) self, int dim) -> Tensor(a)
  dispatch: {CompositeExplicitAutograd: turn_composite}
  inverse: view
"""


@pytest.fixture
def catalog_of(tmp_path):
    def load(entries: str):
        (tmp_path / "tags.yaml").write_text(TAGS)
        (tmp_path / "native_functions.yaml").write_text(entries)
        return load_catalog(tmp_path)

    return load


def test_nondeterministic_kernels_ask_first(catalog_of):
    catalog = catalog_of("""
- func: scramble(Tensor self) -> Tensor
  dispatch: {CPU: scramble_cpu}
  tags: [nondeterministic_bitwise]
""")
    text = emit_kernels(catalog, Kernels())
    assert text.index('tp_check_determinism("scramble") < 0) return NULL;') < text.index("return scramble_cpu(self)")


@pytest.mark.parametrize("body", ["dispatch: {CPU: old_cpu}", "composite: self + 1", "dispatch: {Dense: old_dense}"])
def test_a_warning_comes_before_the_kernel(catalog_of, body):
    catalog = catalog_of(f"""
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  dispatch: {{CPU: add_cpu}}
- func: old(Tensor self) -> Tensor
  {body}
  warns: "old is \\"old\\""
""")
    text = emit_kernels(catalog, Kernels())
    kernel = text[text.index("_old(") :]
    assert "static bool warned;" in kernel
    assert 'if (tp_warn_first(&warned, "old is \\"old\\"") < 0) return NULL;' in kernel


def test_contiguous_arguments(catalog_of):
    catalog = catalog_of("""
- func: pile.out(Tensor self, Tensor? weight, *, Tensor(a!) out) -> Tensor(a!)
  dispatch: {CPU: pile_cpu}
  tags: [needs_contiguous_strides]
""")
    text = emit_kernels(catalog, Kernels())
    assert "dense_self = self ? tp_contiguous(self, TP_CONTIGUOUS_FORMAT) : NULL;" in text
    assert "weight = dense_weight;" in text and "dense_out" not in text


def test_a_composite_that_needs_values_refuses_meta(catalog_of):
    catalog = catalog_of("""
- func: places(Tensor self) -> Tensor
  tags: [dynamic_output_shape]
""")
    text = emit_kernels(catalog, Kernels())
    assert 'tp_refuse_meta(self, "places", "dynamic_output_shape")' in text


def test_view_copies_are_made_from_the_view(catalog_of):
    catalog = catalog_of(
        VIEW
        + """
- func: turn_copy(Tensor self, int dim) -> Tensor
  tags: [view_copy]
"""
    )
    assert "return tp_copy_of_view_steal(tp_turn(self, dim));" in emit_kernels(catalog, Kernels())


@pytest.mark.parametrize(
    "entry, what, fix",
    [
        (
            "- func: quite_another_copy(Tensor self) -> Tensor\n  tags: [view_copy]",
            "there is no view quite_another",
            "declare quite_another",
        ),
        ("- func: turn_copy(Tensor self) -> Tensor\n  tags: [view_copy]", "takes (Tensor), its view", "same arguments"),
    ],
)
def test_view_copies_need_their_view(catalog_of, entry, what, fix):
    with pytest.raises(YamlError) as error:
        catalog_of(VIEW + entry)
    assert what in str(error.value) and fix in str(error.value)


def test_a_decomposition_must_not_come_back(catalog_of):
    with pytest.raises(YamlErrors, match="comes back to it: here -> there -> here"):
        catalog_of("""
- func: here(Tensor self) -> Tensor
  composite: there(self)
- func: there(Tensor self) -> Tensor
  composite: here(self)
""")


HIDDEN = "tagged 'core', and what it comes down to is hidden in the C function of a composite"
DECLARED = "- func: part(Tensor self) -> Tensor\n  tags: [core]\n  dispatch: {CPU: part_cpu}\n"


@pytest.mark.parametrize(
    "body",
    ["composite: part(part(self))", "dispatch: {CPU: whole_cpu}", "dispatch: {CompositeExplicitAutograd: whole}"],
)
def test_core_operators_have_a_kernel_or_a_formula(catalog_of, body):
    catalog = catalog_of(DECLARED + f"- func: whole(Tensor self) -> Tensor\n  tags: [core]\n  {body}\n")
    leaves = Decompositions(catalog).leaves(catalog.by_name["whole"])
    assert list(leaves) == (["part"] if body.startswith("composite") else ["whole"])


@pytest.mark.parametrize("body", ["", "  dispatch: {CompositeImplicitAutograd: whole}\n"])
def test_a_core_operator_must_not_be_a_composite_in_c(catalog_of, body):
    with pytest.raises(YamlErrors) as raised:
        catalog_of(DECLARED + f"- func: whole(Tensor self) -> Tensor\n  tags: [core]\n{body}")
    (error,) = raised.value.errors
    assert error.location.line == 5 and HIDDEN in error.what and "write it as a formula" in error.fix


def test_formulas_may_raise(catalog_of):
    catalog = catalog_of("""
- func: only_real(Tensor self) -> Tensor
  composite: |
    if self.is_complex():
        raise TypeError("only_real: a complex tensor")
    self
""")
    text = emit_kernels(catalog, Kernels())
    assert 'tp_fail(TP_TypeError, "%s", "only_real: a complex tensor");' in text


@pytest.mark.parametrize("text", ["raise Oops('x')", "raise RuntimeError", "raise RuntimeError(self)"])
def test_what_formulas_may_raise(catalog_of, text):
    with pytest.raises(YamlErrors):
        emit_kernels(catalog_of(f"- func: bad(Tensor self) -> Tensor\n  composite: |\n    {text}\n"), Kernels())


# ---- out_dtype ----

CAST = """
- func: cast(Tensor self) -> Tensor
  dispatch: {Dense: cast_dense}
  autogen: cast.out
  out_dtype: castable
- func: alias_of_cast(Tensor self) -> Tensor
  composite: cast(self)
  autogen: alias_of_cast.out
- func: own(Tensor self) -> Tensor
  dispatch: {Dense: own_dense}
  autogen: own.out
"""


def test_an_out_is_of_the_results_dtype_or_cast_to_as_the_entry_says(catalog_of):
    text = emit_kernels(catalog_of(CAST), Kernels())
    assert "tp_cast_into_out(out, made)" in function_of(text, "variant_cast_out")
    assert "tp_cast_into_out(out, made)" in function_of(text, "variant_alias_of_cast_out")
    assert "tp_copy_into_out(out, made)" in function_of(text, "variant_own_out")


def function_of(text: str, name: str) -> str:
    return text[text.index(f"{name}(") :].partition("\n}\n")[0]


@pytest.mark.parametrize(
    "body, what, fix",
    [
        ("  dispatch: {Dense: f}\n  out_dtype: castable", "and no out= variant", "'it.out' in 'autogen'"),
        ("  dispatch: {Dense: f}\n  autogen: it.out\n  out_dtype: same", "would be 'same' without", "take it out"),
        ("  composite: cast(self)\n  autogen: it.out\n  out_dtype: castable", "would be 'castable'", "take it out"),
        ("  dispatch: {Dense: f}\n  autogen: it.out\n  out_dtype: cast", "'out_dtype' is 'cast'", "castable"),
    ],
)
def test_out_dtype_says_what_does_not_hold_anyway(catalog_of, body, what, fix):
    with pytest.raises(YamlErrors) as raised:
        catalog_of(f"{CAST}- func: it(Tensor self) -> Tensor\n{body}\n")
    (error,) = raised.value.errors
    assert what in error.what and fix in error.fix


def test_several_outputs_may_be_cast_too(catalog_of):
    two = "- func: two(Tensor self) -> (Tensor, Tensor)\n  dispatch: {Dense: two_dense}\n  autogen: two.out\n"
    for key, castable in (("", False), ("  out_dtype: castable\n", True)):
        catalog = catalog_of(two + key)
        assert takes_castable(catalog.by_name["two.out"], catalog) == castable
