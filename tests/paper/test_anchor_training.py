import numpy as np
import pandas as pd
import pytest

from tercet.environments.anchors import SLOPES, Anchors
from tercet.paper.anchor_training import OURS, PAPER, TRAINERS, Fit, policy_of, rows_of
from tercet.policies.c3 import C3

ARMS = len(SLOPES) + 1


def untrained(trainer: str) -> C3:
    history = Anchors(logged=2, played=1).draw(np.random.default_rng(0)).history(np.random.default_rng(1))
    return policy_of(Fit(trainer=trainer, seed=0, episodes=200), history, np.random.default_rng(2))


def test_the_papers_trainer_has_the_values_of_the_appendix() -> None:
    policy = untrained(PAPER)
    training = policy.training
    assert (training.epochs, training.usage, training.reference, training.rate) == (4, 0.5, 0.2, 1e-3)
    assert (training.decay, training.calibration, training.bins, training.partitions) == (0.99, 5.0, 5, 200)
    assert (training.validation, training.prior, policy.bandwidth) == (0.0, 0.0, 1.0)
    shapes = [tuple(parameter.shape) for parameter in policy.phi.parameters()]
    assert shapes == [(256, ARMS), (256,), (2, 256), (2,)]


def test_both_trainers_start_from_the_same_weights() -> None:
    paper, ours = (untrained(trainer).phi.state_dict() for trainer in (PAPER, OURS))
    for name in paper:
        if name.startswith("layers"):
            np.testing.assert_array_equal(paper[name], ours[name])


@pytest.mark.slow
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_fit_has_each_arm_before_and_after(trainer: str) -> None:
    fit = Fit(trainer=trainer, seed=0, episodes=4, epochs=1)
    rows = pd.DataFrame(rows_of(fit))
    assert len(rows) == 2 * ARMS
    before, after = (rows[rows["stage"] == stage][["x", "y"]].to_numpy() for stage in ("before", "after"))
    assert not np.allclose(before, after)
    distances = np.linalg.norm(after - after[0], axis=1)
    np.testing.assert_allclose(rows.loc[rows["stage"] == "after", "distance"], distances)
    pd.testing.assert_frame_equal(rows, pd.DataFrame(rows_of(fit)))
