"""What an experiment asks of a world, and of the recipe that draws one for each seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from tercet.types import Feedback, Round

DATA_VARIABLE = "TERCET_DATA"  # names the folder with data sets, where a scenario names none


class MissingDataError(FileNotFoundError, ValueError):
    """A data set that is neither on this machine nor to be fetched; the message says where to get it."""


@runtime_checkable
class Environment(Protocol):
    """One drawn world to learn in; equal rngs give the same history and the same rounds."""

    @property
    def streaming(self) -> bool:
        """Whether the history comes again as `Round.logged`, so that policies must start without memory."""

    @property
    def one_log(self) -> bool:
        """Whether every seed replays the same log, in part or whole.

        Then seeds are no sample, and stretches of time are compared.
        """

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return what was logged before the first round."""

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the rounds, with the rewards of all arms drawn whichever is chosen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Revealed:
    """What every arm would have earned in every context: more than any policy may see."""

    contexts: Float[np.ndarray, "contexts _"]
    arms: Float[np.ndarray, "arms _"]
    rewards: Float[np.ndarray, "contexts arms"]


@runtime_checkable
class Revealing(Protocol):
    """An environment of few fixed arms that can show what each would have earned, for oracles."""

    def revealed(self, rng: np.random.Generator) -> Revealed:
        """Return the contexts of the history in its order, given the rng that `history` is given."""


@runtime_checkable
class Scenario(Protocol):
    """A recipe of worlds: a value that can be compared, printed and sent to another process."""

    def draw(self, rng: np.random.Generator) -> Environment:
        """Draw a world; equal rngs give equal ones."""
