"""Views of the same outcomes: each a phi with a memory, together one posterior."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet import coupled, posterior
from tercet.checks import Matrix, Vector
from tercet.embedding.grove import Grove
from tercet.embedding.inference import Phi, candidates
from tercet.policies.reliability import Reliability
from tercet.reference.exact import Estimate, ReferenceSet
from tercet.reference.leaves import Leaves
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
    curve: Reliability | None = None  # what then becomes of the mean; None: nothing
    references: ReferenceSet | Leaves | None = None

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

    def says(self, beliefs: Posterior) -> Vector:
        """Return the weight of what this view believes of each arm: trees without evidence say nothing."""
        return self.weight * (beliefs.mass > 0 if self.trees else np.ones(len(beliefs.mass)))

    @property
    def trees(self) -> bool:
        """Whether this view sees leaves of trees, and not points of a space."""
        return isinstance(self.embed, Grove)

    def overlap(self, queries: Matrix) -> Matrix:
        """Return the share of evidence that every two arms have in common."""
        if not self.trees:
            return coupled.overlap(queries, self.bandwidth)
        shared = ((queries[:, None] == queries) & (queries >= 0)).mean(axis=2)
        np.fill_diagonal(shared, 1.0)  # of an unknown arm too
        return shared

    def judged(self, estimate: Estimate) -> Posterior:
        """Return the posterior that an estimate from memory makes, with the prior."""
        evidence = posterior.posterior(
            estimate.mass, estimate.mean, sharpness=self.sharpness, prior=self.counts
        )
        if self.pull is None:
            return evidence
        counts, usual = evidence.alpha + evidence.beta, self.counts[0] / sum(self.counts)
        mean = (estimate.mass * estimate.mean + self.pull * usual) / (estimate.mass + self.pull)
        if self.curve is not None:
            mean = self.curve.mean(mean)
        return Posterior(mean=mean, mass=estimate.mass, alpha=counts * mean, beta=counts * (1 - mean))


def combined(views: Sequence[View], queries: Sequence[Matrix], time: float | None) -> Posterior:
    """Return the posterior of all views: the weighted mean of their means, and of their counts.

    Trees that have nothing at an arm leave it to the others.
    """
    if len(views) == 1:
        return views[0].beliefs(queries[0], time)
    mean, mass, counts, total = np.zeros((4, len(queries[0])))
    for view, points in zip(views, queries, strict=True):
        beliefs = view.beliefs(points, time)
        weight = view.says(beliefs)
        mean += weight * beliefs.mean
        mass += weight * beliefs.mass
        counts += weight * (beliefs.alpha + beliefs.beta)
        total += weight
    if any(view.trees for view in views):  # otherwise weights add up to 1, but for roundings
        mean, mass, counts = mean / total, mass / total, counts / total
    mean = mean.clip(0.0, 1.0)  # a sum of weights can be off by a rounding
    return Posterior(mean=mean, mass=mass, alpha=counts * mean, beta=counts * (1 - mean))


def overlap(views: Sequence[View], queries: Sequence[Matrix]) -> Matrix:
    """Return the share of evidence that every two arms have in common: the weighted mean of the views'."""
    common = np.zeros((len(queries[0]), len(queries[0])))
    for view, points in zip(views, queries, strict=True):
        common += view.weight * view.overlap(points)
    return common
