"""A shop through the seasons: families of products whose demand is coupled, and products that come and go.

It is the motivating example of the C3 paper. Who wants what follows a few hidden trends; two families
that follow the same trend are coupled, and which trend a family follows depends on the visitor:
commuters buy rain jackets when they buy bicycles, sports people when they buy tents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from jaxtyping import Bool, Float, Int

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.types import Feedback, Round

YEAR = 365.0  # days
HISTORY_YEARS = 3
SHELF = 6  # products of a family on sale at any time

FAMILIES = (
    "bicycles",
    "helmets",
    "skis",
    "snowboards",
    "rain jackets",
    "tents",
    "running shoes",
    "home gyms",
)
VISITORS = ("commuters", "sports people")
TRENDS = ("riding to work", "cycling tours", "snow", "hiking", "training")

# The trend that each family follows, one row a kind of visitor: equal numbers are coupled families.
FOLLOWS = np.array([[0, 0, 2, 2, 0, 3, 4, 4], [1, 1, 2, 2, 3, 3, 4, 4]])
# How much each kind of visitor cares for a family at all (log-odds).
INTEREST = np.array(
    [[0.3, 0.0, -0.6, -0.8, 0.1, -0.2, 0.1, -0.1], [0.1, -0.2, 0.3, 0.0, -0.3, 0.0, 0.0, -0.3]]
)

PEAK_DAY = np.array([30.0, 95.0, 290.0, 170.0, 0.0])  # day 0 is 1 April: snow peaks in mid-January
SWING = np.array([1.0, 1.6, 1.9, 1.3, 0.5])  # log-odds between the yearly mean and the peak
SHOCKED = (0, 4)  # a strike sends people to their bicycles; training has its fashions
SNOW = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Products:
    """Everything the shop ever sold, one row a product: on sale from day `arrives` until day `leaves`."""

    families: Int[np.ndarray, "_"]
    arrives: Vector
    leaves: Vector
    features: Matrix
    quality: Vector

    def on_sale(self, times: Any) -> Bool[np.ndarray, "_ _"]:
        """Return which products (columns) are on sale at which times (rows)."""
        when = checks.vector("times", times)[:, None]
        return (self.arrives <= when) & (when < self.leaves)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trends:
    """Hidden demand: seasons whose date moves from year to year, and shocks that no calendar foretells."""

    shifts: Matrix  # days by which each trend (column) is late in each year (row)
    shock_trends: Int[np.ndarray, "_"]
    shock_days: Vector
    shock_heights: Vector
    shock_lengths: Vector

    def levels(self, times: Any) -> Matrix:
        """Return the log-odds of each trend (columns) at each time (rows)."""
        when = checks.vector("times", times)
        middles = YEAR * (np.arange(len(self.shifts)) - HISTORY_YEARS + 0.5)
        shifts = np.column_stack([np.interp(when, middles, column) for column in self.shifts.T])
        levels = -1.2 + SWING * np.cos(2 * np.pi * (when[:, None] - PEAK_DAY - shifts) / YEAR)
        since = when[:, None] - self.shock_days
        # Up within a week or so, then fading: demand stays Lipschitz in time, as the paper assumes.
        rises = 1 / (1 + np.exp(-np.clip(since / 2, -50, 50)))
        bumps = self.shock_heights * rises * np.exp(-np.clip(since, 0, None) / self.shock_lengths)
        for trend in np.unique(self.shock_trends):
            levels[:, trend] += bumps[:, self.shock_trends == trend].sum(1)
        return levels


@dataclass(frozen=True, kw_only=True, eq=False)
class Visits:
    """Visits with what stays hidden from policies: the kind of visitor, true means, every arm's reward."""

    times: Vector
    kinds: Int[np.ndarray, "visits"]
    contexts: Matrix
    offers: Int[np.ndarray, "visits offered"]  # product numbers
    means: Float[np.ndarray, "visits offered"]
    rewards: Float[np.ndarray, "visits offered"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Shop:
    """One drawn world: `Shop.draw(rng)`. Three logged years end on day 0, then the year to play begins.

    A visitor is shown one product out of `offered` that are on sale, and buys it or not. Policies see
    a noisy description of the visitor and of each product; family, kind and trend are hidden.

    >>> shop = Shop.draw(np.random.default_rng(0), visits=100)
    >>> len(shop.history(np.random.default_rng(1))), len(list(shop.rounds(np.random.default_rng(2))))
    (300, 100)
    """

    streaming: ClassVar[bool] = False
    one_log: ClassVar[bool] = False

    products: Products
    trends: Trends
    kinds: Matrix  # the typical description of each kind of visitor
    visits: int
    offered: int

    def __post_init__(self) -> None:
        ShopYear(visits=self.visits, offered=self.offered)  # refuses impossible numbers

    @classmethod
    def draw(cls, rng: np.random.Generator, *, visits: int = 3650, offered: int = 8) -> Self:
        """Draw the products, the trends and the kinds of visitors; `visits` is the number in a year."""
        kinds = rng.normal(size=(len(VISITORS), 4))
        kinds *= 2.0 / np.linalg.norm(kinds[0] - kinds[1])  # told apart well, but not perfectly
        return cls(products=_products(rng), trends=_trends(rng), kinds=kinds, visits=visits, offered=offered)

    def demand(self, times: Any) -> Float[np.ndarray, "_ _ _"]:
        """Return the chance that a visitor buys a product of usual quality: times x kinds x families."""
        levels = self.trends.levels(times)
        return sigmoid(levels[:, FOLLOWS] + INTEREST)

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return the logged years, in which the shown product was drawn evenly."""
        visits = self._visits(HISTORY_YEARS * self.visits, -HISTORY_YEARS * YEAR, 0.0, rng)
        rows = np.arange(len(visits.times))
        shown = rng.integers(self.offered, size=len(rows))
        products = visits.offers[rows, shown]
        return Feedback(
            contexts=visits.contexts,
            arms=self.products.features[products],
            rewards=visits.rewards[rows, shown],
            times=visits.times,
            ids=rows,
            arm_ids=products,
            propensities=np.full(len(rows), 1 / self.offered),
        )

    def year(self, rng: np.random.Generator) -> Visits:
        """Return the year to play, hidden columns included."""
        return self._visits(self.visits, 0.0, YEAR, rng)

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the year to play; equal rngs give the same visitors, offers and rewards of every arm."""
        year = self.year(rng)
        for i, offer in enumerate(year.offers):
            yield Round(
                context=year.contexts[i],
                arms=self.products.features[offer],
                time=float(year.times[i]),
                rewards=year.rewards[i],
                means=year.means[i],
                arm_ids=offer,
            )

    def _visits(self, count: int, start: float, end: float, rng: np.random.Generator) -> Visits:
        times = np.sort(rng.uniform(start, end, count))
        kinds = rng.integers(len(VISITORS), size=count)
        contexts = self.kinds[kinds] + rng.normal(scale=0.5, size=(count, self.kinds.shape[1]))
        lots = np.where(self.products.on_sale(times), rng.random((count, len(self.products.families))), 2.0)
        offers = np.argsort(lots, axis=1)[:, : self.offered]
        pairs = kinds[:, None], self.products.families[offers]
        levels = np.take_along_axis(self.trends.levels(times), FOLLOWS[pairs], axis=1)
        means = sigmoid(levels + INTEREST[pairs] + self.products.quality[offers])
        rewards = (rng.random(means.shape) < means).astype(np.float64)
        return Visits(
            times=times, kinds=kinds, contexts=contexts, offers=offers, means=means, rewards=rewards
        )


@final
@dataclass(frozen=True, kw_only=True)
class ShopYear:
    """The recipe of a `Shop`: visits in a year, and products offered to each visitor.

    >>> ShopYear(visits=100).draw(np.random.default_rng(0)).visits
    100
    """

    visits: int = 3650
    offered: int = 8

    def __post_init__(self) -> None:
        if self.visits < 1:
            raise ValueError(f"visits must be at least 1; got {self.visits}")
        if not 2 <= self.offered <= SHELF * len(FAMILIES):
            raise ValueError(f"offered must be 2 to {SHELF * len(FAMILIES)} products; got {self.offered}")

    def draw(self, rng: np.random.Generator) -> Shop:
        """Draw a shop."""
        return Shop.draw(rng, visits=self.visits, offered=self.offered)


def _products(rng: np.random.Generator) -> Products:
    """Draw all products; at each place on the shelf one follows another, each for two to eight months."""
    # Fewer features than families: no linear model can give every family a level of its own.
    typical = rng.normal(size=(len(FAMILIES), 6))
    families, arrives, leaves = [], [], []
    for place in range(SHELF * len(FAMILIES)):
        day = -HISTORY_YEARS * YEAR - rng.uniform(0, 150)
        while day < YEAR:
            families.append(place % len(FAMILIES))
            arrives.append(day)
            day += rng.uniform(60, 240)
            leaves.append(day)
    count = len(families)
    features = typical[families] + rng.normal(scale=0.25, size=(count, 6))
    return Products(
        families=np.array(families),
        arrives=np.array(arrives),
        leaves=np.array(leaves),
        features=features,
        quality=rng.normal(scale=0.2, size=count),
    )


def _trends(rng: np.random.Generator) -> Trends:
    years = HISTORY_YEARS + 1
    shifts = rng.normal(scale=12.0, size=(years, len(TRENDS)))
    shifts[-1, SNOW] = rng.uniform(35, 60)  # the winter that is played comes late
    shocks = years * len(SHOCKED)
    starts = np.repeat(YEAR * (np.arange(years) - HISTORY_YEARS), len(SHOCKED))
    return Trends(
        shifts=shifts,
        shock_trends=np.tile(SHOCKED, years),
        shock_days=starts + rng.uniform(0.1, 0.8, shocks) * YEAR,
        shock_heights=rng.uniform(1.5, 2.5, shocks),
        shock_lengths=rng.uniform(30, 60, shocks),
    )


def sigmoid(x: Array) -> Array:
    """Return the chances of log-odds."""
    return 1 / (1 + np.exp(-x))
