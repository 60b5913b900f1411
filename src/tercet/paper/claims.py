"""Every claim of the paper that can be measured, beside what the tables of all other items say of it."""

from collections.abc import Iterator

from tercet.paper import press
from tercet.paper.base import Claim, Item, Order, Tables
from tercet.paper.catalogue import PAPER


def measure(order: Order) -> Tables:
    """Collect the claims from the tables that lie beside this folder."""
    import pandas as pd

    out = order.folder.parent
    rows = [
        {"item": name, "paper": claim.paper, "ours": claim.ours, "verdict": claim.verdict, "note": claim.note}
        for name, claim in _collected(order)
    ]
    if not rows:
        raise ValueError(f"{out} has nothing to judge claims by; run the other figures first")
    return {"claims": pd.DataFrame(rows)}


def _collected(order: Order) -> Iterator[tuple[str, Claim]]:
    others = [name for name in PAPER.names if name != "claims"]
    for number, name in enumerate(others):
        order.advance(name, number, len(others))
        for claim in press.claims(PAPER.item(name), order.folder.parent / name):
            yield name, claim


ITEM = Item(
    name="claims",
    title="Every claim with our measurement beside it",
    where="the whole paper",
    says="What the paper states in words or numbers, as far as it can be measured.",
    seeds=1,
    quick_seeds=1,
    measure=measure,
    draw=lambda _: [],  # the report shows the table
    claims=lambda _: [],  # each claim belongs to the item that measures it
)
