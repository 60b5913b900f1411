"""One formula, three times: the equations in NumPy, the trainer's in torch, the decision's in Numba."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import ReferenceSet, iwkr
from tercet.embedding.objective import estimate


@pytest.mark.parametrize("importance", [True, False])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 600), dim=st.integers(1, 12))
def test_torch_and_numba_agree(importance: bool, seed: int, n: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    bandwidth = float(rng.uniform(0.3, 2) * dim**0.5)
    points, queries = (
        rng.normal(size=(n, dim)).astype(np.float32),
        rng.normal(size=(5, dim)).astype(np.float32),
    )
    rewards = rng.random(n)
    references = ReferenceSet(dim=dim, bandwidth=bandwidth, importance=importance)
    references.append(points, rewards)
    decided = references.estimate(queries)
    mass, mean = estimate(
        torch.tensor(queries),
        torch.tensor(points),
        torch.tensor(rewards, dtype=torch.float32),
        bandwidth=bandwidth,
        importance=importance,
    )
    np.testing.assert_allclose(mass.numpy(), decided.mass, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mean.numpy(), decided.mean, atol=1e-5)
    kappa = iwkr.rbf(queries.astype(float), points.astype(float), bandwidth)
    w = 1 / iwkr.densities(iwkr.rbf(points.astype(float), points.astype(float), bandwidth))
    equation = iwkr.iwkr(kappa, w, rewards) if importance else iwkr.nwkr(kappa, rewards)
    np.testing.assert_allclose(decided.mean, equation, atol=1e-5)
