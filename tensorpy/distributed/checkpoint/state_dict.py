"""State dictionaries of models and optimizers, whatever wraps a model and however an optimizer groups its parameters.

A parameter has the name that it has in the plain model, whatever DistributedDataParallel or `compile` put around it; an
optimizer's state is kept under these names, so that another optimizer, with other groups, may take it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import tensorpy as tp
from tensorpy import distributed as dist
from tensorpy import nn
from tensorpy._C import Tensor
from tensorpy.distributed.fsdp._fully_shard import FSDPModule
from tensorpy.distributed.fsdp._states import Wrapper, in_parts
from tensorpy.distributed.tensor import DTensor, distribute_tensor
from tensorpy.nn.modules.compiled import OptimizedModule
from tensorpy.nn.parallel import DistributedDataParallel
from tensorpy.optim import Optimizer

# What state dictionaries have, as annotations of programs name it.
FQNS_T: TypeAlias = "set[str]"
PrimitiveType: TypeAlias = "Tensor | int | float | str"
ValueType: TypeAlias = "PrimitiveType | list[PrimitiveType] | tuple[PrimitiveType, ...] | dict[str, ValueType]"
DictValueType: TypeAlias = "dict[str, ValueType]"
ListDictValueType: TypeAlias = "list[DictValueType]"
OptimizerStateType: TypeAlias = "dict[str, Any]"
Optimizers: TypeAlias = "Optimizer | Iterable[Optimizer]"


@dataclass
class StateDictOptions:
    """How state dictionaries are made and taken.

    Arguments:
        full_state_dict: whether tensors are whole on every rank
        cpu_offload: whether tensors come to the host; with full_state_dict rank 0 alone gets them
        ignore_frozen_params: whether parameters without gradients are left out
        keep_submodule_prefixes: whether names of `submodules` begin as in the model
        strict: whether a name that is missing or unknown is an error
        broadcast_from_rank0: whether rank 0 alone is given what is set, and sends it to the others
        flatten_optimizer_state_dict: whether an optimizer's state is one dictionary of long names
        dsd_fqn_modifiers: is taken

    Example:
        >>> from tensorpy.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
        >>> options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        >>> sorted(get_model_state_dict(nn.Linear(1, 1), options=options))
        ['bias', 'weight']
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None, submodules: Any = None) -> StateDictOptions:
    if submodules:
        warnings.warn(
            "Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. This feature can "
            "be achieved by manually filtering out the state_dict returned from get_state_dict.",
            FutureWarning,
            stacklevel=3,
        )
    found = options or StateDictOptions()
    if found.broadcast_from_rank0 and not found.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return found


def _listed(optimizers: Optimizers) -> tuple[Optimizer, ...]:
    found = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    if not found:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    return found


# ---- names ----

# Modules that wrap another, and what they call it.
_WRAPPERS: tuple[tuple[type, str], ...] = (
    (DistributedDataParallel, "module"),
    (OptimizedModule, "_orig_mod"),
)


def _is_around(module: Any, name: str) -> bool:
    """Whether a module wraps another that it calls so."""
    if isinstance(module, Wrapper):
        return type(module).inside == name
    return any(isinstance(module, wrapper) and name == inside for wrapper, inside in _WRAPPERS)


def _short(model: nn.Module, long: str) -> str:
    """A name without what wrappers add to it."""
    kept: list[str] = []
    inside: Any = model
    for part in long.split("."):
        if not _is_around(inside, part):
            kept.append(part)
        inside = getattr(inside, part, None)
    return ".".join(kept)


def _names(model: nn.Module) -> dict[int, list[str]]:
    """By the identity of a parameter: all its names. Optimizers have the parts of what fully_shard cut."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()
    found: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), []).append(_short(model, name))
    return found


# ---- whole dictionaries ----


def _is_left_out() -> bool:
    """Whether another rank gets what is whole and on the host."""
    return dist.is_initialized() and dist.get_rank() != 0


def _mapped(value: Any, change: Any) -> Any:
    """The same dictionaries and lists with other tensors."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _mapped(each, change) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(each, change) for each in value)
    return value


def _whole(tensor: Any) -> Any:
    """All of a tensor that is one of many processes."""
    if not isinstance(tensor, DTensor):
        return tensor
    with tp.no_grad():
        return tensor.full_tensor()


def _cut_as(value: Any, like: Any) -> Any:
    """A whole tensor as the one it is for is distributed."""
    if not isinstance(like, DTensor) or not isinstance(value, Tensor) or isinstance(value, DTensor):
        return value
    return distribute_tensor(value.detach(), like.device_mesh, like.placements, src_data_rank=None)


def _given(state_dict: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    if options.full_state_dict:
        state_dict = _mapped(state_dict, _whole)
    if options.cpu_offload:
        if options.full_state_dict and _is_left_out():
            return {}
        return _mapped(state_dict, lambda t: t.detach().cpu())
    return state_dict


class _Place:
    """Stands for a tensor that comes after the objects."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype, self.device = tuple(tensor.shape), tensor.dtype, tensor.device.type


def _from_rank0(value: Any) -> Any:
    """What rank 0 has, on every rank."""
    if not dist.is_initialized():
        raise ValueError("broadcast_from_rank0 needs a group: call init_process_group first")
    sent: list[Tensor] = []

    def note(tensor: Tensor) -> _Place:
        sent.append(tensor.detach().contiguous())
        return _Place(tensor)

    def take(place: Any) -> Any:
        if not isinstance(place, _Place):
            return place
        tensor = next(mine) if mine is not None else tp.empty(place.shape, dtype=place.dtype, device=place.device)
        dist.broadcast(tensor, 0)
        return tensor

    leads = dist.get_rank() == 0
    objects = [_mapped(value, note) if leads else None]
    mine = iter(sent) if leads else None
    dist.broadcast_object_list(objects, 0)
    return _filled(objects[0], take)


def _filled(value: Any, take: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, take) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_filled(each, take) for each in value)
    return take(value)


# ---- models ----


def _of_model(model: nn.Module, options: StateDictOptions, submodules: Any) -> dict[str, Any]:
    with in_parts():
        found = {_short(model, name): value for name, value in model.state_dict().items()}
    if submodules:
        prefixes = [f"{_short(model, name)}." for name, each in model.named_modules() if each in set(submodules)]
        keep = options.keep_submodule_prefixes
        found = {
            name if keep else name[len(prefix) :]: value
            for name, value in found.items()
            for prefix in prefixes
            if name.startswith(prefix)
        }
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                found.pop(_short(model, name), None)
    return _given(found, options)


def get_model_state_dict(
    model: nn.Module, *, submodules: set[nn.Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dictionary of a model, under the names that the plain model has.

    Arguments:
        model: it, however it is wrapped
        submodules: only what these have
        options: see StateDictOptions

    Returns: a dict.

    Example:
        >>> from tensorpy.distributed.checkpoint.state_dict import get_model_state_dict
        >>> list(get_model_state_dict(tp.nn.Linear(2, 2)))
        ['weight', 'bias']
    """
    return _of_model(model, _checked(options, submodules), submodules)


def _unfolded(model: nn.Module, state_dict: dict[Any, Any]) -> dict[str, Any]:
    """{submodule: its state dictionary} as one dictionary."""
    if not any(isinstance(key, nn.Module) for key in state_dict):
        return state_dict
    found = {}
    for name, module in model.named_modules():
        for key, value in state_dict.get(module, {}).items():
            found[f"{_short(model, name)}.{key}"] = value
    return found


def _into_model(model: nn.Module, state_dict: dict[Any, Any], options: StateDictOptions) -> Any:
    given = _unfolded(model, state_dict)
    if options.broadcast_from_rank0:
        given = _from_rank0(given)
    elif not given and options.strict and not options.ignore_frozen_params:
        raise RuntimeError("The option indicates that model state_dict is required to load, but it is empty.")
    with in_parts():
        targets = model.state_dict(keep_vars=True)
    long = {_short(model, name): name for name in targets}
    named = {long.get(name, name): value for name, value in given.items()}
    named = {name: _cut_as(value, targets.get(name)) for name, value in named.items()}
    empty = any(t.device.type == "meta" for t in [*model.parameters(), *model.buffers()])
    return model.load_state_dict(named, strict=options.strict, assign=empty and options.full_state_dict)


def set_model_state_dict(
    model: nn.Module, model_state_dict: dict[Any, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Gives a model, however it is wrapped, what get_model_state_dict gave; returns what load_state_dict does.

    Arguments:
        model: the model
        model_state_dict: its values, by the names of the plain model
        options: see StateDictOptions

    Returns: a named tuple (missing_keys, unexpected_keys).

    Example:
        >>> from tensorpy.distributed.checkpoint.state_dict import set_model_state_dict
        >>> set_model_state_dict(tp.nn.Linear(1, 1), {"weight": tp.ones(1, 1), "bias": tp.ones(1)})
        <All keys matched successfully>
    """
    return _into_model(model, model_state_dict, _checked(options))


# ---- optimizers ----


def _begin_state(optimizer: Optimizer) -> None:
    """Makes the state of an optimizer that has made no step: by one of length 0 along gradients of zeros."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = tp.zeros_like(parameter)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = tp.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _of_optimizer(optimizer: Optimizer, names: dict[int, list[str]]) -> OptimizerStateType:
    """Its state dictionary, with names for the numbers of parameters."""
    _begin_state(optimizer)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    unknown = sum(id(p) not in names for p in parameters)
    if unknown:
        raise ValueError(f"the optimizer has {unknown} parameters that the model has not")
    name_of = {number: names[id(p)][0] for number, p in enumerate(parameters)}
    found = optimizer.state_dict()
    state = {name_of[number]: value for number, value in found["state"].items()}
    groups = [{**group, "params": [name_of[n] for n in group["params"]]} for group in found["param_groups"]]
    return {"state": state, "param_groups": groups}


def _flat(prefix: str, value: Any, made: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            _flat(f"{prefix}.{key}", each, made)
    elif isinstance(value, (Tensor, int, float)):
        made[prefix] = value
    else:
        raise NotImplementedError(
            f"Flattening optimizer state_dict only supports tensor, int, float, dict states now. Type is {type(value)}."
        )


def _flattened(state_dict: OptimizerStateType) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, state in state_dict["state"].items():
        _flat(f"state.{name}", state, made)
    for group in state_dict["param_groups"]:
        for name in group["params"]:
            made.update({f"param_groups.{name}.{key}": v for key, v in group.items() if key != "params"})
    return made


def _of_optimizers(model: nn.Module, optimizers: tuple[Optimizer, ...], options: StateDictOptions) -> dict[str, Any]:
    names = _names(model)
    several = [_of_optimizer(optimizer, names) for optimizer in optimizers]
    found = {
        "state": {name: state for each in several for name, state in each["state"].items()},
        "param_groups": [group for each in several for group in each["param_groups"]],
    }
    return _given(_flattened(found) if options.flatten_optimizer_state_dict else found, options)


def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> OptimizerStateType:
    """The state of optimizers, under the names of the parameters in the plain model.

    Arguments:
        model: the model whose parameters they have
        optimizers: one or several
        submodules: is taken
        options: see StateDictOptions

    Returns: a dict of "state" and "param_groups".

    Example:
        >>> from tensorpy.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> model = tp.nn.Linear(2, 2)
        >>> list(get_optimizer_state_dict(model, tp.optim.Adam(model.parameters()))["state"])
        ['weight', 'bias']
    """
    return _of_optimizers(model, _listed(optimizers), _checked(options, submodules))


def _nested_state(known: Any, prefix: str, flat: dict[str, Any]) -> Any:
    """The value under a long name; a dictionary where the optimizer has one."""
    if not isinstance(known, dict):
        if prefix not in flat:
            raise RuntimeError(f"Missing key in the optimizer's state_dict: {prefix}")
        return flat[prefix]
    begin = f"{prefix}."
    made: dict[str, Any] = {}
    for key in [key for key in flat if key.startswith(begin)]:
        *way, last = key[len(begin) :].split(".")
        inside = made
        for step in way:
            inside = inside.setdefault(step, {})
        inside[last] = flat[key]
    return made


def _unflattened(optimizer: Optimizer, flat: dict[str, Any], names: dict[int, list[str]]) -> OptimizerStateType:
    state: dict[str, Any] = {}
    groups = []
    saved = {key.removeprefix("param_groups.").rpartition(".")[0] for key in flat if key.startswith("param_groups.")}
    for group in optimizer.param_groups:
        keys = [key for key in group if key != "params"]
        chosen = [_known(names[id(p)], saved) for p in group["params"]]
        made: dict[str, Any] = {"params": chosen}
        for key in keys:
            values = [flat[said] for name in chosen if (said := f"param_groups.{name}.{key}") in flat]
            if not values:
                raise RuntimeError(f"Missing key in the optimizer's state_dict: param_groups.{chosen[0]}.{key}")
            if any(_differs(values[0], value) for value in values):
                raise RuntimeError(
                    "All the parameters in the same parameter group should have the same saved param_group value. "
                    f"But {key} of {chosen[0]} is {values[0]}, and that of another is not."
                )
            made[key] = values[0]
        for name, parameter in zip(chosen, group["params"], strict=True):
            if parameter.requires_grad:
                known = optimizer.state.get(parameter, {})
                state[name] = {key: _nested_state(value, f"state.{name}.{key}", flat) for key, value in known.items()}
        groups.append(made)
    return {"state": state, "param_groups": groups}


def _differs(one: Any, other: Any) -> bool:
    return not tp.equal(one, other) if isinstance(one, Tensor) and isinstance(other, Tensor) else bool(one != other)


def _known(names: list[str], saved: Any) -> str:
    """That of a shared parameter's names which was saved."""
    return next((name for name in names if name in saved), names[0])


def _part_of(
    optimizer: Optimizer, given: OptimizerStateType, names: dict[int, list[str]], strict: bool
) -> OptimizerStateType:
    """What is for one optimizer, in its own order: its groups may be others than those that were saved."""
    if given["state"] and all(isinstance(key, int) for key in given["state"]):
        return given
    group_of = {name: group for group in given["param_groups"] for name in group["params"]}
    state: dict[str, Any] = {}
    groups = []
    for group in optimizer.param_groups:
        chosen = [_known(names[id(p)], group_of) for p in group["params"]]
        made: dict[str, Any] = {"params": chosen}
        for name, parameter in zip(chosen, group["params"], strict=True):
            made.update({key: value for key, value in group_of.get(name, {}).items() if key != "params"})
            if name in given["state"]:
                if parameter.requires_grad:
                    known = optimizer.state.get(parameter, {})
                    state[name] = {k: _cut_as(v, known.get(k)) for k, v in given["state"][name].items()}
            elif parameter.requires_grad and strict and given["state"]:
                raise RuntimeError(
                    f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires gradients "
                    "but has no saved optimizer state. To load anyway, use StateDictOptions(strict=False)."
                )
        groups.append({**{key: value for key, value in group.items() if key != "params"}, **made})
    return {"state": state, "param_groups": groups}


def _into_optimizers(
    model: nn.Module, optimizers: tuple[Optimizer, ...], state_dict: OptimizerStateType, options: StateDictOptions
) -> None:
    given = _from_rank0(state_dict) if options.broadcast_from_rank0 else state_dict
    if not given:
        raise RuntimeError("The option indicates that optimizer state_dict is required to load, but it is empty.")
    names = _names(model)
    for optimizer in optimizers:
        _begin_state(optimizer)
        if "state" in given:
            optimizer.load_state_dict(_part_of(optimizer, given, names, options.strict))
        else:
            optimizer.load_state_dict(_unflattened(optimizer, given, names))


def set_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    optim_state_dict: OptimizerStateType,
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Gives optimizers what get_optimizer_state_dict gave; their groups and order may be others.

    Arguments:
        model: the model whose parameters they have
        optimizers: one or several
        optim_state_dict: the state, by the names of parameters in the plain model
        options: see StateDictOptions

    Example:
        >>> from tensorpy.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
        >>> model = tp.nn.Linear(2, 2)
        >>> optimizer = tp.optim.Adam(model.parameters())
        >>> set_optimizer_state_dict(model, optimizer, get_optimizer_state_dict(model, optimizer))
    """
    _into_optimizers(model, _listed(optimizers), optim_state_dict, _checked(options))


# ---- both ----


def get_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], OptimizerStateType]:
    """The state dictionaries of a model and its optimizers, under the names of the plain model.

    Arguments:
        model: the model
        optimizers: one or several
        submodules: only what these have of the model
        options: see StateDictOptions

    Returns: two dicts.

    Example:
        >>> from tensorpy.distributed.checkpoint.state_dict import get_state_dict
        >>> model = tp.nn.Linear(2, 2)
        >>> of_model, of_optimizer = get_state_dict(model, tp.optim.SGD(model.parameters(), lr=0.1))
        >>> of_optimizer["param_groups"][0]["params"]
        ['weight', 'bias']
    """
    found = _checked(options, submodules)
    several = tuple([optimizers] if isinstance(optimizers, Optimizer) else optimizers)
    return _of_model(model, found, submodules), _of_optimizers(model, several, found) if several else {}


def set_state_dict(
    model: nn.Module,
    optimizers: Optimizers,
    *,
    model_state_dict: dict[Any, Any],
    optim_state_dict: OptimizerStateType,
    options: StateDictOptions | None = None,
) -> Any:
    """Gives a model and its optimizers what get_state_dict gave; returns what load_state_dict of the model does.

    Arguments:
        model: the model
        optimizers: one or several
        model_state_dict: of the model
        optim_state_dict: of the optimizers
        options: see StateDictOptions

    Returns: a named tuple (missing_keys, unexpected_keys).

    Example:
        >>> from tensorpy.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        >>> model = tp.nn.Linear(2, 2)
        >>> optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
        >>> of_model, of_optimizer = get_state_dict(model, optimizer)
        >>> set_state_dict(model, optimizer, model_state_dict=of_model, optim_state_dict=of_optimizer)
        <All keys matched successfully>
    """
    found = _checked(options)
    several = tuple([optimizers] if isinstance(optimizers, Optimizer) else optimizers)
    if several:
        _into_optimizers(model, several, optim_state_dict, found)
    return _into_model(model, model_state_dict, found)
