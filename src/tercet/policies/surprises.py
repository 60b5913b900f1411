"""What is different these days: a fading memory of surprises, beside the lasting memory of outcomes.

The views foretell what is usual. A surprise is how far an outcome was from what was foretold when it came.
The surprises nearby, in the plain features, and of late correct what the views say of arms from then on:

    correction    c(q, t) = rate Σ_i g_i κ(q, s_i) e_i,    g_i = 2^(-age / half-life)
    surprise      e_i = r_i - (mu(q_i) + c(q_i, t_i)), before outcome i is appended

At one place this is exponential smoothing: each outcome moves what is foretold by `rate` of its surprise. (It
is the gradient descent in kernel space of Kivinen, Smola and Williamson, 2004, with their forgetting.)

To let the outcomes themselves fade would lose what lasts (who likes what) along with what has passed (how
much of it, last week). How near, how late and at which rate: what would have foretold the newest outcomes of
the history best, and if that is not surely better than the views alone, recalibrated, nothing is corrected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tercet import threads
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import Perceptron
from tercet.embedding.unlearned import Directions, log_loss, scaled, squares
from tercet.policies.held_out import MANY_REFERENCES, Sight
from tercet.policies.reliability import filtered
from tercet.policies.views import View
from tercet.reference.exact import Engine, ReferenceSet
from tercet.reference.forgetting import Decay
from tercet.types import Feedback, Posterior

RECENT = 5_000  # outcomes of the history whose surprises are looked at, at most
FIRST = 0.25  # share of these that only serve the others
LEAST = 100  # outcomes: fewer surprises tell nothing
CONTEXT_SCALES = (0.0, 0.7, 1.5, 3.0)
ARM_SCALES = (0.0, 0.7, 1.5, 3.0, 6.0)
HALF_LIVES = tuple(0.5**power for power in range(1, 9))  # of the time that is looked at
BLOCKS = 1_000  # in a replay, rows of a block are foretold at once, then remembered
TOGETHER = 100  # rows that meet what is older in one product of matrices: faster
SHORTEST = 15  # outcomes in a half-life, at least
RATES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.45)
RAREST = 0.1  # share of outcomes that count as equally rare: a few lonely ones would decide all
SURE = 2.5  # standard errors by which the best correction must win
SMALLEST = 0.1  # share of a chance that a correction leaves, at least
FEWEST, MOST = 1.0, 1e6  # counts
# Smoothing errs by luck and by being late; at the rate that foretells best, by one as much as by the other.
DOUBT = 2.0


@dataclass(kw_only=True, eq=False)
class Surprises:
    """Surprises in memory, and what they say about an arm."""

    embed: Perceptron  # the plain features, scaled
    rate: float
    counts: float  # how sure to be that nothing has changed where no surprise is near, in outcomes
    references: ReferenceSet  # of (1 + surprise) / 2, which lies in [0, 1]

    def corrected(self, beliefs: Posterior, points: Matrix, time: float | None) -> Posterior:
        """Return the views' posterior moved to what is usual these days, and as wide as that is uncertain."""
        found = self.references.estimate(points, time)
        mean = _moved(beliefs.mean, self.rate * found.mass * (2 * found.mean - 1))
        # Two errors add up: that of what is usual, and that of how it differs.
        # Of the latter there is as much evidence as surprises near, and no more than smoothing averages.
        lasting, most = beliefs.alpha + beliefs.beta, (2 - self.rate) / self.rate
        late = (self.counts + found.mass * most / (found.mass + most)) / DOUBT
        counts = lasting * late / (lasting + late)
        return Posterior(mean=mean, mass=beliefs.mass, alpha=counts * mean, beta=counts * (1 - mean))

    def queries(self, context: Vector, arms: Matrix) -> Matrix:
        """Return where the context with each arm is."""
        return self.embed.candidates(context, arms)

    def learn(self, points: Matrix, outcome: Feedback, beliefs: Posterior) -> None:
        """Remember how far an outcome was from what was foretold, of which the views believed this."""
        assert outcome.times is not None
        foretold = self.corrected(beliefs, points, float(outcome.times[0])).mean
        self.append(points, outcome, outcome.rewards - foretold)

    def append(self, points: Matrix, outcomes: Feedback, surprises: Vector) -> None:
        """Remember surprises, and forget those that have faded."""
        self.references.append(points, (1 + surprises) / 2, outcomes.times, outcomes.ids)
        assert self.references.half_life is not None
        stale = Decay(half_life=self.references.half_life).stale(self.references, 0)
        if stale is not None:
            self.references.forget(stale)


def noticed(
    views: Sequence[View], history: Feedback, *, importance: bool, remember: bool, engine: Engine
) -> Surprises | None:
    """Return the memory of surprises that foretells the newest outcomes surely better than none, or None."""
    if history.times is None or len(history) < LEAST:
        return None
    order = np.argsort(history.times, kind="stable")
    earlier = order[:-RECENT]
    known = history[np.concatenate([earlier[:: -(-len(earlier) // MANY_REFERENCES) or 1], order[-RECENT:]])]
    foretold = _foretold(views, known, min(RECENT, len(order)), importance=importance)
    directions = Directions.of(history.contexts), Directions.of(history.arms)
    return among(known[-len(foretold) :], foretold, directions, remember=remember, engine=engine)


def among(
    rows: Feedback,
    foretold: Vector,
    directions: tuple[Directions, Directions],
    *,
    remember: bool,
    engine: Engine,
) -> Surprises | None:
    """Return the memory of surprises that foretells these rows, in order of time, surely better than none."""
    assert rows.times is not None
    if not np.ptp(rows.times) or not np.ptp(rows.rewards):
        return None
    contexts, arms = directions
    found = _best(rows, foretold, contexts.mapped(rows.contexts), arms.mapped(rows.arms))
    if found is None:
        return None
    embed = scaled(contexts, arms, found.context_scale, found.arm_scale)
    memory = ReferenceSet(
        dim=embed.dim, bandwidth=1.0, half_life=found.half_life, importance=False, engine=engine
    )
    surprises = Surprises(embed=embed, rate=found.rate, counts=found.counts, references=memory)
    if remember:
        surprises.append(embed(rows.contexts, rows.arms), rows, found.surprises)
    return surprises


def _foretold(views: Sequence[View], known: Feedback, recent: int, *, importance: bool) -> Vector:
    """Return what the views would have foretold of the last rows, each from what was known before."""
    rows = np.arange(len(known))

    def means(view: View) -> Vector:
        points = view.embed(known.contexts, known.arms)
        sight = Sight(
            history=known,
            points=points,
            seen=rows,
            asked=rows[-recent:],
            rivals=points[:0],
            implied=known.rewards[:0],
            held=0,
            importance=importance,
        )
        return view.judged(sight.replay(view.bandwidth, None)).mean

    weights = np.asarray([view.weight for view in views])
    return (weights @ np.asarray(threads.each(means, views))).clip(0.0, 1.0)  # it can be off by a rounding


class Setting(NamedTuple):
    """How to correct."""

    context_scale: float
    arm_scale: float
    half_life: float
    rate: float
    counts: float
    surprises: Vector  # that it leaves


def _best(rows: Feedback, foretold: Vector, contexts: Matrix, arms: Matrix) -> Setting | None:
    """Return what foretells the later rows best, if that is surely better than no correction."""
    assert rows.times is not None
    shares = [share for share in HALF_LIVES if share * len(rows) >= SHORTEST]
    times, half_lives = rows.times - rows.times[-1], np.asarray(shares) * float(np.ptp(rows.times))
    speeds = list(product(half_lives, RATES))
    asked = slice(int(FIRST * len(rows)), None)
    # A curve mends what is always wrong, with less to learn: surprises are for what is wrong these days.
    curved = filtered(foretold, rows.rewards)
    alone = min((log_loss(means, rows.rewards)[asked] for means in (foretold, curved)), key=np.mean)
    gain, error, best = 0.0, 0.0, None

    def replayed(scale: float) -> Array:
        return _replayed(scale * contexts, arms, times, rows.rewards, foretold, np.asarray(speeds))

    for scale, moved in zip(CONTEXT_SCALES, threads.each(replayed, CONTEXT_SCALES), strict=True):
        gains = alone[:, None] - log_loss(moved, rows.rewards[:, None])[:, asked]
        mean = gains.mean(axis=1)
        if mean.max() > gain:
            arm, speed = np.unravel_index(mean.argmax(), mean.shape)
            gain, error = float(mean.max()), float(gains[arm, :, speed].std() / len(alone) ** 0.5)
            half_life, rate = speeds[speed]
            left = rows.rewards - moved[arm, :, speed]
            best = Setting(scale, ARM_SCALES[arm], float(half_life), rate, MOST, left)
    if best is None or gain <= SURE * error:
        return None
    points = np.hstack([best.context_scale * contexts, best.arm_scale * arms])[asked]
    changed = _shared(points, times[asked], rows.rewards[asked], foretold[asked], best.half_life)
    return best._replace(counts=float(np.clip(1 / max(changed, 1e-300), FEWEST, MOST)))


def _replayed(
    contexts: Matrix, arms: Matrix, times: Vector, rewards: Vector, foretold: Vector, speeds: Matrix
) -> Array:
    """Return what would have been foretold: for each scale of arms, of each row, at each speed."""
    half_life, rate = speeds.T
    # 2^(-(t - t') / h) = 2^(-t / h) 2^(t' / h): surprises are kept as of the last row, and fade all alike.
    fade = np.exp2(times[:, None] / half_life)
    moved, kept = np.empty((2, len(ARM_SCALES), len(times), len(rate)))
    contexts, arms = contexts.astype(np.float32), arms.astype(np.float32)
    known = np.searchsorted(times, times, side="left")  # nobody knows of the same moment
    for first, end in _blocks(0, len(times), TOGETHER):
        # What was known to the first of these rows in one product of matrices, the rest step by step.
        here, long_known, last = slice(first, end), known[first], known[end - 1]
        apart = squares(contexts[here], contexts[:last]), squares(arms[here], arms[:last])
        kernel = np.stack([np.exp((apart[0] + np.float32(scale**2) * apart[1]) / -2) for scale in ARM_SCALES])
        sums = kernel[:, :, :long_known] @ kept[:, :long_known]
        for start, stop in _blocks(first, end, -(-len(times) // BLOCKS)):
            now, block = slice(start, stop), slice(start - first, stop - first)
            lately = slice(long_known, known[start])
            sums[:, block] += kernel[:, block, lately] @ kept[:, lately]
            moved[:, now] = _moved(foretold[now, None], rate / fade[now] * sums[:, block])
            kept[:, now] = fade[now] * (rewards[now, None] - moved[:, now])
    return moved


def _blocks(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Return the ends of pieces of a range."""
    return [(first, min(first + size, stop)) for first in range(start, stop, size)]


def _shared(points: Matrix, times: Vector, rewards: Vector, foretold: Vector, half_life: float) -> float:
    """Return how much of the variance of outcomes is a change that those at the same place and time share.

    Of two errors luck cancels, since it is independent. A place counts as much as any other, however often
    it was met: surprises are few where few have been, and changes may be larger there.
    """
    blocks = [slice(*ends) for ends in _blocks(0, len(times), 1_000)]
    density = np.concatenate([np.exp(squares(points[block], points) / -2).sum(axis=1) for block in blocks])
    rare = 1 / np.maximum(density, np.quantile(density, RAREST))
    errors, luck = rare * (rewards - foretold), rare * foretold * (1 - foretold)
    together, alone = 0.0, 0.0
    for block in blocks:
        near = np.exp(-2 * squares(points[block], points))  # twice as near, and as soon, as what is averaged
        near *= np.exp2(-2 * np.abs(times[block, None] - times) / half_life)
        near[times[block, None] == times] = 0.0  # itself, and what came at the same moment
        together += float(errors[block] @ near @ errors)
        alone += float(rare[block] @ near @ luck)
    return together / max(alone, 1e-300)


def _moved(usual: Any, correction: Any) -> Any:
    return (usual + correction).clip(SMALLEST * usual, 1 - SMALLEST * (1 - usual))
