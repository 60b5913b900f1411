"""How good could anybody be on the EB-NeRD replay? Hindsight that no bandit has, and how often it is right.

TERCET_DATA=DIR python examples/news_ceiling.py

Every candidate's click is known here, past and future impressions alike. LightGBM learns from four fifths of
all evaluated impressions and ranks the candidates of the last fifth; it also knows how often each article was
clicked in other fifths, at any time and within six hours.
"""

import numpy as np
from lightgbm import LGBMClassifier

from tercet.environments.ebnerd import Ebnerd

FOLDS, NEAR = 5, 6.0  # hours


def main() -> None:
    """Print the share of impressions in which each kind of hindsight picks a clicked article."""
    luck, history, rounds = np.random.default_rng(0).spawn(3)
    world = Ebnerd().draw(luck)
    world.history(history)
    offers = list(world.rounds(rounds))
    impression = np.repeat(np.arange(len(offers)), [len(offer.arms) for offer in offers])
    clicked = np.concatenate([offer.rewards for offer in offers])
    article = np.concatenate([offer.arm_ids for offer in offers])
    time = np.asarray([offer.time for offer in offers])[impression]
    fold = np.random.default_rng(1).integers(FOLDS, size=len(offers))[impression]
    known = np.column_stack(
        [
            rates(article, clicked, time, fold, np.inf),
            rates(article, clicked, time, fold, NEAR),
            np.concatenate([offer.arms for offer in offers]),
            np.stack([offer.context for offer in offers])[impression],
        ]
    )
    told = {
        "any candidate": np.zeros(len(clicked)),
        "its clicks at any time": known[:, 0],
        "its clicks within six hours": known[:, 1],
        "LightGBM, with the future": foretold(known, clicked, fold),
    }
    for name, scores in told.items():
        print(f"{hits(scores, clicked, impression):.3f}  {name}")  # noqa: T201


def rates(
    article: np.ndarray, clicked: np.ndarray, time: np.ndarray, fold: np.ndarray, near: float
) -> np.ndarray:
    """Return how often each row's article was clicked in other folds near in time, shrunk to the mean."""
    mean, found = clicked.mean(), np.empty(len(clicked))
    for which in np.unique(article):
        rows = np.flatnonzero(article == which)
        close = (np.abs(time[rows, None] - time[rows]) <= near) & (fold[rows, None] != fold[rows])
        found[rows] = (close @ clicked[rows] + 10 * mean) / (close.sum(axis=1) + 10)
    return found


def foretold(known: np.ndarray, clicked: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return the chance of a click for every row, learned from the impressions of other folds."""
    found = np.empty(len(clicked))
    for held in range(FOLDS):
        model = LGBMClassifier(n_estimators=300, learning_rate=0.03, num_leaves=31, verbose=-1)
        model.fit(known[fold != held], clicked[fold != held])
        found[fold == held] = model.predict_proba(known[fold == held])[:, 1]
    return found


def hits(scores: np.ndarray, clicked: np.ndarray, impression: np.ndarray) -> float:
    """Return the mean reward of the candidate with the highest score, ties shared."""
    total, count = 0.0, impression.max() + 1
    for rows in np.split(np.arange(len(scores)), np.flatnonzero(np.diff(impression)) + 1):
        total += clicked[rows][scores[rows] == scores[rows].max()].mean()
    return float(total / count)


if __name__ == "__main__":
    main()
