"""Write the README's tables of regret anew, from the published rows of the studies.

.venv/bin/python tools/headline.py
"""

from pathlib import Path

import numpy as np
import pandas as pd

from tercet.paper.openml_pictures import TITLES
from tercet.statistics import interval
from tercet.studies import elsewhere
from tercet.studies.drift_claims import COUPLED
from tercet.studies.expectations import by_seed, scaled
from tercet.studies.sizes_claims import LIMITS, MOST, ORACLE

ROOT = Path(__file__).parent.parent
README, STUDIES = ROOT / "README.md", ROOT / "results" / "studies"


def readme() -> str:
    """Return the README with the tables of the published rows, each behind its mark."""
    text = README.read_text(encoding="utf-8")
    for name, lines in tables().items():
        before, after = text.split(f"<!-- {name} -->\n\n")
        rest = after[after.index("\n\n") :] if after.startswith("|") else f"\n\n{after}"
        text = f"{before}<!-- {name} -->\n\n" + "\n".join(lines) + rest
    return text


def tables() -> dict[str, list[str]]:
    """Return the lines of all tables: by data set, by kind of drift, and in worlds nobody tuned on."""
    sizes = pd.read_csv(STUDIES / "sizes" / "final.csv")
    longest = np.isclose(sizes["history"], MOST) & (sizes["logging"] == "label-aware")
    drift = pd.read_csv(STUDIES / "drift" / "final.csv")
    return {
        "sizes": _table(sizes[longest], "data", tuple(LIMITS)),
        "long": _table(pd.read_csv(STUDIES / "long" / "final.csv"), "world", tuple(LIMITS)),
        "drift": _table(drift, "kind", COUPLED),
        "elsewhere": _shares(pd.read_csv(STUDIES / "elsewhere" / "final.csv")),
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


def _cell(regrets: pd.Series) -> str:
    if regrets.empty:
        return ""
    found = interval(regrets.to_numpy(dtype=np.float64))
    return f"{found.mean:.0f} ± {found.half:.0f}"


def _bold(cells: list[str], bold: bool) -> list[str]:
    return [f"**{cell}**" for cell in cells] if bold else cells


if __name__ == "__main__":
    README.write_text(readme(), encoding="utf-8")
