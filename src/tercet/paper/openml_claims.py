"""The claims of the classification bandits."""

from tercet.paper.base import Claim, Tables


def claims(tables: Tables) -> list[Claim]:
    """Judge."""
    raise NotImplementedError
