"""Every annotation of the package is checked at run time in tests; soak tests wait for `make soak`."""

import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

SOURCE = Path(__file__).parent / "src"

# A shell starts jobs in the background with Ctrl-C ignored, and the tests of Ctrl-C would wait for it in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
MODULES = [path.relative_to(SOURCE).with_suffix("").parts for path in SOURCE.rglob("*.py")]
# Numba types its kernels by itself, Feedback converts whatever it is given, packages hold only names.
UNCHECKED = ("__init__", "grove_kernels", "kernels", "pair_kernels", "posterior_kernels", "types")
CHECKED = [".".join(module) for module in MODULES if module[-1] not in UNCHECKED]

install_import_hook(CHECKED, "tests.typecheck.check")

# Laws are classes that several subjects inherit, and the same examples every time keep CI calm.
shared_laws = [HealthCheck.differing_executors, HealthCheck.too_slow]
settings.register_profile("tercet", deadline=None, derandomize=True, suppress_health_check=shared_laws)
settings.load_profile("tercet")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the soak tests too (minutes)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--soak"):
        wait = pytest.mark.skip(reason="a soak test: run `make soak`")
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(wait)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
