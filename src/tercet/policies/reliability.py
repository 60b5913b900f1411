"""How often an arm paid of which so much was expected: what only own outcomes tell.

A log can mislead about means: who wrote it may have known more than the features say, and whoever plays the
best estimate prefers those that err upwards. Held-out rows of the log show neither. So the outcomes since fit
move a curve through which all means go,

    logit mean' = offset + slope · logit mean,

each by one step of Newton's method from what all before it made likely (logistic regression, filtered). It
rises, so no arm overtakes another.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tercet.types import Posterior

OFFSET, SLOPE = 1.0, 0.5  # how far a curve may be from none: standard deviations
FLATTEST = 0.2
LATELY = 300  # outcomes that a curve is learned from, about: older ones fade, for memory mends much by itself
SUREST = 1e-4  # nearer to 0 or 1, a mean counts as this


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
        return 1 / (1 + np.exp(-self.offset - self.slope * _logit(foretold)))

    def learned(self, foretold: float, reward: float) -> "Reliability":
        """Return the curve after an outcome of which this mean was foretold."""
        place, mean = float(_logit(foretold)), float(self.mean(foretold))
        kept, luck = 1 - 1 / LATELY, mean * (1 - mean)
        first, both, second = (kept * value for value in self.precision)
        first += (1 - kept) * OFFSET**-2 + luck
        both += luck * place
        second += (1 - kept) * SLOPE**-2 + luck * place**2
        step = (reward - mean) / (first * second - both**2)
        return replace(
            self,
            offset=self.offset + step * (second - both * place),
            slope=max(self.slope + step * (first * place - both), FLATTEST),
            precision=(first, both, second),
        )


def _logit(mean: Any) -> Any:
    clipped = np.clip(mean, SUREST, 1 - SUREST)
    return np.log(clipped / (1 - clipped))
