"""The demo's report: one HTML page that needs no network, drawn from the rows of a comparison."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from tercet.checks import Array, Matrix
from tercet.demo import HINDSIGHT, Comparison, Interval, interval
from tercet.environments.simulated import FAMILIES, FOLLOWS, SHOCKED, SNOW, VISITORS, YEAR

# One hue for each pair of coupled families, dark and light; told apart by every kind of colour vision.
FAMILY_COLOURS = ("#0072B2", "#56B4E9", "#882255", "#CC79A7", "#00785A", "#5FC3A0", "#C04F00", "#E69F00")
SYMBOLS = ("circle", "circle-open", "square", "square-open", "diamond", "diamond-open", "cross", "cross-open")
POLICY_STYLES = {
    "C3": ("#111111", "solid"),
    "LinUCB, discounted": ("#4477AA", "solid"),
    "LinUCB": ("#4477AA", "dot"),
    "Thompson per product": ("#CC6677", "solid"),
    "uniform": ("#999999", "solid"),
    HINDSIGHT: ("#AA8800", "dash"),
}
MONTH_STARTS = np.cumsum([0, 30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 28])
MONTHS = ("Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb", "Mar")
DAYS = np.arange(int(YEAR) + 1, dtype=np.float64)
SHOCK_NAMES = dict(zip(SHOCKED, ("a strike", "a fashion"), strict=True))

FONTS = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"

INTRODUCTION = """A simulated shop sells bicycles and helmets, skis and snowboards, and more. {visits:,}
visitors come in a year; each is shown one of {offered} products and buys it or not. Demand follows seasons
that are never on time, products come and go, and which families move together depends on the visitor.
Every policy studies the same three logged years, then plays the same year and learns only from what it
showed itself."""
TABLE_CAPTION = """Sales missed (regret): the chance of a sale of the best product on offer less that of the
product shown, summed over the year. ± is a 95 % interval over seeds; “more than C3” compares within each
seed. The best fixed rule of hindsight knows each visitor's kind and ranks the families once for each kind,
with the year's true demand in hand; it shows any product of the highest-ranked family on offer."""
REGRET_CAPTION = """Lower is better, and a flat stretch means that the right products are shown. Lines are
means over {seeds}; each band is the 95 % interval of that mean."""
DEMAND_CAPTION = """The true chance that a product of usual quality sells. Coupled families share a hue:
bicycles and helmets rise and fall together, so do skis and snowboards. Rain jackets follow the bicycles of
commuters, but the tents of sports people. This winter comes {late:.0f} days late; strikes and fashions are
in no calendar."""
SHELF_CAPTION = """Products on sale: a dot is an arrival, the end of a line a departure. Most products stay
for too few visits to be learned one by one."""
SHARES_CAPTION = """Above, the family of the best product on offer, which only the simulation knows; below,
the family that C3 showed. Shares of visits in two-week steps: the closer the two pictures, the better."""
EMBEDDING_CAPTION = """Each point is a product, placed by C3 for a typical visitor, from its noisy description
alone; what lies within about one bandwidth shares its evidence. Products of coupled families are
{near:.1f} bandwidths apart on average, others {far:.1f}."""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tercet demo: a year in the shop</title>
<style>
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  color: #222; background: #fff; max-width: 920px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 28px; font-weight: 600; margin: 8px 0; }
h2 { font-size: 20px; font-weight: 600; margin: 44px 0 4px; }
p { margin: 6px 0; max-width: 72ch; }
.headlines { background: #f5f6f7; border-radius: 8px; padding: 14px 20px 14px 36px; margin: 18px 0; }
.headlines li:first-child { font-weight: 600; }
.chips { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 14px; margin: 8px 0 0; }
.chips span { white-space: nowrap; }
.chips i { display: inline-block; width: 22px; margin-right: 6px; vertical-align: middle; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 14px 5px 0; border-bottom: 1px solid #e6e6e6; white-space: nowrap; }
th { font-weight: 600; font-size: 14px; color: #555; }
th:first-child, td:first-child { text-align: left; }
td .chips { margin: 0; font-size: 16px; }
.small, footer { font-size: 14px; color: #666; }
.pair { display: flex; flex-wrap: wrap; gap: 8px; }
.pair > div { flex: 1 1 340px; min-width: 0; }
footer { margin-top: 40px; border-top: 1px solid #e6e6e6; padding-top: 10px; }
</style>
<script>{script}</script></head>
<body>
{body}
</body></html>
"""


class Row(NamedTuple):
    """One line of the table: sales missed in the year, and how many more than C3 missed in the same world."""

    name: str
    missed: Interval
    more_than_c3: Interval
    milliseconds: float  # NaN where nothing was decided


def rows(comparison: Comparison) -> list[Row]:
    """Return the table, lowest regret first."""
    c3 = comparison.regrets("C3").sum(1)
    table = []
    for name in comparison.names:
        missed = comparison.regrets(name).sum(1)
        seconds = [trace.seconds.mean() for trace in comparison.traces.get(name, ())]
        milliseconds = 1e3 * float(np.mean(seconds)) if seconds else float("nan")
        table.append(Row(name, interval(missed), interval(missed - c3), milliseconds))
    return table


def headlines(comparison: Comparison) -> list[str]:
    """Return what a reader should know after ten seconds, computed from the rows."""
    first, second = [row.name for row in rows(comparison) if row.name != HINDSIGHT][:2]
    best, next_best, fixed, blind = (
        comparison.regrets(name).sum(1) for name in (first, second, HINDSIGHT, "uniform")
    )
    lead = next_best - best
    return [
        f"{first} has the lowest regret: it misses {spread(interval(best))} sales in the year, "
        f"where uniform choice misses {blind.mean():.0f}.",
        f"That is {100 * lead.mean() / next_best.mean():.0f} % less than the next best learner, {second}: "
        f"{spread(interval(lead))} sales, compared in the same worlds ({seed_count(comparison)}).",
        f"The best fixed rule, chosen with the whole year in hand, misses {fixed.mean():.0f}: "
        + ("following the seasons pays." if best.mean() < fixed.mean() else "no learner beats it here."),
    ]


def spread(value: Interval) -> str:
    """Return a mean with its interval, for people."""
    if np.isnan(value.half):
        return f"{value.mean:.0f}"
    return f"{value.mean:.0f} ± {value.half:.0f}"


def seed_count(comparison: Comparison) -> str:
    """Return how many worlds were played, for people."""
    count = len(comparison.hindsight)
    return "a single seed" if count == 1 else f"{count} seeds"


def page(comparison: Comparison) -> str:
    """Return the report as one HTML document."""
    regret_chips = [(name, *POLICY_STYLES[name]) for name in comparison.names]
    family_chips = [(name, colour, "solid") for name, colour in zip(FAMILIES, FAMILY_COLOURS, strict=True)]
    near, far = coupling_distances(comparison.embeddings, comparison.shop.products.families)
    late = comparison.shop.trends.shifts[-1, SNOW]
    parts = [
        "<h1>A year in the shop</h1>",
        f"<p>{INTRODUCTION.format(visits=comparison.shop.visits, offered=comparison.shop.offered)}</p>",
        "<ul class=headlines>"
        + "".join(f"<li>{escape(line)}</li>" for line in headlines(comparison))
        + "</ul>",
        _table(rows(comparison)),
        f"<p class=small>{TABLE_CAPTION}</p>",
        "<h2>Regret through the year</h2>",
        f"<p>{REGRET_CAPTION.format(seeds=seed_count(comparison))}</p>",
        _chips(regret_chips),
        _figure(regret_figure(comparison)),
        "<h2>What visitors want</h2>",
        f"<p>{DEMAND_CAPTION.format(late=late)}</p>",
        _chips(family_chips),
        _figure(demand_figure(comparison)),
        f"<p>{SHELF_CAPTION}</p>",
        _figure(shelf_figure(comparison)),
        "<h2>What C3 shows</h2>",
        f"<p>{SHARES_CAPTION}</p>",
        _chips(family_chips),
        _figure(shares_figure(comparison)),
        "<h2>What C3 has learned: coupled products lie together</h2>",
        f"<p>{EMBEDDING_CAPTION.format(near=near, far=far)}</p>",
        _chips(family_chips),
        "<div class=pair>" + "".join(_figure(figure) for figure in embedding_figures(comparison)) + "</div>",
        f"<footer>{_footer(comparison)}</footer>",
    ]
    return PAGE.replace("{script}", get_plotlyjs()).replace("{body}", "\n".join(parts))


def regret_figure(comparison: Comparison) -> go.Figure:
    """Draw the mean cumulative regret of every policy, with its interval over seeds."""
    figure = go.Figure()
    for name in reversed(comparison.names):  # the best is drawn last, on top
        colour, dash = POLICY_STYLES[name]
        curves = np.array([interval(column) for column in cumulative(comparison, name).T])
        mean, half = curves[:, 0], np.nan_to_num(curves[:, 1])
        band = {"x": [*DAYS, *DAYS[::-1]], "y": [*(mean + half), *(mean - half)[::-1]]}
        figure.add_scatter(
            **band, fill="toself", fillcolor=colour, opacity=0.15, line_width=0, hoverinfo="skip"
        )
        width = 3 if name == "C3" else 2
        figure.add_scatter(
            x=DAYS, y=mean, name=name, line={"color": colour, "dash": dash, "width": width},
            hovertemplate="%{y:.0f}",
        )  # fmt: skip
    figure.update_yaxes(title="expected sales missed so far", rangemode="tozero")
    return _styled(figure, height=420, hovermode="x unified")


def cumulative(comparison: Comparison, name: str) -> Matrix:
    """Return the regret gathered until each day of the year, seeds x days."""
    times = [trace.times for trace in comparison.traces["C3"]]  # the visits are the same for all
    sums = [np.append(0.0, np.cumsum(regrets)) for regrets in comparison.regrets(name)]
    return np.array([s[np.searchsorted(t, DAYS, side="right")] for s, t in zip(sums, times, strict=True)])


def demand_figure(comparison: Comparison) -> go.Figure:
    """Draw the true demand of each family, one panel a kind of visitor."""
    demand = comparison.shop.demand(DAYS)
    titles = [name.capitalize() for name in VISITORS]
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.1, subplot_titles=titles)
    for kind in range(len(VISITORS)):
        for number, name in enumerate(FAMILIES):
            style = {"color": FAMILY_COLOURS[number], "width": 2}
            figure.add_scatter(
                x=DAYS, y=demand[:, kind, number], name=name, line=style, row=kind + 1, col=1,
                hovertemplate="%{y:.0%}",
            )  # fmt: skip
    figure.update_yaxes(title="chance of a sale", tickformat=".0%", range=[0, 1.02 * demand.max()])
    trends = comparison.shop.trends
    for trend, day in zip(trends.shock_trends, trends.shock_days, strict=True):
        if 0 <= day < YEAR:
            figure.add_vline(x=day, line={"color": "#aaa", "width": 1, "dash": "dot"}, layer="below")
            figure.add_annotation(
                x=day, y=0.49, yref="paper", text=SHOCK_NAMES[int(trend)], showarrow=False, xanchor="left",
                font_color="#666",
            )  # fmt: skip
    return _styled(figure, height=560, hovermode="x")


def shelf_figure(comparison: Comparison) -> go.Figure:
    """Draw when each product was on sale."""
    products = comparison.shop.products
    follows = np.append(False, products.arrives[1:] == products.leaves[:-1])  # on the shelf of the one before
    shelves = np.cumsum(~follows) // len(FAMILIES)
    figure = go.Figure()
    for number, name in enumerate(FAMILIES):
        mine = np.flatnonzero((products.families == number) & (products.leaves > 0))
        heights = -number - 0.12 * shelves[mine]
        starts = np.maximum(products.arrives[mine], 0)
        ends = np.minimum(products.leaves[mine] - 3, YEAR)  # a gap shows where one ends and the next begins
        x = np.column_stack([starts, ends, np.full(len(mine), np.nan)]).ravel()
        line = {"color": FAMILY_COLOURS[number], "width": 2}
        figure.add_scatter(x=x, y=np.repeat(heights, 3), mode="lines", line=line, hoverinfo="skip")
        new = products.arrives[mine] > 0
        figure.add_scatter(
            x=starts[new], y=heights[new], mode="markers", marker={"color": line["color"], "size": 6},
            name=name, hovertemplate="arrives",
        )  # fmt: skip
    ticks = -np.arange(len(FAMILIES)) - 0.3
    figure.update_yaxes(tickvals=ticks, ticktext=FAMILIES, showgrid=False, zeroline=False)
    return _styled(figure, height=360, hovermode="closest")


def shares_figure(comparison: Comparison, *, days: float = 14.0) -> go.Figure:
    """Draw the share of each family among the best products on offer, and among what C3 showed."""
    year, families = comparison.year, comparison.shop.products.families
    best = families[year.offers[np.arange(len(year.times)), year.means.argmax(1)]]
    played = comparison.traces["C3"][0].arm_ids
    assert played is not None
    titles = ["Best product on offer", "What C3 showed"]
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.1, subplot_titles=titles)
    for panel, chosen in enumerate((best, families[played]), start=1):
        middles, shares = _shares(year.times, chosen, days)
        for number, name in enumerate(FAMILIES):
            figure.add_scatter(
                x=middles, y=shares[:, number], name=name, stackgroup=panel, row=panel, col=1,
                line={"width": 0, "shape": "hvh"}, fillcolor=FAMILY_COLOURS[number],
                hovertemplate="%{y:.0%}",
            )  # fmt: skip
    figure.update_yaxes(title="share of visits", tickformat=".0%", range=[0, 1])
    return _styled(figure, height=520, hovermode="x")


def embedding_figures(comparison: Comparison) -> list[go.Figure]:
    """Draw phi of every product for each kind of visitor, on the two main axes of its variation."""
    families = comparison.shop.products.families
    figures = []
    for kind, points in zip(VISITORS, comparison.embeddings, strict=True):
        plane = principal_plane(points)
        figure = go.Figure()
        for number, name in enumerate(FAMILIES):
            mine = plane[families == number]
            marker = {"color": FAMILY_COLOURS[number], "symbol": SYMBOLS[number], "size": 8, "opacity": 0.8}
            figure.add_scatter(
                x=mine[:, 0], y=mine[:, 1], mode="markers", name=name, marker=marker, hovertemplate=name
            )
        figure.update_xaxes(title="first principal axis (bandwidths)", zeroline=False)
        figure.update_yaxes(title="second principal axis", scaleanchor="x", zeroline=False)
        figure.update_layout(title={"text": f"For {kind}", "font_size": 15, "x": 0.5})
        figures.append(_styled(figure, height=430, hovermode="closest", months=False))
    return figures


def principal_plane(points: Any) -> Matrix:
    """Project points onto the two axes along which they vary most."""
    centred = points - points.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ axes[:2].T, dtype=np.float64)


def coupling_distances(embeddings: Any, families: Array) -> tuple[float, float]:
    """Return the mean distance between products of different families: coupled ones, and all others."""
    near, far = [], []
    for follows, points in zip(FOLLOWS, embeddings, strict=True):
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        coupled = follows[families][:, None] == follows[families]
        other_family = families[:, None] != families
        near.append(distances[coupled & other_family].mean())
        far.append(distances[~coupled].mean())
    return float(np.mean(near)), float(np.mean(far))


def _shares(times: Array, chosen: Array, days: float) -> tuple[Array, Matrix]:
    bins = (times // days).astype(np.int64)
    counts = np.zeros((int(YEAR // days) + 1, len(FAMILIES)))
    np.add.at(counts, (bins, chosen), 1.0)
    filled = counts.sum(1) > 0
    middles = (np.arange(len(counts)) + 0.5) * days
    return middles[filled], counts[filled] / counts[filled].sum(1, keepdims=True)


def _styled(figure: go.Figure, *, height: int, hovermode: str, months: bool = True) -> go.Figure:
    figure.update_layout(
        template="plotly_white", height=height, hovermode=hovermode, showlegend=False, autosize=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8}, font={"family": FONTS, "size": 13, "color": "#333"},
        hoverlabel={"namelength": -1},
    )  # fmt: skip
    figure.update_yaxes(automargin=True, fixedrange=True)
    figure.update_xaxes(automargin=True, fixedrange=True)
    if months:
        figure.update_xaxes(tickvals=MONTH_STARTS, ticktext=MONTHS, range=[0, YEAR])
    return figure


def _figure(figure: go.Figure) -> str:
    config = {"displayModeBar": False, "responsive": True}
    return str(figure.to_html(full_html=False, include_plotlyjs=False, config=config))


def _chips(entries: Iterable[tuple[str, str, str]]) -> str:
    """Return a legend that wraps as text does, beside no data."""
    borders = {"solid": "solid", "dot": "dotted", "dash": "dashed"}
    chips = (
        f'<span><i style="border-top:3px {borders[dash]} {colour}"></i>{escape(name)}</span>'
        for name, colour, dash in entries
    )
    return f"<div class=chips>{''.join(chips)}</div>"


def _table(table: Sequence[Row]) -> str:
    cells = []
    for row in table:
        difference = "" if row.name == "C3" else spread(row.more_than_c3)
        pace = "" if np.isnan(row.milliseconds) else f"{row.milliseconds:.1f}"
        name = _chips([(row.name, *POLICY_STYLES[row.name])])
        cells.append(f"<tr><td>{name}<td>{spread(row.missed)}<td>{difference}<td>{pace}")
    head = "<tr><th>policy<th>sales missed<th>more than C3<th>ms a visit"
    return f"<div class=wide><table>{head}{''.join(cells)}</table></div>"


def _footer(comparison: Comparison) -> str:
    from importlib.metadata import version

    seeds, visits = len(comparison.hindsight), comparison.shop.visits
    return (
        f"tercet {version('tercet')}, <code>tercet demo --seeds {seeds} --steps {visits}</code>. "
        "Pictures of the shop, of what C3 shows and of its embedding are those of the first seed."
    )
