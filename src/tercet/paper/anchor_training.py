"""phi trained on the paper's coupled arms (section 5.1, appendix A.5), by the paper's trainer and by ours."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.checks import Matrix
from tercet.embedding.inference import scaling
from tercet.embedding.options import Training
from tercet.environments.anchors import SLOPES, Anchors
from tercet.paper.base import Order
from tercet.policies.c3 import C3
from tercet.types import Feedback

if TYPE_CHECKING:
    import pandas as pd

PAPER, OURS = "C3, as in the paper", "C3"
TRAINERS = (PAPER, OURS)
TITLES = {PAPER: "the paper's trainer", OURS: "our trainer"}
HIDDEN, DIM = (256,), 2
EPISODES, QUICK_EPISODES = 200, 100
QUICK_EPOCHS = 10  # of our trainer, which keeps its best epoch; the paper's keeps its four
QUICK = (
    f"A quick run logs {QUICK_EPISODES} episodes instead of {EPISODES}, and our trainer stops after "
    f"{QUICK_EPOCHS} epochs."
)
BATCH = (
    f"The appendix gives no batch size: {Training.paper().batch} is that of the paper's classification "
    "experiments."
)
SHAPE = "Our trainer is added, with the same phi, our default options and inputs scaled on the history."


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One phi to train."""

    trainer: str
    seed: int
    episodes: int
    epochs: int | None = None  # None: the trainer's own number


def arm_embeddings(order: Order) -> "pd.DataFrame":
    """Return the place of each arm, before and after training, for each trainer and seed.

    `rho` is the paper's; the anchor (arm 0) has 1, as it follows itself.
    """
    import pandas as pd

    episodes = QUICK_EPISODES if order.quick else EPISODES
    epochs = {OURS: QUICK_EPOCHS} if order.quick else {}
    fits = [
        Fit(trainer=trainer, seed=seed, episodes=episodes, epochs=epochs.get(trainer))
        for trainer in TRAINERS
        for seed in range(order.seeds)
    ]
    parts = order.map("training phi", rows_of, fits)
    return pd.DataFrame([row for part in parts for row in part])


def rows_of(fit: Fit) -> list[dict[str, Any]]:
    """Train one phi; return its rows, one for each stage and arm."""
    rng = np.random.default_rng(fit.seed)
    history = Anchors(logged=fit.episodes, played=1).draw(rng).history(rng)
    # Both trainers start from the same weights.
    rng = np.random.default_rng([fit.seed, 1])
    policy = policy_of(fit, history, rng)
    before = _places(policy)
    policy.fit(history, rng, remember=False)
    stages = {"before": before, "after": _places(policy)}
    return [
        {
            "trainer": fit.trainer,
            "seed": fit.seed,
            "stage": stage,
            "arm": arm,
            "rho": rho,
            "x": places[arm, 0],
            "y": places[arm, 1],
            "distance": float(np.linalg.norm(places[arm] - places[0])),
        }
        for stage, places in stages.items()
        for arm, rho in enumerate((1.0, *SLOPES))
    ]


def policy_of(fit: Fit, history: Feedback, rng: np.random.Generator) -> C3:
    """Return C3 with an untrained phi, so that its embedding can be seen before it is trained."""
    from tercet.embedding import network

    arms = len(SLOPES) + 1
    epochs: dict[str, Any] = {} if fit.epochs is None else {"epochs": fit.epochs}
    if fit.trainer == PAPER:
        simulation: dict[str, Any] = {
            "epochs": 4,
            "usage": 0.5,
            "calibration": 5.0,
            "partitions": fit.episodes,
            "validation": 0.0,
        }
        return C3.paper(
            phi=network.build(0, arms, rng, hidden=HIDDEN, dim=DIM),
            bandwidth=1.0,
            training=Training.paper(**(simulation | epochs)),
            progress=False,
        )
    centre, scale = scaling(history.joint())
    return C3(
        phi=network.build(0, arms, rng, hidden=HIDDEN, dim=DIM, centre=centre, scale=scale),
        bandwidth=1.0,
        training=Training(**epochs),
        progress=False,
    )


def _places(policy: C3) -> Matrix:
    arms = np.eye(len(SLOPES) + 1)
    return policy.embed(np.empty((len(arms), 0)), arms)
