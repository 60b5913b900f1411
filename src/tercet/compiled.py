"""Numba where it works, NumPy where it does not."""

import importlib
from types import ModuleType


def load(name: str) -> ModuleType | None:
    """Import a module of Numba kernels, or return None where Numba is missing or has nowhere to cache.

    Kernels are declared with `cache=True`, and Numba raises RuntimeError at once where neither the
    package's folder nor the user's cache folder can be written (a read-only home). Compiling anew in
    every process would cost seconds, so such places get the NumPy twin of each kernel instead.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError):
        return None
