"""C3, conditionally coupled contextual Thompson sampling: Algorithm 2, fed by Algorithm 1.

Embed each (context, arm) pair, estimate its reward from the references nearby, draw from the Beta
posterior, play the best draw, append the outcome, forget what is stale. No gradient step online.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import Any, Literal, Self, final

import numpy as np

from tercet import checkpoint, checks, posterior
from tercet.checks import Array, Matrix
from tercet.embedding.inference import Perceptron, Phi, candidates, scaling
from tercet.embedding.options import Training
from tercet.reference.evidence import Evidence, explain
from tercet.reference.exact import Engine, ReferenceSet
from tercet.reference.forgetting import Decay, Forgetting, from_spec, to_spec
from tercet.types import Choice, Feedback, Posterior

PRIOR_WEIGHT = 1.0  # outcomes that the history's mean reward is worth as a prior


@final
@dataclass(kw_only=True, eq=False)
class C3:
    """Thompson sampling on kernel regression in a learned space.

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
    _embed: Phi | None = field(init=False, default=None, repr=False)
    _widths: tuple[int, int] | None = field(init=False, default=None, repr=False)
    _references: ReferenceSet | None = field(init=False, default=None, repr=False)
    _counts: tuple[float, float] = field(init=False, default=(0.5, 0.5), repr=False)
    _timed: bool | None = field(init=False, default=None, repr=False)
    _learned: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        self.hidden = tuple(int(size) for size in self.hidden)
        if self.dim < 1 or any(size < 1 for size in self.hidden):
            raise ValueError(f"dim and hidden sizes must be at least 1; got {self.dim} and {self.hidden}")
        self.bandwidth = checks.positive("bandwidth", self.bandwidth)
        self.sharpness = checks.positive("sharpness", self.sharpness)
        if self.explore not in ("thompson", "greedy"):
            raise ValueError(f'explore must be "thompson" or "greedy"; got {self.explore!r}')
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor must lie in [0, 1]; got {self.floor}")
        if self.prior is not None:
            a, b = (float(count) for count in self.prior)
            if not (0 <= a < np.inf and 0 <= b < np.inf):
                raise ValueError(f"prior must be two finite counts, 0 or more; got {self.prior}")
            self.prior = self._counts = (a, b)
        if self.phi is not None and not callable(self.phi):
            raise ValueError(f"phi must be callable on (contexts, arms); got {type(self.phi).__name__}")
        self._embed = None if self.phi is None else _inference(self.phi)

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
        """Train phi on the history (Algorithm 1), then remember its outcomes as references."""
        embed = self._train(history, rng)
        counts = self.prior
        if counts is None:
            mean = (history.rewards.sum() + 1) / (len(history) + 2)  # never 0 or 1: nothing is impossible
            counts = (PRIOR_WEIGHT * mean, PRIOR_WEIGHT * (1 - mean))
        widths = (history.contexts.shape[1], history.arms.shape[1])
        references, timed = None, None
        if remember and len(history):
            points = embed(history.contexts, history.arms)
            references = self._new_references(checks.matrix("phi's result", points).shape[1])
            references.append(points, history.rewards, history.times, history.ids)
            timed = history.times is not None
            self._forget(references, 0)
        # Nothing was changed so far: an error or Ctrl-C above leaves the policy as it was.
        self._embed, self._counts, self._widths = embed, counts, widths
        self._references, self._timed, self._learned = references, timed, 0

    def choose(
        self, context: Any, arms: Any, rng: np.random.Generator, *, time: float | None = None
    ) -> Choice:
        """Draw a reward for each arm from its posterior and play the best (Algorithm 2, lines 2-7)."""
        beliefs = self.beliefs(context, arms, time=time)
        if self.explore == "greedy":
            scores = beliefs.mean
            chances = (scores == scores.max()) / np.count_nonzero(scores == scores.max())
        else:
            scores = posterior.draw(beliefs.alpha, beliefs.beta, rng)  # line 5
            chances = posterior.quick_propensities(beliefs.alpha, beliefs.beta)
        best = np.flatnonzero(scores == scores.max())  # line 7
        arm = best[0] if len(best) == 1 else rng.choice(best)
        if self.floor > 0:
            chances = posterior.with_floor(chances, self.floor)
            if rng.random() < self.floor:
                arm = rng.integers(len(scores))
        return Choice(arm=int(arm), propensities=chances, posterior=beliefs)

    def beliefs(self, context: Any, arms: Any, *, time: float | None = None) -> Posterior:
        """Return the Beta posterior of each arm (Algorithm 2, lines 3-4; Eq. 7 and 8)."""
        context, arms = self._checked(context, arms)
        queries = candidates(self._trained(), context, arms)  # line 3
        if time is not None and not np.isfinite(time):
            raise ValueError(f"time must be finite; got {time}")
        if self._references is None:
            mass, mean = np.zeros(len(arms)), np.full(len(arms), 0.5)
        else:
            estimate = self._references.estimate(queries, time)
            mass, mean = estimate.mass, estimate.mean
        return posterior.posterior(mass, mean, sharpness=self.sharpness, prior=self._counts)  # line 4

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:  # noqa: ARG002 - hashed ids decide
        """Append outcomes and forget what is stale (Algorithm 2, lines 8-10; section 4.2)."""
        if not len(feedback):
            return
        widths = (feedback.contexts.shape[1], feedback.arms.shape[1])
        self._check_widths(widths)
        timed = feedback.times is not None
        if timed != (self._timed if self._timed is not None else timed):
            raise ValueError("times must come with every outcome or with none; got both kinds")
        points = checks.matrix("phi's result", self._trained()(feedback.contexts, feedback.arms))
        references = self._references or self._new_references(points.shape[1])
        done = 0
        while done < len(feedback):
            wait = self.forgetting.until_next(self._learned) if self.forgetting else None
            part = slice(done, len(feedback) if wait is None else done + wait)
            times = None if feedback.times is None else feedback.times[part]
            ids = None if feedback.ids is None else feedback.ids[part]
            references.append(points[part], feedback.rewards[part], times, ids)  # lines 9 and 10
            self._references, self._widths, self._timed = references, widths, timed
            added = len(feedback.rewards[part])
            self._learned, done = self._learned + added, done + added
            self._forget(references, self._learned)

    def embed(self, contexts: Any, arms: Any) -> Matrix:
        """Return phi of paired rows."""
        return self._trained()(checks.matrix("contexts", contexts), checks.matrix("arms", arms))

    def explain(self, context: Any, arm: Any, *, time: float | None = None, most: int = 5) -> Evidence:
        """Return the past outcomes that carry an arm's score, their weights, and the score without them."""
        context, arms = self._checked(context, [arm])
        if self._references is None:
            raise ValueError("there is no evidence yet: the policy remembers no outcome")
        return explain(self._references, candidates(self._trained(), context, arms)[0], time=time, most=most)

    def __len__(self) -> int:
        """Return the number of outcomes in memory."""
        return 0 if self._references is None else len(self._references)

    def save(self, path: str | PathLike[str]) -> None:
        """Write settings, phi and references to one safetensors file.

        A phi of your own is not written (that would take pickle): give it again to `load`.
        """
        arrays: dict[str, Array] = {}
        spec: dict[str, Any] = {"settings": self._settings(), "counts": self._counts, "widths": self._widths}
        spec |= {"timed": self._timed, "learned": self._learned, "phi": None, "references": None}
        if isinstance(self._embed, Perceptron):
            phi, spec["phi"] = self._embed.to_arrays()
            arrays |= {f"phi.{name}": array for name, array in phi.items()}
        if self._references is not None:
            rows, spec["references"] = self._references.to_arrays()
            arrays |= {f"references.{name}": array for name, array in rows.items()}
        checkpoint.write(path, "tercet.C3", arrays, spec | {"own phi": self.phi is not None})

    @classmethod
    def load(cls, path: str | PathLike[str], *, phi: Any = None, engine: Engine = "auto") -> Self:
        """Read what `save` wrote; the policy goes on with bit-identical choices."""
        arrays, spec = checkpoint.read(path, "tercet.C3")
        if spec.get("own phi") and phi is None:
            raise checkpoint.CheckpointError(
                f"{path} was saved with a phi of your own: give that phi to load as well"
            )
        try:
            policy = cls(**_read_settings(spec["settings"]), phi=phi, engine=engine)
            if spec["phi"] is not None:
                policy._embed = Perceptron.from_arrays(_part(arrays, "phi."), spec["phi"])
            if spec["references"] is not None:
                rows = _part(arrays, "references.")
                policy._references = ReferenceSet.from_arrays(rows, spec["references"], engine=engine)
            policy._counts = (float(spec["counts"][0]), float(spec["counts"][1]))
            policy._widths = None if spec["widths"] is None else (spec["widths"][0], spec["widths"][1])
            policy._timed, policy._learned = spec["timed"], int(spec["learned"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise checkpoint.CheckpointError(f"{path} can not be loaded as a C3 policy: {error}") from error
        return policy

    def _train(self, history: Feedback, rng: np.random.Generator) -> Phi:
        if self.phi is not None and not _is_module(self.phi):
            return _inference(self.phi)
        if not history.contexts.shape[1] + history.arms.shape[1]:
            raise ValueError("contexts and arms must have features; both have width 0")
        from tercet.embedding import network, training  # needs torch

        module = self.phi
        if module is None:
            centre, spread = scaling(history.joint()) if self.scale and len(history) else (None, None)
            module = network.build(
                history.contexts.shape[1],
                history.arms.shape[1],
                rng,
                hidden=self.hidden,
                dim=self.dim,
                centre=centre,
                scale=spread,
            )
        options = replace(self.training, importance=self.importance)  # learn what is decided with
        report = training.train(
            module, history, rng, bandwidth=self.bandwidth, options=options, progress=self.progress
        )
        if report.interrupted:
            warnings.warn("training was interrupted; phi is kept at its best epoch so far", stacklevel=3)
        return network.export(module) if self.phi is None else _inference(module)

    def _new_references(self, dim: int) -> ReferenceSet:
        half_life = self.forgetting.half_life if isinstance(self.forgetting, Decay) else None
        return ReferenceSet(
            dim=dim,
            bandwidth=self.bandwidth,
            half_life=half_life,
            importance=self.importance,
            engine=self.engine,
        )

    def _forget(self, references: ReferenceSet, learned: int) -> None:
        stale = self.forgetting.stale(references, learned) if self.forgetting else None
        if stale is not None:
            references.forget(stale)

    def _trained(self) -> Phi:
        if self._embed is None:
            raise ValueError("C3 needs a phi before it can decide: call fit(history, rng), or give phi=")
        return self._embed

    def _checked(self, context: Any, arms: Any) -> tuple[Array, Matrix]:
        arms = checks.matrix("arms", arms)
        if not len(arms):
            raise ValueError("arms must have at least one row; got none to choose from")
        context = checks.vector("context", context)
        self._check_widths((len(context), arms.shape[1]))
        return context, arms

    def _check_widths(self, widths: tuple[int, int]) -> None:
        if self._widths is not None and widths != self._widths:
            raise ValueError(
                f"context and arm must have {self._widths[0]} and {self._widths[1]} features, as before; "
                f"got {widths[0]} and {widths[1]}"
            )

    def _settings(self) -> dict[str, Any]:
        names = [f.name for f in fields(self) if f.init and f.name not in ("phi", "engine")]
        settings = {name: getattr(self, name) for name in names}
        return settings | {"training": vars(self.training), "forgetting": to_spec(self.forgetting)}


def _read_settings(saved: Mapping[str, Any]) -> dict[str, Any]:
    prior = None if saved["prior"] is None else tuple(saved["prior"])
    rule, training = from_spec(saved["forgetting"]), Training(**saved["training"])
    return dict(saved) | {"prior": prior, "forgetting": rule, "training": training}


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _is_module(phi: Any) -> bool:
    # Looked up by name: deciding must not import torch.
    return any(base.__module__ == "torch.nn.modules.module" for base in type(phi).__mro__)


def _inference(phi: Any) -> Phi:
    """Return phi as a function of NumPy arrays."""
    if not _is_module(phi):
        return phi
    from tercet.embedding import network

    return network.frozen(phi)
