"""Write the lock file: every package of every extra, resolved by pip without installing anything.

make lock
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

EXTRAS = "train,service,postgres,ray,paper,bench,dev"
LOCK = Path(__file__).parent.parent / "constraints.txt"


def main() -> None:
    """Resolve, then write one sorted `name==version` line a package."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
        subprocess.run([*command, "--report", str(report), "-e", f".[{EXTRAS}]"], check=True, cwd=LOCK.parent)
        packages = [row["metadata"] for row in json.loads(report.read_text())["install"]]
    # A local label such as +cpu names a build, not a version; the lock must fit every build of it.
    pins = {p["name"]: p["version"].split("+")[0] for p in packages if p["name"] != "tercet"}
    lines = [f"{name}=={version}" for name, version in sorted(pins.items(), key=lambda pin: pin[0].lower())]
    LOCK.write_text(
        "# Made by `make lock`. One version of each package, for all extras.\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
