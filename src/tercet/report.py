"""The demo's report: one HTML page that needs no network, drawn from the rows of a comparison."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from tercet.checks import Array, Matrix
from tercet.demo import HINDSIGHT, Comparison
from tercet.environments.simulated import FAMILIES, FOLLOWS, HISTORY_YEARS, SHOCKED, SNOW, VISITORS, YEAR
from tercet.report_page import BODY, PAGE
from tercet.statistics import Interval, interval

# One hue for each pair of coupled families, dark and light; told apart by every kind of colour vision.
PALETTE = ("#0072B2", "#56B4E9", "#882255", "#CC79A7", "#00785A", "#5FC3A0", "#C04F00", "#E69F00")
FAMILY_COLOURS = dict(zip(FAMILIES, PALETTE, strict=True))
POLICY_STYLES = {
    "C3": ("#111111", "solid"),
    "discounted LinUCB": ("#4477AA", "solid"),
    "LinUCB": ("#4477AA", "dot"),
    "Thompson per product": ("#CC6677", "solid"),
    "uniform": ("#999999", "solid"),
    HINDSIGHT: ("#AA8800", "dash"),
}
MONTH_STARTS = np.cumsum([0, 30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 28])
MONTHS = ("Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb", "Mar")
DAYS = np.arange(int(YEAR) + 1, dtype=np.float64)
SQUARE = "width:12px; height:12px;"
FONTS = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"


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
    margin = interval(lead)
    doubt = " The interval includes zero." if margin.half >= margin.mean else ""
    won = f"ahead in {int((lead > 0).sum())} of {len(lead)} worlds"
    return [
        f"{first} has the lowest regret: it misses {spread(interval(best))} sales in the year, "
        f"where uniform choice misses {blind.mean():.0f}.",
        f"That is {100 * lead.mean() / next_best.mean():.0f} % less than the next best learner, {second}: "
        f"{spread(margin)} sales, compared within each world; it is {won}.{doubt}",
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
    shop = comparison.shop
    strike, fashion = map(_date, shocks(comparison))
    near, far = coupling_distances(comparison.embeddings, shop.products.families)
    captions = {
        "visits": shop.visits, "offered": shop.offered, "years": HISTORY_YEARS, "near": near, "far": far,
        "seeds": seed_count(comparison), "late": shop.trends.shifts[-1, SNOW], "strike": strike,
        "fashion": fashion, "headlines": "".join(f"<li>{escape(line)}" for line in headlines(comparison)),
        "table": _table(rows(comparison)), "footer": _footer(comparison),
        "policies": _chips((name, _line(*POLICY_STYLES[name])) for name in comparison.names),
        "lines": _chips((name, _line(colour)) for name, colour in FAMILY_COLOURS.items()),
        "areas": _chips((name, f"{SQUARE} background:{colour}") for name, colour in FAMILY_COLOURS.items()),
        "points": _chips((name, _point(name)) for name in FAMILIES),
        "regret": _figure(regret_figure(comparison)), "demand": _figure(demand_figure(comparison)),
        "shelf": _figure(shelf_figure(comparison)), "shares": _figure(shares_figure(comparison)),
        "embedding": "".join(map(_figure, embedding_figures(comparison))),
    }  # fmt: skip
    return PAGE.replace("{body}", BODY.format(**captions)).replace("{script}", get_plotlyjs())


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
    most = max(cumulative(comparison, name).max() for name in comparison.names)
    figure.update_yaxes(title="expected sales missed so far", range=[0, 1.05 * most])
    return _styled(figure, height=420, hovermode="x unified")


def cumulative(comparison: Comparison, name: str) -> Matrix:
    """Return the regret gathered until each day of the year, seeds x days."""
    times = [trace.times for trace in comparison.traces["C3"]]  # the visits are the same for all
    sums = [np.append(0.0, np.cumsum(regrets)) for regrets in comparison.regrets(name)]
    return np.array([s[np.searchsorted(t, DAYS, side="right")] for s, t in zip(sums, times, strict=True)])


def demand_figure(comparison: Comparison) -> go.Figure:
    """Draw the true demand of each family, one panel a kind of visitor."""
    demand = comparison.shop.demand(DAYS)
    figure = _two_panels([name.capitalize() for name in VISITORS])
    for kind in range(len(VISITORS)):
        for number, name in enumerate(FAMILIES):
            style = {"color": PALETTE[number], "width": 2}
            figure.add_scatter(
                x=DAYS, y=demand[:, kind, number], name=name, line=style, row=kind + 1, col=1,
                hovertemplate="%{y:.0%}",
            )  # fmt: skip
    figure.update_yaxes(title="chance of a sale", tickformat=".0%", range=[0, 1.02 * demand.max()])
    for day in shocks(comparison):
        figure.add_vline(x=day, line={"color": "#999", "width": 1, "dash": "dot"}, layer="below")
    return _styled(figure, height=560, hovermode="x")


def shocks(comparison: Comparison) -> tuple[float, ...]:
    """Return the day on which each shocked trend jumps in the year played."""
    trends = comparison.shop.trends
    played = trends.shock_days >= 0
    return tuple(float(trends.shock_days[played & (trends.shock_trends == trend)][0]) for trend in SHOCKED)


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
        line = {"color": PALETTE[number], "width": 2}
        figure.add_scatter(x=x, y=np.repeat(heights, 3), mode="lines", line=line, hoverinfo="skip")
        new = products.arrives[mine] > 0
        figure.add_scatter(
            x=starts[new], y=heights[new], mode="markers", marker={"color": line["color"], "size": 6},
            name=name, hovertemplate="arrives",
        )  # fmt: skip
    ticks = -np.arange(len(FAMILIES)) - 0.3
    figure.update_yaxes(tickvals=ticks, ticktext=FAMILIES, showgrid=False, zeroline=False)
    return _styled(figure, height=360, hovermode="closest")


def shares_figure(comparison: Comparison) -> go.Figure:
    """Draw the share of each family among the best products on offer, and among what C3 showed."""
    year, families = comparison.year, comparison.shop.products.families
    best = families[year.offers[np.arange(len(year.times)), year.means.argmax(1)]]
    played = comparison.traces["C3"][0].columns["arm_id"]
    figure = _two_panels(["Best product on offer", "What C3 showed"])
    for panel, chosen in enumerate((best, families[played]), start=1):
        edges, shares = _shares(year.times, chosen)
        for number, name in enumerate(FAMILIES):
            figure.add_scatter(
                x=edges, y=shares[:, number], name=name, stackgroup=panel, row=panel, col=1,
                line={"width": 0, "shape": "hv"}, fillcolor=PALETTE[number],
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
            marker = {
                "color": PALETTE[number],
                "symbol": ("circle", "circle-open")[number % 2],
                "size": 8,
                "opacity": 0.8,
            }
            figure.add_scatter(
                x=mine[:, 0], y=mine[:, 1], mode="markers", name=name, marker=marker, hovertemplate=name
            )
        figure.update_xaxes(title="first principal axis (bandwidths)", zeroline=False)
        figure.update_yaxes(title="second axis (bandwidths)", scaleanchor="x", zeroline=False)
        figure.add_annotation(
            text=f"For {kind}", x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom",
            showarrow=False, font_size=15,
        )  # fmt: skip
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


def _shares(times: Array, chosen: Array) -> tuple[Array, Matrix]:
    """Return the edges of two-week bins and the share of each family, the last repeated to close its step."""
    edges = np.linspace(0, YEAR, 27)
    counts = np.zeros((len(edges), len(FAMILIES)))
    np.add.at(counts, (np.searchsorted(edges, times, side="right") - 1, chosen), 1.0)
    counts[-1] = counts[-2]
    # Bins without a visit stay empty: a short run has few.
    return edges, counts / np.maximum(counts.sum(1, keepdims=True), 1)


def _two_panels(titles: Sequence[str]) -> go.Figure:
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.12, subplot_titles=titles)
    figure.update_annotations(x=0, xanchor="left", font_size=15)
    return figure


def _styled(figure: go.Figure, *, height: int, hovermode: str, months: bool = True) -> go.Figure:
    figure.update_layout(
        template="plotly_white", height=height, hovermode=hovermode, showlegend=False, autosize=True,
        margin={"l": 8, "r": 8, "t": 32 if len(figure.layout.annotations) else 12, "b": 8},
        font={"family": FONTS, "size": 13, "color": "#333"}, hoverlabel={"namelength": -1},
    )  # fmt: skip
    figure.update_yaxes(automargin=True, fixedrange=True, ticklabelstandoff=4)
    figure.update_xaxes(automargin=True, fixedrange=True, ticklabelstandoff=4)
    if months:
        figure.update_xaxes(tickvals=MONTH_STARTS, ticktext=MONTHS, range=[0, YEAR])
    return figure


def _figure(figure: go.Figure) -> str:
    config = {"displayModeBar": False, "responsive": True}
    return str(figure.to_html(full_html=False, include_plotlyjs=False, config=config))


def _chips(entries: Iterable[tuple[str, str]]) -> str:
    """Return a legend that wraps as text does and lies over no data: each name with the style of its mark."""
    chips = (f'<span><i style="{style}"></i>{escape(name)}</span>' for name, style in entries)
    return f"<div class=chips>{''.join(chips)}</div>"


def _line(colour: str, dash: str = "solid") -> str:
    return f"width:22px; border-top:3px { {'dot': 'dotted', 'dash': 'dashed'}.get(dash, 'solid') } {colour}"


def _point(family: str) -> str:
    colour = FAMILY_COLOURS[family]
    fill = "#fff" if FAMILIES.index(family) % 2 else colour
    return f"width:7px; height:7px; border:2px solid {colour}; border-radius:50%; background:{fill}"


def _table(table: Sequence[Row]) -> str:
    cells = []
    for row in table:
        difference = "" if row.name == "C3" else spread(row.more_than_c3)
        pace = "" if np.isnan(row.milliseconds) else f"{row.milliseconds:.1f}"
        name = _chips([(row.name, _line(*POLICY_STYLES[row.name]))])
        cells.append(f"<tr><td>{name}<td>{spread(row.missed)}<td>{difference}<td>{pace}")
    head = "<tr><th>policy<th>sales missed<th>more than C3<th>ms a visit"
    return f"<div class=wide><table>{head}{''.join(cells)}</table></div>"


def _date(day: float) -> str:
    month = int(np.searchsorted(MONTH_STARTS, day, side="right")) - 1
    return f"{int(day - MONTH_STARTS[month]) + 1} {MONTHS[month]}"


def _footer(comparison: Comparison) -> str:
    from importlib.metadata import version

    seeds, visits = len(comparison.hindsight), comparison.shop.visits
    return (
        f"tercet {version('tercet')}, <code>tercet demo --seeds {seeds} --steps {visits}</code>. "
        "Pictures of the shop, of what C3 shows and of its embedding are those of the first seed."
    )
