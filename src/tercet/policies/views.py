"""Views of the same outcomes: each a phi with a memory, together one posterior."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet import coupled, posterior
from tercet.checks import Matrix, Vector
from tercet.embedding.inference import Phi, candidates
from tercet.reference.exact import Estimate, ReferenceSet
from tercet.types import Posterior


@dataclass(kw_only=True, eq=False)
class View:
    """A phi, its memory, and how its evidence counts."""

    embed: Phi
    weight: float  # among the views: together 1
    bandwidth: float
    sharpness: float
    counts: tuple[float, float]  # of the prior: how sure to be of an arm without evidence
    pull: float | None = None  # of the prior's mean on an estimate, in kernel mass; None: as the counts say
    references: ReferenceSet | None = None

    def queries(self, context: Vector, arms: Matrix) -> Matrix:
        """Return phi of the context with each arm (Algorithm 2, line 3)."""
        return candidates(self.embed, context, arms)

    def beliefs(self, queries: Matrix, time: float | None) -> Posterior:
        """Return the Beta posterior of each arm (Algorithm 2, line 4; Eq. 7 and 8)."""
        if self.references is None:
            estimate = Estimate(mass=np.zeros(len(queries)), mean=np.full(len(queries), 0.5))
        else:
            estimate = self.references.estimate(queries, time)
        return self.judged(estimate)

    def judged(self, estimate: Estimate) -> Posterior:
        """Return the posterior that an estimate from memory makes, with the prior."""
        evidence = posterior.posterior(
            estimate.mass, estimate.mean, sharpness=self.sharpness, prior=self.counts
        )
        if self.pull is None:
            return evidence
        counts, usual = evidence.alpha + evidence.beta, self.counts[0] / sum(self.counts)
        mean = (estimate.mass * estimate.mean + self.pull * usual) / (estimate.mass + self.pull)
        return Posterior(mean=mean, mass=estimate.mass, alpha=counts * mean, beta=counts * (1 - mean))


def combined(views: Sequence[View], queries: Sequence[Matrix], time: float | None) -> Posterior:
    """Return the posterior of all views: the weighted mean of their means, and of their counts."""
    if len(views) == 1:
        return views[0].beliefs(queries[0], time)
    mean, mass, counts = np.zeros((3, len(queries[0])))
    for view, points in zip(views, queries, strict=True):
        beliefs = view.beliefs(points, time)
        mean += view.weight * beliefs.mean
        mass += view.weight * beliefs.mass
        counts += view.weight * (beliefs.alpha + beliefs.beta)
    mean = mean.clip(0.0, 1.0)  # a sum of weights can be off by a rounding
    return Posterior(mean=mean, mass=mass, alpha=counts * mean, beta=counts * (1 - mean))


def overlap(views: Sequence[View], queries: Sequence[Matrix]) -> Matrix:
    """Return the share of evidence that every two arms have in common: the weighted mean of the views'."""
    common = np.zeros((len(queries[0]), len(queries[0])))
    for view, points in zip(views, queries, strict=True):
        common += view.weight * coupled.overlap(points, view.bandwidth)
    return common
