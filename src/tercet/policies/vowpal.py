"""Vowpal Wabbit's contextual bandits (`--cb_explore_adf`) as a policy, for comparison."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field
from importlib import import_module
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self, final, get_args

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import check_widths, drawn, offered, options
from tercet.policies.memory import in_time
from tercet.types import Choice, Feedback

Explore = Literal["squarecb", "cover", "regcb"]
# Products of two features are squared in float32, and one NaN would stay in the model for ever: sizes (in
# units of the history) are cut to those whose fourth power it holds, and smaller ones count as zero.
LARGEST, LEAST = 1e9, 1e-9
SMALLEST = 1e-6  # a propensity of 0, which a log may hold, would weigh an outcome without end


@final
@dataclass(kw_only=True, eq=False)
class Vowpal:
    """Vowpal Wabbit: a hashed linear model of the cost 1 - reward, explored by one of three rules.

    `squarecb` plays p = 1 / (K + γ_t·gap) with γ_t = gamma·√t (Foster and Rakhlin, 2020); `regcb` plays
    evenly among the arms whose confidence bounds overlap the best's (Foster et al., 2018); `cover` plays
    a cover of policies (Agarwal et al., 2014). `interactions` adds all products of a context and an arm
    feature. The choice is drawn from Vowpal Wabbit's probabilities by our rng. It tells no expected
    rewards, so `Choice.means` stays None.

    Vowpal Wabbit learns from whole lists of arms, but an outcome knows only the one played. One-hot arms
    imply all the others, and it gets the list of all, as in its own loop. (Which others were on offer
    does not matter to `squarecb` and `regcb`: they learn from the played one only.) Arms told by
    features are learned as lists of one. That lengthens the steps, an outcome being weighed by the
    inverse of the mean length, and leaves the policies of a `cover` nothing to compare.

    `cover` weighs outcomes by their propensities, and takes a missing one for that of a uniform choice;
    the other two ignore them by design.

    Features are divided by their largest of the history. Vowpal Wabbit learns their scale itself, and this
    changes nothing but rounding there; but it would not save what it learns for each policy of a `cover`,
    and in float32 it does not survive all that float32 can hold.
    """

    explore: Explore = "squarecb"
    interactions: bool = True
    rate: float = 0.5
    power: float = 0.5  # the learning rate falls with the evidence to this power; 0 keeps up with drift
    bits: int = 18
    gamma: float = 10.0  # squarecb: the larger, the greedier
    covers: int = 3  # cover: policies to draw from
    mellowness: float = 0.1  # regcb: how wide the bounds are
    _model: Any = field(default=None, init=False, repr=False)
    _desk: Any = field(default=None, init=False, repr=False)
    _dims: tuple[int, int] | None = field(default=None, init=False, repr=False)
    _units: Vector | None = field(default=None, init=False, repr=False)  # of the joint features

    def __post_init__(self) -> None:
        if self.explore not in get_args(Explore):
            raise ValueError(f"explore must be one of {get_args(Explore)}; got {self.explore!r}")
        for name in ("rate", "gamma", "mellowness"):
            checks.positive(name, getattr(self, name))
        if not 0 <= self.power <= 1:
            raise ValueError(f"power must lie in [0, 1]; got {self.power}")
        if not 8 <= self.bits <= 30:
            raise ValueError(f"bits must lie between 8 and 30; got {self.bits}")
        if self.covers < 1:
            raise ValueError(f"covers must be at least 1; got {self.covers}")

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the history in the order of its times."""
        self._close()
        largest = np.abs(history.joint()).max(axis=0, initial=0)
        self._units = np.where(largest > 0, largest, 1)
        self.update(in_time(history if remember else history[:0]), rng)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Draw an arm from Vowpal Wabbit's probabilities, which are even before the first outcome."""
        features, matrix = offered(context, arms)
        check_widths(self._dims, (len(features), matrix.shape[1]))
        if self._model is None:
            return drawn(np.full(len(matrix), 1 / len(matrix)), rng)
        # Vowpal Wabbit breaks ties by position; a fixed order makes that a matter of the arms themselves.
        order = np.lexsort(matrix.T) if matrix.shape[1] else np.arange(len(matrix))
        # It also counts the examples that it finishes. A second workspace that never learns takes the
        # count, and the model stays as it was.
        examples = self._desk.parse(self._lines(features, matrix[order]))
        chances = np.array(self._model.predict(examples), dtype=np.float64)
        self._desk.finish_example(examples)
        propensities = np.empty(len(matrix))
        propensities[order] = chances / chances.sum()
        return drawn(propensities, rng)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes in the order given."""
        dims = (feedback.contexts.shape[1], feedback.arms.shape[1])
        check_widths(self._dims, dims)
        self._dims = dims
        if len(feedback) and self._model is None:
            self._open()
        for row in range(len(feedback)):
            self._model.learn(self._outcome(feedback, row))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model in Vowpal Wabbit's own format, as bytes, and the options."""
        arrays = {} if self._model is None else {"model": _dump(self._model)}
        if self._units is not None:
            arrays["units"] = self._units
        checkpoint.write(path, "Vowpal", arrays, {"options": options(self), "dims": self._dims})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "Vowpal")
        policy = cls(**spec["options"])
        if spec["dims"] is not None:
            policy._dims = (spec["dims"][0], spec["dims"][1])
        policy._units = arrays.get("units")
        if "model" in arrays:
            policy._open(arrays["model"])
        return policy

    def _outcome(self, feedback: Feedback, row: int) -> list[str]:
        """Return an outcome as the decision it came from, as far as that is known."""
        arms, played = feedback.arms[row : row + 1], 0
        if np.array_equal(np.sort(arms[0]), np.eye(arms.shape[1])[-1:].ravel()):  # one-hot
            arms, played = np.eye(arms.shape[1]), int(arms.argmax())
        propensity = 1 / len(arms)
        if self.explore != "cover":
            # These rules drop the propensity, but Vowpal Wabbit 9.11 forgets to do so for the last arm.
            arms, played = np.roll(arms, -played, axis=0), 0
        elif feedback.propensities is not None:
            propensity = max(feedback.propensities[row], SMALLEST)
        label = f"0:{1 - feedback.rewards[row]:.9g}:{propensity:.9g}"
        return self._lines(feedback.contexts[row], arms, played=played, label=label)

    def _lines(self, context: Vector, arms: Matrix, *, played: int = 0, label: str = "") -> list[str]:
        """Return a decision in Vowpal Wabbit's text format, with the label (if any) on the arm played."""
        if self._units is not None:
            context, arms = context / self._units[: len(context)], arms / self._units[len(context) :]
        context, arms = (np.clip(part, -LARGEST, LARGEST) for part in (context, arms))
        lines = [f"shared |c {_features(context)}", *(f"|a {_features(arm)}" for arm in arms)]
        lines[1 + played] = f"{label} {lines[1 + played]}"
        return lines

    def _open(self, saved: Array | None = None) -> None:
        """Start Vowpal Wabbit, afresh or with the model that a file holds."""
        try:
            workspace = import_module("vowpalwabbit").Workspace
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "this policy needs Vowpal Wabbit: pip install 'tercet[bench]'", name=error.name
            ) from error
        self._desk = workspace(arg_list=self._arguments())
        if saved is None:
            self._model = workspace(arg_list=self._arguments())
            return
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model"
            file.write_bytes(saved.tobytes())
            self._model = workspace(arg_list=[*self._arguments(), "-i", str(file)])

    def _close(self) -> None:
        for workspace in (self._model, self._desk):
            if workspace is not None:
                workspace.finish()
        self._model = self._desk = self._dims = self._units = None

    def _arguments(self) -> list[str]:
        rules = {
            "squarecb": ["--squarecb", "--gamma_scale", f"{self.gamma}"],
            "cover": ["--cover", f"{self.covers}", "--adaptive", "--invariant"],  # not --normalized
            "regcb": ["--regcb", "--mellowness", f"{self.mellowness}"],
        }
        return [
            *("--cb_explore_adf", "--cb_type", "mtr", *rules[self.explore]),
            *("--learning_rate", f"{self.rate}", "--power_t", f"{self.power}", "-b", f"{self.bits}"),
            *(("-q", "ca") if self.interactions else ()),
            # A reloaded model must go on as the saved one would have, its counters included.
            *("--quiet", "--save_resume", "--preserve_performance_counters"),
        ]


def _features(row: Vector) -> str:
    known = np.flatnonzero(np.abs(row) >= LEAST)
    return " ".join(f"{column}:{value:.9g}" for column, value in zip(known, row[known], strict=True))


def _dump(workspace: Any) -> Array:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        workspace.save(str(file))
        return np.frombuffer(file.read_bytes(), dtype=np.uint8)
