"""phi of trees: where a pair falls in each of many extremely randomised ones (Geurts et al., 2006).

Two pairs are as alike as many trees have them in the same leaf. Each tree is grown until its leaves hold
equal rewards, on thresholds drawn at random: alone it is a poor judge, but a hundred of them make a kernel
that reaches far along what does not matter and ends where rewards change. Networks are smooth and trees are
not, so that the two err at different places.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from tercet import checks, compiled, threads
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import REACH, scaling
from tercet.embedding.rivals import Implied
from tercet.types import Feedback

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor

MANY, SOME = 100, 25  # columns from which on a split chooses from some of them only
ARMS = 1 / 3  # then there are so many columns of arms for each of the context
LEARNED = 50_000  # outcomes that trees grow on, at most; all of them are remembered
IMPLIED = 25_000  # outcomes of rivals that they grow on too, at most
UNKNOWN = -1  # the leaf of an arm unlike any that the trees have learned from
NEWS = 0.1  # change of a value that never varied, in units of itself (1 at least): less is none
KERNELS = "tercet.embedding.grove_kernels"
ARRAYS = ("columns", "thresholds", "beyond", "roots", "centre", "scale", "same", "usual")


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Grove:
    """Trees in arrays, node by node: what is at most the threshold goes to the next node, all else beyond.

    Calls return the numbers of leaves, one column a tree. No leaf knows an arm that differs in a column in
    which all arms of the history were alike (docs/decisions/0017): its leaves are UNKNOWN.
    """

    columns: Array  # of context and arm side by side, one for each node; -1: a leaf
    thresholds: Array
    beyond: Array  # the node where larger values go; of a leaf, its number
    roots: Array
    centre: Vector  # of context and arm; trees compare in float32, which has few digits for what is far off
    scale: Vector
    same: Array  # columns of the arms that never varied
    usual: Vector  # their only values
    context_dim: int
    arm_dim: int

    def __post_init__(self) -> None:
        nodes, inner = np.arange(len(self.columns)), self.columns >= 0
        if not (len(self.thresholds) == len(self.beyond) == len(nodes)) or not len(self.roots):
            raise ValueError("a grove needs trees, and a column, a threshold and a way beyond for each node")
        width = self.context_dim + self.arm_dim
        # Whoever walks only forward and stops at a leaf comes to an end.
        forward = (self.beyond > nodes + 1) & (self.beyond < len(nodes)) & (nodes < len(nodes) - 1)
        numbered = np.sort(self.beyond[~inner])
        if not (
            forward[inner].all()
            and np.array_equal(numbered, np.arange(len(numbered)))
            and self.columns.max(initial=-1) < width
            and np.isin(self.roots, nodes).all()
        ):
            raise ValueError("the nodes of a grove must lead to leaves; these do not, the file is damaged")
        checks.vector("centre", self.centre, length=width)
        if not (checks.vector("scale", self.scale, length=width) > 0).all():
            raise ValueError("the scale of a grove's inputs must be above 0; the file is damaged")
        if len(self.same) != len(self.usual) or not np.isin(self.same, np.arange(self.arm_dim)).all():
            raise ValueError(f"columns that never varied must be among the arm's {self.arm_dim}")

    @property
    def leaves(self) -> int:
        """Number of leaves of all trees together."""
        return int((self.columns < 0).sum())

    @property
    def trees(self) -> int:
        """Number of trees, and of coordinates."""
        return len(self.roots)

    def __call__(self, contexts: Any, arms: Any) -> Matrix:
        """Return the leaves of pairs, row by row."""
        contexts = checks.matrix("contexts", contexts, columns=self.context_dim)
        arms = checks.matrix("arms", arms, columns=self.arm_dim)
        if len(contexts) != len(arms):
            raise ValueError(
                f"contexts and arms must have equal lengths; got {len(contexts)} and {len(arms)}"
            )
        inputs = scaled(contexts, arms, self.centre, self.scale)
        out = np.empty((len(arms), self.trees), np.int32)
        kernels = compiled.load(KERNELS)
        walk = descended if kernels is None else kernels.descend
        walk(self.columns, self.thresholds, self.beyond, self.roots, inputs, out)
        if len(self.same):
            change = np.abs(arms[:, self.same] - self.usual) / np.maximum(np.abs(self.usual), 1.0)
            out[(change > NEWS).any(axis=1)] = UNKNOWN
        return out.astype(np.float64)

    def candidates(self, context: Any, arms: Any) -> Matrix:
        """Return the leaves of one context with each row of `arms`."""
        context, arms = checks.vector("context", context), checks.matrix("arms", arms)
        return self(np.broadcast_to(context, (len(arms), len(context))), arms)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return named arrays and a JSON-able spec, from which `from_arrays` rebuilds these trees."""
        spec = {"kind": "grove", "context_dim": self.context_dim, "arm_dim": self.arm_dim}
        return {name: getattr(self, name) for name in ARRAYS}, spec

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], spec: Mapping[str, Any]) -> Self:
        """Rebuild what `to_arrays` returned."""
        parts: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
        return cls(**parts, context_dim=int(spec["context_dim"]), arm_dim=int(spec["arm_dim"]))


def grown(
    history: Feedback, rng: np.random.Generator, *, trees: int, implied: Implied | None = None
) -> Grove:
    """Return trees that have learned these outcomes, and what they imply; chance makes them differ."""
    from sklearn.ensemble import ExtraTreesRegressor

    rows = history if len(history) <= LEARNED else history[rng.permutation(len(history))[:LEARNED]]
    centre, scale = scaling(rows.joint())
    inputs, rewards = scaled(rows.contexts, rows.arms, centre, scale), rows.rewards
    if implied is not None:
        more = implied.outcomes
        inputs = np.vstack([inputs, scaled(more.contexts, more.arms, centre, scale)])
        rewards = np.concatenate([rewards, more.rewards])
    # Of many columns the few of arms would seldom be drawn: repeated, they are as many as they are worth.
    contexts, arms = history.contexts.shape[1], history.arms.shape[1]
    times = max(1, round(ARMS * contexts / max(arms, 1))) if contexts + arms >= MANY else 1
    model = ExtraTreesRegressor(
        trees,
        max_features=1.0 if contexts + arms < MANY else SOME,
        random_state=int(rng.integers(2**31)),
        n_jobs=threads.cores(),
    )
    model.fit(np.hstack([inputs, np.tile(inputs[:, contexts:], times - 1)]), rewards)
    nodes = _nodes(model)
    again = nodes["columns"] >= contexts
    nodes["columns"][again] = contexts + (nodes["columns"][again] - contexts) % arms
    same = np.flatnonzero((history.arms == history.arms[:1]).all(axis=0))
    return Grove(
        **nodes,
        centre=centre,
        scale=scale,
        same=same,
        usual=history.arms[0, same],
        context_dim=contexts,
        arm_dim=arms,
    )


def scaled(contexts: Matrix, arms: Matrix, centre: Vector, scale: Vector) -> Array:
    """Return contexts and arms side by side, as trees compare them."""
    inputs = np.hstack([contexts, arms])
    inputs -= centre
    inputs /= scale
    return np.clip(inputs, -REACH, REACH, out=inputs).astype(np.float32)


def descended(
    columns: Array, thresholds: Array, beyond: Array, roots: Array, inputs: Array, out: Array
) -> None:
    """Write the leaf of each tree that each row of inputs falls into: all of them one step at a time."""
    nodes = np.tile(roots, (len(inputs), 1))
    while (inner := columns[nodes] >= 0).any():
        row, _ = inner.nonzero()
        here = nodes[inner]
        stays = inputs[row, columns[here]] <= thresholds[here]
        nodes[inner] = np.where(stays, here + 1, beyond[here])
    out[:] = beyond[nodes]


def _nodes(model: "ExtraTreesRegressor") -> dict[str, Any]:
    """Return scikit-learn's trees in our arrays."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    columns = np.concatenate([tree.feature for tree in trees])
    beyond = np.concatenate([tree.children_right + root for tree, root in zip(trees, roots, strict=True)])
    left = np.concatenate([tree.children_left + root for tree, root in zip(trees, roots, strict=True)])
    inner = columns >= 0  # scikit-learn marks leaves by -2
    assert (left == np.arange(len(left)) + 1)[inner].all(), "trees must be grown depth first"
    beyond[~inner] = np.arange((~inner).sum())
    # The largest float32 that is not above it: comparisons come out as with the float64 threshold.
    exact = np.concatenate([tree.threshold for tree in trees])
    thresholds = exact.astype(np.float32)
    high = thresholds > exact
    thresholds[high] = np.nextafter(thresholds[high], np.float32(-np.inf))
    return {
        "columns": np.where(inner, columns, UNKNOWN).astype(np.int32),
        "thresholds": thresholds,
        "beyond": beyond.astype(np.int32),
        "roots": roots.astype(np.int32),
    }
