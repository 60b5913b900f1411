"""C3, conditionally coupled contextual Thompson sampling: Algorithm 2, fed by Algorithm 1.

Embed each (context, arm) pair, estimate its reward from the references nearby, draw from the Beta
posterior, play the best draw, append the outcome, forget what is stale. No gradient step online.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, Self, final

import numpy as np

from tercet import checks, interrupts, posterior
from tercet.checks import Matrix, Vector
from tercet.embedding.inference import Phi, candidates
from tercet.embedding.learning import Shape, as_function, learn
from tercet.embedding.options import Training
from tercet.policies.base import highest, offered
from tercet.reference.evidence import Evidence, explain
from tercet.reference.exact import Engine, Estimate, ReferenceSet
from tercet.reference.forgetting import Decay, Forgetting, RandomDrop, Window
from tercet.types import Choice, Feedback, Posterior

PRIOR_WEIGHT = 1.0  # outcomes that the history's mean reward is worth as a prior


@dataclass(kw_only=True, eq=False)
class State:
    """What a policy has learned: phi, the prior's counts, and its memory."""

    embed: Phi | None
    counts: tuple[float, float]
    widths: tuple[int, int] | None = None  # features of a context and of an arm
    references: ReferenceSet | None = None
    timed: bool | None = None  # whether outcomes come with times
    learned: int = 0  # outcomes since fit


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class C3:
    """Thompson sampling on kernel regression in a learned space.

    Many threads may choose at once, but not while another one updates.

    Parameters
    ----------
    hidden, dim
        Hidden layers of phi (Softplus) and the dimension of its space.
    phi
        Use this instead: any callable from paired rows (n x context, n x arm) to n x dim, or a torch
        module of two such arguments, which `fit` trains.
    bandwidth
        σ of the RBF kernel.
    sharpness
        Factor from kernel mass to Beta counts; larger explores less.
    prior
        Beta counts before any evidence; None: one outcome of the history's mean reward.
    forgetting
        `Decay`, `Window` or `RandomDrop`; None keeps everything.
    explore
        "thompson" (the algorithm) or "greedy" (play the best mean, an ablation).
    importance
        IWKR (Eq. 5), or NWKR (Eq. 3, an ablation) if false.
    floor
        Probability of a uniform choice, which keeps logs usable for evaluation.
    scale
        Standardise inputs by the history's mean and spread before phi.
    training
        Options of Algorithm 1.
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

    hidden: Sequence[int] = (64,)
    dim: int = 8
    phi: Any = None
    bandwidth: float = 1.0
    sharpness: float = 3.0
    prior: tuple[float, float] | None = None
    forgetting: Forgetting | None = None
    explore: Literal["thompson", "greedy"] = "thompson"
    importance: bool = True
    floor: float = 0.0
    scale: bool = True
    training: Training = field(default_factory=Training)
    progress: bool = True
    engine: Engine = "auto"
    state: State = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = np.asarray([self.dim, *np.atleast_1d(self.hidden)])
        if sizes.dtype.kind not in "iu" or sizes.min() < 1:
            raise ValueError(f"dim and hidden sizes must be whole numbers, 1 or more; got {sizes.tolist()}")
        object.__setattr__(self, "hidden", tuple(sizes[1:].tolist()))
        checks.positive("bandwidth", self.bandwidth)
        checks.positive("sharpness", self.sharpness)
        checks.unit("floor", [self.floor])
        if self.explore not in ("thompson", "greedy"):
            raise ValueError(f'explore must be "thompson" or "greedy"; got {self.explore!r}')
        if not isinstance(self.forgetting, RandomDrop | Window | Decay | None):
            raise ValueError(
                f"forgetting must be a rule such as Decay(half_life=...); got {self.forgetting!r}"
            )
        if not isinstance(self.training, Training):
            raise ValueError(f"training must be Training(...); got {self.training!r}")
        if self.phi is not None and not callable(self.phi):
            raise ValueError(f"phi must be callable on (contexts, arms); got {type(self.phi).__name__}")
        if self.prior is not None and checks.vector("prior", self.prior, length=2).min() < 0:
            raise ValueError(f"prior must be two counts, 0 or more; got {self.prior}")
        embed = None if self.phi is None else as_function(self.phi)
        object.__setattr__(self, "state", State(embed=embed, counts=self.prior or (0.5, 0.5)))

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
            "prior": (1.0, 1.0),  # Eq. 7 and 8 have none; without it an arm whose first rewards are 0 is lost
            "scale": False,
            "training": Training.paper(),
        }
        return cls(**(settings | changes))

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Train phi on the history (Algorithm 1), then remember its outcomes as references.

        Ctrl-C ends the training early and keeps phi's best epoch; before the first, nothing changes.
        """
        embed = learn(
            self.phi,
            history,
            rng,
            shape=Shape(hidden=self.hidden, dim=self.dim, scale=self.scale),
            bandwidth=self.bandwidth,
            options=replace(self.training, importance=self.importance),  # learn what is decided with
            progress=self.progress,
        )
        mean = (history.rewards.sum() + 1) / (len(history) + 2)  # never 0 or 1: nothing is impossible
        counts = self.prior or (PRIOR_WEIGHT * mean, PRIOR_WEIGHT * (1 - mean))
        state = State(embed=embed, counts=counts, widths=_widths(history))
        if remember and len(history):
            points = checks.matrix("phi's result", embed(history.contexts, history.arms))
            state.references = self._new_references(points.shape[1])
            state.references.append(points, history.rewards, history.times, history.ids)
            state.timed = history.times is not None
            self._forget(state)
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
        beliefs = self.beliefs(context, arms, time=time)
        if self.explore == "greedy":
            choice = highest(beliefs.mean, rng)
            chances = choice.propensities
        else:
            choice = highest(posterior.draw(beliefs.alpha, beliefs.beta, rng), rng)  # lines 5 and 7
            chances = posterior.quick_propensities(beliefs.alpha, beliefs.beta)
        arm = choice.arm
        if self.floor > 0:
            chances = posterior.with_floor(chances, self.floor)
            if rng.random() < self.floor:
                arm = int(rng.integers(len(chances)))
        return Choice(arm=arm, propensities=chances, means=beliefs.mean, posterior=beliefs)

    def beliefs(self, context: Any, arms: Any, *, time: float | None = None) -> Posterior:
        """Return the Beta posterior of each arm (Algorithm 2, lines 3-4; Eq. 7 and 8)."""
        context, arms = self._checked(context, arms)
        time = None if time is None else checks.number("time", time)
        references = self.state.references
        queries = candidates(self._phi(), context, arms)  # line 3
        if references is None:
            estimate = Estimate(mass=np.zeros(len(arms)), mean=np.full(len(arms), 0.5))
        else:
            # Outcomes without times have only their number, which no clock can be compared with.
            estimate = references.estimate(queries, time if self.state.timed else None)
        return posterior.posterior(
            estimate.mass, estimate.mean, sharpness=self.sharpness, prior=self.state.counts
        )  # line 4

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:  # noqa: ARG002 - ids decide
        """Append outcomes and forget what is stale (Algorithm 2, lines 8-10; section 4.2)."""
        if not len(feedback):
            return
        state, timed = self.state, feedback.times is not None
        self._check_widths(_widths(feedback))
        if state.timed not in (None, timed):
            raise ValueError("times must come with every outcome or with none; got both kinds")
        points = checks.matrix("phi's result", self._phi()(feedback.contexts, feedback.arms))
        references = state.references
        if references is None:
            references = self._new_references(points.shape[1])
        references.check(points)
        with interrupts.held():  # from here on nothing can fail: all of it is learned, or none
            state.references, state.widths, state.timed = references, _widths(feedback), timed
            done = 0
            while done < len(feedback):
                wait = self.forgetting.until_next(state.learned) if self.forgetting else None
                part = slice(done, None if wait is None else done + wait)
                outcomes = feedback[part]
                references.append(points[part], outcomes.rewards, outcomes.times, outcomes.ids)  # lines 9, 10
                state.learned, done = state.learned + len(outcomes), done + len(outcomes)
                self._forget(state)

    def embed(self, contexts: Any, arms: Any) -> Matrix:
        """Return phi of paired rows."""
        return self._phi()(checks.matrix("contexts", contexts), checks.matrix("arms", arms))

    def explain(self, context: Any, arm: Any, *, time: float | None = None, most: int = 5) -> Evidence:
        """Return the past outcomes behind an arm's estimate, their weights, and the estimate without them.

        The estimate is what the references say alone, before prior and sharpness make a posterior of it.
        """
        context, arms = self._checked(context, [arm])
        if self.state.references is None:
            raise ValueError("there is no evidence yet: the policy remembers no outcome")
        query = candidates(self._phi(), context, arms)[0]
        return explain(self.state.references, query, time=time if self.state.timed else None, most=most)

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

    def _new_references(self, dim: int) -> ReferenceSet:
        half_life = self.forgetting.half_life if isinstance(self.forgetting, Decay) else None
        return ReferenceSet(
            dim=dim,
            bandwidth=self.bandwidth,
            half_life=half_life,
            importance=self.importance,
            engine=self.engine,
        )

    def _forget(self, state: State) -> None:
        if self.forgetting is None or state.references is None:
            return
        stale = self.forgetting.stale(state.references, state.learned)
        if stale is not None:
            state.references.forget(stale)

    def _phi(self) -> Phi:
        if self.state.embed is None:
            raise ValueError("C3 needs a phi before it can decide: call fit(history, rng), or give phi=")
        return self.state.embed

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


def _widths(feedback: Feedback) -> tuple[int, int]:
    return feedback.contexts.shape[1], feedback.arms.shape[1]
