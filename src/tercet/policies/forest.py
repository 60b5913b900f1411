"""A LightGBM model as a value: trained reproducibly, written as text, read back bit for bit."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tercet.checks import Array, Matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class Forest:
    """A LightGBM model and the bytes of its text, from which it can be made again bit for bit."""

    text: Array
    booster: Any

    @classmethod
    def grow(
        cls, inputs: Matrix, targets: Array, rng: np.random.Generator, *, trees: int, **settings: Any
    ) -> Self:
        """Train on one thread, so that equal rngs give equal trees.

        Cross-entropy takes graded rewards too, and keeps predictions within [0, 1].
        """
        lightgbm = _lightgbm()
        reproducible = {
            "seed": int(rng.integers(2**31)),
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
        }
        settings = {"objective": "cross_entropy", "verbosity": -1} | reproducible | settings
        booster = lightgbm.train(settings, lightgbm.Dataset(inputs, targets), num_boost_round=trees)
        return cls.read(np.frombuffer(booster.model_to_string().encode(), dtype=np.uint8))

    @classmethod
    def read(cls, text: Array) -> Self:
        """Return the model that was written as this text."""
        return cls(text=text, booster=_lightgbm().Booster(model_str=text.tobytes().decode()))

    def predict(self, inputs: Matrix) -> Array:
        """Return the expected reward of each row, or of each row and class."""
        return np.asarray(self.booster.predict(inputs, num_threads=1))


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "boosted trees need LightGBM: pip install 'tercet[bench]'", name=error.name
        ) from error
    return lightgbm
