"""Questions about tensors that a call was given and gave, and a mode that asks them of fake and real ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor
from tensorpy._prims_common import MetadataMismatchError, compare_tensor_meta
from tensorpy._subclasses.fake_tensor import FakeTensorMode, UnsupportedFakeTensorException, lifts
from tensorpy.utils._python_dispatch import TorchDispatchMode
from tensorpy.utils._pytree import tree_leaves, tree_map


def outputs_alias_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether a tensor among the outputs has the memory of one among the inputs."""
    given, made = (
        {t.untyped_storage()._cdata for t in tree_leaves(tensors) if isinstance(t, Tensor)}
        for tensors in (inputs, outputs)
    )
    return bool(given & made)


def outputs_are_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether one of the outputs is one of the inputs."""
    given = {id(t) for t in tree_leaves(inputs) if isinstance(t, Tensor)}
    return any(id(t) in given for t in tree_leaves(outputs) if isinstance(t, Tensor))


def output_alias_each_other(outputs: Any) -> bool:
    """Whether two of the outputs have one memory."""
    made = [t.untyped_storage()._cdata for t in tree_leaves(outputs) if isinstance(t, Tensor)]
    return len(set(made)) < len(made)


_ALIASING: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (
    ("outputs_alias_inputs", outputs_alias_inputs),
    ("outputs_are_inputs", outputs_are_inputs),
    ("outputs_alias_each_other", lambda outputs, inputs: output_alias_each_other(outputs)),
)
_VALUES_SAY = {"dynamic_output_shape", "inplace_view", "data_dependent_output"}


class CrossRefFakeMode(TorchDispatchMode):
    """A mode that runs each operator on fake tensors too, and compares what comes of both.

    Arguments:
        ignore_op_fn: tells of an operator whether it is left out
        check_strides: whether strides are compared
        check_aliasing: whether it is compared which results have the memory of arguments and of each other
        only_check_ops_with_meta: what PyTorch's mode is told; all operators have rules for fake tensors

    Raises: MetadataMismatchError, inside of it, from a call whose results differ.

    Example:
        >>> from tensorpy._subclasses import CrossRefFakeMode
        >>> with CrossRefFakeMode():
        ...     tp.ones(2) + 1
        tensor([2., 2.])
    """

    def __init__(
        self,
        ignore_op_fn: Callable[[Any], bool] | None = None,
        *,
        check_strides: bool = True,
        check_aliasing: bool = True,
        only_check_ops_with_meta: bool = True,
    ) -> None:
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda op: False)
        self.check_strides, self.check_aliasing = check_strides, check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = (args, kwargs or {})
        fake_given, fake = self._of_fakes(func, given)
        made = func(*given[0], **given[1])
        if fake is not None:
            self._compare(func, (made, given), (fake, fake_given))
        return made

    def _of_fakes(self, func: Any, given: Any) -> tuple[Any, Any]:
        """Fake arguments and what comes of them; None for an operator that is left out."""
        if lifts(func) or self.ignore_op_fn(func) or not _VALUES_SAY.isdisjoint(func.tags):
            return None, None
        try:
            with FakeTensorMode() as mode, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fakes = tree_map(lambda leaf: mode.from_tensor(leaf) if isinstance(leaf, Tensor) else leaf, given)
                return fakes, func(*fakes[0], **fakes[1])
        except UnsupportedFakeTensorException:
            return None, None

    def _compare(self, func: Any, real: tuple[Any, Any], fake: tuple[Any, Any]) -> None:
        context = f"When comparing the output of {func} on FakeTensor and concrete Tensors, found"
        for name, ask in _ALIASING if self.check_aliasing else ():
            of_real, of_fake = ask(*real), ask(*fake)
            if of_real != of_fake:
                raise MetadataMismatchError(f"{context} mismatch in {name} check {of_fake} != {of_real}")
        pairs = list(zip(tree_leaves(real[0]), tree_leaves(fake[0]), strict=True))
        for i, (a, b) in enumerate(pairs):
            if not isinstance(a, Tensor):
                continue
            try:
                self._compare_tensors(a, b)
            except MetadataMismatchError as error:
                which = f" for output[{i}]" if len(pairs) > 1 else ""
                raise MetadataMismatchError(f"{context} mismatched tensor metadata{which}: {error}") from error

    def _compare_tensors(self, real: Tensor, fake: Tensor) -> None:
        if real.requires_grad != fake.requires_grad:
            raise MetadataMismatchError("mismatched requires_grad-ness of outputs")
        if real.layout is _C.strided and real.storage_offset() != fake.storage_offset():
            raise MetadataMismatchError("mismatched storage offset")
        compare_tensor_meta(real, fake, check_strides=self.check_strides)
