"""Steps of optimizers as functions of lists: parameters, gradients, and a list per state, all changed in place."""

from __future__ import annotations

import inspect
from typing import Any

from tensorpy.autograd.grad_mode import no_grad
from tensorpy.optim import adam as _adam
from tensorpy.optim import sgd as _sgd
from tensorpy.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from tensorpy.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from tensorpy.optim.averaging import ASGD
from tensorpy.optim.optimizer import ListOptimizer, settings_of
from tensorpy.optim.sgd import SGD

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
]  # fmt: skip

_PAIRS = {  # what is one setting of a group, and two arguments of a function
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
# arguments that are no settings of a group
_BESIDE = {"grad_scale": None, "found_inf": None, "has_complex": False, "has_sparse_grad": False}


def _function(cls: type[ListOptimizer], name: str, lists: str, settings: str, ways: str) -> Any:
    """A function of a class's step. `lists` are "argument=state" after the gradients, `settings` keyword arguments that
    have to be given; `ways` may be left out, and have the class's defaults (Note [Settings of optimizers])."""
    defaults = {**_BESIDE, **settings_of(cls)}
    states_of = dict(pair.split("=") for pair in lists.split())
    grads_name = "d_p_list" if cls is SGD else "grads"

    def step(params: Any, grads: Any, *args: Any, **options: Any) -> None:
        bound = signature.bind(params, grads, *args, **options)
        bound.apply_defaults()
        given = bound.arguments
        group: dict[str, Any] = {key: (given[a], given[b]) for key, (a, b) in _PAIRS.items() if a in given}
        group |= {key: value for key, value in given.items() if key not in states_of}
        group.setdefault("decoupled_weight_decay", cls is AdamW)
        group["fused"] = given.get("fused") or False
        used = {a: s for a, s in states_of.items() if len(given[a])}
        states = [{s: given[a][i] for a, s in used.items()} for i in range(len(params))]
        stepper = object.__new__(cls)
        stepper.defaults = {}
        for scaling in ("grad_scale", "found_inf"):
            setattr(stepper, scaling, given.get(scaling))
        with no_grad():
            stepper._update(group, params, list(grads), states)
        for argument, state in used.items():  # what a first step made
            for i, kept in enumerate(states):
                if kept[state] is not given[argument][i]:
                    given[argument][i] = kept[state]

    kinds = inspect.Parameter
    required = [kinds(n, kinds.POSITIONAL_OR_KEYWORD) for n in ("params", grads_name, *states_of)]
    optional = [kinds(n, kinds.POSITIONAL_OR_KEYWORD, default=defaults[n]) for n in ways.split()]
    named = [kinds(n, kinds.KEYWORD_ONLY) for n in settings.split()]
    signature = inspect.Signature([*required, *optional, *named])
    step.__name__ = step.__qualname__ = name
    step.__doc__ = f"One step of {cls.__name__}."
    step.__signature__ = signature  # type: ignore[attr-defined]
    return step


_MEANS = "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq"
_STEPS = "state_steps=step"
_SCALED = "foreach capturable differentiable fused grad_scale found_inf has_complex"

adam = _function(
    Adam, "adam", f"{_MEANS} max_exp_avg_sqs=max_exp_avg_sq {_STEPS}",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
    f"{_SCALED} decoupled_weight_decay",
)  # fmt: skip
adamw: Any = _function(
    AdamW, "adamw", f"{_MEANS} max_exp_avg_sqs=max_exp_avg_sq {_STEPS}",
    "amsgrad beta1 beta2 lr weight_decay eps maximize", _SCALED,
)  # fmt: skip
sgd = _function(
    SGD, "sgd", "momentum_buffer_list=momentum_buffer", "weight_decay momentum lr dampening nesterov maximize",
    "has_sparse_grad foreach fused grad_scale found_inf",
)  # fmt: skip
adagrad: Any = _function(
    Adagrad, "adagrad", f"state_sums=sum {_STEPS}", "lr weight_decay lr_decay eps maximize",
    "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
)  # fmt: skip
adadelta: Any = _function(
    Adadelta, "adadelta", f"square_avgs=square_avg acc_deltas=acc_delta {_STEPS}", "lr rho eps weight_decay maximize",
    "capturable foreach differentiable has_complex",
)  # fmt: skip
adamax: Any = _function(
    Adamax, "adamax", f"exp_avgs=exp_avg exp_infs=exp_inf {_STEPS}", "eps beta1 beta2 lr weight_decay",
    "foreach maximize differentiable capturable has_complex",
)  # fmt: skip
nadam: Any = _function(
    NAdam, "nadam", f"{_MEANS} mu_products=mu_product {_STEPS}", "beta1 beta2 lr weight_decay momentum_decay eps",
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
)  # fmt: skip
radam: Any = _function(
    RAdam, "radam", f"{_MEANS} {_STEPS}", "beta1 beta2 lr weight_decay eps",
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
)  # fmt: skip
rmsprop: Any = _function(
    RMSprop, "rmsprop",
    f"square_avgs=square_avg grad_avgs=grad_avg momentum_buffer_list=momentum_buffer {_STEPS}",
    "lr alpha eps weight_decay momentum centered",
    "foreach maximize differentiable capturable has_complex",
)  # fmt: skip
rprop: Any = _function(
    Rprop, "rprop", f"prevs=prev step_sizes=step_size {_STEPS}", "step_size_min step_size_max etaminus etaplus",
    "foreach capturable maximize differentiable has_complex",
)  # fmt: skip
asgd: Any = _function(
    ASGD, "asgd", f"axs=ax mus=mu etas=eta {_STEPS}", "lambd lr t0 alpha weight_decay",
    "foreach maximize differentiable capturable has_complex",
)  # fmt: skip

# PyTorch has these two in the modules of their classes, of which they are made.
setattr(_adam, "adam", adam)  # noqa: B010
setattr(_sgd, "sgd", sgd)  # noqa: B010
