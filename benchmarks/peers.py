"""The same sums in straightforward vectorised NumPy: what one would write without this library."""

import numpy as np


class NumpyReferences:
    """Flat arrays; everything that can be kept is kept. Densities are float64, all else of the given type."""

    def __init__(
        self,
        points: np.ndarray,
        rewards: np.ndarray,
        densities: np.ndarray,
        bandwidth: float,
        dtype: type = np.float32,
    ) -> None:
        self.dtype = dtype
        self.points = points.astype(dtype)
        self.squares = (self.points**2).sum(axis=1)
        self.rewards = rewards.astype(dtype)
        self.densities = densities.copy()
        self.scale = dtype(-0.5 / bandwidth**2)
        self._weigh()

    def _weigh(self) -> None:
        self.weights = (1 / self.densities).astype(self.dtype)
        self.earned = self.weights * self.rewards

    def _kernel(self, queries: np.ndarray) -> np.ndarray:
        squares = self.squares - 2 * (queries @ self.points.T) + (queries**2).sum(axis=1)[:, None]
        return np.exp(self.scale * squares)

    def estimate(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mass and mean."""
        kappa = self._kernel(queries.astype(self.dtype))
        return kappa.sum(axis=1), (kappa @ self.earned) / (kappa @ self.weights)

    def append(self, point: np.ndarray) -> float:
        """Update all densities for one new point (its own row apart), and the weights derived of them."""
        kappa = self._kernel(point[None].astype(self.dtype))[0]
        self.densities += kappa
        self._weigh()
        return 1.0 + float(kappa.sum())

    def rebuild(self) -> None:
        """Recompute all densities, a thousand rows at a time."""
        for start in range(0, len(self.points), 1000):
            self.densities[start : start + 1000] = self._kernel(self.points[start : start + 1000]).sum(axis=1)
        self._weigh()
