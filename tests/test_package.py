"""What importing and deciding cost: heavy packages come in only where they are used."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import tercet
from tercet import C3
from tests.policies.test_c3 import trained as trained

HEAVY = (
    "torch",
    "numba",
    "scipy",
    "sklearn",
    "skrub",
    "pandas",
    "polars",
    "plotly",
    "matplotlib",
    "rich",
    "typer",
)


def modules_after(code: str) -> set[str]:
    """Run code in a fresh interpreter; return the heavy packages that it imported."""
    report = f"\nimport sys; print(*(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_tercet_imports_nothing_heavy() -> None:
    assert modules_after("import tercet") == set()


def test_a_saved_policy_decides_and_learns_without_torch(trained: C3, tmp_path: Path) -> None:
    trained.save(tmp_path / "c3")
    code = f"""
import numpy as np, tercet
policy, rng = tercet.C3.load({str(tmp_path / "c3")!r}), np.random.default_rng(0)
choice = policy.choose([0.1, 0.2], np.eye(3), rng)
policy.update(tercet.Feedback.one(context=[0.1, 0.2], arm=np.eye(3)[choice.arm], reward=1.0, time=99.0), rng)
policy.explain([0.1, 0.2], np.eye(3)[0])
policy.save({str(tmp_path / "c3")!r})
"""
    assert modules_after(code) <= {"numba", "scipy"}


def test_training_without_torch_says_what_to_install() -> None:
    code = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import numpy as np, tercet
history = tercet.Feedback(contexts=np.zeros((40, 1)), arms=np.zeros((40, 1)), rewards=np.zeros(40))
try:
    tercet.C3().fit(history, np.random.default_rng(0))
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'tercet[train]'" in done.stdout, done.stderr


def test_where_compiled_code_can_not_be_cached_numpy_decides(trained: C3, tmp_path: Path) -> None:
    trained.save(tmp_path / "c3")
    # Every place that Numba would write its cache to fails, as on a read-only disk.
    code = f"""
import numba.core.caching as caching
def refuse(self): raise OSError(30, "Read-only file system")
caching._CacheLocator.ensure_cache_path = refuse
import numpy as np, tercet
policy = tercet.C3.load({str(tmp_path / "c3")!r})
assert policy.state.references.engine == "numpy"
choice = policy.choose([0.1, 0.2], np.eye(3), np.random.default_rng(0))
print(*choice.propensities)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = trained.choose([0.1, 0.2], np.eye(3), np.random.default_rng(0)).propensities
    np.testing.assert_allclose([float(p) for p in done.stdout.split()], here, atol=1e-4)


def test_every_public_name_is_there_and_documented() -> None:
    for name in tercet.__all__:
        assert getattr(tercet, name).__doc__, name
