"""What Python gives tensors and dtypes beside the C half: methods, `__torch_function__`, NumPy's protocol, older types.

`methods` has the methods of Tensor that no hot path needs; `torch_function` how classes of tensors are asked first;
`numpy_functions` what np.sum(t) runs; `dtypes` finfo, iinfo and the words for dtypes; `typed` FloatTensor and its kin.
"""

from tensorpy._tensor import torch_function  # noqa: F401  (Tensor asks classes)
from tensorpy._tensor.methods import RemovableHandle, is_tensor

__all__ = ["RemovableHandle", "is_tensor"]
