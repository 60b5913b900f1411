"""Drift that begins after `fit`: the newest outcomes are kept with what was foretold of them, and looked at.

`fit` asks of a history, once, whether surprises would have corrected what the views foretold (`surprises`). A
world may stand still in the log and move afterwards. So the same is asked of what the views foretell of each
outcome before they learn it: now and then, and as soon as the newest outcomes are unlike those before, which
is cheap to see. What the last look said holds: surprises that no longer help are not followed any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from tercet import checks
from tercet.checks import Array
from tercet.embedding.unlearned import Directions
from tercet.policies.reliability import Reliability
from tercet.policies.surprises import Surprises, among
from tercet.reference.exact import Engine
from tercet.types import Feedback

if TYPE_CHECKING:
    from tercet.policies.c3 import C3, State

NEWEST = 1_024  # outcomes that are kept
EVERY = 256  # outcomes from look to look
SOONER = 32  # outcomes after which there may be another look,
LATELY, UNLIKE = 64, 2.0  # if so many missed by so many standard errors more, or less, than those before
LEAST = 20  # summed rewards, and what these fall short of 1: else a few outcomes would decide
COLUMNS = ("contexts", "arms", "rewards", "times")  # those that views and surprises look at


@dataclass(kw_only=True, eq=False)
class Watch:
    """The newest outcomes since fit, as they came, and what the views had foretold of each."""

    seen: int = 0
    columns: dict[str, Array] = field(default_factory=dict)  # outcome i lies in row i mod NEWEST

    def see(self, outcome: Feedback, foretold: float) -> None:
        """Keep an outcome of which this mean was foretold; without times, what comes later is unknown."""
        if outcome.times is None:
            return
        foretold = min(max(foretold, 0.0), 1.0)  # a mean of several views can be off by a rounding
        values = {name: getattr(outcome, name)[0] for name in COLUMNS} | {"foretold": foretold}
        if not self.columns:
            self.columns = {name: np.zeros((NEWEST, *np.shape(value))) for name, value in values.items()}
        for name, value in values.items():
            self.columns[name][self.seen % NEWEST] = value
        self.seen += 1

    def due(self, *, sooner: bool = True) -> bool:
        """Return whether it is time to look; sooner: also where the newest outcomes are unlike others."""
        if self.seen < EVERY or self.seen % SOONER:
            return False
        return self.seen % EVERY == 0 or (sooner and self._startled())

    def look(self, engine: Engine) -> Surprises | None:
        """Return what follows drift, if these outcomes show any."""
        kept = self.to_arrays()
        if min(kept["rewards"].sum(), (1 - kept["rewards"]).sum()) < LEAST:
            return None
        order = np.argsort(kept["times"], kind="stable")
        rows = Feedback(**{name: kept[name][order] for name in COLUMNS})
        directions = Directions.of(rows.contexts), Directions.of(rows.arms)
        return among(rows, kept["foretold"][order], directions, remember=True, engine=engine)

    def to_arrays(self) -> dict[str, Array]:
        """Return the columns of what is kept, the oldest first."""
        rows = np.arange(max(self.seen - NEWEST, 0), self.seen) % NEWEST
        return {name: column[rows] for name, column in self.columns.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], *, seen: int, widths: tuple[int, int] | None) -> Self:
        """Return what `to_arrays` told of this many outcomes, if it can be that."""
        watch = cls(seen=seen)
        if not seen:
            return watch
        foretold = checks.unit("foretold", arrays["foretold"])
        rows = Feedback(**{name: arrays[name] for name in COLUMNS})
        found = len(rows), len(foretold), (rows.contexts.shape[1], rows.arms.shape[1])
        if found != (min(seen, NEWEST), len(rows), widths) or rows.times is None:
            raise ValueError(
                f"watched outcomes must be the newest {min(seen, NEWEST)}, of {widths} features and with "
                f"times; got {len(rows)}, of {found[2]} features, and {len(foretold)} means foretold"
            )
        for name, values in arrays.items():
            watch.columns[name] = np.zeros((NEWEST, *values.shape[1:]))
            watch.columns[name][np.arange(seen - len(values), seen) % NEWEST] = values
        return watch

    def _startled(self) -> bool:
        """Return whether the newest outcomes missed what was foretold otherwise than those before."""
        kept = self.to_arrays()
        missed = kept["rewards"] - kept["foretold"]
        new, old = missed[-LATELY:], missed[:-LATELY]
        error = missed.std() * (1 / len(new) + 1 / len(old)) ** 0.5
        return bool(abs(new.mean() - old.mean()) > UNLIKE * error)


def begun(policy: "C3", state: "State") -> Watch | None:
    """Return the watch of a policy whose views are final; none where the history has shown drift."""
    return Watch() if policy.forgetting == "auto" and state.surprises is None else None


def renew(policy: "C3", state: "State") -> None:
    """Where a look is due, follow drift from now on if there is any, and nothing if there is none."""
    if state.watch is None or not state.watch.due(sooner=state.surprises is None):
        return
    followed, state.surprises = state.surprises, state.watch.look(policy.engine)
    if state.surprises is not None:
        state.reliability = None
    elif followed is not None and policy.recalibrate:
        state.reliability = Reliability()
