"""Pruning: weights times a mask of zeros and ones, which a hook applies before each call.

The weight `name` is kept as the parameter `name`_orig and the buffer `name`_mask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from tensorpy import _C
from tensorpy._C import Tensor


class BasePruningMethod(ABC):
    """A way to choose what is pruned: subclass it, write `compute_mask`.

    Example:
        >>> issubclass(nn.utils.prune.L1Unstructured, nn.utils.prune.BasePruningMethod)
        True
    """

    _tensor_name: str
    PRUNING_TYPE = ""

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask of what stays, on top of a mask that there is."""

    def apply_mask(self, module: Any) -> Tensor:
        """The pruned tensor."""
        mask, original = (getattr(module, f"{self._tensor_name}_{part}") for part in ("mask", "orig"))
        return mask.to(original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Prunes a tensor of a module, on top of what was pruned before.

        Returns: the method's object.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        found = [(k, h) for k, h in module._forward_pre_hooks.items() if _is_of(h, name)]
        for key, hook in found:
            del module._forward_pre_hooks[key]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, f"{name}_orig") if found else getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {scores.shape}"
            )
        before = getattr(module, f"{name}_mask") if found else _C.ones_like(original)
        mask = method.compute_mask(scores, default_mask=before.detach())
        if not found:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            module.register_buffer(f"{name}_mask", mask)
        else:
            setattr(module, f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor without what is pruned."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        mask = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Makes the pruning lasting: the parameter has the pruned values."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _is_of(hook: Any, name: str) -> bool:
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> for _ in range(2):
        ...     layer = nn.utils.prune.random_unstructured(layer, "weight", amount=1)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """

    def __init__(self, *args: Any) -> None:
        methods: Any = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        self._pruning_methods: tuple[Any, ...] = ()
        if methods:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method for the same tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The last method chooses among what the mask leaves."""
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
            result = mask.clone()
            result[left] = method.compute_mask(t[left], default_mask=mask[left])
            return result
        if method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            left = mask.sum(others) != 0
            rows = left.nonzero().squeeze(1)
            made = method.compute_mask(t.index_select(dim, rows), default_mask=mask.index_select(dim, rows))
            return mask.index_copy(dim, rows, made)
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask=mask)
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


class Identity(BasePruningMethod):
    """Prunes nothing, and makes the mask.

    Example:
        >>> layer = nn.utils.prune.identity(nn.Linear(2, 2), "weight")
        >>> layer.weight_mask
        tensor([[1., 1.],
                [1., 1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


def _validate_pruning_amount_init(amount: Any) -> None:
    """amount: how many are pruned, or which share."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, int) and amount < 0) or (isinstance(amount, float) and not 0.0 <= amount <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    """A number of elements is at most what there are."""
    if isinstance(amount, int) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """How many of a number are pruned."""
    return amount if isinstance(amount, int) else round(amount * tensor_size)


def _validate_structured_pruning(t: Tensor) -> None:
    """There are slices where there is more than one dimension."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """The dimension is one of the tensor's."""
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The norm of order n of each slice along a dimension."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return _C.norm(t, p=n, dim=others)


def _count(amount: float, size: int) -> int:
    """The same, of an amount that may be wrong."""
    _validate_pruning_amount_init(amount)
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


class _Unstructured(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    Arguments:
        amount: a fraction, from 0 to 1, or how many

    Example:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 2), "weight", amount=2)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            chosen = _C.rand_like(t).reshape(-1).topk(count)[1]
            mask.view(-1)[chosen] = 0
        return mask


class L1Unstructured(_Unstructured):
    """Prunes the elements of the smallest magnitude.

    Arguments:
        amount: a fraction, from 0 to 1, or how many

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=0.5)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            chosen = t.detach().abs().reshape(-1).topk(count, largest=False)[1]
            mask.view(-1)[chosen] = 0
        return mask


class _Structured(BasePruningMethod):
    amount: float
    dim: int
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        count = _count(self.amount, t.shape[self.dim])
        if count == 0:
            return default_mask
        kept = self._scores(t).topk(t.shape[self.dim] - count)[1]
        mask = _C.zeros_like(t).index_fill(self.dim, kept, 1.0)
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prunes whole slices at random.

    Arguments:
        amount: a fraction, from 0 to 1, or how many
        dim: the dimension along which slices are taken

    Example:
        >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 2), "weight", amount=1, dim=0)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """

    def _scores(self, t: Tensor) -> Tensor:
        return _C.rand(t.shape[self.dim])


class LnStructured(_Structured):
    """Prunes the slices of the smallest norm.

    Arguments:
        amount: a fraction, from 0 to 1, or how many
        n: the order of the norm
        dim: the dimension along which slices are taken

    Example:
        >>> layer = nn.utils.prune.ln_structured(nn.Linear(2, 2), "weight", amount=1, n=2, dim=0)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        return _compute_norm(t.detach(), self.n, self.dim)


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask is zero.

    Example:
        >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 1), "weight", tp.tensor([[1.0, 0.0]]))
        >>> layer.weight_mask
        tensor([[1., 0.]])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Makes the mask, of ones, and prunes nothing.

    Arguments:
        module: the module
        name: the name of the parameter

    Returns: the module.

    Example:
        >>> layer = nn.utils.prune.identity(nn.Linear(2, 2), "weight")
        >>> layer.weight_mask
        tensor([[1., 1.],
                [1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes a number, or a share, of elements at random.

    Arguments:
        module: the module
        name: the name of the parameter
        amount: a fraction, from 0 to 1, or how many

    Returns: the module.

    Raises: ValueError for an amount that is a share outside [0, 1] or more than there is.

    Example:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 2), "weight", amount=2)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prunes a number, or a share, of the elements of the smallest magnitude.

    Arguments:
        module: the module
        name: the name of the parameter
        amount: a fraction, from 0 to 1, or how many
        importance_scores: what is compared instead of the values, of their shape

    Returns: the module.

    Raises: ValueError for an amount that is a share outside [0, 1] or more than there is.

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=0.5)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes a number, or a share, of slices at random.

    Arguments:
        module: the module
        name: the name of the parameter
        amount: a fraction, from 0 to 1, or how many
        dim: the dimension along which slices are taken

    Returns: the module.

    Raises: ValueError for an amount that is a share outside [0, 1] or more than there is.

    Example:
        >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 2), "weight", amount=1, dim=0)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prunes a number, or a share, of the slices of the smallest norm.

    Arguments:
        module: the module
        name: the name of the parameter
        amount: a fraction, from 0 to 1, or how many
        n: the order of the norm
        dim: the dimension along which slices are taken
        importance_scores: what is compared instead of the values, of their shape

    Returns: the module.

    Raises: ValueError for an amount that is a share outside [0, 1] or more than there is.

    Example:
        >>> layer = nn.utils.prune.ln_structured(nn.Linear(2, 2), "weight", amount=1, n=2, dim=0)
        >>> layer.weight_mask.sum()
        tensor(2.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes where a mask is zero.

    Arguments:
        module: the module
        name: the name of the parameter
        mask: bool: which elements count

    Returns: the module.

    Example:
        >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 1), "weight", tp.tensor([[1.0, 0.0]]))
        >>> layer.weight_mask
        tensor([[1., 0.]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: dict[Any, Tensor] | None = None, **kwargs: Any
) -> None:
    """Prunes several tensors, pairs of a module and a name, as if they were one.

    Arguments:
        parameters: a parameter or several
        pruning_method: the class of the method
        importance_scores: what is compared instead of the values, of their shape

    Example:
        >>> a, b = nn.Linear(2, 2), nn.Linear(2, 2)
        >>> nn.utils.prune.global_unstructured([(a, "weight"), (b, "weight")], nn.utils.prune.L1Unstructured, amount=4)
        >>> (a.weight_mask.sum() + b.weight_mask.sum())
        tensor(4.)
    """
    pairs, scores = list(parameters), importance_scores or {}
    tensors: list[Any] = [scores.get(pair, getattr(*pair)) for pair in pairs]
    masks = [getattr(m, f"{n}_mask", None) for m, n in pairs]
    before = _C.cat(
        [(_C.ones_like(t) if mask is None else mask).reshape(-1) for t, mask in zip(tensors, masks, strict=True)]
    )
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container = PruningContainer(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found {method.PRUNING_TYPE}'
        )
    made = container.compute_mask(_C.cat([t.detach().reshape(-1) for t in tensors]), before)
    for (module, name), part, t in zip(pairs, made.split([t.numel() for t in tensors]), tensors, strict=True):
        custom_from_mask(module, name, part.view_as(t))


def remove(module: Any, name: str) -> Any:
    """Makes the pruning of a tensor lasting, and takes mask and hook out.

    Arguments:
        module: the module
        name: the name of the parameter

    Returns: the module.

    Raises: ValueError for a tensor that is not pruned.

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=0.5)
        >>> layer = nn.utils.prune.remove(layer, "weight")
        >>> (layer.weight == 0).sum()
        tensor(2)
    """
    for key, hook in list(module._forward_pre_hooks.items()):
        if _is_of(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a tensor of the module, or of one inside, is pruned.

    Returns: bool.

    Example:
        >>> nn.utils.prune.is_pruned(nn.Linear(2, 2))
        False
    """
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h in m._forward_pre_hooks.values())
