"""What `tercet demo` compares: C3 and its rivals in a seasonal shop, and the best rule of hindsight."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tercet.checks import Array, Matrix, Vector
from tercet.embedding.options import Training
from tercet.environments.simulated import FAMILIES, HISTORY_YEARS, VISITORS, Shop, Visits
from tercet.executors import Processes, Serial
from tercet.loop import Streams, Trace, play
from tercet.policies.base import Policy
from tercet.policies.c3 import C3
from tercet.policies.linear import LinUCB
from tercet.policies.simple import ArmThompson, Uniform
from tercet.reference.forgetting import Decay

HINDSIGHT = "best fixed rule of hindsight"

# Settings were chosen by mean regret in worlds 100 to 105 (rivals) and 100 to 111 (C3), which the demo does
# not play: LinUCB's width and discount, the half-lives, C3's sharpness, hidden layers and training. A
# half-life is in days, a discount per visit.
CONTENDERS: dict[str, Callable[[], Policy]] = {
    "C3": lambda: C3(
        hidden=(64, 64),
        dim=8,
        spread=0.5,
        forgetting=Decay(half_life=10.0),
        sharpness=6.0,
        training=Training(
            partitions=12 * HISTORY_YEARS,  # a month: visits enough to learn from, and demand hardly moves
            reference=0.2,  # evidence as scarce as it is online, so that phi must learn to share it
            limit=None,
            epochs=40,
            rate=0.01,
            decay=0.94,
            patience=None,
        ),
        progress=False,
    ),
    "discounted LinUCB": lambda: LinUCB(width=0.02, discount=0.993),
    "LinUCB": lambda: LinUCB(width=1.0),
    "Thompson per product": lambda: ArmThompson(half_life=90.0),
    "uniform": Uniform,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What all policies did in the same worlds; `shop`, `year` and `embeddings` are those of the first."""

    shop: Shop
    year: Visits
    traces: dict[str, list[Trace]]  # one a seed
    hindsight: Matrix  # regrets of the best fixed rule, seeds x visits
    embeddings: Float[np.ndarray, "kinds products dim"]  # phi of every product, for a typical visitor

    def regrets(self, name: str) -> Matrix:
        """Return the regret of each visit, seeds x visits."""
        if name == HINDSIGHT:
            return self.hindsight
        return np.array([trace.regrets for trace in self.traces[name]])

    @property
    def names(self) -> list[str]:
        """Everybody compared, lowest regret first."""
        return sorted([*self.traces, HINDSIGHT], key=lambda name: float(self.regrets(name).sum()))


class _Task(NamedTuple):
    name: str
    seed: int
    visits: int


class _Outcome(NamedTuple):
    task: _Task
    trace: Trace
    embeddings: Float[np.ndarray, "kinds products dim"] | None


def compare(
    *, seeds: int, visits: int, jobs: int = 1, advance: Callable[[str], None] = lambda _: None
) -> Comparison:
    """Play every policy in `seeds` worlds of `visits` visits on `jobs` processes.

    `advance` is told the name of each policy that has finished a world.
    """
    for name, value in (("seeds", seeds), ("visits", visits), ("jobs", jobs)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value}")
    # C3 comes first: the longest tasks must not be the last to start.
    tasks = [_Task(name, seed, visits) for name in CONTENDERS for seed in range(seeds)]
    outcomes = {}
    executor = Serial() if jobs == 1 else Processes(jobs)
    for outcome in executor.map(_run, tasks):
        outcomes[outcome.task] = outcome
        advance(outcome.task.name)
    worlds = [_world(seed, visits) for seed in range(seeds)]
    years = [shop.year(Streams.of(luck).rounds) for shop, luck in worlds]
    embeddings = outcomes[tasks[0]].embeddings
    assert embeddings is not None
    return Comparison(
        shop=worlds[0][0],
        year=years[0],
        traces={
            name: [outcomes[_Task(name, seed, visits)].trace for seed in range(seeds)] for name in CONTENDERS
        },
        hindsight=np.array([hindsight(shop, year) for (shop, _), year in zip(worlds, years, strict=True)]),
        embeddings=embeddings,
    )


def hindsight(shop: Shop, year: Visits) -> Vector:
    """Return the regret of each visit under the best fixed rule.

    The rule knows the kind of each visitor and ranks the families once for each kind; it shows any
    product of the highest-ranked family on offer (its regret is the average over those). Of all such
    rules it is the one that sells most in the year, chosen with the year's true means in hand. It can
    not adapt, so a policy that follows the seasons may beat it.
    """
    families = shop.products.families[year.offers]
    member = families[:, :, None] == np.arange(len(FAMILIES))
    counts = member.sum(1)
    totals = np.einsum("vo,vof->vf", year.means, member)
    values = np.divide(totals, counts, out=np.full(totals.shape, np.nan), where=counts > 0)
    earned = np.empty(len(values))
    for kind in range(len(VISITORS)):
        visits = np.flatnonzero(year.kinds == kind)
        ranked = values[np.ix_(visits, best_ranking(values[visits]))]
        first = np.argmax(~np.isnan(ranked), axis=1)
        earned[visits] = ranked[np.arange(len(visits)), first]
    return year.means.max(1) - earned


def best_ranking(values: Matrix) -> Array:
    """Return the ranking of columns that earns most when each row takes its first column that is not NaN.

    Exact, by dynamic programming over sets of columns: rank a column first, and the rows that have it
    are settled; the others only have columns of the remaining set.
    """
    count = values.shape[1]
    sets = np.arange(2**count)
    present = ~np.isnan(values)
    gains = np.zeros((len(sets), count))
    np.add.at(gains, present @ (1 << np.arange(count)), np.nan_to_num(values))
    for bit in 1 << np.arange(count):  # from rows with exactly this set to rows within this set
        holders = sets[(sets & bit) > 0]
        gains[holders] += gains[holders ^ bit]
    best, first = np.zeros(len(sets)), np.zeros(len(sets), dtype=np.int64)
    for left in sets[1:]:
        members = np.flatnonzero(left & (1 << np.arange(count)))
        earned = gains[left, members] + best[left ^ (1 << members)]
        best[left], first[left] = earned.max(), members[earned.argmax()]
    ranking, left = [], int(sets[-1])
    while left:
        ranking.append(int(first[left]))
        left ^= 1 << ranking[-1]
    return np.array(ranking)


def _world(seed: int, visits: int) -> tuple[Shop, np.random.Generator]:
    world, luck = np.random.default_rng(seed).spawn(2)
    return Shop.draw(world, visits=visits), luck


def _run(task: _Task) -> _Outcome:
    shop, luck = _world(task.seed, task.visits)
    policy = CONTENDERS[task.name]()
    trace = play(policy, shop, luck)
    return _Outcome(task, trace, _embeddings(policy, shop) if isinstance(policy, C3) else None)


def _embeddings(policy: C3, shop: Shop) -> Float[np.ndarray, "kinds products dim"]:
    arms = shop.products.features
    return np.stack([policy.embed(np.tile(visitor, (len(arms), 1)), arms) for visitor in shop.kinds])
