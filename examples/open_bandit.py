"""How good would a policy be that never ran? Learn from half of a logged week, estimate on the other half.

Run with the Open Bandit Dataset (or its small sample) in the folder that TERCET_DATA names:

    TERCET_DATA=~/open_bandit python examples/open_bandit.py

The sample has some twenty clicks in each half, so the standard errors are as large as the differences:
this shows how it is done, not which policy is better.
"""

# ruff: noqa: T201 - an example talks

import numpy as np

from tercet.environments import open_bandit
from tercet.policies.base import Policy
from tercet.policies.linear import LinTS
from tercet.policies.simple import ArmThompson, Uniform


def main() -> None:
    """Print the estimated click rate of three policies."""
    log = open_bandit.load(policy="random", campaign="men")
    half = len(log.feedback) // 2
    policies: dict[str, Policy] = {"uniform": Uniform(), "per item": ArmThompson(), "linear": LinTS()}
    for name, policy in policies.items():
        policy.fit(log.feedback[:half], np.random.default_rng(0))
        worth = [weighted_click(policy, log, row) for row in range(half, len(log.feedback))]
        error = np.std(worth) / np.sqrt(len(worth))
        print(f"{name:>10}: {np.mean(worth):.4f} clicks a place, standard error {error:.4f}")


def weighted_click(policy: Policy, log: open_bandit.OpenBanditLog, row: int) -> float:
    """Return a logged click, weighted by how much more often the policy would have shown that item."""
    outcome = log.feedback[row : row + 1]
    choice = policy.choose(
        outcome.contexts[0],
        log.arms(row),
        np.random.default_rng(row),
        time=outcome.times[0],
        arm_ids=np.arange(len(log.items)),
    )
    shown = int(outcome.arm_ids[0])
    return float(choice.propensities[shown] / outcome.propensities[0] * outcome.rewards[0])


if __name__ == "__main__":
    main()
