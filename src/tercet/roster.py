"""Ready-made contenders: every policy with published constants, and tuned with the same rights for all.

The published constants are those of the policy's own paper, and those of the C3 paper's comparison where
that leaves them open.
A tuned contender chooses between a few settings on the history, within the experiment's budget. How fast
to forget is among its choices, with the same half-lives for all: as a discount, as a window whose outcomes
are as old on average, as decay in time, or by refitting on a window. Three know other means: Vowpal Wabbit
and the linear model of the simplified restless bandit have a learning rate, and KernelUCB and the Gaussian
process, whose cost grows with their memory, never keep everything.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import log
from typing import Any

from tercet import checks
from tercet.embedding.options import Training
from tercet.experiment import Contender
from tercet.policies.c3 import C3
from tercet.policies.correlated import CorrelatedArms
from tercet.policies.drifting_linear import DLinUCB, EpsilonSGD, SWLinUCB
from tercet.policies.gp import ForgetfulGP
from tercet.policies.kernel import KernelUCB
from tercet.policies.linear import BayesianLinear, LinTS, LinUCB
from tercet.policies.mlp import EpsilonGreedyMLP
from tercet.policies.neighbours import NeighbourUCB
from tercet.policies.neural import NeuralTS, NeuralUCB
from tercet.policies.neural_linear import NeuralLinear
from tercet.policies.oracle import Supervised
from tercet.policies.simple import ArmThompson, Uniform
from tercet.policies.squarecb import SquareCB
from tercet.policies.trees import Boosting, BootstrapBoosting
from tercet.policies.two_tower import TwoTower
from tercet.policies.vowpal import Vowpal
from tercet.reference.forgetting import RandomDrop

# What the C3 paper's news experiment changes in C3.
NEWS: dict[str, Any] = {
    "hidden": (512,),
    "dim": 128,
    "bandwidth": 0.6,
    "forgetting": RandomDrop(),
    "training": Training.paper(
        epochs=20, batch=32, decay=0.9, calibration=0.01, reference=0.01, partitions=3
    ),
}
SLOW = 3  # seeds of policies that train a network at nearly every step

Group = dict[str, Contender]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What the settings depend on.

    one_hot : whether arms are told by one-hot rows: then linear policies keep one model an arm.
    half_lives : in outcomes; never to forget is always a choice too.
    pace : units of the environment's time from one outcome to the next.
    news : whether the published constants are those of the C3 paper's news experiment, else those of its
        classification experiments.
    """

    one_hot: bool
    news: bool = False
    half_lives: tuple[float, ...] = (300.0, 1000.0)
    pace: float = 1.0

    def __post_init__(self) -> None:
        for half_life in self.half_lives:
            checks.positive("half_lives", half_life)
        checks.positive("pace", self.pace)

    @property
    def features(self) -> str:
        return "disjoint" if self.one_hot else "shared"

    @property
    def discounts(self) -> list[float]:
        return [1.0, *(0.5 ** (1 / outcomes) for outcomes in self.half_lives)]

    @property
    def windows(self) -> list[int | None]:
        """Fading evidence is 1/ln 2 half-lives old on average, a window's half as old as it is long."""
        return [None, *(round(2 * outcomes / log(2)) for outcomes in self.half_lives)]

    @property
    def times(self) -> list[float | None]:
        return [None, *(self.pace * outcomes for outcomes in self.half_lives)]


def roster(*groups: str, one_hot: bool, tuned: bool | None = None, **options: Any) -> Group:
    """Return the contenders of the named groups (all without a name) for `Experiment(policies=...)`.

    `tuned` keeps only the contenders that are tuned, or only those that are not; `options` are those of
    `Stage`.

    >>> list(roster("simple", one_hot=True))[:2]
    ['uniform', 'Thompson per arm']
    """
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        raise ValueError(f"groups must be of {', '.join(GROUPS)}; got {', '.join(unknown)}")
    stage = Stage(one_hot=one_hot, **options)
    everybody = {
        name: contender for group in groups or GROUPS for name, contender in GROUPS[group](stage).items()
    }
    return {
        name: contender
        for name, contender in everybody.items()
        if tuned is None or tuned == bool(contender.settings)
    }


def _simple(stage: Stage) -> Group:
    counter = ArmThompson(explore="greedy", floor=0.05)
    return {
        "uniform": Contender(policy=Uniform()),
        "Thompson per arm": Contender(policy=ArmThompson()),
        "Thompson per arm, tuned": _tuned(ArmThompson(), half_life=stage.times),
        "click counter, tuned": _tuned(counter, half_life=stage.times, floor=[0.05, 0.01]),
        "correlated arms": Contender(policy=CorrelatedArms()),
        "correlated arms, tuned": _tuned(CorrelatedArms(), half_life=stage.times, width=[1.0, 0.3]),
    }


def _linear(stage: Stage) -> Group:
    form: Any = {"features": stage.features}
    shared = {"LinUCB, shared": Contender(policy=LinUCB(width=1.96))} if stage.one_hot else {}
    fading: Any = {"discount": stage.discounts, "penalty": [1.0, 100.0]}
    radii: Any = {"penalty": [0.5, 50.0], "radius": [None, 0.3, 0.05]}
    return {
        "LinUCB": Contender(policy=LinUCB(width=1.96, **form)),
        **shared,
        "LinUCB, tuned": _tuned(LinUCB(**form), **fading, width=[1.96, 0.3, 0.05]),
        "LinTS": Contender(policy=LinTS(**form)),
        "LinTS, tuned": _tuned(LinTS(**form), **fading, scale=[None, 0.3, 0.05]),
        # With unit noise and penalty its numbers are those of LinUCB: tuned it is "LinUCB, tuned".
        "Bayesian linear regression": Contender(policy=BayesianLinear(**form)),
        "SquareCB": Contender(policy=SquareCB(**form)),
        "SquareCB, tuned": _tuned(SquareCB(**form), **fading, gamma_scale=[10.0, 100.0]),
        "SW-LinUCB": Contender(policy=SWLinUCB(**form)),
        "SW-LinUCB, tuned": _tuned(SWLinUCB(**form), window=[50_000, *stage.windows[1:]], **radii),
        "D-LinUCB": Contender(policy=DLinUCB(**form)),
        "D-LinUCB, tuned": _tuned(DLinUCB(**form), discount=[0.95, *stage.discounts], **radii),
        "restless, simplified": Contender(policy=EpsilonSGD(**form)),
        "restless, simplified, tuned": _tuned(
            EpsilonSGD(**form), step=[0.001, 0.003, 0.01, 0.03], epsilon=[0.1, 0.02]
        ),
    }


def _trees(stage: Stage) -> Group:
    # Large trees are best on tables with much to learn, small ones where rewards are mostly noise.
    boosting = Boosting(), Boosting(trees=50, leaves=7, refit=250)
    bootstrap = BootstrapBoosting(), BootstrapBoosting(trees=50, leaves=7)
    windows = [None, stage.windows[-1]]
    return {
        "LightGBM, greedy, not updated": Contender(policy=Boosting(refit=None, epsilon=0.0)),
        "LightGBM, refitted": Contender(policy=Boosting(half_life=stage.times[-1])),
        "LightGBM, refitted, tuned": _tuned(
            *boosting, half_life=stage.times, window=windows, epsilon=[0.05, 0.01]
        ),
        "LightGBM, bootstrapped": Contender(policy=BootstrapBoosting()),
        "LightGBM, bootstrapped, tuned": _tuned(*bootstrap, window=stage.windows),
    }


def _vowpal(stage: Stage) -> Group:  # noqa: ARG001 - its memory is its learning rate
    group: Group = {}
    boldness: dict[str, Any] = {
        "squarecb": {"gamma": [10.0, 100.0]},
        "cover": {"covers": [3, 10]},
        "regcb": {"mellowness": [0.1, 0.01]},
    }
    for explore, choices in boldness.items():
        policy = Vowpal(explore=explore)  # type: ignore[arg-type]
        group[f"Vowpal Wabbit {explore}"] = Contender(policy=policy)
        # With power 0 the learning rate stays up, which is how Vowpal Wabbit forgets.
        tuned = _tuned(policy, power=[0.5, 0.0], rate=[0.5, 0.05], **choices)
        group[f"Vowpal Wabbit {explore}, tuned"] = tuned
    return group


def _kernel(stage: Stage) -> Group:
    windows = [500, *(min(window or 0, 2000) for window in stage.windows[1:])]
    neighbours: Any = {"window": stage.windows, "pooled": [False, True], "neighbours": [20, 100]}
    return {
        "KernelUCB": Contender(policy=KernelUCB()),
        "KernelUCB, tuned": _tuned(KernelUCB(), window=windows, penalty=[1.0, 0.1], width=[1.0, 0.1]),
        "kNN-UCB": Contender(policy=NeighbourUCB()),
        "kNN-UCB, tuned": _tuned(NeighbourUCB(), **neighbours, width=[0.1, 0.3]),
        "Gaussian process": Contender(policy=ForgetfulGP(), seeds=SLOW),
        "Gaussian process, tuned": _tuned(ForgetfulGP(), limit=[1000, 300], width=[1.96, 0.3], seeds=SLOW),
    }


def _neural(stage: Stage) -> Group:
    form: Any = {"features": stage.features}
    constant = 1.0 if stage.news else 1e-5
    group: Group = {}
    for name, make in (("NeuralUCB", NeuralUCB), ("NeuralTS", NeuralTS)):
        published = make(penalty=constant, variance=constant, **form)
        group |= {
            name: Contender(policy=published, seeds=SLOW),
            f"{name}, window": Contender(policy=replace(published, window=2000), seeds=SLOW),
            f"{name}, tuned": _tuned(make(**form), window=stage.windows, variance=[1e-5, 1e-3], seeds=SLOW),
        }
    heads = [NeuralLinear(**form), NeuralLinear()] if stage.one_hot else [NeuralLinear()]
    refits: Any = {"window": stage.windows, "refit": [200, 50], "seeds": SLOW}
    return group | {
        "NeuralLinear": Contender(policy=NeuralLinear(**form), seeds=SLOW),
        "NeuralLinear, tuned": _tuned(*heads, **refits, noise=[0.5, 0.1]),
        "MLP, ε-greedy": Contender(policy=EpsilonGreedyMLP(), seeds=SLOW),
        "MLP, ε-greedy, tuned": _tuned(EpsilonGreedyMLP(), **refits, epsilon=[0.05, 0.01]),
        "two towers, small": Contender(policy=TwoTower.small(), seeds=SLOW),
        "two towers, large": Contender(policy=TwoTower.large(), seeds=SLOW),
        "two towers, tuned": _tuned(
            TwoTower.small(),
            replace(TwoTower.small(), rate=8e-4),
            TwoTower.large(),
            window=stage.windows,
            refit=[None, 200],
            seeds=SLOW,
        ),
    }


def _c3(stage: Stage) -> Group:
    # No tuned rows: C3 chooses its settings on the history by itself.
    return {
        "C3, as in the paper": Contender(policy=C3.paper(progress=False, **(NEWS if stage.news else {}))),
        "C3": Contender(policy=C3(progress=False)),
        "C3, greedy": Contender(policy=C3(explore="greedy", progress=False)),
        "C3, NWKR": Contender(policy=C3(importance=False, progress=False)),
    }


def _oracle(stage: Stage) -> Group:
    return {"supervised": Contender(policy=Supervised())} if stage.one_hot else {}


def _tuned(*policies: Any, seeds: int | None = None, **choices: Any) -> Contender:
    """Return a contender with every combination of the choices, the published ones first."""
    combinations = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    first, *others = [replace(policy, **options) for options in combinations for policy in policies]
    return Contender(policy=first, settings=tuple(others), seeds=seeds)


GROUPS: dict[str, Callable[[Stage], Group]] = {
    "simple": _simple,
    "linear": _linear,
    "trees": _trees,
    "vowpal": _vowpal,
    "kernel": _kernel,
    "neural": _neural,
    "c3": _c3,
    "oracle": _oracle,
}
