"""C3's first outcomes: while there are few, its views are made anew whenever their number has doubled.

What is chosen from few outcomes (scales, bandwidths, weights, whether anything drifts) is often wrong, and a
hundred later it could be chosen better. So a policy that begins with few keeps what it remembers as it came
(`State.early`), and decides all of it again each time, until it has seen enough. Networks are not trained
again; of the outcomes since fit they have learned nothing, so these tell what they are worth.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tercet.checks import Array
from tercet.embedding.options import LeaveOneOut
from tercet.policies import c3_fit, watch
from tercet.policies.views import View
from tercet.reference.exact import ReferenceSet
from tercet.reference.leaves import Leaves
from tercet.types import Feedback

if TYPE_CHECKING:
    from tercet.policies.c3 import C3, State

FIRST, LAST = 4, 1024  # outcomes in all, when views are made anew for the first and for the last time


def kept(policy: "C3", history: Feedback, *, remember: bool) -> Feedback | None:
    """Return the outcomes that a policy of this history keeps as they are; None: its views are final."""
    if not c3_fit.ours(policy) or len(history) > LAST // 2:
        return None
    if len(history) >= c3_fit.LEAST and not isinstance(policy.training, LeaveOneOut):
        return None
    return _bare(history if remember else history[:0])


def appended(early: Feedback, outcomes: Feedback) -> Feedback:
    """Return outcomes behind the earlier ones."""
    # An empty history may have had no times where outcomes have them.
    return Feedback.concat([early, _bare(outcomes)]) if len(early) else _bare(outcomes)


def steady(state: "State", feedback: Feedback) -> bool:
    """Return whether these outcomes leave the view as it is, and can be appended in one step."""
    return state.early is None or (len(feedback) == 1 and not _doubles(_seen(state) + 1))


def draft(state: "State") -> "State":
    """Return a copy with memories of its own: what fails half-way is thrown away."""
    views = [replace(view, references=_own(view)) for view in state.views]
    surprises = state.surprises
    if surprises is not None:
        surprises = replace(surprises, references=_copied(surprises.references))
    return replace(state, views=views, surprises=surprises)


def steps(state: "State", feedback: Feedback) -> Iterator[Feedback]:
    """Yield outcomes one by one while the state is early, and what is left then at once."""
    # One by one even where the view stays: sums in another order would differ in their last bits.
    done = 0
    while done < len(feedback):
        part = feedback[done : done + 1] if state.early is not None else feedback[done:]
        done += len(part)
        yield part


def renew(policy: "C3", state: "State") -> None:
    """Where the number of outcomes has doubled, choose views anew by all that is remembered."""
    seen, rows = _seen(state), state.early
    if rows is None or not _doubles(seen):
        return
    phis = [view.embed for view in state.views[:-1]]  # the last one sees the features
    # Networks are judged by outcomes since fit: many of them, and without gaps, or which they are is unknown.
    first = len(rows) - state.learned if phis else 0
    enough = first in (0, state.logged) and state.learned >= state.logged if phis else len(rows) >= FIRST
    if enough:
        assert state.references is not None
        memory, rng = state.references, np.random.default_rng(seen)  # of nothing but the outcomes
        state.views = c3_fit.renewed(policy, phis, rows, rng, first=first)
        for view in state.views:
            view.references = memory.moved(view.embed(rows.contexts, rows.arms), bandwidth=view.bandwidth)
        state.surprises, state.reliability = c3_fit.corrections(policy, state.views, rows)
    if seen >= LAST:
        state.early, state.watch = None, watch.begun(policy, state)


def restored(arrays: Mapping[str, Array], state: "State") -> Feedback:
    """Return saved outcomes, if they can be those that the state remembers."""
    rows, memory = Feedback(**arrays), state.references
    widths = rows.contexts.shape[1], rows.arms.shape[1]
    count = 0 if memory is None else len(memory)
    if (len(rows), widths) != (count, state.widths) or not count <= _seen(state) < LAST:
        raise ValueError(
            f"early outcomes must be the {count} in memory, of {state.widths} features and fewer than {LAST} "
            f"in all; got {len(rows)}, of {widths} features and {_seen(state)} in all"
        )
    if memory is not None and (
        not np.array_equal(rows.rewards.astype(np.float32), memory.rewards)  # as memory has them
        or (rows.times is not None) != state.timed
        or (rows.times is not None and not np.array_equal(rows.times, memory.times))
    ):
        raise ValueError("early outcomes must have the rewards and times of those in memory")
    return rows


def _own(view: View) -> ReferenceSet | None:
    assert not isinstance(view.references, Leaves), "trees come with histories whose views are final"
    return None if view.references is None else _copied(view.references)


def _copied(references: ReferenceSet) -> ReferenceSet:
    # Not `copy.deepcopy`, which would touch the unused rows of a chunk too.
    return ReferenceSet.from_arrays(*references.to_arrays(), engine=references.engine)


def _seen(state: "State") -> int:
    return state.logged + state.learned


def _doubles(seen: int) -> bool:
    return FIRST <= seen <= LAST and seen & (seen - 1) == 0


def _bare(feedback: Feedback) -> Feedback:
    return Feedback(**{name: getattr(feedback, name) for name in watch.COLUMNS})
