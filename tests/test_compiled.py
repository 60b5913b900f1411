import os
import subprocess
import sys
from pathlib import Path

import pytest

BITS = """
import hashlib
import numpy as np
from tercet import ReferenceSet
from tercet.quadrature import quick_propensities

rng, bits = np.random.default_rng(0), hashlib.sha256()
for size in rng.choice([0.1, 1.0, 5.0, 50.0], size=1000):
    bits.update(quick_propensities(*rng.gamma(2.0, size, size=(2, 3))).tobytes())
references = ReferenceSet(dim=3, bandwidth=0.5)
for _ in range(20):
    references.append(rng.normal(size=(40, 3)), rng.random(40))
    estimate = references.estimate(rng.normal(size=(5, 3)))
    bits.update(estimate.mean.tobytes() + estimate.mass.tobytes() + references.densities.tobytes())
print(bits.hexdigest())
"""


@pytest.mark.slow
def test_code_from_the_cache_gives_the_last_bits_of_code_just_compiled(tmp_path: Path) -> None:
    """Else a run would differ from its resumption, and one worker from the next."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BITS]
    compiled, cached = (
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    )
    assert list(tmp_path.rglob("*.nbc"))
    assert compiled == cached
