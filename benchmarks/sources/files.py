"""The files a benchmark is read from, as its card declares them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Role = Literal["answers", "prompts", "images"]


class DataFile(BaseModel):
    """One file of a benchmark: where it lies, where it comes from, what it must be.

    A file has one origin: a dataset repository on the Hub (`repo`), a web address (`url`), or the
    operator (`supplied`), where the authors do not publish it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    """Where it lies below the folder of data, e.g. `croc_hum/croc_hum_metadata.tsv`."""
    role: Role
    """`answers`: a protocol needs it. `prompts`: only the prompt set needs it. `images`: code can
    be run only with it."""
    also: tuple[str, ...] = ()
    """Other places below the folder of data where a copy is accepted."""
    repo: str = ""
    """Dataset repository on the Hub, e.g. `nllg/croc_hum`."""
    name: str = ""
    """Path in the repository; empty: the last part of `path`."""
    url: str = ""
    """Web address of a file at a fixed commit, where it is not on the Hub."""
    supplied: str = ""
    """How an operator gets the file, where it is not public."""
    revision: str = ""
    """Commit of the repository; empty where none is known: the first fetch pins one."""
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Hash of the content; empty where none is known: the first fetch pins one."""
    size: int = 0
    """Bytes, for the check of disk space where the origin does not tell."""
    optional: bool = False
    """The benchmark works without it."""
    folder: bool = False
    """A folder of files instead of one file."""
    unpack: bool = False
    """A tar archive that is unpacked beside itself after the download."""

    @property
    def name_in_repo(self) -> str:
        """Path in the repository."""
        return self.name or PurePosixPath(self.path).name

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        if sum(map(bool, (self.repo, self.url, self.supplied))) != 1:
            raise ValueError(f"{self.path} needs exactly one of repo, url and supplied")
        return self
