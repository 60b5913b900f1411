import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.environments.simulated import (
    FAMILIES,
    FOLLOWS,
    HISTORY_YEARS,
    SHELF,
    SNOW,
    VISITORS,
    YEAR,
    Shop,
    ShopYear,
)

SHOP = Shop.draw(np.random.default_rng(7), visits=2000)


def log_odds(chance: np.ndarray) -> np.ndarray:
    return np.log(chance) - np.log1p(-chance)


def test_equal_rngs_give_the_same_world_history_and_rounds() -> None:
    one, two = (Shop.draw(np.random.default_rng(1), visits=50) for _ in range(2))
    np.testing.assert_array_equal(one.products.features, two.products.features)
    for name in ("contexts", "arms", "rewards", "times", "arm_ids"):
        columns = [getattr(shop.history(np.random.default_rng(2)), name) for shop in (one, two)]
        np.testing.assert_array_equal(*columns)
    pairs = zip(one.rounds(np.random.default_rng(3)), two.rounds(np.random.default_rng(3)), strict=True)
    for left, right in pairs:
        np.testing.assert_array_equal(left.rewards, right.rewards)
        np.testing.assert_array_equal(left.arms, right.arms)
        assert left.time == right.time


def test_rounds_are_the_year_without_its_hidden_columns() -> None:
    year = SHOP.year(np.random.default_rng(0))
    for i, round_ in enumerate(SHOP.rounds(np.random.default_rng(0))):
        np.testing.assert_array_equal(round_.arms, SHOP.products.features[year.offers[i]])
        np.testing.assert_array_equal(round_.means, year.means[i])
        assert set(np.unique(round_.rewards)) <= {0.0, 1.0}
    assert i == len(year.times) - 1


def test_history_ends_where_the_year_begins_and_both_are_in_order() -> None:
    history, year = SHOP.history(np.random.default_rng(0)), SHOP.year(np.random.default_rng(0))
    assert history.times is not None
    assert history.times[0] >= -HISTORY_YEARS * YEAR
    assert history.times[-1] < 0 <= year.times[0]
    assert year.times[-1] < YEAR
    assert (np.diff(history.times) >= 0).all()
    assert (np.diff(year.times) >= 0).all()


def test_rewards_come_at_their_means() -> None:
    year = SHOP.year(np.random.default_rng(0))
    surprise = (year.rewards - year.means).sum() / np.sqrt((year.means * (1 - year.means)).sum())
    assert abs(surprise) < 4  # a standard normal


def test_means_are_demand_moved_by_the_products_own_quality() -> None:
    year = SHOP.year(np.random.default_rng(0))
    demand = SHOP.demand(year.times)
    rows = np.arange(len(year.times))[:, None]
    usual = demand[rows, year.kinds[:, None], SHOP.products.families[year.offers]]
    np.testing.assert_allclose(log_odds(year.means) - log_odds(usual), SHOP.products.quality[year.offers])


def test_offers_are_distinct_products_on_sale() -> None:
    year = SHOP.year(np.random.default_rng(0))
    on_sale = SHOP.products.on_sale(year.times)
    assert np.take_along_axis(on_sale, year.offers, axis=1).all()
    assert all(len(set(offer)) == SHOP.offered for offer in year.offers)


@given(st.floats(-HISTORY_YEARS * YEAR, YEAR, exclude_max=True))
@settings(max_examples=50)
def test_the_shelf_is_full_at_any_time(time: float) -> None:
    on_sale = SHOP.products.on_sale([time])[0]
    counts = np.bincount(SHOP.products.families[on_sale], minlength=len(FAMILIES))
    np.testing.assert_array_equal(counts, SHELF)


def test_products_arrive_and_leave_within_the_year() -> None:
    for days in (SHOP.products.arrives, SHOP.products.leaves):
        assert ((days > 0) & (days < YEAR)).sum() > SHELF * len(FAMILIES)


@pytest.mark.parametrize("kind", range(len(VISITORS)))
def test_families_keep_their_distance_if_and_only_if_they_are_coupled(kind: int) -> None:
    demand = log_odds(SHOP.demand(np.arange(YEAR))[:, kind])
    for one in range(len(FAMILIES)):
        for two in range(len(FAMILIES)):
            gap = np.ptp(demand[:, one] - demand[:, two])
            assert (gap < 1e-9) == (FOLLOWS[kind, one] == FOLLOWS[kind, two])


def test_rain_jackets_follow_bicycles_for_commuters_and_tents_for_sports_people() -> None:
    rain, bicycles, tents = (FAMILIES.index(name) for name in ("rain jackets", "bicycles", "tents"))
    assert FOLLOWS[0, rain] == FOLLOWS[0, bicycles] != FOLLOWS[0, tents]
    assert FOLLOWS[1, rain] == FOLLOWS[1, tents] != FOLLOWS[1, bicycles]


def test_the_winter_that_is_played_comes_late() -> None:
    days = np.arange(YEAR)
    peaks = [int(SHOP.trends.levels(days + year * YEAR)[:, SNOW].argmax()) for year in (-3, -2, 0)]
    assert peaks[-1] > max(peaks[:-1])


def test_last_years_calendar_does_not_foretell_this_year() -> None:
    days = np.arange(YEAR)
    moved = np.abs(SHOP.demand(days) - SHOP.demand(days - YEAR)).max(axis=(0, 1))
    for family in ("bicycles", "skis", "running shoes"):  # a strike, a late winter, a fashion
        assert moved[FAMILIES.index(family)] > 0.1


def test_demand_moves_smoothly() -> None:
    # Lipschitz in time, as the paper assumes: two shocks of height 2.5 rise by 1/8 of it a day, seasons by .05.
    for seed in range(20):
        levels = Shop.draw(np.random.default_rng(seed), visits=1).trends.levels(np.arange(-1000.0, YEAR, 0.5))
        assert np.abs(np.diff(levels, axis=0)).max() < 0.5 * (2 * 2.5 / 8 + 0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"visits": 0}, "visits must be at least 1; got 0"),
        ({"offered": 1}, "offered must be 2 to 48 products; got 1"),
        ({"offered": 49}, "offered must be 2 to 48 products; got 49"),
    ],
)
def test_impossible_shops_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Shop.draw(np.random.default_rng(0), **options)


@pytest.mark.parametrize("times", [[np.nan], [[1.0]], ["spring"]])
def test_demand_refuses_times_that_are_none(times: object) -> None:
    with pytest.raises(ValueError, match="times must be"):
        SHOP.demand(times)


def test_the_recipe_draws_the_same_shop() -> None:
    one = ShopYear(visits=50, offered=3).draw(np.random.default_rng(1))
    two = Shop.draw(np.random.default_rng(1), visits=50, offered=3)
    np.testing.assert_array_equal(one.products.features, two.products.features)
    assert (one.visits, one.offered) == (50, 3)
    with pytest.raises(ValueError, match="offered must be 2 to 48 products; got 1"):
        ShopYear(offered=1)
