"""How phi is trained: the options of Algorithm 1."""

from dataclasses import dataclass, replace
from typing import Any, Self, final

from tercet import checks


@final
@dataclass(frozen=True, kw_only=True)
class Training:
    """The options of Algorithm 1; the defaults are ours, `Training.paper()` has the paper's values.

    epochs, patience : most epochs; stop after `patience` of them without a better validation loss
        (None: never).
    usage, limit : share of the history drawn anew in each epoch, and at most how many rows (None: any).
    reference : share of the drawn rows that serve as references; the others are queries.
    batch, rate, decay : queries per step, Adam's rate, and the factor that shrinks it every epoch.
    prior : outcomes of the mean reward that every estimate is shrunk by. Without any, training gains by
        scattering the embeddings until each has few neighbours, and decisions then explore for nothing.
    calibration, bins : weight of the expected calibration error in the loss, and its number of bins.
    partitions : number of time intervals; a query sees the references of its own interval only.
        None: chosen from the history, see `intervals.choose`.
    validation : share of the history held out to pick the best epoch; 0: the last epoch is kept.
    importance : weight references by their density (IWKR), or not (NWKR).
    """

    epochs: int = 100
    patience: int | None = 20
    usage: float = 1.0
    limit: int | None = 6_144
    reference: float = 0.15
    batch: int = 256
    rate: float = 1e-2
    decay: float = 0.97
    prior: float = 0.5
    calibration: float = 0.0
    bins: int = 10
    partitions: int | None = None
    validation: float = 0.15
    importance: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "limit", "batch", "bins", "partitions"):
            value = getattr(self, name)
            smallest = 2 if name == "limit" else 1
            if value is not None and not (isinstance(value, int) and value >= smallest):
                raise ValueError(f"{name} must be a whole number of at least {smallest}; got {value}")
        for name in ("rate", "usage", "reference", "decay"):
            checks.positive(name, getattr(self, name))
        for name in ("usage", "decay"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must lie in (0, 1]; got {getattr(self, name)}")
        if not self.reference < 1:
            raise ValueError(f"reference must lie in (0, 1), queries are the rest; got {self.reference}")
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must lie in [0, 1); got {self.validation}")
        for name in ("prior", "calibration"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be a finite number, 0 or more; got {getattr(self, name)}")

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the values of the paper's classification experiments, with changes.

        The validation share is that of its news experiment, the only one it gives.

        >>> Training.paper(epochs=4, usage=0.5, calibration=5.0, partitions=200).batch  # its simulation
        16
        """
        values: dict[str, Any] = {
            "epochs": 50,
            "patience": None,
            "usage": 0.1,
            "limit": None,
            "reference": 0.2,
            "batch": 16,
            "rate": 1e-3,
            "decay": 0.99,
            "prior": 0.0,
            "calibration": 2.0,
            "bins": 5,
            "partitions": 1,
            "validation": 0.2,
            "importance": True,
        }
        return cls(**(values | changes))


@final
@dataclass(frozen=True, kw_only=True)
class LeaveOneOut:
    """How our own networks are trained: each outcome of a group is predicted by all the others.

    epochs, steps : times that the history is gone through, and in how many steps at least: a small history
        is gone through more often.
    width : hidden units of our own networks.
        None, here or as epochs: 128 units and 36 epochs; our own networks have 384 and 80 where a GPU trains
        them on more than 10,000 outcomes, which takes little longer there.
    batch : rows in a step, which are compared with each other.
    rate, hidden_rate : highest step sizes (they rise and fall once) of AdamW, and of Muon for the matrices
        between hidden layers (None: AdamW for these too).
    decay : weight decay of both.
    prior : kernel weight of the mean reward in every estimate, against estimates from nothing.
    partitions : number of time intervals; rows of the same interval predict each other.
        None: chosen from the history, see `intervals.choose`.
    importance : weight references by their density (IWKR), or not (NWKR).
    """

    epochs: int | None = None
    steps: int = 300
    width: int | None = None
    batch: int = 1_024
    rate: float = 3e-3
    hidden_rate: float | None = 1e-2
    decay: float = 1e-2
    prior: float = 0.1
    partitions: int | None = None
    importance: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "width", "partitions"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), least=1)
        checks.whole("steps", self.steps, least=1)
        checks.whole("batch", self.batch, least=2)
        checks.positive("rate", self.rate)
        if self.hidden_rate is not None:
            checks.positive("hidden_rate", self.hidden_rate)
        checks.positive("prior", self.prior)
        if not 0 <= self.decay < float("inf"):
            raise ValueError(f"decay must be a finite number, 0 or more; got {self.decay}")

    def settled(self, *, ample: bool) -> "LeaveOneOut":
        """Return the options with a number of epochs and a width; ample: there is power to spare.

        >>> options = LeaveOneOut(epochs=10).settled(ample=True)
        >>> options.epochs, options.width
        (10, 384)
        """
        epochs, width = (80, 384) if ample else (36, 128)
        return replace(self, epochs=self.epochs or epochs, width=self.width or width)
