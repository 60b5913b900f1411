"""The figure of appendix A.4: arms drawn to follow the anchor, for several rho and c."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.environments.anchors import CONCENTRATION, SLOPES, coupled_means, pearson
from tercet.paper import style
from tercet.paper.base import Claim, Item, Order, Picture, Tables, Verdict, above, verdict
from tercet.statistics import Interval, interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

CONCENTRATIONS = (1.0, 5.0, CONCENTRATION, 500.0)  # with the experiment's; the paper asks for at least 1
SAMPLES = 500
SHOWN = 0  # the seed in the picture
ANCHOR = 0.9  # the paper's example, and the arms of it
OPPOSITE, NEAR = -1.0, 0.6
# The paper's example has one decimal: within a tenth is in the vicinity.
VICINITY = 0.1
# "Very likely", and what we ask of "would be" too.
LIKELY = 0.9
# The paper writes rho with one decimal: a correlation that is rho rounds to it.
ROUNDING = 0.05


def measure(order: Order) -> Tables:
    """Return one seed's samples, correlation and slope of each seed, and the draws given the example."""
    import pandas as pd

    shown: list[dict[str, float]] = []
    fits: list[dict[str, float]] = []
    example: list[dict[str, float]] = []
    for seed in range(order.seeds):
        rng = np.random.default_rng(seed)
        for c in CONCENTRATIONS:
            anchors = rng.random(SAMPLES)
            means = coupled_means(anchors, np.array(SLOPES), c, rng)
            fits += _fits(anchors, means, c, seed)
            if seed == SHOWN:
                # Four decimals draw the same picture from a smaller file.
                columns = np.column_stack([anchors, means]).round(4)
                shown += [
                    {"c": c, "anchor": row[0], **dict(zip(map(_column, SLOPES), row[1:], strict=True))}
                    for row in columns
                ]
        example += _example(seed, rng)
    return {"samples": pd.DataFrame(shown), "fits": pd.DataFrame(fits), "example": pd.DataFrame(example)}


def _column(slope: float) -> str:
    return f"rho {slope:g}"


def _fits(anchors: Any, means: Any, c: float, seed: int) -> list[dict[str, float]]:
    rows = []
    for number, rho in enumerate(SLOPES):
        slope, level = np.polyfit(anchors, means[:, number], 1)
        residual = means[:, number] - level - slope * anchors
        measured = np.corrcoef(anchors, means[:, number])[0, 1]
        rows.append(
            {
                "c": c,
                "rho": rho,
                "seed": seed,
                "pearson": float(measured),
                "slope": float(slope),
                "residual_variance": float(residual.var(ddof=2)),
            }
        )
    return rows


def _example(seed: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """What arms earn where the anchor earns as in the example: mean, and shares near it and its opposite."""
    means = coupled_means(np.full(SAMPLES, ANCHOR), np.array(SLOPES), CONCENTRATION, rng)
    return [
        {
            "rho": rho,
            "seed": seed,
            "mean": float(column.mean()),
            "near_anchor": float((np.abs(column - ANCHOR) <= VICINITY).mean()),
            "near_opposite": float((np.abs(column - (1 - ANCHOR)) <= VICINITY).mean()),
        }
        for rho, column in zip(SLOPES, means.T, strict=True)
    ]


def draw(tables: Tables) -> list[Picture]:
    """Draw an arm's mean against the anchor's, one panel for each rho (columns) and c (rows)."""
    samples, fits = tables["samples"], tables["fits"]
    concentrations = sorted(float(c) for c in samples["c"].unique())
    figure, axes = style.panels(
        len(concentrations),
        len(SLOPES),
        height=1.2 * len(concentrations) + 0.4,
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for line, c in zip(axes, concentrations, strict=True):
        part = samples[samples["c"] == c]
        for panel, rho in zip(line, SLOPES, strict=True):
            _panel(panel, part, rho)
            measured = _mean_fit(fits, c, rho, "pearson")
            above = f"ρ = {rho:g}\n" if c == concentrations[0] else ""
            panel.set_title(f"{above}r = {measured:.2f} ({pearson(rho, c):.2f})", fontsize=7, pad=3)
        line[0].set_ylabel(f"c = {c:g}")
    figure.supxlabel("mean of the anchor, $μ_0$", fontsize=8)
    figure.supylabel("mean of the arm, $μ_i$", fontsize=8)
    caption = (
        f"Means of arms drawn to follow the anchor, {len(samples) // len(concentrations)} samples in each "
        f"panel (seed {SHOWN}); the experiment has c = {CONCENTRATION:g}. The line is ½ + ρ(μ₀ - ½), the "
        f"mean that the paper's Beta has: ρ is its slope. r is Pearson's correlation, the mean of "
        f"{fits['seed'].nunique()} seeds, with its closed form in brackets. Lines and r are not in "
        "the paper; its values of c are not stated, these are ours."
    )
    return [Picture(name="correlation", figure=figure, caption=caption)]


def _panel(panel: "Axes", part: "pd.DataFrame", rho: float) -> None:
    panel.plot(
        part["anchor"],
        part[_column(rho)],
        linestyle="none",
        marker=".",
        markersize=2,
        markeredgewidth=0,
        alpha=0.6,
        color=style.BLUE,
    )
    ends = np.array([0.0, 1.0])
    panel.plot(ends, 0.5 + rho * (ends - 0.5), color=style.BLACK, linewidth=0.9)
    panel.set(xlim=(0, 1), ylim=(0, 1))
    panel.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    panel.set_yticks([0, 0.5, 1], ["0", ".5", "1"])


def _mean_fit(fits: "pd.DataFrame", c: float, rho: float, column: str) -> float:
    return float(fits.loc[(fits["c"] == c) & (fits["rho"] == rho), column].mean())


def claims(tables: Tables) -> list[Claim]:
    """Judge the paper's example, its name for rho, and what c does."""
    return [_opposite(tables), _vicinity(tables), _is_a_correlation(tables), _narrower(tables)]


def _given(tables: Tables, rho: float, column: str) -> Interval:
    rows = tables["example"]
    return interval(np.asarray(rows.loc[rows["rho"] == rho, column], dtype=np.float64))


def _told(tables: Tables, rho: float, place: float, share: Interval) -> str:
    return (
        f"Given μ₀ = {ANCHOR:g} the mean of {_arm(rho)} is {_given(tables, rho, 'mean').mean:.3f}, and "
        f"{share.mean:.1%} ± {share.half:.1%} of the draws lie within {VICINITY:g} of {place:.1f} (95 % "
        "interval over seeds)."
    )


def _arm(rho: float) -> str:
    """Return the name of an arm's mean, by the arm's place in the list of rho."""
    return "μ" + "₀₁₂₃₄₅₆"[SLOPES.index(rho) + 1]


def _formula(rho: float) -> float:
    """Return the mean that the paper's Beta has given the example."""
    return 0.5 + rho * (ANCHOR - 0.5)


RULE = f"Reproduced if at least {LIKELY:.0%} of the draws lie there."


def _opposite(tables: Tables) -> Claim:
    share = _given(tables, OPPOSITE, "near_opposite")
    return Claim(
        paper=f"If μ₀ = {ANCHOR:g} then it is very likely that {_arm(OPPOSITE)} ≈ {1 - ANCHOR:.1f} "
        f"(ρ = {OPPOSITE:g}).",
        ours=_told(tables, OPPOSITE, 1 - ANCHOR, share),
        verdict=above(share, LIKELY),
        note=RULE,
    )


def _vicinity(tables: Tables) -> Claim:
    share, last = _given(tables, NEAR, "near_anchor"), _given(tables, SLOPES[-1], "near_anchor")
    return Claim(
        paper=f"If μ₀ = {ANCHOR:g} then {_arm(NEAR)} would be in the vicinity of {ANCHOR:g} (ρ = {NEAR:g}).",
        ours=_told(tables, NEAR, ANCHOR, share),
        verdict=above(share, LIKELY),
        note=(
            f"{RULE} By the paper's formula the mean is ½ + {NEAR:g}·({ANCHOR:g} - ½) = "
            f"{_formula(NEAR):.2f}. Of the last arm (ρ = {SLOPES[-1]:g}), {last.mean:.1%} of the draws lie "
            "there."
        ),
    )


def _is_a_correlation(tables: Tables) -> Claim:
    fits = tables["fits"]
    gaps: list[float] = []
    parts, verdicts = [], []
    for rho in SLOPES:
        rows = fits[(fits["c"] == CONCENTRATION) & (fits["rho"] == rho)]
        measured = interval(np.asarray(rows["pearson"], dtype=np.float64))
        gaps.append(abs(measured.mean - rho))
        verdicts.append(_rounds_to(measured, rho))
        if rho > 0:
            slope = _mean_fit(fits, CONCENTRATION, rho, "slope")
            parts.append(f"{rho:g}: {measured.mean:.3f} ({pearson(rho):.3f}), slope {slope:.3f}")
    return Claim(
        paper="ρ is the arm's correlation with the anchor.",
        ours=(
            "Pearson's correlation as measured (closed form) and the slope of μᵢ in μ₀, for each ρ at "
            f"c = {CONCENTRATION:g}: {'; '.join(parts)}. The largest gap between ρ and the correlation is "
            f"{max(gaps):.2f}."
        ),
        verdict=verdict(set(verdicts) == {"reproduced"}, refuted="not reproduced" in verdicts),
        note=f"Reproduced if each correlation is ρ but for {ROUNDING:g}, to which the paper's decimal tells "
        "it (95 % intervals over seeds). ρ is a slope; the correlation depends on c as well, and comes near "
        "±1 as c grows.",
    )


def _rounds_to(measured: Interval, rho: float) -> Verdict:
    away = abs(measured.mean - rho)
    return verdict(away + measured.half <= ROUNDING, refuted=away - measured.half > ROUNDING)


def _narrower(tables: Tables) -> Claim:
    variances = tables["fits"].groupby("c")["residual_variance"].mean().sort_index()
    listed = ", ".join(f"{value:.2g} (c = {c:g})" for c, value in variances.items())
    falling = bool((np.diff(variances.to_numpy()) < 0).all())
    return Claim(
        paper="The higher c is, the lower the variance.",
        ours=f"The variance of μᵢ about its line in μ₀, mean over ρ and seeds, is {listed}.",
        verdict=verdict(falling),
    )


ITEM = Item(
    name="correlation",
    title="Means of correlated arms against the anchor's",
    where="Appendix A.4, and the example of section 5.1",
    says="ρ sets how an arm's mean follows the anchor's, c how closely.",
    seeds=10,
    quick_seeds=3,
    measure=measure,
    draw=draw,
    claims=claims,
    deviations=(
        f"The values of c are ours, but for the experiment's {CONCENTRATION:g}: the paper's figure states "
        "none.",
    ),
)
