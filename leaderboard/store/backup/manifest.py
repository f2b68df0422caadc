"""Manifest of a backup: its first member, `backup.json`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import SubmitterError

MEMBER = "backup.json"
LARGEST = 256 << 20
"""Bytes of the manifest: about a million files."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kept(_Frozen):
    """One file.

    Attributes:
        sha256: of its content, 64 hexadecimal digits.
        n_bytes: of it.
    """

    sha256: str = Field(pattern=r"[0-9a-f]{64}")
    n_bytes: int = Field(ge=0)


class Side(_Frozen):
    """One repository of the store.

    Attributes:
        version: of it, when the backup was made.
        files: path to what is kept of each.
    """

    version: str
    files: dict[str, Kept]


class Manifest(_Frozen):
    """A backup.

    Attributes:
        store: the name of the store, as it was given.
        made_at: by the clock of the store.
        public: what everybody may read.
        private: what was uploaded, and what is withheld.
    """

    schema_version: Literal[1] = 1
    store: str
    made_at: datetime
    public: Side
    private: Side

    def members(self) -> dict[str, Kept]:
        """Every file by its name in the backup: `public/...` and `private/...`."""
        sides = (("public", self.public), ("private", self.private))
        return {f"{name}/{path}": kept for name, side in sides for path, kept in side.files.items()}


def read_manifest(content: bytes, where: str) -> Manifest:
    """The manifest of a backup.

    Args:
        content: of the member.
        where: the backup, for the error.

    Raises:
        SubmitterError: `bad_backup`.
    """
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SubmitterError(
            "bad_backup",
            f"{where} is no backup that this Assay reads: {MEMBER}, {place}: {first['msg']}.",
            "Take another backup, or the Assay that made this one.",
        ) from error
