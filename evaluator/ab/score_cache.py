"""Cache of scores: what a metric said of an image's content and a prompt is not asked again."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from benchmarks.errors import PlatformError


class ScoreCache:
    """Scores of one metric, in a file that is only ever added to.

    A metric with other weights, code or settings has another fingerprint, and so another file.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        name = hashlib.sha256(fingerprint.encode()).hexdigest()[:32]
        self.work = folder / f"{name}.work"  # for what is being scored
        self._file = folder / f"{name}.jsonl"
        self._known: dict[tuple[str, str], float] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            content = self._file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            content = ""
        except OSError as error:
            raise self._refused(error) from error
        for line in content.splitlines():
            # One may be half a line, of a process that was killed.
            with suppress(json.JSONDecodeError, KeyError, TypeError, ValueError):
                found = json.loads(line)
                self._known[found["image"], found["prompt"]] = float(found["score"])

    def get(self, digest: str, prompt: str) -> float | None:
        """The score of an image by its hash; None where it is not known."""
        return self._known.get((digest, _key(prompt)))

    def add(self, scores: Iterable[tuple[str, str, float]]) -> None:
        """Keep scores by hash and prompt; what has none may have one the next time.

        Raises:
            PlatformError: the disk takes nothing.
        """
        rows = [
            (digest, _key(text), value) for digest, text, value in scores if math.isfinite(value)
        ]
        lines = "".join(
            json.dumps({"image": digest, "prompt": key, "score": value}) + "\n"
            for digest, key, value in rows
        )
        try:
            with self._file.open("ab") as file:
                half = file.tell() > 0 and not _ends_whole(self._file)
                file.write(("\n" * half + lines).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._refused(error) from error
        self._known.update({(digest, key): value for digest, key, value in rows})

    def _refused(self, error: OSError) -> PlatformError:
        return PlatformError(
            "cannot_write",
            f"Scores cannot be kept in {self._file.parent}: {error.strerror}.",
            "Name another folder with --cache.",
        )


def _key(prompt: str) -> str:
    return hashlib.sha256(prompt.encode()).hexdigest()[:32]


def _ends_whole(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(-1, os.SEEK_END)
        return opened.read(1) == b"\n"
