"""From evidence to a decision: (mass, mean) to Beta distributions, a draw from each, and a floor."""

from typing import Any

import numpy as np

from tercet import checks
from tercet.checks import Vector
from tercet.quadrature import parameters, propensities, quick_propensities
from tercet.types import Posterior

__all__ = ["draw", "posterior", "propensities", "quick_propensities", "with_floor"]

SMALLEST = 1e-300  # smaller parameters draw log-odds beyond the floating-point range


def posterior(mass: Any, mean: Any, *, sharpness: float = 1.0, prior: Any = (0.0, 0.0)) -> Posterior:
    """Return each arm's Beta posterior from its kernel mass and mean reward.

    `sharpness` multiplies the evidence; `prior` is added as pseudo-counts (of reward one, of reward zero).
    Without either evidence or prior an arm gets Beta(1, 1). The posterior's `mean` is
    alpha / (alpha + beta), the mean that is sampled from; its `mass` is the mass that came in.

    >>> posterior([8.0, 0.0], [0.25, 0.5], prior=(1, 1)).alpha
    array([3., 1.])
    """
    mass = checks.vector("mass", mass)
    mean = checks.unit("mean", mean, length=len(mass))
    if mass.min(initial=0.0) < 0:
        raise ValueError(f"mass must not be negative; got {mass.min():g} in row {mass.argmin()}")
    ones, zeros = checks.vector("prior", prior, length=2)
    if min(ones, zeros) < 0:
        raise ValueError(f"prior must be two numbers of at least 0; got {prior}")
    evidence = checks.positive("sharpness", sharpness) * mass
    alpha = evidence * mean + ones  # Eq. 7, sharpened, plus the prior
    beta = evidence * (1 - mean) + zeros  # Eq. 8
    unknown = alpha + beta == 0
    alpha[unknown] = beta[unknown] = 1.0
    return Posterior(mean=alpha / (alpha + beta), mass=mass, alpha=alpha, beta=beta)


def draw(alpha: Any, beta: Any, rng: np.random.Generator) -> Vector:
    """Return one independent Beta(alpha, beta) draw for each arm, as log-odds.

    On that scale draws from parameters of 1e-3 and less neither tie nor vanish. A point mass at 0
    (alpha = 0) is -inf, one at 1 (beta = 0) is +inf. `rng` moves on by the same amount whatever the arms.
    """
    alpha, beta = parameters(alpha, beta)
    # Gamma draws reject a varying number of candidates: a child generator keeps that from the caller's.
    child = np.random.default_rng(rng.integers(2**63))
    shape = np.maximum(np.concatenate([alpha, beta]), SMALLEST)
    # Gamma(a) = Gamma(a + 1) · U^(1/a)
    gammas = np.log(child.standard_gamma(shape + 1)) - child.standard_exponential(len(shape)) / shape
    log_odds = gammas[: len(alpha)] - gammas[len(alpha) :]
    log_odds[alpha == 0] = -np.inf
    log_odds[beta == 0] = np.inf
    return log_odds


def with_floor(propensities: Any, floor: float) -> Vector:
    """Return the propensities of a policy that plays a uniformly random arm with probability `floor`."""
    chances = checks.unit("propensities", propensities)
    if not 0 <= floor <= 1:
        raise ValueError(f"floor must lie in [0, 1]; got {floor}")
    if not len(chances):
        raise ValueError("propensities must hold at least one arm; got none")
    return (1 - floor) * chances + floor / len(chances)
