"""How often an arm paid of which so much was expected: what only own outcomes tell.

A log can mislead about means: who wrote it may have known more than the features say, and whoever plays the
best estimate prefers those that err upwards. Held-out rows of the log show neither. So the outcomes since fit
move a curve through which all means go,

    logit mean' = offset + slope · logit mean,

each by one step of Newton's method from what all before it made likely (logistic regression, filtered). It
rises, so no arm overtakes another.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet.checks import Vector
from tercet.types import Posterior

OFFSET, SLOPE = 1.0, 0.5  # how far a curve may be from none: standard deviations
FLATTEST = 0.2
STEPS = 10  # of Newton's method
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)  # of a step, tried in turn
LATELY = 300  # outcomes that a curve is learned from, about: older ones fade, for memory mends much by itself
# Logits beyond which a mean is moved as one there: no order is lost, and no outcome weighs too much.
FAR = 9.0
SUREST = 1e-12  # nearer to 0 or 1, a mean counts as this


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """The curve, and the precision with which it is known (of offset, of both, of slope)."""

    offset: float = 0.0
    slope: float = 1.0
    precision: tuple[float, float, float] = (OFFSET**-2, 0.0, SLOPE**-2)

    def corrected(self, beliefs: Posterior) -> Posterior:
        """Return the same evidence for the means that the curve makes of these."""
        mean, counts = self.mean(beliefs.mean), beliefs.alpha + beliefs.beta
        return Posterior(mean=mean, mass=beliefs.mass, alpha=counts * mean, beta=counts * (1 - mean))

    def mean(self, foretold: Any) -> Any:
        """Return what the curve makes of means."""
        logit = _logit(foretold)
        return 1 / (1 + np.exp(-logit - self.offset - (self.slope - 1) * np.clip(logit, -FAR, FAR)))

    def learned(self, foretold: float, reward: float) -> "Reliability":
        """Return the curve after an outcome of which this mean was foretold."""
        faded = self._faded()
        place, mean = float(np.clip(_logit(foretold), -FAR, FAR)), float(faded.mean(foretold))
        luck = mean * (1 - mean)
        first, both, second = faded.precision
        precision = first + luck, both + luck * place, second + luck * place**2
        offset, slope = _solved(precision, (reward - mean, place * (reward - mean)))
        return Reliability(
            offset=faded.offset + offset, slope=max(faded.slope + slope, FLATTEST), precision=precision
        )

    def _faded(self) -> "Reliability":
        """What is known fades, and gives way to what was believed at first."""
        kept = 1 - 1 / LATELY
        first, both, second = (kept * value for value in self.precision)
        offset, slope = self.offset, self.slope - 1
        information = first * offset + both * slope, both * offset + second * slope
        precision = first + (1 - kept) * OFFSET**-2, both, second + (1 - kept) * SLOPE**-2
        offset, slope = _solved(precision, information)
        return Reliability(offset=offset, slope=max(1 + slope, FLATTEST), precision=precision)


def likeliest(foretold: Vector, rewards: Vector) -> Reliability:
    """Return the curve that makes these outcomes likeliest, no later one fading an earlier one."""
    curve, place = Reliability(), np.clip(_logit(foretold), -FAR, FAR)
    for _ in range(STEPS):
        mean = curve.mean(foretold)
        luck, missed = mean * (1 - mean), rewards - mean
        offset, slope = curve.offset, curve.slope - 1
        first, both, second = luck.sum() + OFFSET**-2, luck @ place, luck @ place**2 + SLOPE**-2
        towards = missed.sum() - offset * OFFSET**-2, missed @ place - slope * SLOPE**-2
        moved = _solved((first, both, second), towards)
        steps = (
            Reliability(
                offset=float(offset + share * moved[0]),
                slope=float(max(1 + slope + share * moved[1], FLATTEST)),
                precision=(float(first), float(both), float(second)),
            )
            for share in SHARES
        )
        # Far from the end a whole step can lead farther off.
        before = _unlikely(curve, foretold, rewards)
        curve = next((step for step in steps if _unlikely(step, foretold, rewards) <= before), curve)
    return curve


def _unlikely(curve: Reliability, foretold: Vector, rewards: Vector) -> float:
    """Return what `likeliest` makes small: the log-loss of all outcomes, and what the curve bends."""
    bent = np.clip(curve.mean(foretold), SUREST, 1 - SUREST)
    loss = -(rewards @ np.log(bent) + (1 - rewards) @ np.log1p(-bent))
    return float(loss + ((curve.offset / OFFSET) ** 2 + ((curve.slope - 1) / SLOPE) ** 2) / 2)


def filtered(foretold: Vector, rewards: Vector) -> Vector:
    """Return what curves make of means, each learned from the outcomes before it."""
    curve, means = Reliability(), np.empty_like(foretold)
    for i, (mean, reward) in enumerate(zip(foretold.tolist(), rewards.tolist(), strict=True)):
        means[i] = curve.mean(mean)
        curve = curve.learned(mean, reward)
    return means


def _solved(matrix: tuple[float, float, float], vector: tuple[float, float]) -> tuple[float, float]:
    first, both, second = matrix
    determinant = first * second - both**2
    one, other = vector
    return (second * one - both * other) / determinant, (first * other - both * one) / determinant


def _logit(mean: Any) -> Any:
    clipped = np.clip(mean, SUREST, 1 - SUREST)
    return np.log(clipped / (1 - clipped))
