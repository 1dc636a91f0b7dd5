"""Calls with nothing to compute from, and factories of dtypes that have no such values, beside torch."""

import pytest

import tensorpy as tp

torch = pytest.importorskip("torch")

POOLS = [
    (f"{kind}_pool{dims}d", sizes)
    for kind in ("avg", "max")
    for dims in (1, 2, 3)
    for sizes in [
        *([0 if i == empty else 3 for i in range(n)] for n in (dims + 1, dims + 2) for empty in (None, *range(n))),
        [3] * dims,
        [3] * (dims + 3),
    ]
]


def outcome(package, function):
    try:
        result = function(package)
        return [list(r.shape) for r in (result if isinstance(result, tuple) else (result,))]
    except (RuntimeError, ValueError, IndexError, NotImplementedError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name, sizes", POOLS, ids=lambda v: "x".join(map(str, v)) if isinstance(v, list) else v)
def test_adaptive_pools_of_nothing(name, sizes):
    def call(package):
        return getattr(package.nn.functional, f"adaptive_{name}")(package.ones(sizes), 2)

    assert outcome(tp, call) == outcome(torch, call)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("op", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("correction", [-2, -1, 0, 1])
def test_the_variance_of_nothing_is_nan(op, correction):
    for shape, dim in (((0,), None), ((0, 3), 0), ((3, 0), 1)):
        ours = getattr(tp, op)(tp.ones(shape), dim, correction=correction)
        theirs = getattr(torch, op)(torch.ones(shape), dim, correction=correction)
        pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
        assert all(str(a.tolist()) == str(b.tolist()) for a, b in pairs)


@pytest.mark.parametrize("dtype", ["bool", "complex64", "complex128"])
@pytest.mark.parametrize("args", [(3,), (0, 2), (0, 2, 1)])
def test_arange_has_no_such_dtypes(dtype, args):
    for package in (tp, torch):
        with pytest.raises(NotImplementedError, match='"arange_cpu" not implemented for'):
            package.arange(*args, dtype=getattr(package, dtype))
