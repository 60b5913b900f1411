"""What one core of this machine could do at best: the floor under a decision.

floor = max(bytes / bandwidth, multiply-adds / their rate + exponentials / their rate), each rate measured
in this run, the bandwidth on arrays of the same size as the data.
"""

from dataclasses import dataclass

import numba
import numpy as np

from benchmarks.timing import best
from tercet.reference.kernels import FAST, exp2_single

SIZE, SWEEPS = 2048, 2000  # 8 KiB of float32: well inside the first-level cache
CHAIN = 16


@numba.njit(fastmath=FAST)
def _multiply_add(x, sweeps):
    a, b, total = np.float32(0.7), np.float32(0.1), np.float32(0)
    for _ in range(sweeps):
        for i in range(len(x)):
            y = x[i]
            for _ in range(CHAIN):  # a polynomial of x: one load, many multiply-adds
                y = y * x[i] + a
            total += y * b
    return total


@numba.njit(fastmath=FAST)
def _exponentials(x, sweeps):
    total = np.float32(0)
    for _ in range(sweeps):
        for i in range(len(x)):
            total += exp2_single(x[i])
    return total


@numba.njit(fastmath=FAST)
def _read_all(x):
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i]
    return total


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Operations a second of one core."""

    multiply_adds: float
    exponentials: float

    @classmethod
    def measure(cls) -> "Machine":
        """Run both loops in the first-level cache."""
        x = -np.random.default_rng(0).uniform(0, 0.9, SIZE).astype(np.float32)
        times = best({"m": lambda: _multiply_add(x, SWEEPS), "e": lambda: _exponentials(x, SWEEPS)})
        return cls(multiply_adds=CHAIN * SIZE * SWEEPS / times["m"], exponentials=SIZE * SWEEPS / times["e"])

    def floor(self, n: int, dim: int, arms: int) -> float:
        """Return the least seconds of a decision of `arms` over n references."""
        size = n * (4 * dim + 8 + 4)  # coordinates in float32, density in float64, reward in float32
        data = np.ones(size // 4, np.float32)
        bandwidth = size / best({"read": lambda: _read_all(data)})["read"]
        pairs = n * arms
        compute = pairs * (dim + 3) / self.multiply_adds + pairs / self.exponentials
        return float(max(size / bandwidth, compute))
