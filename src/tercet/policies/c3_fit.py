"""From a history to views: C3's phi trained, and what its user left open chosen."""

import warnings
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tercet.embedding.apart import FAR, Apart
from tercet.embedding.grove import IMPLIED, grown
from tercet.embedding.inference import Perceptron, Phi
from tercet.embedding.learning import Shape, learn, learn_committee, on_gpu
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.residual import Residual
from tercet.embedding.rivals import Implied, implied
from tercet.embedding.unlearned import log_loss, unlearned
from tercet.policies.calibration import (
    Fixed,
    Kind,
    Trained,
    convene,
    foretold_by_trees,
    mean_reward,
    together,
    weighed,
    weighed_trees,
)
from tercet.policies.held_out import Glade
from tercet.policies.reliability import Reliability
from tercet.policies.surprises import Surprises, noticed
from tercet.policies.views import View
from tercet.reference.forgetting import Decay
from tercet.types import Feedback, Ids

if TYPE_CHECKING:
    from tercet.policies.c3 import C3

LEAST = 20  # outcomes: fewer neither train a network nor choose a bandwidth
TREES_FROM = 1_000  # outcomes that trees learn from, at least: views of fewer may still change
JUDGED, JUDGES, PARTS = 4_000, 40, 4  # outcomes, trees and folds that tell whether arms are rivals
LIKELY = 1.5  # standard errors by which trees must foretell better so
SMALL = 10_000  # outcomes up to which there are networks of each kind, and the features themselves are a view
PIECES = (0, 48)  # of a column, by kind of network
FOLDS = 2  # each held out from one network of a kind
RENEWED = 4  # folds of the outcomes since fit, all of which no network has learned from
HELD, FEW, MOST_HELD = 0.15, 250, 4_096  # share of the history in a fold; up to a quarter of a small one

BANDWIDTH, SHARPNESS, PRIOR_WEIGHT = 1.0, 0.75, 0.25  # where no history has said better


def usual(policy: "C3", embed: Phi, *, mean: float = 0.5) -> View:
    """Return the only view of a policy that has no history to choose by."""
    return View(
        embed=embed,
        weight=1.0,
        bandwidth=policy.bandwidth or BANDWIDTH,
        sharpness=policy.sharpness or SHARPNESS,
        counts=policy.prior or (PRIOR_WEIGHT * mean, PRIOR_WEIGHT * (1 - mean)),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """What a history taught: views, and what corrects them."""

    views: list[View]
    surprises: Surprises | None
    reliability: Reliability | None
    implied: Implied | None = None  # outcomes that trees know of beside those of the history


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """The views of a history and, if they were weighed, how: their kinds, rows held out, what was implied."""

    views: list[View]
    kinds: list[Kind] = field(default_factory=list)
    folds: list[Ids] = field(default_factory=list)
    implied: Implied | None = None


def fitted(policy: "C3", history: Feedback, rng: np.random.Generator, *, remember: bool) -> Fitted:
    """Return what a history teaches."""
    seen = _viewed(policy, history, rng)
    surprises, reliability = corrections(policy, seen.views, history, remember=remember)
    if seen.folds and surprises is None and _grows(policy, history):
        try:
            more = None if seen.implied is None else seen.implied.some(IMPLIED, rng)
            kinds = [*seen.kinds, _grove(policy, history, seen, more, rng)]
            views = _set_apart(together(kinds, history, _fixed(policy)), history)
            return Fitted(views=views, surprises=None, reliability=reliability, implied=more)
        except KeyboardInterrupt:
            warnings.warn("growing trees was interrupted; C3 does without them", stacklevel=3)
    return Fitted(views=seen.views, surprises=surprises, reliability=reliability)


def _viewed(policy: "C3", history: Feedback, rng: np.random.Generator) -> _Seen:
    """Return what networks and features see of a history."""
    options = replace(policy.training, importance=policy.importance)  # learn what is decided with
    if ours(policy) and len(history) < LEAST:
        return _Seen(views=renewed(policy, [], history, rng, first=0))
    ample = ours(policy) and len(history) > SMALL and on_gpu()
    if isinstance(options, LeaveOneOut):
        options = options.settled(ample=ample)
    choosing = isinstance(options, LeaveOneOut) and len(history) >= LEAST
    folds = _folds(len(history), rng, count=FOLDS if ours(policy) else 1) if choosing else []
    more = None
    if ours(policy) and isinstance(options, LeaveOneOut):
        more = _implied(policy, history, rng)
        trained = _committee(policy, history, folds, rng, options, more, ample=ample)
    else:
        embed = learn(
            policy.phi,
            history,
            rng,
            shape=Shape(hidden=policy.hidden or (64,), dim=policy.dim, scale=policy.scale),
            bandwidth=policy.bandwidth or BANDWIDTH,
            options=options,
            progress=policy.progress,
            held=folds[0] if folds else None,
        )
        if not choosing:
            return _Seen(views=[usual(policy, embed, mean=mean_reward(history))])
        trained = [Trained(embed=embed, kind=0, held=folds[0], own=policy.phi is not None)]
    kinds = weighed(trained, history, _fixed(policy), more)
    views = _set_apart(together(kinds, history, _fixed(policy)), history)
    folds = [one.held for one in trained if one.kind == trained[0].kind]
    return _Seen(views=views, kinds=kinds, folds=folds, implied=more)


def ours(policy: "C3") -> bool:
    """Return whether the policy's phi is of our own making, from first to last."""
    return policy.phi is None and policy.hidden is None


def renewed(
    policy: "C3", phis: list[Phi], history: Feedback, rng: np.random.Generator, *, first: int
) -> list[View]:
    """Return the views of these phis, which have learned from no row since `first`, and of the features.

    Where outcomes are too few to choose by, the features are the only view.
    """
    embed: Phi = unlearned(history, rng)
    if len(history) < LEAST or not isinstance(policy.training, LeaveOneOut):
        return [usual(policy, embed, mean=mean_reward(history))]
    kinds = [phis[i : i + FOLDS] for i in range(0, len(phis), FOLDS)] + [[embed]]
    folds = [first + held for held in _folds(len(history) - first, rng, count=RENEWED)]
    trained = [
        Trained(embed=members[number % len(members)], kind=kind, held=held)
        for kind, members in enumerate(kinds)
        for number, held in enumerate(folds)
    ]
    return _set_apart(convene(trained, history, _fixed(policy)), history)


def _set_apart(views: list[View], history: Feedback) -> list[View]:
    """Let arms that differ in what never varied have little evidence in common with those of the history."""
    return [
        replace(view, embed=Apart.of(view.embed, history.arms, distance=FAR * view.bandwidth))
        if isinstance(view.embed, Perceptron | Residual)
        else view
        for view in views
    ]


def corrections(
    policy: "C3", views: list[View], history: Feedback, *, remember: bool = True
) -> tuple[Surprises | None, Reliability | None]:
    """Return what follows drift, if the history shows any, or else the curve that own outcomes will move."""
    surprises = None
    if policy.forgetting == "auto":
        surprises = noticed(
            views, history, importance=policy.importance, remember=remember, engine=policy.engine
        )
    return surprises, Reliability() if policy.recalibrate and surprises is None else None


def _grows(policy: "C3", history: Feedback) -> bool:
    """Return whether trees see this history too: not while views still change, nor where memory fades."""
    enough = len(history) >= TREES_FROM and bool(history.joint().shape[1])
    return bool(policy.trees) and enough and ours(policy) and not isinstance(policy.forgetting, Decay)


def _implied(policy: "C3", history: Feedback, rng: np.random.Generator) -> Implied | None:
    """Return what outcomes imply of other arms, if trees that believe it foretell unseen outcomes better."""
    forgets = policy.forgetting not in ("auto", None)  # what is implied would outlast what implied it
    if not policy.rivals or forgets or len(history) < TREES_FROM:
        return None
    luck = deepcopy(rng)  # where arms are no rivals, all is as if nobody had asked
    some = history[luck.permutation(len(history))[:JUDGED]]
    believed = implied(some, luck)
    if believed is None:
        return None
    folds, losses = np.array_split(luck.permutation(len(some)), PARTS), []
    for each in (None, believed):
        glades = [_glade(some, held, None, each, luck, trees=JUDGES) for held in folds]
        _, _, foretold, rewards = foretold_by_trees(glades)
        losses.append(log_loss(foretold, rewards))
    gained = losses[0] - losses[1]
    likely = gained.mean() > LIKELY * gained.std() / len(gained) ** 0.5
    return implied(history, luck) if likely else None


def _glade(
    history: Feedback,
    held: Ids,
    asked: Implied | None,
    learned: Implied | None,
    rng: np.random.Generator,
    *,
    trees: int,
) -> Glade:
    """Return how trees foretell held rows, from all others and what is learned from these."""
    learned = None if learned is None else learned.without(held)
    grove = grown(history[np.delete(np.arange(len(history)), held)], rng, trees=trees, implied=learned)
    return Glade.of(grove, history, held, asked, learned)


def _grove(
    policy: "C3", history: Feedback, seen: _Seen, more: Implied | None, rng: np.random.Generator
) -> Kind:
    """Return the kind of trees that have learned all of the history, weighed by others that have not."""
    # Half as many foretell nearly as well; and what they hold out would be missed in those that decide.
    some = -(-policy.trees // 2)
    glades = [_glade(history, held, seen.implied, more, rng, trees=some) for held in seen.folds]
    whole = grown(history, rng, trees=policy.trees, implied=more)
    return weighed_trees(whole, glades)


def _fixed(policy: "C3") -> Fixed:
    return Fixed(
        bandwidth=policy.bandwidth,
        sharpness=policy.sharpness,
        prior=policy.prior,
        importance=policy.importance,
        half_life=policy.forgetting.half_life if isinstance(policy.forgetting, Decay) else None,
    )


def _committee(
    policy: "C3",
    history: Feedback,
    folds: list[Ids],
    rng: np.random.Generator,
    options: LeaveOneOut,
    more: Implied | None,
    *,
    ample: bool,
) -> list[Trained]:
    """Two networks of each kind beside the features; for a larger history one of each.

    With power to spare, four of the kind whose first one foretells better.
    """
    small = len(history) <= SMALL

    def trained(plans: list[tuple[int, Ids]], *, followed: bool = False) -> tuple[list[Trained], list[float]]:
        learned = learn_committee(
            history,
            plans,
            rng,
            dim=policy.dim,
            bandwidth=policy.bandwidth or BANDWIDTH,
            options=options,
            implied=more,
            followed=followed,
            progress=policy.progress,
        )
        networks = [
            Trained(embed=phi, kind=PIECES.index(pieces), held=held)
            for (phi, _), (pieces, held) in zip(learned, plans, strict=True)
        ]
        return networks, [loss for _, loss in learned]

    # Before the end of a training nothing tells which kind will be ahead: pieces learn faster at first.
    networks, losses = trained(list(product(PIECES, folds if small else folds[:1])), followed=ample)
    if small:
        plain = unlearned(history, rng)
        networks += [Trained(embed=plain, kind=len(PIECES), held=held) for held in folds]
    elif ample:
        best = int(np.argmin(losses))
        others, _ = trained([(PIECES[best], held) for held in (*folds, folds[-1])])
        networks = [networks[best], *others]
    return networks


def _folds(n: int, rng: np.random.Generator, *, count: int) -> list[Ids]:
    size = min(max(round(HELD * n), min(n // 4, FEW)), MOST_HELD)
    order = rng.permutation(n)
    return [order[number * size : (number + 1) * size] for number in range(count)]
