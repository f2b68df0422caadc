"""The commits that first runs took, so that later runs on this machine take the same."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from filelock import FileLock

from benchmarks.errors import SubmitterError


class CheckpointPins:
    """Repository to commit, in one file beside the cache of the Hub; safe for several processes.

    Args:
        place: the file; need not exist yet.
    """

    def __init__(self, place: Path) -> None:
        self.place = place

    def commit(self, repository: str) -> str:
        """The commit a repository is held to; empty where none is.

        Raises:
            SubmitterError: `checkpoint_pins_malformed`.
        """
        return self._read().get(repository, "")

    def pin(self, repository: str, commit: str) -> str:
        """Hold a repository to a commit, unless it is held to one already.

        Returns:
            The commit it is held to from now on.

        Raises:
            SubmitterError: `checkpoint_pins_malformed`, or `cache_not_writable`.
        """
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.place.with_suffix(".lock")):
                held = self._read()
                if repository not in held:
                    held[repository] = commit
                    self._write(dict(sorted(held.items())))
                return held[repository]
        except OSError as error:
            raise SubmitterError(
                "cache_not_writable",
                f"{self.place} cannot be written ({error.strerror or error}).",
                "Name a folder of your own with HF_HOME.",
            ) from error

    def _read(self) -> dict[str, str]:
        try:
            content = json.loads(self.place.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise self._malformed(str(error)) from error
        if not isinstance(content, dict) or not all(
            isinstance(value, str) for value in content.values()
        ):
            raise self._malformed("it is no table of commits")
        return content

    def _malformed(self, why: str) -> SubmitterError:
        return SubmitterError(
            "checkpoint_pins_malformed",
            f"{self.place} is no record of checkpoints ({why}).",
            "Delete it; the next runs then take the newest commits.",
        )

    def _write(self, held: dict[str, str]) -> None:
        """Replace the file in one step, so that a kill leaves the old one or the new one."""
        handle, name = tempfile.mkstemp(dir=self.place.parent, prefix=f".{self.place.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(held, file, indent=1)
        Path(name).replace(self.place)
