"""Write the tables of regret in the README and in docs/studies.md anew, from the studies' published rows.

.venv/bin/python tools/headline.py
"""

from pathlib import Path

import numpy as np
import pandas as pd

from tercet.paper.openml_pictures import TITLES
from tercet.statistics import interval
from tercet.studies import elsewhere, ingredients, long
from tercet.studies.drift_claims import COUPLED
from tercet.studies.expectations import by_seed, scaled, surplus
from tercet.studies.sizes_claims import LIMITS, MOST, ORACLE

ROOT = Path(__file__).parent.parent
STUDIES = ROOT / "results" / "studies"
README, DOCS = ROOT / "README.md", ROOT / "docs" / "studies.md"
PAGES = {README: ("sizes", "long", "drift", "elsewhere"), DOCS: ("ingredients",)}


def filled(page: Path) -> str:
    """Return the text of a page with the tables of the published rows, each behind its mark."""
    text, found = page.read_text(encoding="utf-8"), tables()
    for name in PAGES[page]:
        before, after = text.split(f"<!-- {name} -->\n\n")
        rest = after[after.index("\n\n") :] if after.startswith("|") else f"\n\n{after}"
        text = f"{before}<!-- {name} -->\n\n" + "\n".join(found[name]) + rest
    return text


def tables() -> dict[str, list[str]]:
    """Return the lines of all tables: data sets, kinds of drift, worlds nobody tuned on, and ingredients."""
    sizes = pd.read_csv(STUDIES / "sizes" / "final.csv")
    longest = np.isclose(sizes["history"], MOST) & (sizes["logging"] == "label-aware")
    drift = pd.read_csv(STUDIES / "drift" / "final.csv")
    long_rows = pd.read_csv(STUDIES / "long" / "final.csv")
    return {
        "sizes": _table(sizes[longest], "data", tuple(LIMITS)),
        "long": _table(long_rows, "world", tuple(LIMITS)),
        "drift": _table(drift, "kind", COUPLED),
        "elsewhere": _shares(pd.read_csv(STUDIES / "elsewhere" / "final.csv")),
        "ingredients": _costs(pd.read_csv(STUDIES / "ingredients" / "costs.csv"), long_rows),
    }


def _table(rows: pd.DataFrame, by: str, columns: tuple[str, ...]) -> list[str]:
    """Return a row a policy, the oracle last and the others by their mean rank, and a column a world."""
    means = rows.pivot_table(index="policy", columns=by, values="regret")[list(columns)]
    order = sorted(means.index, key=lambda name: (name == ORACLE, means.rank().loc[name].mean()))
    titles = [TITLES.get(column, column) for column in columns]
    lines = [f"| | {' | '.join(titles)} |", "|---" * (len(columns) + 1) + "|"]
    for policy in order:
        part = rows[rows["policy"] == policy]
        cells = [_cell(part.loc[part[by] == column, "regret"]) for column in columns]
        lines.append("| " + " | ".join(_bold([policy, *cells], policy == "C3")) + " |")
    return lines


def _shares(rows: pd.DataFrame) -> list[str]:
    """Return a row a policy: its share of uniform choice's regret, in the mean of the worlds all play."""
    shares = by_seed(scaled(rows[rows["world"] != elsewhere.WIDE], by=elsewhere.UNIT), ["world"])
    lines = ["| | share of uniform choice's regret |", "|---|---|"]
    for policy in shares.mean().sort_values().index:
        found = interval(shares[policy].to_numpy(dtype=np.float64))
        cells = [policy, f"{100 * found.mean:.0f} ± {100 * found.half:.0f} %"]
        lines.append("| " + " | ".join(_bold(cells, policy == "C3")) + " |")
    return lines


def _costs(costs: pd.DataFrame, long_rows: pd.DataFrame) -> list[str]:
    """Return a row an ingredient: by how many per cent each measure is larger without it; bold if surely."""
    mean = costs[costs["world"] == ingredients.MEAN].set_index(["policy", "measure"])
    rows = by_seed(scaled(long_rows, by=long.OURS), ["world"])
    lines = ["| | regret | regret, 40 % logged | error of intervals | calibration error |", "|---" * 5 + "|"]
    for policy in dict.fromkeys(costs["policy"]):
        measures = [(policy, measure) for measure in ingredients.WORSE]
        regret, *honesty = (_percent(*mean.loc[key, ["cost", "half"]]) for key in measures)
        there = f"C3, {policy}"
        longer = _percent(*surplus(rows, there, long.OURS)) if there in rows else ""
        lines.append("| " + " | ".join([policy, regret, longer, *honesty]) + " |")
    return lines


def _percent(mean: float, half: float) -> str:
    text = f"{mean:+.1f} ± {half:.1f} %"
    return f"**{text}**" if abs(mean) > half else text


def _cell(regrets: pd.Series) -> str:
    if regrets.empty:
        return ""
    found = interval(regrets.to_numpy(dtype=np.float64))
    return f"{found.mean:.0f} ± {found.half:.0f}"


def _bold(cells: list[str], bold: bool) -> list[str]:
    return [f"**{cell}**" for cell in cells] if bold else cells


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page), encoding="utf-8")
