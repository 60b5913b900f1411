"""Memory of five million references, growth included, in a process of its own."""

import json
import subprocess
import sys

from rich.console import Console
from rich.table import Table

# Rows are written as `append` writes them, batch by batch; computing 5,000,000² kernels would take days.
SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
from tercet import ReferenceSet
from tercet.reference.layout import Rows, halves

def now():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

count, batch, dtype = 5_000_000, 10_000, np.dtype(sys.argv[1])
rng = np.random.default_rng(0)
references = ReferenceSet(dim=8, bandwidth=1.0)
query = rng.normal(size=(8, 8)).astype(dtype)
references.append(query, np.ones(8)); references.estimate(query)
before = now()
storage = references._storage
for start in range(8, count, batch):
    n = min(batch, count - start)
    points = rng.normal(size=(n, 8)).astype(dtype).astype(float)
    numbers = np.arange(start, start + n)
    rows = Rows(*halves(points), np.full(n, 9.0), np.ones(n), numbers * 1.0, numbers, numbers)
    storage.write(numbers, rows)
    storage.count += n
for _ in range(3):
    references.append(query, np.ones(8)); references.estimate(query)
print(json.dumps({"rows": len(references), "set": peak() - before, "process": peak()}))
"""


def measure(dtype: str) -> dict[str, int]:
    """Fill a set with five million points of this type; return bytes."""
    result = subprocess.run([sys.executable, "-c", SCRIPT, dtype], check=True, capture_output=True, text=True)
    return dict(json.loads(result.stdout))


def memory(console: Console) -> None:
    """Print what five million references take."""
    table = Table(
        "embeddings",
        "the set, MB",
        "the whole process, MB",
        "target, MB",
        title="5,000,000 references, d = 8",
    )
    for dtype in ("float32", "float64"):
        used = measure(dtype)
        table.add_row(dtype, f"{used['set'] / 1e6:.0f}", f"{used['process'] / 1e6:.0f}", "<= 800")
    console.print(table)
