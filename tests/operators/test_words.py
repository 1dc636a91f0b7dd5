"""What programs match in messages of errors: each call fails with words that PyTorch's message has too."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tensorpy as tp

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

NAN = "torch.full((2, 2), float('nan'))"
TRACKED = "x = torch.ones(4, requires_grad=True); "
# A call, and the words.
CALLS = [
    ("torch.multinomial(torch.tensor([-1.0, 1.0]), 1)", "contains either `inf`, `nan` or element < 0"),
    ("torch.multinomial(torch.tensor([1.0, float('nan')]), 1)", "contains either `inf`, `nan` or element < 0"),
    ("torch.multinomial(torch.zeros(2), 1)", "invalid multinomial distribution \\(sum of probabilities <= 0\\)"),
    ("torch.bernoulli(torch.tensor([2.0]))", "Expected p_in >= 0 && p_in <= 1 to be true, but got false"),
    ("torch.linalg.inv(torch.zeros(2, 2))", "could not be completed because the input matrix is singular"),
    ("torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))", "solver failed because the input matrix is singular"),
    ("torch.linalg.cholesky(-torch.eye(2))", "minor of order 1 is not positive-definite\\)\\."),
    (f"torch.linalg.svd({NAN})", "failed to converge because the input matrix contained non-finite values"),
    (f"torch.linalg.eig({NAN})", "torch.linalg.eig: input tensor should not contain infs or NaNs"),
    ("torch.linalg.lu_factor(torch.zeros(2, 2))", "using it on lu_solve would result in a division by zero"),
    ("torch.linalg.lu_factor(torch.zeros(2, 2))", "consider calling linalg.lu\\(A, pivot\\) or linalg.lu_factor_ex"),
    ("torch.linalg.lu_factor(torch.ones(3))", "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size"),
    ("torch.addr(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2))", "addr: Expected 1-D argument vec1, but got 2-D"),
    ("torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2, 2))", "addr: Expected 1-D argument vec2, but got 2-D"),
    *(
        (
            f"torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), {name}=True)",
            f"Boolean {name} only supported for",
        )
        for name in ("beta", "alpha")
    ),
    (
        "torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), alpha=1j)",
        "cannot be converted to type float without overflow",
    ),
    ("torch.lerp(torch.ones(2), torch.ones(2).double(), 0.5)", "expected dtype float for `end` but got dtype double"),
    ("torch._int_mm(torch.ones(2), torch.ones(2, 2))", "Expected self to be of dimension 2 but got 1"),
    ("torch._int_mm(torch.ones(2, 3), torch.ones(2, 2))", "needs to match mat2.size\\(0\\) but got 3 and"),
    ("torch._int_mm(torch.ones(2, 2), torch.ones(2, 2))", "Expected self dtype to be int8 or uint8 but got"),
    (
        "torch._int_mm(torch.ones(2, 3).char(), torch.ones(3, 4).char(), out=torch.empty(0).int())",
        "Expected result.size\\(0\\) to be 2 but got 0",
    ),
    (
        "torch._int_mm(torch.ones(2, 3).char(), torch.ones(3, 4).char(), out=torch.empty(2, 2).int())",
        "Expected result.size\\(1\\) to be 4 but got 2",
    ),
    (
        "torch._int_mm(*2 * [torch.ones(2, 2).char()], out=torch.empty(2, 2, 1).int())",
        "Expected result to be of dimension 2 but got 3",
    ),
    (
        "torch._int_mm(torch.ones(2, 3).char(), torch.ones(3, 4).char(), out=torch.empty(2, 4))",
        "Expected result dtype to be of type kInt but got float",
    ),
    ("torch.lu_unpack(torch.eye(2), torch.ones(2))", "expected to be a contiguous tensor of torch.int32 dtype"),
    (
        "torch.ones(2).float_power_(2)",
        "the base given to float_power_ has dtype Float but the operation's result requires",
    ),
    ("torch.ones(2, dtype=torch.float64).float_power_(2j)", "but the operation's result requires dtype ComplexDouble"),
    ("torch.float_power(torch.ones(2), 2, out=torch.empty(2))", "operation's result requires dtype Double"),
    ("torch.heaviside(torch.ones(1) * 1j, torch.ones(1) * 1j)", "heaviside is not yet implemented for complex tensors"),
    ("torch.sign(torch.ones(1) * 1j)", "torch.sign is not intended to support complex numbers. Please use torch.sgn"),
    ("torch.isposinf(torch.ones(1) * 1j)", "isposinf does not support complex inputs"),
    ("torch.isneginf(torch.ones(1) * 1j)", "isneginf does not support complex inputs"),
    ("torch.isposinf(torch.ones(1), out=torch.empty(1))", "isposinf does not support non-boolean outputs"),
    ("torch.signbit(torch.ones(1), out=torch.empty(1))", "signbit does not support non-boolean outputs"),
    ("torch.histc(torch.tensor([1, 2]), 4, 5, 1)", "torch.histc: max must be larger than min"),
    ("torch.histc(torch.tensor([1.0, float('inf')]))", "torch.histc: range of \\[1, inf\\] is not finite"),
    ("torch.logspace(0, 1j, 3, dtype=torch.float32)", "torch.logspace\\(\\): inferred dtype"),
    (
        "torch.linalg.householder_product(torch.eye(2), torch.ones(2, dtype=torch.int32))",
        "tau dtype Int does not match input dtype Float",
    ),
    ("torch.signbit(torch.ones(1) * 1j)", "signbit is not implemented for complex tensors"),
    ("torch.floor(torch.ones(1) * 1j)", "floor is not supported for complex inputs"),
    ("torch.sort(torch.ones(1) * 1j)", " Sort does not support complex dtypes on CPU"),
    ("torch.polygamma(-1, torch.ones(1))", "polygamma\\(n, x\\) does not support negative n."),
    ("torch.add(torch.ones(1), 1, alpha=1j)", "For non-complex input tensors, argument alpha must not be a complex"),
    ("torch.linalg.cond(torch.eye(2), 'x')", "linalg.cond got an invalid norm type: x"),
    ("torch.linalg.pinv(torch.ones(2))", "expected a tensor with 2 or more dimensions"),
    ("torch.linalg.lu(torch.ones(2))", "Expected tensor with 2 or more dimensions. Got size: \\[2\\] instead"),
    ("torch.linalg.tensorinv(torch.ones(2, 3), 1)", "to satisfy the requirement prod\\(self.shape\\[ind:\\]\\) =="),
    ("torch.linalg.tensorinv(torch.ones(2, 3))", "to satisfy the requirement prod\\(self.shape\\[ind:\\]\\) =="),
    ("torch.zeros(2, dtype=torch.float64, out=torch.empty(2))", "dtype Double does not match dtype of out parameter"),
    (
        "torch.arange(2, dtype=torch.int32, out=torch.empty(2))",
        "dtype Int does not match dtype of out parameter .Float",
    ),
    (
        "torch.gradient(torch.tensor(2.0), spacing=[torch.ones(2)], dim=[0])",
        "specified as 0 but tensor has no dimensions",
    ),
    ("torch.gradient(torch.tensor(2.0), dim=-1)", "Dimension specified as -1 but tensor has no dimensions"),
    ("torch.gradient(torch.tensor(2.0), dim=1)", "Dimension out of range"),
    ("torch.unbind(torch.tensor(2.0))", "^Dimension specified as 0 but tensor has no dimensions"),
    ("torch.unbind(torch.tensor(2.0), 1)", "^Dimension out of range"),
    ("torch.unique(torch.tensor(2.0), dim=-1)", "^Dimension specified as -1 but tensor has no dimensions"),
    ("torch.unique_consecutive(torch.tensor(2.0), dim=0)", "^Dimension specified as 0 but tensor has no dimensions"),
    ("torch.gradient(torch.ones(3).to(torch.uint8))", "torch.gradient does not support uint8 input"),
    ("torch.einsum('', [])", "must specify the equation string and at least one operand"),
    ("torch.einsum('')", "must specify the equation string and at least one operand"),
    ("torch.einsum('a->...a...', torch.ones(2))", "found '.' for output but an ellipsis"),
    ("torch.broadcast_tensors([])", "expected Tensor as element 0 in argument 0, but got list"),
    ("torch.block_diag([])", "expected Tensor as element 0 in argument 0, but got list"),
    ("torch.cartesian_prod([])", "expected Tensor as element 0 in argument 0, but got list"),
    ("torch.cartesian_prod()", "expects a non-empty TensorList"),
    ("torch.block_diag(torch.ones(1, 1, 1))", "torch.block_diag: Input tensors must have 2 or fewer dimensions"),
    ("torch.arange(1, 2, 1e-20)", "invalid size, possible overflow"),
    ("torch.arange('a')", "argument 'end' \\(position 1\\) must be Number, not str"),
    ("torch.cat(torch.ones(2))", "argument 'tensors' \\(position 1\\) must be tuple of Tensors, not Tensor"),
    ("torch.cat([1, 2])", "expected Tensor as element 0 in argument 0, but got int"),
    ("torch.exp()", 'missing 1 required positional arguments: "input"'),
    (
        TRACKED + "(x * 1).chunk(2)[1].mul_(2)",
        "Output 1 of Split.* is a view and is being modified inplace. This view is",
    ),
    (TRACKED + "x.chunk(2)[0].mul_(2)", "output of a function that returns multiple views"),
    (TRACKED + "(x * 1).unbind()[0].mul_(2)", "Output 0 of Unbind.* is a view and is being modified inplace"),
    (TRACKED + "x.mul_(2)", "^a leaf Variable that requires grad is being used in an in-place operation"),
    (TRACKED + "x.view(2, 2).mul_(2)", "^a view of a leaf Variable that requires grad is being used in an in-place"),
    ("torch.ones(2).long().requires_grad_()", "only Tensors of floating point dtype can require gradients"),
    ("torch.cdist(torch.ones(2, 3), torch.ones(2, 2))", "^X1 and X2 must have the same number of columns. X1: 3 X2: 2"),
    ("torch.cdist(torch.ones(2, 2).long(), torch.ones(2, 2))", "floating-point dtypes, X1 got: Long"),
    ("torch.pdist(torch.ones(2))", "pdist only supports 2D tensors, got: 1D"),
    ("torch.linalg.norm(torch.ones(2, 2, 2), ord=2)", "the input must be 1D or 2D. Got 3D"),
    ("torch.linalg.matrix_norm(torch.ones(2, 2), dim=(0,))", "dim must be a 2-tuple"),
    ("torch.as_strided(torch.ones(4), (2,), (1,), -1)", "invalid storage offset -1"),
    (
        "torch.tensor_split(torch.ones(2), torch.ones(2, 2).long())",
        "one-dimensional tensor, but got a tensor with 2 dims",
    ),
    ("torch.ones(4, 3).view(torch.float64)", "self.size\\(-1\\) must be divisible by 2 to view Float as Double"),
    ("torch.ones(4, 5)[:, 1:].view(torch.float64)", "self.storage_offset\\(\\) must be divisible by 2 to view Float"),
    ("torch.ones(9).as_strided((2, 2), (3, 1)).view(torch.float64)", "self.stride\\(0\\) must be divisible by 2 to"),
    ("torch.view_as_complex(torch.tensor(2.0))", "Input tensor must have one or more dimensions"),
    ("torch.view_as_complex(torch.ones(2).long())", "half, float and double tensors, but got a tensor of scalar type:"),
    ("torch.ones(3).mH", "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor"),
    ("torch.ones(2, 2, 2).H", "Got 3-D tensor. For batches of matrices, consider using tensor.mH"),
    ("torch.tril_indices(2, -1)", "^col must be non-negative, got"),
    ("torch.empty_permuted((2, 3), (0,))", "in size does not match the length of the physical_layout; i.e."),
    ("torch.linalg.qr(torch.eye(2), out=(torch.eye(2), torch.eye(2).int()))", "to have dtype float, but got int"),
    ("torch.linalg.pinv(torch.eye(2), out=torch.eye(2).int())", "castable from Float dtype, but got result with dtype"),
    ("torch.cholesky_solve(torch.ones(2), torch.eye(2))", "b should have at least 2 dimensions, but has 1 dimensions"),
    ("torch.cholesky_solve(torch.ones(3, 2), torch.eye(2))", "A matrix is 2 by 2 but each b matrix is 3 by 2"),
    ("torch.cholesky_inverse(torch.ones(2, 3))", "A must be batches of square matrices"),
    ("torch.linalg.multi_dot([torch.eye(2), torch.ones(2, 2, 2), torch.eye(2)])", "tensor 1 must be 2D but got 3D"),
    ("torch.linalg.multi_dot([torch.eye(2), torch.eye(2).double()])", "tensor 0 is float and tensor 1 double"),
    ("torch.linalg.matrix_rank(torch.eye(2), rtol=torch.tensor(1j))", "rtol tensor of complex type is not supported"),
    ("torch.linalg.vector_norm(torch.ones(2).double(), dtype=torch.float32)", "should be convertible without"),
    ("torch.linalg.vector_norm(torch.ones(2), dtype=torch.int64)", "floating point or complex, but got Long"),
    ("torch.linalg.vector_norm(torch.ones(2) * 1j, dtype=torch.float32)", "should be complex for complex inputs, but"),
    ("torch.linalg.lstsq(torch.ones(1, 2, 3, 2), torch.ones(3, 3))", "input.dim\\(\\) must be greater or equal to"),
    ("torch.mm(torch.eye(2), torch.eye(2).double())", "m1 and m2 to have the same dtype, but got: float != double"),
    ("torch.dot(torch.ones(2), torch.ones(3))", "number of elements, but got 2 and 3 elements respectively"),
    ("torch.einsum('... ...', torch.ones(2))", "found '.' for operand 0 for which an ellipsis was already found"),
    ("torch.einsum(',', torch.ones(2))", "fewer operands were provided than specified in the equation"),
    ("torch.einsum('', torch.ones(2), torch.ones(2))", "more operands were provided than specified in the equation"),
    ("torch.einsum('a->..', torch.ones(2))", "for output that is not part of any ellipsis \\(...\\)"),
    ("torch.gradient(torch.ones(3, 3), spacing=[1.0, 2.0, 3.0])", "'self.dim\\(\\) = 2', since dim argument was not"),
    ("torch.cov(torch.ones(2, 3), fweights=torch.ones(2, 3).long())", "expected fweights to have one or fewer"),
    ("torch.cov(torch.ones(2, 3), aweights=torch.ones(2))", "expected aweights to have the same numel as there are"),
    ("torch.take(torch.ones(0), torch.tensor([0]))", "take\\(\\): tried to take from an empty tensor"),
    ("(torch.ones(2) * 1j).abs_()", "^In-place abs is not supported for complex tensors."),
    ("torch.nn.EmbeddingBag(2, 2, padding_idx=5)", "padding_idx must be within num_embeddings"),
    ("torch.ones(2).set_(torch.ones(2).long().storage())", "Expected a Storage of type .* or an UntypedStorage"),
    ("x = torch.ones(3); torch.cat([x, x[:0]], out=x)", "unsupported operation"),
    ("x = torch.ones(3); torch.gather(x, 0, torch.tensor([0, 1, 2]), out=x)", "unsupported operation"),
    ("x = torch.ones(3); torch.take(x, torch.tensor([0, 1, 2]), out=x)", "unsupported operation"),
    ("x = torch.ones(3); torch.index_select(x, 0, torch.tensor([0, 1, 2]), out=x)", "unsupported operation"),
    ("x = torch.ones(3); torch.masked_select(x, x > 0, out=x)", "unsupported operation"),
    ("x = torch.ones(3); torch.take(x, torch.tensor([0, 1]), out=torch.ones(1).expand(2))", "unsupported operation"),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[call for call, _ in CALLS])
@pytest.mark.filterwarnings("ignore")
def test_a_message_has_the_words(call: str, words: str) -> None:
    classes = []
    for library in (tp, torch):
        if library is None:
            continue
        values: dict[str, Any] = {"torch": library}
        with pytest.raises(Exception) as raised:
            exec(call, values)
        text = str(raised.value).replace("tensorpy.", "torch.")
        assert re.search(words, text), f"{library.__name__}: {text}"
        classes.append(raised.type)
    assert issubclass(classes[0], next(c for c in classes[-1].__mro__ if c.__module__ == "builtins"))


def test_calls_that_no_order_is_for_say_so_in_pytorchs_words() -> None:
    z, flags = tp.ones(2, dtype=tp.complex64), tp.tensor([True, False])
    for name in ("maximum", "minimum", "fmax", "fmin"):
        with pytest.raises(RuntimeError, match=f"^{name} not implemented for complex tensors"):
            getattr(tp, name)(tp.ones(2), z)
    for name in ("max", "min"):
        with pytest.raises(NotImplementedError, match=f"^\"{name}_all\" not implemented for 'ComplexFloat'"):
            getattr(tp, name)(z)
    with pytest.raises(NotImplementedError, match="aminmax"):
        tp.aminmax(z)
    for values, word in ((z, "complex"), (flags, "bool")):
        with pytest.raises(RuntimeError, match=f"topk does not support {word} dtypes on CPU"):
            values.topk(1)
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        flags.relu()
    for name in ("cumsum", "cumprod"):
        with pytest.raises(NotImplementedError, match=f"\"{name}_out_cpu\" not implemented for 'Bool'"):
            getattr(flags.clone(), f"{name}_")(0)
        assert getattr(flags, name)(0).dtype is tp.int64
    with pytest.raises(IndexError, match="Dimension out of range"):
        tp.fft.fft2(tp.ones(2))
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: cuda"):
        tp.Tensor([1], device="cuda")
