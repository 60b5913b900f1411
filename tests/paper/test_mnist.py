import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from tercet.executors import Serial
from tercet.paper import mnist, style
from tercet.paper.base import Order
from tercet.paper.mnist import ITEM, VARIANTS, Digits, Training, embed_digits, purity, scores
from tercet.paper.mnist_pictures import COLOURS
from tercet.policies.c3 import C3
from tercet.types import Feedback

THEIRS = 4  # phi of the paper, each with two claims


def tables(
    *, before: float, after: float, auc: float, equal: float, seeds: int = 3
) -> dict[str, pd.DataFrame]:
    """Tables as they are read back: purity before and after training, AUC and equal rewards after."""
    rng = np.random.default_rng(0)
    rows = []
    for key in VARIANTS:
        for seed in range(seeds):
            noise = rng.normal(0, 0.005)
            about = {"variant": key, "seed": seed, "rows": 4000, "silhouette": 0.1, "pixel_purity": 0.7}
            rows.append(about | {"stage": "untrained", "purity": before, "reward_purity": 0.5, "auc": 0.5})
            rows.append(
                about | {"stage": "trained", "purity": after + noise, "reward_purity": equal + noise, "auc": auc + noise}
            )  # fmt: skip
    digits = np.arange(60) % 10
    points = pd.DataFrame(
        [
            {"variant": key, "digit": digit, "x": digit + rng.normal(), "y": rng.normal()}
            for key in VARIANTS for digit in digits
        ]
    )  # fmt: skip
    return {"scores": reread(pd.DataFrame(rows)), "points": reread(points)}


def reread(table: pd.DataFrame) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(table.to_csv(index=False, float_format="%.6g")))


def verdicts(**values: float) -> tuple[str, str]:
    """On the clusters and on the rewards; equal for every phi of the paper."""
    claims = [claim.verdict for claim in ITEM.claims(tables(**values))]  # type: ignore[arg-type]
    assert claims == [claims[0]] * THEIRS + [claims[-1]] * THEIRS
    return claims[0], claims[-1]


def test_digits_that_training_gathers_and_rewards_that_it_parts_are_what_the_paper_says() -> None:
    assert verdicts(before=0.3, after=0.8, auc=0.95, equal=0.8) == ("reproduced", "reproduced")


def test_clusters_that_were_there_before_training_are_not_learned() -> None:
    assert verdicts(before=0.85, after=0.8, auc=0.95, equal=0.8)[0] == "not reproduced"


def test_clusters_that_may_have_been_there_before_are_undecided() -> None:
    assert verdicts(before=0.8, after=0.8, auc=0.95, equal=0.8)[0] == "undecided"


def test_figures_about_the_thresholds_are_undecided() -> None:
    assert verdicts(before=0.3, after=mnist.MOST, auc=mnist.TELLS, equal=0.8) == ("undecided", "undecided")


def test_a_few_more_neighbours_of_the_same_digit_are_no_clusters() -> None:
    assert verdicts(before=0.2, after=0.3, auc=0.95, equal=0.8)[0] == "not reproduced"


def test_clusters_of_digits_say_nothing_of_rewards() -> None:
    assert verdicts(before=0.3, after=0.8, auc=0.5, equal=0.5) == ("reproduced", "not reproduced")


def test_one_seed_is_too_few_for_an_interval() -> None:
    assert verdicts(before=0.3, after=0.8, auc=0.95, equal=0.8, seeds=1) == ("undecided", "undecided")


def test_what_the_paper_only_shows_is_called_implied_and_the_thresholds_are_told() -> None:
    *clusters, last = ITEM.claims(tables(before=0.3, after=0.8, auc=0.95, equal=0.8))
    assert clusters[0].paper.startswith("Implied: ")
    assert "first look at one seed" in clusters[0].note
    assert f"{mnist.TELLS:g}" in last.note


def test_the_pictures_are_drawn_from_tables_that_were_read_back() -> None:
    with style.used():
        pictures = ITEM.draw(tables(before=0.3, after=0.8, auc=0.95, equal=0.8))
        for picture in pictures:
            picture.figure.canvas.draw()
    assert [picture.name for picture in pictures] == ["mnist", "mnist-scores"]
    assert "over 3 seeds" in pictures[1].caption
    titles = [axes.get_title() for axes in pictures[0].figure.axes]
    assert all("4,000 rows" in title and "(0.30 untrained)" in title for title in titles)


def test_large_digits_do_not_cover_each_other() -> None:
    crowded = tables(before=0.3, after=0.8, auc=0.95, equal=0.8)
    crowded["points"][["x", "y"]] = np.random.default_rng(1).normal(size=(len(crowded["points"]), 2))
    with style.used():
        figure = ITEM.draw(crowded)[0].figure
        figure.canvas.draw()
    for axes in figure.axes:
        large = [text.get_window_extent() for text in axes.texts if isinstance(text, Text)]
        assert large
        centres = np.array([[(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2] for box in large])
        gaps = np.linalg.norm(centres[:, None] - centres[None], axis=-1)[np.triu_indices(len(large), 1)]
        assert (gaps > large[0].width).all()


def test_every_digit_has_a_colour_of_its_own() -> None:
    assert len(set(COLOURS)) == 10


def test_purity_is_one_for_separate_groups_and_chance_for_shuffled_labels() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 100)
    points = 100.0 * labels[:, None] + rng.normal(size=(400, 2))
    assert purity(points, labels) == 1.0
    # 4,000 neighbours of which each is equal with chance 1/4; points share neighbours, hence 6 sigma.
    assert abs(purity(points, rng.permutation(labels)) - 0.25) < 6 * (0.25 * 0.75 / 4000) ** 0.5


def test_a_point_is_not_its_own_neighbour() -> None:
    labels = np.arange(12)
    assert purity(np.arange(12.0)[:, None], labels) == 0.0


def _rows(count: int = 200) -> Digits:
    rng = np.random.default_rng(0)
    digits = rng.integers(3, size=count)
    return Digits(
        contexts=np.eye(3)[digits], digits=digits, wrong=(digits + 1 + rng.integers(2, size=count)) % 3
    )


def _logged(rows: Digits) -> Feedback:
    contexts, arms = rows.pairs()
    return Feedback(contexts=contexts, arms=arms, rewards=rows.rewards)


def test_a_phi_of_rewards_alone_parts_right_from_wrong_arms_and_shows_no_digits() -> None:
    rows, rng = _rows(), np.random.default_rng(1)

    def perfect(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        return 9 * (contexts * arms).sum(1)[:, None] + rng.normal(0, 0.1, (len(arms), 2))

    found = scores(perfect, C3(dim=2), _logged(rows), rows)
    assert found["auc"] > 0.99
    assert found["reward_purity"] == 1.0
    assert found["purity"] < 0.5


def test_a_phi_that_copies_the_arm_shows_digits_and_knows_nothing_of_rewards() -> None:
    rows, rng = _rows(), np.random.default_rng(1)

    def copied(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        return 9 * arms + rng.normal(0, 0.01, arms.shape)

    found = scores(copied, C3(dim=3), _logged(rows), rows)
    assert found["purity"] == 1.0
    assert found["silhouette"] > 0.9
    assert found["reward_purity"] < 0.7


def test_wrong_arms_are_wrong_and_rewards_say_which_are_right() -> None:
    rows = _rows()
    contexts, arms = rows.pairs()
    assert np.array_equal((contexts * arms).sum(1), rows.rewards)


def test_a_title_says_how_many_rows_were_learned_from() -> None:
    assert VARIANTS["long-2"].title(28_000) == "as in the paper, 28,000 rows, 2-d"


@pytest.mark.slow
def test_a_tiny_order_scores_every_phi_before_and_after_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(1500) % 10
    pixels = (200 * np.eye(10)[labels] + rng.integers(0, 50, (1500, 10))).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", X=pixels, y=labels)
    monkeypatch.setenv("TERCET_DATA", str(tmp_path))
    small = {key: replace(VARIANTS[key], history=500) for key in ("paper-2", "ours-8")}
    monkeypatch.setattr(mnist, "VARIANTS", small)
    monkeypatch.setattr(mnist, "SHOWN", 50)
    measured = ITEM.measure(Order(folder=tmp_path / "out", seeds=1, executor=Serial()))
    assert len(measured["scores"]) == 4
    assert measured["points"].groupby("variant").size().to_dict() == {"paper-2": 50, "ours-8": 50}
    by_stage = measured["scores"].set_index(["variant", "stage"])["auc"]
    assert by_stage["ours-8", "trained"] > by_stage["ours-8", "untrained"] + 0.2
    again = embed_digits(Training(key="ours-8", seed=0, quick=False))
    assert again["scores"][1]["auc"] == by_stage["ours-8", "trained"]
