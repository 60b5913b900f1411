"""What each view of a history is worth: chosen on outcomes that it has not learned from.

A view's bandwidth and the pull of its prior are those that foretell held-out outcomes best. Its sharpness
follows from the errors of held-out neighbours: where neighbours err together the estimate is off there, and
the Beta posterior has to be as wide as that; where they err independently it is luck, and no reason to
explore.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tercet import threads
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.grove import Grove
from tercet.embedding.inference import Phi
from tercet.embedding.rivals import Implied
from tercet.embedding.unlearned import log_loss
from tercet.policies.held_out import MANY_REFERENCES, REFERENCES, Glade, Sight
from tercet.policies.reliability import Reliability, likeliest
from tercet.policies.views import View
from tercet.reference.exact import Estimate
from tercet.types import Feedback, Ids

BANDWIDTHS = (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.45, 1.75, 2.1)
OWN_BANDWIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)  # in typical distances
PULLS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # kernel mass that the mean reward is worth in an estimate
SHARPEST, BLUNTEST = 300.0, 0.3
PRIOR_WEIGHT = 1.5  # outcomes that the mean reward is worth where there is no evidence, before doubt
# Held-out neighbours do not show all that is wrong: phi has bent the space around the very outcomes in
# memory. On simulations, whose chances are known, squared errors are twice what they show.
DOUBT = 2.0
# Their errors may also cancel by chance. Then luck alone would be left, whose variance is a small part of the
# whole, about a tenth where chances are known: so much with doubt.
LUCK = 0.2
# The best kernel gets narrower with n^(-1 / (4 + d)), in d dimensions (Scott, 1992), and more outcomes decide
# than chose. Phi's space has few dimensions that matter.
DIMENSIONS = 2
STACKING = 5.0  # outcomes' worth of an equal share for every kind


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """A phi, and the rows of the history that it has not learned from."""

    embed: Phi
    kind: int  # phis of a kind share bandwidth, sharpness and prior
    held: Ids
    own: bool = False  # the user's, whose distances may have any size


@dataclass(frozen=True, kw_only=True, eq=False)
class Fixed:
    """What the user has decided; None is learned."""

    bandwidth: float | None
    sharpness: float | None
    prior: tuple[float, float] | None
    importance: bool
    half_life: float | None  # of a Decay


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """The phis of a kind and how they foretell the rows they have not seen."""

    phis: list[Phi]
    bandwidth: float
    pull: float
    means: Vector
    masses: Vector
    sharpest: float  # what luck allows
    near: list[Matrix]  # kernels between the real rows that are asked for together
    rewards: Vector
    real: Array  # rows that somebody saw: what others imply tells which view is right, not how sure it is
    curve: Reliability | None = None


def convene(trained: list[Trained], history: Feedback, fixed: Fixed) -> list[View]:
    """Return the views with their weights, bandwidths, sharpness and priors."""
    return together(weighed(trained, history, fixed), history, fixed)


def weighed(
    trained: list[Trained], history: Feedback, fixed: Fixed, implied: Implied | None = None
) -> list[Kind]:
    """Return the kinds of phis, with what their held-out rows say of them."""
    mean = mean_reward(history)
    sights = threads.each(
        lambda one: Sight.of(one.embed, history, one.held, implied, importance=fixed.importance), trained
    )
    # Outcomes without times fade by their number, which nothing is chosen by.
    half_life = None if history.times is None else fixed.half_life

    def kind(number: int) -> Kind:
        members = [i for i, one in enumerate(trained) if one.kind == number]
        phis = list({id(trained[i].embed): trained[i].embed for i in members}.values())
        own = trained[members[0]].own
        return _kind(phis, [sights[i] for i in members], half_life, mean, fixed, own=own)

    return threads.each(kind, sorted({one.kind for one in trained}))


def weighed_trees(whole: Grove, glades: list[Glade]) -> Kind:
    """Return the kind of a grove, as others like it foretell rows that they have not learned from.

    Leaves have no bandwidth to choose.
    """
    pull, curve, means, rewards = foretold_by_trees(glades)
    return Kind(
        phis=[whole],
        bandwidth=1.0,
        pull=pull,
        curve=curve,
        means=means,
        masses=np.concatenate([glade.estimate().mass for glade in glades]),
        sharpest=LUCK * float(np.median([glade.sharpest() for glade in glades])),
        near=[glade.near() for glade in glades],
        rewards=rewards,
        real=np.concatenate([glade.real for glade in glades]),
    )


def foretold_by_trees(glades: list[Glade]) -> tuple[float, Reliability, Vector, Vector]:
    """Return the pull and the curve that foretell held-out rewards best, their means, and the rewards."""
    mean = mean_reward(glades[0].history)
    rewards = np.concatenate([glade.rewards for glade in glades])
    found = [glade.estimate() for glade in glades]

    def bent(pull: float) -> tuple[float, float, Reliability, Vector]:
        """Its loss first; means of many trees shun 0 and 1, and a curve makes up for it."""
        means = np.concatenate([_shrunk(estimate, pull, mean) for estimate in found])
        curve = likeliest(means, rewards)
        means = curve.mean(means)
        return float(log_loss(means, rewards).mean()), pull, curve, means

    _, pull, curve, means = min(map(bent, PULLS), key=lambda one: one[0])
    return pull, curve, means, rewards


def mean_reward(history: Feedback) -> float:
    """Return the expected reward of an arm of which nothing is known."""
    return float((history.rewards.sum() + 1) / (len(history) + 2))  # never 0 or 1: nothing is impossible


def _kind(
    phis: list[Phi], sights: list[Sight], half_life: float | None, mean: float, fixed: Fixed, *, own: bool
) -> Kind:
    grid = _bandwidths(sights[0], fixed, own=own)
    late = [] if half_life is None else [sight.late() for sight in sights]
    if late and all(len(sight.asked) for sight in late):
        sights = late
    else:
        half_life = None  # nothing to replay
    rewards = np.concatenate([sight.rewards for sight in sights])

    def foretold(bandwidth: float, most: int) -> list[Estimate]:
        if half_life is not None:
            return threads.each(lambda sight: sight.replay(bandwidth, half_life), sights)
        return threads.each(lambda sight: sight.estimate(bandwidth, most=most), sights)

    def loss(bandwidth: float) -> tuple[float, float]:
        """Of the best pull, and that pull."""
        found = foretold(bandwidth, REFERENCES)
        means = {
            pull: np.concatenate([_shrunk(estimate, pull, mean) for estimate in found]) for pull in PULLS
        }
        return min((float(log_loss(means[pull], rewards).mean()), pull) for pull in PULLS)

    bandwidth, pull = _lowest(loss, grid)
    if len(grid) > 1 and half_life is None:
        bandwidth *= sights[0].thinned(REFERENCES) ** (1 / (4 + DIMENSIONS))
    found = foretold(bandwidth, MANY_REFERENCES)
    return Kind(
        phis=phis,
        bandwidth=bandwidth,
        pull=pull,
        means=np.concatenate([_shrunk(estimate, pull, mean) for estimate in found]),
        masses=np.concatenate([estimate.mass for estimate in found]),
        sharpest=LUCK
        * float(np.median(threads.each(lambda sight: sight.sharpest(bandwidth, half_life), sights))),
        near=threads.each(lambda sight: sight.near(bandwidth, half_life), sights),
        rewards=rewards,
        real=np.concatenate([sight.real for sight in sights]),
    )


def _lowest(loss: Callable[[float], tuple[float, float]], grid: tuple[float, ...]) -> tuple[float, float]:
    """Return the bandwidth with the smallest loss, and its pull: go downhill from the middle of the grid."""
    losses: dict[int, tuple[float, float]] = {}

    def at(place: int) -> tuple[float, float]:
        if place not in losses:
            losses[place] = loss(grid[place])
        return losses[place]

    here = len(grid) // 2
    while True:
        around = range(max(here - 1, 0), min(here + 2, len(grid)))
        there = min(around, key=at)
        if there == here:
            return grid[here], at(here)[1]
        here = there


def together(kinds: list[Kind], history: Feedback, fixed: Fixed) -> list[View]:
    """Return the views of all kinds together."""
    mean, real = mean_reward(history), kinds[0].real
    rewards = kinds[0].rewards[real]
    alone = [
        min(_sharpness(kind.means[real], kind.masses[real], rewards, kind.near), kind.sharpest)
        for kind in kinds
    ]
    weights = _stacked([kind.means for kind in kinds], kinds[0].rewards)
    means, counts = np.zeros((2, len(rewards)))
    near = [np.zeros_like(kernel) for kernel in kinds[0].near]
    for weight, sharpness, kind in zip(weights, alone, kinds, strict=True):
        means += weight * kind.means[real]
        counts += weight * sharpness * kind.masses[real]
        for total, kernel in zip(near, kind.near, strict=True):
            total += weight * kernel
    together = _sharpness(means, counts, rewards, near)
    return [
        View(
            embed=phi,
            weight=float(weight / len(kind.phis)),
            bandwidth=kind.bandwidth,
            sharpness=fixed.sharpness
            or float(np.clip(sharpness * together, BLUNTEST, kind.sharpest)) / DOUBT,
            counts=fixed.prior or (PRIOR_WEIGHT / DOUBT * mean, PRIOR_WEIGHT / DOUBT * (1 - mean)),
            pull=None if fixed.prior else kind.pull,
            curve=None if fixed.prior else kind.curve,
        )
        for weight, sharpness, kind in zip(weights, alone, kinds, strict=True)
        for phi in kind.phis
    ]


def _shrunk(estimate: Estimate, pull: float, mean: float) -> Vector:
    return (estimate.mass * estimate.mean + pull * mean) / (estimate.mass + pull)


def _bandwidths(sight: Sight, fixed: Fixed, *, own: bool) -> tuple[float, ...]:
    """The candidates: those of our networks, or shares of the root mean squared distance between points."""
    if fixed.bandwidth is not None:
        return (fixed.bandwidth,)
    typical = float(np.sqrt(2 * sight.points.var(axis=0).sum())) or 1.0
    return tuple(share * typical for share in OWN_BANDWIDTHS) if own else BANDWIDTHS


def _sharpness(means: Vector, counts: Vector, rewards: Vector, near: list[Matrix]) -> float:
    """Return the factor on the counts at which the Beta variances add up to what neighbours err together.

    With e the errors of held-out rows, Σ κ_ij e_i e_j over pairs of different rows estimates Σ κ_ij times
    the squared error of the estimate itself: luck is independent, so it cancels.
    """
    starts = np.cumsum([0, *(len(kernel) for kernel in near)])
    shared, weights = 0.0, np.empty(len(means))
    for kernel, start, stop in zip(near, starts[:-1], starts[1:], strict=True):
        error = (rewards - means)[start:stop]
        shared += float(error @ kernel @ error - (np.diagonal(kernel) * error**2).sum())
        weights[start:stop] = kernel.sum(axis=1) - np.diagonal(kernel)
    spread = weights * means * (1 - means)
    low, high = np.log(BLUNTEST), np.log(SHARPEST)
    for _ in range(40):  # the sum falls with the factor: halve the interval
        middle = (low + high) / 2
        if (spread / (np.exp(middle) * counts + PRIOR_WEIGHT + 1)).sum() > shared:
            low = middle
        else:
            high = middle
    return float(np.exp(low))


def _stacked(means: list[Vector], rewards: Vector) -> Array:
    """Return the weights whose mixture makes the held-out rewards most likely (by EM)."""
    likelihoods = np.exp([-log_loss(mean, rewards) for mean in means])
    weights = np.full(len(means), 1 / len(means))
    for _ in range(200):
        shares = weights[:, None] * likelihoods
        shares /= shares.sum(axis=0)
        weights = (shares.sum(axis=1) + STACKING / len(means)) / (len(rewards) + STACKING)
    return weights
