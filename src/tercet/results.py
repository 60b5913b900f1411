"""A folder of results: one Parquet file for each finished run, written whole or not at all.

results/
  experiment.json      what was run: policies, environments, seeds, steps, budget, revision, command
  runs/*.parquet       the rows of a (policy, environment, seed); its summary is in the file's metadata
  errors/*.txt         the traceback of a run that failed
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tercet import files
from tercet.checks import Array

if TYPE_CHECKING:
    import pandas as pd

SUMMARY = b"tercet"


class ResultError(ValueError):
    """A result file that is damaged, or belongs to another experiment."""


class Job(NamedTuple):
    """What is run, and resumed, as a whole."""

    policy: str
    environment: str
    seed: int

    def __str__(self) -> str:
        return f"{self.policy} in {self.environment}, seed {self.seed}"


@dataclass(frozen=True)
class Results:
    """The results in a folder, which is made with the first run; `only` those of some jobs, if given."""

    folder: Path
    only: tuple[Job, ...] | None = None

    @property
    def started(self) -> bool:
        """Whether a run is finished."""
        return bool(self._found())

    def path(self, job: Job) -> Path:
        """Return where a run's rows are: a readable name, and a hash because names are anything."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{job.environment} {job.policy}".lower()).strip("-")[:60]
        digest = hashlib.blake2b(repr(tuple(job)).encode(), digest_size=4).hexdigest()
        return self.folder / "runs" / f"{words}-{job.seed}-{digest}.parquet"

    def write(self, job: Job, columns: Mapping[str, Array], summary: Mapping[str, Any]) -> None:
        """Add a finished run: one row a step."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: pa.array(column.tolist()) for name, column in columns.items()})
        header = json.dumps({**job._asdict(), **summary}, allow_nan=False)
        table = table.replace_schema_metadata({SUMMARY: header.encode()})
        path = self.path(job)
        with self._writing(path) as draft:
            pq.write_table(table, draft, write_page_checksum=True)
        self._error_path(job).unlink(missing_ok=True)

    def write_error(self, job: Job, text: str) -> Path:
        """Keep what ended a run, until it is finished; return where."""
        path = self._error_path(job)
        with self._writing(path) as draft:
            draft.write_text(text, encoding="utf-8")
        return path

    def describe(self, description: Mapping[str, Any]) -> None:
        """Write what is being run."""
        with self._writing(self.folder / "experiment.json") as draft:
            draft.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")

    def description(self) -> dict[str, Any]:
        """Return what `describe` wrote."""
        path = self.folder / "experiment.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ResultError(f"{self.folder} holds no results: there is no {path.name} in it") from error
        except ValueError as error:
            raise ResultError(
                f"{path} can not be read ({error}); run the experiment again to remake it"
            ) from error

    def summary(self, path: Path) -> dict[str, Any]:
        """Return the summary of one run's file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            metadata = pq.read_schema(path).metadata or {}
            summary = json.loads(metadata[SUMMARY])
            job = Job(*(summary[name] for name in Job._fields))
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise ResultError(
                f"{path} can not be read as a result ({error}); delete it, and it will be run again"
            ) from error
        if path != self.path(job):
            raise ResultError(f"{path} is a copy of {self.path(job).name} ({job}); delete it")
        return summary

    def heads(self) -> list[dict[str, Any]]:
        """Return the summary of each finished run."""
        return [self.summary(path) for path in self._paths()]

    def summaries(self) -> "pd.DataFrame":
        """Return one row a finished run."""
        import pandas as pd

        return pd.DataFrame(self.heads())

    def runs(self) -> "Iterator[tuple[dict[str, Any], pd.DataFrame]]":
        """Yield the summary and the rows of each finished run: all rows at once may be too many."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for path in self._paths():
            summary = self.summary(path)
            try:
                frame = pq.read_table(path, page_checksum_verification=True).to_pandas()
            except (OSError, pa.ArrowException) as error:
                raise ResultError(
                    f"{path} is damaged ({error}); delete it, and it will be run again"
                ) from error
            frame.insert(0, "step", range(len(frame)))
            yield summary, frame

    def rows(self) -> "pd.DataFrame":
        """Return all rows of all finished runs, with their policy, environment and seed."""
        import pandas as pd

        frames = []
        for summary, frame in self.runs():
            for name in reversed(Job._fields):
                frame.insert(0, name, summary[name])
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[Path]:
        if self.folder.exists() and not self.folder.is_dir():
            raise ResultError(f"{self.folder} must be a folder for results; it is a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with files.replacing(path) as draft:
                yield draft
        except OSError as error:
            raise OSError(
                f"{path} could not be written ({error}). What was finished before is kept: when there is "
                "room and permission to write, run the experiment again"
            ) from error

    def _error_path(self, job: Job) -> Path:
        return self.folder / "errors" / f"{self.path(job).stem}.txt"

    def _paths(self) -> list[Path]:
        if not self.folder.is_dir():
            raise ResultError(f"there is no folder {self.folder}")
        paths = self._found()
        if not paths:
            raise ResultError(f"{self.folder} holds no finished run yet")
        return paths

    def _found(self) -> list[Path]:
        if self.only is None:
            return sorted((self.folder / "runs").glob("*.parquet"))
        return [path for path in map(self.path, self.only) if path.exists()]
