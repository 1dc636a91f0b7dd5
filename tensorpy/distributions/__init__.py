"""tensorpy.distributions: probability distributions, transforms of them, divergences between them."""

from __future__ import annotations

from tensorpy._package import proposing as _proposing
from tensorpy.distributions import constraints, transforms
from tensorpy.distributions.bernoulli import Bernoulli
from tensorpy.distributions.beta import Beta
from tensorpy.distributions.binomial import Binomial
from tensorpy.distributions.categorical import Categorical
from tensorpy.distributions.cauchy import Cauchy
from tensorpy.distributions.chi2 import Chi2
from tensorpy.distributions.constraint_registry import biject_to, transform_to
from tensorpy.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorpy.distributions.dirichlet import Dirichlet
from tensorpy.distributions.distribution import Distribution
from tensorpy.distributions.exp_family import ExponentialFamily
from tensorpy.distributions.exponential import Exponential
from tensorpy.distributions.fishersnedecor import FisherSnedecor
from tensorpy.distributions.gamma import Gamma
from tensorpy.distributions.generalized_pareto import GeneralizedPareto
from tensorpy.distributions.geometric import Geometric
from tensorpy.distributions.gumbel import Gumbel
from tensorpy.distributions.half_cauchy import HalfCauchy
from tensorpy.distributions.half_normal import HalfNormal
from tensorpy.distributions.independent import Independent
from tensorpy.distributions.inverse_gamma import InverseGamma
from tensorpy.distributions.kl import kl_divergence, register_kl
from tensorpy.distributions.kumaraswamy import Kumaraswamy
from tensorpy.distributions.laplace import Laplace
from tensorpy.distributions.lkj_cholesky import LKJCholesky
from tensorpy.distributions.log_normal import LogNormal
from tensorpy.distributions.logistic_normal import LogisticNormal
from tensorpy.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from tensorpy.distributions.mixture_same_family import MixtureSameFamily
from tensorpy.distributions.multinomial import Multinomial
from tensorpy.distributions.multivariate_normal import MultivariateNormal
from tensorpy.distributions.negative_binomial import NegativeBinomial
from tensorpy.distributions.normal import Normal
from tensorpy.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from tensorpy.distributions.pareto import Pareto
from tensorpy.distributions.poisson import Poisson
from tensorpy.distributions.relaxed_bernoulli import RelaxedBernoulli
from tensorpy.distributions.relaxed_categorical import RelaxedOneHotCategorical
from tensorpy.distributions.studentT import StudentT
from tensorpy.distributions.transformed_distribution import TransformedDistribution
from tensorpy.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from tensorpy.distributions.uniform import Uniform
from tensorpy.distributions.von_mises import VonMises
from tensorpy.distributions.weibull import Weibull
from tensorpy.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _proposing("distributions", globals())
