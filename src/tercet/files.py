"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a draft to write to; it takes the target's place in a single step, or vanishes on an error."""
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {target.parent} to write {target.name} to; create it first"
        )
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)  # mkstemp's own mode keeps other users out
        with draft.open("rb") as file:
            os.fsync(file.fileno())  # the name must not outlive a power cut that the contents did not
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
