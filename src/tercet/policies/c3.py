"""C3, conditionally coupled contextual Thompson sampling: Algorithm 2, fed by Algorithm 1.

Embed each (context, arm) pair, estimate its reward from the references nearby, draw from the Beta
posterior, play the best draw, append the outcome, forget what is stale. No gradient step online.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, Self, final

import numpy as np

from tercet import checks, coupled, interrupts, posterior, threads
from tercet.checks import Matrix, Vector
from tercet.embedding.grove import Grove
from tercet.embedding.learning import as_function
from tercet.embedding.options import LeaveOneOut, Training
from tercet.policies import c3_fit, early, watch
from tercet.policies.base import drawn, highest, offered
from tercet.policies.reliability import Reliability
from tercet.policies.surprises import Surprises
from tercet.policies.views import View, combined, overlap
from tercet.policies.watch import Watch
from tercet.reference.evidence import Evidence, explain
from tercet.reference.exact import Engine, ReferenceSet
from tercet.reference.forgetting import Decay, Forgetting, RandomDrop, Window
from tercet.reference.leaves import Leaves
from tercet.types import Choice, Feedback, Posterior

# Width of the draws, as a share of the posterior's, where as much is known of an arm as of the best one; and
# the share of that knowledge at which it is 1. In between, the width is a power of the share.
NARROWEST, THINNEST = 1 / 32, 1 / 128


@dataclass(kw_only=True, eq=False)
class State:
    """What a policy has learned: its views of the world, each with a phi and a memory."""

    views: list[View] = field(default_factory=list)
    forgetting: Forgetting | None = None
    widths: tuple[int, int] | None = None  # features of a context and of an arm
    timed: bool | None = None  # whether outcomes come with times
    logged: int = 0  # outcomes that fit was given
    learned: int = 0  # outcomes since fit
    early: Feedback | None = None  # what is remembered, as it came, while views still change with it
    surprises: Surprises | None = None  # how far outcomes were lately from what the views foretold
    watch: Watch | None = None  # whether drift begins, or ends, that the history has not shown
    reliability: Reliability | None = None  # how often arms paid of which so much was foretold

    @property
    def foretells(self) -> bool:
        """Whether something learns from how far outcomes are from what the views foretold."""
        return any(part is not None for part in (self.surprises, self.watch, self.reliability))

    def correct(self, outcome: Feedback, foretold: Posterior) -> None:
        """Learn from an outcome of which the views foretold this, before they learn it."""
        mean, reward = float(foretold.mean[0]), float(outcome.rewards[0])
        if self.surprises is not None:
            self.surprises.learn(self.surprises.embed(outcome.contexts, outcome.arms), outcome, foretold)
        if self.reliability is not None:
            self.reliability = self.reliability.learned(mean, reward)
        if self.watch is not None:
            self.watch.see(outcome, mean)

    @property
    def references(self) -> ReferenceSet | None:
        """The memory of the first view, which is never of trees; the others hold the same outcomes."""
        memory = self.views[0].references if self.views else None
        assert not isinstance(memory, Leaves)
        return memory


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class C3:
    """Thompson sampling on kernel regression in a learned space.

    Many threads may choose at once, but not while another one updates.

    Parameters
    ----------
    dim
        Dimension of phi's space.
    hidden
        Hidden layers (Softplus) of a single phi, as in the paper. None: residual networks, half of which see
        numbers in pieces, and for small histories the plain features beside them (docs/c3.md).
    trees
        Random trees that learn a history of 1,000 outcomes and more beside the networks, unless it drifts
        (docs/c3.md); 0: none.
    rivals
        Learn from a reward of 1 that no other arm would have paid, if a history of 1,000 outcomes and more
        shows that arms are such rivals and favours the right one. Nothing of it is assumed where `forgetting`
        drops or fades outcomes.
    phi
        Use this instead: any callable from paired rows (n x context, n x arm) to n x dim, or a torch
        module of two such arguments, which `fit` trains.
    bandwidth
        σ of the RBF kernel; None: what predicts held-out outcomes of the history best.
    sharpness
        Factor from kernel mass to Beta counts; None: so that the posterior is as wide as the estimates are
        wrong, as far as held-out outcomes tell.
    prior
        Beta counts before any evidence; None: three quarters of an outcome of the history's mean reward,
        which pulls on estimates as strongly as predicts best.
    spread
        Standard deviation of the draws, as a share of the posterior's. 1 is the algorithm as published;
        smaller explores less. None: 1/32 for arms that are known as well as the best one, and more, up to
        all of it, the less is known of an arm.
    forgetting
        `Decay`, `Window` or `RandomDrop`; None keeps everything. "auto" keeps everything too; but how far
        outcomes were lately from what they had been is added, from a memory that fades, if the newest
        outcomes, of the history or since, are surely foretold better so.
    recalibrate
        Move means, after `fit`, to how often arms really paid of which so much was foretold. No arm overtakes
        another by that. Where surprises correct them, there is no need.
    explore
        "thompson" (the algorithm) or "greedy" (play the best mean, an ablation).
    draws
        "independent" (the algorithm) or "coupled": arms share their luck as far as they share their evidence,
        so that many near-copies of an arm can not outbid a better one. The arm is then drawn from the shares
        of 1,024 joint draws, and these are the propensities: an estimate of the model's odds, but the very
        odds with which the arm was picked. One that wins no draw is not played in that round.
    importance
        IWKR (Eq. 5), or NWKR (Eq. 3, an ablation) if false.
    floor
        Probability of a uniform choice, which keeps logs usable for evaluation.
    scale
        Standardise inputs by the history's mean and spread before a phi of `hidden` layers.
    training
        How phi learns: `LeaveOneOut`, or `Training`, the options of the paper's Algorithm 1. With the latter
        bandwidth, sharpness and prior are not learned (None: 1, 3/4, and a quarter of an outcome of the mean
        reward).
    progress
        Show a bar while training (on a terminal).
    engine
        Of the reference set: "auto", "numba" or "numpy".

    >>> rng = np.random.default_rng(0)
    >>> policy = C3(phi=lambda contexts, arms: arms)
    >>> policy.update(Feedback.one(context=[], arm=[1.0, 0.0], reward=1.0), rng)
    >>> policy.update(Feedback.one(context=[], arm=[9.0, 9.0], reward=0.0), rng)
    >>> policy.choose([], [[1.0, 0.0], [9.0, 9.0]], rng).posterior.mean.round(2)
    array([0.88, 0.12])
    """

    dim: int = 16
    hidden: Sequence[int] | None = None
    trees: int = 100
    rivals: bool = True
    phi: Any = None
    bandwidth: float | None = None
    sharpness: float | None = None
    prior: tuple[float, float] | None = None
    spread: float | None = None
    forgetting: Forgetting | Literal["auto"] | None = "auto"
    recalibrate: bool = True
    explore: Literal["thompson", "greedy"] = "thompson"
    draws: Literal["independent", "coupled"] = "independent"
    importance: bool = True
    floor: float = 0.0
    scale: bool = True
    training: LeaveOneOut | Training = field(default_factory=LeaveOneOut)
    progress: bool = True
    engine: Engine = "auto"
    state: State = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = np.asarray([self.dim, *np.atleast_1d(() if self.hidden is None else self.hidden)])
        if sizes.dtype.kind not in "iu" or sizes.min() < 1:
            raise ValueError(f"dim and hidden sizes must be whole numbers, 1 or more; got {sizes.tolist()}")
        if self.hidden is not None:
            object.__setattr__(self, "hidden", tuple(sizes[1:].tolist()))
        for name in ("bandwidth", "sharpness", "spread"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
        checks.unit("floor", [self.floor])
        checks.whole("trees", self.trees, least=0)
        if self.explore not in ("thompson", "greedy"):
            raise ValueError(f'explore must be "thompson" or "greedy"; got {self.explore!r}')
        if self.draws not in ("independent", "coupled"):
            raise ValueError(f'draws must be "independent" or "coupled"; got {self.draws!r}')
        if self.forgetting != "auto" and not isinstance(self.forgetting, RandomDrop | Window | Decay | None):
            raise ValueError(
                f'forgetting must be "auto" or a rule such as Decay(half_life=...); got {self.forgetting!r}'
            )
        if not isinstance(self.training, LeaveOneOut | Training):
            raise ValueError(f"training must be LeaveOneOut(...) or Training(...); got {self.training!r}")
        if self.phi is not None and not callable(self.phi):
            raise ValueError(f"phi must be callable on (contexts, arms); got {type(self.phi).__name__}")
        if self.prior is not None and checks.vector("prior", self.prior, length=2).min() < 0:
            raise ValueError(f"prior must be two counts, 0 or more; got {self.prior}")
        views = [] if self.phi is None else [c3_fit.usual(self, as_function(self.phi))]
        rule = None if isinstance(self.forgetting, str) else self.forgetting
        state = State(views=views, forgetting=rule)
        state.watch = watch.begun(self, state)
        object.__setattr__(self, "state", state)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return C3 with the settings of the paper's classification experiments, with changes.

        Its news experiment is `C3.paper(hidden=(512,), dim=128, bandwidth=0.6, forgetting=RandomDrop(),
        training=Training.paper(epochs=20, batch=32, decay=0.9, calibration=0.01, reference=0.01,
        partitions=3))`.
        """
        settings: dict[str, Any] = {
            "hidden": (64,),
            "dim": 8,
            "bandwidth": 1.0,
            "sharpness": 1.0,
            "spread": 1.0,
            "prior": (1.0, 1.0),  # Eq. 7 and 8 have none; without it an arm whose first rewards are 0 is lost
            "forgetting": None,
            "recalibrate": False,
            "scale": False,
            "training": Training.paper(),
        }
        return cls(**(settings | changes))

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Train phi on the history (Algorithm 1), then remember its outcomes as references.

        Ctrl-C ends the training early and keeps phi's best epoch; before the first, nothing changes. Later,
        while trees grow, it does without them.
        """
        found = c3_fit.fitted(self, history, rng, remember=remember)
        state = State(
            views=found.views,
            forgetting=self.state.forgetting,
            surprises=found.surprises,
            reliability=found.reliability,
            timed=None if found.surprises is None else True,  # surprises fade by the clock, the first one too
            widths=_widths(history),
            logged=len(history),
            early=early.kept(self, history, remember=remember),
        )
        if remember and len(history):
            memories = threads.each(lambda view: self._memory_of(history, state, view), state.views)
            for view, memory in zip(state.views, memories, strict=True):
                view.references = memory
                if found.implied is not None and isinstance(memory, Leaves):
                    more = found.implied.outcomes
                    memory.suppose(view.embed(more.contexts, more.arms), more.rewards)
            state.timed = history.times is not None
            self._forget(state)
        if state.early is None:
            state.watch = watch.begun(self, state)
        object.__setattr__(self, "state", state)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,  # noqa: ARG002
    ) -> Choice:
        """Draw a reward for each arm from its posterior and play the best (Algorithm 2, lines 2-7).

        `time` is now, in the unit of the outcomes' times; None is the time of the newest outcome.
        """
        context, arms = self._checked(context, arms)
        queries = [view.queries(context, arms) for view in self._views()]
        beliefs = self._judged(queries, context, arms, time)
        choice = self._choice(beliefs, queries, rng)
        arm, chances = choice.arm, choice.propensities
        if self.floor > 0:
            chances = posterior.with_floor(chances, self.floor)
            if rng.random() < self.floor:
                arm = int(rng.integers(len(chances)))
        return Choice(arm=arm, propensities=chances, means=beliefs.mean, posterior=beliefs)

    def beliefs(self, context: Any, arms: Any, *, time: float | None = None) -> Posterior:
        """Return the Beta posterior of each arm (Algorithm 2, lines 3-4; Eq. 7 and 8)."""
        context, arms = self._checked(context, arms)
        queries = [view.queries(context, arms) for view in self._views()]
        return self._judged(queries, context, arms, time)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:  # noqa: ARG002 - ids decide
        """Append outcomes and forget what is stale (Algorithm 2, lines 8-10; section 4.2)."""
        if not len(feedback):
            return
        self._views()  # without any, there is nothing to learn with
        self._check_widths(_widths(feedback))
        if self.state.timed not in (None, feedback.times is not None):
            raise ValueError("times must come with every outcome or with none; got both kinds")
        if early.steady(self.state, feedback):
            self._learn(self.state, feedback)
            return
        state = early.draft(self.state)  # all of it is learned, or none
        for outcomes in early.steps(state, feedback):
            self._learn(state, outcomes)
            early.renew(self, state)
        object.__setattr__(self, "state", state)

    def embed(self, contexts: Any, arms: Any) -> Matrix:
        """Return phi of paired rows; of several views, side by side in units of their bandwidths.

        Trees are left out: a leaf has no place in a space.
        """
        contexts, arms = checks.matrix("contexts", contexts), checks.matrix("arms", arms)
        views = [view for view in self._views() if not view.trees]
        if len(views) == 1:
            return views[0].embed(contexts, arms)
        return np.hstack([view.embed(contexts, arms) * (view.weight**0.5 / view.bandwidth) for view in views])

    def explain(self, context: Any, arm: Any, *, time: float | None = None, most: int = 5) -> Evidence:
        """Return the past outcomes behind an arm's estimate, their weights, and the estimate without them.

        The estimate is what the references say alone, before surprises correct it and prior and sharpness
        make a posterior of it.
        """
        context, arms = self._checked(context, [arm])
        views = [
            (view.weight, view.references, view.queries(context, arms)[0])
            for view in self._views()
            if view.references is not None
        ]
        if not views:
            raise ValueError("there is no evidence yet: the policy remembers no outcome")
        return explain(views, time=time if self.state.timed else None, most=most)

    def __len__(self) -> int:
        """Return the number of outcomes in memory."""
        return 0 if self.state.references is None else len(self.state.references)

    def __bool__(self) -> bool:
        """Return true: a policy without memories is still a policy."""
        return True

    def save(self, path: str | PathLike[str]) -> None:
        """Write settings, phi and references to one safetensors file.

        A phi of your own is not written (that would take pickle): give it again to `load`.
        """
        from tercet.policies import c3_file

        c3_file.write(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, phi: Any = None, engine: Engine = "auto") -> "C3":
        """Read what `save` wrote; the policy goes on with bit-identical choices."""
        from tercet.policies import c3_file

        return c3_file.read(path, phi=phi, engine=engine)

    def _judged(self, queries: list[Matrix], context: Vector, arms: Matrix, time: float | None) -> Posterior:
        time = None if time is None else checks.number("time", time)
        if not self.state.timed:
            time = None  # outcomes without times have only their number, which no clock can be compared with
        beliefs, state = combined(self._views(), queries, time), self.state
        if state.surprises is not None:
            return state.surprises.corrected(beliefs, state.surprises.queries(context, arms), time)
        return beliefs if state.reliability is None else state.reliability.corrected(beliefs)

    def _choice(self, beliefs: Posterior, queries: list[Matrix], rng: np.random.Generator) -> Choice:
        if self.explore == "greedy":
            return highest(beliefs.mean, rng)
        spread = self.spread or _spread(beliefs)
        alpha, beta = beliefs.alpha / spread**2, beliefs.beta / spread**2
        if self.draws == "coupled":
            common = overlap(self._views(), queries)
            return drawn(coupled.propensities(alpha, beta, common, rng), rng)
        arm = highest(posterior.draw(alpha, beta, rng), rng).arm  # lines 5 and 7
        return Choice(arm=arm, propensities=posterior.quick_propensities(alpha, beta))

    def _memory_of(self, history: Feedback, state: State, view: View) -> ReferenceSet | Leaves:
        points = checks.matrix("phi's result", view.embed(history.contexts, history.arms))
        memory = self._new_references(state, view, points.shape[1])
        memory.append(points, history.rewards, history.times, history.ids)
        return memory

    def _learn(self, state: State, feedback: Feedback) -> None:
        """Append outcomes to the memory of each view, and forget where it is due."""
        points = [
            checks.matrix("phi's result", view.embed(feedback.contexts, feedback.arms))
            for view in state.views
        ]
        memories = [
            self._new_references(state, view, where.shape[1]) if view.references is None else view.references
            for view, where in zip(state.views, points, strict=True)
        ]
        for memory, where in zip(memories, points, strict=True):
            memory.check(where)
        if state.surprises is not None:
            state.surprises.references.check(state.surprises.embed(feedback.contexts, feedback.arms))
        raw = None if state.early is None else early.appended(state.early, feedback)
        with interrupts.held():  # from here on nothing can fail: all of it is learned, or none
            state.widths, state.timed, state.early = _widths(feedback), feedback.times is not None, raw
            for view, memory in zip(state.views, memories, strict=True):
                view.references = memory
            done = 0
            while done < len(feedback):
                watch.renew(self, state)
                wait = state.forgetting.until_next(state.learned) if state.forgetting else None
                if state.foretells:
                    wait = 1  # each is foretold from all before it
                part = slice(done, None if wait is None else done + wait)
                outcomes = feedback[part]
                if state.foretells:
                    state.correct(outcomes, combined(state.views, [where[part] for where in points], None))
                for memory, where in zip(memories, points, strict=True):
                    memory.append(where[part], outcomes.rewards, outcomes.times, outcomes.ids)  # lines 9, 10
                state.learned, done = state.learned + len(outcomes), done + len(outcomes)
                self._forget(state)

    def _new_references(self, state: State, view: View, dim: int) -> ReferenceSet | Leaves:
        if isinstance(view.embed, Grove):
            return Leaves(trees=dim, leaves=view.embed.leaves)
        half_life = state.forgetting.half_life if isinstance(state.forgetting, Decay) else None
        return ReferenceSet(
            dim=dim,
            bandwidth=view.bandwidth,
            half_life=half_life,
            importance=self.importance,
            engine=self.engine,
        )

    def _forget(self, state: State) -> None:
        if state.forgetting is None or state.references is None:
            return
        stale = state.forgetting.stale(state.references, state.learned)
        if stale is None:
            return
        for view in state.views:
            assert view.references is not None
            view.references.forget(stale)
        if state.early is not None:
            state.early = state.early[~stale]

    def _views(self) -> list[View]:
        if not self.state.views:
            raise ValueError("C3 needs a phi before it can decide: call fit(history, rng), or give phi=")
        return self.state.views

    def _checked(self, context: Any, arms: Any) -> tuple[Vector, Matrix]:
        context, arms = offered(context, arms)
        self._check_widths((len(context), arms.shape[1]))
        return context, arms

    def _check_widths(self, widths: tuple[int, int]) -> None:
        if self.state.widths not in (None, widths):
            raise ValueError(
                "context and arm must have {} and {} features, as before; ".format(*self.state.widths)
                + "got {} and {}".format(*widths)
            )


def _spread(beliefs: Posterior) -> Vector:
    """Return the width of each arm's draws: what is known of an arm counts against what is of the best."""
    counts = beliefs.alpha + beliefs.beta
    share = counts / max(counts[beliefs.mean == beliefs.mean.max()].max(), 1e-300)
    unknown = np.log(share.clip(THINNEST, 1.0)) / np.log(THINNEST)  # from 0 to 1
    return NARROWEST ** (1 - unknown)


def _widths(feedback: Feedback) -> tuple[int, int]:
    return feedback.contexts.shape[1], feedback.arms.shape[1]
