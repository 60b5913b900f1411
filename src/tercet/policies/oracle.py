"""A skyline, not a rival: the best of a few supervised models, shown the rewards of all arms."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import scaling
from tercet.policies.base import check_widths, drawn, highest, offered, one_hot, options
from tercet.policies.forest import Forest
from tercet.types import Choice, Feedback

FORESTS: Mapping[str, Mapping[str, Any]] = {
    "trees": {"trees": 100, "num_leaves": 31, "feature_fraction": 0.5},
    "large trees": {"trees": 200, "num_leaves": 127, "feature_fraction": 0.5},
}
NETWORKS: Mapping[str, tuple[int, ...]] = {"linear": (), "network": (256, 256)}
HELD_OUT = 0.2
BATCH, EPOCHS, STEPS = 200, 30, 300  # a small history is gone through more often, to make enough steps


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """A perceptron in plain arrays, trained by scikit-learn."""

    centre: Vector
    spread: Vector
    layers: tuple[tuple[Matrix, Vector], ...]  # weights and biases
    classes: bool  # whether the outputs are class probabilities, else rewards

    @classmethod
    def train(
        cls, hidden: tuple[int, ...], inputs: Matrix, targets: Array, rng: np.random.Generator, classes: int
    ) -> Self:
        """Train on classes 0 to `classes` - 1, or on rewards where that is 0."""
        from sklearn.neural_network import MLPClassifier, MLPRegressor
        from threadpoolctl import threadpool_limits

        centre, spread = scaling(inputs)
        scaled = (inputs - centre) / spread
        batch = min(BATCH, len(inputs))
        # As an object, not a number: a number would shuffle every epoch alike.
        luck = np.random.RandomState(int(rng.integers(2**31)))
        kind = MLPClassifier if classes else MLPRegressor
        model = kind(
            hidden_layer_sizes=hidden,
            batch_size=batch,
            random_state=luck,
            learning_rate_init=0.001 if hidden else 0.01,  # a line bears longer steps
        )
        known = {"classes": np.arange(classes)} if classes else {}
        with threadpool_limits(1):
            for _ in range(max(EPOCHS, ceil(STEPS * batch / len(inputs)))):
                model.partial_fit(scaled, targets, **known)
        layers = list(zip(model.coefs_, model.intercepts_, strict=True))
        if classes == 2:  # scikit-learn has one logistic output here: a softmax against 0
            weights, biases = layers[-1]
            layers[-1] = np.hstack([0 * weights, weights]), np.append(0, biases)
        return cls(centre=centre, spread=spread, layers=tuple(layers), classes=classes > 0)

    def predict(self, inputs: Matrix) -> Array:
        """Return the expected reward of each row, or of each row and class."""
        values = (inputs - self.centre) / self.spread
        for weights, biases in self.layers[:-1]:
            values = np.maximum(values @ weights + biases, 0)
        weights, biases = self.layers[-1]
        values = values @ weights + biases
        if not self.classes:
            return values[:, 0]
        values = np.exp(values - values.max(1, keepdims=True))
        return values / values.sum(1, keepdims=True)

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        arrays = {"centre": self.centre, "spread": self.spread}
        for number, (weights, biases) in enumerate(self.layers):
            arrays |= {f"weights {number}": weights, f"biases {number}": biases}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], *, classes: bool) -> Self:
        """Return the network that `to_arrays` described."""
        count = sum(name.startswith("weights") for name in arrays)
        layers = tuple((arrays[f"weights {number}"], arrays[f"biases {number}"]) for number in range(count))
        return cls(centre=arrays["centre"], spread=arrays["spread"], layers=layers, classes=classes)


@final
@dataclass(kw_only=True, eq=False)
class Supervised:
    """An oracle: of a few supervised models the one that predicts best, played greedily, never updated.

    `reveal` shows it what every arm would have earned in every context of the history, which no policy
    can know. Where exactly one one-hot arm earns 1 and the others 0 it learns a classifier of contexts,
    else the reward of a context and an arm. `candidates` names the models to compare, by squared error
    on a fifth of the history; the best is then trained on all of it. `fit` makes it learn from logged
    outcomes like anybody else.
    """

    candidates: tuple[str, ...] = ("trees", "large trees", "linear", "network")
    _model: Forest | Network | None = field(default=None, init=False, repr=False)
    _classes: int = field(default=0, init=False, repr=False)  # 0: the model predicts rewards of pairs
    _dims: tuple[int, int] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        known = [*FORESTS, *NETWORKS]
        if not self.candidates or not set(self.candidates) <= set(known):
            raise ValueError(f"candidates must be some of {known}; got {self.candidates}")

    def reveal(self, revealed: Any, rng: np.random.Generator) -> None:
        """Forget everything, then learn from `contexts`, `arms` and `rewards` (contexts x arms)."""
        contexts, arms = checks.matrix("contexts", revealed.contexts), checks.matrix("arms", revealed.arms)
        rewards = checks.matrix("rewards", revealed.rewards, columns=len(arms))
        checks.unit("rewards", rewards.ravel(), length=len(contexts) * len(arms))
        if _are_labels(arms, rewards):
            labels = one_hot(arms)[rewards.argmax(1)]
            self._learn(contexts, labels, rng, classes=len(arms))
        else:
            pairs = np.hstack([np.repeat(contexts, len(arms), axis=0), np.tile(arms, (len(contexts), 1))])
            self._learn(pairs, rewards.ravel(), rng)
        self._dims = (contexts.shape[1], arms.shape[1])

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the rewards of the logged pairs; there is no online memory."""
        self._learn(history.joint(), history.rewards, rng)
        self._dims = (history.contexts.shape[1], history.arms.shape[1])

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Pick the arm of the highest prediction; any, where nothing could be learned."""
        features, matrix = offered(context, arms)
        check_widths(self._dims, (len(features), matrix.shape[1]))
        if self._model is None:
            return drawn(np.full(len(matrix), 1 / len(matrix)), rng)
        if self._classes:
            means = self._model.predict(features[None])[0, one_hot(matrix)]
        else:
            means = self._model.predict(np.hstack([np.tile(features, (len(matrix), 1)), matrix]))
        return highest(means, rng, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Do nothing."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model and the options."""
        arrays = {}
        if isinstance(self._model, Forest):
            arrays = {"forest": self._model.text}
        elif self._model is not None:
            arrays = self._model.to_arrays()
        spec = {"options": options(self), "classes": self._classes, "dims": self._dims}
        checkpoint.write(path, "Supervised", arrays, spec)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "Supervised")
        policy = cls(candidates=tuple(spec["options"]["candidates"]))
        policy._classes = spec["classes"]
        if spec["dims"] is not None:
            policy._dims = (spec["dims"][0], spec["dims"][1])
        if "forest" in arrays:
            policy._model = Forest.read(arrays["forest"])
        elif arrays:
            policy._model = Network.from_arrays(arrays, classes=policy._classes > 0)
        return policy

    def _learn(self, inputs: Matrix, targets: Array, rng: np.random.Generator, *, classes: int = 0) -> None:
        """Compare the candidates on rows held out, and train the best on all."""
        self._model, self._classes = None, classes
        order = rng.permutation(len(targets))
        tried, held = np.split(order, [len(order) - ceil(HELD_OUT * len(order))])
        if len(np.unique(targets[tried])) < 2:  # nothing to tell apart
            return
        truth = np.eye(classes)[targets[held]] if classes else targets[held]

        def error(name: str) -> float:
            model = _train(name, inputs[tried], targets[tried], rng, classes)
            return float(((model.predict(inputs[held]) - truth) ** 2).mean())

        best = min(self.candidates, key=error) if len(self.candidates) > 1 else self.candidates[0]
        self._model = _train(best, inputs, targets, rng, classes)


def _train(
    name: str, inputs: Matrix, targets: Array, rng: np.random.Generator, classes: int
) -> Forest | Network:
    if name in NETWORKS:
        return Network.train(NETWORKS[name], inputs, targets, rng, classes)
    goal: dict[str, Any] = {"objective": "multiclass", "num_class": classes} if classes else {}
    return Forest.grow(inputs, targets, rng, **FORESTS[name], **goal)


def _are_labels(arms: Matrix, rewards: Matrix) -> bool:
    """Whether exactly one of the arms, which are all one-hot ones of their width, is right each time."""
    everyone = np.array_equal(np.unique(arms, axis=0), np.unique(np.eye(arms.shape[1]), axis=0))
    right = ((rewards == 0) | (rewards == 1)).all() and (rewards.sum(1) == 1).all()
    return bool(everyone and len(arms) == arms.shape[1] and right)
