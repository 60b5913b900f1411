"""The pictures of the classification bandits."""

from tercet.paper.base import Picture, Tables


def draw(tables: Tables) -> list[Picture]:
    """Draw them."""
    raise NotImplementedError
