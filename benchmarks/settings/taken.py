"""What a process took from the settings file and from files with secrets, told to its children.

Children find the values in their environment. The note beside them, in a variable, says which came
from where; it holds no value. A value that was changed since is no longer the file's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, ValidationError

NOTE = "ASSAY_SETTINGS_TAKEN"
SETTINGS = "ASSAY_SETTINGS"
"""The settings file; it came from a file, itself, where nobody named it."""


class _Source(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    where: str
    """A file."""
    key: str = ""
    """Of the settings file; empty for a file that holds a secret alone."""
    mark: str
    """Tells whether the value is still the one that was taken."""


class _Note(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: dict[str, _Source] = {}


@dataclass
class Taken:
    """Which variables came from files.

    Attributes:
        sources: variable to where it came from.
    """

    sources: dict[str, _Source] = field(default_factory=dict)

    @classmethod
    def told(cls, environment: Mapping[str, str]) -> Taken | None:
        """What a process before this one took; None where this is the first."""
        said = environment.get(NOTE)
        if said is None:
            return None
        try:
            return cls(dict(_Note.model_validate_json(said).sources))
        except ValidationError:
            return None  # Somebody else's; it is written anew.

    def note(
        self, environment: MutableMapping[str, str], variable: str, text: str, where: str, key: str
    ) -> None:
        """Take a value: put it into the environment and remember from where."""
        environment[variable] = text
        self.sources[variable] = _Source(where=where, key=key, mark=_mark(text))
        self.tell(environment)

    def tell(self, environment: MutableMapping[str, str]) -> None:
        """Put the note into the environment: the processes that are started read no file again."""
        told = {name: source.model_dump() for name, source in self.sources.items()}
        environment[NOTE] = json.dumps({"sources": told})

    def source(self, environment: Mapping[str, str], variable: str) -> _Source | None:
        """Where the value that is in the environment came from; None where from no file."""
        source = self.sources.get(variable)
        if source is None or _mark(environment.get(variable, "")) != source.mark:
            return None
        return source


def _mark(text: str) -> str:
    return hashlib.sha256(f"assay:{text}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
