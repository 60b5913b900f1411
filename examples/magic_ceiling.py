"""How good could anybody be on the MagicTelescope bandit? Classifiers that know as many labels, or more.

python examples/magic_ceiling.py --data DIR --csv results/magic_ceiling.csv

DIR holds magic.npz; without --data it is TERCET_DATA, or the table comes from OpenML. A seed takes half a
minute of one core.

The worlds are those of the study `sizes` with 40 % of the rows logged label-aware. With two arms every
logged reward gives the label away, so a bandit is a classifier that knows 7,608 labels and goes on learning,
and its regret is the number of its errors. Here classifiers learn once, from all labels of the history or of
every row of the table that is not evaluated, and play the same 1,000 rows. None of them is tuned; the lowest
of several was picked by these very errors, and looks a little better than it is.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.base import ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, VotingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from tercet.environments.classification import Classification, ClassWorld
from tercet.statistics import interval

SEEDS, STEPS, HISTORY, LIMIT = 10, 1000, 0.4, 118
PUBLISHED = Path(__file__).parents[1] / "results" / "studies" / "sizes" / "final.csv"


def main() -> None:
    """Count the errors in every world; print them beside the regret of C3."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--data", metavar="DIR", help="folder that holds magic.npz")
    options.add_argument("--csv", metavar="FILE", help="where to write the errors of every seed")
    given = options.parse_args()
    recipe = Classification(data="MagicTelescope", history=HISTORY, folder=given.data)
    rows = pd.DataFrame([row for seed in track(range(SEEDS), "seeds") for row in errors(recipe, seed)])
    if given.csv:
        rows.to_csv(given.csv, index=False)
    Console().print(table(rows, published()))


def errors(recipe: Classification, seed: int) -> Iterator[dict[str, object]]:
    """Yield how often each classifier errs in the first steps of a world, knowing some labels or many."""
    # The first stream is the one that `tercet.experiment` draws a world from.
    luck, training = np.random.default_rng(seed).spawn(2)
    world = recipe.draw(luck)
    everything = np.setdiff1d(np.arange(len(world.table)), world.evaluated)
    for name, known in {"the history": world.logged, "all other rows": everything}.items():
        chances = foretold(world, known, training)
        chances["all together"] = np.mean(list(chances.values()), axis=0)
        right = world.table.labels[world.evaluated[:STEPS]]
        shared = {"labels": name, "rows": len(known), "seed": seed}
        for classifier, chance in chances.items():
            yield shared | {"classifier": classifier, "errors": int(((chance > 0.5) != right).sum())}


def foretold(world: ClassWorld, known: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return each classifier's chance of label 1 for the evaluated rows, learned from the known ones."""
    inputs, labels = world.table.contexts(known), world.table.labels[known]
    asked = world.table.contexts(world.evaluated[:STEPS])
    found = {}
    for name, model in classifiers(int(rng.integers(2**31))).items():
        model.fit(inputs, labels)
        found[name] = model.predict_proba(asked)[:, 1]
    return found


def classifiers(seed: int) -> dict[str, ClassifierMixin]:
    """Return untrained models, by name."""
    boosting = LGBMClassifier(
        n_estimators=600,
        learning_rate=0.03,
        num_leaves=31,
        min_child_samples=20,
        colsample_bytree=0.8,
        subsample=0.8,
        subsample_freq=1,
        random_state=seed,
        verbose=-1,
    )
    ranks = QuantileTransformer(output_distribution="normal", random_state=seed)
    networks = [
        (str(number), MLPClassifier((128, 128), early_stopping=True, random_state=seed + number))
        for number in range(4)
    ]
    return {
        "LightGBM": boosting,
        "extra trees": ExtraTreesClassifier(500, random_state=seed),
        "four networks": make_pipeline(
            make_union(StandardScaler(), ranks), VotingClassifier(networks, voting="soft")
        ),
    }


def published() -> pd.Series:
    """Return the regret of C3 in the study's runs, by seed."""
    rows = pd.read_csv(PUBLISHED)
    rows = rows[np.isclose(rows["history"].astype(float), HISTORY) & (rows["logging"] == "label-aware")]
    return rows[(rows["data"] == "MagicTelescope") & (rows["policy"] == "C3")].set_index("seed")["regret"]


def table(rows: pd.DataFrame, regret: pd.Series) -> Table:
    """Return means over seeds, the upper ends of their 95 % intervals, and the paired distance to C3."""
    shown = Table("labels of", "who", "errors", "upper end", "less C3's", box=None)
    shown.title = f"Errors in {STEPS:,} steps, limit {LIMIT}; ± are 95 % intervals over {SEEDS} seeds"
    everybody = {("the history, as logged", "C3"): regret}
    for key, part in rows.groupby(["labels", "classifier"], sort=False):
        everybody[key] = part.set_index("seed")["errors"]
    for (labels, who), wrong in everybody.items():
        mean, half = interval(wrong.to_numpy(dtype=np.float64))
        less, spread = interval((wrong - regret).to_numpy(dtype=np.float64))
        behind = "" if who == "C3" else f"{less:+.1f} ± {spread:.1f}"
        shown.add_row(labels, who, f"{mean:.1f} ± {half:.1f}", f"{mean + half:.1f}", behind)
    return shown


if __name__ == "__main__":
    main()
