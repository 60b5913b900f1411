from dataclasses import replace
from html.parser import HTMLParser
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tercet import report
from tercet.demo import CONTENDERS, HINDSIGHT, Comparison, best_ranking, compare, hindsight
from tercet.environments.simulated import FAMILIES, FOLLOWS, VISITORS, Shop
from tercet.loop import Trace


def with_regrets(trace: Trace, regrets: np.ndarray) -> Trace:
    return replace(trace, columns=trace.columns | {"dynamic_regret": regrets})


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(seeds=1, visits=60)


def earned(values: np.ndarray, ranking: tuple[int, ...]) -> float:
    ranked = values[:, ranking]
    return float(sum(row[~np.isnan(row)][0] for row in ranked if not np.isnan(row).all()))


@given(arrays(float, (6, 4), elements=st.one_of(st.just(float("nan")), st.floats(0, 1))))
@settings(max_examples=60)
def test_the_best_ranking_earns_as_much_as_the_best_of_all_permutations(values: np.ndarray) -> None:
    best = max(earned(values, order) for order in permutations(range(4)))
    ranking = best_ranking(values)
    assert sorted(ranking) == [0, 1, 2, 3]
    assert earned(values, tuple(ranking)) == pytest.approx(best, abs=1e-12)


def test_hindsight_misses_no_more_than_any_other_fixed_rule() -> None:
    shop = Shop.draw(np.random.default_rng(0), visits=300)
    year = shop.year(np.random.default_rng(1))
    missed = hindsight(shop, year)
    assert missed.min() >= 0
    families = shop.products.families[year.offers]
    rng = np.random.default_rng(2)
    for _ in range(30):
        place = np.array([rng.permutation(len(FAMILIES)) for _ in VISITORS])[year.kinds[:, None], families]
        first = place == place.min(1, keepdims=True)
        shown = (year.means * first).sum(1) / first.sum(1)
        assert missed.sum() <= (year.means.max(1) - shown).sum() + 1e-9


def test_everybody_plays_the_same_year(comparison: Comparison) -> None:
    assert comparison.traces.keys() == CONTENDERS.keys()
    for name in comparison.names:
        assert comparison.regrets(name).shape == (1, 60)
        assert comparison.regrets(name).min() >= 0
    for traces in comparison.traces.values():
        np.testing.assert_array_equal(traces[0].times, comparison.year.times)
    totals = [comparison.regrets(name).sum() for name in comparison.names]
    assert totals == sorted(totals)


def test_two_processes_change_nothing(comparison: Comparison) -> None:
    finished: list[str] = []
    parallel = compare(seeds=1, visits=60, jobs=2, advance=finished.append)
    assert sorted(finished) == sorted(CONTENDERS)
    for name in set(CONTENDERS) - {"C3"}:  # its training may round differently on another number of threads
        np.testing.assert_array_equal(parallel.regrets(name), comparison.regrets(name))
    np.testing.assert_array_equal(parallel.hindsight, comparison.hindsight)


@pytest.mark.parametrize("what", ["seeds", "visits", "jobs"])
def test_nothing_to_compare_is_refused(what: str) -> None:
    with pytest.raises(ValueError, match=f"{what} must be at least 1; got 0"):
        compare(**({"seeds": 1, "visits": 1, "jobs": 1} | {what: 0}))


class Sources(HTMLParser):
    """Collect what a page would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.styles = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.sources += [f"{tag} {key}={value}" for key, value in attrs if key in ("src", "href", "srcset")]

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.styles += data


def test_the_report_needs_no_network(comparison: Comparison) -> None:
    page = Sources()
    page.feed(report.page(comparison))
    assert page.sources == []
    assert "body" in page.styles
    assert "url(" not in page.styles
    assert "@import" not in page.styles


def test_the_report_holds_every_figure_and_row(comparison: Comparison) -> None:
    text = report.page(comparison)
    # To draw: regret, demand, shelf, shares, and the embedding for each kind of visitor.
    assert text.count('class="plotly-graph-div"') == 4 + len(VISITORS)
    for name in (*comparison.names, *FAMILIES):
        assert name in text
    for line in report.headlines(comparison):
        assert line in text


def test_headlines_name_whoever_wins(comparison: Comparison) -> None:
    perfect = [with_regrets(trace, 0 * trace.regrets) for trace in comparison.traces["uniform"]]
    turned = replace(comparison, traces={**comparison.traces, "uniform": perfect})
    assert report.headlines(turned)[0].startswith("uniform has the lowest regret: it misses 0 sales")
    assert "100 % less" in report.headlines(turned)[1]
    assert "ahead in 1 of 1 worlds" in report.headlines(turned)[1]


def test_headlines_admit_a_lead_within_the_noise(comparison: Comparison) -> None:
    name, rival = "C3", "uniform"
    base = comparison.traces[name][0]
    flat = np.ones_like(base.regrets)
    traces = {other: [with_regrets(base, 9 * flat)] * 3 for other in CONTENDERS}
    traces[name] = [with_regrets(base, flat)] * 3
    traces[rival] = [with_regrets(base, scale * flat) for scale in (0.5, 1.2, 4.0)]
    turned = replace(comparison, traces=traces, hindsight=np.tile(flat, (3, 1)))
    line = report.headlines(turned)[1]
    assert "ahead in 2 of 3 worlds" in line
    assert line.endswith("The interval includes zero.")


def test_headlines_admit_when_no_learner_beats_the_fixed_rule(comparison: Comparison) -> None:
    turned = replace(comparison, hindsight=0 * comparison.hindsight)
    assert report.headlines(turned)[2].endswith("misses 0: no learner beats it here.")


def test_cumulative_regret_ends_at_the_total_and_never_falls(comparison: Comparison) -> None:
    for name in (*CONTENDERS, HINDSIGHT):
        curve = report.cumulative(comparison, name)
        np.testing.assert_allclose(curve[:, -1], comparison.regrets(name).sum(1))
        assert (np.diff(curve, axis=1) >= 0).all()


def test_coupling_distances_tell_coupled_from_other_families() -> None:
    families = np.arange(len(FAMILIES))
    together = 3.0 * np.eye(5)[FOLLOWS]  # a perfect phi: one place a trend
    near, far = report.coupling_distances(together, families)
    assert near == 0
    assert far == pytest.approx(3 * np.sqrt(2))


def test_the_principal_plane_keeps_the_distances_of_flat_points() -> None:
    flat = np.random.default_rng(0).normal(size=(20, 2)) @ np.linalg.qr(np.eye(5, 2) + 0.3)[0].T
    plane = report.principal_plane(flat)

    def distances(points: np.ndarray) -> np.ndarray:
        return np.linalg.norm(points[:, None] - points[None], axis=2)

    np.testing.assert_allclose(distances(plane), distances(flat), atol=1e-12)
